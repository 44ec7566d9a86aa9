//! Sweeps: a scenario at every combination of its axes' values, a row each.
//!
//! Points are known by their number alone ([`Axes`]), stages of a point are kept by what they depend on, and pieces of work
//! are put together again in order: any part can be done anywhere, and any number of threads gives the same rows.

mod axes;
mod columns;
mod condition;
mod field;
mod figure;
mod reduce;
mod row;
mod run;
mod stages;
pub mod uncertain;
mod visit;

pub use axes::{ABSENT, Axes, AxisColumn, AxisValue};
pub use columns::{Column, LayoutKey, LayoutValue};
pub use condition::{Condition, ConditionError};
pub use field::{has as catalog_has, unused as catalog_unused, with_fields as catalog_with};
pub use figure::{Extract, Figure};
pub use reduce::{Aim, Kept, MOST_KEYS, QUANTILE_ERROR, Quantiles, Reduced, Reduction, Wanted};
pub use row::{Place, Reason, Row};
pub use run::{Cursor, Shard, Size};
pub use visit::Visitor;

use axes::Target;
use stages::{Apart, Asked, Priced, Touches};

use std::fmt::Write;

use crate::catalog::Catalog;
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::document::{Node, Value};
use crate::scenario::{Scenario, ScenarioFile, SweepFile};

/// Of longer axes, so many values are tried by themselves before the sweep begins.
const TRIED: usize = 1_000;

/// A sweep, ready to run.
#[derive(Debug)]
pub struct Sweep<'a> {
    /// The axes.
    pub axes: Axes,
    /// The figures that its rows have.
    pub figures: Vec<Figure>,
    /// What is asked, in a line.
    pub title: String,
    /// Whether rows show their layouts, which are taken in turn or searched.
    pub layouts: bool,
    /// Whether rows serve, so that they show in what way.
    pub serves: bool,
    document: Node,
    /// Of the document, the table of money alone.
    money: Node,
    catalog: &'a Catalog,
    touches: Vec<Touches>,
    /// What values of axes of requests set, by column.
    asked: Vec<Vec<Result<Asked, String>>>,
    /// What values of axes over prices and sites change, by column.
    priced: Vec<Option<Priced>>,
    /// Conditions on axes.
    only: Vec<Condition>,
    /// Conditions on rows.
    kept: Vec<Condition>,
}

impl<'a> Sweep<'a> {
    /// Binds a scenario with its axes; mistakes go to the sink.
    ///
    /// The scenario must be sound by itself, and so must each value of each axis; that values do not go together, or that
    /// the catalog lacks something for them, is a row's reason.
    pub fn bind(
        document: &Node,
        wanted: &SweepFile,
        catalog: &'a Catalog,
        figures: Vec<Figure>,
        sink: &Sink,
    ) -> Option<Self> {
        let axes = Axes::bind(wanted, catalog, sink)?;
        let mut document = document.clone();
        if let Value::Table(table) = &mut document.value {
            table.entries.retain(|entry| !["sweep", "compare", "plan", "uncertainty"].contains(&entry.key.as_str()));
        }
        if axes.layouts {
            open_layout(&mut document);
        }
        let scenario = Scenario::resolve(&ScenarioFile::read(&document, sink), catalog, sink)?;
        let apart = Apart::new(&scenario, &axes);
        let touches = axes.columns.iter().map(|column| Touches::of(&column.key, &column.target, apart)).collect();
        let (mut only, mut kept) = (Vec::new(), Vec::new());
        for (text, at) in &wanted.conditions {
            match Condition::parse(text, &axes, &[]) {
                Ok(condition) if condition.is_of_axes() => only.push(condition),
                // Of layouts.
                Ok(condition) => kept.push(condition),
                Err(error) => report(&error.message, &error.hint, at, sink),
            }
        }
        let title = scenario.title.clone();
        let searched = scenario.training.as_ref().is_some_and(|training| training.search.is_some());
        let varied = |column: &AxisColumn| column.key == "training.layout";
        let layouts = searched || axes.columns.iter().any(varied);
        let serves = scenario.serving.is_some();
        let money = money_of(&document);
        let (asked, priced) = (Vec::new(), Vec::new());
        let mut sweep = Self {
            axes,
            figures,
            title,
            layouts,
            serves,
            document,
            money,
            catalog,
            touches,
            asked,
            priced,
            only,
            kept,
        };
        sweep.try_values(sink);
        sweep.try_entries(&scenario, sink);
        if !sink.is_empty() {
            return None;
        }
        sweep.asked = sweep.requests();
        if sweep.requests_clash() || !sweep.requests_are_apart(&scenario) {
            let apart = apart.without_load();
            let columns = &sweep.axes.columns;
            sweep.touches = columns.iter().map(|column| Touches::of(&column.key, &column.target, apart)).collect();
            sweep.asked = sweep.requests();
        }
        sweep.priced = sweep.priced();
        for (touched, priced) in sweep.touches.iter_mut().zip(&sweep.priced) {
            if *touched == Touches::Prices && priced.is_none() {
                *touched = Touches::Catalog;
            }
        }
        Some(sweep)
    }

