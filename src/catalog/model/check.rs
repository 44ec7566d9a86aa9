//! What cannot be true of a model.

use super::{Attention, Block, Compressed, Feed, Latent, Mixer, Mlp, Model, Span};
use crate::diagnostics::Code;

/// The dimension that a problem is about; each form of file has its own key for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The layers.
    Layers,
    /// Which layer is which.
    Order,
    /// Width of the residual stream.
    Hidden,
    /// Query heads.
    Heads,
    /// Key and value heads.
    KvHeads,
    /// The window of attention.
    Window,
    /// Routed experts, and how many of them a token visits.
    Experts,
}

impl Field {
    /// The key of a catalog file that is closest to it.
    pub(super) const fn toml_key(self) -> &'static str {
        match self {
            Self::Layers => "layers",
            Self::Order => "order",
            Self::Hidden => "hidden",
            Self::Heads => "heads",
            Self::KvHeads => "kv_heads",
            Self::Window => "block",
            Self::Experts => "moe",
        }
    }
}

/// Something that cannot be true of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The dimension at fault.
    pub field: Field,
    /// The kind of mistake.
    pub code: Code,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// More parameters than any count here can hold exactly; nobody trains such a model.
const MOST_PARAMETERS: f64 = 1e15;

impl Model {
    /// What cannot be true of it, all of it.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems: Vec<Problem> = Vec::new();
        let mut add = |field, code, message: String, hint: String| {
            if problems.iter().all(|known| known.message != message) {
                problems.push(Problem { field, code, message, hint });
            }
        };
        if self.layers() == 0 {
            add(
                Field::Layers,
                Code::OutOfRange,
                "there are no layers".to_owned(),
                "a model has at least one".to_owned(),
            );
        }
        let named = |index: usize| self.order.iter().filter(|place| **place as usize == index + 1).count();
        let counted = self.blocks.iter().enumerate().all(|(index, block)| named(index) == block.layers as usize);
        let all = counted && self.order.len() == self.layers() as usize;
        if !(self.order.is_empty() || all) {
            let message = "`order` does not name every block as often as it has layers".to_owned();
            let hint = "it has one entry a layer, each the place of a block from 1 on".to_owned();
            add(Field::Order, Code::Inconsistent, message, hint);
        }
        for block in &self.blocks {
            if let Mixer::Attention(attention) = block.mixer {
                if attention.kv_heads == 0 || !attention.heads.is_multiple_of(attention.kv_heads) {
                    let (heads, kv_heads) = (attention.heads, attention.kv_heads);
                    let message = format!("{heads} query heads cannot share {kv_heads} key and value heads evenly");
                    add(Field::KvHeads, Code::Inconsistent, message, format!("it divides {heads}"));
                }
                if matches!(attention.span, Span::Window | Span::Chunk) == (attention.window == 0) {
                    let message =
                        format!("attention of span \"{}\" with a window of {}", attention.span, attention.window);
                    let hint = "windows and chunks have a `window`, the other spans have none";
                    add(Field::Window, Code::Inconsistent, message, hint.to_owned());
                }
            }
            if let Mixer::Compressed(Compressed { heads, output_groups, .. }) = block.mixer
                && (output_groups == 0 || !heads.is_multiple_of(output_groups))
            {
                let message = format!("{heads} query heads do not split into {output_groups} output groups");
                add(Field::Heads, Code::Inconsistent, message, format!("it divides {heads}"));
            }
            if let Some(moe) = block.moe().filter(|moe| moe.per_token > moe.experts) {
                let message = format!("a token cannot visit {} of {} experts", moe.per_token, moe.experts);
                add(Field::Experts, Code::Inconsistent, message, "at most as many as there are".to_owned());
            }
        }
        if self.parameter_bound() > MOST_PARAMETERS {
            let message = "this shape has more than a thousand trillion parameters".to_owned();
            let hint = "one of its dimensions has too many digits";
            add(Field::Hidden, Code::OutOfRange, message, hint.to_owned());
        }
        problems
    }

    /// Not less than the parameters, in floating point so that no digit typed too many overflows.
    fn parameter_bound(&self) -> f64 {
        let hidden = f64::from(self.hidden);
        let embeddings = f64::from(self.vocab) * 2.0 + f64::from(self.learned_positions.unwrap_or(0));
        let towers: f64 = self.towers.iter().map(|tower| tower.parameters as f64).sum();
        let layers: f64 = self.blocks.iter().map(|block| f64::from(block.layers) * block.bound(hidden)).sum();
        layers + embeddings * (hidden + 1.0) + towers
    }
}

