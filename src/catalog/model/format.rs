//! Number formats of weights, caches and activations, with the scales that go with them.

use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{FromNode, Node, Reader, Schema, choices};
use crate::units::Bytes;

choices! {
    /// The number itself, without scales.
    pub enum Number {
        /// bfloat16.
        Bf16 = "bf16",
        /// IEEE half precision.
        Fp16 = "fp16",
        /// IEEE single precision.
        Fp32 = "fp32",
        /// 8-bit floating point, E4M3 or E5M2.
        Fp8 = "fp8",
        /// 8-bit integers.
        Int8 = "int8",
        /// 4-bit integers.
        Int4 = "int4",
        /// 4-bit floating point, E2M1.
        Fp4 = "fp4",
        /// 6-bit floating point.
        Fp6 = "fp6",
        /// 3-bit integers.
        Int3 = "int3",
        /// 2-bit integers.
        Int2 = "int2",
    }
}

impl Number {
    /// Bits of one number.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Fp32 => 32,
            Self::Bf16 | Self::Fp16 => 16,
            Self::Fp8 | Self::Int8 => 8,
            Self::Fp6 => 6,
            Self::Int4 | Self::Fp4 => 4,
            Self::Int3 => 3,
            Self::Int2 => 2,
        }
    }
}

/// A number format with what its scales add.
///
/// Scales of a whole tensor or of a whole row are too few to count. Named formats: `mxfp4`, `mxfp6` and `mxfp8` have an
/// 8-bit scale for 32 numbers (OCP Microscaling Formats specification 1.0, section 5.1); `nvfp4` an FP8 scale for 16
/// (NVIDIA, Introducing NVFP4, 2025); `fp8-block` a 32-bit scale for 128 x 128 (DeepSeek-V3, arXiv 2412.19437,
/// section 3.3.2); `int4-g128` a 16-bit scale for 128 (AWQ, arXiv 2306.00978, section 5.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// The number.
    pub number: Number,
    /// Numbers that share a scale; 0 where scales do not count.
    pub group: u32,
    /// Bits of a scale, with its zero point or bias where it has one.
    pub scale_bits: u32,
}

/// Named formats: number, group, bits of a scale.
const NAMED: &[(&str, Number, u32, u32)] = &[
    ("mxfp4", Number::Fp4, 32, 8),
    ("mxfp6", Number::Fp6, 32, 8),
    ("mxfp8", Number::Fp8, 32, 8),
    ("nvfp4", Number::Fp4, 16, 8),
    ("fp8-block", Number::Fp8, 16_384, 32),
    ("int4-g32", Number::Int4, 32, 16),
    ("int4-g64", Number::Int4, 64, 16),
    ("int4-g128", Number::Int4, 128, 16),
    ("q8_0", Number::Int8, 32, 16),
    ("q4_0", Number::Int4, 32, 16),
];

impl Format {
    /// A number without scales that count.
    pub const fn plain(number: Number) -> Self {
        Self { number, group: 0, scale_bits: 0 }
    }

    /// The format of a word; `None` where there is none.
    pub fn named(word: &str) -> Option<Self> {
        let plain = Number::ALL.iter().copied().find(|number| number.word() == word).map(Self::plain);
        plain.or_else(|| {
            NAMED.iter().find(|(name, ..)| *name == word).map(|(_, number, group, scale_bits)| Self {
                number: *number,
                group: *group,
                scale_bits: *scale_bits,
            })
        })
    }

    /// Bits of one number with its part of the scales.
    pub fn bits(self) -> f64 {
        let scale = if self.group == 0 { 0.0 } else { f64::from(self.scale_bits) / f64::from(self.group) };
        f64::from(self.number.bits()) + scale
    }

    /// Its kind, however it is scaled: that of its numbers, and of four bits by the group.
    pub fn kind(self) -> &'static str {
        match self.number {
            Number::Fp4 if self.group == 32 => "mxfp4",
            Number::Fp4 => "nvfp4",
            other => other.word(),
        }
    }

    /// Memory of so many numbers.
    pub fn bytes(self, count: f64) -> Bytes {
        Bytes::new(count * self.bits() / 8.0)
    }

    /// Every word that names a format.
    pub fn words() -> impl Iterator<Item = &'static str> {
        Number::ALL.iter().map(|number| number.word()).chain(NAMED.iter().map(|(name, ..)| *name))
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named = NAMED
            .iter()
            .find(|(_, number, group, bits)| (*number, *group, *bits) == (self.number, self.group, self.scale_bits));
        match named {
            Some((name, ..)) => f.pad(name),
            None if self.group == 0 => f.pad(self.number.word()),
            None => f.pad(&format!("{}, {} bits of scale for {}", self.number, self.scale_bits, self.group)),
        }
    }
}

