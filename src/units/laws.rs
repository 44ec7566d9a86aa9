//! The laws that join quantities, one a line. This list is the documentation of what may be multiplied or divided.

use super::quantities::{
    Bandwidth, Bytes, CarbonIntensity, CarbonMass, FlopRate, Flops, Joules, RequestRate, Seconds, TokenRate, Tokens,
    Usd, UsdPerHour, UsdPerJoule, UsdPerToken, UsdPerWattSecond, Watts,
};
use super::to_integer;

/// `relation!(C = A * B)` gives `A * B`, `B * A`, `C / A` and `C / B`.
macro_rules! relation {
    ($($product:ident = $left:ident * $right:ident;)+) => {$(
        impl std::ops::Mul<$right> for $left {
            type Output = $product;
            fn mul(self, right: $right) -> $product {
                $product::new(self.value() * right.value())
            }
        }

        impl std::ops::Mul<$left> for $right {
            type Output = $product;
            fn mul(self, left: $left) -> $product {
                $product::new(self.value() * left.value())
            }
        }

        impl std::ops::Div<$left> for $product {
            type Output = $right;
            fn div(self, left: $left) -> $right {
                $right::new(self.value() / left.value())
            }
        }

        impl std::ops::Div<$right> for $product {
            type Output = $left;
            fn div(self, right: $right) -> $left {
                $left::new(self.value() / right.value())
            }
        }
    )+};
}

relation! {
    Bytes = Bandwidth * Seconds;
    Flops = FlopRate * Seconds;
    Joules = Watts * Seconds;
    Tokens = TokenRate * Seconds;
    Usd = UsdPerJoule * Joules;
    Usd = UsdPerToken * Tokens;
    CarbonMass = CarbonIntensity * Joules;
}

impl RequestRate {
    /// Requests that come in a time.
    pub fn over(self, time: Seconds) -> f64 {
        self.value() * time.value()
    }

    /// So many requests, spread over a time.
    pub fn of(requests: f64, time: Seconds) -> Self {
        Self::new(requests / time.value())
    }

    /// The highest rate below this one that four digits say, as a most is told: what is asked as it is written is served.
    #[must_use]
    pub fn told_as_most(self) -> Self {
        self.of_digits(|units| (units * (1.0 - 1e-9)).floor())
    }

    /// The lowest rate not below this one that four digits say, as what is more than a most is told.
    #[must_use]
    pub fn told_as_more(self) -> Self {
        // What is written with as many digits is itself.
        self.of_digits(|units| (units * (1.0 - 1e-9)).ceil())
    }

    /// With its first four digits as a whole number, which is changed.
    fn of_digits(self, change: impl Fn(f64) -> f64) -> Self {
        const DIGITS: i32 = 4;
        if self.value() <= 0.0 || !self.value().is_finite() {
            return self;
        }
        let exponent = to_integer::<i32>(self.value().log10().floor());
        let places = DIGITS - 1 - exponent;
        // Powers of ten are exact where they are whole.
        let scale = 10_f64.powi(places.abs());
        Self::new(if places >= 0 { change(self.value() * scale) / scale } else { change(self.value() / scale) * scale })
    }
}

impl UsdPerHour {
    /// What the price comes to over a time.
    pub fn over(self, time: Seconds) -> Usd {
        Usd::new(self.value() * time.value() / 3_600.0)
    }
}

impl Usd {
    /// This amount spread evenly over a time.
    pub fn per(self, time: Seconds) -> UsdPerHour {
        UsdPerHour::new(self.value() * 3_600.0 / time.value())
    }
}

impl UsdPerWattSecond {
    /// What having a power available for a time costs.
    pub fn for_power(self, power: Watts, time: Seconds) -> Usd {
        Usd::new(self.value() * power.value() * time.value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relation_reads_both_ways() {
        let data = Bandwidth::new(50e9) * Seconds::new(2.0);
        assert_eq!(data, Bytes::new(100e9));
        assert_eq!(data / Bandwidth::new(50e9), Seconds::new(2.0));
        assert_eq!(data / Seconds::new(2.0), Bandwidth::new(50e9));
    }

    #[test]
    fn prices_of_time_and_power_come_to_money() {
        // $2/h for a day is $48.
        assert_eq!(UsdPerHour::new(2.0).over(Seconds::new(86_400.0)), Usd::new(48.0));
        // $184/kW-month for 10 kW and a year: 184 * 10 * 12 = $22,080.
        let colocation = UsdPerWattSecond::new(184.0 / (1e3 * 730.0 * 3_600.0));
        let year = Seconds::new(8_760.0 * 3_600.0);
        assert!((colocation.for_power(Watts::new(10e3), year).value() - 22_080.0).abs() < 1e-6);
    }
}
