//! Axes over price books and sites: what each value changes of its entry, read once before the sweep begins.
//!
//! A book is long, and a value changes an amount or two of it: those are kept for each value, and set in the one copy of the
//! book that an answer has.

use std::sync::Arc;

use rayon::prelude::*;

use super::super::Sweep;
use super::super::axes::{ABSENT, AxisColumn, Target};
use super::super::field::{changed_entries, narrowed};
use super::point::first;
use super::touches::Touches;
use crate::catalog::pricebook::Term;
use crate::catalog::{Catalog, Site};
use crate::diagnostics::Sink;
use crate::document::Node;
use crate::scenario::{CatalogField, Scenario};

/// What the values of an axis change.
#[derive(Clone, Debug)]
pub(in crate::sweep) enum Priced {
    /// Amounts of a price book.
    Book(Entry<Vec<Term>>),
    /// A site.
    Site(Entry<Site>),
}

/// An entry as the catalog has it, as far as any value changes it, and with each value of an axis.
#[derive(Clone, Debug)]
pub(in crate::sweep) struct Entry<T> {
    id: String,
    usual: T,
    values: Vec<Result<T, String>>,
}

impl<T> Entry<T> {
    /// What a point sets; none where it does not have the axis.
    fn at(&self, value: u32) -> Option<&Result<T, String>> {
        if value == ABSENT { None } else { self.values.get(value as usize) }
    }
}

impl Priced {
    /// Reads the values of an axis; none where they change more than amounts.
    fn read(column: &AxisColumn, field: &CatalogField, catalog: &Catalog) -> Option<Self> {
        let (narrow, before) = narrowed(catalog, field)?;
        let with = |node: &Node| {
            let sink = Sink::default();
            let changed = changed_entries(&narrow, &[(field, node)], &sink);
            if sink.is_empty() { Ok(changed) } else { Err(first(sink)) }
        };
        let id = field.id.clone();
        if field.folder == "sites" {
            let of = |catalog: &Catalog| catalog.sites.get(&id).map(|entry| entry.part);
            let values = column.values.par_iter().map(|value| with(&value.node).map(|with| of(&with)));
            let values = values.map(|value| value.map_or_else(|why| Some(Err(why)), |site| site.map(Ok)));
            let (usual, values) = (of(&narrow)?, values.collect::<Option<_>>()?);
            return Some(Self::Site(Entry { id, usual, values }));
        }
        let book = narrow.price_books.get(&id)?;
        let terms = |changed: &Catalog| {
            let mut terms = book.terms_unlike(changed.price_books.get(&id)?)?;
            for term in &mut terms {
                term.place += before;
            }
            Some(terms)
        };
        let values = column.values.par_iter().map(|value| with(&value.node).map(|with| terms(&with)));
        let values = values.map(|value| value.map_or_else(|why| Some(Err(why)), |terms| terms.map(Ok)));
        let values: Vec<Result<Vec<Term>, String>> = values.collect::<Option<_>>()?;
        let whole = catalog.price_books.get(&id)?;
        let mut usual: Vec<Term> = Vec::new();
        for term in values.iter().flatten().flatten().filter_map(|term| whole.term_at(term)) {
            if !usual.contains(&term) {
                usual.push(term);
            }
        }
        Some(Self::Book(Entry { id, usual, values }))
    }
}

/// The prices and the site of a point.
#[derive(Clone, Copy)]
pub(super) struct PricesAt<'a> {
    columns: &'a [Option<Priced>],
    point: &'a [u32],
}

impl PricesAt<'_> {
    /// Sets a scenario's, with the money that is left to its price book. Nothing is allocated where nobody else has the book.
    pub(super) fn set(&self, scenario: &mut Scenario) {
        let cluster = &mut scenario.cluster;
        let columns =
            || self.columns.iter().zip(self.point).filter_map(|(priced, value)| Some((priced.as_ref()?, *value)));
        // First all as in the catalog, so that nothing is left of another point.
        for (priced, _) in columns() {
            match priced {
                Priced::Book(entry) if entry.id == cluster.prices.id => {
                    let book = &mut Arc::make_mut(&mut cluster.prices).part;
                    entry.usual.iter().for_each(|term| book.set(term));
                }
                Priced::Site(entry) if entry.id == cluster.site.id => {
                    Arc::make_mut(&mut cluster.site).part = entry.usual;
                }
                Priced::Book(_) | Priced::Site(_) => {}
            }
        }
        for (priced, value) in columns() {
            match priced {
                Priced::Book(entry) if entry.id == cluster.prices.id => {
                    let book = &mut Arc::make_mut(&mut cluster.prices).part;
                    entry.at(value).into_iter().flatten().flatten().for_each(|term| book.set(term));
                }
                Priced::Site(entry) if entry.id == cluster.site.id => {
                    let site = &mut Arc::make_mut(&mut cluster.site).part;
                    entry.at(value).into_iter().flatten().for_each(|to| site.change(&entry.usual, to));
                }
                Priced::Book(_) | Priced::Site(_) => {}
            }
        }
        scenario.finance = scenario.finance.at(&scenario.cluster.prices);
    }
}

impl Sweep<'_> {
    /// What axes over prices and sites change, by column; nothing of the others.
    pub(in crate::sweep) fn priced(&self) -> Vec<Option<Priced>> {
        let of = |(column, touched): (&AxisColumn, &Touches)| match &column.target {
            Target::Catalog(field) if *touched == Touches::Prices => Priced::read(column, field, self.catalog),
            _ => None,
        };
        self.axes.columns.iter().zip(&self.touches).map(of).collect()
    }

    /// The prices of a point, or what is wrong with one of them.
    pub(super) fn prices_at<'p>(&'p self, point: &'p [u32]) -> Result<PricesAt<'p>, String> {
        for (priced, value) in self.priced.iter().zip(point) {
            let mistake = match priced {
                Some(Priced::Book(entry)) => entry.at(*value).and_then(|change| change.as_ref().err()),
                Some(Priced::Site(entry)) => entry.at(*value).and_then(|change| change.as_ref().err()),
                None => None,
            };
            if let Some(mistake) = mistake {
                return Err(mistake.clone());
            }
        }
        Ok(PricesAt { columns: &self.priced, point })
    }
}
