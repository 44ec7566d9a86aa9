//! The form of a day's load: a raised cosine to a power, the narrower the higher.

/// Halvings in which the form of a day is found, and the narrowest.
const HALVINGS: u32 = 60;
const NARROWEST: f64 = 1e6;
/// Loads that stand for those of a day.
const LOADS: u32 = 8;
/// Share of the peak below which a day counts as without load.
const FAINT: f64 = 1e-4;

/// Hours of a half day, from the busiest to the least busy.
const HALF: f64 = 12.0;

/// The form of a day.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Day {
    power: f64,
}

impl Day {
    /// The form whose mean over its peak, reckoned by `mean`, is `wanted`; the same at all hours, where that is one.
    pub(super) fn of(wanted: f64, mean: impl Fn(Self) -> f64) -> Self {
        let (mut low, mut high) = (0.0, NARROWEST);
        for _ in 0..HALVINGS {
            let power = f64::midpoint(low, high);
            if mean(Self { power }) > wanted { low = power } else { high = power }
        }
        Self { power: low }
    }

    /// Share of the peak at an hour of the day, that many hours from the busiest.
    pub(super) fn share(self, hours: f64) -> f64 {
        f64::midpoint(1.0, (hours / HALF * std::f64::consts::PI).cos()).powf(self.power)
    }

    /// Hours from the busiest at which the load is faint.
    fn faint(self) -> f64 {
        FAINT.powf(0.5 / self.power).acos() * 2.0 / std::f64::consts::PI * HALF
    }

    /// Shares of the peak, midway in so many equal parts of the time that has a load, and the share of the day of each.
    fn loads(self) -> impl Iterator<Item = (f64, f64)> {
        let part = self.faint() / f64::from(LOADS);
        (0..LOADS).map(move |index| (self.share((f64::from(index) + 0.5) * part), part / HALF))
    }
}

/// Loads that stand for those of a day, as shares of its peak, and the share of the day that has each; in the rest of the day
/// there is none. Their mean is that of the day.
pub fn loads_of_a_day(peak_to_mean: f64) -> impl Iterator<Item = (f64, f64)> {
    let mean = |day: Day| day.loads().map(|(load, time)| load * time).sum();
    Day::of(peak_to_mean.recip(), mean).loads()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_of_a_day_have_its_mean_and_its_scatter() {
        for peak_to_mean in [1.01, 1.25, 1.5, 2.0, 4.0, 20.0, 50.0, 1_000.0] {
            let of = |power: i32| loads_of_a_day(peak_to_mean).map(|(load, time)| load.powi(power) * time).sum::<f64>();
            assert!((of(1) * peak_to_mean - 1.0).abs() < 1e-9, "{peak_to_mean}");
            assert!((0.0..1.0 + 1e-9).contains(&of(0)), "{peak_to_mean}");
            // Beside ten thousand moments of the day itself.
            let moments = || (0..10_000).map(|moment| (f64::from(moment) + 0.5) * 12.0 / 10_000.0);
            let day =
                Day::of(peak_to_mean.recip(), |day| moments().map(|hour| day.share(hour)).sum::<f64>() / 10_000.0);
            let square = moments().map(|hour| day.share(hour).powi(2)).sum::<f64>() / 10_000.0;
            assert!((of(2) / square - 1.0).abs() < 5e-3, "{peak_to_mean}: {} and {square}", of(2));
        }
        // A cosine's square has three eighths on average.
        assert!((loads_of_a_day(2.0).map(|(load, time)| load * load * time).sum::<f64>() - 0.375).abs() < 1e-3);
    }
}
