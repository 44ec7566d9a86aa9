//! A fitted set, and its file: the text of the priors with fitted numbers in their places, and the sources of each.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::fit::Errors;
use crate::diagnostics::Sink;
use crate::document::{Node, Reader, Value};
use crate::provenance::{Basis, Source};
use crate::units::significant;

/// A constant that the runs narrow to no less than this of its prior keeps the prior's source.
const NARROWED: f64 = 0.8;
/// A source that says at least this share of what all runs say of a constant stands behind it.
const SHARE: f64 = 0.1;

/// A constant of a set that was free.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedSetConstant {
    /// Its dotted name in the file.
    pub name: String,
    /// Typical value, low and high end, in base units.
    pub range: [f64; 3],
    /// Its standard error over the prior's: one where the runs say nothing of it.
    pub narrowed: f64,
    /// Sources of the runs that say most of it, and each one's share of what all runs say.
    pub sources: Vec<(String, f64)>,
}

/// What a set is fitted to, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetTitle {
    /// The command that fits it, after the program's name.
    pub command: &'static str,
    /// The set's name once it is fitted.
    pub name: &'static str,
    /// What it was fitted to, in the titles of sources.
    pub measurements: &'static str,
}

impl SetTitle {
    /// Of training steps.
    pub const TRAINING: Self = Self {
        command: "calibrate training",
        name: "Training software, fitted to runs",
        measurements: "training runs",
    };
    /// Of serving engines.
    pub const SERVING: Self = Self {
        command: "calibrate serving --toml",
        name: "Serving engines of 2025 and 2026, fitted to runs",
        measurements: "serving runs",
    };
    /// Of collectives.
    pub const COLLECTIVES: Self = Self {
        command: "calibrate collectives --toml",
        name: "NCCL (and RCCL), one GPU a process",
        measurements: "logs of nccl-tests",
    };
}

/// A set fitted to runs.
#[derive(Clone, Debug, PartialEq)]
pub struct SetFit<S> {
    /// The set with fitted values.
    pub set: S,
    /// What became of each free constant.
    pub constants: Vec<FittedSetConstant>,
    /// Runs that it was fitted to.
    pub runs: usize,
    /// Sources of those runs.
    pub sources: usize,
    /// How far it is from their figures.
    pub errors: Errors,
}

impl<S> SetFit<S> {
    /// A set and its constants, the sources of the runs that it was fitted to, one a run, and the logarithms of predicted
    /// over measured.
    pub(super) fn new<'a>(
        set: S,
        constants: Vec<FittedSetConstant>,
        runs: impl ExactSizeIterator<Item = &'a str>,
        logarithms: &[f64],
    ) -> Self {
        let (count, sources): (usize, BTreeSet<&str>) = (runs.len(), runs.collect());
        Self { set, constants, runs: count, sources: sources.len(), errors: Errors::of(logarithms) }
    }

    /// The file of the set: `text` is the priors' file, whose sources stand last, `document` what was read of it.
    /// Comments and order stay, but for what stands above the name; each constant that the runs narrow has the sources of
    /// those runs behind it, the others keep the source that they have.
    pub fn to_toml(&self, title: SetTitle, prior: &str, text: &str, document: &Node) -> String {
        let mut edits: Vec<(std::ops::Range<usize>, String)> = Vec::new();
        for constant in &self.constants {
            let Some(node) = document.at_path(&constant.name) else { continue };
            for (key, number) in ["value", "low", "high"].into_iter().zip(constant.range) {
                if let Some(place) = node.at_path(key) {
                    edits.push((place.at.range.clone(), written(place, number)));
                }
            }
        }
        edits.sort_by_key(|(range, _)| range.start);
        let mut file = format!(
            "# Written by `clusterplan {}`: {} runs of {} sources, beginning from `{prior}`.\n\
             # Their errors are {:.1}% in the median, and nine of ten are below {:.1}%. Ranges are one standard error.\n",
            title.command,
            self.runs,
            self.sources,
            100.0 * self.errors.median,
            100.0 * self.errors.p90
        );
        let mut from = 0;
        if let Some(name) = document.at_path("name") {
            // A text buffer takes everything.
            let _ = write!(file, "name = {:?}", title.name);
            from = name.at.range.end;
        }
        let body = text.find("\n[[source]]").map_or(text.len(), |at| at + 1);
        for (range, new) in edits.into_iter().filter(|(range, _)| range.end <= body) {
            file.push_str(&text[from..range.start]);
            file.push_str(&new);
            from = range.end;
        }
        file.push_str(&text[from..body]);
        self.write_sources(title, &mut file, document);
        file
    }

    fn write_sources(&self, of: SetTitle, file: &mut String, document: &Node) {
        let priors = priors(document);
        let mut fitted: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut kept: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for field in leaves(document) {
            let constant = self.constants.iter().find(|constant| constant.name == field);
            match constant.filter(|constant| constant.narrowed <= NARROWED) {
                Some(constant) => {
                    let behind = constant.sources.iter().filter(|(_, share)| *share >= SHARE);
                    let names: Vec<&str> = behind.map(|(name, _)| name.as_str()).collect();
                    fitted.entry(names.join("; ")).or_default().push(field);
                }
                None => {
                    if let Some(at) = priors.iter().position(|source| source.covers(&field)) {
                        kept.entry(at).or_default().push(field);
                    }
                }
            }
        }
        // The fit is as old as what it began from says; a text buffer takes everything.
        let day = priors.iter().map(|source| source.accessed.as_str()).max().unwrap_or_default();
        let mut entry = |fields: &[String], basis: Basis, title: &str, url: Option<&str>, note: Option<&str>| {
            let _ = write!(file, "[[source]]\nfields = {}\nbasis = \"{basis}\"\ntitle = {title:?}\n", quoted(fields));
            if let Some(url) = url {
                let _ = writeln!(file, "url = {url:?}");
            }
            let _ = writeln!(file, "accessed = {day}");
            if let Some(note) = note {
                let _ = writeln!(file, "note = {note:?}");
            }
            file.push('\n');
        };
        for (names, fields) in fitted {
            let title = format!("Robust least-squares fit of published {}, mostly of {names}", of.measurements);
            entry(&fields, Basis::Derived, &title, None, None);
        }
        for (at, fields) in kept {
            let prior = &priors[at];
            entry(&fields, prior.basis, &prior.title, prior.url.as_deref(), prior.note.as_deref());
        }
        let end = file.trim_end().len();
        file.truncate(end);
        file.push('\n');
    }
}

