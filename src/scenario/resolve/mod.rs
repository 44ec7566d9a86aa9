//! Binding: every id found, every default applied and written down, every clash of fields reported.

mod agents;
mod asked;
mod cache;
mod cluster;
mod context;
mod engine;
mod finance;
mod fits;
mod layout;
mod memory;
mod network;
mod node_groups;
mod run;
mod serving;
mod side_networks;
mod split;
mod training;

pub use agents::Agents;
pub use cache::{BoundTier, Kept, PrefixCaching};
pub use cluster::{Cluster, FABRIC_SPARES};
use context::Context;
pub use engine::{AdapterSet, EngineFeatures, Slice, Speculation};
pub use finance::{ByBook, Finance};
pub use fits::{check_adapter, check_fabric_prices, check_kind, check_site_prices};
pub use memory::MemoryJob;
pub use network::{BoundFabric, BoundLongHaul, LinkParts, MANAGER_PART, SiteChoice, TopologyChoice, USUAL_LONG_HAUL};
pub use node_groups::{GroupShare, NodeGroup, PrefillNodes, common};
pub use run::{EvaluationPause, Ramp, RunPlan, Stage};
pub use serving::{PrefillPool, Serving};
pub use side_networks::{BoundSideNetwork, check_side_prices};
pub use training::Training;

use super::file::{ScenarioFile, TokenPricesFile};
use crate::catalog::{Catalog, Reference};
use crate::diagnostics::{Sink, Span};
use crate::document::Node;
use crate::units::Fraction;

/// A default that was applied because the scenario left a key out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// The key.
    pub key: &'static str,
    /// The value, as text.
    pub value: String,
}

/// A scenario with nothing left open.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What is asked, in a line.
    pub title: String,
    /// What is built.
    pub cluster: Cluster,
    /// The training job, where there is one.
    pub training: Option<Training>,
    /// What is served, where that is asked for.
    pub serving: Option<Serving>,
    /// Agents whose tasks are served, where there are any.
    pub agents: Option<Agents>,
    /// The money.
    pub finance: Finance,
    /// Share of the income that is to be left of tokens sold, where they are.
    pub margin: Option<Fraction>,
    /// What the same tokens cost elsewhere, where that is asked.
    pub token_prices: Option<TokenPricesFile>,
    /// Defaults that were applied.
    pub assumed: Vec<Assumption>,
}

/// What of a scenario is money and nothing else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Money {
    finance: Finance,
    margin: Option<Fraction>,
    token_prices: Option<TokenPricesFile>,
}

impl Money {
    /// Of a scenario's document, of which only `[finance]` is read; mistakes go to the sink.
    pub fn resolve(document: &Node, sink: &Sink) -> Self {
        let file = ScenarioFile::read_finance(document, sink);
        let finance = finance::bind(&file, None, &mut Defaults::default());
        Self { finance, margin: file.margin, token_prices: file.token_prices }
    }

    /// Sets a scenario's.
    pub fn set(&self, scenario: &mut Scenario) {
        let Self { finance, margin, token_prices } = *self;
        let finance = finance.at(&scenario.cluster.prices);
        (scenario.finance, scenario.margin, scenario.token_prices) = (finance, margin, token_prices);
    }
}

/// Applies defaults and remembers them.
#[derive(Default)]
pub(super) struct Defaults(Vec<Assumption>);

impl Defaults {
    fn or<T: ToString>(&mut self, key: &'static str, given: Option<T>, default: T) -> T {
        given.unwrap_or_else(|| {
            self.0.push(Assumption { key, value: default.to_string() });
            default
        })
    }
}

/// Text of a share for the list of assumptions.
struct Share(Fraction);

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.get())
    }
}

impl Scenario {
    /// The same with so many accelerators at work, so many of them on prefill's own nodes where it has any, and with the
    /// storage that is usual for as many where none is given.
    #[must_use]
    pub fn with_accelerators(&self, accelerators: u32, of_prefill: u32) -> Self {
        let mut changed = Self { cluster: self.cluster.with_accelerators(accelerators, of_prefill), ..self.clone() };
        let usual = changed.assumed.iter_mut().find(|assumption| assumption.key == cluster::STORAGE_UNITS);
        if let Some(assumption) = usual {
            changed.cluster.storage_units = cluster::usual_storage_units(&changed.cluster.storage, accelerators);
            assumption.value = changed.cluster.storage_units.to_string();
        }
        changed
    }

    /// Binds a scenario to a catalog; mistakes go to the sink, and there is a scenario only if there are none.
    pub fn resolve(file: &ScenarioFile, catalog: &Catalog, sink: &Sink) -> Option<Self> {
        let mut defaults = Defaults::default();
        list_what_is_missing(catalog, sink);
        let cluster = cluster::bind(file, catalog, &mut defaults, sink);
        let training = file.training.as_ref().and_then(|wanted| {
            // The job's own mistakes are worth reporting even where the cluster's parts are wrong.
            let Some(cluster) = &cluster else {
                let work = training::work(wanted, catalog, &mut defaults, sink);
                return work.and_then(|(model, _)| training::arithmetic(wanted, &model, sink)).and(None);
            };
            training::bind(wanted, file, cluster, catalog, &mut defaults, sink)
        });
        let agents = file.agents.as_ref().and_then(|wanted| {
            if file.serving.is_none() {
                agents::not_served(wanted, sink);
            }
            agents::bind(wanted, &mut defaults, sink)
        });
        let serving = file.serving.as_ref().and_then(|wanted| {
            let context = Context::new(wanted, catalog);
            let asked = asked::requests(wanted, file.agents.as_ref(), agents.as_ref(), &context, sink);
            let asked = asked::Requests { context: context.tokens, ..asked };
            asked.check(wanted, &context, file.agents.as_ref(), sink);
            serving::bind(wanted, &asked, cluster.as_ref(), &file.cluster.node, catalog, &mut defaults, sink)
        });
        let book = cluster.as_ref().map(|cluster| &**cluster.prices);
        let finance = finance::bind(&file.finance, book, &mut defaults);
        let mut cluster = cluster?;
        let caching = serving.as_ref().and_then(|serving| serving.cache.as_ref());
        cluster.memory_tiers = caching.map(|caching| caching.tiers.clone()).unwrap_or_default();
        let title = file.title.clone();
        let (margin, token_prices) = (file.finance.margin, file.finance.token_prices);
        let assumed = defaults.0;
        let whole = Self { title, cluster, training, serving, agents, finance, margin, token_prices, assumed };
        sink.is_empty().then_some(whole)
    }
}

/// Tells, of ids that are missing, what there is.
fn list_what_is_missing(catalog: &Catalog, sink: &Sink) {
    for (path, listed) in [
        ("cluster.node", catalog.nodes.listed()),
        ("cluster.fabric", catalog.fabrics.listed()),
        ("cluster.site", catalog.sites.listed()),
        ("cluster.prices", catalog.price_books.listed()),
        ("training.model", catalog.models.listed()),
        ("serving.model", catalog.models.listed()),
    ] {
        sink.hint_at_missing(path, &format!("it takes an id of the catalog; {listed}"));
    }
}

/// The id given, or a default at the place that made it necessary.
pub(super) fn by_default(
    key: &'static str,
    given: Option<&Reference>,
    default: &str,
    at: &Span,
    defaults: &mut Defaults,
) -> Reference {
    given.cloned().unwrap_or_else(|| Reference { id: defaults.or(key, None, default.to_owned()), at: at.clone() })
}

fn default_share(share: f64) -> Fraction {
    Fraction::new(share).unwrap_or_default()
}
