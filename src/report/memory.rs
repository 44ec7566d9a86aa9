//! Memory of a training layout or of a serving replica: components, what fits and by how much.

use serde_json::{Map, Value as Json, json};

use super::csv::objects_csv;
use super::figure::{counted, grouped};
use super::json::pretty;
use super::number::whole_or_finite;
use super::page::{Block, Grid, Page, Section};
use crate::memory::serving::{Engine, Fits, ServingLayout};
use crate::memory::{MemoryFootprint, TrainingFit};
use crate::units::{Bytes, Quantity, significant};

/// What was asked of serving, and the answer.
#[derive(Clone, Debug)]
pub struct ServingMemory {
    /// The model.
    pub model: String,
    /// The accelerator.
    pub accelerator: String,
    /// The layout of a replica.
    pub layout: ServingLayout,
    /// The engine.
    pub engine: Engine,
    /// Tokens of a request at its longest, and of the prefix that requests share.
    pub tokens: u64,
    /// The prefix.
    pub shared_prefix: u64,
    /// Requests at once that were asked for.
    pub wanted: u64,
    /// What a process can have of an accelerator.
    pub usable: Bytes,
    /// What fits, and the engine takes at once.
    pub fits: Fits,
    /// Requests that there is room for, however many the engine takes.
    pub room: u64,
    /// The longest sequence that fits alone.
    pub longest: u64,
    /// What fits with windows cached whole, and in pages of one size: requests.
    pub whole_windows: u64,
    /// The same in pages of one size.
    pub unified_pages: u64,
    /// The fewest tensor-parallel ranks on which a request fits.
    pub fewest: Option<u32>,
    /// Entries of the vocabulary with padding, and what is said of it where there is any.
    pub vocabulary: (u64, Option<String>),
}

impl ServingMemory {
    /// Whether all requests that were asked for fit at once.
    pub fn is_enough(&self) -> bool {
        self.fits.requests >= self.wanted
    }

    fn footprint(&self) -> MemoryFootprint {
        MemoryFootprint {
            weights: self.fits.weights,
            activations: self.fits.activations,
            kv_cache: self.fits.pool,
            workspace: self.fits.outside,
            ..MemoryFootprint::default()
        }
    }
}

fn bare(bytes: Bytes) -> Json {
    whole_or_finite(bytes.base())
}

fn components(footprint: &MemoryFootprint) -> [(&'static str, &'static str, Bytes); 6] {
    [
        ("weights_bytes", "weights", footprint.weights),
        ("gradients_bytes", "gradients", footprint.gradients),
        ("optimizer_bytes", "optimizer states", footprint.optimizer),
        ("activations_bytes", "activations", footprint.activations),
        ("kv_cache_bytes", "cache", footprint.kv_cache),
        ("workspace_bytes", "workspace", footprint.workspace),
    ]
}

fn memory_object(footprint: &MemoryFootprint, usable: Bytes, fits: bool) -> Map<String, Json> {
    let mut object: Map<String, Json> =
        components(footprint).into_iter().map(|(key, _, bytes)| (key.to_owned(), bare(bytes))).collect();
    object.insert("total_bytes".to_owned(), bare(footprint.total()));
    object.insert("usable_bytes".to_owned(), bare(usable));
    if footprint.offloaded > Bytes::ZERO {
        object.insert("offloaded_bytes".to_owned(), bare(footprint.offloaded));
    }
    let headroom = usable.base() - footprint.total().base();
    object.insert("headroom_bytes".to_owned(), headroom.into());
    object.insert("fits".to_owned(), fits.into());
    object
}

/// The memory of a training layout, for programs.
pub fn training_memory_json(title: &str, fit: &TrainingFit) -> String {
    pretty(&training_object(title, fit))
}

/// The same for a spreadsheet, a line a stage.
pub fn training_memory_csv(title: &str, fit: &TrainingFit, bom: bool) -> Vec<u8> {
    let whole = training_object(title, fit);
    let line = |stage: &Json| {
        let mut line = whole.clone();
        line["stage"] = stage["stage"].clone();
        line["memory"] = stage.clone();
        flat(&line)
    };
    objects_csv(&whole["stages"].as_array().into_iter().flatten().map(line).collect::<Vec<_>>(), bom)
}

/// An object's figures, those of its memory under the keys that they have elsewhere; lists are left out.
fn flat(object: &Json) -> Map<String, Json> {
    let mut line = Map::new();
    for (key, value) in object.as_object().into_iter().flatten() {
        match value {
            Json::Object(memory) => {
                let own = memory.iter().filter(|(name, _)| *name != "stage");
                line.extend(own.map(|(name, value)| (format!("{key}.{name}"), value.clone())));
            }
            Json::Array(_) => {}
            value => _ = line.insert(key.clone(), value.clone()),
        }
    }
    line
}

