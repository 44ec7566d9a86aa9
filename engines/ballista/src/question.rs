//! What is asked, as text that travels with a query, and the sweep that each process makes of it once.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use clusterplan::catalog::Catalog;
use clusterplan::diagnostics::{Code, Diagnostic, Sink, Sources, render};
use clusterplan::document::Node;
use clusterplan::load::{self, Contents};
use clusterplan::report::{all_figures, sweep_figures};
use clusterplan::scenario::{ScenarioFile, SweepFile};
use clusterplan::sweep::{Figure, Row, Sweep, Visitor};

/// Sweeps that a process keeps ready.
const KEPT: usize = 8;

/// Mistakes in what was asked, as text.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Mistakes(String);

impl Mistakes {
    pub(crate) fn of(sink: Sink, sources: &Sources) -> Self {
        Self(render(&sink.into_diagnostics(), sources, false))
    }

    /// One mistake with no place in a text.
    pub(crate) fn one(message: impl Into<String>, hint: impl Into<String>) -> Self {
        let sink = Sink::default();
        sink.push(Diagnostic::new(Code::Inconsistent, message).hint(hint));
        Self::of(sink, &Sources::default())
    }
}

/// What answers: the catalog of this process, and the sweeps that were asked for last.
pub(crate) struct Evaluator {
    catalog: &'static Catalog,
    /// The first line of every text: the version and the catalog, on which rows depend beside the text.
    head: String,
    /// By text and figures.
    kept: Mutex<Vec<(String, String, Arc<Bound>)>>,
}

impl fmt::Debug for Evaluator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.head)
    }
}

/// A sweep that is ready, and what its threads keep between batches.
pub(crate) struct Bound {
    pub(crate) sweep: Sweep<'static>,
    /// Where points have a row for each layout, how many rows there are up to each point and with it.
    ends: Vec<u64>,
    idle: Mutex<Vec<Visitor>>,
}

impl Bound {
    fn new(sweep: Sweep<'static>) -> Self {
        let ends = if sweep.axes.layouts { sweep.ends() } else { Vec::new() };
        Self { sweep, ends, idle: Mutex::default() }
    }

    /// Rows of the axes: points, or their layouts.
    pub(crate) fn size(&self) -> u64 {
        if self.sweep.axes.layouts { self.ends.last().copied().unwrap_or_default() } else { self.sweep.axes.size() }
    }

    /// The point of a row.
    pub(crate) fn point(&self, row: u64) -> u64 {
        if self.sweep.axes.layouts { self.ends.partition_point(|end| *end <= row) as u64 } else { row }
    }

    /// Hands on rows by their numbers, each with its place in the list, but for those that conditions leave out.
    pub(crate) fn visit(&self, rows: &[u64], mut take: impl FnMut(usize, &Row<'_>)) {
        self.with(|visitor| {
            if !self.sweep.axes.layouts {
                for (at, point) in rows.iter().enumerate() {
                    self.sweep.visit(visitor, *point, |row| take(at, row));
                }
                return;
            }
            // Rows that follow each other and are of one point are taken together.
            let mut at = 0;
            while let Some(&first) = rows.get(at) {
                let point = self.point(first);
                let before = usize::try_from(point).ok().and_then(|point| point.checked_sub(1));
                let before = before.map_or(0, |last| self.ends[last]);
                let follow = (0_u64..).zip(&rows[at..]).take_while(|(nth, row)| **row == first + nth);
                let count = follow.take_while(|(_, row)| self.point(**row) == point).count();
                let begin = first - before;
                self.sweep.visit_layouts(visitor, point, begin..begin + count as u64, |number, row| {
                    take(at + usize::try_from(number - begin).unwrap_or(usize::MAX), row);
                });
                at += count;
            }
        });
    }

    /// Works with a visitor that no other thread has meanwhile.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Visitor) -> T) -> T {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let mut visitor = taken.unwrap_or_else(|| self.sweep.visitor());
        let done = work(&mut visitor);
        idle().push(visitor);
        done
    }
}

impl Evaluator {
    /// Reads the built-in catalog with directories laid over it.
    pub(crate) fn new(overlays: &[PathBuf]) -> Result<Arc<Self>, Mistakes> {
        let (mut sources, sink) = (Sources::default(), Sink::default());
        let catalog = load::catalog(overlays, &mut sources, &sink);
        if !sink.is_empty() {
            return Err(Mistakes::of(sink, &sources));
        }
        let mut known = Contents::default();
        for record in catalog.records() {
            known.add(record.document.to_string().as_bytes());
        }
        let head = format!("# clusterplan {}, catalog {:016x}", env!("CARGO_PKG_VERSION"), known.checksum);
        // Functions of a query live as long as the process, and so does what they borrow.
        let catalog = Box::leak(Box::new(catalog));
        Ok(Arc::new(Self { catalog, head, kept: Mutex::default() }))
    }

