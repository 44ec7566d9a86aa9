//! One network: its parts for people, as a purchasing list, and for programs.

use serde_json::{Value as Json, json};

use super::csv::grid_csv;
use super::figure::{counted, dollars};
use super::page::{Block, Grid, Page, Section};
use crate::catalog::pricebook::Category;
use crate::evaluate::{PartLine, SideBill};
use crate::scenario::TopologyKind;
use crate::study::FabricQuote;
use crate::topology::{PartKind, Tier, Topology};
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
    let sites = u64::from(topology.site_count());
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
        "cables_beyond_reach_count": quote.cables_beyond_reach(),
        "sites_count": sites,
        "border_routers_count": count(PartKind::Switch, Some(Tier::Site)),
        "long_haul_links_of_a_site_count": topology.sites.map_or(0, |sites| sites.links),
        "site_oversubscription_ratio": topology.sites.map_or(0.0, |sites| sites.oversubscription),
        "node_leaf_cables_count": topology.cables(Tier::Node) * sites,
        "leaf_spine_cables_count": topology.cables(Tier::Leaf) * sites,
        "spine_core_cables_count": topology.cables(Tier::Spine) * sites,
        "leaf_oversubscription_ratio": topology.leaf.oversubscription,
        "spine_oversubscription_ratio": topology.spine.oversubscription,
        "free_node_places_count": u64::from(topology.free_places()) * sites,
        "free_leaf_ports_count": topology.leaf.free_ports() * sites,
        "free_spine_ports_count": topology.spine.free_ports() * sites,
        "free_core_ports_count": topology.core.free_ports() * sites,
        "spare_parts_count": quote.parts.iter().map(|part| part.spares).sum::<u64>(),
        "switch_racks_count": quote.switch_racks,
        "power_w": bare(quote.power()),
        "capex_usd": bare(quote.capex()),
    })
}

/// A network beside the fabric.
fn side_object(network: &SideBill) -> Json {
    let switches = |tier| count_of(network, PartKind::Switch, tier);
    json!({
        "purpose": network.purpose.word(),
        "id": network.id,
        "networks_count": network.tree.networks,
        "ports_count": network.ports,
        "leaf_switches_count": switches(Tier::Leaf),
        "spine_switches_count": switches(Tier::Spine),
        "core_switches_count": switches(Tier::Core),
        "free_leaf_ports_count": network.free_leaf_ports(),
        "power_w": bare(network.draw()),
        "capex_usd": bare(network.price()),
        "parts": network.parts.iter().map(part_object).collect::<Vec<Json>>(),
    })
}

fn count_of(network: &SideBill, kind: PartKind, tier: Tier) -> u64 {
    network.parts.iter().filter(|part| part.kind == kind && part.tier == tier).map(|part| part.count).sum()
}

fn part_object(part: &PartLine) -> Json {
    json!({
        "kind": kind_word(part.kind),
        "id": part.id,
        "name": part.name,
        "tier": part.tier.word(),
        "count": part.count,
        "spares_count": part.spares,
        "power_w": bare(part.power),
        "unit_price_usd": bare(part.unit_price),
        "price_basis": part.basis.word(),
    })
}

/// For programs.
pub fn quote_json(quote: &FabricQuote) -> String {
    let parts: Vec<Json> = quote.parts.iter().map(part_object).collect();
    let side: Vec<Json> = quote.side.iter().map(side_object).collect();
    let lines: Vec<Json> = quote
        .lines
        .iter()
        .map(|line| {
            json!({
                "name": line.name,
                "category": line.category.word(),
                "per": line.per.word(),
                "quantity": line.quantity,
                "unit_amount_usd": bare(line.unit),
                "basis": line.basis.word(),
            })
        })
        .collect();
    let lengths: Vec<Json> = quote
        .lengths
        .iter()
        .map(|class| json!({ "tier": class.tier.word(), "up_to_m": class.meters, "count": class.count }))
        .collect();
    let object = json!({
        "fabric": summary(quote),
        "parts": parts,
        "cable_lengths": lengths,
        "side_networks": side,
        "lines": lines,
    });
    format!("{object:#}\n")
}

/// A line of a purchase: cables by length, all else as counted. The price of a cable does not depend on its length.
struct Line<'a> {
    network: &'static str,
    part: &'a PartLine,
    length: String,
    count: u64,
    spares: u64,
}

