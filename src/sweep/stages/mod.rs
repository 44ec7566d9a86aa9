//! What a point of a sweep depends on, stage by stage, so that what an axis does not touch is not computed again.
//!
//! A stage is known by the numbers of the values that it depends on, as one whole number, and looked up by that in a table
//! of fixed size: memory does not grow with the sweep, and nothing is hashed.

mod base;
mod point;
mod prices;
mod requests;
mod slots;
mod touches;

pub(super) use base::{Base, Open};
pub(super) use point::resolve;
pub(super) use prices::Priced;
pub(super) use requests::Asked;
pub(super) use touches::{Apart, Touches};

use std::sync::Arc;

use base::{Financed, open};
use point::first;
use requests::Unserved;
use slots::Slots;

use super::axes::ABSENT;
use super::field::with_fields;
use super::row::{Reason, Row};
use super::{Place, Sweep};
use crate::catalog::Catalog;
use crate::diagnostics::Sink;
use crate::evaluate::Evaluation;
use crate::parallelism::Layout;
use crate::scenario::{Money, Scenario};

/// Catalogs, scenarios, answers and layouts that are kept.
const CATALOGS: usize = 16;
const KEPT: usize = 256;
const LAYOUTS: usize = 4_096;

/// What a thread keeps.
#[derive(Debug)]
pub(super) struct Worker {
    catalogs: Slots<Option<Arc<Catalog>>>,
    scenarios: Slots<Result<Arc<Scenario>, String>>,
    moneys: Slots<Result<Money, String>>,
    bases: Slots<Financed>,
    layouts: Slots<Result<Layout, String>>,
    pub(super) point: Vec<u32>,
    /// The point as its row shows it.
    shown: Vec<u32>,
}

impl Worker {
    pub(super) fn new(columns: usize) -> Self {
        Self {
            catalogs: Slots::new(CATALOGS),
            scenarios: Slots::new(KEPT),
            moneys: Slots::new(KEPT),
            bases: Slots::new(KEPT),
            layouts: Slots::new(LAYOUTS),
            point: vec![ABSENT; columns],
            shown: vec![ABSENT; columns],
        }
    }

    /// The answer of the point at hand but for its layout, or its requests.
    pub(super) fn base(&mut self, sweep: &Sweep<'_>) -> &mut Base {
        let key = sweep.key(&self.point, |touched| touched < Touches::Prices);
        let [at_prices, at_money] =
            [Touches::Prices, Touches::Money].map(|wanted| sweep.key(&self.point, |touched| touched == wanted));
        let Self { catalogs, scenarios, moneys, bases, point, .. } = self;
        let mut money = || {
            let read = || {
                let sink = Sink::default();
                let money =
                    Money::resolve(&sweep.with(&sweep.money, point, |touched| touched == Touches::Money), &sink);
                sink.is_empty().then_some(money).ok_or_else(|| first(sink))
            };
            sweep.has(Touches::Money).then(|| moneys.get_or(at_money, read).clone()).transpose()
        };
        let own = scenarios.get_or(key, || scenario(sweep, catalogs, point));
        let whole = |money: Result<Option<Money>, String>| {
            let bind = || {
                let mut found = (**own.as_ref().map_err(Clone::clone)?).clone();
                sweep.prices_at(point)?.set(&mut found);
                if let Some(money) = money? {
                    money.set(&mut found);
                }
                Ok(found)
            };
            bind().map_or_else(Base::Mistake, |found| open(found, sweep))
        };
        let known = bases.get_or(key, || Financed { prices: at_prices, money: at_money, base: whole(money()) });
        if known.prices != at_prices {
            known.prices = at_prices;
            let done = match (&mut known.base, sweep.prices_at(point)) {
                (Base::Open(open), Ok(prices)) => open.reprice(|scenario| prices.set(scenario)).is_ok(),
                (Base::Serving(staged), Ok(prices)) => staged.reprice(|scenario| prices.set(scenario)).is_ok(),
                _ => false,
            };
            if !done {
                known.money = at_money;
                known.base = whole(money());
            }
        }
        if known.money != at_money {
            known.money = at_money;
            match (&mut known.base, money()) {
                (Base::Open(open), Ok(Some(money))) => open.refinance(&money),
                (Base::Serving(staged), Ok(Some(money))) => staged.refinance(&money),
                (base, money) => *base = whole(money),
            }
        }
        &mut known.base
    }

