//! What several tests begin with: the built-in catalog, and a job on software that keeps nothing for itself.

#![allow(dead_code, reason = "each file of tests uses a part of it")]
#![allow(clippy::expect_used, reason = "a test that cannot be set up fails")]

use std::sync::LazyLock;

use clusterplan::catalog::Catalog;
use clusterplan::catalog::memory_allowance::SelectiveRecompute;
use clusterplan::catalog::model::Model;
use clusterplan::diagnostics::{Sink, Sources, render};
use clusterplan::memory::Software;
use clusterplan::units::{Bytes, Factor, Fraction, Tokens};
use clusterplan::workload::{GradientPrecision, Offload, Optimizer, Precision, TrainingJob};

/// The built-in catalog, without a mistake.
pub(crate) static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog = clusterplan::load::catalog(&[], &mut sources, &sink);
    assert!(sink.is_empty(), "{}", render(&sink.into_diagnostics(), &sources, false));
    catalog
});

/// A model of the catalog.
pub(crate) fn model(id: &str) -> Model {
    CATALOG.models.get(id).expect("a known model").part.clone()
}

/// Software that keeps no memory for itself.
pub(crate) const BARE: Software = Software {
    driver_reserve: Bytes::ZERO,
    context: Bytes::ZERO,
    communicator: Bytes::ZERO,
    fragmentation: Fraction::ZERO,
    logit: Bytes::new(4.0),
    selective_recompute: SelectiveRecompute::AttentionCore,
    cast_inputs: false,
    casts_weights: false,
    fused_attention: true,
};

/// Training in bf16 with gradients in fp32 and Adam.
pub(crate) fn job(sequence_length: u32, global_batch: u32) -> TrainingJob {
    TrainingJob {
        sequence_length,
        global_batch,
        tokens: Tokens::new(1e12),
        precision: Precision::Bf16,
        gradients: GradientPrecision::Fp32,
        optimizer: Optimizer::Adam,
        offload: Offload::None,
        expert_imbalance: Factor::ONE,
    }
}
