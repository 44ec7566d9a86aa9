//! Binding of what an engine does beside its plain loop.

mod adapters;
mod slice;
mod speculation;

pub use adapters::AdapterSet;
pub use slice::Slice;
pub use speculation::Speculation;

use super::{Cluster, Defaults};
use crate::catalog::engine_memory::EngineMemory;
use crate::catalog::model::Model;
use crate::catalog::{Catalog, ServingEfficiency};
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::parallelism::ServingLayout;
use crate::scenario::file::{EngineFile, ExpertImbalance, GraphsFile, Limits, TenantFile, TenantsFile};
use crate::units::Factor;
use crate::workload::{TenantClass, Tenants};

/// What an engine does beside its plain loop; nothing where nothing is asked.
#[derive(Clone, Debug, Default)]
pub struct EngineFeatures {
    /// Tokens drafted and verified.
    pub speculation: Option<Speculation>,
    /// Prompts' tokens of a step, at most; all of a prompt at once where not given.
    pub chunk_tokens: Option<u32>,
    /// Requests that an engine takes at once in an attention group, at most, where that is given.
    pub max_num_seqs: Option<u32>,
    /// Whether two halves of a decode batch hide each other's exchange with experts.
    pub two_batch_overlap: bool,
    /// Tokens of the busiest of ranks that hold experts whole, over their mean.
    pub expert_imbalance: ExpertImbalance,
    /// Sequences of an attention group that graphs are of, in order, where they are of stated sizes only.
    pub graphs: Option<Vec<f64>>,
    /// Steps that attention groups wait for each other's prompts at most, where they are taken in together.
    pub balance_steps: Option<u32>,
    /// Steps of decode from one look for new requests to the next, where the engine does not look before each.
    pub poll_steps: Option<u32>,
    /// Whether the host launches kernels of decode one by one, as engines do that are told not to capture graphs.
    pub eager: bool,
    /// Tokens of a block of the cache, where they are not the engine's usual.
    pub block_tokens: Option<u32>,
    /// Whether the probabilities of prompts' own tokens are asked for.
    pub prompt_logprobs: bool,
    /// Adapters of fine-tuned models.
    pub adapters: Option<AdapterSet>,
    /// The part of an accelerator that each replica has.
    pub slice: Option<Slice>,
    /// Tenants that share the replicas.
    pub tenants: Option<Tenants>,
}

impl EngineFeatures {
    /// Whether anything is asked that the constants of serving were not held against.
    pub fn is_unmeasured(&self) -> bool {
        self.unmeasured().next().is_some()
    }

    /// What is asked that the constants of serving were not held against.
    pub fn unmeasured(&self) -> impl Iterator<Item = &'static str> {
        [
            (self.speculation.is_some(), "drafts"),
            (self.two_batch_overlap, "two batches"),
            (self.eager, "kernels launched one by one"),
            (self.adapters.is_some(), "adapters"),
            (self.slice.as_ref().is_some_and(|slice| slice.shared.is_none()), "slices of an accelerator"),
            (self.slice.as_ref().is_some_and(|slice| slice.shared.is_some()), "shares of an accelerator"),
        ]
        .into_iter()
        .filter_map(|(asked, name)| asked.then_some(name))
    }
}

/// Layouts that serve, and whether they are left to a search.
pub(super) struct Layouts<'a> {
    pub(super) given: &'a [ServingLayout],
    pub(super) search: bool,
    pub(super) at: &'a Span,
}

