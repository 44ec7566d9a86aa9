//! Waits that some requests meet.

use statrs::function::gamma::{gamma_lr, gamma_ur, ln_gamma};

use super::scattered::Scattered;
use crate::units::{RequestRate, Seconds};

/// Share of requests that is as good as none.
const NEVER: f64 = 1e-12;

/// Standard deviations of a number of requests from its mean beyond which a queue is taken as never empty, or as hardly ever full.
const FEW: f64 = 10.0;

/// A wait that is none for some.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::inference) struct Wait {
    /// Share that waits.
    pub(in crate::inference) share: f64,
    /// How long, on average over those that do.
    pub(in crate::inference) mean: Seconds,
    /// Its variance over the squared mean, over those too.
    pub(in crate::inference) variance: f64,
    /// Its third central moment over the cubed mean, over those too.
    pub(in crate::inference) third: f64,
}

impl Wait {
    /// None.
    pub(in crate::inference) const NONE: Self = Self { share: 0.0, mean: Seconds::ZERO, variance: 0.0, third: 0.0 };

    /// Exponential for the share that waits, with a mean over all: as that of a queue which is busy for that share of the time
    /// (exact for M/M/k, the heavy-traffic form of G/G/k; Kleinrock, Queueing Systems II, 1976).
    pub(in crate::inference) fn exponential(share: f64, over_all: Seconds) -> Self {
        if share > 0.0 && over_all > Seconds::ZERO {
            Self { share, mean: over_all / share, variance: 1.0, third: 2.0 }
        } else {
            Self::NONE
        }
    }

    /// What a transfer loses on a link that those on their way have even shares of, and which carries so many at the pace that each has
    /// alone (a whole number or not), where they come at random and load it by that share.
    ///
    /// Processor sharing with a limit for each: as many are on their way as in a queue with `at_once` servers, whatever the sizes
    /// (Cohen 1979), so that the mean is lost of M/M/n by Erlang's C (M/G/R-PS: Lindberger 1999). Transfers that find it full
    /// are late, exponentially.
    pub(in crate::inference) fn shared(alone: Seconds, at_once: f64, load: f64) -> Self {
        if load <= 0.0 || load >= 1.0 {
            return Self::NONE;
        }
        let (whole, offered) = (at_once.floor(), at_once * load);
        // Erlang's B of as many servers as are whole; beyond, each further one is as likely as the load says.
        let (mut full, mut count) = (1.0, 1.0);
        while count <= whole {
            full = offered * full / (count + offered * full);
            count += 1.0;
        }
        let beyond = load / (1.0 - load);
        let full = full / (1.0 + full * beyond);
        let late = full * beyond * (whole - at_once + 1.0 / (1.0 - load)) / offered;
        Self::exponential(full / (1.0 - load), alone * late)
    }

    /// The same mean where no more than so many are open, which come at that rate, one after another for each that ends, to so many
    /// queues.
    ///
    /// Those before one are what is open less what is elsewhere: a number that scatters as those in service at once do that come so
    /// (of the machine repair model Poisson's, exactly where the queue is never empty), each of them served for a time that scatters by
    /// itself. Where that is less than what requests at random scatter by, more wait and all of them more alike.
    pub(in crate::inference) fn of_open(self, rate: RequestRate, queues: f64, round: &Round) -> Self {
        let Round { open, served, coming, .. } = *round;
        let (waiting, all) = (rate.over(self.over_all()), self.with_none().variance);
        if waiting <= 0.0 || all <= 0.0 {
            return self;
        }
        let waiting = waiting.min(open);
        let variance = (served * queues * waiting + coming * (open - waiting)) / (waiting * waiting);
        if variance >= all {
            return self;
        }
        let share = 1.0 - (1.0 - self.share) * (variance / all);
        let among = (share * (1.0 + variance) - 1.0).max(0.0);
        let mean = self.over_all() / share;
        let third = if self.variance > 0.0 { self.third * (among / self.variance).powi(2) } else { 0.0 };
        Self { share, mean, variance: among, third }
    }

    /// On average over all, those too that do not wait.
    pub(in crate::inference) fn over_all(&self) -> Seconds {
        if self.share <= NEVER { Seconds::ZERO } else { self.mean * self.share }
    }

    /// Of those that wait.
    pub(in crate::inference) fn scattered(&self) -> Scattered {
        Scattered { mean: self.mean, variance: self.variance, third: self.third }
    }

