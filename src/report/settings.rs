//! The scenario as it was evaluated: every key with its value, given or by default.

use crate::catalog::memory_allowance::Loss;
use crate::catalog::side_network::Purpose;
use crate::evaluate::Evaluation;
use crate::parallelism::{Layout, ServingLayout};
use crate::scenario::{
    Agents, Balancing, ExpertImbalance, Kept, Lengths, Limits, PrefixCaching, RunPlan, Scenario, Serving, Software,
    TierCount, TokenPricesFile, Training,
};
use crate::units::{Fraction, Seconds, Tokens};
use crate::workload::TenantClass;

/// A key of the scenario and its value, written as the scenario writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The dotted key.
    pub key: &'static str,
    /// The value.
    pub value: String,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where the value of a key comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The scenario says it.
    Given,
    /// It is a default, because the scenario does not say.
    Default,
    /// The price book says it, because the scenario does not.
    Book,
    /// The search of the layout found it.
    Found,
    /// The agents' tasks mean it.
    Agents,
    /// The tenants' requests mean it.
    Tenants,
}

/// Every key that has a value.
pub fn settings(evaluation: &Evaluation) -> Vec<Setting> {
    let scenario = &evaluation.scenario;
    let mut all = cluster(scenario);
    if let Some(job) = &scenario.training {
        all.extend(software(&job.software));
        all.extend(training(job));
        all.extend(of_layout(&evaluation.point.map_or(job.layout, |point| point.layout)));
    }
    if let Some(served) = &scenario.serving {
        all.extend(serving(served));
    }
    if let Some(tasks) = &scenario.agents {
        all.extend(agents(tasks));
    }
    let finance = &scenario.finance;
    all.extend([
        ("finance.horizon", finance.horizon.to_string()),
        ("finance.accelerator_life", finance.accelerator_life.to_string()),
        ("finance.cost_of_capital", finance.cost_of_capital.get().to_string()),
        ("finance.utilisation", finance.utilisation.get().to_string()),
    ]);
    let prices = |prices: &TokenPricesFile| {
        let cached = prices.cached.unwrap_or(prices.input);
        [
            ("finance.token_prices.input", prices.input.to_string()),
            ("finance.token_prices.cached", cached.to_string()),
            ("finance.token_prices.output", prices.output.to_string()),
        ]
    };
    all.extend(scenario.margin.map(|margin| ("finance.margin", margin.get().to_string())));
    all.extend(scenario.token_prices.iter().flat_map(prices));
    let origin = |key: &str| {
        let search = scenario.training.as_ref().and_then(|training| training.search);
        let of_serving = scenario.serving.as_ref().is_some_and(|serving| serving.search);
        if search.is_some_and(|search| search.settles(key)) || (of_serving && key.starts_with("serving.layout.")) {
            Origin::Found
        } else if of_book(scenario, key) {
            Origin::Book
        } else if of_agents(scenario, key) {
            Origin::Agents
        } else if of_tenants(scenario, key) {
            Origin::Tenants
        } else if scenario.assumed.iter().any(|assumption| assumption.key == key) {
            Origin::Default
        } else {
            Origin::Given
        }
    };
    all.into_iter().map(|(key, value)| Setting { key, value, origin: origin(key) }).collect()
}

/// Whether a key has the value that the price book gives it.
fn of_book(scenario: &Scenario, key: &str) -> bool {
    let (book, left) = (&scenario.cluster.prices, scenario.finance.by_book);
    match key {
        "finance.accelerator_life" => left.accelerator_life && book.accelerator_life().is_some(),
        "finance.cost_of_capital" => left.cost_of_capital && book.cost_of_capital().is_some(),
        _ => false,
    }
}

/// Whether a key says of requests what follows from agents' tasks; how many come where nobody says how often tasks begin.
fn of_agents(scenario: &Scenario, key: &str) -> bool {
    scenario.agents.as_ref().is_some_and(|agents| match key {
        "serving.input_tokens" | "serving.output_tokens" | "serving.prefix_hit" => true,
        "serving.arrivals" => agents.fleet.is_some(),
        _ => false,
    })
}

