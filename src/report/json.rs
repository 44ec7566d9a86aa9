//! Reports for programs: one object, keys of the table of figures, numbers bare in the unit that their key names.

use serde_json::{Map, Value as Json, json};

use super::break_even_map::map_object;
use super::comparison::{never, number};
use super::cost_lines::line_object;
use super::evaluation::kind_word;
use super::figure::{Group, Value};
use super::infeasible::{advice, footprint_values};
use super::layout_search::{self, nearest_object, reasons_object};
use super::memory_tiers;
use super::metrics::{METRICS, of_group};
use super::notes::notes;
use super::number::finite;
use super::page::Grid;
use super::settings::{Origin, settings};
use super::stages::stage_objects;
use super::tenants::tenant_objects;
use super::ways_search;
use crate::evaluate::{Evaluation, Infeasible, PartLine, SideBill};
use crate::search::Nearest;
use crate::study::{BreakEven, Comparison, Turn, Variable, Variant};

/// One evaluation.
pub fn evaluation_json(evaluation: &Evaluation) -> String {
    pretty(&evaluation_object(evaluation))
}

/// Variants side by side.
pub fn comparison_json(comparison: &Comparison) -> String {
    let variants: Vec<Json> = comparison.variants.iter().map(|variant| variant_object(variant, comparison)).collect();
    let break_even: Vec<Json> =
        comparison.break_even.iter().map(|found| break_even_object(found, comparison)).collect();
    pretty(&json!({
        "title": comparison.title,
        "baseline": comparison.baseline().name,
        "variants": variants,
        "break_even": break_even,
        "break_even_map": comparison.maps.iter().map(|map| map_object(map, comparison)).collect::<Vec<Json>>(),
    }))
}

/// An answer that is "no", and the nearest that is "yes".
pub fn infeasible_json(title: &str, infeasible: &Infeasible, nearest: Option<&Nearest>) -> String {
    let mut object = Map::new();
    object.insert("title".to_owned(), title.into());
    object.extend(infeasible_fields(infeasible));
    object.extend(nearest.map(|nearest| ("nearest".to_owned(), nearest_object(nearest))));
    pretty(&Json::Object(object))
}

/// A table of texts, an object a row.
pub fn grid_json(grid: &Grid) -> String {
    let row = |cells: &Vec<String>| {
        let fields = grid.header.iter().zip(cells);
        Json::Object(fields.map(|(head, cell)| (head.clone(), cell.as_str().into())).collect())
    };
    pretty(&Json::Array(grid.rows.iter().map(row).collect()))
}

/// Objects in a list.
pub fn objects_json(objects: Vec<Map<String, Json>>) -> String {
    pretty(&Json::from(objects))
}

pub(super) fn pretty(value: &Json) -> String {
    format!("{value:#}\n")
}

fn bare(value: Value) -> Json {
    match value {
        Value::Number(number) => finite(number),
        Value::Count(count) => count.into(),
        Value::Flag(yes) => yes.into(),
        Value::Word(word) => word.into(),
    }
}

pub(super) fn evaluation_object(evaluation: &Evaluation) -> Json {
    let mut object = Map::new();
    object.insert("title".to_owned(), evaluation.scenario.title.as_str().into());
    let settings = settings(evaluation);
    let given: Map<String, Json> =
        settings.iter().map(|setting| (setting.key.to_owned(), setting.value.as_str().into())).collect();
    object.insert("scenario".to_owned(), given.into());
    let assumed = settings
        .iter()
        .filter(|setting| matches!(setting.origin, Origin::Default | Origin::Book))
        .map(|setting| Json::from(setting.key));
    object.insert("assumed".to_owned(), assumed.collect());
    object.extend(evaluation.found.as_ref().map(|found| ("layout_search".to_owned(), layout_search::object(found))));
    object.extend(ways_search::object(evaluation).map(|ways| ("serving_layout_search".to_owned(), ways)));
    let bases = evaluation.bases();
    for &group in Group::ALL {
        let values =
            of_group(group).filter_map(|metric| Some((metric.name().to_owned(), bare(metric.value(evaluation)?))));
        let mut fields: Map<String, Json> = values.collect();
        if fields.is_empty() {
            continue;
        }
        match group {
            Group::Training => {
                fields.extend(evaluation.run.as_ref().map(|run| ("stages".to_owned(), stage_objects(run))));
            }
            Group::Serving => fields.extend(tenant_objects(evaluation).map(|all| ("tenants".to_owned(), all))),
            Group::Fabric => {
                fields.insert("parts".to_owned(), evaluation.built.parts.iter().map(part_object).collect());
                fields.insert("side_networks".to_owned(), evaluation.built.side.iter().map(side_object).collect());
            }
            Group::Cost => {
                let lines = &evaluation.built.costs.lines;
                let lines = lines.iter().map(|line| line_object(evaluation, line)).collect();
                fields.insert("lines".to_owned(), lines);
                fields.extend(memory_tiers::objects(evaluation).map(|tiers| ("memory_tiers".to_owned(), tiers)));
            }
            _ => {}
        }
        fields.insert("basis".to_owned(), group.basis(&bases).word().into());
        object.insert(group.word().to_owned(), fields.into());
    }
    object.insert("notes".to_owned(), notes(&[("", evaluation)]).into());
    Json::Object(object)
}

