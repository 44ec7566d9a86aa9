//! All layouts of a space, by divisibility, then memory, then time.

use rayon::prelude::*;

use super::front::{Front, Scored};
use super::shared::Shared;
use crate::evaluate::{BuiltCluster, Candidate, Found, Infeasible, NoLayout, Point, Prepared, Reason, Tally};
use crate::memory::MemoryFootprint;
use crate::parallelism::{Layout, LayoutError, Objective, Sharding, Space};
use crate::scenario::{Finance, LayoutSearch, Overlap, Scenario, Training};
use crate::units::Bytes;

/// The best of so many ways to share out the accelerators are named.
const MOST_BEST: usize = 6;
/// Of a longer front, so many are named, evenly spread over it.
const MOST_FRONT: usize = 12;

/// The step model under one choice of what is overlapped.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// What is overlapped.
    pub overlap: Overlap,
    /// The model.
    pub prepared: Prepared,
}

/// The choices of overlap by what is sharded: frameworks prefetch fully sharded weights where they overlap nothing else.
#[derive(Clone, Debug)]
pub struct Variants {
    variants: Vec<Variant>,
    /// Indices of the choices under each sharding.
    by_sharding: Vec<Vec<usize>>,
}

impl Variants {
    /// Binds the choices of a scenario's training job; without a search, what it has.
    pub fn new(scenario: &Scenario, training: &Training, built: &BuiltCluster) -> Self {
        let mut variants: Vec<Variant> = Vec::new();
        let mut index_of = |overlap: Overlap| {
            if let Some(index) = variants.iter().position(|variant| variant.overlap == overlap) {
                return Some(index);
            }
            let training = training.with_overlap(overlap, &scenario.cluster).ok()?;
            variants.push(Variant { overlap, prepared: Prepared::new(scenario, &training, built) });
            Some(variants.len() - 1)
        };
        let choices = |sharding: Sharding| match &training.search {
            Some(search) => search.overlaps(training, sharding),
            None => vec![training.software.overlap],
        };
        let mut by_sharding = vec![Vec::new(); Sharding::ALL.len()];
        for &sharding in Sharding::ALL {
            by_sharding[sharding as usize] = choices(sharding).into_iter().filter_map(&mut index_of).collect();
        }
        Self { variants, by_sharding }
    }

    /// The choices under a sharding.
    pub(super) fn under(&self, sharding: Sharding) -> &[usize] {
        &self.by_sharding[sharding as usize]
    }

    /// The same choices on a cluster that is used and financed otherwise.
    pub fn refinance(&mut self, built: &BuiltCluster, finance: &Finance) {
        for variant in &mut self.variants {
            variant.prepared.refinance(built, finance);
        }
    }

    /// How many choices there are.
    pub(super) const fn count_of_choices(&self) -> usize {
        self.variants.len()
    }

    /// The model under the first choice; none where there is none.
    pub fn first(&self) -> Option<&Prepared> {
        self.variants.first().map(|variant| &variant.prepared)
    }

    /// A choice and the model under it, by index.
    pub(super) fn variant(&self, index: usize) -> (Overlap, &Prepared) {
        let Variant { overlap, prepared } = &self.variants[index];
        (*overlap, prepared)
    }

    /// All figures of a layout that works.
    fn candidate(&self, scored: &Scored) -> Option<Candidate> {
        let Variant { overlap, prepared } = self.variants.get(scored.variant)?;
        Some(Candidate { point: prepared.point(&scored.layout).ok()?, overlap: *overlap })
    }
}

/// What is to be least. Two objectives are never held against each other, so that base numbers will do.
fn value(objective: Objective, point: &Point) -> f64 {
    match objective {
        Objective::Fastest => point.step.iteration().value(),
        Objective::Cheapest => point.run.value(),
    }
}

/// What came of a part of the space.
#[derive(Default)]
struct Part {
    best: Option<Scored>,
    front: Front,
    tally: Tally,
    closest: Option<(Layout, u32, MemoryFootprint)>,
}

impl Part {
    fn take(&mut self, scored: Scored) {
        if self.best.as_ref().is_none_or(|best| scored.beats(best)) {
            self.best = Some(scored);
        }
        self.front.add(scored);
    }

    fn too_large(&mut self, layout: Layout, stage: u32, footprint: MemoryFootprint) {
        if self.closest.as_ref().is_none_or(|(.., least)| footprint.total() < least.total()) {
            self.closest = Some((layout, stage, footprint));
        }
    }
}

