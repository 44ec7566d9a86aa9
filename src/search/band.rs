//! How many accelerators an answer takes where estimates are as far off as they may be.

use super::plan::fewest;
use super::rejected::{Rejected, Rejection};
use super::tried::Size;
use crate::scenario::{Arrivals, Limits, Minimise, Scenario, Serving};
use crate::units::Seconds;

/// Accelerators of an answer at both ends of the band of its throughput.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizing {
    /// The band's factor: nine of ten measurements of such deployments are within it.
    pub factor: f64,
    /// Accelerators that do where everything is so many times as fast.
    pub faster: Result<Size, String>,
    /// Those that do where everything takes so many times as long; else why none do.
    pub slower: Result<Size, String>,
}

impl Sizing {
    /// That of a scenario whose throughput is known within a factor, planned for again at each end.
    pub(super) fn new(scenario: &Scenario, factor: f64, (minimise, counts): (Minimise, &[u64])) -> Self {
        let at = |slower: f64| {
            let asked = at_pace(scenario, slower);
            let serving = asked.serving.as_ref().ok_or_else(String::new)?;
            let found = fewest(&asked, serving, (minimise, counts));
            let why = |rejected: Rejected| rejected.nearest().map_or_else(String::new, Rejection::line);
            found.map(|best| best.size).map_err(why)
        };
        let (faster, slower) = rayon::join(|| at(factor.recip()), || at(factor));
        Self { factor, faster, slower }
    }
}

/// What engines that take so many times as long for everything are asked, in the time of those that do not: so many times the
/// requests a second, within as many times shorter limits.
fn at_pace(scenario: &Scenario, slower: f64) -> Scenario {
    let pace = |serving: &Serving| {
        let arrivals = match serving.arrivals {
            Arrivals::Rate(rate) => Arrivals::Rate(rate * slower),
            other => other,
        };
        Serving { arrivals, limits: shorter(&serving.limits, slower), ..serving.clone() }
    };
    Scenario { serving: scenario.serving.as_ref().map(pace), ..scenario.clone() }
}

/// Limits so many times shorter.
fn shorter(limits: &Limits, factor: f64) -> Limits {
    let of = |limit: Option<Seconds>| limit.map(|limit| limit / factor);
    Limits {
        ttft: of(limits.ttft),
        ttft_p95: of(limits.ttft_p95),
        ttft_p99: of(limits.ttft_p99),
        tpot: of(limits.tpot),
        tpot_p95: of(limits.tpot_p95),
        tpot_p99: of(limits.tpot_p99),
        e2e_p95: of(limits.e2e_p95),
    }
}
