//! Published networks: from the size that a design states to the switches and cables that it was published with. Counts
//! are exact or wrong.
//!
//! The rows of one name are one design. Its size (`nodes`, else `gpus`), its pods (`gpus_per_pod`) and the oversubscription
//! between them (`agg_oversubscription`) are inputs; all else is predicted, `nodes` and `gpus` each from the other. What a
//! part says of itself is held against the catalog. A figure is compared at the digits that it was printed with.

mod beside;
mod stated;

use super::aliases::{Aliases, Design};
use super::outcome::{Fill, Outcome, Prediction};
use super::table::{Row, Unusable};
use crate::catalog::Catalog;
use crate::topology::{ByTier, FatTreeSpec, Oversubscription, Tier, Tiers, Topology, TopologyError};

/// Columns that a table of networks must have.
pub(super) const COLUMNS: &[&str] = &["name", "parameter", "value"];
/// GPUs of a node in every design here, and its NICs and rails.
const PER_NODE: u32 = 8;

/// Figures of one design that predictions start from.
struct Inputs {
    nodes: Option<u32>,
    gpus: Option<u32>,
    pod: Option<u32>,
    servers_per_rack: Option<u32>,
    oversubscription: f64,
}

/// Predicts one row; `design` has all rows of its name.
pub(super) fn case(row: &Row, design: &[&Row], catalog: &Catalog, aliases: &Aliases) -> (Vec<Fill>, Outcome) {
    let value = row.text("value").unwrap_or_default();
    let Some(measured) = ratio(value) else {
        let why = if is_range(value) { "a range over designs, and not one figure" } else { "no numeric value" };
        return (Vec::new(), Outcome::Excluded(format!("{why}: \"{value}\"")));
    };
    let mut filled = Vec::new();
    let outcome = match predict(row, design, catalog, aliases, &mut filled) {
        Ok(predicted) => Outcome::Predicted(Prediction {
            metric: row.text("parameter").unwrap_or_default().to_owned(),
            measured,
            predicted: as_printed(predicted, value),
            convention: None,
            gpus: None,
        }),
        Err(Unusable(reason)) => Outcome::Skipped(reason),
    };
    (filled, outcome)
}

/// "38-77".
fn is_range(value: &str) -> bool {
    value.split_once('-').is_some_and(|(low, high)| low.parse::<f64>().is_ok() && high.parse::<f64>().is_ok())
}

/// A figure at the digits that another one was printed with.
fn as_printed(figure: f64, printed: &str) -> f64 {
    let decimals = printed.trim().split_once('.').map_or(0, |(_, decimals)| decimals.len());
    format!("{figure:.decimals$}").parse().unwrap_or(figure)
}

/// Why a published figure is none that follows from parts.
fn explained(parameter: &str) -> Option<&'static str> {
    Some(match parameter {
        "max_su" | "max_racks" => "how much its maker supports, less than the switches' ports allow",
        "su_tdp_mw" => "its maker's round figure for racks, switches and management together",
        "racks_per_su"
        | "servers_per_rack"
        | "gpus_per_pod"
        | "island_gpus"
        | "oversubscription"
        | "agg_oversubscription"
        | "agg_oversubscription_later"
        | "inter_island_oversubscription" => INPUT,
        _ if parameter.starts_with("mfu") => "a figure of a training run, which --domain training holds",
        _ => return None,
    })
}

const INPUT: &str = "it is an input of the design";

/// A number, or the larger side of "1:7" and "7:1".
fn ratio(text: &str) -> Option<f64> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    match text.split_once(':') {
        Some((one, other)) => Some(number(one)?.max(number(other)?)),
        None => number(text),
    }
}

fn predict(
    row: &Row,
    design: &[&Row],
    catalog: &Catalog,
    aliases: &Aliases,
    filled: &mut Vec<Fill>,
) -> Result<f64, Unusable> {
    let (name, parameter) = (row.needed("name")?, row.needed("parameter")?);
    if let Some(reason) = explained(parameter) {
        return Err(Unusable(reason.to_owned()));
    }
    if let Some(part) = aliases.part(name) {
        return stated::figure(part, parameter, design, catalog)
            .ok_or_else(|| Unusable(format!("the catalog has no such figure of {name}")));
    }
    let built =
        aliases.design(name).ok_or_else(|| Unusable(format!("no design and no part is known as \"{name}\"")))?;
    let radix = match built.radix {
        Some(radix) => radix,
        None => name
            .split_once("k=")
            .and_then(|(_, ports)| ports.parse().ok())
            .ok_or_else(|| Unusable("the name has no k=".to_owned()))?,
    };
    if let Some(full) = full_tree(parameter, radix) {
        return full;
    }
    let inputs = Inputs::read(design)?;
    let nodes = match (inputs.nodes, inputs.gpus) {
        (Some(nodes), _) => nodes,
        (None, Some(gpus)) => gpus / PER_NODE,
        (None, None) => {
            let nodes = built.nodes.ok_or_else(|| Unusable(format!("{name} has no size")))?;
            filled.push(Fill {
                field: "nodes",
                value: nodes.to_string(),
                rule: "the design was published without a size".to_owned(),
            });
            nodes
        }
    };
    let cannot = |error: TopologyError| Unusable(format!("it cannot be built: {error}"));
    let topology = || Topology::fat_tree(&spec(built, radix, nodes, &inputs)).map_err(cannot);
    let is_input = || Unusable(INPUT.to_owned());
    if let Some(figure) = beside::figure(built, parameter, nodes, &topology()?, catalog, filled) {
        return figure;
    }
    Ok(match parameter {
        "nodes" => f64::from(inputs.gpus.ok_or_else(is_input)? / PER_NODE),
        "gpus" => f64::from(inputs.nodes.ok_or_else(is_input)? * PER_NODE),
        "gpus_per_rack" => f64::from(inputs.servers_per_rack.ok_or_else(is_input)? * PER_NODE),
        "racks_per_pod" => {
            let rack = inputs.servers_per_rack.ok_or_else(is_input)? * PER_NODE;
            f64::from(inputs.pod.ok_or_else(is_input)?.div_ceil(rack))
        }
        _ => figure(&topology()?, parameter).ok_or_else(|| Unusable("no count of a topology".to_owned()))? as f64,
    })
}

