//! How far times may be from the typical one: every constant at the ends of its range in turn, and what the form misses.
//!
//! Constants are taken as independent, their ranges as one deviation each way, so that the logarithms of what each moves
//! add up by their squares. Two runs in three should lie within such a range, not all of them.

use crate::catalog::collective_efficiency::FormSpread;
use crate::catalog::{CollectiveEfficiency, Section};
use crate::collectives::{Algorithm, Group};
use crate::units::{Bytes, Seconds};

/// Ranks of the largest run that constants were fitted to.
const MEASURED_RANKS: u32 = 192;
/// Racks of the largest run by NVLS trees.
const MEASURED_RACKS: u32 = 3;
/// Accelerators that one layer of scale-up switches joins; more are a rack.
const BOARD: u32 = 8;

/// Why a time is an extrapolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extrapolation {
    /// More ranks than were ever measured in the logs.
    Ranks,
    /// An NVLS tree over more racks than were measured: published runs are slower.
    Racks,
}

impl Extrapolation {
    /// Whether a time is beyond what was measured.
    pub fn of(algorithm: Algorithm, group: &Group) -> Option<Self> {
        let racks = group.ranks_per_domain > BOARD && group.domains() > MEASURED_RACKS;
        if racks && algorithm == Algorithm::NvlsTree {
            Some(Self::Racks)
        } else if group.ranks > MEASURED_RANKS {
            Some(Self::Ranks)
        } else {
            None
        }
    }

    /// How much slower it may be.
    fn slower(self, form: &FormSpread) -> f64 {
        match self {
            Self::Ranks => form.many_ranks.get(),
            Self::Racks => form.many_racks.get(),
        }
    }
}

/// A time at the low and the high end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimeRange {
    /// The low end.
    pub low: Seconds,
    /// The high end.
    pub high: Seconds,
}

/// Squares of the logarithms that constants move a time by, down and up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Spread {
    down: f64,
    up: f64,
}

impl Spread {
    /// Adds what the two ends of one constant do to a time.
    fn add(&mut self, typical: Seconds, ends: [Option<Seconds>; 2]) {
        let logs = ends.map(|end| end.map_or(0.0, |end| (end / typical).ln()));
        self.up += logs[0].max(logs[1]).max(0.0).powi(2);
        self.down += logs[0].min(logs[1]).min(0.0).powi(2);
    }
}

/// A call's times with one set of constants, each where an algorithm serves it.
pub type Times = Vec<Option<Seconds>>;

/// What a range is worked out from.
#[derive(Debug)]
pub struct RangeInputs<'a> {
    /// The constants.
    pub constants: &'a CollectiveEfficiency,
    /// Which of them count.
    pub sections: &'a [Section],
    /// The payload.
    pub payload: Bytes,
    /// Times at the low and the high end of what is no constant of collectives, such as the spine's efficiency.
    pub others: &'a [[Times; 2]],
}

/// The ranges of several times of one call: `times` gives them for a set of constants, `extrapolated` tells each that is
/// beyond what was measured.
pub fn time_ranges(
    inputs: &RangeInputs<'_>,
    extrapolated: &[Option<Extrapolation>],
    times: impl Fn(&CollectiveEfficiency) -> Times,
) -> Vec<Option<TimeRange>> {
    let typical = times(inputs.constants);
    let mut spreads = vec![Spread::default(); typical.len()];
    let mut add = |ends: [&Times; 2]| {
        for (index, spread) in spreads.iter_mut().enumerate() {
            if let Some(typical) = typical[index].filter(|typical| *typical > Seconds::ZERO) {
                spread.add(typical, ends.map(|end| end[index]));
            }
        }
    };
    for constant in inputs.sections.iter().flat_map(|section| inputs.constants.constants(section)) {
        let range = constant.range;
        if range.low >= range.high {
            continue;
        }
        let at = |base: f64| {
            let mut set = inputs.constants.clone();
            set.change(&constant.path, base).map(|()| times(&set))
        };
        if let (Some(low), Some(high)) = (at(range.low), at(range.high)) {
            add([&low, &high]);
        }
    }
    for [low, high] in inputs.others {
        add([low, high]);
    }
    let form = &inputs.constants.form;
    let missed = form_spread(form, inputs.payload);
    let range = |index: usize| {
        let typical = typical[index]?;
        let slower = extrapolated.get(index).copied().flatten().map_or(1.0, |beyond| beyond.slower(form));
        let ends = |squares: f64| (squares + missed * missed).sqrt();
        Some(TimeRange {
            low: typical * (-ends(spreads[index].down)).exp(),
            high: typical * (ends(spreads[index].up).exp() * slower),
        })
    };
    (0..typical.len()).map(range).collect()
}

/// What the form misses at a payload, as a deviation of the logarithm.
fn form_spread(form: &FormSpread, payload: Bytes) -> f64 {
    let mib = payload / Bytes::new(1_048_576.0);
    let share = match mib {
        mib if mib < 1.0 => form.small,
        mib if mib < 16.0 => form.medium,
        mib if mib < 1_024.0 => form.large,
        _ => form.huge,
    };
    share.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Fraction;

    #[test]
    fn independent_constants_add_up_by_their_squares() {
        let mut constants = CollectiveEfficiency::default();
        let share = |share| Fraction::new(share).unwrap();
        for (set, direct, nic) in [
            (0, 0.5, 0.5),
            (1, 0.5 / 0.3_f64.exp(), 0.5 / 0.4_f64.exp()),
            (2, 0.5 * 0.3_f64.exp(), 0.5 * 0.4_f64.exp()),
        ] {
            let sharp = [&mut constants.sharp.value, &mut constants.sharp.low, &mut constants.sharp.high];
            let Some(sharp) = sharp.into_iter().nth(set) else { continue };
            (sharp.direct, sharp.nic) = (share(direct), share(nic));
        }
        constants.form.huge = share(0.0);
        let inputs =
            RangeInputs { constants: &constants, sections: &[Section::Sharp], payload: Bytes::new(2e9), others: &[] };
        let time = |set: &CollectiveEfficiency| {
            vec![Some(Seconds::new(1.0 / (set.sharp.value.direct.get() * set.sharp.value.nic.get()))), None]
        };
        let ranges = time_ranges(&inputs, &[None, None], time);
        // 0.3 and 0.4 are 0.5 together.
        let range = ranges[0].unwrap();
        assert!((range.high / Seconds::new(4.0) - 0.5_f64.exp()).abs() < 1e-9, "{range:?}");
        assert!((range.low / Seconds::new(4.0) - (-0.5_f64).exp()).abs() < 1e-9, "{range:?}");
        assert_eq!(ranges[1], None);
    }

    #[test]
    fn racks_beyond_the_third_are_an_extrapolation() {
        let of =
            |algorithm, ranks, each: u32| Extrapolation::of(algorithm, &Group::filling(ranks, each, f64::from(each)));
        assert_eq!(of(Algorithm::NvlsTree, 216, 72), Some(Extrapolation::Ranks));
        assert_eq!(of(Algorithm::NvlsTree, 288, 72), Some(Extrapolation::Racks));
        assert_eq!(of(Algorithm::RingSimple, 288, 72), Some(Extrapolation::Ranks));
        assert_eq!(of(Algorithm::NvlsTree, 64, 8), None);
    }
}
