//! One collective, every way to carry it out.

use serde_json::{Map, Value as Json, json};

use super::figure::counted;
use super::page::{Block, Grid, Page, Section};
use crate::collectives::{
    Algorithm, Collective, CollectiveTime, IntraNode, Library, Limit, Rule, algorithm_bandwidth, bus_bandwidth,
};
use crate::study::{CallAnswer, CallLine, Extrapolation, Staged, TimeRange};
use crate::units::{Bandwidth, Bytes, Quantity, Seconds, significant};

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
    /// The way between accelerators of a node.
    pub path: IntraNode,
    /// What goes on beside it.
    pub beside: Option<Beside>,
}

/// Another collective at the same time through the same cards.
#[derive(Clone, Debug)]
pub struct Beside {
    /// The other.
    pub kind: Collective,
    /// Its payload.
    pub payload: Bytes,
    /// How long each takes, this one first.
    pub times: [Seconds; 2],
}

const COLUMNS: [&str; 9] = [
    "name",
    "library",
    "time_us",
    "time_low_us",
    "time_high_us",
    "latency_us",
    "bandwidth_us",
    "algbw_gbytes_per_s",
    "busbw_gbytes_per_s",
];

fn us(time: Seconds) -> f64 {
    time.in_unit("us").unwrap_or_default()
}

/// Microseconds, and GB/s by the payload and by the busiest link, in the order of the columns.
fn figures(title: &CallTitle, ranks: u32, line: &CollectiveTime, range: TimeRange) -> [f64; 7] {
    let rate = |rate: Bandwidth| rate.in_unit("GB/s").unwrap_or_default();
    let idle = line.time <= Seconds::ZERO;
    let algbw = if idle { 0.0 } else { rate(algorithm_bandwidth(title.payload, line.time)) };
    let busbw = if idle { 0.0 } else { rate(bus_bandwidth(title.kind, ranks, title.payload, line.time)) };
    [us(line.time), us(range.low), us(range.high), us(line.latency), us(line.bandwidth), algbw, busbw]
}

/// What a reader must know of a time.
fn note(extrapolated: Extrapolation) -> &'static str {
    match extrapolated {
        Extrapolation::Racks => {
            "an NVLS tree over more than three racks is an extrapolation: the fitted runs end there, and published ones of 20 racks are slower than the form, which the high end allows for"
        }
        Extrapolation::Ranks => {
            "the fitted runs end at 192 ranks: beyond, the time is an extrapolation, which the high end allows for"
        }
    }
}

/// What is left of cards whose data is staged.
fn staged(staged: Staged) -> String {
    let rate = |rate: Bandwidth| significant(rate.in_unit("GB/s").unwrap_or_default(), 3);
    let together = if staged.cards > 1.0 {
        format!(", {} of a host at once {} GB/s each", significant(staged.cards, 3), rate(staged.each))
    } else {
        String::new()
    };
    format!(
        "Data is staged through the hosts' memory: one card alone reaches {} GB/s of {}{together}, by what the memory of \
         measured hosts passes; others may pass more or less.",
        rate(staged.alone),
        rate(staged.line_rate)
    )
}

/// The notes on an answer.
fn notes(answer: &CallAnswer) -> Vec<String> {
    let chosen = answer.choice.time.algorithm;
    let mut notes = Vec::new();
    if let Some(extrapolated) = Extrapolation::of(chosen, &answer.group) {
        notes.push(format!("{}: {}.", chosen.name(), note(extrapolated)));
    }
    if let Some(collisions) = &answer.collisions {
        notes.push(format!(
            "A hash throws {} flows a card at {} uplinks of a leaf: at full load the fullest is expected to hold {}, which leaves {} of the uplinks' rate.",
            significant(collisions.flows_per_nic, 3),
            collisions.links,
            significant(collisions.fullest, 3),
            significant(collisions.share(), 3)
        ));
    }
    // Rings of nodes that stand side by side enter and leave a leaf once, so that flows seldom meet on its uplinks.
    let seldom = answer.collisions.is_some_and(|collisions| collisions.share() < 0.95 * answer.group.network_share);
    if seldom && answer.group.network_share > 0.9 {
        notes.push(
            "Between nodes side by side hardly a ring leaves its leaf, so little of that is lost here; --scattered shows a job \
             whose nodes lie anywhere."
                .to_owned(),
        );
    }
    notes.extend(answer.staged.map(staged));
    if !answer.sharp && answer.libraries.iter().any(|line| line.time.algorithm.library() == Library::Sharp) {
        notes.push("nccl+sharp is what the fabric's switches could do: it is off unless asked for.".to_owned());
    }
    notes
}

