//! What is paid for, and what an hour and a headline of it come to.

use super::Reading;
use crate::evaluate::Evaluation;
use crate::tco::ProForma;
use crate::units::{SECONDS_PER_YEAR, Seconds, Tokens, Usd, UsdPerHour};

/// What is paid for: a training run, or a year of serving.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Time that it takes.
    pub wall: Seconds,
    /// Time of it that is of use: without failures in training; at the share of hours in use in serving.
    pub useful: Seconds,
    /// Time that whoever rents by the hour pays for: all of a run; of serving the hours in use.
    pub in_use: Seconds,
    /// Accelerators that it takes.
    pub accelerators: u32,
    /// Requests that are served in a second; one where nothing is served.
    pub requests: f64,
}

impl Work {
    pub(super) fn of(evaluation: &Evaluation) -> Self {
        let year = Seconds::new(SECONDS_PER_YEAR);
        let accelerators = evaluation.scenario.cluster.accelerators;
        // The base number, because rates are held against each other.
        let requests = evaluation.serving.filter(|_| evaluation.point.is_none());
        let requests = requests.map_or(1.0, |serving| serving.mean_rate().value());
        if let (Some(point), Some(wall)) = (evaluation.point, evaluation.effective_duration()) {
            return Self { wall, useful: point.duration, in_use: wall, accelerators, requests };
        }
        let useful = year * evaluation.scenario.finance.utilisation.get();
        Self { wall: year, useful, in_use: useful, accelerators, requests }
    }

    /// What an hour of an accelerator here is worth where the same work may be done at another's price: that price, times
    /// the accelerator-hours that the work takes there over those that it takes here.
    pub fn equivalent(self, price: UsdPerHour, there: Self) -> UsdPerHour {
        let time = there.wall / self.wall * (f64::from(there.accelerators) / f64::from(self.accelerators));
        price * time * (self.requests / there.requests)
    }

    /// What it costs on an owned cluster: of a run its share of the hours in use, of serving the whole year.
    pub(super) fn owned(self, evaluation: &Evaluation) -> Usd {
        let bought = evaluation.built.drivers.accelerators as f64;
        let year = || (evaluation.unit_costs.per_gpu_hour * bought).over(self.wall);
        evaluation.point.map_or_else(year, |point| point.run)
    }

    /// What an offer comes to that costs so much, and whose project has these years where it is owned.
    pub(super) fn reading(self, evaluation: &Evaluation, total: Usd, years: Option<&ProForma>) -> Reading {
        let million = Tokens::new(1e6);
        Reading {
            hour: self.per_useful_hour(total),
            headline: self.tokens(evaluation).map_or(total, |tokens| total * (million / tokens)),
            present_value: years.map(|years| years.net_present_value),
            owners_return: years.and_then(|years| years.levered_return.as_ref().ok().copied()),
        }
    }

    /// Tokens of prompts and answers that are served in it, none where it trains: those of the hours in use, which are as many
    /// however they are paid for.
    pub fn tokens(self, evaluation: &Evaluation) -> Option<Tokens> {
        let serving = evaluation.serving.filter(|_| evaluation.point.is_none())?;
        // The base number, because they are counted.
        Some(Tokens::new(serving.mean_rate().value() * (self.useful / Seconds::new(1.0)) * serving.request.tokens()))
    }

    /// What an accelerator's hour of useful work costs.
    pub(super) fn per_useful_hour(self, total: Usd) -> UsdPerHour {
        total.per(self.useful * f64::from(self.accelerators))
    }
}
