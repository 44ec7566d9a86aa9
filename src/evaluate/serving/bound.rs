//! What serving with a layout depends on but the requests, bound once: arithmetic, accelerators, the network between ranks and
//! pools.

use super::between::Between;
use super::domains::Domains;
use super::engine::Shapes;
use super::joined::{Networks, joined};
use super::{Bands, ServingPoint, slices};
use crate::evaluate::Infeasible;
use crate::evaluate::network::Occupancy;
use crate::inference::Hardware;
use crate::scenario::{Cluster, Serving};

/// All that is bound.
#[derive(Clone, Debug)]
pub(in crate::evaluate) struct BoundServing {
    shapes: Shapes,
    bands: [Option<Bands>; 2],
    joined: Joined,
    /// The same on fewer nodes, those that pools fill, by how many accelerators these have; none where nothing can be built of
    /// them.
    fewer: Vec<(u32, Option<(Cluster, Joined)>)>,
}

/// Engines as they are joined.
#[derive(Clone, Copy, Debug)]
struct Joined {
    decode: Hardware,
    prefill: Option<Hardware>,
    between: Option<Between>,
}

/// What an answer is worked out with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound<'a> {
    pub(super) shapes: &'a Shapes,
    /// The accelerator of a replica, of decode where prefill has a pool.
    pub(super) decode: &'a Hardware,
    /// That of a prefill worker.
    pub(super) prefill: &'a Hardware,
    /// What is between pools, where there are any.
    pub(super) between: Option<&'a Between>,
    /// How far figures may be off, without end and with requests that come.
    pub(super) bands: &'a [Option<Bands>; 2],
}

impl BoundServing {
    /// Binds it. Nodes that replicas without pools leave idle are not joined to the others.
    ///
    /// # Errors
    /// When constants are missing, or the ranks' network cannot be built.
    pub(in crate::evaluate) fn new(serving: &Serving, cluster: &Cluster) -> Result<Self, Infeasible> {
        let filled = filled_by_replicas(serving, cluster).map(|nodes| cluster.with_accelerators(nodes, 0));
        let filled = filled.and_then(|fewer| Joined::new(serving, &fewer).ok());
        let joined = filled.map_or_else(|| Joined::new(serving, cluster), Ok)?;
        let shapes = Shapes::new(serving);
        let bands = [false, true].map(|coming| Bands::new(serving, cluster, shapes.model.architecture(), coming));
        Ok(Self { shapes, bands, joined, fewer: Vec::new() })
    }

    /// On all nodes.
    pub(super) fn on_all(&self) -> Bound<'_> {
        self.with(&self.joined)
    }

    /// On the nodes that pools fill which came to `point`, and those nodes of a cluster; none where they fill all that it was
    /// worked out on, or no network can be built of fewer.
    pub(super) fn on_filled(
        &mut self,
        serving: &Serving,
        cluster: &Cluster,
        point: &ServingPoint,
    ) -> Option<(Bound<'_>, &Cluster)> {
        let nodes = filled_by_pools(serving, cluster, point)?;
        let known = self.fewer.iter().position(|(of, _)| *of == nodes).unwrap_or_else(|| {
            let fewer = cluster.with_accelerators(nodes, 0);
            let joined = Joined::new(serving, &fewer).ok();
            self.fewer.push((nodes, joined.map(|joined| (fewer, joined))));
            self.fewer.len() - 1
        });
        let (_, fewer) = &self.fewer[known];
        fewer.as_ref().map(|(cluster, joined)| (self.with(joined), cluster))
    }

    fn with<'a>(&'a self, joined: &'a Joined) -> Bound<'a> {
        let Joined { decode, prefill, between } = joined;
        let (shapes, bands) = (&self.shapes, &self.bands);
        Bound { shapes, decode, prefill: prefill.as_ref().unwrap_or(decode), between: between.as_ref(), bands }
    }
}

impl Joined {
    fn new(serving: &Serving, cluster: &Cluster) -> Result<Self, Infeasible> {
        let mut networks = Networks::of(cluster);
        let decode = joined(serving.layout, serving, cluster.main_nodes(), &mut networks)?;
        let mut of_prefill = |layout| joined(layout, serving, cluster.nodes_of_prefill(), &mut networks);
        let prefill = serving.prefill.map(|pool| of_prefill(pool.layout)).transpose()?;
        let between = serving.prefill.map(|pool| Between::new(serving, &pool, &mut networks)).transpose()?;
        Ok(Self { decode, prefill, between })
    }
}

/// Accelerators of the fewest nodes that hold as many replicas as all do, where that is fewer. The others idle: they need not be
/// joined, and the network is that of as many nodes as are, so that more accelerators never serve less.
fn filled_by_replicas(serving: &Serving, cluster: &Cluster) -> Option<u32> {
    if serving.prefill.is_some() || !serving.left_over {
        return None;
    }
    let parts = slices(serving, serving.layout).ok()?;
    let all = Domains::new(cluster.main_nodes(), true, parts).ok()?;
    let replicas = all.whole(serving.layout);
    fewer(cluster, parts, |nodes| nodes.whole(serving.layout) >= replicas)
}

/// The same of the pools of an answer, on nodes that both share.
fn filled_by_pools(serving: &Serving, cluster: &Cluster, point: &ServingPoint) -> Option<u32> {
    let (pool, prefill) = (point.pool?, serving.prefill?);
    if cluster.prefill.is_some() || point.left_over() == 0 {
        return None;
    }
    let replicas = point.replicas + point.spares;
    let filled =
        fewer(cluster, point.slices, |nodes| nodes.holds(serving.layout, replicas, prefill.layout, pool.workers));
    filled.filter(|nodes| u64::from(*nodes) < point.accelerators)
}

/// The fewest nodes that hold something, where fewer than all do: their accelerators, each of so many parts.
fn fewer(cluster: &Cluster, parts: u32, holds: impl Fn(&Domains) -> bool) -> Option<u32> {
    let Occupancy { nodes, each } = Occupancy::of(cluster.main_nodes()).ok()?;
    let all = Domains::new(cluster.main_nodes(), true, parts).ok()?;
    let (mut few, mut enough) = (0, nodes);
    while enough - few > 1 {
        let middle = few + (enough - few) / 2;
        if holds(&all.on(u64::from(middle) * u64::from(each) * u64::from(parts))) {
            enough = middle;
        } else {
            few = middle;
        }
    }
    (enough < nodes).then_some(enough * each)
}
