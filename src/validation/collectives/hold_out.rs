//! Rows predicted by constants that were fitted without their source: what the form is worth on a cluster that nobody
//! measured for it.
//!
//! Of each source that is left out, the constants of its links, its network and the library are fitted to all other rows.
//! Ranges of the catalog hold them only loosely there, because the source helped to set them. Where no other source has
//! the same links or the same class of network, nothing says what these reach without it: the rows are skipped.

use std::collections::{BTreeMap, BTreeSet};

use super::RowCall;
use crate::calibration::{Prior, fit_near};
use crate::catalog::{Catalog, CollectiveEfficiency, ConstantPath, Kind, Section};
use crate::units::{Ranged, Seconds};
use crate::validation::aliases::Aliases;
use crate::validation::outcome::{CaseResult, Fill, Outcome};
use crate::validation::table::{Row, Unusable};

/// How many times wider than the catalog's ranges the priors are.
const LOOSER: f64 = 3.0;

/// A row that can be predicted.
struct Case {
    source: String,
    call: RowCall,
    measured: Seconds,
}

impl Case {
    /// The constants that say what its links and its network reach.
    fn sections(&self) -> BTreeSet<Section> {
        let kind = &self.call.links.kind;
        let mut sections = BTreeSet::from([Section::ScaleUp(kind.clone())]);
        if let Some((class, _)) = &self.call.network {
            sections.insert(Section::Network(class.clone()));
            // One GPU a node sends nothing over its links.
            if self.call.group.ranks_per_domain == 1 {
                sections.remove(&Section::ScaleUp(kind.clone()));
            }
        }
        sections
    }
}

/// The source of a row.
fn source(row: &Row) -> String {
    row.text("source").unwrap_or_default().to_owned()
}

/// Every row by constants fitted without its source; `excluded` says why a rule about the data leaves a row out.
pub(in crate::validation) fn cases_leaving_out(
    rows: &[Row],
    catalog: &Catalog,
    aliases: &Aliases,
    excluded: impl Fn(&Row) -> Option<String>,
) -> Vec<CaseResult> {
    let mut cases: Vec<Option<Case>> = Vec::new();
    let mut results: Vec<CaseResult> = Vec::new();
    for row in rows {
        let (id, group, band) = super::name(row);
        let (filled, outcome) = match excluded(row) {
            Some(reason) => (Vec::new(), Outcome::Excluded(reason)),
            None => super::case(row, catalog, aliases),
        };
        cases.push(if let Outcome::Predicted(prediction) = &outcome {
            let measured = Seconds::new(prediction.measured * 1e-6);
            let call = RowCall::of(row, catalog, aliases, &mut Vec::<Fill>::new()).ok();
            call.map(|call| Case { source: source(row), call, measured })
        } else {
            None
        });
        results.push(CaseResult { id, group, band, filled, outcome });
    }
    let Some(set) = catalog.collective_efficiency.get("nccl") else { return results };
    let known: Vec<&Case> = cases.iter().flatten().collect();
    let sources: BTreeSet<&str> = known.iter().map(|case| case.source.as_str()).collect();
    let without: BTreeMap<&str, Result<CollectiveEfficiency, Unusable>> =
        sources.into_iter().map(|source| (source, set_without(source, &known, set))).collect();
    for (case, result) in cases.iter().zip(&mut results) {
        let Some(case) = case else { continue };
        let predicted = match without.get(case.source.as_str()) {
            Some(Ok(set)) => case.call.prediction(set, case.measured / Seconds::new(1e-6)),
            Some(Err(Unusable(reason))) => Err(Unusable(reason.clone())),
            None => Err(super::unusable("the row has no source")),
        };
        result.outcome = predicted.map_or_else(|Unusable(reason)| Outcome::Skipped(reason), Outcome::Predicted);
    }
    results
}

