//! Text to quantity and back.

use std::fmt;

/// A unit word and what one of it is in the base unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// The word as text writes it.
    pub word: &'static str,
    /// One of this unit, in base units.
    pub factor: f64,
}

/// Why a text is no value of the quantity asked for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum UnitError {
    /// There is a number but no unit.
    #[error("a bare number where {what} with its unit is needed")]
    MissingUnit {
        /// What was asked for, in words.
        what: &'static str,
        /// A text that would be right.
        example: &'static str,
    },
    /// The unit is unknown, or is one of another quantity.
    #[error("`{unit}` is no unit of {what}")]
    WrongUnit {
        /// The unit word found.
        unit: String,
        /// What was asked for, in words.
        what: &'static str,
        /// The known word closest to it, if one is close.
        suggestion: Option<&'static str>,
        /// A text that would be right.
        example: &'static str,
    },
    /// The text does not begin with a number.
    #[error("`{text}` has no number")]
    NoNumber {
        /// The text found.
        text: String,
        /// A text that would be right.
        example: &'static str,
    },
    /// The number is negative.
    #[error("`{text}` is negative")]
    Negative {
        /// The text found.
        text: String,
    },
    /// The number is infinite or not a number.
    #[error("`{text}` is not a finite number")]
    NotFinite {
        /// The text found.
        text: String,
    },
}

impl UnitError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::WrongUnit { suggestion: Some(word), .. } => Some(format!("did you mean `{word}`?")),
            Self::MissingUnit { example, .. } | Self::NoNumber { example, .. } | Self::WrongUnit { example, .. } => {
                Some(format!("write it as \"{example}\""))
            }
            Self::Negative { .. } => Some("a quantity here is zero or more".to_owned()),
            Self::NotFinite { .. } => None,
        }
    }
}

/// A newtype over `f64` with a base unit and unit words.
pub trait Quantity: Copy + Default + 'static {
    /// What it is, in words with an article: "a data rate".
    const WHAT: &'static str;
    /// A text that parses.
    const EXAMPLE: &'static str;
    /// All unit words; the first is the base unit.
    const UNITS: &'static [Unit];
    /// The words used for display, smallest first.
    const SHOWN: &'static [&'static str];

    /// From a number in the base unit.
    fn from_base(base: f64) -> Self;

    /// The number in the base unit.
    fn base(self) -> f64;

    /// Reads `"3.35 TB/s"`, `"400 Gbit/s"`, `"$0.08/kWh"`, `"$1.2M"`, `"256,400 USD"`.
    ///
    /// # Errors
    /// When the number or the unit is missing, wrong, negative or not finite.
    fn parse(text: &str) -> Result<Self, UnitError> {
        let trimmed = text.trim();
        let (sign, rest) = trimmed.strip_prefix('-').map_or((1.0, trimmed), |rest| (-1.0, rest.trim_start()));
        let (dollar, rest) = rest.strip_prefix('$').map_or((false, rest), |rest| (true, rest.trim_start()));
        let length = number_length(rest);
        let digits: String = rest[..length].chars().filter(|c| *c != ',' && *c != '_').collect();
        let Ok(number) = digits.parse::<f64>() else {
            let lower = rest.to_ascii_lowercase();
            if lower.starts_with("inf") || lower.starts_with("nan") {
                return Err(UnitError::NotFinite { text: trimmed.to_owned() });
            }
            return Err(UnitError::NoNumber { text: trimmed.to_owned(), example: Self::EXAMPLE });
        };
        let tail = rest[length..].trim();
        let word = if dollar { format!("${tail}") } else { tail.to_owned() };
        if word.is_empty() {
            return Err(UnitError::MissingUnit { what: Self::WHAT, example: Self::EXAMPLE });
        }
        let Some(unit) = Self::UNITS.iter().find(|unit| unit.word == word) else {
            return Err(UnitError::WrongUnit {
                suggestion: closest_unit::<Self>(&word),
                unit: word,
                what: Self::WHAT,
                example: Self::EXAMPLE,
            });
        };
        let base = sign * number * unit.factor;
        if !base.is_finite() {
            return Err(UnitError::NotFinite { text: trimmed.to_owned() });
        }
        if base < 0.0 {
            return Err(UnitError::Negative { text: trimmed.to_owned() });
        }
        Ok(Self::from_base(base))
    }

    /// The number in the unit of that word, or `None` where the quantity has no such word.
    fn in_unit(self, word: &str) -> Option<f64> {
        Self::UNITS.iter().find(|unit| unit.word == word).map(|unit| self.base() / unit.factor)
    }
}

/// How many bytes of `text` a decimal number takes, with digit separators and an exponent.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut end = 0;
    while end < bytes.len() && (bytes[end].is_ascii_digit() || matches!(bytes[end], b'.' | b',' | b'_')) {
        end += 1;
    }
    // An exponent only where digits follow: "1e9 B" has one, "5 EFLOP" does not.
    if end > 0 && end < bytes.len() && matches!(bytes[end], b'e' | b'E') {
        let mut exponent = end + 1;
        if exponent < bytes.len() && matches!(bytes[exponent], b'+' | b'-') {
            exponent += 1;
        }
        let digits = exponent;
        while exponent < bytes.len() && bytes[exponent].is_ascii_digit() {
            exponent += 1;
        }
        if exponent > digits {
            end = exponent;
        }
    }
    end
}

