//! Scaling curves.

use serde_json::{Value as Json, json};

use super::figure::{Unit, Value, counted};
use super::page::{Block, Grid, Page, Section};
use crate::study::{Growth, Scaling, ScalingPoint};
use crate::units::{SECONDS_PER_DAY, Seconds, significant};

/// A column: key, head for people, unit, value.
type Column = (&'static str, &'static str, Unit);

const COLUMNS: &[Column] = &[
    ("accelerators_count", "GPUs", Unit::Count),
    ("global_batch_count", "Batch", Unit::Count),
    ("iteration_s", "Step", Unit::Seconds),
    ("mfu_ratio", "MFU, causal attention", Unit::Ratio),
    ("goodput_ratio", "Goodput", Unit::Ratio),
    ("useful_tokens_per_s", "Useful tokens", Unit::TokensPerSecond),
    ("speedup_ratio", "Speedup", Unit::Quotient),
    ("efficiency_ratio", "Efficiency", Unit::Ratio),
    ("serial_ratio", "Serial part", Unit::Ratio),
    ("marginal_ratio", "Of the last", Unit::Ratio),
    ("effective_days", "Run", Unit::Days),
    ("run_usd", "Cost", Unit::Usd),
];

/// The figures of every size, in the order of the columns; `Err` says why there are none.
fn rows(scaling: &Scaling) -> Vec<Result<Vec<Option<Value>>, String>> {
    let row = |(point, gain): (&ScalingPoint, &Option<crate::study::Gain>)| {
        let evaluation = point.outcome.as_ref().map_err(ToString::to_string)?;
        let (Some(answer), Some(gain)) = (evaluation.point, gain) else { return Err("nothing is trained".to_owned()) };
        let number = |number: f64| Some(Value::Number(number));
        Ok(vec![
            Some(Value::Count(point.accelerators.into())),
            Some(Value::Count(point.global_batch.into())),
            number(answer.step.iteration().value()),
            number(answer.step.mfu()),
            number(answer.goodput.ratio),
            number(gain.useful_rate.value()),
            number(gain.speedup),
            number(gain.efficiency),
            gain.serial.map(Value::Number),
            gain.marginal.map(Value::Number),
            number(answer.effective / Seconds::new(SECONDS_PER_DAY)),
            number(answer.run.value()),
        ])
    };
    scaling.points.iter().zip(&scaling.gains()).map(row).collect()
}

/// A curve as a page.
pub fn scaling_page(scaling: &Scaling) -> Page {
    let heads: Vec<&str> = COLUMNS.iter().map(|column| column.1).collect();
    let mut grid = Grid::new(&heads, 0);
    let mut cannot = Vec::new();
    for (point, row) in scaling.points.iter().zip(rows(scaling)) {
        match row {
            Ok(values) => {
                let texts = values.iter().zip(COLUMNS).map(|(value, column)| value.map(|value| column.2.text(value)));
                grid.rows.push(texts.map(Option::unwrap_or_default).collect());
            }
            Err(reason) => cannot.push(format!("{}: {reason}.", counted(point.accelerators.into(), "GPU"))),
        }
    }
    let what = match scaling.growth {
        Growth::Strong => "Strong scaling: the batch stays, and each GPU has less to do.",
        Growth::Weak => "Weak scaling: the batch grows with the GPUs, and each has as much to do.",
    };
    let mut blocks = vec![Block::Text(what.to_owned()), Block::Grid(grid)];
    blocks.extend(verdict(scaling).map(Block::Text));
    let mut sections = vec![Section { heading: "Scaling".to_owned(), blocks }];
    let parts = scaling.serial_parts();
    if !parts.is_empty() {
        let mut grid = Grid::new(&["What does not shrink", "Beyond its share, a step", "Of the step"], 1);
        for part in &parts {
            let share = Unit::Ratio.text(Value::Number(part.share));
            grid.rows.push(vec![part.name.to_owned(), part.excess.to_string(), share]);
        }
        let sentence = "Of a step on the most GPUs, what is more than on the fewest in proportion, failures counted:";
        sections.push(Section {
            heading: "The serial part".to_owned(),
            blocks: vec![Block::Text(sentence.to_owned()), Block::Grid(grid)],
        });
    }
    if !cannot.is_empty() {
        sections.push(Section::new("Sizes that cannot be", Block::List(cannot)));
    }
    Page { title: scaling.title.clone(), sections }
}

