//! Binding: every id found, every default applied and written down, every clash of fields reported.

use std::sync::Arc;

use super::file::{FinanceFile, LayoutFile, ScenarioFile, TierCount, TopologyKind, TrainingFile, sequences};
use super::fits::{check_adapter, check_fabric_prices, check_priced, check_wires, topology};
use super::software::{MissingEfficiency, Overlap, Software, StepEfficiency};
use crate::catalog::collective_efficiency::CollectiveEfficiency;
use crate::catalog::memory_allowance::FrameworkMemory;
use crate::catalog::training_efficiency::{Framework, TrainingEfficiency};
use crate::catalog::{
    Accelerator, Cable, Catalog, Entry, Fabric, MemoryAllowance, Model, Nic, Node, Optic, PowerProfile, PriceBook,
    Reference, Reliability, Site, Storage, Switch,
};
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::parallelism::{Layout, Recompute, Schedule, Sharding};
use crate::units::{Fraction, SECONDS_PER_YEAR, Seconds, Tokens};
use crate::workload::{CheckpointMode, GradientPrecision, Optimizer, TrainingJob, Transformer};

/// A default that was applied because the scenario left a key out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// The key.
    pub key: &'static str,
    /// The value, as text.
    pub value: String,
}

/// The parts of one link kind.
#[derive(Clone, Debug)]
pub struct LinkParts {
    /// Module at the upper end, where the link has modules.
    pub upper: Option<Arc<Entry<Optic>>>,
    /// Module at the lower end.
    pub lower: Option<Arc<Entry<Optic>>>,
    /// The cable.
    pub cable: Arc<Entry<Cable>>,
}

/// A fabric with all its parts bound.
#[derive(Clone, Debug)]
pub struct BoundFabric {
    /// The fabric.
    pub entry: Arc<Entry<Fabric>>,
    /// Its network card.
    pub nic: Arc<Entry<Nic>>,
    /// Its leaf, spine and core switches.
    pub switches: [Arc<Entry<Switch>>; 3],
    /// Ports of each at the fabric's link speed.
    pub radix: [u32; 3],
    /// Links from nodes to leaves.
    pub node_link: LinkParts,
    /// Links between switches.
    pub switch_link: LinkParts,
}

impl BoundFabric {
    /// Finds a fabric's parts; those that are missing are reported.
    pub fn bind(entry: Arc<Entry<Fabric>>, catalog: &Catalog, sink: &Sink) -> Option<Self> {
        let nic = catalog.nics.find(&entry.nic, &entry.nic.at, sink);
        let tiers = [&entry.switch.leaf, &entry.switch.spine, &entry.switch.core];
        let switches = tiers.map(|id| catalog.switches.find(id, &id.at, sink));
        let link = |link: &crate::catalog::fabric::Link| {
            let end = |id: &Reference| catalog.optics.find(id, &id.at, sink);
            let (upper, lower) = link.optics.as_ref().map_or((None, None), |ends| (end(&ends.upper), end(&ends.lower)));
            Some(LinkParts { upper, lower, cable: catalog.cables.find(&link.cable, &link.cable.at, sink)? })
        };
        let (node_link, switch_link) = (link(&entry.node_link), link(&entry.switch_link));
        let [Some(leaf), Some(spine), Some(core)] = switches else { return None };
        let radix = |switch: &Entry<Switch>| switch.ports_at(entry.link_speed).unwrap_or(0);
        let radix = [radix(&leaf), radix(&spine), radix(&core)];
        Some(Self {
            nic: nic?,
            switches: [leaf, spine, core],
            radix,
            node_link: node_link?,
            switch_link: switch_link?,
            entry,
        })
    }
}

/// How the fabric is to be built.
#[derive(Clone, Debug, PartialEq)]
pub struct TopologyChoice {
    /// Its kind.
    pub kind: TopologyKind,
    /// Tiers.
    pub tiers: TierCount,
    /// Accelerators of a pod.
    pub pod: Option<u32>,
    /// Planes that each port is split into.
    pub planes: u32,
    /// Leaf to spine.
    pub leaf_oversubscription: f64,
    /// Spine to core.
    pub spine_oversubscription: f64,
}