impl Inputs {
    fn read(design: &[&Row]) -> Result<Self, Unusable> {
        let of = |parameter: &str| design.iter().find(|row| row.text("parameter") == Some(parameter));
        let count = |parameter: &str| of(parameter).map_or(Ok(None), |row| row.count("value"));
        let oversubscription = of("agg_oversubscription").and_then(|row| ratio(row.text("value")?));
        Ok(Self {
            nodes: count("nodes")?,
            gpus: count("gpus")?,
            pod: count("gpus_per_pod")?,
            servers_per_rack: count("servers_per_rack")?,
            oversubscription: oversubscription.unwrap_or(1.0),
        })
    }
}

fn spec(design: &Design, radix: u32, nodes: u32, inputs: &Inputs) -> FatTreeSpec {
    FatTreeSpec {
        nodes,
        nics_per_node: PER_NODE,
        rails: PER_NODE,
        radix: ByTier { leaf: radix, spine: radix, core: radix },
        planes: design.planes,
        tiers: Tiers::Auto,
        pod_nodes: inputs.pod.map(|gpus| gpus / PER_NODE),
        oversubscription: Oversubscription { leaf: 1.0, spine: inputs.oversubscription },
        managers: design.managers,
        border_ports: 0,
        server_ports: 0,
    }
}

/// A counted figure, by the word that publishers use for it.
fn figure(topology: &Topology, parameter: &str) -> Option<u64> {
    Some(match parameter {
        "leaf_switches" => topology.leaf.switches(),
        "spine_switches" => topology.spine.switches(),
        "core_switches" | "core_switches_MQM9790" => topology.core.switches(),
        "compute_and_ufm_cables" | "node_leaf_cables" => topology.cables(Tier::Node),
        "spine_leaf_cables" | "leaf_spine_cables" => topology.cables(Tier::Leaf),
        "spine_core_cables" => topology.cables(Tier::Spine),
        "nodes_per_su" | "servers_per_tor_group" => topology.unit_nodes.into(),
        "rails_per_su" => topology.unit_leaves.into(),
        "nodes_displaced_by_ufm" => topology.spec.manager_places().into(),
        "scalable_units" => topology.units.into(),
        "tiers" => topology.tiers.into(),
        "pods" => topology.pods.into(),
        _ => return None,
    })
}

/// Figures of the largest non-blocking tree of switches with so many ports: how far it reaches, and its switches.
fn full_tree(parameter: &str, radix: u32) -> Option<Result<f64, Unusable>> {
    let tiers = match parameter {
        _ if parameter.contains("_2tier_") => Tiers::Two,
        _ if parameter.contains("_3tier_") => Tiers::Three,
        _ => return None,
    };
    let open = Inputs { nodes: None, gpus: None, pod: None, servers_per_rack: None, oversubscription: 1.0 };
    let bare = Design { radix: None, planes: 1, ..Design::default() };
    let tree = |nodes: u32| Topology::fat_tree(&FatTreeSpec { tiers, ..spec(&bare, radix, nodes, &open) });
    // Far more nodes than any tree reaches: the refusal says how many it does.
    let reach = match tree(5_000_000) {
        Err(TopologyError::TooManyNodes { reach, .. }) => u32::try_from(reach).unwrap_or(u32::MAX),
        _ => return Some(Err(Unusable("no limit was found".to_owned()))),
    };
    Some(match tree(reach) {
        _ if parameter.starts_with("endpoints") => Ok(f64::from(reach) * f64::from(PER_NODE)),
        Ok(full) => Ok((full.leaf.switches() + full.spine.switches() + full.core.switches()) as f64),
        Err(error) => Err(Unusable(error.to_string())),
    })
}
