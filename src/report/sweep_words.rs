//! Rows of a sweep in words.

use crate::sweep::{ABSENT, Kept, Sweep};

/// The last part of a key, which says most.
pub(super) fn short(key: &str) -> String {
    key.rsplit(['.', '/']).next().unwrap_or(key).to_owned()
}

pub(super) fn axis_text<'a>(sweep: &'a Sweep<'_>, row: &Kept, axis: usize) -> &'a str {
    match row.point[axis] {
        ABSENT => "",
        number => &sweep.axes.columns[axis].values[number as usize].text,
    }
}
