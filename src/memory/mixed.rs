//! Activations of a layer of any kind: attention with a gate or without, latent attention, recurrent layers, and what follows
//! them or stands alone.
//!
//! Counted is what published kernels keep for the backward pass; what they compute again within themselves is not. `n` is the
//! size of a number, 2 bytes; `i` that of an input of a matrix, which may be cast to fewer.
//!
//! | mixer | bytes a token behind its norm | kept as in |
//! |---|---|---|
//! | gate a channel on attention | `(n + i) output` beside attention's | Qwen3-Next: the gate's sigmoid, and its product with attention's output |
//! | Mamba-2 | `n (2 inner + 2 groups state + heads) + n inner + i inner + 4 groups` | state-spaces/mamba, `mamba_split_conv1d_scan_combined`: the input projection's output, that of the scan, and what the output projection reads |
//! | Mamba | `n (3 inner + step + 4 state) + i inner + 8 inner state / 2048` | the same, `MambaInnerFn`: convolution and time step are computed again |
//! | Mamba with norms inside | as above, and `n 2 inner` | Jamba: convolution and time step are kept, since the kernels are apart |
//! | gated delta rule | `n (2 keys + 4 values + 2 heads key_dim) + i values + heads (65 n + 12 + 8)` | fla-org/flash-linear-attention, `chunk_gated_delta_rule`: the convolution's input, normed queries and keys of every value head, values, gate, output, a 64-wide matrix a head, decays in single precision |

use super::Software;
use super::activations::{Channels, LayerActivations, Parts, Routed, SINGLE, Sizes, TokenBytes, latent_width};
use crate::catalog::model::{Attention, Block, Feed, Gate, GatedDelta, Latent, Mamba, Mamba2, Mixer, Mlp, MoeBlock};
use crate::parallelism::Layout;
use crate::workload::TrainingJob;

/// Tokens that Mamba's scan keeps one state of.
const MAMBA_CHUNK: f64 = 2_048.0;
/// Tokens of a chunk of the gated delta rule, and the width of the matrix that is kept of each.
const DELTA_CHUNK: f64 = 64.0;

/// What a mixer keeps.
#[derive(Default)]
struct Mixed {
    /// All that its backward pass reads behind the norm, but scores.
    read: f64,
    scores: f64,
    /// Of that, what the policy of alternate matrix multiplications keeps.
    alternate: f64,
    latent_up: f64,
}

impl Layout {
    /// Activations of one layer of a block.
    pub fn block_activations(
        &self,
        hidden: u32,
        block: &Block,
        job: &TrainingJob,
        software: &Software,
    ) -> LayerActivations {
        let sizes = Sizes::new(self, hidden, job, software);
        let Sizes { number, input, stream, .. } = sizes;
        let mixed = self.mixer_bytes(&sizes, &block.mixer, job);
        let (mixes, feeds) = (block.mixer != Mixer::None, block.feed != Feed::None);
        // Norms before the mixer and the MLP; where both share one, it counts with the mixer. Others, behind them, keep
        // their input.
        let before = u32::from(mixes) + u32::from(feeds);
        let own = block.norms.min(before);
        let normed_feed = if feeds && own + u32::from(!mixes) > 1 { sizes.normed() } else { 0.0 };
        let behind = number * stream * f64::from(block.norms - own);
        let mut token = TokenBytes {
            input: number * stream,
            attention: if mixes { sizes.normed() + mixed.read } else { 0.0 },
            scores: mixed.scores,
            mlp: normed_feed + behind,
            alternate: number * stream + mixed.alternate,
            parts: Parts {
                norm_outputs: input * stream * f64::from(own),
                latent_up: mixed.latent_up,
                ..Parts::default()
            },
        };
        match block.feed {
            Feed::None => {}
            Feed::Mlp(mlp) => {
                let inside = sizes.inside(f64::from(mlp.ffn) / sizes.tensor, ups(mlp));
                token.mlp += inside + sizes.mask();
                token.alternate += alternate_mlp(&sizes, f64::from(mlp.ffn), mlp);
                token.parts.mlp = inside;
            }
            Feed::Moe(moe) => add_experts(&sizes, &moe, hidden, job, &mut token),
        }
        token.layer(self, job, software)
    }

    fn mixer_bytes(&self, sizes: &Sizes, mixer: &Mixer, job: &TrainingJob) -> Mixed {
        let keys = f64::from(job.sequence_length);
        match mixer {
            // Training on a compressed cache is refused before it comes to this.
            Mixer::None | Mixer::Compressed(_) => Mixed::default(),
            Mixer::Attention(attention) => self.attention_bytes(sizes, attention, keys),
            Mixer::Latent(latent) => latent_bytes(sizes, latent, keys),
            Mixer::Mamba2(mamba) => mamba2_bytes(sizes, mamba),
            Mixer::Mamba(mamba) => mamba_bytes(sizes, mamba),
            Mixer::GatedDelta(delta) => delta_bytes(sizes, delta),
        }
    }

