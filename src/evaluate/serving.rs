//! Serving on a cluster: replicas of one layout, and what each holds at once.

use super::Infeasible;
use crate::memory::MemoryFootprint;
use crate::memory::serving::{CacheFormats, Engine, ServingLayout, fits};
use crate::scenario::{Cluster, Serving};
use crate::units::Bytes;

/// Figures of serving.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServingPoint {
    /// How a replica is spread.
    pub layout: ServingLayout,
    /// Replicas on the accelerators at work.
    pub replicas: u64,
    /// Memory of an accelerator, the cache's whole pool in it.
    pub memory: MemoryFootprint,
    /// What a process can have of it.
    pub usable: Bytes,
    /// Requests of the asked length that fit at once, in all replicas.
    pub max_concurrency: u64,
}

/// Serving on a cluster's accelerators at work.
///
/// # Errors
/// When the accelerators are no whole number of replicas, or a replica holds no request of the asked length.
pub fn serving_point(serving: &Serving, cluster: &Cluster) -> Result<ServingPoint, Infeasible> {
    let layout = serving.layout;
    let (accelerators, each) = (u64::from(cluster.accelerators), layout.ranks());
    if !accelerators.is_multiple_of(each) {
        return Err(Infeasible::PartReplica { accelerators, each });
    }
    let replicas = accelerators / each;
    let engine = Engine::new(&serving.engine_memory);
    let usable = cluster.accelerator.memory_capacity.saturating_sub(serving.memory.driver_reserve.value);
    let formats = CacheFormats::of(&serving.model);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be at most 2e8")]
    let tokens = (serving.input.mean + serving.output.mean).ceil() as u64;
    let found = fits(&serving.model, &layout, &engine, &formats, usable, (tokens, 0));
    let memory = MemoryFootprint {
        weights: found.weights,
        activations: found.activations,
        kv_cache: found.pool,
        workspace: found.outside,
        ..MemoryFootprint::default()
    };
    if found.requests == 0 {
        return Err(Infeasible::NoRequestFits {
            tokens,
            request: found.request,
            pool: found.pool,
            footprint: memory,
            usable,
        });
    }
    Ok(ServingPoint { layout, replicas, memory, usable, max_concurrency: found.requests * replicas })
}