    /// Rows that do not meet the condition are left out.
    ///
    /// # Errors
    /// When it is no condition on these rows.
    pub fn keep(&mut self, condition: &str) -> Result<(), ConditionError> {
        self.kept.push(Condition::parse(condition, &self.axes, &self.figures)?);
        Ok(())
    }

    /// The column of a key.
    ///
    /// # Errors
    /// When rows have none.
    pub fn column(&self, key: &str) -> Result<Column, ConditionError> {
        Column::find(key, &self.axes, &self.figures).ok_or_else(|| condition::unknown(key, &self.axes, &self.figures))
    }

    /// Keys and values of a point.
    pub fn settings(&self, index: u64) -> Vec<(String, String)> {
        let mut point = vec![ABSENT; self.axes.columns.len()];
        self.axes.at(index, &mut point);
        let columns = self.axes.columns.iter().zip(&point).filter(|(_, value)| **value != ABSENT);
        columns.map(|(column, value)| (column.key.clone(), column.values[*value as usize].text.clone())).collect()
    }

    /// All that decides what the rows are, but for the catalog, as text: the same text, the same rows.
    pub fn identity(&self) -> String {
        let Self { axes, figures, document, only, kept, .. } = self;
        let mut recorded = String::new();
        numbers_of_files(document, &mut recorded);
        format!("{document}\n{recorded}{axes:?}\n{only:?}\n{kept:?}\n{figures:?}\n")
    }

    /// Reports fields of entries that no point uses.
    fn try_entries(&self, scenario: &Scenario, sink: &Sink) {
        let columns = &self.axes.columns;
        let mut used: Vec<(&str, &str)> = scenario.cluster.entries().to_vec();
        for column in columns {
            let folder = axes::SETS.iter().find(|(named, _)| *named == column.key).map(|(_, folder)| *folder);
            used.extend(column.values.iter().filter_map(|value| Some((folder?, value.text.as_str()))));
        }
        // An axis over the whole table may name any.
        if columns.iter().any(|column| column.key == "cluster") {
            return;
        }
        for column in columns {
            if let Target::Catalog(field) = &column.target
                && field::has(&self.catalog.records(), field)
                && let Some(mistake) = field::unused(field, &column.key, &used)
            {
                let at = column.values.first().map(|value| value.node.at.clone()).unwrap_or_default();
                sink.push(mistake.at(&at, "these values"));
            }
        }
    }

