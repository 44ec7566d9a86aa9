//! The same job bought in several ways: owned, or rented from providers at their terms; end to end, with each one's fabric,
//! failures and waiting time.

mod break_even;
mod file;
mod own;
mod rent;
mod sensitivity;

pub use break_even::{OfferBreakEven, OfferTurn};
pub use file::{OfferKind, PathFile, StudyFile};
pub use own::{Earnings, OnPath, Owned};
pub use rent::{HourPrice, Rented};
pub use sensitivity::Sensitivity;

use std::sync::Arc;

use crate::catalog::pricebook::Line;
use crate::catalog::{Catalog, Currency, Entry};
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{Node, Value};
use crate::evaluate::{Evaluation, Infeasible};
use crate::scenario::{Scenario, ScenarioFile};
use crate::search::evaluate;
use crate::units::{Factor, Fraction, SECONDS_PER_DAY, SECONDS_PER_YEAR, Seconds, Usd, UsdPerHour};
use file::OfferFile;
use rent::Rent;

/// What one way of buying comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Bought {
    /// Owned.
    Own(Box<Owned>),
    /// Rented.
    Rent(Rented),
}

/// The job on one offer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The job's evaluation there.
    pub evaluation: Box<Evaluation>,
    /// The job's time.
    pub work: Work,
    /// What owning or renting comes to.
    pub bought: Bought,
    /// What the job costs end to end.
    pub total: Usd,
    /// An accelerator's hour: owned, or rented.
    pub per_gpu_hour: UsdPerHour,
    /// An accelerator's hour of useful work.
    pub per_useful_gpu_hour: UsdPerHour,
    /// From the order until the job is done.
    pub ready_after: Seconds,
    /// How the hour of useful work moves with each assumption, the widest first.
    pub sensitivities: Vec<Sensitivity>,
}

/// What is paid for: a training run, or a year of serving.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Time that it takes.
    pub wall: Seconds,
    /// Time of it that is of use: without failures in training; at the share of hours in use in serving.
    pub useful: Seconds,
    /// Accelerators that it takes.
    pub accelerators: u32,
}

impl Work {
    fn of(evaluation: &Evaluation) -> Self {
        let year = Seconds::new(SECONDS_PER_YEAR);
        let accelerators = evaluation.scenario.cluster.accelerators;
        match (evaluation.point, evaluation.effective_duration()) {
            (Some(point), Some(wall)) => Self { wall, useful: point.duration, accelerators },
            _ => Self { wall: year, useful: year * evaluation.scenario.finance.utilisation.get(), accelerators },
        }
    }

    /// What an hour of an accelerator here is worth where the same work may be done at another's price: that price, times
    /// the accelerator-hours that the work takes there over those that it takes here.
    pub fn equivalent(self, price: UsdPerHour, there: Self) -> UsdPerHour {
        price * (there.wall / self.wall) * (f64::from(there.accelerators) / f64::from(self.accelerators))
    }

    /// What it costs on an owned cluster: of a run its share of the hours in use, of serving the whole year.
    fn owned(self, evaluation: &Evaluation) -> Usd {
        let bought = evaluation.built.drivers.accelerators as f64;
        let year = || (evaluation.unit_costs.per_gpu_hour * bought).over(self.wall);
        evaluation.point.map_or_else(year, |point| point.run)
    }

    /// What an accelerator's hour of useful work costs.
    fn per_useful_hour(self, total: Usd) -> UsdPerHour {
        total.per(self.useful * f64::from(self.accelerators))
    }
}

/// An offer and its answer.
#[derive(Clone, Debug)]
pub struct PricedOffer {
    /// Its name.
    pub name: Arc<str>,
    /// How accelerators are come by.
    pub kind: OfferKind,
    /// The answer.
    pub outcome: Result<Answer, Infeasible>,
}

