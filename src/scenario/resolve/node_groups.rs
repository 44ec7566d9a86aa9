//! Nodes of two kinds in one cluster: prefill's own, and all others.

use std::sync::Arc;

use super::fits::{check_adapter, check_priced, check_wires};
use super::side_networks::check_storage_ports;
use super::{BoundFabric, BoundSideNetwork, Cluster, TopologyChoice};
use crate::catalog::collective_efficiency::CollectiveEfficiency;
use crate::catalog::fabric::Transport;
use crate::catalog::{Accelerator, Catalog, Entry, Node, PriceBook, Reference};
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::scenario::file::{ClusterFile, PrefillFile, ScenarioFile};

/// Nodes of a kind that prefill has to itself.
#[derive(Clone, Debug)]
pub struct PrefillNodes {
    /// The node.
    pub node: Arc<Entry<Node>>,
    /// Its accelerator.
    pub accelerator: Arc<Entry<Accelerator>>,
    /// Of the cluster's accelerators at work, those on such nodes.
    pub accelerators: u32,
}

/// Nodes of one kind, and how many of their accelerators are at work.
#[derive(Clone, Copy, Debug)]
pub struct NodeGroup<'a> {
    /// The node.
    pub node: &'a Arc<Entry<Node>>,
    /// Its accelerator.
    pub accelerator: &'a Arc<Entry<Accelerator>>,
    /// Accelerators at work.
    pub accelerators: u32,
    /// What part of the cluster's accelerators they are.
    pub share: GroupShare,
}

/// What part of a cluster's accelerators nodes of one kind have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupShare {
    /// All.
    All,
    /// All but so many, which prefill has on nodes of its own.
    Beside(u32),
    /// Those that prefill has on nodes of its own.
    Prefill,
}

impl Cluster {
    /// The nodes of the cluster's own kind: all but those that prefill has to itself.
    pub fn main_nodes(&self) -> NodeGroup<'_> {
        let apart = self.prefill.as_ref().map(|own| own.accelerators);
        let accelerators = self.accelerators.saturating_sub(apart.unwrap_or(0));
        let share = apart.map_or(GroupShare::All, GroupShare::Beside);
        NodeGroup { node: &self.node, accelerator: &self.accelerator, accelerators, share }
    }

    /// The nodes that prefill has to itself, where they are of another kind.
    pub fn own_nodes_of_prefill(&self) -> Option<NodeGroup<'_>> {
        let own = self.prefill.as_ref()?;
        let PrefillNodes { node, accelerator, accelerators } = own;
        Some(NodeGroup { node, accelerator, accelerators: *accelerators, share: GroupShare::Prefill })
    }

    /// Whether prefill has nodes to itself that are of the same kind as all others.
    pub fn prefill_is_of_main_kind(&self) -> bool {
        self.prefill.as_ref().is_some_and(|own| own.node.id == self.node.id)
    }

    /// The nodes that take prompts in.
    pub fn nodes_of_prefill(&self) -> NodeGroup<'_> {
        self.own_nodes_of_prefill().unwrap_or_else(|| self.main_nodes())
    }

    /// The same with so many accelerators at work, so many of them on prefill's own nodes where it has any.
    #[must_use]
    pub fn with_accelerators(&self, accelerators: u32, of_prefill: u32) -> Self {
        let prefill = self.prefill.as_ref().map(|own| PrefillNodes { accelerators: of_prefill, ..own.clone() });
        Self { accelerators, prefill, ..self.clone() }
    }

    /// All kinds of nodes, the cluster's own first.
    pub fn kinds_of_nodes(&self) -> impl Iterator<Item = NodeGroup<'_>> {
        std::iter::once(self.main_nodes()).chain(self.own_nodes_of_prefill())
    }
}

/// What else of the cluster prefill's nodes have to fit.
pub(super) struct Beside<'a> {
    pub(super) node: Option<&'a Entry<Node>>,
    pub(super) fabric: Option<&'a BoundFabric>,
    pub(super) topology: Option<&'a TopologyChoice>,
    pub(super) networks: &'a [BoundSideNetwork],
    pub(super) prices: Option<&'a Entry<PriceBook>>,
    pub(super) collectives: Option<&'a CollectiveEfficiency>,
}