/// Whether a key says of requests what follows from what tenants ask for.
fn of_tenants(scenario: &Scenario, key: &str) -> bool {
    let theirs = scenario.serving.as_ref().is_some_and(|serving| serving.terms.tenants);
    let limits = key.starts_with("serving.limits.");
    theirs && (limits || ["serving.arrivals", "serving.peak_to_mean"].contains(&key))
}

fn cluster(scenario: &Scenario) -> Vec<(&'static str, String)> {
    let cluster = &scenario.cluster;
    let topology = &cluster.topology;
    let tiers = match topology.tiers {
        TierCount::Auto => "auto".to_owned(),
        TierCount::Fixed(tiers) => tiers.to_string(),
    };
    let oversubscription = format!("[1, {}, {}]", topology.leaf_oversubscription, topology.spine_oversubscription);
    let network = |purpose: Purpose| {
        let found = cluster.networks.iter().find(|network| network.entry.purpose == purpose);
        found.map_or("none", |network| network.entry.id.as_str()).to_owned()
    };
    let mut all =
        vec![("cluster.node", cluster.node.id.clone()), ("cluster.accelerators", cluster.accelerators.to_string())];
    if let Some(own) = &cluster.prefill {
        all.extend([
            ("cluster.prefill.node", own.node.id.clone()),
            ("cluster.prefill.accelerators", own.accelerators.to_string()),
        ]);
    }
    all.extend([
        ("cluster.spares", cluster.spares.get().to_string()),
        ("cluster.fabric", cluster.fabric.entry.id.clone()),
        ("cluster.topology.kind", topology.kind.to_string()),
        ("cluster.topology.tiers", tiers),
        ("cluster.topology.oversubscription", oversubscription),
        ("cluster.site", cluster.site.id.clone()),
        ("cluster.prices", cluster.prices.id.clone()),
        ("cluster.storage", cluster.storage.id.clone()),
        ("cluster.storage_units", cluster.storage_units.to_string()),
        ("cluster.networks.storage", network(Purpose::Storage)),
        ("cluster.networks.in_band", network(Purpose::InBand)),
        ("cluster.networks.out_of_band", network(Purpose::OutOfBand)),
        ("cluster.fabric_spares", cluster.fabric_spares.get().to_string()),
        ("cluster.reliability", cluster.reliability.id.clone()),
        ("cluster.network_reliability", cluster.network_reliability.id.clone()),
        ("cluster.tenancy", cluster.tenancy.to_string()),
    ]);
    if let Some(sites) = &topology.sites {
        all.extend([
            ("cluster.topology.sites.count", sites.count.to_string()),
            ("cluster.topology.sites.distance", sites.distance.to_string()),
            ("cluster.topology.sites.bandwidth", sites.bandwidth.to_string()),
            ("cluster.topology.sites.link", sites.link.entry.id.clone()),
        ]);
    }
    all.extend(topology.pod.map(|pod| ("cluster.topology.pod", pod.to_string())));
    all
}

fn software(software: &Software) -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("software.date", month(software.date)),
        ("software.framework", software.framework.to_string()),
        ("software.attention_kernel", software.attention_kernel.to_string()),
        ("software.overlap.tensor", software.overlap.tensor.to_string()),
        ("software.overlap.data", software.overlap.data.to_string()),
        ("software.overlap.expert", software.overlap.expert.to_string()),
        ("software.sharp", software.communication.sharp.to_string()),
        ("software.pat", software.communication.pat.to_string()),
        ("software.gpudirect", software.communication.gpudirect.to_string()),
    ];
    if software.loss != Loss::Plain {
        all.push(("software.loss", software.loss.to_string()));
    }
    all
}