/// Where more do not pay, in words.
fn verdict(scaling: &Scaling) -> Option<String> {
    let (fastest, pays, last) = (scaling.fastest()?, scaling.pays_to()?, scaling.largest()?);
    let share = significant(scaling.least_marginal * 100.0, 3);
    let count = |accelerators: u32| counted(accelerators.into(), "GPU");
    let more = if pays < last {
        format!("Past {} more do not pay: those added bring less than {share}% of what they cost.", count(pays))
    } else {
        format!("Up to {}, each size brings {share}% and more of what it adds.", count(pays))
    };
    let shortest = if fastest < last {
        format!("The run is shortest on {}: more lose more than they bring.", count(fastest))
    } else if scaling.points.last().is_some_and(|point| point.accelerators > last) {
        format!("The run is shortest on {}, the most that can be.", count(fastest))
    } else {
        format!("The run is shortest on {}, the most that were asked for.", count(fastest))
    };
    let named = scaling
        .serial_parts()
        .first()
        .map_or_else(String::new, |part| format!(" Most of what does not shrink: {}.", part.name));
    Some(format!("{more} {shortest}{named}"))
}

/// A curve as a table: numbers bare in the unit that their header names.
pub fn scaling_grid(scaling: &Scaling) -> Grid {
    let heads: Vec<&str> = COLUMNS.iter().map(|column| column.0).chain(["reason"]).collect();
    let mut grid = Grid::new(&heads, 0);
    for (point, row) in scaling.points.iter().zip(rows(scaling)) {
        let bare =
            |value: Option<Value>| value.and_then(Value::number).map_or_else(String::new, |number| number.to_string());
        let cells: Vec<String> = match row {
            Ok(values) => values.into_iter().map(bare).chain([String::new()]).collect(),
            Err(reason) => {
                let mut cells = vec![String::new(); COLUMNS.len()];
                cells[0] = point.accelerators.to_string();
                cells[1] = point.global_batch.to_string();
                cells.push(reason);
                cells
            }
        };
        grid.rows.push(cells);
    }
    grid
}

/// A curve for programs.
pub fn scaling_json(scaling: &Scaling) -> String {
    let object = |(point, row): (&ScalingPoint, Result<Vec<Option<Value>>, String>)| match row {
        Ok(values) => {
            let fields = COLUMNS.iter().zip(values);
            fields
                .map(|(column, value)| {
                    let bare = match value {
                        Some(Value::Count(count)) => count.into(),
                        Some(value) => value.number().into(),
                        None => Json::Null,
                    };
                    (column.0.to_owned(), bare)
                })
                .collect::<serde_json::Map<String, Json>>()
                .into()
        }
        Err(reason) => json!({
            "accelerators_count": point.accelerators,
            "global_batch_count": point.global_batch,
            "reason": reason,
        }),
    };
    let points: Vec<Json> = scaling.points.iter().zip(rows(scaling)).map(object).collect();
    let parts: Vec<Json> = scaling
        .serial_parts()
        .iter()
        .map(|part| json!({ "name": part.name, "excess_s": part.excess.value(), "share_ratio": part.share }))
        .collect();
    let growth = match scaling.growth {
        Growth::Strong => "strong",
        Growth::Weak => "weak",
    };
    let whole = json!({
        "title": scaling.title,
        "scaling": growth,
        "points": points,
        "serial": parts,
        "fastest_accelerators_count": scaling.fastest(),
        "pays_to_accelerators_count": scaling.pays_to(),
        "least_marginal_ratio": scaling.least_marginal,
    });
    format!("{whole:#}\n")
}
