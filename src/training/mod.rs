//! The time of a training step, part by part.
//!
//! `T = (m (t_stage + t_p2p + t_sharded + t_accumulate) + t_bubble + t_data + t_optimizer + t_step) x scale`, with `m`
//! microbatches through the slowest pipeline stage. Operations come from their shapes (`compute`), messages from the wires
//! (`collectives`) and from where the topology places their group; what compute cannot hide is exposed.

mod adapters;
mod communication;
mod estimate;
mod idle;
mod layer;
mod offload;
mod parts;
mod shard;
mod step;
mod stragglers;

pub use adapters::adapters;
pub use estimate::{ExposedCommunication, OtherTime, TrainingEstimate};
pub use offload::{HostMemory, Offloaded};
pub use parts::{Microbatch, Replicas};
pub use step::StepModel;
