//! What is not known for certain: inputs that the scenario names, and values of the catalog that have a range.

use super::spread::{FURTHEST, quantile};
use crate::catalog::{Catalog, Record, magnitudes};
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{Node, Value};
use crate::evaluate::Evaluation;
use crate::scenario::{
    CatalogField, Scenario, ScenarioFile, Spread, UncertainFile, UncertaintyFile, signs_of_unit, written,
};
use crate::sweep::field::{self, with_fields};
use crate::units::to_integer;

/// An input, and how it spreads.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The key, as an axis of a sweep has it.
    pub key: String,
    pub(super) spread: Spread,
    /// What is written before and after its number.
    pub(super) around: [String; 2],
}

impl Input {
    /// As the scenario names it.
    fn of(file: &UncertainFile) -> Self {
        let around = file.unit.as_deref().map(signs_of_unit).unwrap_or_default();
        Self { key: file.key.clone(), spread: file.spread.clone(), around }
    }

    /// The value with so large a share of all cases below it.
    pub(super) fn node(&self, share: f64) -> Node {
        self.written(quantile(&self.spread, share))
    }

    /// A number as its key has it.
    fn written(&self, number: f64) -> Node {
        let [before, after] = &self.around;
        let value = if !before.is_empty() || !after.is_empty() {
            Value::String(format!("{before}{}{after}", written(number)))
        } else if number.fract() == 0.0 && number.abs() < 9e15 {
            Value::Integer(to_integer::<i64>(number))
        } else {
            Value::Float(number)
        };
        Node { value, ..Node::default() }
    }

    /// The catalog with that value instead; none of an input that is a key of the scenario.
    pub fn in_catalog(&self, catalog: &Catalog, share: f64) -> Option<Catalog> {
        let field = CatalogField::parse(&self.key)?;
        let sink = Sink::default();
        let changed = with_fields(catalog, &[(&field, &self.node(share))], &sink);
        sink.is_empty().then_some(changed)
    }

    /// The value with so large a share of all cases below it, as text.
    pub fn text(&self, share: f64) -> String {
        let [before, after] = &self.around;
        format!("{before}{}{after}", crate::units::significant(quantile(&self.spread, share), 3))
    }
}

/// All inputs; none where one of them is not an input.
pub(super) fn all(
    wanted: &UncertaintyFile,
    typical: &[Evaluation],
    catalog: &Catalog,
    sink: &Sink,
) -> Option<Vec<Input>> {
    let records = catalog.records();
    let used: Vec<_> = typical.iter().flat_map(|evaluation| evaluation.scenario.cluster.entries()).collect();
    for input in &wanted.inputs {
        let Some(field) = CatalogField::parse(&input.key) else { continue };
        if !field::has(&records, &field) {
            let message = format!("the catalog has no `{}`", input.key);
            crate::sweep::report(&message, "`clusterplan catalog list` shows entries", &input.at, sink);
            return None;
        }
        if let Some(mistake) = field::unused(&field, &input.key, &used) {
            sink.push(mistake.at(&input.at, "this input"));
            return None;
        }
    }
    let mut inputs: Vec<Input> = wanted.inputs.iter().map(Input::of).collect();
    if wanted.catalog {
        let named: Vec<String> = inputs.iter().map(|input| input.key.clone()).collect();
        let of_catalog = ranged(typical, &records).into_iter().filter(|input| !named.contains(&input.key));
        inputs.extend(of_catalog);
    }
    Some(inputs)
}

/// Shares at which an input is tried before any sample: as far out as a draw comes, and two within, where a number that
/// must be whole is not.
const TRIED: [f64; 4] = [FURTHEST, 0.37, 0.5, 1.0 - FURTHEST];
/// Of recorded numbers, so many are tried.
const MOST_TRIED: usize = 1_000;

