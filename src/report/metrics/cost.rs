//! Money.

use super::plan;
use crate::evaluate::Evaluation;
use crate::units::{Tokens, Usd, UsdPerToken};

figures! {
    Cost:
    "cost.capex_usd": Usd, "Capex", "Paid at the beginning, all lines.";
        "sum of the capex lines" from ["lines.capex"] => |e| e.built.costs.capex;
    "cost.opex_per_year_usd": Usd, "Opex a year", "Paid in the first year, all lines.";
        "sum of the opex lines" from ["lines.opex"] => |e| e.built.costs.opex_per_year;
    "cost.annualised_per_year_usd": Usd, "Annualised", "The constant yearly payment that is worth as much as all lines.";
        "sum over lines of capex x capital recovery factor of its life, and level opex"
        from ["lines.annualised", "finance.cost_of_capital", "finance.accelerator_life", "finance.horizon"]
        => |e| e.built.costs.annualised;
    "cost.memory_tiers_usd": Usd, "Memory tiers", "Bought to keep prefixes, beside what the nodes have: part of capex.";
        "bytes a GPU beyond the node's own / bytes of a unit, in whole units at each GPU (drives), in each host (modules, cards) or altogether (servers), x its price" from ["lines.memory_tiers", "serving.cache.tiers", "memory_tiers.places"]
        => |e| { e.serving?.caching?; e.built.memory_tier_capex(&e.scenario.cluster) };
    "cost.total_usd": Usd, "Paid over the horizon", "Capex, again whenever a life ends within the horizon, and every year's opex; not discounted, without interest and without resale.";
        "capex of each life begun within the horizon + opex of every year of it" from ["lines.horizon", "finance.horizon", "finance.accelerator_life"]
        => |e| e.built.costs.total;
    "cost.usd_per_gpu_hour": UsdPerHour, "A GPU for an hour, owned", "Owning one GPU for an hour of calendar time, spares counted as owned.";
        "annualised / GPUs bought / 8,760 h" from ["cost.annualised_per_year_usd", "cluster.accelerators", "cluster.spares"]
        => |e| e.unit_costs.per_gpu_hour;
    "cost.usd_per_sold_gpu_hour": UsdPerHour, "  over hours sold", "Owning one GPU for an hour that is sold: idle hours are paid for too.";
        "a GPU for an hour / utilisation" from ["cost.usd_per_gpu_hour", "finance.utilisation"]
        => |e| e.unit_costs.per_sold_gpu_hour;
    "cost.usd_per_useful_gpu_hour": UsdPerHour, "  over useful hours", "Owning one GPU for an hour of useful work: idle hours, failures and spares are paid for too.";
        "a GPU for an hour / (utilisation x goodput x share at work)" from ["cost.usd_per_sold_gpu_hour", "goodput.ratio", "cluster.spares"]
        => |e| e.unit_costs.per_useful_gpu_hour;
    "cost.usd_per_pflop_day": Usd, "A PFLOP-day", "10^15 model FLOPs a second for a day, causal attention, with what failures and idle hours cost.";
        "a useful GPU-hour x 24 h x 1,000 TFLOP/s / model FLOP rate a GPU"
        from ["cost.usd_per_useful_gpu_hour", "training.tflops_per_s_per_gpu"]
        => |e| e.unit_costs.per_useful_gpu_hour.over(e.pflop_day()?);
    "cost.usd_per_run": Usd, "The run", "The whole cluster over the run's wall time, and the run's part of the hours that no run uses.";
        "annualised / 8,760 h x run with failures / utilisation"
        from ["cost.annualised_per_year_usd", "training.effective_days", "finance.utilisation"] => |e| e.point?.run;
    "cost.usd_per_mtok_trained": Usd, "Million tokens trained on", "The run's cost over its tokens.";
        "cost of the run / tokens of the run"
        from ["cost.usd_per_run", "training.tokens"] => |e| per_trained_mtok(e)?;
    "cost.prefill_share_ratio": Ratio, "Prefill's share of the cost", "Where it has nodes of another kind: their own lines, and of all others its share of power, price or number, whichever they are paid by.";
        "annualised lines x share of prefill's nodes / annualised" from ["cluster.prefill.node", "cluster.prefill.accelerators", "cost.annualised_per_year_usd"]
        => |e| { e.scenario.cluster.prefill.as_ref()?; e.built.shares_of_prefill().cost };
    "cost.prompts_share_ratio": Ratio, "Prompts' share of the cost", "What a prompt takes of a request where as much is served as can be, of a replica's time or of both pools'; hours that stand idle are shared out alike.";
        "prompt's time / (prompt's + answer's), each at the most that is served; times the cost of their own nodes where these are of another kind"
        from ["serving.most_requests_per_s", "serving.prefill_most_requests_per_s", "serving.decode_most_requests_per_s", "cost.prefill_share_ratio"] => |e| e.share_of_prompts()?;
    "cost.usd_per_mtok_blended": Usd, "Million tokens, prompts and answers", "All tokens alike: all that is paid, idle hours too, over all that are served; comparable between layouts, pools and loads at one mix.";
        "useful hour of a GPU / tokens of prompts and answers an hour"
        from ["cost.usd_per_useful_gpu_hour", "serving.requests_per_s", "serving.input_tokens", "serving.output_tokens"] => |e| e.token_costs()?.blended;
    "cost.usd_per_mtok_used": Usd, "  of it capacity used", "Of all tokens alike: what they would cost by use alone.";
        "million tokens x capacity used" from ["cost.usd_per_mtok_blended", "serving.capacity.used_ratio"] => |e| e.cost_of_capacity()?.used;
    "cost.usd_per_mtok_off_peak": Usd, "  there for the peak", "Of all tokens alike: capacity reserved for the peak of a day, and idle on its mean.";
        "million tokens x capacity there for the peak" from ["cost.usd_per_mtok_blended", "serving.capacity.off_peak_ratio"] => |e| e.cost_of_capacity()?.off_peak;
    "cost.usd_per_mtok_headroom": Usd, "  left free at the peak", "Of all tokens alike: capacity reserved so that latencies are what they are.";
        "million tokens x capacity left free" from ["cost.usd_per_mtok_blended", "serving.capacity.headroom_ratio"] => |e| e.cost_of_capacity()?.headroom;
    "cost.usd_per_mtok_standby": Usd, "  to spare", "Of all tokens alike: replicas that stand by.";
        "million tokens x capacity to spare" from ["cost.usd_per_mtok_blended", "serving.capacity.standby_ratio"] => |e| e.cost_of_capacity()?.standby;
    "cost.usd_per_mtok_input": Usd, "Million tokens of prompts", "That are not cached: their part of what prompts bear.";
        "useful hour of a GPU x prompts' share of the cost x share of the prompt's work / tokens an hour"
        from ["cost.usd_per_useful_gpu_hour", "serving.peak_to_mean", "cost.prompts_share_ratio", "serving.requests_per_s", "serving.input_tokens"] => |e| e.token_costs()?.input;
    "cost.usd_per_mtok_cached": Usd, "Million cached tokens of prompts", "Their part of what prompts bear: attention to them.";
        "useful hour of a GPU x prompts' share of the cost x share of attention to cached tokens / tokens an hour"
        from ["cost.usd_per_useful_gpu_hour", "serving.peak_to_mean", "cost.prompts_share_ratio", "serving.requests_per_s", "serving.prefix_hit"] => |e| e.token_costs()?.cached?;
    "cost.usd_per_mtok_output": Usd, "Million tokens of answers", "What prompts do not bear.";
        "useful hour of a GPU x (1 - prompts' share of the cost) / tokens an hour"
        from ["cost.usd_per_useful_gpu_hour", "serving.peak_to_mean", "cost.prompts_share_ratio", "serving.requests_per_s", "serving.output_tokens"] => |e| e.token_costs()?.output;
    "cost.usd_per_mtok_output_with_prompts": Usd, "Million tokens of answers, with prompts", "All that is paid while they are made, for their prompts too.";
        "reading weights + reading caches + arithmetic + messages + waiting" from ["cost.usd_per_mtok_output_weights", "cost.usd_per_mtok_output_kv", "cost.usd_per_mtok_output_compute", "cost.usd_per_mtok_output_network", "cost.usd_per_mtok_output_waiting"]
        => |e| e.cost_elements()?.total();
    "cost.usd_per_mtok_output_weights": Usd, "  of it reading weights", "Of a million tokens of answers with prompts, by where the time goes: that in which weights are read.";
        "useful hour of a GPU x share of the time / answers' tokens an hour" from ["cost.usd_per_useful_gpu_hour", "serving.peak_to_mean", "serving.time_share.weights_ratio", "serving.output_tokens_per_s_per_gpu"]
        => |e| e.cost_elements()?.weights;
    "cost.usd_per_mtok_output_kv": Usd, "  reading caches", "Of a million tokens of answers with prompts, by where the time goes: that in which caches are read.";
        "useful hour of a GPU x share of the time / answers' tokens an hour" from ["cost.usd_per_useful_gpu_hour", "serving.peak_to_mean", "serving.time_share.kv_ratio", "serving.output_tokens_per_s_per_gpu"]
        => |e| e.cost_elements()?.cache;
    "cost.usd_per_mtok_output_compute": Usd, "  arithmetic", "Of a million tokens of answers with prompts, by where the time goes: arithmetic, prefill's among it.";
        "useful hour of a GPU x share of the time / answers' tokens an hour" from ["cost.usd_per_useful_gpu_hour", "serving.peak_to_mean", "serving.time_share.compute_ratio", "serving.output_tokens_per_s_per_gpu"]
        => |e| e.cost_elements()?.compute;
    "cost.usd_per_mtok_output_network": Usd, "  messages", "Of a million tokens of answers with prompts, by where the time goes: messages between ranks.";
        "useful hour of a GPU x share of the time / answers' tokens an hour" from ["cost.usd_per_useful_gpu_hour", "serving.peak_to_mean", "serving.time_share.network_ratio", "serving.output_tokens_per_s_per_gpu"]
        => |e| e.cost_elements()?.network;
    "cost.usd_per_mtok_output_waiting": Usd, "  waiting", "Of a million tokens of answers with prompts, by where the time goes: for the host and between kernels, and without a request; a pool of prefill without a prompt.";
        "useful hour of a GPU x share of the time / answers' tokens an hour" from ["cost.usd_per_useful_gpu_hour", "serving.peak_to_mean", "serving.time_share.idle_ratio", "serving.output_tokens_per_s_per_gpu"]
        => |e| e.cost_elements()?.waiting;
    "cost.usd_per_mtok_output_power": Usd, "  of all these, power", "Electricity, and the building or colocation that is paid by the kilowatt.";
        "the elements together x share of a year's cost that is paid by the kilowatt or kilowatt-hour" from ["cost.usd_per_mtok_output_with_prompts", "lines.annualised_power", "cost.annualised_per_year_usd"]
        => |e| e.cost_elements()?.power;
    "cost.energy_per_mtok_output_kwh": KilowattHours, "Energy of a million tokens of answers, with prompts", "What the facility takes while they are made, for their prompts too; its price is in the costs above. Of answers alone: `facility.energy_kwh_per_mtok_output`.";
        "energy of a million tokens, all alike x tokens of prompts and answers / answers'" from ["facility.energy_kwh_per_mtok_blended", "serving.input_tokens", "serving.output_tokens"]
        => |e| e.cost_elements()?.energy;
    "cost.price_usd_per_mtok_input": Usd, "Million tokens of prompts, at the margin of the price", "The price that leaves the wanted share of itself.";
        "cost / (1 - margin)" from ["cost.usd_per_mtok_input", "finance.margin"] => |e| of_million(e.prices_at_margin()?.input);
    "cost.price_usd_per_mtok_cached": Usd, "Million cached tokens, at the margin of the price", "The price of cached tokens that leaves the wanted share of itself.";
        "cost / (1 - margin)" from ["cost.usd_per_mtok_cached", "finance.margin"] => |e| of_million(e.prices_at_margin()?.cached);
    "cost.price_usd_per_mtok_output": Usd, "Million tokens of answers, at the margin of the price", "The price of answers that leaves the wanted share of itself.";
        "cost / (1 - margin)" from ["cost.usd_per_mtok_output", "finance.margin"] => |e| of_million(e.prices_at_margin()?.output);
    "cost.margin_on_cost_ratio": Ratio, "Margin over cost, at the prices elsewhere", "What selling all tokens at them leaves, over what serving them costs.";
        "tokens at the prices elsewhere / their cost here - 1" from ["finance.token_prices", "cost.usd_per_mtok_blended"] => |e| e.against_elsewhere()?.on_cost();
    "cost.break_even_utilisation_ratio": Ratio, "Utilisation that pays", "Share of the owned hours that must be in use for tokens to cost as much here as elsewhere; above the whole, buying them is cheaper.";
        "cost here / cost elsewhere x utilisation" from ["finance.token_prices", "finance.utilisation", "cost.usd_per_mtok_blended"] => |e| e.break_even_utilisation()?;
    "cost.break_even_requests_per_s": PerSecond, "Requests a second that pay", "From which tokens cost as much here as elsewhere in the same hours, at the same mix of tokens; at the peak of a day.";
        "requests a second x cost here / cost elsewhere" from ["finance.token_prices", "serving.requests_per_s", "cost.usd_per_mtok_blended"] => |e| e.break_even_rate()?;
    "cost.break_even_load_ratio": Ratio, "  over the most that is served", "Above the whole, buying tokens is cheaper at any load.";
        "requests a second that pay / at most" from ["cost.break_even_requests_per_s", "serving.most_requests_per_s"] => |e| e.break_even_load()?;
}

/// A run's cost over the tokens of all its stages, for a million of them.
fn per_trained_mtok(e: &Evaluation) -> Option<Usd> {
    let tokens: Tokens =
        plan(e)?.stages_of(&e.scenario.training.as_ref()?.job).iter().map(|stage| stage.job.tokens).sum();
    Some(e.point?.run * (Tokens::new(1e6) / tokens))
}

/// The price of a million tokens.
fn of_million(price: UsdPerToken) -> Usd {
    price * Tokens::new(1e6)
}
