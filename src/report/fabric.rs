//! One network: its parts for people, as a purchasing list, and for programs.

use serde_json::{Value as Json, json};

use super::csv::grid_csv;
use super::page::{Block, Grid, Page, Section};
use crate::scenario::TopologyKind;
use crate::study::FabricQuote;
use crate::topology::{PartKind, Tier};
use crate::units::{Quantity, Usd, Watts, significant};

const fn kind_word(kind: PartKind) -> &'static str {
    match kind {
        PartKind::Nic => "nic",
        PartKind::Switch => "switch",
        PartKind::Optic => "optic",
        PartKind::Cable => "cable",
        PartKind::ManagerServer => "manager",
    }
}

/// A figure in the base unit; bare numbers are what files carry.
fn bare(quantity: impl Quantity) -> f64 {
    quantity.base()
}

/// The totals.
fn summary(quote: &FabricQuote) -> Json {
    let topology = &quote.topology;
    let count = |kind, tier| quote.count(kind, tier);
    json!({
        "topology": topology.kind.word(),
        "nodes_count": quote.nodes,
        "tiers_count": topology.tiers,
        "units_count": topology.units,
        "pods_count": topology.pods,
        "planes_count": topology.spec.planes,
        "leaf_switches_count": count(PartKind::Switch, Some(Tier::Leaf)),
        "spine_switches_count": count(PartKind::Switch, Some(Tier::Spine)),
        "core_switches_count": count(PartKind::Switch, Some(Tier::Core)),
        "nics_count": count(PartKind::Nic, None),
        "optics_count": count(PartKind::Optic, None),
        "cables_count": count(PartKind::Cable, None),
        "node_leaf_cables_count": topology.cables(Tier::Node),
        "leaf_spine_cables_count": topology.cables(Tier::Leaf),
        "spine_core_cables_count": topology.cables(Tier::Spine),
        "leaf_oversubscription_ratio": topology.leaf.oversubscription,
        "spine_oversubscription_ratio": topology.spine.oversubscription,
        "free_node_places_count": topology.free_places(),
        "free_leaf_ports_count": topology.leaf.free_ports(),
        "free_spine_ports_count": topology.spine.free_ports(),
        "free_core_ports_count": topology.core.free_ports(),
        "switch_racks_count": quote.switch_racks,
        "power_w": bare(quote.power()),
        "capex_usd": bare(quote.capex()),
    })
}

/// For programs.
pub fn quote_json(quote: &FabricQuote) -> String {
    let parts: Vec<Json> = quote
        .parts
        .iter()
        .map(|part| {
            json!({
                "kind": kind_word(part.kind),
                "id": part.id,
                "tier": part.tier.word(),
                "count": part.count,
                "power_w": bare(part.power),
                "unit_price_usd": bare(part.unit_price),
                "price_basis": part.basis.word(),
            })
        })
        .collect();
    let lengths: Vec<Json> = quote
        .lengths
        .iter()
        .map(|class| json!({ "tier": class.tier.word(), "up_to_m": class.meters, "count": class.count }))
        .collect();
    let object = json!({ "fabric": summary(quote), "parts": parts, "cable_lengths": lengths });
    format!("{object:#}\n")
}

/// The lines of a purchase: cables by length, all else as counted. The price of a cable does not depend on its length.
struct Line {
    kind: &'static str,
    id: String,
    tier: &'static str,
    length: String,
    count: u64,
    power: Watts,
    price: Usd,
    basis: &'static str,
}

fn lines(quote: &FabricQuote) -> Vec<Line> {
    let mut lines = Vec::new();
    for part in &quote.parts {
        let line = |length: String, count: u64| Line {
            kind: kind_word(part.kind),
            id: part.id.clone(),
            tier: part.tier.word(),
            length,
            count,
            power: part.power,
            price: part.unit_price,
            basis: part.basis.word(),
        };
        let classes: Vec<_> = quote.lengths.iter().filter(|class| class.tier == part.tier).collect();
        let counted: u64 = classes.iter().map(|class| class.count).sum();
        if part.kind == PartKind::Cable && counted == part.count {
            lines.extend(classes.iter().map(|class| line(class.meters.to_string(), class.count)));
        } else {
            lines.push(line(String::new(), part.count));
        }
    }
    lines
}

/// The purchasing list.
pub fn quote_csv(quote: &FabricQuote, bom: bool) -> Vec<u8> {
    let header = [
        "kind",
        "id",
        "tier",
        "up_to_m",
        "count",
        "unit_price_usd",
        "price_usd",
        "unit_power_w",
        "power_w",
        "price_basis",
    ];
    let mut grid = Grid::new(&header, 4);
    for line in lines(quote) {
        let count = line.count as f64;
        grid.rows.push(vec![
            line.kind.to_owned(),
            line.id,
            line.tier.to_owned(),
            line.length,
            line.count.to_string(),
            bare(line.price).to_string(),
            bare(line.price * count).to_string(),
            bare(line.power).to_string(),
            bare(line.power * count).to_string(),
            line.basis.to_owned(),
        ]);
    }
    grid_csv(&grid, bom)
}

/// For people.
pub fn quote_page(title: String, quote: &FabricQuote) -> Page {
    let topology = &quote.topology;
    let mut grid = Grid::new(&["part", "id", "tier", "up to", "count", "price each", "price", "power"], 4);
    for line in lines(quote) {
        let count = line.count as f64;
        let length = if line.length.is_empty() { String::new() } else { format!("{} m", line.length) };
        grid.rows.push(vec![
            line.kind.to_owned(),
            line.id,
            line.tier.to_owned(),
            length,
            line.count.to_string(),
            line.price.to_string(),
            (line.price * count).to_string(),
            (line.power * count).to_string(),
        ]);
    }
    let total = format!("{} in all, {} in use; {} racks of switches", quote.capex(), quote.power(), quote.switch_racks);
    let ratio =
        |ratio: f64| if ratio > 0.0 { format!("{} : 1", significant(ratio, 3)) } else { "none above".to_owned() };
    let shape = match topology.kind {
        TopologyKind::Torus => {
            let sides = topology.torus.map(|torus| torus.sides).unwrap_or_default();
            format!("A torus of {} x {} x {} nodes, without switches", sides[0], sides[1], sides[2])
        }
        _ => format!(
            "{}: {} tiers, {} units of {} nodes, {} pods; leaf to spine {}, spine upwards {}",
            topology.kind,
            topology.tiers,
            topology.units,
            topology.unit_nodes,
            topology.pods,
            ratio(topology.leaf.oversubscription),
            ratio(topology.spine.oversubscription)
        ),
    };
    let free = format!(
        "Free: {} places for nodes, {} ports at leaves, {} at spines, {} at cores",
        topology.free_places(),
        topology.leaf.free_ports(),
        topology.spine.free_ports(),
        topology.core.free_ports()
    );
    let layout = format!(
        "Cable lengths: {} nodes a rack, {} racks a row, {} from rack to rack, {} from row to row, {} within the racks",
        quote.layout.nodes_per_rack,
        quote.layout.racks_per_row,
        quote.layout.pitch,
        quote.layout.row_pitch,
        quote.layout.drop
    );
    let notes = Block::List(vec![shape, free, total, layout]);
    let sections =
        vec![Section { heading: String::new(), blocks: vec![notes] }, Section::new("Parts", Block::Grid(grid))];
    Page { title, sections }
}