/// What is built, where, and at which prices.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The node.
    pub node: Arc<Entry<Node>>,
    /// Its accelerator.
    pub accelerator: Arc<Entry<Accelerator>>,
    /// Accelerators at work.
    pub accelerators: u32,
    /// Share bought on top.
    pub spares: Fraction,
    /// The fabric.
    pub fabric: BoundFabric,
    /// How it is built.
    pub topology: TopologyChoice,
    /// Where it stands.
    pub site: Arc<Entry<Site>>,
    /// What things cost.
    pub prices: Arc<Entry<PriceBook>>,
    /// What checkpoints are written to.
    pub storage: Arc<Entry<Storage>>,
    /// Units of it.
    pub storage_units: u32,
    /// How often things fail.
    pub reliability: Arc<Entry<Reliability>>,
    /// How power follows load.
    pub power: Arc<Entry<PowerProfile>>,
    /// What collectives reach.
    pub collectives: Arc<Entry<CollectiveEfficiency>>,
}

/// The training job and how it is spread.
#[derive(Clone, Debug)]
pub struct Training {
    /// The model's catalog entry.
    pub model: Arc<Entry<Model>>,
    /// Its arithmetic.
    pub transformer: Transformer,
    /// The job.
    pub job: TrainingJob,
    /// The layout with one replica; the accelerators at work say how many there are.
    pub layout: Layout,
    /// The software.
    pub software: Software,
    /// What it reaches.
    pub efficiency: StepEfficiency,
    /// How checkpoints are written.
    pub checkpoint: CheckpointMode,
    /// What the software keeps in memory beside the model.
    pub memory: Arc<Entry<MemoryAllowance>>,
    /// What of it the framework keeps.
    pub framework_memory: FrameworkMemory,
    /// The set of constants that the efficiency comes from.
    pub efficiency_source: Arc<Entry<TrainingEfficiency>>,
}

/// How the cluster is financed and used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finance {
    /// The time that costs are added up over.
    pub horizon: Seconds,
    /// The time over which accelerators, and all parts bought with them, are written off.
    pub accelerator_life: Seconds,
    /// What capital costs a year, of debt and equity together.
    pub cost_of_capital: Fraction,
    /// Share of the owned hours that are sold, or at work on a job; more than zero.
    pub utilisation: Fraction,
}

/// A scenario with nothing left open.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What is asked, in a line.
    pub title: String,
    /// What is built.
    pub cluster: Cluster,
    /// The job.
    pub training: Training,
    /// The money.
    pub finance: Finance,
    /// Defaults that were applied.
    pub assumed: Vec<Assumption>,
}

/// Applies defaults and remembers them.
#[derive(Default)]
struct Defaults(Vec<Assumption>);

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
    /// Binds a scenario to a catalog; mistakes go to the sink, and there is a scenario only if there are none.
    pub fn resolve(file: &ScenarioFile, catalog: &Catalog, sink: &Sink) -> Option<Self> {
        let mut defaults = Defaults::default();
        let cluster = cluster(file, catalog, &mut defaults, sink);
        let training = file.training.as_ref().and_then(|wanted| {
            // The job's own mistakes are worth reporting even where the cluster's parts are wrong.
            let Some(cluster) = &cluster else {
                work(wanted, catalog, &mut defaults, sink);
                return None;
            };
            training(wanted, file, cluster, catalog, &mut defaults, sink)
        });
        let finance = finance(&file.finance, &mut defaults);
        let (cluster, training) = (cluster?, training?);
        sink.is_empty().then(|| Self { title: file.title.clone(), cluster, training, finance, assumed: defaults.0 })
    }
}

