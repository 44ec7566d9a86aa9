//! The derivation of one figure as a tree: its formula, what it is computed from, and the source behind each leaf.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use super::evaluation::is_nothing;
use super::figure::Metric;
use super::itemised::{Item, items};
use super::metrics::metric;
use super::page::{Block, Grid, Page, Section};
use super::settings::{Origin, Setting, settings};
use crate::catalog::currency::Rates;
use crate::catalog::{Catalog, Figure};
use crate::evaluate::Evaluation;
use crate::scenario::NodeGroup;

/// Figures of the catalog that a leaf names, at most; the rest is counted.
const MOST: usize = 16;

/// A figure, an item of a sum, a key of the scenario or a field of the catalog, and what it is computed from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Derivation {
    /// Key of the figure or of the scenario, the name of an item, or `id.field` of the catalog.
    pub key: String,
    /// A few words for it; none of items, keys and fields.
    pub label: &'static str,
    /// The value for people.
    pub text: String,
    /// The value in the unit that the key names, of an item in that of its sum; none of keys and fields.
    pub value: Option<f64>,
    /// The formula in words, or where the value comes from.
    pub origin: String,
    /// Where the document behind it is.
    pub url: Option<String>,
    /// What it is computed from.
    pub inputs: Vec<Self>,
}

/// How a figure of an evaluation comes about, down to so many steps; none where the evaluation has no such figure.
pub fn derivation(of: &Metric, evaluation: &Evaluation, catalog: &Catalog, depth: usize) -> Option<Derivation> {
    let mut tree = Tree {
        evaluation,
        catalog,
        rates: catalog.rates(),
        settings: settings(evaluation),
        bound: bound(evaluation),
        words: words(evaluation),
        told: BTreeSet::new(),
    };
    tree.figure(of, depth)
}

/// What is needed to follow a figure down.
struct Tree<'a> {
    evaluation: &'a Evaluation,
    catalog: &'a Catalog,
    rates: Rates,
    settings: Vec<Setting>,
    /// Entries of the catalog that the scenario uses, as (folder, id).
    bound: Vec<(&'static str, String)>,
    /// Names by which fields of tables are told apart: of parts, then of number formats.
    words: [BTreeSet<String>; 2],
    /// Figures that have been followed down.
    told: BTreeSet<&'static str>,
}

