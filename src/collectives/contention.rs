//! Two collectives at the same time through the same network cards.

use crate::units::Seconds;

/// How long each of two collectives takes where both start together: each alone, and each while the other has its half of
/// the cards.
///
/// Both run at the shared pace until the shorter ends; what is left of the longer goes on alone. One that the cards don't
/// hold back is as fast beside the other as alone.
pub fn beside(own: [Seconds; 2], other: [Seconds; 2]) -> [Seconds; 2] {
    let [own_alone, own_shared] = own;
    let [other_alone, other_shared] = other;
    let rest = |alone: Seconds, shared: Seconds, first: Seconds| {
        if shared <= Seconds::ZERO { alone } else { first + alone * (1.0 - first / shared) }
    };
    if own_shared <= other_shared {
        [own_shared, rest(other_alone, other_shared, own_shared)]
    } else {
        [rest(own_alone, own_shared, other_shared), other_shared]
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::us;
    use super::*;

    #[test]
    fn the_shorter_takes_twice_as_long_and_the_longer_waits_for_it() {
        // 10 and 30 us alone: 20 at half pace, then 30 - 10 left of the longer: both done by 40, the sum of the two.
        let [short, long] = beside([us(10.0), us(20.0)], [us(30.0), us(60.0)]);
        assert!((short / us(20.0) - 1.0).abs() < 1e-12 && (long / us(40.0) - 1.0).abs() < 1e-12);
        assert_eq!(beside([us(30.0), us(60.0)], [us(10.0), us(20.0)]), [long, short]);
    }

    #[test]
    fn what_the_cards_do_not_hold_back_is_not_slowed() {
        let [free, bound] = beside([us(10.0), us(10.0)], [us(30.0), us(60.0)]);
        // A sixth of the bound one is done when the free one ends; 5/6 of 30 us are left.
        assert!((free / us(10.0) - 1.0).abs() < 1e-12 && (bound / us(35.0) - 1.0).abs() < 1e-12);
        assert_eq!(beside([Seconds::ZERO; 2], [us(30.0), us(60.0)]), [Seconds::ZERO, us(30.0)]);
    }
}
