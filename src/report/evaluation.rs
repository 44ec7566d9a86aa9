//! One evaluation as a page.

use super::cliffs::{manager_ports, rounded_spares, unused_storage};
use super::cost_lines::{lines, sources};
use super::fabric::between_sites;
use super::figure::{Group, Metric, Value, counted, grouped, percent};
use super::layout_search;
use super::metrics::{metric, of_group};
use super::page::{Block, Grid, Page, Section};
use super::settings::{Origin, Setting, settings};
use super::stages::stage_grid;
use super::tenants::{billed, tenant_grid};
use super::uneven_experts::uneven_experts;
use super::ways_search;
use super::work_words::work_in_words;
use crate::catalog::Entry;
use crate::evaluate::{Bases, BatchBound, Evaluation, MissedLimit, PartLine};
use crate::memory::serving::CacheFormats;
use crate::provenance::Source;
use crate::scenario::{Arrivals, Limits, SharedBy};
use crate::topology::PartKind;
use crate::units::{RequestRate, Seconds, significant};

/// The figures that answer the question, in order, with labels that stand alone; the groups have the rest.
pub const HEADLINES: &[(&str, &str)] = &[
    ("Memory of a GPU", "memory.total_bytes"),
    ("Fits", "memory.fits"),
    ("Iteration", "training.iteration_s"),
    ("Communication in it", "training.exposed_communication_s"),
    ("MFU, causal attention", "training.mfu_ratio"),
    ("Tokens a second", "training.tokens_per_s"),
    ("Run without failures", "training.duration_days"),
    ("Replicas", "serving.replicas_count"),
    ("Time to first token", "serving.ttft_s"),
    ("Time between tokens", "serving.tpot_s"),
    ("Requests a second", "serving.requests_per_s"),
    ("Answers' tokens a second a GPU", "serving.output_tokens_per_s_per_gpu"),
    ("Limits kept", "serving.limits_kept"),
    ("Requests at once, at most", "serving.max_concurrency_count"),
    ("Goodput", "goodput.ratio"),
    ("Run with failures", "training.effective_days"),
    ("Price of the fabric", "fabric.capex_usd"),
    ("IT power, provisioned", "facility.it_kw"),
    ("Facility power, provisioned", "facility.total_kw"),
    ("Capex", "cost.capex_usd"),
    ("Opex a year", "cost.opex_per_year_usd"),
    ("A GPU for an hour, owned", "cost.usd_per_gpu_hour"),
    ("Cost of the run", "cost.usd_per_run"),
    ("Million tokens, prompts and answers", "cost.usd_per_mtok_blended"),
    ("Million tokens of prompts", "cost.usd_per_mtok_input"),
    ("Million cached tokens of prompts", "cost.usd_per_mtok_cached"),
    ("Million tokens of answers", "cost.usd_per_mtok_output"),
];

/// The headlines with their figures.
pub(super) fn headlines() -> impl Iterator<Item = (&'static str, &'static Metric)> {
    HEADLINES.iter().filter_map(|(label, key)| Some((*label, metric(key)?)))
}

/// The figures of a group with their own labels.
pub(super) fn labelled(group: Group) -> impl Iterator<Item = (&'static str, &'static Metric)> {
    of_group(group).map(|metric| (metric.label, metric))
}

/// An evaluation as a page.
pub fn evaluation_page(evaluation: &Evaluation) -> Page {
    let mut sections = vec![Section {
        heading: "In short".to_owned(),
        blocks: work_in_words(evaluation)
            .into_iter()
            .chain(missed(evaluation))
            .map(Block::Text)
            .chain([Block::Grid(figures(headlines(), evaluation))])
            .collect(),
    }];
    sections.extend(layout_search::section(evaluation));
    sections.extend(ways_search::section(evaluation));
    for &group in Group::ALL {
        let grid = figures(labelled(group), evaluation);
        if grid.rows.is_empty() {
            continue;
        }
        let mut blocks = vec![Block::Grid(grid)];
        match group {
            Group::Training => blocks.extend(evaluation.run.as_ref().and_then(stage_grid).map(Block::Grid)),
            Group::Serving => {
                blocks.extend(tenant_grid(evaluation).map(Block::Grid));
                blocks.extend(billed(evaluation).map(Block::Text));
            }
            Group::Fabric => {
                blocks.push(Block::Grid(parts(&evaluation.built.parts)));
                for network in evaluation.built.side.iter().filter(|network| !network.parts.is_empty()) {
                    let beside = format!(
                        "{} network, {}: {}, {}, {}, {}.",
                        network.title(),
                        network.id,
                        counted(network.ports, "port"),
                        counted(network.tree.switches(), "switch"),
                        network.price(),
                        network.draw()
                    );
                    blocks.push(Block::Text(beside));
                }
            }
            Group::Cost => {
                blocks.push(Block::Grid(lines(evaluation)));
                blocks.push(Block::Text("What stands behind the lines:".to_owned()));
                blocks.push(Block::List(sources(std::iter::once(evaluation))));
            }
            _ => {}
        }
        sections.push(Section { heading: group.title().to_owned(), blocks });
    }
    let settings = settings(evaluation);
    sections.push(Section::new("Settings", Block::Grid(setting_grid(&settings))));
    sections.push(basis(&[("Weakest", evaluation)]));
    let mut notes = notes(&[("", evaluation)]);
    // That is told in short.
    notes.retain(|note| Some(note) != missed(evaluation).as_ref());
    sections.push(Section::new("Notes", Block::List(notes)));
    Page { title: evaluation.scenario.title.clone(), sections }
}

