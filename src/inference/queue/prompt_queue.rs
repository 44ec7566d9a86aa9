//! The wait of prompts for each other, where a step takes in all that have come: of engines that decode besides, and of workers that
//! do nothing else.

use statrs::function::gamma::gamma_lr;

use super::scattered::Scattered;
use super::waiting::{Wait, erlang_c};
use crate::units::{RequestRate, Seconds};

/// Steps back in which the chance that nothing comes during a step is found.
const STEPS_BACK: u32 = 4;
/// Iterations of the mean step that goes with it.
const ITERATIONS: u32 = 6;

/// Prompts that come to one engine. A step begins with the prompts that came during the one before, up to a number; or as one
/// comes, where nothing was to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::inference) struct PromptQueue {
    pub(in crate::inference) rate: RequestRate,
    /// Squared coefficient of variation of the times between them.
    pub(in crate::inference) coming: f64,
    /// By how much a step of one prompt is longer than its part of a full step.
    pub(in crate::inference) fixed: Seconds,
    /// The part of a full step that a prompt takes.
    pub(in crate::inference) served: Scattered,
    /// Prompts that a step takes, at most.
    pub(in crate::inference) most: f64,
}

/// Those that wait, in times that a prompt is served.
struct Waits {
    share: f64,
    mean: f64,
    /// Variance over the squared mean, and third central moment over the cubed one.
    scatter: [f64; 2],
}

impl PromptQueue {
    /// How much later first tokens come than where each prompt had the engine to itself, for those that find it at work: the rest
    /// of the step under way, prompts before them, and those that their own step takes in besides.
    ///
    /// Where steps take all that has come, steps `L` follow one another as `L' = fixed + the work that came during L`, and one
    /// that finds nothing takes the next prompt: their first three moments follow from each other exactly for arrivals at random,
    /// and a prompt that comes during one waits for its rest (even over it) and for all the work that comes during it. Where
    /// steps take one, prompts wait as in M/G/1 whose first of a busy time takes longer (Welch 1964). What lies between is
    /// weighed by the prompts behind one in its step, of which there are no more than half a step's on average. Arrivals
    /// that are more or less even than at random change the mean and the share that waits as Kraemer and Langenbach-Belz (1976) found.
    ///
    /// Against a simulation event by event, quantiles of first tokens are met within 10% up to 90% of what can be served where
    /// prompts come at random, 14% for P99 of prompts whose lengths have a coefficient of variation of 1. Where they come in
    /// bursts or evenly, a third is missed in places.
    pub(in crate::inference) fn wait(&self) -> Wait {
        let load = self.rate.over(self.served.mean);
        if load <= 0.0 || load >= 1.0 {
            return Wait::NONE;
        }
        let fixed = self.fixed / self.served.mean;
        let (square, cube) = (1.0 + self.served.variance, 1.0 + 3.0 * self.served.variance + self.served.third);
        let peaked = (self.coming - 1.0).max(0.0);
        let work = Work { load, fixed, square, cube, coming: [square + peaked, cube + 3.0 * peaked * square] };
        let (gathered, behind) = work.gathered();
        let (share_alone, before, squared) = work.one_by_one();
        // Prompts behind one in its step: as many as come while it waits for that, up to half a step.
        let most = (self.most - 1.0).max(f64::MIN_POSITIVE) / 2.0;
        let crowd = behind.mean * (behind.square / 2.0).sqrt() / most;
        let part = if crowd > 1e-9 { (1.0 - (-crowd).exp()) / crowd } else { 1.0 };
        let behind_it = behind.mean * part;
        let waiting = part * (gathered.mean - behind.mean) + (1.0 - part) * before;
        let alone = before + behind_it;
        let of_one = (squared + 2.0 * before * behind_it + behind_it * behind_it * 4.0 / 3.0) / (alone * alone) - 1.0;
        let whole = part.powi(3);
        let [variance, third] = [0, 1].map(|moment| {
            // As skewed as a gamma distribution where prompts wait for many before them.
            let of_one = [of_one, 2.0 * of_one * of_one][moment];
            whole * gathered.scatter[moment] + (1.0 - whole) * of_one
        });
        let share = part * gathered.share + (1.0 - part) * share_alone;
        let found = work.uneven(self.coming, part, share, (waiting, behind_it));
        let (share, mean) = work.even_steps(self.coming, part, found);
        if share <= 0.0 || mean <= 0.0 {
            return Wait::NONE;
        }
        debug_assert!(variance.is_finite() && mean.is_finite(), "{self:?}");
        Wait { share: share.min(1.0), mean: self.served.mean * mean, variance: variance.max(0.0), third }
    }
}

