//! Answers that are "no": why, what would help, and for memory the footprint.

use super::figure::Value;
use super::layout_search::{nearest_text, reasons};
use super::metrics::metric;
use super::page::{Block, Grid, Page, Section};
use crate::evaluate::{Infeasible, Pool};
use crate::inference::Short;
use crate::memory::MemoryFootprint;
use crate::parallelism::LayoutError;
use crate::scenario::GroupShare;
use crate::search::Nearest;
use crate::units::Bytes;

/// What would help.
pub(super) const fn advice(infeasible: &Infeasible) -> &'static str {
    match infeasible {
        Infeasible::Memory { .. } => {
            "Less memory is taken with more tensor or pipeline ranks, more sharding, recompute, or a smaller micro_batch."
        }
        Infeasible::Layout(LayoutError::Heads { .. } | LayoutError::KvHeads { .. } | LayoutError::Ffn { .. }) => {
            "Change training.layout.tensor, or leave it and raise training.layout.pipeline."
        }
        Infeasible::Layout(LayoutError::Accelerators { .. }) => {
            "Change cluster.accelerators or the degrees of training.layout."
        }
        Infeasible::Layout(LayoutError::GlobalBatch { .. }) => {
            "Change training.global_batch, training.layout.micro_batch, or the degrees that leave so many replicas."
        }
        Infeasible::Layout(_) => "Change training.layout.",
        Infeasible::NoLayout(_) => {
            "More accelerators, or fewer keys of training.layout and software.overlap given, leave more to choose from."
        }
        Infeasible::PartPools { .. } => {
            "Change cluster.accelerators, serving.layout.prefill_accelerators or the degrees of the pools, or write left_over = true in serving.layout for the rest to idle."
        }
        Infeasible::PartPool { pool: Pool::Prefill, .. } => {
            "Change cluster.prefill.accelerators or the degrees of serving.layout.prefill."
        }
        Infeasible::PartPool { pool: Pool::Decode, .. } => {
            "Change cluster.accelerators, which counts those of prefill too, or the degrees of serving.layout.decode."
        }
        Infeasible::NoWorker { .. } => {
            "Give a larger one by serving.layout = { prefill = {...}, decode = {...} }, or choose a cluster.prefill.node with more memory."
        }
        Infeasible::RoutedPools => "Use one layout for both, or serving.adapters.routing = \"balanced\".",
        Infeasible::NothingToDecode => "Use one layout, or a larger serving.output_tokens.",
        Infeasible::Context { .. } => {
            "Shorter prompts or answers, or serving.max_model_len where the engine extends the model's positions (YaRN), would do."
        }
        Infeasible::SlicedRanks { .. } => "Leave serving.slice out, or use one rank.",
        Infeasible::Draft(_) => "Change the degrees of serving.layout, or serving.speculation.draft.",
        Infeasible::PartReplica { .. } | Infeasible::Straddling { .. } => {
            "Change cluster.accelerators or the degrees of serving.layout, or write left_over = true in it for the rest to idle."
        }
        Infeasible::NoReplicaLeft { .. } => {
            "More accelerators, a smaller replica, or fewer serving.spare_replicas would do."
        }
        Infeasible::Overload { short: Short::Transfer, .. } => {
            "More or faster network cards for each accelerator of the pool with fewer, more accelerators of it, a cache in fewer bits, shorter prompts, or pools in one scale-up domain would do; cached prompts are handed over all the same."
        }
        Infeasible::Overload { short: Short::Sequences, .. } => {
            "A larger serving.max_num_seqs, more replicas, or shorter answers would serve more."
        }
        Infeasible::Overload { short: Short::Adapters, .. } => {
            "A larger serving.adapters.resident, routing = \"adapter-aware\" in serving.adapters, or more replicas would do."
        }
        Infeasible::Overload { short: Short::Steps, .. } => {
            "More accelerators, a layout that serves more, or shorter answers would do."
        }
        Infeasible::Overload { .. } => {
            "More accelerators, a layout that serves more, shorter requests or a larger share of cached prompts would do."
        }
        Infeasible::Limit { .. } => {
            "A looser limit, more ranks of a replica, or an accelerator with more bandwidth would do; of first tokens also shorter prompts."
        }
        Infeasible::Serving(_) => "Add the constants to an overlay of catalogs/efficiency/serving.",
        Infeasible::NoForwardPass { .. } => "Lower serving.memory_fraction or serving.chunk_tokens.",
        Infeasible::NoRequestFits { .. } => {
            "More ranks hold it, or weights and a cache in fewer bits, or an accelerator with more memory."
        }
        Infeasible::PartNode { share: GroupShare::Prefill, .. } => "Change cluster.prefill.accelerators.",
        Infeasible::PartNode { share: GroupShare::Beside(_), .. } => {
            "Change cluster.accelerators, which counts those of prefill too, or cluster.prefill.accelerators."
        }
        Infeasible::PartNode { share: GroupShare::All, .. } => "Change cluster.accelerators.",
        Infeasible::PartPod { .. } => "Change cluster.topology.pod.",
        Infeasible::NothingAbove { .. } => "Leave it out, ask for more tiers, or for pods.",
        Infeasible::PartSite { .. } => {
            "Change cluster.accelerators, cluster.spares or cluster.topology.sites: each site has as many nodes."
        }
        Infeasible::PowerBudget { .. } => {
            "Change cluster.accelerators or cluster.spares, raise cluster.power.budget, or choose a site with a lower PUE."
        }
        Infeasible::Topology(_) => "Change cluster.topology, or choose a fabric with larger switches.",
        Infeasible::SideNetwork { .. } => "Choose another network in cluster.networks.",
        Infeasible::Endless { .. } => {
            "Fewer accelerators, faster storage, asynchronous checkpoints or a shorter iteration leave more of the time."
        }
        Infeasible::Untimed(_) => "Leave it out to time the rest.",
        Infeasible::HostMemory { .. } => {
            "Offload less, or to a larger memory in training.offload_to; more sharding and more pipeline ranks leave less to keep."
        }
        Infeasible::CheckpointTooSoon { .. } => {
            "Leave training.checkpoint_interval out, make it longer, or add cluster.storage_units."
        }
        Infeasible::Stage { reason, .. } | Infeasible::Prefill(reason) => advice(reason),
        Infeasible::NotFinite { .. } => {
            "One of the inputs is zero, or too far from what is built: look at the overlays of the catalog."
        }
        Infeasible::Racks(_) => "Choose a site whose racks hold more.",
    }
}

