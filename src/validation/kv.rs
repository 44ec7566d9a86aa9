//! What a sequence keeps and what a model weighs, against published figures that are exact or close to it.
//!
//! A row is a model of the catalog, by its id in any case; what stands behind " (" or " /" in the name is left out. Each
//! figure that the row has is a case. Bytes are of bf16 unless the column says otherwise, recurrent states too.

use super::outcome::{CaseResult, Outcome, Prediction};
use super::table::{Holds, Row, Unusable};
use crate::catalog::Catalog;
use crate::catalog::model::{Feed, Mixer, Model};
use crate::workload::{CacheNumbers, census, numbers_at};

/// Columns that a table of caches must have.
pub(super) const COLUMNS: &[&str] = &["model", "kv_bytes_per_token_bf16"];

/// What its numbers may be: sizes of a byte or a parameter on; a model may have no fixed state.
pub(super) const NUMBERS: &[(&str, Holds)] = &[
    ("kv_bytes_per_token_bf16", SIZE),
    ("kv_bytes_per_token_fp8", SIZE),
    ("kv_bytes_per_token_bf16_if_swa_not_capped", SIZE),
    ("fixed_state_elems_per_seq", Holds::any(0.0, 1e15)),
    ("kv_bytes_8k_ctx_bf16", SIZE),
    ("kv_bytes_128k_ctx_bf16", SIZE),
    ("total_params", SIZE),
    ("active_params", SIZE),
    ("weight_bytes_bf16", SIZE),
    ("weight_bytes_fp8", SIZE),
    ("weight_bytes_fp4_approx", SIZE),
];

const SIZE: Holds = Holds::any(1.0, 1e15);
const BF16: f64 = 2.0;

