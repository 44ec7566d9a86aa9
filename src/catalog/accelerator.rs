//! Accelerators: what their makers say of them.

use super::check::positive;
use crate::diagnostics::Code;
use crate::document::{Reader, choices};
use crate::units::{Bandwidth, Bytes, FlopRate, Watts};

choices! {
    /// A number format, by its usual name.
    pub enum DataType {
        /// IEEE double precision.
        Fp64 = "fp64",
        /// IEEE single precision.
        Fp32 = "fp32",
        /// Single precision rounded to 19 bits inside matrix units; 4 bytes in memory.
        Tf32 = "tf32",
        /// bfloat16.
        Bf16 = "bf16",
        /// IEEE half precision.
        Fp16 = "fp16",
        /// Eight-bit floating point, E4M3 or E5M2.
        Fp8 = "fp8",
        /// Eight-bit integers.
        Int8 = "int8",
        /// Four-bit floating point with block scales, which are not counted here.
        Fp4 = "fp4",
    }
}

impl DataType {
    /// Memory that one value takes.
    pub const fn size(self) -> Bytes {
        Bytes::new(match self {
            Self::Fp64 => 8.0,
            Self::Fp32 | Self::Tf32 => 4.0,
            Self::Bf16 | Self::Fp16 => 2.0,
            Self::Fp8 | Self::Int8 => 1.0,
            Self::Fp4 => 0.5,
        })
    }
}

/// Peak rates by number format: of the matrix units where the part has them for the format, else of the vector units.
/// Without sparsity; a multiply-add counts as two operations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Peaks([Option<FlopRate>; DataType::ALL.len()]);

impl Peaks {
    /// The peak for a format, or `None` where the part has no such units.
    pub fn get(&self, data_type: DataType) -> Option<FlopRate> {
        self.0.get(data_type as usize).copied().flatten()
    }

    fn read(reader: &mut Reader<'_>) -> Self {
        let mut peaks = Self::default();
        for (peak, data_type) in peaks.0.iter_mut().zip(DataType::ALL) {
            *peak = reader.optional(data_type.word());
        }
        peaks
    }
}

/// An accelerator.
#[derive(Clone, Debug, PartialEq)]
pub struct Accelerator {
    /// Who makes it.
    pub vendor: String,
    /// Architecture, lower case; the efficiency catalog keys achieved rates by it.
    pub generation: String,
    /// Board and its power limit; the efficiency catalog keys a factor by it.
    pub board: String,
    /// Peak rates without sparsity.
    pub peak_dense: Peaks,
    /// Memory that the driver reports, before anything is allocated.
    pub memory_capacity: Bytes,
    /// Rate of the memory, reading or writing.
    pub memory_bandwidth: Bandwidth,
    /// Power limit of the board.
    pub tdp: Watts,
    /// Streaming multiprocessors (compute units) enabled.
    pub sm_count: u32,
    /// Last-level cache on the die.
    pub l2_cache: Bytes,
}

impl Accelerator {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let before = reader.sink().len();
        let peak_dense = reader.table("peak_dense", Peaks::read);
        if reader.sink().len() == before && peak_dense == Peaks::default() {
            reader.report(
                "peak_dense",
                Code::MissingKey,
                "`peak_dense` names no number format",
                "such as bf16 = \"989.4 TFLOP/s\"",
            );
        }
        Self {
            vendor: reader.get("vendor"),
            generation: reader.get("generation"),
            board: reader.get("board"),
            peak_dense,
            memory_capacity: positive(reader, "memory_capacity"),
            memory_bandwidth: positive(reader, "memory_bandwidth"),
            tdp: positive(reader, "tdp"),
            sm_count: reader.get("sm_count"),
            l2_cache: positive(reader, "l2_cache"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_has_its_own_place_among_the_peaks() {
        let mut peaks = Peaks::default();
        for (index, data_type) in DataType::ALL.iter().enumerate() {
            assert_eq!(*data_type as usize, index);
            peaks.0[index] = Some(FlopRate::new(index as f64));
            assert_eq!(peaks.get(*data_type), Some(FlopRate::new(index as f64)));
        }
        assert_eq!(Peaks::default().get(DataType::Fp8), None);
    }
}
