//! How evenly traffic spreads over equal links, and what unevenness costs.
//!
//! Switches that choose links by load, and cards that spray packets, leave a measured share of the links' bandwidth.
//! A static hash of a flow's addresses (ECMP) does worse where flows are few and large: it throws flows at links like
//! balls into bins, and a collective, whose flows all carry the same share, waits for the fullest bin.

use crate::catalog::Fabric;
use crate::units::{Fraction, to_integer};

/// How a fabric spreads its flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Balance {
    /// By load; the share of the links' bandwidth that is usable when every flow crosses at full rate.
    ByLoad(Fraction),
    /// By a hash; flows that one network card sends at a time (channels times queue pairs of each).
    Hashed {
        /// Flows of a card.
        flows_per_nic: f64,
    },
}

impl Balance {
    /// The typical balance of a fabric: what it states, or what its hashed flows come to.
    pub fn of(fabric: &Fabric) -> Self {
        match (fabric.spine_efficiency, fabric.flows_per_nic) {
            (Some(share), _) => Self::ByLoad(share.value),
            (None, Some(flows)) => Self::Hashed { flows_per_nic: flows.value.get() },
            (None, None) => Self::ByLoad(Fraction::ONE),
        }
    }
}

/// Flows thrown at equal links by a hash, at full load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Collisions {
    /// Flows of a card, of which a link carries as many at full rate.
    pub flows_per_nic: f64,
    /// Links to choose from.
    pub links: u32,
    /// Flows that the fullest link is expected to hold.
    pub fullest: f64,
}

impl Collisions {
    /// What is left of the links' bandwidth to traffic that waits for the fullest.
    pub fn share(&self) -> f64 {
        (self.flows_per_nic / self.fullest).min(1.0)
    }
}

impl Balance {
    /// The collisions on so many equal links, where flows are hashed and there is a choice.
    pub fn collisions(self, links: u32) -> Option<Collisions> {
        match self {
            Self::Hashed { flows_per_nic } if links > 0 => {
                let fullest = expected_fullest(f64::from(links) * flows_per_nic, links);
                Some(Collisions { flows_per_nic, links, fullest })
            }
            _ => None,
        }
    }
}

/// Samples of a [`Slowdown`] between no load and full load.
const SAMPLES: usize = 16;

/// Slowdown of traffic that loads the links of a tier, by load; small, and read without logarithms in hot loops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slowdown([f64; SAMPLES + 1]);

impl Slowdown {
    /// The slowdown on `links` equal links out of a switch; 0 links are none to choose from.
    ///
    /// By load, the excess `1 / E - 1` at full load is taken in proportion to the load, because the flows that share a
    /// link with a given one grow in proportion. Hashed, it is what the fullest link holds over what it can carry:
    /// `max(1, E[max] / flows_per_nic)` with `load * links * flows_per_nic` flows on `links` links.
    pub(super) fn new(balance: Balance, links: u32) -> Self {
        let mut samples = [1.0; SAMPLES + 1];
        for (index, sample) in samples.iter_mut().enumerate() {
            let load = index as f64 / SAMPLES as f64;
            *sample = match balance {
                Balance::ByLoad(share) => 1.0 + load * (1.0 / share.get() - 1.0),
                Balance::Hashed { flows_per_nic } if links > 0 => {
                    let flows = load * f64::from(links) * flows_per_nic;
                    (expected_fullest(flows, links) / flows_per_nic).max(1.0)
                }
                Balance::Hashed { .. } => 1.0,
            };
        }
        Self(samples)
    }

    /// The slowdown at a load: traffic offered over what the links carry. Above 1 everything waits in proportion.
    #[inline]
    pub(super) fn at(&self, load: f64) -> f64 {
        if load >= 1.0 {
            return self.0[SAMPLES] * load;
        }
        let place = load.max(0.0) * SAMPLES as f64;
        let index = to_integer::<usize>(place);
        self.0[index] + (self.0[index + 1] - self.0[index]) * (place - index as f64)
    }
}

/// Of a double-precision number, with room to spare: `exp(-40)` is 4e-18.
const ALL_DIGITS: f64 = 40.0;

