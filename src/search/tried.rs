//! One way to serve on one choice of nodes and fabric: the fewest accelerators on which it keeps what is asked.

use super::refusal::Refusal;
use super::rejected::Rejection;
use super::serving::{Deployment, worker_alone};
use crate::evaluate::{Infeasible, MissedLimit, ServingPoint, served_point, serving_point};
use crate::parallelism::ServingLayout;
use crate::scenario::{Arrivals, Cluster, NodeGroup, Scenario, Serving};
use crate::units::{Seconds, counted, to_integer};

/// The most accelerators that are tried.
const MOST_ACCELERATORS: u64 = 1 << 20;
/// The most accelerators on which separate pools are tried where replicas that prefill and decode do not serve at all.
const MOST_IN_POOLS: u64 = 1 << 10;
/// By so much a latency has to fall where accelerators are doubled, for more of them to help.
const HELPS: f64 = 1e-4;
/// So many times the accelerators that take in what comes are plenty for prefill: prompts hardly wait.
const PLENTY: f64 = 4.0;

/// Accelerators of each kind of node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// On the cluster's own kind.
    pub main: u64,
    /// On nodes that prefill has to itself.
    pub prefill: u64,
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
    pub(super) fn step(&self) -> u64 {
        let own = self.scenario.cluster.own_nodes_of_prefill();
        let shared = self.deployment.prefill.filter(|_| own.is_none());
        let step = self.step_of(self.scenario.cluster.main_nodes(), self.deployment.layout);
        shared.map_or(step, |pool| if self.serving.left_over { step } else { multiple(step, pool.layout.ranks()) })
    }

    /// The same on nodes that prefill has to itself; none where it has none.
    pub(super) fn step_of_prefill(&self) -> Option<u64> {
        let (own, pool) = self.scenario.cluster.own_nodes_of_prefill().zip(self.deployment.prefill)?;
        Some(self.step_of(own, pool.layout))
    }

    fn step_of(&self, nodes: NodeGroup<'_>, layout: ServingLayout) -> u64 {
        let node = nodes.node.accelerators.into();
        if self.serving.left_over { node } else { multiple(node, layout.ranks()) }
    }

    /// Serving on so many accelerators, limits kept; or why not, of requests that are too many no less than are served.
    fn serves(&self, size: Size) -> Result<ServingPoint, Refusal> {
        self.serves_by(size, served_point)
    }

    /// Why so many accelerators do not serve what is asked, as it is told: how many requests are served where agents' sessions lose
    /// their caches takes a search of its own.
    fn refused_on(&self, size: Size, why: Refusal) -> Refusal {
        if !matches!(why, Refusal::Throughput { .. }) || self.serving.sessions.is_none() {
            return why;
        }
        self.serves_by(size, serving_point).err().unwrap_or(why)
    }

    fn serves_by(
        &self,
        size: Size,
        point: fn(&Serving, &Cluster) -> Result<ServingPoint, Infeasible>,
    ) -> Result<ServingPoint, Refusal> {
        let many = || Refusal::Other("too many accelerators".to_owned());
        let asked = self.on(size).ok_or_else(many)?;
        let serving = asked.serving.as_ref().ok_or_else(many)?;
        let point = point(serving, &asked.cluster)?;
        Refusal::of_limits(&point, serving).map_or(Ok(point), Err)
    }

    /// The fewest accelerators that serve what is asked, and no more than another way takes; or what keeps any from it.
    ///
    /// Of two kinds the fewest decode with plenty of prefill, and the fewest of prefill beside those: only the decode step of a
    /// first token hangs on both.
    pub(super) fn fewest(&self, known: &mut Known) -> Result<(Size, ServingPoint), Rejection> {
        let (step, layout) = (self.step(), self.deployment.layout);
        // A replica of many nodes needs all of them.
        let few = layout.ranks().div_ceil(step);
        let Some((own, pool)) = self.scenario.cluster.own_nodes_of_prefill().zip(self.deployment.prefill) else {
            let in_pools = self.serving.search && self.deployment.prefill.is_some();
            if !self.counts.is_empty() {
                let (main, point) =
                    self.fewest_of_counts(known.fewest.map(|fewest| fewest - u64::from(known.only_fewer)))?;
                known.fewest = Some(main);
                return Ok((Size { main, prefill: 0 }, point));
            }
            let most = if in_pools { MOST_IN_POOLS } else { MOST_ACCELERATORS };
            let (first, cap) = match known.fewest {
                Some(fewest) => (First::Most, Cap::Other((fewest - u64::from(known.only_fewer)) / step)),
                None => (First::Least(few), Cap::Tried(most / step)),
            };
            let of = |steps: u64| Size { main: steps * step, prefill: 0 };
            let told = |steps, why| self.refused_on(of(steps), why);
            let (steps, point) = least(first, cap, step, (|steps| self.serves(of(steps)), told))?;
            let size = of(steps);
            known.fewest = Some(size.main);
            return Ok((size, point));
        };
        let prefill_step = self.step_of(own, pool.layout);
        let no_prompt = || Rejection::new("no prompt fits in a prefill worker");
        let plenty = self.plenty(pool.layout).ok_or_else(no_prompt)?.div_ceil(prefill_step).max(1);
        let of = |main: u64, prefill: u64| Size { main: main * step, prefill: prefill * prefill_step };
        let first = known.of_decode(layout).map_or(First::Least(few), First::Guess);
        let told = |main, why| self.refused_on(of(main, plenty), why);
        let serves = |main| self.serves(of(main, plenty));
        let (main, _) = least(first, Cap::Tried(MOST_ACCELERATORS / step), step, (serves, told))?;
        known.decode.push((layout, main));
        let few = pool.layout.ranks().div_ceil(prefill_step);
        let first = known.of_prefill(pool.layout).map_or(First::Least(few), First::Guess);
        let told = |prefill, why| self.refused_on(of(main, prefill), why);
        let serves = |prefill| self.serves(of(main, prefill));
        let (prefill, point) = least(first, Cap::Tried(plenty), prefill_step, (serves, told))?;
        known.prefill.push((pool.layout, prefill));
        Ok((of(main, prefill), point))
    }

    /// The same of the numbers that may be chosen.
    fn fewest_of_counts(&self, known: Option<u64>) -> Result<(u64, ServingPoint), Rejection> {
        let mut last = None;
        for &main in self.counts.iter().filter(|count| known.is_none_or(|known| **count <= known)) {
            let size = Size { main, prefill: 0 };
            match self.serves(size) {
                Ok(point) => return Ok((main, point)),
                Err(why) => last = Some((size, why)),
            }
        }
        let told = |(size, why): (Size, Refusal)| short_of(&self.refused_on(size, why), size.main, None);
        Err(last.map_or_else(more_than_another, told))
    }

    /// Accelerators on which prompts hardly wait for a prefill worker of a layout, those to spare among them.
    fn plenty(&self, layout: ServingLayout) -> Option<u64> {
        let Arrivals::Rate(rate) = self.serving.arrivals else { return None };
        let worker = worker_alone(self.serving, &self.scenario.cluster, layout)?;
        let ranks = to_integer::<u64>((rate / worker.of_rank * PLENTY).ceil().min(MOST_ACCELERATORS as f64));
        Some(ranks.max(layout.ranks()) + u64::from(self.serving.spare_replicas) * layout.ranks())
    }
}

