//! The answer as pages, CSV and JSON: a line a row, then the figures by group.

use serde_json::{Map, Value as Json, json};

use super::{CaseResult, Domain, Fill, LeaveOut, Outcome, Summary, Validation};
use crate::report::{Block, Grid, Page, Section, grid_csv};
use crate::units::significant;

/// For people.
pub fn validation_page(validations: &[Validation]) -> Page {
    let sections = validations.iter().flat_map(|validation| {
        let (rows, groups) = match validation.domain {
            Domain::Training => ("Training runs", "Training runs by source"),
            Domain::Topology => ("Networks", "Networks by design"),
            Domain::Reliability => ("Failures", "Failures by case"),
            Domain::Memory => ("Memory of training", "Memory of training by source"),
            Domain::Economics => ("Economics", "Economics by source"),
            Domain::Serving => ("Latencies of serving", "Latencies of serving by kind"),
            Domain::Throughput => ("Offline throughput of serving", "Offline throughput of serving by kind"),
            Domain::Kv => ("Caches and weights", "Caches and weights by figure"),
            Domain::Collectives => ("Collective operations", "Collective operations by run and payload"),
        };
        let rules = rules(&validation.rows);
        let filling = (!rules.is_empty()).then(|| Section::new("How open fields were filled", Block::List(rules)));
        [
            Section::new(rows, Block::Grid(row_grid(&validation.rows))),
            Section::new(groups, Block::Grid(group_grid(validation))),
        ]
        .into_iter()
        .chain(filling)
    });
    Page { title: "How far is the model from what was measured?".to_owned(), sections: sections.collect() }
}

/// For people: figures by group where each was predicted by constants that were fitted without it. The rows are in the
/// answers for machines.
pub fn left_out_page(validations: &[Validation], group: LeaveOut) -> Page {
    let domains: Vec<String> = validations.iter().map(|validation| format!("--domain {}", validation.domain)).collect();
    let what = format!(
        "Each row is predicted with constants that were fitted without its {group}. `clusterplan validate {} --leave-out {group} \
         --format md` writes this anew, as each new fit of the constants asks for.",
        domains.join(" ")
    );
    let tables = validations.iter().map(|validation| {
        let title = match validation.domain {
            Domain::Throughput => "Offline throughput of serving",
            Domain::Serving => "Latencies of serving",
            Domain::Collectives => "Collective operations",
            _ => "Training runs",
        };
        Section::new(title, Block::Grid(group_grid(validation)))
    });
    let sections = [Section::new(String::new(), Block::Text(what))].into_iter().chain(tables).collect();
    Page { title: format!("How far is the model from a {group} that it has not seen?"), sections }
}

/// For people: collectives by the catalog's constants, and by constants fitted without each source.
pub fn held_out_page(within: &Validation, without: &Validation) -> Page {
    let only = without.rows.iter().filter(|row| matches!(row.outcome, Outcome::Skipped(_))).count();
    let what = format!(
        "The catalog's constants were fitted to these runs. Below, those of each source's links and network and of the library are fitted to the other sources alone; {only} rows are of a source that is the only one of its links or network, and stay out."
    );
    let sections = vec![
        Section::new(String::new(), Block::Text(what)),
        Section::new("With the catalog's constants", Block::Grid(group_grid(within))),
        Section::new("With constants fitted without the source", Block::Grid(group_grid(without))),
    ];
    Page { title: "How far are collectives from runs that nothing was fitted to?".to_owned(), sections }
}

fn row_grid(rows: &[CaseResult]) -> Grid {
    let mut grid = Grid::new(&["Row", "Metric", "Filled, or why not", "Measured", "Predicted", "Error"], 3);
    grid.rows = rows
        .iter()
        .map(|row| {
            let mut cells = vec![row.id.clone(), String::new(), note(row), String::new(), String::new(), String::new()];
            if let Some(of) = row.prediction() {
                cells[1] =
                    of.convention.as_ref().map_or_else(|| of.metric.clone(), |how| format!("{} ({how})", of.metric));
                cells[3] = significant(of.measured, 4);
                cells[4] = significant(of.predicted, 4);
                cells[5] = signed(of.error());
            }
            cells
        })
        .collect();
    grid
}

/// What was filled, or the reason.
fn note(row: &CaseResult) -> String {
    match &row.outcome {
        Outcome::Excluded(reason) => format!("excluded: {reason}"),
        Outcome::Skipped(reason) => format!("skipped: {reason}"),
        Outcome::Predicted(_) => {
            row.filled.iter().map(|fill| format!("{} = {}", fill.field, fill.value)).collect::<Vec<_>>().join("; ")
        }
    }
}

/// Every rule that filled a field, once.
fn rules(rows: &[CaseResult]) -> Vec<String> {
    let mut rules: Vec<String> = Vec::new();
    for Fill { field, rule, .. } in rows.iter().flat_map(|row| &row.filled) {
        let sentence = format!("{field}: {rule}");
        if !rules.contains(&sentence) {
            rules.push(sentence);
        }
    }
    rules
}

