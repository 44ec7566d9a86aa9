//! Tenants that are planned for: together, and each by itself.

use serde_json::{Map, Value as Json, json};

use super::figure::{counted, grouped, percent};
use super::notes::full_for_tenants;
use super::number::finite;
use super::page::{Block, Grid};
use crate::evaluate::Evaluation;
use crate::scenario::Limits;
use crate::search::{Alone, Apart, Beside, Deployment, OwnCluster, Plan};
use crate::units::{Usd, significant};
use crate::workload::TenantClass;

/// What tenants take, in sentences and a table.
pub(super) fn tenant_blocks(plan: &Plan, best: &Evaluation) -> Vec<Block> {
    let mut blocks: Vec<Block> = together(best).map(Block::Text).into_iter().collect();
    if let Some(apart) = &plan.apart {
        blocks.extend([Block::Text(alone(apart, best)), Block::Grid(apart_grid(apart))]);
        blocks.push(Block::Text(beside(apart, best)));
        blocks.extend(apart.beside.as_ref().map(|beside| Block::Grid(beside_grid(apart, beside))));
    }
    blocks
}

/// What tenants take in the best way: together, which is planned for, and each with replicas of its own.
fn together(evaluation: &Evaluation) -> Option<String> {
    let (point, rate) = (evaluation.tenants()?, evaluation.serving?.request_rate());
    let by_hour = point.reallocated.map_or_else(String::new, |gpus| {
        format!(", and {} where replicas are given anew by the hour", significant(gpus, 4))
    });
    let note = full_for_tenants(evaluation).map_or_else(String::new, |note| format!(" {note}"));
    Some(format!(
        "Tenants share the replicas, and come to {rate} together at their busiest, each within its limits. With replicas of their own of this kind they would take {} GPUs{by_hour}.{note}",
        significant(point.apart, 4)
    ))
}

/// What sharing replicas saves of what tenants cost apart; less than nothing, where it costs more.
fn saves(cost: Usd, best: &Evaluation) -> f64 {
    1.0 - best.built.costs.total / cost
}

/// The same in words.
fn told(cost: Usd, best: &Evaluation) -> String {
    let saves = saves(cost, best);
    if saves >= 0.0 {
        format!("sharing replicas saves {} of that", percent(saves))
    } else {
        format!("sharing replicas costs {} more, as all then keep the strictest limits of any", percent(-saves))
    }
}

/// Clusters of tenants' own beside what all share.
fn alone(apart: &Apart, best: &Evaluation) -> String {
    let Some((cost, gpus)) = apart.cost().zip(apart.accelerators()) else {
        return "Alone, each on the best nodes of its own within its own limits, not all of them can be served."
            .to_owned();
    };
    format!(
        "Alone, each on the best nodes of its own within its own limits, they would take {} and {cost} over the horizon: {}.",
        counted(gpus, "GPU"),
        told(cost, best)
    )
}

/// Replicas of tenants' own on common nodes beside what all share.
fn beside(apart: &Apart, best: &Evaluation) -> String {
    let node = &best.scenario.cluster.node.id;
    match &apart.beside {
        Some(Beside { accelerators, cost, .. }) => format!(
            "On common nodes, each with replicas or slices of its own that suit it best, they would take {} of {node} and {cost}: {}.",
            counted(*accelerators, "GPU"),
            told(*cost, best)
        ),
        None => format!("On common nodes of {node}, each with replicas of its own, not all of them can be served."),
    }
}

/// A row for each class: the replicas of one of them on common nodes.
fn beside_grid(apart: &Apart, beside: &Beside) -> Grid {
    let mut grid = Grid::new(&["Tenant beside others", "Each replica on", "Replicas", "GPUs", "Of all"], 2);
    for ((place, own), Alone { class, .. }) in (1..).zip(&beside.own).zip(&apart.alone) {
        let on = own.slice.as_ref().map_or_else(|| own.layout.to_string(), |slice| format!("slice {slice}"));
        grid.rows.push(vec![
            of_class(class, place),
            on,
            significant(own.replicas, 4),
            significant(own.accelerators, 4),
            significant(own.accelerators * f64::from(class.count), 4),
        ]);
    }
    grid
}

