//! One constant of a set as a plain number in its base unit, for studies that move constants about: ranges and fits.

use crate::units::{Bandwidth, Bytes, Factor, Fraction, Seconds};

/// What a constant is, which says what values it may have and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A share, 0 to 1.
    Fraction,
    /// A multiplier.
    Factor,
    /// A time in seconds.
    Time,
    /// A rate in bytes a second.
    Rate,
    /// A number of bytes.
    Data,
}

impl Kind {
    /// A value in its base unit as TOML text, with enough digits for any purpose.
    pub fn toml(self, base: f64) -> String {
        match self {
            Self::Fraction | Self::Factor => format!("{base:.4}"),
            Self::Time => format!("\"{:.3} us\"", base * 1e6),
            Self::Rate => format!("\"{:.3} GB/s\"", base / 1e9),
            Self::Data => format!("\"{:.3} MB\"", base / 1e6),
        }
    }
}

/// A quantity that a constant may be.
pub(super) trait Constant: Sized {
    const KIND: Kind;

    /// The number in the base unit.
    fn base(&self) -> f64;

    /// The quantity of a number, where it may have that.
    fn of_base(base: f64) -> Option<Self>;
}

/// A set of constants, each reached by its name.
pub(super) trait Constants: Copy {
    /// Names, in the order in which they are declared.
    const NAMES: &'static [&'static str];
    /// What each is, in that order.
    const KINDS: &'static [Kind];

    /// Values in their base units, in that order.
    fn bases(&self) -> Vec<f64>;

    /// The same with one constant at another value; `None` where it cannot have that value.
    fn with(self, name: &str, base: f64) -> Option<Self>;
}

macro_rules! quantities {
    ($($quantity:ident = $kind:ident),+) => {$(
        impl Constant for $quantity {
            const KIND: Kind = Kind::$kind;

            fn base(&self) -> f64 {
                // The base unit is what this trait is about.
                self.value()
            }

            fn of_base(base: f64) -> Option<Self> {
                (base.is_finite() && base >= 0.0).then(|| Self::new(base))
            }
        }
    )+};
}

quantities!(Seconds = Time, Bandwidth = Rate, Bytes = Data);

impl Constant for Fraction {
    const KIND: Kind = Kind::Fraction;

    fn base(&self) -> f64 {
        self.get()
    }

    fn of_base(base: f64) -> Option<Self> {
        Self::new(base)
    }
}

impl Constant for Factor {
    const KIND: Kind = Kind::Factor;

    fn base(&self) -> f64 {
        self.get()
    }

    fn of_base(base: f64) -> Option<Self> {
        Self::new(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_written_as_catalogs_write_them() {
        assert_eq!(Kind::Time.toml(7.5e-6), "\"7.500 us\"");
        assert_eq!(Kind::Rate.toml(17e9), "\"17.000 GB/s\"");
        assert_eq!(Kind::Data.toml(3e6), "\"3.000 MB\"");
        assert_eq!(Kind::Fraction.toml(0.795), "0.7950");
    }

    #[test]
    fn a_share_above_one_is_none() {
        assert_eq!(Fraction::of_base(1.01), None);
        assert_eq!(Seconds::of_base(-1.0), None);
        assert_eq!(Factor::of_base(2.0).map(|factor| factor.base()), Some(2.0));
    }
}
