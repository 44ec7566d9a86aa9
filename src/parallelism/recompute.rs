//! What the backward pass computes again instead of keeping it from the forward pass.

use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{FromNode, Node, Reader, Schema, Value, choices};
use crate::units::Flops;
use crate::workload::{AttentionCount, LayerFlops, LayerKind, Transformer};

choices! {
    /// A part of a layer that can be computed again by itself, by the names of Megatron-Core's `recompute_modules`.
    pub enum Module {
        /// Scores, softmax and their product with the values; nothing where a fused kernel keeps no scores.
        CoreAttention = "core_attn",
        /// The outputs of the norms before attention and before the MLP.
        LayerNorm = "layernorm",
        /// All inside a dense MLP.
        Mlp = "mlp",
        /// All inside a layer of experts, dispatch and shared experts too.
        Moe = "moe",
        /// The activation function of routed experts, between their matrices.
        MoeActivation = "moe_act",
        /// All inside the shared experts.
        SharedExperts = "shared_experts",
        /// Latent attention's projections from the latent vectors to all heads.
        LatentUp = "mla_up_proj",
    }
}

/// A set of modules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Modules(u8);

impl Modules {
    /// The set of these.
    pub const fn of(modules: &[Module]) -> Self {
        let (mut set, mut index) = (0, 0);
        while index < modules.len() {
            set |= 1 << modules[index] as u8;
            index += 1;
        }
        Self(set)
    }

    /// Whether a module is among them.
    pub const fn has(self, module: Module) -> bool {
        self.0 & (1 << module as u8) != 0
    }

    /// Forward operations of a token in these modules of a layer that has those in all; of modules within others, once.
    pub fn flops(self, model: &Transformer, layer: &LayerFlops) -> Flops {
        let inner = |module| self.has(Module::Moe) && matches!(module, Module::SharedExperts | Module::MoeActivation);
        self.iter().filter(|module| !inner(*module)).map(|module| module_flops(module, model, layer)).sum()
    }

    /// Those that are, in order.
    pub fn iter(self) -> impl Iterator<Item = Module> {
        Module::ALL.iter().copied().filter(move |module| self.has(*module))
    }
}

/// What the backward pass computes again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Recompute {
    /// Nothing.
    #[default]
    None,
    /// What is large and cheap; the training framework says which tensors.
    Selective,
    /// Each layer, from its input.
    Full,
    /// Each of the first so many layers of a stage, from its input (Megatron's `block` method); the others keep all.
    Layers(u32),
    /// These modules, from their inputs.
    Modules(Modules),
}

impl Recompute {
    /// Those that are a word.
    pub const WORDS: &'static [Self] = &[Self::None, Self::Selective, Self::Full];

    const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Selective => "selective",
            Self::Full => "full",
            Self::Layers(_) => "layers",
            Self::Modules(_) => "modules",
        }
    }

    /// Of a stage with so many layers, the share that is computed again from its input.
    pub fn whole_share(self, layers: f64) -> f64 {
        match self {
            Self::Full => 1.0,
            Self::Layers(covered) if layers > 0.0 => (f64::from(covered) / layers).min(1.0),
            _ => 0.0,
        }
    }

    /// Operations of one token that the backward pass repeats: hardware operations are a model's and these.
    ///
    /// Full recomputation repeats the forward pass of every layer, so that a GPT takes
    /// `96 L h^2 (1 + s/(6h) + V/(16 L h))` a token (SC21, arXiv 2104.04473, equation 3). Selective recomputation is taken
    /// as repeating the core of attention. Of modules, norms and activation functions repeat no products. `stage_layers`
    /// are the layers of the fullest stage.
    pub fn flops_per_token(
        self,
        model: &Transformer,
        sequence_length: u32,
        count: AttentionCount,
        stage_layers: u32,
    ) -> Flops {
        match self {
            Self::None => Flops::ZERO,
            Self::Selective => {
                let core = model.layer_flops(LayerKind::Dense, sequence_length, count).attention;
                core * f64::from(model.layers)
            }
            Self::Full | Self::Layers(_) => {
                model.layers_flops(sequence_length, count) * self.whole_share(f64::from(stage_layers))
            }
            Self::Modules(modules) => {
                let of = |kind, layers: u32| {
                    modules.flops(model, &model.layer_flops(kind, sequence_length, count)) * f64::from(layers)
                };
                of(LayerKind::Dense, model.dense_layers()) + of(LayerKind::Moe, model.moe_layers())
            }
        }
    }
}