fn training_object(title: &str, fit: &TrainingFit) -> Json {
    let stages: Vec<Json> = fit
        .stages
        .iter()
        .enumerate()
        .map(|(stage, footprint)| {
            let mut object = memory_object(footprint, fit.usable, footprint.fits(fit.usable));
            object.insert("stage".to_owned(), stage.into());
            Json::Object(object)
        })
        .collect();
    json!({
        "title": title,
        "memory": memory_object(&fit.worst(), fit.usable, fit.fits()),
        "worst_stage": fit.worst_stage,
        "stages": stages,
        "largest_micro_batch_count": fit.largest_micro_batch,
        "longest_sequence_tokens_count": fit.longest_sequence,
        "fewest_accelerators_count": fit.fewest.map(|layout| layout.accelerators()),
    })
}

/// The memory of a serving replica, for programs; of pools also that of a prefill worker.
pub fn serving_memory_json(replica: &ServingMemory, worker: Option<&ServingMemory>) -> String {
    let mut object = serving_object(replica);
    if let Some(worker) = worker {
        object["prefill"] = serving_object(worker);
    }
    pretty(&object)
}

/// The same for a spreadsheet, a line each.
pub fn serving_memory_csv(replica: &ServingMemory, worker: Option<&ServingMemory>, bom: bool) -> Vec<u8> {
    let line = |pool: &str, answer: &ServingMemory| {
        let mut object = Map::from_iter([("pool".to_owned(), pool.into())]);
        object.extend(flat(&serving_object(answer)));
        object
    };
    match worker {
        Some(worker) => objects_csv(&[line("decode", replica), line("prefill", worker)], bom),
        None => objects_csv(&[flat(&serving_object(replica))], bom),
    }
}

fn serving_object(answer: &ServingMemory) -> Json {
    let Fits { request, prefix, requests, tokens, .. } = answer.fits;
    let longest = answer.longest;
    let footprint = answer.footprint();
    json!({
        "model": answer.model,
        "accelerator": answer.accelerator,
        "accelerators_count": answer.layout.ranks(),
        "memory": memory_object(&footprint, answer.usable, answer.is_enough()),
        "request_tokens_count": answer.tokens,
        "request_bytes": bare(request),
        "shared_prefix_bytes": bare(prefix),
        "max_concurrency_count": requests,
        "max_concurrency_all_tokens_count": answer.whole_windows,
        "max_concurrency_unified_pages_count": answer.unified_pages,
        "kv_tokens_count": tokens,
        "longest_context_tokens_count": longest,
        "fewest_tensor_ranks_count": answer.fewest,
        "padded_vocabulary_count": answer.vocabulary.0,
    })
}

/// Decimal and binary, since tools print either and call both GB.
fn size(bytes: Bytes) -> String {
    const GIB: f64 = 1_073_741_824.0;
    if bytes.base().abs() < GIB {
        bytes.to_string()
    } else {
        format!("{bytes} ({} GiB)", significant(bytes.base() / GIB, 4))
    }
}

fn verdict(total: Bytes, usable: Bytes) -> String {
    if total <= usable {
        format!("Fits, with {} to spare on the fullest accelerator.", size(usable.saturating_sub(total)))
    } else {
        format!("Does not fit: short by {} on the fullest accelerator.", size(total.saturating_sub(usable)))
    }
}

fn component_grid(footprint: &MemoryFootprint, usable: Bytes) -> Grid {
    let mut grid = Grid::new(&["component", "an accelerator"], 1);
    for (_, name, bytes) in components(footprint).into_iter().filter(|(_, _, bytes)| *bytes > Bytes::ZERO) {
        grid.rows.push(vec![name.to_owned(), size(bytes)]);
    }
    grid.rows.push(vec!["total".to_owned(), size(footprint.total())]);
    grid.rows.push(vec!["usable".to_owned(), size(usable)]);
    if footprint.offloaded > Bytes::ZERO {
        grid.rows.push(vec!["kept by the host instead".to_owned(), size(footprint.offloaded)]);
    }
    grid
}

