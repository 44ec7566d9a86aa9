//! The same job bought in several ways: owned, or rented from providers at their terms; end to end, with each one's fabric,
//! failures and waiting time.

mod api;
mod break_even;
mod file;
mod own;
mod rent;
mod sensitivity;
mod work;

pub use api::Metered;
pub use break_even::{OfferBreakEven, OfferTurn};
pub use file::{OfferKind, PathFile, StudyFile};
pub use own::{Earnings, OnPath, Owned};
pub use rent::{HourPrice, Rented};
pub use sensitivity::{Reading, Sensitivity};
pub use work::Work;

use std::borrow::Cow;
use std::sync::Arc;

use crate::catalog::{self, Catalog, Currency, Entry};
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{Node, Value};
use crate::evaluate::{Evaluation, Footprint, Infeasible, TokenCosts};
use crate::scenario::{Scenario, ScenarioFile};
use crate::search::evaluate;
use crate::sweep::{catalog_has, catalog_unused};
use crate::units::{Factor, Fraction, SECONDS_PER_DAY, Seconds, Tokens, Usd, UsdPerHour, UsdPerToken};
use file::{DPUS, DpusFile, FREED, OfferFile};
use rent::Rent;

/// What one way of buying comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Bought {
    /// Owned.
    Own(Box<Owned>),
    /// Rented.
    Rent(Rented),
    /// Paid by the token.
    Api(Metered),
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
    /// An accelerator's hour: owned, or rented; none where tokens are paid for.
    pub per_gpu_hour: Option<UsdPerHour>,
    /// An accelerator's hour of useful work; where tokens are paid for, of as many accelerators as the job has.
    pub per_useful_gpu_hour: UsdPerHour,
    /// What tokens cost, where anything is served and they are not bought by themselves.
    pub tokens: Option<TokenCosts>,
    /// Data processing units: what a year of them costs, and what the host cores that they free are worth in it.
    pub dpus: Option<(Usd, Usd)>,
    /// From the order until the job is done.
    pub ready_after: Seconds,
    /// What it comes to with all assumptions as they are.
    pub typical: Reading,
    /// How that moves with each assumption, the widest first.
    pub sensitivities: Vec<Sensitivity>,
}

