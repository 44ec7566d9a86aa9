//! How far the model may be from the project's own tables: stated in a file, held by a test and by `validate`.

use super::{CaseResult, Domain, Validation};
use crate::diagnostics::Sink;
use crate::document::{Node, Reader};
use crate::units::Fraction;

/// Tolerances of one domain.
#[derive(Clone, Debug, Default, PartialEq)]
struct DomainTolerances {
    sources: Vec<SourceTolerance>,
    misses: Vec<KnownMiss>,
}

/// Tolerances of one source.
#[derive(Clone, Debug, Default, PartialEq)]
struct SourceTolerance {
    source: String,
    /// No row's error is larger, where it is stated.
    each: Option<Fraction>,
    /// Nor is the median of their absolute errors.
    median: Fraction,
    /// Nor the error that nine rows of ten stay below, where it is stated.
    p90: Option<Fraction>,
}

/// A row whose error is larger, and why.
#[derive(Clone, Debug, Default, PartialEq)]
struct KnownMiss {
    id: String,
    error: f64,
    slack: Fraction,
}

/// The stated tolerances.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tolerances {
    training: DomainTolerances,
    topology: DomainTolerances,
    collectives: DomainTolerances,
    kv: DomainTolerances,
    memory: DomainTolerances,
    reliability: DomainTolerances,
    economics: DomainTolerances,
    serving: DomainTolerances,
    throughput: DomainTolerances,
}

impl Tolerances {
    /// Reads the file of tolerances; mistakes go to the sink.
    pub fn read(document: &Node, sink: &Sink) -> Self {
        let Some(mut r) = Reader::new(document, "", sink) else { return Self::default() };
        let training = DomainTolerances {
            sources: r.tables("training", SourceTolerance::read),
            misses: r.tables("training_miss", KnownMiss::read),
        };
        let sources = r.tables("collectives", SourceTolerance::read);
        let collectives = DomainTolerances { sources, misses: Vec::new() };
        let kv = DomainTolerances { sources: r.tables("kv", SourceTolerance::read), misses: Vec::new() };
        let memory = DomainTolerances {
            sources: r.tables("memory", SourceTolerance::read),
            misses: r.tables("memory_miss", KnownMiss::read),
        };
        let reliability = DomainTolerances {
            sources: r.tables("reliability", SourceTolerance::read),
            misses: r.tables("reliability_miss", KnownMiss::read),
        };
        let economics = DomainTolerances { sources: r.tables("economics", SourceTolerance::read), misses: Vec::new() };
        let serving = DomainTolerances { sources: r.tables("serving", SourceTolerance::read), misses: Vec::new() };
        let throughput =
            DomainTolerances { sources: r.tables("throughput", SourceTolerance::read), misses: Vec::new() };
        Self {
            training,
            topology: DomainTolerances::default(),
            collectives,
            kv,
            memory,
            reliability,
            economics,
            serving,
            throughput,
        }
    }

    /// What is outside, a sentence each; a row without a stated tolerance is exact or outside.
    pub fn breaches(&self, validation: &Validation) -> Vec<String> {
        let stated = match validation.domain {
            Domain::Training => &self.training,
            Domain::Topology => &self.topology,
            Domain::Collectives => &self.collectives,
            Domain::Kv => &self.kv,
            Domain::Memory => &self.memory,
            Domain::Reliability => &self.reliability,
            Domain::Economics => &self.economics,
            Domain::Serving => &self.serving,
            Domain::Throughput => &self.throughput,
        };
        let mut breaches: Vec<String> = validation.rows.iter().filter_map(|row| stated.breach(row)).collect();
        let known = |id: &str| validation.rows.iter().any(|row| row.id == id);
        breaches.extend(
            stated
                .misses
                .iter()
                .filter(|miss| !known(&miss.id))
                .map(|miss| format!("{}: a known miss that is no row", miss.id)),
        );
        for (group, summary) in validation.groups() {
            let Some(stated) = stated.sources.iter().find(|stated| stated.source == group) else { continue };
            let figures = [
                ("median", summary.median_abs_error, Some(stated.median)),
                ("90th percentile of the", summary.p90_abs_error, stated.p90),
            ];
            for (what, found, limit) in figures {
                if let (Some(found), Some(limit)) = (found, limit)
                    && found > limit.get()
                {
                    breaches.push(format!("{group}: {what} error {}, stated {}", percent(found), percent(limit.get())));
                }
            }
        }
        breaches
    }
}