fn lines(quote: &FabricQuote) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for part in &quote.parts {
        let line = |length: String, count, spares| Line { network: "fabric", part, length, count, spares };
        let classes: Vec<_> = quote.lengths.iter().filter(|class| class.tier == part.tier).collect();
        let counted: u64 = classes.iter().map(|class| class.count).sum();
        if part.kind == PartKind::Cable && counted == part.count {
            // Spares are of the longest, which reaches everywhere.
            let longest = classes.iter().map(|class| class.meters).max();
            lines.extend(classes.iter().map(|class| {
                let spares = if Some(class.meters) == longest { part.spares } else { 0 };
                line(class.meters.to_string(), class.count, spares)
            }));
        } else {
            lines.push(line(String::new(), part.count, part.spares));
        }
    }
    for network in &quote.side {
        lines.extend(network.parts.iter().map(|part| Line {
            network: network.purpose.word(),
            part,
            length: String::new(),
            count: part.count,
            spares: part.spares,
        }));
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
        "network",
        "name",
        "spares",
        "buy",
    ];
    let mut grid = Grid::new(&header, 4);
    for Line { network, part, length, count, spares } in lines(quote) {
        let buy = count + spares;
        grid.rows.push(vec![
            kind_word(part.kind).to_owned(),
            part.id.clone(),
            part.tier.word().to_owned(),
            length,
            count.to_string(),
            bare(part.unit_price).to_string(),
            bare(part.unit_price * buy as f64).to_string(),
            bare(part.power).to_string(),
            bare(part.power * count as f64).to_string(),
            part.basis.word().to_owned(),
            network.to_owned(),
            part.name.clone(),
            spares.to_string(),
            buy.to_string(),
        ]);
    }
    grid_csv(&grid, bom)
}

/// The networks beside the fabric, in a line each.
fn side_grid(quote: &FabricQuote) -> Grid {
    let mut grid = Grid::new(&["network", "id", "ports", "leaves", "spines", "cores", "free", "price", "power"], 2);
    for network in &quote.side {
        grid.rows.push(vec![
            network.purpose.word().to_owned(),
            if network.tree.networks > 1 {
                format!("{}, {} side by side", network.id, network.tree.networks)
            } else {
                network.id.clone()
            },
            network.ports.to_string(),
            count_of(network, PartKind::Switch, Tier::Leaf).to_string(),
            count_of(network, PartKind::Switch, Tier::Spine).to_string(),
            count_of(network, PartKind::Switch, Tier::Core).to_string(),
            network.free_leaf_ports().to_string(),
            network.price().to_string(),
            network.draw().to_string(),
        ]);
    }
    grid
}

/// Licences, tuning and people.
fn line_grid(quote: &FabricQuote) -> Grid {
    let mut grid = Grid::new(&["line", "paid", "per", "basis", "quantity", "of one", "amount"], 4);
    for line in &quote.lines {
        grid.rows.push(vec![
            line.name.clone(),
            if line.category == Category::Capex { "once" } else { "a year" }.to_owned(),
            line.per.word().to_owned(),
            line.basis.word().to_owned(),
            significant(line.quantity, 6),
            line.unit.to_string(),
            (line.unit * line.quantity).to_string(),
        ]);
    }
    grid
}

/// Cables that are longer than what they are made of carries, where there are any.
fn too_long(quote: &FabricQuote) -> Option<String> {
    let count = quote.cables_beyond_reach();
    let advice = "lay racks closer together, or choose a fabric whose modules reach farther";
    let (cables, longer) = (counted(count, "cable"), if count == 1 { "is" } else { "are" });
    (count > 0).then(|| format!("{cables} {longer} longer than modules or copper reach: {advice}"))
}

/// What joins the sites, and what is assumed of it; none where there is one site.
pub(super) fn between_sites(topology: &Topology, parts: &[PartLine]) -> Option<String> {
    let sites = topology.sites?;
    let of = |kind| parts.iter().find(|part| part.tier == Tier::Site && part.kind == kind);
    let (router, module) = (of(PartKind::Switch)?, of(PartKind::Optic)?);
    Some(format!(
        "Each of {} sites has such a network, {} long-haul links ({}) towards the others over {} of fibre, {} : 1, and {} \
         border routers ({}), which plug into its leaves. That routers of deep buffers carry the traffic is a judgement; the \
         fibre is leased, a line of the price book for each kilometre of a pair; its amplifiers are in no bill here",
        sites.count,
        sites.links,
        module.id,
        sites.distance,
        significant(sites.oversubscription, 3),
        router.count / u64::from(sites.count),
        router.id
    ))
}

