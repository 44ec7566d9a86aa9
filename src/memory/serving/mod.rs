//! Memory of one accelerator in serving: weights, the cache's pool by the engine's rule, and what fits into it.

mod engine;
mod fit;
mod sequence;
mod weights;

use crate::catalog::model::{Format, Model};

pub use crate::catalog::engine_memory::Paging;
pub use crate::parallelism::ServingLayout;

pub use engine::Engine;
pub use fit::{Fits, fits, largest_context, smallest_tensor};
pub use sequence::{Pages, sequence_bytes};
pub use weights::{rank_layers, rank_weights};

/// Formats of what a sequence keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheFormats {
    /// Keys and values.
    pub keys_values: Format,
    /// Recurrent states.
    pub states: Format,
    /// What convolutions keep.
    pub convolutions: Format,
}

impl CacheFormats {
    /// As the checkpoint says, the base format where it says nothing.
    pub fn of(model: &Model) -> Self {
        let formats = &model.formats;
        let base = formats.base;
        Self {
            keys_values: formats.kv_cache.unwrap_or(base),
            states: formats.state.unwrap_or(base),
            convolutions: base,
        }
    }
}

#[cfg(test)]
mod tests;
