//! How latencies scatter where requests come by themselves.

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::erf::erfc;

use super::queue::coming::Coming;
use super::queue::deviating::Deviating;
use super::queue::pace::Pace;
use super::queue::scattered::{Scattered, Shape};
use super::queue::scratch::{Scratch, Timed};
use super::queue::waiting::Wait;
use super::state::SteadyState;
use crate::units::Seconds;

/// Standard deviations of a normal distribution below which half is, 95%, and 99%.
const DEVIATIONS: [f64; 3] = [0.0, 1.644_853_626_951_472_7, 2.326_347_874_040_841];
/// Steps in which a quantile is sought, at most.
const STEPS: u32 = 60;
/// Of a time, how near a quantile is found.
const NEAR: f64 = 1e-6;
/// Of what is beyond it, how near it is where the last step finds it.
const NEAR_ENOUGH: f64 = 3e-4;

/// A latency that half of all requests stay below, 95% of them, and 99%.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantiles {
    /// Half.
    pub p50: Seconds,
    /// 95%.
    pub p95: Seconds,
    /// 99%.
    pub p99: Seconds,
}

/// Distributions of the latencies of requests that come at random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latencies {
    /// To the first token.
    pub first_token: Quantiles,
    /// Between tokens.
    pub token: Quantiles,
    /// From a request to the last token of its answer.
    pub whole: Quantiles,
}

impl Quantiles {
    pub(super) fn of(mut quantile: impl FnMut(f64) -> Seconds) -> Self {
        Self { p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99) }
    }

    /// The later of both.
    fn at_least(self, other: &Self) -> Self {
        Self { p50: self.p50.max(other.p50), p95: self.p95.max(other.p95), p99: self.p99.max(other.p99) }
    }

    /// By standard deviations of a normal distribution instead of shares.
    fn by_deviations(quantile: impl Fn(f64) -> Seconds) -> Self {
        let [p50, p95, p99] = DEVIATIONS.map(quantile);
        Self { p50, p95, p99 }
    }
}

impl Latencies {
    /// The same where each whole request takes so long.
    #[must_use]
    pub fn of_one_length(self, whole: Seconds) -> Self {
        Self { whole: Quantiles::of(|_| whole), ..self }
    }

    /// The same of requests that are all there from the start: each waits for the waves before its own, of which the last begins so
    /// late, and its first token for prompts before it, the last of which is taken in so much later; as many begin at any time. An
    /// answer's last token waits for all prompts of its wave as it is.
    #[must_use]
    pub fn in_waves(self, (last, taken_in): (Seconds, Seconds)) -> Self {
        let behind = |of: Quantiles, longest: Seconds| Quantiles {
            p50: of.p50 + longest * 0.5,
            p95: of.p95 + longest * 0.95,
            p99: of.p99 + longest * 0.99,
        };
        let first_token = behind(self.first_token, last + taken_in);
        // No answer ends before it begins.
        Self { first_token, whole: behind(self.whole, last).at_least(&first_token), ..self }
    }
}

/// What latencies scatter from: first tokens without their waits, by computed tokens and prefill; the waits for prefills before,
/// for those of a burst that others come in, and for room in the cache; how the number in decode scatters, and the time of a token by it.
pub(super) struct Sources<'a, F> {
    pub(super) first: &'a dyn Fn(f64, Seconds) -> Seconds,
    pub(super) prefills: Wait,
    pub(super) burst: Wait,
    pub(super) admission: Wait,
    pub(super) pace: Pace,
    pub(super) token: F,
}

impl<F: Fn(f64) -> Seconds> Sources<'_, F> {
    fn tokens(&self) -> Quantiles {
        Quantiles::by_deviations(|deviations| (self.token)(self.pace.number(deviations)))
    }
}

