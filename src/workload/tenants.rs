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
pub struct Tenants {
    classes: Vec<TenantClass>,
    /// Those with an hour, with the form of their day.
    by_day: Vec<(TenantClass, f64, Day)>,
    /// Hours at which days are looked at.
    looked_at: Vec<f64>,
}

/// Hours of a day.
fn hours() -> impl Iterator<Item = f64> {
    (0..STEPS).map(|step| f64::from(step) * 24.0 / f64::from(STEPS))
}

/// Hours at which days are looked at: all quarters, and those at which some are busiest, of many classes those that ask for most.
/// What a further one asks for is a small part of all, and the next quarter has nearly all of that.
fn looked_at(days: &[(TenantClass, f64, Day)]) -> Vec<f64> {
    let mut largest: Vec<_> = days.iter().map(|(class, busiest, _)| (class.of_all(), *busiest)).collect();
    largest.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let mut busiest: Vec<f64> = largest.into_iter().take(STEPS as usize).map(|(_, busiest)| busiest).collect();
    busiest.sort_by(f64::total_cmp);
    busiest.dedup();
    hours().chain(busiest).collect()
}

/// The day whose mean over its peak is as wanted; the same at all hours, where both are alike.
fn day(wanted: f64) -> Day {
    Day::of(wanted, |day| hours().map(|hour| day.share(hour)).sum::<f64>() / f64::from(STEPS))
}

impl TenantClass {
    /// Requests of all of them at their busiest, as a number to order by.
    fn of_all(&self) -> f64 {
        self.peak / RequestRate::new(1.0) * f64::from(self.count)
    }
}

/// Whole replicas for so many requests; what is reckoned to be a whole is one but for rounding.
pub fn replicas(asked: RequestRate, each: RequestRate) -> f64 {
    (asked / each - 1e-9).ceil().max(0.0)
}

impl Tenants {
    /// Tenants of these classes.
    pub fn new(classes: Vec<TenantClass>) -> Self {
        // Those whose means are the same share of their peaks have days of one form.
        let mut forms: Vec<f64> = classes.iter().map(|class| class.mean / class.peak).collect();
        forms.sort_by(f64::total_cmp);
        forms.dedup();
        let forms: Vec<(f64, Day)> = forms.into_iter().map(|form| (form, day(form))).collect();
        let of = |class: &TenantClass| {
            let place = forms.binary_search_by(|(form, _)| form.total_cmp(&(class.mean / class.peak))).ok()?;
            Some((*class, class.busiest?, forms[place].1))
        };
        let by_day: Vec<_> = classes.iter().filter_map(of).collect();
        let looked_at = looked_at(&by_day);
        Self { classes, by_day, looked_at }
    }

    /// The classes.
    pub fn classes(&self) -> &[TenantClass] {
        &self.classes
    }

    /// Requests of all on average.
    pub fn mean(&self) -> RequestRate {
        self.classes.iter().map(|class| class.mean * f64::from(class.count)).sum()
    }

    /// Replicas where every tenant has its own for its busiest time, each for so many requests a second of those of its class.
    pub fn apart(&self, each: &[RequestRate]) -> f64 {
        self.classes.iter().zip(each).map(|(class, each)| f64::from(class.count) * replicas(class.peak, *each)).sum()
    }

    /// Replicas where every tenant has its own, as many as it needs at the time, at the hour at which that is most; none where an
    /// hour is not known.
    pub fn reallocated(&self, each: &[RequestRate]) -> Option<f64> {
        let days = &self.by_day;
        let at = |hour: f64| -> f64 {
            let own = |((class, busiest, day), each): (&(TenantClass, f64, Day), &RequestRate)| {
                f64::from(class.count) * replicas(class.peak * day.share(hour - busiest), *each)
            };
            days.iter().zip(each).map(own).sum()
        };
        (days.len() == self.classes.len()).then(|| self.looked_at.iter().map(|hour| at(*hour)).fold(0.0, f64::max))
    }

    /// Of each class, what one tenant asks for in each quarter of an hour of a day: none where an hour is not known.
    pub fn days(&self) -> Option<Vec<Vec<RequestRate>>> {
        let of = |(class, busiest, day): &(TenantClass, f64, Day)| {
            hours().map(|hour| class.peak * day.share(hour - busiest)).collect()
        };
        (self.by_day.len() == self.classes.len()).then(|| self.by_day.iter().map(of).collect())
    }

    /// What all together come to at their busiest: at each hour the sum of those that have one; of the others means add up, and
    /// what is above them by the root of the sum of squares, as independent deviations do (Eppen, Management Science 25(5),
    /// 1979).
    pub fn pooled(&self) -> RequestRate {
        let at = |hour: &f64| -> RequestRate {
            let of = |(class, busiest, day): &(TenantClass, f64, Day)| {
                class.peak * (f64::from(class.count) * day.share(hour - busiest))
            };
            self.by_day.iter().map(of).sum()
        };
        let together = self.looked_at.iter().map(at).fold(RequestRate::ZERO, RequestRate::max);
        let others = || self.classes.iter().filter(|class| class.busiest.is_none());
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
            let day = day(mean / peak);
            let found = hours().map(|hour| peak * day.share(hour - 14.0)).sum::<f64>() / f64::from(STEPS);
            assert!((found / mean - 1.0).abs() < 1e-9, "{found}");
        }
        assert!((day(0.5).share(6.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn tenants_of_opposite_hours_share_what_one_leaves_free() {
        // Twice the mean at noon and at midnight: together the same all day, half of what both have apart.
        let both = |hour| Tenants::new(vec![class(10, 1.0, 2.0, Some(0.0)), class(10, 1.0, 2.0, Some(hour))]);
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
    fn of_many_classes_not_all_hours_need_a_look() {
        let of = |index: u32| {
            let place = f64::from(index);
            class(1 + index % 3, 0.1 + 0.001 * place, 0.6 + 0.03 * place, Some(place * 0.37 % 24.0))
        };
        let all = Tenants::new((0..1_000).map(of).collect());
        assert!(all.looked_at.len() <= 2 * STEPS as usize);
        let at = |hour: f64| -> f64 {
            let of = |(class, busiest, day): &(TenantClass, f64, Day)| {
                class.peak.value() * f64::from(class.count) * day.share(hour - busiest)
            };
            all.by_day.iter().map(of).sum()
        };
        let every_minute = (0..1_440_u32).map(|minute| at(f64::from(minute) / 60.0)).fold(0.0, f64::max);
        assert!((all.pooled().value() / every_minute - 1.0).abs() < 1e-3, "{} {every_minute}", all.pooled());
        // Of a few all have: that of a narrow one between two quarters is the peak.
        let one = Tenants::new(vec![class(1, 1.0, 40.0, Some(13.13)), class(1, 1.0, 1.5, Some(2.0))]);
        assert!(one.pooled().value() > 40.0);
    }

    #[test]
    fn of_unknown_hours_deviations_add_up_by_their_squares() {
        let alike = Tenants::new(vec![class(40, 0.05, 2.0, None)]);
        assert!((alike.pooled().value() - (2.0 + 40.0_f64.sqrt() * 1.95)).abs() < 1e-9);
        assert_eq!(alike.reallocated(&[RequestRate::new(1.0)]), None);
    }
}
