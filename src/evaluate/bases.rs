//! What stands behind each group of figures, and the weakest of it.

use super::BuiltCluster;
use crate::catalog::pricebook::{OwnerAssumption, OwnerTerm};
use crate::catalog::{Entry, MemoryAllowance};
use crate::provenance::{Basis, weakest};
use crate::scenario::Scenario;

/// The weakest basis of each group's inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bases {
    /// Memory.
    pub memory: Basis,
    /// Step time.
    pub training: Basis,
    /// Serving.
    pub serving: Basis,
    /// Agents' tasks.
    pub agents: Basis,
    /// The way of the data, and storage.
    pub data: Basis,
    /// Failures and recovery.
    pub goodput: Basis,
    /// Counts and prices of the fabric.
    pub fabric: Basis,
    /// Power.
    pub facility: Basis,
    /// Money.
    pub cost: Basis,
}

/// An input by name, `id.field` where it is a field of the catalog, and how it was come by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// How it was come by.
    pub basis: Basis,
}

/// The inputs of each group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Of memory.
    pub memory: Vec<Input>,
    /// Of step time.
    pub training: Vec<Input>,
    /// Of serving.
    pub serving: Vec<Input>,
    /// Of agents' tasks.
    pub agents: Vec<Input>,
    /// Of the way of the data, and of storage.
    pub data: Vec<Input>,
    /// Of failures and recovery.
    pub goodput: Vec<Input>,
    /// Of counts and prices of the fabric.
    pub fabric: Vec<Input>,
    /// Of power.
    pub facility: Vec<Input>,
    /// Of money.
    pub cost: Vec<Input>,
}

impl Evidence {
    /// The inputs of a scenario whose cluster is built.
    pub fn new(scenario: &Scenario, built: &BuiltCluster) -> Self {
        let cluster = &scenario.cluster;
        let accelerator = cluster.kinds_of_nodes().flat_map(|nodes| fields(nodes.accelerator)).collect::<Vec<_>>();
        let (capacity, accelerator): (Vec<Input>, _) =
            accelerator.into_iter().partition(|input| input.name.ends_with(".memory_capacity"));
        let of_training = scenario.training.as_ref();
        let model = of_training.map(|training| fields(&training.model)).unwrap_or_default();
        let served = scenario.serving.as_ref();
        let memory = match (of_training, served) {
            (Some(training), _) => {
                let kept = allowances(&training.memory, &format!("frameworks.{}", training.software.framework));
                [model.clone(), capacity, kept].concat()
            }
            (None, Some(serving)) => {
                let kept = allowances(&serving.memory, &format!("engines.{}", serving.engine));
                [fields(&serving.entry), capacity, kept].concat()
            }
            (None, None) => Vec::new(),
        };
        let silicon = &cluster.accelerator;
        let step = of_training.map(|training| {
            own(&training.efficiency_source, &[("generation", &silicon.generation), ("board", &silicon.board)])
        });
        let links = &cluster.node.scale_up.kind;
        let wires = own(&cluster.collectives, &[("scale_up", links), ("network", &cluster.fabric.entry.class)]);
        let fabric = fields(&cluster.fabric.entry);
        let prices = built.parts.iter().map(|part| Input { name: format!("price of {}", part.id), basis: part.basis });
        let lines = built.costs.lines.iter().map(|line| Input { name: line.name.clone(), basis: line.basis });
        let serving = served.map_or_else(Vec::new, |serving| {
            let tiers = cluster.memory_tiers.iter().flat_map(|tier| fields(&tier.entry)).collect();
            let set = &serving.efficiency;
            let alike = set.generations.iter().find(|(_, alike)| alike.ids.contains(&silicon.generation));
            let generation = alike.map_or("", |(name, _)| name);
            let constants = own(set, &[("generation", generation), ("engine", serving.engine.word())]);
            [memory.clone(), accelerator.clone(), constants, tiers].concat()
        });
        let lines: Vec<Input> = lines.chain(of_owners(scenario)).collect();
        Self {
            agents: match scenario.agents {
                Some(_) => serving.iter().chain(&lines).cloned().chain(defaults_of("agents.", scenario)).collect(),
                None => Vec::new(),
            },
            serving,
            memory,
            training: step.map_or_else(Vec::new, |constants| {
                let host = of_training.and_then(|training| training.host_memory.as_ref());
                let host = host.map(|tier| fields(tier)).unwrap_or_default();
                [model, accelerator, constants, wires, fabric.clone(), host].concat()
            }),
            data: fields(&cluster.storage).into_iter().chain(of_data(scenario)).collect(),
            goodput: [fields(&cluster.reliability), fields(&cluster.network_reliability), fields(&cluster.storage)]
                .concat(),
            fabric: fabric.into_iter().chain(prices).collect(),
            facility: cluster
                .kinds_of_nodes()
                .flat_map(|nodes| fields(nodes.node))
                .chain(fields(&cluster.site))
                .chain(fields(&cluster.power))
                .collect(),
            cost: lines,
        }
    }
}