    /// Mean square and mean cube over those of the mean, of those that wait.
    fn powers(&self) -> (f64, f64) {
        (1.0 + self.variance, 1.0 + 3.0 * self.variance + self.third)
    }

    /// Over all, those too that do not wait.
    pub(in crate::inference) fn with_none(&self) -> Scattered {
        if self.share <= NEVER {
            return Scattered { mean: Seconds::ZERO, variance: 0.0, third: 0.0 };
        }
        let (square, cube) = self.powers();
        let (square, cube) = (square / self.share, cube / (self.share * self.share));
        Scattered { mean: self.over_all(), variance: square - 1.0, third: cube - 3.0 * square + 2.0 }
    }

    /// This and another, each by itself.
    pub(in crate::inference) fn and(self, other: Self) -> Self {
        if other.share <= NEVER {
            return self;
        }
        if self.share <= NEVER {
            return other;
        }
        let share = self.share + other.share - self.share * other.share;
        let both = self.with_none().and(other.with_none());
        let (mean, square) = (both.mean / share, (1.0 + both.variance) * share);
        let cube = (1.0 + 3.0 * both.variance + both.third) * share * share;
        Self { share, mean, variance: square - 1.0, third: cube - 3.0 * square + 2.0 }
    }
}

/// The mean wait of a queue with one server that is busy for a share of the time: Pollaczek and Khinchine's where requests come
/// at random, Kingman's where they do not.
pub(in crate::inference) fn mean_wait(served: Seconds, busy: f64, squared_cvs: [f64; 2]) -> Seconds {
    let [coming, serving] = squared_cvs;
    served * (busy * (coming + serving) / (2.0 * (1.0 - busy)))
}

/// Erlang's C: the share of arrivals that find all of so many servers busy, at that many offered at once on average.
pub(in crate::inference) fn erlang_c(servers: f64, offered: f64) -> f64 {
    let mut blocked = 1.0;
    let mut count = 1.0;
    while count <= servers {
        blocked = offered * blocked / (count + offered * blocked);
        count += 1.0;
    }
    let load = offered / servers;
    blocked / (1.0 - load * (1.0 - blocked))
}

/// Turns of a place from which on they are as good as without end.
const MANY: f64 = 3.0;
/// Squared coefficient of variation below which those who take turns end as evenly as they began.
const ALIKE: f64 = 1e-3;
/// Share of a count that is as good as none.
const LITTLE: f64 = 1e-6;

/// Variance over mean of how many end in so many turns of many places, each taken again as it is left, for times with that squared
/// coefficient of variation: 1 of hardly any turns, however alike, and that of the times after many (of as many renewal processes side
/// by side it is that of each; Cox, Renewal Theory, 1962).
///
/// Of times that scatter less than exponential ones, as gamma distributed: `1 + 2 / x` times the integral of `U(s) - s` up to `x`, where
/// `U` are the ends expected after one, a sum of gamma distributions; of others, as two exponential times, each of which makes up half of
/// all. Against a simulation request by request with lognormal answers it tells P99 of a wait for room within 3%, up to a coefficient of
/// variation of 2.5 within 5%. Those that are all alike go on as they began, which is taken as evenly.
pub(in crate::inference) fn dispersion(turns: f64, scatter: f64) -> f64 {
    if turns <= 0.0 {
        return 1.0;
    }
    if scatter < ALIKE {
        return 0.0;
    }
    if scatter >= 1.0 {
        let passed = 2.0 * turns / (scatter + 1.0);
        return scatter + (scatter - 1.0) * (-passed).exp_m1() / passed;
    }
    if turns > MANY {
        return scatter + (1.0 - scatter * scatter) / (6.0 * turns);
    }
    let shape = scatter.recip();
    let passed = turns * shape;
    // The integral over a gamma distribution, the next one by parts.
    let (mut ends, mut number) = (0.0, 1.0);
    loop {
        let of_all = number * shape;
        let ended = gamma_lr(of_all, passed);
        let next = ended - (of_all * passed.ln() - passed - ln_gamma(of_all + 1.0)).exp();
        let part = turns * ended - number * next;
        ends += part;
        if part < LITTLE && number > turns {
            return 1.0 + 2.0 / turns * (ends - turns * turns / 2.0);
        }
        number += 1.0;
    }
}

