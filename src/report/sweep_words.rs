//! Rows of a sweep in words.

use super::figure::counted;
use crate::parallelism::{Layout, ServingLayout};
use crate::scenario::Overlap;
use crate::search::Deployment;
use crate::sweep::{ABSENT, Kept, Sweep};

/// Columns of a table of rows that are no axes.
pub(super) const LAYOUT: &str = "layout";
pub(super) const LIMITS: &str = "limits";

/// The last part of an axis's key, which says most; all of it where another column would be called the same.
pub(super) fn axis_name(sweep: &Sweep<'_>, axis: usize) -> String {
    let last = |key: &str| key.rsplit(['.', '/']).next().unwrap_or(key).to_owned();
    let columns = &sweep.axes.columns;
    let (key, short) = (&columns[axis].key, last(&columns[axis].key));
    let mut others = columns.iter().enumerate().filter(|(other, _)| *other != axis);
    let taken = [LAYOUT, LIMITS].contains(&short.as_str()) || others.any(|(_, other)| last(&other.key) == short);
    if taken { key.clone() } else { short }
}

pub(super) fn axis_text<'a>(sweep: &'a Sweep<'_>, row: &Kept, axis: usize) -> &'a str {
    match row.point[axis] {
        ABSENT => "",
        number => &sweep.axes.columns[axis].values[number as usize].text,
    }
}

/// The layout of training and what is overlapped, for people.
pub(super) fn layout_text(layout: &Layout, overlap: Overlap) -> String {
    let on = [("tensor", overlap.tensor), ("data", overlap.data)].into_iter().filter(|(_, on)| *on);
    let overlaps: String = on.map(|(name, _)| [", ", name, " overlap"].concat()).collect();
    layout.to_string() + &overlaps
}

/// A way to serve, for people.
pub(super) fn way_text(way: &Deployment) -> String {
    let Some(pool) = &way.prefill else { return way.layout.to_string() };
    let on = pool.accelerators.map_or_else(String::new, |all| format!(" on {}", counted(all.into(), "GPU")));
    format!("prefill {}{on}; decode {}", pool.layout, way.layout)
}

/// A way to serve as what `serving.layout` takes, for `--set`.
pub fn layout_toml(way: &Deployment) -> String {
    let mut fields = match &way.prefill {
        None => degrees(&way.layout),
        Some(pool) => {
            let of = |layout| format!("{{ {} }}", degrees(layout).join(", "));
            let mut pools = vec![format!("prefill = {}", of(&pool.layout)), format!("decode = {}", of(&way.layout))];
            pools.extend(pool.accelerators.map(|all| format!("prefill_accelerators = {all}")));
            pools
        }
    };
    fields.extend(way.left_over.then(|| "left_over = true".to_owned()));
    format!("{{ {} }}", fields.join(", "))
}

/// Keys and values of a layout, but for those of one.
fn degrees(layout: &ServingLayout) -> Vec<String> {
    let ServingLayout { tensor, pipeline, expert, attention_data, redundant_experts } = *layout;
    let others = [("pipeline", pipeline), ("expert", expert), ("attention_data", attention_data)];
    let others = others.into_iter().filter(|(_, degree)| *degree > 1);
    let copies = (redundant_experts > 0).then_some(("redundant_experts", redundant_experts));
    let all = std::iter::once(("tensor", tensor)).chain(others).chain(copies);
    all.map(|(key, degree)| format!("{key} = {degree}")).collect()
}
