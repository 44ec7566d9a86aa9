//! Tenants that share replicas: what they ask for through a day.

use super::day::Day;
use crate::units::RequestRate;

/// Steps that a day is looked at in: quarters of an hour.
const STEPS: u32 = 96;

/// Tenants that are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TenantClass {
    /// How many.
    pub count: u32,
    /// Requests of one on average.
    pub mean: RequestRate,
    /// Requests of one at its busiest.
    pub peak: RequestRate,
    /// The hour of the day at which all of them are busiest; unknown, and each by itself, where there is none.
    pub busiest: Option<f64>,
}

/// All tenants.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenants(pub Vec<TenantClass>);

/// Hours of a day.
fn hours() -> impl Iterator<Item = f64> {
    (0..STEPS).map(|step| f64::from(step) * 24.0 / f64::from(STEPS))
}

/// Hours at which days are looked at, those among them at which some are busiest.
fn looked_at(days: &[(TenantClass, f64, Day)]) -> impl Iterator<Item = f64> {
    hours().chain(days.iter().map(|(_, busiest, _)| *busiest))
}

impl TenantClass {
    /// The day whose mean over its peak is that of the class; the same at all hours, where both are alike.
    fn day(&self) -> Day {
        Day::of(self.mean / self.peak, |day| hours().map(|hour| day.share(hour)).sum::<f64>() / f64::from(STEPS))
    }
}

/// Whole replicas for so many requests; what is reckoned to be a whole is one but for rounding.
pub fn replicas(asked: RequestRate, each: RequestRate) -> f64 {
    (asked / each - 1e-9).ceil().max(0.0)
}

impl Tenants {
    /// Those with an hour, with the form of their day.
    fn by_day(&self) -> Vec<(TenantClass, f64, Day)> {
        let of = |class: &TenantClass| Some((*class, class.busiest?, class.day()));
        self.0.iter().filter_map(of).collect()
    }

    /// Requests of all on average.
    pub fn mean(&self) -> RequestRate {
        self.0.iter().map(|class| class.mean * f64::from(class.count)).sum()
    }

    /// Replicas where every tenant has its own for its busiest time, each for so many requests a second of those of its class.
    pub fn apart(&self, each: &[RequestRate]) -> f64 {
        self.0.iter().zip(each).map(|(class, each)| f64::from(class.count) * replicas(class.peak, *each)).sum()
    }

    /// Replicas where every tenant has its own, as many as it needs at the time, at the hour at which that is most; none where an
    /// hour is not known.
    pub fn reallocated(&self, each: &[RequestRate]) -> Option<f64> {
        let days = self.by_day();
        let at = |hour: f64| -> f64 {
            let own = |((class, busiest, day), each): (&(TenantClass, f64, Day), &RequestRate)| {
                f64::from(class.count) * replicas(class.peak * day.share(hour - busiest), *each)
            };
            days.iter().zip(each).map(own).sum()
        };
        (days.len() == self.0.len()).then(|| looked_at(&days).map(at).fold(0.0, f64::max))
    }

    /// Of each class, what one tenant asks for through a day: none where its hour is not known.
    pub fn days(&self) -> Option<Vec<Vec<RequestRate>>> {
        let days = self.by_day();
        let of = |(class, busiest, day): &(TenantClass, f64, Day)| {
            looked_at(&days).map(|hour| class.peak * day.share(hour - busiest)).collect()
        };
        (days.len() == self.0.len()).then(|| days.iter().map(of).collect())
    }

    /// What all together come to at their busiest: at each hour the sum of those that have one; of the others means add up, and
    /// what is above them by the root of the sum of squares, as independent deviations do (Eppen, Management Science 25(5),
    /// 1979).
    pub fn pooled(&self) -> RequestRate {
        let days = self.by_day();
        let at = |hour: f64| -> RequestRate {
            let of = |(class, busiest, day): &(TenantClass, f64, Day)| {
                class.peak * (f64::from(class.count) * day.share(hour - busiest))
            };
            days.iter().map(of).sum()
        };
        let together = looked_at(&days).map(at).fold(RequestRate::ZERO, RequestRate::max);
        let others = || self.0.iter().filter(|class| class.busiest.is_none());
        let means: RequestRate = others().map(|class| class.mean * f64::from(class.count)).sum();
        let one = RequestRate::new(1.0);
        let squares: f64 =
            others().map(|class| f64::from(class.count) * (class.peak.saturating_sub(class.mean) / one).powi(2)).sum();
        together + means + one * squares.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(count: u32, mean: f64, peak: f64, busiest: Option<f64>) -> TenantClass {
        TenantClass { count, mean: RequestRate::new(mean), peak: RequestRate::new(peak), busiest }
    }

    #[test]
    fn a_day_has_its_mean_and_its_peak() {
        // Twice the mean at the peak is a cosine; three times and one and a quarter are narrower and wider.
        for (mean, peak) in [(1.0, 2.0), (1.0, 3.0), (1.0, 1.25), (1.0, 12.0)] {
            let day = class(1, mean, peak, Some(14.0)).day();
            let found = hours().map(|hour| peak * day.share(hour - 14.0)).sum::<f64>() / f64::from(STEPS);
            assert!((found / mean - 1.0).abs() < 1e-9, "{found}");
        }
        assert!((class(1, 1.0, 2.0, Some(0.0)).day().share(6.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn tenants_of_opposite_hours_share_what_one_leaves_free() {
        // Twice the mean at noon and at midnight: together the same all day, half of what both have apart.
        let both = |hour| Tenants(vec![class(10, 1.0, 2.0, Some(0.0)), class(10, 1.0, 2.0, Some(hour))]);
        let each = &[RequestRate::new(0.5); 2];
        let (opposite, same) = (both(12.0), both(0.0));
        assert!((opposite.apart(each) - 80.0).abs() < 1e-9 && (same.apart(each) - 80.0).abs() < 1e-9);
        assert!((opposite.pooled().value() - 20.0).abs() < 1e-9 && (same.pooled().value() - 40.0).abs() < 1e-9);
        // Replicas of their own, given anew by the hour: 40 where both shares are whole, more between.
        let between = opposite.reallocated(each).unwrap();
        assert!((40.0..=50.0).contains(&between), "{between}");
        assert!((same.reallocated(each).unwrap() - 80.0).abs() < 1e-9);
    }

    #[test]
    fn of_unknown_hours_deviations_add_up_by_their_squares() {
        let alike = Tenants(vec![class(40, 0.05, 2.0, None)]);
        assert!((alike.pooled().value() - (2.0 + 40.0_f64.sqrt() * 1.95)).abs() < 1e-9);
        assert_eq!(alike.reallocated(&[RequestRate::new(1.0)]), None);
    }
}