fn training(training: &Training) -> Vec<(&'static str, String)> {
    let job = &training.job;
    let mut all = vec![
        ("training.model", training.model.id.clone()),
        ("training.precision", job.precision.to_string()),
        ("training.gradients", job.gradients.to_string()),
        ("training.optimizer", job.optimizer.to_string()),
        ("training.offload", job.offload.to_string()),
        ("training.expert_imbalance", job.expert_imbalance.get().to_string()),
        ("training.sequence_length", job.sequence_length.to_string()),
        ("training.global_batch", job.global_batch.to_string()),
        ("training.tokens", job.tokens.to_string()),
        ("training.checkpoint", training.checkpoint.to_string()),
    ];
    all.extend(run(&training.plan));
    all.extend(training.host_memory.iter().map(|tier| ("training.offload_to", tier.id.clone())));
    all.extend(training.checkpoint_interval.map(|interval| ("training.checkpoint_interval", interval.to_string())));
    all
}

fn serving(serving: &Serving) -> Vec<(&'static str, String)> {
    let lengths = |lengths: Lengths| {
        if lengths.cv > 0.0 { format!("mean {}, cv {}", lengths.mean, lengths.cv) } else { lengths.mean.to_string() }
    };
    let formats = &serving.model.formats;
    let mut all = vec![
        ("serving.model", serving.entry.id.clone()),
        ("serving.engine", serving.engine.to_string()),
        ("serving.weights", serving.weights.to_string()),
        ("serving.kv_cache", formats.kv_cache.unwrap_or(formats.base).to_string()),
        ("serving.input_tokens", lengths(serving.input)),
        ("serving.output_tokens", lengths(serving.output)),
        ("serving.max_model_len", serving.context.map_or_else(|| "not known".to_owned(), |tokens| tokens.to_string())),
        ("serving.arrivals", serving.asked().to_string()),
        ("serving.peak_to_mean", serving.peak_to_mean.to_string()),
        ("serving.spare_replicas", serving.spare_replicas.to_string()),
    ];
    match &serving.cache {
        Some(caching) => {
            if let Kept::Prefixes { count, tokens, popularity } = caching.kept {
                all.extend([
                    ("serving.cache.prefixes", count.to_string()),
                    ("serving.cache.prefix_tokens", tokens.to_string()),
                    ("serving.cache.popularity", popularity.to_string()),
                ]);
            }
            all.extend([
                ("serving.cache.own_share", caching.own_share.get().to_string()),
                ("serving.cache.tiers", tiers_in_words(caching)),
                ("serving.cache.routing", caching.routing.to_string()),
            ]);
        }
        None => all.push(("serving.prefix_hit", serving.prefix_hit.get().to_string())),
    }
    all.extend(serving.engine_version.map(|version| ("serving.engine_version", version.to_string())));
    let usual = serving.memory.engines.get(serving.engine.word()).and_then(|engine| engine.fraction);
    let own = serving.engine_memory.fraction;
    all.extend(own.filter(|_| usual != own).map(|own| ("serving.memory_fraction", own.get().to_string())));
    let features = &serving.features;
    all.extend(features.speculation.iter().flat_map(|asked| {
        [
            ("serving.speculation.draft", asked.draft.clone()),
            ("serving.speculation.tokens", asked.tokens.to_string()),
            ("serving.speculation.acceptance", shares(&asked.acceptance)),
        ]
    }));
    all.extend(features.chunk_tokens.map(|tokens| ("serving.chunk_tokens", tokens.to_string())));
    all.extend(features.max_num_seqs.map(|requests| ("serving.max_num_seqs", requests.to_string())));
    all.extend(features.graphs.as_ref().map(|sizes| {
        let sizes: Vec<String> = sizes.iter().map(f64::to_string).collect();
        ("serving.cuda_graphs.batch_sizes", format!("[{}]", sizes.join(", ")))
    }));
    all.extend(features.balance_steps.map(|steps| ("serving.attention_data_balance.wait_steps", steps.to_string())));
    all.extend(features.poll_steps.map(|steps| ("serving.poll_steps", steps.to_string())));
    all.extend(features.eager.then(|| ("serving.cuda_graphs", "false".to_owned())));
    all.extend(features.block_tokens.map(|tokens| ("serving.block_tokens", tokens.to_string())));
    all.extend(features.slice.iter().map(|slice| ("serving.slice", slice.asked.clone())));
    all.extend(features.adapters.iter().flat_map(|set| {
        [
            ("serving.adapters.count", set.count.to_string()),
            ("serving.adapters.rank", set.rank.to_string()),
            ("serving.adapters.resident", set.resident.to_string()),
            ("serving.adapters.targets", set.targets.to_string()),
            ("serving.adapters.popularity", set.popularity.to_string()),
            ("serving.adapters.from", set.tier.id.clone()),
            ("serving.adapters.routing", set.routing.to_string()),
        ]
    }));
    all.extend(features.tenants.iter().flat_map(|tenants| {
        let each = |of: &dyn Fn(&TenantClass) -> String| match tenants.classes() {
            [one] => of(one),
            several => format!("[{}]", several.iter().map(of).collect::<Vec<_>>().join(", ")),
        };
        let hour = |class: &TenantClass| class.busiest.map_or_else(|| "–".to_owned(), |hour| hour.to_string());
        let hours = tenants.classes().iter().any(|class| class.busiest.is_some());
        let given = [
            ("serving.tenants.count", each(&|class| class.count.to_string())),
            ("serving.tenants.mean", each(&|class| class.mean.to_string())),
            ("serving.tenants.peak", each(&|class| class.peak.to_string())),
        ];
        given
            .into_iter()
            .chain(hours.then(|| ("serving.tenants.busiest_hour", each(&hour))))
            .chain(tenant_limits(serving))
    }));
    all.extend(features.prompt_logprobs.then(|| ("serving.prompt_logprobs", true.to_string())));
    let imbalance = features.expert_imbalance;
    all.extend((imbalance != ExpertImbalance::default()).then(|| ("serving.expert_imbalance", imbalance.to_string())));
    all.extend(features.two_batch_overlap.then(|| ("serving.two_batch_overlap", true.to_string())));
    let terms = &serving.terms;
    all.extend(serving.trace.iter().map(|trace| ("serving.trace", trace.clone())));
    all.extend(terms.replay.then(|| ("serving.arrivals.replay", "true".to_owned())));
    all.extend((terms.cv.to_bits() != 1.0_f64.to_bits()).then(|| ("serving.arrivals.cv", terms.cv.to_string())));
    let balancing = serving.balancing;
    all.extend((balancing != Balancing::Random).then(|| ("serving.routing", balancing.to_string())));
    all.extend(terms.prompts.map(|all| ("serving.arrivals.prompts", all.to_string())));
    let limits =
        serving.limits.named().into_iter().filter_map(|(key, limit)| Some((limit_key(key)?, limit?.to_string())));
    all.extend(limits);
    all.extend(serving_layout(serving));
    all
}

