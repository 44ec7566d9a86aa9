//! Lengths that scatter, cut at what an engine takes.

use statrs::function::erf::erfc;

use super::{Answers, Cut, Moments, Requests};

/// Share of requests below which nothing is cut.
const NEVER: f64 = 1e-6;
/// Standard deviations to each side over which shares are added up, and the steps of that.
const WIDEST: f64 = 6.0;
const STEPS: usize = 384;

/// Share of a normal distribution below so many standard deviations.
fn below(deviations: f64) -> f64 {
    erfc(-deviations * std::f64::consts::FRAC_1_SQRT_2) / 2.0
}

/// A lognormal distribution.
#[derive(Clone, Copy)]
struct Lognormal {
    of: Moments,
    sigma: f64,
}

impl Lognormal {
    fn new(of: Moments) -> Self {
        Self { of, sigma: (of.cv * of.cv).ln_1p().sqrt() }
    }

    /// The length so many standard deviations from the middle.
    fn at(&self, deviations: f64) -> f64 {
        self.of.mean * (self.sigma * deviations - self.sigma * self.sigma / 2.0).exp()
    }

    /// The standard deviations from the middle of a length.
    fn deviations(&self, length: f64) -> f64 {
        if length <= 0.0 {
            f64::NEG_INFINITY
        } else if self.sigma > 0.0 {
            ((length / self.of.mean).ln() + self.sigma * self.sigma / 2.0) / self.sigma
        } else if length < self.of.mean {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        }
    }

    /// The shortest.
    fn least(&self) -> f64 {
        if self.sigma > 0.0 { 0.0 } else { self.of.mean }
    }

    /// The share that is at most so long.
    fn share(&self, most: f64) -> f64 {
        below(self.deviations(most))
    }

    /// The same, and those. The `k`-th moment of a lognormal below a point `b` standard deviations from the
    /// middle is the whole one times `Phi(b - k sigma)`.
    fn within(&self, most: f64) -> (f64, Answers) {
        let at = self.deviations(most);
        let share = below(at);
        let part = |moment: f64| below(at - moment * self.sigma) / share.max(f64::MIN_POSITIVE);
        let square = 1.0 + self.of.cv * self.of.cv;
        let mean = part(1.0);
        let answers = Answers {
            mean: self.of.mean * mean,
            square: (square * part(2.0) / (mean * mean)).max(1.0),
            cube: (square.powi(3) * part(3.0) / mean.powi(3)).max(1.0),
        };
        (share, answers)
    }
}

impl Requests {
    /// Leaves those whose prompt and answer are no longer than a context. Points stand where as much is below as before, of what is
    /// left; answers of long prompts have less room than others.
    pub(super) fn cut_at(&mut self, context: f64, input: Moments, output: Moments) -> Option<Cut> {
        let (prompts, answers) = (Lognormal::new(input), Lognormal::new(output));
        let half = |of: &Lognormal| 1.0 - of.share(context / 2.0);
        if half(&prompts) + half(&answers) < NEVER {
            return None;
        }
        let taken = if input.cv > 0.0 {
            self.cut_prompts(context, &prompts, &answers)
        } else {
            let (share, left) = answers.within(context - input.mean);
            (1.0 - share >= NEVER && share > 0.0).then(|| {
                self.prompts.iter_mut().for_each(|point| point.answers = left);
                share
            })
        }?;
        let over = |of: &dyn Fn(f64, Answers) -> f64| -> f64 {
            self.prompts.iter().map(|point| point.weight * of(point.tokens, point.answers)).sum()
        };
        let (mean_input, mean) = (over(&|tokens, _| tokens), over(&|_, of| of.mean));
        let square = over(&|_, of| of.square * of.mean.powi(2)) / mean.powi(2);
        let cube = over(&|_, of| of.cube * of.mean.powi(3)) / mean.powi(3);
        let held = over(&|tokens, of| of.mean * (tokens + of.square * of.mean / 2.0)) / mean;
        self.beyond = held - (mean_input + mean / 2.0);
        self.answers = Answers { mean, square, cube };
        self.overlap = erfc(square.ln().max(0.0).sqrt() / 2.0);
        Some(Cut { refused: 1.0 - taken, input: mean_input, output: mean })
    }

