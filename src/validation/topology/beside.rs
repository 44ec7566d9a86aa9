//! The networks beside a published fabric, and its racks: what the design's nodes, racks and networks come to.

use super::super::aliases::{Beside, Design};
use super::super::outcome::Fill;
use super::super::table::Unusable;
use super::PER_NODE;
use crate::catalog::site::RackLimits;
use crate::catalog::{Catalog, PriceBook};
use crate::diagnostics::Sink;
use crate::evaluate::{Devices, PartLine, SideBill, racked, side_bills};
use crate::facility::{Racked, shared_racks};
use crate::scenario::BoundSideNetwork;
use crate::topology::Topology;
use crate::units::{Fraction, Quantity};

/// Height of a rack where switches and storage stand.
const RACK_UNITS: u32 = 48;

/// A figure of what stands beside a fabric; `None` where the parameter is none of these.
pub(super) fn figure(
    design: &Design,
    parameter: &str,
    nodes: u32,
    topology: &Topology,
    catalog: &Catalog,
    filled: &mut Vec<Fill>,
) -> Option<Result<f64, Unusable>> {
    let place = match parameter {
        "storage_leaf_QM9700" => ("storage-ndr", true),
        "storage_spine_QM9700" => ("storage-ndr", false),
        // The spines of management are two wherever there are more than two leaves, whichever switch they are.
        "inband_spine_SN5600" => ("in-band-100g", false),
        "oob_SN2201" => ("out-of-band-1g", true),
        "rack_power_kw" | "su_power_kw" => return Some(power(design, parameter, topology, catalog)),
        _ => return None,
    };
    Some(with_beside(design).and_then(|beside| {
        let bills = bills(beside, nodes, topology, catalog)?;
        filled.push(Fill {
            field: "nodes_per_rack",
            value: beside.nodes_per_rack.to_string(),
            rule: "the power of a rack over that of a node".to_owned(),
        });
        let (id, leaves) = place;
        let bill = bills.iter().find(|bill| bill.id == id).ok_or_else(|| Unusable(format!("no network {id}")))?;
        let loads = if leaves { &bill.tree.leaf } else { &bill.tree.spine };
        Ok(loads.iter().map(|load| load.switches).sum::<u64>() as f64)
    }))
}

fn with_beside(design: &Design) -> Result<&Beside, Unusable> {
    design.beside.as_ref().ok_or_else(|| Unusable("the design names no node and no networks beside it".to_owned()))
}

fn power(design: &Design, parameter: &str, topology: &Topology, catalog: &Catalog) -> Result<f64, Unusable> {
    let beside = with_beside(design)?;
    let node = catalog.nodes.get(&beside.node).ok_or_else(|| Unusable(format!("no node {}", beside.node)))?;
    let nodes = if parameter == "rack_power_kw" { beside.nodes_per_rack } else { topology.unit_nodes };
    (node.max_power * f64::from(nodes)).in_unit("kW").ok_or_else(|| Unusable("no figure in kW".to_owned()))
}

fn bills(beside: &Beside, nodes: u32, topology: &Topology, catalog: &Catalog) -> Result<Vec<SideBill>, Unusable> {
    let missing = |what: &str, id: &str| Unusable(format!("the catalog has no {what} {id}"));
    let node = catalog.nodes.get(&beside.node).ok_or_else(|| missing("node", &beside.node))?;
    let switch = catalog.switches.get(&beside.switch).ok_or_else(|| missing("switch", &beside.switch))?;
    let storage = catalog.storage.get(&beside.storage).ok_or_else(|| missing("storage", &beside.storage))?;
    let sink = Sink::default();
    let networks = BoundSideNetwork::of(&beside.networks, catalog, &sink);
    let units = storage.units_for(u64::from(nodes) * u64::from(PER_NODE));
    let fabric_switches = topology.leaf.switches() + topology.spine.switches() + topology.core.switches();
    // A rack of switches draws what one of nodes does.
    let limits = RackLimits { power: node.max_power * f64::from(beside.nodes_per_rack), units: RACK_UNITS };
    let racks_with = |side: &[SideBill]| {
        let parts: Vec<&PartLine> = side.iter().flat_map(|network| &network.parts).collect();
        let mut shared = racked(&parts);
        shared.extend([
            Racked { name: &switch.id, count: fabric_switches, power: switch.power_max, units: switch.rack_units },
            Racked { name: &storage.id, count: units, power: storage.power, units: storage.rack_units },
        ]);
        Ok(u64::from(nodes.div_ceil(beside.nodes_per_rack)) + shared_racks(&shared, limits)?)
    };
    let devices = Devices {
        hosts: &[(nodes.into(), node.storage_ports.count)],
        storage,
        storage_units: units,
        servers: topology.spec.managers.servers.into(),
        fabric_switches,
    };
    // Counts alone: nothing is priced.
    let prices = PriceBook { owner: Vec::new(), prices: Vec::new(), lines: Vec::new() };
    side_bills(&networks, &devices, &prices, Fraction::ZERO, racks_with).map_err(|error| Unusable(error.to_string()))
}