impl PromptQueue {
    /// The wait where so many attention groups take a prompt each before one takes a second, and a step of all of them takes
    /// that part for each prompt. A step grows by one measure up to a prompt in each group, and by another with every prompt beyond.
    /// Where it grows less at first it takes the longer of both, and so do prompts wait; else the shorter.
    pub(in crate::inference) fn side_by_side(&self, groups: f64, part: Seconds) -> Wait {
        if groups <= 1.0 {
            return self.wait();
        }
        let (alone, all) = (self.fixed + self.served.mean, part * groups);
        let next = (all.saturating_sub(alone) / (groups - 1.0)).max(self.served.mean * 1e-3);
        let few = Self { fixed: alone.saturating_sub(next), served: Scattered { mean: next, ..self.served }, ..*self };
        let many = Self { fixed: all.saturating_sub(self.served.mean * groups), ..*self };
        let grows_less_at_first = next <= self.served.mean;
        let of_many = many.wait();
        // As many prompts as no step takes, were it to grow as at first, are never few.
        if !grows_less_at_first && few.rate.over(next) >= 1.0 {
            return of_many;
        }
        let of_few = few.wait();
        if (of_few.over_all() > of_many.over_all()) == grows_less_at_first { of_few } else { of_many }
    }
}

impl PromptQueue {
    /// The wait of prompts that go to the engine of so many with the fewest, where one engine by itself has `alone`.
    ///
    /// They wait where all engines are at work, as often as in a queue with as many servers (Erlang's C over the load of one), and
    /// then for the rest of a step at least; what one by itself has beyond that, a queue that all share has as a part (for one engine
    /// the wait itself, under a load near the whole that of all pooled, as queues kept level come to: Foschini and Salz, Bell System Technical
    /// Journal 57(6), 1978).
    pub(in crate::inference) fn of_the_shortest(&self, alone: Wait, engines: f64) -> Wait {
        let load = self.rate.over(self.served.mean);
        if engines <= 1.0 || alone.share <= 0.0 || load >= 1.0 {
            return alone;
        }
        let rest = ((self.fixed + self.served.mean * (1.0 + self.served.variance)) / 2.0).min(alone.mean);
        let share = alone.share * erlang_c(engines, engines * load) / load;
        Wait { share, mean: rest + (alone.mean.saturating_sub(rest)) / engines, ..alone }
    }
}

/// Work that comes, in units of what a prompt takes of a full step.
#[derive(Clone, Copy, Debug)]
struct Work {
    load: f64,
    fixed: f64,
    square: f64,
    cube: f64,
    /// Mean square and cube with which the work of a time scatters, where prompts do not come at random.
    coming: [f64; 2],
}

/// The work of prompts that come behind one and are taken in with it: its mean, and its mean square over the squared mean.
struct Behind {
    mean: f64,
    square: f64,
}

impl Work {
    /// Where steps take all that has come.
    fn gathered(&self) -> (Waits, Behind) {
        let Self { load, fixed, square, cube, coming: [square_coming, cube_coming] } = *self;
        let none = self.none_come();
        let mean = (fixed + none) / (1.0 - load);
        let second = (fixed * fixed + 2.0 * fixed * (load * mean + none) + load * square_coming * mean + none * square)
            / (1.0 - load * load);
        let came = load * square_coming * mean + load * load * second;
        let third = (fixed.powi(3)
            + 3.0 * fixed * fixed * (load * mean + none)
            + 3.0 * fixed * (came + none * square)
            + load * cube_coming * mean
            + 3.0 * load * load * square_coming * second
            + none * cube)
            / (1.0 - load.powi(3));
        let came_cubed = load * cube_coming * mean + 3.0 * load * load * square_coming * second + load.powi(3) * third;
        // Mean fourth powers are at least that.
        let fourth_power = cube * cube / square;
        let fourth = (fixed.powi(4)
            + 4.0 * fixed.powi(3) * (load * mean + none)
            + 6.0 * fixed * fixed * (came + none * square)
            + 4.0 * fixed * (came_cubed + none * cube)
            + load * fourth_power * mean
            + load * load * (4.0 * cube_coming + 3.0 * square_coming * square_coming) * second
            + 6.0 * load.powi(3) * square_coming * third
            + none * fourth_power)
            / (1.0 - load.powi(4));
        // The step that a prompt finds is longer than the mean by as much as it takes longer to come into.
        let (found, found_squared, found_cubed) = (second / mean, third / mean, fourth / mean);
        let waits = mean / (mean + none / load);
        let all = found * (0.5 + load);
        let all_squared = found_squared * (1.0 / 3.0 + load + load * load) + load * square_coming * found;
        let all_cubed = found_cubed * (0.25 + load + 1.5 * load * load + load.powi(3))
            + found_squared * load * square_coming * (1.5 + 3.0 * load)
            + load * cube_coming * found;
        let (squares, cubes) = (all_squared / (all * all), all_cubed / all.powi(3));
        let behind = found * load / 2.0;
        let behind_squared = load * load * found_squared / 3.0 + load * square_coming * found / 2.0;
        let behind = Behind { mean: behind, square: behind_squared / (behind * behind) };
        (Waits { share: waits, mean: all, scatter: [squares - 1.0, cubes - 3.0 * squares + 2.0] }, behind)
    }