fn of_class(class: &TenantClass, place: usize) -> String {
    format!("one of {} ({place})", grouped(class.count.into()))
}

/// A row for each class: what one of them takes by itself.
fn apart_grid(apart: &Apart) -> Grid {
    let heads =
        ["Tenant alone", "Asks for", "Within", "Node", "On", "Layout", "GPUs", "Cost over the horizon", "Of all"];
    let mut grid = Grid::new(&heads, 6);
    for (place, Alone { class, limits, own }) in (1..).zip(&apart.alone) {
        let mut row =
            vec![of_class(class, place), format!("{}, {} at its busiest", class.mean, class.peak), within(limits)];
        match own {
            Ok(OwnCluster { nodes, fabric, size, deployment, cost, .. }) => row.extend([
                nodes.clone(),
                fabric.clone(),
                ways(deployment),
                grouped(size.main + size.prefill),
                cost.to_string(),
                (*cost * f64::from(class.count)).to_string(),
            ]),
            Err(why) => row.extend([format!("none: {why}")].into_iter().chain(std::iter::repeat_n(String::new(), 5))),
        }
        grid.rows.push(row);
    }
    grid
}

fn within(limits: &Limits) -> String {
    let named = limits.named().into_iter().filter_map(|(key, limit)| Some(format!("{key} {}", limit?)));
    let all = named.collect::<Vec<_>>().join(", ");
    if all.is_empty() { "any latency".to_owned() } else { all }
}

fn ways(deployment: &Deployment) -> String {
    let own = deployment.prefill.map(|pool| format!("; prefill {}", pool.layout));
    format!("{}{}", deployment.layout, own.unwrap_or_default())
}

/// The same for programs.
pub(super) fn apart_json(apart: &Apart, best: &Evaluation) -> Json {
    let of = |(place, Alone { class, limits, own }): (usize, &Alone)| {
        let limits: Map<String, Json> = limits
            .named()
            .into_iter()
            .filter_map(|(key, limit)| Some((format!("{key}_s"), finite(limit?.value()))))
            .collect();
        let alone = match own {
            Ok(OwnCluster { nodes, fabric, size, deployment, cost, .. }) => json!({
                "node": nodes,
                "fabric": fabric,
                "layout": ways(deployment),
                "accelerators_count": size.main + size.prefill,
                "total_usd": finite(cost.value()),
            }),
            Err(why) => json!({ "why_not": why }),
        };
        let beside = apart.beside.as_ref().and_then(|beside| beside.own.get(place));
        let beside = beside.map(|own| {
            json!({
                "slice": own.slice,
                "layout": own.layout.to_string(),
                "replicas_count": finite(own.replicas),
                "accelerators_count": finite(own.accelerators),
            })
        });
        json!({
            "count": class.count,
            "mean_requests_per_s": finite(class.mean.value()),
            "peak_requests_per_s": finite(class.peak.value()),
            "busiest_hour": class.busiest,
            "limits": limits,
            "alone": alone,
            "beside": beside,
        })
    };
    let of_all = |accelerators: u64, cost: Usd| {
        json!({
            "accelerators_count": accelerators,
            "total_usd": finite(cost.value()),
            "sharing_saves_ratio": finite(saves(cost, best)),
        })
    };
    json!({
        "tenants": apart.alone.iter().enumerate().map(of).collect::<Vec<_>>(),
        "alone": apart.accelerators().zip(apart.cost()).map(|(accelerators, cost)| of_all(accelerators, cost)),
        "beside": apart.beside.as_ref().map(|beside| of_all(beside.accelerators, beside.cost)),
    })
}
