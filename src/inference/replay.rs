//! Requests that come when they did in a trace, one by one: each waits for those before it, and all in decode go on together.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::latency::Quantiles;
use super::queue::coming::Coming;
use super::queue::ordered::Ordered;
use crate::units::{RequestRate, Seconds, to_integer};
use crate::workload::Recorded;

/// Requests whose latencies say those of all: of a longer trace as many of the engines that take them in turn are followed.
const ENOUGH: usize = 100_000;

/// What takes prompts in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Servers {
    /// So many engines, to which requests go in turn. A step takes in the prompts that have come, up to so many tokens of them.
    InTurn(u32, f64),
    /// So many workers for so many replicas of decode: requests go to the one with least before it. Steps are as those of engines.
    Shared(u32, f64, f64),
}

/// Times by prompts: how much of a full step one takes, how long it takes by itself, and to its first token without a wait; and
/// the time of a token by the sequences in decode of one engine, of which there is room for so many.
pub(super) struct Times<'a> {
    pub(super) served: ByPrompt,
    pub(super) alone: ByPrompt,
    pub(super) first: ByPrompt,
    pub(super) token: &'a dyn Fn(f64) -> Seconds,
    pub(super) room: f64,
}

/// What a trace's requests meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Replayed {
    /// The wait for prefills before and for room, on average.
    pub(super) wait: Seconds,
    /// Sequences in decode of one engine that a token finds on average, itself among them.
    pub(super) in_decode: f64,
    /// Time to the first token.
    pub(super) first_token: Quantiles,
    /// Time of a token.
    pub(super) token: Quantiles,
    /// Time to the last.
    pub(super) whole: Quantiles,
}

/// A time by the prompt's length, known at points and straight between them.
pub(super) struct ByPrompt(Vec<(f64, Seconds)>);

impl ByPrompt {
    /// By computed and cached tokens.
    pub(super) fn new(coming: &Coming<'_>, time: impl Fn(f64, f64) -> Seconds) -> Self {
        let of = |tokens: f64| {
            let (new, cached) = coming.parts(tokens);
            (tokens, time(new, cached))
        };
        Self(coming.requests.prompts.iter().map(|point| of(point.tokens)).collect())
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

/// Latencies of requests so far.
#[derive(Default)]
struct Seen {
    waited: Seconds,
    firsts: Vec<Seconds>,
    wholes: Vec<Seconds>,
    /// The time of a token with so many in decode, and how many tokens came at it.
    paces: Vec<(Seconds, f64)>,
}

/// One engine or worker that takes prompts in.
#[derive(Clone, Default)]
struct Server {
    waiting: VecDeque<usize>,
    /// Those in the step that is under way; none where none is.
    step: Vec<usize>,
}

/// One of the requests, with what it takes by itself.
struct Sent {
    at: Seconds,
    input: f64,
    output: f64,
    served: Seconds,
    alone: Seconds,
    first: Seconds,
}

impl Sent {
    fn new(request: &Recorded, stretch: f64, times: &Times<'_>) -> Self {
        let Recorded { at, input, output } = *request;
        let [served, alone, first] = [&times.served, &times.alone, &times.first].map(|time| time.at(input));
        Self { at: at * stretch, input, output, served, alone, first }
    }
}

/// Servers by when they would be done with all that has come, one by one.
struct Done {
    /// Those that are, by number.
    free: BinaryHeap<Reverse<usize>>,
    later: BinaryHeap<Reverse<(Ordered, usize)>>,
}

impl Done {
    fn new(servers: usize) -> Self {
        Self { free: (0..servers).map(Reverse).collect(), later: BinaryHeap::new() }
    }

    /// The server with least before it, of equals the first, gets work of so long.
    fn take(&mut self, now: Seconds, work: Seconds) -> Option<usize> {
        while let Some(&Reverse((done, number))) = self.later.peek()
            && done <= Ordered(now.value())
        {
            self.later.pop();
            self.free.push(Reverse(number));
        }
        let free = self.free.pop().map(|Reverse(number)| (now, number));
        let least = || self.later.pop().map(|Reverse((Ordered(done), number))| (Seconds::new(done), number));
        let (from, number) = free.or_else(least)?;
        self.later.push(Reverse((Ordered((from + work).value()), number)));
        Some(number)
    }
}

/// One line of requests on their way: waiting, in steps that take them in, behind those, and in decode.
struct Line<'a> {
    times: &'a Times<'a>,
    requests: Vec<Sent>,
    /// What takes prompts in.
    servers: Vec<Server>,
    done: Done,
    steps: BinaryHeap<Reverse<(Ordered, usize)>>,
    ready: VecDeque<usize>,
    decode: BinaryHeap<Reverse<(Ordered, usize)>>,
    /// When those in decode began, and the time to their first tokens.
    begun: Vec<(Seconds, Seconds)>,
    /// Tokens of a step.
    most: f64,
    /// Whether requests in steps hold their room already.
    hold: bool,
    /// Engines that decode.
    engines: f64,
}

impl Line<'_> {
    /// Sequences for which there is room.
    fn places(&self) -> usize {
        to_integer((self.times.room * self.engines).min(self.requests.len() as f64).max(1.0))
    }

