//! Many evaluations: the best layout of a job, and the nearest to one that cannot be.
//!
//! Work is shared out among threads by rows of a space (the degrees, the microbatch, sequence parallelism) and put
//! together again in order, so that any number of threads gives the same answer.

mod answer;
mod front;
mod layouts;
mod nearest;
mod walk;

pub use answer::{evaluate, settle};
pub use layouts::{Variant, Variants, search};
pub use nearest::{Nearest, nearest};