/// Requests that go round between a queue with one server and elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::inference) struct Round {
    /// How many.
    pub(in crate::inference) open: f64,
    /// Time elsewhere, in those of a service.
    pub(in crate::inference) elsewhere: f64,
    /// Squared coefficient of variation of services, and of the times between those that come, over times as long as those elsewhere.
    pub(in crate::inference) served: f64,
    pub(in crate::inference) coming: f64,
}

impl Round {
    /// Of a queue that is busy for that share of the time. What comes again is what left, a time elsewhere ago: of two such times the
    /// lesser is `overlap` of their mean, and those that are alike pass on how it left (Eckberg 1983), which is as it is served where
    /// the queue is busy, and as it came where not (Marshall 1968, in Whitt's form of 1983).
    pub(in crate::inference) fn new((open, elsewhere): (f64, f64), busy: f64, served: f64, overlap: f64) -> Self {
        let square = busy * busy;
        let kept = 1.0 - overlap * (1.0 - square);
        let coming = if kept > 0.0 { (1.0 - overlap * (1.0 - square * served)) / kept } else { served };
        Self { open, elsewhere, served, coming }
    }

    /// The load at which such a queue, to which requests come by themselves, has as many before one that comes as here. What comes
    /// finds the others as they are without it (the arrival theorem; Reiser and Lavenberg, Mean-value analysis of closed multichain
    /// queueing networks, 1980).
    ///
    /// Of exponential services that number is exactly what Erlang's B of the others says, however times elsewhere scatter (the
    /// machine repair model). Where services scatter otherwise, as many as that makes wait longer or shorter go as one (as Hayward
    /// takes bursts), so that few are before one as Pollaczek and Khinchine have it, and many as fill the queue.
    pub(in crate::inference) fn load(&self) -> f64 {
        let one = f64::midpoint(1.0, self.served);
        let (others, elsewhere) = ((self.open - 1.0).max(0.0) / one, self.elsewhere / one);
        if others <= 0.0 || elsewhere <= 0.0 {
            return others / (1.0 + others);
        }
        let before = if elsewhere > others + FEW * elsewhere.sqrt() {
            // Hardly any: Schweitzer's form of 1979, which has no difference of large numbers.
            let most = ((others - 1.0) / others).max(0.0);
            let free = elsewhere + 1.0 - others * most;
            2.0 * others / (free + (free * free + 4.0 * most * others).sqrt())
        } else {
            let free = if elsewhere < others - FEW * others.sqrt() {
                0.0
            } else {
                (others * elsewhere.ln() - elsewhere - ln_gamma(others + 1.0)).exp() / gamma_ur(others + 1.0, elsewhere)
            };
            (others - elsewhere * (1.0 - free)).max(0.0)
        };
        before / (1.0 + before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_share_a_link_as_many_servers_would() {
        // Ten at once, loaded by 0.8: Erlang's C of 10 servers at 8 is 0.409; C / (10 (1 - 0.8)) of the time alone is lost.
        let shared = |at_once: f64, load: f64| Wait::shared(Seconds::new(1.0), at_once, load).over_all().value();
        let waits = erlang_c(10.0, 8.0);
        assert!((waits - 0.409).abs() < 1e-3 && (shared(10.0, 0.8) - waits / 2.0).abs() < 1e-12);
        // One at once is M/G/1 with processor sharing, 1 / (1 - load) as long; half of one at a time twice that.
        assert!((shared(1.0, 0.8) - 4.0).abs() < 1e-12 && (shared(0.5, 0.8) - 9.0).abs() < 1e-12);
        // Between whole numbers the loss is between theirs; with next to no load there is none.
        assert!(shared(11.0, 0.8) < shared(10.5, 0.8) && shared(10.5, 0.8) < shared(10.0, 0.8));
        assert!(shared(10.0, 0.1) < 1e-6 && Wait::shared(Seconds::new(1.0), 10.0, 0.0) == Wait::NONE);
    }

    #[test]
    fn two_waits_are_one() {
        // Half wait 2 s, exponentially, and a quarter 4 s: five of eight wait, 2 s on average over all.
        let (one, other) = (Wait::exponential(0.5, Seconds::new(1.0)), Wait::exponential(0.25, Seconds::new(1.0)));
        let both = one.and(other);
        assert!((both.share - 0.625).abs() < 1e-12 && (both.over_all().value() - 2.0).abs() < 1e-12, "{both:?}");
        // Mean squares of 4 and 8, and twice the product of the means: 14 over all.
        let square = both.share * (1.0 + both.variance) * both.mean.value().powi(2);
        assert!((square - 14.0).abs() < 1e-9, "{square}");
        // Mean cubes of 24 and 96, three times the mean square of each with the mean of the other: 156 over all.
        let cube = both.share * (1.0 + 3.0 * both.variance + both.third) * both.mean.value().powi(3);
        assert!((cube - 156.0).abs() < 1e-9, "{cube}");
        // What next to nobody meets changes nothing, however few they are.
        for share in [1e-20, 1e-160, 1e-300] {
            let hardly = Wait::exponential(share, Seconds::new(share));
            assert_eq!(hardly.and(one), one);
            assert!(hardly.with_none().mean <= Seconds::ZERO);
        }
        assert_eq!(Wait::NONE.and(one), one);
        assert_eq!(one.and(Wait::NONE), one);
    }

    #[test]
    fn few_that_go_round_find_what_mean_value_analysis_says() {
        let before = |open: f64, elsewhere: f64, served: f64| {
            let load = Round { open, elsewhere, served, coming: 1.0 }.load();
            load / (1.0 - load)
        };
        for elsewhere in [0.5, 4.0, 20.0, 200.0, 3_000.0] {
            // W(n) = 1 + L(n - 1), and L(n) by Little's law; within a hundredth where hardly any are before one.
            let mut due = 0.0;
            for open in 1..4_000 {
                let found = before(open.into(), elsewhere, 1.0);
                assert!((found - due).abs() < 0.01 * due + 1e-9, "{open} {elsewhere}: {found} {due}");
                let whole = 1.0 + due;
                due = f64::from(open) * whole / (whole + elsewhere);
            }
        }
        // Services that are all alike: half of that where few are before one, and all of it where it is never empty.
        let halved = |open: f64| before(open, 100.0, 0.0) / before(open, 100.0, 1.0) / 2.0;
        assert!((halved(20.0) - 0.5).abs() < 0.02 && (halved(400.0) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn what_goes_round_comes_as_it_left() {
        let coming = |busy: f64, served: f64, overlap: f64| Round::new((10.0, 10.0), busy, served, overlap).coming;
        // Where times elsewhere are alike it is as served, where nothing waits or times differ without bound as at random.
        assert!((coming(0.5, 0.25, 1.0) - 0.25).abs() < 1e-12 && (coming(0.0, 0.25, 0.7) - 1.0).abs() < 1e-12);
        assert!((coming(1.0, 0.25, 0.0) - 1.0).abs() < 1e-12 && (coming(1.0, 0.25, 0.5) - 0.625).abs() < 1e-12);
    }

    #[test]
    fn ends_of_places_scatter_as_renewals() {
        // Two exponential parts: 1/2 + (1 - exp(-4 x)) / (8 x) (Cox 1962, chapter 4). Of alike times none ends before a turn is over.
        for turns in [0.01_f64, 0.3, 1.0, 2.9] {
            let due = 0.5 + -(-4.0 * turns).exp_m1() / (8.0 * turns);
            assert!((dispersion(turns, 0.5) - due).abs() < 1e-4, "{turns}");
            assert!((dispersion(turns, 1.0) - 1.0).abs() < 1e-12);
        }
        assert!((dispersion(0.5, 0.01) - 0.5).abs() < 1e-3);
        // Few turns scatter as at random, many as their times do, with no step between the forms.
        for scatter in [0.05, 0.25, 0.8, 2.0, 6.0] {
            let [few, last, first, many] = [1e-4, MANY, MANY + 1e-9, 1e6].map(|turns| dispersion(turns, scatter));
            assert!((few - 1.0).abs() < 1e-2 && (many / scatter - 1.0).abs() < 1e-4, "{scatter}: {few} {many}");
            assert!((last / first - 1.0).abs() < 0.02, "{scatter}: {last} {first}");
        }
    }

    #[test]
    fn erlangs_c_is_met() {
        // One server busy for 0.8 of the time: 0.8 wait. Two servers offered one at a time on average: 1/3 wait.
        assert!((erlang_c(1.0, 0.8) - 0.8).abs() < 1e-12);
        assert!((erlang_c(2.0, 1.0) - 1.0 / 3.0).abs() < 1e-12);
    }
}
