//! How far published figures of a kind scatter.

use super::setup::{Quantity, Setup};

/// Independent figures that a figure counts for. Points of a campaign (a model on an engine and an accelerator, at dozens of
/// lengths, layouts and concurrencies) miss together, so that fifty say about as much as one; counted as fifty, they would
/// move constants that they do not determine, and a model that the fit has not seen is missed by twice as much.
pub(super) const INDEPENDENT: f64 = 0.02;

/// How far figures of a run's quantity scatter between versions of an engine and campaigns, as a logarithm: a fit trusts
/// them by that. None where a figure is derived from others, and of first tokens that tell little.
pub(super) fn scatter(setup: &Setup, quantity: Quantity) -> Option<f64> {
    Some(match quantity {
        Quantity::Tpot if setup.has_experts() => 0.06,
        Quantity::Tpot => 0.05,
        Quantity::Ttft if !setup.tells_first_tokens() => return None,
        Quantity::Ttft if setup.disaggregated() => 0.4,
        Quantity::Ttft => 0.15,
        Quantity::Throughput if setup.offline() => 0.06,
        Quantity::Throughput => return None,
    })
}
