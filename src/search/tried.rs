//! One way to serve on one choice of nodes and fabric: the fewest accelerators on which it keeps what is asked.

use super::serving::{Deployment, worker_alone};
use crate::evaluate::{Evaluation, Infeasible, ServingPoint, serving_point};
use crate::inference::Short as RunsOut;
use crate::parallelism::ServingLayout;
use crate::scenario::{Arrivals, NodeGroup, Scenario, Serving};
use crate::units::Seconds;

/// The most accelerators that are tried.
const MOST_ACCELERATORS: u64 = 1 << 20;
/// The most accelerators on which separate pools are tried where replicas that prefill and decode do not serve at all.
const MOST_IN_POOLS: u64 = 1 << 10;
/// By so much a latency has to fall where accelerators are doubled, for more of them to help.
const HELPS: f64 = 1e-4;
/// So many times the accelerators that take in what comes are plenty for prefill: prompts hardly wait.
const PLENTY: f64 = 4.0;

/// What keeps a cluster from being smaller.
#[derive(Clone, Debug, PartialEq)]
pub enum Binding {
    /// A limit of a latency, by its key, which one step fewer accelerators would miss.
    Limit(&'static str),
    /// Requests that one step fewer would not serve, and what runs out.
    Throughput(RunsOut),
    /// One step of whole nodes and replicas: nothing smaller is bought.
    Node,
    /// The layout: one step fewer accelerators hold no whole replica beside those to spare.
    Replica,
    /// The layouts of pools: one step fewer do not hold both.
    Pools,
    /// The counts of accelerators to choose from: there is no smaller one.
    Fewest,
    /// What a replica spends most of its time on, and the share.
    Time(&'static str, f64),
    /// The same of one of two kinds of nodes, by what they do.
    Of(&'static str, Box<Self>),
}

/// Accelerators of each kind of node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// On the cluster's own kind.
    pub(super) main: u64,
    /// On nodes that prefill has to itself.
    pub(super) prefill: u64,
}

/// A way to serve on a choice of nodes and fabric.
#[derive(Clone, Copy)]
pub(super) struct Tried<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) serving: &'a Serving,
    pub(super) deployment: Deployment,
    /// Numbers of accelerators to choose from, the fewest first; none where any will do.
    pub(super) counts: &'a [u64],
}