impl Tree<'_> {
    fn figure(&mut self, of: &Metric, depth: usize) -> Option<Derivation> {
        let value = of.value(self.evaluation)?;
        let mut own = Derivation {
            key: of.key.to_owned(),
            label: of.label.trim(),
            text: of.text(value),
            value: value.number(),
            origin: of.formula.to_owned(),
            ..Derivation::default()
        };
        if !self.told.insert(of.key) {
            "as above".clone_into(&mut own.origin);
        } else if depth > 0 {
            let inputs = of.inputs.iter().filter(|input| !self.is_unbound(of, input)).collect::<Vec<_>>();
            own.inputs = inputs.into_iter().flat_map(|input| self.input(input, depth - 1)).collect();
        }
        Some(own)
    }

    fn input(&mut self, key: &str, depth: usize) -> Vec<Derivation> {
        if let Some(of) = metric(key) {
            return self.figure(of, depth).into_iter().collect();
        }
        if let Some(items) = items(key, self.evaluation) {
            return items.into_iter().map(|item| self.item(item, depth)).collect();
        }
        let folder =
            Catalog::FOLDERS.iter().find(|folder| key.strip_prefix(**folder).is_some_and(|rest| rest.starts_with('.')));
        let found = match folder {
            Some(folder) => self.fields(folder, &key[folder.len() + 1..]),
            None => self.keys(key),
        };
        if found.is_empty() && !self.is_of_others(key) { vec![absent(key)] } else { found }
    }

    /// An item of a sum, what its count hangs on, and what stands behind the amount of one.
    fn item(&mut self, item: Item, depth: usize) -> Derivation {
        let mut inputs = Vec::new();
        if depth > 0 {
            let records = self.catalog.records();
            for (folder, id, field) in &item.fields {
                let record = records.iter().find(|record| record.folder == *folder && record.id == id);
                let figures = record.into_iter().flat_map(|record| record.figures(&self.rates));
                inputs.extend(figures.filter(|figure| figure.field == *field).map(|figure| known(id, figure)));
            }
            let none = |input: &str| metric(input).and_then(|of| of.value(self.evaluation)).is_some_and(is_nothing);
            let counts = item.inputs.into_iter().filter(|input| !none(input)).collect::<Vec<_>>();
            inputs.extend(counts.into_iter().flat_map(|input| self.input(input, depth - 1)));
        }
        Derivation {
            key: item.name,
            text: item.text,
            value: Some(item.value),
            origin: item.origin,
            inputs,
            ..Derivation::default()
        }
    }

    /// Whether limits are kept or not whatever a latency is, because it has none.
    fn is_unbound(&self, of: &Metric, input: &str) -> bool {
        let latency = input.strip_prefix("serving.").and_then(|name| name.strip_suffix("_s"));
        let bound = |latency: &str| {
            let limit = |setting: &Setting| setting.key.strip_prefix("serving.limits.") == Some(latency);
            self.settings.iter().any(limit)
        };
        of.key == "serving.limits_kept" && latency.is_some_and(|latency| !bound(latency))
    }

    /// Whether a key says what agents do where there are none, or what prefixes are kept where agents' sessions are.
    fn is_of_others(&self, key: &str) -> bool {
        let prefixes = ["serving.cache.prefixes", "serving.cache.prefix_tokens", "serving.cache.popularity"];
        match self.evaluation.scenario.agents {
            Some(_) => prefixes.contains(&key),
            None => key.starts_with("agents."),
        }
    }

    /// The scenario's key, or the keys of its table; of the number of accelerators also what says how many of them prefill has
    /// on which nodes of its own, as all that is counted by it hangs on that.
    fn keys(&self, key: &str) -> Vec<Derivation> {
        let within = |setting: &&Setting| {
            crate::provenance::covers(key, setting.key)
                || (key == "cluster.accelerators" && crate::provenance::covers("cluster.prefill", setting.key))
        };
        self.settings.iter().filter(within).map(said).collect()
    }

    /// A field, or the fields of a table, of every entry of a folder that the scenario uses.
    fn fields(&self, folder: &str, field: &str) -> Vec<Derivation> {
        let records = self.catalog.records();
        let used = |id: &str| self.bound.iter().any(|(own, known)| *own == folder && known == id);
        let mut all = Vec::new();
        for record in records.iter().filter(|record| record.folder == folder && used(record.id)) {
            let under = |figure: &Figure| {
                figure.field.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ' ']))
            };
            let mut figures = record.figures(&self.rates);
            figures.retain(under);
            let mine = |figure: &Figure, words: &BTreeSet<String>| {
                let name = figure.field.split_once(' ').map_or("", |(_, name)| name);
                words.contains(name) || figure.field.split('.').any(|word| words.contains(word))
            };
            let telling = self.words.iter().find(|words| figures.iter().any(|figure| mine(figure, words)));
            figures.retain(|figure| telling.is_none_or(|words| mine(figure, words)));
            let more = figures.len().saturating_sub(MOST);
            all.extend(figures.into_iter().take(MOST).map(|figure| known(record.id, figure)));
            if more > 0 {
                all.push(Derivation {
                    key: format!("{}.{field}", record.id),
                    text: format!("{more} more"),
                    origin: format!("`clusterplan catalog show {}`", record.id),
                    ..Derivation::default()
                });
            }
        }
        all
    }
}

/// An input that the scenario does without.
fn absent(key: &str) -> Derivation {
    Derivation {
        key: key.to_owned(),
        text: "none".to_owned(),
        origin: "not in this scenario".to_owned(),
        ..Derivation::default()
    }
}

fn said(setting: &Setting) -> Derivation {
    let origin = match setting.origin {
        Origin::Given => "said by the scenario",
        Origin::Default => "by default",
        Origin::Book => "by the price book",
        Origin::Found => "found by the search",
        Origin::Agents => "by the tasks of the agents",
        Origin::Tenants => "by the requests of the tenants",
    };
    Derivation {
        key: setting.key.to_owned(),
        text: setting.value.clone(),
        origin: origin.to_owned(),
        ..Derivation::default()
    }
}

fn known(id: &str, figure: Figure) -> Derivation {
    let date = figure.date.map(|date| format!(", {date}")).unwrap_or_default();
    Derivation {
        key: format!("{id}.{}", figure.field),
        text: figure.dollars.map_or(figure.text.clone(), |dollars| format!("{} ({dollars})", figure.text)),
        origin: format!("{}{date}: {}", figure.basis, figure.title),
        url: figure.url,
        ..Derivation::default()
    }
}

