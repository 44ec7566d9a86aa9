//! One collective, every way to carry it out.

use serde_json::{Map, Value as Json, json};

use super::page::{Block, Grid, Page, Section};
use crate::collectives::{Collective, CollectiveTime, Limit, Rule, algorithm_bandwidth, bus_bandwidth};
use crate::study::CallAnswer;
use crate::units::{Bytes, Quantity, Seconds, significant};

/// What was asked, for the head of the answer.
#[derive(Clone, Debug)]
pub struct CallTitle {
    /// The collective.
    pub kind: Collective,
    /// Its payload.
    pub payload: Bytes,
    /// Node id.
    pub node: String,
    /// Fabric id.
    pub fabric: String,
}

const COLUMNS: [&str; 7] =
    ["name", "library", "time_us", "latency_us", "bandwidth_us", "algbw_gbytes_per_s", "busbw_gbytes_per_s"];

/// Microseconds, and GB/s by the payload and by the busiest link.
struct Figures {
    time: f64,
    latency: f64,
    bandwidth: f64,
    algbw: f64,
    busbw: f64,
}

fn figures(title: &CallTitle, ranks: u32, line: &CollectiveTime) -> Figures {
    let us = |time: Seconds| time.in_unit("us").unwrap_or_default();
    let rate = |rate: crate::units::Bandwidth| rate.in_unit("GB/s").unwrap_or_default();
    let idle = line.time <= Seconds::ZERO;
    let algbw = if idle { 0.0 } else { rate(algorithm_bandwidth(title.payload, line.time)) };
    let busbw = if idle { 0.0 } else { rate(bus_bandwidth(title.kind, ranks, title.payload, line.time)) };
    Figures { time: us(line.time), latency: us(line.latency), bandwidth: us(line.bandwidth), algbw, busbw }
}

/// Why this algorithm, and what the call waits for.
pub fn call_reason(answer: &CallAnswer) -> String {
    let chosen = answer.choice.time.algorithm.name();
    let why = match answer.choice.rule {
        Rule::Fastest => format!("{chosen} is the fastest of those that NCCL considers here"),
        Rule::TunerPrefers => {
            format!(
                "NCCL's tuner prices {chosen} ahead of ring and tree by more than a tenth and takes it, though another would be faster"
            )
        }
        Rule::Restricted => format!("{chosen} is the fastest of those allowed"),
    };
    let limit = match answer.choice.limit {
        Limit::Latency => "starts, steps and hops take longer than the data",
        Limit::ScaleUp => "the links or switches of the scale-up domain bind",
        Limit::Network => "the network cards, and what the topology leaves of them, bind",
        Limit::Host => "the host process that starts the work on all its GPUs binds",
    };
    format!("{why}; {limit}.")
}

fn grid(title: &CallTitle, answer: &CallAnswer) -> Grid {
    let mut grid = Grid::new(&COLUMNS, 2);
    for line in &answer.lines {
        let of = figures(title, answer.group.ranks, line);
        let mut row = vec![line.algorithm.name().to_owned(), line.algorithm.library().word().to_owned()];
        row.extend([of.time, of.latency, of.bandwidth, of.algbw, of.busbw].map(|figure| significant(figure, 4)));
        grid.rows.push(row);
    }
    grid
}

/// For people.
pub fn call_page(title: &CallTitle, answer: &CallAnswer) -> Page {
    let group = &answer.group;
    let of = figures(title, group.ranks, &answer.choice.time);
    let heading =
        format!("{} of {} on {} ranks: {} over {}", title.kind, title.payload, group.ranks, title.node, title.fabric);
    let best = format!(
        "{}: {} us, algbw {} GB/s, busbw {} GB/s",
        answer.choice.time.algorithm.name(),
        significant(of.time, 4),
        significant(of.algbw, 4),
        significant(of.busbw, 4)
    );
    let place = if group.domains() == 1 {
        "All ranks are in one scale-up domain.".to_owned()
    } else {
        format!(
            "{} domains of {} ranks with {} network cards each; the {} is the highest tier on the way; rings keep {} of the cards' payload rate there, all-to-alls {}.",
            group.domains(),
            group.ranks_per_domain,
            significant(group.nics_per_domain, 4),
            answer.tier.word(),
            significant(group.network_share, 3),
            significant(group.all_to_all_share, 3)
        )
    };
    let blocks = vec![Block::List(vec![best, call_reason(answer), place])];
    let all = Section::new("Every algorithm that serves this call", Block::Grid(grid(title, answer)));
    Page { title: heading, sections: vec![Section { heading: String::new(), blocks }, all] }
}

/// For spreadsheets.
pub fn call_grid(title: &CallTitle, answer: &CallAnswer) -> Grid {
    let mut grid = Grid::new(&COLUMNS, 2);
    for line in &answer.lines {
        let of = figures(title, answer.group.ranks, line);
        let mut row = vec![line.algorithm.name().to_owned(), line.algorithm.library().word().to_owned()];
        row.extend([of.time, of.latency, of.bandwidth, of.algbw, of.busbw].map(|figure| figure.to_string()));
        grid.rows.push(row);
    }
    grid
}

/// For programs.
pub fn call_json(title: &CallTitle, answer: &CallAnswer) -> String {
    let group = &answer.group;
    let figures_of = |line: &CollectiveTime| {
        let of = figures(title, group.ranks, line);
        let mut object = Map::new();
        object.insert("name".to_owned(), line.algorithm.name().into());
        object.insert("library".to_owned(), line.algorithm.library().word().into());
        for (key, figure) in COLUMNS[2..].iter().zip([of.time, of.latency, of.bandwidth, of.algbw, of.busbw]) {
            object.insert((*key).to_owned(), figure.into());
        }
        Json::Object(object)
    };
    let rule = match answer.choice.rule {
        Rule::Fastest => "fastest",
        Rule::TunerPrefers => "tuner-prefers",
        Rule::Restricted => "restricted",
    };
    let limit = match answer.choice.limit {
        Limit::Latency => "latency",
        Limit::ScaleUp => "scale-up",
        Limit::Network => "network",
        Limit::Host => "host",
    };
    let object = json!({
        "collective": title.kind.word(),
        "node": title.node,
        "fabric": title.fabric,
        "ranks_count": group.ranks,
        "payload_bytes": title.payload.in_unit("B"),
        "tier": answer.tier.word(),
        "network_share_ratio": group.network_share,
        "all_to_all_share_ratio": group.all_to_all_share,
        "best": answer.choice.time.algorithm.name(),
        "answer": figures_of(&answer.choice.time),
        "rule": rule,
        "limit": limit,
        "reason": call_reason(answer),
        "algorithms": answer.lines.iter().map(figures_of).collect::<Vec<Json>>(),
    });
    format!("{object:#}\n")
}
