//! Matrix multiplications: waves of tiles over the multiprocessors at a sustained rate.

use super::Silicon;
use crate::units::{FlopRate, Flops, Seconds};

/// Output tiles that libraries choose from: rows, columns, and the rate of their inner loop over the best.
///
/// Smaller tiles reuse less of what they load (NVIDIA, Matrix Multiplication Background User's Guide, section 3).
const TILES: [(f64, f64, f64); 4] =
    [(256.0, 128.0, 1.0), (128.0, 256.0, 1.0), (128.0, 128.0, 0.93), (128.0, 64.0, 0.78)];

/// Beyond this many waves the tail is a constant part of one.
const MANY_WAVES: f64 = 8.0;

/// The shape of one matrix multiplication: (m x k) times (k x n).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gemm {
    /// Rows of the output.
    pub m: f64,
    /// Columns of the output.
    pub n: f64,
    /// The dimension summed over.
    pub k: f64,
}

/// A linear layer of `tokens` rows from `input` to `output` features.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Linear {
    /// Rows.
    pub tokens: f64,
    /// Features in.
    pub input: f64,
    /// Features out.
    pub output: f64,
}

impl Gemm {
    /// FLOPs, a multiply-add as two.
    pub fn flops(self) -> Flops {
        Flops::new(2.0 * self.m * self.n * self.k)
    }
}

impl Linear {
    /// Tokens x input features times input x output features.
    pub const fn forward(self) -> Gemm {
        Gemm { m: self.tokens, n: self.output, k: self.input }
    }

    /// Gradient of the input.
    pub const fn input_gradient(self) -> Gemm {
        Gemm { m: self.tokens, n: self.input, k: self.output }
    }

    /// Gradient of the weight.
    pub const fn weight_gradient(self) -> Gemm {
        Gemm { m: self.output, n: self.input, k: self.tokens }
    }
}

impl Silicon {
    /// Time of a matrix multiplication in the data type of the linear layers.
    ///
    /// Tile and wave quantisation (NVIDIA, Matrix Multiplication Background User's Guide, sections 4 and 5): an output of
    /// m x n takes `ceil(m/tm) ceil(n/tn)` tiles, run a wave of one per multiprocessor at a time; a part-filled last wave
    /// costs three quarters of a full one where stream-K splits it, and a tail of 0.35 waves remains when there are many.
    pub fn gemm(&self, shape: Gemm) -> Seconds {
        self.tiled(shape, self.gemm_rate)
    }

    /// Forward time of a linear layer.
    pub fn linear_forward(&self, layer: Linear) -> Seconds {
        self.gemm(layer.forward())
    }

    /// Backward time of a linear layer: the gradients of its input and of its weight.
    pub fn linear_backward(&self, layer: Linear) -> Seconds {
        self.gemm(layer.input_gradient()) + self.gemm(layer.weight_gradient())
    }

    /// Forward and backward time of the logits, which keep bf16.
    pub fn logits(&self, layer: Linear) -> Seconds {
        let rate = self.logits_rate;
        self.tiled(layer.forward(), rate)
            + self.tiled(layer.input_gradient(), rate)
            + self.tiled(layer.weight_gradient(), rate)
    }

    fn tiled(&self, Gemm { m, n, k }: Gemm, rate: FlopRate) -> Seconds {
        let mut least = Seconds::new(f64::INFINITY);
        for (rows, columns, efficiency) in TILES {
            let filled = (m / rows).ceil() * (n / columns).ceil() / self.sms;
            let waves = if filled > MANY_WAVES { filled + 0.35 } else { 0.75 * filled.ceil() + 0.25 * filled.max(1.0) };
            let wave = Flops::new(self.sms * 2.0 * rows * columns * k) / (rate * efficiency) + self.tile_epilogue;
            least = least.min(waves * wave);
        }
        least
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::a100;
    use super::*;

    #[test]
    fn a_full_wave_costs_its_arithmetic_and_an_epilogue() {
        // 108 tiles of 256 x 128 fill an A100 once: m = 256 * 12, n = 128 * 9. A wave is 108 * 2 * 256 * 128 * 4096 =
        // 28.99 GFLOP at 254 TFLOP/s = 114.1 us, and 1.5 us of epilogue.
        let silicon = a100();
        let time = silicon.gemm(Gemm { m: 3_072.0, n: 1_152.0, k: 4_096.0 });
        let expected = 108.0 * 2.0 * 256.0 * 128.0 * 4_096.0 / 254e12 + 1.5e-6;
        assert!((time / Seconds::new(expected) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn short_and_skinny_shapes_reach_a_smaller_rate() {
        let silicon = a100();
        let rate = |shape: Gemm| shape.flops() / silicon.gemm(shape) / FlopRate::new(254e12);
        let large = rate(Gemm { m: 8_192.0, n: 8_192.0, k: 8_192.0 });
        let skinny = rate(Gemm { m: 128.0, n: 8_192.0, k: 8_192.0 });
        let short = rate(Gemm { m: 8_192.0, n: 8_192.0, k: 128.0 });
        assert!(large > 0.95 && large <= 1.0);
        assert!(skinny < 0.7);
        assert!(short < 0.8 && short > 0.3);
    }
}
