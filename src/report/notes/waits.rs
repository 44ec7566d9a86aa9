//! Latencies that miss their limits, and waits that figures do not tell.

use crate::evaluate::{BatchBound, Evaluation, MissedLimit};
use crate::inference::Quantiles;
use crate::provenance::Basis;
use crate::report::figure::percent;
use crate::scenario::Arrivals;
use crate::units::{RequestRate, Seconds};

/// Requests that wait because their adapter has no place, while others are taken in past them.
pub(super) fn passed_over(evaluation: &Evaluation) -> Option<String> {
    let (serving, point) = (evaluation.scenario.serving.as_ref()?, evaluation.serving?);
    let (set, found) = (serving.features.adapters.as_ref()?, point.adapters?);
    let resident = f64::from(set.resident);
    let told = match serving.arrivals {
        Arrivals::Rate(_) => !serving.terms.replay,
        Arrivals::Concurrency(_) => serving.prefill.is_none(),
        Arrivals::Most => false,
    };
    let waits = if told { "That is in first tokens" } else { "That wait is in no latency here" };
    let most = point.most * (point.replicas as f64 / (point.replicas + point.spares) as f64);
    let starved = if point.request_rate() > most * (1.0 + 1e-9) {
        let most = most.told_as_most();
        match serving.arrivals {
            Arrivals::Most => format!(
                " With so many requests some never do: of those that come by themselves, {most} are served at most."
            ),
            Arrivals::Concurrency(_) | Arrivals::Rate(_) => format!(
                " Of those that come by themselves, {most} are served at most: a number open has fewer for adapters with a place as others wait, which leaves places free."
            ),
        }
    } else {
        String::new()
    };
    (found.sequences.is_infinite() && found.different > resident + 0.5).then(|| {
        format!(
            "Those in decode would bring {:.0} different adapters to an engine that keeps {resident}: it fills up with requests for those that it has, and the others wait until one of these has none left.{starved} {waits}; with `serving.adapters.resident` at the former, or with adapter-aware routing, they do not.",
            found.different
        )
    })
}

/// Handing caches over that is, for most of it, what engines take whatever the bytes.
pub(super) fn handed_over(evaluation: &Evaluation) -> Option<String> {
    let (serving, point) = (evaluation.scenario.serving.as_ref()?, evaluation.serving?);
    let pool = point.pool?;
    let (fixed, of_first) = (serving.efficiency.batching.transfer, pool.transfer_fixed / point.state.ttft);
    let basis = serving.efficiency.source_of("batching.transfer").map_or(Basis::Assumed, |source| source.basis);
    (pool.transfer_fixed > pool.transfer * 0.5 && of_first > 0.02).then(|| {
        format!(
            "Handing a cache over takes {}, of which {} are what any engine takes beside the bytes ({basis}, {} to {}): {} of the time to the first token.",
            pool.transfer,
            pool.transfer_fixed,
            fixed.low,
            fixed.high,
            percent(of_first)
        )
    })
}

/// A benchmark's requests that fill steps as those that come by themselves do not.
pub(super) fn in_step(evaluation: &Evaluation) -> Option<String> {
    let (point, most) = (evaluation.serving?, evaluation.most_served()?.told_as_most());
    if passed_over(evaluation).is_some() {
        return None;
    }
    (point.batch_bound != BatchBound::Rate && point.request_rate() > most * 1.01).then(|| {
        format!(
            "A benchmark's requests of one length move in step, so that their prompts fill steps of prefill: {} end. Of those that come by themselves, {most} are served at most.",
            point.request_rate()
        )
    })
}

/// Requests that are kept open and all of one length, of which each takes as long as the others.
pub(super) fn unspread(evaluation: &Evaluation) -> Option<String> {
    let (serving, point) = (evaluation.scenario.serving.as_ref()?, evaluation.serving?);
    let (first, whole) = (point.latencies.first_token, point.latencies.whole);
    let spread = |of: Quantiles| of.p99 > of.p50 * (1.0 + 1e-9);
    let by_themselves = matches!(serving.arrivals, Arrivals::Rate(_));
    (!by_themselves && !spread(first) && !spread(whole)).then(|| {
        "Requests of one length that are kept open move in step with each other: P50, P95 and P99 are of what each of them takes, and do not spread. They do with lengths that scatter (`cv`) and with arrivals at a rate."
            .to_owned()
    })
}

/// A queue so near to what is served at most that it does not settle within a day.
///
/// It settles with a time constant of `4 W / (1 - load)` at a mean wait of W (M/M/1 near its whole load; Kleinrock, Queueing
/// Systems II, 1976).
pub(super) fn unsettled(evaluation: &Evaluation) -> Option<String> {
    const DAY: Seconds = Seconds::new(86_400.0);
    let (serving, point) = (evaluation.scenario.serving.as_ref()?, evaluation.serving?);
    let Arrivals::Rate(_) = serving.arrivals else { return None };
    if passed_over(evaluation).is_some() {
        return None;
    }
    let of_all = point.replicas as f64 / (point.replicas + point.spares) as f64;
    let most = point.most * of_all;
    let free = 1.0 - point.request_rate() / most;
    let settled = point.state.queue * (4.0 / free);
    (free > 0.0 && settled > DAY).then(|| {
        format!(
            "Requests come at nearly the most that is served, {}: waits grow for about {settled} before they are as told.",
            most.told_as_most()
        )
    })
}

/// Limits of latencies that are missed, and by how much.
pub(in crate::report) fn missed(evaluation: &Evaluation) -> Option<String> {
    let point = evaluation.serving?;
    let missed: Vec<MissedLimit> = evaluation.missed_limits().collect();
    let first = missed.first()?;
    let most = served_within(evaluation)?;
    let most = if most > RequestRate::ZERO { format!("{most} at most") } else { "no number of requests".to_owned() };
    // The mean of what others make a first token wait for, where that is more than both what is its own and other waits.
    let state = &point.state;
    let late = first.key.starts_with("ttft") && state.links > state.queue && state.links > state.prefill;
    let links = if late {
        format!(" On average first tokens wait for the links between the pools for {}.", state.links)
    } else {
        String::new()
    };
    let missed: Vec<String> = missed.iter().map(MissedLimit::to_string).collect();
    Some(format!("{}. With all limits kept, {most} would be served by this layout.{links}", missed.join("; ")))
}

/// The most that the replicas that serve, without those to spare, serve with limits kept.
fn served_within(evaluation: &Evaluation) -> Option<RequestRate> {
    let point = evaluation.serving?;
    let at_work = point.replicas as f64 / (point.replicas + point.spares) as f64;
    Some((evaluation.most_served()? * at_work).told_as_most())
}
