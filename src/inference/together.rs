//! Prompts that one step takes in together.

use super::{Replica, Request};
use crate::units::Seconds;

/// Times of steps that take in one prompt, one in each attention group, as many as hide the launches of their kernels, and as many
/// as a step holds; between them a step takes longer evenly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Together([(f64, Seconds); 4]);

impl Together {
    /// Of an engine that takes in requests like this one, so many of them at most.
    pub(super) fn new(engine: &Replica<'_>, request: &Request, most: f64) -> Self {
        let most = most.max(1.0);
        let time = |prompts: f64| (prompts, engine.prefill_together(prompts, request.input, request.cached));
        let one = time(1.0);
        let groups = f64::from(engine.spread.attention_data).min(most);
        let all = engine.prompts_of_step(request.input).min(most);
        let of_groups = if groups > 1.0 { time(groups) } else { one };
        if all <= groups {
            return Self([one, of_groups, of_groups, of_groups]);
        }
        // Up to those a step takes as long as its launches, and from there longer as full steps do.
        let (half, full) = (time(f64::midpoint(groups, all)), time(all));
        let longer = (full.1.saturating_sub(half.1) / (full.0 - half.0)).max(Seconds::new(f64::MIN_POSITIVE));
        let hidden = full.0 - full.1.saturating_sub(of_groups.1) / longer;
        let hidden = if hidden > groups && hidden < all { time(hidden) } else { of_groups };
        Self([one, of_groups, hidden, full])
    }

    /// Where prompts fill all steps, so that each takes its part of them.
    pub(super) const fn packed(part: Seconds) -> Self {
        Self([(1.0, part); 4])
    }

    /// Where as many prompts as a step holds always come together.
    pub(super) fn in_step(&self) -> Self {
        let [.., (prompts, time)] = self.0;
        Self::packed(time / prompts)
    }

    /// The prompts of a step that takes in one in each attention group, and the part of it that each takes.
    pub(super) fn of_groups(&self) -> (f64, Seconds) {
        let [_, (prompts, time), ..] = self.0;
        (prompts, time / prompts)
    }

    /// The part that each of so many takes.
    pub(super) fn of(&self, prompts: f64) -> Seconds {
        for window in self.0.windows(2) {
            let &[(from, low), (to, high)] = window else { continue };
            if to > from && prompts <= to {
                let part = ((prompts - from) / (to - from)).max(0.0);
                return (low + (high.saturating_sub(low)) * part) / prompts.max(from);
            }
        }
        let [.., (all, time)] = self.0;
        time / all
    }

    /// The same where a prompt alone takes so long.
    pub(super) fn over(&self, alone: Seconds) -> Self {
        let [(_, one), ..] = self.0;
        Self(self.0.map(|(prompts, time)| (prompts, time * (alone / one))))
    }

    /// The part of a step that one prompt takes where `begin` requests begin in the time of a token, which is that of the
    /// `step` and what prefills hold it up by: a part `held` of their time.
    ///
    /// A step takes in the prompt that begins it and those that came during the one before: `s = 1 + begin P(s) / t` with
    /// `t = step + held begin P(s) / s`, which is a quadratic in `s` where `P` is straight. Where prefills are short beside the step of
    /// decode, it takes those that came during that at least: of as many as chance has it in the time of a token, the mean of
    /// those steps that have any, `begin / (1 - exp(-begin))`.
    pub(super) fn each(&self, step: Seconds, begin: f64, held: f64) -> Seconds {
        let [first, .., last] = self.0;
        if last.0 <= first.0 {
            return first.1;
        }
        // Below the first terms of its series, which spare an exponential where more come during a prefill.
        let most_of_chance = 1.0 + begin * (0.5 + begin / 12.0);
        let with_chance = |prompts: f64| {
            if prompts < most_of_chance { prompts.max(begin / -(-begin).exp_m1()) } else { prompts }
        };
        for window in self.0.windows(2) {
            let &[(from, low), (to, high)] = window else { continue };
            if to <= from {
                continue;
            }
            let slope = high.saturating_sub(low) / step / (to - from);
            // The time of no prompt, by the same line.
            let fixed = low / step - slope * from;
            // begin (fixed + slope s)(s - held (s - 1)) = s (s - 1), in units of the step.
            let free = 1.0 - held;
            let a = 1.0 - begin * slope * free;
            let b = 1.0 + begin * (slope * held + fixed * free);
            let c = begin * fixed * held;
            // a s^2 - b s - c = 0; where prompts come faster than longer steps take them in, there is no end to them.
            let prompts = if a > 0.0 { (b + (b * b + 4.0 * a * c).max(0.0).sqrt()) / (2.0 * a) } else { f64::INFINITY };
            let prompts = with_chance(prompts);
            if prompts <= to {
                let prompts = prompts.max(from);
                return step * ((fixed + slope * prompts) / prompts);
            }
        }
        last.1 / last.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::{Spread, fixture};

    const REQUEST: Request = Request { input: 500.0, cached: 0.0, output: 500.0, beyond: 0.0, spread: 0.0 };

    #[test]
    fn prompts_that_come_during_a_prefill_are_taken_in_by_the_next() {
        let (model, hardware) = (fixture::shape("llama-3.1-70b"), fixture::h100());
        let engine = Replica::new(&model, &hardware, fixture::tensor(4));
        let prefills = Together::new(&engine, &REQUEST, 256.0);
        let alone = engine.prefill(500.0, 0.0);
        let (step, held) = (Seconds::new(0.02), 0.75);
        let each = |begin: f64| prefills.each(step, begin, held);
        // Few come: one at a time. Many: a full step, of 8,192 tokens.
        assert!((each(1e-9) / alone - 1.0).abs() < 1e-6);
        let full = engine.prefill_together(8_192.0 / 500.0, 500.0, 0.0) / (8_192.0 / 500.0);
        assert!((each(1e6) / full - 1.0).abs() < 1e-9 && full < alone);
        // Between them, as many come during a step as it takes in after the first.
        let begin = 0.1;
        let part = each(begin);
        let token = step + part * (held * begin);
        let prompts = 1.0 + 10.0 * begin;
        let near = |count: f64| (1.0 + begin * (part * count / token) - count).abs();
        let found = (100..2_000).map(|tenths| f64::from(tenths) / 100.0).min_by(|a, b| near(*a).total_cmp(&near(*b)));
        let found = found.unwrap_or(prompts);
        let time = engine.prefill_together(found, 500.0, 0.0) / found;
        assert!((time / part - 1.0).abs() < 0.02, "{found}: {time} {part}");
    }

    #[test]
    fn groups_take_a_prompt_each_in_nearly_the_time_of_one() {
        let (model, hardware) = (fixture::shape("deepseek-v3"), fixture::h100());
        let spread = Spread { tensor: 1, attention_data: 8, pipeline: 1, expert_parallel: true, redundant_experts: 0 };
        let engine = Replica::new(&model, &hardware, spread);
        let time = |prompts: f64| engine.prefill_together(prompts, 8_192.0, 0.0);
        // Attention, most of it, goes on side by side; experts work for all eight.
        let ratio = time(8.0) / time(1.0);
        assert!(ratio > 1.2 && ratio < 4.0, "{ratio}");
        assert!((time(16.0) / time(8.0) - 2.0).abs() < 0.1, "{}", time(16.0) / time(8.0));
        // One prompt of all groups' steps is its part of them.
        let packed = engine.packed_prefill(8_192.0, 0.0);
        assert!((packed * 8.0 / time(8.0) - 1.0).abs() < 1e-9);
    }
}
