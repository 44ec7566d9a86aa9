//! Agents at work: sessions of many users' tasks, what they keep in caches while tools and people take their time, and
//! how much passes. What a task asks is the workload's; what it costs is tco's.

mod fleet;
mod residency;

#[cfg(test)]
pub(crate) mod fixture;

pub use fleet::{Load, Pace, load};
pub use residency::{Waiting, Waits};