fn part_object(part: &PartLine) -> Json {
    json!({
        "kind": kind_word(part.kind),
        "id": part.id,
        "name": part.name,
        "tier": part.tier.word(),
        "count": part.count,
        "spares_count": part.spares,
        "power_w": finite(part.power.value()),
        "unit_price_usd": finite(part.unit_price.value()),
        "total_power_w": finite(part.draw().value()),
        "total_price_usd": finite(part.price().value()),
        "basis": part.basis.word(),
    })
}

fn side_object(network: &SideBill) -> Json {
    json!({
        "purpose": network.purpose.word(),
        "id": network.id,
        "ports_count": network.ports,
        "power_w": finite(network.draw().value()),
        "capex_usd": finite(network.price().value()),
        "parts": network.parts.iter().map(part_object).collect::<Vec<Json>>(),
    })
}

/// The fields of an answer that is "no": the reason, what would help, and what is known of the memory.
fn infeasible_fields(infeasible: &Infeasible) -> Map<String, Json> {
    let mut object = Map::new();
    object.insert("infeasible".to_owned(), json!({ "reason": infeasible.to_string(), "advice": advice(infeasible) }));
    if let Infeasible::NoLayout(none) = infeasible {
        object.insert("rejected".to_owned(), reasons_object(&none.tally));
    }
    if let Infeasible::Memory { footprint, usable, .. } = infeasible {
        let values = footprint_values(footprint, *usable).into_iter();
        let named = values.filter_map(|(key, value)| Some((key.split_once('.')?.1.to_owned(), bare(value))));
        object.insert("memory".to_owned(), Json::Object(named.collect()));
    }
    object
}

fn variant_object(variant: &Variant, comparison: &Comparison) -> Json {
    let settings: Map<String, Json> =
        variant.settings.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    let mut object = Map::new();
    object.insert("name".to_owned(), variant.name.as_str().into());
    object.insert("settings".to_owned(), settings.into());
    match &variant.outcome {
        Ok(evaluation) => {
            object.insert("evaluation".to_owned(), evaluation_object(evaluation));
            object.insert("delta".to_owned(), deltas(evaluation, comparison));
        }
        Err(infeasible) => {
            object.insert("evaluation".to_owned(), Json::Null);
            object.extend(infeasible_fields(infeasible));
        }
    }
    Json::Object(object)
}

/// Each figure over the baseline's, less one.
fn deltas(evaluation: &Evaluation, comparison: &Comparison) -> Json {
    let Ok(baseline) = &comparison.baseline().outcome else { return Json::Null };
    let delta = |metric: &super::figure::Metric| metric.value(evaluation)?.delta(metric.value(baseline)?);
    METRICS
        .iter()
        .filter_map(|metric| Some((metric.key.to_owned(), finite(delta(metric)?))))
        .collect::<Map<_, _>>()
        .into()
}

fn break_even_object(found: &BreakEven, comparison: &Comparison) -> Json {
    let name = |index: usize| comparison.variants[index].name.as_str();
    let variable = match found.variable {
        Variable::FabricCapex => "fabric.capex_usd",
        Variable::SpineEfficiency => "fabric.spine_efficiency_ratio",
        Variable::StepTime => "training.iteration_s",
    };
    let present = number(found.present);
    let mut object = Map::new();
    object.insert("between".to_owned(), json!([name(found.between.0), name(found.between.1)]));
    object.insert("variable".to_owned(), variable.into());
    object.insert("present".to_owned(), finite(present));
    if let Some(collisions) = &found.collisions {
        object.insert("present_at_full_load".to_owned(), finite(collisions.share()));
    }
    match found.turn {
        Turn::At(level) => {
            object.insert("value".to_owned(), finite(number(level)));
            object.insert("change_ratio".to_owned(), finite(number(level) / present - 1.0));
        }
        Turn::Never { .. } => {
            object.insert("value".to_owned(), Json::Null);
            object.insert("reason".to_owned(), never(found, comparison).into());
        }
    }
    Json::Object(object)
}