/// The set with the constants that a source depends on fitted to all other rows.
fn set_without(source: &str, cases: &[&Case], set: &CollectiveEfficiency) -> Result<CollectiveEfficiency, Unusable> {
    let (own, rest): (Vec<&Case>, Vec<&Case>) = cases.iter().partition(|case| case.source == source);
    let needed: BTreeSet<Section> = own.iter().flat_map(|case| case.sections()).collect();
    let elsewhere: BTreeSet<Section> = rest.iter().flat_map(|case| case.sections()).collect();
    if let Some(alone) = needed.iter().find(|section| !elsewhere.contains(section)) {
        return Err(Unusable(format!("no other source measures {alone}")));
    }
    let mut sections: Vec<Section> = needed.into_iter().collect();
    sections.push(Section::Library);
    sections.extend(own.first().map(|case| Section::Nvls(case.call.links.kind.clone())));
    let open: Vec<(ConstantPath, Prior)> = sections
        .iter()
        .flat_map(|section| set.constants(section))
        .map(|constant| {
            let Ranged { value, low, high } = constant.range;
            (constant.path, Prior { value, low, high, share: constant.kind == Kind::Fraction })
        })
        .filter(|(_, prior)| prior.is_open())
        .collect();
    let moved = |deviations: &[f64]| {
        let mut set = set.clone();
        for ((path, prior), deviations) in open.iter().zip(deviations) {
            set.change(path, prior.at(deviations * LOOSER))?;
        }
        Some(set)
    };
    let fitted = fit_near(open.len(), |deviations| {
        let set = moved(deviations)?;
        rest.iter().map(|case| Some((case.call.time(&set)? / case.measured).ln())).collect()
    });
    let fitted = fitted.map_err(|error| Unusable(error.to_string()))?;
    moved(&fitted.moved).ok_or_else(|| super::unusable("the fit leaves what constants can be"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::{Sink, Sources};
    use crate::load;
    use crate::study::{RangeInputs, time_ranges};
    use crate::validation::{ALIASES, Domain, Validation};

    fn built_in() -> (Catalog, Aliases) {
        let (mut sources, sink) = (Sources::default(), Sink::default());
        let catalog = load::catalog(&[], &mut sources, &sink);
        let file = sources.add("aliases.toml", ALIASES);
        let aliases = Aliases::read(&load::parse(&sources, file, &sink), &sink);
        assert!(sink.is_empty());
        (catalog, aliases)
    }

    /// The rows of the own table that a few sources hold.
    fn rows_of(sources: &[&str]) -> String {
        let own = Domain::Collectives.own_cases();
        let rows =
            own.lines().enumerate().filter(|(index, line)| *index == 0 || sources.iter().any(|of| line.contains(of)));
        rows.map(|(_, line)| line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_source_is_predicted_without_itself_or_not_at_all() {
        let (catalog, aliases) = built_in();
        // Two sources of eight H200 and sixteen on NVLink 4, and the only one of the first EFA.
        let text = rows_of(&["h200-8", "nebius", "oci-h100", "mlperf4", "p4de-16-all_reduce-1073741824"]);
        let (within, without) = (
            Validation::new(Domain::Collectives, &text, &catalog, &aliases).unwrap(),
            Validation::collectives_leaving_out(&text, &catalog, &aliases).unwrap(),
        );
        let of = |validation: &Validation, group: &str| {
            validation.groups().into_iter().find(|(name, _)| *name == group).unwrap().1
        };
        let efa = of(&without, "p4de-16");
        assert_eq!((efa.skipped, efa.predicted), (1, 0));
        assert!(without.rows.iter().any(|row| {
            matches!(&row.outcome, Outcome::Skipped(reason) if reason.contains("no other source measures"))
        }));
        // One node's NVLS is said by the other source of one node, with other constants than the catalog's.
        let (seen, unseen) = (of(&within, "mlperf5-h200-8"), of(&without, "mlperf5-h200-8"));
        assert_eq!(unseen.predicted, seen.predicted);
        assert!(unseen.median_abs_error < Some(0.1) && unseen.median_abs_error != seen.median_abs_error);
    }

    #[test]
    fn most_measurements_lie_within_the_range_of_their_time() {
        let (catalog, aliases) = built_in();
        let set = &catalog.collective_efficiency.get("nccl").unwrap().part;
        let rows = crate::validation::table::rows(Domain::Collectives.own_cases(), super::super::COLUMNS).unwrap();
        let (mut inside, mut all) = (0, 0);
        // Every fourth row, of all runs.
        for row in rows.iter().step_by(4) {
            let Ok(call) = RowCall::of(row, &catalog, &aliases, &mut Vec::new()) else { continue };
            let measured = Seconds::new(row.number("time_us").unwrap().unwrap() * 1e-6);
            let mut sections = vec![
                Section::Library,
                Section::ScaleUp(call.links.kind.clone()),
                Section::Nvls(call.links.kind.clone()),
            ];
            sections.extend(call.network.as_ref().map(|(class, _)| Section::Network(class.clone())));
            let inputs = RangeInputs { constants: set, sections: &sections, payload: call.payload, others: &[] };
            let range = time_ranges(&inputs, &[None], |set| vec![call.time(set)])[0].unwrap();
            all += 1;
            inside += u32::from(range.low <= measured && measured <= range.high);
        }
        // A deviation each way is two in three of independent runs; those that constants were fitted to lie closer.
        let share = f64::from(inside) / f64::from(all);
        assert!(all > 70 && (0.68..0.99).contains(&share), "{inside} of {all}");
    }
}
