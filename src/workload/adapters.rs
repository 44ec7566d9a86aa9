//! Low-rank adapters beside a model's projections (LoRA, Hu et al., arXiv 2106.09685, section 4.1).

use crate::catalog::model::{Feed, Mixer, Model};

/// Parameters of an adapter, and the projections that it changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AdapterParameters {
    /// Of the factors towards the side that tensor ranks hold whole: `rank x hidden` a projection.
    pub whole: f64,
    /// Of those towards the side that tensor ranks split.
    pub split: f64,
    /// Projections that are changed, over all layers.
    pub projections: f64,
}

/// Parameters of an adapter of that rank: a projection of `n` inputs and `m` outputs gets factors of `rank x n` and
/// `m x rank`. `all` changes MLPs beside attention.
///
/// # Errors
/// In words, where a layer is of a kind whose adapters are not modelled.
pub fn adapter_parameters(model: &Model, rank: u32, all: bool) -> Result<AdapterParameters, &'static str> {
    let (hidden, rank) = (f64::from(model.hidden), f64::from(rank));
    let mut found = AdapterParameters::default();
    for block in &model.blocks {
        let layers = f64::from(block.layers);
        let mut change = |split: f64| {
            found.whole += rank * hidden * layers;
            found.split += rank * split * layers;
            found.projections += layers;
        };
        match block.mixer {
            Mixer::Attention(attention) => {
                let [heads, kv_heads, key, value] =
                    [attention.heads, attention.kv_heads, attention.head_dim, attention.value_dim].map(f64::from);
                [heads * key, kv_heads * key, kv_heads * value, heads * value].into_iter().for_each(&mut change);
            }
            // Queries, the latent vector's expansion and the output.
            Mixer::Latent(latent) => {
                let [heads, nope, rope, value] =
                    [latent.heads, latent.nope_dim, latent.rope_dim, latent.value_dim].map(f64::from);
                [heads * (nope + rope), heads * (nope + value), heads * value].into_iter().for_each(&mut change);
            }
            Mixer::None => {}
            Mixer::Compressed(_) | Mixer::Mamba2(_) | Mixer::Mamba(_) | Mixer::GatedDelta(_) => {
                return Err("layers whose mixer is neither grouped nor latent attention");
            }
        }
        match &block.feed {
            Feed::Mlp(mlp) if all => {
                let projections = if mlp.gated { 3 } else { 2 };
                (0..projections).for_each(|_| change(f64::from(mlp.ffn)));
            }
            Feed::Moe(_) if all => return Err("experts"),
            Feed::None | Feed::Mlp(_) | Feed::Moe(_) => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::model::{Attention, Block, Mlp};

    #[test]
    fn an_adapter_of_a_7b_model_has_the_published_parameters() {
        // Llama 2 7B: 32 layers of 4,096, MLPs of 11,008. Rank 16 on all seven projections: 39,976,960, as PEFT prints of it.
        let attention = Attention { heads: 32, kv_heads: 32, head_dim: 128, value_dim: 128, ..Attention::default() };
        let feed = Feed::Mlp(Mlp { ffn: 11_008, gated: true, biases: false });
        let block = Block { layers: 32, mixer: Mixer::Attention(attention), feed, ..Block::default() };
        let model = Model { hidden: 4_096, vocab: 32_000, blocks: vec![block], ..Model::default() };
        let all = adapter_parameters(&model, 16, true).unwrap();
        assert!((all.whole + all.split - 39_976_960.0).abs() < 0.5, "{all:?}");
        assert!((all.projections - 7.0 * 32.0).abs() < 0.5);
        let attention = adapter_parameters(&model, 16, false).unwrap();
        assert!((attention.whole + attention.split - 16_777_216.0).abs() < 0.5, "{attention:?}");
    }
}