/// Entries that the scenario uses, as (folder, id).
fn bound(evaluation: &Evaluation) -> Vec<(&'static str, String)> {
    let scenario = &evaluation.scenario;
    let cluster = &scenario.cluster;
    let fabric = &cluster.fabric;
    let mut all =
        vec![("accelerators", &cluster.accelerator.id), ("nodes", &cluster.node.id), ("nics", &fabric.nic.id)];
    all.extend(cluster.prefill.iter().flat_map(|own| [("accelerators", &own.accelerator.id), ("nodes", &own.node.id)]));
    all.extend(fabric.switches.iter().map(|switch| ("switches", &switch.id)));
    all.extend(evaluation.built.parts.iter().map(|part| ("optics", &part.id)));
    all.extend(cluster.networks.iter().map(|network| ("networks", &network.entry.id)));
    if let Some(training) = &scenario.training {
        all.extend([
            ("models", &training.model.id),
            ("efficiency/training", &training.efficiency_source.id),
            ("efficiency/memory", &training.memory.id),
            ("data", &training.data_preparation.id),
        ]);
        all.extend(training.host_memory.iter().map(|tier| ("memory_tiers", &tier.id)));
    }
    if let Some(serving) = &scenario.serving {
        all.extend([
            ("models", &serving.entry.id),
            ("efficiency/serving", &serving.efficiency.id),
            ("efficiency/memory", &serving.memory.id),
        ]);
        let caching = serving.cache.iter().flat_map(|caching| &caching.tiers);
        all.extend(caching.map(|tier| ("memory_tiers", &tier.entry.id)));
        all.extend(serving.features.adapters.iter().map(|adapters| ("memory_tiers", &adapters.tier.id)));
    }
    let all = all.into_iter().map(|(folder, id)| (folder, id.as_str()));
    all.chain(cluster.entries()).map(|(folder, id)| (folder, id.to_owned())).collect()
}

/// Names of the scenario's by which tables and lists of the catalog are keyed: of parts and software, then of number formats.
fn words(evaluation: &Evaluation) -> [BTreeSet<String>; 2] {
    let scenario = &evaluation.scenario;
    let cluster = &scenario.cluster;
    let of_kind =
        |nodes: NodeGroup<'_>| [&nodes.accelerator.generation, &nodes.node.id, &nodes.accelerator.id].map(Clone::clone);
    let mut words: BTreeSet<String> = cluster.kinds_of_nodes().flat_map(of_kind).collect();
    words.extend(evaluation.built.parts.iter().map(|part| part.id.clone()));
    words.extend(evaluation.built.costs.lines.iter().map(|line| line.name.clone()));
    words.extend(scenario.training.iter().map(|training| training.software.framework.to_string()));
    words.extend(scenario.serving.iter().map(|serving| serving.engine.to_string()));
    let trained = scenario.training.iter().map(|training| training.job.precision.to_string());
    let served = scenario.serving.iter().map(|serving| serving.weights.to_string());
    [words, trained.chain(served).collect()]
}

/// The tree for people.
pub fn derivation_page(of: &Metric, tree: &Derivation, title: &str) -> Page {
    let mut grid = Grid::new(&["Figure", "Value", "How it comes about"], 3);
    rows(tree, 0, &mut grid, &mut |own, depth| {
        let name = if own.label.is_empty() { &own.key } else { own.label };
        vec![format!("{}{name}", "  ".repeat(depth)), own.text.clone(), own.origin.clone()]
    });
    let head = Section::new("", Block::Text(format!("{}: {}", of.key, of.description)));
    Page { title: title.to_owned(), sections: vec![head, Section::new("", Block::Grid(grid))] }
}

/// The same in rows for spreadsheets.
pub fn derivation_grid(tree: &Derivation) -> Grid {
    let mut grid = Grid::new(&["depth_count", "key", "value", "text", "origin", "url"], 6);
    rows(tree, 0, &mut grid, &mut |own, depth| {
        let value = own.value.map(|value| value.to_string()).unwrap_or_default();
        let url = own.url.clone().unwrap_or_default();
        vec![depth.to_string(), own.key.clone(), value, own.text.clone(), own.origin.clone(), url]
    });
    grid
}

fn rows(tree: &Derivation, depth: usize, grid: &mut Grid, row: &mut impl FnMut(&Derivation, usize) -> Vec<String>) {
    grid.rows.push(row(tree, depth));
    for input in &tree.inputs {
        rows(input, depth + 1, grid, row);
    }
}

/// The same for programs, inputs within what is computed from them.
pub fn derivation_json(tree: &Derivation) -> Json {
    let mut object = Map::new();
    object.insert("key".to_owned(), tree.key.clone().into());
    if !tree.label.is_empty() {
        object.insert("label".to_owned(), tree.label.into());
    }
    if let Some(value) = tree.value {
        object.insert("value".to_owned(), value.into());
    }
    object.insert("text".to_owned(), tree.text.clone().into());
    object.insert("origin".to_owned(), tree.origin.clone().into());
    object.extend(tree.url.iter().map(|url| ("url".to_owned(), url.clone().into())));
    if !tree.inputs.is_empty() {
        object.insert("inputs".to_owned(), tree.inputs.iter().map(derivation_json).collect());
    }
    Json::Object(object)
}
