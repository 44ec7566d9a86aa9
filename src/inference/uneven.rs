//! How unevenly ranks that hold experts whole are asked for.

use super::{Features, Replica};

/// Ranks and experts on each of which the busiest was measured: DeepSeek-R1's 256 experts on 32 ranks (TensorRT-LLM, tech blog 4).
const MEASURED: (f64, f64) = (32.0, 8.0);

/// The largest of so many standard normal deviations, on average (Blom 1958), by Tukey's lambda for the quantile: within 1% up to
/// 512 of them.
fn largest(of: f64) -> f64 {
    let below = (of - 0.375) / (of + 0.25);
    ((below.powf(0.135) - (1.0 - below).powf(0.135)) / 0.1975).max(0.0)
}

/// Standard deviation of experts' loads over their mean, by the tokens of the busiest rank measured over the mean of ranks.
pub(super) fn scatter(busiest: f64) -> f64 {
    let (ranks, experts) = MEASURED;
    (busiest - 1.0) / largest(ranks) * experts.sqrt()
}

impl Replica<'_> {
    /// Tokens of the busiest rank's experts beyond the mean of ranks, over it. Where experts lie as they come, loads of a rank's
    /// experts add up, so that those of many scatter less, and of more ranks the busiest is further from the mean. Where there are
    /// copies, engines place them by load.
    fn excess(&self) -> f64 {
        let ranks = self.spread.stage();
        if !self.spread.expert_parallel || ranks < 2.0 {
            return 0.0;
        }
        if self.spread.redundant_experts > 0 {
            return self.hardware.placed;
        }
        let experts = self.shape.experts.first().map_or(1.0, |layers| layers.experts);
        (self.hardware.uneven * largest(ranks) / (experts / ranks).sqrt()).min(ranks - 1.0)
    }

    /// Experts of a layer that a step touches on the rank with most of them, over the mean of ranks, where it touches so many of all
    /// slots: each by itself, so that ranks have a number of them that is distributed binomially, the busiest one at least and all
    /// of its own at most.
    pub(super) fn fullest(&self, touched: f64, slots: f64) -> f64 {
        let ranks = self.spread.stage();
        if !self.spread.expert_parallel || ranks < 2.0 {
            return 1.0;
        }
        let (mean, own) = (touched / ranks, slots / ranks);
        let deviation = (mean * (1.0 - touched / slots)).max(0.0).sqrt();
        (mean + largest(ranks) * deviation).max(own.min(1.0)).min(own.max(mean)) / mean
    }

    /// The same with experts as they lie.
    #[must_use]
    pub fn as_they_lie(self) -> Self {
        self.with(Features { excess: self.excess(), ..self.features })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::{Spread, fixture};

    #[test]
    fn the_largest_of_normal_deviations_is_the_tabled_one() {
        // Expected values of normal order statistics (Harter 1961).
        for (of, tabled) in [(2.0, 0.564), (4.0, 1.029), (8.0, 1.424), (16.0, 1.766), (32.0, 2.070), (100.0, 2.508)] {
            assert!((largest(of) / tabled - 1.0).abs() < 0.05, "{of}: {}", largest(of));
        }
    }

    #[test]
    fn the_fullest_rank_reads_more_than_the_mean_and_no_more_than_it_has() {
        let (model, hardware) = (fixture::shape("deepseek-v3"), fixture::h100());
        let spread = Spread { tensor: 4, attention_data: 1, pipeline: 1, expert_parallel: true, redundant_experts: 0 };
        let engine = Replica::new(&model, &hardware, spread);
        // 76 of 256 experts: 19 +- sqrt(19 x 0.703) on each of four ranks, whose largest is at 1.03 deviations.
        assert!((engine.fullest(76.0, 256.0) - (19.0 + 1.03 * 3.655) / 19.0).abs() < 0.01);
        // All are touched, or two on four ranks.
        assert!((engine.fullest(256.0, 256.0) - 1.0).abs() < 1e-12 && (engine.fullest(2.0, 256.0) - 2.5).abs() < 0.6);
        let most: Vec<f64> =
            (1..=256).map(|touched| f64::from(touched) * engine.fullest(f64::from(touched), 256.0)).collect();
        assert!(most.is_sorted() && most[255] <= 256.0 + 1e-9, "{most:?}");
        let split = Replica::new(&model, &hardware, Spread { expert_parallel: false, ..spread });
        assert!((split.fullest(76.0, 256.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_measured_ranks_are_met_and_fewer_are_more_even() {
        let (model, hardware) = (fixture::shape("deepseek-v3"), fixture::h100());
        let excess = |ranks: u32| {
            let spread =
                Spread { tensor: 1, attention_data: ranks, pipeline: 1, expert_parallel: true, redundant_experts: 0 };
            Replica::new(&model, &hardware, spread).excess()
        };
        // 1.564 by the table; eight ranks with 32 experts each: their loads scatter half as much, the largest of 8 is at 1.43
        // instead of 2.07 deviations.
        assert!((excess(32) - 1.56).abs() < 0.01, "{}", excess(32));
        assert!((excess(8) / excess(32) - 0.5 * 1.43 / 2.07).abs() < 0.01, "{}", excess(8));
        assert!(excess(1) <= 0.0);
    }
}
