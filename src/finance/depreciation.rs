//! How a cost is written off over the years.

use crate::units::{Factor, Usd};

/// A class of property in the United States' Modified Accelerated Cost Recovery System.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacrsClass {
    /// Three years.
    Three,
    /// Five years: computers and peripheral equipment.
    Five,
    /// Seven years.
    Seven,
    /// Ten years.
    Ten,
    /// Fifteen years: land improvements.
    Fifteen,
    /// 39 years, straight: buildings that nobody lives in. In service from January, the middle of the month counting.
    ThirtyNine,
}

/// Hundredths of a percent of the cost a year: 200% declining balance (150% for fifteen years), half a year in the first,
/// turning to straight line. IRS Publication 946 (2024), Appendix A, Table A-1.
const HALF_YEAR_TABLE: [(MacrsClass, &[u16]); 5] = [
    (MacrsClass::Three, &[3_333, 4_445, 1_481, 741]),
    (MacrsClass::Five, &[2_000, 3_200, 1_920, 1_152, 1_152, 576]),
    (MacrsClass::Seven, &[1_429, 2_449, 1_749, 1_249, 893, 892, 893, 446]),
    (MacrsClass::Ten, &[1_000, 1_800, 1_440, 1_152, 922, 737, 655, 655, 656, 655, 328]),
    (MacrsClass::Fifteen, &[500, 950, 855, 770, 693, 623, 590, 590, 591, 590, 591, 590, 591, 590, 591, 295]),
];

/// The same in hundred-thousandths, of a 39-year building in service from January: Table A-7a, month 1.
const BUILDING_TABLE: (u32, u32, u32) = (2_461, 2_564, 107);

impl MacrsClass {
    /// Share of the cost that each year writes off; together all of it.
    fn shares(self) -> Vec<f64> {
        if let Some((_, table)) = HALF_YEAR_TABLE.iter().find(|(class, _)| *class == self) {
            return table.iter().map(|share| f64::from(*share) / 1e4).collect();
        }
        let (first, between, last) = BUILDING_TABLE;
        let years = std::iter::once(first).chain(std::iter::repeat_n(between, 38)).chain(std::iter::once(last));
        years.map(|share| f64::from(share) / 1e5).collect()
    }
}

/// A way of writing off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Depreciation {
    /// Equal amounts over a life in years, which need not be whole.
    StraightLine {
        /// Years.
        years: f64,
    },
    /// A multiple of the straight line's share, of what is left, over whole years.
    DecliningBalance {
        /// Years.
        years: u32,
        /// The multiple: 2 is double-declining.
        factor: Factor,
        /// Whether it turns to equal amounts as soon as these are larger (a spreadsheet's `VDB`; without it, `DDB`, which
        /// may leave more than the residual value).
        then_straight: bool,
    },
    /// By the tables of the United States' tax law; nothing is left.
    Macrs(MacrsClass),
}

impl Depreciation {
    /// What each year writes off of a cost, down to a residual value.
    pub fn schedule(self, cost: Usd, residual: Usd) -> Vec<Usd> {
        match self {
            Self::StraightLine { years } => {
                let yearly = (cost - residual) / years;
                year_parts(years).map(|part| yearly * part).collect()
            }
            Self::DecliningBalance { years, factor, then_straight } => {
                let share = factor.get() / f64::from(years);
                let mut left = cost;
                let mut schedule = Vec::new();
                for year in 0..years {
                    let above = left.saturating_sub(residual);
                    let straight = if then_straight { above / f64::from(years - year) } else { Usd::ZERO };
                    let written = (left * share).min(above).max(straight);
                    left = left - written;
                    schedule.push(written);
                }
                schedule
            }
            Self::Macrs(class) => class.shares().into_iter().map(|share| cost * share).collect(),
        }
    }
}

/// Whole years of a life, and the part of the last one.
fn year_parts(years: f64) -> impl Iterator<Item = f64> {
    (0..).map(move |year| (years - f64::from(year)).min(1.0)).take_while(|part| *part > 1e-12)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(schedule: &[Usd]) -> f64 {
        schedule.iter().copied().sum::<Usd>().value()
    }

    #[test]
    fn macrs_writes_off_everything() {
        use MacrsClass::{Fifteen, Five, Seven, Ten, ThirtyNine, Three};
        for class in [Three, Five, Seven, Ten, Fifteen, ThirtyNine] {
            let written = Depreciation::Macrs(class).schedule(Usd::new(1e6), Usd::ZERO);
            assert!((sum(&written) - 1e6).abs() < 1e-6, "{class:?}: {}", sum(&written));
        }
    }

    #[test]
    fn a_life_of_four_and_a_half_years_has_half_a_last_one() {
        let written = Depreciation::StraightLine { years: 4.5 }.schedule(Usd::new(90.0), Usd::ZERO);
        let expected: Vec<Usd> = [20.0, 20.0, 20.0, 20.0, 10.0].map(Usd::new).to_vec();
        assert_eq!(written, expected);
    }

    #[test]
    fn declining_balance_ends_at_the_residual_value_once_it_turns_straight() {
        let way = |then_straight| Depreciation::DecliningBalance {
            years: 5,
            factor: Factor::new(2.0).unwrap(),
            then_straight,
        };
        // 40, 24, 14.4, 8.64 of what is left of 100, and 5.184 of the last.
        let doubled = way(false).schedule(Usd::new(100.0), Usd::ZERO);
        assert!((doubled[4].value() - 5.184).abs() < 1e-12);
        // Turned straight: 21.6 left after three years, 10.8 in each of the last two.
        let turned = way(true).schedule(Usd::new(100.0), Usd::ZERO);
        assert!((turned[3].value() - 10.8).abs() < 1e-12 && (sum(&turned) - 100.0).abs() < 1e-12);
        // Never below the residual value.
        assert!((sum(&way(false).schedule(Usd::new(100.0), Usd::new(30.0))) - 70.0).abs() < 1e-12);
    }
}
