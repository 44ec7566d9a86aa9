//! Inverse planning of serving: the fewest accelerators of each kind that keep the limits, and the cheapest of those.
//!
//! On a node, a fabric and a topology, more accelerators never cost less, and more replicas never answer later: so for each
//! layout the fewest nodes are found by doubling and halving (or as the first of the numbers that are given), and the layout with the fewest accelerators is evaluated in full. What
//! that says is held against the limits again before it is an answer.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::serving::serving_layouts;
use crate::catalog::{Catalog, Reference};
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{Node, Value};
use crate::evaluate::{Evaluation, Infeasible, ServingPoint, evaluate, serving_point};
use crate::inference::Short as RunsOut;
use crate::parallelism::ServingLayout;
use crate::scenario::{Arrivals, Choice, Counts, Minimise, PlanFile, PrefillPool, Scenario, ScenarioFile, Serving};
use crate::units::Seconds;

/// The most accelerators that are tried.
const MOST_ACCELERATORS: u64 = 1 << 20;
/// The most accelerators on which separate pools are tried where replicas that prefill and decode do not serve at all.
const MOST_IN_POOLS: u64 = 1 << 10;
/// The most ranks of a replica whose experts lie in several scale-up domains; models have no more experts.
const MOST_RANKS: u32 = 512;
/// By so much a latency has to fall where accelerators are doubled, for more of them to help.
const HELPS: f64 = 1e-4;
/// Runners-up that are shown.
const RUNNERS_UP: usize = 9;

/// A cluster that serves what is asked.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its figures, with the scenario.
    pub evaluation: Box<Evaluation>,
    /// What keeps it from being smaller.
    pub binding: Vec<Binding>,
}

