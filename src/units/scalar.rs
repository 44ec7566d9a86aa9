//! Dimensionless numbers with a checked range, and a value with its range.

/// Integers that numbers are counted in.
pub trait Integer {
    /// As [`to_integer`].
    fn of(number: f64) -> Self;
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl Integer for $integer {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "what is beyond its range stops at the ends of it")]
            #[inline]
            fn of(number: f64) -> Self {
                number as Self
            }
        }
    )*};
}

integers!(u32, u64, usize, i32, i64);

/// A number without what is behind the point; the nearest that there is where it is beyond the integers of a kind, and 0 of what is
/// no number.
#[inline]
pub fn to_integer<I: Integer>(number: f64) -> I {
    I::of(number)
}

/// A share of a whole, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Fraction(f64);

/// A multiplier, zero or more.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Factor(f64);

impl Fraction {
    /// Nothing of the whole.
    pub const ZERO: Self = Self(0.0);
    /// The whole.
    pub const ONE: Self = Self(1.0);

    /// The share, or `None` outside 0 to 1.
    pub fn new(share: f64) -> Option<Self> {
        (0.0..=1.0).contains(&share).then_some(Self(share))
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Factor {
    /// Changes nothing.
    pub const ONE: Self = Self(1.0);

    /// The multiplier, or `None` when negative or not finite.
    pub fn new(factor: f64) -> Option<Self> {
        (factor.is_finite() && factor >= 0.0).then_some(Self(factor))
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// Growth, interest or return over a period: above -1, where nothing would be left. May be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Rate {
    /// No growth.
    pub const ZERO: Self = Self(0.0);

    /// The rate, or `None` where it is not finite or nothing would be left.
    pub fn new(rate: f64) -> Option<Self> {
        (rate.is_finite() && rate > -1.0).then_some(Self(rate))
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl From<Fraction> for Rate {
    fn from(share: Fraction) -> Self {
        Self(share.0)
    }
}

/// A typical value and the range that its sources support.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ranged<T> {
    /// The typical value, used unless a study asks for the range.
    pub value: T,
    /// The low end.
    pub low: T,
    /// The high end.
    pub high: T,
}

impl<T: Copy> Ranged<T> {
    /// A value known without a range.
    pub const fn exact(value: T) -> Self {
        Self { value, low: value, high: value }
    }
}
