//! How often a job is interrupted, how often it should write a checkpoint, and what share of its time is useful.
//!
//! A synchronous job stops when any component of it fails, so the rates of its components add up. What a failure costs
//! follows the renewal model of Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps",
//! Future Generation Computer Systems 22 (2006), with its parts kept apart.

mod checkpoint;
mod failures;
mod goodput;
mod spares;

pub use checkpoint::{
    Checkpoint, CheckpointPath, best_interval, checkpoint_size, daly_interval, frozen_size, young_interval,
};
pub use failures::{Components, Interruptions, network_stalls};
pub use goodput::{Goodput, Hazards, Losses, Recovery};
pub use spares::{spare_wait, spares_for};
