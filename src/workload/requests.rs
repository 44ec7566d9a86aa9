//! How long requests are, and when they came where that was recorded.

mod cut;

use statrs::function::erf::erfc;

use crate::units::{RequestRate, Seconds, to_integer};

/// Standard deviations between the points of a lognormal distribution, and how far they are taken to each side. Sums over points
/// that lie evenly in a normal distribution settle so fast that closer ones change the seventh digit.
const STEP: f64 = 1.0;
const WIDEST: f64 = 5.0;
/// Points whose share is asked for besides: 95% and 99% are below them.
const ASKED: [f64; 2] = [1.644_853_626_951_472_7, 2.326_347_874_040_841];
/// The same of what was recorded, whose form is not known between points.
const FINE_STEP: f64 = 0.2;
const FINE_WIDEST: f64 = 4.0;

/// Prompts of a length, and their answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// In tokens.
    pub tokens: f64,
    /// Of all; the shares add up to one. None where the point only marks a share that is asked for.
    pub weight: f64,
    /// Standard deviations from the middle of a normal distribution of which as much is below.
    pub deviations: f64,
    /// Their answers.
    pub answers: Answers,
}

/// Lengths of answers by three moments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answers {
    /// In tokens.
    pub mean: f64,
    /// Mean square over the squared mean.
    pub square: f64,
    /// Mean cube over the cubed mean.
    pub cube: f64,
}

impl Answers {
    /// Of a lognormal distribution; of one length where nothing scatters.
    fn lognormal(of: Moments) -> Self {
        let square = 1.0 + of.cv * of.cv;
        Self { mean: of.mean, square, cube: square.powi(3) }
    }

    /// Squared coefficient of variation.
    pub fn scatter(&self) -> f64 {
        // Not below none by rounding.
        (self.square - 1.0).max(0.0)
    }
}

/// A prompt of which so much is computed and so much cached, and the share of requests that are so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    /// Tokens computed.
    pub new: f64,
    /// Tokens cached.
    pub cached: f64,
    /// Of all.
    pub weight: f64,
}

/// A request of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recorded {
    /// Since the first one.
    pub at: Seconds,
    /// Tokens of the prompt.
    pub input: f64,
    /// Tokens of the answer.
    pub output: f64,
}

/// A mean, and the standard deviation over it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// In tokens.
    pub mean: f64,
    /// Standard deviation over the mean.
    pub cv: f64,
}

/// Lengths of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Requests {
    /// Prompts, the shortest first, with their answers.
    pub prompts: Vec<Point>,
    /// All answers.
    pub answers: Answers,
    /// Prompts by what is computed of them and what is cached, where that differs from one to another and answers are all of one
    /// length; empty where a share is cached.
    pub calls: Vec<Call>,
    /// Tokens by which a sequence in decode holds more than the mean request does on average: long answers are in decode for
    /// longer, so that a look at any time finds more of them.
    pub beyond: f64,
    /// The shorter of two answers on average, over their mean: how much the times of two that came together overlap.
    pub overlap: f64,
    /// Every request in the order of coming, where their times are known.
    pub recorded: Vec<Recorded>,
    /// The most tokens of prompt and answer, where that is known.
    pub longest: Option<f64>,
    /// What an engine's context leaves of the lengths asked for, where it is not all.
    pub cut: Option<Cut>,
}

/// Lengths of which an engine takes a part: a request whose prompt and answer are longer than its context is refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cut {
    /// Share that is refused.
    pub refused: f64,
    /// Tokens of a prompt that is taken, on average.
    pub input: f64,
    /// Tokens of its answer.
    pub output: f64,
}

impl Requests {
    /// Prompts and answers that are lognormal, each for itself; of one length where nothing scatters.
    pub fn lognormal(input: Moments, output: Moments) -> Self {
        let mut requests = Self {
            prompts: Vec::new(),
            answers: Answers::lognormal(output),
            calls: Vec::new(),
            beyond: 0.0,
            overlap: 0.0,
            recorded: Vec::new(),
            longest: None,
            cut: None,
        };
        requests.set_lognormal(input, output, None, &mut LengthShapes::default());
        requests
    }

    /// The same of those that an engine takes whose context is so many tokens of prompt and answer.
    pub fn lognormal_within(input: Moments, output: Moments, context: Option<f64>) -> Self {
        let mut requests = Self::lognormal(input, output);
        requests.set_lognormal(input, output, context, &mut LengthShapes::default());
        requests
    }

