//! `[plan]`: what is wanted of a cluster, and what may be chosen.

use super::cluster::TopologyKind;
use super::varied::named_once;
use crate::catalog::Reference;
use crate::diagnostics::{Code, Diagnostic, Sink, did_you_mean};
use crate::document::{Entry, FromNode, Node, Reader, Schema, Value, choices};
use crate::units::{Seconds, Usd, Watts};

choices! {
    /// What is to be as little as can be.
    pub enum Minimise {
        /// Money over the horizon.
        Cost = "cost",
        /// Time of the work.
        Time = "time",
        /// Accelerators at work.
        Accelerators = "accelerators",
        /// Power of the facility.
        Power = "power",
    }
}

/// `[plan]`
#[derive(Clone, Debug, Default)]
pub struct PlanFile {
    /// What is minimised.
    pub minimise: Option<Minimise>,
    /// What the answer must keep to.
    pub limits: PlanLimits,
    /// Nodes to choose from; the scenario's where none are named.
    pub nodes: Option<Choice>,
    /// Nodes that prefill may have to itself, to choose from beside sharing those that decode.
    pub prefill_nodes: Option<Choice>,
    /// Fabrics to choose from.
    pub fabrics: Option<Choice>,
    /// The number of accelerators, which serving always chooses.
    pub accelerators: Option<Counts>,
    /// Keys of the network's topology, with the values to choose from.
    pub topology: Vec<(String, Vec<Node>)>,
}

/// Numbers of accelerators to choose from.
#[derive(Clone, Debug, PartialEq)]
pub enum Counts {
    /// Powers of two and once and a half as many.
    Auto,
    /// These.
    Of(Vec<Node>),
}

/// `plan.limits`
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlanLimits {
    /// Time of the work.
    pub deadline: Option<Seconds>,
    /// Money: the cost of a training run, its part of owning the cluster; of serving all that is paid over the horizon.
    pub budget: Option<Usd>,
    /// Power of the facility.
    pub power: Option<Watts>,
}

/// Parts to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// All that the catalog has.
    Any,
    /// These.
    Of(Vec<Reference>),
}

/// The keys that a plan may vary.
const VARIED: [&str; 7] = [
    "cluster.node",
    "cluster.prefill.node",
    "cluster.fabric",
    "cluster.accelerators",
    "cluster.topology",
    "cluster.topology.kind",
    "cluster.topology.oversubscription",
];

impl PlanFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let mut read = Self {
            minimise: r.about("what is to be as little as can be").usually("\"cost\"").optional("minimise"),
            limits: r
                .about("what the answer keeps to")
                .usually("none")
                .optional_table("limits", PlanLimits::read)
                .unwrap_or_default(),
            ..Self::default()
        };
        let Some(node) = r.about("keys that may be chosen, each with a list of values: cluster.node, cluster.prefill.node and cluster.fabric (or \"any\"), cluster.accelerators (or \"auto\"), cluster.topology, its kind and its oversubscription").node_of("vary", || Schema::Keyed(Box::default())) else { return read };
        let Value::Table(table) = &node.value else {
            node.wrong_type("plan.vary", "a table of keys, each with its choices", r.sink());
            return read;
        };
        for entry in &table.entries {
            match entry.key.as_str() {
                "cluster.node" => read.nodes = Some(choice(&entry.node, &entry.key, r.sink())),
                "cluster.prefill.node" => read.prefill_nodes = Some(choice(&entry.node, &entry.key, r.sink())),
                "cluster.fabric" => read.fabrics = Some(choice(&entry.node, &entry.key, r.sink())),
                "cluster.accelerators" => read.accelerators = Some(counts(&entry.node, r.sink())),
                key @ ("cluster.topology" | "cluster.topology.kind" | "cluster.topology.oversubscription") => {
                    read.topology.push((key.to_owned(), topologies(&entry.node, key, r.sink())));
                }
                key => {
                    let message = format!("`{key}` is nothing that a plan varies");
                    let hint = did_you_mean(key, VARIED).map_or_else(
                        || format!("it may vary {}", VARIED.map(|key| format!("\"{key}\"")).join(", ")),
                        |near| format!("did you mean \"{near}\"?"),
                    );
                    r.sink().push(Diagnostic::new(Code::UnknownKey, message).at(&entry.at, "here").hint(hint));
                }
            }
        }
        if let Some(place) = table.entries.iter().position(|entry| entry.key == "cluster.topology") {
            lost_parts(&table.entries, place, r.sink());
        }
        read
    }
}

