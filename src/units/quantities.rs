//! The quantities themselves and the unit words that text may use for each.

use super::parse::{Quantity, Unit};

/// Declares quantities: documentation, type, what it is in words, an example for error messages, its units, and the limits
/// of what text may say.
///
/// The first unit is the base unit. Units marked in `display` order are tried largest first when a value is written.
macro_rules! quantity {
    ($($(#[$doc:meta])* $name:ident, $what:literal, example $example:literal, [$($unit:literal = $factor:expr),+ $(,)?], show [$($shown:literal),+ $(,)?], within $least:literal..$most:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
        pub struct $name(f64);

        impl $name {
            /// Nothing of it.
            pub const ZERO: Self = Self(0.0);

            /// From a number in the base unit.
            pub const fn new(base: f64) -> Self {
                Self(base)
            }

            /// The number in the base unit. Outside `units` and `report` a use says why it leaves the type.
            pub const fn value(self) -> f64 {
                self.0
            }

            /// The larger of the two.
            #[must_use]
            pub const fn max(self, other: Self) -> Self {
                Self(self.0.max(other.0))
            }

            /// The smaller of the two.
            #[must_use]
            pub const fn min(self, other: Self) -> Self {
                Self(self.0.min(other.0))
            }

            /// This less the other, not below zero.
            #[must_use]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self((self.0 - other.0).max(0.0))
            }

            /// Whether the value is a finite number.
            pub const fn is_finite(self) -> bool {
                self.0.is_finite()
            }
        }

        impl Quantity for $name {
            const WHAT: &'static str = $what;
            const EXAMPLE: &'static str = $example;
            const UNITS: &'static [Unit] = &[$(Unit { word: $unit, factor: $factor }),+];
            const SHOWN: &'static [&'static str] = &[$($shown),+];
            const LIMITS: (f64, f64) = ($least, $most);

            fn from_base(base: f64) -> Self {
                Self(base)
            }

            fn base(self) -> f64 {
                self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                super::parse::write_scaled(*self, f)
            }
        }

        impl std::ops::Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl std::ops::AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl std::ops::Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl std::ops::Neg for $name {
            type Output = Self;
            fn neg(self) -> Self {
                Self(-self.0)
            }
        }

        impl std::ops::Mul<f64> for $name {
            type Output = Self;
            fn mul(self, factor: f64) -> Self {
                Self(self.0 * factor)
            }
        }

        impl std::ops::Mul<$name> for f64 {
            type Output = $name;
            fn mul(self, quantity: $name) -> $name {
                $name(self * quantity.0)
            }
        }

        impl std::ops::Div<f64> for $name {
            type Output = Self;
            fn div(self, divisor: f64) -> Self {
                Self(self.0 / divisor)
            }
        }

        impl std::ops::Div for $name {
            type Output = f64;
            fn div(self, other: Self) -> f64 {
                self.0 / other.0
            }
        }

        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                items.fold(Self::ZERO, |total, item| total + item)
            }
        }
    )+};
}

const KI: f64 = 1_024.0;
const HOUR: f64 = 3_600.0;
const YEAR: f64 = super::SECONDS_PER_YEAR;
const MONTH: f64 = super::HOURS_PER_MONTH * HOUR;

