//! A plan of training: the best cluster, what decides, and those after it.

use serde_json::{Value as Json, json};

use super::csv::answers_csv;
use super::evaluation_object;
use super::figure::{change, counted, grouped, percent};
use super::json::pretty;
use super::number::finite;
use super::page::{Block, Grid, Page, Section};
use crate::evaluate::Evaluation;
use crate::study::{BindingLimit, TrainingChoice, TrainingPlan};
use crate::sweep::LayoutKey;

/// For people.
pub fn training_plan_page(plan: &TrainingPlan) -> Page {
    let were = if plan.tried == 1 { "was" } else { "were" };
    let tried = format!("{} {were} tried.", counted(plan.tried, "combination"));
    let mut sections = Vec::new();
    if let Some(best) = plan.choices.first() {
        let settings: Vec<String> = best.settings.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        let layout = best.evaluation.point.map(|point| point.layout.to_string()).unwrap_or_default();
        let text = format!("Least {}: {}; {layout}. {tried}", plan.minimise, settings.join(", "));
        sections.push(Section::new("In short", Block::Text(text)));
        sections.push(Section::new("The best, and those after it", Block::Grid(grid(&plan.choices))));
    } else {
        let text = format!("Nothing is within the limits. {tried}");
        sections.push(Section::new("In short", Block::Text(text)));
    }
    if let Some((choice, beyond)) = &plan.nearest {
        let beyond: Vec<String> = beyond
            .iter()
            .map(|(limit, beyond)| format!("{} beyond the {} ({})", percent(*beyond), limit.word(), limit.of()))
            .collect();
        let blocks = vec![
            Block::Text(format!("It is {}.", beyond.join(" and "))),
            Block::Grid(grid(std::slice::from_ref(choice))),
        ];
        sections.push(Section { heading: "The nearest".to_owned(), blocks });
    }
    if !plan.choices.is_empty() {
        let binding = plan.binding.iter().map(|binding| {
            let less = change(binding.without_ratio - 1.0).unwrap_or_default();
            format!(
                "The {} ({}) decides: without it the least {} is {less}.",
                binding.limit.word(),
                binding.limit.of(),
                plan.minimise
            )
        });
        let mut binding: Vec<String> = binding.collect();
        if binding.is_empty() {
            binding.push("No limit decides: without any one of them the answer is the same.".to_owned());
        }
        sections.push(Section::new("What decides", Block::List(binding)));
    }
    if !plan.rejected.is_empty() {
        let mut rejected = Grid::new(&["Why others are no answer", "combinations"], 1);
        rejected.rows = plan.rejected.iter().map(|(reason, count)| vec![reason.clone(), grouped(*count)]).collect();
        sections.push(Section::new("Rejected", Block::Grid(rejected)));
    }
    Page { title: plan.title.clone(), sections }
}

/// For a spreadsheet, the best and those after it: what was chosen, the layout, and all figures.
pub fn training_plan_csv(plan: &TrainingPlan, bom: bool) -> Vec<u8> {
    let chosen = |choice: &TrainingChoice| {
        let Evaluation { scenario, point, .. } = &*choice.evaluation;
        let mut chosen = choice.settings.clone();
        if let (Some(training), Some(point)) = (&scenario.training, point) {
            let keys = LayoutKey::ALL.iter().filter(|key| choice.settings.iter().all(|(known, _)| known != key.word()));
            let value = |key: &LayoutKey| key.of(&point.layout, training.software.overlap).to_string();
            chosen.extend(keys.map(|key| (key.word().to_owned(), value(key))));
        }
        chosen
    };
    answers_csv(&plan.choices.iter().map(|choice| (chosen(choice), &*choice.evaluation)).collect::<Vec<_>>(), bom)
}

fn grid(choices: &[TrainingChoice]) -> Grid {
    let mut grid = Grid::default();
    let keys = choices.first().map(|choice| choice.settings.iter().map(|(key, _)| key.clone())).into_iter().flatten();
    grid.header.extend(keys);
    grid.numeric_from = grid.header.len();
    grid.header.extend(["run", "wall time", "facility power", "MFU"].map(str::to_owned));
    let row = |choice: &TrainingChoice| {
        let evaluation = &choice.evaluation;
        let mut cells: Vec<String> = choice.settings.iter().map(|(_, value)| value.clone()).collect();
        cells.push(evaluation.point.map(|point| point.run.to_string()).unwrap_or_default());
        cells.push(evaluation.effective_duration().map(|time| time.to_string()).unwrap_or_default());
        cells.push(evaluation.built.facility.provisioned_total.to_string());
        cells.push(evaluation.point.map(|point| percent(point.step.mfu())).unwrap_or_default());
        cells
    };
    grid.rows = choices.iter().map(row).collect();
    grid
}

/// For programs.
pub fn training_plan_json(plan: &TrainingPlan) -> String {
    let choice = |choice: &TrainingChoice| {
        let settings: serde_json::Map<String, Json> =
            choice.settings.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
        json!({ "chosen": settings, "evaluation": evaluation_object(&choice.evaluation) })
    };
    let binding = |binding: &BindingLimit| json!({ "limit": binding.limit.word(), "without_ratio": finite(binding.without_ratio) });
    pretty(&json!({
        "title": plan.title,
        "minimise": plan.minimise.word(),
        "best": plan.choices.first().map_or(Json::Null, choice),
        "runners_up": plan.choices.iter().skip(1).map(choice).collect::<Vec<Json>>(),
        "binding": plan.binding.iter().map(binding).collect::<Vec<Json>>(),
        "nearest": plan.nearest.as_ref().map_or(Json::Null, |(near, beyond)| json!({
            "choice": choice(near),
            "beyond": beyond.iter().map(|(limit, beyond)| json!({ "limit": limit.word(), "ratio": finite(*beyond) })).collect::<Vec<Json>>(),
        })),
        "rejected": plan.rejected.iter().map(|(reason, count)| json!({ "reason": reason, "count": count })).collect::<Vec<Json>>(),
        "tried_count": plan.tried,
    }))
}