impl DomainTolerances {
    fn breach(&self, row: &CaseResult) -> Option<String> {
        let error = row.error()?;
        if let Some(miss) = self.misses.iter().find(|miss| miss.id == row.id) {
            let moved = (error - miss.error).abs() > miss.slack.get();
            return moved
                .then(|| format!("{}: error {}, a known miss of {}", row.id, percent(error), percent(miss.error)));
        }
        let stated = self.sources.iter().find(|stated| stated.source == row.group);
        let each = stated.map_or(Some(Fraction::ZERO), |stated| stated.each)?.get();
        (error.abs() > each).then(|| format!("{}: error {}, stated {}", row.id, percent(error), percent(each)))
    }
}

impl SourceTolerance {
    fn read(r: &mut Reader<'_>) -> Self {
        Self { source: r.get("source"), each: r.optional("each"), median: r.get("median"), p90: r.optional("p90") }
    }
}

impl KnownMiss {
    fn read(r: &mut Reader<'_>) -> Self {
        // The reason is for readers of the file; none may lack it.
        let _: String = r.get("why");
        Self { id: r.get("id"), error: r.get("error"), slack: r.get("slack") }
    }
}

fn percent(ratio: f64) -> String {
    format!("{:+.1}%", ratio * 100.0)
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, Prediction};
    use super::*;

    fn row(id: &str, predicted: f64) -> CaseResult {
        let metric = "iter_s".to_owned();
        let prediction = Prediction { metric, measured: 1.0, predicted, convention: None, gpus: None };
        CaseResult {
            id: id.into(),
            group: "paper".into(),
            band: None,
            filled: vec![],
            outcome: Outcome::Predicted(prediction),
        }
    }

    fn stated(error: f64) -> Tolerances {
        let fraction = |share| Fraction::new(share).unwrap();
        let sources = vec![SourceTolerance {
            source: "paper".into(),
            each: Some(fraction(0.1)),
            median: fraction(0.04),
            p90: None,
        }];
        let misses = vec![KnownMiss { id: "known".into(), error, slack: fraction(0.02) }];
        Tolerances {
            training: DomainTolerances { sources, misses },
            topology: DomainTolerances::default(),
            collectives: DomainTolerances::default(),
            kv: DomainTolerances::default(),
            memory: DomainTolerances::default(),
            reliability: DomainTolerances::default(),
            economics: DomainTolerances::default(),
            serving: DomainTolerances::default(),
            throughput: DomainTolerances::default(),
        }
    }

    #[test]
    fn what_is_outside_is_said() {
        let validation = |rows| Validation { domain: Domain::Training, rows };
        let rows = vec![row("a", 1.03), row("b", 0.88), row("known", 1.25)];
        assert_eq!(
            stated(0.26).breaches(&validation(rows.clone())),
            ["b: error -12.0%, stated +10.0%", "paper: median error +12.0%, stated +4.0%"]
        );
        let moved = stated(0.2).breaches(&validation(rows));
        assert!(moved.contains(&"known: error +25.0%, a known miss of +20.0%".to_owned()), "{moved:?}");
        assert_eq!(stated(0.26).breaches(&validation(vec![row("a", 1.03)])), ["known: a known miss that is no row"]);
    }

    #[test]
    fn counts_are_exact() {
        let validation = |predicted| Validation { domain: Domain::Topology, rows: vec![row("leaves", predicted)] };
        assert!(stated(0.0).breaches(&validation(1.0)).is_empty());
        assert_eq!(stated(0.0).breaches(&validation(1.125)), ["leaves: error +12.5%, stated +0.0%"]);
    }
}
