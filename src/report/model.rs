//! What a model is: parameters by module, bytes of weights and cache, operations of a token.

use serde_json::{Value as Json, json};

use super::figure::grouped;
use super::number::whole_or_finite;
use super::page::{Block, Grid, Page, Section};
use crate::catalog::model::{Compressed, Feed, Mixer, Model, Module, Span};
use crate::memory::serving::{CacheFormats, Pages, Paging, ServingLayout, sequence_bytes};
use crate::units::{Bytes, Quantity, significant};
use crate::workload::{
    CacheNumbers, Census, Fill, TokenFlops, block_parameters, census, module_bits, token_flops, weight_bytes,
};

/// A model and its figures at a context.
#[derive(Clone, Debug)]
pub struct ModelSheet {
    name: String,
    model: Model,
    fills: Vec<Fill>,
    context: u64,
    formats: CacheFormats,
    census: Census,
    cache: CacheNumbers,
    flops: TokenFlops,
}

impl ModelSheet {
    /// The figures of a model at a context of so many tokens, its cache in these formats.
    pub fn new(name: String, model: Model, fills: Vec<Fill>, context: u64, formats: CacheFormats) -> Self {
        let (census, cache) = (census(&model), CacheNumbers::of(&model));
        let flops = token_flops(&model, context);
        Self { name, model, fills, context, formats, census, cache, flops }
    }

    fn keys_values(&self, numbers: u64) -> Bytes {
        self.formats.keys_values.bytes(numbers as f64)
    }

    /// Bytes a token in layers that keep all tokens; where every layer has a window, a token's until it is full.
    fn per_token(&self) -> Bytes {
        let growing = self.cache.growing_per_token;
        self.keys_values(if growing > 0 { growing } else { self.cache.windowed_per_token })
    }

    fn states(&self) -> Bytes {
        self.formats.states.bytes(self.cache.states as f64)
            + self.formats.convolutions.bytes(self.cache.convolutions as f64)
    }

    fn windows(&self) -> Bytes {
        self.keys_values(self.cache.full_windows)
    }

    fn sequence(&self, paging: Paging) -> Bytes {
        let pages = Pages { paging, ..Pages::BOUND };
        sequence_bytes(&self.model, &self.formats, pages, &ServingLayout::SINGLE, self.context)
    }

    fn weights(&self) -> Bytes {
        weight_bytes(&self.model).map(|(_, bytes)| bytes).sum()
    }

    /// The modules that the model has: name, parameters, format, bytes.
    fn modules(&self) -> impl Iterator<Item = (Module, u64, f64, Bytes)> {
        weight_bytes(&self.model)
            .map(|(module, bytes)| (module, self.census.of(module), module_bits(&self.model, module), bytes))
            .filter(|(_, parameters, ..)| *parameters > 0)
    }
}

/// The sheet for programs.
pub fn model_json(sheet: &ModelSheet) -> String {
    let bytes = |bytes: Bytes| whole_or_finite(bytes.base());
    let modules: Vec<Json> = sheet
        .modules()
        .map(|(module, parameters, bits, size)| {
            json!({
                "module": module.word(), "parameters_count": parameters, "format": sheet.model.formats.of(module).format.to_string(),
                "bits_per_parameter": bits, "weight_bytes": bytes(size),
            })
        })
        .collect();
    let blocks: Vec<Json> = sheet
        .model
        .blocks
        .iter()
        .map(|block| {
            let count = block_parameters(&sheet.model, block);
            json!({
                "layers_count": block.layers, "mixer": mixer(&block.mixer), "feed": feed(&block.feed),
                "parameters_per_layer_count": count.total(), "active_parameters_per_layer_count": count.active(),
            })
        })
        .collect();
    let filled: Vec<Json> =
        sheet.fills.iter().map(|fill| json!({ "key": fill.key, "value": fill.value, "why": fill.why })).collect();
    let object = json!({
        "name": sheet.name,
        "parameters_count": sheet.census.total(),
        "active_parameters_count": sheet.census.active(),
        "tower_parameters_count": sheet.census.towers,
        "layers_count": sheet.model.layers(),
        "max_context_count": sheet.model.context(),
        "weight_bytes": bytes(sheet.weights()),
        "kv_format": sheet.formats.keys_values.to_string(),
        "state_format": sheet.formats.states.to_string(),
        "kv_bytes_per_token": bytes(sheet.per_token()),
        "kv_bytes_per_token_all_layers": bytes(sheet.keys_values(sheet.cache.growing_per_token + sheet.cache.windowed_per_token)),
        "state_bytes_per_sequence": bytes(sheet.windows() + sheet.states()),
        "window_bytes_per_sequence": bytes(sheet.windows()),
        "recurrent_bytes_per_sequence": bytes(sheet.states()),
        "state_numbers_per_sequence_count": sheet.cache.fixed(),
        "context_tokens_count": sheet.context,
        "kv_bytes_at_context": bytes(sheet.sequence(Paging::PerLayer)),
        "kv_bytes_at_context_all_tokens": bytes(sheet.sequence(Paging::AllTokens)),
        "kv_bytes_at_context_unified_pages": bytes(sheet.sequence(Paging::UnifiedPages)),
        "flops_per_token": whole_or_finite(sheet.flops.total().base()),
        "weight_flops_per_token": whole_or_finite(sheet.flops.weights.base()),
        "cache_flops_per_token": whole_or_finite(sheet.flops.cache.base()),
        "modules": modules,
        "blocks": blocks,
        "filled": filled,
    });
    format!("{object:#}\n")
}