/// A study's answer.
#[derive(Clone, Debug)]
pub struct PricingStudy {
    /// What is asked, in a line.
    pub title: String,
    /// The job's title.
    pub job: String,
    /// The currency that amounts are shown in beside dollars.
    pub currency: Option<Arc<Entry<Currency>>>,
    /// The offers, in the order of the file.
    pub offers: Vec<PricedOffer>,
    /// Where renting turns into owning.
    pub break_even: Vec<OfferBreakEven>,
}

/// Prices every offer; mistakes go to the sink, and there is an answer only if there are none.
pub fn price(study: &StudyFile, job: &Node, catalog: &Catalog, sink: &Sink) -> Option<PricingStudy> {
    let currency = study
        .currency
        .as_ref()
        .filter(|wanted| wanted.id != "USD")
        .and_then(|wanted| catalog.currencies.find(wanted, &wanted.at, sink));
    let bound: Vec<Option<Bound>> = study.offers.iter().map(|offer| Bound::new(offer, job, catalog, sink)).collect();
    if !sink.is_empty() {
        return None;
    }
    let evaluated: Vec<(Bound, Result<Evaluated, Infeasible>)> =
        bound.into_iter().flatten().map(Bound::evaluated).collect();
    let rented: Vec<Alternative> = evaluated.iter().filter_map(Alternative::of).collect();
    let mut offers = Vec::new();
    for (bound, evaluated) in evaluated {
        let outcome = evaluated.map(|evaluated| bound.answer(evaluated, &rented, &study.paths, sink));
        offers.push(PricedOffer { name: bound.name, kind: bound.kind, outcome });
    }
    let break_even = break_even::all(&offers);
    let job = job.at_path("title").and_then(Node::as_str).unwrap_or_default().to_owned();
    sink.is_empty().then(|| PricingStudy { title: study.title.clone(), job, currency, offers, break_even })
}

/// An offer with the job bound to it.
struct Bound<'a> {
    name: Arc<str>,
    kind: OfferKind,
    file: &'a OfferFile,
    scenario: Scenario,
    rent: Option<Rent>,
}

impl<'a> Bound<'a> {
    fn new(offer: &'a OfferFile, job: &Node, catalog: &Catalog, sink: &Sink) -> Option<Self> {
        let mut document = job.clone();
        if let Value::Table(table) = &mut document.value {
            for (key, value) in &offer.set {
                if let Err(error) = table.set(key, value.clone()) {
                    let message = format!("`{key}` cannot be set: {error}");
                    sink.push(Diagnostic::new(Code::UnknownKey, message).at(&value.at, "its value"));
                }
            }
        }
        let own = Sink::default();
        let file = ScenarioFile::read(&document, &own);
        let scenario = Scenario::resolve(&file, catalog, &own);
        sink.merge(own);
        let mut scenario = scenario?;
        let rent = match offer.kind {
            OfferKind::Own => None,
            OfferKind::Rent => {
                Some(Rent::bind(&offer.rent, &scenario.cluster.accelerator.id, &offer.at, catalog, sink)?)
            }
        };
        if let Some(taken_back) = offer.rent.interruptions_per_day {
            interrupt(&mut scenario, taken_back);
        }
        add_lines(&mut scenario, &offer.lines);
        if let Some(pooling) = offer.own.pooling {
            pool(&mut scenario, pooling, offer, sink);
        }
        Some(Self { name: offer.name.as_str().into(), kind: offer.kind, file: offer, scenario, rent })
    }

    fn evaluated(self) -> (Self, Result<Evaluated, Infeasible>) {
        let evaluated = evaluate(self.scenario.clone()).map(|evaluation| {
            let work = Work::of(&evaluation);
            Evaluated { evaluation: Box::new(evaluation), work }
        });
        (self, evaluated)
    }