/// Figures and their values; parts that are nothing are left out.
fn figures(metrics: impl Iterator<Item = (&'static str, &'static Metric)>, evaluation: &Evaluation) -> Grid {
    let mut grid = Grid::new(&["Figure", "Value"], 1);
    for (label, metric) in metrics {
        if let Some(value) = metric.value(evaluation).filter(|value| !is_nothing(*value)) {
            grid.rows.push(vec![label.to_owned(), metric.text(value)]);
        }
    }
    grid
}

/// Whether a value says that there is none of a thing.
pub(super) fn is_nothing(value: Value) -> bool {
    value.number() == Some(0.0)
}

fn parts(parts: &[PartLine]) -> Grid {
    let mut grid = Grid::new(&["Part", "Tier", "Id", "Basis", "Count", "Spares", "Price", "All", "Power"], 4);
    for part in parts {
        grid.rows.push(vec![
            kind_word(part.kind).to_owned(),
            part.tier.word().to_owned(),
            part.id.clone(),
            part.basis.to_string(),
            grouped(part.count),
            grouped(part.spares),
            part.unit_price.to_string(),
            part.price().to_string(),
            part.draw().to_string(),
        ]);
    }
    grid
}

/// What people call a kind of part.
pub(super) const fn kind_word(kind: PartKind) -> &'static str {
    match kind {
        PartKind::Nic => "network card",
        PartKind::Switch => "switch",
        PartKind::Optic => "optical module",
        PartKind::Cable => "cable",
        PartKind::ManagerServer => "fabric manager",
    }
}

/// Keys and values, the defaults marked.
pub(super) fn setting_grid(settings: &[Setting]) -> Grid {
    let mut grid = Grid::new(&["Key", "Value", ""], 3);
    for setting in settings {
        let origin = match setting.origin {
            Origin::Given => "",
            Origin::Default => "by default",
            Origin::Book => "by the price book",
            Origin::Found => "found",
            Origin::Agents => "of the agents",
            Origin::Tenants => "of the tenants",
        };
        grid.rows.push(vec![setting.key.to_owned(), setting.value.clone(), origin.to_owned()]);
    }
    grid
}

/// More inputs than this are counted, not named.
const MOST_INPUTS: usize = 8;

