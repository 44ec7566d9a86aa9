//! Variants of a scenario, held against one of them.

use super::break_even::{BreakEven, break_even};
use super::break_even_map::BreakEvenMap;
use crate::catalog::{Catalog, Reference};
use crate::diagnostics::{Code, Diagnostic, Sink, did_you_mean_one_of};
use crate::document::{Node, Value};
use crate::evaluate::{Evaluation, Infeasible};
use crate::scenario::{Scenario, ScenarioFile};
use crate::search::{self, Nearest};

/// More columns than this say nothing side by side.
const MOST_VARIANTS: usize = 32;

/// A key and the values that it takes.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The dotted key.
    pub key: String,
    /// The values, each with its place.
    pub values: Vec<Node>,
}

/// A scenario under the name that tells it from the others.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name.
    pub name: String,
    /// The scenario, as read.
    pub document: Node,
}

/// What is to be compared.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// Scenarios; with more than one, each is varied.
    pub cases: &'a [Case],
    /// What is varied, every value of one with every value of the others.
    pub axes: &'a [Axis],
    /// The name of the variant that the others are held against; the first where none is named.
    pub baseline: Option<&'a Reference>,
}

/// A variant and its answer.
#[derive(Clone, Debug)]
pub struct Variant {
    /// What tells it from the others: the values of the varied keys.
    pub name: String,
    /// The varied keys and their values.
    pub settings: Vec<(String, String)>,
    /// The answer.
    pub outcome: Result<Box<Evaluation>, Infeasible>,
}

/// Variants side by side.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What is asked, in a line: the titles of the scenarios.
    pub title: String,
    /// The variants, in the order asked for.
    pub variants: Vec<Variant>,
    /// Index of the one that the others are held against.
    pub baseline: usize,
    /// The nearest layout that works to its own, where that is what keeps it from being.
    pub nearest: Option<Nearest>,
    /// Where the order between it and each other turns.
    pub break_even: Vec<BreakEven>,
    /// Who wins over the efficiency and the price of another fabric, one map for each variant on another.
    pub maps: Vec<BreakEvenMap>,
}

impl Comparison {
    /// The variant that the others are held against.
    pub fn baseline(&self) -> &Variant {
        &self.variants[self.baseline]
    }
}

/// Evaluates every variant; mistakes go to the sink, and there is a comparison only if there are none.
///
/// A variant that cannot be is an answer like any other.
pub fn compare(question: &Question<'_>, catalog: &Catalog, sink: &Sink) -> Option<Comparison> {
    // A mistake of a scenario itself would come back with each of its variants.
    for case in question.cases {
        resolve(&case.document, catalog, sink);
    }
    let planned = if sink.is_empty() { plan(question, sink) } else { return None };
    check_names(&planned, sink);
    let baseline = baseline(question.baseline, &planned, sink);
    let (mut variants, mut nearest) = (Vec::new(), None);
    for (index, planned) in planned.into_iter().enumerate() {
        let own = Sink::default();
        if let Some(scenario) = resolve(&planned.document, catalog, &own) {
            let outcome = search::evaluate(scenario.clone()).map(Box::new);
            if let (true, Err(infeasible)) = (index == baseline, &outcome) {
                nearest = search::nearest(&scenario, infeasible);
            }
            variants.push(Variant { name: planned.name, settings: planned.settings, outcome });
        }
        sink.merge(own);
    }
    if !sink.is_empty() {
        return None;
    }
    let titles: Vec<String> = question.cases.iter().map(|case| title(&case.document)).collect();
    let title = if let [title] = &titles[..] { title.clone() } else { titles.join(" / ") };
    let break_even = all_break_even(&variants, baseline);
    let maps = all_maps(&variants, baseline);
    Some(Comparison { title, variants, baseline, nearest, break_even, maps })
}

fn resolve(document: &Node, catalog: &Catalog, sink: &Sink) -> Option<Scenario> {
    let own = Sink::default();
    let file = ScenarioFile::read(document, &own);
    let scenario = Scenario::resolve(&file, catalog, &own);
    sink.merge(own);
    scenario
}

fn title(document: &Node) -> String {
    document.at_path("title").and_then(Node::as_str).unwrap_or_default().to_owned()
}

/// A variant before it is read.
struct Planned {
    name: String,
    settings: Vec<(String, String)>,
    document: Node,
}