/// The unit word that differs least: first one that differs in case only, then by edit distance of one.
fn closest_unit<Q: Quantity>(word: &str) -> Option<&'static str> {
    let words = || Q::UNITS.iter().map(|unit| unit.word);
    words()
        .find(|known| known.eq_ignore_ascii_case(word))
        .or_else(|| words().find(|known| known.len() > 1 && strsim::osa_distance(known, word) == 1))
}

/// Writes with the largest unit that leaves at least one, to four significant digits; a width given is kept.
pub(super) fn write_scaled<Q: Quantity>(quantity: Q, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let magnitude = quantity.base().abs();
    let units = || Q::SHOWN.iter().filter_map(|word| Q::UNITS.iter().find(|unit| unit.word == *word));
    let Some(unit) = units().rfind(|unit| magnitude >= unit.factor).or_else(|| units().next()) else {
        return Err(fmt::Error);
    };
    let number = quantity.base() / unit.factor;
    let text = match unit.word.strip_prefix('$') {
        Some(rest) => {
            let sign = if number < 0.0 { "-" } else { "" };
            format!("{sign}${}{rest}", significant(number.abs(), f.precision().unwrap_or(4)))
        }
        None => format!("{} {}", significant(number, f.precision().unwrap_or(4)), unit.word),
    };
    f.pad_integral(true, "", &text)
}

/// A number to so many significant digits, without an exponent and without trailing zeros after the point.
pub(crate) fn significant(number: f64, digits: usize) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    if !number.is_finite() {
        return number.to_string();
    }
    #[allow(clippy::cast_possible_truncation, reason = "the decimal exponent of a finite f64 is within +-324")]
    let exponent = number.abs().log10().floor() as i64;
    let wanted = i64::try_from(digits).unwrap_or(i64::MAX) - 1 - exponent;
    let decimals = usize::try_from(wanted.clamp(0, 17)).unwrap_or(0);
    let text = format!("{number:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::{Bandwidth, Bytes, Flops, Seconds, Tokens, Usd, UsdPerJoule, UsdPerWattSecond, Watts};
    use super::*;

    #[test]
    fn datasheet_text_is_read_verbatim() {
        assert_eq!(Bandwidth::parse("400 Gbit/s"), Ok(Bandwidth::new(50e9)));
        assert_eq!(Bandwidth::parse("3.35 TB/s"), Ok(Bandwidth::new(3.35e12)));
        assert_eq!(Bytes::parse("80 GiB"), Ok(Bytes::new(85_899_345_920.0)));
        assert_eq!(Seconds::parse("5 years"), Ok(Seconds::new(5.0 * 8_760.0 * 3_600.0)));
        assert_eq!(Tokens::parse("15.6 Ttoken"), Ok(Tokens::new(15.6e12)));
        assert_eq!(Flops::parse("5 EFLOP"), Ok(Flops::new(5e18)));
        assert_eq!(Bytes::parse("1e9 B"), Ok(Bytes::new(1e9)));
        assert_eq!(Usd::parse("$500M"), Ok(Usd::new(500e6)));
        assert_eq!(Usd::parse("256,400 USD"), Ok(Usd::new(256_400.0)));
        let tariff = UsdPerJoule::parse("$0.08/kWh").unwrap();
        assert!((tariff.in_unit("$/kWh").unwrap() - 0.08).abs() < 1e-15);
        assert!(UsdPerWattSecond::parse("$184/kW-month").is_ok());
    }

    #[test]
    fn what_is_no_quantity_is_refused_with_a_hint() {
        let bare = Watts::parse("700");
        assert_eq!(bare, Err(UnitError::MissingUnit { what: "a power", example: "700 W" }));
        let wrong = Bandwidth::parse("50 GB").unwrap_err();
        assert_eq!(wrong.to_string(), "`GB` is no unit of a data rate");
        let case = Watts::parse("10.2 KW").unwrap_err();
        assert_eq!(case.hint().as_deref(), Some("did you mean `kW`?"));
        assert!(matches!(Watts::parse("-5 W"), Err(UnitError::Negative { .. })));
        assert!(matches!(Watts::parse("inf W"), Err(UnitError::NotFinite { .. })));
        assert!(matches!(Watts::parse("1e999 W"), Err(UnitError::NotFinite { .. })));
        assert!(matches!(Watts::parse("much"), Err(UnitError::NoNumber { .. })));
    }

    #[test]
    fn display_takes_the_fitting_prefix() {
        assert_eq!(Bandwidth::new(50e9).to_string(), "50 GB/s");
        assert_eq!(Usd::new(1_234_567.0).to_string(), "$1.235M");
        assert_eq!(Usd::new(-12.5).to_string(), "-$12.5");
        assert_eq!(Seconds::new(12e-6).to_string(), "12 us");
        assert_eq!(Watts::ZERO.to_string(), "0 W");
        assert_eq!(UsdPerJoule::new(0.08 / 3.6e6).to_string(), "$0.08/kWh");
    }
}