/// The weakest basis behind each group, in a column for each evaluation, and the inputs that have it.
pub(super) fn basis(columns: &[(&str, &Evaluation)]) -> Section {
    let heads: Vec<&str> = ["Figures of"].into_iter().chain(columns.iter().map(|(head, _)| *head)).collect();
    let mut grid = Grid::new(&heads, heads.len());
    let mut inputs = Vec::new();
    for &group in Group::ALL {
        if columns.iter().all(|(_, evaluation)| group.inputs(&evaluation.evidence()).is_empty()) {
            continue;
        }
        let bases = columns.iter().map(|(_, evaluation)| group.basis(&evaluation.bases()).to_string());
        grid.rows.push([group.word().to_owned()].into_iter().chain(bases).collect());
        let mut names: Vec<String> = Vec::new();
        for (_, evaluation) in columns {
            for name in weakest_inputs(group, evaluation) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let more = names.len().saturating_sub(MOST_INPUTS);
        names.truncate(MOST_INPUTS);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        inputs.push(format!("{}: {}{rest}", group.word(), names.join(", ")));
    }
    let sentence = "The inputs that are as weak as that:".to_owned();
    Section { heading: "Basis".to_owned(), blocks: vec![Block::Grid(grid), Block::Text(sentence), Block::List(inputs)] }
}

/// The names of a group's inputs that have its weakest basis.
fn weakest_inputs(group: Group, evaluation: &Evaluation) -> Vec<String> {
    let evidence = evaluation.evidence();
    let weakest = group.basis(&Bases::from(&evidence));
    let weak = group.inputs(&evidence).iter().filter(|input| input.basis == weakest);
    weak.map(|input| input.name.clone()).collect()
}

/// What a reader must know to use the figures of some evaluations by their names; what holds for several is said once, and of
/// what does not hold for all it is said for which.
pub(super) fn notes(evaluations: &[(&str, &Evaluation)]) -> Vec<String> {
    let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, evaluation) in evaluations {
        for note in notes_of(evaluation) {
            match notes.iter_mut().find(|(known, _)| *known == note) {
                Some((_, names)) => names.push(name),
                None => notes.push((note, vec![name])),
            }
        }
    }
    let told = |(note, names): (String, Vec<&str>)| {
        let said = names.len() == evaluations.len() || matches!(names[..], [one] if note.contains(one));
        if said { note } else { format!("For {}: {note}", names.join(", ")) }
    };
    notes.into_iter().map(told).collect()
}

fn notes_of(evaluation: &Evaluation) -> Vec<String> {
    let scenario = &evaluation.scenario;
    let utilisation = scenario.training.as_ref().zip(evaluation.point).map(|(training, point)| {
        format!(
            "MFU and HFU are over the dense {} peak of {}, {}; attention is causal, half of full. The other convention, full attention, stands beside.",
            training.job.precision, scenario.cluster.accelerator.name, point.step.peak
        )
    });
    let mut notes: Vec<String> = utilisation.into_iter().collect();
    notes.extend([
        price_note(evaluation),
        "Bases, best first: datasheet, quote, measured, secondary (a text that restates one of these), derived, assumed. A figure is no better than the weakest of its inputs.".to_owned(),
    ]);
    notes.extend(rounded_spares(evaluation));
    notes.extend(unused_storage(evaluation));
    notes.extend(manager_ports(evaluation));
    notes.extend(padding(evaluation));
    notes.extend(uncalibrated(evaluation));
    notes.extend(shared(evaluation));
    notes.extend(full_for_tenants(evaluation));
    notes.extend(never_kept_for_tenants(evaluation));
    notes.extend(uneven_experts(evaluation));
    notes.extend(missed(evaluation));
    notes.extend(answered_by_prefill(evaluation));
    notes.extend(in_step(evaluation));
    notes.extend(by_default(evaluation));
    notes.extend(passed_over(evaluation));
    notes.extend(unsettled(evaluation));
    notes.extend(overrun(evaluation));
    notes.extend(crowded_out(evaluation));
    notes.extend(oversubscription(evaluation));
    notes.extend(unreduced(evaluation));
    notes.extend(between_sites(&evaluation.built.topology, &evaluation.built.parts).map(|note| format!("{note}.")));
    notes.extend(misses(evaluation));
    notes
}

/// Answers that have no time between tokens.
fn answered_by_prefill(evaluation: &Evaluation) -> Option<String> {
    let request = evaluation.serving?.request;
    (!request.decodes()).then(|| {
        "Answers are of one token, which the prefill makes: nothing is ever in decode, there is no time between tokens, and all that is paid is for prompts.".to_owned()
    })
}

/// Tenants of whom a class has a limit that is kept at no rate.
fn never_kept_for_tenants(evaluation: &Evaluation) -> Option<String> {
    evaluation.scenario.serving.as_ref()?.features.tenants.as_ref()?;
    let never = evaluation.serving.is_some() && evaluation.tenants().is_none();
    never.then(|| {
        "What tenants take is not told: a limit of one of their classes is kept at no rate (`serving.tenants`)."
            .to_owned()
    })
}

/// A vocabulary that is padded for its tables to split.
fn padding(evaluation: &Evaluation) -> Option<String> {
    let (serving, point) = (evaluation.scenario.serving.as_ref()?, evaluation.serving?);
    point.layout.padding(&serving.model).map(|padding| format!("{padding}, and counted."))
}