quantity! {
    /// An amount of data. Text may say bits; the value is bytes.
    Bytes, "an amount of data", example "80 GiB", [
        "B" = 1.0, "kB" = 1e3, "MB" = 1e6, "GB" = 1e9, "TB" = 1e12, "PB" = 1e15, "EB" = 1e18,
        "KiB" = KI, "MiB" = KI * KI, "GiB" = KI * KI * KI, "TiB" = KI * KI * KI * KI, "PiB" = KI * KI * KI * KI * KI,
        "bit" = 0.125, "kbit" = 125.0, "Mbit" = 125e3, "Gbit" = 125e6, "Tbit" = 125e9,
        "byte" = 1.0, "bytes" = 1.0,
    ], show ["B", "kB", "MB", "GB", "TB", "PB", "EB"], within 0.125..1e21;
    /// A data rate. A link's is per direction unless its name says otherwise.
    Bandwidth, "a data rate", example "400 Gbit/s", [
        "B/s" = 1.0, "kB/s" = 1e3, "MB/s" = 1e6, "GB/s" = 1e9, "TB/s" = 1e12, "PB/s" = 1e15,
        "KiB/s" = KI, "MiB/s" = KI * KI, "GiB/s" = KI * KI * KI, "TiB/s" = KI * KI * KI * KI,
        "bit/s" = 0.125, "kbit/s" = 125.0, "Mbit/s" = 125e3, "Gbit/s" = 125e6, "Tbit/s" = 125e9,
        "Gbps" = 125e6, "Gb/s" = 125e6, "Tb/s" = 125e9,
    ], show ["B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"], within 1.0..1e18;
    /// A length of time. A year is 8,760 hours and a month 730.
    Seconds, "a time", example "5 years", [
        "s" = 1.0, "ms" = 1e-3, "us" = 1e-6, "µs" = 1e-6, "ns" = 1e-9,
        "min" = 60.0, "minute" = 60.0, "minutes" = 60.0, "h" = HOUR, "hour" = HOUR, "hours" = HOUR,
        "day" = 86_400.0, "days" = 86_400.0, "d" = 86_400.0, "week" = 604_800.0, "weeks" = 604_800.0,
        "month" = MONTH, "months" = MONTH, "year" = YEAR, "years" = YEAR,
        "second" = 1.0, "seconds" = 1.0,
    ], show ["ns", "us", "ms", "s", "h", "days", "years"], within 1e-12..1e12;
    /// A number of floating-point operations; a multiply-add counts as two.
    Flops, "a number of floating-point operations", example "312 TFLOP", [
        "FLOP" = 1.0, "MFLOP" = 1e6, "GFLOP" = 1e9, "TFLOP" = 1e12, "PFLOP" = 1e15, "EFLOP" = 1e18, "ZFLOP" = 1e21, "YFLOP" = 1e24,
    ], show ["FLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP", "ZFLOP", "YFLOP"], within 1.0..1e36;
    /// A rate of floating-point operations.
    FlopRate, "a rate of floating-point operations", example "989.4 TFLOP/s", [
        "FLOP/s" = 1.0, "GFLOP/s" = 1e9, "TFLOP/s" = 1e12, "PFLOP/s" = 1e15, "EFLOP/s" = 1e18, "TOP/s" = 1e12, "POP/s" = 1e15,
    ], show ["FLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s", "EFLOP/s"], within 1.0..1e21;
    /// A power.
    Watts, "a power", example "700 W", [
        "W" = 1.0, "mW" = 1e-3, "kW" = 1e3, "MW" = 1e6, "GW" = 1e9,
    ], show ["W", "kW", "MW", "GW"], within 1e-3..1e12;
    /// An energy.
    Joules, "an energy", example "10 kWh", [
        "J" = 1.0, "kJ" = 1e3, "MJ" = 1e6, "Wh" = HOUR, "kWh" = 1e3 * HOUR, "MWh" = 1e6 * HOUR, "GWh" = 1e9 * HOUR, "TWh" = 1e12 * HOUR,
    ], show ["Wh", "kWh", "MWh", "GWh", "TWh"], within 1e-3..1e21;
    /// An amount of US dollars of the price book's date.
    Usd, "an amount of money", example "$256,400", [
        "USD" = 1.0, "kUSD" = 1e3, "MUSD" = 1e6, "BUSD" = 1e9,
        "$" = 1.0, "$k" = 1e3, "$M" = 1e6, "$B" = 1e9,
    ], show ["$", "$k", "$M", "$B"], within 1e-6..1e15;
    /// A price of time.
    UsdPerHour, "a price of time", example "$2.40/h", [
        "USD/h" = 1.0, "$/h" = 1.0, "USD/hour" = 1.0, "$/hour" = 1.0,
        "$/month" = 1.0 / super::HOURS_PER_MONTH, "$/year" = 1.0 / super::HOURS_PER_YEAR, "$M/year" = 1e6 / super::HOURS_PER_YEAR, "$k/year" = 1e3 / super::HOURS_PER_YEAR,
    ], show ["$/h"], within 1e-9..1e12;
    /// A price of energy.
    UsdPerJoule, "a price of energy", example "$0.08/kWh", [
        "USD/J" = 1.0, "$/kWh" = 1.0 / 3.6e6, "USD/kWh" = 1.0 / 3.6e6, "$/MWh" = 1.0 / 3.6e9, "USD/MWh" = 1.0 / 3.6e9,
    ], show ["$/kWh"], within 1e-12..1e-3;
    /// A price of having power available, as colocation is let.
    UsdPerWattSecond, "a price of provisioned power", example "$184/kW-month", [
        "USD/W-s" = 1.0, "$/kW-month" = 1.0 / (1e3 * MONTH), "USD/kW-month" = 1.0 / (1e3 * MONTH), "$/kW-year" = 1.0 / (1e3 * YEAR), "USD/kW-year" = 1.0 / (1e3 * YEAR),
    ], show ["$/kW-month"], within 1e-15..1e-3;
    /// A number of tokens.
    Tokens, "a number of tokens", example "15.6 Ttoken", [
        "token" = 1.0, "tokens" = 1.0, "ktoken" = 1e3, "Mtoken" = 1e6, "Gtoken" = 1e9, "Btoken" = 1e9, "Ttoken" = 1e12,
        "ktokens" = 1e3, "Mtokens" = 1e6, "Btokens" = 1e9, "Ttokens" = 1e12,
    ], show ["token", "ktoken", "Mtoken", "Gtoken", "Ttoken"], within 1.0..1e18;
    /// A rate of tokens.
    TokenRate, "a rate of tokens", example "5 Mtoken/s", [
        "token/s" = 1.0, "tokens/s" = 1.0, "ktoken/s" = 1e3, "Mtoken/s" = 1e6,
    ], show ["token/s", "ktoken/s", "Mtoken/s"], within 1e-6..1e12;
    /// A price of tokens.
    UsdPerToken, "a price of tokens", example "$0.55/Mtoken", [
        "USD/token" = 1.0, "$/token" = 1.0, "$/ktoken" = 1e-3, "$/Mtoken" = 1e-6, "$/Mtok" = 1e-6, "USD/Mtoken" = 1e-6, "USD/Mtok" = 1e-6,
    ], show ["$/Mtoken"], within 1e-12..1.0;
    /// A rate of requests.
    RequestRate, "a rate of requests", example "40 request/s", [
        "request/s" = 1.0, "requests/s" = 1.0, "request/min" = 1.0 / 60.0, "requests/min" = 1.0 / 60.0,
        "request/h" = 1.0 / 3_600.0, "requests/h" = 1.0 / 3_600.0,
    ], show ["request/s"], within 1e-6..1e9;
    /// A length.
    Meters, "a length", example "50 m", [
        "m" = 1.0, "cm" = 1e-2, "mm" = 1e-3, "km" = 1e3,
    ], show ["m", "km"], within 1e-3..1e6;
    /// A mass of carbon dioxide equivalent, in kilograms.
    CarbonMass, "a mass of CO2 equivalent", example "2 tCO2e", [
        "kgCO2e" = 1.0, "gCO2e" = 1e-3, "tCO2e" = 1e3, "ktCO2e" = 1e6,
    ], show ["kgCO2e", "tCO2e", "ktCO2e"], within 1e-3..1e15;
    /// Carbon dioxide equivalent per energy of a grid, in kilograms per joule.
    CarbonIntensity, "a carbon intensity", example "380 gCO2e/kWh", [
        "kgCO2e/J" = 1.0, "gCO2e/kWh" = 1e-3 / 3.6e6, "kgCO2e/kWh" = 1.0 / 3.6e6, "tCO2e/MWh" = 1.0 / 3.6e6,
    ], show ["gCO2e/kWh"], within 1e-12..1e-3;
}
