//! Sessions of agents that wait for tools and people in the memory that running requests leave: what of them is still there as
//! they go on. The rest is computed again, where no tier keeps it.

use std::sync::Arc;

use super::caching::groups_of;
use super::holding::Holding;
use super::sessions::{Step, waits_of};
use super::{Bound, Reuse, ServingPoint, answered, tokens_up};
use crate::evaluate::Infeasible;
use crate::inference::{Scratch, Short};
use crate::scenario::{Agents, Arrivals, Cluster, Serving};
use crate::units::{Fraction, RequestRate, Seconds};
use crate::workload::{Requests, Reuse as Shares, Task};

/// Rounds in which what is found settles with what is left free, at most, how near that is brought, and how near is enough.
const ROUNDS: u32 = 60;
const NEAR: f64 = 1e-7;
const ENOUGH: f64 = 1e-4;
/// Share of further steps that may lose their session in what is taken for finding all of them.
const FEW: f64 = 1e-3;
/// Rounds after which a limit is reckoned from the last ones, and the share of a step that the next one may be for it.
const REACH: u32 = 2;
const SLOW: f64 = 0.98;
/// Halvings in which the most that is served is found, to a thousandth: next to it rounds are many.
const HALVINGS: u32 = 11;
/// Of two parts of a range, the larger (the golden section).
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// Sessions whose caches are there while they wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResidentPoint {
    /// As many as fit, in all groups beside what runs.
    pub fit: f64,
    /// Share of further steps that find their session.
    pub session: Fraction,
}

/// Why those that come are not served where sessions have lost their caches.
fn crowded_out(why: Infeasible) -> Infeasible {
    match why {
        Infeasible::Overload { asked, most, replicas, .. } => {
            Infeasible::Overload { asked, most, replicas, short: Short::Sessions }
        }
        other => other,
    }
}

/// What is asked and where, as it is needed again and again.
struct Asked<'a> {
    serving: &'a Serving,
    agents: &'a Agents,
    cluster: &'a Cluster,
    step: Step,
}

