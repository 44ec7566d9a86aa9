//! Steps in cost that nobody asked for: spares that are whole nodes, and ports of fabric managers that take another tier of switches.

use std::sync::Arc;

use super::{BuiltCluster, Evaluation};
use crate::scenario::Cluster;
use crate::tco::{CostTotals, UnitCosts};
use crate::units::{Fraction, Usd};

/// A share of a year's cost from which on the storage of a cluster that trains nothing is told.
const MUCH: f64 = 0.1;

/// So many times as many spares as asked for are told.
const MANY: f64 = 1.5;

/// Spare nodes beside those at work, and what hours cost without them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundedSpares {
    /// Nodes at work.
    pub at_work: u32,
    /// Nodes to spare.
    pub spare: u32,
    /// Hours without the spares, all else as it is.
    pub without: UnitCosts,
}

/// Storage for checkpoints where nothing trains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnusedStorage {
    /// Share of a year's cost that it is, with its part of racks, power and networks.
    pub share: f64,
    /// Hours without it, all else as it is.
    pub without: UnitCosts,
}

/// A tier of switches that is there for the ports of fabric managers alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ManagerPorts {
    /// Their ports.
    pub ports: u32,
    /// Tiers of switches without them.
    pub tiers: u32,
    /// What the fabric costs less without them, their servers among it.
    pub saved: Usd,
}

/// A share of capex from which on a fabric that one node has for itself is told.
const MUCH_FABRIC: f64 = 0.1;

/// A fabric that nothing crosses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnusedFabric {
    /// Share of capex that it is.
    pub share: f64,
    /// Hours without it but for the cards, which nodes have, all else as it is.
    pub without: UnitCosts,
}

impl Evaluation {
    /// Where one node is at work, and pays much for a fabric.
    pub fn unused_fabric(&self) -> Option<UnusedFabric> {
        let (scenario, spec) = (&self.scenario, &self.built.topology.spec);
        let at_work: u32 = self.built.kinds.iter().map(|kind| kind.at_work).sum();
        let share = self.built.fabric_capex() / self.built.costs.capex;
        if at_work != 1 || spec.server_ports > 0 || share <= MUCH_FABRIC {
            return None;
        }
        let built = self.built.with_cards_alone(&scenario.cluster, &scenario.finance).ok()?;
        let goodput = self.point.map_or(1.0, |point| point.goodput.ratio);
        let totals =
            CostTotals::new(&built.costs, &built.drivers, scenario.cluster.accelerators.into(), &scenario.finance);
        Some(UnusedFabric { share, without: totals.unit_costs(goodput) })
    }

    /// Where the network would have fewer tiers of switches without the ports of its fabric managers.
    pub fn manager_ports(&self) -> Option<ManagerPorts> {
        let (scenario, topology) = (&self.scenario, &self.built.topology);
        let managers = scenario.cluster.fabric.entry.managers.filter(|_| topology.tiers > 1)?;
        let mut cluster = scenario.cluster.clone();
        let mut entry = (*cluster.fabric.entry).clone();
        entry.part.managers = None;
        cluster.fabric.entry = Arc::new(entry);
        let built = BuiltCluster::new(&cluster, &scenario.finance).ok()?;
        (built.topology.tiers < topology.tiers).then(|| ManagerPorts {
            ports: managers.servers * managers.ports_per_server,
            tiers: built.topology.tiers,
            saved: self.built.fabric_capex() - built.fabric_capex(),
        })
    }

    /// Where a cluster that serves, and trains nothing, pays much for storage that checkpoints would be for.
    pub fn unused_storage(&self) -> Option<UnusedStorage> {
        let scenario = &self.scenario;
        if scenario.training.is_some() || scenario.serving.is_none() || scenario.cluster.storage_units == 0 {
            return None;
        }
        let cluster = Cluster { storage_units: 0, ..scenario.cluster.clone() };
        let built = BuiltCluster::new(&cluster, &scenario.finance).ok()?;
        let share = 1.0 - built.costs.annualised / self.built.costs.annualised;
        let totals = CostTotals::new(&built.costs, &built.drivers, cluster.accelerators.into(), &scenario.finance);
        (share > MUCH).then(|| UnusedStorage { share, without: totals.unit_costs(1.0) })
    }

    /// Where whole nodes make spares many more than the share that is asked for.
    pub fn rounded_spares(&self) -> Option<RoundedSpares> {
        let (scenario, asked) = (&self.scenario, self.scenario.cluster.spares);
        let [at_work, spare] = [|kind: &super::NodesBought| kind.at_work, |kind: &super::NodesBought| kind.spare]
            .map(|of| self.built.kinds.iter().map(of).sum::<u32>());
        if f64::from(spare) <= f64::from(at_work) * asked.get() * MANY {
            return None;
        }
        let cluster = Cluster { spares: Fraction::ZERO, ..scenario.cluster.clone() };
        let built = BuiltCluster::new(&cluster, &scenario.finance).ok()?;
        let goodput = self.point.map_or(1.0, |point| point.goodput.ratio);
        let totals = CostTotals::new(&built.costs, &built.drivers, cluster.accelerators.into(), &scenario.finance);
        Some(RoundedSpares { at_work, spare, without: totals.unit_costs(goodput) })
    }
}
