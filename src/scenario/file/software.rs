//! `[software]`: what the job runs on, and of which date.

use crate::catalog::memory_allowance::Loss;
use crate::catalog::training_efficiency::{AttentionKernel, Framework};
use crate::diagnostics::{Sink, Span};
use crate::document::{FromNode, Node, Reader, Schema};

/// Where the software's keys stand; empty where they are left to defaults.
#[derive(Clone, Debug, Default)]
pub struct SoftwarePlaces {
    /// Of the date.
    pub date: Option<Span>,
    /// Of the framework.
    pub framework: Option<Span>,
    /// Of the attention kernel.
    pub attention_kernel: Option<Span>,
    /// Of what says whether network cards reach the accelerators.
    pub gpudirect: Option<Span>,
}

/// `[software]`
#[derive(Clone, Debug, Default)]
pub struct SoftwareFile {
    /// `"2024-04"`, as a decimal year.
    pub date: Option<SoftwareDate>,
    /// Framework class.
    pub framework: Option<Framework>,
    /// Attention kernel.
    pub attention_kernel: Option<AttentionKernel>,
    /// How the loss is computed.
    pub loss: Option<Loss>,
    /// Places of the three, for reports.
    pub places: SoftwarePlaces,
    /// Overlap flags: tensor, data, expert.
    pub overlap: [Option<bool>; 3],
    /// Reduction in the network, parallel aggregated trees, GPUDirect.
    pub communication: [Option<bool>; 3],
}

impl SoftwareFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let overlap = r.about("what communication is hidden behind").optional_table("overlap", |r| {
            [
                r.about("whether that of tensor ranks is").usually("as the framework does").optional("tensor"),
                r.about("whether that of data-parallel ranks is").usually("as the framework does").optional("data"),
                r.about("whether that of expert ranks is").usually("false").optional("expert"),
            ]
        });
        Self {
            date: r.about("month of the software").usually("\"2026-07\"").optional("date"),
            framework: r.about("class of framework").usually("\"megatron-core\"").optional("framework"),
            attention_kernel: r
                .about("kernel of attention")
                .usually("what was usual of the generation and date")
                .optional("attention_kernel"),
            loss: r.about("how the loss is computed").usually("as the framework does").optional("loss"),
            places: SoftwarePlaces {
                date: r.place_of("date"),
                framework: r.place_of("framework"),
                attention_kernel: r.place_of("attention_kernel"),
                gpudirect: r.place_of("gpudirect"),
            },
            overlap: overlap.unwrap_or_default(),
            communication: [
                r.about("whether switches add up (NVIDIA SHARP), on fabrics that can")
                    .usually("false")
                    .optional("sharp"),
                r.about("whether NCCL may use parallel aggregated trees").usually("false").optional("pat"),
                r.about("whether network cards reach the accelerators' memory").usually("true").optional("gpudirect"),
            ],
        }
    }
}

/// A month, `"2024-04"`, as a decimal year.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct SoftwareDate(pub f64);

impl Default for SoftwareDate {
    /// Stands in for a month whose mistake has been reported, and must not bring on another: one that was measured.
    fn default() -> Self {
        Self(2025.0)
    }
}

impl FromNode for SoftwareDate {
    fn schema() -> Schema {
        Schema::Month
    }

    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        let parsed = node.as_str().and_then(|text| {
            let (year, month) = text.split_once('-').filter(|(year, month)| year.len() == 4 && month.len() == 2)?;
            // Digits alone: a sign would parse too.
            (year.bytes().chain(month.bytes()).all(|byte| byte.is_ascii_digit())).then_some(())?;
            let (year, month): (u32, u32) = (year.parse().ok()?, month.parse().ok()?);
            ((2000..2100).contains(&year) && (1..=12).contains(&month))
                .then(|| f64::from(year) + f64::from(month - 1) / 12.0)
        });
        parsed.map_or_else(
            || {
                node.wrong_type(path, "a month such as \"2024-04\"", sink);
                Self::default()
            },
            Self,
        )
    }
}
