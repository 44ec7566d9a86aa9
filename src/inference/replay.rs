//! Requests that come when they did in a trace: each waits for those before it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Room;
use super::latency::{Coming, Quantiles};
use crate::units::{RequestRate, Seconds};
use crate::workload::Point;

/// What serves requests one by one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Servers {
    /// So many, each with a queue of its own; requests go to them in turn.
    InTurn(u32),
    /// So many behind one queue.
    Shared(u32),
}

/// What a trace's requests meet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replayed {
    /// The wait before prefill, on average.
    pub(super) wait: Seconds,
    /// Time to the first token.
    pub(super) first_token: Quantiles,
    /// Time to the last.
    pub(super) whole: Quantiles,
}

/// A time by the prompt's length, known at points and straight between them.
pub(super) struct ByPrompt(Vec<(f64, Seconds)>);

impl ByPrompt {
    pub(super) fn new(points: &[Point], time: impl Fn(f64) -> Seconds) -> Self {
        Self(points.iter().map(|point| (point.tokens, time(point.tokens))).collect())
    }

    fn at(&self, tokens: f64) -> Seconds {
        let above = self.0.partition_point(|point| point.0 < tokens);
        match (above.checked_sub(1).and_then(|below| self.0.get(below)), self.0.get(above)) {
            (Some((from, low)), Some((to, high))) if to > from => {
                let part = (tokens - from) / (to - from);
                *low * (1.0 - part) + *high * part
            }
            (_, Some((_, time))) | (Some((_, time)), None) => *time,
            (None, None) => Seconds::ZERO,
        }
    }
}

/// When a server is free, ordered by its time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Free(Seconds);

impl Eq for Free {}

impl PartialOrd for Free {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Free {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.partial_cmp(&other.0).unwrap_or(std::cmp::Ordering::Equal)
    }
}

/// Places in a cache, by when each is free again.
struct Places {
    most: usize,
    taken: BinaryHeap<Reverse<Free>>,
}

impl Places {
    /// So many; a trace of fewer requests never waits for one.
    fn new(room: f64, requests: usize) -> Self {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "no more than rows in memory")]
        let most = room.min(requests as f64).max(1.0) as usize;
        Self { most, taken: BinaryHeap::new() }
    }

    /// When a place is free, at a time or later.
    fn free(&mut self, at: Seconds) -> Seconds {
        if self.taken.len() < self.most {
            return at;
        }
        self.taken.pop().map_or(at, |Reverse(Free(until))| at.max(until))
    }

    /// Takes one until then.
    fn take(&mut self, until: Seconds) {
        self.taken.push(Reverse(Free(until)));
    }
}

