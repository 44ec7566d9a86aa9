//! Answers but for what is set again and again: the layout, the requests, prices and money.

use super::super::Sweep;
use crate::evaluate::{BuiltCluster, Evaluation, Infeasible, Staged, StagedServing};
use crate::parallelism::Layout;
use crate::scenario::{LayoutSearch, Money, Scenario};
use crate::search::{self, Variants};

/// An answer but for the layout.
#[derive(Debug)]
pub(in crate::sweep) enum Base {
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
pub(super) struct Financed {
    pub(super) prices: u128,
    pub(super) money: u128,
    pub(super) base: Base,
}

/// What layouts are tried in.
#[derive(Clone, Debug)]
pub(in crate::sweep) struct Open {
    pub(in crate::sweep) staged: Staged,
    pub(in crate::sweep) variants: Variants,
    /// The scenario's own layout.
    pub(super) layout: Layout,
    /// The layouts that all are.
    pub(in crate::sweep) search: Option<LayoutSearch>,
}

impl Open {
    pub(super) fn refinance(&mut self, money: &Money) {
        let Self { staged, variants, .. } = self;
        let (built, finance) = staged.refinance(money);
        variants.refinance(built, finance);
    }

    /// The same at the prices, or at a site with those, that `set` gives its scenario.
    pub(super) fn reprice(&mut self, set: impl FnOnce(&mut Scenario)) -> Result<(), Infeasible> {
        let Self { staged, variants, .. } = self;
        let (built, finance) = staged.reprice(set)?;
        variants.refinance(built, finance);
        Ok(())
    }

    pub(super) fn at(&mut self, layout: Layout) -> Result<&Evaluation, Infeasible> {
        let Some(prepared) = self.variants.first() else { return Err(Infeasible::Untimed("this software")) };
        let order = Layout { order: self.layout.order, ..layout };
        let layout = order.over(prepared.accelerators)?;
        layout.check(&prepared.step.transformer, &prepared.step.job)?;
        self.staged.at(prepared, prepared.timed(prepared.fit(layout)?)?)
    }
}

/// Works out what no layout, no requests, no prices and no money change.
pub(super) fn open(scenario: Scenario, sweep: &Sweep<'_>) -> Base {
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