/// A kind of deployment that no measurement covers, and those near it that were measured.
pub(super) fn uncalibrated(evaluation: &Evaluation) -> Option<String> {
    let (serving, bands) = (evaluation.scenario.serving.as_ref()?, evaluation.serving?.bands?);
    if !bands.uncalibrated {
        return None;
    }
    let cluster = &evaluation.scenario.cluster;
    let (engine, generation) = (serving.engine.word(), &cluster.accelerator.generation);
    let pools = |pools: bool| if pools { ", in pools" } else { "" };
    let own = cluster.prefill.as_ref().map(|own| format!(", prefill's on {}", own.accelerator.generation));
    let own = own.filter(|_| cluster.nodes_of_prefill().accelerator.generation != *generation).unwrap_or_default();
    let pooled = pools(serving.prefill.is_some());
    let cache = CacheFormats::of(&serving.model).keys_values;
    let formats = format!("weights in {} and a cache in {}", serving.weights.kind(), cache.kind());
    let kind = format!("{engine} on {generation} with {} models{pooled}{own}, {formats}", bands.architecture);
    let near = serving.efficiency.coverage.iter().filter(|cell| {
        let same = [cell.engine == engine, cell.generation == *generation, cell.architecture == bands.architecture];
        same.into_iter().filter(|same| *same).count() >= 2
    });
    let named: Vec<String> = near
        .map(|cell| {
            let formats =
                if cell.weights.is_empty() { String::new() } else { format!(" ({})", cell.weights.join("/")) };
            format!("{} on {} with {}{formats}{}", cell.engine, cell.generation, cell.architecture, pools(cell.pools))
        })
        .collect();
    let features: Vec<&str> = serving.features.unmeasured().collect();
    let measured = if features.is_empty() { String::new() } else { format!(" with {}", features.join(" and ")) };
    Some(format!(
        "uncalibrated: no published measurement covers {kind}{measured}; low and high ends are as far off again as the nearest kinds are missed. Measured are: {}.",
        if named.is_empty() { "none near".to_owned() } else { named.join(", ") }
    ))
}

/// Tenants whose replicas are reckoned as full as they can be.
pub(super) fn full_for_tenants(evaluation: &Evaluation) -> Option<String> {
    let serving = evaluation.scenario.serving.as_ref()?;
    (serving.features.tenants.is_some() && serving.limits == Limits::default()).then(|| {
        "No latency has a limit, so that tenants have as few replicas as serve them at any: with `serving.limits` of P95 or P99 and requests at a rate they have as many as keep those.".to_owned()
    })
}

/// What others on the same accelerator do to a replica.
fn shared(evaluation: &Evaluation) -> Option<String> {
    let slice = evaluation.scenario.serving.as_ref()?.features.slice.as_ref()?;
    let all = slice.instances;
    let apart = match slice.shared? {
        SharedBy::Mps => {
            "by MPS multiprocessors are limited by percentage and memory by size, bandwidth and caches are contended for, and a fault of one ends all"
        }
        SharedBy::Time => {
            "a time slice is of all of it and switching costs, memory is divided and not protected, and each has a context of its own"
        }
    };
    (all > 1).then(|| {
        format!("Times are those of a replica while all {all} on its GPU are at work: {apart}. Where the others are idle, it is up to {all} times as fast. Profiles of MIG are apart in both.")
    })
}

/// An engine's own default that bounds what runs at once.
fn by_default(evaluation: &Evaluation) -> Option<String> {
    let (serving, point) = (evaluation.scenario.serving.as_ref()?, evaluation.serving?);
    (point.batch_bound == BatchBound::Sequences && serving.features.max_num_seqs.is_none()).then(|| {
        format!(
            "{} runs {} requests at once by default, in each attention group; `serving.max_num_seqs` sets another number.",
            serving.engine, point.at_once
        )
    })
}

/// Requests that wait because their adapter has no place, while others are taken in past them.
fn passed_over(evaluation: &Evaluation) -> Option<String> {
    let (serving, point) = (evaluation.scenario.serving.as_ref()?, evaluation.serving?);
    let (set, found) = (serving.features.adapters.as_ref()?, point.adapters?);
    let resident = f64::from(set.resident);
    let told = match serving.arrivals {
        Arrivals::Rate(_) => !serving.terms.replay,
        Arrivals::Concurrency(_) => serving.prefill.is_none(),
        Arrivals::Most => false,
    };
    let waits = if told { "That is in first tokens" } else { "That wait is in no latency here" };
    let most = point.most * (point.replicas as f64 / (point.replicas + point.spares) as f64);
    let starved = if point.request_rate() > most * (1.0 + 1e-9) {
        let most = most.told_as_most();
        format!(" With so many requests some never do: of those that come by themselves, {most} are served at most.")
    } else {
        String::new()
    };
    (found.sequences.is_infinite() && found.different > resident + 0.5).then(|| {
        format!(
            "Those in decode would bring {:.0} different adapters to an engine that keeps {resident}: it fills up with requests for those that it has, and the others wait until one of these has none left.{starved} {waits}; with `serving.adapters.resident` at the former, or with adapter-aware routing, they do not.",
            found.different
        )
    })
}

