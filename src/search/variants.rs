//! What a plan of serving chooses among: the scenario on every node, fabric and topology that is wanted.

use crate::catalog::{Catalog, Reference};
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{Node, Value};
use crate::scenario::{Choice, Counts, PlanFile, Scenario, ScenarioFile};

/// The scenario on every node, fabric, topology and node of prefill's own that may be chosen; an error where they do not go
/// together.
pub(super) fn variants(
    document: &Node,
    wanted: &PlanFile,
    catalog: &Catalog,
    scenario: &Scenario,
    sink: &Sink,
) -> Vec<Result<Scenario, String>> {
    let all_nodes = || catalog.nodes.iter().map(|node| node.id.clone()).collect();
    let nodes = choices(wanted.nodes.as_ref(), &scenario.cluster.node.id, all_nodes);
    let all_fabrics = || catalog.fabrics.iter().map(|fabric| fabric.id.clone()).collect();
    let fabrics = choices(wanted.fabrics.as_ref(), &scenario.cluster.fabric.entry.id, all_fabrics);
    let topologies = topologies(document, wanted, catalog, sink);
    // Nodes that prefill may have to itself; none, where it shares those that decode.
    let apart: Vec<Option<Reference>> = match (&wanted.prefill_nodes, &scenario.cluster.prefill) {
        (Some(choice), _) => {
            [None].into_iter().chain(choices(Some(choice), "", all_nodes).into_iter().map(Some)).collect()
        }
        (None, Some(own)) => vec![Some(Reference { id: own.node.id.clone(), ..Reference::default() })],
        (None, None) => vec![None],
    };
    let mut variants = Vec::new();
    for node in &nodes {
        let Some(known) = catalog.nodes.find(node, &node.at, sink) else { continue };
        for fabric in &fabrics {
            if catalog.fabrics.find(fabric, &fabric.at, sink).is_none() {
                continue;
            }
            for prefill in &apart {
                // The same nodes are shared, where that may be.
                if wanted.prefill_nodes.is_some() && prefill.as_ref().is_some_and(|prefill| prefill.id == node.id) {
                    continue;
                }
                let own = match prefill.as_ref().map(|prefill| catalog.nodes.find(prefill, &prefill.at, sink)) {
                    Some(None) => continue,
                    Some(own) => own,
                    None => None,
                };
                let own = own.as_ref().map(|own| (own.id.as_str(), own.accelerators));
                let chosen = chosen(document, (&node.id, known.accelerators), &fabric.id, own);
                for topology in &topologies {
                    let of_topology = topology.iter().map(|(key, value)| (*key, (*value).clone()));
                    let Ok(document) = with(&without_prefill(document), chosen.iter().cloned().chain(of_topology))
                    else {
                        continue;
                    };
                    let own = Sink::default();
                    let variant = Scenario::resolve(&ScenarioFile::read(&document, &own), catalog, &own);
                    let why = own.into_diagnostics().into_iter().next().map_or_else(String::new, |first| first.message);
                    variants.push(variant.ok_or(why));
                }
            }
        }
    }
    variants
}

/// The ids to choose among.
fn choices(choice: Option<&Choice>, own: &str, all: impl Fn() -> Vec<String>) -> Vec<Reference> {
    match choice {
        None => vec![Reference { id: own.to_owned(), ..Reference::default() }],
        Some(Choice::Of(these)) => these.clone(),
        Some(Choice::Any) => all().into_iter().map(|id| Reference { id, ..Reference::default() }).collect(),
    }
}

/// The settings of one node of a kind on a fabric, and of one of another kind for prefill.
fn chosen(
    document: &Node,
    (node, accelerators): (&str, u32),
    fabric: &str,
    prefill: Option<(&str, u32)>,
) -> Vec<(&'static str, Node)> {
    let leaf = |value: Value| Node { value, at: document.at.clone() };
    let text = |id: &str| leaf(Value::String(id.to_owned()));
    let all = accelerators + prefill.map_or(0, |(_, own)| own);
    let mut settings = vec![
        ("cluster.node", text(node)),
        ("cluster.fabric", text(fabric)),
        ("cluster.accelerators", leaf(Value::Integer(all.into()))),
    ];
    settings.extend(prefill.into_iter().flat_map(|(id, own)| {
        [("cluster.prefill.node", text(id)), ("cluster.prefill.accelerators", leaf(Value::Integer(own.into())))]
    }));
    settings
}

/// A document whose prefill shares the nodes that decode.
fn without_prefill(document: &Node) -> Node {
    let mut document = document.clone();
    if let Value::Table(table) = &mut document.value
        && let Some(Node { value: Value::Table(cluster), .. }) = table.get_mut("cluster")
    {
        cluster.entries.retain(|entry| entry.key != "prefill");
    }
    document
}

/// Numbers of accelerators to choose from, the fewest first; none where any will do.
pub(super) fn counts(wanted: &PlanFile, sink: &Sink) -> Vec<u64> {
    let Some(Counts::Of(nodes)) = &wanted.accelerators else { return Vec::new() };
    let mut counts: Vec<u64> = Vec::new();
    for node in nodes {
        match &node.value {
            Value::Integer(count) if (1..=i64::from(u32::MAX)).contains(count) => counts.push(count.unsigned_abs()),
            _ => node.wrong_type("plan.vary.cluster.accelerators", "a whole number from 1", sink),
        }
    }
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// A document with these settings.
fn with<'a>(document: &Node, settings: impl Iterator<Item = (&'a str, Node)>) -> Result<Node, String> {
    let mut document = document.clone();
    let Value::Table(table) = &mut document.value else { return Ok(document) };
    for (key, value) in settings {
        table.set(key, value).map_err(|error| format!("`{key}` cannot be set: {error}"))?;
    }
    Ok(document)
}

/// Every combination of the topology's keys that may be chosen, one of none where none may; a value that is wrong whatever
/// stands beside it is a mistake.
fn topologies<'a>(
    document: &Node,
    wanted: &'a PlanFile,
    catalog: &Catalog,
    sink: &Sink,
) -> Vec<Vec<(&'a str, &'a Node)>> {
    let mut all: Vec<Vec<(&str, &Node)>> = vec![Vec::new()];
    for (key, values) in &wanted.topology {
        for value in values {
            let own = Sink::default();
            match with(document, std::iter::once((key.as_str(), value.clone()))) {
                Ok(document) => {
                    Scenario::resolve(&ScenarioFile::read(&document, &own), catalog, &own);
                }
                Err(error) => own.push(Diagnostic::new(Code::WrongType, error).at(&value.at, "here")),
            }
            own.into_diagnostics()
                .into_iter()
                .filter(|found| found.code.is_of_value())
                .for_each(|found| sink.push(found));
        }
        let longer = |before: &Vec<(&'a str, &'a Node)>| {
            let before = before.clone();
            let with = move |value| before.iter().copied().chain([(key.as_str(), value)]).collect();
            values.iter().map(with).collect::<Vec<Vec<_>>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}
