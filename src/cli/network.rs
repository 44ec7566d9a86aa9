//! What `collective` and `fabric` share: a node on a fabric, and how that is built.

use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::Session;
use crate::catalog::{Catalog, Entry, Node, Reference};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::scenario::{BoundFabric, SiteChoice, TierCount, TopologyChoice, TopologyKind, USUAL_LONG_HAUL};
use crate::units::{Bandwidth, Meters, Quantity};

/// A node on a fabric.
#[derive(Args, Debug)]
pub(super) struct NetworkArguments {
    /// The node's id
    #[arg(long, value_name = "ID")]
    node: String,
    /// The fabric's id
    #[arg(long, value_name = "ID")]
    fabric: String,
    /// How the fabric is built
    #[arg(long, value_parser = kinds(), default_value = "rail-fat-tree")]
    topology: TopologyKind,
    /// Tiers of switches [default: as few as reach all nodes]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=3))]
    tiers: Option<u32>,
    /// Bandwidth down over bandwidth up, leaf to spine, then spine to core, such as 1,7
    #[arg(long, value_name = "RATIO,...", value_delimiter = ',')]
    oversubscription: Vec<f64>,
    /// GPUs of a pod (of a group, in a dragonfly)
    #[arg(long, value_name = "GPUS", value_parser = gpus())]
    pod: Option<u32>,
    /// Planes that each port is split into [default: 2 in multi-plane, else 1]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=8))]
    planes: Option<u32>,
    /// Sites that share the cluster, the same at each
    #[arg(long, value_name = "COUNT", requires = "distance", requires = "site_bandwidth",
        value_parser = clap::value_parser!(u32).range(2..=64))]
    sites: Option<u32>,
    /// Fibre from one site to another, such as "80 km"
    #[arg(long, value_name = "LENGTH", requires = "sites", value_parser = quantity::<Meters>)]
    distance: Option<Meters>,
    /// What a site has towards the others, each direction, such as "51.2 Tbit/s"
    #[arg(long, value_name = "RATE", requires = "sites", value_parser = quantity::<Bandwidth>)]
    site_bandwidth: Option<Bandwidth>,
    /// The id of the links between sites
    #[arg(long, value_name = "ID", requires = "sites", default_value = USUAL_LONG_HAUL)]
    long_haul: String,
}

/// A quantity with its unit, more than zero.
fn quantity<Q: Quantity>(text: &str) -> Result<Q, String> {
    let read = Q::parse(text).map_err(|error| error.to_string())?;
    // The base number, because zero is zero in every unit.
    if read.base() > 0.0 { Ok(read) } else { Err("more than zero is needed".to_owned()) }
}

/// A number of GPUs, up to far above any cluster announced.
pub(super) fn gpus() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=10_000_000)
}

/// The words of the kinds.
fn kinds() -> impl TypedValueParser<Value = TopologyKind> {
    let find = |word: String| TopologyKind::ALL.iter().copied().find(|kind| kind.word() == word);
    PossibleValuesParser::new(TopologyKind::ALL.iter().map(|kind| kind.word()))
        .map(move |word| find(word).unwrap_or_default())
}

/// The same, found in the catalog.
pub(super) struct Network {
    pub(super) node: Arc<Entry<Node>>,
    pub(super) fabric: BoundFabric,
    pub(super) choice: TopologyChoice,
}

impl NetworkArguments {
    /// Finds the parts; mistakes go to the session.
    pub(super) fn find(&self, catalog: &Catalog, session: &mut Session) -> Option<Network> {
        let at = |flag: &str, text: &str, session: &mut Session| {
            let file = session.sources.add(flag, text);
            Span { file, range: 0..text.len() }
        };
        let node_at = at("--node", &self.node, session);
        let fabric_at = at("--fabric", &self.fabric, session);
        let sink = &session.sink;
        let node = catalog.nodes.find(&self.node, &node_at, sink);
        let fabric = catalog.fabrics.find(&self.fabric, &fabric_at, sink);
        let fabric = fabric.and_then(|entry| BoundFabric::bind(entry, catalog, sink));
        let ratio = |index: usize| self.oversubscription.get(index).copied().unwrap_or(1.0);
        if self.oversubscription.len() > 2
            || self.oversubscription.iter().any(|ratio| !ratio.is_finite() || *ratio < 1.0)
        {
            let message = "--oversubscription takes one or two ratios of 1 or more";
            sink.push(Diagnostic::new(Code::OutOfRange, message).hint("leaf to spine, then spine to core: 1,7"));
        }
        let (node, fabric) = (node?, fabric?);
        crate::scenario::check_adapter(&node, &fabric, (&fabric_at, "this fabric"), sink);
        let long_haul_at = at("--long-haul", &self.long_haul, session);
        let sink = &session.sink;
        let sites = match (self.sites, self.distance, self.site_bandwidth) {
            (Some(count), Some(distance), Some(bandwidth)) => {
                let link = Reference { id: self.long_haul.clone(), at: long_haul_at.clone() };
                Some(SiteChoice::bind((count, distance, bandwidth), &link, &long_haul_at, catalog, sink)?)
            }
            _ => None,
        };
        let planes = self.planes.unwrap_or(if self.topology == TopologyKind::MultiPlane { 2 } else { 1 });
        let choice = TopologyChoice {
            kind: self.topology,
            tiers: self.tiers.map_or(TierCount::Auto, TierCount::Fixed),
            pod: self.pod,
            planes,
            leaf_oversubscription: ratio(0),
            spine_oversubscription: ratio(1),
            sites,
        };
        crate::scenario::check_kind(&fabric, &choice, &fabric_at, sink);
        for message in choice.mistakes() {
            sink.push(Diagnostic::new(Code::Inconsistent, message).hint("leave the option out"));
        }
        sink.is_empty().then_some(Network { node, fabric, choice })
    }
}
