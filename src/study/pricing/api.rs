//! Tokens bought by the million: what a job of serving costs at an API's prices.

use super::Work;
use super::file::ApiFile;
use super::sensitivity::{Reading, Sensitivity, ranked};
use crate::evaluate::Evaluation;
use crate::tco::TokenPrices;
use crate::units::{Ranged, Seconds, Tokens, Usd};

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
        let requests = serving.mean_rate().value() * (work.useful / Seconds::new(1.0));
        let million = Tokens::new(1e6);
        let prices = TokenPrices {
            input: wanted.input.value / million,
            cached: wanted.cached.unwrap_or(wanted.input).value / million,
            output: wanted.output.value / million,
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

/// How the answer moves with each price between its ends, the widest first.
pub(super) fn sensitivities(
    wanted: &ApiFile,
    evaluation: &Evaluation,
    work: &Work,
    typical: &Reading,
) -> Vec<Sensitivity> {
    let read = |prices: &ApiFile| {
        let total = Metered::new(prices, evaluation, work).map(|metered| metered.total()).unwrap_or_default();
        work.reading(evaluation, total, None)
    };
    let moved = |change: fn(&mut ApiFile, Usd), range: Ranged<Usd>| -> [ApiFile; 2] {
        [range.low, range.high].map(|end| {
            let mut prices = wanted.clone();
            change(&mut prices, end);
            prices
        })
    };
    // Without a price of their own cached tokens move with the others.
    let cached = wanted.cached.map(|range| {
        ("million cached tokens", range, moved(|prices, usd| prices.cached = Some(Ranged::exact(usd)), range))
    });
    let all = [
        ("million tokens of prompts", wanted.input, moved(|prices, usd| prices.input.value = usd, wanted.input)),
        ("million tokens of answers", wanted.output, moved(|prices, usd| prices.output.value = usd, wanted.output)),
    ];
    let found: Vec<Sensitivity> = all
        .into_iter()
        .chain(cached)
        .filter(|(_, range, _)| range.low < range.high)
        .map(|(what, range, [low, high])| Sensitivity {
            assumption: format!("price of a {what}"),
            ends: [range.low.to_string(), range.high.to_string()],
            low: read(&low),
            high: read(&high),
        })
        .collect();
    ranked(found, typical)
}
