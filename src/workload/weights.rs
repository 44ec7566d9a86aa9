//! Bytes of a model's weights, each module in its own format.

use super::census;
use crate::catalog::model::{Block, Feed, Format, Formats, Mixer, Model, Module, ModuleFormat, Span};
use crate::units::Bytes;

/// Layers of a model that have that module.
fn layers_with(model: &Model, module: Module) -> u32 {
    let has = |block: &Block| match module {
        Module::Attention => block.mixer != Mixer::None,
        Module::Mlp => matches!(block.feed, Feed::Mlp(_)) || block.moe().is_some_and(|moe| moe.beside.is_some()),
        Module::Experts | Module::Router => block.moe().is_some(),
        Module::SharedExperts => block.moe().is_some_and(|moe| moe.shared_ffn > 0),
        Module::Embedding | Module::Head | Module::Norms | Module::Towers => true,
    };
    model.blocks.iter().filter(|block| has(block)).map(|block| block.layers).sum()
}

/// Bits of one parameter of a module, on average over the layers that have it.
///
/// Layers of a module are taken to be of one size; where they are not and some keep the base format, this is off by the
/// difference.
pub fn module_bits(model: &Model, module: Module) -> f64 {
    let (base, of) = (model.formats.base, model.formats.of(module));
    let layers = layers_with(model, module);
    if layers == 0 || of.kept_layers == 0 {
        return of.format.bits();
    }
    let kept = f64::from(of.kept_layers.min(layers)) / f64::from(layers);
    of.format.bits() * (1.0 - kept) + base.bits() * kept
}

/// Bytes of the weights of each module.
pub fn weight_bytes(model: &Model) -> impl Iterator<Item = (Module, Bytes)> {
    let census = census::census(model);
    Module::ALL
        .iter()
        .map(move |module| (*module, Bytes::new(census.of(*module) as f64 * module_bits(model, *module) / 8.0)))
}

/// Has layers that attend within chunks attend to all tokens, as they do on an engine that does not know of chunks.
pub fn attend_to_all(model: &mut Model) {
    for block in &mut model.blocks {
        if let Mixer::Attention(attention) = &mut block.mixer
            && attention.span == Span::Chunk
        {
            attention.span = Span::Full;
            attention.window = 0;
        }
    }
}

/// Gives a model's projections one format; tables, routers and norms keep the base format.
///
/// Of a model with experts, four bits go to MLPs and experts alone, as published NVFP4, MXFP4 and INT4 checkpoints of such
/// models have it (nvidia/DeepSeek-R1-FP4, openai/gpt-oss-120b, moonshotai/Kimi-K2.5): attention, a small part of the
/// weights, keeps the base format. Modules that have such numbers already keep the scales of blocks that they were published with.
pub fn requantise(model: &mut Model, format: Format) {
    let published = model.formats.clone();
    let of = |module: Module| {
        Some(published.of(module).format).filter(|own| own.number == format.number && format.group == 0)
    };
    let experts = model.blocks.iter().any(|block| block.moe().is_some());
    let keeps = |module: Module| experts && format.number.bits() < 8 && module == Module::Attention;
    model.formats.modules = if format == model.formats.base {
        Vec::new()
    } else {
        let modules = Formats::LINEAR.into_iter().filter(|module| !keeps(*module));
        let kept = |module| ModuleFormat { format: of(module).unwrap_or(format), kept_layers: 0 };
        modules.map(|module| (module, kept(module))).collect()
    };
}