/// Distributions of latencies.
///
/// First tokens: the prefill of a prompt whose length scatters, behind waits that some meet, all together a gamma distribution
/// for those that wait for prefills and another for those that wait for room. Tokens: the sequences in decode at random times scatter as those in processor sharing, and a token takes as long
/// as theirs. Whole requests: first tokens and answers of the lengths that go together, at a pace that scatters as far as the
/// number in decode does over an answer, behind the same waits: lognormal by three moments.
pub(super) fn distribution<F: Fn(f64) -> Seconds>(
    coming: &Coming<'_>,
    state: &SteadyState,
    sources: &Sources<'_, F>,
    scratch: &mut Scratch,
) -> Latencies {
    let (prompts, times) = scratch.parts();
    let to_first = |timed: &Timed| (sources.first)(timed.new, timed.alone);
    if coming.requests.calls.is_empty() {
        times.fill(prompts.iter().map(|timed| (to_first(timed), timed.deviations)));
    } else {
        times.sort(prompts.iter().map(|timed| (to_first(timed), timed.weight)));
    }
    let firsts = Scattered::of(prompts.iter().map(|timed| (to_first(timed), timed.weight)));
    let (before, burst, admission) = (sources.prefills, sources.burst, sources.admission);
    // Requests that wait for room wait for prefills as others do.
    let of_room = firsts.and(before.with_none()).and(burst.with_none()).and(admission.scattered()).gamma();
    let taken = 1.0 - admission.share;
    let waited = [
        (before.share * taken * (1.0 - burst.share), firsts.and(before.scattered()).gamma()),
        (burst.share * taken * (1.0 - before.share), firsts.and(burst.scattered()).bounded()),
        // Those of a burst come behind others too, and those whose adapter had no place.
        (burst.share * taken * before.share, firsts.and(before.scattered()).and(burst.scattered()).gamma()),
        (admission.share, of_room),
    ];
    let first_token = Quantiles::by_deviations(|z| quantile(z, &*times, &waited));
    if state.tpot <= Seconds::ZERO {
        // The first token is the answer.
        return Latencies { first_token, token: sources.tokens(), whole: first_token };
    }
    let answers = sources.pace.answers(state.tpot, coming.requests.answers.scatter());
    // Beside answers, waits for prefills are short.
    let whole = wholes(prompts, to_first, answers).and(before.with_none()).and(burst.with_none());
    let waited = [(admission.share, whole.and(admission.scattered()).lognormal())];
    let alone = whole.lognormal();
    // No answer ends before it begins.
    let whole = Quantiles::by_deviations(|z| quantile(z, &alone, &waited)).at_least(&first_token);
    Latencies { first_token, token: sources.tokens(), whole }
}

/// First tokens and the answers that go with them, a token of which takes as long as given.
fn wholes(prompts: &[Timed], to_first: impl Fn(&Timed) -> Seconds, token: Scattered) -> Scattered {
    let mean: Seconds =
        prompts.iter().map(|timed| (to_first(timed) + token.mean * timed.answers.mean) * timed.weight).sum();
    let (square, cube) = (1.0 + token.variance, 1.0 + 3.0 * token.variance + token.third);
    let (mut variance, mut third) = (0.0, 0.0);
    for timed in prompts {
        let off = to_first(timed) / mean - 1.0;
        let answer = token.mean * timed.answers.mean / mean;
        let squared = answer * answer * timed.answers.square * square;
        let cubed = answer.powi(3) * timed.answers.cube * cube;
        variance += timed.weight * (off * (off + 2.0 * answer) + squared);
        third += timed.weight * (off * (off * (off + 3.0 * answer) + 3.0 * squared) + cubed);
    }
    Scattered { mean, variance: variance.max(0.0), third }
}

/// Share of a normal distribution beyond so many standard deviations.
fn beyond(deviations: f64) -> f64 {
    erfc(deviations * std::f64::consts::FRAC_1_SQRT_2) / 2.0
}

/// The time below which as much is as of a normal distribution below so many standard deviations, where shares of requests wait and
/// the others do not: between those of all, by the secant through two times that lie to each side (Illinois), of the logarithm
/// of what is beyond, which tails have nearly straight.
fn quantile(deviations: f64, alone: &impl Deviating, waited: &[(f64, Shape)]) -> Seconds {
    let mut low = alone.at(deviations);
    let waits = || waited.iter().filter(|(share, _)| *share > 0.0);
    let mut high = waits().fold(low, |high, (_, shape)| high.max(shape.at(deviations)));
    if high <= low {
        return low;
    }
    let wanted = beyond(deviations);
    if alone.certain() && waits().count() == 1 {
        // Those that do not wait are through before all others.
        return waits().fold(low, |time, &(share, shape)| {
            if wanted < share { time.max(shape.at(-Normal::standard().inverse_cdf(wanted / share))) } else { time }
        });
    }
    let through: f64 = 1.0 - waits().map(|(share, _)| share).sum::<f64>();
    let off = |time: Seconds| {
        let late: f64 = waits().map(|(share, shape)| share * beyond(shape.deviations(time))).sum();
        let late = if through > 0.0 { late + through * beyond(alone.deviations(time)) } else { late };
        (wanted / late).ln()
    };
    let (mut below, mut above) = (off(low), off(high));
    if below >= 0.0 {
        return low;
    }
    if above <= 0.0 {
        return high;
    }
    let mut last = 0;
    for _ in 0..STEPS {
        if high - low <= high * NEAR {
            break;
        }
        let between = low + (high - low) * (below / (below - above)).clamp(0.001, 0.999);
        let found = off(between);
        if found.abs() < NEAR_ENOUGH {
            // The secant once more.
            let (time, other) = if found < 0.0 { (high, above) } else { (low, below) };
            return between - (time - between) * (found / (other - found));
        }
        if found < 0.0 {
            (low, below) = (between, found);
            if last < 0 {
                above /= 2.0;
            }
            last = -1;
        } else {
            (high, above) = (between, found);
            if last > 0 {
                below /= 2.0;
            }
            last = 1;
        }
    }
    high
}
