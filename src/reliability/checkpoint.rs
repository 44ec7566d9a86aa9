//! The size, time and best spacing of checkpoints.

use crate::units::{Bandwidth, Bytes, Seconds};
use crate::workload::CheckpointMode;

/// What a checkpoint keeps of a parameter in mixed precision with Adam: a BF16 weight (2 bytes) and its master copy and
/// two moments in FP32 (4 each).
pub const ADAM_STATE_PER_PARAMETER: Bytes = Bytes::new(14.0);

/// What one checkpoint takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checkpoint {
    /// Its size.
    pub size: Bytes,
    /// How long training waits for it.
    pub stall: Seconds,
    /// How long after that it is not yet stored, so that a failure falls back to the one before.
    pub pending: Seconds,
    /// How long a restart takes to read it.
    pub read: Seconds,
}

impl Checkpoint {
    /// A checkpoint of a size on a storage system.
    ///
    /// `snapshot` is the copy to the hosts, for which training pauses either way; a blocking checkpoint then waits for the
    /// storage too. Every byte is written once and read once; replicas get theirs from each other.
    pub fn new(size: Bytes, write: Bandwidth, read: Bandwidth, mode: CheckpointMode, snapshot: Seconds) -> Self {
        let storing = size / write;
        let (stall, pending) = match mode {
            CheckpointMode::Asynchronous => (snapshot, storing),
            CheckpointMode::Blocking => (snapshot + storing, Seconds::ZERO),
        };
        Self { size, stall, pending, read: size / read }
    }
}

/// Young's interval of useful work between checkpoints: `sqrt(2 C M)`.
///
/// Young, "A first order approximation to the optimum checkpoint interval", CACM 17 (1974). Good while the stall `C` is
/// far below the mean time between failures `M`.
pub fn young_interval(stall: Seconds, mtbf: Seconds) -> Seconds {
    mtbf * (2.0 * (stall / mtbf)).sqrt()
}

/// Daly's interval of useful work between checkpoints, to higher order (Daly 2006, equation 37): for `C < 2M`
/// `sqrt(2 C M) [1 + 1/3 sqrt(C / 2M) + 1/9 (C / 2M)] - C`, and `M` beyond.
pub fn daly_interval(stall: Seconds, mtbf: Seconds) -> Seconds {
    let half = stall / mtbf / 2.0;
    if half >= 1.0 {
        return mtbf;
    }
    young_interval(stall, mtbf) * (1.0 + half.sqrt() / 3.0 + half / 9.0) - stall
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daly_s_optimum_is_that_of_the_paper() {
        // Daly 2006, figures 3 to 5: with a dump time of 5 min, 117 min at M = 24 h, 57 min at 6 h, 9.1 min at 0.25 h.
        // By hand at 24 h: sqrt(2 x 5 x 1440) = 120; C / 2M = 0.001736; 120 (1 + 0.013889 + 0.000193) - 5 = 116.69.
        for (hours, minutes) in [(24.0, 116.69), (6.0, 56.71), (0.25, 9.14)] {
            let interval = daly_interval(Seconds::new(300.0), Seconds::new(hours * 3_600.0));
            assert!((interval.value() / 60.0 - minutes).abs() < 0.005, "{hours} h: {interval}");
        }
    }

    #[test]
    fn young_s_optimum_is_a_square_root() {
        // sqrt(2 x 60 s x 8,424 s) = 1,005.4 s; the dump then takes 6% and the lost work another 6%.
        let interval = young_interval(Seconds::new(60.0), Seconds::new(2.34 * 3_600.0));
        assert!((interval.value() - 1_005.4).abs() < 0.1);
    }

    #[test]
    fn when_a_dump_takes_longer_than_two_failures_the_interval_is_their_mean_time() {
        let mtbf = Seconds::new(100.0);
        assert_eq!(daly_interval(Seconds::new(200.0), mtbf), mtbf);
    }

    #[test]
    fn a_checkpoint_is_fourteen_bytes_a_parameter() {
        // 405.853 G parameters x 14 B = 5.682 TB; at 2 TB/s, which Llama 3's storage sustained, 2.84 s.
        let size = ADAM_STATE_PER_PARAMETER * 405.853e9;
        let rate = Bandwidth::new(2e12);
        let blocking = Checkpoint::new(size, rate, rate, CheckpointMode::Blocking, Seconds::new(5.0));
        assert!((blocking.stall.value() - 7.841).abs() < 1e-3);
        let behind = Checkpoint::new(size, rate, rate, CheckpointMode::Asynchronous, Seconds::new(5.0));
        assert_eq!((behind.stall, behind.pending), (Seconds::new(5.0), size / rate));
    }
}