impl Answer {
    /// The evaluation of what stands somewhere for the job, by which energy is told: of what is rented, that of the hours that are
    /// paid for, as if at the job's site; none where tokens are bought, for what their seller has is not known.
    pub fn housed(&self) -> Option<Cow<'_, Evaluation>> {
        match &self.bought {
            Bought::Own(_) => Some(Cow::Borrowed(&self.evaluation)),
            Bought::Rent(rented) => {
                let in_use = Fraction::new(self.work.in_use / rented.paid).unwrap_or(Fraction::ONE);
                self.evaluation.rented(in_use).map(Cow::Owned)
            }
            Bought::Api(_) => None,
        }
    }

    /// What the facility draws for the job, end to end, and emissions of that by the intensity of the site's grid.
    pub fn of_job(&self) -> Option<Footprint> {
        let hours = self.work.useful / Seconds::new(3_600.0) * f64::from(self.work.accelerators);
        Some(self.housed()?.useful_hour().times(hours))
    }

    /// What 10^15 model FLOPs a second for a day cost, where anything is trained.
    pub fn pflop_day(&self) -> Option<Usd> {
        Some(self.per_useful_gpu_hour.over(self.evaluation.pflop_day()?))
    }

    /// What a million tokens cost, all alike, where anything is served and nothing trained.
    pub fn million_tokens(&self) -> Option<Usd> {
        self.work.tokens(&self.evaluation).map(|_| self.typical.headline)
    }

    /// The same by kind, or what is asked for each where they are bought.
    pub fn by_kind(&self) -> Option<TokenCosts> {
        let Bought::Api(Metered { prices, .. }) = &self.bought else { return self.tokens };
        let of = |price: UsdPerToken| price * Tokens::new(1e6);
        let cached = (self.evaluation.serving?.request.cached > 0.0).then(|| of(prices.cached));
        Some(TokenCosts { input: of(prices.input), cached, output: of(prices.output), blended: self.typical.headline })
    }

    /// What a task and a success of agents cost, where there are agents.
    pub fn task(&self) -> Option<(Usd, Usd)> {
        let prices = match &self.bought {
            Bought::Api(metered) => metered.prices,
            _ => self.tokens?.prices(),
        };
        let (task, success) = self.evaluation.task_at(&prices)?;
        Some((task.total(), success))
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
    // Codes are written in capitals, ids of the catalog in small letters.
    let currency = study
        .currency
        .as_ref()
        .map(|wanted| (wanted.id.to_ascii_lowercase(), &wanted.at))
        .filter(|(id, _)| id != "usd")
        .and_then(|(id, at)| catalog.currencies.find(&id, at, sink));
    let job = &with(job, &study.set, sink);
    let bound: Vec<Option<Bound>> = study.offers.iter().map(|offer| Bound::new(offer, job, catalog, sink)).collect();
    if !sink.is_empty() {
        return None;
    }
    let evaluated: Vec<(Bound, Result<Evaluated, Infeasible>)> =
        bound.into_iter().flatten().map(Bound::evaluated).collect();
    let rented: Vec<Alternative> = evaluated.iter().filter_map(Alternative::of).collect();
    let moving = evaluated.iter().filter(|(bound, _)| bound.kind != OfferKind::Api);
    let evaluations = moving.filter_map(|(_, evaluated)| Some(&*evaluated.as_ref().ok()?.evaluation));
    let from = Origin { job, catalog, moved: sensitivity::moved(evaluations, catalog) };
    let mut offers = Vec::new();
    for (bound, evaluated) in evaluated {
        let outcome = evaluated.map(|evaluated| bound.answer(evaluated, &rented, &study.paths, &from, sink));
        offers.push(PricedOffer { name: bound.name, kind: bound.kind, outcome });
    }
    let break_even = break_even::all(&offers);
    let job = job.at_path("title").and_then(Node::as_str).unwrap_or_default().to_owned();
    sink.is_empty().then(|| PricingStudy { title: study.title.clone(), job, currency, offers, break_even })
}

