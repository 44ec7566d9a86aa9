//! What a search of layouts came to.

use super::{Infeasible, Point, ServingPoint};
use crate::document::choices;
use crate::memory::MemoryFootprint;
use crate::parallelism::{Layout, LayoutError, Objective};
use crate::scenario::Overlap;
use crate::units::Bytes;

choices! {
    /// Why a layout is rejected, without its numbers.
    pub enum Reason {
        /// A stage does not fit in memory.
        Memory = "a stage does not fit in memory",
        /// The batch is no multiple of the replicas' microbatches.
        GlobalBatch = "the batch is no multiple of data x micro_batch",
        /// Heads do not split.
        Heads = "heads do not split over tensor",
        /// Heads do not split over context ranks.
        ContextHeads = "heads do not split over tensor x context, as all-to-all needs",
        /// The MLP does not split.
        Ffn = "the MLP does not split over tensor",
        /// The sequence does not split.
        Sequence = "the sequence does not split over context x tensor",
        /// More chunks of layers than layers.
        Stages = "more stages than layers",
        /// Interleaving needs whole rounds.
        Rounds = "microbatches are no multiple of the stages that interleaving takes in turn",
        /// Both ends of a pipeline need as many.
        BothEnds = "dualpipe needs an even pipeline and twice as many microbatches",
        /// The schedule and the number of chunks exclude each other.
        Chunks = "the schedule does not go with so many virtual stages",
        /// Experts do not split.
        Experts = "experts do not split over expert ranks",
        /// Ranks do not split into groups of expert ranks.
        ExpertRanks = "ranks of a stage do not split into expert groups",
        /// Ranks do not split into shard groups.
        ShardRanks = "ranks do not split into groups of shard_ranks",
        /// The host's memory is short.
        HostMemory = "what is offloaded does not fit in the host's memory",
        /// The run makes no progress.
        Endless = "failures leave no progress",
        /// What is left: numbers that no layout has.
        Other = "no layout",
    }
}

impl From<&LayoutError> for Reason {
    fn from(error: &LayoutError) -> Self {
        match error {
            LayoutError::Heads { .. } | LayoutError::KvHeads { .. } | LayoutError::Recurrent { .. } => Self::Heads,
            LayoutError::ContextHeads { .. } => Self::ContextHeads,
            LayoutError::Ffn { .. } => Self::Ffn,
            LayoutError::Sequence { .. } => Self::Sequence,
            LayoutError::GlobalBatch { .. } => Self::GlobalBatch,
            LayoutError::VirtualStages { .. } => Self::Chunks,
            LayoutError::InterleavedRounds { .. } => Self::Rounds,
            LayoutError::BothEnds { .. } => Self::BothEnds,
            LayoutError::Stages { .. } | LayoutError::StageLayers { .. } | LayoutError::BothEndsSplit => Self::Stages,
            LayoutError::NoExperts { .. } | LayoutError::Experts { .. } => Self::Experts,
            LayoutError::ExpertRanks { .. } => Self::ExpertRanks,
            LayoutError::ShardRanks { .. } => Self::ShardRanks,
            LayoutError::Zero | LayoutError::Accelerators { .. } => Self::Other,
        }
    }
}

impl From<&Infeasible> for Reason {
    fn from(infeasible: &Infeasible) -> Self {
        match infeasible {
            Infeasible::Layout(error) => Self::from(error),
            Infeasible::Memory { .. } => Self::Memory,
            Infeasible::Endless { .. } => Self::Endless,
            Infeasible::HostMemory { .. } => Self::HostMemory,
            _ => Self::Other,
        }
    }
}

/// How many layouts were looked at, and why those that do not work do not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Layouts that work.
    pub feasible: u64,
    /// Those that do not, by reason.
    rejected: [u64; Reason::ALL.len()],
}

impl Tally {
    /// Counts so many that are rejected for a reason.
    pub fn reject(&mut self, reason: Reason, count: u64) {
        self.rejected[reason as usize] += count;
    }

    /// Both together.
    pub fn add(&mut self, other: &Self) {
        self.feasible += other.feasible;
        for (own, more) in self.rejected.iter_mut().zip(&other.rejected) {
            *own += more;
        }
    }

    /// All layouts looked at.
    pub fn considered(&self) -> u64 {
        self.feasible + self.rejected.iter().sum::<u64>()
    }

    /// The reasons that occurred, the most frequent first.
    pub fn reasons(&self) -> Vec<(Reason, u64)> {
        let counted = Reason::ALL.iter().map(|reason| (*reason, self.rejected[*reason as usize]));
        let mut reasons: Vec<(Reason, u64)> = counted.filter(|(_, count)| *count > 0).collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        reasons
    }
}

/// A layout that works, evaluated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Its figures.
    pub point: Point,
    /// What it overlaps.
    pub overlap: Overlap,
}

/// What a search of layouts came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// What was wanted.
    pub objective: Objective,
    /// What was looked at.
    pub tally: Tally,
    /// The best, and the best of each other way to share the accelerators out among the axes, in order.
    pub best: Vec<Candidate>,
    /// Those that no other beats in both time and memory, the fastest first.
    pub front: Vec<Candidate>,
}

/// What a search of ways to serve came to.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundWays {
    /// Ways that were tried: no other beats them on as few nodes as hold them.
    pub considered: u64,
    /// Those that serve what is asked.
    pub feasible: u64,
    /// Those of them that keep all limits of latencies.
    pub kept: u64,
    /// The best, in order; those that miss a limit come after all that keep theirs, the nearest to it first.
    pub best: Vec<ServingPoint>,
}

/// Why a search found nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct NoLayout {
    /// What was looked at.
    pub tally: Tally,
    /// The layout that needs the least memory of those that need too much: it, its worst stage, and what that needs.
    pub closest: Option<(Layout, u32, MemoryFootprint)>,
    /// What a job may use of an accelerator.
    pub usable: Bytes,
}

impl std::fmt::Display for NoLayout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "none of {} layouts works", self.tally.considered())?;
        if let Some((layout, stage, footprint)) = &self.closest {
            let (need, usable) = (footprint.total(), self.usable);
            write!(
                f,
                "; the one that needs the least memory ({layout}) takes {need} a GPU on stage {stage}, {usable} of them usable: short by {}",
                need.saturating_sub(usable)
            )?;
        }
        Ok(())
    }
}
