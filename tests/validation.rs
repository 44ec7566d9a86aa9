//! The model against published measurements.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking and shows its rows")]

use clusterplan::catalog::Catalog;
use clusterplan::diagnostics::{Sink, Sources, render};
use clusterplan::load;
use clusterplan::validation::{ALIASES, Aliases, Domain, Outcome, Validation};

fn known() -> (Catalog, Aliases) {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog = load::catalog(&[], &mut sources, &sink);
    let file = sources.add("aliases.toml", ALIASES);
    let aliases = Aliases::read(&load::parse(&sources, file, &sink), &sink);
    assert!(sink.is_empty(), "{}", render(&sink.into_diagnostics(), &sources, false));
    (catalog, aliases)
}

#[test]
fn own_training_runs() {
    let (catalog, aliases) = known();
    let text = std::env::var("CASES").ok().map(|path| std::fs::read_to_string(path).unwrap());
    let text = text.as_deref().unwrap_or(Domain::Training.own_cases());
    let validation = Validation::new(Domain::Training, text, &catalog, &aliases).unwrap();
    for row in &validation.rows {
        let filled: Vec<String> = row.filled.iter().map(|fill| format!("{}={}", fill.field, fill.value)).collect();
        match &row.outcome {
            Outcome::Predicted(p) => println!("{:50} {:14} {:10.3} {:10.3} {:+6.1}%  {}", row.id, p.metric, p.measured, p.predicted, p.error() * 100.0, filled.join(", ")),
            Outcome::Skipped(reason) => println!("{:50} skipped: {reason}", row.id),
            Outcome::Excluded(reason) => println!("{:50} excluded: {reason}", row.id),
        }
    }
    for (group, s) in validation.groups().into_iter().chain([("all", validation.summary())]) {
        let p = |x: Option<f64>| x.map_or("-".into(), |x| format!("{:.1}", x * 100.0));
        println!("{group:90} n {}/{}/{}/{} mape {} med {} p90 {} bias {} drift {}", s.rows, s.excluded, s.skipped, s.predicted, p(s.mape), p(s.median_abs_error), p(s.p90_abs_error), p(s.bias), p(s.drift_per_doubling));
    }
}
