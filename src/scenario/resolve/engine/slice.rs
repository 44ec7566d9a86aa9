//! Binding of parts of accelerators: slices that a vendor cuts, and shares of time or of multiprocessors.

use std::sync::Arc;

use super::Layouts;
use crate::catalog::serving_efficiency::ServingSharing;
use crate::catalog::{Accelerator, GpuSlice, Reference};
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::scenario::file::{SharedBy, SharedFile, SliceFile};
use crate::scenario::resolve::Cluster;

/// A part of an accelerator, on which a replica runs as on one of its own.
#[derive(Clone, Debug)]
pub struct Slice {
    /// What it is called in a sentence.
    pub name: String,
    /// What a scenario says for it.
    pub asked: String,
    /// How many an accelerator has.
    pub instances: u32,
    /// The part; of one that is shared, while all others on it are at work.
    pub accelerator: Arc<Accelerator>,
    /// How it is shared, where it is no part with multiprocessors and memory of its own.
    pub shared: Option<SharedBy>,
    /// Time of what an accelerator does, over that of the part with no others on it; rates above have it in them.
    pub stretch: f64,
}

impl Slice {
    /// A part that a vendor cuts.
    pub fn cut(slice: &GpuSlice, whole: &Accelerator) -> Self {
        Self {
            name: format!("{} slice", slice.name),
            asked: slice.name.clone(),
            instances: slice.instances,
            accelerator: Arc::new(slice.of(whole)),
            shared: None,
            stretch: 1.0,
        }
    }
}

/// The part that is asked for; nothing where that is all of it.
pub(super) fn bind(
    wanted: &SliceFile,
    layouts: &Layouts<'_>,
    cluster: &Cluster,
    sharing: &ServingSharing,
    sink: &Sink,
) -> Option<Slice> {
    match wanted {
        SliceFile::Profile(profile) => slice(profile, layouts, cluster, sink),
        SliceFile::Shared(shared) => share(shared, layouts, cluster, sharing, sink),
    }
}

fn slice(wanted: &Reference, layouts: &Layouts<'_>, cluster: &Cluster, sink: &Sink) -> Option<Slice> {
    let whole = &cluster.accelerator;
    let refuse = |code, message: String, hint: String| {
        sink.push(Diagnostic::new(code, message).at(&wanted.at, "asked for here").hint(hint));
        None
    };
    let Some(found) = whole.slices.iter().find(|slice| slice.name == wanted.id) else {
        let known: Vec<&str> = whole.slices.iter().map(|slice| slice.name.as_str()).collect();
        let message = format!("{} has no slice \"{}\"", whole.name, wanted.id);
        let known = if known.is_empty() { "it is not known to be cut at all".to_owned() } else { known.join(", ") };
        let hint = format!("{known}; a share of any is {{ share = 0.5, by = \"mps\" }}");
        return refuse(Code::UnknownId, message, hint);
    };
    if layouts.given.len() > 1 || layouts.given.iter().any(|layout| layout.ranks() > 1) {
        let message = "slices do not reach each other's memory: a replica on slices has one rank".to_owned();
        return refuse(
            Code::Inconsistent,
            message,
            "use serving.layout = { tensor = 1 }, or leave slice out".to_owned(),
        );
    }
    Some(Slice::cut(found, whole))
}

/// A share of an accelerator, with as many others on it as there is room for; nothing for all of it.
///
/// By MPS each computes on its percentage of the multiprocessors and has a limit of memory; bandwidth and caches are contended for,
/// so that each has its part of them while all are at work (NVIDIA, Multi-Process Service: `CUDA_MPS_ACTIVE_THREAD_PERCENTAGE`,
/// `CUDA_MPS_PINNED_DEVICE_MEM_LIMIT`). In time slices each has all of both for its share of the time, less what switching
/// takes, and memory is divided by what each takes (NVIDIA GPU Operator, Time-Slicing GPUs in Kubernetes; shares of Run:ai and
/// HAMi are such).
fn share(
    wanted: &SharedFile,
    layouts: &Layouts<'_>,
    cluster: &Cluster,
    sharing: &ServingSharing,
    sink: &Sink,
) -> Option<Slice> {
    let (whole, share) = (&cluster.accelerator, wanted.share.get());
    let refuse = |message: String, hint: &str| {
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.at, "asked for here").hint(hint));
        None
    };
    // What could not be read has been told.
    let instances = wanted.sharers()?;
    let memory = wanted.memory.unwrap_or(whole.memory_capacity * share);
    if memory * f64::from(instances) > whole.memory_capacity * (1.0 + 1e-9) {
        let (name, has) = (&whole.name, whole.memory_capacity);
        let message = format!("{instances} replicas on each {name} take {memory} each, and it has {has}");
        return refuse(
            message,
            "lower memory, or leave it out for the same share of it; a larger share has fewer beside it",
        );
    }
    if layouts.given.len() > 1 || layouts.given.iter().any(|layout| layout.ranks() > 1) {
        let message = "ranks on shares of accelerators would wait for each other's turns: a replica there has one rank";
        return refuse(message.to_owned(), "use serving.layout = { tensor = 1 }, or leave slice out");
    }
    if share >= 1.0 && memory >= whole.memory_capacity {
        return None;
    }
    let turns = 1.0 + if instances > 1 { sharing.switching.get() } else { 0.0 };
    let (of, rate, stretch) = match wanted.by {
        SharedBy::Mps => ("multiprocessors", share, 1.0),
        SharedBy::Time => ("time", share / turns, turns / share),
    };
    let limit = wanted.memory.map_or_else(String::new, |memory| format!(", memory = \"{memory}\""));
    Some(Slice {
        name: format!("{share} of the {of} of a GPU"),
        asked: format!("{{ share = {share}, by = \"{}\"{limit} }}", wanted.by),
        instances,
        accelerator: Arc::new(whole.part(rate, rate, memory)),
        shared: Some(wanted.by),
        stretch,
    })
}
