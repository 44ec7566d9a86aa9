//! The model against published measurements.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use clusterplan::catalog::Catalog;
use clusterplan::diagnostics::{Sink, Sources, render};
use clusterplan::load;
use clusterplan::validation::{ALIASES, Aliases, CaseResult, Domain, Outcome, TOLERANCES, Tolerances, Validation};

fn known() -> (Catalog, Aliases, Tolerances) {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog = load::catalog(&[], &mut sources, &sink);
    let mut parse = |name: &str, text: &str| {
        let file = sources.add(name, text);
        load::parse(&sources, file, &sink)
    };
    let (aliases, tolerances) = (parse("aliases.toml", ALIASES), parse("tolerances.toml", TOLERANCES));
    let read = (Aliases::read(&aliases, &sink), Tolerances::read(&tolerances, &sink));
    assert!(sink.is_empty(), "{}", render(&sink.into_diagnostics(), &sources, false));
    (catalog, read.0, read.1)
}

/// The model against a table of cases, the project's own where none is given.
fn validation(domain: Domain, cases: Option<&str>) -> Validation {
    let (catalog, aliases, _) = known();
    Validation::new(domain, cases.unwrap_or(domain.own_cases()), &catalog, &aliases).unwrap()
}

fn line(row: &CaseResult) -> String {
    match &row.outcome {
        Outcome::Predicted(of) => {
            format!(
                "{}: {} measured {}, predicted {:.3}, {:+.1}%",
                row.id,
                of.metric,
                of.measured,
                of.predicted,
                of.error() * 100.0
            )
        }
        Outcome::Skipped(reason) => format!("{}: skipped, {reason}", row.id),
        Outcome::Excluded(reason) => format!("{}: excluded, {reason}", row.id),
    }
}

#[test]
fn own_tables_are_within_their_tolerances() {
    let (_, _, tolerances) = known();
    for domain in Domain::ALL {
        let validation = validation(*domain, None);
        let breaches = tolerances.breaches(&validation);
        let rows: Vec<String> = validation.rows.iter().map(line).collect();
        assert!(breaches.is_empty(), "{}\n\noutside:\n{}", rows.join("\n"), breaches.join("\n"));
    }
}

#[test]
fn all_own_rows_are_predicted_but_inputs() {
    assert_eq!(validation(Domain::Training, None).summary().coverage, Some(1.0));
    assert_eq!(validation(Domain::Collectives, None).summary().coverage, Some(1.0));
    let topology = validation(Domain::Topology, None);
    assert!(topology.rows.iter().all(|row| row.error().is_none_or(|error| error == 0.0)));
    let reason = Outcome::Skipped("it is an input of the design".to_owned());
    let open: Vec<&str> = topology.rows.iter().filter(|row| row.outcome == reason).map(|row| row.id.as_str()).collect();
    let inputs = [
        "DGX SuperPOD B300 XDR 18SU, nodes",
        "Meta Llama3 24K RoCE, gpus",
        "Meta Llama3 24K RoCE, gpus_per_pod",
        "Meta Llama3 24K RoCE, agg_oversubscription",
    ];
    assert_eq!(open, inputs);
    assert_eq!(topology.summary().predicted + inputs.len(), topology.rows.len());
}