/// Limits of each class of tenants, where there are any.
fn tenant_limits(serving: &Serving) -> Vec<(&'static str, String)> {
    let row = |(place, key): (usize, &'static str)| {
        let each: Vec<Option<Seconds>> = serving.tenant_limits.iter().map(|limits| limits.named()[place].1).collect();
        let text = |limit: &Option<Seconds>| limit.map_or_else(|| "–".to_owned(), |limit| limit.to_string());
        let texts = each.iter().map(text).collect::<Vec<_>>().join(", ");
        let text = if each.len() == 1 { texts } else { format!("[{texts}]") };
        each.iter().any(Option::is_some).then_some((key, text))
    };
    TENANT_LIMITS.into_iter().enumerate().filter_map(row).collect()
}

fn serving_layout(serving: &Serving) -> Vec<(&'static str, String)> {
    let layout = &serving.layout;
    let mut all = vec![
        ("serving.layout.tensor", layout.tensor.to_string()),
        ("serving.layout.pipeline", layout.pipeline.to_string()),
        ("serving.layout.expert", layout.expert.to_string()),
        ("serving.layout.attention_data", layout.attention_data.to_string()),
    ];
    let copies = |layout: &ServingLayout| (layout.redundant_experts > 0).then(|| layout.redundant_experts.to_string());
    all.extend(copies(layout).map(|copies| ("serving.layout.redundant_experts", copies)));
    if let Some(pool) = &serving.prefill {
        all.extend([
            ("serving.layout.prefill.tensor", pool.layout.tensor.to_string()),
            ("serving.layout.prefill.pipeline", pool.layout.pipeline.to_string()),
            ("serving.layout.prefill.expert", pool.layout.expert.to_string()),
            ("serving.layout.prefill.attention_data", pool.layout.attention_data.to_string()),
        ]);
        all.extend(copies(&pool.layout).map(|copies| ("serving.layout.prefill.redundant_experts", copies)));
        let given = pool.accelerators.map(|count| ("serving.layout.prefill_accelerators", count.to_string()));
        all.extend(given);
    }
    all.extend(serving.left_over.then(|| ("serving.layout.left_over", "true".to_owned())));
    all
}