    /// The chance that nothing comes during a step, at random. The transform of steps at a point is that at one nearer to zero,
    /// where it is known from their mean.
    fn none_come(&self) -> f64 {
        let Self { load, fixed, .. } = *self;
        let (mut at, mut of_next, mut of_none) = (load, 1.0, 0.0);
        for _ in 0..STEPS_BACK {
            let (one, begun) = ((-at).exp(), (-at * fixed).exp());
            of_none -= of_next * begun * (1.0 - one);
            of_next *= begun;
            at = load * (1.0 - one);
        }
        let mut none = 0.5;
        for _ in 0..ITERATIONS {
            none = of_next * (-at * (fixed + none) / (1.0 - load)).exp() / (1.0 - of_none);
        }
        none
    }

    /// Where a step takes one prompt: the share that waits, and their mean and mean square.
    fn one_by_one(&self) -> (f64, f64, f64) {
        let Self { load, fixed, square, cube, coming: [square_coming, cube_coming] } = *self;
        let first = 1.0 + fixed;
        let first_square = square + fixed * (2.0 + fixed);
        let first_cube = cube + fixed * (3.0 * square + fixed * (3.0 + fixed));
        let free = 1.0 - load;
        let begins = free + load * first;
        let share = load * first / begins;
        let mean = load * square_coming / (2.0 * free) + load * (first_square - square) / (2.0 * begins);
        let squared =
            2.0 * mean * mean + load * cube_coming / (3.0 * free) + load * (first_cube - cube) / (3.0 * begins);
        (share, mean / share, squared / share)
    }

    /// The share that waits and its mean, where prompts come by that squared coefficient of variation instead of at random.
    fn uneven(&self, coming: f64, part: f64, share: f64, (waiting, behind): (f64, f64)) -> (f64, f64) {
        if (coming - 1.0).abs() < 1e-9 {
            return (share, waiting + behind);
        }
        let serving = self.square - 1.0;
        let free = 1.0 - share;
        if coming > 1.0 {
            let more = 4.0 * share / (coming + share * share * (4.0 * coming + serving));
            let waits = share + (coming - 1.0) * share * free * more;
            let less = (-1.4 * free * free * (coming - 1.0) / (coming + 4.0 * serving)).exp();
            let mean = (waiting + behind) * less.powf((1.0 - part).powi(3)) * share / waits;
            return (waits, mean);
        }
        let more = (1.0 + coming + share * serving)
            / (1.0 + share * (serving - 1.0) + share * share * (4.0 * coming + serving));
        let waits = (share + (coming - 1.0) * share * free * more).max(0.0);
        let scatter = coming + serving;
        if waits <= 1e-9 || scatter <= 1e-9 {
            return (0.0, 0.0);
        }
        let less = (-2.0 * free * (1.0 - coming).powi(2) / (3.0 * share * scatter)).exp();
        (waits, waiting * (scatter / (1.0 + serving)) * less * share / waits + behind * less)
    }

