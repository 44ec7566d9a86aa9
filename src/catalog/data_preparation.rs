//! Preparation of data: what it takes to make tokens of what was gathered.

use super::quantity::positive_range;
use crate::document::Reader;
use crate::units::{Bandwidth, Bytes, Ranged};

/// The most cores, and steps ahead, that are taken.
const MOST: u32 = 100_000_000;

/// What preparing data takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataPreparation {
    /// Text of a token.
    pub text_per_token: Ranged<Bytes>,
    /// What one CPU core cleans.
    pub clean_rate: Ranged<Bandwidth>,
    /// What one CPU core tokenises.
    pub tokenise_rate: Ranged<Bandwidth>,
    /// CPU cores that prepare the data.
    pub cores: u32,
    /// CPU cores that load data for each accelerator.
    pub loader_cores: u32,
    /// Steps that loaders are ahead.
    pub prefetch: u32,
}

impl DataPreparation {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            text_per_token: positive_range(reader, "text_per_token"),
            clean_rate: positive_range(reader, "clean_rate"),
            tokenise_rate: positive_range(reader, "tokenise_rate"),
            cores: reader.within("cores", &(1..=MOST)),
            loader_cores: reader.within("loader_cores", &(1..=MOST)),
            prefetch: reader.within("prefetch", &(1..=MOST)),
        }
    }
}