/// A column and what the model says of it.
type Figure = (&'static str, fn(&Sizes) -> f64);

const FIGURES: &[Figure] = &[
    ("kv_bytes_per_token_bf16", |sizes| BF16 * sizes.cache.growing_per_token as f64),
    ("kv_bytes_per_token_fp8", |sizes| sizes.cache.growing_per_token as f64),
    ("kv_bytes_per_token_bf16_if_swa_not_capped", |sizes| {
        BF16 * (sizes.cache.growing_per_token + sizes.cache.windowed_per_token) as f64
    }),
    ("fixed_state_elems_per_seq", |sizes| sizes.cache.fixed() as f64),
    ("kv_bytes_8k_ctx_bf16", |sizes| BF16 * sizes.at_8k),
    ("kv_bytes_128k_ctx_bf16", |sizes| BF16 * sizes.at_128k),
    ("total_params", |sizes| sizes.parameters),
    ("active_params", |sizes| sizes.active),
    ("weight_bytes_bf16", |sizes| BF16 * sizes.parameters),
    ("weight_bytes_fp8", |sizes| sizes.parameters),
    // 4 bits, and 8 bits of scale for 16 numbers.
    ("weight_bytes_fp4_approx", |sizes| sizes.parameters * 4.5 / 8.0),
];

/// What is compared of a model.
struct Sizes {
    cache: CacheNumbers,
    at_8k: f64,
    at_128k: f64,
    parameters: f64,
    active: f64,
    /// What the parameters leave out, if anything.
    convention: Option<&'static str>,
    /// Whether the count of what a token uses leaves out more.
    uncounted: bool,
}

impl Sizes {
    /// What a model is; of parameters, what the row says that it counts.
    fn new(model: &Model, row: &Row) -> Self {
        let (count, cache) = (census(model), CacheNumbers::of(model));
        let states = (cache.states + cache.convolutions) as f64;
        let no_bias = row.text("params_note").is_some_and(|note| note.contains("no bias"));
        let biases = if no_bias { count.total() - census(&without_biases(model)).total() } else { 0 };
        let norms = indexer_norms(model);
        let convention = match (biases, norms) {
            (0, 0) => None,
            (0, _) => Some("without the norms of the indexers' keys, as published counts have it"),
            _ => Some("without biases of projections, as the row counts"),
        };
        let left_out = (norms + biases) as f64;
        Self {
            cache,
            at_8k: numbers_at(model, 8_192) as f64 + states,
            at_128k: numbers_at(model, 131_072) as f64 + states,
            parameters: count.total() as f64 - left_out,
            active: count.active() as f64 - left_out - biases_of_active(model) as f64,
            uncounted: biases_of_active(model) > 0,
            convention,
        }
    }
}

/// Biases and sinks that a token uses, of a model whose experts have biases: its published count of active parameters
/// (3.61 billion with the tables' part, openai/gpt-oss) leaves them out.
fn biases_of_active(model: &Model) -> u64 {
    if !model.blocks.iter().any(|block| block.moe().is_some_and(|moe| moe.expert.biases)) {
        return 0;
    }
    let mut bare = without_biases(model);
    for block in &mut bare.blocks {
        if let Mixer::Attention(attention) = &mut block.mixer {
            attention.sinks = false;
        }
        if let Feed::Moe(moe) = &mut block.feed {
            (moe.expert.biases, moe.router_bias) = (false, false);
        }
    }
    census(model).active() - census(&bare).active()
}

/// Parameters of the norms of indexers' keys, which published counts leave out.
fn indexer_norms(model: &Model) -> u64 {
    let of = |mixer: &Mixer| match mixer {
        Mixer::Latent(latent) => latent.indexer.map_or(0, |indexer| 2 * u64::from(indexer.head_dim)),
        _ => 0,
    };
    model.blocks.iter().map(|block| of(&block.mixer) * u64::from(block.layers)).sum()
}

/// The model with no bias in attention and in MLPs.
fn without_biases(model: &Model) -> Model {
    let mut bare = model.clone();
    for block in &mut bare.blocks {
        if let Mixer::Attention(attention) = &mut block.mixer {
            (attention.input_biases, attention.output_bias) = (false, false);
        }
        if let Feed::Mlp(mlp) = &mut block.feed {
            mlp.biases = false;
        }
    }
    bare
}

/// The catalog's id of a published name.
///
/// GLM-5.2 is published with GLM-5's shape; its later configuration has 57 layers that share the indexer of another.
fn id(name: &str) -> String {
    let end = [" (", " /"].into_iter().filter_map(|mark| name.find(mark)).min().unwrap_or(name.len());
    let id = name[..end].trim().to_lowercase().replace([' ', '_'], "-");
    if id == "glm-5.2" { "glm-5".to_owned() } else { id }
}

/// The cases of a row.
pub(super) fn cases(row: &Row, catalog: &Catalog) -> Vec<CaseResult> {
    let name = row.text("model").unwrap_or_default();
    let sizes = catalog.models.get(&id(name)).map(|entry| Sizes::new(&entry.part, row));
    let result = |column: &str, outcome| CaseResult {
        id: format!("{name}, {column}"),
        group: column.to_owned(),
        band: None,
        filled: Vec::new(),
        outcome,
    };
    let Some(sizes) = sizes else {
        return vec![result("model", Outcome::Skipped(format!("the catalog has no model \"{}\"", id(name))))];
    };
    let case = |(column, predicted): &Figure| {
        let number = || row.usable(NUMBERS).and_then(|()| row.number(column));
        let measured = match number() {
            Ok(measured) => measured?,
            Err(Unusable(reason)) => return Some(result(column, Outcome::Skipped(reason))),
        };
        let bare =
            (*column == "active_params" && sizes.uncounted).then_some("without biases and sinks, as the row counts");
        let of_weights = !column.contains("kv") && !column.contains("fixed");
        Some(result(
            column,
            Outcome::Predicted(Prediction {
                metric: (*column).to_owned(),
                measured,
                predicted: predicted(&sizes).round(),
                convention: bare.or(sizes.convention.filter(|_| of_weights)).map(str::to_owned),
                gpus: None,
            }),
        ))
    };
    FIGURES.iter().filter_map(case).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_names_become_ids() {
        assert_eq!(id("DeepSeek-V3 / R1"), "deepseek-v3");
        assert_eq!(id("Qwen3.5-35B-A3B (=Qwen3.6-35B-A3B)"), "qwen3.5-35b-a3b");
        assert_eq!(id("Llama-3.1-8B"), "llama-3.1-8b");
    }
}
