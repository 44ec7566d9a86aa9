//! Requests one by one, event by event, through an engine whose steps take as long as the form says.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use super::Replica;
use super::queue::ordered::Ordered;
use super::step::prefill::while_launching;
use crate::units::Seconds;
use crate::workload::Moments;

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

/// So many requests of lengths that scatter, all there at once.
pub(super) fn all_at_once(count: u32, input: Moments, output: Moments) -> Vec<Sent> {
    let mut draws = Draws::new();
    let mut lengths = || (draws.lognormal(input.mean, input.cv), draws.lognormal(output.mean, output.cv));
    (0..count).map(|_| lengths()).map(|(input, output)| Sent { at: 0.0, input, output }).collect()
}

/// Time of a step of an engine without attention groups that takes in prompts of such lengths.
pub(super) fn in_one_step(engine: &Replica<'_>, new: &[f64]) -> f64 {
    let all: f64 = new.iter().sum();
    let attention: Seconds = new.iter().map(|new| engine.prompt_attention(*new, 0.0)).sum();
    while_launching(engine.prompt_step(all, all, false) + attention, engine.prefill_overhead(all)).value()
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
    /// The adapter of each request, and how many different ones an engine has at once; others are taken in past one without.
    pub(super) adapters: Option<(&'a [usize], usize)>,
}

/// Mean time to the first token, and what half of all stay below, 95% and 99%: of first tokens, of the time of tokens, and of
/// whole requests.
pub(super) struct Found {
    pub(super) mean: f64,
    /// Requests that end in a second while others follow them.
    pub(super) rate: f64,
    pub(super) first: [f64; 3],
    pub(super) token: [f64; 3],
    pub(super) whole: [f64; 3],
}

/// Which of several engines a request goes to, by what each has open: prompts that wait or are taken in, and sequences in decode.
pub(super) type Route<'a> = dyn FnMut(&mut dyn Iterator<Item = (usize, usize)>) -> usize + 'a;

/// One of several engines at work.
#[derive(Default)]
struct AtWork {
    /// When it was looked at last, and tokens that one in decode since the beginning would have got.
    now: f64,
    passed: f64,
    waiting: VecDeque<usize>,
    step: Option<(f64, Vec<usize>)>,
    decode: BinaryHeap<Reverse<(Ordered, usize)>>,
    /// Requests of each adapter that has a place.
    here: BTreeMap<usize, usize>,
}

impl AtWork {
    /// When something happens next in it, if nothing comes.
    fn next(&self, tokens: &[f64]) -> f64 {
        let pace = tokens[self.decode.len()];
        let ends =
            |Reverse((Ordered(until), _)): &Reverse<(Ordered, usize)>| self.now + (until - self.passed).max(0.0) * pace;
        let ends = self.decode.peek().map_or(f64::INFINITY, ends);
        ends.min(self.step.as_ref().map_or(f64::INFINITY, |step| step.0))
    }

    /// Prompts that are not in decode yet, and those that are.
    fn open(&self) -> (usize, usize) {
        (self.waiting.len() + self.step.as_ref().map_or(0, |step| step.1.len()), self.decode.len())
    }
}

impl Engine<'_> {
    /// Requests over several engines.
    pub(super) fn run(&self, sent: &[Sent], engines: usize, route: &mut Route<'_>) -> Found {
        self.over(sent, (sent.len(), sent.len() * WARM / 100), engines, route)
    }

    /// The same over one, where so many are open at once: those beyond come as others end, whenever they were to. The first `warm`
    /// are not counted.
    pub(super) fn run_open(&self, sent: &[Sent], open: usize, warm: usize) -> Found {
        self.over(sent, (open, warm), 1, &mut |_| 0)
    }

    fn over(&self, sent: &[Sent], (open, warm): (usize, usize), engines: usize, route: &mut Route<'_>) -> Found {
        let (mut sent, mut come) = (sent.to_vec(), open.min(sent.len()));
        let mut tokens: Vec<f64> = vec![(self.token)(0.0)];
        let mut all: Vec<AtWork> = (0..engines).map(|_| AtWork::default()).collect();
        let (mut firsts, mut wholes) = (Vec::new(), Vec::new());
        // Tokens got with so many in decode.
        let mut got: Vec<f64> = vec![0.0];
        let (mut ended, mut next) = (0, 0);
        let (mut began, mut last) = (0.0, 0.0);
        while ended < sent.len() {
            let soonest = (0..engines).map(|index| (Ordered(all[index].next(&tokens)), index)).min().unwrap();
            let comes = sent[..come].get(next).map_or(f64::INFINITY, |sent| sent.at);
            let coming = comes <= soonest.0.0;
            let index = if coming { route(&mut all.iter().map(AtWork::open)) } else { soonest.1 };
            let (engine, until) = (&mut all[index], comes.min(soonest.0.0));
            let pace = tokens[engine.decode.len()];
            got[engine.decode.len()] += engine.decode.len() as f64 * (until - engine.now) / pace;
            engine.passed += (until - engine.now) / pace;
            engine.now = until;
            let taken_in = engine.step.as_ref().is_some_and(|step| step.0 <= until);
            if coming {
                engine.waiting.push_back(next);
                next += 1;
            } else if taken_in {
                for index in engine.step.take().unwrap().1 {
                    let request = sent[index];
                    engine.decode.push(Reverse((Ordered(engine.passed + request.output), index)));
                    if index >= warm {
                        firsts.push(until - request.at + (self.behind)(request.input));
                    }
                }
            } else {
                let Reverse((_, index)) = engine.decode.pop().unwrap();
                ended += 1;
                if let Some((of, _)) = self.adapters {
                    let here = engine.here.get_mut(&of[index]).unwrap();
                    *here -= 1;
                    if *here == 0 {
                        engine.here.remove(&of[index]);
                    }
                }
                if let Some(next) = sent.get_mut(come) {
                    (began, last) = (if ended <= warm { until } else { began }, until);
                    next.at = until + (self.behind)(next.input);
                    come += 1;
                }
                if index >= warm {
                    wholes.push(until - sent[index].at + (self.behind)(sent[index].input));
                }
            }
            while tokens.len() <= engine.decode.len() {
                tokens.push((self.token)(tokens.len() as f64));
                got.push(0.0);
            }
            if engine.step.is_none() && engine.decode.len() < self.places && !engine.waiting.is_empty() {
                let (mut taken, mut lengths, mut all): (Vec<usize>, Vec<f64>, f64) = (Vec::new(), Vec::new(), 0.0);
                let mut at = 0;
                while let Some(&index) = engine.waiting.get(at) {
                    if let Some((of, places)) = self.adapters
                        && !engine.here.contains_key(&of[index])
                        && engine.here.len() >= places
                    {
                        at += 1;
                        continue;
                    }
                    let length = sent[index].input;
                    let fits = self.tokens.is_some_and(|tokens| all + length <= tokens);
                    let fits = fits && engine.decode.len() + taken.len() < self.places;
                    if !taken.is_empty() && !fits {
                        break;
                    }
                    engine.waiting.remove(at);
                    if let Some((of, _)) = self.adapters {
                        *engine.here.entry(of[index]).or_default() += 1;
                    }
                    taken.push(index);
                    lengths.push(length);
                    all += length;
                }
                if !taken.is_empty() {
                    engine.step = Some((until + (self.prefill)(&lengths), taken));
                }
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
        let rate = (sent.len() - open.max(1) - warm.min(sent.len() - open)) as f64 / (last - began);
        Found { mean, rate, first: quantiles(firsts), token: [0.5, 0.95, 0.99].map(token), whole: quantiles(wholes) }
    }
}
