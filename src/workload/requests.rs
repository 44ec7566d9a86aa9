//! How long requests are, and when they came where that was recorded.

use crate::units::{RequestRate, Seconds};

/// Standard deviations between points of a distribution, and how far it is taken to each side.
const STEP: f64 = 0.2;
const WIDE_STEP: f64 = 0.5;
const WIDEST: f64 = 4.0;

/// A length and the share of requests that have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// In tokens.
    pub tokens: f64,
    /// Of all; the shares add up to one.
    pub weight: f64,
}

/// Prompts of a length with answers of about one, and the share of requests that are so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Tokens of the prompt.
    pub input: f64,
    /// Tokens of answers, from and to, which lie evenly between.
    pub output: [f64; 2],
    /// Of all.
    pub weight: f64,
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

/// Lengths of requests: prompts, answers, and both together.
#[derive(Clone, Debug, PartialEq)]
pub struct Requests {
    /// Prompts, the shortest first.
    pub prompts: Vec<Point>,
    /// Answers, the shortest first.
    pub answers: Vec<Point>,
    /// Prompts with their answers.
    pub pairs: Vec<Pair>,
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
}

impl Requests {
    /// Prompts and answers that are lognormal, each for itself; of one length where nothing scatters.
    pub fn lognormal(input: Moments, output: Moments) -> Self {
        let mut requests = Self {
            prompts: Vec::new(),
            answers: Vec::new(),
            pairs: Vec::new(),
            calls: Vec::new(),
            beyond: 0.0,
            overlap: 0.0,
            recorded: Vec::new(),
            longest: None,
        };
        requests.set_lognormal(input, output, &mut LengthShapes::default());
        requests
    }

    /// Gives requests other lengths, as [`Requests::lognormal`] has them. Nothing is allocated for as many points as there were.
    pub fn set_lognormal(&mut self, input: Moments, output: Moments, shapes: &mut LengthShapes) {
        let LengthShapes { prompts, answers, wide_prompts, wide_answers, points, widths } = shapes;
        prompts.of(input, STEP, &mut self.prompts);
        answers.of(output, STEP, &mut self.answers);
        let step = |other: Moments| if other.cv > 0.0 { WIDE_STEP } else { STEP };
        wide_answers.of(output, step(input), points);
        widths.clear();
        widths.extend(with_widths(points));
        wide_prompts.of(input, step(output), points);
        self.pairs.clear();
        for first in &*points {
            let pair = |(output, weight): &([f64; 2], f64)| Pair {
                input: first.tokens,
                output: *output,
                weight: first.weight * weight,
            };
            self.pairs.extend(widths.iter().map(pair));
        }
        // The mean of answers met in decode is that of their squares over that of them: m (1 + cv^2).
        self.beyond = output.mean * output.cv * output.cv / 2.0;
        self.overlap = overlap(&self.answers);
        self.calls.clear();
        self.recorded.clear();
        self.longest = None;
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
        let points = |tokens: Vec<f64>| tokens.into_iter().map(|tokens| Point { tokens, weight: share }).collect();
        let prompts = condense(points(both.iter().map(|(input, _)| *input).collect()), STEP);
        let answers = condense(points(outputs.to_vec()), STEP);
        let mut pairs = Vec::new();
        for (from, to, weight) in parts(both.len(), WIDE_STEP) {
            let (first, last) = (whole(from), whole(to.ceil()).min(both.len()));
            let part = both.get(first..last.max(first + 1)).unwrap_or_default();
            let input = part.iter().map(|(input, _)| input).sum::<f64>() / part.len().max(1) as f64;
            let answers = condense(points(part.iter().map(|(_, output)| *output).collect()), WIDE_STEP);
            let answers: Vec<([f64; 2], f64)> = with_widths(&answers).collect();
            let pair = |(output, share): &([f64; 2], f64)| Pair { input, output: *output, weight: weight * share };
            pairs.extend(answers.iter().map(pair));
        }
        let overlap = overlap(&answers);
        let recorded = times.map_or_else(Vec::new, |times| {
            let first = times.first().copied().unwrap_or_default();
            let of = |((&at, &input), &output): ((&Seconds, &f64), &f64)| Recorded {
                at: at.saturating_sub(first),
                input,
                output,
            };
            times.iter().zip(inputs).zip(outputs).map(of).collect()
        });
        Self { prompts, answers, pairs, calls: Vec::new(), beyond, overlap, recorded, longest: Some(longest) }
    }

