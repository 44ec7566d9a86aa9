//! The useful share of a job's wall time.

use super::checkpoint::{Checkpoint, best_interval};
use crate::catalog::reliability::RecoveryTimes;
use crate::units::{SECONDS_PER_DAY, Seconds};

/// What passes from a failure until training goes on, without the reading of the checkpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recovery {
    /// Until it is known what failed.
    pub detection: Seconds,
    /// From then until the job runs on a spare.
    pub restart: Seconds,
    /// What its first steps take beyond their usual time.
    pub rewarm: Seconds,
    /// Waiting for a spare, mean over all failures.
    pub spare: Seconds,
}

impl From<&RecoveryTimes> for Recovery {
    fn from(times: &RecoveryTimes) -> Self {
        Self {
            detection: times.detection.value,
            restart: times.restart.value,
            rewarm: times.rewarm.value,
            spare: Seconds::ZERO,
        }
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
    /// Replacing the node, starting the job, reading the checkpoint, the first slow steps.
    pub restart: f64,
    /// Waiting for a spare.
    pub spares: f64,
    /// Waiting for links that flap and pauses that spread, without being interrupted.
    pub network: f64,
}

impl Losses {
    /// All of them.
    pub fn total(&self) -> f64 {
        self.checkpoint + self.rework + self.detection + self.restart + self.spares + self.network
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

/// What goodput depends on but the interval between checkpoints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hazards {
    /// Mean time between interruptions of the job.
    pub mtbf: Seconds,
    /// What a checkpoint takes.
    pub checkpoint: Checkpoint,
    /// What passes until training goes on.
    pub recovery: Recovery,
    /// Share of the time that training waits for its network; below one.
    pub network_stalls: f64,
}

impl Hazards {
    /// The goodput at the best interval between checkpoints, but not below one iteration, nor below the time in which the
    /// checkpoint before is stored.
    pub fn goodput(&self, iteration: Seconds) -> Goodput {
        self.goodput_at(self.best_interval().max(iteration))
    }

    /// The best interval between checkpoints, but not below the time in which the checkpoint before is stored.
    pub fn best_interval(&self) -> Seconds {
        best_interval(self.checkpoint.stall, self.mtbf).max(self.checkpoint.pending)
    }

