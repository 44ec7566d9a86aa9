//! What a reader must know to use the figures of an evaluation.

mod agents;
mod caches;
mod engine;
mod fitted;
mod network;
mod tenants;
mod waits;

use super::cliffs::{manager_ports, rounded_spares, unused_fabric, unused_storage};
use super::fabric::between_sites;
use super::uneven_experts::uneven_experts;
use crate::evaluate::Evaluation;
use agents::round_the_clock;
use caches::{crowded_out, overrun, spread_evenly};
use engine::{answered_by_prefill, by_default, padding, shared};
use fitted::misses;
use network::{oversubscription, unreduced};
use tenants::never_kept_for_tenants;
use waits::{handed_over, in_step, passed_over, unsettled, unspread};

pub(super) use fitted::uncalibrated;
pub(super) use tenants::full_for_tenants;
pub(super) use waits::missed;

/// What a reader must know to use the figures of some evaluations by their names; what holds for several is said once, and of
/// what does not hold for all it is said for which.
pub(super) fn notes(evaluations: &[(&str, &Evaluation)]) -> Vec<String> {
    let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, evaluation) in evaluations {
        for note in notes_of(evaluation) {
            match notes.iter_mut().find(|(known, _)| *known == note) {
                Some((_, names)) => names.push(name),
                None => notes.push((note, vec![name])),
            }
        }
    }
    let told = |(note, names): (String, Vec<&str>)| {
        let said = names.len() == evaluations.len() || matches!(names[..], [one] if note.contains(one));
        if said { note } else { format!("For {}: {note}", names.join(", ")) }
    };
    notes.into_iter().map(told).collect()
}

fn notes_of(evaluation: &Evaluation) -> Vec<String> {
    let scenario = &evaluation.scenario;
    let utilisation = scenario.training.as_ref().zip(evaluation.point).map(|(training, point)| {
        format!(
            "MFU and HFU are over the dense {} peak of {}, {}; attention is causal, half of full. The other convention, full attention, stands beside.",
            training.job.precision, scenario.cluster.accelerator.name, point.step.peak
        )
    });
    let mut notes: Vec<String> = utilisation.into_iter().collect();
    notes.extend([
        price_note(evaluation),
        "Bases, best first: datasheet, quote, measured, secondary (a text that restates one of these), derived, assumed. A figure is no better than the weakest of its inputs.".to_owned(),
    ]);
    notes.extend(rounded_spares(evaluation));
    notes.extend(unused_storage(evaluation));
    notes.extend(unused_fabric(evaluation));
    notes.extend(manager_ports(evaluation));
    notes.extend(padding(evaluation));
    notes.extend(uncalibrated(evaluation));
    notes.extend(shared(evaluation));
    notes.extend(full_for_tenants(evaluation));
    notes.extend(never_kept_for_tenants(evaluation));
    notes.extend(uneven_experts(evaluation));
    notes.extend(missed(evaluation));
    notes.extend(answered_by_prefill(evaluation));
    notes.extend(in_step(evaluation));
    notes.extend(unspread(evaluation));
    notes.extend(by_default(evaluation));
    notes.extend(passed_over(evaluation));
    notes.extend(unsettled(evaluation));
    notes.extend(spread_evenly(evaluation));
    notes.extend(handed_over(evaluation));
    notes.extend(overrun(evaluation));
    notes.extend(crowded_out(evaluation));
    notes.extend(round_the_clock(evaluation));
    notes.extend(oversubscription(evaluation));
    notes.extend(unreduced(evaluation));
    notes.extend(between_sites(&evaluation.built.topology, &evaluation.built.parts).map(|note| format!("{note}.")));
    notes.extend(misses(evaluation));
    notes
}

/// The price book and how old its prices of this cluster's parts are.
pub(super) fn price_note(evaluation: &Evaluation) -> String {
    let cluster = &evaluation.scenario.cluster;
    let built = &evaluation.built;
    let parts = built
        .parts
        .iter()
        .chain(built.side.iter().flat_map(|network| &network.parts))
        .map(|part| part.id.as_str())
        .chain(cluster.kinds_of_nodes().map(|nodes| nodes.node.id.as_str()))
        .chain([cluster.storage.id.as_str()]);
    let dates: Vec<&str> =
        parts.filter_map(|part| cluster.prices.price(part)).map(|price| price.evidence.date.as_str()).collect();
    let (first, last) = (dates.iter().min(), dates.iter().max());
    let span = match (first, last) {
        (Some(first), Some(last)) if first == last => format!(" of {first}"),
        (Some(first), Some(last)) => format!(" of {first} to {last}"),
        _ => String::new(),
    };
    let rates: Vec<&str> = cluster.prices.exchange.union(&cluster.site.exchange).map(String::as_str).collect();
    let exchange = if rates.is_empty() { String::new() } else { format!(" Exchange: {}.", rates.join("; ")) };
    format!(
        "Prices: {} ({}), in US dollars{span}; amounts are those of that time.{exchange}",
        cluster.prices.name, cluster.prices.id
    )
}