pub(super) fn bind(
    wanted: &EngineFile,
    (name, model): (&str, &Model),
    layouts: &Layouts<'_>,
    memory: &mut EngineMemory,
    (cluster, catalog, efficiency): (Option<&Cluster>, &Catalog, &ServingEfficiency),
    defaults: &mut Defaults,
    sink: &Sink,
) -> Option<EngineFeatures> {
    let overlap = wanted.two_batch_overlap.unwrap_or(false);
    let apart = layouts.search || layouts.given.iter().any(|layout| layout.attention_data > 1);
    let exchanges = apart && model.blocks.iter().any(|block| block.moe().is_some());
    if overlap && !exchanges {
        let message =
            "nothing to overlap: only ranks that attend for requests of their own exchange tokens with experts";
        let hint = "give serving.layout an attention_data above 1 for a model that has experts, or leave two_batch_overlap out";
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.overlap_at, "asked for here").hint(hint));
    }
    if let Some(factor) = wanted.expert_imbalance.filter(|factor| *factor != ExpertImbalance::Times(Factor::ONE)) {
        let whole = layouts.search || layouts.given.iter().any(|layout| layout.expert > 1);
        if !whole || !model.blocks.iter().any(|block| block.moe().is_some()) {
            let message = format!("an expert_imbalance of {factor} where no rank holds experts whole");
            let hint = "give serving.layout an expert above 1 for a model that has experts, or leave it out";
            sink.push(
                Diagnostic::new(Code::Inconsistent, message).at(&wanted.imbalance_at, "asked for here").hint(hint),
            );
        }
    }
    if wanted.attention_data_balance.is_some() && layouts.given.iter().all(|layout| layout.attention_data == 1) {
        let message = "nothing to balance: there is one attention group";
        let hint = "give serving.layout an attention_data above 1, or leave attention_data_balance out";
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.balance_at, "asked for here").hint(hint));
    }
    let graphs = match &wanted.cuda_graphs {
        Some(GraphsFile::Sizes(sizes)) => Some(sizes.iter().copied().map(f64::from).collect()),
        Some(GraphsFile::Replayed(_)) | None => None,
    };
    let eager = matches!(wanted.cuda_graphs, Some(GraphsFile::Replayed(false)));
    if let Some(cluster) = cluster.filter(|_| eager || graphs.is_some()) {
        no_launches(cluster, &wanted.graphs_at, sink);
    }
    let speculation = match &wanted.speculation {
        Some(wanted) => Some(speculation::bind(wanted, (name, model), layouts, catalog, sink)?),
        None => None,
    };
    let adapters = match &wanted.adapters {
        Some(wanted) => Some(adapters::bind(wanted, model, catalog, defaults, sink)?),
        None => None,
    };
    let slice = wanted.slice.as_ref().zip(cluster);
    let slice = slice.and_then(|(wanted, cluster)| slice::bind(wanted, layouts, cluster, &efficiency.sharing, sink));
    if let Some(chunk) = wanted.chunk_tokens {
        *memory = std::mem::take(memory).with_batched_tokens(chunk);
    }
    if let Some(requests) = wanted.max_num_seqs {
        *memory = std::mem::take(memory).with_requests(requests);
    }
    if let Some(block) = wanted.block_tokens {
        memory.block = block;
    }
    Some(EngineFeatures {
        speculation,
        chunk_tokens: wanted.chunk_tokens,
        max_num_seqs: wanted.max_num_seqs,
        two_batch_overlap: overlap,
        expert_imbalance: wanted.expert_imbalance.unwrap_or_default(),
        graphs,
        balance_steps: wanted.attention_data_balance,
        poll_steps: wanted.poll_steps.filter(|steps| *steps > 1),
        eager,
        block_tokens: wanted.block_tokens,
        prompt_logprobs: wanted.prompt_logprobs.unwrap_or(false),
        adapters,
        slice,
        tenants: wanted.tenants.as_ref().map(tenants),
    })
}

/// Vendors of accelerators whose kernels a host launches one by one unless they are captured in graphs.
const LAUNCHED: [&str; 2] = ["NVIDIA", "AMD"];

/// Reports accelerators that run whole programs, of which nothing says what they would take kernel by kernel.
fn no_launches(cluster: &Cluster, at: &Span, sink: &Sink) {
    let others = cluster.kinds_of_nodes().map(|nodes| nodes.accelerator);
    let Some(other) = others.into_iter().find(|other| !LAUNCHED.contains(&other.vendor.as_str())) else { return };
    let message = format!("what kernels launched one by one take is known of GPUs, and not of `{}`", other.id);
    let hint = format!("leave cuda_graphs out: {}'s accelerators are given compiled programs", other.vendor);
    sink.push(Diagnostic::new(Code::Inconsistent, message).at(at, "asked for here").hint(hint));
}

/// The limits of each class of tenants: its own, and else those of all.
pub(super) fn tenant_limits(wanted: &EngineFile, usual: Limits) -> Vec<Limits> {
    let classes = wanted.tenants.iter().flat_map(|tenants| &tenants.0);
    classes.map(|class| class.limits.map_or(usual, |own| own.or(usual))).collect()
}

fn tenants(wanted: &TenantsFile) -> Tenants {
    let of = |class: &TenantFile| TenantClass {
        count: class.count,
        mean: class.mean,
        peak: class.peak,
        busiest: class.busiest_hour,
    };
    Tenants::new(wanted.0.iter().map(of).collect())
}