    /// Squared coefficient of variation of answers' lengths.
    pub fn answer_scatter(&self) -> f64 {
        let mean: f64 = self.answers.iter().map(|answer| answer.tokens * answer.weight).sum();
        self.answers.iter().map(|answer| answer.weight * (answer.tokens / mean - 1.0).powi(2)).sum()
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

/// Lognormal distributions but for their means, kept from one to the next; and room to put them together in.
#[derive(Clone, Debug, Default)]
pub struct LengthShapes {
    prompts: Shape,
    answers: Shape,
    wide_prompts: Shape,
    wide_answers: Shape,
    points: Vec<Point>,
    widths: Vec<([f64; 2], f64)>,
}

/// A lognormal distribution at points so many standard deviations apart, over the median of one without scatter.
#[derive(Clone, Debug, Default)]
struct Shape {
    cv: f64,
    step: f64,
    points: Vec<Point>,
    mean: f64,
}

impl Shape {
    /// Writes down the distribution with a mean and a scatter, at points so many standard deviations apart; its mean is kept.
    fn of(&mut self, of: Moments, step: f64, points: &mut Vec<Point>) {
        points.clear();
        if of.cv <= 0.0 {
            points.push(Point { tokens: of.mean, weight: 1.0 });
            return;
        }
        if (self.cv.to_bits(), self.step.to_bits()) != (of.cv.to_bits(), step.to_bits()) {
            (self.cv, self.step) = (of.cv, step);
            let variance = (1.0 + of.cv * of.cv).ln();
            self.points.clear();
            self.points.extend(
                deviations(step).map(|z| Point {
                    tokens: (z * variance.sqrt() - variance / 2.0).exp(),
                    weight: (-z * z / 2.0).exp(),
                }),
            );
            let all: f64 = self.points.iter().map(|point| point.weight).sum();
            for point in &mut self.points {
                point.weight /= all;
            }
            self.mean = self.points.iter().map(|point| point.tokens * point.weight).sum();
        }
        let scale = of.mean / self.mean;
        points.extend(self.points.iter().map(|point| Point { tokens: point.tokens * scale, ..*point }));
    }
}

fn deviations(step: f64) -> impl Iterator<Item = f64> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a handful")]
    let each_side = (WIDEST / step).round() as i32;
    (-each_side..=each_side).map(move |index| f64::from(index) * step)
}

/// So many things in order, cut into parts with the weights of a normal distribution, so that its ends are fine: where each
/// part begins and ends, and its share.
fn parts(count: usize, step: f64) -> Vec<(f64, f64, f64)> {
    let weights: Vec<f64> = deviations(step).map(|z| (-z * z / 2.0).exp()).collect();
    let all: f64 = weights.iter().sum();
    let mut before = 0.0;
    let part = |weight: f64| {
        let from = before;
        before += weight / all;
        (from * count as f64, before.min(1.0) * count as f64, weight / all)
    };
    weights.into_iter().map(part).collect()
}

/// A count, a part of one left out.
fn whole(count: f64) -> usize {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no less than zero, and of rows in memory"
    )]
    let whole = count.floor() as usize;
    whole
}

/// Lengths with equal shares as fewer points, closer at both ends; the mean is kept.
fn condense(mut points: Vec<Point>, step: f64) -> Vec<Point> {
    points.sort_by(|one, other| one.tokens.total_cmp(&other.tokens));
    let (Some(first), Some(last)) = (points.first().copied(), points.last().copied()) else { return points };
    if first.tokens >= last.tokens {
        return vec![Point { tokens: first.tokens, weight: 1.0 }];
    }
    let mean_between = |from: f64, to: f64| {
        let (mut sum, mut at) = (0.0, from);
        while at < to {
            let index = whole(at).min(points.len() - 1);
            let until = to.min((index + 1) as f64);
            if until <= at {
                break;
            }
            sum += points[index].tokens * (until - at);
            at = until;
        }
        sum / (at - from).max(f64::MIN_POSITIVE)
    };
    let of = |(from, to, weight)| Point { tokens: mean_between(from, to), weight };
    parts(points.len(), step).into_iter().map(of).collect()
}

/// Points with what they stand for: all that is nearer to each than to others.
fn with_widths(points: &[Point]) -> impl Iterator<Item = ([f64; 2], f64)> {
    let at = move |index: Option<usize>| index.and_then(|index| points.get(index)).map(|point| point.tokens);
    let of = move |(index, point): (usize, &Point)| {
        let below = at(index.checked_sub(1)).map(|below| f64::midpoint(below, point.tokens));
        let above = at(Some(index + 1)).map(|above| f64::midpoint(above, point.tokens));
        // The last on each side reaches as far out as in.
        let from = below.or_else(|| Some((2.0 * point.tokens - above?).max(0.0))).unwrap_or(point.tokens);
        let to = above.unwrap_or(2.0 * point.tokens - from);
        ([from, to], point.weight)
    };
    points.iter().enumerate().map(of)
}