    /// The layout of the point at hand, where axes set some of it.
    fn layout(&mut self, sweep: &Sweep<'_>) -> Result<Layout, String> {
        let key = sweep.key(&self.point, |touched| touched == Touches::Layout);
        let point = &self.point;
        let resolved = || {
            let document = sweep.document(point, |touched| touched == Touches::Layout);
            let scenario = resolve(&document, sweep.catalog)?;
            scenario.training.map(|training| training.layout).ok_or_else(|| "nothing is trained".to_owned())
        };
        self.layouts.get_or(key, resolved).clone()
    }

    /// Hands on the one row of the point at hand, which is not taken with all layouts.
    pub(super) fn single(&mut self, sweep: &Sweep<'_>, place: Place, take: impl FnOnce(&Row<'_>)) {
        let layout = sweep.has(Touches::Layout).then(|| self.layout(sweep));
        // Both are of one length: nothing is allocated.
        let mut point = std::mem::take(&mut self.shown);
        point.clone_from(&self.point);
        let hand_on = |outcome: Result<&Evaluation, Reason<'_>>| {
            let layout = outcome.ok().and_then(|evaluation| {
                let training = evaluation.scenario.training.as_ref()?;
                Some((evaluation.point?.layout, training.software.overlap))
            });
            take(&Row { place, axes: &sweep.axes, point: &point, layout, outcome, figures: &sweep.figures });
        };
        match self.base(sweep) {
            Base::Mistake(mistake) => hand_on(Err(Reason::Mistake(mistake))),
            Base::Not(infeasible) => hand_on(Err(Reason::Infeasible(infeasible))),
            Base::Whole(evaluation) => hand_on(Ok(evaluation)),
            Base::Serving(staged) => match sweep.serve(staged, &point) {
                Ok(evaluation) => hand_on(Ok(evaluation)),
                Err(Unserved::Mistake(mistake)) => hand_on(Err(Reason::Mistake(mistake))),
                Err(Unserved::Not(infeasible)) => hand_on(Err(Reason::Infeasible(&infeasible))),
            },
            Base::Open(open) => match layout.unwrap_or(Ok(open.layout)) {
                Err(mistake) => hand_on(Err(Reason::Mistake(&mistake))),
                Ok(layout) => match open.at(layout) {
                    Ok(evaluation) => hand_on(Ok(evaluation)),
                    Err(infeasible) => hand_on(Err(Reason::Infeasible(&infeasible))),
                },
            },
        }
        self.shown = point;
    }
}

fn scenario(
    sweep: &Sweep<'_>,
    catalogs: &mut Slots<Option<Arc<Catalog>>>,
    point: &[u32],
) -> Result<Arc<Scenario>, String> {
    let document = sweep.document(point, |touched| touched == Touches::Work);
    let resolved = if sweep.has(Touches::Catalog) {
        let key = sweep.key(point, |touched| touched == Touches::Catalog);
        let changed = catalogs.get_or(key, || {
            let sink = Sink::default();
            let catalog = with_fields(sweep.catalog, &sweep.fields(point, Touches::Catalog), &sink);
            sink.is_empty().then(|| Arc::new(catalog))
        });
        let Some(catalog) = changed else { return Err("the catalog does not take a value".to_owned()) };
        resolve(&document, catalog)
    } else {
        resolve(&document, sweep.catalog)
    };
    resolved.map(Arc::new)
}