    /// Moves prompts that scatter to where they are of those that are taken; the share of these, none where it is nearly all, or
    /// nothing.
    fn cut_prompts(&mut self, context: f64, prompts: &Lognormal, answers: &Lognormal) -> Option<f64> {
        let longest = prompts.deviations(context - answers.least()).min(WIDEST);
        let step = (longest + WIDEST) / STEPS as f64;
        let cells: [f64; STEPS] = std::array::from_fn(|index| {
            let at = -WIDEST + step * (index as f64 + 0.5);
            let density = (-at * at / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
            density * step * answers.share(context - prompts.at(at))
        });
        let all: f64 = cells.iter().sum();
        if 1.0 - all < NEVER || all <= 0.0 {
            return None;
        }
        let (mut index, mut before) = (0, 0.0);
        for point in &mut self.prompts {
            let wanted = below(point.deviations) * all;
            while before + cells[index] < wanted && index + 1 < STEPS {
                before += cells[index];
                index += 1;
            }
            let within = ((wanted - before) / cells[index].max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
            point.tokens = prompts.at(-WIDEST + step * (index as f64 + within));
            point.answers = answers.within(context - point.tokens).1;
        }
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Means of prompts, answers, squared answers, and the refused share, by brute force over both.
    fn by_force(context: f64, input: Moments, output: Moments) -> [f64; 4] {
        let (prompts, answers) = (Lognormal::new(input), Lognormal::new(output));
        let (mut all, mut sums) = (0.0, [0.0; 4]);
        // One by itself is counted finely; over both, edges even out.
        let grid = |of: Moments, other: Moments| {
            let count = if of.cv <= 0.0 {
                1
            } else if other.cv <= 0.0 {
                100_000
            } else {
                1_000
            };
            (0..count).map(move |index| (f64::from(index) + 0.5) / f64::from(count) * 14.0 - 7.0)
        };
        for one in grid(input, output) {
            for other in grid(output, input) {
                let weight = (-(one * one + other * other) / 2.0).exp();
                let (prompt, answer) = (prompts.at(one), answers.at(other));
                all += weight;
                if prompt + answer <= context {
                    let taken = [prompt, answer, answer * answer, 1.0];
                    sums = std::array::from_fn(|index| sums[index] + weight * taken[index]);
                }
            }
        }
        let [prompt, answer, square, share] = sums;
        [prompt / share, answer / share, square / share, 1.0 - share / all]
    }

    #[test]
    fn what_is_left_has_the_moments_of_a_count_over_both() {
        let of = |mean, cv| Moments { mean, cv };
        for (context, input, output) in [
            (40_960.0, of(3_000.0, 2.0), of(700.0, 0.0)),
            (40_960.0, of(3_000.0, 2.0), of(700.0, 1.0)),
            (8_192.0, of(3_000.0, 1.0), of(2_000.0, 1.5)),
            (8_192.0, of(3_000.0, 0.0), of(2_000.0, 1.5)),
        ] {
            let requests = Requests::lognormal_within(input, output, Some(context));
            let [prompt, answer, square, refused] = by_force(context, input, output);
            let cut = requests.cut.unwrap();
            assert!((cut.refused - refused).abs() < 2e-3 * refused + 2e-5, "{cut:?} {refused}");
            assert!((cut.input / prompt - 1.0).abs() < 5e-3, "{cut:?} {prompt}");
            assert!((cut.output / answer - 1.0).abs() < 5e-3, "{cut:?} {answer}");
            let found = requests.answers.square * requests.answers.mean.powi(2);
            assert!((found / square - 1.0).abs() < 1e-2, "{found} {square}");
            let fit = |point: &crate::workload::Point| point.tokens + point.answers.mean <= context;
            assert!(requests.prompts.iter().all(fit), "{requests:?}");
        }
    }

    #[test]
    fn what_all_fits_is_left_alone() {
        let of = |mean, cv| Moments { mean, cv };
        let (input, output) = (of(3_000.0, 0.5), of(700.0, 0.5));
        assert_eq!(Requests::lognormal_within(input, output, Some(131_072.0)), Requests::lognormal(input, output));
        assert_eq!(
            Requests::lognormal_within(of(3_000.0, 0.0), output, None),
            Requests::lognormal(of(3_000.0, 0.0), output)
        );
    }
}