    fn attention_bytes(&self, sizes: &Sizes, attention: &Attention, keys: f64) -> Mixed {
        let Sizes { number, input, tensor, .. } = *sizes;
        let kv_heads = f64::from(self.kv_heads_per_rank(attention.kv_heads));
        let heads = f64::from(attention.heads) / tensor;
        let channels = Channels {
            heads,
            query: heads * f64::from(attention.head_dim),
            key: kv_heads * f64::from(attention.head_dim),
            value: kv_heads * f64::from(attention.value_dim),
            output: heads * f64::from(attention.value_dim),
            latent: 0.0,
        };
        let (read, scores) = sizes.attention(&channels, keys);
        let Channels { query, value, output, .. } = channels;
        let (gate, projected) = match attention.gate {
            Gate::None => (0.0, 0.0),
            Gate::Channel => ((number + input) * output, number * output),
            Gate::Head => (number * heads + input * output, number * heads),
        };
        let alternate = number * (query + output + value) + SINGLE * heads + projected;
        Mixed { read: read + gate, scores, alternate, latent_up: 0.0 }
    }
}

fn latent_bytes(sizes: &Sizes, latent: &Latent, keys: f64) -> Mixed {
    let heads = f64::from(latent.heads) / sizes.tensor;
    let [nope, rope, value_dim] = [latent.nope_dim, latent.rope_dim, latent.value_dim].map(f64::from);
    let query = heads * (nope + rope);
    let value = heads * value_dim;
    let width = latent_width(latent.query_rank.unwrap_or(0), latent.rank, latent.rope_dim) / sizes.shards;
    let channels = Channels { heads, query, key: query, value, output: value, latent: width };
    let (read, scores) = sizes.attention(&channels, keys);
    let alternate = sizes.number * (query + 2.0 * value) + SINGLE * heads;
    Mixed { read, scores, alternate, latent_up: sizes.number * (2.0 * query + value) }
}

fn mamba2_bytes(sizes: &Sizes, mamba: &Mamba2) -> Mixed {
    let Sizes { number, input, tensor, .. } = *sizes;
    let [heads, groups] = [mamba.heads, mamba.groups].map(|count| f64::from(count) / tensor);
    let inner = heads * f64::from(mamba.head_dim);
    let projected = number * (2.0 * inner + 2.0 * groups * f64::from(mamba.state) + heads);
    let read = projected + (number + input) * inner + SINGLE * groups;
    Mixed { read, alternate: projected, ..Mixed::default() }
}

fn mamba_bytes(sizes: &Sizes, mamba: &Mamba) -> Mixed {
    let Sizes { number, input, tensor, .. } = *sizes;
    let inner = f64::from(mamba.inner) / tensor;
    let [state, step] = [mamba.state, mamba.step_rank].map(f64::from);
    // What the projection to time step, B and C gives is summed over tensor ranks, and whole on each.
    let small = number * (step + 4.0 * state);
    let states = 2.0 * SINGLE * inner * state / MAMBA_CHUNK;
    let apart = if mamba.norms { 2.0 * number * inner } else { 0.0 };
    let read = 3.0 * number * inner + input * inner + small + states + apart;
    Mixed { read, alternate: number * 3.0 * inner, ..Mixed::default() }
}

fn delta_bytes(sizes: &Sizes, delta: &GatedDelta) -> Mixed {
    let Sizes { number, input, tensor, .. } = *sizes;
    let heads = f64::from(delta.value_heads) / tensor;
    let keys = f64::from(delta.key_heads) / tensor * f64::from(delta.key_dim);
    let values = heads * f64::from(delta.value_dim);
    let repeated = 2.0 * heads * f64::from(delta.key_dim);
    // A learning rate; the decay, its softplus and what that is of; the norms of a query and of a key.
    let of_head = number * (1.0 + DELTA_CHUNK) + 3.0 * SINGLE + 2.0 * SINGLE;
    let read = number * (2.0 * keys + 4.0 * values + repeated) + input * values + heads * of_head;
    Mixed { read, alternate: number * (2.0 * keys + 2.0 * values + sizes.stream), ..Mixed::default() }
}

fn ups(mlp: Mlp) -> f64 {
    if mlp.gated { 2.0 } else { 1.0 }
}

/// The first of two up-projections, and the output of the down-projection behind them; of a single one, itself.
fn alternate_mlp(sizes: &Sizes, ffn: f64, mlp: Mlp) -> f64 {
    sizes.number * (ffn / sizes.tensor + if mlp.gated { sizes.stream } else { 0.0 })
}

fn add_experts(sizes: &Sizes, moe: &MoeBlock, hidden: u32, job: &TrainingJob, token: &mut TokenBytes) {
    let width = if moe.latent == 0 { hidden } else { moe.latent };
    let (routed, up) = sizes.routed(&Routed {
        count: f64::from(moe.experts),
        visits: f64::from(moe.per_token) * job.expert_imbalance.get(),
        width: f64::from(width),
        ffn: f64::from(moe.expert.ffn),
        up: ups(moe.expert),
    });
    // Where experts work in a width of their own, what they read and what is projected back.
    let around = (sizes.number + sizes.input) * f64::from(moe.latent) / sizes.shards;
    let inside = |ffn: u32, mlp| sizes.inside(f64::from(ffn) / sizes.tensor, ups(mlp));
    let shared = inside(moe.shared_ffn, moe.expert);
    let beside = moe.beside.map_or(0.0, |mlp| inside(mlp.ffn, mlp));
    token.mlp += routed + around + shared + beside + sizes.mask();
    token.alternate += alternate_mlp(sizes, f64::from(moe.shared_ffn), moe.expert) + up;
    token.parts.routed = routed + around;
    token.parts.activation = up / sizes.number * sizes.input;
    token.parts.shared = shared;
    token.parts.mlp = beside;
}
