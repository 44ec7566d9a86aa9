//! What the maker of a part states of it, and what follows for several of them.

use super::super::aliases::PartAlias;
use super::super::table::Row;
use crate::catalog::{Catalog, Entry, Node, Switch};
use crate::units::{Bandwidth, Quantity};

/// A figure of a part; `design` has all rows of its name.
pub(super) fn figure(part: &PartAlias, parameter: &str, design: &[&Row], catalog: &Catalog) -> Option<f64> {
    match part {
        PartAlias::Node(id) => of_node(catalog.nodes.get(id)?, parameter, design, catalog),
        PartAlias::Switch(id) => of_switch(catalog.switches.get(id)?, parameter),
    }
}

fn of_node(node: &Entry<Node>, parameter: &str, design: &[&Row], catalog: &Catalog) -> Option<f64> {
    let other = |name: &str| {
        let row = design.iter().find(|row| row.text("parameter") == Some(name))?;
        row.number("value").ok().flatten()
    };
    let gpus = f64::from(node.accelerators);
    let links = || catalog.scale_up_links.get(&node.scale_up.kind);
    let both_ways = node.scale_up.bandwidth_per_direction * 2.0;
    match parameter {
        "max_power_kw" => node.max_power.in_unit("kW"),
        "rack_units" => Some(node.rack_units.into()),
        "gpus_per_su" => Some(other("racks_per_su")? * gpus),
        "max_gpus" => Some(other("max_racks")? * gpus),
        "compute_trays_per_rack" => node.trays.map(|trays| trays.compute.into()),
        "nvlink_switch_trays_per_rack" => node.trays.map(|trays| trays.switch.into()),
        // Every GPU has a link to every chip.
        "nvlinks_per_gpu" | "nvlink_switch_chips_per_rack" => Some(links()?.links.into()),
        "nvlink_bw_per_gpu_TBps_bidir" => both_ways.in_unit("TB/s"),
        "nvlink_bw_per_rack_TBps" => (both_ways * gpus).in_unit("TB/s"),
        _ => None,
    }
}

fn of_switch(switch: &Entry<Switch>, parameter: &str) -> Option<f64> {
    let fastest = switch.ports.iter().max_by(|a, b| a.speed.value().total_cmp(&b.speed.value()))?;
    let throughput = (fastest.speed * f64::from(fastest.count)).in_unit("Tbit/s");
    match parameter {
        "ports" => Some(fastest.count.into()),
        "port_gbps" => fastest.speed.in_unit("Gbit/s"),
        "osfp_cages" => Some(switch.cages.into()),
        "rack_units" => Some(switch.rack_units.into()),
        "switching_tbps" => throughput,
        "switching_tbps_bidir" => throughput.map(|one_way| 2.0 * one_way),
        _ => ports_at(switch, parameter),
    }
}

/// "ports_400g".
fn ports_at(switch: &Switch, parameter: &str) -> Option<f64> {
    let speed = parameter.strip_prefix("ports_")?.strip_suffix('g')?;
    let speed = Bandwidth::parse(&format!("{speed} Gbit/s")).ok()?;
    switch.ports_at(speed).map(f64::from)
}
