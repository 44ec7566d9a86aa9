//! Text to quantity and back.

use super::to_integer;
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
        /// A text that would be right.
        example: &'static str,
    },
    /// Commas or underscores that do not part thousands.
    #[error("`{text}` has separators that do not part thousands")]
    Separators {
        /// The text found.
        text: String,
    },
    /// More, or less, than anything that is planned.
    #[error("`{text}` is outside of what {what} can be here, {least} to {most}")]
    OutOfRange {
        /// The text found.
        text: String,
        /// What was asked for, in words.
        what: &'static str,
        /// The least that is taken beside nothing.
        least: String,
        /// The most that is taken.
        most: String,
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
            Self::Separators { text } if text.matches(',').count() == 1 && !text.contains(['.', '_']) => {
                Some(format!("with a decimal point it is \"{}\"", text.replace(',', ".")))
            }
            Self::Separators { .. } => {
                Some("write thousands as 1,000,000 or 1_000_000, or without separators".to_owned())
            }
            Self::NotFinite { example, .. } => Some(format!("write it as \"{example}\"")),
            Self::OutOfRange { .. } => Some("look at the unit and at the power of ten".to_owned()),
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
    /// The least, beside nothing at all, and the most that text may say, in the base unit: far beyond what is built, and
    /// near enough that no formula leaves the range of floating-point numbers.
    const LIMITS: (f64, f64);

    /// From a number in the base unit.
    fn from_base(base: f64) -> Self;

    /// The number in the base unit.
    fn base(self) -> f64;

    /// Reads `"3.35 TB/s"`, `"400 Gbit/s"`, `"$0.08/kWh"`, `"$1.2M"`, `"256,400 USD"`.
    ///
    /// # Errors
    /// When the number or the unit is missing, wrong, negative, not finite or beyond all measure.
    fn parse(text: &str) -> Result<Self, UnitError> {
        let trimmed = text.trim();
        let (sign, rest) = trimmed.strip_prefix('-').map_or((1.0, trimmed), |rest| (-1.0, rest.trim_start()));
        let (dollar, rest) = rest.strip_prefix('$').map_or((false, rest), |rest| (true, rest.trim_start()));
        // "$-5" is less than nothing as "-$5" is.
        let (sign, rest) = rest.strip_prefix('-').filter(|_| dollar).map_or((sign, rest), |rest| (-1.0, rest));
        let length = number_length(rest);
        let Ok(number) = number(&rest[..length]) else {
            let lower = rest.to_ascii_lowercase();
            if lower.starts_with("inf") || lower.starts_with("nan") {
                return Err(UnitError::NotFinite { text: trimmed.to_owned(), example: Self::EXAMPLE });
            }
            if rest.starts_with(|first: char| first.is_ascii_digit()) && rest[..length].contains([',', '_']) {
                return Err(UnitError::Separators { text: trimmed.to_owned() });
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
            return Err(UnitError::NotFinite { text: trimmed.to_owned(), example: Self::EXAMPLE });
        }
        if base < 0.0 {
            return Err(UnitError::Negative { text: trimmed.to_owned() });
        }
        let (least, most) = Self::LIMITS;
        // Numbers other than zero that are less than any are a slip too: a price of 1e-300 dollars divides into infinity.
        if base > most || (number > 0.0 && base < least) {
            let shown = |base: f64| Shown(Self::from_base(base)).to_string();
            let (least, most) = (shown(least), shown(most));
            return Err(UnitError::OutOfRange { text: trimmed.to_owned(), what: Self::WHAT, least, most });
        }
        Ok(Self::from_base(base))
    }

    /// The number in the unit of that word, or `None` where the quantity has no such word.
    fn in_unit(self, word: &str) -> Option<f64> {
        Self::UNITS.iter().find(|unit| unit.word == word).map(|unit| self.base() / unit.factor)
    }
}

/// A quantity as text.
struct Shown<Q>(Q);

impl<Q: Quantity> fmt::Display for Shown<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(self.0, f)
    }
}

/// A text is no decimal number, or its separators do not part thousands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoNumber;

