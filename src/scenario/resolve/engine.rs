//! Binding of what an engine does beside its plain loop.

use std::sync::Arc;

use super::{Cluster, Defaults};
use crate::catalog::engine_memory::EngineMemory;
use crate::catalog::model::Model;
use crate::catalog::serving_efficiency::ServingSharing;
use crate::catalog::{Accelerator, Catalog, Entry, MemoryTier, Reference, ServingEfficiency};
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::parallelism::ServingLayout;
use crate::scenario::file::{
    Acceptance, AdapterRouting, AdapterTargets, AdaptersFile, EngineFile, ExpertImbalance, GraphsFile, SharedBy,
    SharedFile, SliceFile, SpeculationFile, TenantFile, TenantsFile,
};
use crate::units::{Factor, Fraction};
use crate::workload::{AdapterParameters, TenantClass, Tenants, adapter_parameters, prediction_layer};

/// Where adapters wait that are not in the accelerators' memory.
const USUAL_TIER: &str = "host-dram-pcie5";
/// The word for one more layer of the model as what drafts.
const LAYER: &str = "mtp";

/// What an engine does beside its plain loop; nothing where nothing is asked.
#[derive(Clone, Debug, Default)]
pub struct EngineFeatures {
    /// Tokens drafted and verified.
    pub speculation: Option<Speculation>,
    /// Prompts' tokens of a step, at most; all of a prompt at once where not given.
    pub chunk_tokens: Option<u32>,
    /// Requests that an engine takes at once in an attention group, at most, where that is given.
    pub max_num_seqs: Option<u32>,
    /// Whether two halves of a decode batch hide each other's exchange with experts.
    pub two_batch_overlap: bool,
    /// Tokens of the busiest of ranks that hold experts whole, over their mean.
    pub expert_imbalance: ExpertImbalance,
    /// Sequences of an attention group that graphs are of, in order, where they are of stated sizes only.
    pub graphs: Option<Vec<f64>>,
    /// Steps that attention groups wait for each other's prompts at most, where they are taken in together.
    pub balance_steps: Option<u32>,
    /// Whether the host launches kernels of decode one by one, as engines do that are told not to capture graphs.
    pub eager: bool,
    /// Tokens of a block of the cache, where they are not the engine's usual.
    pub block_tokens: Option<u32>,
    /// Whether the probabilities of prompts' own tokens are asked for.
    pub prompt_logprobs: bool,
    /// Adapters of fine-tuned models.
    pub adapters: Option<AdapterSet>,
    /// The part of an accelerator that each replica has.
    pub slice: Option<Slice>,
    /// Tenants that share the replicas.
    pub tenants: Option<Tenants>,
}

/// Low-rank adapters that are served beside each other.
#[derive(Clone, Debug)]
pub struct AdapterSet {
    /// How many there are.
    pub count: u32,
    /// Their rank.
    pub rank: u32,
    /// What they change.
    pub targets: AdapterTargets,
    /// How many are in the accelerators' memory at once.
    pub resident: u32,
    /// Exponent of Zipf's law of how often each is asked for.
    pub popularity: f64,
    /// Parameters of one.
    pub parameters: AdapterParameters,
    /// Where requests go.
    pub routing: AdapterRouting,
    /// Where the others wait.
    pub tier: Arc<Entry<MemoryTier>>,
}

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

impl EngineFeatures {
    /// Whether anything is asked that the constants of serving were not held against.
    pub fn is_unmeasured(&self) -> bool {
        self.unmeasured().next().is_some()
    }

    /// What is asked that the constants of serving were not held against.
    pub fn unmeasured(&self) -> impl Iterator<Item = &'static str> {
        [
            (self.speculation.is_some(), "drafts"),
            (self.two_batch_overlap, "two batches"),
            (self.eager, "kernels launched one by one"),
            (self.adapters.is_some(), "adapters"),
            (self.slice.as_ref().is_some_and(|slice| slice.shared.is_none()), "slices of an accelerator"),
            (self.slice.as_ref().is_some_and(|slice| slice.shared.is_some()), "shares of an accelerator"),
        ]
        .into_iter()
        .filter_map(|(asked, name)| asked.then_some(name))
    }
}

/// Tokens that are drafted and then verified in one step.
#[derive(Clone, Debug)]
pub struct Speculation {
    /// What drafts, by the word or id of the scenario.
    pub draft: String,
    /// Its dimensions: those of another model, or of one more layer as the model's last.
    pub model: Model,
    /// Whether it is one more layer of the model, which shares the model's embedding and head.
    pub layer: bool,
    /// Tokens drafted for each sequence in a step.
    pub tokens: u32,
    /// Share of them that the model would have chosen too, for each in turn: of those before which all were accepted.
    pub acceptance: Vec<Fraction>,
}

