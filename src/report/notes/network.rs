//! The network as it was asked for and as it is built.

use crate::evaluate::Evaluation;
use crate::units::significant;

/// A network that is to reduce in its switches, which it cannot.
pub(super) fn unreduced(evaluation: &Evaluation) -> Option<String> {
    let (training, fabric) = (evaluation.scenario.training.as_ref()?, &evaluation.scenario.cluster.fabric.entry);
    (training.software.communication.sharp && !fabric.in_network_reduction)
        .then(|| format!("software.sharp has no effect on {}: its switches do not reduce.", fabric.id))
}

/// Where the network is built with another oversubscription than was asked for, or a figure says nothing.
pub(super) fn oversubscription(evaluation: &Evaluation) -> Vec<String> {
    let (asked, built) = (&evaluation.scenario.cluster.topology, &evaluation.built.topology);
    let fabric = &evaluation.scenario.cluster.fabric.entry.id;
    let tiers = [
        ("leaf to spine", asked.leaf_oversubscription, built.leaf.oversubscription),
        ("spine to core", asked.spine_oversubscription, built.spine.oversubscription),
    ];
    let note = |(tier, asked, built): (&str, f64, f64)| {
        // One is full bandwidth, which is met wherever it has a meaning.
        if asked <= 1.0 || (built / asked - 1.0).abs() < 1e-3 {
            return None;
        }
        let asked = significant(asked, 4);
        Some(if built > 0.0 {
            let built = significant(built, 4);
            format!(
                "Oversubscription from {tier} on {fabric}: {asked} was asked for, and the switches make it {built}."
            )
        } else {
            format!(
                "Oversubscription from {tier} on {fabric}: {asked} has no effect, because nothing is above that tier."
            )
        })
    };
    tiers.into_iter().filter_map(note).collect()
}
