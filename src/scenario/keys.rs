//! Every key that a scenario may have.

/// Dotted paths of all keys, tables too; a key at the wrong level is told its place from here.
pub const KEYS: &[&str] = &[
    "title",
    "cluster",
    "cluster.node",
    "cluster.accelerators",
    "cluster.prefill",
    "cluster.prefill.node",
    "cluster.prefill.accelerators",
    "cluster.spares",
    "cluster.fabric",
    "cluster.topology",
    "cluster.topology.kind",
    "cluster.topology.tiers",
    "cluster.topology.pod",
    "cluster.topology.planes",
    "cluster.topology.oversubscription",
    "cluster.topology.sites",
    "cluster.topology.sites.count",
    "cluster.topology.sites.distance",
    "cluster.topology.sites.bandwidth",
    "cluster.topology.sites.link",
    "cluster.site",
    "cluster.prices",
    "cluster.storage",
    "cluster.storage_units",
    "cluster.networks",
    "cluster.networks.storage",
    "cluster.networks.in_band",
    "cluster.networks.out_of_band",
    "cluster.fabric_spares",
    "cluster.power",
    "cluster.power.budget",
    "cluster.power.headroom",
    "cluster.reliability",
    "cluster.network_reliability",
    "cluster.tenancy",
    "software",
    "software.date",
    "software.framework",
    "software.attention_kernel",
    "software.loss",
    "software.overlap",
    "software.overlap.tensor",
    "software.overlap.data",
    "software.overlap.expert",
    "software.sharp",
    "software.pat",
    "software.gpudirect",
    "training",
    "training.model",
    "training.precision",
    "training.gradients",
    "training.optimizer",
    "training.offload",
    "training.offload_to",
    "training.expert_imbalance",
    "training.sequence_length",
    "training.global_batch",
    "training.tokens",
    "training.checkpoint",
    "training.checkpoint_interval",
    "training.layout",
    "training.layout.search",
    "training.layout.tensor",
    "training.layout.pipeline",
    "training.layout.virtual_stages",
    "training.layout.stage_layers",
    "training.layout.context",
    "training.layout.context_exchange",
    "training.layout.expert",
    "training.layout.micro_batch",
    "training.layout.schedule",
    "training.layout.sharding",
    "training.layout.shard_ranks",
    "training.layout.recompute",
    "training.layout.recompute.layers",
    "training.layout.recompute.modules",
    "training.layout.sequence_parallel",
    "training.layout.order",
    "serving",
    "serving.model",
    "serving.engine",
    "serving.engine_version",
    "serving.memory_fraction",
    "serving.weights",
    "serving.kv_cache",
    "serving.input_tokens",
    "serving.input_tokens.mean",
    "serving.input_tokens.cv",
    "serving.output_tokens",
    "serving.max_model_len",
    "serving.output_tokens.mean",
    "serving.output_tokens.cv",
    "serving.arrivals",
    "serving.arrivals.rate",
    "serving.arrivals.concurrency",
    "serving.arrivals.cv",
    "serving.arrivals.replay",
    "serving.peak_to_mean",
    "serving.arrivals.prompts",
    "serving.spare_replicas",
    "serving.trace",
    "serving.prefix_hit",
    "serving.limits",
    "serving.limits.ttft",
    "serving.limits.ttft_p95",
    "serving.limits.ttft_p99",
    "serving.limits.tpot",
    "serving.limits.tpot_p95",
    "serving.limits.tpot_p99",
    "serving.limits.e2e_p95",
    "serving.cache",
    "serving.cache.prefixes",
    "serving.cache.prefix_tokens",
    "serving.cache.popularity",
    "serving.cache.own_share",
    "serving.cache.tiers",
    "serving.cache.routing",
    "serving.speculation",
    "serving.speculation.draft",
    "serving.speculation.tokens",
    "serving.speculation.acceptance",
    "serving.chunk_tokens",
    "serving.two_batch_overlap",
    "serving.expert_imbalance",
    "serving.cuda_graphs",
    "serving.block_tokens",
    "serving.prompt_logprobs",
    "serving.adapters",
    "serving.adapters.count",
    "serving.adapters.rank",
    "serving.adapters.resident",
    "serving.adapters.targets",
    "serving.adapters.popularity",
    "serving.adapters.from",
    "serving.adapters.routing",
    "serving.slice",
    "serving.tenants",
    "serving.tenants.count",
    "serving.tenants.mean",
    "serving.tenants.peak",
    "serving.tenants.busiest_hour",
    "serving.layout",
    "serving.layout.tensor",
    "serving.layout.pipeline",
    "serving.layout.expert",
    "serving.layout.attention_data",
    "serving.layout.redundant_experts",
    "serving.layout.prefill",
    "serving.layout.prefill.tensor",
    "serving.layout.prefill.pipeline",
    "serving.layout.prefill.expert",
    "serving.layout.prefill.attention_data",
    "serving.layout.prefill.redundant_experts",
    "serving.layout.decode",
    "serving.layout.decode.tensor",
    "serving.layout.decode.pipeline",
    "serving.layout.decode.expert",
    "serving.layout.decode.attention_data",
    "serving.layout.decode.redundant_experts",
    "serving.layout.prefill_accelerators",
    "serving.layout.left_over",
    "training.stage",
    "training.ramp",
    "training.ramp.from",
    "training.ramp.step",
    "training.ramp.tokens",
    "training.evaluation",
    "training.evaluation.every",
    "training.evaluation.time",
    "training.data",
    "training.data.raw",
    "training.data.cleaned",
    "training.data.stored",
    "training.data.token_size",
    "training.data.text_per_token",
    "training.data.clean_rate",
    "training.data.tokenise_rate",
    "training.data.cores",
    "training.data.loader_cores",
    "training.data.prefetch",
    "agents",
    "agents.users",
    "agents.task_every",
    "agents.agents",
    "agents.branches",
    "agents.retries",
    "agents.steps",
    "agents.added_tokens",
    "agents.output_tokens",
    "agents.reasoning_tokens",
    "agents.failed",
    "agents.failed.steps",
    "agents.failed.added_tokens",
    "agents.failed.output_tokens",
    "agents.failed.reasoning_tokens",
    "agents.shared_tokens",
    "agents.prompt_tokens",
    "agents.success",
    "agents.session_hit",
    "agents.shared_hit",
    "agents.cache_block",
    "agents.tool_time",
    "agents.tool_cost",
    "agents.sandbox",
    "agents.approvals",
    "agents.approval_time",
    "finance",
    "finance.horizon",
    "finance.accelerator_life",
    "finance.cost_of_capital",
    "finance.method",
    "finance.hardware_age",
    "finance.inflation",
    "finance.utilisation",
    "finance.margin",
    "finance.token_prices",
    "finance.token_prices.input",
    "finance.token_prices.cached",
    "finance.token_prices.output",
    "compare",
    "compare.vary",
    "compare.baseline",
    "sweep",
    "sweep.axes",
    "sweep.where",
    "plan",
    "plan.minimise",
    "plan.limits",
    "plan.limits.deadline",
    "plan.limits.budget",
    "plan.limits.power",
    "plan.vary",
    "sweep.by",
    "sweep.group_by",
    "sweep.break_even",
    "uncertainty",
    "uncertainty.inputs",
    "uncertainty.correlations",
    "uncertainty.catalog",
    "uncertainty.samples",
    "uncertainty.seed",
];