/// The job with some of its keys set otherwise.
fn with(job: &Node, set: &[(String, Node)], sink: &Sink) -> Node {
    let mut document = job.clone();
    if let Value::Table(table) = &mut document.value {
        for (key, value) in set {
            if let Err(error) = table.set(key, value.clone()) {
                let message = format!("`{key}` cannot be set: {error}");
                sink.push(Diagnostic::new(Code::UnknownKey, message).at(&value.at, "its value").hint(error.hint()));
            }
        }
    }
    document
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
        let document = with(job, &offer.set, sink);
        let changed = (!offer.figures.is_empty()).then(|| file::with_figures(catalog, &offer.figures, sink));
        let catalog = changed.as_ref().unwrap_or(catalog);
        let own = Sink::default();
        let file = ScenarioFile::read(&document, &own);
        let scenario = Scenario::resolve(&file, catalog, &own);
        sink.merge(own);
        let mut scenario = scenario?;
        let used = scenario.cluster.entries();
        for figure in &offer.figures {
            let known = figure.field.as_ref().filter(|field| catalog_has(&catalog.records(), field));
            let unused = known.and_then(|field| catalog_unused(field, &figure.key.0, &used));
            if let Some(mistake) = unused {
                sink.push(mistake.at(&figure.key.1, "this figure"));
            }
        }
        let rent = match offer.kind {
            OfferKind::Api if scenario.serving.is_none() => {
                let hint = "name a job with [serving]";
                let message = "tokens are bought for serving, and the job trains";
                sink.push(Diagnostic::new(Code::Inconsistent, message).at(&offer.at, "this offer").hint(hint));
                return None;
            }
            OfferKind::Own | OfferKind::Api => None,
            OfferKind::Rent => Some(Rent::bind(&offer.rent, &scenario.cluster, &offer.at, catalog, sink)?),
        };
        if let Some(taken_back) = offer.rent.interruptions_per_day {
            interrupt(&mut scenario, Factor::default(), taken_back.value);
        }
        price_own(&mut scenario, offer, sink);
        if let Some(pooling) = offer.own.pooling {
            pool(&mut scenario, pooling, offer, sink);
        }
        Some(Self { name: offer.name.as_str().into(), kind: offer.kind, file: offer, scenario, rent })
    }

    /// The job's tokens at the prices of an API, where it is bought there.
    fn metered(&self, evaluation: &Evaluation, work: &Work) -> Option<Metered> {
        Metered::new(self.file.api.as_ref()?, evaluation, work)
    }

    fn evaluated(self) -> (Self, Result<Evaluated, Infeasible>) {
        let evaluated = evaluate(self.scenario.clone()).map(|evaluation| {
            let work = Work::of(&evaluation);
            Evaluated { evaluation: Box::new(evaluation), work }
        });
        (self, evaluated)
    }

    fn answer(
        &self,
        evaluated: Evaluated,
        rented: &[Alternative],
        paths: &[PathFile],
        from: &Origin<'_>,
        sink: &Sink,
    ) -> Answer {
        let Evaluated { evaluation, work } = evaluated;
        // What owning saves is the cheapest that could be rented for the same work.
        let saved = rented
            .iter()
            .map(|other| (other.name.clone(), other.price.here(work)))
            .reduce(|best, other| if other.1 < best.1 { other } else { best });
        let instead = saved.as_ref().map(|(_, price)| *price);
        let (bought, total, per_gpu_hour, usual_wait) = if let Some(rent) = &self.rent {
            let rented = rent.rented(&evaluation, &work);
            (Bought::Rent(rented.clone()), rented.total(), Some(rented.hour.price), rent.usual_wait)
        } else if let Some(metered) = self.metered(&evaluation, &work) {
            (Bought::Api(metered.clone()), metered.total(), None, None)
        } else {
            let years = own::horizon(&evaluation).unwrap_or_else(|| {
                let message = "`finance.horizon` of the job has to be whole years for an owned offer";
                let hint = "such as set = { \"finance.horizon\" = \"5 years\" }";
                sink.push(Diagnostic::new(Code::OutOfRange, message).at(&self.file.at, "this offer").hint(hint));
                1
            });
            let owned = own::owned(&evaluation, &self.file.own, saved, paths, years);
            let costs = Some(evaluation.unit_costs.per_gpu_hour);
            (Bought::Own(Box::new(owned)), work.owned(&evaluation), costs, None)
        };
        let per_useful_gpu_hour = work.per_useful_hour(total);
        let years = match &bought {
            Bought::Own(owned) => owned.years.as_ref(),
            Bought::Rent(_) | Bought::Api(_) => None,
        };
        let typical = work.reading(&evaluation, total, years);
        Answer {
            tokens: match &bought {
                Bought::Api(_) => None,
                Bought::Rent(rented) => evaluation.token_costs_at(per_useful_gpu_hour, rented.hour.prefill_share),
                Bought::Own(_) => evaluation.token_costs_at(per_useful_gpu_hour, None),
            },
            sensitivities: match &self.file.api {
                Some(api) => api::sensitivities(api, &evaluation, &work, &typical),
                None => sensitivity::of(self, &evaluation, from, instead, &typical),
            },
            typical,
            dpus: self.file.dpus.as_ref().map(|_| {
                let lines = &evaluation.built.costs.lines;
                let of = |name: &str| -> Usd {
                    lines.iter().filter(|line| line.name == name).map(|line| line.annualised).sum()
                };
                (of(DPUS), -of(FREED))
            }),
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

/// What offers are bound to.
struct Origin<'a> {
    job: &'a Node,
    catalog: &'a Catalog,
    /// The catalog with one value after the other moved.
    moved: sensitivity::Moved,
}

/// An offer whose job is evaluated.
struct Evaluated {
    evaluation: Box<Evaluation>,
    work: Work,
}

/// What could be rented or bought by the token instead of owning.
struct Alternative {
    name: Arc<str>,
    price: OtherPrice,
}

/// What an accelerator's hour in use costs elsewhere, and the work that it does there.
#[derive(Clone, Copy)]
struct OtherPrice(UsdPerHour, Work);

impl OtherPrice {
    /// For the same work, an accelerator's hour in use here.
    fn here(self, work: Work) -> UsdPerHour {
        work.equivalent(self.0, self.1)
    }

    /// Of an answer that is not owned.
    fn of(answer: &Answer) -> Option<Self> {
        let price = match &answer.bought {
            Bought::Own(_) => return None,
            Bought::Rent(rented) => rented.hour_in_use,
            Bought::Api(metered) => answer.work.per_useful_hour(metered.total()),
        };
        Some(Self(price, answer.work))
    }
}

impl Alternative {
    fn of((bound, evaluated): &(Bound<'_>, Result<Evaluated, Infeasible>)) -> Option<Self> {
        let Evaluated { evaluation, work } = evaluated.as_ref().ok()?;
        let price = match &bound.rent {
            Some(rent) => rent.rented(evaluation, work).hour_in_use,
            None => work.per_useful_hour(bound.metered(evaluation, work)?.total()),
        };
        Some(Self { name: bound.name.clone(), price: OtherPrice(price, *work) })
    }
}

/// Puts an offer's own prices and cost lines into the price book, instead of those of the same part or name.
fn price_own(scenario: &mut Scenario, offer: &OfferFile, sink: &Sink) {
    if offer.lines.is_empty() && offer.prices.is_empty() && offer.dpus.is_none() {
        return;
    }
    if let Some(dpus) = &offer.dpus {
        for nodes in scenario.cluster.kinds_of_nodes() {
            free_cores(dpus, nodes.node, offer, sink);
        }
    }
    let mut book = (*scenario.cluster.prices).clone();
    for price in &offer.prices {
        if let Some(old) = book.part.prices.iter_mut().find(|old| old.part.id == price.part.id) {
            *old = price.clone();
        } else {
            let message = format!("the price book has no part `{}` whose price could be another", price.part.id);
            let hint = format!("`clusterplan catalog show {}` lists its parts", book.id);
            sink.push(Diagnostic::new(Code::NotInCatalog, message).at(&price.part.at, "this part").hint(hint));
        }
    }
    for line in offer.lines.iter().cloned().chain(offer.dpus.iter().flat_map(DpusFile::lines)) {
        match book.part.lines.iter_mut().find(|old| old.name == line.name) {
            Some(old) => *old = line,
            None => book.part.lines.push(line),
        }
    }
    scenario.cluster.prices = Arc::new(book);
}

/// Reports DPUs that free more host cores than their node has, where it is known how many it has.
fn free_cores(dpus: &DpusFile, node: &catalog::Node, offer: &OfferFile, sink: &Sink) {
    let cores = node.processors.as_ref().and_then(|host| Some(f64::from(host.count?) * f64::from(host.cores?)));
    let freed = dpus.cores_freed.high.get() * f64::from(dpus.per_node);
    if let Some(cores) = cores.filter(|cores| freed > *cores) {
        let message = format!("DPUs free {freed} host cores of a node that has {cores}");
        let hint = "`offer.dpus.cores_freed` is of one card, of which there are `per_node`";
        sink.push(Diagnostic::new(Code::OutOfRange, message).at(&offer.at, "this offer").hint(hint));
    }
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

/// Adds interruptions of each instance, as spot instances are taken back, to those of the hosts, instead of others that were
/// added before.
pub(super) fn interrupt(scenario: &mut Scenario, before: Factor, per_day: Factor) {
    if per_day == before {
        return;
    }
    let day = Seconds::new(SECONDS_PER_DAY);
    let mut reliability = (*scenario.cluster.reliability).clone();
    let host = &mut reliability.part.mtbf.host;
    for time in [&mut host.value, &mut host.low, &mut host.high] {
        *time = day / (day / *time - before.get() + per_day.get());
    }
    scenario.cluster.reliability = Arc::new(reliability);
}
