//! Rows predicted by constants that were fitted without their source: what the form is worth on a cluster that nobody
//! measured for it.
//!
//! All constants are fitted to the rows of the other sources, from what was known of them before any log. Where no other
//! source has the same links or the same class of network, nothing says what these reach without it: the rows are skipped.

use super::CollectiveRun;
use crate::calibration::{MeasuredCall, collective_sets_without_sources};
use crate::catalog::{Catalog, CollectiveEfficiency};
use crate::units::Seconds;
use crate::validation::aliases::Aliases;
use crate::validation::outcome::{CaseResult, Outcome};
use crate::validation::table::{Row, Unusable};

/// Every row by constants fitted without its source, from the priors of a set; `excluded` says why a rule about the data
/// leaves a row out.
pub(in crate::validation) fn cases_leaving_out(
    rows: &[Row],
    catalog: &Catalog,
    aliases: &Aliases,
    prior: &CollectiveEfficiency,
    excluded: impl Fn(&Row) -> Option<String>,
) -> Vec<CaseResult> {
    let mut runs: Vec<Option<CollectiveRun>> = Vec::new();
    let mut results: Vec<CaseResult> = Vec::new();
    for row in rows {
        let (id, group, band) = super::name(row);
        let (filled, outcome) = match excluded(row) {
            Some(reason) => (Vec::new(), Outcome::Excluded(reason)),
            None => super::case(row, catalog, aliases),
        };
        let predicted = matches!(outcome, Outcome::Predicted(_));
        // What is held out of every fit keeps the prediction of the set that has not seen it.
        runs.push(if predicted && !super::held_out(row) { CollectiveRun::of(row, catalog, aliases) } else { None });
        results.push(CaseResult { id, group, band, filled, outcome });
    }
    let known: Vec<&CollectiveRun> = runs.iter().flatten().collect();
    let sets = collective_sets_without_sources(&known, prior);
    for (run, result) in runs.iter().zip(&mut results) {
        let Some(run) = run else { continue };
        let predicted = match sets.get(run.source()) {
            Some(Ok(set)) => run.call().prediction(set, run.measured() / Seconds::new(1e-6)),
            Some(Err(without)) => Err(Unusable(without.to_string())),
            None => Err(super::unusable("the row has no source")),
        };
        result.outcome = predicted.map_or_else(|Unusable(reason)| Outcome::Skipped(reason), Outcome::Predicted);
    }
    results
}

#[cfg(test)]
mod tests {
    use super::super::RowCall;
    use super::*;
    use crate::catalog::Section;
    use crate::diagnostics::{Sink, Sources};
    use crate::load;
    use crate::study::{RangeInputs, time_ranges};
    use crate::validation::{Domain, Validation};

    fn built_in() -> (Catalog, Aliases) {
        let (mut sources, sink) = (Sources::default(), Sink::default());
        let catalog = load::catalog(&[], &mut sources, &sink);
        let aliases = load::aliases(&mut sources, &sink);
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
        let priors = &catalog.collective_efficiency.get("before-logs").unwrap().part;
        let (within, without) = (
            Validation::new(Domain::Collectives, &text, &catalog, &aliases).unwrap(),
            Validation::collectives_leaving_out(&text, &catalog, &aliases, priors).unwrap(),
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
