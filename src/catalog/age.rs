//! How old a figure is, on a day that is stated: the catalog has no clock.

use super::Catalog;
use crate::units::Seconds;

const SECONDS_PER_DAY: f64 = 86_400.0;

/// A price whose day lies longer back than was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StalePrice {
    /// Id of the price book or provider.
    pub book: String,
    /// The part, or the instance and term.
    pub part: String,
    /// The day that the price is of.
    pub date: String,
    /// Days from there to the stated day.
    pub days: i64,
}

/// Days from one date to another, `2026-11-29`; negative where the second is earlier, none where one is no date.
pub fn age_in_days(date: &str, on: &str) -> Option<i64> {
    Some(day_number(on)? - day_number(date)?)
}

/// Days since 1 March of year 0 in the Gregorian calendar, counting years from March so that leap days come last.
fn day_number(date: &str) -> Option<i64> {
    let mut parts = date.get(..10)?.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if !((1..=12).contains(&month) && (1..=31).contains(&day)) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    // Months from March on have 31, 30, 31, 30, 31 days, again and again: 153 in five.
    Some(year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day)
}

/// The date of a day counted from 1 January 1970.
pub fn date_of(days: i64) -> String {
    // Counted from 1 March of year 0, in eras of 400 years (146,097 days), so that leap days come last.
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

impl Catalog {
    /// Prices and offers that are older than so long on a day, oldest first.
    pub fn stale_prices(&self, on: &str, older_than: Seconds) -> Vec<StalePrice> {
        let mut stale = Vec::new();
        let mut look = |book: &str, part: String, date: &str| {
            if let Some(days) = age_in_days(date, on)
                && Seconds::new(days as f64 * SECONDS_PER_DAY) > older_than
            {
                stale.push(StalePrice { book: book.to_owned(), part, date: date.to_owned(), days });
            }
        };
        for book in self.price_books.iter() {
            for price in &book.prices {
                look(&book.id, price.part.id.clone(), &price.evidence.date);
            }
        }
        for provider in self.providers.iter() {
            for offer in &provider.offers {
                look(&provider.id, format!("{}, {}", offer.instance, offer.term), &offer.evidence.date);
            }
        }
        stale.sort_by(|a, b| b.days.cmp(&a.days).then_with(|| a.part.cmp(&b.part)));
        stale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_over_leap_years_and_turns_of_the_year() {
        assert_eq!(age_in_days("2024-02-28", "2024-03-01"), Some(2));
        assert_eq!(age_in_days("2023-02-28", "2023-03-01"), Some(1));
        assert_eq!(age_in_days("2024-10-03", "2026-11-29"), Some(787));
        assert_eq!(age_in_days("2026-11-29", "2026-11-28"), Some(-1));
        assert_eq!(age_in_days("1999-12-31", "2000-12-31"), Some(366));
        assert_eq!(["1970-01-01", "2024-02-29", "2026-11-29"], [0, 19_782, 20_786].map(date_of));
        assert_eq!(age_in_days(&date_of(0), &date_of(20_786)), Some(20_786));
        assert_eq!(age_in_days("soon", "2026-11-28"), None);
        assert_eq!(age_in_days("2026-13-01", "2026-11-28"), None);
    }
}
