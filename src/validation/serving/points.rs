//! Rows of latencies at a concurrency.

use super::named::Named;
use super::setup::{Asked, Draft, Measured, Quantity, Setup, version_after};
use crate::catalog::Catalog;
use crate::catalog::model::Model;
use crate::inference::{Load, ModelShape, Request, Spread};
use crate::parallelism::ServingLayout;
use crate::units::Fraction;
use crate::validation::aliases::Aliases;
use crate::validation::outcome::Fill;
use crate::validation::table::{Row, Unusable};
use crate::workload::{prediction_inputs, prediction_layer};

/// Steps that prompts wait at most for others in other attention groups.
const BALANCED: f64 = 60.0;
/// Rounds of a benchmark that sends ten prompts for each open request, the first of each at once.
const WAVES: f64 = 10.0;

/// Lengths that campaigns draw from the last fifth below them; all other campaigns have prompts of one length.
const DRAWN: [f64; 2] = [1_024.0, 8_192.0];

pub(super) fn setup(row: &Row, catalog: &Catalog, aliases: &Aliases) -> Result<Setup, Unusable> {
    let mut filled = Vec::new();
    let mut named = Named::find(row.needed("model_path")?, row.needed("system")?, catalog, aliases)?;
    let engine = row.needed("backend")?.to_owned();
    let named_by = ["source", "backend", "backend_version", "model_path", "system", "precision"];
    let texts = named_by.map(|column| row.text(column).unwrap_or_default()).join(" ");
    filled.extend(named.serve_in(row.needed("precision")?, row.text("kv_cache"), aliases.cache(&texts))?);
    let either = |clean: &str, plain: &str| -> Result<u32, Unusable> {
        Ok(row.count(clean)?.or(row.count(plain)?).unwrap_or(1))
    };
    let pools = row.needed("mode")? == "disagg";
    let side = if pools { "decode_" } else { "" };
    let layout = ServingLayout {
        tensor: either("clean_attention_tp", &format!("{side}tp_size"))?,
        attention_data: either("clean_attention_dp", &format!("{side}attention_dp_size"))?,
        pipeline: row.count(&format!("{side}pp_size"))?.unwrap_or(1),
        expert: 1,
        redundant_experts: 0,
    };
    let expert = expert_parallel(row, side)?;
    let layout = whole(layout, expert, named.model.blocks.iter().any(|block| block.moe().is_some()));
    let shortened = row.number("clean_length_factor")?.unwrap_or(1.0);
    let needed = |column: &str| row.number(column)?.ok_or_else(|| Unusable(format!("{column} is missing")));
    let (asked_in, asked_out) = (needed("isl")?, needed("osl")?);
    let (input, output) = (asked_in * shortened, asked_out * shortened);
    let total = needed("concurrency")?;
    let concurrency = row.number("clean_engine_concurrency")?.unwrap_or(total);
    let rounds = row.number("prompt_rounds")?.unwrap_or(WAVES);
    let fixed_length = !(DRAWN.contains(&asked_in) && DRAWN.contains(&asked_out));
    let version = row.text("source").and_then(|source| version_after(&engine, source));
    named.run_by((&engine, version), catalog)?;
    let room = named.room(layout, (&engine, version), (input, output), None, catalog)?;
    let rule = "benchmarks send ten prompts for each open request".to_owned();
    filled.push(Fill { field: "arrivals", value: format!("a burst, {rounds} rounds"), rule });
    // TensorRT-LLM's attention_dp_config, as its documents and InferenceX's scripts have it: enable_balance, timeout_iters of 60.
    let balance = (engine == "trtllm" && layout.attention_data > 1 && !pools).then_some(BALANCED);
    if let Some(steps) = balance {
        let rule = "as the engine's documents have it for ranks that attend for requests of their own".to_owned();
        filled.push(Fill { field: "balance", value: format!("at most {steps} steps"), rule });
    }
    let campaign = format!("{texts} tp{}", layout.tensor);
    // Groups that attend for requests of their own, and workers of pools, look before each step.
    let polls = aliases.polls(&campaign, concurrency).filter(|_| layout.attention_data == 1 && !pools);
    if let Some(steps) = polls {
        let rule = "as the scripts of InferenceX have it (--scheduler-recv-interval)".to_owned();
        filled.push(Fill { field: "polls", value: format!("every {steps} steps"), rule });
    }
    let request = Request { input, cached: 0.0, output, beyond: 0.0, spread: 0.0 };
    let load = Load { request, concurrency, waves: rounds, fixed_length };
    let spread = Spread::from(layout);
    let asked = if pools {
        let prefill = prefill_spread(row)?;
        let workers = |column: &str| row.count(column)?.ok_or_else(|| Unusable(format!("{column} is missing")));
        Asked::Pools {
            load,
            prefill,
            prefill_workers: f64::from(workers("prefill_num_workers")?),
            decode_workers: f64::from(workers("decode_num_workers")?),
        }
    } else {
        Asked::Open(load)
    };
    let cold = row.text("clean_flags") == Some(super::COLD);
    let mut measured = Vec::new();
    for (quantity, column) in [(Quantity::Tpot, "silicon_tpot_ms"), (Quantity::Ttft, "silicon_ttft_ms")] {
        if let Some(value) = row.number(column)? {
            measured.push(Measured { quantity, column, value, scale: 1e3 });
        }
    }
    let column = "derived_output_tok_s_per_gpu";
    if let Some((value, gpus)) = row.number(column)?.zip(row.number("n_gpus")?) {
        // Derived from both latencies over the accelerators that the row counts: comparable where those are the engine's.
        let engines = total / concurrency;
        let counted = spread.accelerators() * engines;
        if value > 0.0 && !pools && !cold && (gpus / counted - 1.0).abs() < 1e-6 {
            let scale = engines / gpus;
            measured.push(Measured { quantity: Quantity::Throughput, column, value, scale });
        }
    }
    Ok(Setup {
        draft: draft(row, &named.model)?,
        links: named.links(),
        shape: ModelShape::new(&named.model),
        formats: named.formats(),
        model: named.id,
        accelerator: named.accelerator,
        version,
        balance,
        polls,
        table: None,
        engine,
        spread,
        room,
        asked,
        counted_output: asked_out,
        measured,
        filled,
        source: row.text("source").unwrap_or_default().to_owned(),
        cold,
        held_out: super::held_out(row),
    })
}

