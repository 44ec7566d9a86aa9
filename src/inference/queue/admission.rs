//! The wait for room in the cache, where as many requests may be in decode as it holds.

use super::waiting::Wait;
use crate::units::{RequestRate, Seconds};

/// Standard deviations by which as many requests as there is room for are above the mean at which nobody waits.
const FAR: f64 = 8.0;
/// Share of the whole below which a number of requests is left out.
const NEVER: f64 = 1e-12;

/// Requests at a rate in one engine with room for so many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::inference) struct Admission {
    /// How many come.
    pub(in crate::inference) rate: RequestRate,
    /// In decode on average.
    pub(in crate::inference) batch: f64,
    /// Time of one in decode with that many.
    pub(in crate::inference) held: Seconds,
    /// As many as there is room for.
    pub(in crate::inference) room: f64,
    /// Time of one in decode with that many.
    pub(in crate::inference) full: Seconds,
    /// What is served at most.
    pub(in crate::inference) most: RequestRate,
    /// Variance over mean of the number in decode, where there were room for all.
    pub(in crate::inference) peakedness: f64,
}

impl Admission {
    /// The wait for room; `scatter` is the squared coefficient of variation of answers' lengths.
    ///
    /// A queue whose servers are the places in the cache, each as fast as a step of all that are taken lets it be: the chance of
    /// `n` in decode over that of `n - 1` is the rate of coming times the time that one takes among `n`, over `n` (a birth and
    /// death process; with one time whatever `n` is, Erlang's C). Times of answers that do not scatter exponentially halve the
    /// wait by `(1 + cv^2) / 2` (Lee and Longton 1959), and bursts are taken in as Hayward does: as many fewer and larger
    /// requests as they are peaked.
    pub(in crate::inference) fn wait(&self, scatter: impl Fn() -> f64) -> Wait {
        if !self.room.is_finite() {
            return Wait::NONE;
        }
        let slope = (self.full.saturating_sub(self.held)) / self.held / (self.room - self.batch).max(1.0);
        let peaked = self.peakedness.clamp(1.0, self.room.max(1.0));
        // Times that grow with those in decode make their number scatter more.
        let spread = (1.0 - self.batch * slope).max(0.05);
        let variance = self.batch * peaked / spread;
        if self.room - self.batch > FAR * variance.sqrt() + FAR * peaked {
            return Wait::NONE;
        }
        // A whole number of larger requests, which together take the room there is.
        let places = (self.room / peaked).floor().max(1.0);
        let peaked = self.room / places;
        let time = |number: f64| 1.0 + slope * (number * peaked - self.batch);
        // As many as come in the time that one takes on average, of larger requests.
        let offered = self.rate.over(self.held) / peaked;
        let ratio = |number: f64| offered * time(number).max(0.05) / number;
        let middle = (self.batch / peaked).round().clamp(1.0, places);
        let (mut all, mut share, mut number) = (1.0, 1.0, middle);
        while number > 0.0 && share > NEVER * all {
            share /= ratio(number);
            all += share;
            number -= 1.0;
        }
        (share, number) = (1.0, middle);
        while number < places {
            number += 1.0;
            share *= ratio(number);
            all += share;
        }
        let load = self.rate / self.most;
        if load >= 1.0 {
            return Wait::exponential(1.0, self.full);
        }
        // Beyond the places, each further one is as likely as the load says.
        let waits = share / (1.0 - load) / (all + share * load / (1.0 - load));
        let each = Seconds::new(1.0) * (peaked / self.most.over(Seconds::new(1.0)) / (1.0 - load));
        Wait::exponential(waits, each * (waits * (1.0 + scatter()) / 2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::queue::waiting::erlang_c;

    fn engine(rate: f64, room: f64, full: f64) -> Admission {
        Admission {
            rate: RequestRate::new(rate),
            batch: rate,
            held: Seconds::new(1.0),
            room,
            full: Seconds::new(full),
            most: RequestRate::new(room / full),
            peakedness: 1.0,
        }
    }

    #[test]
    fn places_of_one_pace_are_an_m_m_c_queue() {
        for (rate, room) in [(0.5, 1.0), (4.0, 5.0), (45.0, 50.0), (180.0, 200.0)] {
            let (wait, waits) = (engine(rate, room, 1.0).wait(|| 1.0), erlang_c(room, rate));
            assert!((wait.share / waits - 1.0).abs() < 1e-9, "{rate} {room}: {wait:?} {waits}");
            // W = C / (c mu - lambda), and half of it where all take the same time (M/D/c, Lee and Longton).
            let mean = waits / (room - rate);
            assert!((wait.over_all().value() / mean - 1.0).abs() < 1e-9);
            let halved = engine(rate, room, 1.0).wait(|| 0.0).over_all().value();
            assert!((halved / mean - 0.5).abs() < 1e-9);
        }
    }

    #[test]
    fn an_m_d_1_queue_is_exact_and_with_room_to_spare_nobody_waits() {
        // Busy for 0.8 of the time: 0.8 / (2 x 0.2) = 2 s for services of 1 s.
        assert!((engine(0.8, 1.0, 1.0).wait(|| 0.0).over_all().value() - 2.0).abs() < 1e-12);
        assert_eq!(engine(40.0, 200.0, 1.0).wait(|| 1.0), Wait::NONE);
        // Bursts of eight reach further.
        let bursts = Admission { peakedness: 8.0, ..engine(40.0, 60.0, 1.0) };
        assert!(bursts.wait(|| 1.0).over_all() > engine(40.0, 60.0, 1.0).wait(|| 1.0).over_all() * 10.0);
    }

    #[test]
    fn places_that_slow_each_other_wait_longer() {
        // 40 in decode take 1 s each, and 50 take 1.2 s: at most 41.7 a second.
        let (slower, even) = (engine(40.0, 50.0, 1.2).wait(|| 1.0), engine(40.0, 50.0, 1.0).wait(|| 1.0));
        assert!(slower.share > 2.0 * even.share && slower.over_all() > even.over_all() * 4.0, "{slower:?} {even:?}");
    }
}