/// Reports inputs of which some draws are no value of their key: samples of them would be missing from every figure.
pub(super) fn try_draws(wanted: &UncertaintyFile, document: &Node, catalog: &Catalog, sink: &Sink) {
    for file in &wanted.inputs {
        let input = Input::of(file);
        let numbers = match &file.spread {
            Spread::Empirical(values) => values.iter().copied().take(MOST_TRIED).collect(),
            spread => TRIED.map(|share| quantile(spread, share)).to_vec(),
        };
        let mut tried = numbers.into_iter().map(|number| input.written(number));
        let Some((node, found)) = tried.find_map(|node| mistake(&file.key, node, document, catalog)) else {
            continue;
        };
        let message = format!("`{}` may be drawn as {node}: {}", file.key, found.message);
        let hint = "let it spread over what the key takes: `uniform` and `triangular` have ends, and whole numbers are \
                    listed in `values`";
        let own = Sink::default();
        own.push(Diagnostic::new(found.code, message).at(&file.at, "here").hint(hint));
        // Variants mostly share it.
        sink.merge(own);
    }
}

/// What is wrong with a value by itself.
fn mistake(key: &str, node: Node, document: &Node, catalog: &Catalog) -> Option<(Node, Diagnostic)> {
    let own = Sink::default();
    if let Some(field) = CatalogField::parse(key) {
        with_fields(catalog, &[(&field, &node)], &own);
    } else {
        let mut document = document.clone();
        let Value::Table(table) = &mut document.value else { return None };
        if let Err(error) = table.set(key, node.clone()) {
            return Some((node, Diagnostic::new(Code::WrongType, error.to_string()).hint(error.hint())));
        }
        Scenario::resolve(&ScenarioFile::read(&document, &own), catalog, &own);
    }
    let found = own.into_diagnostics().into_iter().find(|found| found.code.is_of_value())?;
    Some((node, found))
}

/// The values with a range of the entries that a scenario is built from.
pub fn ranged_inputs(evaluation: &Evaluation, catalog: &Catalog) -> Vec<Input> {
    ranged(std::slice::from_ref(evaluation), &catalog.records())
}

/// The values with a range of the entries that the variants are built from: fabrics, sites, price books, failure rates,
/// storage, power, and what software and collectives reach.
fn ranged(typical: &[Evaluation], records: &[Record<'_>]) -> Vec<Input> {
    let mut used: Vec<(&str, &str)> = Vec::new();
    let mut bought: Vec<&str> = Vec::new();
    let mut keyed: Vec<(&str, &str)> = Vec::new();
    for evaluation in typical {
        let cluster = &evaluation.scenario.cluster;
        for nodes in cluster.kinds_of_nodes() {
            keyed.extend([
                ("generation", nodes.accelerator.generation.as_str()),
                ("board", nodes.accelerator.board.as_str()),
                ("scale_up", nodes.node.scale_up.kind.as_str()),
            ]);
            bought.push(nodes.node.id.as_str());
        }
        keyed.push(("network", cluster.fabric.entry.class.as_str()));
        used.extend(cluster.entries());
        used.extend(
            evaluation
                .scenario
                .training
                .as_ref()
                .map(|training| ("efficiency/training", training.efficiency_source.id.as_str())),
        );
        let served = evaluation.scenario.serving.as_ref();
        used.extend(served.map(|serving| ("efficiency/serving", serving.efficiency.id.as_str())));
        bought.push(cluster.storage.id.as_str());
        let side = evaluation.built.side.iter().flat_map(|network| &network.parts);
        bought.extend(evaluation.built.parts.iter().chain(side).map(|part| part.id.as_str()));
    }
    let mut inputs = Vec::new();
    for record in records.iter().filter(|record| used.contains(&(record.folder, record.id))) {
        let key = format!("catalog/{}/{}", record.folder, record.id);
        walk(record.document, &key, (&bought, &keyed), &mut inputs);
    }
    inputs
}

/// Of parts those that are bought, and of what is keyed by parts the keys of those that are there.
type Present<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)]);

