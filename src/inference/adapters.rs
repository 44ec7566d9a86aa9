//! Low-rank adapters that sequences of a batch bring along.

use super::{Popularity, Replica, StepTime};
use crate::units::{Bytes, Flops, Seconds};

/// Bytes of a parameter: adapters are kept in 16 bits.
const NUMBER: f64 = 2.0;
/// Kernels of a projection: one for each factor, over all adapters of a batch (Punica, arXiv 2310.18547, section 4).
const FACTORS: f64 = 2.0;

/// Adapters, as one rank sees them.
#[derive(Clone, Copy, Debug)]
pub struct Adapters<'a> {
    /// How popular they are.
    pub popularity: &'a Popularity,
    /// Engines of which each has adapters of its own: 1 where all meet all of them.
    pub parts: f64,
    /// Different ones at once in an engine, at most.
    pub resident: f64,
    /// Parameters of one on a rank.
    pub parameters: f64,
    /// Projections that one changes, over all layers.
    pub projections: f64,
    /// Time of a kernel of it.
    pub kernel: Seconds,
}

impl Adapters<'_> {
    /// Bytes of so many adapters on a rank.
    pub fn held(parameters: f64, count: f64) -> Bytes {
        Bytes::new(parameters * NUMBER * count)
    }
}

impl Replica<'_> {
    /// What adapters add to a step of `own` sequences of a tensor group, with `tokens` tokens.
    ///
    /// Each adapter that any of them brings is read once; every token is multiplied by its own; and both factors of a
    /// projection have a kernel, however many adapters there are.
    pub(super) fn adapter_step(&self, own: f64, tokens: f64) -> StepTime {
        let Some(adapters) = &self.features.adapters else { return StepTime::default() };
        let hardware = self.hardware;
        let different = (adapters.popularity.different(own * adapters.parts) / adapters.parts).min(adapters.resident);
        let read = Adapters::held(adapters.parameters, different) / (hardware.memory * hardware.weights);
        let multiplied = self.adapter_flops(tokens) / (hardware.wide.peak * hardware.kernels.decode_gemm.value.get());
        StepTime {
            weights: read,
            arithmetic: multiplied,
            overhead: adapters.kernel * (FACTORS * adapters.projections),
            ..StepTime::default()
        }
    }

    /// What they add to a prefill of so many tokens in so many steps.
    pub(super) fn adapter_prefill(&self, tokens: f64, steps: f64) -> Seconds {
        let Some(adapters) = &self.features.adapters else { return Seconds::ZERO };
        let multiplied = self.adapter_flops(tokens) / (self.hardware.wide.peak * self.hardware.gemm);
        multiplied * self.hardware.prefill + adapters.kernel * (FACTORS * adapters.projections * steps)
    }

    fn adapter_flops(&self, tokens: f64) -> Flops {
        let parameters = self.features.adapters.as_ref().map_or(0.0, |adapters| adapters.parameters);
        Flops::new(2.0 * parameters * tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::{Features, fixture};

    #[test]
    fn few_adapters_add_kernels_and_many_add_reading() {
        let (model, hardware) = (fixture::shape("llama-3.1-70b"), fixture::h100());
        let of = |count: f64| {
            let popularity = Popularity::zipf(count, 0.0);
            let adapters = Adapters {
                popularity: &popularity,
                parts: 1.0,
                resident: f64::INFINITY,
                parameters: 50e6,
                projections: 560.0,
                kernel: Seconds::new(4.5e-6),
            };
            let plain = Replica::new(&model, &hardware, fixture::tensor(4));
            plain.with(Features { adapters: Some(adapters), ..Features::default() }).adapter_step(64.0, 64.0)
        };
        let (one, many) = (of(1.0), of(1e6));
        // 1,120 kernels of 4.5 us are 5.04 ms either way.
        assert!((one.overhead.value() - 5.04e-3).abs() < 1e-9 && one.overhead == many.overhead);
        // One adapter of 100 MB at 95% of 3.35 TB/s; 64 different ones of a million.
        assert!((one.weights.value() - 100e6 / (0.95 * 3.35e12)).abs() < 1e-12);
        assert!((many.weights / one.weights - 64.0).abs() < 0.01);
    }
}
