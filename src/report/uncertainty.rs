//! Uncertainty: figures with their P10, P50 and P90, what they hang on, and how often one variant beats another.

use serde_json::{Value as Json, json};

use super::figure::{Value, counted, percent};
use super::json::pretty;
use super::metrics::metric;
use super::number::finite;
use super::page::{Block, Grid, Page, Section};
use super::sweep::figure;
use crate::evaluate::Bands;
use crate::sweep::uncertain::{Aim, Spreading, Uncertain, Uncertainty};
use crate::units::significant;

/// The figures by which variants are told apart, and whether more is better.
const HEADLINES: [(&str, bool); 21] = [
    ("training.iteration_s", false),
    ("training.mfu_ratio", true),
    ("training.tokens_per_s", true),
    ("training.effective_days", false),
    ("serving.max_concurrency_count", true),
    ("serving.ttft_s", false),
    ("serving.tpot_s", false),
    ("serving.output_tokens_per_s_per_gpu", true),
    ("serving.requests_per_s", true),
    ("goodput.ratio", true),
    ("goodput.interruptions_per_day", false),
    ("fabric.power_w", false),
    ("fabric.capex_usd", false),
    ("facility.total_kw", false),
    ("cost.capex_usd", false),
    ("cost.opex_per_year_usd", false),
    ("cost.usd_per_gpu_hour", false),
    ("cost.usd_per_mtok_blended", false),
    ("cost.usd_per_mtok_input", false),
    ("cost.usd_per_mtok_output", false),
    ("cost.usd_per_run", false),
];
/// What a figure hangs on is shown for the last of these that a scenario has.
const MAIN: [&str; 3] = ["cost.usd_per_gpu_hour", "cost.usd_per_mtok_blended", "cost.usd_per_run"];
/// So many inputs are shown; programs get all.
const WIDEST: usize = 12;

/// The figures that are sampled.
pub fn uncertain_figures() -> Vec<Aim> {
    let aim = |(key, most): &(&str, bool)| Some(Aim { figure: figure(metric(key)?), most: *most });
    HEADLINES.iter().filter_map(aim).collect()
}

fn text(aim: &Aim, value: f64) -> String {
    metric(aim.figure.key).map_or_else(|| significant(value, 4), |metric| metric.text(Value::Number(value)))
}

fn label(aim: &Aim) -> String {
    metric(aim.figure.key).map_or(aim.figure.key, |metric| metric.label.trim()).to_owned()
}

/// For people.
pub fn uncertainty_page(answer: &Uncertainty, aims: &[Aim]) -> Page {
    let Uncertainty { title, inputs, samples, variants } = answer;
    let counts = format!(
        "{} of {} that move a figure, the same draws for every variant. P10 is undercut in a tenth of them, P90 exceeded in a tenth. What is not sampled is as certain as its typical value.",
        counted((*samples).into(), "sample"),
        counted(inputs.len() as u64, "input")
    );
    let mut sections = vec![Section::new("In short", Block::Text(counts))];
    if let [first, others @ ..] = &variants[..]
        && !others.is_empty()
    {
        sections.push(Section::new(
            format!("How often each is better than {}", first.name),
            Block::Grid(odds(others, aims)),
        ));
    }
    for variant in variants {
        let heading = if variant.name.is_empty() { "How figures spread".to_owned() } else { variant.name.clone() };
        let mut blocks = vec![Block::Grid(spread(variant, aims))];
        blocks.extend(beside(variant, aims).map(Block::Text));
        blocks.extend(variant.bands.as_ref().map(off).map(Block::Text));
        if variant.feasible < *samples as usize {
            blocks.push(Block::Text(format!("{} of {samples} samples can be.", variant.feasible)));
        }
        sections.push(Section { heading, blocks });
    }
    for variant in variants {
        let main = aims
            .iter()
            .zip(&variant.figures)
            .rev()
            .find(|(aim, figure)| MAIN.contains(&aim.figure.key) && figure.typical.is_some());
        let Some((aim, figure)) = main.filter(|(_, figure)| !figure.hangs_on.is_empty()) else { continue };
        let of = if variant.name.is_empty() { String::new() } else { format!(", {}", variant.name) };
        let heading = format!("What it hangs on: {}{of}", label(aim));
        let told = "Shares of variance are those that an input explains by itself; without one is what so many samples do not tell from chance.".to_owned();
        sections.push(Section { heading, blocks: vec![Block::Grid(tornado(answer, aim, figure)), Block::Text(told)] });
    }
    Page { title: title.clone(), sections }
}

fn odds(others: &[Uncertain], aims: &[Aim]) -> Grid {
    let mut grid = Grid::new(&["Figure"], 1);
    grid.header.extend(others.iter().map(|variant| variant.name.clone()));
    for (index, aim) in aims.iter().enumerate() {
        let cells: Vec<Option<f64>> = others.iter().map(|variant| variant.figures[index].beats_first).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|cell| cell.map(percent).unwrap_or_default());
            grid.rows.push([label(aim)].into_iter().chain(cells).collect());
        }
    }
    grid
}

fn spread(variant: &Uncertain, aims: &[Aim]) -> Grid {
    let mut grid = Grid::new(&["Figure", "typical", "P10", "P50", "P90"], 1);
    for (aim, figure) in aims.iter().zip(&variant.figures) {
        if let (Some(typical), Some(quantiles)) = (figure.typical, figure.quantiles) {
            let cells = [typical].into_iter().chain(quantiles).map(|value| text(aim, value));
            grid.rows.push([label(aim)].into_iter().chain(cells).collect());
        }
    }
    grid
}