/// A trace at a rate: how long a prompt keeps its server, the time to its first token without the wait, and the time of a token.
///
/// A request waits until its server is done with those before it (Lindley 1952; with servers behind one queue, for the first
/// that is free, Kiefer and Wolfowitz 1955), and until there is room for its cache: before its prefill, or where that has a
/// pool of its own, behind it.
pub(super) fn replay(
    coming: &Coming<'_>,
    rate: RequestRate,
    servers: Servers,
    room: Room,
    (served, first, tpot): (&ByPrompt, &ByPrompt, Seconds),
) -> Option<Replayed> {
    let recorded = &coming.requests.recorded;
    let stretch = coming.requests.recorded_rate()? / rate;
    let mut in_turn = vec![Seconds::ZERO; if let Servers::InTurn(count) = servers { count as usize } else { 0 }];
    let shared = if let Servers::Shared(count) = servers { count } else { 0 };
    let mut queue: BinaryHeap<Reverse<Free>> = (0..shared).map(|_| Reverse(Free(Seconds::ZERO))).collect();
    let caches = if let Servers::InTurn(count) = servers { count.max(1) as usize } else { 1 };
    let mut places: Vec<Places> = (0..caches).map(|_| Places::new(room.requests, recorded.len())).collect();
    let mut waited = Seconds::ZERO;
    let (mut firsts, mut wholes) = (Vec::with_capacity(recorded.len()), Vec::with_capacity(recorded.len()));
    for (index, request) in recorded.iter().enumerate() {
        let at = request.at * stretch;
        let takes = served.at(request.input);
        let places = places.get_mut(index % caches)?;
        let (own, answer) = (first.at(request.input), tpot * request.output);
        let wait = match servers {
            Servers::InTurn(_) => {
                let free = in_turn.get_mut(index % caches)?;
                let begins = places.free(at.max(*free));
                *free = begins + takes;
                places.take(begins + own + answer);
                begins.saturating_sub(at)
            }
            Servers::Shared(_) => {
                let Reverse(Free(free)) = queue.pop()?;
                let begins = at.max(free);
                queue.push(Reverse(Free(begins + takes)));
                let prefilled = begins + takes;
                let decodes = places.free(prefilled);
                places.take(decodes + answer);
                begins.saturating_sub(at) + decodes.saturating_sub(prefilled)
            }
        };
        waited += wait;
        let to_first = wait + own;
        firsts.push(to_first);
        wholes.push(to_first + tpot * request.output);
    }
    Some(Replayed { wait: waited / recorded.len() as f64, first_token: quantiles(firsts), whole: quantiles(wholes) })
}

fn quantiles(mut times: Vec<Seconds>) -> Quantiles {
    times.sort_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
    Quantiles::of(|share| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index into rows in memory")]
        let index = (share * times.len() as f64) as usize;
        times.get(index.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
    })
}