/// Reports parts of the topology that are varied beside tables of it, and do not count in all of these: a table that is set
/// after a part replaces it, and a part that is set after a table that has it does so the other way.
fn lost_parts(varied: &[Entry], place: usize, sink: &Sink) {
    let at = &varied[place].at;
    let tables: &[Node] = if let Value::Array(tables) = &varied[place].node.value { tables } else { &[] };
    for (own, entry) in varied.iter().enumerate() {
        let Some(part) = entry.key.strip_prefix("cluster.topology.") else { continue };
        let has = |table: &Node| table.as_table().is_some_and(|table| table.get(part).is_some());
        if own < place || tables.iter().any(has) {
            let message = format!("`{}` is varied, and `cluster.topology` with it", entry.key);
            let hint = "only the later would count: write all of it into the tables of cluster.topology";
            let diagnostic = Diagnostic::new(Code::Duplicate, message).at(&entry.at, "a part of it");
            sink.push(diagnostic.at(at, "the whole of it").hint(hint));
        }
    }
}

impl PlanLimits {
    fn read(r: &mut Reader<'_>) -> Self {
        Self {
            deadline: above_zero(r.about("time of the work at most").such_as("60 days"), "deadline", &Seconds::ZERO),
            budget: above_zero(r.about("money at most: cost of a training run (cost.usd_per_run), its part of owning the cluster; where it serves, capex and opex over the horizon (cost.total_usd)").such_as("$50M"), "budget", &Usd::ZERO),
            power: above_zero(r.about("power of the facility at most").such_as("20 MW"), "power", &Watts::ZERO),
        }
    }
}

/// What there is of something, which is more than nothing.
fn above_zero<T: FromNode + PartialOrd>(r: &mut Reader<'_>, key: &'static str, zero: &T) -> Option<T> {
    let before = r.sink().len();
    let value: Option<T> = r.optional(key);
    if r.sink().len() == before && value.as_ref().is_some_and(|value| value <= zero) {
        let message = format!("`{}` is not above zero", r.path_of(key));
        r.report(key, Code::OutOfRange, message, "more than zero is needed; leave it out for no limit");
    }
    value
}

fn choice(node: &Node, key: &str, sink: &Sink) -> Choice {
    let path = format!("plan.vary.{key}");
    match &node.value {
        Value::String(word) if word == "any" => Choice::Any,
        Value::Array(items) if !items.is_empty() => {
            named_once(items, &path, sink);
            Choice::Of(items.iter().map(|item| Reference::from_node(item, &path, sink)).collect())
        }
        _ => {
            node.wrong_type(&path, "\"any\" or a list of ids", sink);
            Choice::Any
        }
    }
}

fn counts(node: &Node, sink: &Sink) -> Counts {
    match &node.value {
        Value::String(word) if word == "auto" => Counts::Auto,
        Value::Array(items) if !items.is_empty() => Counts::Of(items.clone()),
        _ => {
            node.wrong_type("plan.vary.cluster.accelerators", "\"auto\" or a list of numbers", sink);
            Counts::Auto
        }
    }
}

/// Values of a topology's key; what they may be is checked as the scenario's are. "any" are all kinds.
fn topologies(node: &Node, key: &str, sink: &Sink) -> Vec<Node> {
    match &node.value {
        Value::String(word) if word == "any" && key == "cluster.topology.kind" => TopologyKind::ALL
            .iter()
            .map(|kind| Node { value: Value::String(kind.word().to_owned()), at: node.at.clone() })
            .collect(),
        Value::Array(items) if !items.is_empty() => {
            named_once(items, &format!("plan.vary.{key}"), sink);
            items.clone()
        }
        _ => {
            let any = if key == "cluster.topology.kind" { "\"any\" or " } else { "" };
            node.wrong_type(&format!("plan.vary.{key}"), &format!("{any}a list of values"), sink);
            Vec::new()
        }
    }
}
