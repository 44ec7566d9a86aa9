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