fn cluster(file: &ScenarioFile, catalog: &Catalog, defaults: &mut Defaults, sink: &Sink) -> Option<Cluster> {
    let wanted = &file.cluster;
    let node = catalog.nodes.find(&wanted.node, &wanted.node.at, sink);
    let accelerator =
        node.as_ref().and_then(|node| catalog.accelerators.find(&node.accelerator, &node.accelerator.at, sink));
    let fabric = catalog
        .fabrics
        .find(&wanted.fabric, &wanted.fabric.at, sink)
        .and_then(|entry| BoundFabric::bind(entry, catalog, sink));
    let site = catalog.sites.find(&wanted.site, &wanted.site.at, sink);
    let prices = catalog.price_books.find(&wanted.prices, &wanted.prices.at, sink);
    let storage = by_default("cluster.storage", wanted.storage.as_ref(), "parallel-flash", &wanted.node.at, defaults);
    let storage = catalog.storage.find(&storage, &storage.at, sink);
    let reliability = match (&wanted.reliability, &accelerator) {
        (None, None) => None,
        (given, accelerator) => {
            let usual = accelerator.as_ref().map_or("", |accelerator| accelerator.generation.as_str());
            let id = by_default("cluster.reliability", given.as_ref(), usual, &wanted.node.at, defaults);
            catalog.reliability.find(&id, &id.at, sink)
        }
    };
    let power = catalog.power_profiles.find("gpu-server", &wanted.node.at, sink);
    let collectives = catalog.collective_efficiency.find("nccl", &wanted.node.at, sink);
    let spares = wanted.spares.unwrap_or_else(|| defaults.or("cluster.spares", None, Share(default_share(0.03))).0);
    let topology = topology(&wanted.topology, sink);
    // What is found is checked, whatever else is missing, so that all mistakes are told at once.
    if let (Some(node), Some(fabric)) = (&node, &fabric) {
        check_adapter(node, fabric, &wanted.fabric.at, sink);
        if let Some(set) = &collectives {
            check_wires(set, node, fabric, &wanted.node, &wanted.fabric, sink);
        }
    }
    if let Some(prices) = &prices {
        let parts = [node.as_ref().map(|node| node.id.as_str()), storage.as_ref().map(|storage| storage.id.as_str())];
        check_priced(parts.into_iter().flatten().collect(), prices, &wanted.prices.at, sink);
        if let Some(fabric) = &fabric {
            check_fabric_prices(fabric, prices, &wanted.prices.at, sink);
        }
    }
    let storage = storage?;
    let units = wanted.accelerators.div_ceil(storage.accelerators_per_unit);
    Some(Cluster {
        accelerators: wanted.accelerators,
        spares,
        topology,
        storage_units: defaults.or("cluster.storage_units", wanted.storage_units, units),
        node: node?,
        accelerator: accelerator?,
        fabric: fabric?,
        site: site?,
        prices: prices?,
        storage,
        reliability: reliability?,
        power: power?,
        collectives: collectives?,
    })
}

/// The id given, or a default at the place that made it necessary.
fn by_default(
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

/// What is trained: the model, its arithmetic, and the job.
fn work(
    wanted: &TrainingFile,
    catalog: &Catalog,
    defaults: &mut Defaults,
    sink: &Sink,
) -> Option<(Arc<Entry<Model>>, Option<Transformer>, TrainingJob)> {
    let job = TrainingJob {
        sequence_length: wanted.sequence_length,
        global_batch: sequences(wanted.global_batch, &wanted.global_batch_at, wanted.sequence_length, sink),
        tokens: wanted.tokens,
        precision: wanted.precision,
        gradients: defaults.or("training.gradients", wanted.gradients, GradientPrecision::Fp32),
        optimizer: defaults.or("training.optimizer", wanted.optimizer, Optimizer::Adam),
    };
    check_tokens(wanted, &job, sink);
    let model = catalog.models.find(&wanted.model, &wanted.model.at, sink)?;
    if let Some(positions) = model.learned_positions.filter(|positions| *positions < job.sequence_length) {
        let message = format!(
            "`{}` has {positions} learned positions, fewer than a sequence of {} tokens",
            model.id, job.sequence_length
        );
        let hint = format!("a sequence_length of {positions} or less");
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.model.at, "this model").hint(hint));
    }
    let transformer = Transformer::try_from(&model.part).map_err(|reason| {
        sink.push(Diagnostic::new(Code::Unsupported, reason.to_string()).at(&wanted.model.at, "this model"));
    });
    Some((model, transformer.ok(), job))
}

/// A run is one step at least.
fn check_tokens(wanted: &TrainingFile, job: &TrainingJob, sink: &Sink) {
    let step = job.tokens_per_step();
    if wanted.tokens > Tokens::ZERO && wanted.tokens < step {
        let message = format!("a run of {} is less than one step of {step}", wanted.tokens);
        let hint = "a step is global_batch sequences of sequence_length tokens";
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.tokens_at, "too few").hint(hint));
    }
}

fn training(
    wanted: &TrainingFile,
    file: &ScenarioFile,
    cluster: &Cluster,
    catalog: &Catalog,
    defaults: &mut Defaults,
    sink: &Sink,
) -> Option<Training> {
    let constants = catalog.training_efficiency.find("published-runs", &wanted.model.at, sink)?;
    let memory = catalog.memory_allowances.find("cuda", &wanted.model.at, sink)?;
    let software = software(file, cluster, &constants, defaults);
    let work = work(wanted, catalog, defaults, sink);
    let efficiency =
        StepEfficiency::bind(&constants, &cluster.accelerator, cluster.node.host, wanted.precision, &software);
    let efficiency = efficiency.map_err(|missing| report_missing(&missing, file, sink));
    let framework_memory = memory.framework(software.framework);
    if framework_memory.is_none() {
        let message = format!("no measured memory allowance for framework \"{}\"", software.framework);
        let at = file.software.places.framework.as_ref().unwrap_or(&file.cluster.node.at);
        sink.push(Diagnostic::new(Code::NotInCatalog, message).at(at, "needed for this"));
    }
    let (model, transformer, job) = work?;
    Some(Training {
        transformer: transformer?,
        model,
        job,
        layout: layout(&wanted.layout, software.framework, defaults),
        software,
        efficiency: efficiency.ok()?,
        checkpoint: defaults.or("training.checkpoint", wanted.checkpoint, CheckpointMode::Asynchronous),
        framework_memory: framework_memory?,
        memory,
        efficiency_source: constants,
    })
}

