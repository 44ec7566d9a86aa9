//! The size, time and best spacing of checkpoints.

use roots::{SimpleConvergency, find_root_brent};

use crate::units::{Bandwidth, Bytes, Seconds};
use crate::workload::{CheckpointMode, Optimizer, Precision, Transformer};

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

/// Where checkpoints go, and how fast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CheckpointPath {
    /// What the storage takes in.
    pub write: Bandwidth,
    /// What it gives out.
    pub read: Bandwidth,
    /// What all hosts send to each other over the scale-out network.
    pub peers: Bandwidth,
    /// The copy from accelerators to the memory of their hosts, for which training pauses either way.
    pub snapshot: Seconds,
}

/// The size of a checkpoint: the weights in the precision of the forward pass, and the optimizer's states. Gradients are
/// not kept.
///
/// In mixed precision with Adam that is a BF16 weight (2 bytes), its master copy and two moments in FP32 (4 each): 14
/// bytes a parameter.
pub fn checkpoint_size(model: &Transformer, precision: Precision, optimizer: Optimizer) -> Bytes {
    let all = model.parameters();
    let tables = (all.embedding + all.head) as f64;
    let layers = all.total() as f64 - tables;
    precision.size() * (layers + tables) + optimizer.state_size() * layers + optimizer.table_state_size() * tables
}

/// What a restart reads of a model that only adapters train: its frozen weights, which no checkpoint writes again.
pub fn frozen_size(model: &Transformer, precision: Precision) -> Bytes {
    precision.size() * model.parameters().total() as f64
}

impl Checkpoint {
    /// A checkpoint of a size on its way.
    ///
    /// Every byte is written once and read once; replicas get theirs from each other. A blocking checkpoint waits for the
    /// storage too. One in memory goes from each host to another's memory over the network, beside training, and a host
    /// that replaces another reads that host's part back from its peer: no storage is in the way (Wang et al., GEMINI,
    /// SOSP 2023). It is lost only where both hosts of a pair fail together, which is not modelled.
    pub fn new(size: Bytes, path: &CheckpointPath, mode: CheckpointMode) -> Self {
        let storing = size / path.write;
        let (stall, pending, read) = match mode {
            CheckpointMode::Asynchronous => (path.snapshot, storing, size / path.read),
            CheckpointMode::Blocking => (path.snapshot + storing, Seconds::ZERO, size / path.read),
            // Each host sends its part over its own cards, and the replacement receives one part over its own.
            CheckpointMode::InMemory => (path.snapshot, size / path.peers, size / path.peers),
        };
        Self { size, stall, pending, read }
    }

    /// A checkpoint of adapters on a frozen model of a size: what is written is small beside the model and counts as
    /// nothing, as it does in memory; a restart reads the model.
    pub fn of_adapters(frozen: Bytes, path: &CheckpointPath, mode: CheckpointMode) -> Self {
        Self { read: Self::new(frozen, path, mode).read, ..Self::new(Bytes::ZERO, path, mode) }
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

/// The interval of useful work between checkpoints that leaves the most of the wall time, found numerically: where
/// `1 - t/M = e^(-(t + C)/M)`, the derivative of Daly's complete model `M e^(R/M) (e^((t + C)/M) - 1) / t` being zero. It
/// does not depend on the time `R` of a recovery.
///
/// Between 0 and `M` there is exactly one such `t` for any stall `C > 0`; without a stall it is 0.
pub fn best_interval(stall: Seconds, mtbf: Seconds) -> Seconds {
    let stall = stall / mtbf;
    if stall <= 0.0 || !stall.is_finite() {
        return Seconds::ZERO;
    }
    let slope = |interval: f64| -interval - (-(interval + stall)).exp_m1();
    let mut convergency = SimpleConvergency { eps: 1e-14, max_iter: 200 };
    // Young's, which the optimum never exceeds but where stalls are longer than failures are apart.
    find_root_brent(0.0, 1.0, &slope, &mut convergency)
        .map_or_else(|_| daly_interval(stall * mtbf, mtbf), |found| mtbf * found)
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
    fn the_numeric_optimum_is_near_daly_s_where_stalls_are_short() {
        // t/M = x solves 1 - x = e^-(x + c). At c = 5/1440 by series x = sqrt(2c) (1 - sqrt(2c)/3 ...) : 116.69 min is Daly's.
        let minutes = |hours: f64| best_interval(Seconds::new(300.0), Seconds::new(hours * 3_600.0)).value() / 60.0;
        assert!((minutes(24.0) - 116.69).abs() < 0.01, "{}", minutes(24.0));
        assert!((minutes(6.0) - 56.71).abs() < 0.02, "{}", minutes(6.0));
        // At M = 15 min the series of Daly is 0.05 min off: 1 - x = e^-(x + 1/3) has x = 0.606.
        let x = minutes(0.25) / 15.0;
        assert!((1.0 - x - (-(x + 1.0 / 3.0)).exp()).abs() < 1e-9 && (minutes(0.25) - 9.14).abs() < 0.1, "{x}");
    }

    #[test]
    fn the_optimum_is_between_nothing_and_a_failure() {
        let mtbf = Seconds::new(100.0);
        assert_eq!(best_interval(Seconds::ZERO, mtbf), Seconds::ZERO);
        for stall in [1e-6, 1.0, 100.0, 1e4] {
            let found = best_interval(Seconds::new(stall), mtbf);
            assert!(found > Seconds::ZERO && found <= mtbf, "{stall}: {found}");
        }
    }

    fn path() -> CheckpointPath {
        CheckpointPath {
            write: Bandwidth::new(2e12),
            read: Bandwidth::new(4e12),
            peers: Bandwidth::new(100e12),
            snapshot: Seconds::new(5.0),
        }
    }

    #[test]
    fn a_checkpoint_goes_to_storage_or_to_a_peer() {
        // 405.853 G parameters x 14 B = 5.682 TB; at 2 TB/s, which Llama 3's storage sustained, 2.84 s.
        let size = Bytes::new(14.0 * 405.853e9);
        let blocking = Checkpoint::new(size, &path(), CheckpointMode::Blocking);
        assert!((blocking.stall.value() - 7.841).abs() < 1e-3);
        let behind = Checkpoint::new(size, &path(), CheckpointMode::Asynchronous);
        assert_eq!((behind.stall, behind.pending), (Seconds::new(5.0), size / path().write));
        // 2,000 hosts at 50 GB/s each: 57 ms.
        let memory = Checkpoint::new(size, &path(), CheckpointMode::InMemory);
        assert!((memory.pending.value() - 0.056_82).abs() < 1e-5 && memory.read == memory.pending);
    }

    #[test]
    fn a_checkpoint_keeps_weights_and_states() {
        let model = crate::workload::shapes::llama(126, 16_384, 128, 53_248);
        let parameters = model.parameters().total() as f64;
        let per = |optimizer| checkpoint_size(&model, Precision::Bf16, optimizer) / Bytes::new(parameters);
        assert!((per(Optimizer::Adam) - 14.0).abs() < 1e-9);
        assert!((per(Optimizer::AdamBf16) - 10.0).abs() < 1e-9);
        assert!(per(Optimizer::Muon) > 10.0 && per(Optimizer::Muon) < 10.1);
    }
}