/// Allowances of a software stack that have a part in this: not those of other frameworks and engines.
fn allowances(entry: &Entry<MemoryAllowance>, own: &str) -> Vec<Input> {
    let kept = |input: &Input| match input.name.strip_prefix(&format!("{}.", entry.id)) {
        Some(field) => field == own || !field.contains('.'),
        None => true,
    };
    fields(entry).into_iter().filter(kept).collect()
}

/// Constants of a set without those of other hardware and software: of each table that is named, only the entry that is.
fn own<T>(entry: &Entry<T>, tables: &[(&str, &str)]) -> Vec<Input> {
    let kept = |input: &Input| {
        let field = input.name.strip_prefix(&format!("{}.", entry.id)).unwrap_or(&input.name);
        let other = |(table, name): &(&str, &str)| {
            let below = field.strip_prefix(&format!("{table}."));
            below.is_some_and(|below| below != *name && !below.starts_with(&format!("{name}.")))
        };
        !tables.iter().any(other)
    };
    fields(entry).into_iter().filter(kept).collect()
}

/// Keys below a prefix that the scenario left to their defaults.
fn defaults_of(prefix: &'static str, scenario: &Scenario) -> impl Iterator<Item = Input> {
    let below = scenario.assumed.iter().filter(move |assumption| assumption.key.starts_with(prefix));
    below.map(|assumption| Input { name: assumption.key.to_owned(), basis: Basis::Assumed })
}

/// Keys of the data's way that the scenario left to their defaults: those of the catalog as it knows them.
fn of_data(scenario: &Scenario) -> impl Iterator<Item = Input> {
    const PREFIX: &str = "training.data.";
    let known = scenario.training.as_ref().map(|training| fields(&training.data_preparation)).unwrap_or_default();
    defaults_of(PREFIX, scenario).map(move |input| {
        let field = input.name.trim_start_matches(PREFIX);
        let from = known.iter().find(|known| known.name.split_once('.').is_some_and(|(_, name)| name == field));
        from.cloned().unwrap_or(input)
    })
}

/// What the price book takes its buyers to reckon with, where the scenario leaves it to the book.
fn of_owners(scenario: &Scenario) -> impl Iterator<Item = Input> {
    let (book, left) = (&scenario.cluster.prices, scenario.finance.by_book);
    let used = move |own: &&OwnerAssumption| match own.assumes {
        OwnerTerm::AcceleratorLife => left.accelerator_life,
        OwnerTerm::CostOfCapital => left.cost_of_capital,
    };
    book.owner
        .iter()
        .filter(used)
        .map(|own| Input { name: format!("{}.{}", book.id, own.assumes), basis: own.evidence.basis })
}

/// Every sourced field of an entry.
fn fields<T>(entry: &Entry<T>) -> Vec<Input> {
    let named = |basis: Basis| move |field: &String| Input { name: format!("{}.{field}", entry.id), basis };
    entry.sources.iter().flat_map(|source| source.fields.iter().map(named(source.basis))).collect()
}

impl From<&Evidence> for Bases {
    fn from(evidence: &Evidence) -> Self {
        let of = |inputs: &[Input]| inputs.iter().map(|input| input.basis).fold(Basis::Datasheet, weakest);
        Self {
            memory: of(&evidence.memory),
            training: of(&evidence.training),
            serving: of(&evidence.serving),
            agents: of(&evidence.agents),
            data: of(&evidence.data),
            goodput: of(&evidence.goodput),
            fabric: of(&evidence.fabric),
            facility: of(&evidence.facility),
            cost: of(&evidence.cost),
        }
    }
}