/// Why this algorithm, and what the call waits for.
pub fn call_reason(answer: &CallAnswer) -> String {
    if answer.choice.time.time <= Seconds::ZERO {
        return "Nothing has to be moved, which takes no time.".to_owned();
    }
    let chosen = answer.choice.time.algorithm.name();
    let why = match answer.choice.rule {
        Rule::Fastest if answer.torus.is_some() => {
            format!("{chosen} is the fastest of those that serve this call on a torus")
        }
        Rule::Fastest => format!("{chosen} is the fastest of those that NCCL considers here"),
        Rule::TunerPrefers if answer.choice.time.algorithm != Algorithm::NvlsTree => format!(
            "NCCL's tuner drops what it prices behind nvlstree, though some of that would be faster; {chosen} is the fastest of the rest"
        ),
        Rule::TunerPrefers => {
            format!(
                "NCCL's tuner prices {chosen} ahead of ring and tree by more than a tenth and takes it, though another would be faster"
            )
        }
        Rule::Restricted => format!("{chosen} is the fastest of those allowed"),
    };
    let limit = match answer.choice.limit {
        Limit::Latency => "starts, steps and hops take longer than the data",
        Limit::ScaleUp if answer.torus.is_some() => "the links of the torus bind",
        Limit::ScaleUp => "the links or switches of the scale-up domain bind",
        Limit::Network => "the network cards, and what the topology leaves of them, bind",
        Limit::Host => "the host process that starts the work on all its GPUs binds",
    };
    format!("{why}; {limit}.")
}

/// Lines as a grid; `digits` rounds for people.
fn grid(title: &CallTitle, ranks: u32, lines: &[CallLine], digits: Option<usize>) -> Grid {
    let mut grid = Grid::new(&COLUMNS, 2);
    let write = |figure: f64| digits.map_or(figure.to_string(), |digits| significant(figure, digits));
    for line in lines {
        let algorithm = line.time.algorithm;
        let mut row = vec![algorithm.name().to_owned(), algorithm.library().word().to_owned()];
        row.extend(figures(title, ranks, &line.time, line.range).map(write));
        grid.rows.push(row);
    }
    grid
}

