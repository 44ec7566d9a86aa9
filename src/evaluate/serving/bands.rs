//! How far figures of serving may be off: by what measurements of the same kind were missed, and wider where there are none.

use crate::catalog::serving_coverage::{Architecture, ServingCoverage};
use crate::memory::serving::CacheFormats;
use crate::scenario::{Cluster, Serving, SharedBy};
use crate::units::Factor;

/// Factors within which nine of ten figures are expected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bands {
    /// Of the time between tokens.
    pub tpot: f64,
    /// Of the time to the first token.
    pub ttft: f64,
    /// Of the tokens in a time.
    pub throughput: f64,
    /// The kind of model.
    pub architecture: Architecture,
    /// Whether no measurement covers this kind of deployment.
    pub uncalibrated: bool,
}

impl Bands {
    /// Of a scenario whose requests are `coming` at a rate or a concurrency, or else without end; none where the constants' catalog says nothing of what they were held against.
    ///
    /// A figure that was measured for this generation, engine and kind of model, in pools or not, with weights and caches in such formats, has the factor of those
    /// measurements. Any other has the widest of the nearest kinds that were (those with most of the four alike) twice over:
    /// once as they are missed themselves, and as much again, a judgement, for what was never looked at. Pools on accelerators
    /// of two generations were not measured: the time to the first token is of prefill's, all else of decode's.
    pub(super) fn new(serving: &Serving, cluster: &Cluster, architecture: Architecture, coming: bool) -> Option<Self> {
        let cells = &serving.efficiency.coverage;
        let [decode, prefill] =
            [cluster.main_nodes(), cluster.nodes_of_prefill()].map(|nodes| nodes.accelerator.generation.as_str());
        let cache = CacheFormats::of(&serving.model).keys_values;
        let measured = !serving.features.is_unmeasured() && decode == prefill;
        let band_on = |generation: &str, of: fn(&ServingCoverage) -> Option<Factor>| {
            let near = |cell: &ServingCoverage| alike(cell, serving, generation, architecture);
            let covers = |cell: &&ServingCoverage| near(cell) == ALL && cell.has_formats(serving.weights, cache);
            let own = cells.iter().find(|cell| measured && covers(cell)).and_then(of);
            let nearest = cells.iter().filter(|cell| of(cell).is_some()).map(near).max();
            let others = cells.iter().filter(|cell| Some(near(cell)) == nearest).filter_map(of);
            let widest = others.map(|factor| factor.get().powi(2)).reduce(f64::max);
            (own.map(Factor::get).or(widest), own.is_some())
        };
        let band = |of| band_on(decode, of);
        let (tpot, tpot_known) = band(|cell| cell.tpot);
        let (ttft, ttft_known) = band_on(prefill, |cell| cell.ttft);
        // Throughput at a concurrency or a rate follows from the time between tokens.
        let ((throughput, known), latencies) = if coming {
            ((tpot, tpot_known), ttft_known)
        } else {
            let offline = band(|cell| cell.throughput);
            (if offline.1 || !tpot_known { offline } else { (tpot, tpot_known) }, true)
        };
        let uncalibrated = !(known && latencies);
        // Beside each other processes take longer than their share alone would make them.
        let beside = serving.features.slice.as_ref().is_some_and(|slice| slice.shared == Some(SharedBy::Mps));
        let wider = if beside { serving.efficiency.sharing.interference.get() } else { 1.0 };
        let [tpot, ttft, throughput] = [tpot?, ttft?, throughput?].map(|band| band * wider);
        Some(Self { tpot, ttft, throughput, architecture, uncalibrated })
    }
}

/// What a kind of deployment is told by.
const ALL: usize = 4;

/// How much of that a measured kind has in common with a scenario.
fn alike(cell: &ServingCoverage, serving: &Serving, generation: &str, architecture: Architecture) -> usize {
    let same = [
        cell.generation == generation,
        cell.engine == serving.engine.word(),
        cell.architecture == architecture,
        cell.pools == serving.prefill.is_some(),
    ];
    same.into_iter().filter(|same| *same).count()
}