impl Block {
    fn bound(&self, hidden: f64) -> f64 {
        let mixer = match self.mixer {
            Mixer::None => 0.0,
            Mixer::Attention(attention) => attention.bound(hidden),
            Mixer::Latent(latent) => latent.bound(hidden),
            Mixer::Compressed(compressed) => compressed.bound(hidden),
            Mixer::Mamba2(mamba) => {
                let inner = f64::from(mamba.heads) * f64::from(mamba.head_dim);
                let shared = 2.0 * f64::from(mamba.groups) * f64::from(mamba.state);
                (3.0 * inner + shared + f64::from(mamba.heads)) * (hidden + f64::from(mamba.kernel) + 4.0)
            }
            Mixer::Mamba(mamba) => {
                let within = f64::from(mamba.step_rank) * 2.0 + 3.0 * f64::from(mamba.state) + 4.0;
                f64::from(mamba.inner) * (3.0 * hidden + f64::from(mamba.kernel) + within)
            }
            Mixer::GatedDelta(delta) => {
                let keys = f64::from(delta.key_heads) * f64::from(delta.key_dim);
                let values = f64::from(delta.value_heads) * (f64::from(delta.value_dim) + 2.0);
                (2.0 * keys + 3.0 * values) * (hidden + f64::from(delta.kernel) + 2.0)
            }
        };
        let feed = match self.feed {
            Feed::None => 0.0,
            Feed::Mlp(mlp) => mlp.bound(hidden),
            Feed::Moe(moe) => {
                let width = hidden.max(f64::from(moe.latent));
                let shared = Mlp { ffn: moe.shared_ffn, ..moe.expert }.bound(hidden);
                let latent = 2.0 * hidden * f64::from(moe.latent);
                let router = f64::from(moe.experts) * (hidden + 2.0);
                f64::from(moe.experts) * moe.expert.bound(width)
                    + shared
                    + latent
                    + router
                    + moe.beside.map_or(0.0, |mlp| mlp.bound(hidden))
            }
        };
        mixer + feed + 2.0 * f64::from(self.norms) * hidden + f64::from(self.scalars)
    }
}

impl Mlp {
    fn bound(self, hidden: f64) -> f64 {
        3.0 * (hidden + 1.0) * (f64::from(self.ffn) + 1.0)
    }
}

impl Attention {
    fn bound(&self, hidden: f64) -> f64 {
        let width = f64::from(self.head_dim).max(f64::from(self.value_dim));
        5.0 * (hidden + 2.0) * (f64::from(self.heads) * width + 1.0)
    }
}

impl Compressed {
    fn bound(&self, hidden: f64) -> f64 {
        let [heads, dim, query, ratio] = [self.heads, self.head_dim, self.query_rank, self.ratio].map(f64::from);
        let [groups, rank] = [self.output_groups, self.output_rank].map(f64::from);
        let wide = dim + self.indexer.map_or(0.0, |indexer| f64::from(indexer.head_dim));
        let indexer = self.indexer.map_or(0.0, |indexer| {
            (f64::from(indexer.heads) + 1.0) * (query * f64::from(indexer.head_dim) + hidden)
        });
        (hidden + heads * dim + 1.0) * (query + 1.0)
            + (5.0 * hidden + 2.0 * ratio + 3.0) * wide
            + heads * (dim * rank + 1.0)
            + groups * rank * hidden
            + indexer
    }
}

impl Latent {
    fn bound(&self, hidden: f64) -> f64 {
        let heads = f64::from(self.heads);
        let key = f64::from(self.nope_dim) + f64::from(self.rope_dim);
        let value = f64::from(self.value_dim);
        let query_input = hidden.max(f64::from(self.query_rank.unwrap_or(0)));
        let latent = f64::from(self.rank) + f64::from(self.rope_dim);
        let indexer = self.indexer.map_or(0.0, |indexer| {
            (f64::from(indexer.heads) + 1.0) * (f64::from(indexer.head_dim) + 1.0) * (query_input + 2.0)
        });
        heads * (query_input * key + latent * (key + value) + value * hidden)
            + (hidden + 1.0) * (latent + f64::from(self.query_rank.unwrap_or(0)))
            + indexer
    }
}