/// Figures whose typical value is outside P10 to P90.
fn outside<'a>(variant: &Uncertain, aims: &'a [Aim]) -> Vec<&'a Aim> {
    let outside = |figure: &Spreading| {
        let (typical, [low, _, high]) = (figure.typical?, figure.quantiles?);
        // A figure that none of the inputs moves is the same in all samples, but for rounding.
        let rounding = typical.abs() * 1e-9;
        Some(typical < low - rounding || typical > high + rounding)
    };
    aims.iter()
        .zip(&variant.figures)
        .filter(|(_, figure)| outside(figure).unwrap_or(false))
        .map(|(aim, _)| aim)
        .collect()
}

/// The same, and why that can be.
fn beside(variant: &Uncertain, aims: &[Aim]) -> Option<String> {
    let named: Vec<String> = outside(variant, aims).into_iter().map(label).collect();
    (!named.is_empty()).then(|| {
        format!(
            "Typical values outside P10 to P90: {}. Each input lies as often above its typical value as below, but ranges reach further to one side, and that all inputs are typical at once is rare.",
            named.join("; ")
        )
    })
}

/// How far estimates of serving are off, whatever the inputs are.
fn off(bands: &Bands) -> String {
    let [tpot, ttft, throughput] = [bands.tpot, bands.ttft, bands.throughput].map(|factor| significant(factor, 3));
    let whose = if bands.uncalibrated {
        "no measurement covers this, and nine of ten would be"
    } else {
        "nine of ten measurements are"
    };
    format!(
        "P10 to P90 are of inputs, and not of how far the model itself is off, which `eval` tells as low and high ends: {whose} within a factor of {tpot} of the time between tokens, {ttft} of that to the first, and {throughput} of throughput."
    )
}

fn tornado(answer: &Uncertainty, aim: &Aim, figure: &Spreading) -> Grid {
    let mut grid = Grid::new(&["Input", "at its P10", "P90", "figure at P10", "at P90", "share of variance"], 1);
    grid.rows = figure
        .hangs_on
        .iter()
        .take(WIDEST)
        .map(|hinge| {
            let input = &answer.inputs[hinge.input];
            let [low, high] = hinge.ends;
            let share = if hinge.share.is_nan() { String::new() } else { percent(hinge.share) };
            vec![input.key.clone(), input.text(0.1), input.text(0.9), text(aim, low), text(aim, high), share]
        })
        .collect();
    grid
}

/// The same for programs.
fn band(bands: &Bands) -> Json {
    json!({ "tpot_factor_ratio": bands.tpot, "ttft_factor_ratio": bands.ttft, "throughput_factor_ratio": bands.throughput,
        "uncalibrated": bands.uncalibrated })
}

/// For programs.
pub fn uncertainty_json(answer: &Uncertainty, aims: &[Aim]) -> String {
    let hinges = |figure: &Spreading| -> Json {
        let hinge = |hinge: &crate::sweep::uncertain::Hinge| {
            json!({ "input": answer.inputs[hinge.input].key, "at_p10": finite(hinge.ends[0]), "at_p90": finite(hinge.ends[1]),
                "first_order_ratio": finite(hinge.share) })
        };
        figure.hangs_on.iter().map(hinge).collect()
    };
    let figures = |variant: &Uncertain| -> Json {
        let all = aims.iter().zip(&variant.figures).filter(|(_, figure)| figure.typical.is_some());
        all.map(|(aim, figure)| {
            let [p10, p50, p90] =
                figure.quantiles.map_or([Json::Null, Json::Null, Json::Null], |values| values.map(finite));
            let number = |number: Option<f64>| number.map_or(Json::Null, finite);
            (
                aim.figure.key.to_owned(),
                json!({ "typical": number(figure.typical), "p10": p10, "p50": p50, "p90": p90,
                "beats_first_ratio": number(figure.beats_first), "hangs_on": hinges(figure) }),
            )
        })
        .collect::<serde_json::Map<String, Json>>()
        .into()
    };
    let inputs = |input: &crate::sweep::uncertain::Input| json!({ "key": input.key, "p10": input.text(0.1), "p50": input.text(0.5), "p90": input.text(0.9) });
    pretty(&json!({
        "title": answer.title,
        "samples_count": answer.samples,
        "inputs": answer.inputs.iter().map(inputs).collect::<Vec<Json>>(),
        "variants": answer.variants.iter().map(|variant| json!({
            "name": variant.name, "feasible_count": variant.feasible, "band": variant.bands.as_ref().map(band), "figures": figures(variant),
            "typical_outside": outside(variant, aims).into_iter().map(|aim| aim.figure.key).collect::<Vec<&str>>(),
        })).collect::<Vec<Json>>(),
    }))
}

/// For spreadsheets: a row a figure of a variant.
pub fn uncertainty_grid(answer: &Uncertainty, aims: &[Aim]) -> Grid {
    let mut grid = Grid::new(&["variant", "figure", "typical", "p10", "p50", "p90", "beats_first_ratio"], 2);
    for variant in &answer.variants {
        for (aim, figure) in aims.iter().zip(&variant.figures) {
            let (Some(typical), Some(quantiles)) = (figure.typical, figure.quantiles) else { continue };
            let numbers = [typical].into_iter().chain(quantiles).map(|number| number.to_string());
            let odds = figure.beats_first.map(|odds| odds.to_string()).unwrap_or_default();
            grid.rows.push(
                [variant.name.clone(), aim.figure.key.to_owned()].into_iter().chain(numbers).chain([odds]).collect(),
            );
        }
    }
    grid
}
