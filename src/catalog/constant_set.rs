//! Constants that measurements may move, each with its range.

use crate::units::{Factor, Fraction, Quantity, Ranged, Seconds};

/// A set of constants that can be fitted to runs.
pub trait ConstantSet: Clone {
    /// Every constant that measurements may move, by its dotted name in the file, in a fixed order.
    fn constants_mut(&mut self) -> Vec<(String, FreeConstant<'_>)>;
}

/// A constant with its range.
#[derive(Debug)]
pub enum FreeConstant<'a> {
    /// A multiplier.
    Factor(&'a mut Ranged<Factor>),
    /// A share of a whole.
    Share(&'a mut Ranged<Fraction>),
    /// A time.
    Time(&'a mut Ranged<Seconds>),
}

impl FreeConstant<'_> {
    /// Typical value, low and high end, as numbers of the base unit.
    pub fn range(&self) -> [f64; 3] {
        match self {
            Self::Factor(range) => [range.value, range.low, range.high].map(Factor::get),
            Self::Share(range) => [range.value, range.low, range.high].map(Fraction::get),
            Self::Time(range) => [range.value, range.low, range.high].map(Quantity::base),
        }
    }

    /// Whether it stays between 0 and 1.
    pub const fn is_share(&self) -> bool {
        matches!(self, Self::Share(_))
    }

    /// Puts the typical value in the place of the old one. A number that it cannot be leaves it as it is.
    pub fn set(&mut self, value: f64) {
        match self {
            Self::Factor(range) => range.value = Factor::new(value).unwrap_or(range.value),
            Self::Share(range) => range.value = Fraction::new(value).unwrap_or(range.value),
            Self::Time(range) => range.value = Seconds::from_base(value),
        }
    }
}

/// Pushes fields of a part of a set, by their names below a path.
macro_rules! push_constants {
    ($all:expr, $path:expr, $part:expr, $kind:ident: $($field:ident),+) => {$(
        $all.push((format!("{}.{}", $path, stringify!($field)), FreeConstant::$kind(&mut $part.$field)));
    )+};
}

pub(super) use push_constants;
