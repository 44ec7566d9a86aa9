//! Two halves of a decode batch on the same ranks: one computes while the other's tokens are with experts.

use crate::inference::{Context, Replica, StepTime};
use crate::units::Seconds;

impl Replica<'_> {
    /// Whether a step runs in two halves: where that is asked for, and tokens are exchanged at all.
    pub(in crate::inference) fn halves(&self) -> bool {
        self.features.two_batches && self.exchanges()
    }

    /// A step in two halves (DeepSeek's dual-batch overlap, open-infra-index, day 6; SGLang's two-batch overlap).
    ///
    /// Both halves run every kernel, so that weights are read twice and units begin twice, each with half of the tokens.
    /// They take turns as DeepSeek's published profile draws it (deepseek-ai/profile-data, decoding): tokens of one half are on
    /// their way to experts while it computes its shared expert and the other half what precedes its attention; they come back
    /// while the other half attends. What either way takes longer is waited for, and so is what the first layer exchanges. Kernels
    /// that send and receive through network cards take the time of those that compute.
    pub(in crate::inference) fn in_halves(&self, sequences: f64, context: Context, tokens: f64) -> StepTime {
        let half = self.step_of(sequences / 2.0, context, tokens);
        let both = half.scaled(2.0);
        let layers: f64 = self.shape.experts.iter().map(|layers| layers.layers).sum();
        let of_half = self.of_stage(sequences / 2.0);
        let own = of_half / f64::from(self.spread.attention_data);
        let padded = tokens * self.padding(own);
        let ways = self.ways(of_half * padded);
        let across = self.beyond(self.spread.stage());
        let sending = across.map_or(Seconds::ZERO, |across| across.kernel * (own / self.tensor() * tokens * layers));
        let exchange = ways[0] + ways[1];
        let kernels = sending.min(exchange);
        let behind = self.behind(own, context, tokens, padded);
        let waited: Seconds =
            ways.iter().zip(behind).map(|(way, behind)| way.saturating_sub(kernels / 2.0 + behind)).sum();
        let first = (exchange - kernels) / layers.max(1.0);
        let network = both.network.saturating_sub(exchange * 2.0) + kernels * 2.0 + first.max(waited * 2.0);
        StepTime { network, overhead: both.overhead.saturating_sub(self.hardware.step), ..both }
    }

    /// What is computed behind the ways of a half to its experts, and back, in all layers that have experts; about half of attention's
    /// projections and kernels are before it attends.
    fn behind(&self, own: f64, context: Context, tokens: f64, padded: f64) -> [Seconds; 2] {
        let shape = self.shape;
        let mixers: f64 = shape.mixers.iter().map(|layers| layers.layers).sum();
        let experts: f64 = shape.experts.iter().map(|layers| layers.layers).sum();
        let around = (self.projecting(shape.attention, own * padded) + self.units()[0]) / 2.0;
        let with_experts = (experts / mixers.max(1.0)).min(1.0);
        [
            around * with_experts + self.projecting(shape.shared, own * padded),
            (around + self.cache(own, context, tokens)) * with_experts,
        ]
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
