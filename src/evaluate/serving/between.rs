//! What is between pools: the links that caches take from prefill workers to decode replicas.

use super::joined::{Networks, cards};
use super::{Infeasible, tokens_up};
use crate::evaluate::step::wires;
use crate::inference::{HandOver, Links};
use crate::memory::serving::{CacheFormats, Pages, ServingLayout, sequence_bytes};
use crate::scenario::{Cluster, Communication, NodeGroup, PrefillPool, Serving};
use crate::topology::Pairs;
use crate::units::{Bandwidth, Seconds};

/// What the network cards of nodes of a kind carry for each accelerator, without headers.
pub(super) fn by_cards(cluster: &Cluster, nodes: NodeGroup<'_>) -> Bandwidth {
    let set = &cluster.collectives;
    let card = wires(set, nodes.node, nodes.accelerator, &cluster.fabric, Communication::USUAL).network;
    card.line_rate * (card.efficiency.payload.get() * cards(nodes.node))
}

/// Links between two pools, bound once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Between {
    links: Links,
    /// What the links of an attention group of a prefill worker carry, and of a decode replica.
    sent: Bandwidth,
    received: Bandwidth,
    pairs: Pairs,
    /// Attention groups of prefill workers, and of decode replicas, behind links that they share.
    sharing: [f64; 2],
    /// What engines take beside.
    fixed: Seconds,
}

impl Between {
    /// Those of a scenario's pools: scale-up links where all of the cluster is one domain, else the network cards of the ranks of an
    /// attention group, and the network that joins nodes anywhere in the cluster.
    ///
    /// # Errors
    /// When that network cannot be built.
    pub(super) fn new(serving: &Serving, pool: &PrefillPool, networks: &mut Networks<'_>) -> Result<Self, Infeasible> {
        let cluster = networks.cluster;
        let near = Self::near(serving, cluster, pool);
        if near.links == Links::ScaleUp {
            return Ok(near);
        }
        let mut end = |nodes: NodeGroup<'_>, layout: ServingLayout| {
            let (reach, _) = networks.reached_from(nodes)?;
            let ranks = layout.tensor.saturating_mul(layout.pipeline);
            let pairs = reach.pairs(ranks);
            Ok::<_, Infeasible>((pairs, (pairs.sharing / f64::from(ranks)).max(1.0)))
        };
        let (receiver, receivers) = end(cluster.main_nodes(), serving.layout)?;
        let (sender, senders) = end(cluster.nodes_of_prefill(), pool.layout)?;
        // The same network, of which the ends take as much as they have cards.
        let pairs = Pairs { lone: sender.lone.max(receiver.lone), all: sender.all.max(receiver.all), ..sender };
        Ok(Self { pairs, sharing: [senders, receivers], ..near })
    }

    /// The same with nothing between the cards.
    pub(super) fn near(serving: &Serving, cluster: &Cluster, pool: &PrefillPool) -> Self {
        let main = cluster.main_nodes();
        let in_one_domain = cluster.prefill.is_none() && cluster.accelerators <= main.node.scale_up.domain;
        let links = if in_one_domain { Links::ScaleUp } else { Links::Cards };
        let end = |nodes: NodeGroup<'_>, layout: ServingLayout| {
            let ranks = f64::from(layout.tensor) * f64::from(layout.pipeline);
            match links {
                Links::ScaleUp => nodes.node.scale_up.bandwidth_per_direction * ranks,
                Links::Cards => by_cards(cluster, nodes) * ranks,
            }
        };
        Self {
            links,
            sent: end(cluster.nodes_of_prefill(), pool.layout),
            received: end(main, serving.layout),
            pairs: Pairs::NEAR,
            sharing: [1.0; 2],
            fixed: serving.efficiency.part.batching.transfer.value,
        }
    }

    /// Handing over the cache of a prompt of so many tokens.
    pub(super) fn hand_over(&self, serving: &Serving, prompt: f64) -> HandOver {
        let formats = CacheFormats::of(&serving.model);
        let tokens = tokens_up(prompt);
        let cache = sequence_bytes(&serving.model, &formats, Pages::BOUND, &ServingLayout::SINGLE, tokens);
        let Self { links, sent, received, pairs, sharing, fixed } = *self;
        HandOver { fixed, sent: cache / sent, received: cache / received, pairs, sharing, links }
    }
}
