//! Idle time of a pipeline's fill and drain, by schedule.

use crate::parallelism::{Layout, Schedule};
use crate::units::Seconds;

/// The passes of one microbatch through all layers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passes {
    /// Forward, backward, recomputation and exposed messages.
    pub(super) whole: Seconds,
    /// The backward pass.
    pub(super) backward: Seconds,
    /// The gradients of weights, of the backward pass the part that nothing waits for.
    pub(super) weights: Seconds,
}

impl Passes {
    /// Even stages that keep a stage waiting as long as the other stages do that stand around it: all passes but its own, for
    /// `idle` to take the others' part of. A step of 1F1B then takes every stage's passes once and the slowest one's for each
    /// further microbatch, which is exact for stages of any length whose slowest is this one. That chunks of different length
    /// on one stage may wait for each other besides is not counted.
    pub(super) fn around(&self, slow: &Self, stages: u32) -> Self {
        let even = f64::from(stages) / (f64::from(stages) - 1.0);
        Self {
            whole: self.whole.saturating_sub(slow.whole) * even,
            backward: self.backward.saturating_sub(slow.backward) * even,
            weights: self.weights.saturating_sub(slow.weights) * even,
        }
    }
}

/// Idle time of a stage in a step.
///
/// With F and B the passes of a stage, W the weight gradients in B, and p stages: GPipe and 1F1B idle `(p - 1)(F + B)`,
/// interleaved with v chunks a v-th of it (Narayanan et al., arXiv 2104.04473, section 2.2), ZB-H1 `(p - 1)(F + B - 2W)`, and
/// DualPipe, which runs a forward pass beside a backward one, `(p/2 - 1)(F&B + B - 3W)` (Qi et al., arXiv 2401.10241, section
/// 2.3; DeepSeek-V3, arXiv 2412.19437, table 2). The F&B of DualPipe is taken as long as both: what it hides is their
/// messages.
pub(super) fn idle(layout: &Layout, passes: &Passes) -> Seconds {
    let Passes { whole, backward, weights } = *passes;
    let stages = f64::from(layout.pipeline);
    let waits = (stages - 1.0) / stages;
    match layout.schedule {
        _ if layout.pipeline == 1 => Seconds::ZERO,
        Schedule::Gpipe | Schedule::OneF1b | Schedule::Interleaved => {
            whole * (waits / f64::from(layout.virtual_stages))
        }
        Schedule::ZeroBubble => whole.saturating_sub(weights * 2.0) * waits,
        Schedule::DualPipe => (whole + backward).saturating_sub(weights * 3.0) * ((stages / 2.0 - 1.0) / stages),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallelism::SINGLE;

    /// Idle time with a microbatch of all layers taking 8 s forward, 16 s backward, half of that for weights.
    fn of(schedule: Schedule, virtual_stages: u32) -> Seconds {
        let passes = Passes { whole: Seconds::new(24.0), backward: Seconds::new(16.0), weights: Seconds::new(8.0) };
        idle(&Layout { pipeline: 8, schedule, virtual_stages, ..SINGLE }, &passes)
    }

    #[test]
    fn a_slow_stage_waits_for_the_others() {
        // Stages of 1, 2, 2 and 3 s: the last waits for 1 + 2 + 2 s to fill and drain, where even stages of 2 s wait for 6.
        let of = |time: f64| {
            let [whole, backward, weights] = [time, time * 2.0 / 3.0, time / 3.0].map(Seconds::new);
            Passes { whole, backward, weights }
        };
        let layout = Layout { pipeline: 4, ..SINGLE };
        let around = of(8.0).around(&of(3.0), 4);
        assert!((idle(&layout, &around) / Seconds::new(5.0) - 1.0).abs() < 1e-12);
        assert_eq!(idle(&layout, &of(8.0)), Seconds::new(6.0));
        // Zero bubble: 5 s less twice their weights' 5/3 s.
        let zero = Layout { schedule: Schedule::ZeroBubble, ..layout };
        assert!((idle(&zero, &around) / Seconds::new(5.0 / 3.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_published_bubbles() {
        // On a stage of eight F = 1, B = 2 and W = 1: 7 (1 + 2) = 21; half of it with two chunks; 7 (1 + 2 - 2) = 7; and
        // (4 - 1)(3 + 2 - 3) = 6.
        assert_eq!(of(Schedule::Gpipe, 1), Seconds::new(21.0));
        assert_eq!(of(Schedule::OneF1b, 1), Seconds::new(21.0));
        assert_eq!(of(Schedule::Interleaved, 2), Seconds::new(10.5));
        assert_eq!(of(Schedule::ZeroBubble, 1), Seconds::new(7.0));
        assert_eq!(of(Schedule::DualPipe, 1), Seconds::new(6.0));
        let passes = Passes { whole: Seconds::new(24.0), backward: Seconds::new(16.0), weights: Seconds::new(8.0) };
        assert_eq!(idle(&SINGLE, &passes), Seconds::ZERO);
        // Two stages of DualPipe wait for nobody.
        let two = Layout { pipeline: 2, schedule: Schedule::DualPipe, ..SINGLE };
        assert_eq!(idle(&two, &passes), Seconds::ZERO);
    }
}