/// The shorter of two on average, over their mean.
fn overlap(points: &[Point]) -> f64 {
    let mean: f64 = points.iter().map(|point| point.tokens * point.weight).sum();
    let (mut longer, mut shorter) = (1.0, 0.0);
    // Of two, the shorter is this one and the other no shorter, or the other way round.
    for point in points {
        shorter += point.tokens * point.weight * (2.0 * longer - point.weight);
        longer -= point.weight;
    }
    shorter / mean
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
        assert!((mean(&of.prompts) / 2_000.0 - 1.0).abs() < 1e-12 && (mean(&of.answers) / 300.0 - 1.0).abs() < 1e-12);
        let squares: f64 = of.prompts.iter().map(|point| point.weight * (point.tokens / 2_000.0 - 1.0).powi(2)).sum();
        assert!((squares.sqrt() / 0.8 - 1.0).abs() < 0.01, "{}", squares.sqrt());
        let [inputs, outputs] = of.pairs.iter().fold([0.0; 2], |[n, o], pair| {
            [n + pair.input * pair.weight, o + f64::midpoint(pair.output[0], pair.output[1]) * pair.weight]
        });
        assert!((inputs / 2_000.0 - 1.0).abs() < 1e-12 && (outputs / 300.0 - 1.0).abs() < 0.02, "{outputs}");
        // A token of an answer finds 300 (1 + 0.25) / 2 tokens of its answer before it.
        assert!((of.beyond - 37.5).abs() < 1e-12);
        // The shorter of two lognormals: 2 m Phi(-sigma / sqrt 2), sigma^2 = ln 1.25; Phi(-0.334) = 0.369.
        assert!((of.overlap - 0.738).abs() < 0.01, "{}", of.overlap);
    }

    #[test]
    fn lengths_that_are_set_again_are_those_of_new_requests() {
        let of = |mean: f64, cv: f64| Moments { mean, cv };
        let lengths = [(0.5, 0.0), (0.5, 0.8), (0.0, 0.8), (0.0, 0.0), (0.5, 0.8), (1.0, 1.0)];
        let (mut shapes, mut again) = (LengthShapes::default(), Requests::lognormal(of(7.0, 0.1), of(9.0, 0.2)));
        for (index, (first, second)) in lengths.into_iter().enumerate() {
            let (input, output) = (of(100.0 * (index + 1) as f64, first), of(50.0, second));
            again.set_lognormal(input, output, &mut shapes);
            assert_eq!(again, Requests::lognormal(input, output));
        }
    }

    #[test]
    fn one_length_is_one_point() {
        let of = Requests::lognormal(Moments { mean: 2_000.0, cv: 0.0 }, Moments { mean: 300.0, cv: 0.0 });
        assert_eq!(of.prompts, vec![Point { tokens: 2_000.0, weight: 1.0 }]);
        assert_eq!(of.pairs, vec![Pair { input: 2_000.0, output: [300.0; 2], weight: 1.0 }]);
        assert!((of.overlap - 1.0).abs() < 1e-12 && of.beyond.abs() < 1e-12);
    }

    #[test]
    fn a_trace_keeps_its_means_its_ends_and_what_goes_together() {
        // Long prompts with short answers.
        let inputs: Vec<f64> = (0..500).map(|row| if row % 2 == 0 { 100.0 } else { 4_000.0 }).collect();
        let outputs: Vec<f64> = inputs.iter().map(|input| if *input > 1_000.0 { 50.0 } else { 400.0 }).collect();
        let times: Vec<Seconds> = (0..500).map(|row| Seconds::new(7.0 + f64::from(row) / 2.0)).collect();
        let of = Requests::of_trace(&inputs, &outputs, Some(&times));
        assert!((mean(&of.prompts) - 2_050.0).abs() < 1e-6 && (mean(&of.answers) - 225.0).abs() < 1e-6);
        assert_eq!((of.prompts[0].tokens, of.prompts[40].tokens), (100.0, 4_000.0));
        assert_eq!(of.longest, Some(4_050.0));
        // All but the part in the middle are of one kind or the other.
        let mixed: f64 = of
            .pairs
            .iter()
            .filter(|pair| (pair.input > 1_000.0) != (pair.output[0] < 100.0))
            .map(|pair| pair.weight)
            .sum();
        assert!(mixed < 0.2, "{mixed}");
        // Tokens come from short prompts' answers mostly: (400 x 300 + 50 x 4,025) / 450 = 713.9, and 2,162.5 is the mean.
        assert!((of.beyond - (713.888_9 - 2_162.5)).abs() < 1e-3, "{}", of.beyond);
        assert!((of.recorded_rate().unwrap().value() - 2.0).abs() < 1e-12 && of.recorded[0].at == Seconds::ZERO);
        let found = moments(&inputs);
        assert!((found.mean - 2_050.0).abs() < 1e-9 && (found.cv - 1_950.0 / 2_050.0).abs() < 1e-9);
    }
}