    /// Gives requests other lengths, as [`Requests::lognormal_within`] has them. Nothing is allocated for as many points as there
    /// were.
    pub fn set_lognormal(&mut self, input: Moments, output: Moments, context: Option<f64>, shapes: &mut LengthShapes) {
        self.answers = Answers::lognormal(output);
        shapes.prompts.of(input, self.answers, &mut self.prompts);
        // The mean of answers met in decode is that of their squares over that of them: m (1 + cv^2).
        self.beyond = output.mean * output.cv * output.cv / 2.0;
        // The shorter of two lognormals: 2 m Phi(-sigma / sqrt 2), sigma^2 the logarithm of the mean square.
        self.overlap = erfc(self.answers.square.ln().sqrt() / 2.0);
        self.calls.clear();
        self.recorded.clear();
        self.longest = None;
        self.cut = context.and_then(|context| self.cut_at(context, input, output));
    }

    /// Calls of agents, whose answers are of one length.
    pub fn of_calls(calls: Vec<Call>, output: f64) -> Self {
        let mean = calls.iter().map(|call| call.weight * (call.new + call.cached)).sum();
        let one = |mean| Moments { mean, cv: 0.0 };
        Self { calls, ..Self::lognormal(one(mean), one(output)) }
    }

    /// Those of a trace, at least one; with times where there are any.
    pub fn of_trace(inputs: &[f64], outputs: &[f64], times: Option<&[Seconds]>) -> Self {
        let share = 1.0 / inputs.len() as f64;
        let mut both: Vec<(f64, f64)> = inputs.iter().copied().zip(outputs.iter().copied()).collect();
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| both.iter().map(of).sum::<f64>() * share;
        let held = mean(&|(input, output)| output * (input + output / 2.0)) / mean(&|(_, output)| *output);
        let beyond = held - mean(&|(input, output)| input + output / 2.0);
        let longest = both.iter().map(|(input, output)| input + output).fold(0.0, f64::max);
        both.sort_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
        let one_length = both.first().map(|first| first.0) >= both.last().map(|last| last.0);
        let count = both.len() as f64;
        let cut = if one_length { vec![(0.0, [0.0, count], 1.0)] } else { parts(count) };
        let point = |(deviations, [from, to], weight): (f64, [f64; 2], f64)| {
            let (tokens, answers) = between(&both, from, to);
            Point { tokens, weight, deviations, answers }
        };
        let prompts = cut.into_iter().map(point).collect();
        let (_, answers) = between(&both, 0.0, count);
        let overlap = overlap(outputs.to_vec());
        let recorded = times.map_or_else(Vec::new, |times| {
            let first = times.first().copied().unwrap_or_default();
            let of = |((&at, &input), &output): ((&Seconds, &f64), &f64)| Recorded {
                at: at.saturating_sub(first),
                input,
                output,
            };
            times.iter().zip(inputs).zip(outputs).map(of).collect()
        });
        Self { prompts, answers, calls: Vec::new(), beyond, overlap, recorded, longest: Some(longest), cut: None }
    }

    /// The rate of a trace, as it came; none where its times are not known, or all are the same.
    pub fn recorded_rate(&self) -> Option<RequestRate> {
        let span = self.recorded.last()?.at;
        (span > Seconds::ZERO).then(|| RequestRate::of((self.recorded.len() - 1) as f64, span))
    }
}

/// The mean of lengths and how they scatter.
pub fn moments(lengths: &[f64]) -> Moments {
    let count = lengths.len().max(1) as f64;
    let mean = lengths.iter().sum::<f64>() / count;
    let variance = lengths.iter().map(|length| (length - mean).powi(2)).sum::<f64>() / count;
    Moments { mean, cv: variance.sqrt() / mean }
}

/// A lognormal distribution but for its mean, kept from one to the next.
#[derive(Clone, Debug, Default)]
pub struct LengthShapes {
    prompts: Shape,
}

/// A lognormal distribution at points, over the median of one without scatter.
#[derive(Clone, Debug, Default)]
struct Shape {
    cv: f64,
    /// Standard deviations from the middle, the length there, and the share.
    points: Vec<(f64, f64, f64)>,
    mean: f64,
}