fn group_grid(validation: &Validation) -> Grid {
    let heads = [
        "Group",
        "Rows",
        "Excluded",
        "Skipped",
        "Predicted",
        "Mean error",
        "Median",
        "P90",
        "Bias",
        "Drift a doubling",
    ];
    let mut grid = Grid::new(&heads, 1);
    let cells = |name: &str, of: &Summary| {
        let counts = [of.rows, of.excluded, of.skipped, of.predicted].map(|count| count.to_string());
        let sizes = [of.mape, of.median_abs_error, of.p90_abs_error]
            .map(|error| shown(error, |error| format!("{:.1}%", error * 100.0)));
        let signs = [of.bias, of.drift_per_doubling].map(|error| shown(error, signed));
        [name.to_owned()].into_iter().chain(counts).chain(sizes).chain(signs).collect()
    };
    grid.rows = validation.groups().iter().map(|(name, summary)| cells(name, summary)).collect();
    grid.rows.push(cells("All", &validation.summary()));
    grid
}

fn shown(figure: Option<f64>, text: impl Fn(f64) -> String) -> String {
    figure.map_or_else(String::new, text)
}

fn signed(ratio: f64) -> String {
    // What rounds to nothing has no sign.
    let text = format!("{:+.1}%", ratio * 100.0);
    if matches!(text.as_str(), "+0.0%" | "-0.0%") { "0.0%".to_owned() } else { text }
}

/// For spreadsheets, a line a row.
pub fn validation_csv(validations: &[Validation], bom: bool) -> Vec<u8> {
    let heads = [
        "domain",
        "id",
        "group",
        "status",
        "metric",
        "convention",
        "measured",
        "predicted",
        "error_ratio",
        "filled",
        "reason",
    ];
    let mut grid = Grid::new(&heads, heads.len());
    for validation in validations {
        grid.rows.extend(validation.rows.iter().map(|row| {
            let of = row.prediction();
            let number = |figure: Option<f64>| shown(figure, |figure| figure.to_string());
            let filled = if of.is_some() { note(row) } else { String::new() };
            vec![
                validation.domain.to_string(),
                row.id.clone(),
                row.group.clone(),
                status(&row.outcome).to_owned(),
                of.map(|of| of.metric.clone()).unwrap_or_default(),
                of.and_then(|of| of.convention.clone()).unwrap_or_default(),
                number(of.map(|of| of.measured)),
                number(of.map(|of| of.predicted)),
                number(row.error()),
                filled,
                reason(&row.outcome).unwrap_or_default().to_owned(),
            ]
        }));
    }
    grid_csv(&grid, bom)
}

const fn status(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Excluded(_) => "excluded",
        Outcome::Skipped(_) => "skipped",
        Outcome::Predicted(_) => "predicted",
    }
}

fn reason(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Excluded(reason) | Outcome::Skipped(reason) => Some(reason),
        Outcome::Predicted(_) => None,
    }
}

/// For programs: summary, groups and rows; of several domains an object each.
pub fn validation_json(validations: &[Validation]) -> String {
    let json = match validations {
        [one] => object(one),
        several => {
            Json::Object(several.iter().map(|validation| (validation.domain.to_string(), object(validation))).collect())
        }
    };
    format!("{json:#}\n")
}

fn object(validation: &Validation) -> Json {
    let groups: Vec<Json> = validation
        .groups()
        .iter()
        .map(|(name, summary)| {
            let mut group = Map::from_iter([("group".to_owned(), Json::from(*name))]);
            group.extend(figures(summary));
            Json::Object(group)
        })
        .collect();
    let rows: Vec<Json> = validation.rows.iter().map(row_object).collect();
    json!({ "summary": figures(&validation.summary()), "groups": groups, "rows": rows })
}

fn figures(of: &Summary) -> Map<String, Json> {
    let counts = [("rows", of.rows), ("excluded", of.excluded), ("skipped", of.skipped), ("predicted", of.predicted)];
    let ratios = [
        ("coverage_ratio", of.coverage),
        ("mape_ratio", of.mape),
        ("median_abs_error_ratio", of.median_abs_error),
        ("p90_abs_error_ratio", of.p90_abs_error),
        ("bias_ratio", of.bias),
        ("drift_ratio_per_doubling", of.drift_per_doubling),
    ];
    let counts = counts.into_iter().map(|(key, count)| (key.to_owned(), Json::from(count)));
    counts.chain(ratios.into_iter().map(|(key, ratio)| (key.to_owned(), Json::from(ratio)))).collect()
}

fn row_object(row: &CaseResult) -> Json {
    let of = row.prediction();
    let filled: Vec<Json> =
        row.filled.iter().map(|fill| json!({ "field": fill.field, "value": fill.value, "rule": fill.rule })).collect();
    json!({
        "id": row.id,
        "group": row.group,
        "status": status(&row.outcome),
        "metric": of.map(|of| &of.metric),
        "convention": of.and_then(|of| of.convention.as_ref()),
        "measured": of.map(|of| of.measured),
        "predicted": of.map(|of| of.predicted),
        "error_ratio": row.error(),
        "filled": filled,
        "reason": reason(&row.outcome),
    })
}