    /// A request goes to the server with least before it, which is told.
    fn comes(&mut self, index: usize) -> usize {
        let Sent { at, alone, .. } = self.requests[index];
        let number = self.done.take(at, alone).unwrap_or(0);
        self.servers[number].waiting.push_back(index);
        number
    }

    /// A server takes in what waits, as far as it is free and there is room.
    fn take_in(&mut self, number: usize, now: Seconds, places: usize) {
        let server = &mut self.servers[number];
        if !server.step.is_empty() {
            return;
        }
        let (mut tokens, mut time, mut longest) = (0.0, Seconds::ZERO, Seconds::ZERO);
        while let Some(&index) = server.waiting.front() {
            let Sent { input, served, alone, .. } = self.requests[index];
            let open = self.decode.len() + server.step.len();
            let fits = tokens + input <= self.most;
            if self.hold && open >= places || !server.step.is_empty() && !fits {
                break;
            }
            server.waiting.pop_front();
            tokens += input;
            time += served;
            longest = longest.max(alone.saturating_sub(served));
            server.step.push(index);
        }
        if !server.step.is_empty() {
            self.steps.push(Reverse((Ordered((now + time + longest).value()), number)));
        }
    }

    /// Goes from event to event until all have ended.
    fn run(&mut self, seen: &mut Seen) {
        let places = self.places();
        let (mut now, mut passed, mut next, mut ended) = (Seconds::ZERO, 0.0, 0, 0);
        while ended < self.requests.len() {
            let open = self.decode.len();
            while seen.paces.len() <= open {
                let number = seen.paces.len() as f64 / self.engines;
                seen.paces.push(((self.times.token)(number), 0.0));
            }
            let pace = seen.paces[open].0;
            let ends = self.decode.peek().map(|Reverse((Ordered(until), _))| now + pace * (until - passed).max(0.0));
            let comes = self.requests.get(next).map(|request| request.at);
            let taken_in = self.steps.peek().map(|Reverse((Ordered(at), _))| Seconds::new(*at));
            let Some(until) = [ends, comes, taken_in].into_iter().flatten().reduce(Seconds::min) else { return };
            let until = until.max(now);
            let tokens = if pace > Seconds::ZERO { (until - now) / pace } else { 0.0 };
            seen.paces[open].1 += tokens * open as f64;
            passed += tokens;
            now = until;
            // Others have taken in all that they can; only one by itself waits for places before it does.
            let mut free = 0;
            if comes == Some(until) {
                free = self.comes(next);
                next += 1;
            } else if taken_in == Some(until) {
                if let Some(Reverse((_, number))) = self.steps.pop() {
                    self.ready.extend(self.servers[number].step.drain(..));
                    free = number;
                }
            } else if let Some(Reverse((_, index))) = self.decode.pop() {
                let (began, first) = self.begun[index];
                seen.wholes.push(first + (now - began));
                ended += 1;
            }
            while self.decode.len() < places
                && let Some(index) = self.ready.pop_front()
            {
                let Sent { at, alone, first: own, output, .. } = self.requests[index];
                let first = now - at + own.saturating_sub(alone);
                seen.waited += first.saturating_sub(own);
                seen.firsts.push(first);
                self.begun[index] = (now, first);
                self.decode.push(Reverse((Ordered(passed + output), index)));
            }
            self.take_in(free, now, places);
        }
    }
}

