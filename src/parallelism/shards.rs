//! What one rank holds of the parameters, before data-parallel ranks split anything.

use super::{Layout, Stage};
use crate::catalog::model::{Block, Feed, Mixer, Mlp, Model};
use crate::workload::{LayerKind, Transformer, block_parameters};

/// Parameters of one rank. Counts are floating-point because a vocabulary may split unevenly.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RankParameters {
    /// A part of matrices that tensor ranks split.
    pub split: f64,
    /// Copied on every tensor rank: norms, routers, biases added after a sum over ranks, learned positions, latent
    /// attention's projections to the latent vectors, and key and value heads beyond one a rank.
    pub copied: f64,
    /// Routed experts.
    pub experts: f64,
}

impl RankParameters {
    /// All but routed experts.
    pub fn dense(&self) -> f64 {
        self.split + self.copied
    }

    /// All.
    pub fn total(&self) -> f64 {
        self.split + self.copied + self.experts
    }

    /// Those of so many.
    #[must_use]
    pub fn times(self, factor: u32) -> Self {
        let factor = f64::from(factor);
        Self { split: self.split * factor, copied: self.copied * factor, experts: self.experts * factor }
    }

    /// Those of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            split: self.split + other.split,
            copied: self.copied + other.copied,
            experts: self.experts + other.experts,
        }
    }
}

impl Layout {
    /// Parameters of one layer on a rank.
    pub fn layer_shard(&self, model: &Transformer, kind: LayerKind) -> RankParameters {
        let parameters = model.layer_parameters(kind);
        let tensor = f64::from(self.tensor);
        let keys = model.key_value_parameters() as f64;
        // A bias after a sum over ranks: attention's output, and the MLP's.
        let biases = if model.biases { 2.0 * f64::from(model.hidden) } else { 0.0 };
        let latent = model.copied_attention_parameters() as f64;
        let matrices =
            (parameters.attention + parameters.mlp + parameters.shared_experts) as f64 - keys - biases - latent;
        let (key_part, key_copies) =
            if self.tensor > model.kv_heads { (0.0, keys / f64::from(model.kv_heads)) } else { (keys / tensor, 0.0) };
        RankParameters {
            split: matrices / tensor + key_part,
            copied: (parameters.norms + parameters.router) as f64 + biases + key_copies + latent,
            experts: parameters.experts as f64 / f64::from(self.expert_shards()),
        }
    }

    /// Parameters of one layer of a block on a rank.
    ///
    /// Projections are split, and with them the vectors of recurrent layers; biases added after a sum over ranks, norms and
    /// routers are copied, and so are the projections around experts that work in a width of their own.
    pub fn block_shard(&self, model: &Model, block: &Block) -> RankParameters {
        let tensor = f64::from(self.tensor);
        let whole = block_parameters(model, block);
        let hidden = f64::from(model.hidden);
        let mut copied = (whole.mixer_copied + whole.router) as f64;
        let mut split = (whole.mixer + whole.mlp + whole.shared_experts - whole.mixer_copied) as f64;
        let vectors = whole.norms as f64;
        match block.mixer {
            Mixer::Attention(attention) => {
                copied += vectors + if attention.output_bias { hidden } else { 0.0 };
                split -= if attention.output_bias { hidden } else { 0.0 };
                if self.tensor > attention.kv_heads {
                    split -= whole.keys_values as f64;
                    copied += whole.keys_values as f64 / f64::from(attention.kv_heads);
                }
            }
            Mixer::Mamba(_) | Mixer::Mamba2(_) | Mixer::GatedDelta(_) => {
                let without = block_parameters(model, &Block { mixer: Mixer::None, ..*block }).norms as f64;
                copied += without;
                split += vectors - without;
            }
            Mixer::Latent(_) | Mixer::Compressed(_) | Mixer::None => copied += vectors,
        }
        if let Feed::Mlp(Mlp { biases: true, .. }) = block.feed {
            copied += hidden;
            split -= hidden;
        }
        let around = block.moe().map_or(0.0, |moe| 2.0 * hidden * f64::from(moe.latent));
        let experts = (whole.experts as f64 - around) / f64::from(self.expert_shards());
        RankParameters { split: split / tensor, copied: copied + around, experts }
    }