/// The memory of a training layout, for people.
pub fn training_memory_page(title: &str, fit: &TrainingFit) -> Page {
    let none = || "none".to_owned();
    let worst = fit.worst();
    let top = Section {
        heading: String::new(),
        blocks: vec![Block::Text(verdict(worst.total(), fit.usable)), Block::Grid(component_grid(&worst, fit.usable))],
    };
    let mut stages = Grid::new(&["stage", "weights", "gradients", "optimizer", "activations", "workspace", "total"], 1);
    for (index, stage) in fit.stages.iter().enumerate() {
        let parts =
            [stage.weights, stage.gradients, stage.optimizer, stage.activations, stage.workspace, stage.total()];
        let cells = std::iter::once(index.to_string()).chain(parts.into_iter().map(|bytes| bytes.to_string()));
        stages.rows.push(cells.collect());
    }
    let fewest = fit.fewest.map_or_else(none, |layout| {
        let degrees = format!(
            "tensor {}, context {}, pipeline {}, data {}, expert {}",
            layout.tensor, layout.context, layout.pipeline, layout.data, layout.expert
        );
        format!("{} ({degrees}; sharding {}, recompute {})", layout.accelerators(), layout.sharding, layout.recompute)
    });
    let room = vec![
        format!(
            "Largest microbatch that fits: {}.",
            fit.largest_micro_batch.map_or_else(none, |size| size.to_string())
        ),
        format!(
            "Longest sequence that fits: {}.",
            fit.longest_sequence.map_or_else(none, |length| format!("{length} tokens"))
        ),
        format!("Fewest accelerators, a power of two, on which some layout fits: {fewest}."),
    ];
    let sections =
        vec![top, Section::new("Pipeline stages", Block::Grid(stages)), Section::new("Room", Block::List(room))];
    Page { title: title.to_owned(), sections }
}

/// The memory of a serving replica, for people; of pools also that of a prefill worker.
pub fn serving_memory_page(replica: &ServingMemory, worker: Option<&ServingMemory>) -> Page {
    let Some(worker) = worker else {
        let title = format!("{} on {}", replica.model, spread(replica));
        return Page { title, sections: serving_sections(replica, "", "Cache") };
    };
    let mut sections = serving_sections(replica, &format!("Decode, on {}", spread(replica)), "Cache of decode");
    let of_worker = serving_sections(worker, &format!("Prefill, on {}", spread(worker)), "Cache of prefill");
    sections.extend(of_worker);
    Page { title: format!("{} in pools", replica.model), sections }
}

/// The accelerators of a replica or a worker, and how it is spread over them.
fn spread(answer: &ServingMemory) -> String {
    let layout = answer.layout;
    let copies = match layout.redundant_experts {
        0 => String::new(),
        copies => format!(", {copies} redundant experts"),
    };
    format!(
        "{} {}: tensor {}, pipeline {}, expert {}, attention data {}{copies}",
        layout.ranks(),
        answer.accelerator,
        layout.tensor,
        layout.pipeline,
        layout.expert,
        layout.attention_data
    )
}

fn serving_sections(answer: &ServingMemory, heading: &str, of_cache: &str) -> Vec<Section> {
    let footprint = answer.footprint();
    let Fits { request, prefix, requests, .. } = answer.fits;
    let longest = answer.longest;
    let lacking = answer.fits.lacking(answer.usable);
    let at_once = counted(requests, "request");
    let said = if lacking > Bytes::ZERO && answer.fits.pool > Bytes::ZERO {
        format!(
            "Does not fit: beside weights and cache a forward pass lacks {}. Lower the fraction, or the tokens of a pass.",
            size(lacking)
        )
    } else if requests < answer.room {
        let enough = if answer.is_enough() { String::new() } else { format!(", {} wanted", answer.wanted) };
        let (tokens, room) = (answer.tokens, answer.room);
        format!(
            "{at_once} of {tokens} tokens at once, as many as the engine takes (max_num_seqs){enough}; {room} would fit."
        )
    } else if answer.is_enough() {
        format!("Fits: {at_once} of {} tokens at once.", answer.tokens)
    } else {
        format!("Does not fit: {at_once} of {} tokens at once, {} wanted.", answer.tokens, answer.wanted)
    };
    let mut facts = Grid::new(&["figure", "value"], 1);
    let mut row = |figure: &str, value: String| facts.rows.push(vec![figure.to_owned(), value]);
    row("requests at once", grouped(requests));
    for (figure, count) in
        [("  if every layer keeps all tokens", answer.whole_windows), ("  in pages of one size", answer.unified_pages)]
    {
        if count != requests {
            row(figure, grouped(count));
        }
    }
    row("tokens that they hold", grouped(answer.fits.tokens));
    row("a request, on one accelerator", size(request));
    if prefix > Bytes::ZERO {
        row("the shared prefix, once", size(prefix));
    }
    row("longest sequence alone", format!("{} tokens", grouped(longest)));
    let fewest = answer.fewest.map_or_else(|| "none up to 1,024".to_owned(), |ranks| ranks.to_string());
    row("fewest tensor ranks for one request", fewest);
    let top = Section {
        heading: heading.to_owned(),
        blocks: vec![Block::Text(said), Block::Grid(component_grid(&footprint, answer.usable))],
    };
    let mut sections = vec![top, Section::new(of_cache, Block::Grid(facts))];
    sections.extend(
        answer
            .vocabulary
            .1
            .as_ref()
            .map(|padding| Section::new("Notes", Block::List(vec![format!("{padding}, and counted.")]))),
    );
    sections
}