    fn answer(&self, evaluated: Evaluated, rented: &[Alternative], paths: &[PathFile], sink: &Sink) -> Answer {
        let Evaluated { evaluation, work } = evaluated;
        let (bought, total, per_gpu_hour, usual_wait) = if let Some(rent) = &self.rent {
            let rented = rent.rented(&evaluation, work.wall);
            (Bought::Rent(rented.clone()), rented.total(), rented.hour.price, rent.usual_wait)
        } else {
            let years = own::horizon(&evaluation).unwrap_or_else(|| {
                let message = "`finance.horizon` of the job has to be whole years for an owned offer";
                let hint = "such as set = { \"finance.horizon\" = \"5 years\" }";
                sink.push(Diagnostic::new(Code::OutOfRange, message).at(&self.file.at, "this offer").hint(hint));
                1
            });
            // What owning saves is the cheapest that could be rented for the same work.
            let saved = rented
                .iter()
                .map(|other| (other.name.clone(), work.equivalent(other.price, other.work)))
                .reduce(|best, other| if other.1 < best.1 { other } else { best });
            let owned = own::owned(&evaluation, &self.file.own, saved, paths, years);
            let costs = evaluation.unit_costs.per_gpu_hour;
            (Bought::Own(Box::new(owned)), work.owned(&evaluation), costs, None)
        };
        let per_useful_gpu_hour = work.per_useful_hour(total);
        Answer {
            sensitivities: sensitivity::of(&evaluation.scenario, self.rent.as_ref(), per_useful_gpu_hour),
            bought,
            total,
            per_gpu_hour,
            per_useful_gpu_hour,
            ready_after: self.file.wait.or(usual_wait).unwrap_or(Seconds::ZERO) + work.wall,
            work,
            evaluation,
        }
    }
}

/// An offer whose job is evaluated.
struct Evaluated {
    evaluation: Box<Evaluation>,
    work: Work,
}

/// What could be rented instead of owning.
struct Alternative {
    name: Arc<str>,
    price: UsdPerHour,
    work: Work,
}

impl Alternative {
    fn of((bound, evaluated): &(Bound<'_>, Result<Evaluated, Infeasible>)) -> Option<Self> {
        let work = evaluated.as_ref().ok()?.work;
        Some(Self { name: bound.name.clone(), price: bound.rent.as_ref()?.hour.price, work })
    }
}

/// Adds cost lines to the price book; one of the same name replaces the book's.
fn add_lines(scenario: &mut Scenario, lines: &[Line]) {
    if lines.is_empty() {
        return;
    }
    let mut book = (*scenario.cluster.prices).clone();
    for line in lines {
        match book.part.lines.iter_mut().find(|old| old.name == line.name) {
            Some(old) => *old = line.clone(),
            None => book.part.lines.push(line.clone()),
        }
    }
    scenario.cluster.prices = Arc::new(book);
}

/// Raises the share of hours in use where accelerators are shared, in parts or in turns.
fn pool(scenario: &mut Scenario, pooling: Factor, offer: &OfferFile, sink: &Sink) {
    let alone = scenario.finance.utilisation.get();
    match Fraction::new(alone * pooling.get()) {
        Some(shared) if shared > Fraction::ZERO => scenario.finance.utilisation = shared,
        _ => {
            let message = format!("{alone} of the hours in use, times {} by pooling, is no share", pooling.get());
            let hint = "the job's `finance.utilisation` times `pooling` is more than 0 and at most 1";
            sink.push(Diagnostic::new(Code::OutOfRange, message).at(&offer.at, "this offer").hint(hint));
        }
    }
}

/// Adds interruptions of each instance, as spot instances are taken back, to those of the hosts.
fn interrupt(scenario: &mut Scenario, per_day: Factor) {
    if per_day == Factor::default() {
        return;
    }
    let day = Seconds::new(SECONDS_PER_DAY);
    let mut reliability = (*scenario.cluster.reliability).clone();
    let host = &mut reliability.part.mtbf.host;
    for time in [&mut host.value, &mut host.low, &mut host.high] {
        *time = day / (day / *time + per_day.get());
    }
    scenario.cluster.reliability = Arc::new(reliability);
}