impl Shape {
    /// Writes down the distribution with a mean and a scatter; its mean is kept.
    fn of(&mut self, of: Moments, answers: Answers, points: &mut Vec<Point>) {
        points.clear();
        if of.cv <= 0.0 {
            points.push(Point { tokens: of.mean, weight: 1.0, deviations: 0.0, answers });
            return;
        }
        if self.cv.to_bits() != of.cv.to_bits() {
            self.cv = of.cv;
            let variance = (1.0 + of.cv * of.cv).ln();
            let length = |z: f64| (z * variance.sqrt() - variance / 2.0).exp();
            self.points.clear();
            self.points.extend(deviations(STEP, WIDEST).map(|z| (z, length(z), (-z * z / 2.0).exp())));
            let all: f64 = self.points.iter().map(|point| point.2).sum();
            for point in &mut self.points {
                point.2 /= all;
            }
            self.mean = self.points.iter().map(|point| point.1 * point.2).sum();
            self.points.extend(ASKED.map(|z| (z, length(z), 0.0)));
            self.points.sort_by(|one, other| one.0.total_cmp(&other.0));
        }
        let scale = of.mean / self.mean;
        let point = |&(deviations, length, weight)| Point { tokens: length * scale, weight, deviations, answers };
        points.extend(self.points.iter().map(point));
    }
}

fn deviations(step: f64, widest: f64) -> impl Iterator<Item = f64> {
    let each_side = to_integer::<i32>((widest / step).round());
    (-each_side..=each_side).map(move |index| f64::from(index) * step)
}

/// So many things in order, cut into parts with the weights of a normal distribution, so that its ends are fine: where in it
/// each part lies, where it begins and ends, and its share.
fn parts(count: f64) -> Vec<(f64, [f64; 2], f64)> {
    let weights: Vec<(f64, f64)> = deviations(FINE_STEP, FINE_WIDEST).map(|z| (z, (-z * z / 2.0).exp())).collect();
    let all: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let mut before = 0.0;
    let part = |(z, weight): (f64, f64)| {
        let from = before;
        before += weight / all;
        (z, [from * count, before.min(1.0) * count], weight / all)
    };
    weights.into_iter().map(part).collect()
}

/// A count, a part of one left out.
fn whole(count: f64) -> usize {
    to_integer(count.floor())
}

/// The mean prompt between two places in requests that stand in order, and the answers there.
fn between(requests: &[(f64, f64)], from: f64, to: f64) -> (f64, Answers) {
    let (mut input, mut sums, mut at) = (0.0, [0.0; 3], from);
    while at < to {
        let index = whole(at).min(requests.len() - 1);
        let until = to.min((index + 1) as f64);
        if until <= at {
            break;
        }
        let (prompt, answer) = requests[index];
        input += prompt * (until - at);
        sums[0] += answer * (until - at);
        sums[1] += answer * answer * (until - at);
        sums[2] += answer.powi(3) * (until - at);
        at = until;
    }
    let all = (at - from).max(f64::MIN_POSITIVE);
    let [mean, square, cube] = sums.map(|sum| sum / all);
    (input / all, Answers { mean, square: square / (mean * mean), cube: cube / mean.powi(3) })
}

