//! How unevenly ranks that hold experts whole are asked for.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::inference::{Features, Replica};

/// Ranks and experts on each of which the busiest was measured: DeepSeek-R1's 256 experts on 32 ranks (TensorRT-LLM, tech blog 4).
const MEASURED: (f64, f64) = (32.0, 8.0);

/// The largest of so many standard normal deviations, on average (Blom 1958).
fn largest(of: f64) -> f64 {
    Normal::standard().inverse_cdf((of - 0.375) / (of + 0.25)).max(0.0)
}

/// Standard deviation of experts' loads over their mean, by the tokens of the busiest rank measured over the mean of ranks.
pub(in crate::inference) fn scatter(busiest: f64) -> f64 {
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