    /// The goodput at a given interval of useful work between checkpoints.
    ///
    /// Failures come at a constant rate and also during recovery. A segment of work and stall `s` takes
    /// `M (e^(s/M) - 1)` until it succeeds; each of its `e^(s/M) - 1` failed tries is followed by a recovery `R`, which by
    /// the same rule takes `M (e^(R/M) - 1)`. The sum is Daly's complete model, `M e^(R/M) (e^(s/M) - 1)` a segment.
    /// While a checkpoint is not yet stored, a failure costs the segment before it too: on average as much work as the
    /// storing takes, which is counted as a part of `R`. Stalls of the network stretch all of it.
    pub fn goodput_at(&self, interval: Seconds) -> Goodput {
        let Self { mtbf, checkpoint, recovery, network_stalls } = *self;
        let segment = interval + checkpoint.stall;
        let failed_tries = (segment / mtbf).exp_m1();
        let work = mtbf * failed_tries;
        let restart = recovery.restart + checkpoint.read + recovery.rewarm;
        let down = recovery.detection + restart + recovery.spare + checkpoint.pending;
        // Time until an uninterrupted recovery, over its plain length: 1 when failures are rare.
        let repeats = if down > Seconds::ZERO { (mtbf * (down / mtbf).exp_m1()) / down } else { 1.0 };
        let recoveries = failed_tries * repeats;
        let wall = (work + down * recoveries) / (1.0 - network_stalls);
        let lost = Losses {
            checkpoint: checkpoint.stall / wall,
            rework: (work - segment + checkpoint.pending * recoveries) / wall,
            detection: recovery.detection * recoveries / wall,
            restart: restart * recoveries / wall,
            spares: recovery.spare * recoveries / wall,
            network: network_stalls,
        };
        Goodput {
            ratio: interval / wall,
            mtbf,
            checkpoint_interval: interval,
            interruptions_per_day: Seconds::new(SECONDS_PER_DAY) / mtbf,
            lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;
    use proptest::prelude::*;

    const MINUTE: Seconds = Seconds::new(60.0);

    fn blocking(stall: Seconds) -> Checkpoint {
        Checkpoint { size: Bytes::ZERO, stall, pending: Seconds::ZERO, read: Seconds::ZERO }
    }

    const fn recovery(detection: Seconds, restart: Seconds) -> Recovery {
        Recovery { detection, restart, rewarm: Seconds::ZERO, spare: Seconds::ZERO }
    }

    const fn hazards(mtbf: Seconds, checkpoint: Checkpoint, recovery: Recovery) -> Hazards {
        Hazards { mtbf, checkpoint, recovery, network_stalls: 0.0 }
    }

    #[test]
    fn the_wall_time_is_daly_s_complete_model() {
        // M = 24 h, dump 5 min, restart 10 min, interval 117 min:
        // 1440 e^(10/1440) (e^(122/1440) - 1) = 1440 x 1.0069686 x 0.0884148 = 128.204 min a segment.
        let recovery = recovery(Seconds::ZERO, 10.0 * MINUTE);
        let daly = hazards(1_440.0 * MINUTE, blocking(5.0 * MINUTE), recovery);
        let goodput = daly.goodput_at(117.0 * MINUTE);
        assert!((goodput.ratio - 117.0 / 128.204).abs() < 1e-5, "{}", goodput.ratio);
        // A hundredth of the time waits for the network: all else shrinks by a hundredth.
        let stalled = Hazards { network_stalls: 0.01, ..daly }.goodput_at(117.0 * MINUTE);
        assert!((stalled.ratio / goodput.ratio - 0.99).abs() < 1e-12);
    }

    #[test]
    fn where_failures_are_rare_it_is_meta_s_closed_form() {
        // Kokolis et al., arXiv 2410.21680: E[ETTR] = (1 - (u0 + dt/2) / M) / (1 + w / dt).
        // M = 100 h, u0 = 5 min, dt = 60 min, w = 1 min: (1 - 35/6000) / (1 + 1/60) = 0.977869.
        let recovery = recovery(2.0 * MINUTE, 3.0 * MINUTE);
        let goodput = hazards(6_000.0 * MINUTE, blocking(MINUTE), recovery).goodput_at(60.0 * MINUTE);
        assert!((goodput.ratio - 0.977_869).abs() < 2e-4, "{}", goodput.ratio);
    }

    #[test]
    fn llama_3_stays_above_nine_tenths() {
        // 419 interruptions in 54 days; 5.68 TB in the background at 2 TB/s, read at 7; 5 min to detect, 5 to restart.
        // Down 605.6 s a failure: 5.6% of the wall; interval 331 s and pause 5 s: 1.5% each for rework and checkpoints.
        let mtbf = Seconds::new(54.0 * 86_400.0 / 419.0);
        let checkpoint = Checkpoint {
            size: Bytes::new(5.68e12),
            stall: Seconds::new(5.0),
            pending: Seconds::new(2.84),
            read: Seconds::new(0.811),
        };
        let recovery = recovery(5.0 * MINUTE, 5.0 * MINUTE);
        let goodput = hazards(mtbf, checkpoint, recovery).goodput(Seconds::new(4.6));
        assert!((0.90..0.93).contains(&goodput.ratio), "{goodput:?}");
        assert!((goodput.interruptions_per_day - 7.76).abs() < 0.01);
        // Dumps of a minute that block cannot reach nine tenths at this size: sqrt(2 x 60 / 11,135) = 10% are lost to
        // them and to rework alone, 5.4% to recovery.
        let slow = hazards(mtbf, blocking(MINUTE), recovery).goodput(Seconds::new(4.6));
        assert!(slow.ratio < 0.90, "{slow:?}");
    }

    #[test]
    fn a_checkpoint_is_not_begun_before_the_last_is_stored() {
        let storing = Seconds::new(1_000.0);
        let checkpoint = Checkpoint { pending: storing, ..blocking(Seconds::new(1.0)) };
        let goodput = hazards(Seconds::new(10_000.0), checkpoint, recovery(MINUTE, MINUTE)).goodput(Seconds::new(1.0));
        assert_eq!(goodput.checkpoint_interval, storing);
    }

    #[test]
    fn failures_faster_than_a_restart_leave_nothing() {
        // A restart of an hour in a cluster that fails every minute succeeds once in e^60 tries.
        let hopeless = hazards(MINUTE, blocking(Seconds::new(1.0)), recovery(MINUTE, 60.0 * MINUTE));
        let ratio = hopeless.goodput(Seconds::new(1.0)).ratio;
        assert!((0.0..1e-20).contains(&ratio), "{ratio}");
    }

    proptest! {
        #[test]
        fn useful_time_and_losses_make_the_whole(
            mtbf in 60.0..1e8_f64, stall in 0.0..600.0_f64, pending in 0.0..600.0_f64, read in 0.0..600.0_f64,
            detection in 0.0..3_600.0_f64, restart in 0.0..3_600.0_f64, spare in 0.0..3_600.0_f64,
            network_stalls in 0.0..0.5_f64, iteration in 0.1..60.0_f64,
        ) {
            let checkpoint = Checkpoint {
                size: Bytes::ZERO,
                stall: Seconds::new(stall),
                pending: Seconds::new(pending),
                read: Seconds::new(read),
            };
            let (detection, restart) = (Seconds::new(detection), Seconds::new(restart));
            let recovery = Recovery { spare: Seconds::new(spare), rewarm: MINUTE, ..recovery(detection, restart) };
            let hazards = Hazards { network_stalls, ..hazards(Seconds::new(mtbf), checkpoint, recovery) };
            let goodput = hazards.goodput(Seconds::new(iteration));
            prop_assert!((goodput.ratio + goodput.lost.total() - 1.0).abs() < 1e-9);
            prop_assert!(goodput.ratio > 0.0 && goodput.lost.rework >= -1e-12);
        }

        #[test]
        fn no_interval_beats_the_best(hours in 0.1..1_000.0_f64, stall in 0.1..3_000.0_f64, factor in 0.2..5.0_f64) {
            let mtbf = Seconds::new(hours * 3_600.0);
            let hazards = hazards(mtbf, blocking(Seconds::new(stall)), recovery(MINUTE, 5.0 * MINUTE));
            let best = hazards.goodput(Seconds::new(1e-9));
            let other = hazards.goodput_at(best.checkpoint_interval * factor);
            prop_assert!(other.ratio <= best.ratio * (1.0 + 1e-9));
        }

        #[test]
        fn fewer_failures_never_hurt(mtbf in 600.0..1e7_f64, gain in 1.0..10.0_f64, stall in 0.1..100.0_f64) {
            let at = |mtbf| {
                hazards(Seconds::new(mtbf), blocking(Seconds::new(stall)), recovery(MINUTE, 5.0 * MINUTE))
                    .goodput(Seconds::new(1.0))
                    .ratio
            };
            prop_assert!(at(mtbf * gain) >= at(mtbf) * (1.0 - 1e-6));
        }
    }
}
