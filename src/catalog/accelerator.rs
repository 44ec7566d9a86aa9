//! Accelerators: what their makers say of them.

use super::quantity::{PRINTED, check_halves, positive, some_positive};
use super::{GpuSlice, Pcie, Reference};
use crate::diagnostics::Code;
use crate::document::{Reader, choices};
use crate::units::{Bandwidth, Bytes, CarbonMass, Factor, FlopRate, Watts};

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
        /// Six-bit floating point with block scales, which are not counted here.
        Fp6 = "fp6",
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
            Self::Fp6 => 0.75,
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

    /// A part of each.
    #[must_use]
    pub fn scaled(&self, part: f64) -> Self {
        Self(self.0.map(|peak| peak.map(|peak| peak * part)))
    }

    fn read(reader: &mut Reader<'_>) -> Self {
        let mut peaks = Self::default();
        for (peak, data_type) in peaks.0.iter_mut().zip(DataType::ALL) {
            *peak = some_positive(reader, data_type.word());
        }
        peaks
    }
}

/// What structured sparsity multiplies a peak by, by number format: two where the file does not say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SparsityGain([Factor; DataType::ALL.len()]);

impl Default for SparsityGain {
    fn default() -> Self {
        Self([Factor::new(2.0).unwrap_or(Factor::ONE); DataType::ALL.len()])
    }
}

impl SparsityGain {
    /// The gain of a format.
    pub fn get(&self, data_type: DataType) -> Factor {
        self.0.get(data_type as usize).copied().unwrap_or(Factor::ONE)
    }

    fn read(reader: &mut Reader<'_>) -> Self {
        let mut gains = Self::default();
        for (gain, data_type) in gains.0.iter_mut().zip(DataType::ALL) {
            *gain = reader.or(data_type.word(), *gain);
        }
        gains
    }
}

/// An accelerator's own links to others of a node or rack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AcceleratorLinks {
    /// The kind of link, in the catalog of scale-up links.
    pub link: Reference,
    /// What it can send over all of them; as much again it can receive at the same time.
    pub bandwidth_per_direction: Bandwidth,
    /// What its maker advertises, both directions added up; none where the maker states one direction.
    pub advertised: Option<Bandwidth>,
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
    /// Peak rates with structured sparsity, as product pages print them; for comparison only.
    pub peak_sparse: Peaks,
    /// What sparsity multiplies a peak by.
    pub sparsity_gain: SparsityGain,
    /// Memory that the driver reports, before anything is allocated.
    pub memory_capacity: Bytes,
    /// Rate of the memory, reading or writing.
    pub memory_bandwidth: Bandwidth,
    /// Power limit of the board; none where its maker states none.
    pub tdp: Option<Watts>,
    /// Emissions of making one, from raw materials to the maker's gate, with its part of the board.
    pub embodied_carbon: Option<CarbonMass>,
    /// Streaming multiprocessors, compute units or matrix cores enabled.
    pub sm_count: u32,
    /// Memory on the dies that a kernel's data may stay in: the last-level cache, or all scratchpads where there is none.
    /// Registers and the first-level memory of single multiprocessors are not counted.
    pub on_chip_sram: Bytes,
    /// Links to others of a node or rack; none where only the host's bus joins them.
    pub scale_up: Option<AcceleratorLinks>,
    /// The host's bus, where it is PCI Express.
    pub pcie: Option<Pcie>,
    /// Parts that it can be cut into.
    pub slices: Vec<GpuSlice>,
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
        let accelerator = Self {
            vendor: reader.get("vendor"),
            generation: reader.get("generation"),
            board: reader.get("board"),
            peak_dense,
            peak_sparse: reader.optional_table("peak_sparse", Peaks::read).unwrap_or_default(),
            sparsity_gain: reader.optional_table("sparsity_gain", SparsityGain::read).unwrap_or_default(),
            memory_capacity: positive(reader, "memory_capacity"),
            memory_bandwidth: positive(reader, "memory_bandwidth"),
            tdp: some_positive(reader, "tdp"),
            embodied_carbon: some_positive(reader, "embodied_carbon"),
            sm_count: reader.get("sm_count"),
            on_chip_sram: positive(reader, "on_chip_sram"),
            scale_up: reader.optional_table("scale_up", |reader| {
                let link = reader.get("link");
                let (before, bandwidth_per_direction) =
                    (reader.sink().len(), positive(reader, "bandwidth_per_direction"));
                let advertised = reader.optional("advertised");
                if reader.sink().len() == before {
                    check_halves(reader, bandwidth_per_direction, advertised);
                }
                AcceleratorLinks { link, bandwidth_per_direction, advertised }
            }),
            pcie: reader.optional("pcie"),
            slices: reader.tables("slice", GpuSlice::read),
        };
        if reader.sink().len() == before {
            check_sparsity(&accelerator, reader);
        }
        accelerator
    }
}

/// Reports every peak that is above what the peak with sparsity allows.
fn check_sparsity(accelerator: &Accelerator, reader: &Reader<'_>) {
    for &data_type in DataType::ALL {
        let Some(sparse) = accelerator.peak_sparse.get(data_type) else { continue };
        let gain = accelerator.sparsity_gain.get(data_type).get();
        let Some(dense) = accelerator.peak_dense.get(data_type) else {
            let message = format!("`peak_sparse` has {data_type}, and `peak_dense` has not");
            reader.report("peak_sparse", Code::Inconsistent, message, "sparsity speeds a dense peak up");
            continue;
        };
        if dense * gain > sparse * PRINTED {
            let message =
                format!("the dense {data_type} peak of {dense} is above {sparse} with sparsity over a gain of {gain}");
            let hint = "product pages print peaks with sparsity; halve them, or state another `sparsity_gain`";
            reader.report("peak_dense", Code::Inconsistent, message, hint);
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