fn walk(node: &Node, key: &str, present: Present<'_>, inputs: &mut Vec<Input>) {
    let (bought, keyed) = present;
    let section = key.rsplit('/').next().unwrap_or_default();
    let own = |name: &str| keyed.contains(&(section, name));
    match &node.value {
        Value::Table(table) if table.get("low").is_some() && table.get("high").is_some() => {
            inputs.extend(of_range(node, key));
        }
        Value::Table(table) => {
            // Constants of other parts move nothing where those of the own one are there.
            let apart = table.entries.iter().any(|entry| own(&entry.key));
            for entry in table.entries.iter().filter(|entry| !apart || own(&entry.key)) {
                walk(&entry.node, &format!("{key}/{}", entry.key), present, inputs);
            }
        }
        Value::Array(items) => {
            for item in items {
                // Prices are named by their part, of which only those that are bought count; cost lines by their name.
                let name = ["part", "name"].iter().find_map(|key| item.at_path(key)?.as_str());
                let counts = item.at_path("part").and_then(Node::as_str).is_none_or(|part| bought.contains(&part));
                if let Some(name) = name.filter(|name| counts && !name.contains('/')) {
                    walk(item, &format!("{key}/{name}"), present, inputs);
                }
            }
        }
        _ => {}
    }
}

/// A value with its range: as often above the value as below, nearer to it than to the ends, and never beyond the range. A triangle
/// about the value would have most of a range that reaches far to one side beyond it, so that what many such values add up to
/// is hardly ever as small as where each is as it is stated.
fn of_range(node: &Node, key: &str) -> Option<Input> {
    let texts = ["low", "value", "high"].map(|part| node.at_path(part).map(Node::to_string));
    let [Some(low), Some(value), Some(high)] = texts else { return None };
    let (before, number, after) = around_number(&value)?;
    // In the value's own unit.
    let in_unit = |end: &str| {
        let (end, typical) = magnitudes(end, &value)?;
        Some(if typical == 0.0 { end } else { number * end / typical })
    };
    let (low, high) = (in_unit(&low)?, in_unit(&high)?);
    if !(low < high && low <= number && number <= high) {
        return None;
    }
    let around = [before.to_owned(), after.to_owned()];
    Some(Input { key: key.to_owned(), spread: Spread::DoubleTriangular { low, median: number, high }, around })
}

/// What stands before a number, the number, and what stands after it.
fn around_number(text: &str) -> Option<(&str, f64, &str)> {
    let start = text.find(|c: char| c.is_ascii_digit() || c == '.')?;
    let rest = &text[start..];
    let end = rest.find(|c: char| !(c.is_ascii_digit() || ".,_".contains(c))).unwrap_or(rest.len());
    let number = rest[..end].replace([',', '_'], "").parse().ok()?;
    Some((&text[..start], number, &rest[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_taken_in_the_unit_of_its_value() {
        let text = |text: &str| Node { value: Value::String(text.to_owned()), ..Node::default() };
        let mut table = crate::document::Table::default();
        for (key, value) in [("value", "30 s"), ("low", "5 s"), ("high", "5 min")] {
            table.set(key, text(value)).unwrap();
        }
        let node = Node { value: Value::Table(table), ..Node::default() };
        let input = of_range(&node, "k").unwrap();
        assert_eq!(input.spread, Spread::DoubleTriangular { low: 5.0, median: 30.0, high: 300.0 });
        assert_eq!(input.text(0.0), "5 s");
    }

    #[test]
    fn numbers_stand_between_signs_and_units() {
        assert_eq!(around_number("$244,400"), Some(("$", 244_400.0, "")));
        assert_eq!(around_number("$0.0826/kWh"), Some(("$", 0.0826, "/kWh")));
        assert_eq!(around_number("79932 h"), Some(("", 79_932.0, " h")));
        assert_eq!(around_number("none"), None);
    }
}