    /// Parameters of the token embedding, or of the output projection, on a rank.
    pub fn table_shard(&self, model: &Transformer) -> f64 {
        model.table_parameters() as f64 / f64::from(self.tensor)
    }

    /// Parameters of a stage on a rank. Tied embeddings are held on the first and on the last stage, unless those are one.
    pub fn stage_shard(&self, model: &Transformer, stage: Stage) -> RankParameters {
        let of = |kind, layers| if layers > 0 { self.layer_shard(model, kind) } else { RankParameters::default() };
        let layers = [of(LayerKind::Dense, stage.dense_layers), of(LayerKind::Moe, stage.moe_layers)];
        let [dense, moe] = layers;
        self.stage_around(model, stage, dense.times(stage.dense_layers).plus(moe.times(stage.moe_layers)))
    }

    /// What a rank holds of a stage's layers, with the tables and norms of the stage.
    pub fn stage_around(&self, model: &Transformer, stage: Stage, layers: RankParameters) -> RankParameters {
        let mut shard = layers;
        let table = self.table_shard(model);
        if stage.embedding {
            shard.split += table;
            shard.copied += model.position_parameters() as f64;
        }
        if stage.head {
            let norms = model.norm_parameters().saturating_add_signed(model.detail.model_vectors);
            shard.copied += norms as f64;
            if !(model.tied_embeddings && stage.embedding) {
                shard.split += table;
            }
        }
        shard
    }
}

#[cfg(test)]
mod tests {
    use super::super::StagePlan;
    use super::super::layout::tests::SINGLE;
    use super::*;
    use crate::workload::shapes::{gpt, llama_405b, mixtral_8x7b};

    #[test]
    fn one_rank_holds_the_whole_model() {
        for model in [gpt(24, 2_304, 24), llama_405b(), mixtral_8x7b()] {
            let stage = StagePlan::new(model.layers, &SINGLE).stage(0, &model);
            let held = SINGLE.stage_shard(&model, stage);
            assert!((held.total() - model.parameters().total() as f64).abs() < 0.5);
        }
    }

    #[test]
    fn a_rank_of_llama_3_405b_by_hand() {
        // Eight layers on a middle stage, a eighth of (16384*16384*2 + 2*16384*1024 + 3*16384*53248), and two norms:
        // (570,425,344 + 2,617,245,696)/8 = 398,458,880 split and 32,768 copied.
        let layout = Layout { tensor: 8, pipeline: 16, ..SINGLE };
        let model = llama_405b();
        let layer = layout.layer_shard(&model, LayerKind::Dense);
        assert_eq!((layer.split, layer.copied), (398_458_880.0, 32_768.0));
        let stage = StagePlan::new(126, &layout).stage(1, &model);
        assert!((layout.stage_shard(&model, stage).total() - 8.0 * (398_458_880.0 + 32_768.0)).abs() < 0.5);
        // Beyond eight, key and value heads are copied: 2*16384*128 parameters on each rank.
        let wide = Layout { tensor: 16, ..layout }.layer_shard(&model, LayerKind::Dense);
        assert!((wide.copied - (32_768.0 + 2.0 * 16_384.0 * 128.0)).abs() < 0.5);
    }

    #[test]
    fn tied_embeddings_are_held_on_both_ends() {
        let model = gpt(24, 2_304, 24);
        let layout = Layout { pipeline: 2, ..SINGLE };
        let plan = StagePlan::new(24, &layout);
        let held: f64 = (0..2).map(|stage| layout.stage_shard(&model, plan.stage(stage, &model)).total()).sum();
        let parameters = model.parameters();
        assert!((held - (parameters.total() + parameters.embedding) as f64).abs() < 0.5);
    }
}
