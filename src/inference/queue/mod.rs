//! Waits: how arrivals, places and services that scatter add up, by themselves, without a model or an accelerator.

pub(super) mod admission;
pub(super) mod coming;
pub(super) mod crossing;
pub(super) mod deviating;
pub(super) mod ordered;
pub(super) mod own_times;
pub(super) mod pace;
pub(super) mod prompt_queue;
pub(super) mod scattered;
pub(super) mod scratch;
pub(super) mod waiting;
