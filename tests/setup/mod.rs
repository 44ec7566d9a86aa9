//! What several tests begin with: the built-in catalog and names, models, a network, and a job on software that keeps
//! nothing for itself.

#![allow(dead_code, reason = "each file of tests uses a part of it")]
#![allow(clippy::expect_used, reason = "a test that cannot be set up fails")]

use std::sync::LazyLock;

use clusterplan::catalog::memory_allowance::SelectiveRecompute;
use clusterplan::catalog::model::Model;
use clusterplan::catalog::{Catalog, ConstantSet};
use clusterplan::diagnostics::{Sink, Sources, render};
use clusterplan::memory::Software;
use clusterplan::topology::{ByTier, FatTreeSpec, Managers, Oversubscription, Tiers};
use clusterplan::units::{Bytes, Factor, Fraction, Tokens};
use clusterplan::validation::Aliases;
use clusterplan::workload::{GradientPrecision, Offload, Optimizer, Precision, TrainingJob, import};

/// The built-in catalog, without a mistake.
pub(crate) static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog = clusterplan::load::catalog(&[], &mut sources, &sink);
    assert!(sink.is_empty(), "{}", render(&sink.into_diagnostics(), &sources, false));
    catalog
});

/// The built-in table of published names, without a mistake.
pub(crate) static ALIASES: LazyLock<Aliases> = LazyLock::new(|| {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let aliases = clusterplan::load::aliases(&mut sources, &sink);
    assert!(sink.is_empty(), "{}", render(&sink.into_diagnostics(), &sources, false));
    aliases
});

/// Holds a committed set of constants against a fresh fit, which `how` writes.
#[track_caller]
pub(crate) fn assert_fitted<S: ConstantSet>(fresh: &S, committed: &S, how: &str) {
    let (mut fresh, mut committed) = (fresh.clone(), committed.clone());
    for ((name, fresh), (_, committed)) in fresh.constants_mut().into_iter().zip(committed.constants_mut()) {
        let [fresh, committed] = [fresh.range()[0], committed.range()[0]];
        // Files keep four digits, and libraries differ in the last digits of a logarithm.
        assert!(
            (fresh - committed).abs() <= 2e-3 * committed.abs(),
            "{name} is {fresh}, committed {committed}; `{how}` writes it anew"
        );
    }
}

/// The model of a published config.
pub(crate) fn imported(config: &str) -> Model {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let file = sources.add("config.json", config);
    let found = import(&clusterplan::load::parse_json(&sources, file, &sink), None, &sink);
    let mistakes = sink.into_diagnostics();
    assert!(mistakes.is_empty(), "{}", render(&mistakes, &sources, false));
    found.expect("a model").model
}

/// A fat tree of switches of one size and as many rails as a node of eight cards has.
pub(crate) fn eight_rails(nodes: u32, radix: u32) -> FatTreeSpec {
    FatTreeSpec {
        nodes,
        nics_per_node: 8,
        rails: 8,
        radix: ByTier { leaf: radix, spine: radix, core: radix },
        planes: 1,
        tiers: Tiers::Auto,
        pod_nodes: None,
        oversubscription: Oversubscription::NONE,
        managers: Managers::default(),
        border_ports: 0,
        server_ports: 0,
    }
}

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