/// Modules and totals as a table, for spreadsheets.
pub fn model_grid(sheet: &ModelSheet) -> Grid {
    let mut grid = Grid::new(&["key", "value"], 1);
    let mut row = |key: &str, value: String| grid.rows.push(vec![key.to_owned(), value]);
    row("parameters_count", sheet.census.total().to_string());
    row("active_parameters_count", sheet.census.active().to_string());
    row("tower_parameters_count", sheet.census.towers.to_string());
    if let Some(tokens) = sheet.model.context() {
        row("max_context_count", tokens.to_string());
    }
    row("weight_bytes", sheet.weights().base().to_string());
    row("kv_bytes_per_token", sheet.per_token().base().to_string());
    row("state_bytes_per_sequence", (sheet.windows() + sheet.states()).base().to_string());
    row("kv_bytes_at_context", sheet.sequence(Paging::PerLayer).base().to_string());
    row("flops_per_token", sheet.flops.total().base().to_string());
    for (module, parameters, ..) in sheet.modules() {
        row(&format!("{module}_parameters_count"), parameters.to_string());
    }
    grid
}

/// The sheet for people.
pub fn model_page(sheet: &ModelSheet) -> Page {
    let mut sections = vec![Section::new(String::new(), Block::Grid(headlines(sheet)))];
    let mut modules = Grid::new(&["module", "parameters", "format", "weights"], 1);
    for (module, parameters, bits, bytes) in sheet.modules() {
        let of = sheet.model.formats.of(module);
        let format = if of.kept_layers == 0 {
            of.format.to_string()
        } else {
            format!(
                "{}, {} layers in {}: {} bits",
                of.format,
                of.kept_layers,
                sheet.model.formats.base,
                significant(bits, 4)
            )
        };
        modules.rows.push(vec![module.word().replace('_', " "), grouped(parameters), format, size(bytes)]);
    }
    sections.push(Section::new("Weights", Block::Grid(modules)));
    let mut layers = Grid::new(&["layers", "mixer", "then", "parameters of one", "of which a token uses"], 3);
    for block in &sheet.model.blocks {
        let count = block_parameters(&sheet.model, block);
        let cells = [
            block.layers.to_string(),
            mixer(&block.mixer),
            feed(&block.feed),
            grouped(count.total()),
            grouped(count.active()),
        ];
        layers.rows.push(cells.to_vec());
    }
    sections.push(Section::new("Layers", Block::Grid(layers)));
    let mut notes = vec![
        "Parameters count matrices, biases, all norms, sinks and routing corrections; towers of other modalities stand \
         apart, and modules that predict further tokens are left out."
            .to_owned(),
    ];
    if let Some(most) = sheet.model.context().map(u64::from).filter(|most| sheet.context > *most) {
        notes.push(format!(
            "Figures are of a context of {} tokens, more than the {} that the model takes (--context).",
            grouped(sheet.context),
            grouped(most)
        ));
    }
    notes.extend(sheet.fills.iter().map(|fill| format!("`{}` taken as {}: {}.", fill.key, fill.value, fill.why)));
    sections.push(Section::new("Notes", Block::List(notes)));
    Page { title: sheet.name.clone(), sections }
}