/// Layouts that serve, and whether they are left to a search.
pub(super) struct Layouts<'a> {
    pub(super) given: &'a [ServingLayout],
    pub(super) search: bool,
    pub(super) at: &'a Span,
}

pub(super) fn bind(
    wanted: &EngineFile,
    model: &Model,
    layouts: &Layouts<'_>,
    memory: &mut EngineMemory,
    (cluster, catalog, efficiency): (Option<&Cluster>, &Catalog, &ServingEfficiency),
    defaults: &mut Defaults,
    sink: &Sink,
) -> Option<EngineFeatures> {
    let overlap = wanted.two_batch_overlap.unwrap_or(false);
    if overlap && !layouts.search && layouts.given.iter().all(|layout| layout.attention_data == 1) {
        let message =
            "nothing to overlap: only ranks that attend for requests of their own exchange tokens with experts";
        let hint = "give serving.layout an attention_data above 1, or leave two_batch_overlap out";
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.overlap_at, "asked for here").hint(hint));
    }
    if let Some(factor) = wanted.expert_imbalance.filter(|factor| *factor != ExpertImbalance::Times(Factor::ONE)) {
        let whole = layouts.search || layouts.given.iter().any(|layout| layout.expert > 1);
        if !whole || !model.blocks.iter().any(|block| block.moe().is_some()) {
            let message = format!("an expert_imbalance of {factor} where no rank holds experts whole");
            let hint = "give serving.layout an expert above 1 for a model that has experts, or leave it out";
            sink.push(
                Diagnostic::new(Code::Inconsistent, message).at(&wanted.imbalance_at, "asked for here").hint(hint),
            );
        }
    }
    if wanted.attention_data_balance.is_some() && layouts.given.iter().all(|layout| layout.attention_data == 1) {
        let message = "nothing to balance: there is one attention group";
        let hint = "give serving.layout an attention_data above 1, or leave attention_data_balance out";
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.balance_at, "asked for here").hint(hint));
    }
    let graphs = match &wanted.cuda_graphs {
        Some(GraphsFile::Sizes(sizes)) => Some(sizes.iter().copied().map(f64::from).collect()),
        Some(GraphsFile::Replayed(_)) | None => None,
    };
    let eager = matches!(wanted.cuda_graphs, Some(GraphsFile::Replayed(false)));
    if let Some(cluster) = cluster.filter(|_| eager || graphs.is_some()) {
        no_launches(cluster, &wanted.graphs_at, sink);
    }
    let speculation = match &wanted.speculation {
        Some(wanted) => Some(speculation(wanted, model, layouts, catalog, sink)?),
        None => None,
    };
    let adapters = match &wanted.adapters {
        Some(wanted) => Some(adapters(wanted, model, catalog, defaults, sink)?),
        None => None,
    };
    let slice = wanted.slice.as_ref().and_then(|wanted| match wanted {
        SliceFile::Profile(profile) => slice(profile, layouts, cluster?, sink),
        SliceFile::Shared(shared) => share(shared, layouts, cluster?, &efficiency.sharing, sink),
    });
    if let Some(chunk) = wanted.chunk_tokens {
        *memory = std::mem::take(memory).with_batched_tokens(chunk);
    }
    if let Some(requests) = wanted.max_num_seqs {
        *memory = std::mem::take(memory).with_requests(requests);
    }
    if let Some(block) = wanted.block_tokens {
        memory.block = block;
    }
    Some(EngineFeatures {
        speculation,
        chunk_tokens: wanted.chunk_tokens,
        max_num_seqs: wanted.max_num_seqs,
        two_batch_overlap: overlap,
        expert_imbalance: wanted.expert_imbalance.unwrap_or_default(),
        graphs,
        balance_steps: wanted.attention_data_balance,
        eager,
        block_tokens: wanted.block_tokens,
        prompt_logprobs: wanted.prompt_logprobs.unwrap_or(false),
        adapters,
        slice,
        tenants: wanted.tenants.as_ref().map(tenants),
    })
}

/// Vendors of accelerators whose kernels a host launches one by one unless they are captured in graphs.
const LAUNCHED: [&str; 2] = ["NVIDIA", "AMD"];

/// Reports accelerators that run whole programs, of which nothing says what they would take kernel by kernel.
fn no_launches(cluster: &Cluster, at: &Span, sink: &Sink) {
    let others = cluster.kinds_of_nodes().map(|nodes| nodes.accelerator);
    let Some(other) = others.into_iter().find(|other| !LAUNCHED.contains(&other.vendor.as_str())) else { return };
    let message = format!("what kernels launched one by one take is known of GPUs, and not of `{}`", other.id);
    let hint = format!("leave cuda_graphs out: {}'s accelerators are given compiled programs", other.vendor);
    sink.push(Diagnostic::new(Code::Inconsistent, message).at(at, "asked for here").hint(hint));
}