/// Why a scenario cannot be, as a page, and the nearest that can be.
pub fn infeasible_page(title: &str, infeasible: &Infeasible, nearest: Option<&Nearest>) -> Page {
    let mut blocks = vec![Block::Text(format!("Infeasible: {infeasible}. {}", advice(infeasible)))];
    if let Infeasible::Memory { footprint, usable, .. } = infeasible {
        let mut grid = Grid::new(&["Memory of a GPU", "Bytes"], 1);
        for (key, value) in footprint_values(footprint, *usable) {
            if let Some(metric) = metric(key).filter(|_| value.number() != Some(0.0)) {
                grid.rows.push(vec![metric.label.to_owned(), metric.text(value)]);
            }
        }
        blocks.push(Block::Grid(grid));
    }
    if let Infeasible::NoLayout(none) = infeasible {
        blocks.push(Block::Grid(reasons(&none.tally)));
    }
    blocks.extend(nearest.map(|nearest| Block::Text(nearest_text(nearest))));
    Page { title: title.to_owned(), sections: vec![Section { heading: String::new(), blocks }] }
}

/// The figure of that key, of a footprint alone.
pub(super) fn footprint_value(key: &str, footprint: &MemoryFootprint, usable: Bytes) -> Option<Value> {
    footprint_values(footprint, usable).into_iter().find(|(own, _)| *own == key).map(|(_, value)| value)
}

/// What is known of the memory where nothing else is.
pub(super) fn footprint_values(footprint: &MemoryFootprint, usable: Bytes) -> [(&'static str, Value); 9] {
    let bytes = |bytes: Bytes| Value::Number(bytes.value());
    [
        ("memory.weights_bytes", bytes(footprint.weights)),
        ("memory.gradients_bytes", bytes(footprint.gradients)),
        ("memory.optimizer_bytes", bytes(footprint.optimizer)),
        ("memory.activations_bytes", bytes(footprint.activations)),
        ("memory.kv_cache_bytes", bytes(footprint.kv_cache)),
        ("memory.workspace_bytes", bytes(footprint.workspace)),
        ("memory.total_bytes", bytes(footprint.total())),
        ("memory.usable_bytes", bytes(usable)),
        ("memory.fits", Value::Flag(footprint.fits(usable))),
    ]
}
