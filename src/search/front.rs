//! The layouts that no other beats in both time and memory.

use crate::parallelism::Layout;
use crate::units::{Bytes, Seconds};

/// A layout that works, and what it is judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scored {
    /// The time of a step.
    pub(super) iteration: Seconds,
    /// What its worst stage takes.
    pub(super) memory: Bytes,
    /// What is to be least.
    pub(super) value: f64,
    /// The layout.
    pub(super) layout: Layout,
    /// The index of what it overlaps.
    pub(super) variant: usize,
}

impl Scored {
    /// Whether it is better; of equals the one that takes less memory, and else the one that came first.
    pub(super) fn beats(&self, other: &Self) -> bool {
        self.value < other.value || (self.value <= other.value && self.memory < other.memory)
    }
}

/// A Pareto front: ascending in time, so descending in memory. Of equals, the first that came.
#[derive(Clone, Debug, Default)]
pub(super) struct Front {
    members: Vec<Scored>,
}

impl Front {
    /// Takes a layout in, and those out that it beats.
    pub(super) fn add(&mut self, new: Scored) {
        let slower = self.members.partition_point(|member| member.iteration <= new.iteration);
        if slower > 0 && self.members[slower - 1].memory <= new.memory {
            return;
        }
        // As fast with more memory comes just before; slower with no less memory from here on.
        let start = if slower > 0 && self.members[slower - 1].iteration >= new.iteration { slower - 1 } else { slower };
        let beaten = self.members[slower..].iter().take_while(|member| member.memory >= new.memory).count();
        self.members.splice(start..slower + beaten, [new]);
    }

    /// All members, the fastest first.
    pub(super) fn members(self) -> Vec<Scored> {
        self.members
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallelism::SINGLE;

    fn scored(iteration: u32, memory: u32) -> Scored {
        Scored {
            iteration: Seconds::new(f64::from(iteration)),
            memory: Bytes::new(f64::from(memory)),
            value: f64::from(iteration),
            layout: SINGLE,
            variant: 0,
        }
    }

    #[test]
    fn the_front_is_what_a_comparison_of_all_pairs_leaves() {
        // A congruence of full period walks over points in a fixed, mixed order.
        let mut state = 7_u32;
        let mut points = Vec::new();
        for _ in 0..400 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            points.push(scored((state >> 8) % 40, (state >> 20) % 40));
        }
        let mut front = Front::default();
        for point in &points {
            front.add(*point);
        }
        let beats = |a: &Scored, b: &Scored| {
            a.iteration <= b.iteration && a.memory <= b.memory && (a.iteration < b.iteration || a.memory < b.memory)
        };
        let mut expected: Vec<(f64, f64)> = points
            .iter()
            .filter(|point| !points.iter().any(|other| beats(other, point)))
            .map(|point| (point.iteration.value(), point.memory.value()))
            .collect();
        expected.sort_by(|a, b| a.0.total_cmp(&b.0));
        expected.dedup();
        let found: Vec<(f64, f64)> =
            front.members().iter().map(|point| (point.iteration.value(), point.memory.value())).collect();
        assert_eq!(found, expected);
    }
}
