//! Serving: what a step of an engine takes, how requests share steps, and the latencies and rates that follow.
//!
//! [`ModelShape`] is a model's arithmetic and traffic, [`Hardware`] an accelerator as an engine finds it, and [`Replica`]
//! both with a layout: it times a decode step and a prefill by operation. On top of it stand continuous batching with a
//! fixed number of requests ([`Replica::closed_loop`]), with arrivals at a rate ([`Replica::open_loop`]), with as many as
//! there is room for ([`Replica::offline`]), and separate pools of prefill and decode workers ([`disaggregated`]).
//!
//! The form: weights and cache read at a share of the memory bandwidth, matrix multiplications at a share of the peak, a
//! fixed time for each operator unit of a layer, and messages of the layout's groups. Constants are of an accelerator
//! generation or of an engine family, never of a model.

mod adapters;
mod admission;
mod batching;
mod chunked;
mod decode;
mod disaggregated;
mod exchange;
mod features;
#[cfg(test)]
mod fixture;
mod hardware;
mod latency;
mod offline;
mod open_loop;
mod popularity;
mod prefill;
mod prefix_cache;
mod replay;
mod replica;
mod scratch;
mod separate;
mod shape;
mod speculation;
mod two_batches;

pub use adapters::Adapters;
pub use batching::{Load, Request, SteadyState};
pub use decode::StepTime;
pub use disaggregated::{Disaggregated, Pools, disaggregated};
pub use exchange::Across;
pub use features::{Chunks, Features};
pub use hardware::{Hardware, MissingServing};
pub use latency::{Coming, Latencies, Quantiles};
pub use open_loop::{Overload, Short};
pub use popularity::Popularity;
pub use prefix_cache::{CacheTier, Hits, MOST_TIERS, PrefixCache, Reused, TierLinks};
pub use replica::{Replica, Room, Spread};
pub use scratch::Scratch;
pub use separate::Separate;
pub use shape::ModelShape;
pub use speculation::Speculation;