/// Reports a missing constant at the key that asked for it; what a default asked for, at the node.
fn report_missing(missing: &MissingEfficiency, file: &ScenarioFile, sink: &Sink) {
    let places = &file.software.places;
    let at = match missing {
        MissingEfficiency::Date(_) => &places.date,
        MissingEfficiency::Framework(_) => &places.framework,
        MissingEfficiency::Kernel { .. } => &places.attention_kernel,
        _ => &None,
    };
    let hint = match missing {
        MissingEfficiency::Kernel { .. } => "set software.attention_kernel to a measured one",
        MissingEfficiency::Date(_) => "the first era of the constants begins later: see catalogs/efficiency/training",
        _ => "add the constants to an overlay of catalogs/efficiency/training and pass it with --catalog",
    };
    let at = at.as_ref().unwrap_or(&file.cluster.node.at);
    sink.push(Diagnostic::new(Code::NotInCatalog, missing.to_string()).at(at, "needed for this").hint(hint));
}

/// The software, filled by what was usual at its date on that accelerator.
fn software(
    file: &ScenarioFile,
    cluster: &Cluster,
    constants: &TrainingEfficiency,
    defaults: &mut Defaults,
) -> Software {
    let wanted = &file.software;
    let date = match wanted.date {
        Some(date) => date.0,
        None => defaults.or("software.date", None, Software::USUAL_DATE),
    };
    let framework = defaults.or("software.framework", wanted.framework, Framework::MegatronCore);
    let usual = Software::usual_kernel(&cluster.accelerator.generation, date);
    let attention_kernel = defaults.or("software.attention_kernel", wanted.attention_kernel, usual);
    let sharding = file.training.as_ref().and_then(|training| training.layout.sharding);
    let overlap = constants.usual_overlap(framework, date, sharding == Some(Sharding::Full));
    let [tensor, data, expert] = wanted.overlap;
    let overlap = Overlap {
        tensor: defaults.or("software.overlap.tensor", tensor, overlap.0),
        data: defaults.or("software.overlap.data", data, overlap.1),
        expert: defaults.or("software.overlap.expert", expert, false),
    };
    Software { date, framework, attention_kernel, overlap }
}

fn layout(wanted: &LayoutFile, framework: Framework, defaults: &mut Defaults) -> Layout {
    let virtual_stages = wanted.virtual_stages.unwrap_or(1);
    let usual = if virtual_stages > 1 { Schedule::Interleaved } else { Schedule::OneF1b };
    let order = Software::usual_order(framework);
    Layout {
        tensor: wanted.tensor,
        context: wanted.context.unwrap_or(1),
        pipeline: wanted.pipeline,
        data: 1,
        expert: wanted.expert.unwrap_or(1),
        virtual_stages,
        micro_batch: wanted.micro_batch,
        schedule: defaults.or("training.layout.schedule", wanted.schedule, usual),
        sharding: defaults.or("training.layout.sharding", wanted.sharding, Sharding::Optimizer),
        recompute: defaults.or("training.layout.recompute", wanted.recompute, Recompute::None),
        sequence_parallel: defaults.or(
            "training.layout.sequence_parallel",
            wanted.sequence_parallel,
            wanted.tensor > 1,
        ),
        order: defaults.or("training.layout.order", wanted.order, order),
    }
}

fn finance(wanted: &FinanceFile, defaults: &mut Defaults) -> Finance {
    let years = |count: f64| Seconds::new(count * SECONDS_PER_YEAR);
    let share = |given: Option<Fraction>, default: f64, key: &'static str, defaults: &mut Defaults| {
        defaults.or(key, given.map(Share), Share(default_share(default))).0
    };
    Finance {
        horizon: defaults.or("finance.horizon", wanted.horizon, years(5.0)),
        accelerator_life: defaults.or("finance.accelerator_life", wanted.accelerator_life, years(5.0)),
        cost_of_capital: share(wanted.cost_of_capital, 0.11, "finance.cost_of_capital", defaults),
        utilisation: share(wanted.utilisation, 0.8, "finance.utilisation", defaults),
    }
}
