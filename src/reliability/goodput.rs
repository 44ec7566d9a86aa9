//! The useful share of a job's wall time.

use super::checkpoint::{Checkpoint, daly_interval};
use crate::catalog::reliability::RecoveryTimes;
use crate::units::{SECONDS_PER_DAY, Seconds};

/// What passes from a failure until training goes on, without the reading of the checkpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recovery {
    /// Until it is known what failed.
    pub detection: Seconds,
    /// From then until the job runs on a spare.
    pub restart: Seconds,
}

impl From<&RecoveryTimes> for Recovery {
    fn from(times: &RecoveryTimes) -> Self {
        Self { detection: times.detection.value, restart: times.restart.value }
    }
}

/// What wall time is lost to, as shares of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Losses {
    /// Waiting for checkpoints.
    pub checkpoint: f64,
    /// Work since the last stored checkpoint, done again.
    pub rework: f64,
    /// Failures not yet noticed or understood.
    pub detection: f64,
    /// Replacing the node, starting the job, reading the checkpoint.
    pub restart: f64,
}

impl Losses {
    /// All of them.
    pub fn total(&self) -> f64 {
        self.checkpoint + self.rework + self.detection + self.restart
    }
}

/// The useful share of a job's wall time, and what takes the rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goodput {
    /// Useful time over wall time; with all losses it adds up to one.
    pub ratio: f64,
    /// Mean time between interruptions.
    pub mtbf: Seconds,
    /// Useful work between two checkpoints.
    pub checkpoint_interval: Seconds,
    /// Interruptions a day of wall time.
    pub interruptions_per_day: f64,
    /// What the rest goes to.
    pub lost: Losses,
}

/// The goodput at the best interval between checkpoints: Daly's, but not below one iteration, nor below the time in
/// which the checkpoint before is stored.
pub fn goodput(mtbf: Seconds, checkpoint: &Checkpoint, recovery: Recovery, iteration: Seconds) -> Goodput {
    let interval = daly_interval(checkpoint.stall, mtbf).max(checkpoint.pending).max(iteration);
    goodput_at(interval, mtbf, checkpoint, recovery)
}