/// What published savings of rails without spines are of.
fn rails_alone(topology: &Topology) -> Option<String> {
    (topology.kind == TopologyKind::RailOnly).then(|| {
        "Rails alone save switches, modules and cables above the leaves. Published savings of 38 to 77% (arXiv 2307.12169) \
         are of switches and modules, against three tiers at 30,000 GPUs, the more the more GPUs a scale-up domain joins; \
         network cards, which both need, are in the price here"
            .to_owned()
    })
}

/// For people.
pub fn quote_page(title: String, quote: &FabricQuote) -> Page {
    let topology = &quote.topology;
    let mut grid = Grid::new(&["part", "id", "tier", "up to", "count", "spares", "price each", "price", "power"], 4);
    for Line { part, length, count, spares, .. } in lines(quote).into_iter().filter(|line| line.network == "fabric") {
        let length = if length.is_empty() { String::new() } else { format!("{length} m") };
        grid.rows.push(vec![
            kind_word(part.kind).to_owned(),
            part.id.clone(),
            part.tier.word().to_owned(),
            length,
            count.to_string(),
            spares.to_string(),
            dollars(part.unit_price),
            (part.unit_price * (count + spares) as f64).to_string(),
            (part.power * count as f64).to_string(),
        ]);
    }
    let total = format!("The fabric: {}, {} in use", quote.capex(), quote.power());
    let beside = format!(
        "Networks beside it: {}, {} in use; {} of switches, servers and storage",
        quote.side.iter().map(SideBill::price).sum::<Usd>(),
        quote.side.iter().map(SideBill::draw).sum::<Watts>(),
        counted(quote.switch_racks, "rack")
    );
    let ratio =
        |ratio: f64| if ratio > 0.0 { format!("{} : 1", significant(ratio, 3)) } else { "none above".to_owned() };
    let shape = match topology.kind {
        TopologyKind::Torus => {
            let sides = topology.torus.map(|torus| torus.sides).unwrap_or_default();
            let circuits = topology.torus.is_some_and(|torus| torus.circuits);
            let switches = if circuits { "joined by switches of light" } else { "without switches" };
            format!("A torus of {} x {} x {} nodes, {switches}", sides[0], sides[1], sides[2])
        }
        _ => format!(
            "{}: {}, {} of {}, {}; leaf to spine {}, spine upwards {}",
            topology.kind,
            counted(topology.tiers.into(), "tier"),
            counted(topology.units.into(), "unit"),
            counted(topology.unit_nodes.into(), "node"),
            counted(topology.pods.into(), "pod"),
            ratio(topology.leaf.oversubscription),
            ratio(topology.spine.oversubscription)
        ),
    };
    let free = format!(
        "Free: {} for nodes, {} at leaves, {} at spines, {} at cores",
        counted(topology.free_places().into(), "place"),
        counted(topology.leaf.free_ports(), "port"),
        topology.spine.free_ports(),
        topology.core.free_ports()
    );
    let between = between_sites(topology, &quote.parts);
    let layout = format!(
        "Cable lengths: {} nodes a rack, {} racks a row, {} from rack to rack, {} from row to row, {} within the racks",
        quote.layout.nodes_per_rack,
        quote.layout.racks_per_row,
        quote.layout.pitch,
        quote.layout.row_pitch,
        quote.layout.drop
    );
    let notes = Block::List(
        std::iter::once(shape)
            .chain(rails_alone(topology))
            .chain(between)
            .chain([free, total, beside, layout])
            .chain(too_long(quote))
            .collect(),
    );
    let sections = vec![
        Section { heading: String::new(), blocks: vec![notes] },
        Section::new("Parts of the fabric", Block::Grid(grid)),
        Section::new("Networks beside the fabric", Block::Grid(side_grid(quote))),
        Section::new("Licences, tuning and people", Block::Grid(line_grid(quote))),
    ];
    Page { title, sections }
}
