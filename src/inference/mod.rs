//! Serving: what a step of an engine takes, how requests share steps, and the latencies and rates that follow.
//!
//! [`ModelShape`] is a model's arithmetic and traffic, [`Hardware`] an accelerator as an engine finds it, and [`Replica`]
//! both with a layout: it times a decode step and a prefill by operation. On top of it stand continuous batching with a
//! fixed number of requests ([`Replica::closed_loop`]), with arrivals at a rate ([`Replica::open_loop`]), with as many as
//! there is room for ([`Replica::offline`]), and separate pools of prefill and decode workers ([`Separate`]).
//!
//! The form: weights and cache read at a share of the memory bandwidth, matrix multiplications at a share of the peak, a
//! fixed time for each operator unit of a layer, and messages of the layout's groups. Constants are of an accelerator
//! generation or of an engine family, never of a model.
//!
//! What residuals by model, engine, format, layout, concurrency and lengths were explained by, after forms that they were not:
//! a model of 94 layers with answers of 128 tokens read up to 80% slow not for its experts but because prompts that begin
//! together were prefilled one by one ([`Replica::prefill_together`]), which other shares of the stall did not mend; eight
//! tensor ranks read slow with few sequences and 20% to 30% fast with many because all-reduces of one phase were counted as
//! two, which another bandwidth did not mend; first tokens of experts in 4 bits read slow and those in 8 bits fast on
//! Blackwell, whose matrix units take only the former's scales; a model whose norms of queries and keys are over all heads read fast,
//! and all others of its engine slow when it was in the fit, for one more message of a layer that was not counted, and for a cache that
//! was taken to be in 8 bits. Tried and left out: units of shared experts by themselves, and the beginning of experts counted on their
//! rank alone (no difference each); reading, on the rank with most of them, the experts that a step touches, as if each were touched by
//! itself (pools' 90th percentile four points better, models left out one point worse, Qwen3 235B four and a half); popularity of experts as a gamma
//! distribution (0.4 points less between tokens in sample, the least well met model one point worse when it is left out);
//! padding of experts' tiles by 32 or 64 rows (throughput half a point better, first tokens one to two points worse; with what kernels
//! move counted, Blackwell's experts would be at 16% to 19% of the peak with aggregated runs met as well, but pools that prefill 32
//! thousand tokens in attention groups would take in a third less than they did);
//! rooflines of experts by themselves (no difference); prompts that queue packed (first tokens one to three points worse).

mod adapters;
mod batching;
mod chunked;
mod closed;
mod features;
#[cfg(test)]
mod fixture;
mod hand_over;
mod latency;
mod offline;
mod open_loop;
mod popularity;
mod prefill_only;
mod prefix_cache;
mod queue;
mod replay;
mod replica;
mod separate;
#[cfg(test)]
mod simulation;
mod speculation;
mod state;
mod step;
mod together;

pub use adapters::Adapters;
pub use closed::Turns;
pub use features::{Chunks, Features, Graphs, Replayed, Speculation, graphs_hold};
pub use hand_over::HandOver;
pub use latency::{Latencies, Quantiles};
pub use offline::Filled;
pub use open_loop::{Overload, Short};
pub use popularity::Popularity;
pub use prefix_cache::{CacheTier, Hits, MOST_TIERS, PrefixCache, Reused, TierLinks};
pub use queue::coming::Coming;
pub use queue::scratch::Scratch;
pub use replica::{Replica, Room, Spread};
pub use separate::Separate;
pub use state::{Context, Load, Request, SteadyState};
pub use step::decode::StepTime;
pub use step::exchange::{Across, Reduction};
pub use step::hardware::{Hardware, MissingServing};
pub use step::links::Links;
pub use step::shape::ModelShape;
pub use step::stages::HandOvers;