/// Serving agents whose sessions wait in the memory that running requests leave, those that began to wait last where there is no
/// room for all.
///
/// Where replicas choose how many requests they take at once, fewer leave room for more sessions, whose prompts are then not
/// computed again: as many are taken as serve most.
///
/// # Errors
/// As those of serving.
pub(super) fn settled(
    serving: &Serving,
    agents: &Agents,
    cluster: &Cluster,
    (bound, scratch): (Bound<'_>, &mut Scratch),
) -> Result<ServingPoint, Infeasible> {
    let asked = Asked { serving, agents, cluster, step: Step::new(&agents.task) };
    let all = asked.within(f64::INFINITY, (bound, scratch))?;
    let said = agents.task.reuse.session.get();
    let found_all = |point: &ServingPoint| point.resident.is_none_or(|held| held.session.get() >= said * (1.0 - FEW));
    if !matches!(serving.arrivals, Arrivals::Most) || found_all(&all) {
        return Ok(all);
    }
    let mut best = all;
    let mut served = |at_most: f64| -> Result<RequestRate, Infeasible> {
        let point = asked.within(at_most.round(), (bound, scratch))?;
        if point.request_rate() > best.request_rate() {
            best = point;
        }
        Ok(point.request_rate())
    };
    // The rate rises with room for sessions, then falls with fewer that run.
    let (mut low, mut high) = (1.0, all.state.batch.max(1.0));
    let inner = |low: f64, high: f64| (high - (high - low) * GOLDEN, low + (high - low) * GOLDEN);
    let (mut left, mut right) = inner(low, high);
    let (mut of_left, mut of_right) = (served(left)?, served(right)?);
    while high - low > 2.0 {
        if of_left < of_right {
            (low, left, of_left) = (left, right, of_right);
            right = inner(low, high).1;
            of_right = served(right)?;
        } else {
            (high, right, of_right) = (right, left, of_left);
            left = inner(low, high).0;
            of_left = served(left)?;
        }
    }
    Ok(best)
}

/// The highest rate that is served below one that is too high: with fewer that come, more sessions find room.
pub(super) fn most(
    serving: &Serving,
    agents: &Agents,
    cluster: &Cluster,
    above: RequestRate,
    (bound, scratch): (Bound<'_>, &mut Scratch),
) -> RequestRate {
    let step = Step::new(&agents.task);
    let mut serving = serving.clone();
    let (mut low, mut high) = (RequestRate::ZERO, above);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        serving.arrivals = Arrivals::Rate(middle);
        let asked = Asked { serving: &serving, agents, cluster, step };
        let served = asked.within(f64::INFINITY, (bound, scratch)).is_ok();
        if served { low = middle } else { high = middle }
    }
    low
}

impl Asked<'_> {
    /// With so many requests at once in a replica at most.
    ///
    /// Those that find more of their sessions leave more room for others, so that several shares may settle: it is the highest.
    fn within(&self, at_most: f64, (bound, scratch): (Bound<'_>, &mut Scratch)) -> Result<ServingPoint, Infeasible> {
        let said = self.agents.task.reuse.session;
        // More that come at a given rate only leave less: it is gone down to where both agree. What is served without end, or
        // by so many at once, rises as more is found, which is gone half of the way to.
        let rate = match self.serving.arrivals {
            Arrivals::Rate(rate) => Some(rate),
            Arrivals::Most | Arrivals::Concurrency(_) => None,
        };
        let (mut session, mut before) = (said, 0.0);
        for round in 1..=ROUNDS {
            let (point, next) = self.with(session, at_most, (bound, scratch))?;
            let off = (next.get() - session.get()).abs();
            if off <= NEAR || round == ROUNDS && off <= ENOUGH {
                return Ok(point);
            }
            if let (ROUNDS, Some(asked)) = (round, rate) {
                // It goes on to fall: each session that is lost costs another its room.
                let (replicas, short) = (point.replicas, Short::Sessions);
                return Err(Infeasible::Overload { asked, most: asked, replicas, short });
            }
            let between = Fraction::new(f64::midpoint(session.get(), next.get())).unwrap_or(next);
            let onwards = if rate.is_some() { next } else { between };
            // Steps that shrink by a share each come to a limit (Aitken's).
            let step = onwards.get() - session.get();
            let shrinks = step / before;
            let reached = onwards.get() + step * shrinks / (1.0 - shrinks);
            let reckoned = (round % REACH == 0 && shrinks > 0.0 && shrinks < SLOW).then(|| Fraction::new(reached));
            session = reckoned.flatten().unwrap_or(onwards);
            before = step;
        }
        // Below what was gone down to, and above none of it.
        let (mut low, mut high) = (0.0, session.get());
        loop {
            let middle = Fraction::new(f64::midpoint(low, high)).unwrap_or_default();
            let (point, next) = self.with(middle, at_most, (bound, scratch))?;
            if high - low <= NEAR {
                return Ok(point);
            }
            if next < middle { high = middle.get() } else { low = middle.get() }
        }
    }

    /// With so large a share of further steps that find their session, and the share for which the rest of the memory has room.
    fn with(
        &self,
        session: Fraction,
        at_most: f64,
        (bound, scratch): (Bound<'_>, &mut Scratch),
    ) -> Result<(ServingPoint, Fraction), Infeasible> {
        let Self { serving, agents, cluster, .. } = *self;
        let said = agents.task.reuse.session;
        let task = Task { reuse: Shares { session, ..agents.task.reuse }, ..agents.task };
        let reuse = |hit| Reuse { hit, wait: Seconds::ZERO, busiest: 1.0, at_most };
        let mut point = if session == said {
            answered(serving, cluster, &reuse(serving.prefix_hit.get()), (bound, &mut *scratch))?
        } else {
            // Neither those before nor those after are of the same prompts.
            scratch.forget();
            let requests = Arc::new(Requests::of_calls(task.calls(), serving.output.mean));
            let with = Serving { requests, ..serving.clone() };
            let found = answered(&with, cluster, &reuse(task.tokens().hit()), (bound, &mut *scratch));
            scratch.forget();
            found.map_err(crowded_out)?
        };
        let fit = self.fit(&point);
        let found = waits_of(agents, &self.step, point.request_rate() / task.tokens().calls).resumed(fit);
        point.resident = Some(ResidentPoint { fit, session });
        Ok((point, Fraction::new(said.get() * found).unwrap_or(said)))
    }

    /// Sessions whose caches fit in all groups beside what runs there: where prefill has a pool, in that.
    fn fit(&self, point: &ServingPoint) -> f64 {
        let Self { serving, cluster, ref step, .. } = *self;
        let layout = serving.prefill.map_or(serving.layout, |pool| pool.layout);
        let holding = Holding::new(serving, cluster.nodes_of_prefill());
        let held = |tokens: f64| holding.fits(&layout, tokens_up(tokens));
        // What all begin with lies there once.
        let (shared, session) = (held(step.shared), held(step.resumed));
        let (request, state) = (&point.request, &point.state);
        let replicas = point.replicas as f64;
        let rate = RequestRate::new(state.requests_per_second);
        let runs = state.ttft.saturating_sub(state.queue) + state.tpot * request.output;
        let (engines, each, tokens) = point.pool.map_or((point.replicas, runs, request.context()), |pool| {
            (pool.workers - point.spares, state.prefill, request.input + request.cached)
        });
        let groups = groups_of(layout, engines);
        // By Little's law.
        let running = rate.over(each) * replicas / groups;
        let own = held(tokens).request.saturating_sub(shared.request);
        let free = session.pool.saturating_sub(shared.request).saturating_sub(own * running);
        free / session.request * groups
    }
}
