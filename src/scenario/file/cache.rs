//! `serving.cache` as it stands in its file.

use crate::catalog::Reference;
use crate::diagnostics::{Code, Span};
use crate::document::{Reader, choices};
use crate::units::{Bytes, Factor, Fraction};

choices! {
    /// Where a router sends requests.
    pub enum Routing {
        /// Anywhere, as the load is least.
        Balanced = "balanced",
        /// To the replica that keeps their prefix.
        Aware = "cache-aware",
    }
}

/// The most prefixes, and tokens of one.
const PREFIXES: std::ops::RangeInclusive<u64> = 1..=1_000_000_000_000;
const TOKENS: std::ops::RangeInclusive<u32> = 1..=100_000_000;

/// `serving.cache`: prefixes of requests and where they are kept.
#[derive(Clone, Debug, Default)]
pub(in crate::scenario) struct CacheFile {
    /// Different prefixes; agents' sessions say their own, as the next two.
    pub(in crate::scenario) prefixes: Option<u64>,
    /// Tokens of one.
    pub(in crate::scenario) prefix_tokens: Option<u32>,
    /// Exponent of Zipf's law.
    pub(in crate::scenario) popularity: Option<Factor>,
    /// Share of the engine's pool that keeps prefixes.
    pub(in crate::scenario) own_share: Option<Fraction>,
    /// Tiers beyond the accelerators' own memory, the nearest first.
    pub(in crate::scenario) tiers: Vec<CacheTierFile>,
    /// Where requests go.
    pub(in crate::scenario) routing: Option<Routing>,
    /// Place of the table.
    pub(in crate::scenario) at: Span,
}

/// An entry of `serving.cache.tiers`.
#[derive(Clone, Debug, Default)]
pub(in crate::scenario) struct CacheTierFile {
    /// Id of a memory tier.
    pub(in crate::scenario) tier: Reference,
    /// Capacity for each accelerator, where it is not what is usual.
    pub(in crate::scenario) capacity: Option<Bytes>,
}

impl CacheTierFile {
    fn read(r: &mut Reader<'_>) -> Self {
        let before = r.sink().len();
        let tier = Self {
            tier: r.about("id of a memory tier").get("tier"),
            capacity: r
                .about("what an accelerator has of it")
                .usually("what is usual of the tier")
                .such_as("2 TB")
                .optional("capacity"),
        };
        if r.sink().len() == before && tier.capacity == Some(Bytes::ZERO) {
            r.report("capacity", Code::OutOfRange, "a tier of no capacity", "leave the tier out");
        }
        tier
    }
}

impl CacheFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            prefixes: r
                .about("different beginnings that prompts have; sessions of agents are their own")
                .optional_within("prefixes", &PREFIXES),
            prefix_tokens: r.about("tokens of such a beginning").optional_within("prefix_tokens", &TOKENS),
            popularity: r.about("exponent of Zipf's law of how often each is asked for").optional("popularity"),
            own_share: r
                .about("share of the engine's own cache that keeps prefixes")
                .usually("0.2")
                .optional("own_share"),
            tiers: r
                .about("memory beyond the accelerators' own that keeps prefixes, the nearest first")
                .tables("tiers", CacheTierFile::read),
            routing: r
                .about("where a router sends requests")
                .usually("\"balanced\", or \"cache-aware\" of agents")
                .optional("routing"),
            at: r.at().clone(),
        }
    }
}