/// For people.
pub fn call_page(title: &CallTitle, answer: &CallAnswer) -> Page {
    let group = &answer.group;
    let [time, low, high, _, _, algbw, busbw] = figures(title, group.ranks, &answer.choice.time, answer.range);
    let heading =
        format!("{} of {} on {} ranks: {} over {}", title.kind, title.payload, group.ranks, title.node, title.fabric);
    // The range of that algorithm alone is in the table; where the choice turns on what is uncertain, the call's is another.
    let own = answer.lines.iter().find(|line| line.time.algorithm == answer.choice.time.algorithm);
    let turns = own.is_some_and(|line| line.range != answer.range);
    let best = format!(
        "{}: {} us ({} to {}{}), algbw {} GB/s, busbw {} GB/s",
        answer.choice.time.algorithm.name(),
        significant(time, 4),
        significant(low, 3),
        significant(high, 3),
        if turns { " by whichever algorithm is then taken" } else { "" },
        significant(algbw, 4),
        significant(busbw, 4)
    );
    let place = if let (1, Some([long, middle, short])) = (group.domains(), answer.torus) {
        format!(
            "All ranks reach each other by their own links, a torus of {long} x {middle} x {short} accelerators: no network \
             card is on the way."
        )
    } else if group.domains() == 1 {
        format!("All ranks reach each other by the {} path of their nodes: no network card is on the way.", title.path)
    } else {
        let last = if group.fewest_per_domain < group.ranks_per_domain {
            let (ranks, cards) = (group.fewest_per_domain, group.fewest_nics());
            format!(
                ", but for the last: {} with {} card{}, and the others wait for it",
                counted(ranks.into(), "rank"),
                significant(cards, 4),
                if cards > 1.0 { "s" } else { "" },
            )
        } else {
            String::new()
        };
        format!(
            "{} domains of {} with {} network card{} each{last}; the {} is the highest tier on the way; rings keep {} of the cards' payload rate there, all-to-alls {}.",
            group.domains(),
            counted(group.ranks_per_domain.into(), "rank"),
            significant(group.nics_per_domain, 4),
            if group.nics_per_domain > 1.0 { "s" } else { "" },
            answer.tier.word(),
            significant(group.network_share, 3),
            significant(group.all_to_all_share, 3)
        )
    };
    let mut list = vec![best, call_reason(answer), place];
    list.extend(notes(answer));
    list.extend(title.beside.as_ref().map(|beside| {
        format!(
            "Together with {} of {} through the same cards: {} us for this, {} us for the other.",
            beside.kind,
            beside.payload,
            significant(us(beside.times[0]), 4),
            significant(us(beside.times[1]), 4)
        )
    }));
    let people = |lines: &[CallLine]| Block::Grid(grid(title, group.ranks, lines, Some(4)));
    let libraries = Section::new("The libraries side by side", people(&answer.libraries));
    let all = Section::new("Every algorithm that serves this call", people(&answer.lines));
    let top = Section { heading: String::new(), blocks: vec![Block::List(list)] };
    Page { title: heading, sections: vec![top, libraries, all] }
}

/// For spreadsheets.
pub fn call_grid(title: &CallTitle, answer: &CallAnswer) -> Grid {
    grid(title, answer.group.ranks, &answer.lines, None)
}

/// For programs.
pub fn call_json(title: &CallTitle, answer: &CallAnswer) -> String {
    let group = &answer.group;
    let figures_of = |line: &CollectiveTime, range: TimeRange| {
        let mut object = Map::new();
        object.insert("name".to_owned(), line.algorithm.name().into());
        object.insert("library".to_owned(), line.algorithm.library().word().into());
        for (key, figure) in COLUMNS[2..].iter().zip(figures(title, group.ranks, line, range)) {
            object.insert((*key).to_owned(), figure.into());
        }
        object
    };
    let lines = |lines: &[CallLine]| -> Vec<Json> {
        let one = |line: &CallLine| {
            let mut object = figures_of(&line.time, line.range);
            object.insert("extrapolated".to_owned(), line.extrapolated.is_some().into());
            Json::Object(object)
        };
        lines.iter().map(one).collect()
    };
    let beside = title.beside.as_ref().map(|beside| {
        json!({
            "collective": beside.kind.word(),
            "payload_bytes": beside.payload.in_unit("B"),
            "time_us": us(beside.times[0]),
            "other_time_us": us(beside.times[1]),
        })
    });
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
        "answer": figures_of(&answer.choice.time, answer.range),
        "rule": rule,
        "limit": limit,
        "reason": call_reason(answer),
        "collisions": answer.collisions.as_ref().map(|collisions| json!({
            "flows_per_nic_count": collisions.flows_per_nic,
            "uplinks_count": collisions.links,
            "fullest_flows_count": collisions.fullest,
            "share_ratio": collisions.share(),
        })),
        "notes": notes(answer),
        "intra_node": title.path.word(),
        "beside": beside,
        "libraries": lines(&answer.libraries),
        "algorithms": lines(&answer.lines),
    });
    format!("{object:#}\n")
}