/// A benchmark's requests that fill steps as those that come by themselves do not.
fn in_step(evaluation: &Evaluation) -> Option<String> {
    let (point, most) = (evaluation.serving?, evaluation.most_served()?.told_as_most());
    if passed_over(evaluation).is_some() {
        return None;
    }
    (point.batch_bound != BatchBound::Rate && point.request_rate() > most * 1.01).then(|| {
        format!(
            "A benchmark's requests of one length move in step, so that their prompts fill steps of prefill: {} end. Of those that come by themselves, {most} are served at most.",
            point.request_rate()
        )
    })
}

/// A queue so near to what is served at most that it does not settle within a day.
///
/// It settles with a time constant of `4 W / (1 - load)` at a mean wait of W (M/M/1 near its whole load; Kleinrock, Queueing
/// Systems II, 1976).
fn unsettled(evaluation: &Evaluation) -> Option<String> {
    const DAY: Seconds = Seconds::new(86_400.0);
    let (serving, point) = (evaluation.scenario.serving.as_ref()?, evaluation.serving?);
    let Arrivals::Rate(_) = serving.arrivals else { return None };
    if passed_over(evaluation).is_some() {
        return None;
    }
    let of_all = point.replicas as f64 / (point.replicas + point.spares) as f64;
    let most = point.most * of_all;
    let free = 1.0 - point.request_rate() / most;
    let settled = point.state.queue * (4.0 / free);
    (free > 0.0 && settled > DAY).then(|| {
        format!(
            "Requests come at nearly the most that is served, {}: waits grow for about {settled} before they are as told.",
            most.told_as_most()
        )
    })
}

/// Limits of latencies that are missed, and by how much.
fn missed(evaluation: &Evaluation) -> Option<String> {
    let point = evaluation.serving?;
    let missed: Vec<MissedLimit> = evaluation.missed_limits().collect();
    let first = missed.first()?;
    let most = served_within(evaluation)?;
    let most = if most > RequestRate::ZERO { format!("{most} at most") } else { "no number of requests".to_owned() };
    // The mean of what others make a first token wait for, where that is more than both what is its own and other waits.
    let state = &point.state;
    let late = first.key.starts_with("ttft") && state.links > state.queue && state.links > state.prefill;
    let links = if late {
        format!(" On average first tokens wait for the links between the pools for {}.", state.links)
    } else {
        String::new()
    };
    let missed: Vec<String> = missed.iter().map(MissedLimit::to_string).collect();
    Some(format!("{}. With all limits kept, {most} would be served.{links}", missed.join("; ")))
}

/// The most that the replicas that serve, without those to spare, serve with limits kept.
fn served_within(evaluation: &Evaluation) -> Option<RequestRate> {
    let point = evaluation.serving?;
    let at_work = point.replicas as f64 / (point.replicas + point.spares) as f64;
    Some((evaluation.most_served()? * at_work).told_as_most())
}

/// Links of tiers that have no time for all that is found there, or for all that falls to them.
fn overrun(evaluation: &Evaluation) -> Vec<String> {
    let caching = |evaluation: &Evaluation| {
        let tiers = &evaluation.scenario.serving.as_ref()?.cache.as_ref()?.tiers;
        Some((tiers.clone(), evaluation.serving?.caching?.reused))
    };
    let Some((tiers, reused)) = caching(evaluation) else { return Vec::new() };
    let mut notes = Vec::new();
    if reused.crowded > 0.0 {
        notes.push(format!(
            "The links of a tier are overrun: {} of requests find their prefix in it and have it computed again, which is sooner than the wait for loads before theirs.",
            percent(reused.crowded)
        ));
    }
    notes.extend(tiers.iter().zip(reused.written).filter(|(_, written)| *written > 1.0).map(|(tier, written)| {
        let times = significant(written, 3);
        format!("{times} times as much falls to {} as it takes in: it keeps a part of that, and hits take longer to build up than computed.", tier.entry.id)
    }));
    notes
}

