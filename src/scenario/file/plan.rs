//! `[plan]`: what is wanted of a cluster, and what may be chosen.

use crate::catalog::Reference;
use crate::diagnostics::{Code, Diagnostic, Sink, did_you_mean};
use crate::document::{FromNode, Node, Reader, Value, choices};
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
    /// Fabrics to choose from.
    pub fabrics: Option<Choice>,
    /// Whether training may choose the number of accelerators; serving always does.
    pub accelerators: bool,
}

/// `plan.limits`
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlanLimits {
    /// Time of the work.
    pub deadline: Option<Seconds>,
    /// Money over the horizon.
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
const VARIED: [&str; 3] = ["cluster.node", "cluster.fabric", "cluster.accelerators"];

impl PlanFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let mut read = Self {
            minimise: r.optional("minimise"),
            limits: r.optional_table("limits", PlanLimits::read).unwrap_or_default(),
            ..Self::default()
        };
        let Some(node) = r.node("vary") else { return read };
        let Value::Table(table) = &node.value else {
            node.wrong_type("plan.vary", "a table of keys, each with its choices", r.sink());
            return read;
        };
        for entry in &table.entries {
            match entry.key.as_str() {
                "cluster.node" => read.nodes = Some(choice(&entry.node, &entry.key, r.sink())),
                "cluster.fabric" => read.fabrics = Some(choice(&entry.node, &entry.key, r.sink())),
                "cluster.accelerators" => {
                    read.accelerators = true;
                    if entry.node.as_str() != Some("auto") {
                        entry.node.wrong_type("plan.vary.cluster.accelerators", "\"auto\"", r.sink());
                    }
                }
                key => {
                    let message = format!("`{key}` is nothing that a plan varies");
                    let hint = did_you_mean(key, VARIED).map_or_else(
                        || "it may vary \"cluster.node\", \"cluster.fabric\" and \"cluster.accelerators\"".to_owned(),
                        |near| format!("did you mean \"{near}\"?"),
                    );
                    r.sink().push(Diagnostic::new(Code::UnknownKey, message).at(&entry.at, "here").hint(hint));
                }
            }
        }
        read
    }
}

impl PlanLimits {
    fn read(r: &mut Reader<'_>) -> Self {
        Self { deadline: r.optional("deadline"), budget: r.optional("budget"), power: r.optional("power") }
    }
}

fn choice(node: &Node, key: &str, sink: &Sink) -> Choice {
    let path = format!("plan.vary.{key}");
    match &node.value {
        Value::String(word) if word == "any" => Choice::Any,
        Value::Array(items) if !items.is_empty() => {
            Choice::Of(items.iter().map(|item| Reference::from_node(item, &path, sink)).collect())
        }
        _ => {
            node.wrong_type(&path, "\"any\" or a list of ids", sink);
            Choice::Any
        }
    }
}