/// Shares, or the one that all are.
fn shares(of: &[Fraction]) -> String {
    match of {
        [first, others @ ..] if others.iter().all(|other| other == first) => first.get().to_string(),
        _ => format!("[{}]", of.iter().map(|share| share.get().to_string()).collect::<Vec<_>>().join(", ")),
    }
}

/// Tiers and what each accelerator has of them.
fn tiers_in_words(caching: &PrefixCaching) -> String {
    let tiers: Vec<String> =
        caching.tiers.iter().map(|tier| format!("{} of {} a GPU", tier.entry.id, tier.capacity)).collect();
    if tiers.is_empty() { "none".to_owned() } else { tiers.join(", ") }
}

/// The dotted keys of limits of tenants, in the order of [`Limits::named`].
const TENANT_LIMITS: [&str; 7] = [
    "serving.tenants.limits.ttft",
    "serving.tenants.limits.ttft_p95",
    "serving.tenants.limits.ttft_p99",
    "serving.tenants.limits.tpot",
    "serving.tenants.limits.tpot_p95",
    "serving.tenants.limits.tpot_p99",
    "serving.tenants.limits.e2e_p95",
];

/// The dotted key of a limit.
pub(super) fn limit_key(key: &str) -> Option<&'static str> {
    Limits::DOTTED.into_iter().find(|dotted| dotted.strip_prefix("serving.limits.") == Some(key))
}

fn agents(agents: &Agents) -> Vec<(&'static str, String)> {
    let (task, tokens) = (&agents.task, |tokens: Tokens| (tokens / Tokens::new(1.0)).to_string());
    let (run, failed) = (&task.success, &task.failure);
    let mut all = Vec::new();
    if let Some(fleet) = &agents.fleet {
        all.extend([("agents.users", fleet.users.to_string()), ("agents.task_every", fleet.every.to_string())]);
    }
    all.extend([
        ("agents.agents", task.fan.agents.to_string()),
        ("agents.branches", task.fan.branches.to_string()),
        ("agents.retries", task.fan.attempts.to_string()),
        ("agents.steps", run.steps.to_string()),
        ("agents.shared_tokens", tokens(run.shared)),
        ("agents.prompt_tokens", tokens(run.first)),
        ("agents.added_tokens", tokens(run.added)),
        ("agents.output_tokens", tokens(run.output)),
        ("agents.reasoning_tokens", tokens(run.reasoning)),
        ("agents.success", task.rate.get().to_string()),
    ]);
    if failed != run {
        all.extend([
            ("agents.failed.steps", failed.steps.to_string()),
            ("agents.failed.added_tokens", tokens(failed.added)),
            ("agents.failed.output_tokens", tokens(failed.output)),
            ("agents.failed.reasoning_tokens", tokens(failed.reasoning)),
        ]);
    }
    all.extend([
        ("agents.session_hit", task.reuse.session.get().to_string()),
        ("agents.shared_hit", task.reuse.shared.get().to_string()),
        ("agents.cache_block", task.reuse.block.get().to_string()),
        ("agents.tool_time", agents.tool_time.to_string()),
        ("agents.tool_cost", agents.tool_cost.to_string()),
        ("agents.sandbox", agents.sandbox.to_string()),
        ("agents.approvals", agents.approvals.to_string()),
    ]);
    if agents.approvals > 0.0 {
        all.push(("agents.approval_time", agents.approval_time.to_string()));
    }
    all
}