/// What other ways on the same nodes came to.
#[derive(Default)]
pub(super) struct Known {
    /// Whether a way that takes as many as another is none to choose, as where those are told apart later.
    only_fewer: bool,
    /// The fewest accelerators, where all are of one kind.
    fewest: Option<u64>,
    /// The fewest steps of decode by layout, and of prefill, where prefill has nodes of its own.
    decode: Vec<(ServingLayout, u64)>,
    prefill: Vec<(ServingLayout, u64)>,
}

impl Known {
    /// Nothing yet, of ways of which those that take as many accelerators of one kind are told apart later.
    pub(super) fn of_fewer() -> Self {
        Self { only_fewer: true, ..Self::default() }
    }

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

/// The fewest steps that do, of the most that are looked at; or what keeps any from it, as it is told. A step is so many accelerators.
fn least(
    first: First,
    cap: Cap,
    step: u64,
    (serves, told): (impl Fn(u64) -> Result<ServingPoint, Refusal>, impl Fn(u64, Refusal) -> Refusal),
) -> Result<(u64, ServingPoint), Rejection> {
    let (Cap::Other(mut most) | Cap::Tried(mut most)) = cap;
    if most == 0 {
        return Err(more_than_another());
    }
    let (mut short, mut steps) = match first {
        First::Least(least) => (0, least.min(most)),
        First::Guess(steps) => {
            let fewer = steps.min(most) - 1;
            // Fewer than elsewhere may do.
            if fewer > 0 && serves(fewer).is_ok() { (0, 1) } else { (fewer, fewer + 1) }
        }
        First::Most => (0, most),
    };
    let mut before: Option<(&str, Seconds)> = None;
    // The most that was short of something, and why more than the most cannot be.
    let (mut last, mut wall): (Option<Refusal>, Option<String>) = (None, None);
    let (mut enough, mut point) = loop {
        match serves(steps) {
            Ok(point) => break (steps, point),
            Err(Refusal::Memory(why)) => return Err(Rejection::with("no request fits", why, 1.0)),
            Err(Refusal::Other(why)) => {
                most = steps - 1;
                wall = Some(why);
            }
            Err(why) => {
                if let Refusal::Limits { worst: MissedLimit { table, key, got, .. }, .. } = why {
                    let helped = before.is_none_or(|(missed, was)| key != missed || got < was * (1.0 - HELPS));
                    if !helped {
                        return Err(on_any_number(
                            table,
                            key,
                            format!("{} {why}", counted(steps * step, "GPU")),
                            why.missed_by(),
                        ));
                    }
                    before = Some((key, got));
                }
                (short, last) = (steps, Some(why));
            }
        }
        if short >= most {
            return Err(match (cap, last, wall) {
                (Cap::Other(_), ..) => more_than_another(),
                (_, Some(why), wall) => short_of(&told(short, why), short * step, wall.as_deref()),
                (_, None, wall) => Rejection::new(wall.unwrap_or_default()),
            });
        }
        // Up to where more than can be built, half of the way.
        steps = if wall.is_some() { short + (most - short).div_ceil(2) } else { (steps * 2).min(most) };
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

fn more_than_another() -> Rejection {
    Rejection::new("needs more accelerators than another layout")
}

/// A limit that more accelerators do not help to keep.
pub(super) fn on_any_number(table: &str, key: &str, figures: String, missed_by: f64) -> Rejection {
    Rejection::with(format!("{table}.{key} is missed on any number of GPUs"), figures, missed_by)
}

/// What so many accelerators are short of; with why there cannot be more, where that is so.
fn short_of(why: &Refusal, accelerators: u64, wall: Option<&str>) -> Rejection {
    let kind = match why {
        Refusal::Limits { worst: MissedLimit { table, key, .. }, .. } => format!("{table}.{key} is missed"),
        Refusal::Throughput { .. } => "more requests come than are served".to_owned(),
        Refusal::Layout(_) => "no replicas share the GPUs out".to_owned(),
        Refusal::Memory(_) => "no request fits".to_owned(),
        Refusal::Other(_) => "cannot be built".to_owned(),
    };
    let most = wall.map_or_else(String::new, |wall| format!(", the most that can be built ({wall}),"));
    Rejection::with(kind, format!("{}{most} {why}", counted(accelerators, "GPU")), why.missed_by())
}

/// The least that both divide.
fn multiple(one: u64, other: u64) -> u64 {
    one / gcd(one, other) * other
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}