/// A trace at a rate.
///
/// A request waits until what takes prompts in is done with those before it, and until there is room for its cache: before its
/// prefill, or where that has a pool of its own, behind it. All in decode get a token at the pace that their number has.
pub(super) fn replay(coming: &Coming<'_>, rate: RequestRate, servers: Servers, times: &Times<'_>) -> Option<Replayed> {
    replay_of(coming, rate, servers, times, ENOUGH)
}

/// The same of as many engines as so many requests go to.
fn replay_of(
    coming: &Coming<'_>,
    rate: RequestRate,
    servers: Servers,
    times: &Times<'_>,
    enough: usize,
) -> Option<Replayed> {
    let recorded = &coming.requests.recorded;
    let stretch = coming.requests.recorded_rate()? / rate;
    let (lines, workers, engines, most) = match servers {
        Servers::InTurn(count, most) => (count.max(1) as usize, 1, 1.0, most),
        Servers::Shared(count, engines, most) => (1, count.max(1) as usize, engines, most),
    };
    let hold = matches!(servers, Servers::InTurn(..));
    let mut seen = Seen::default();
    // Lines are alike: each has its part of the requests of all hours.
    let replayed = lines.min(enough.div_ceil(recorded.len().div_ceil(lines).max(1)));
    for line in (0..replayed).map(|place| place * lines / replayed) {
        let sent = recorded.iter().skip(line).step_by(lines);
        let requests: Vec<Sent> = sent.map(|request| Sent::new(request, stretch, times)).collect();
        let begun = vec![(Seconds::ZERO, Seconds::ZERO); requests.len()];
        Line {
            times,
            requests,
            servers: vec![Server::default(); workers],
            done: Done::new(workers),
            steps: BinaryHeap::new(),
            ready: VecDeque::new(),
            decode: BinaryHeap::new(),
            begun,
            most,
            hold,
            engines,
        }
        .run(&mut seen);
    }
    let wait = seen.waited / seen.wholes.len().max(1) as f64;
    let (tokens, found) = seen
        .paces
        .iter()
        .zip(0_u32..)
        .fold((0.0, 0.0), |(all, found), ((_, tokens), open)| (all + tokens, found + tokens * f64::from(open)));
    let in_decode = if tokens > 0.0 { found / (tokens * engines) } else { 0.0 };
    let token = by_tokens(seen.paces);
    Some(Replayed { wait, in_decode, first_token: quantiles(seen.firsts), token, whole: quantiles(seen.wholes) })
}

/// The times of tokens, each as often as tokens came at it.
fn by_tokens(mut paces: Vec<(Seconds, f64)>) -> Quantiles {
    paces.sort_by_key(|(pace, _)| Ordered(pace.value()));
    let all: f64 = paces.iter().map(|(_, tokens)| tokens).sum();
    Quantiles::of(|share| {
        let mut before = 0.0;
        let reached = paces.iter().find(|(_, tokens)| {
            before += tokens;
            before >= share * all
        });
        reached.or(paces.last()).map_or(Seconds::ZERO, |(pace, _)| *pace)
    })
}