fn tenants(wanted: &TenantsFile) -> Tenants {
    let of = |class: &TenantFile| TenantClass {
        count: class.count,
        mean: class.mean,
        peak: class.peak,
        busiest: class.busiest_hour,
    };
    Tenants(wanted.0.iter().map(of).collect())
}

fn adapters(
    wanted: &AdaptersFile,
    model: &Model,
    catalog: &Catalog,
    defaults: &mut Defaults,
    sink: &Sink,
) -> Option<AdapterSet> {
    let refuse = |message: String, hint: &str| {
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.at, "in this table").hint(hint));
        None
    };
    let resident = defaults.or("serving.adapters.resident", wanted.resident, wanted.count);
    if resident > wanted.count {
        let message = format!("{resident} of {} adapters in memory", wanted.count);
        return refuse(message, "resident is at most count");
    }
    let targets = defaults.or("serving.adapters.targets", wanted.targets, AdapterTargets::Attention);
    let parameters = match adapter_parameters(model, wanted.rank, targets == AdapterTargets::All) {
        Ok(parameters) => parameters,
        Err(of) => {
            let hint = "use targets = \"attention\", or a model whose layers are grouped or latent attention";
            return refuse(format!("adapters of {of} are not modelled"), hint);
        }
    };
    let usual = || Reference { id: USUAL_TIER.to_owned(), at: wanted.at.clone() };
    let given = wanted.from.as_ref().map(|from| from.id.clone());
    defaults.or("serving.adapters.from", given, USUAL_TIER.to_owned());
    let tier = wanted.from.clone().unwrap_or_else(usual);
    Some(AdapterSet {
        count: wanted.count,
        rank: wanted.rank,
        targets,
        resident,
        popularity: defaults.or("serving.adapters.popularity", wanted.popularity.map(Factor::get), 0.0),
        routing: defaults.or("serving.adapters.routing", wanted.routing, AdapterRouting::Balanced),
        parameters,
        tier: catalog.memory_tiers.find(&tier, &tier.at, sink)?,
    })
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
    let accelerator = Arc::new(found.of(whole));
    Some(Slice {
        name: format!("{} slice", found.name),
        asked: found.name.clone(),
        instances: found.instances,
        accelerator,
        shared: None,
        stretch: 1.0,
    })
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

fn speculation(
    wanted: &SpeculationFile,
    model: &Model,
    layouts: &Layouts<'_>,
    catalog: &Catalog,
    sink: &Sink,
) -> Option<Speculation> {
    let refuse = |message: String, hint: &str| {
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.at, "asked for here").hint(hint));
    };
    if layouts.given.iter().any(|layout| layout.pipeline > 1) {
        let message = "drafts of a model whose layers are split over pipeline stages are not modelled".to_owned();
        refuse(message, "use serving.layout.pipeline = 1, or leave speculation out");
    }
    let layer = wanted.draft.id == LAYER;
    let mut draft = if layer {
        prediction_layer(model)
    } else {
        catalog.models.find(&wanted.draft, &wanted.draft.at, sink)?.part.clone()
    };
    draft.formats.kv_cache = model.formats.kv_cache;
    if draft.vocab != model.vocab {
        let message = format!("the draft has a vocabulary of {}, and the model one of {}", draft.vocab, model.vocab);
        refuse(message, "tokens are verified one by one: name a draft of the same family, or \"mtp\"");
    }
    let given = if layouts.search { &[] } else { layouts.given };
    if let Some(reason) = given.iter().find_map(|layout| layout.check(&draft).err()) {
        let message = format!("the draft runs on the ranks of the model: {reason}");
        sink.push(
            Diagnostic::new(Code::Inconsistent, message).at(layouts.at, "this layout").hint("name another draft"),
        );
    }
    let tokens = wanted.tokens as usize;
    let acceptance = match &wanted.acceptance {
        Acceptance::Alike(share) => vec![*share; tokens],
        Acceptance::ByPlace(shares) => shares.clone(),
    };
    if acceptance.len() != tokens {
        let message = format!("{} shares of acceptance for {tokens} drafted tokens", acceptance.len());
        refuse(message, "give one share for all, or as many as `tokens`: of each, where those before it are accepted");
    }
    Some(Speculation { draft: wanted.draft.id.clone(), model: draft, layer, tokens: wanted.tokens, acceptance })
}