/// Agents' sessions that memory does not hold, though the scenario says that they find their caches.
fn crowded_out(evaluation: &Evaluation) -> Option<String> {
    let (agents, point) = (evaluation.scenario.agents.as_ref()?, evaluation.agents.as_ref()?);
    let (held, said) = (evaluation.serving?.resident?, agents.task.reuse.session);
    // Of so few that lose theirs nothing is said.
    (held.session.get() < said.get() * 0.999).then(|| {
        format!(
            "{} sessions wait, and the memory that running requests leave has room for {}, of which those that have ended take a part: {} of further steps find theirs, where `agents.session_hit` says {}, and the rest is computed again. Tiers beyond are `serving.cache.tiers`.",
            significant(point.load.idle_sessions, 4),
            significant(held.fit, 4),
            percent(held.session.get()),
            percent(said.get())
        )
    })
}

/// A network that is to reduce in its switches, which it cannot.
fn unreduced(evaluation: &Evaluation) -> Option<String> {
    let (training, fabric) = (evaluation.scenario.training.as_ref()?, &evaluation.scenario.cluster.fabric.entry);
    (training.software.communication.sharp && !fabric.in_network_reduction)
        .then(|| format!("software.sharp has no effect on {}: its switches do not reduce.", fabric.id))
}

/// Where the network is built with another oversubscription than was asked for, or a figure says nothing.
fn oversubscription(evaluation: &Evaluation) -> Vec<String> {
    let (asked, built) = (&evaluation.scenario.cluster.topology, &evaluation.built.topology);
    let fabric = &evaluation.scenario.cluster.fabric.entry.id;
    let tiers = [
        ("leaf to spine", asked.leaf_oversubscription, built.leaf.oversubscription),
        ("spine to core", asked.spine_oversubscription, built.spine.oversubscription),
    ];
    let note = |(tier, asked, built): (&str, f64, f64)| {
        // One is full bandwidth, which is met wherever it has a meaning.
        if asked <= 1.0 || (built / asked - 1.0).abs() < 1e-3 {
            return None;
        }
        let asked = significant(asked, 4);
        Some(if built > 0.0 {
            let built = significant(built, 4);
            format!(
                "Oversubscription from {tier} on {fabric}: {asked} was asked for, and the switches make it {built}."
            )
        } else {
            format!(
                "Oversubscription from {tier} on {fabric}: {asked} has no effect, because nothing is above that tier."
            )
        })
    };
    tiers.into_iter().filter_map(note).collect()
}

/// The price book and how old its prices of this cluster's parts are.
pub(super) fn price_note(evaluation: &Evaluation) -> String {
    let cluster = &evaluation.scenario.cluster;
    let built = &evaluation.built;
    let parts = built
        .parts
        .iter()
        .chain(built.side.iter().flat_map(|network| &network.parts))
        .map(|part| part.id.as_str())
        .chain(cluster.kinds_of_nodes().map(|nodes| nodes.node.id.as_str()))
        .chain([cluster.storage.id.as_str()]);
    let dates: Vec<&str> =
        parts.filter_map(|part| cluster.prices.price(part)).map(|price| price.evidence.date.as_str()).collect();
    let (first, last) = (dates.iter().min(), dates.iter().max());
    let span = match (first, last) {
        (Some(first), Some(last)) if first == last => format!(" of {first}"),
        (Some(first), Some(last)) => format!(" of {first} to {last}"),
        _ => String::new(),
    };
    let rates: Vec<&str> = cluster.prices.exchange.union(&cluster.site.exchange).map(String::as_str).collect();
    let exchange = if rates.is_empty() { String::new() } else { format!(" Exchange: {}.", rates.join("; ")) };
    format!(
        "Prices: {} ({}), in US dollars{span}; amounts are those of that time.{exchange}",
        cluster.prices.name, cluster.prices.id
    )
}

/// How well the constants of step time, and of serving, met what they were fitted to.
fn misses(evaluation: &Evaluation) -> Vec<String> {
    fn fitted<T>(what: &str, constants: &Entry<T>) -> Vec<String> {
        let of = |source: &Source| source.note.as_ref().map(|note| format!("{what}, {}: {note}", constants.name));
        constants.sources.iter().filter(|source| source.covers("generation")).filter_map(of).collect()
    }
    let scenario = &evaluation.scenario;
    let trained = scenario.training.as_ref().map(|training| fitted("Step time", &training.efficiency_source));
    let served = scenario.serving.as_ref().map(|serving| fitted("Serving", &serving.efficiency));
    let asked = "How far each published run is missed: `clusterplan validate`.".to_owned();
    trained.into_iter().chain(served).flatten().chain([asked]).collect()
}