impl Tried<'_> {
    /// The scenario in that way on so many accelerators.
    pub(super) fn on(&self, size: Size) -> Option<Scenario> {
        let prefill = u32::try_from(size.prefill).ok()?;
        let accelerators = u32::try_from(size.main).ok()?.checked_add(prefill)?;
        let mut scenario = self.scenario.with_accelerators(accelerators, prefill);
        scenario.serving = Some(self.deployment.of(self.serving));
        Some(scenario)
    }

    /// Accelerators in whole nodes; and in whole replicas, where the layout is given and none are to be left over.
    fn step(&self) -> u64 {
        let own = self.scenario.cluster.own_nodes_of_prefill();
        let shared = self.deployment.prefill.filter(|_| own.is_none());
        let step = self.step_of(self.scenario.cluster.main_nodes(), self.deployment.layout);
        shared.map_or(step, |pool| if self.serving.left_over { step } else { multiple(step, pool.layout.ranks()) })
    }

    fn step_of(&self, nodes: NodeGroup<'_>, layout: ServingLayout) -> u64 {
        let node = nodes.node.accelerators.into();
        if self.serving.left_over { node } else { multiple(node, layout.ranks()) }
    }

    /// Serving on so many accelerators, limits kept; or why not.
    fn serves(&self, size: Size) -> Result<ServingPoint, Short> {
        let Some(asked) = self.on(size) else { return Err(Short::Other("too many accelerators".to_owned())) };
        let Some(serving) = &asked.serving else { return Err(Short::Other(String::new())) };
        match serving_point(serving, &asked.cluster) {
            Ok(point) => match point.missed(&serving.limits) {
                Some((key, _, got)) => Err(Short::Limit(key, got)),
                None => Ok(point),
            },
            Err(Infeasible::Overload { short, .. }) => Err(Short::Throughput(short)),
            Err(
                Infeasible::PartReplica { .. }
                | Infeasible::PartPools { .. }
                | Infeasible::PartPool { .. }
                | Infeasible::NoReplicaLeft { .. },
            ) => Err(Short::Replica),
            Err(Infeasible::NoRequestFits { .. }) => Err(Short::Other("no request fits in a replica".to_owned())),
            Err(Infeasible::Prefill(_)) => Err(Short::Other("no prompt fits in a prefill worker".to_owned())),
            Err(other) => Err(Short::Other(other.to_string())),
        }
    }

    /// The fewest accelerators that serve what is asked, and no more than another way takes; or what keeps any from it.
    ///
    /// Of two kinds the fewest decode with plenty of prefill, and the fewest of prefill beside those: only the decode step of a
    /// first token hangs on both.
    pub(super) fn fewest(&self, known: &mut Known) -> Result<(Size, ServingPoint), String> {
        let (step, layout) = (self.step(), self.deployment.layout);
        // A replica of many nodes needs all of them.
        let few = layout.ranks().div_ceil(step);
        let Some((own, pool)) = self.scenario.cluster.own_nodes_of_prefill().zip(self.deployment.prefill) else {
            let in_pools = self.serving.search && self.deployment.prefill.is_some();
            if !self.counts.is_empty() {
                let (main, point) = self.fewest_of_counts(known.fewest)?;
                known.fewest = Some(main);
                return Ok((Size { main, prefill: 0 }, point));
            }
            let most = if in_pools { MOST_IN_POOLS } else { MOST_ACCELERATORS };
            let (first, cap) = match known.fewest {
                Some(fewest) => (First::Most, Cap::Other(fewest / step)),
                None => (First::Least(few), Cap::Tried(most / step)),
            };
            let of = |steps: u64| Size { main: steps * step, prefill: 0 };
            let (steps, point) = least(first, cap, step, |steps| self.serves(of(steps)))?;
            let size = of(steps);
            known.fewest = Some(size.main);
            return Ok((size, point));
        };
        let prefill_step = self.step_of(own, pool.layout);
        let plenty =
            self.plenty(pool.layout).ok_or("no prompt fits in a prefill worker")?.div_ceil(prefill_step).max(1);
        let of = |main: u64, prefill: u64| Size { main: main * step, prefill: prefill * prefill_step };
        let first = known.of_decode(layout).map_or(First::Least(few), First::Guess);
        let (main, _) = least(first, Cap::Tried(MOST_ACCELERATORS / step), step, |main| self.serves(of(main, plenty)))?;
        known.decode.push((layout, main));
        let few = pool.layout.ranks().div_ceil(prefill_step);
        let first = known.of_prefill(pool.layout).map_or(First::Least(few), First::Guess);
        let (prefill, point) =
            least(first, Cap::Tried(plenty), prefill_step, |prefill| self.serves(of(main, prefill)))?;
        known.prefill.push((pool.layout, prefill));
        Ok((of(main, prefill), point))
    }

    /// The same of the numbers that may be chosen.
    fn fewest_of_counts(&self, known: Option<u64>) -> Result<(u64, ServingPoint), String> {
        let mut last = "needs more accelerators than another layout".to_owned();
        for &accelerators in self.counts.iter().filter(|count| known.is_none_or(|known| **count <= known)) {
            last = match self.serves(Size { main: accelerators, prefill: 0 }) {
                Ok(point) => return Ok((accelerators, point)),
                Err(Short::Limit(key, _)) => format!("serving.limits.{key} is missed by {accelerators} accelerators"),
                Err(Short::Throughput(_)) => format!("not served by {accelerators} accelerators"),
                Err(Short::Replica) => format!("no replicas share out {accelerators} accelerators"),
                Err(Short::Other(why)) => why,
            };
        }
        Err(last)
    }

    /// Accelerators on which prompts hardly wait for a prefill worker of a layout, those to spare among them.
    fn plenty(&self, layout: ServingLayout) -> Option<u64> {
        let Arrivals::Rate(rate) = self.serving.arrivals else { return None };
        let worker = worker_alone(self.serving, &self.scenario.cluster, layout)?;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a quotient of rates, rounded up, at most the cap"
        )]
        let ranks = (rate / worker.of_rank * PLENTY).ceil().min(MOST_ACCELERATORS as f64) as u64;
        Some(ranks.max(layout.ranks()) + u64::from(self.serving.spare_replicas) * layout.ranks())
    }

    /// What keeps that number from being smaller, and what a replica spends most time on.
    pub(super) fn binding(&self, size: Size, evaluation: &Evaluation) -> Vec<Binding> {
        let apart = self.scenario.cluster.prefill.is_some();
        let fewer = |smaller: Result<Size, Binding>| match smaller.map(|size| self.serves(size)) {
            Ok(Err(Short::Limit(key, _))) => Binding::Limit(key),
            Ok(Err(Short::Throughput(short))) => Binding::Throughput(short),
            Ok(_) if self.deployment.prefill.is_some() && !apart => Binding::Pools,
            Ok(_) => Binding::Replica,
            Err(binding) => binding,
        };
        let less = |from: u64, step: u64| {
            if !self.counts.is_empty() {
                return self.counts.iter().copied().rev().find(|count| *count < from).ok_or(Binding::Fewest);
            }
            from.checked_sub(step).filter(|left| *left > 0).ok_or(Binding::Node)
        };
        let main = fewer(less(size.main, self.step()).map(|main| Size { main, ..size }));
        let own = self.scenario.cluster.own_nodes_of_prefill().zip(self.deployment.prefill);
        let mut binding = match own {
            None => vec![main],
            Some((nodes, pool)) => {
                let step = self.step_of(nodes, pool.layout);
                let prefill = fewer(less(size.prefill, step).map(|prefill| Size { prefill, ..size }));
                vec![Binding::Of("decode", Box::new(main)), Binding::Of("prefill", Box::new(prefill))]
            }
        };
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

/// What other ways on the same nodes came to.
#[derive(Default)]
pub(super) struct Known {
    /// The fewest accelerators, where all are of one kind.
    fewest: Option<u64>,
    /// The fewest steps of decode by layout, and of prefill, where prefill has nodes of its own.
    decode: Vec<(ServingLayout, u64)>,
    prefill: Vec<(ServingLayout, u64)>,
}

impl Known {
    fn of_decode(&self, layout: ServingLayout) -> Option<u64> {
        self.decode.iter().rev().find(|(known, _)| *known == layout).map(|(_, steps)| *steps)
    }

    fn of_prefill(&self, layout: ServingLayout) -> Option<u64> {
        self.prefill.iter().rev().find(|(known, _)| *known == layout).map(|(_, steps)| *steps)
    }
}

/// Where a search of the fewest begins.
#[derive(Clone, Copy)]
enum First {
    /// With the least that can be, doubled until they do.
    Least(u64),
    /// With as many as did elsewhere, and one fewer.
    Guess(u64),
    /// With the most that are looked at: more do not matter.
    Most,
}

/// The most steps that are looked at.
#[derive(Clone, Copy)]
enum Cap {
    /// As many as another way takes.
    Other(u64),
    /// As many as are tried at all.
    Tried(u64),
}

/// The fewest steps that do, of the most that are looked at; or what keeps any from it. A step is so many accelerators.
fn least(
    first: First,
    cap: Cap,
    step: u64,
    serves: impl Fn(u64) -> Result<ServingPoint, Short>,
) -> Result<(u64, ServingPoint), String> {
    let (Cap::Other(most) | Cap::Tried(most)) = cap;
    let more = || "needs more accelerators than another layout".to_owned();
    if most == 0 {
        return Err(more());
    }
    let (mut short, mut steps) = match first {
        First::Least(least) => (0, least.min(most)),
        First::Guess(steps) => {
            let fewer = steps.min(most) - 1;
            match if fewer > 0 { serves(fewer) } else { Err(Short::Replica) } {
                // Fewer than elsewhere may do.
                Ok(_) => (0, 1),
                Err(_) => (fewer, fewer + 1),
            }
        }
        First::Most => (0, most),
    };
    let mut before = None;
    let (mut enough, mut point) = loop {
        let why = match serves(steps) {
            Ok(point) => break (steps, point),
            Err(Short::Other(why)) => return Err(why),
            Err(why) => why,
        };
        if let Short::Limit(key, got) = why {
            let helped = before.is_none_or(|(missed, was): (&str, Seconds)| key != missed || got < was * (1.0 - HELPS));
            if !helped {
                return Err(format!("serving.limits.{key} is missed on any number of accelerators"));
            }
            before = Some((key, got));
        }
        if steps == most {
            return Err(match why {
                _ if matches!(cap, Cap::Other(_)) => more(),
                Short::Limit(key, _) => format!("serving.limits.{key} is missed by {} accelerators", most * step),
                _ => format!("not served by {} accelerators", most * step),
            });
        }
        short = steps;
        steps = (steps * 2).min(most);
    };
    while enough - short > 1 {
        let middle = short + (enough - short) / 2;
        match serves(middle) {
            Ok(found) => (enough, point) = (middle, found),
            Err(_) => short = middle,
        }
    }
    Ok((enough, point))
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

/// The least that both divide.
fn multiple(one: u64, other: u64) -> u64 {
    one / gcd(one, other) * other
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}
