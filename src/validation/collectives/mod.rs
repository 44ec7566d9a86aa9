//! Runs of collectives, as nccl-tests prints them: the row's own ranks, network cards and line rates, timed by the same
//! formulas as a scenario's.
//!
//! - GPUs and fabrics go by the words of the alias table to links and classes of network of the collective constants. A
//!   part that the catalog does not have is no obstacle: rates are the row's, or the maker's for the GPU's links.
//! - `gpus_per_node` is the scale-up domain. A GPU that is alone in its domain drives its own card, however many the
//!   node has.
//! - Published runs are of a few nodes, which a leaf (a rail's switch) holds: nothing is lost above it.
//! - One process drives one GPU unless the row (`gpus_per_process`) or its source says otherwise.
//! - `NCCL_ALGO=...` in `algo_note` restricts the algorithms to those whose names begin with that word.
//!
//! What is compared is `time_us`, out of place.

mod hold_out;
mod run;

pub(super) use hold_out::cases_leaving_out;
pub use run::CollectiveRun;

use super::aliases::Aliases;
use super::outcome::{Fill, Outcome, Prediction};
use super::table::{Holds, Row, Unusable};
use crate::catalog::{Catalog, CollectiveEfficiency};
use crate::collectives::{ALGORITHMS, Algorithm, Collective, Group, Network, ScaleUp, Wires, choose};
use crate::units::{Bandwidth, Bytes, Seconds};

/// Columns that a table of collectives must have.
pub(super) const COLUMNS: &[&str] =
    &["collective", "n_gpus", "gpus_per_node", "gpu", "fabric", "nics_per_node", "nic_gbps", "size_bytes", "time_us"];

/// What the numbers of a table of collectives may be: up to a petabyte, in a tenth of a microsecond to a day.
pub(super) const NUMBERS: &[(&str, Holds)] = &[
    ("n_gpus", Holds::whole(2.0, 1e7)),
    ("gpus_per_node", Holds::COUNT),
    ("size_bytes", Holds::whole(1.0, 1e15)),
    ("time_us", Holds::any(0.1, 86_400e6)),
];

/// Payload from which bandwidth rather than latency decides, in bytes.
const LARGE: f64 = 1_048_576.0;

/// The id, the group and the band of a row: a run is a group, its sizes are its rows.
pub(super) fn name(row: &Row) -> (String, String, Option<&'static str>) {
    let cell = |column| row.text(column).unwrap_or_default().to_owned();
    let group = row.text("group").or(row.text("source")).unwrap_or_default().to_owned();
    let made = || format!("{group} {} {}", cell("collective"), cell("size_bytes"));
    let id = row.text("id").map_or_else(made, str::to_owned);
    let bytes = row.number("size_bytes").ok().flatten();
    let band = bytes.map(|bytes| match (held_out(row), bytes >= LARGE) {
        (false, true) => "payloads of 1 MiB and more",
        (false, false) => "payloads below 1 MiB",
        (true, true) => "held out of the fit, of 1 MiB and more",
        (true, false) => "held out of the fit, below 1 MiB",
    });
    (id, group, band)
}

/// Whether the table holds a row out of fits: the constants have not seen it.
pub(super) fn held_out(row: &Row) -> bool {
    row.text("role") == Some("holdout")
}

/// Predicts one row, which no rule about the data leaves out.
pub(super) fn case(row: &Row, catalog: &Catalog, aliases: &Aliases) -> (Vec<Fill>, Outcome) {
    let mut filled = Vec::new();
    if let Some(check) = row.text("check").filter(|check| *check != "ok") {
        return (filled, Outcome::Excluded(format!("check: {check}")));
    }
    let measured = match row.number("time_us") {
        Ok(Some(measured)) if measured > 0.0 => measured,
        _ => return (filled, Outcome::Excluded("no numeric value of time_us".to_owned())),
    };
    let set = catalog.collective_efficiency.get("nccl");
    let usable = row.usable(NUMBERS);
    let predicted = usable.and_then(|()| RowCall::of(row, catalog, aliases, &mut filled)).and_then(|call| {
        let set = set.ok_or_else(|| unusable("the catalog has no collective constants"))?;
        call.prediction(set, measured)
    });
    (filled, predicted.map_or_else(|Unusable(reason)| Outcome::Skipped(reason), Outcome::Predicted))
}

/// What a row ran, on what.
#[derive(Clone, Debug)]
struct RowCall {
    kind: Collective,
    payload: Bytes,
    group: Group,
    links: ScaleUpLinks,
    /// Class and line rate of the network cards, where the call crosses the network.
    network: Option<(String, Bandwidth)>,
    /// Whether that network grants credits.
    credits: bool,
    allowed: Option<Vec<Algorithm>>,
    gpus_per_process: u32,
}

/// The links of a row's GPU.
#[derive(Clone, Debug)]
struct ScaleUpLinks {
    kind: String,
    line_rate: Bandwidth,
    peer_rate: Bandwidth,
    in_network_reduction: bool,
}

