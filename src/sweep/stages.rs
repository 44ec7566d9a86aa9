//! What a point of a sweep depends on, stage by stage, so that what an axis does not touch is not computed again.
//!
//! A stage is known by the numbers of the values that it depends on, as one whole number, and looked up by that in a table
//! of fixed size: memory does not grow with the sweep, and nothing is hashed.

use std::sync::Arc;

use super::Sweep;
use rayon::prelude::*;

use super::axes::{ABSENT, Axes, AxisColumn, Target};
use super::field::{changed_entries, with_fields};
use super::row::{Reason, Row};
use crate::catalog::Catalog;
use crate::diagnostics::Sink;
use crate::document::{Node, Value};
use crate::evaluate::{Bought, BuiltCluster, Evaluation, Infeasible, Staged, StagedServing};
use crate::parallelism::{Layout, Sharding};
use crate::scenario::{
    ArrivalTerms, Arrivals, CatalogField, Cluster, LayoutSearch, Lengths, Money, Scenario, ScenarioFile, Serving,
};
use crate::search::{self, Variants};
use crate::units::Fraction;
use crate::workload::LengthShapes;

/// Catalogs, price books (which are long), scenarios, answers and layouts that are kept.
const CATALOGS: usize = 16;
const BOOKS: usize = 32;
const KEPT: usize = 256;
const LAYOUTS: usize = 4_096;

/// What a value of an axis touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Touches {
    /// The catalog, and all that is bound from it.
    Catalog,
    /// What is built or run.
    Work,
    /// Prices and sites of the catalog: what is built stays.
    Prices,
    /// Money only.
    Money,
    /// What requests come, and nothing that serves them.
    Load,
    /// A degree or a policy of the layout that nothing else is bound by.
    Layout,
}

/// The keys of a layout that decide nothing but the layout; sharding decides what is overlapped, too.
const OWN: [&str; 9] = [
    "training.layout.tensor",
    "training.layout.pipeline",
    "training.layout.virtual_stages",
    "training.layout.context",
    "training.layout.expert",
    "training.layout.micro_batch",
    "training.layout.schedule",
    "training.layout.recompute",
    "training.layout.sequence_parallel",
];

/// The keys of requests that come, and of tables of them.
const LOAD: [&str; 4] = ["serving.arrivals", "serving.input_tokens", "serving.output_tokens", "serving.prefix_hit"];

/// Keys of what serves that say nothing of the requests that may come.
const SERVES: [&str; 5] = ["serving.layout", "serving.model", "serving.engine", "serving.weights", "serving.kv_cache"];