/// The shorter of two on average, over their mean.
fn overlap(mut lengths: Vec<f64>) -> f64 {
    lengths.sort_by(f64::total_cmp);
    let all = lengths.len() as f64;
    // Of two, the shorter is this one and the other no shorter, or the other way round.
    let shorter: f64 =
        lengths.iter().enumerate().map(|(place, length)| length * (2.0 * (all - place as f64) - 1.0)).sum();
    shorter / (all * lengths.iter().sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(points: &[Point]) -> f64 {
        points.iter().map(|point| point.tokens * point.weight).sum()
    }

    #[test]
    fn a_lognormal_keeps_its_mean_and_scatter() {
        let of = Requests::lognormal(Moments { mean: 2_000.0, cv: 0.8 }, Moments { mean: 300.0, cv: 0.5 });
        assert!((mean(&of.prompts) / 2_000.0 - 1.0).abs() < 1e-12 && (of.answers.mean - 300.0).abs() < 1e-12);
        let squares: f64 = of.prompts.iter().map(|point| point.weight * (point.tokens / 2_000.0 - 1.0).powi(2)).sum();
        assert!((squares.sqrt() / 0.8 - 1.0).abs() < 0.01, "{}", squares.sqrt());
        assert!((of.answers.scatter() - 0.25).abs() < 1e-12 && (of.answers.cube - 1.953_125).abs() < 1e-12);
        // 95% and 99% of prompts are below the points that mark them.
        let marked: Vec<f64> =
            of.prompts.iter().filter(|point| point.weight <= 0.0).map(|point| point.tokens).collect();
        for (found, z) in marked.iter().zip([1.644_854, 2.326_348]) {
            let wanted = 2_000.0 * (z * 1.64_f64.ln().sqrt() - 1.64_f64.ln() / 2.0).exp();
            assert!((found / wanted - 1.0).abs() < 1e-3, "{found} {wanted}");
        }
        // A token of an answer finds 300 (1 + 0.25) / 2 tokens of its answer before it.
        assert!((of.beyond - 37.5).abs() < 1e-12);
        // The shorter of two lognormals: 2 m Phi(-sigma / sqrt 2), sigma^2 = ln 1.25; Phi(-0.334) = 0.369.
        assert!((of.overlap - 0.738).abs() < 1e-3, "{}", of.overlap);
    }

    #[test]
    fn lengths_that_are_set_again_are_those_of_new_requests() {
        let of = |mean: f64, cv: f64| Moments { mean, cv };
        let lengths = [(0.5, 0.0), (0.5, 0.8), (0.0, 0.8), (0.0, 0.0), (0.5, 0.8), (1.0, 1.0)];
        let (mut shapes, mut again) = (LengthShapes::default(), Requests::lognormal(of(7.0, 0.1), of(9.0, 0.2)));
        for (index, (first, second)) in lengths.into_iter().enumerate() {
            let (input, output) = (of(100.0 * (index + 1) as f64, first), of(50.0, second));
            again.set_lognormal(input, output, None, &mut shapes);
            assert_eq!(again, Requests::lognormal(input, output));
        }
    }

    #[test]
    fn one_length_is_one_point() {
        let of = Requests::lognormal(Moments { mean: 2_000.0, cv: 0.0 }, Moments { mean: 300.0, cv: 0.0 });
        let answers = Answers { mean: 300.0, square: 1.0, cube: 1.0 };
        assert_eq!(of.prompts, vec![Point { tokens: 2_000.0, weight: 1.0, deviations: 0.0, answers }]);
        assert!((of.overlap - 1.0).abs() < 1e-12 && of.beyond.abs() < 1e-12);
    }

    #[test]
    fn a_trace_keeps_its_means_its_ends_and_what_goes_together() {
        // Long prompts with short answers.
        let inputs: Vec<f64> = (0..500).map(|row| if row % 2 == 0 { 100.0 } else { 4_000.0 }).collect();
        let outputs: Vec<f64> = inputs.iter().map(|input| if *input > 1_000.0 { 50.0 } else { 400.0 }).collect();
        let times: Vec<Seconds> = (0..500).map(|row| Seconds::new(7.0 + f64::from(row) / 2.0)).collect();
        let of = Requests::of_trace(&inputs, &outputs, Some(&times));
        assert!((mean(&of.prompts) - 2_050.0).abs() < 1e-6 && (of.answers.mean - 225.0).abs() < 1e-6);
        assert_eq!((of.prompts[0].tokens, of.prompts[40].tokens), (100.0, 4_000.0));
        assert_eq!(of.longest, Some(4_050.0));
        // All but the part in the middle are of one kind or the other.
        let apart = |point: &&Point| (point.tokens > 1_000.0) == (point.answers.mean < 100.0);
        let of_one_kind: f64 = of.prompts.iter().filter(apart).map(|point| point.weight).sum();
        assert!(of_one_kind > 0.9, "{of_one_kind}");
        // Of two answers both are long in a quarter of all cases: 400 / 4 + 50 x 3 / 4 = 137.5, over 225.
        assert!((of.overlap - 137.5 / 225.0).abs() < 1e-3, "{}", of.overlap);
        // Tokens come from short prompts' answers mostly: (400 x 300 + 50 x 4,025) / 450 = 713.9, and 2,162.5 is the mean.
        assert!((of.beyond - (713.888_9 - 2_162.5)).abs() < 1e-3, "{}", of.beyond);
        assert!((of.recorded_rate().unwrap().value() - 2.0).abs() < 1e-12 && of.recorded[0].at == Seconds::ZERO);
        let found = moments(&inputs);
        assert!((found.mean - 2_050.0).abs() < 1e-9 && (found.cv - 1_950.0 / 2_050.0).abs() < 1e-9);
    }
}
