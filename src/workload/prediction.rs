//! Modules that predict more than the next token: one more layer on top of a model.

use crate::catalog::model::{Block, Model};

/// One more layer like the model's last, between the model's own embedding and head: a module of multi-token prediction
/// (DeepSeek-V3, arXiv 2412.19437, section 2.2), or the head of an EAGLE draft. Its input joins what the model made of a token
/// with the embedding of the next one ([`prediction_inputs`]).
pub fn prediction_layer(model: &Model) -> Model {
    let last = model.layer_order().last().and_then(|index| model.blocks.get(*index)).copied().unwrap_or_default();
    Model {
        blocks: vec![Block { layers: 1, leading: false, ..last }],
        order: Vec::new(),
        towers: Vec::new(),
        published_parameters: None,
        published_active_parameters: None,
        ..model.clone()
    }
}

/// Parameters of the projection of both inputs of such a layer, twice the hidden width, to one.
pub fn prediction_inputs(model: &Model) -> u64 {
    2 * u64::from(model.hidden) * u64::from(model.hidden)
}
