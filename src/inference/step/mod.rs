//! What a step takes: a model's arithmetic and traffic on an accelerator, by operation and exchange.

pub(super) mod decode;
pub(super) mod exchange;
pub(super) mod hardware;
pub(super) mod host;
pub(super) mod links;
pub(super) mod prefill;
pub(super) mod shape;
pub(super) mod stages;
pub(super) mod two_batches;
pub(super) mod uneven;
