//! The nearest layout that works to one that does not.

use crate::evaluate::{BuiltCluster, Infeasible, Point, Prepared};
use crate::parallelism::{Layout, Space};
use crate::scenario::Scenario;
use crate::units::Bytes;

/// A layout that works, and how it differs from the one that was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nearest {
    /// Its figures.
    pub point: Point,
    /// What a job may use of an accelerator.
    pub usable: Bytes,
    /// The distance: halvings and doublings of degrees, and other choices changed.
    pub distance: f64,
}

/// The nearest layout that works to that of a scenario which cannot be, or to the given keys of one whose search found
/// none, and of those as near the fastest; `None` where nothing is trained, the layout is not to blame, or no layout of
/// these accelerators works.
///
/// Every halving or doubling of a degree or of the microbatch counts one (degrees in between by their logarithm), and so
/// does every other choice that is changed. What a search was left to choose counts nothing, nor do replicas, which follow
/// from the rest.
pub fn nearest(scenario: &Scenario, infeasible: &Infeasible) -> Option<Nearest> {
    let of_layout = matches!(
        infeasible,
        Infeasible::Layout(_) | Infeasible::Memory { .. } | Infeasible::HostMemory { .. } | Infeasible::NoLayout(_)
    );
    let training = scenario.training.as_ref().filter(|_| of_layout)?;
    let asked = training.search.map_or_else(|| Space::of(&training.layout), |search| search.space);
    if asked.is_all() {
        // All that there are have been tried.
        return None;
    }
    let built = BuiltCluster::new(&scenario.cluster, &scenario.finance).ok()?;
    let prepared = Prepared::new(scenario, training, &built);
    let (model, job) = (&prepared.step.transformer, &prepared.step.job);
    let space = Space::all(asked.order);

    let degrees = space.degrees(model, prepared.accelerators);
    let batches = degrees.into_iter().flat_map(|degrees| space.batches(degrees, job));
    let mut rows: Vec<(f64, Layout)> = batches.map(|batch| (of_row(&batch, &asked), batch)).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut best: Option<Nearest> = None;
    for (so_far, batch) in rows {
        if best.as_ref().is_some_and(|best| so_far > best.distance) {
            break;
        }
        for passes in space.passes(batch, model) {
            for sharding in space.shardings(&batch) {
                for recompute in space.recomputes() {
                    let layout = Layout { sharding, recompute, ..passes };
                    let distance = so_far + of_policies(&layout, &asked);
                    if best.as_ref().is_some_and(|best| distance > best.distance) {
                        continue;
                    }
                    let Ok(point) = prepared.point(&layout) else { continue };
                    let nearer = best.as_ref().is_none_or(|best| {
                        distance < best.distance || point.step.iteration() < best.point.step.iteration()
                    });
                    if nearer {
                        best = Some(Nearest { point, usable: prepared.usable_memory, distance });
                    }
                }
            }
        }
    }
    best
}

/// Doublings between a degree and the one that is asked for, if one is.
fn doublings(found: u32, asked: Option<u32>) -> f64 {
    asked.map_or(0.0, |asked| (f64::from(found.max(1)) / f64::from(asked.max(1))).log2().abs())
}

fn of_row(layout: &Layout, asked: &Space) -> f64 {
    doublings(layout.tensor, asked.tensor)
        + doublings(layout.context, asked.context)
        + if layout.context > 1 { changed(layout.context_exchange, asked.context_exchange) } else { 0.0 }
        + doublings(layout.pipeline, asked.pipeline)
        + doublings(layout.expert, asked.expert)
        + doublings(layout.micro_batch, asked.micro_batch)
        + if layout.tensor > 1 { changed(layout.sequence_parallel, asked.sequence_parallel) } else { 0.0 }
}

fn of_policies(layout: &Layout, asked: &Space) -> f64 {
    doublings(layout.virtual_stages, asked.virtual_stages)
        + changed(layout.schedule, asked.schedule)
        + changed(layout.recompute, asked.recompute)
        + changed(layout.sharding, asked.sharding)
}

/// One where a choice is not the one that is asked for, if one is.
fn changed<T: Copy + PartialEq>(found: T, asked: Option<T>) -> f64 {
    if asked.is_some_and(|asked| asked != found) { 1.0 } else { 0.0 }
}