/// Variance over mean of how many requests of a trace, at a rate, come within a time; of one where too few such times are
/// recorded to tell.
pub(super) fn dispersion(coming: &Coming<'_>, rate: RequestRate, within: Seconds) -> f64 {
    /// Fewer say nothing of a variance.
    const LEAST: usize = 8;
    let recorded = &coming.requests.recorded;
    let (Some(own), Some(last)) = (coming.requests.recorded_rate(), recorded.last()) else { return 1.0 };
    let width = within * (rate / own);
    let windows = last.at / width;
    if windows < LEAST as f64 {
        return 1.0;
    }
    let mut counts: Vec<f64> = Vec::new();
    for request in recorded {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "of a recorded time, no less than zero"
        )]
        let window = (request.at / width) as usize;
        // A trace of few requests over a long time has no more windows than requests that matter.
        if window >= recorded.len() * LEAST {
            return 1.0;
        }
        if counts.len() <= window {
            counts.resize(window + 1, 0.0);
        }
        if let Some(count) = counts.get_mut(window) {
            *count += 1.0;
        }
    }
    // The last window is not whole.
    counts.pop();
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / counts.len() as f64;
    variance / mean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Requests;

    fn times(at: &[f64]) -> Vec<Seconds> {
        at.iter().copied().map(Seconds::new).collect()
    }

    #[test]
    fn requests_wait_for_those_before_them() {
        // Four requests of 2 s each come at 0, 1, 1 and 10 s. One server: they begin at 0, 2, 4 and 10 s and wait 0, 1, 3 and
        // 0 s. Two servers behind one queue: 0, 1, 2 and 10 s, waits of 0, 0, 1 and 0 s; in turn, the same.
        let requests = Requests::of_trace(&[100.0; 4], &[5.0; 4], Some(&times(&[0.0, 1.0, 1.0, 10.0])));
        let coming = Coming { requests: &requests, hit: 0.0, cached: 0.0, cv: 1.0, replay: true };
        let rate = requests.recorded_rate().unwrap();
        let two = ByPrompt::new(&requests.prompts, |_| Seconds::new(2.0));
        let roomy = Room { requests: 100.0 };
        let of = |servers| replay(&coming, rate, servers, roomy, (&two, &two, Seconds::new(0.1))).unwrap();
        assert!((of(Servers::InTurn(1)).wait.value() - 1.0).abs() < 1e-12);
        assert!((of(Servers::Shared(2)).wait.value() - 0.25).abs() < 1e-12);
        assert!((of(Servers::InTurn(2)).wait.value() - 0.25).abs() < 1e-12);
        assert!((of(Servers::InTurn(1)).first_token.p99.value() - 5.0).abs() < 1e-12);
        assert!((of(Servers::InTurn(1)).whole.p99.value() - 5.5).abs() < 1e-12);
        // At half the rate, times lie twice as far apart: at 0, 2, 2 and 20 s the waits are 0, 0, 2 and 0 s.
        let slow = replay(&coming, rate / 2.0, Servers::InTurn(1), roomy, (&two, &two, Seconds::ZERO)).unwrap();
        assert!((slow.wait.value() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn requests_wait_for_room_in_the_cache() {
        // As above, answers of five tokens of 1 s behind prefills of 2 s, and room for one: it is taken for 7 s each. They begin
        // at 0, 7, 14 and 21 s and wait 0, 6, 13 and 11 s; with room for two at 0, 2, 7 and 10 s, waits of 0, 1, 6 and 0 s.
        let requests = Requests::of_trace(&[100.0; 4], &[5.0; 4], Some(&times(&[0.0, 1.0, 1.0, 10.0])));
        let coming = Coming { requests: &requests, hit: 0.0, cached: 0.0, cv: 1.0, replay: true };
        let rate = requests.recorded_rate().unwrap();
        let two = ByPrompt::new(&requests.prompts, |_| Seconds::new(2.0));
        let of = |servers, room| {
            let room = Room { requests: room };
            replay(&coming, rate, servers, room, (&two, &two, Seconds::new(1.0))).unwrap().wait.value()
        };
        assert!((of(Servers::InTurn(1), 1.0) - 30.0 / 4.0).abs() < 1e-12);
        assert!((of(Servers::InTurn(1), 2.0) - 7.0 / 4.0).abs() < 1e-12, "{}", of(Servers::InTurn(1), 2.0));
        // Two prefill workers and room for one in decode: prefilled at 2, 3, 4 and 12 s, decode begins at 2, 7, 12 and 17 s.
        // Waits before prefill are 0, 0, 1 and 0 s, and behind it 0, 4, 8 and 5 s.
        assert!((of(Servers::Shared(2), 1.0) - 18.0 / 4.0).abs() < 1e-12, "{}", of(Servers::Shared(2), 1.0));
    }

    #[test]
    fn times_between_points_are_straight() {
        let points: Vec<Point> = [100.0, 300.0].map(|tokens| Point { tokens, weight: 0.5 }).to_vec();
        let by = ByPrompt::new(&points, |tokens| Seconds::new(tokens * tokens));
        assert!((by.at(200.0).value() - 50_000.0).abs() < 1e-9);
        assert_eq!((by.at(50.0).value(), by.at(900.0).value()), (10_000.0, 90_000.0));
    }

    #[test]
    fn bursts_disperse_and_even_times_do_not() {
        let of = |at: &[f64]| {
            let lengths = vec![100.0; at.len()];
            let requests = Requests::of_trace(&lengths, &lengths, Some(&times(at)));
            let coming = Coming { requests: &requests, hit: 0.0, cached: 0.0, cv: 1.0, replay: true };
            dispersion(&coming, requests.recorded_rate().unwrap(), Seconds::new(5.0))
        };
        let even: Vec<f64> = (0..200).map(f64::from).collect();
        assert!(of(&even) < 0.1);
        // Ten at once every ten seconds: windows of five seconds have ten or none, a variance of 25 over a mean of five.
        let bursts: Vec<f64> =
            (0..200).map(|index| f64::from(index / 10 * 10) + 0.01 * f64::from(index % 10)).collect();
        assert!((of(&bursts) - 5.0).abs() < 0.3, "{}", of(&bursts));
    }
}