    /// The share that waits and its mean, where prompts come more evenly than at random and steps take all that has come: found as
    /// of a queue that serves one by one, which is right as far as a step grows with its prompts.
    ///
    /// As far as it does not, who comes during a step waits for its rest however evenly others come: evenness makes the steps
    /// alike, and lets prompts by themselves find no step under way where the next comes after theirs (times between them as
    /// of a gamma distribution).
    fn even_steps(&self, coming: f64, part: f64, (share, mean): (f64, f64)) -> (f64, f64) {
        let fixed = part * self.fixed / (1.0 + self.fixed);
        if coming >= 1.0 || fixed <= 0.0 {
            return (share, mean);
        }
        let serving = self.square - 1.0;
        // Cumulants of the work that comes in a long time.
        let skew = self.cube - 3.0 * self.square + 2.0;
        let cumulants = [serving + coming, skew + 3.0 * coming * serving + coming * coming];
        let (steps, _) = Self { coming: cumulants, ..*self }.gathered();
        let during = self.load * (1.0 + self.fixed);
        let comes = if coming > 1e-3 { gamma_lr(coming.recip(), during / coming) } else { f64::from(during >= 1.0) };
        let waits = (steps.share * comes / (1.0 - (-during).exp())).min(1.0);
        let all = fixed * waits * steps.mean + (1.0 - fixed) * share * mean;
        let share = fixed * waits + (1.0 - fixed) * share;
        if share > 1e-9 { (share, all / share) } else { (0.0, 0.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::simulation::Draws;
    use crate::inference::together::Together;
    use crate::inference::{Replica, Request, Spread, fixture};
    use crate::units::to_integer;

    fn queue(rate: f64, served: Scattered, most: f64) -> PromptQueue {
        PromptQueue { rate: RequestRate::new(rate), coming: 1.0, fixed: Seconds::ZERO, served, most }
    }

    /// Mean time until a prompt's step is done where every so manieth of those that come at random comes to one worker, step by step.
    fn simulated(step: &[f64], rate: f64, workers: usize) -> f64 {
        let (mut draws, mut at) = (Draws::new(), 0.0);
        let coming: Vec<f64> = std::iter::repeat_with(|| {
            at += (0..workers).map(|_| draws.exponential(rate.recip())).sum::<f64>();
            at
        })
        .take(50_000)
        .collect();
        let (mut next, mut now, mut total) = (0, 0.0_f64, 0.0);
        while next < coming.len() {
            now = now.max(coming[next]);
            let taken = coming[next..].iter().take(step.len()).take_while(|at| **at <= now).count();
            now += step[taken - 1];
            total += coming[next..next + taken].iter().map(|at| now - at).sum::<f64>();
            next += taken;
        }
        total / coming.len() as f64
    }

    #[test]
    fn workers_in_turn_take_prompts_in_as_step_by_step() {
        let (experts, dense, hardware) =
            (fixture::shape("deepseek-v3"), fixture::shape("llama-3.1-70b"), fixture::h100());
        let groups = |count| {
            let spread =
                Spread { tensor: 1, attention_data: count, pipeline: 1, expert_parallel: true, redundant_experts: 0 };
            Replica::new(&experts, &hardware, spread)
        };
        // Within a few percent up to 60% of what can be taken in; less well where steps are nearly always full, the less of a step is
        // the same however many prompts it takes: launches were such a part, and are hidden behind the prompts now, so that the
        // formulas' own error there shows.
        let cases = [
            (groups(8), 8_192.0, [0.02, 0.03, 0.1, 0.26]),
            (groups(8), 2_048.0, [0.02, 0.02, 0.03, 0.22]),
            (groups(32), 2_048.0, [0.08, 0.02, 0.03, 0.17]),
            (Replica::new(&dense, &hardware, fixture::tensor(4)), 2_048.0, [0.01, 0.01, 0.02, 0.16]),
            (Replica::new(&dense, &hardware, fixture::tensor(4)), 500.0, [0.01, 0.01, 0.05, 0.35]),
            (Replica::new(&dense, &hardware, fixture::tensor(4)), 8_192.0, [0.01, 0.01, 0.03, 0.1]),
        ];
        for (engine, input, near) in cases {
            let request = Request { input, cached: 0.0, output: 100.0, beyond: 0.0, spread: 0.0 };
            let (groups, part) = Together::new(&engine, &request, f64::INFINITY).of_groups();
            let most = to_integer::<u32>(engine.prompts_of_steps(input, 0.0));
            let step: Vec<f64> =
                (1..=most).map(|prompts| engine.prefill_together(prompts.into(), input, 0.0).value()).collect();
            let (alone, all) = (engine.prefill(input, 0.0), *step.last().unwrap());
            let each = all / f64::from(most);
            for workers in [1_u32, 4, 16] {
                for (load, near) in [0.05, 0.3, 0.6, 0.9].into_iter().zip(near) {
                    let rate = load / each;
                    let queue = PromptQueue {
                        coming: f64::from(workers).recip(),
                        fixed: alone.saturating_sub(Seconds::new(each)),
                        ..queue(rate, always(each), most.into())
                    };
                    let reckoned = (alone + queue.side_by_side(groups, part).over_all()).value();
                    let found = simulated(&step, rate * f64::from(workers), workers as usize);
                    assert!(
                        (reckoned / found - 1.0).abs() < near,
                        "{input} to {workers}, load {load}: {reckoned}, {found} step by step"
                    );
                }
            }
        }
    }

    fn always(time: f64) -> Scattered {
        Scattered { mean: Seconds::new(time), variance: 0.0, third: 0.0 }
    }

    #[test]
    fn steps_of_one_prompt_are_an_m_g_1_queue() {
        // Pollaczek and Khinchine: 0.8 / (2 x 0.2) of a second where all take one, twice as long where times are exponential.
        let wait = queue(0.8, always(1.0), 1.0).wait();
        assert!((wait.share - 0.8).abs() < 1e-9 && (wait.over_all().value() - 2.0).abs() < 1e-9, "{wait:?}");
        let wait = queue(0.8, Scattered { variance: 1.0, third: 2.0, ..always(1.0) }, 1.0).wait();
        assert!((wait.over_all().value() - 4.0).abs() < 1e-9 && (wait.variance - 1.0).abs() < 1e-9, "{wait:?}");
        // What has time for all and comes at even times never waits.
        assert_eq!(PromptQueue { coming: 0.0, ..queue(0.8, always(1.0), 1.0) }.wait(), Wait::NONE);
    }

    #[test]
    fn a_step_takes_what_came_during_the_one_before() {
        // Steps of 1 s whatever they take, one after another where many come: a prompt waits for half of one on average, evenly
        // up to all of it.
        let steps = PromptQueue { fixed: Seconds::new(1.0), ..queue(40.0, always(1e-6), 1e6) };
        let wait = steps.wait();
        assert!((wait.share - 1.0).abs() < 1e-6 && (wait.mean.value() - 0.5).abs() < 1e-3, "{wait:?}");
        assert!((wait.variance - 1.0 / 3.0).abs() < 1e-3 && wait.third.abs() < 1e-3, "{wait:?}");
        // Eight groups take a prompt each in 1.2 s, and one by itself takes 1 s.
        let groups = PromptQueue { fixed: Seconds::new(0.875), ..queue(6.0, always(0.125), 64.0) };
        let (side_by_side, in_turn) = (groups.side_by_side(8.0, Seconds::new(0.15)), groups.wait());
        assert!(side_by_side.over_all() < in_turn.over_all() * 0.7, "{side_by_side:?} {in_turn:?}");
    }

    #[test]
    fn more_prompts_never_wait_for_less() {
        // Steps of 8 groups that grow less, as much and more at first than with every prompt beyond.
        for all in [1.2, 1.4, 1.7, 2.5, 4.0] {
            for scatter in [0.0, 0.5, 2.0] {
                let served = Scattered { variance: scatter, third: 2.0 * scatter * scatter, ..always(0.125) };
                let wait = |load: f64| {
                    let prompts = PromptQueue { fixed: Seconds::new(0.7), ..queue(load * 8.0, served, 64.0) };
                    prompts.side_by_side(8.0, Seconds::new(all / 8.0)).over_all()
                };
                let mut before = Seconds::ZERO;
                for load in (1..1000).map(|part| f64::from(part) / 1000.0) {
                    let found = wait(load);
                    assert!(found >= before, "{all} {scatter} {load}: {found:?} {before:?}");
                    before = found;
                }
                assert!(before.value() > 10.0, "{all} {scatter}: {before:?} at the most");
            }
        }
    }

    #[test]
    fn a_few_long_prompts_hold_up_some_and_not_most() {
        let second = Seconds::new;
        let served = Scattered::of([(second(0.15), 0.98), (second(5.0), 0.02)].into_iter());
        let wait = queue(2.0, served, 6.0).wait();
        assert!(wait.variance > 1.0 && wait.third < 4.0 * wait.variance * wait.variance, "{wait:?}");
    }
}
