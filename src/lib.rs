//! Plan AI clusters: how much memory, which layout, how fast, how often it fails, what to buy, what it costs, and what
//! changes if the fabric is RoCEv2 instead of InfiniBand.

pub mod agents;
pub mod calibration;
pub mod catalog;
pub mod cli;
pub mod collectives;
pub mod compute;
pub mod diagnostics;
pub mod document;
pub mod evaluate;
pub mod facility;
pub mod finance;
pub mod inference;
pub mod load;
pub mod memory;
pub mod parallelism;
pub mod provenance;
pub mod reliability;
pub mod report;
pub mod scenario;
pub mod search;
pub mod study;
pub mod sweep;
pub mod tco;
pub mod topology;
pub mod training;
pub mod units;
pub mod validation;
pub mod workload;
