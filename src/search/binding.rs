//! What keeps an answer from being smaller: what refuses the next smaller purchase, evaluated anew.

use rayon::prelude::*;

use super::doubled::{Doubled, Resource, doubled, that_help};
use super::refusal::Refusal;
use super::serving::best_deployment;
use super::tried::{Size, Tried};
use crate::evaluate::{Infeasible, ServingPoint, serving_point};
use crate::scenario::{Arrivals, Cluster, Scenario, Serving};
use crate::units::RequestRate;

/// So many times what is served at most is more than twice as much of anything serves.
const BEYOND: f64 = 100.0;

/// What keeps a cluster from being smaller.
#[derive(Clone, Debug, PartialEq)]
pub enum Binding {
    /// So many accelerators, the next fewer that are bought, do not do.
    Refused(u64, Refusal),
    /// So many, the next fewer, do without those to spare, and not with them.
    Spares(u64, Refusal),
    /// Nodes are bought whole, and of their accelerators fewer would do.
    Whole {
        /// Those that would.
        enough: u64,
        /// Those that are bought.
        bought: u64,
    },
    /// Nothing smaller is bought.
    Node,
    /// The counts of accelerators to choose from: there is no smaller one.
    Fewest,
    /// What most time is spent on, and the share: on the next fewer accelerators, where those are late.
    Time(&'static str, f64),
    /// The same of one of two kinds of nodes, by what they do.
    Of(&'static str, Box<Self>),
}

/// What accelerators come to, and what keeps them from being an answer.
type Tested = (Option<ServingPoint>, Option<Refusal>);

impl Tried<'_> {
    /// What keeps accelerators of each kind from being fewer, and what a replica spends most time on.
    ///
    /// # Errors
    /// The next fewer, where they do.
    pub(super) fn binding(&self, size: Size, point: &ServingPoint) -> Result<Vec<Binding>, Size> {
        let main = self.next_fewer(size.main, self.step()).map(|main| Size { main, ..size });
        let (of_main, late) = self.refused(main, |size| size.main)?;
        let mut binding = if let Some(step) = self.step_of_prefill() {
            let prefill = self.next_fewer(size.prefill, step).map(|prefill| Size { prefill, ..size });
            let (of_prefill, _) = self.refused(prefill, |size| size.prefill)?;
            vec![Binding::Of("decode", Box::new(of_main)), Binding::Of("prefill", Box::new(of_prefill))]
        } else {
            self.whole(size).into_iter().chain([of_main]).collect()
        };
        binding.extend(busiest(late.as_ref().unwrap_or(point)));
        Ok(binding)
    }

    /// The next fewer accelerators that are bought.
    fn next_fewer(&self, from: u64, step: u64) -> Option<u64> {
        if self.counts.is_empty() {
            return from.checked_sub(step).filter(|left| *left > 0);
        }
        self.counts.iter().copied().rev().find(|count| *count < from)
    }

    /// What refuses fewer, and what they come to where they serve what is asked too late.
    fn refused(&self, fewer: Option<Size>, of: impl Fn(&Size) -> u64) -> Result<(Binding, Option<ServingPoint>), Size> {
        let Some(size) = fewer else {
            return Ok((if self.counts.is_empty() { Binding::Node } else { Binding::Fewest }, None));
        };
        let (late, why) = self.tested(size, self.serving.spare_replicas);
        let Some(mut why) = why else { return Err(size) };
        if let Refusal::Throughput { most, doubled, .. } = &mut why {
            *doubled = self.doubled(size, *most);
        }
        let of_spares = self.serving.spare_replicas > 0 && self.tested(size, 0).1.is_none();
        let binding = if of_spares { Binding::Spares } else { Binding::Refused };
        Ok((binding(of(&size), why), late))
    }

    /// So many accelerators in the best way, or in that which is given, with so many replicas to spare.
    pub(super) fn tested(&self, size: Size, spare_replicas: u32) -> Tested {
        let Some(asked) = self.on(size) else {
            return (None, Some(Refusal::Other("too many accelerators".to_owned())));
        };
        match self.best_on(&asked, spare_replicas) {
            Ok(point) => (Some(point), Refusal::of_limits(&point, self.serving)),
            Err(why) => (None, Some(why.into())),
        }
    }

    /// Of what twice as much would let accelerators serve more than they do.
    fn doubled(&self, size: Size, most: RequestRate) -> Vec<Doubled> {
        // What agents' sessions leave of it takes a search of its own.
        let Some(asked) = self.on(size).filter(|_| self.serving.sessions.is_none()) else { return Vec::new() };
        let of = |of: Resource| {
            let more = doubled(&asked, of);
            let features = more.serving.as_ref()?.features.clone();
            // More than any serves, so that what each does at most is told.
            let arrivals = Arrivals::Rate(most * BEYOND);
            let serving = Serving { arrivals, features, ..self.serving.clone() };
            match self.best_of(&serving, &more.cluster) {
                Err(Infeasible::Overload { most: served, .. }) => {
                    Some(Doubled { of, most: served, ratio: served / most })
                }
                _ => None,
            }
        };
        that_help(Resource::ALL.into_par_iter().filter_map(of).collect())
    }

    fn best_on(&self, Scenario { cluster, .. }: &Scenario, spare_replicas: u32) -> Result<ServingPoint, Infeasible> {
        self.best_of(&Serving { spare_replicas, ..self.serving.clone() }, cluster)
    }

    fn best_of(&self, serving: &Serving, cluster: &Cluster) -> Result<ServingPoint, Infeasible> {
        let way = if serving.search { best_deployment(serving, cluster)? } else { self.deployment };
        serving_point(&way.of(serving), cluster)
    }

    /// The fewest accelerators at work in as many racks, whole trays in each, that would do; none where all have to.
    fn whole(&self, size: Size) -> Option<Binding> {
        let node = self.scenario.cluster.main_nodes().node;
        let (tray, each) = (u64::from(node.accelerators_per_tray), u64::from(node.accelerators));
        if tray >= each || !size.main.is_multiple_of(each) {
            return None;
        }
        let racks = size.main / each;
        let of = |trays: u64| racks * trays * tray;
        let does = |trays: u64| self.tested(Size { main: of(trays), ..size }, self.serving.spare_replicas).1.is_none();
        let (mut few, mut enough) = (0, each / tray);
        if !does(enough - 1) {
            return None;
        }
        enough -= 1;
        while enough - few > 1 {
            let middle = few + (enough - few) / 2;
            if does(middle) { enough = middle } else { few = middle }
        }
        Some(Binding::Whole { enough: of(enough), bought: size.main })
    }
}

/// What a replica spends most of its time on, and a worker of prefill's own pool.
fn busiest(point: &ServingPoint) -> Vec<Binding> {
    let shares = point.shares;
    let parts = [
        ("reading weights (memory bandwidth)", shares.weights),
        ("reading caches (memory bandwidth)", shares.cache),
        ("arithmetic, prefill among it (compute)", shares.compute),
        ("messages (network)", shares.network),
        ("waiting for the host, or for requests", shares.idle),
    ];
    let (what, share) = parts.into_iter().fold(("", 0.0), |most, part| if part.1 > most.1 { part } else { most });
    let replica = Binding::Time(what, share);
    let Some(pool) = point.pool else { return vec![replica] };
    let busy = point.request_rate() / pool.most;
    let worker = if busy > 0.5 { ("taking prompts in", busy) } else { ("waiting for requests", 1.0 - busy) };
    let of = |pool, time| Binding::Of(pool, Box::new(time));
    vec![of("decode", replica), of("prefill", Binding::Time(worker.0, worker.1))]
}
