//! What a point of a sweep depends on, stage by stage, so that what an axis does not touch is not computed again.
//!
//! A stage is known by the numbers of the values that it depends on, as one whole number, and looked up by that in a table
//! of fixed size: memory does not grow with the sweep, and nothing is hashed.

use std::sync::Arc;

use super::Sweep;
use super::axes::{ABSENT, Target};
use super::field::with_fields;
use super::row::{Reason, Row};
use crate::catalog::Catalog;
use crate::diagnostics::Sink;
use crate::document::{Node, Value};
use crate::evaluate::{BuiltCluster, Evaluation, Infeasible, Staged};
use crate::parallelism::Layout;
use crate::scenario::{CatalogField, Finance, LayoutSearch, Scenario, ScenarioFile};
use crate::search::{self, Variants};

/// Catalogs, scenarios, answers and layouts that are kept.
const CATALOGS: usize = 16;
const KEPT: usize = 256;
const LAYOUTS: usize = 4_096;

/// What a value of an axis touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Touches {
    /// The catalog, and all that is bound from it.
    Catalog,
    /// What is built or run.
    Work,
    /// Money only.
    Finance,
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

impl Touches {
    /// Of a key; `alone` where the layout is given and shards over no groups, whose size follows from the cluster.
    pub(super) fn of(key: &str, target: &Target, alone: bool) -> Self {
        match target {
            Target::Catalog(_) => Self::Catalog,
            Target::Scenario if key.starts_with("finance.") => Self::Finance,
            Target::Scenario if alone && OWN.contains(&key) => Self::Layout,
            Target::Scenario => Self::Work,
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
    finances: Slots<Result<Finance, String>>,
    bases: Slots<Base>,
    layouts: Slots<Result<Layout, String>>,
    pub(super) point: Vec<u32>,
}

impl Worker {
    pub(super) fn new(columns: usize) -> Self {
        Self {
            catalogs: Slots::new(CATALOGS),
            scenarios: Slots::new(KEPT),
            finances: Slots::new(KEPT),
            bases: Slots::new(KEPT),
            layouts: Slots::new(LAYOUTS),
            point: vec![ABSENT; columns],
        }
    }

    /// The answer of the point at hand but for its layout.
    pub(super) fn base(&mut self, sweep: &Sweep<'_>) -> &mut Base {
        let key = sweep.key(&self.point, |touched| touched != Touches::Layout);
        let (catalogs, scenarios, finances) = (&mut self.catalogs, &mut self.scenarios, &mut self.finances);
        let point = &self.point;
        self.bases.get_or(key, || {
            let key = sweep.key(point, |touched| touched < Touches::Finance);
            let scenario = scenarios.get_or(key, || scenario(sweep, catalogs, point)).clone();
            let key = sweep.key(point, |touched| touched == Touches::Finance);
            let finance = finances.get_or(key, || {
                let document = sweep.document(point, |touched| touched == Touches::Finance);
                resolve(&document, sweep.catalog).map(|scenario| scenario.finance)
            });
            match (scenario, finance) {
                (Err(mistake), _) => Base::Mistake(mistake),
                (_, Err(mistake)) => Base::Mistake(mistake.clone()),
                (Ok(scenario), Ok(finance)) => open(Scenario { finance: *finance, ..(*scenario).clone() }, sweep),
            }
        })
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
        let point = std::mem::take(&mut self.point);
        self.point.clone_from(&point);
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
            Base::Open(open) => match layout.unwrap_or(Ok(open.layout)) {
                Err(mistake) => hand_on(Err(Reason::Mistake(&mistake))),
                Ok(layout) => match open.at(layout) {
                    Ok(evaluation) => hand_on(Ok(evaluation)),
                    Err(infeasible) => hand_on(Err(Reason::Infeasible(&infeasible))),
                },
            },
        }
    }
}

impl Open {
    fn at(&mut self, layout: Layout) -> Result<&Evaluation, Infeasible> {
        let Some(prepared) = self.variants.first() else { return Err(Infeasible::Untimed("this software")) };
        let order = Layout { order: self.layout.order, ..layout };
        let layout = order.over(prepared.accelerators)?;
        layout.check(&prepared.step.transformer, &prepared.step.job)?;
        self.staged.at(prepared, prepared.fit(layout)?)
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
            let catalog = with_fields(sweep.catalog, &sweep.fields(point), &sink);
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
    scenario.filter(|_| sink.is_empty()).ok_or_else(|| {
        sink.into_diagnostics().into_iter().next().map_or_else(String::new, |diagnostic| diagnostic.message)
    })
}

fn open(scenario: Scenario, sweep: &Sweep<'_>) -> Base {
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

    /// The scenario with a point's values of those axes.
    fn document(&self, point: &[u32], counts: impl Fn(Touches) -> bool) -> Node {
        let mut document = self.document.clone();
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
        let document = self.document(&point, |touched| touched != Touches::Catalog);
        let sink = Sink::default();
        let changed = self.has(Touches::Catalog).then(|| with_fields(self.catalog, &self.fields(&point), &sink));
        let scenario = resolve(&document, changed.as_ref().unwrap_or(self.catalog))?;
        search::evaluate(scenario).map_err(|infeasible| infeasible.to_string())
    }

    /// The fields of the catalog that a point sets.
    fn fields(&self, point: &[u32]) -> Vec<(&CatalogField, &Node)> {
        let columns = self.axes.columns.iter().zip(point).filter(|(_, value)| **value != ABSENT);
        columns
            .filter_map(|(column, value)| match &column.target {
                Target::Catalog(field) => Some((field, &column.values[*value as usize].node)),
                Target::Scenario => None,
            })
            .collect()
    }
}