impl FromNode for Format {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        if let Some(word) = node.as_str() {
            return Self::named(word).unwrap_or_else(|| {
                let words = Self::words().collect::<Vec<_>>().join(", ");
                let message = format!("`{path}` has no number format \"{word}\"");
                let hint = format!("it is one of {words}, or {{ number, group, scale_bits }}");
                sink.push(Diagnostic::new(Code::UnknownWord, message).at(&node.at, "not known here").hint(hint));
                Self::default()
            });
        }
        if node.as_table().is_none() {
            node.wrong_type(path, "the name of a number format such as \"fp8\"", sink);
            return Self::default();
        }
        Reader::new(node, path, sink).map_or_else(Self::default, |mut reader| Self::of_table(&mut reader))
    }

    fn schema() -> Schema {
        Schema::Either(Box::new(Schema::Words(Self::words().collect())), Box::new(Reader::describe(Self::of_table)))
    }
}

impl Format {
    fn of_table(reader: &mut Reader<'_>) -> Self {
        let group = reader.about("numbers that share a scale").usually("none");
        let group = group.optional_within("group", &(1..=1 << 20));
        let number = reader.about("format of a number").get("number");
        let scale_bits = reader.about("bits of that scale").usually("none").optional_within("scale_bits", &(1..=64));
        for (given, key, other) in [(group, "group", "scale_bits"), (scale_bits, "scale_bits", "group")] {
            if given.is_some() && (group.is_none() || scale_bits.is_none()) {
                let message = format!("`{key}` says nothing without `{other}`: a group of numbers shares a scale of so many bits");
                reader.report(key, Code::MissingKey, message, format!("add `{other}`, or leave `{key}` out"));
            }
        }
        Self { number, group: group.unwrap_or(0), scale_bits: scale_bits.unwrap_or(0) }
    }
}

choices! {
    /// A kind of weight that formats are given for.
    pub enum Module {
        /// Projections of attention, and of what stands in its place.
        Attention = "attention",
        /// MLPs of layers without experts.
        Mlp = "mlp",
        /// Routed experts.
        Experts = "experts",
        /// Experts that every token visits.
        SharedExperts = "shared_experts",
        /// The router.
        Router = "router",
        /// Token and position embeddings.
        Embedding = "embedding",
        /// The output projection.
        Head = "head",
        /// Norms and other vectors.
        Norms = "norms",
        /// Towers of other modalities and their projectors.
        Towers = "towers",
    }
}

/// The format of one kind of weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModuleFormat {
    /// The format.
    pub format: Format,
    /// Layers that keep the base format all the same.
    pub kept_layers: u32,
}

/// Formats of a checkpoint: weights by module, the cache, recurrent states, activations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Formats {
    /// The format of what is not quantised.
    pub base: Format,
    /// Modules in another format.
    pub modules: Vec<(Module, ModuleFormat)>,
    /// Keys and values in the cache; the base format where the checkpoint doesn't say.
    pub kv_cache: Option<Format>,
    /// Recurrent states; the base format where the checkpoint doesn't say.
    pub state: Option<Format>,
    /// Inputs of quantised multiplications; the base format where they are not quantised.
    pub activations: Option<Format>,
}

impl Formats {
    /// The format of a module.
    pub fn of(&self, module: Module) -> ModuleFormat {
        let found = self.modules.iter().find(|(known, _)| *known == module).map(|(_, format)| *format);
        found.unwrap_or(ModuleFormat { format: self.base, kept_layers: 0 })
    }

    /// All modules that are quantised by default: projections, but neither tables, routers nor norms.
    pub const LINEAR: [Module; 4] = [Module::Attention, Module::Mlp, Module::Experts, Module::SharedExperts];

    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let mut formats = Self { base: reader.or("base", Format::plain(Number::Bf16)), ..Self::default() };
        for module in Module::ALL.iter().copied() {
            if let Some(format) = reader.optional::<Format>(module.word()) {
                formats.modules.push((module, ModuleFormat { format, kept_layers: 0 }));
            }
        }
        for (module, kept) in
            reader.optional::<std::collections::BTreeMap<String, u32>>("kept_layers").unwrap_or_default()
        {
            let known = formats.modules.iter_mut().find(|(name, _)| name.word() == module);
            match known {
                Some((_, format)) => format.kept_layers = kept,
                None => reader.report(
                    "kept_layers",
                    Code::Inconsistent,
                    format!("`{module}` keeps the base format in {kept} layers, and has no other"),
                    "name a module that this table gives a format",
                ),
            }
        }
        formats.kv_cache = reader.optional("kv_cache");
        formats.state = reader.optional("state");
        formats.activations = reader.optional("activations");
        formats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_count() {
        // 4 + 8/32, 4 + 8/16, 8 + 8/32, 4 + 16/128, 8 + 16/32, 8 + 32/16384.
        for (word, bits) in [
            ("bf16", 16.0),
            ("fp8", 8.0),
            ("mxfp4", 4.25),
            ("nvfp4", 4.5),
            ("mxfp8", 8.25),
            ("int4-g128", 4.125),
            ("q8_0", 8.5),
            ("fp8-block", 8.001_953_125),
        ] {
            assert!((Format::named(word).unwrap().bits() - bits).abs() < 1e-12, "{word}");
        }
        // A 16-bit scale and a 16-bit bias for 64 (MLX): 4.5 bits.
        assert!((Format { number: Number::Int4, group: 64, scale_bits: 32 }.bits() - 4.5).abs() < 1e-12);
        assert_eq!(Format::named("fp5"), None);
    }
}
