//! Binding of `serving.cache`: prefixes, and the tiers that keep them.

use std::sync::Arc;

use super::asked::Requests as Asked;
use super::{Agents, Cluster, Defaults, Share, default_share};
use crate::catalog::memory_tier::TierMedium;
use crate::catalog::{Catalog, Component, Entry, MemoryTier, Node};
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::scenario::file::{CacheFile, CacheTierFile, Lengths, Routing};
use crate::units::{Bytes, Fraction};

/// Share of the engine's pool that keeps prefixes where a scenario does not say: a judgement.
const OWN_SHARE: f64 = 0.2;
/// Tiers at most.
const MOST: usize = 4;

/// What requests find of earlier ones, and where it is kept.
#[derive(Clone, Debug)]
pub struct PrefixCaching {
    /// What is kept.
    pub kept: Kept,
    /// Share of the engine's pool that keeps it.
    pub own_share: Fraction,
    /// Tiers beyond, the nearest first.
    pub tiers: Vec<BoundTier>,
    /// Where requests go.
    pub routing: Routing,
}

impl PrefixCaching {
    /// Whether what is found hangs on how many requests come: sessions wait in numbers, and links of tiers fill up.
    pub fn by_load(&self) -> bool {
        matches!(self.kept, Kept::Sessions(_)) || !self.tiers.is_empty()
    }
}

/// What a cache keeps for requests to come.
#[derive(Clone, Copy, Debug)]
pub enum Kept {
    /// Beginnings that requests share.
    Prefixes {
        /// How many different ones.
        count: f64,
        /// Tokens of one.
        tokens: f64,
        /// Exponent of Zipf's law.
        popularity: f64,
    },
    /// Sessions of agents, while they wait for tools and people.
    Sessions(Agents),
}

/// A memory tier, and what is bought of it.
#[derive(Clone, Debug)]
pub struct BoundTier {
    /// The tier.
    pub entry: Arc<Entry<MemoryTier>>,
    /// Its capacity for each accelerator.
    pub capacity: Bytes,
    /// What of it is not in the nodes anyway, for each accelerator.
    pub bought: Bytes,
    /// What it is bought as, where any of it is.
    pub unit: Option<Arc<Entry<Component>>>,
}

impl BoundTier {
    /// Whole parts for so many bytes at each of so many accelerators that share them; none where nothing is bought.
    pub fn parts(&self, each: Bytes, sharing: f64) -> Option<f64> {
        // As many as fit are not one more where the last digit of a quotient is.
        const LAST_DIGITS: f64 = 1e-9;
        Some((each * sharing / self.unit.as_ref()?.capacity? - LAST_DIGITS).ceil())
    }
}

pub(super) fn bind(
    wanted: &CacheFile,
    asked: &Asked,
    cluster: Option<&Cluster>,
    catalog: &Catalog,
    defaults: &mut Defaults,
    sink: &Sink,
) -> Option<PrefixCaching> {
    let before = sink.len();
    let refuse = |message: String, hint: &str| {
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.at, "in this table").hint(hint));
    };
    if asked.hit.is_some() && asked.agents.is_none() {
        refuse("`serving.prefix_hit` follows from `serving.cache`".to_owned(), "leave one of both out");
    }
    let kept = match asked.agents {
        Some(agents) => Some(sessions(wanted, agents, &refuse)),
        None => prefixes(wanted, asked.input, sink, &refuse),
    };
    if wanted.tiers.len() > MOST {
        refuse(format!("{} tiers beyond the accelerators' own memory", wanted.tiers.len()), "at most 4 are taken");
    }
    for (place, tier) in wanted.tiers.iter().enumerate() {
        if wanted.tiers[..place].iter().any(|nearer| nearer.tier.id == tier.tier.id) && !tier.tier.id.is_empty() {
            let message = format!("tier \"{}\" is named twice", tier.tier.id);
            let hint = "name each once, with all of its capacity";
            sink.push(Diagnostic::new(Code::Duplicate, message).at(&tier.tier.at, "the second").hint(hint));
        }
    }
    let tiers = wanted.tiers.iter().filter_map(|tier| bound(tier, cluster, catalog, sink)).collect();
    if sink.len() > before {
        return None;
    }
    let own = wanted.own_share.map(Share);
    // Sessions go on where they were, unless a router is told otherwise.
    let usual = if asked.agents.is_some() { Routing::Aware } else { Routing::Balanced };
    Some(PrefixCaching {
        kept: kept?,
        own_share: defaults.or("serving.cache.own_share", own, Share(default_share(OWN_SHARE))).0,
        tiers,
        routing: defaults.or("serving.cache.routing", wanted.routing, usual),
    })
}