/// Every case with every combination of values.
fn plan(question: &Question<'_>, sink: &Sink) -> Vec<Planned> {
    let one = question.cases.len() == 1;
    let count = question.axes.iter().map(|axis| axis.values.len()).fold(question.cases.len(), usize::saturating_mul);
    if count > MOST_VARIANTS {
        let message = format!("{count} variants side by side; at most {MOST_VARIANTS} can be read");
        sink.push(Diagnostic::new(Code::OutOfRange, message).hint("vary fewer keys, or give them fewer values"));
        return Vec::new();
    }
    let mut planned: Vec<Planned> = question
        .cases
        .iter()
        .map(|case| Planned {
            name: if one { String::new() } else { case.name.clone() },
            settings: Vec::new(),
            document: case.document.clone(),
        })
        .collect();
    for axis in question.axes {
        let with = |before: &Planned, value: &Node| {
            let text = value.to_string();
            let name = if before.name.is_empty() { text.clone() } else { format!("{}, {text}", before.name) };
            let mut document = before.document.clone();
            set(&mut document, &axis.key, value, sink);
            Planned { name, settings: [&before.settings[..], &[(axis.key.clone(), text)]].concat(), document }
        };
        planned = planned.iter().flat_map(|before| axis.values.iter().map(|value| with(before, value))).collect();
    }
    planned
}

/// Reports variants that nothing tells apart, and a variant with nothing beside it.
fn check_names(planned: &[Planned], sink: &Sink) {
    if let [only] = planned {
        let name = if only.name.is_empty() { "the scenario itself" } else { &only.name };
        let message = format!("there is nothing to compare with: the only variant is {name}");
        sink.push(Diagnostic::new(Code::MissingKey, message).hint("vary a key over two values or more"));
    }
    let mut seen: Vec<&str> = Vec::new();
    for planned in planned {
        if seen.contains(&planned.name.as_str()) {
            let message = format!("two variants are called \"{}\"", planned.name);
            let hint = "name each value, and each scenario, once";
            sink.push(Diagnostic::new(Code::Duplicate, message).hint(hint));
        }
        seen.push(&planned.name);
    }
}

fn set(document: &mut Node, key: &str, value: &Node, sink: &Sink) {
    let Value::Table(table) = &mut document.value else { return };
    if let Err(error) = table.set(key, value.clone()) {
        let refused = Diagnostic::new(Code::UnknownKey, format!("`{key}` cannot be varied: {error}"));
        sink.push(refused.at(&value.at, "its value").hint(error.hint()));
    }
}

/// The index of the variant of that name.
fn baseline(wanted: Option<&Reference>, planned: &[Planned], sink: &Sink) -> usize {
    let Some(wanted) = wanted else { return 0 };
    let names = || planned.iter().map(|planned| planned.name.as_str());
    names().position(|name| name == wanted.id).unwrap_or_else(|| {
        let hint = did_you_mean_one_of(&wanted.id, names()).unwrap_or_else(|| {
            format!("the variants are {}", names().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", "))
        });
        let message = format!("the baseline \"{}\" is none of the variants", wanted.id);
        sink.push(Diagnostic::new(Code::UnknownWord, message).at(&wanted.at, "not varied").hint(hint));
        0
    })
}

fn all_break_even(variants: &[Variant], baseline: usize) -> Vec<BreakEven> {
    let Some(Ok(reference)) = variants.get(baseline).map(|variant| &variant.outcome) else { return Vec::new() };
    let others = variants.iter().enumerate().filter(|(index, _)| *index != baseline);
    let feasible = others.filter_map(|(index, variant)| Some((index, variant.outcome.as_ref().ok()?)));
    feasible.flat_map(|(index, other)| break_even((baseline, reference), (index, other))).collect()
}

fn all_maps(variants: &[Variant], baseline: usize) -> Vec<BreakEvenMap> {
    let Some(Ok(reference)) = variants.get(baseline).map(|variant| &variant.outcome) else { return Vec::new() };
    let others = variants.iter().enumerate().filter(|(index, _)| *index != baseline);
    let feasible = others.filter_map(|(index, variant)| Some((index, variant.outcome.as_ref().ok()?)));
    feasible.filter_map(|(index, other)| BreakEvenMap::new((baseline, reference), (index, other))).collect()
}