/// Finds prefill's own nodes; what is missing, or does not go with the rest, is reported.
pub(super) fn bind(
    file: &ScenarioFile,
    wanted: &PrefillFile,
    beside: &Beside<'_>,
    catalog: &Catalog,
    sink: &Sink,
) -> Option<PrefillNodes> {
    check_use(file, wanted, sink);
    let ClusterFile { accelerators, fabric: fabric_at, prices: prices_at, .. } = &file.cluster;
    if wanted.accelerators >= *accelerators && *accelerators > 0 {
        let message =
            format!("{} of {accelerators} accelerators for prefill leave none to decode", wanted.accelerators);
        let hint = "cluster.accelerators counts all at work, those of prefill among them";
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.accelerators_at, "these").hint(hint));
    }
    let node = catalog.nodes.find(&wanted.node, &wanted.node.at, sink)?;
    let accelerator = catalog.accelerators.find(&node.accelerator, &node.accelerator.at, sink);
    if let Some(fabric) = beside.fabric {
        check_adapter(&node, fabric, (&wanted.node.at, "this node"), sink);
        if let Some(set) = beside.collectives {
            check_wires(set, &node, fabric, &wanted.node, fabric_at, sink);
        }
        if fabric.entry.transport == Transport::Ici {
            refuse(wanted, sink, "links between neighbours join nodes of one kind", "leave cluster.prefill out");
        }
    }
    if let Some(topology) = beside.topology
        && let (Some(pod), Some(main)) = (topology.pod, beside.node)
    {
        check_pod(pod, main, &node, &wanted.node, sink);
    }
    for network in beside.networks {
        let hint = "all hosts share one network towards storage: cluster.networks.storage = \"none\" leaves it out";
        check_storage_ports(&network.entry, &node, &wanted.node, hint, sink);
    }
    if let Some(prices) = beside.prices {
        check_priced(vec![&node.id], prices, &prices_at.at, sink);
    }
    if let Some(other) = beside.node {
        check_cards(other, &node, &wanted.node, sink);
    }
    Some(PrefillNodes { node, accelerator: accelerator?, accelerators: wanted.accelerators })
}

/// A pod of so many accelerators has as many ports whichever nodes it is of, and is whole nodes of either kind.
fn check_pod(pod: u32, main: &Entry<Node>, own: &Entry<Node>, at: &Reference, sink: &Sink) {
    let cards = |node: &Entry<Node>| u64::from(node.hosts()) * u64::from(node.cards_of_host());
    let refuse = |message: String, hint: &str| {
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&at.at, "this node").hint(hint));
    };
    if cards(main) * u64::from(own.accelerators) != cards(own) * u64::from(main.accelerators) {
        let message = format!(
            "a pod of {pod} accelerators has another number of network cards with `{}` ({} for {}) than with `{}` ({} for {})",
            main.id,
            cards(main),
            main.accelerators,
            own.id,
            cards(own),
            own.accelerators
        );
        refuse(message, "leave cluster.topology.pod out, or choose a node with as many cards for each accelerator");
    } else if !pod.is_multiple_of(own.accelerators) {
        let message =
            format!("a pod of {pod} accelerators is no number of whole nodes of {}, `{}`", own.accelerators, own.id);
        refuse(message, "choose a cluster.topology.pod that both kinds of nodes divide");
    }
}

/// Hosts of both kinds share leaves in parts of as many cards as divide both; each such part has as many accelerators.
fn check_cards(main: &Entry<Node>, own: &Entry<Node>, at: &Reference, sink: &Sink) {
    let part = common(main.cards_of_host(), own.cards_of_host());
    for node in [main, own] {
        let parts = node.cards_of_host() / part;
        if !node.accelerators_per_tray.is_multiple_of(parts) {
            let message = format!(
                "a host of `{}` has {} cards and {} accelerators, which do not go over {parts} parts of {part} cards as hosts of both kinds share leaves",
                node.id,
                node.cards_of_host(),
                node.accelerators_per_tray
            );
            let hint = "choose nodes whose hosts have as many cards each, or twice as many";
            sink.push(Diagnostic::new(Code::Inconsistent, message).at(&at.at, "this node").hint(hint));
        }
    }
}

/// The largest number that divides both.
pub const fn common(one: u32, other: u32) -> u32 {
    if other == 0 { one } else { common(other, one % other) }
}

/// Reports uses of two kinds of nodes that mean nothing, or are not modelled.
fn check_use(file: &ScenarioFile, wanted: &PrefillFile, sink: &Sink) {
    if file.training.is_some() {
        refuse(wanted, sink, "a training job runs on nodes of one kind", "leave cluster.prefill out, or [training]");
    }
    let Some(serving) = &file.serving else {
        if file.training.is_none() {
            refuse(
                wanted,
                sink,
                "nodes for prefill, and nothing is served",
                "add [serving], or leave cluster.prefill out",
            );
        }
        return;
    };
    let layout = &serving.layout;
    if layout.prefill.is_none() && !layout.search {
        let hint = "use serving.layout = \"auto\", or { prefill = {...}, decode = {...} }";
        refuse(wanted, sink, "nodes for prefill, and prefill has no pool of its own", hint);
    }
    if layout.prefill_accelerators.is_some() {
        let hint = "leave serving.layout.prefill_accelerators out: cluster.prefill.accelerators says it";
        refuse(wanted, sink, "how many accelerators prefill has is said twice", hint);
    }
    if serving.features.slice.is_some() {
        let message = "nodes of prefill's own hand caches over to whole accelerators: MIG slices have no links, all parts of one share its network card, and each holds the weights again, in memory that decode would gain by";
        let hint = "leave cluster.prefill out, so that each part prefills and decodes; or leave serving.slice out, and give decode whole accelerators";
        refuse(wanted, sink, message, hint);
    }
}

fn refuse(wanted: &PrefillFile, sink: &Sink, message: &str, hint: &str) {
    let at: &Span = &wanted.at;
    sink.push(Diagnostic::new(Code::Inconsistent, message.to_owned()).at(at, "asked for here").hint(hint));
}