#[cfg(test)]
mod tests {
    use super::KEYS;
    use crate::diagnostics::{Code, Sink};
    use crate::document::{Node, Table, Value};
    use crate::scenario::ScenarioFile;

    fn leaf(value: Value) -> Node {
        Node { value, ..Node::default() }
    }

    /// Messages of the unknown keys of a document with this value at this path, and the keys that are known there.
    fn unknown(path: &str, value: Value) -> Vec<(String, String)> {
        let mut root = Table::default();
        root.set(path, leaf(value)).unwrap();
        let sink = Sink::default();
        ScenarioFile::read(&leaf(Value::Table(root)), &sink);
        let all = sink.into_diagnostics().into_iter().filter(|diagnostic| diagnostic.code == Code::UnknownKey);
        all.map(|diagnostic| (diagnostic.message, diagnostic.hint.unwrap_or_default())).collect()
    }

    #[test]
    fn every_key_of_the_list_is_read() {
        for key in KEYS {
            assert_eq!(unknown(key, Value::Integer(1)), [], "`{key}`");
        }
    }

    #[test]
    fn every_key_that_is_read_is_in_the_list() {
        let tables = KEYS.iter().filter(|table| KEYS.iter().any(|key| key.starts_with(&format!("{table}."))));
        for table in tables.copied().chain([""]).filter(|table| *table != "compare.vary") {
            let path = |key: &str| if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") };
            let found = unknown(&path("qqq"), Value::Integer(1));
            let [(_, hint)] = &found[..] else { panic!("`{table}`: {found:?}") };
            for key in hint.trim_start_matches("the keys here are ").split(", ") {
                let path = path(key.trim_matches('`'));
                assert!(KEYS.contains(&path.as_str()), "`{path}` is read and not in the list");
            }
        }
    }

    #[test]
    fn a_key_at_the_wrong_level_is_told_its_place() {
        let found = unknown("cluster.utilisation", Value::Float(0.8));
        assert_eq!(
            found,
            [("unknown key `utilisation` in `cluster`".to_owned(), "it belongs at `finance.utilisation`".to_owned())]
        );
        let found = unknown("training.tensor", Value::Integer(8));
        assert_eq!(
            found[0].1,
            "it belongs at `software.overlap.tensor` or `training.layout.tensor` or `serving.layout.tensor` or `serving.layout.prefill.tensor` or `serving.layout.decode.tensor`"
        );
    }
}