/// The goodput at a given interval of useful work between checkpoints.
///
/// Failures come at a constant rate and also during recovery. A segment of work and stall `s` takes
/// `M (e^(s/M) - 1)` until it succeeds; each of its `e^(s/M) - 1` failed tries is followed by a recovery `R`, which by the
/// same rule takes `M (e^(R/M) - 1)`. The sum is Daly's complete model, `M e^(R/M) (e^(s/M) - 1)` a segment.
/// While a checkpoint is not yet stored, a failure costs the segment before it too: on average as much work as the storing
/// takes, which is counted as a part of `R`.
pub fn goodput_at(interval: Seconds, mtbf: Seconds, checkpoint: &Checkpoint, recovery: Recovery) -> Goodput {
    let segment = interval + checkpoint.stall;
    let failed_tries = (segment / mtbf).exp_m1();
    let work = mtbf * failed_tries;
    let restart = recovery.restart + checkpoint.read;
    let down = recovery.detection + restart + checkpoint.pending;
    // Time until an uninterrupted recovery, over its plain length: 1 when failures are rare.
    let repeats = if down > Seconds::ZERO { (mtbf * (down / mtbf).exp_m1()) / down } else { 1.0 };
    let recoveries = failed_tries * repeats;
    let wall = work + down * recoveries;
    let lost = Losses {
        checkpoint: checkpoint.stall / wall,
        rework: (work - segment + checkpoint.pending * recoveries) / wall,
        detection: recovery.detection * recoveries / wall,
        restart: restart * recoveries / wall,
    };
    Goodput {
        ratio: interval / wall,
        mtbf,
        checkpoint_interval: interval,
        interruptions_per_day: Seconds::new(SECONDS_PER_DAY) / mtbf,
        lost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bandwidth, Bytes};
    use crate::workload::CheckpointMode;
    use proptest::prelude::*;

    const MINUTE: Seconds = Seconds::new(60.0);

    fn blocking(stall: Seconds) -> Checkpoint {
        Checkpoint { size: Bytes::ZERO, stall, pending: Seconds::ZERO, read: Seconds::ZERO }
    }

    #[test]
    fn the_wall_time_is_daly_s_complete_model() {
        // M = 24 h, dump 5 min, restart 10 min, interval 117 min:
        // 1440 e^(10/1440) (e^(122/1440) - 1) = 1440 x 1.0069686 x 0.0884148 = 128.204 min a segment.
        let recovery = Recovery { detection: Seconds::ZERO, restart: 10.0 * MINUTE };
        let goodput = goodput_at(117.0 * MINUTE, 1_440.0 * MINUTE, &blocking(5.0 * MINUTE), recovery);
        assert!((goodput.ratio - 117.0 / 128.204).abs() < 1e-5, "{}", goodput.ratio);
    }

    #[test]
    fn where_failures_are_rare_it_is_meta_s_closed_form() {
        // Kokolis et al., arXiv 2410.21680: E[ETTR] = (1 - (u0 + dt/2) / M) / (1 + w / dt).
        // M = 100 h, u0 = 5 min, dt = 60 min, w = 1 min: (1 - 35/6000) / (1 + 1/60) = 0.977869.
        let recovery = Recovery { detection: 2.0 * MINUTE, restart: 3.0 * MINUTE };
        let goodput = goodput_at(60.0 * MINUTE, 6_000.0 * MINUTE, &blocking(MINUTE), recovery);
        assert!((goodput.ratio - 0.977_869).abs() < 2e-4, "{}", goodput.ratio);
    }

    #[test]
    fn llama_3_stays_above_nine_tenths() {
        // 419 interruptions in 54 days; 5.68 TB in the background at 2 TB/s, read at 7; 5 min to detect, 5 to restart.
        // Down 605.6 s a failure: 5.6% of the wall; interval 331 s and pause 5 s: 1.5% each for rework and checkpoints.
        let mtbf = Seconds::new(54.0 * 86_400.0 / 419.0);
        let size = Bytes::new(5.68e12);
        let (write, read) = (Bandwidth::new(2e12), Bandwidth::new(7e12));
        let checkpoint = Checkpoint::new(size, write, read, CheckpointMode::Asynchronous, Seconds::new(5.0));
        let recovery = Recovery { detection: 5.0 * MINUTE, restart: 5.0 * MINUTE };
        let goodput = goodput(mtbf, &checkpoint, recovery, Seconds::new(4.6));
        assert!((0.90..0.93).contains(&goodput.ratio), "{goodput:?}");
        assert!((goodput.interruptions_per_day - 7.76).abs() < 0.01);
        // Dumps of a minute that block cannot reach nine tenths at this size: sqrt(2 x 60 / 11,135) = 10% are lost to
        // them and to rework alone, 5.4% to recovery.
        let slow = super::goodput(mtbf, &blocking(MINUTE), recovery, Seconds::new(4.6));
        assert!(slow.ratio < 0.90, "{slow:?}");
    }

    #[test]
    fn a_checkpoint_is_not_begun_before_the_last_is_stored() {
        let storing = Seconds::new(1_000.0);
        let checkpoint = Checkpoint { pending: storing, ..blocking(Seconds::new(1.0)) };
        let recovery = Recovery { detection: MINUTE, restart: MINUTE };
        let goodput = goodput(Seconds::new(10_000.0), &checkpoint, recovery, Seconds::new(1.0));
        assert_eq!(goodput.checkpoint_interval, storing);
    }

    proptest! {
        #[test]
        fn useful_time_and_losses_make_the_whole(
            mtbf in 60.0..1e8_f64, stall in 0.0..600.0_f64, pending in 0.0..600.0_f64, read in 0.0..600.0_f64,
            detection in 0.0..3_600.0_f64, restart in 0.0..3_600.0_f64, iteration in 0.1..60.0_f64,
        ) {
            let checkpoint = Checkpoint {
                size: Bytes::ZERO,
                stall: Seconds::new(stall),
                pending: Seconds::new(pending),
                read: Seconds::new(read),
            };
            let recovery = Recovery { detection: Seconds::new(detection), restart: Seconds::new(restart) };
            let goodput = goodput(Seconds::new(mtbf), &checkpoint, recovery, Seconds::new(iteration));
            prop_assert!((goodput.ratio + goodput.lost.total() - 1.0).abs() < 1e-9);
            prop_assert!(goodput.ratio > 0.0 && goodput.lost.rework >= -1e-12);
        }

        #[test]
        fn no_interval_beats_daly_s_by_much(hours in 0.5..1_000.0_f64, stall in 1.0..300.0_f64, factor in 0.2..5.0_f64) {
            let (mtbf, checkpoint) = (Seconds::new(hours * 3_600.0), blocking(Seconds::new(stall)));
            let recovery = Recovery { detection: MINUTE, restart: 5.0 * MINUTE };
            let best = goodput(mtbf, &checkpoint, recovery, Seconds::new(0.1));
            let other = goodput_at(best.checkpoint_interval * factor, mtbf, &checkpoint, recovery);
            prop_assert!(other.ratio < best.ratio * (1.0 + 1e-3));
        }

        #[test]
        fn fewer_failures_never_hurt(mtbf in 600.0..1e7_f64, gain in 1.0..10.0_f64, stall in 0.1..100.0_f64) {
            let recovery = Recovery { detection: MINUTE, restart: 5.0 * MINUTE };
            let at = |mtbf| goodput(Seconds::new(mtbf), &blocking(Seconds::new(stall)), recovery, Seconds::new(1.0)).ratio;
            prop_assert!(at(mtbf * gain) >= at(mtbf) * (1.0 - 1e-6));
        }
    }
}
