//! The layout of a job or of a stage of it, what of it is left to a search, and whether positions reach so far.

use super::{Cluster, Defaults, split};
use crate::catalog::training_efficiency::Framework;
use crate::catalog::{Entry, Model};
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::parallelism::{ContextExchange, Layout, Recompute, Schedule, Sharding, Space};
use crate::scenario::file::LayoutFile;
use crate::scenario::search::LayoutSearch;
use crate::scenario::software::Software;
use crate::workload::TrainingJob;

/// Sequences are no longer than learned positions reach.
pub(super) fn check_positions(model: &Entry<Model>, job: &TrainingJob, at: &Span, sink: &Sink) {
    if let Some(positions) = model.learned_positions.filter(|positions| *positions < job.sequence_length) {
        let message = format!(
            "`{}` has {positions} learned positions, fewer than a sequence of {} tokens",
            model.id, job.sequence_length
        );
        let hint = format!("a sequence_length of {positions} or less");
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(at, "this model").hint(hint));
    }
}

/// The layout as it is given, with defaults for what is left out.
pub(super) fn layout(
    wanted: &LayoutFile,
    cluster: &Cluster,
    framework: Framework,
    defaults: &mut Defaults,
    sink: &Sink,
) -> Layout {
    let virtual_stages = wanted.virtual_stages.unwrap_or(1);
    let usual = if virtual_stages > 1 { Schedule::Interleaved } else { Schedule::OneF1b };
    let order = Software::usual_order(framework);
    let (tensor, context) = (wanted.tensor.unwrap_or(1), wanted.context.unwrap_or(1));
    // Of a single rank the key says nothing, and no default of it is worth a line.
    let exchange = || {
        let usual = ContextExchange::AllGather;
        if context > 1 { defaults.or("training.layout.context_exchange", None, usual) } else { usual }
    };
    let context_exchange = wanted.context_exchange.unwrap_or_else(exchange);
    let sharding = defaults.or("training.layout.sharding", wanted.sharding, Sharding::Optimizer);
    Layout {
        tensor,
        context,
        context_exchange,
        pipeline: wanted.pipeline.unwrap_or(1),
        data: 1,
        expert: wanted.expert.unwrap_or(1),
        virtual_stages,
        stage_layers: split::stage_layers(wanted),
        micro_batch: wanted.micro_batch.unwrap_or(1),
        schedule: defaults.or("training.layout.schedule", wanted.schedule, usual),
        sharding,
        shard_ranks: shard_ranks(wanted, sharding, cluster, defaults, sink),
        recompute: defaults.or("training.layout.recompute", wanted.recompute, Recompute::None),
        sequence_parallel: defaults.or("training.layout.sequence_parallel", wanted.sequence_parallel, tensor > 1),
        order: defaults.or("training.layout.order", wanted.order, order),
    }
}

/// The search that the layout is left to, if it is.
pub(super) fn search(wanted: &LayoutFile, layout: &Layout, overlap: [Option<bool>; 3]) -> Option<LayoutSearch> {
    let space = Space {
        tensor: wanted.tensor,
        context: wanted.context,
        context_exchange: wanted.context_exchange,
        pipeline: wanted.pipeline,
        expert: wanted.expert,
        virtual_stages: wanted.virtual_stages,
        micro_batch: wanted.micro_batch,
        schedule: wanted.schedule,
        sharding: wanted.sharding,
        shard_ranks: layout.shard_ranks,
        recompute: wanted.recompute,
        sequence_parallel: wanted.sequence_parallel,
        order: layout.order,
    };
    wanted.search.map(|objective| LayoutSearch { objective, space, overlap })
}

/// Ranks among which states are split: all, or those given; under hybrid sharding, by default those of a scale-up domain.
fn shard_ranks(
    wanted: &LayoutFile,
    sharding: Sharding,
    cluster: &Cluster,
    defaults: &mut Defaults,
    sink: &Sink,
) -> u32 {
    if sharding == Sharding::Hybrid {
        // As many replicas as fit a domain beside each other, or all where there are no more.
        let replica = wanted.tensor.unwrap_or(1).max(1);
        let replicas = cluster.accelerators / replica.saturating_mul(wanted.pipeline.unwrap_or(1).max(1));
        let within = (cluster.node.scale_up.domain / replica).min(replicas).max(1);
        return defaults.or("training.layout.shard_ranks", wanted.shard_ranks, within);
    }
    if sharding == Sharding::None && wanted.shard_ranks.is_some() {
        let message = "`shard_ranks` with sharding \"none\": nothing is split";
        let at = &wanted.shard_ranks_at;
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(at, "says nothing here").hint("leave it out"));
    }
    wanted.shard_ranks.unwrap_or(0)
}