    /// Reports values that are wrong whatever stands beside them.
    fn try_values(&self, sink: &Sink) {
        for column in &self.axes.columns {
            if let Target::Catalog(field) = &column.target
                && !field::has(&self.catalog.records(), field)
            {
                let at = column.values.first().map(|value| value.node.at.clone()).unwrap_or_default();
                let hint = "`clusterplan catalog list` shows entries, `clusterplan catalog show ID` an entry's fields";
                report(&format!("the catalog has no `{}`", column.key), hint, &at, sink);
                continue;
            }
            let narrow = match &column.target {
                Target::Catalog(field) => field::narrowed(self.catalog, field),
                Target::Scenario => None,
            };
            let catalog = narrow.as_ref().map_or(self.catalog, |(narrow, _)| narrow);
            // The values of a range stand in one place, where one mistake is told once.
            let mut told: Option<Diagnostic> = None;
            for value in column.values.iter().take(TRIED) {
                let own = Sink::default();
                match &column.target {
                    Target::Catalog(field) => {
                        field::changed_entries(catalog, &[(field, &value.node)], &own);
                    }
                    Target::Scenario => {
                        let mut document = self.document.clone();
                        let Value::Table(table) = &mut document.value else { continue };
                        if let Err(error) = table.set(&column.key, value.node.clone()) {
                            report(&format!("`{}` cannot be set: {error}", column.key), "", &value.node.at, sink);
                            break;
                        }
                        Scenario::resolve(&ScenarioFile::read(&document, &own), self.catalog, &own);
                    }
                }
                for diagnostic in own.into_diagnostics().into_iter().filter(|found| found.code.is_of_value()) {
                    if told.as_ref() != Some(&diagnostic) {
                        told = Some(diagnostic.clone());
                        sink.push(diagnostic);
                    }
                }
            }
        }
        if sink.is_empty() {
            self.try_ends(sink);
        }
    }

    /// Reports keys that no axis brings and other keys need: those that both the first and the last point lack.
    fn try_ends(&self, sink: &Sink) {
        let lacking = |index: u64| -> Vec<Diagnostic> {
            let (mut point, own) = (vec![axes::ABSENT; self.axes.columns.len()], Sink::default());
            self.axes.at(index, &mut point);
            let document = self.document(&point, |touched| touched != Touches::Catalog && touched != Touches::Prices);
            Scenario::resolve(&ScenarioFile::read(&document, &own), self.catalog, &own);
            own.into_diagnostics().into_iter().filter(|found| found.code == Code::MissingKey).collect()
        };
        let Some(last) = self.axes.size().checked_sub(1) else { return };
        let others = lacking(last);
        let both = |found: &Diagnostic| others.iter().any(|other| other.message == found.message);
        lacking(0).into_iter().filter(both).for_each(|found| sink.push(found));
    }
}

fn report(message: &str, hint: &str, at: &Span, sink: &Sink) {
    sink.push(Diagnostic::new(Code::Inconsistent, message).at(at, "here").hint(hint));
}

/// Writes down what files that a document names hold.
fn numbers_of_files(node: &Node, text: &mut String) {
    match &node.value {
        Value::Rows(rows) => {
            for column in &rows.columns {
                // A text takes whatever is written to it.
                let _ = writeln!(text, "{} {:?}", column.name, column.values);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| numbers_of_files(item, text)),
        Value::Table(table) => table.entries.iter().for_each(|entry| numbers_of_files(&entry.node, text)),
        _ => {}
    }
}

/// A document's table of money alone.
fn money_of(document: &Node) -> Node {
    let mut money = document.clone();
    if let Value::Table(table) = &mut money.value {
        table.entries.retain(|entry| entry.key == "finance");
    }
    money
}

/// Leaves a layout that is given to be taken from all there are; one that is searched keeps what is settled of it.
fn open_layout(document: &mut Node) {
    let searched = document.at_path("training.layout.search").is_some();
    let Value::Table(table) = &mut document.value else { return };
    if !searched
        && let Some(training) = table.get_mut("training")
        && let Value::Table(training) = &mut training.value
    {
        let at = training.get("layout").map(|layout| layout.at.clone()).unwrap_or_default();
        // The table is there, and the key is not empty.
        let _ = training.set("layout", Node { value: Value::String("auto".to_owned()), at });
    }
}