/// Whether a key is one of these, or within a table of them.
fn is_of(key: &str, tables: &[&str]) -> bool {
    tables.iter().any(|table| key.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// What of a scenario is by itself, so that keys of it touch nothing else.
#[derive(Clone, Copy, Debug)]
pub(super) struct Apart {
    /// The layout of training: it is given and shards over no groups, whose size follows from the cluster.
    layout: bool,
    /// The requests: they are no agents', and no key is an axis that says which of them may come.
    load: bool,
}

impl Apart {
    /// Of a scenario and the axes over it.
    pub(super) fn new(scenario: &Scenario, axes: &Axes) -> Self {
        let keys = || axes.columns.iter().map(|column| column.key.as_str());
        let alone = scenario.training.as_ref().is_some_and(|training| {
            training.search.is_none() && training.layout.sharding != Sharding::Hybrid && training.plan.stages.is_empty()
        });
        let shared = |key: &str| key.starts_with("training.layout.shard") || key == "training.layout";
        let served = scenario.serving.is_some() && scenario.training.is_none() && scenario.agents.is_none();
        let other = |key: &str| {
            key.starts_with("agents") || (key.starts_with("serving") && !is_of(key, &LOAD) && !is_of(key, &SERVES))
        };
        Self { layout: alone && !keys().any(shared), load: served && !keys().any(other) }
    }

    /// The same where the requests are not.
    pub(super) const fn without_load(self) -> Self {
        Self { load: false, ..self }
    }
}

impl Touches {
    /// Of a key.
    pub(super) fn of(key: &str, target: &Target, apart: Apart) -> Self {
        match target {
            Target::Catalog(field) if ["prices", "sites"].contains(&field.folder) => Self::Prices,
            Target::Catalog(_) => Self::Catalog,
            Target::Scenario if key.starts_with("finance.") => Self::Money,
            Target::Scenario if apart.load && is_of(key, &LOAD) => Self::Load,
            Target::Scenario if apart.layout && OWN.contains(&key) => Self::Layout,
            Target::Scenario => Self::Work,
        }
    }
}

/// What a value of an axis of requests sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Asked {
    Arrivals(Arrivals, ArrivalTerms),
    Input(Lengths),
    Output(Lengths),
    Hit(Fraction),
}

impl Asked {
    /// Of a key, in a scenario that has a value of it.
    fn of(key: &str, serving: &Serving) -> Option<Self> {
        let tables = LOAD.iter().position(|table| is_of(key, &[table]))?;
        Some(match tables {
            0 => Self::Arrivals(serving.arrivals, serving.terms),
            1 => Self::Input(serving.input),
            2 => Self::Output(serving.output),
            _ => Self::Hit(serving.prefix_hit),
        })
    }

    /// Sets a scenario's, but for the lengths of requests, which are set together.
    const fn set(self, serving: &mut Serving, lengths: &mut [Lengths; 2]) {
        match self {
            Self::Arrivals(arrivals, terms) => (serving.arrivals, serving.terms) = (arrivals, terms),
            Self::Input(input) => lengths[0] = input,
            Self::Output(output) => lengths[1] = output,
            Self::Hit(hit) => serving.prefix_hit = hit,
        }
    }
}

/// A table of fixed size; what comes to the same place replaces what was there.
#[derive(Debug)]
struct Slots<T>(Vec<Option<(u128, T)>>);

impl<T> Slots<T> {
    fn new(size: usize) -> Self {
        Self((0..size).map(|_| None).collect())
    }

    /// What is kept under a number, made where it is not.
    fn get_or(&mut self, key: u128, make: impl FnOnce() -> T) -> &mut T {
        #[allow(clippy::cast_possible_truncation, reason = "less than the size")]
        let place = (key % self.0.len() as u128) as usize;
        let slot = &mut self.0[place];
        match slot {
            Some((known, _)) if *known == key => {}
            _ => *slot = None,
        }
        &mut slot.get_or_insert_with(|| (key, make())).1
    }
}

/// An answer but for the layout.
#[derive(Debug)]
pub(super) enum Base {
    /// Its values contradict each other.
    Mistake(String),
    /// It cannot be.
    Not(Infeasible),
    /// Nothing of it is left open.
    Whole(Box<Evaluation>),
    /// The layout is left open.
    Open(Box<Open>),
    /// The requests are left open.
    Serving(Box<StagedServing>),
}

/// An answer but for the layout or the requests, and the numbers of the prices and the money that it was worked out with.
#[derive(Debug)]
struct Financed {
    prices: u128,
    money: u128,
    base: Base,
}

/// What layouts are tried in.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) staged: Staged,
    pub(super) variants: Variants,
    /// The scenario's own layout.
    layout: Layout,
    /// The layouts that all are.
    pub(super) search: Option<LayoutSearch>,
}

