//! Two halves of a decode batch on the same ranks: one computes while the other's tokens are with experts.

use super::{Replica, StepTime};
use crate::units::Seconds;

impl Replica<'_> {
    /// Whether a step runs in two halves: where that is asked for, and tokens are exchanged at all.
    pub(super) fn halves(&self) -> bool {
        self.features.two_batches && self.exchanges()
    }

    /// A step in two halves (DeepSeek's dual-batch overlap, open-infra-index, day 6; SGLang's two-batch overlap).
    ///
    /// Both halves run every kernel, so that weights are read twice and units begin twice, each with half of the tokens.
    /// Kernels that send and receive tokens through network cards take the time of those that compute; the rest of exchanges
    /// takes as long as it is left over by the other half's computing, and that of the first layer at least, which nothing hides.
    pub(super) fn in_halves(&self, sequences: f64, context: f64, tokens: f64) -> StepTime {
        let half = self.step_of(sequences / 2.0, context, tokens);
        let both = half.scaled(2.0);
        let of_step = self.hardware.step;
        let computing = both.total().saturating_sub(both.network + of_step * 2.0);
        let layers: f64 = self.shape.experts.iter().map(|layers| layers.layers).sum();
        let own = sequences * tokens / self.spread.accelerators();
        let across = self.beyond(self.spread.stage());
        let kernels = across.map_or(Seconds::ZERO, |across| across.kernel * (own * layers)).min(both.network);
        let first = half.network.saturating_sub(kernels / 2.0) / layers.max(1.0);
        let network = kernels + first.max(both.network.saturating_sub(kernels + computing));
        StepTime { network, overhead: both.overhead.saturating_sub(of_step), ..both }
    }
}

#[cfg(test)]
mod tests {
    use crate::inference::{Across, Features, Replica, Spread, fixture};
    use crate::units::{Bandwidth, Seconds};

    #[test]
    fn large_batches_gain_and_small_ones_lose() {
        let model = fixture::shape("deepseek-v3");
        let across = Across {
            domain: 8.0,
            rate: Bandwidth::new(48e9),
            latency: Seconds::new(40e-6),
            kernel: Seconds::new(0.92e-6),
        };
        let hardware = fixture::h100().across(across);
        let spread = Spread { tensor: 1, attention_data: 64, pipeline: 1, expert_parallel: true, redundant_experts: 0 };
        let plain = Replica::new(&model, &hardware, spread);
        let halves = plain.with(Features { two_batches: true, ..Features::default() });
        let gain = |own: f64| {
            let [plain, halves] = [plain, halves].map(|engine| engine.decode(own * 64.0, 2_000.0, 1.0).total());
            plain / halves
        };
        // LMSYS's deployment on 96 H100 (blog of 2025-05-05, "Overlapping"): decode gains from about 64 tokens a GPU on and
        // loses below.
        assert!(gain(4.0) < 1.0, "{}", gain(4.0));
        assert!(gain(256.0) > 1.1, "{}", gain(256.0));
        // Never more than all of the exchange.
        let step = plain.decode(256.0 * 64.0, 2_000.0, 1.0);
        assert!(halves.decode(256.0 * 64.0, 2_000.0, 1.0).total() > step.total() - step.network);
    }

    #[test]
    fn nothing_changes_where_nothing_is_exchanged() {
        let (model, hardware) = (fixture::shape("llama-3.1-70b"), fixture::h100());
        let plain = Replica::new(&model, &hardware, fixture::tensor(4));
        let halves = plain.with(Features { two_batches: true, ..Features::default() });
        assert_eq!(plain.decode(64.0, 1_000.0, 1.0), halves.decode(64.0, 1_000.0, 1.0));
    }
}