/// The keys that describe shared beginnings, and whether each is given.
const fn of_prefixes(wanted: &CacheFile) -> [(&'static str, bool); 3] {
    [
        ("prefixes", wanted.prefixes.is_some()),
        ("prefix_tokens", wanted.prefix_tokens.is_some()),
        ("popularity", wanted.popularity.is_some()),
    ]
}

/// Sessions of agents, who say how many there are and how long.
fn sessions(wanted: &CacheFile, agents: Agents, refuse: &impl Fn(String, &str)) -> Kept {
    for (key, _) in of_prefixes(wanted).iter().filter(|(_, given)| *given) {
        let message = format!("`serving.cache.{key}` follows from `agents`");
        refuse(message, "leave it out: a cache beside agents keeps their sessions while they wait");
    }
    Kept::Sessions(agents)
}

/// Beginnings that requests share.
fn prefixes(wanted: &CacheFile, input: Lengths, sink: &Sink, refuse: &impl Fn(String, &str)) -> Option<Kept> {
    let missing = |key: &str| {
        let message = format!("`serving.cache.{key}` is missing");
        let hint = "a cache keeps `prefixes` of `prefix_tokens` each, asked for by `popularity`; beside agents, their sessions";
        sink.push(Diagnostic::new(Code::MissingKey, message).at(&wanted.at, "in this table").hint(hint));
    };
    of_prefixes(wanted).iter().filter(|(_, given)| !given).for_each(|(key, _)| missing(key));
    let (count, tokens, popularity) = (wanted.prefixes?, f64::from(wanted.prefix_tokens?), wanted.popularity?);
    // A prompt without tokens has been refused.
    if tokens >= input.mean && input.mean > 0.0 {
        let message = format!("a prefix of {tokens} tokens is all of a prompt of {} tokens", input.mean);
        refuse(message, "prefix_tokens is below serving.input_tokens: at least a token is computed");
    }
    Some(Kept::Prefixes { count: count as f64, tokens, popularity: popularity.get() })
}

fn bound(wanted: &CacheTierFile, cluster: Option<&Cluster>, catalog: &Catalog, sink: &Sink) -> Option<BoundTier> {
    let refuse = |code, message: String, hint: String| {
        sink.push(Diagnostic::new(code, message).at(&wanted.tier.at, "this tier").hint(hint));
        None
    };
    let entry = catalog.memory_tiers.find(&wanted.tier, &wanted.tier.at, sink)?;
    if entry.medium == TierMedium::Hbm {
        let message = "the accelerators' own memory is no tier beyond it".to_owned();
        return refuse(
            Code::Inconsistent,
            message,
            "serving.cache.own_share says what of it keeps prefixes".to_owned(),
        );
    }
    if let (Some(host), Some(cluster)) = (entry.host, cluster)
        && host != cluster.nodes_of_prefill().node.host
    {
        let node = cluster.nodes_of_prefill().node;
        let message = format!("{} is memory of {host} hosts, and `{}` has {} ones", entry.id, node.id, node.host);
        return refuse(Code::Inconsistent, message, "`clusterplan catalog list memory_tiers` shows others".to_owned());
    }
    let included = cluster.map_or(Bytes::ZERO, |cluster| included(entry.medium, cluster.nodes_of_prefill().node));
    let usual = if included > Bytes::ZERO { included } else { entry.capacity.value };
    let capacity = wanted.capacity.unwrap_or(usual);
    if capacity <= Bytes::ZERO && wanted.capacity.is_none() {
        return refuse(Code::OutOfRange, "a tier of no capacity".to_owned(), "leave it out".to_owned());
    }
    let bought = capacity.saturating_sub(included);
    if bought <= Bytes::ZERO {
        return Some(BoundTier { entry, capacity, bought, unit: None });
    }
    let Some(unit) = &entry.unit else {
        let message = format!("nothing says what {} is bought as, and the node has {included} of it a GPU", entry.id);
        let hint = "ask for no more than that, or give the tier a `unit`, a component, in an overlay with --catalog";
        return refuse(Code::NotInCatalog, message, hint.to_owned());
    };
    let unit = catalog.components.find(unit, &wanted.tier.at, sink)?;
    let priced = cluster.is_none_or(|cluster| cluster.prices.price(&unit.id).is_some());
    if !priced || unit.capacity.is_none() {
        let message = format!("no price of a byte of {}, which {} is bought as", unit.id, entry.id);
        let hint = format!("add a [[price]] of \"{}\" to the price book, and its capacity to the component", unit.id);
        return refuse(Code::NotInCatalog, message, hint);
    }
    if let (Some(cluster), Some(most)) = (cluster, cluster.and_then(|cluster| most_of_host(&entry, &unit, cluster)))
        && capacity > most
    {
        let host = cluster.nodes_of_prefill().node.accelerators_per_tray;
        let message = format!(
            "{capacity} of {} for each of {host} GPUs of a host, which has places for {} of {}: {most} a GPU",
            entry.id,
            entry.places.unwrap_or_default(),
            unit.id
        );
        let hint =
            "ask for no more, add a tier behind it, or give the tier other `places` in an overlay with --catalog";
        return refuse(Code::OutOfRange, message, hint.to_owned());
    }
    Some(BoundTier { entry, capacity, bought, unit: Some(unit) })
}

/// What a host takes of a tier at most, for each of its accelerators, where parts go into hosts.
fn most_of_host(tier: &MemoryTier, unit: &Component, cluster: &Cluster) -> Option<Bytes> {
    let host = cluster.nodes_of_prefill().node.accelerators_per_tray;
    let sharing = tier.medium.sharing(host)?;
    let parts = tier.places? / (host / sharing);
    Some(unit.capacity? * f64::from(parts) / f64::from(sharing))
}

/// What of a medium comes with the node, for each accelerator.
fn included(medium: TierMedium, node: &Node) -> Bytes {
    let all = match medium {
        TierMedium::Dram => node.host_memory,
        TierMedium::LocalNvme => node.local_storage.map(|drives| drives.size * f64::from(drives.count)),
        TierMedium::Hbm | TierMedium::Cxl | TierMedium::Remote => None,
    };
    all.unwrap_or_default() / f64::from(node.accelerators)
}
