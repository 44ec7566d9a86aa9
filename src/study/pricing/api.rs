//! Tokens bought by the million: what a job of serving costs at an API's prices.

use super::Work;
use super::file::ApiFile;
use crate::evaluate::Evaluation;
use crate::tco::TokenPrices;
use crate::units::{Seconds, Tokens, Usd};

/// A year's tokens at an API's prices.
#[derive(Clone, Debug, PartialEq)]
pub struct Metered {
    /// Where the prices come from.
    pub from: String,
    /// The day of the prices.
    pub date: String,
    /// The prices.
    pub prices: TokenPrices,
    /// Tokens of prompts that are not in the cache.
    pub input: Usd,
    /// Tokens of prompts that are.
    pub cached: Usd,
    /// Tokens of answers.
    pub output: Usd,
}

impl Metered {
    /// All of it.
    pub fn total(&self) -> Usd {
        self.input + self.cached + self.output
    }

    /// What the job's tokens of a year cost; none where nothing is served.
    pub(super) fn new(wanted: &ApiFile, evaluation: &Evaluation, work: &Work) -> Option<Self> {
        let serving = evaluation.serving.as_ref()?;
        // Requests of the hours in use; the base number, because they are counted.
        let requests = serving.request_rate().value() * (work.useful / Seconds::new(1.0));
        let million = Tokens::new(1e6);
        let prices = TokenPrices {
            input: wanted.input / million,
            cached: wanted.cached.unwrap_or(wanted.input) / million,
            output: wanted.output / million,
        };
        let of = |tokens: f64| Tokens::new(requests * tokens);
        let request = &serving.request;
        Some(Self {
            from: wanted.source.clone(),
            date: wanted.date.0.clone(),
            prices,
            input: prices.input * of(request.input),
            cached: prices.cached * of(request.cached),
            output: prices.output * of(request.output),
        })
    }
}
