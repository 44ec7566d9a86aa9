//! How many nodes a power budget holds.
//!
//! A budget is power of the facility. A node's share of it is the IT power that is provisioned for it (its own and its part of
//! network and storage), times the site's power usage effectiveness, once, and times the headroom that is kept free. Headroom
//! sizes what may be installed and is in no bill: energy follows average power.

use crate::scenario::PowerBudget;
use crate::units::{Factor, Watts, to_integer};

/// What a budget holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// The budget, power of the facility.
    pub budget: Watts,
    /// Of it one node takes so much, with cooling, losses and headroom.
    pub node: Watts,
    /// Whole nodes.
    pub nodes: u64,
    /// Their accelerators.
    pub accelerators: u64,
}

impl Capacity {
    /// Of nodes with so much IT power provisioned for each on average, which have so many accelerators over so many nodes.
    pub fn new(budget: &PowerBudget, it_of_a_node: Watts, pue: Factor, (accelerators, of_nodes): (u64, u64)) -> Self {
        let node = it_of_a_node * pue.get() * budget.headroom.get();
        // A budget of whole nodes holds the last of them, whatever rounding says.
        let nodes = to_integer::<u64>((budget.budget / node + 1e-9).floor());
        Self { budget: budget.budget, node, nodes, accelerators: nodes * accelerators / of_nodes.max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor(value: f64) -> Factor {
        Factor::new(value).unwrap()
    }

    #[test]
    fn a_gigawatt_of_chassis() {
        // SemiAnalysisAI/InferenceX-app, issues 564 and 1113: a chassis of 4,837.2 W, x 1.3 = 6,288.36, x 1.1 = 6,917.196 W.
        // 1e9 / 6,917.196 = 144,567.25; from 6,288.4 as the thread rounds it, 6,917.24 and 144,566.
        let budget = PowerBudget { budget: Watts::new(1e9), headroom: factor(1.1) };
        let exact = Capacity::new(&budget, Watts::new(4_837.2), factor(1.3), (8, 1));
        assert!((exact.node.value() - 6_917.196).abs() < 1e-9);
        assert_eq!((exact.nodes, exact.accelerators), (144_567, 8 * 144_567));
        let rounded = Capacity::new(&budget, Watts::new(6_288.4), factor(1.0), (8, 1));
        assert!((rounded.node.value() - 6_917.24).abs() < 1e-9);
        assert_eq!(rounded.nodes, 144_566);
    }

    #[test]
    fn nodes_are_whole_and_the_last_one_counts() {
        let budget = |watts: f64| PowerBudget { budget: Watts::new(watts), headroom: Factor::ONE };
        let held = |watts: f64| Capacity::new(&budget(watts), Watts::new(1_000.0), factor(1.1), (8, 1)).accelerators;
        // 1.1 kW each: 9.9 kW are nine, a watt less is eight.
        assert_eq!((held(9_900.0), held(9_899.0), held(1_099.0)), (72, 64, 0));
    }
}
