//! `clusterplan uncertainty`

use std::path::PathBuf;

use clap::Args;

use super::eval::no;
use super::options::Format;
use super::{Answer, Session};
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{Node, Value};
use crate::load;
use crate::report::{uncertain_figures, uncertainty_grid, uncertainty_json, uncertainty_page};
use crate::scenario::{MOST_SAMPLES, ScenarioFile, UncertaintyFile};
use crate::sweep::uncertain::{Candidate, uncertainty};

/// `clusterplan uncertainty`
#[derive(Args, Debug)]
pub(super) struct UncertaintyCommand {
    /// A scenario file; its [uncertainty] table says what spreads beside the catalog's ranges
    scenario: PathBuf,
    /// A key and its values, such as cluster.fabric=quantum-2-ndr,roce-400g: variants, each held against the first
    /// [default: those of the scenario's [compare] table]
    #[arg(long, value_name = "KEY=VALUE,...")]
    vary: Option<String>,
    /// Samples, in place of the scenario's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(16..=i64::from(MOST_SAMPLES)))]
    samples: Option<u32>,
    /// What samples are drawn by, in place of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u32>,
}

impl UncertaintyCommand {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        let mut catalog = session.catalog();
        let Some(document) = session.scenario(&self.scenario, &mut catalog) else { return (Answer::Mistaken, session) };
        let file = ScenarioFile::read(&document, &session.sink);
        let usual = file.uncertainty.clone().unwrap_or_default();
        let wanted = UncertaintyFile {
            samples: self.samples.unwrap_or(usual.samples),
            seed: self.seed.unwrap_or(usual.seed),
            ..usual
        };
        let candidates = self.candidates(&document, &file, &mut session);
        if !session.sink.is_empty() {
            return (Answer::Mistaken, session);
        }
        let aims = uncertain_figures();
        let answer = match &uncertainty(&candidates, &wanted, &aims, &catalog, &session.sink) {
            None => Answer::Mistaken,
            Some(Err((name, infeasible))) => {
                let title = if name.is_empty() { file.title } else { format!("{}: {name}", file.title) };
                no(&title, infeasible, None, &session)
            }
            Some(Ok(found)) => {
                let data = match session.format {
                    Format::Json => uncertainty_json(found, &aims).into_bytes(),
                    Format::Csv => session.grid("", uncertainty_grid(found, &aims)),
                    Format::Table | Format::Md => session.page(&uncertainty_page(found, &aims)),
                };
                match found.variants.iter().find(|variant| variant.feasible == 0) {
                    None => Answer::Yes(data),
                    Some(variant) => {
                        let of = if variant.name.is_empty() { String::new() } else { format!(" of {}", variant.name) };
                        let message = format!("none of the {} samples{of} can be\n", found.samples);
                        Answer::No { data: Some(data), message }
                    }
                }
            }
        };
        (answer, session)
    }

    /// The scenario, or its variants.
    fn candidates(&self, document: &Node, file: &ScenarioFile, session: &mut Session) -> Vec<Candidate> {
        let mut base = document.clone();
        if let Value::Table(table) = &mut base.value {
            table.entries.retain(|entry| !["sweep", "compare", "uncertainty"].contains(&entry.key.as_str()));
        }
        let Session { sources, sink, .. } = session;
        let (key, values) = match (&self.vary, &file.compare) {
            (Some(argument), _) => match load::axis("--vary", argument, sources, sink) {
                Some(axis) => (axis.key, axis.values),
                None => return Vec::new(),
            },
            (None, Some(compare)) => {
                let [(key, values)] = &compare.vary[..] else {
                    several(sink);
                    return Vec::new();
                };
                (key.clone(), values.clone())
            }
            (None, None) => return vec![Candidate { name: String::new(), document: base }],
        };
        let inputs = file.uncertainty.iter().flat_map(|uncertain| &uncertain.inputs);
        for input in inputs.filter(|input| input.key == key) {
            let message = format!("`{key}` is varied twice: by the variants, and as an uncertain input");
            let diagnostic = Diagnostic::new(Code::Duplicate, message).at(&input.at, "here");
            sink.push(diagnostic.hint("a draw would take the place of the variant's value: leave one out"));
        }
        let mut candidates = Vec::new();
        for value in values {
            let mut document = base.clone();
            let Value::Table(table) = &mut document.value else { continue };
            if let Err(error) = table.set(&key, value.clone()) {
                let message = format!("`{key}` cannot be varied: {error}");
                sink.push(Diagnostic::new(Code::UnknownKey, message).at(&value.at, "its value").hint(error.hint()));
            }
            candidates.push(Candidate { name: value.to_string(), document });
        }
        candidates
    }
}

fn several(sink: &Sink) {
    let message = "the scenario's [compare] varies several keys, or none";
    sink.push(Diagnostic::new(Code::Inconsistent, message).hint("name one with --vary"));
}
