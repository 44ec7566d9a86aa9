//! How many accelerators an answer takes where estimates are as far off as they may be.

use super::plan::fewest;
use super::rejected::{Rejected, Rejection};
use super::tried::Size;
use crate::evaluate::Bands;
use crate::scenario::{Arrivals, Limits, Minimise, Scenario, Serving};
use crate::units::Seconds;

/// Accelerators of an answer at both ends of the band of its throughput.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizing {
    /// The band's factors, of throughput and of times: nine of ten measurements of such deployments are within them.
    pub bands: Bands,
    /// Accelerators that do where all of these are so many times as good.
    pub faster: Result<Size, String>,
    /// Those that do where all are so many times as bad; else why none do.
    pub slower: Result<Size, String>,
}

impl Sizing {
    /// That of a scenario whose figures are known within factors, planned for again at each end.
    pub(super) fn new(scenario: &Scenario, bands: Bands, (minimise, counts): (Minimise, &[u64])) -> Self {
        let at = |end: fn(f64) -> f64| {
            let asked = at_pace(scenario, &bands, end);
            let serving = asked.serving.as_ref().ok_or_else(String::new)?;
            let found = fewest(&asked, serving, (minimise, counts));
            let why = |rejected: Rejected| rejected.nearest().map_or_else(String::new, Rejection::line);
            found.map(|best| best.size).map_err(why)
        };
        let (faster, slower) = rayon::join(|| at(f64::recip), || at(|factor| factor));
        Self { bands, faster, slower }
    }
}

/// What engines that are so many times as slow are asked, in the time of those that are not: so many times the requests a second,
/// within limits that are as many times shorter as the time they are of is longer.
fn at_pace(scenario: &Scenario, bands: &Bands, end: fn(f64) -> f64) -> Scenario {
    let pace = |serving: &Serving| {
        let arrivals = match serving.arrivals {
            Arrivals::Rate(rate) => Arrivals::Rate(rate * end(bands.throughput)),
            other => other,
        };
        let shorter = |limits: &Limits| shorter(limits, end(bands.ttft), end(bands.tpot));
        let [limits, shared_limits] = [&serving.limits, &serving.shared_limits].map(shorter);
        Serving { arrivals, limits, shared_limits, ..serving.clone() }
    };
    Scenario { serving: scenario.serving.as_ref().map(pace), ..scenario.clone() }
}

/// Limits so many times shorter: of the time to the first token, and of that between tokens, which most of a whole answer is.
fn shorter(limits: &Limits, ttft: f64, tpot: f64) -> Limits {
    let of = |limit: Option<Seconds>, factor: f64| limit.map(|limit| limit / factor);
    Limits {
        ttft: of(limits.ttft, ttft),
        ttft_p95: of(limits.ttft_p95, ttft),
        ttft_p99: of(limits.ttft_p99, ttft),
        tpot: of(limits.tpot, tpot),
        tpot_p95: of(limits.tpot_p95, tpot),
        tpot_p99: of(limits.tpot_p99, tpot),
        e2e_p95: of(limits.e2e_p95, tpot),
    }
}
