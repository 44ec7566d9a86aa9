//! The constants of collectives one by one, each with its path and range: what studies of ranges and fits move about.

use std::fmt;

use super::collective_efficiency::CollectiveEfficiency;
use super::constant::{Constants, Kind};
use crate::units::Ranged;

/// A set of constants that belong together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// What the library costs on any hardware.
    Library,
    /// Parallel aggregated trees.
    Pat,
    /// Reduction in the network's switches.
    Sharp,
    /// MPI.
    Mpi,
    /// Staging through the memory of the hosts.
    Staging,
    /// A kind of scale-up link.
    ScaleUp(String),
    /// The switches of that kind, where they reduce.
    Nvls(String),
    /// A class of network.
    Network(String),
}

impl Section {
    /// Whether it is of hardware that a table either has or lacks: links and networks.
    pub const fn is_hardware(&self) -> bool {
        matches!(self, Self::ScaleUp(_) | Self::Network(_))
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library => f.write_str("library"),
            Self::Pat => f.write_str("pat"),
            Self::Sharp => f.write_str("sharp"),
            Self::Mpi => f.write_str("mpi"),
            Self::Staging => f.write_str("staging"),
            Self::ScaleUp(kind) => write!(f, "scale_up.{kind}"),
            Self::Nvls(kind) => write!(f, "scale_up.{kind}.nvls"),
            Self::Network(class) => write!(f, "network.{class}"),
        }
    }
}

/// One constant, by where it stands in the file: `network.ib-cx7.payload`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConstantPath {
    /// Its set.
    pub section: Section,
    /// Its name there.
    pub name: &'static str,
}

impl fmt::Display for ConstantPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.section, self.name)
    }
}

/// One constant and its range, as numbers in the base unit of its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct RangedConstant {
    /// Where it stands.
    pub path: ConstantPath,
    /// What it is.
    pub kind: Kind,
    /// Typical, low and high.
    pub range: Ranged<f64>,
}

/// The constants of a set.
fn list<S: Constants>(section: &Section, set: Ranged<S>) -> Vec<RangedConstant> {
    let (value, low, high) = (set.value.bases(), set.low.bases(), set.high.bases());
    let one = |index: usize| RangedConstant {
        path: ConstantPath { section: section.clone(), name: S::NAMES[index] },
        kind: S::KINDS[index],
        range: Ranged { value: value[index], low: low[index], high: high[index] },
    };
    (0..S::NAMES.len()).map(one).collect()
}

/// The set with the typical value of one constant at another.
fn change<S: Constants>(set: &mut Ranged<S>, name: &str, base: f64) -> Option<()> {
    set.value = set.value.with(name, base)?;
    Some(())
}

/// The set with one constant and its range at others.
fn set_range<S: Constants>(set: &mut Ranged<S>, name: &str, range: Ranged<f64>) -> Option<()> {
    *set = Ranged {
        value: set.value.with(name, range.value)?,
        low: set.low.with(name, range.low)?,
        high: set.high.with(name, range.high)?,
    };
    Some(())
}

/// Does the same to the set of any section, whatever its type.
macro_rules! in_section {
    ($self:ident, $path:ident, $act:ident($($argument:expr),+)) => {
        match &$path.section {
            Section::Library => $act(&mut $self.library, $($argument),+),
            Section::Pat => $act(&mut $self.pat, $($argument),+),
            Section::Sharp => $act(&mut $self.sharp, $($argument),+),
            Section::Mpi => $act(&mut $self.mpi, $($argument),+),
            Section::Staging => $act(&mut $self.staging, $($argument),+),
            Section::ScaleUp(kind) => $act(&mut $self.scale_up.get_mut(kind)?.links, $($argument),+),
            Section::Nvls(kind) => $act($self.scale_up.get_mut(kind)?.nvls.as_mut()?, $($argument),+),
            Section::Network(class) => $act($self.network.get_mut(class)?, $($argument),+),
        }
    };
}

impl CollectiveEfficiency {
    /// The constants of a section, in the order of their declaration; none where the set lacks the section.
    pub fn constants(&self, section: &Section) -> Vec<RangedConstant> {
        let scale_up = |kind: &String| self.scale_up.get(kind);
        match section {
            Section::Library => list(section, self.library),
            Section::Pat => list(section, self.pat),
            Section::Sharp => list(section, self.sharp),
            Section::Mpi => list(section, self.mpi),
            Section::Staging => list(section, self.staging),
            Section::ScaleUp(kind) => scale_up(kind).map(|kind| list(section, kind.links)).unwrap_or_default(),
            Section::Nvls(kind) => {
                scale_up(kind).and_then(|kind| kind.nvls).map(|nvls| list(section, nvls)).unwrap_or_default()
            }
            Section::Network(class) => self.network.get(class).map(|class| list(section, *class)).unwrap_or_default(),
        }
    }

    /// Moves the typical value of one constant to another, in its base unit; `None`, and nothing moved, where the set has
    /// no such constant or that cannot have the value.
    pub fn change(&mut self, path: &ConstantPath, base: f64) -> Option<()> {
        in_section!(self, path, change(path.name, base))
    }

    /// The same of a value with its range.
    pub fn set_range(&mut self, path: &ConstantPath, range: Ranged<f64>) -> Option<()> {
        in_section!(self, path, set_range(path.name, range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::collective_efficiency::NetworkEfficiency;
    use crate::units::{Fraction, Seconds};

    #[test]
    fn a_constant_is_found_and_moved_by_its_path() {
        let share = |share| Fraction::new(share).unwrap();
        let class = |payload| NetworkEfficiency {
            payload: share(payload),
            ll_hop: Seconds::new(1e-5),
            ..NetworkEfficiency::default()
        };
        let ranged = Ranged { value: class(0.97), low: class(0.94), high: class(0.98) };
        let mut set = CollectiveEfficiency::default();
        set.network.insert("ib".to_owned(), ranged);
        let section = Section::Network("ib".to_owned());
        let constants = set.constants(&section);
        assert_eq!(constants[0].path.to_string(), "network.ib.payload");
        assert_eq!(constants[0].range, Ranged { value: 0.97, low: 0.94, high: 0.98 });
        assert_eq!((constants[1].path.name, constants[1].kind), ("ll_hop", Kind::Time));
        assert_eq!(set.change(&constants[0].path, 0.5), Some(()));
        assert_eq!(set.network["ib"].value.payload, share(0.5));
        // No share is above one; no other class has constants.
        assert_eq!(set.change(&constants[0].path, 1.5), None);
        assert!(set.constants(&Section::Nvls("ib".to_owned())).is_empty());
    }
}