/// What a thread keeps.
#[derive(Debug)]
pub(super) struct Worker {
    catalogs: Slots<Option<Arc<Catalog>>>,
    scenarios: Slots<Result<Arc<Scenario>, String>>,
    prices: Slots<Result<Arc<Catalog>, String>>,
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
            prices: Slots::new(BOOKS),
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
        let Self { catalogs, scenarios, prices, moneys, bases, point, .. } = self;
        let mut money = || {
            let read = || {
                let sink = Sink::default();
                let money =
                    Money::resolve(&sweep.with(&sweep.money, point, |touched| touched == Touches::Money), &sink);
                sink.is_empty().then_some(money).ok_or_else(|| first(sink))
            };
            sweep.has(Touches::Money).then(|| moneys.get_or(at_money, read).clone()).transpose()
        };
        // What is bought at the point's prices, of a cluster with the catalog's own.
        let mut bought = |cluster: &Cluster| {
            let read = || {
                let sink = Sink::default();
                let changed = changed_entries(sweep.catalog, &sweep.fields(point, Touches::Prices), &sink);
                sink.is_empty().then(|| Arc::new(changed)).ok_or_else(|| first(sink))
            };
            let changed = sweep.has(Touches::Prices).then(|| prices.get_or(at_prices, read).clone()).transpose()?;
            Ok::<_, String>(changed.map(|changed| Bought {
                site: changed.sites.get(&cluster.site.id).unwrap_or(&cluster.site).clone(),
                prices: changed.price_books.get(&cluster.prices.id).unwrap_or(&cluster.prices).clone(),
            }))
        };
        let own = scenarios.get_or(key, || scenario(sweep, catalogs, point));
        let whole = |bought: Result<Option<Bought>, String>, money: Result<Option<Money>, String>| {
            let bind = || {
                let mut found = (**own.as_ref().map_err(Clone::clone)?).clone();
                if let Some(bought) = bought? {
                    bought.set(&mut found);
                }
                if let Some(money) = money? {
                    money.set(&mut found);
                }
                Ok(found)
            };
            bind().map_or_else(Base::Mistake, |found| open(found, sweep))
        };
        let mut of_own = || own.as_ref().map_or(Ok(None), |own| bought(&own.cluster));
        let known =
            bases.get_or(key, || Financed { prices: at_prices, money: at_money, base: whole(of_own(), money()) });
        if known.prices != at_prices {
            known.prices = at_prices;
            let done = match (&mut known.base, of_own()) {
                (Base::Open(open), Ok(Some(bought))) => open.reprice(&bought).is_ok(),
                (Base::Serving(staged), Ok(Some(bought))) => staged.reprice(&bought).is_ok(),
                _ => false,
            };
            if !done {
                known.money = at_money;
                known.base = whole(of_own(), money());
            }
        }
        if known.money != at_money {
            known.money = at_money;
            match (&mut known.base, money()) {
                (Base::Open(open), Ok(Some(money))) => open.refinance(&money),
                (Base::Serving(staged), Ok(Some(money))) => staged.refinance(&money),
                (base, money) => *base = whole(of_own(), money),
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
    pub(super) fn single(&mut self, sweep: &Sweep<'_>, place: super::Place, take: impl FnOnce(&Row<'_>)) {
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

/// Why nothing is served at a point.
enum Unserved<'a> {
    /// The requests cannot be asked for.
    Mistake(&'a str),
    /// They cannot be served.
    Not(Infeasible),
}

impl Open {
    fn refinance(&mut self, money: &Money) {
        let Self { staged, variants, .. } = self;
        let (built, finance) = staged.refinance(money);
        variants.refinance(built, finance);
    }

    /// The same at other prices, or at a site with other ones.
    fn reprice(&mut self, bought: &Bought) -> Result<(), Infeasible> {
        let Self { staged, variants, .. } = self;
        let (built, finance) = staged.reprice(bought)?;
        variants.refinance(built, finance);
        Ok(())
    }

    fn at(&mut self, layout: Layout) -> Result<&Evaluation, Infeasible> {
        let Some(prepared) = self.variants.first() else { return Err(Infeasible::Untimed("this software")) };
        let order = Layout { order: self.layout.order, ..layout };
        let layout = order.over(prepared.accelerators)?;
        layout.check(&prepared.step.transformer, &prepared.step.job)?;
        self.staged.at(prepared, prepared.timed(prepared.fit(layout)?)?)
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

/// A scenario, or the first of its mistakes.
pub(super) fn resolve(document: &Node, catalog: &Catalog) -> Result<Scenario, String> {
    let sink = Sink::default();
    let file = ScenarioFile::read(document, &sink);
    let scenario = Scenario::resolve(&file, catalog, &sink);
    scenario.filter(|_| sink.is_empty()).ok_or_else(|| first(sink))
}

/// The first of the mistakes.
fn first(sink: Sink) -> String {
    sink.into_diagnostics().into_iter().next().map_or_else(String::new, |diagnostic| diagnostic.message)
}

fn open(scenario: Scenario, sweep: &Sweep<'_>) -> Base {
    if scenario.training.is_none() && scenario.serving.is_some() {
        return match StagedServing::new(scenario) {
            Ok(staged) => Base::Serving(Box::new(staged)),
            Err(infeasible) => Base::Not(infeasible),
        };
    }
    let open = match &scenario.training {
        Some(training) if scenario.serving.is_none() => sweep.axes.layouts || training.search.is_none(),
        _ => false,
    };
    if !open {
        return match search::evaluate(scenario) {
            Ok(evaluation) => Base::Whole(Box::new(evaluation)),
            Err(infeasible) => Base::Not(infeasible),
        };
    }
    let built = match BuiltCluster::new(&scenario.cluster, &scenario.finance) {
        Ok(built) => built,
        Err(infeasible) => return Base::Not(infeasible),
    };
    let Some(training) = &scenario.training else { return Base::Mistake("nothing is trained".to_owned()) };
    let variants = Variants::new(&scenario, training, &built);
    let (layout, search) = (training.layout, training.search);
    let Some(prepared) = variants.first().copied() else {
        return Base::Mistake("no constants for this software".to_owned());
    };
    Base::Open(Box::new(Open { staged: Staged::new(scenario, built, &prepared), variants, layout, search }))
}

impl Sweep<'_> {
    /// Whether an axis touches that.
    fn has(&self, wanted: Touches) -> bool {
        self.touches.contains(&wanted)
    }

    /// The numbers of a point's values of those axes, as one.
    fn key(&self, point: &[u32], counts: impl Fn(Touches) -> bool) -> u128 {
        let columns = self.axes.columns.iter().zip(&self.touches).zip(point);
        columns.filter(|((_, touched), _)| counts(**touched)).fold(0, |key: u128, ((column, _), value)| {
            let radix = column.values.len() as u128 + 1;
            key.wrapping_mul(radix).wrapping_add(if *value == ABSENT { 0 } else { u128::from(*value) + 1 })
        })
    }

    /// The answer at a point's requests.
    fn serve<'s>(&self, staged: &'s mut StagedServing, point: &[u32]) -> Result<&'s Evaluation, Unserved<'_>> {
        let Some((serving, cluster, shapes)) = staged.serving() else { return staged.at().map_err(Unserved::Not) };
        let mut lengths = [serving.input, serving.output];
        for ((values, touched), value) in self.asked.iter().zip(&self.touches).zip(point) {
            if *touched == Touches::Load && *value != ABSENT {
                match &values[*value as usize] {
                    Ok(asked) => asked.set(serving, &mut lengths),
                    Err(mistake) => return Err(Unserved::Mistake(mistake)),
                }
            }
        }
        let [input, output] = lengths;
        serving.set_lengths(input, output, shapes);
        if serving.search {
            let found = search::best_deployment(serving, cluster).map_err(Unserved::Not)?;
            (serving.layout, serving.prefill) = (found.layout, found.prefill);
        }
        staged.at().map_err(Unserved::Not)
    }

    /// Whether axes of requests set nothing but what [`Asked`] is: held against the scenario as it is bound with the first
    /// and the last value of each, but for the list of defaults.
    pub(super) fn requests_are_apart(&self, usual: &Scenario) -> bool {
        let text = |scenario: &mut Scenario| {
            scenario.assumed.clear();
            format!("{scenario:?}")
        };
        let mut columns = self.axes.columns.iter().zip(&self.touches).enumerate();
        columns.all(|(column, (AxisColumn { key, values, .. }, touched))| {
            let mut ends = [0, values.len().saturating_sub(1)].into_iter();
            *touched != Touches::Load
                || ends.all(|number| {
                    let mut point = vec![ABSENT; self.axes.columns.len()];
                    point[column] = u32::try_from(number).unwrap_or(ABSENT);
                    let document = self.document(&point, |touched| touched == Touches::Load);
                    let Ok(mut bound) = resolve(&document, self.catalog) else { return true };
                    let mut set = usual.clone();
                    if let (Some(own), Some(bound)) = (&mut set.serving, &bound.serving)
                        && let Some(asked) = Asked::of(key, bound)
                    {
                        let mut lengths = [own.input, own.output];
                        asked.set(own, &mut lengths);
                        let [input, output] = lengths;
                        own.set_lengths(input, output, &mut LengthShapes::default());
                    }
                    text(&mut set) == text(&mut bound)
                })
        })
    }

    /// What each value of an axis of requests sets, by column; nothing of the others.
    pub(super) fn requests(&self) -> Vec<Vec<Result<Asked, String>>> {
        let of = |column: usize| {
            let AxisColumn { key, values, .. } = &self.axes.columns[column];
            let asked = |number: usize| {
                let mut point = vec![ABSENT; self.axes.columns.len()];
                point[column] = u32::try_from(number).unwrap_or(ABSENT);
                let scenario = resolve(&self.document(&point, |touched| touched == Touches::Load), self.catalog)?;
                let serving = scenario.serving.as_ref();
                serving.and_then(|serving| Asked::of(key, serving)).ok_or_else(|| "nothing is served".to_owned())
            };
            (0..values.len()).into_par_iter().map(asked).collect()
        };
        let columns = self.touches.iter().enumerate();
        columns.map(|(column, touched)| if *touched == Touches::Load { of(column) } else { Vec::new() }).collect()
    }

    /// The scenario with a point's values of those axes.
    fn document(&self, point: &[u32], counts: impl Fn(Touches) -> bool) -> Node {
        self.with(&self.document, point, counts)
    }

    /// A document with a point's values of those axes.
    fn with(&self, document: &Node, point: &[u32], counts: impl Fn(Touches) -> bool) -> Node {
        let mut document = document.clone();
        let Value::Table(table) = &mut document.value else { return document };
        for ((column, touched), value) in self.axes.columns.iter().zip(&self.touches).zip(point) {
            if counts(*touched) && *value != ABSENT {
                // That the key can be set was seen when the sweep was bound.
                let _ = table.set(&column.key, column.values[*value as usize].node.clone());
            }
        }
        document
    }

    /// A point by itself, as `eval` would have it.
    ///
    /// # Errors
    /// When it cannot be, or its values contradict each other.
    pub fn evaluate(&self, index: u64) -> Result<Evaluation, String> {
        let mut point = vec![ABSENT; self.axes.columns.len()];
        self.axes.at(index, &mut point);
        let document = self.document(&point, |touched| touched != Touches::Catalog && touched != Touches::Prices);
        let sink = Sink::default();
        let fields = [Touches::Catalog, Touches::Prices].map(|touched| self.fields(&point, touched)).concat();
        let changed = (!fields.is_empty()).then(|| with_fields(self.catalog, &fields, &sink));
        let scenario = resolve(&document, changed.as_ref().unwrap_or(self.catalog))?;
        search::evaluate(scenario).map_err(|infeasible| infeasible.to_string())
    }

    /// The fields of the catalog that a point sets, of those that touch that.
    fn fields(&self, point: &[u32], wanted: Touches) -> Vec<(&CatalogField, &Node)> {
        let columns = self.axes.columns.iter().zip(&self.touches).zip(point).filter(|(_, value)| **value != ABSENT);
        columns
            .filter_map(|((column, touched), value)| match &column.target {
                Target::Catalog(field) if *touched == wanted => Some((field, &column.values[*value as usize].node)),
                _ => None,
            })
            .collect()
    }
}
