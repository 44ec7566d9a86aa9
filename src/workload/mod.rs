//! What is asked of the cluster: a model's arithmetic, and the training job over it.

mod adapters;
mod agents;
mod bind;
mod cache;
mod census;
mod data;
mod day;
mod detail;
mod hf;
mod inference;
mod mixed;
mod prediction;
mod requests;
mod tenants;
mod training;
mod transformer;
mod weights;

#[cfg(test)]
pub(crate) mod shapes;
#[cfg(test)]
pub(crate) use agents::fixture::task;

pub use adapters::{AdapterParameters, adapter_parameters};
pub use agents::{Fan, Fleet, Reuse, Run, RunTokens, Task};
pub use bind::Untrainable;
pub use cache::{CacheNumbers, Keeps, LayerCache, SharedBy, layer_caches, numbers_at};
pub use census::{BlockParameters, Census, block_parameters, census};
pub use data::{DataPipeline, Stored};
pub use day::loads_of_a_day;
pub use detail::{Detail, LatentShape};
pub use hf::{Fill, Imported, import};
pub use inference::{TokenFlops, token_flops};
pub use mixed::{Layers, Mixed};
pub use prediction::{prediction_inputs, prediction_layer};
pub use requests::{Answers, Call, Cut, LengthShapes, Moments, Point, Recorded, Requests, moments};
pub use tenants::{TenantClass, Tenants, replicas};
pub use training::{CheckpointMode, GradientPrecision, Offload, Optimizer, Precision, TrainingJob};
pub use transformer::{AttentionCount, Experts, LayerFlops, LayerKind, LayerParameters, Parameters, Transformer};
pub use weights::{attend_to_all, module_bits, requantise, weight_bytes};