/// Expected number of flows on the fullest of `links` links over which so many flows are thrown at random.
///
/// The count on one link is binomial; links are taken as independent, which for the maximum is close because counts on
/// different links repel each other only weakly: `E[max] = sum over m of 1 - P(X <= m)^links`.
fn expected_fullest(flows: f64, links: u32) -> f64 {
    if flows <= 0.0 || links == 0 {
        return 0.0;
    }
    let share = 1.0 / f64::from(links);
    if links == 1 {
        return flows;
    }
    // Binomial probabilities by recurrence from P(X = 0); a fraction of a flow is taken as it comes.
    let mut probability = (flows * (-share).ln_1p()).exp();
    let mut at_most = probability;
    let (mut expected, mut count) = (0.0, 0.0);
    // Below this, its power is less than the last digit of 1.
    let surely_above = (-ALL_DIGITS / f64::from(links)).exp();
    while count < flows {
        let all_below = if at_most < surely_above { 0.0 } else { at_most.min(1.0).powf(f64::from(links)) };
        expected += 1.0 - all_below;
        if 1.0 - all_below < 1e-9 && count > flows * share {
            break;
        }
        probability *= (flows - count) / (count + 1.0) * share / (1.0 - share);
        count += 1.0;
        at_most += probability.max(0.0);
    }
    expected.max((flows * share).max(1.0_f64.min(flows)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_of_few_bins_by_hand() {
        // Two flows on two links meet with probability 1/2: E[max] = 1.5. Independent links: 1 - (1/4)^2 + 1 - (3/4)^2.
        assert!((expected_fullest(2.0, 2) - (1.0 - 1.0 / 16.0 + 1.0 - 9.0 / 16.0)).abs() < 1e-9);
        // One flow is alone on its link.
        assert!((expected_fullest(1.0, 64) - 1.0).abs() < 1e-12);
        assert!((expected_fullest(5.0, 1) - 5.0).abs() < 1e-12);
        assert!(expected_fullest(0.0, 8).abs() < 1e-12);
    }

    #[test]
    fn the_fullest_of_many_bins_agrees_with_drawing_them() {
        // A fixed linear congruential sequence throws flows; 2,000 rounds.
        let mut state = 12_345_u64;
        for (flows, links) in [(64_usize, 32_usize), (256, 32), (16, 32), (512, 64)] {
            let mut total = 0;
            for _ in 0..2_000 {
                let mut bins = vec![0; links];
                for _ in 0..flows {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    bins[(state >> 33) as usize % links] += 1;
                }
                total += bins.into_iter().max().unwrap();
            }
            let drawn = f64::from(total) / 2_000.0;
            let expected = expected_fullest(flows as f64, u32::try_from(links).unwrap());
            assert!((expected / drawn - 1.0).abs() < 0.04, "{flows} on {links}: {expected}, drawn {drawn}");
        }
    }

    #[test]
    fn what_a_hash_leaves_is_the_slowdown_at_full_load() {
        let balance = Balance::Hashed { flows_per_nic: 8.0 };
        let collisions = balance.collisions(64).unwrap();
        assert!((collisions.share() * Slowdown::new(balance, 64).at(1.0) - 1.0).abs() < 1e-12);
        assert_eq!(balance.collisions(0), None);
        assert_eq!(Balance::ByLoad(Fraction::ONE).collisions(64), None);
    }

    #[test]
    fn more_flows_even_out() {
        let at = |flows_per_nic, load| Slowdown::new(Balance::Hashed { flows_per_nic }, 32).at(load);
        // Two flows a card on 32 links: the fullest holds about 5.5 of the 2 that it can carry.
        assert!((2.5..3.0).contains(&at(2.0, 1.0)), "{}", at(2.0, 1.0));
        assert!(at(8.0, 1.0) < at(2.0, 1.0) && at(64.0, 1.0) < at(8.0, 1.0));
        // A lone flow a switch (one ring of one channel) meets nobody.
        assert!((at(1.0, 1.0 / 32.0) - 1.0).abs() < 1e-9);
        // Twice the links that are needed halve the load.
        assert!(at(8.0, 0.5) < 1.25);
        assert!((at(2.0, 2.0) / at(2.0, 1.0) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn by_load_the_excess_is_in_proportion() {
        let slowdown = Slowdown::new(Balance::ByLoad(Fraction::new(0.8).unwrap()), 32);
        for (load, expected) in [(0.0, 1.0), (0.37, 1.0 + 0.37 * 0.25), (1.0, 1.25), (3.0, 3.75)] {
            assert!((slowdown.at(load) - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn more_load_is_never_faster() {
        for balance in [Balance::Hashed { flows_per_nic: 2.0 }, Balance::Hashed { flows_per_nic: 16.0 }] {
            let slowdown = Slowdown::new(balance, 64);
            let along: Vec<f64> = (0..200).map(|step| slowdown.at(f64::from(step) / 100.0)).collect();
            assert!(along.is_sorted() && along[0] >= 1.0);
        }
    }
}