/// Forward operations of one module of a layer that has those in all.
fn module_flops(module: Module, model: &Transformer, layer: &LayerFlops) -> Flops {
    let shared = model.experts.map_or(0.0, |experts| {
        let all = f64::from(experts.shared + experts.per_token);
        if all > 0.0 { f64::from(experts.shared) / all } else { 0.0 }
    });
    match module {
        Module::CoreAttention => layer.attention,
        Module::LayerNorm | Module::MoeActivation => Flops::ZERO,
        Module::Mlp => layer.mlp,
        Module::Moe => layer.router + layer.experts,
        Module::SharedExperts => layer.experts * shared,
        Module::LatentUp => {
            let up = model.key_value_parameters() as f64
                + model.detail.latent.map_or(0.0, |latent| f64::from(latent.query_rank) * model.query_width() as f64);
            if model.detail.latent.is_some() { Flops::new(2.0 * up) } else { Flops::ZERO }
        }
    }
}

impl std::fmt::Display for Recompute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Layers(count) => f.pad(&format!("{{ layers = {count} }}")),
            Self::Modules(modules) => {
                let words: Vec<String> = modules.iter().map(|module| format!("\"{module}\"")).collect();
                f.pad(&format!("{{ modules = [{}] }}", words.join(", ")))
            }
            _ => f.pad(self.word()),
        }
    }
}

impl Recompute {
    fn of_table(reader: &mut Reader<'_>) -> (Option<u32>, Option<Vec<Module>>) {
        let layers =
            reader.about("layers of a stage that are computed again whole").optional_within("layers", &(1..=u32::MAX));
        (layers, reader.about("modules that are, of every layer").optional("modules"))
    }
}

impl FromNode for Recompute {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        if !matches!(node.value, Value::Table(_)) {
            return node.one_of(path, Self::WORDS, Self::word, sink).unwrap_or_default();
        }
        let Some(mut reader) = Reader::new(node, path, sink) else { return Self::None };
        match Self::of_table(&mut reader) {
            (Some(layers), None) => Self::Layers(layers),
            (None, Some(modules)) if !modules.is_empty() => Self::Modules(Modules::of(&modules)),
            (None, None) if !sink.is_empty() => Self::None,
            _ => {
                let message = format!("`{path}` needs either `layers` or `modules`");
                let hint = "such as { layers = 4 } or { modules = [\"mlp\", \"layernorm\"] }";
                sink.push(Diagnostic::new(Code::Inconsistent, message).at(&node.at, "in this table").hint(hint));
                Self::None
            }
        }
    }

    fn schema() -> Schema {
        let words = Schema::Words(Self::WORDS.iter().map(|choice| choice.word()).collect());
        Schema::Either(Box::new(words), Box::new(Reader::describe(Self::of_table)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::shapes::{gpt, mixtral_8x7b};

    #[test]
    fn full_recomputation_takes_the_hardware_flops_of_the_megatron_paper() {
        for (layers, hidden, heads) in [(24, 2_304, 24), (80, 12_288, 96), (128, 25_600, 160)] {
            let model = gpt(layers, hidden, heads);
            let (l, h, s, v) = (f64::from(layers), f64::from(hidden), 2_048.0, 51_200.0);
            let equation = 96.0 * l * h * h * (1.0 + s / (6.0 * h) + v / (16.0 * l * h));
            let ours = model.model_flops_per_token(2_048, AttentionCount::Full)
                + Recompute::Full.flops_per_token(&model, 2_048, AttentionCount::Full, layers);
            assert!((ours / Flops::new(equation) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn modules_repeat_their_own_products() {
        let model = mixtral_8x7b();
        let of = |recompute: Recompute| recompute.flops_per_token(&model, 4_096, AttentionCount::Causal, 32);
        let modules = |modules: &[Module]| of(Recompute::Modules(Modules::of(modules)));
        assert_eq!(modules(&[Module::CoreAttention]), of(Recompute::Selective));
        assert_eq!(modules(&[Module::LayerNorm, Module::MoeActivation, Module::Mlp]), Flops::ZERO);
        // Router 2*4096*8 and two experts of three matrices of 4096 x 14336, in each of 32 layers.
        let by_hand = 32.0 * (2.0 * 4_096.0 * 8.0 + 2.0 * 3.0 * 2.0 * 4_096.0 * 14_336.0);
        assert_eq!(modules(&[Module::Moe]), Flops::new(by_hand));
        assert_eq!(of(Recompute::Layers(8)), of(Recompute::Full) * 0.25);
        assert_eq!(of(Recompute::Layers(99)), of(Recompute::Full));
    }
}