/// What keeps a cluster from being smaller.
#[derive(Clone, Debug, PartialEq)]
pub enum Binding {
    /// A limit of a latency, by its key, which one step fewer accelerators would miss.
    Limit(&'static str),
    /// Requests that one step fewer would not serve, and what runs out.
    Throughput(RunsOut),
    /// Memory of one replica: there is no smaller cluster that holds the model.
    Smallest,
    /// The counts of accelerators to choose from: there is no smaller one.
    Fewest,
    /// What a replica spends most of its time on, and the share.
    Time(&'static str, f64),
}

/// What planning came to.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What was asked, in a line.
    pub title: String,
    /// What was minimised.
    pub minimise: Minimise,
    /// The answers, the best first: one for each node, fabric and topology.
    pub answers: Vec<Answer>,
    /// Why others are none, with how many.
    pub rejected: Vec<(String, u64)>,
    /// Whether topologies were chosen among.
    pub topologies: bool,
}

/// Finds clusters that serve what a scenario asks; mistakes go to the sink, and there is a plan only if there are none.
pub fn plan(document: &Node, catalog: &Catalog, sink: &Sink) -> Option<Plan> {
    let file = ScenarioFile::read(document, sink);
    let wanted = file.plan.clone().unwrap_or_default();
    let scenario = Scenario::resolve(&file, catalog, sink)?;
    let minimise = wanted.minimise.unwrap_or(Minimise::Cost);
    check(&scenario, &wanted, minimise, document, sink);
    if !sink.is_empty() {
        return None;
    }
    let variants = variants(document, &wanted, catalog, &scenario, sink);
    let counts = counts(&wanted, sink);
    if !sink.is_empty() {
        return None;
    }
    let found: Vec<Result<Answer, BTreeMap<String, u64>>> =
        variants.par_iter().map(|variant| solve(variant.as_ref(), &wanted, &counts)).collect();
    let mut rejected: BTreeMap<String, u64> = BTreeMap::new();
    let mut answers = Vec::new();
    for outcome in found {
        match outcome {
            Ok(answer) => answers.push(answer),
            Err(reasons) => {
                for (reason, count) in reasons {
                    *rejected.entry(reason).or_default() += count;
                }
            }
        }
    }
    answers.sort_by(|one, other| merit(&one.evaluation, minimise).total_cmp(&merit(&other.evaluation, minimise)));
    answers.truncate(RUNNERS_UP + 1);
    let mut rejected: Vec<(String, u64)> = rejected.into_iter().collect();
    rejected.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let topologies = !wanted.topology.is_empty();
    Some(Plan { title: scenario.title, minimise, answers, rejected, topologies })
}

/// Reports what cannot be planned for.
fn check(scenario: &Scenario, wanted: &PlanFile, minimise: Minimise, document: &Node, sink: &Sink) {
    let report = |message: &str, hint: &str| {
        sink.push(Diagnostic::new(Code::Inconsistent, message.to_owned()).at(&document.at, "this scenario").hint(hint));
    };
    match &scenario.serving {
        None => report("a plan is for requests to serve, and there is no `serving`", "add a [serving] table"),
        Some(serving) if !matches!(serving.arrivals, Arrivals::Rate(_)) => {
            report(
                "a plan is for requests that come at a rate",
                "give `serving.arrivals = { rate = \"40 request/s\" }`",
            );
        }
        Some(_) => {}
    }
    if minimise == Minimise::Time {
        report("serving has no time to minimise", "minimise cost, accelerators or power, and give serving.limits");
    }
    if wanted.limits.deadline.is_some() {
        report("serving has no deadline", "give limits of latencies as serving.limits");
    }
}

/// The scenario on every node, fabric and topology that may be chosen; an error where they do not go together.
fn variants(
    document: &Node,
    wanted: &PlanFile,
    catalog: &Catalog,
    scenario: &Scenario,
    sink: &Sink,
) -> Vec<Result<Scenario, String>> {
    let ids = |choice: &Option<Choice>, own: &str, all: Vec<String>| match choice {
        None => vec![Reference { id: own.to_owned(), ..Reference::default() }],
        Some(Choice::Of(these)) => these.clone(),
        Some(Choice::Any) => all.into_iter().map(|id| Reference { id, ..Reference::default() }).collect(),
    };
    let nodes =
        ids(&wanted.nodes, &scenario.cluster.node.id, catalog.nodes.iter().map(|node| node.id.clone()).collect());
    let all_fabrics = catalog.fabrics.iter().map(|fabric| fabric.id.clone()).collect();
    let fabrics = ids(&wanted.fabrics, &scenario.cluster.fabric.entry.id, all_fabrics);
    let topologies = topologies(document, wanted, catalog, sink);
    let mut variants = Vec::new();
    for node in &nodes {
        let Some(known) = catalog.nodes.find(node, &node.at, sink) else { continue };
        for fabric in &fabrics {
            if catalog.fabrics.find(fabric, &fabric.at, sink).is_none() {
                continue;
            }
            let leaf = |value: Value| Node { value, at: document.at.clone() };
            let settings = [
                ("cluster.node", leaf(Value::String(node.id.clone()))),
                ("cluster.fabric", leaf(Value::String(fabric.id.clone()))),
                ("cluster.accelerators", leaf(Value::Integer(known.accelerators.into()))),
            ];
            for topology in &topologies {
                let of_topology = topology.iter().map(|(key, value)| (*key, (*value).clone()));
                let Ok(document) = with(document, settings.iter().cloned().chain(of_topology)) else { continue };
                let own = Sink::default();
                let variant = Scenario::resolve(&ScenarioFile::read(&document, &own), catalog, &own);
                let why = own.into_diagnostics().into_iter().next().map_or_else(String::new, |first| first.message);
                variants.push(variant.ok_or(why));
            }
        }
    }
    variants
}

/// Numbers of accelerators to choose from, the fewest first; none where any will do.
fn counts(wanted: &PlanFile, sink: &Sink) -> Vec<u64> {
    let Some(Counts::Of(nodes)) = &wanted.accelerators else { return Vec::new() };
    let mut counts: Vec<u64> = Vec::new();
    for node in nodes {
        match &node.value {
            Value::Integer(count) if (1..=i64::from(u32::MAX)).contains(count) => counts.push(count.unsigned_abs()),
            _ => node.wrong_type("plan.vary.cluster.accelerators", "a whole number from 1", sink),
        }
    }
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// A document with these settings.
fn with<'a>(document: &Node, settings: impl Iterator<Item = (&'a str, Node)>) -> Result<Node, String> {
    let mut document = document.clone();
    let Value::Table(table) = &mut document.value else { return Ok(document) };
    for (key, value) in settings {
        table.set(key, value).map_err(|error| format!("`{key}` cannot be set: {error}"))?;
    }
    Ok(document)
}

