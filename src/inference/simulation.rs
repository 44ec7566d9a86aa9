//! Requests one by one, event by event, through an engine whose steps take as long as the form says.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::ordered::Ordered;

/// Requests at the beginning, of a hundred, that find an engine which is not yet filled.
const WARM: usize = 5;

/// Numbers that scatter, the same in each run (xorshift, Marsaglia 2003).
pub(super) struct Draws(u64);

impl Draws {
    pub(super) fn new() -> Self {
        Self(0x2545_F491_4F6C_DD1D)
    }

    /// Evenly above 0 and below 1.
    pub(super) fn even(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        -self.even().ln() * mean
    }

    pub(super) fn lognormal(&mut self, mean: f64, cv: f64) -> f64 {
        let variance = (1.0 + cv * cv).ln();
        let normal = (-2.0 * self.even().ln()).sqrt() * (2.0 * std::f64::consts::PI * self.even()).cos();
        mean * (normal * variance.sqrt() - variance / 2.0).exp()
    }

    /// A time between two: even where nothing scatters, exponential at 1, two exponentials of as much time in all above.
    pub(super) fn gap(&mut self, mean: f64, cv: f64) -> f64 {
        if cv <= 1.0 {
            return mean * (1.0 - cv) + self.exponential(mean * cv);
        }
        let square = cv * cv;
        let short = 0.5 * (1.0 + ((square - 1.0) / (square + 1.0)).sqrt());
        let share = if self.even() < short { short } else { 1.0 - short };
        self.exponential(mean / (2.0 * share))
    }
}

/// A request.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub(super) at: f64,
    pub(super) input: f64,
    pub(super) output: f64,
}

/// An engine that takes prompts in by steps, in the order of coming and as room for their caches allows, while all in decode go
/// on together as fast as their number lets them.
pub(super) struct Engine<'a> {
    /// Requests for whose caches there is room.
    pub(super) places: usize,
    /// Prompts' tokens of a step, at most; a prompt by itself may be longer. None where prompts follow each other.
    pub(super) tokens: Option<f64>,
    /// Time of a step that takes in prompts of such lengths.
    pub(super) prefill: &'a dyn Fn(&[f64]) -> f64,
    /// From the end of its step to a prompt's first token.
    pub(super) behind: &'a dyn Fn(f64) -> f64,
    /// Time of a token with so many in decode.
    pub(super) token: &'a dyn Fn(f64) -> f64,
}

/// Mean time to the first token, and what half of all stay below, 95% and 99%: of first tokens, of the time of tokens, and of
/// whole requests.
pub(super) struct Found {
    pub(super) mean: f64,
    pub(super) first: [f64; 3],
    pub(super) token: [f64; 3],
    pub(super) whole: [f64; 3],
}

impl Engine<'_> {
    pub(super) fn run(&self, sent: &[Sent]) -> Found {
        let warm = sent.len() * WARM / 100;
        let mut tokens: Vec<f64> = Vec::new();
        // Time, and tokens that one in decode since the beginning would have got.
        let (mut now, mut passed, mut next) = (0.0_f64, 0.0_f64, 0);
        let mut waiting: VecDeque<usize> = VecDeque::new();
        let mut step: Option<(f64, Vec<usize>)> = None;
        let mut decode: BinaryHeap<Reverse<(Ordered, usize)>> = BinaryHeap::new();
        let (mut firsts, mut wholes) = (Vec::new(), Vec::new());
        // Tokens got with so many in decode.
        let mut got: Vec<f64> = Vec::new();
        let mut ended = 0;
        while ended < sent.len() {
            while tokens.len() <= decode.len() {
                tokens.push((self.token)(tokens.len() as f64));
                got.push(0.0);
            }
            let pace = tokens[decode.len()];
            let soonest = decode
                .peek()
                .map_or(f64::INFINITY, |Reverse((Ordered(until), _))| now + (until - passed).max(0.0) * pace);
            let comes = sent.get(next).map_or(f64::INFINITY, |sent| sent.at);
            let taken_in = step.as_ref().map_or(f64::INFINITY, |step| step.0);
            let until = soonest.min(comes).min(taken_in);
            got[decode.len()] += decode.len() as f64 * (until - now) / pace;
            passed += (until - now) / pace;
            now = until;
            if comes <= until {
                waiting.push_back(next);
                next += 1;
            } else if taken_in <= until {
                for index in step.take().unwrap().1 {
                    let request = sent[index];
                    decode.push(Reverse((Ordered(passed + request.output), index)));
                    if index >= warm {
                        firsts.push(now - request.at + (self.behind)(request.input));
                    }
                }
            } else {
                let Reverse((_, index)) = decode.pop().unwrap();
                ended += 1;
                if index >= warm {
                    wholes.push(now - sent[index].at + (self.behind)(sent[index].input));
                }
            }
            if step.is_none() && decode.len() < self.places && !waiting.is_empty() {
                let (mut taken, mut lengths, mut all): (Vec<usize>, Vec<f64>, f64) = (Vec::new(), Vec::new(), 0.0);
                while let Some(&index) = waiting.front() {
                    let length = sent[index].input;
                    let fits = self.tokens.is_some_and(|tokens| all + length <= tokens);
                    let fits = fits && decode.len() + taken.len() < self.places;
                    if !taken.is_empty() && !fits {
                        break;
                    }
                    waiting.pop_front();
                    taken.push(index);
                    lengths.push(length);
                    all += length;
                }
                step = Some((now + (self.prefill)(&lengths), taken));
            }
        }
        let mean = firsts.iter().sum::<f64>() / firsts.len() as f64;
        let all: f64 = got.iter().sum();
        let token = |share: f64| {
            let mut before = 0.0;
            let reached = got.iter().position(|tokens| {
                before += tokens;
                before >= share * all
            });
            tokens[reached.unwrap()]
        };
        let quantiles = |mut times: Vec<f64>| {
            times.sort_by(f64::total_cmp);
            [50, 95, 99].map(|percent| times[times.len() * percent / 100])
        };
        Found { mean, first: quantiles(firsts), token: [0.5, 0.95, 0.99].map(token), whole: quantiles(wholes) }
    }
}

/// Erlang's C: the share of arrivals that find all of so many servers busy, at that many offered at once on average.
pub(super) fn erlang_c(servers: f64, offered: f64) -> f64 {
    let mut blocked = 1.0;
    let mut count = 1.0;
    while count <= servers {
        blocked = offered * blocked / (count + offered * blocked);
        count += 1.0;
    }
    let load = offered / servers;
    blocked / (1.0 - load * (1.0 - blocked))
}

#[test]
fn erlangs_c_is_met() {
    // One server busy for 0.8 of the time: 0.8 wait. Two servers offered one at a time on average: 1/3 wait.
    assert!((erlang_c(1.0, 0.8) - 0.8).abs() < 1e-12);
    assert!((erlang_c(2.0, 1.0) - 1.0 / 3.0).abs() < 1e-12);
}
