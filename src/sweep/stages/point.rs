//! A point as a scenario: its values set in the document, and bound to the catalog.

use super::super::Sweep;
use super::super::axes::{ABSENT, Target};
use super::super::field::with_fields;
use super::touches::Touches;
use crate::catalog::Catalog;
use crate::diagnostics::Sink;
use crate::document::{Node, Value};
use crate::evaluate::Evaluation;
use crate::scenario::{CatalogField, Scenario, ScenarioFile};
use crate::search;

/// A scenario, or the first of its mistakes.
pub(in crate::sweep) fn resolve(document: &Node, catalog: &Catalog) -> Result<Scenario, String> {
    let sink = Sink::default();
    let file = ScenarioFile::read(document, &sink);
    let scenario = Scenario::resolve(&file, catalog, &sink);
    scenario.filter(|_| sink.is_empty()).ok_or_else(|| first(sink))
}

/// The first of the mistakes.
pub(super) fn first(sink: Sink) -> String {
    sink.into_diagnostics().into_iter().next().map_or_else(String::new, |diagnostic| diagnostic.message)
}

impl Sweep<'_> {
    /// Whether an axis touches that.
    pub(super) fn has(&self, wanted: Touches) -> bool {
        self.touches.contains(&wanted)
    }

    /// The numbers of a point's values of those axes, as one.
    pub(super) fn key(&self, point: &[u32], counts: impl Fn(Touches) -> bool) -> u128 {
        let columns = self.axes.columns.iter().zip(&self.touches).zip(point);
        columns.filter(|((_, touched), _)| counts(**touched)).fold(0, |key: u128, ((column, _), value)| {
            let radix = column.values.len() as u128 + 1;
            key.wrapping_mul(radix).wrapping_add(if *value == ABSENT { 0 } else { u128::from(*value) + 1 })
        })
    }

    /// The scenario with a point's values of those axes.
    pub(in crate::sweep) fn document(&self, point: &[u32], counts: impl Fn(Touches) -> bool) -> Node {
        self.with(&self.document, point, counts)
    }

    /// A document with a point's values of those axes.
    pub(super) fn with(&self, document: &Node, point: &[u32], counts: impl Fn(Touches) -> bool) -> Node {
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
    pub(super) fn fields(&self, point: &[u32], wanted: Touches) -> Vec<(&CatalogField, &Node)> {
        let columns = self.axes.columns.iter().zip(&self.touches).zip(point).filter(|(_, value)| **value != ABSENT);
        columns
            .filter_map(|((column, touched), value)| match &column.target {
                Target::Catalog(field) if *touched == wanted => Some((field, &column.values[*value as usize].node)),
                _ => None,
            })
            .collect()
    }
}