/// Every combination of the topology's keys that may be chosen, one of none where none may; a value that is wrong whatever
/// stands beside it is a mistake.
fn topologies<'a>(
    document: &Node,
    wanted: &'a PlanFile,
    catalog: &Catalog,
    sink: &Sink,
) -> Vec<Vec<(&'a str, &'a Node)>> {
    let mut all: Vec<Vec<(&str, &Node)>> = vec![Vec::new()];
    for (key, values) in &wanted.topology {
        for value in values {
            let own = Sink::default();
            match with(document, std::iter::once((key.as_str(), value.clone()))) {
                Ok(document) => {
                    Scenario::resolve(&ScenarioFile::read(&document, &own), catalog, &own);
                }
                Err(error) => own.push(Diagnostic::new(Code::WrongType, error).at(&value.at, "here")),
            }
            own.into_diagnostics()
                .into_iter()
                .filter(|found| found.code.is_of_value())
                .for_each(|found| sink.push(found));
        }
        let longer = |before: &Vec<(&'a str, &'a Node)>| {
            let before = before.clone();
            let with = move |value| before.iter().copied().chain([(key.as_str(), value)]).collect();
            values.iter().map(with).collect::<Vec<Vec<_>>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// The fewest accelerators of one kind on one fabric, evaluated; or why there are none.
fn solve(
    variant: Result<&Scenario, &String>,
    wanted: &PlanFile,
    counts: &[u64],
) -> Result<Answer, BTreeMap<String, u64>> {
    let one = |reason: String| BTreeMap::from([(reason, 1)]);
    let scenario = variant.map_err(|why| one(why.clone()))?;
    let Some(serving) = &scenario.serving else { return Err(BTreeMap::new()) };
    let layouts = if serving.search {
        serving_layouts(&serving.model, scenario.cluster.node.scale_up.domain, MOST_RANKS)
    } else {
        vec![serving.layout]
    };
    let mut rejected: BTreeMap<String, u64> = BTreeMap::new();
    let mut best: Option<(u64, f64, Tried<'_>)> = None;
    let pools = pools(serving, &layouts);
    let together = layouts.iter().map(|&layout| (layout, serving.prefill.filter(|_| !serving.search)));
    for (layout, prefill) in together.chain(pools) {
        let tried = Tried { scenario, serving, layout, prefill, counts };
        let known = best.as_ref().map(|(fewest, ..)| *fewest);
        let most = if serving.search && prefill.is_some() { Some(known.unwrap_or(MOST_IN_POOLS)) } else { known };
        match tried.fewest(most) {
            Ok((accelerators, point)) => {
                let whole = point.open_per_replica() * point.replicas as f64;
                if best.as_ref().is_none_or(|(fewest, open, _)| (accelerators, whole) < (*fewest, *open)) {
                    best = Some((accelerators, whole, tried));
                }
            }
            Err(reason) => *rejected.entry(reason).or_default() += 1,
        }
    }
    let Some((accelerators, _, tried)) = best else { return Err(rejected) };
    let Some(asked) = tried.on(accelerators) else { return Err(rejected) };
    let evaluation = evaluate(asked).map_err(|infeasible| one(infeasible.to_string()))?;
    // The answer is held against what was asked once more, from its own figures.
    let missed = evaluation.serving.as_ref().and_then(|point| point.missed(&serving.limits));
    if let Some((key, ..)) = missed {
        return Err(one(format!("serving.limits.{key} is missed")));
    }
    if wanted.limits.budget.is_some_and(|budget| evaluation.built.costs.total > budget) {
        return Err(one("costs more than the budget over the horizon".to_owned()));
    }
    if wanted.limits.power.is_some_and(|power| evaluation.built.facility.provisioned_total > power) {
        return Err(one("takes more power than there is".to_owned()));
    }
    let binding = tried.binding(accelerators, &evaluation);
    Ok(Answer { evaluation: Box::new(evaluation), binding })
}

/// Layouts of decode, each with one of prefill: ranks that split every matrix.
fn pools(serving: &Serving, layouts: &[ServingLayout]) -> Vec<(ServingLayout, Option<PrefillPool>)> {
    if !serving.search {
        return Vec::new();
    }
    let workers = layouts.iter().filter(|layout| layout.attention_data == 1);
    let pair = |worker: &ServingLayout| {
        let pool = PrefillPool { layout: *worker, accelerators: None };
        layouts.iter().map(move |&decode| (decode, Some(pool)))
    };
    workers.flat_map(pair).collect()
}

/// A layout on a node and a fabric, and prefill's own pool.
struct Tried<'a> {
    scenario: &'a Scenario,
    serving: &'a Serving,
    layout: ServingLayout,
    prefill: Option<PrefillPool>,
    /// Numbers of accelerators to choose from, the fewest first; none where any will do.
    counts: &'a [u64],
}

impl Tried<'_> {
    /// The scenario with that layout on so many accelerators.
    fn on(&self, accelerators: u64) -> Option<Scenario> {
        let mut scenario = self.scenario.clone();
        scenario.cluster.accelerators = u32::try_from(accelerators).ok()?;
        scenario.serving = Some(Serving { layout: self.layout, prefill: self.prefill, ..self.serving.clone() });
        Some(scenario)
    }

    /// Accelerators in whole nodes; and in whole replicas, where the layout is given and none are to be left over.
    fn step(&self) -> u64 {
        if self.serving.search {
            return self.scenario.cluster.node.accelerators.into();
        }
        let (node, replica) = (u64::from(self.scenario.cluster.node.accelerators), self.layout.ranks());
        let whole = node / gcd(node, replica) * replica;
        let worker = self.prefill.map_or(1, |pool| pool.layout.ranks());
        whole / gcd(whole, worker) * worker
    }

    /// Serving on so many steps of accelerators, limits kept; or why not.
    fn serves(&self, steps: u64) -> Result<ServingPoint, Short> {
        self.serves_on(steps * self.step())
    }

    /// The same on so many accelerators.
    fn serves_on(&self, accelerators: u64) -> Result<ServingPoint, Short> {
        let Some(asked) = self.on(accelerators) else { return Err(Short::Other("too many accelerators".to_owned())) };
        let Some(serving) = &asked.serving else { return Err(Short::Other(String::new())) };
        match serving_point(serving, &asked.cluster) {
            Ok(point) => match point.missed(&serving.limits) {
                Some((key, _, got)) => Err(Short::Limit(key, got)),
                None => Ok(point),
            },
            Err(Infeasible::Overload { short, .. }) => Err(Short::Throughput(short)),
            Err(Infeasible::PartReplica { .. } | Infeasible::PartPools { .. } | Infeasible::NoReplicaLeft { .. }) => {
                Err(Short::Replica)
            }
            Err(Infeasible::NoRequestFits { .. }) => Err(Short::Other("no request fits in a replica".to_owned())),
            Err(other) => Err(Short::Other(other.to_string())),
        }
    }

    /// The fewest accelerators that serve what is asked, at most as many as are known to do; or what keeps any from it.
    fn fewest(&self, known: Option<u64>) -> Result<(u64, ServingPoint), String> {
        if !self.counts.is_empty() {
            return self.fewest_of_counts(known);
        }
        let most = known.unwrap_or(MOST_ACCELERATORS) / self.step();
        let more = || "needs more accelerators than another layout".to_owned();
        if most == 0 {
            return Err(more());
        }
        // A replica of many nodes needs all of them.
        let least = self.layout.ranks().div_ceil(self.step()).min(most);
        let (mut short, mut steps, mut before) = (0, least, None);
        let (mut enough, mut point) = loop {
            let why = match self.serves(steps) {
                Ok(point) => break (steps, point),
                Err(Short::Other(why)) => return Err(why),
                Err(why) => why,
            };
            if let Short::Limit(key, got) = why {
                let helped =
                    before.is_none_or(|(missed, was): (&str, Seconds)| key != missed || got < was * (1.0 - HELPS));
                if !helped {
                    return Err(format!("serving.limits.{key} is missed on any number of accelerators"));
                }
                before = Some((key, got));
            }
            if steps == most {
                return Err(match why {
                    _ if known.is_some() => more(),
                    Short::Limit(key, _) => {
                        format!("serving.limits.{key} is missed by {MOST_ACCELERATORS} accelerators")
                    }
                    _ => format!("not served by {MOST_ACCELERATORS} accelerators"),
                });
            }
            short = steps;
            steps = (steps * 2).min(most);
        };
        while enough - short > 1 {
            let middle = short + (enough - short) / 2;
            match self.serves(middle) {
                Ok(found) => (enough, point) = (middle, found),
                Err(_) => short = middle,
            }
        }
        Ok((enough * self.step(), point))
    }

    /// The same of the numbers that may be chosen.
    fn fewest_of_counts(&self, known: Option<u64>) -> Result<(u64, ServingPoint), String> {
        let mut last = "needs more accelerators than another layout".to_owned();
        for &accelerators in self.counts.iter().filter(|count| known.is_none_or(|known| **count <= known)) {
            last = match self.serves_on(accelerators) {
                Ok(point) => return Ok((accelerators, point)),
                Err(Short::Limit(key, _)) => format!("serving.limits.{key} is missed by {accelerators} accelerators"),
                Err(Short::Throughput(_)) => format!("not served by {accelerators} accelerators"),
                Err(Short::Replica) => format!("no replicas share out {accelerators} accelerators"),
                Err(Short::Other(why)) => why,
            };
        }
        Err(last)
    }

    /// The next smaller number of accelerators; or what is said where there is none.
    fn fewer(&self, accelerators: u64) -> Result<u64, Binding> {
        if !self.counts.is_empty() {
            let fewer = self.counts.iter().copied().rev().find(|count| *count < accelerators);
            return fewer.ok_or(Binding::Fewest);
        }
        let steps = accelerators / self.step();
        if steps > 1 { Ok((steps - 1) * self.step()) } else { Err(Binding::Smallest) }
    }

    /// What keeps that number from being smaller, and what a replica spends most time on.
    fn binding(&self, accelerators: u64, evaluation: &Evaluation) -> Vec<Binding> {
        let fewer = match self.fewer(accelerators) {
            Err(binding) => binding,
            Ok(fewer) => match self.serves_on(fewer) {
                Err(Short::Limit(key, _)) => Binding::Limit(key),
                Err(Short::Throughput(short)) => Binding::Throughput(short),
                _ => Binding::Smallest,
            },
        };
        let mut binding = vec![fewer];
        if let Some(point) = &evaluation.serving {
            let shares = point.shares;
            let parts = [
                ("reading weights", shares.weights),
                ("reading caches", shares.cache),
                ("arithmetic, prefill among it", shares.compute),
                ("messages", shares.network),
                ("waiting for the host, or for requests", shares.idle),
            ];
            let largest = parts.into_iter().fold(("", 0.0), |most, part| if part.1 > most.1 { part } else { most });
            binding.push(Binding::Time(largest.0, largest.1));
        }
        binding
    }
}

/// Why a number of accelerators does not do.
enum Short {
    /// A latency is beyond its limit, by its key; and what it is.
    Limit(&'static str, Seconds),
    /// More requests come than are served.
    Throughput(RunsOut),
    /// Not enough for a replica, or for both pools.
    Replica,
    Other(String),
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// What is minimised, as a number to order by.
fn merit(evaluation: &Evaluation, minimise: Minimise) -> f64 {
    // Base numbers, because they only order.
    match minimise {
        Minimise::Cost | Minimise::Time => evaluation.built.costs.total.value(),
        Minimise::Accelerators => f64::from(evaluation.scenario.cluster.accelerators),
        Minimise::Power => evaluation.built.facility.provisioned_total.value(),
    }
}