fn headlines(sheet: &ModelSheet) -> Grid {
    let mut grid = Grid::new(&["figure", "value"], 1);
    let mut row = |figure: String, value: String| grid.rows.push(vec![figure, value]);
    row("parameters".to_owned(), grouped(sheet.census.total()));
    row("of which a token uses".to_owned(), grouped(sheet.census.active()));
    if sheet.census.towers > 0 {
        row("beside them, towers".to_owned(), grouped(sheet.census.towers));
    }
    if let Some(tokens) = sheet.model.context() {
        row("tokens of prompt and answer, at most".to_owned(), grouped(tokens.into()));
    }
    row("weights".to_owned(), size(sheet.weights()));
    row(format!("cache a token ({})", sheet.formats.keys_values), exact(sheet.per_token()));
    let windows = sheet.windows();
    if windows > Bytes::ZERO {
        row("full windows a sequence".to_owned(), size(windows));
    }
    if sheet.states() > Bytes::ZERO {
        row(format!("recurrent states a sequence ({})", sheet.formats.states), size(sheet.states()));
    }
    let least = sheet.sequence(Paging::PerLayer);
    row(format!("cache of {} tokens, least", grouped(sheet.context)), size(least));
    for (paging, what) in [(Paging::AllTokens, "every layer keeps all"), (Paging::UnifiedPages, "pages of one size")] {
        let bytes = sheet.sequence(paging);
        if bytes > least {
            row(format!("cache of {} tokens, {what}", grouped(sheet.context)), size(bytes));
        }
    }
    row("operations a token, weights".to_owned(), sheet.flops.weights.to_string());
    row("operations a token, cache".to_owned(), sheet.flops.cache.to_string());
    grid
}

/// Decimal and binary, since tools print either and call both GB.
fn size(bytes: Bytes) -> String {
    const GIB: f64 = 1_073_741_824.0;
    if bytes.base() < GIB { bytes.to_string() } else { format!("{bytes} ({} GiB)", significant(bytes.base() / GIB, 4)) }
}

fn exact(bytes: Bytes) -> String {
    format!("{} B", significant(bytes.base(), 12))
}

fn mixer(mixer: &Mixer) -> String {
    match mixer {
        Mixer::None => "nothing".to_owned(),
        Mixer::Attention(attention) => {
            let span = match attention.span {
                Span::Full => String::new(),
                Span::Cross => ", to another modality".to_owned(),
                Span::Window | Span::Chunk => format!(", {} of {}", attention.span, attention.window),
            };
            format!("attention {}/{} heads of {}{span}", attention.heads, attention.kv_heads, attention.head_dim)
        }
        Mixer::Latent(latent) => {
            let indexer = if latent.indexer.is_some() { ", indexer" } else { "" };
            format!("latent attention {} + {}, {} heads{indexer}", latent.rank, latent.rope_dim, latent.heads)
        }
        Mixer::Compressed(compressed) => {
            let indexer = if compressed.indexer.is_some() { ", indexer" } else { "" };
            let Compressed { heads, head_dim, ratio, window, .. } = compressed;
            format!("attention to one of {ratio} tokens and a window of {window}, {heads} heads of {head_dim}{indexer}")
        }
        Mixer::Mamba2(mamba) => format!("Mamba-2, {} heads of {}, state {}", mamba.heads, mamba.head_dim, mamba.state),
        Mixer::Mamba(mamba) => format!("Mamba, {} channels, state {}", mamba.inner, mamba.state),
        Mixer::GatedDelta(delta) => {
            format!("gated delta, {} heads of {} x {}", delta.value_heads, delta.key_dim, delta.value_dim)
        }
    }
}

fn feed(feed: &Feed) -> String {
    match feed {
        Feed::None => "nothing".to_owned(),
        Feed::Mlp(mlp) => format!("MLP {}{}", mlp.ffn, if mlp.gated { ", gated" } else { "" }),
        Feed::Moe(moe) => {
            let shared = if moe.shared_ffn > 0 { format!(" + shared {}", moe.shared_ffn) } else { String::new() };
            format!("{} of {} experts of {}{shared}", moe.per_token, moe.experts, moe.expert.ffn)
        }
    }
}
