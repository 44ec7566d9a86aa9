//! What a million tokens cost.

use super::{Evaluation, ServingPoint};
use crate::tco::TokenPrices;
use crate::units::{Seconds, Tokens, Usd, UsdPerHour, UsdPerToken};

const MILLION: f64 = 1e6;

/// Costs of a million tokens by kind; they add up to what the replicas cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenCosts {
    /// Of prompts, computed.
    pub input: Usd,
    /// Of prompts, cached; none where none are.
    pub cached: Option<Usd>,
    /// Of answers.
    pub output: Usd,
    /// All alike.
    pub blended: Usd,
}

impl Evaluation {
    /// What tokens cost, where anything is served.
    pub fn token_costs(&self) -> Option<TokenCosts> {
        Some(TokenCosts::new(&self.serving?, self.unit_costs.per_useful_gpu_hour))
    }
}

impl TokenCosts {
    /// A replica's time is prefill's while decode waits for it, and decode's else; prefill's is the prompt's own tokens'
    /// but for what attention to cached ones adds.
    pub fn new(point: &ServingPoint, gpu: UsdPerHour) -> Self {
        let second = gpu.over(Seconds::new(1.0)) * point.accelerators_per_replica();
        let (request, state) = (&point.request, &point.state);
        let rate = state.requests_per_second;
        let of = |share: f64, tokens: f64| second * (share / (rate * tokens) * MILLION);
        let prefill = point.prefill_share();
        let to_cached = prefill * point.cached_share;
        Self {
            input: of(prefill - to_cached, request.input.max(f64::MIN_POSITIVE)),
            cached: (request.cached > 0.0).then(|| of(to_cached, request.cached)),
            output: of(1.0 - prefill, request.output),
            blended: of(1.0, request.input + request.cached + request.output),
        }
    }

    /// Each kind's cost of a token; of none where no token is cached.
    pub fn prices(&self) -> TokenPrices {
        let million = Tokens::new(MILLION);
        let of = |cost: Usd| cost / million;
        TokenPrices {
            input: of(self.input),
            cached: self.cached.map_or(UsdPerToken::ZERO, of),
            output: of(self.output),
        }
    }
}