/// Evaluates all layouts of a space, on all cores.
///
/// # Errors
/// When none works: how many there are, why, and the one that fails by least memory.
pub fn search(variants: &Variants, wanted: &LayoutSearch) -> Result<Found, Infeasible> {
    let Some(Variant { prepared, .. }) = variants.variants.first() else {
        return Err(nothing(Tally::default(), None, Bytes::ZERO));
    };
    let (transformer, job) = (&prepared.step.transformer, &prepared.step.job);
    let space = &wanted.space;
    let degrees = space.degrees(transformer, prepared.accelerators);
    if degrees.is_empty() {
        return Err(unshared(space, prepared.accelerators).into());
    }
    let rows: Vec<(usize, Layout)> = degrees
        .iter()
        .enumerate()
        .flat_map(|(group, degrees)| space.batches(*degrees, job).into_iter().map(move |batch| (group, batch)))
        .collect();
    let parts: Vec<(usize, Part)> =
        rows.into_par_iter().map(|(group, batch)| (group, row(variants, prepared, wanted, batch))).collect();

    let mut bests: Vec<Option<Scored>> = vec![None; degrees.len()];
    let mut whole = Part::default();
    for (group, part) in parts {
        if let Some(scored) = part.best {
            let own = &mut bests[group];
            if own.as_ref().is_none_or(|own| scored.beats(own)) {
                *own = Some(scored);
            }
        }
        whole.tally.add(&part.tally);
        part.front.members().into_iter().for_each(|scored| whole.front.add(scored));
        if let Some((layout, stage, footprint)) = part.closest {
            whole.too_large(layout, stage, footprint);
        }
    }
    let mut bests: Vec<Scored> = bests.into_iter().flatten().collect();
    // A stable sort: of equals, the first stays first.
    bests.sort_by(|a, b| a.value.total_cmp(&b.value).then(a.memory.value().total_cmp(&b.memory.value())));
    bests.truncate(MOST_BEST);
    if bests.is_empty() {
        return Err(nothing(whole.tally, whole.closest, prepared.usable_memory));
    }
    let candidates = |scored: &[Scored]| scored.iter().filter_map(|scored| variants.candidate(scored)).collect();
    let front = thinned(whole.front.members());
    Ok(Found { objective: wanted.objective, tally: whole.tally, best: candidates(&bests), front: candidates(&front) })
}

/// All layouts with the same degrees, microbatch and sequence parallelism.
fn row(variants: &Variants, prepared: &Prepared, wanted: &LayoutSearch, batch: Layout) -> Part {
    let (transformer, job) = (&prepared.step.transformer, &prepared.step.job);
    let space = &wanted.space;
    let (shardings, recomputes) = (space.shardings(&batch), space.recomputes());
    let overlaps = |sharding: &Sharding| variants.under(*sharding);
    let policies = shardings.iter().map(|sharding| overlaps(sharding).len()).sum::<usize>() * recomputes.len();
    let mut part = Part::default();
    let mut shared = Shared::of_row(variants);
    for passes in space.passes(batch, transformer) {
        if let Err(error) = passes.check(transformer, job) {
            part.tally.reject(Reason::from(&error), policies as u64);
            continue;
        }
        for &sharding in &shardings {
            let overlaps = overlaps(&sharding);
            shared.next_sharding();
            for &recompute in &recomputes {
                let layout = Layout { sharding, recompute, ..passes };
                match prepared.fit(layout) {
                    Ok(fit) => {
                        for &variant in overlaps {
                            match shared.timed(variant, fit) {
                                Ok(point) => {
                                    part.tally.feasible += 1;
                                    part.take(Scored {
                                        iteration: point.step.iteration(),
                                        memory: fit.memory.total(),
                                        value: value(wanted.objective, &point),
                                        layout,
                                        variant,
                                    });
                                }
                                Err(infeasible) => part.tally.reject(Reason::from(&infeasible), 1),
                            }
                        }
                    }
                    Err(infeasible) => {
                        part.tally.reject(Reason::from(&infeasible), overlaps.len() as u64);
                        if let Infeasible::Memory { stage, footprint, .. } = infeasible {
                            part.too_large(layout, stage, footprint);
                        }
                    }
                }
            }
        }
    }
    part
}

/// So many of a front, both ends among them.
fn thinned(front: Vec<Scored>) -> Vec<Scored> {
    if front.len() <= MOST_FRONT {
        return front;
    }
    let last = front.len() - 1;
    (0..MOST_FRONT).map(|index| front[index * last / (MOST_FRONT - 1)]).collect()
}

fn nothing(tally: Tally, closest: Option<(Layout, u32, MemoryFootprint)>, usable: Bytes) -> Infeasible {
    Infeasible::NoLayout(Box::new(NoLayout { tally, closest, usable }))
}

/// Degrees that are given, and which no number of replicas fills up to the accelerators.
fn unshared(space: &Space, accelerators: u32) -> LayoutError {
    let given = |degree: Option<u32>| degree.unwrap_or(1);
    let (tensor, context, pipeline) = (given(space.tensor), given(space.context), given(space.pipeline));
    if tensor == 0 || context == 0 || pipeline == 0 {
        return LayoutError::Zero;
    }
    LayoutError::Accelerators { accelerators, tensor, context, pipeline }
}