impl RowCall {
    fn of(row: &Row, catalog: &Catalog, aliases: &Aliases, filled: &mut Vec<Fill>) -> Result<Self, Unusable> {
        let set = catalog
            .collective_efficiency
            .get("nccl")
            .ok_or_else(|| unusable("the catalog has no collective constants"))?;
        let kind = kind(row)?;
        let ranks = row.needed_count("n_gpus")?;
        let ranks_per_domain = row.needed_count("gpus_per_node")?.min(ranks);
        let mut group = Group::filling(ranks, ranks_per_domain, 0.0);
        let links = scale_up(row, set, aliases, filled)?;
        let network = if group.domains() > 1 {
            let nics = row.needed_count("nics_per_node")?;
            group.nics_per_domain = if ranks_per_domain == 1 { 1.0 } else { f64::from(nics) };
            Some(network(row, set, aliases)?)
        } else {
            None
        };
        let credits = network.as_ref().is_none_or(|(class, _)| {
            catalog.fabrics.iter().any(|fabric| fabric.class == *class && fabric.transport.grants_credits())
        });
        let allowed = allowed(row);
        let bytes =
            row.number("size_bytes")?.filter(|bytes| *bytes > 0.0).ok_or_else(|| unusable("size_bytes is missing"))?;
        let gpus_per_process = gpus_per_process(row, aliases, filled)?;
        Ok(Self { kind, payload: Bytes::new(bytes), group, links, network, credits, allowed, gpus_per_process })
    }

    /// Its wires with a set of constants.
    fn wires(&self, set: &CollectiveEfficiency) -> Option<Wires> {
        let links = set.scale_up.get(&self.links.kind)?;
        let scale_up = ScaleUp::typical(self.links.line_rate, links, self.links.in_network_reduction);
        let scale_up = ScaleUp { peer_rate: self.links.peer_rate, ..scale_up };
        let network = match &self.network {
            Some((class, line_rate)) => Network {
                line_rate: *line_rate,
                efficiency: set.network.get(class)?.value,
                switch_latency: Seconds::ZERO,
            },
            None => Network::default(),
        };
        let wires = Wires::typical(set, scale_up, network);
        Some(if self.credits { wires } else { wires.paced() })
    }

    /// Its time on wires.
    fn time_on(&self, wires: &Wires) -> Option<Seconds> {
        let allowed = self.allowed.as_deref();
        let choice = choose(self.kind, self.payload, &self.group, wires, self.gpus_per_process, allowed)?;
        Some(choice.time.time)
    }

    /// Its time with a set of constants.
    fn time(&self, set: &CollectiveEfficiency) -> Option<Seconds> {
        self.time_on(&self.wires(set)?)
    }

    fn prediction(&self, set: &CollectiveEfficiency, measured: f64) -> Result<Prediction, Unusable> {
        let time = self.time(set).ok_or_else(|| unusable("none of the allowed algorithms serves this collective"))?;
        Ok(Prediction {
            metric: "time_us".to_owned(),
            measured,
            predicted: time / Seconds::new(1e-6),
            convention: None,
            gpus: Some(self.group.ranks),
        })
    }
}

fn unusable(reason: &str) -> Unusable {
    Unusable(reason.to_owned())
}

fn kind(row: &Row) -> Result<Collective, Unusable> {
    let text = row.needed("collective")?;
    let word = |text: &str| text.to_lowercase().replace(['_', '-'], "");
    let found = Collective::ALL.iter().find(|kind| word(kind.word()) == word(text));
    found.copied().ok_or_else(|| Unusable(format!("collective \"{text}\" is unknown")))
}

fn scale_up(
    row: &Row,
    set: &CollectiveEfficiency,
    aliases: &Aliases,
    filled: &mut Vec<Fill>,
) -> Result<ScaleUpLinks, Unusable> {
    let gpu = row.needed("gpu")?;
    let links = aliases.links(gpu).ok_or_else(|| Unusable(format!("links of gpu \"{gpu}\" are unknown")))?;
    if !set.scale_up.contains_key(&links.kind) {
        return Err(Unusable(format!("no collective constants for links \"{}\"", links.kind)));
    }
    if let Some(because) = &links.because {
        filled.push(Fill {
            field: "gpu",
            value: format!("{}, {}", links.kind, links.line_rate),
            rule: because.clone(),
        });
    }
    Ok(ScaleUpLinks {
        kind: links.kind.clone(),
        line_rate: links.line_rate,
        peer_rate: links.peer_rate,
        in_network_reduction: links.in_network_reduction,
    })
}

/// Class and line rate of a row's network cards.
fn network(row: &Row, set: &CollectiveEfficiency, aliases: &Aliases) -> Result<(String, Bandwidth), Unusable> {
    let fabric = row.needed("fabric")?;
    let class = set.network.contains_key(fabric).then_some(fabric).or_else(|| aliases.network_class(fabric));
    let class = class.ok_or_else(|| Unusable(format!("class of fabric \"{fabric}\" is unknown")))?;
    if !set.network.contains_key(class) {
        return Err(Unusable(format!("no collective constants for \"{class}\"")));
    }
    let gbps = row.number("nic_gbps")?.filter(|gbps| *gbps > 0.0).ok_or_else(|| unusable("nic_gbps is missing"))?;
    Ok((class.to_owned(), Bandwidth::new(gbps * 1e9 / 8.0)))
}

fn gpus_per_process(row: &Row, aliases: &Aliases, filled: &mut Vec<Fill>) -> Result<u32, Unusable> {
    if let Some(gpus) = row.count("gpus_per_process")? {
        return Ok(gpus);
    }
    let source = row.text("source").unwrap_or_default();
    let Some((gpus, because)) = aliases.gpus_per_process(source) else { return Ok(1) };
    filled.push(Fill { field: "gpus_per_process", value: gpus.to_string(), rule: because.clone() });
    Ok(*gpus)
}

/// The algorithms that the row's environment leaves, where it restricts them.
fn allowed(row: &Row) -> Option<Vec<Algorithm>> {
    let note = row.text("algo_note")?.to_lowercase();
    let (_, after) = note.split_once("nccl_algo=")?;
    let word: String = after.chars().take_while(char::is_ascii_alphanumeric).collect();
    let begins = |algorithm: &Algorithm| algorithm.name().split('-').next() == Some(word.as_str());
    Some(ALGORITHMS.iter().copied().filter(begins).collect())
}
