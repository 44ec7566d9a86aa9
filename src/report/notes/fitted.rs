//! What constants were fitted to, and what no measurement covers.

use crate::catalog::Entry;
use crate::evaluate::Evaluation;
use crate::memory::serving::CacheFormats;
use crate::provenance::Source;

/// A kind of deployment that no measurement covers, and those near it that were measured.
pub(in crate::report) fn uncalibrated(evaluation: &Evaluation) -> Option<String> {
    let (serving, bands) = (evaluation.scenario.serving.as_ref()?, evaluation.serving?.bands?);
    if !bands.uncalibrated {
        return None;
    }
    let cluster = &evaluation.scenario.cluster;
    let (engine, generation) = (serving.engine.word(), &cluster.accelerator.generation);
    let pools = |pools: bool| if pools { ", in pools" } else { "" };
    let own = cluster.prefill.as_ref().map(|own| format!(", prefill's on {}", own.accelerator.generation));
    let own = own.filter(|_| cluster.nodes_of_prefill().accelerator.generation != *generation).unwrap_or_default();
    let pooled = pools(serving.prefill.is_some());
    let cache = CacheFormats::of(&serving.model).keys_values;
    let formats = format!("weights in {} and a cache in {}", serving.weights.kind(), cache.kind());
    let kind = format!("{engine} on {generation} with {} models{pooled}{own}, {formats}", bands.architecture);
    let near = serving.efficiency.coverage.iter().filter(|cell| {
        let same = [cell.engine == engine, cell.generation == *generation, cell.architecture == bands.architecture];
        same.into_iter().filter(|same| *same).count() >= 2
    });
    let named: Vec<String> = near
        .map(|cell| {
            let formats =
                if cell.weights.is_empty() { String::new() } else { format!(" ({})", cell.weights.join("/")) };
            format!("{} on {} with {}{formats}{}", cell.engine, cell.generation, cell.architecture, pools(cell.pools))
        })
        .collect();
    let features: Vec<&str> = serving.features.unmeasured().collect();
    let measured = if features.is_empty() { String::new() } else { format!(" with {}", features.join(" and ")) };
    Some(format!(
        "uncalibrated: no published measurement covers {kind}{measured}; low and high ends are as far off again as the nearest kinds are missed. Measured are: {}.",
        if named.is_empty() { "none near".to_owned() } else { named.join(", ") }
    ))
}

/// How well the constants of step time, and of serving, met what they were fitted to.
pub(super) fn misses(evaluation: &Evaluation) -> Vec<String> {
    fn fitted<T>(what: &str, constants: &Entry<T>) -> Vec<String> {
        let of = |source: &Source| source.note.as_ref().map(|note| format!("{what}, {}: {note}", constants.name));
        constants.sources.iter().filter(|source| source.covers("generation")).filter_map(of).collect()
    }
    let scenario = &evaluation.scenario;
    let trained = scenario.training.as_ref().map(|training| fitted("Step time", &training.efficiency_source));
    let served = scenario.serving.as_ref().map(|serving| fitted("Serving", &serving.efficiency));
    let asked = "How far each published run is missed: `clusterplan validate`.".to_owned();
    trained.into_iter().chain(served).flatten().chain([asked]).collect()
}