/// What surrounds the step; stages have a table of their own.
fn run(plan: &RunPlan) -> Vec<(&'static str, String)> {
    let data = &plan.data;
    let mut all = Vec::new();
    if let Some(ramp) = &plan.ramp {
        all.extend([
            ("training.ramp.from", ramp.from.to_string()),
            ("training.ramp.step", ramp.step.to_string()),
            ("training.ramp.tokens", ramp.tokens.to_string()),
        ]);
    }
    if let Some(pause) = &plan.evaluation {
        all.extend([
            ("training.evaluation.every", pause.every.to_string()),
            ("training.evaluation.time", pause.time.to_string()),
        ]);
    }
    all.extend(data.raw.map(|raw| ("training.data.raw", raw.to_string())));
    all.extend(data.cleaned.map(|cleaned| ("training.data.cleaned", cleaned.to_string())));
    all.extend([
        ("training.data.stored", data.stored.to_string()),
        ("training.data.token_size", data.token_size.to_string()),
        ("training.data.text_per_token", data.text_per_token.to_string()),
        ("training.data.clean_rate", data.clean_rate.to_string()),
        ("training.data.tokenise_rate", data.tokenise_rate.to_string()),
        ("training.data.cores", data.cores.to_string()),
        ("training.data.loader_cores", data.loader_cores.to_string()),
        ("training.data.prefetch", data.prefetch.to_string()),
    ]);
    all
}

pub(super) fn of_layout(layout: &Layout) -> Vec<(&'static str, String)> {
    let exchange =
        (layout.context > 1).then(|| ("training.layout.context_exchange", layout.context_exchange.to_string()));
    let mut all = vec![
        ("training.layout.tensor", layout.tensor.to_string()),
        ("training.layout.pipeline", layout.pipeline.to_string()),
        ("training.layout.virtual_stages", layout.virtual_stages.to_string()),
        ("training.layout.context", layout.context.to_string()),
        ("training.layout.expert", layout.expert.to_string()),
        ("training.layout.micro_batch", layout.micro_batch.to_string()),
        ("training.layout.schedule", layout.schedule.to_string()),
        ("training.layout.sharding", layout.sharding.to_string()),
        ("training.layout.shard_ranks", shard_ranks(layout)),
        ("training.layout.recompute", layout.recompute.to_string()),
        ("training.layout.sequence_parallel", layout.sequence_parallel.to_string()),
        ("training.layout.order", layout.order.to_string()),
    ];
    all.extend(exchange);
    all.extend(layout.stage_layers.map(|layers| ("training.layout.stage_layers", layers.to_string())));
    all
}

/// Ranks among which states are split.
fn shard_ranks(layout: &Layout) -> String {
    if layout.shard_ranks == 0 { "all".to_owned() } else { layout.shard_ranks.to_string() }
}

/// A decimal year as the month that it lies in.
fn month(date: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a month of a year, 0 to 11")]
    let month = ((date.fract() * 12.0).round() as u32).min(11) + 1;
    format!("{}-{month:02}", date.floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_year_is_a_month() {
        assert_eq!(
            [month(2024.25), month(2021.0), month(2026.5), month(2022.0 + 11.0 / 12.0)],
            ["2024-04", "2021-01", "2026-07", "2022-12"]
        );
    }
}