    /// A scenario with settings, as the text that travels; `axes` says whether it must have some.
    pub(crate) fn ask(&self, path: &Path, settings: &[String], axes: bool) -> Result<String, Mistakes> {
        let (mut sources, sink) = (Sources::default(), Sink::default());
        let document = load::scenario(path, settings, &mut sources, &sink);
        let Some(document) = document.filter(|_| sink.is_empty()) else { return Err(Mistakes::of(sink, &sources)) };
        for node in load::models_by_path(&document) {
            let message = format!(
                "`{}` is a file of this machine, and executors have the catalog alone",
                node.as_str().unwrap_or_default()
            );
            let hint = "put it into a catalog by `clusterplan model import` with -o DIR/models/ID.toml, name the ID, and give --catalog DIR to all";
            sink.push(Diagnostic::new(Code::NotInCatalog, message).at(&node.at, "a model by its path").hint(hint));
        }
        if !sink.is_empty() {
            return Err(Mistakes::of(sink, &sources));
        }
        // Bound here first, so that mistakes are shown where they stand in the file.
        let file = ScenarioFile::read(&document, &sink).sweep.unwrap_or_default();
        if axes && file.axes.is_empty() && sink.is_empty() {
            let hint =
                "add [sweep] with axes = [{ key = \"cluster.accelerators\", values = [256, 512] }], or give --points";
            sink.push(Diagnostic::new(Code::MissingKey, "the scenario has no axes").hint(hint));
        }
        if !sink.is_empty() {
            return Err(Mistakes::of(sink, &sources));
        }
        let file = if axes { file } else { SweepFile { axes: Vec::new(), conditions: Vec::new(), ..file } };
        let sweep = Sweep::bind(&document, &file, self.catalog, Vec::new(), &sink);
        match sweep {
            Some(_) if sink.is_empty() => Ok(format!("{}\n{}", self.head, document.to_toml())),
            _ => Err(Mistakes::of(sink, &sources)),
        }
    }

    /// The scenario of a text, and where its parts stand.
    pub(crate) fn document(&self, text: &str) -> Result<(Node, Sources), Mistakes> {
        let head = text.lines().next().unwrap_or_default();
        if head != self.head {
            let (own, asked) = (self.head.trim_start_matches("# "), head.trim_start_matches("# "));
            return Err(Mistakes::one(
                format!("this process is {own}, and the question was asked with {asked}"),
                "start scheduler, executors and client from one build with the same --catalog",
            ));
        }
        let (mut sources, sink) = (Sources::default(), Sink::default());
        let file = sources.add("scenario", text);
        let document = load::parse(&sources, file, &sink);
        if sink.is_empty() { Ok((document, sources)) } else { Err(Mistakes::of(sink, &sources)) }
    }

    /// The sweep of a text with its own axes and these figures, bound once; where they do not matter, with any.
    pub(crate) fn bound(&self, text: &str, figures: Option<&str>) -> Result<Arc<Bound>, Mistakes> {
        // Held while it is bound, so that no other thread binds it too.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |known: &str| figures.is_none_or(|figures| figures == known);
        if let Some((.., bound)) = kept.iter().find(|(of, known, _)| of == text && fits(known)) {
            return Ok(bound.clone());
        }
        let (document, sources) = self.document(text)?;
        let file = ScenarioFile::read(&document, &Sink::default()).sweep.unwrap_or_default();
        let figures = figures.unwrap_or_default();
        let bound = Arc::new(self.bind(&document, &file, figures, &sources)?);
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((text.to_owned(), figures.to_owned(), bound.clone()));
        Ok(bound)
    }

    /// A scenario bound with these axes; `sources` are those of both.
    pub(crate) fn bind(
        &self,
        document: &Node,
        file: &SweepFile,
        figures: &str,
        sources: &Sources,
    ) -> Result<Bound, Mistakes> {
        let sink = Sink::default();
        let sweep = Sweep::bind(document, file, self.catalog, self::figures(figures), &sink);
        sweep.map(Bound::new).ok_or_else(|| Mistakes::of(sink, sources))
    }
}

/// The usual figures, and those that are named in a list with commas.
fn figures(named: &str) -> Vec<Figure> {
    let asked: Vec<&'static str> = all_figures().filter(|key| named.split(',').any(|named| named == *key)).collect();
    sweep_figures(&asked)
}
