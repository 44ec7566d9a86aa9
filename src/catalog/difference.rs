//! What differs between two entries, or between two catalogs.

use std::collections::BTreeMap;

use super::currency::Rates;
use super::selection::magnitudes;
use super::{Catalog, Record};

/// A field in which two entries differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The entry or entries, where whole catalogs are compared.
    pub entry: String,
    /// The field.
    pub field: String,
    /// What the first says; none where it says nothing.
    pub before: Option<String>,
    /// What the second says.
    pub after: Option<String>,
    /// The second over the first, where both are quantities of one kind.
    pub ratio: Option<f64>,
}

/// The fields in which two entries differ, in the order of the first's file.
pub fn difference(before: &Record<'_>, after: &Record<'_>) -> Vec<Change> {
    let figures = |record: &Record<'_>| -> Vec<(String, String)> {
        let amount = |figure: super::Figure| (figure.field, figure.text);
        record.figures(&Rates::new()).into_iter().map(amount).collect()
    };
    let (old, new) = (figures(before), figures(after));
    let find =
        |all: &[(String, String)], field: &str| all.iter().find(|(own, _)| own == field).map(|(_, text)| text.clone());
    let added = new.iter().filter(|(field, _)| find(&old, field).is_none());
    let fields = old.iter().chain(added).map(|(field, _)| field.clone());
    let change = |field: String| {
        let (was, is) = (find(&old, &field), find(&new, &field));
        let ratio = was.as_deref().zip(is.as_deref()).and_then(|(was, is)| ratio(was, is));
        (was != is).then(|| Change { entry: after.id.to_owned(), field, before: was, after: is, ratio })
    };
    fields.filter_map(change).collect()
}

/// The second over the first; of a value with its range, the value.
fn ratio(before: &str, after: &str) -> Option<f64> {
    let value = |text: &str| {
        let text = text.strip_prefix("usd ").unwrap_or(text);
        text.split(" (").next().unwrap_or_default().to_owned()
    };
    let (before, after) = magnitudes(&value(before), &value(after))?;
    (before > 0.0).then(|| after / before)
}

impl Catalog {
    /// All in which another catalog differs from this one, entry by entry; an entry that only one of them has is one
    /// change of the field `name`.
    pub fn changes_to(&self, other: &Self) -> Vec<Change> {
        let (old, new) = (self.records(), other.records());
        let by_key = |records: &[Record<'_>]| -> BTreeMap<(&'static str, String), usize> {
            records.iter().enumerate().map(|(index, record)| ((record.folder, record.id.to_owned()), index)).collect()
        };
        let (old_at, new_at) = (by_key(&old), by_key(&new));
        let whole = |record: &Record<'_>, there_now: bool| {
            let name = Some(record.name.to_owned());
            let (before, after) = if there_now { (None, name) } else { (name, None) };
            let entry = format!("{}/{}", record.folder, record.id);
            Change { entry, field: "name".to_owned(), before, after, ratio: None }
        };
        let mut changes = Vec::new();
        for (key, &index) in &old_at {
            match new_at.get(key) {
                Some(&other) => {
                    let named = |change: Change| Change { entry: format!("{}/{}", key.0, key.1), ..change };
                    changes.extend(difference(&old[index], &new[other]).into_iter().map(named));
                }
                None => changes.push(whole(&old[index], false)),
            }
        }
        let added = new_at.iter().filter(|(key, _)| !old_at.contains_key(*key));
        changes.extend(added.map(|(_, &index)| whole(&new[index], true)));
        changes
    }
}