/// Whether experts are split over ranks: as the cleaned column says, or the degree of the engine's own.
fn expert_parallel(row: &Row, side: &str) -> Result<bool, Unusable> {
    match row.text("clean_expert_parallel") {
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(other) => Err(Unusable(format!("clean_expert_parallel is \"{other}\", neither true nor false"))),
        None => Ok(row.count(&format!("{side}moe_ep_size"))?.unwrap_or(1) > 1),
    }
}

/// The layer that drafts where a row says how many tokens, and which shares of them are accepted.
fn draft(row: &Row, model: &Model) -> Result<Option<Draft>, Unusable> {
    let Some(drafted) = row.count("drafted_tokens")? else {
        return match row.text("acceptance") {
            None => Ok(None),
            Some(_) => Err(Unusable("acceptance says of how many tokens, and drafted_tokens is missing".to_owned())),
        };
    };
    let shares = row.needed("acceptance")?.split_whitespace().map(|share| share.parse().ok().and_then(Fraction::new));
    let shares: Option<Vec<Fraction>> = shares.collect();
    let acceptance = shares
        .filter(|shares| shares.len() == drafted as usize)
        .ok_or_else(|| Unusable(format!("acceptance is not {drafted} shares from 0 to 1 with blanks between")))?;
    let layer = prediction_layer(model);
    Ok(Some(Draft { shape: ModelShape::new(&layer).behind(model, prediction_inputs(model)), acceptance }))
}

/// The layout with experts over all of its ranks, or none.
fn whole(layout: ServingLayout, expert: bool, has_experts: bool) -> ServingLayout {
    let ranks = layout.tensor * layout.attention_data;
    // Ranks that attend for requests of their own hold experts whole; nothing else could be split.
    let expert = has_experts && (expert || layout.attention_data > 1);
    ServingLayout { expert: if expert { ranks } else { 1 }, ..layout }
}

/// How a prefill worker is spread. Tensor and attention-data degrees that are both more than one, with experts over their
/// product, stand for attention data alone, as in the cleaned columns of decode workers.
fn prefill_spread(row: &Row) -> Result<Spread, Unusable> {
    let count = |column: &str| -> Result<u32, Unusable> { Ok(row.count(column)?.unwrap_or(1)) };
    let (tensor, data) = (count("prefill_tp_size")?, count("prefill_attention_dp_size")?);
    let expert = count("prefill_moe_ep_size")?;
    let both = tensor > 1 && data > 1 && expert == tensor * data;
    Ok(Spread {
        tensor: if both { 1 } else { tensor },
        attention_data: if both { tensor } else { data },
        pipeline: count("prefill_pp_size")?,
        expert_parallel: expert > 1,
        redundant_experts: 0,
    })
}