/// A decimal number, whose whole part may have its thousands parted: all by commas, or all by underscores. A comma that
/// stands for a decimal point is refused, because "2,5" read as 25 would go unnoticed.
pub(crate) fn number(text: &str) -> Result<f64, NoNumber> {
    let whole = &text[..text.find(['.', 'e', 'E']).unwrap_or(text.len())];
    let rest = &text[whole.len()..];
    let Some(separator) = [',', '_'].into_iter().find(|separator| text.contains(*separator)) else {
        return text.parse().map_err(|_| NoNumber);
    };
    let mut groups = whole.split(separator);
    let first = groups.next().unwrap_or_default();
    let is = |group: &str, lengths: std::ops::RangeInclusive<usize>| {
        lengths.contains(&group.len()) && group.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !is(first, 1..=3) || !groups.all(|group| is(group, 3..=3)) || rest.contains([',', '_']) {
        return Err(NoNumber);
    }
    text.replace(separator, "").parse().map_err(|_| NoNumber)
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
    // Nothing is nothing of the base unit, where that is shown: 0 s, not 0 ns.
    let base = || units().find(|unit| magnitude == 0.0 && unit.word == Q::UNITS[0].word);
    let fitting = base().or_else(|| units().rfind(|unit| magnitude >= unit.factor));
    let Some(unit) = fitting.or_else(|| units().next()) else {
        return Err(fmt::Error);
    };
    let number = quantity.base() / unit.factor;
    let digits = f.precision().unwrap_or(4);
    let text = if let Some(rest) = unit.word.strip_prefix('$') {
        let sign = if number < 0.0 { "-" } else { "" };
        format!("{sign}${}{rest}", significant(number.abs(), digits))
    } else {
        let text = significant(number, digits);
        let word = match unit.word {
            "days" if text == "1" => "day",
            "years" if text == "1" => "year",
            word => word,
        };
        format!("{text} {word}")
    };
    f.pad_integral(true, "", &text)
}

/// So many characters of a number are read at a glance; whole numbers of 64 bits have no more.
const LONGEST_NUMBER: usize = 20;

/// Something as it is written, but for a number whose digits run on: that with an exponent.
pub(crate) fn brief(written: impl fmt::Display) -> String {
    let text = written.to_string();
    match text.parse::<f64>() {
        Ok(number) if text.len() > LONGEST_NUMBER && number.is_finite() => format!("{number:e}"),
        _ => text,
    }
}

/// A number to so many significant digits, without an exponent and without trailing zeros after the point.
pub(crate) fn significant(number: f64, digits: usize) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    if !number.is_finite() {
        return number.to_string();
    }
    let exponent = to_integer::<i64>(number.abs().log10().floor());
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
    fn digits_that_run_on_become_an_exponent() {
        assert_eq!([brief(1e300), brief(-2.5e40)], ["1e300", "-2.5e40"]);
        assert_eq!([brief(100.5), brief(0.1)], ["100.5", "0.1"]);
        assert_eq!([brief(i64::MIN), brief(u64::MAX)], ["-9223372036854775808", "18446744073709551615"]);
        assert_eq!(brief("a text of many more than twenty letters"), "a text of many more than twenty letters");
    }

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
    fn thousands_may_be_parted_and_nothing_else() {
        for (text, years) in [("1,000 years", 1_000.0), ("1_000.5 years", 1_000.5), ("2.5 years", 2.5)] {
            assert_eq!(Seconds::parse(text).unwrap().in_unit("years"), Some(years), "{text}");
        }
        assert_eq!(Usd::parse("$1,234,567"), Ok(Usd::new(1_234_567.0)));
        let decimal_comma = Seconds::parse("2,5 years").unwrap_err();
        assert!(matches!(decimal_comma, UnitError::Separators { .. }));
        assert_eq!(decimal_comma.hint().as_deref(), Some("with a decimal point it is \"2.5 years\""));
        for text in
            ["1,00 $", "12,34,567 $", "1_000,000 $", "1,000_000 $", "1234,567 $", "1.5,000 $", "1,000, $", "1__000 $"]
        {
            assert!(matches!(Usd::parse(text), Err(UnitError::Separators { .. })), "{text}");
        }
        assert!(matches!(Usd::parse(",5 $"), Err(UnitError::NoNumber { .. })));
    }

    #[test]
    fn what_is_beyond_all_measure_is_refused() {
        for text in ["1e200 W", "1e-200 W"] {
            assert!(matches!(Watts::parse(text), Err(UnitError::OutOfRange { .. })), "{text}");
        }
        assert_eq!(Watts::parse("0 W"), Ok(Watts::ZERO));
        assert_eq!(Seconds::new(86_400.0).to_string(), "1 day");
    }

    #[test]
    fn display_takes_the_fitting_prefix() {
        assert_eq!(Bandwidth::new(50e9).to_string(), "50 GB/s");
        assert_eq!(Usd::new(1_234_567.0).to_string(), "$1.235M");
        assert_eq!(Usd::new(-12.5).to_string(), "-$12.5");
        assert_eq!(Seconds::new(12e-6).to_string(), "12 us");
        assert_eq!((Watts::ZERO.to_string(), Seconds::ZERO.to_string()), ("0 W".to_owned(), "0 s".to_owned()));
        assert_eq!(UsdPerJoule::new(0.08 / 3.6e6).to_string(), "$0.08/kWh");
    }
}