/// The sources of the priors, which have been read without mistakes.
fn priors(document: &Node) -> Vec<Source> {
    let sink = Sink::default();
    let Some(Value::Array(entries)) = document.at_path("source").map(|node| &node.value) else { return Vec::new() };
    entries.iter().filter_map(|entry| Reader::new(entry, "source", &sink)).map(|mut r| Source::read(&mut r)).collect()
}

/// Dotted names of all figures but the name and the sources; a value with its range is one.
fn leaves(document: &Node) -> Vec<String> {
    fn below(node: &Node, path: &str, found: &mut Vec<String>) {
        match node.as_table() {
            Some(table) if table.get("value").is_none() => {
                for entry in &table.entries {
                    below(&entry.node, &format!("{path}.{}", entry.key), found);
                }
            }
            _ => found.push(path.to_owned()),
        }
    }
    let mut found = Vec::new();
    for entry in document.as_table().iter().flat_map(|table| &table.entries) {
        if !matches!(entry.key.as_str(), "name" | "source") {
            below(&entry.node, &entry.key, &mut found);
        }
    }
    found
}

fn quoted(fields: &[String]) -> String {
    format!("[{}]", fields.iter().map(|field| format!("\"{field}\"")).collect::<Vec<_>>().join(", "))
}

/// A number to four digits, as the place has it: a plain number, a rate, a number of bytes, or a time in milli- or
/// microseconds.
fn written(place: &Node, number: f64) -> String {
    let of = |unit: &str, size: f64| format!("\"{} {unit}\"", significant(number / size, 4));
    match &place.value {
        Value::String(text) if text.ends_with("B/s") => of("GB/s", 1e9),
        Value::String(text) if text.ends_with('B') => of("MB", 1e6),
        Value::String(_) if number >= 1e-3 => of("ms", 1e-3),
        Value::String(_) => of("us", 1e-6),
        _ => {
            let digits = significant(number, 4);
            // Always with a point, so that it stays a number with a point.
            if digits.contains(['.', 'e']) { digits } else { format!("{digits}.0") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Sources;

    #[test]
    fn numbers_change_and_the_text_around_them_stays() {
        let text = "# Before any run.\nname = \"priors\"\n\n# A comment.\n[board]\na = 1.0\nb = { value = 0.9, low = 0.8, high = 1.0 }\n\
                    c = { value = \"2 ms\", low = \"1 ms\", high = \"4 ms\" }\n\n[[source]]\nfields = [\"board\"]\nbasis = \"assumed\"\n\
                    title = \"Judgement\"\naccessed = 2026-11-29\n";
        let (mut sources, sink) = (Sources::default(), Sink::default());
        let file = sources.add("priors.toml", text);
        let document = crate::load::parse(&sources, file, &sink);
        let constant = |name: &str, range, narrowed| FittedSetConstant {
            name: name.to_owned(),
            range,
            narrowed,
            sources: vec![("paper".to_owned(), 0.95), ("blog".to_owned(), 0.05)],
        };
        let constants =
            vec![constant("board.b", [0.95, 0.94, 0.96], 0.2), constant("board.c", [9.876e-4, 5e-4, 1e-3], 0.9)];
        let fit =
            SetFit { set: (), constants, runs: 3, sources: 2, errors: Errors { count: 3, median: 0.024, p90: 0.0951 } };
        let expected = "# Written by `clusterplan calibrate training`: 3 runs of 2 sources, beginning from `priors`.\n\
                        # Their errors are 2.4% in the median, and nine of ten are below 9.5%. Ranges are one standard error.\nname = \"Training software, fitted to runs\"\n\n# A comment.\n\
                        [board]\na = 1.0\nb = { value = 0.95, low = 0.94, high = 0.96 }\n\
                        c = { value = \"987.6 us\", low = \"500 us\", high = \"1 ms\" }\n\n\
                        [[source]]\nfields = [\"board.b\"]\nbasis = \"derived\"\n\
                        title = \"Robust least-squares fit of published training runs, mostly of paper\"\naccessed = 2026-11-29\n\n\
                        [[source]]\nfields = [\"board.a\", \"board.c\"]\nbasis = \"assumed\"\ntitle = \"Judgement\"\naccessed = 2026-11-29\n";
        assert_eq!(fit.to_toml(SetTitle::TRAINING, "priors", text, &document), expected);
    }
}