fn quantiles(mut times: Vec<Seconds>) -> Quantiles {
    let Some(last) = times.len().checked_sub(1) else { return Quantiles::of(|_| Seconds::ZERO) };
    // Found without putting millions in order.
    Quantiles::of(|share| {
        let index = to_integer::<usize>(share * times.len() as f64).min(last);
        *times.select_nth_unstable_by_key(index, |time| Ordered(time.value())).1
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Requests;

    fn times(at: &[f64]) -> Vec<Seconds> {
        at.iter().copied().map(Seconds::new).collect()
    }

    fn always(time: f64) -> ByPrompt {
        ByPrompt(vec![(100.0, Seconds::new(time))])
    }

    fn coming(requests: &Requests) -> Coming<'_> {
        let balancing = crate::scenario::Balancing::Random;
        Coming { requests, hit: 0.0, cached: 0.0, cv: 1.0, replay: true, balancing }
    }

    /// Four requests of 2 s each that come at 0, 1, 1 and 10 s, as fast as recorded or slower, with answers of five tokens.
    fn of(slower: f64, servers: Servers, room: f64, token: &dyn Fn(f64) -> Seconds) -> Replayed {
        let requests = Requests::of_trace(&[100.0; 4], &[5.0; 4], Some(&times(&[0.0, 1.0, 1.0, 10.0])));
        let coming = coming(&requests);
        let rate = requests.recorded_rate().unwrap() / slower;
        let times = Times { served: always(2.0), alone: always(2.0), first: always(2.0), token, room };
        replay(&coming, rate, servers, &times).unwrap()
    }

    #[test]
    fn requests_wait_for_those_before_them() {
        // One server: they begin at 0, 2, 4 and 10 s and wait 0, 1, 3 and 0 s. Two servers behind one queue: 0, 1, 2 and 10 s,
        // waits of 0, 0, 1 and 0 s; in turn, the same.
        let token = |_: f64| Seconds::new(0.1);
        let of = |slower, servers| of(slower, servers, 100.0, &token);
        assert!((of(1.0, Servers::InTurn(1, 100.0)).wait.value() - 1.0).abs() < 1e-12);
        assert!((of(1.0, Servers::Shared(2, 1.0, 100.0)).wait.value() - 0.25).abs() < 1e-12);
        assert!((of(1.0, Servers::InTurn(2, 100.0)).wait.value() - 0.25).abs() < 1e-12);
        assert!((of(1.0, Servers::InTurn(1, 100.0)).first_token.p99.value() - 5.0).abs() < 1e-12);
        assert!((of(1.0, Servers::InTurn(1, 100.0)).whole.p99.value() - 5.5).abs() < 1e-12);
        // At half the rate, times lie twice as far apart: at 0, 2, 2 and 20 s the waits are 0, 0, 2 and 0 s.
        assert!((of(2.0, Servers::InTurn(1, 100.0)).wait.value() - 0.5).abs() < 1e-12);
        // Steps of two: those that come at 1 s begin at 2 s and take 4 s together, so that they wait 1 s and 2 s for each other.
        assert!((of(1.0, Servers::InTurn(1, 200.0)).wait.value() - 6.0 / 4.0).abs() < 1e-12);
    }

    #[test]
    fn of_a_long_trace_some_engines_say_what_all_do() {
        // Bursts of up to four times the mean, and prompts of three lengths, so that engines differ; two of sixteen have enough.
        let all = || (0..160_000_u32).map(|index| (index, f64::from(index)));
        let length = |index: u32| [50.0, 100.0, 150.0][(index.wrapping_mul(2_654_435_761) >> 16) as usize % 3];
        let inputs: Vec<f64> = all().map(|(index, _)| length(index)).collect();
        let at: Vec<f64> = all().map(|(_, index)| index * 0.01 + (index * 6.283e-4).sin() * 12.0).collect();
        let requests = Requests::of_trace(&inputs, &vec![5.0; inputs.len()], Some(&times(&at)));
        let coming = coming(&requests);
        let rate = requests.recorded_rate().unwrap();
        let by = |per: f64| ByPrompt(vec![(0.0, Seconds::ZERO), (1_000.0, Seconds::new(1_000.0 * per))]);
        let token = |_: f64| Seconds::new(0.01);
        let of = |enough| {
            let times = Times { served: by(1.1e-3), alone: by(1.1e-3), first: by(1.1e-3), token: &token, room: 1e6 };
            replay_of(&coming, rate, Servers::InTurn(16, 100.0), &times, enough).unwrap()
        };
        let (all, some) = (of(usize::MAX), of(20_000));
        assert!(all.wait.value() > 0.1 && all != some);
        for (all, some) in [
            (all.wait, some.wait),
            (all.first_token.p50, some.first_token.p50),
            (all.first_token.p95, some.first_token.p95),
            (all.first_token.p99, some.first_token.p99),
            (all.whole.p95, some.whole.p95),
        ] {
            assert!((some / all - 1.0).abs() < 0.02, "{some} of {all}");
        }
    }

    #[test]
    fn work_goes_to_the_first_of_those_with_least_before_them() {
        let (mut done, mut before) = (Done::new(5), [0.0_f64; 5]);
        // Some come at once, some while others are at work, some when all is done.
        let mut now = 0.0;
        for index in 0..400_u32 {
            let draw = f64::from(index.wrapping_mul(2_654_435_761) >> 22);
            now += (draw * 0.01).floor();
            let work = (draw % 7.0) * 3.0;
            let least = |number: &usize| Ordered(before[*number].max(now));
            let wanted = (0..before.len()).min_by_key(least).unwrap();
            before[wanted] = before[wanted].max(now) + work;
            assert_eq!(done.take(Seconds::new(now), Seconds::new(work)), Some(wanted), "{index}");
        }
    }

    #[test]
    fn requests_wait_for_room_in_the_cache() {
        // Answers of five tokens of 1 s behind prefills of 2 s, and room for one: it is taken for 7 s each. They begin at 0, 7, 14
        // and 21 s and wait 0, 6, 13 and 11 s; with room for two at 0, 2, 7 and 10 s, waits of 0, 1, 6 and 0 s.
        let token = |_: f64| Seconds::new(1.0);
        let of = |servers, room| of(1.0, servers, room, &token).wait.value();
        assert!((of(Servers::InTurn(1, 100.0), 1.0) - 30.0 / 4.0).abs() < 1e-12);
        assert!((of(Servers::InTurn(1, 100.0), 2.0) - 7.0 / 4.0).abs() < 1e-12);
        // Two prefill workers and room for one in decode: prefilled at 2, 3, 4 and 12 s, decode begins at 2, 7, 12 and 17 s.
        // Waits before prefill are 0, 0, 1 and 0 s, and behind it 0, 4, 8 and 5 s.
        assert!((of(Servers::Shared(2, 1.0, 100.0), 1.0) - 18.0 / 4.0).abs() < 1e-12);
    }

    #[test]
    fn answers_slow_each_other() {
        // A token takes a second for each in decode, so that one is made a second. Prefilled at 2, 4, 6 and 12 s: the first has
        // 2 tokens at 4 s, 3 at 6 s and 5 at 12 s; the second then has 3 and 5 at 18 s, the third 4 then and 5 at 20 s, and the
        // last, which has the engine to itself from there, ends at 22 s: 12, 17, 19 and 12 s after they came.
        let found = of(1.0, Servers::InTurn(1, 100.0), 100.0, &Seconds::new);
        assert!((found.whole.p50.value() - 17.0).abs() < 1e-9 && (found.whole.p99.value() - 19.0).abs() < 1e-9);
        // Of 20 tokens 12 are made with three in decode, 4 with two and 4 with one.
        assert!((found.in_decode - (12.0 * 3.0 + 4.0 * 2.0 + 4.0) / 20.0).abs() < 1e-9);
        assert_eq!((found.token.p50, found.token.p99), (Seconds::new(3.0), Seconds::new(3.0)));
    }

    #[test]
    fn times_between_points_are_straight() {
        let by = ByPrompt(vec![(100.0, Seconds::new(10_000.0)), (300.0, Seconds::new(90_000.0))]);
        assert!((by.at(200.0).value() - 50_000.0).abs() < 1e-9);
        assert_eq!((by.at(50.0).value(), by.at(900.0).value()), (10_000.0, 90_000.0));
    }
}
