//! The training job: its model, batch, layout and software, and the constants that they need.

use std::sync::Arc;

use super::layout::{check_positions, layout, search};
use super::run::{self, RunPlan};
use super::{Cluster, Defaults, by_default, split};
use crate::catalog::memory_allowance::{FrameworkMemory, Loss};
use crate::catalog::node::Host;
use crate::catalog::training_efficiency::{Framework, TrainingEfficiency};
use crate::catalog::{Catalog, DataPreparation, Entry, MemoryAllowance, MemoryTier, Model};
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::parallelism::{Layout, Sharding};
use crate::scenario::file::{ScenarioFile, TrainingFile, sequences};
use crate::scenario::search::LayoutSearch;
use crate::scenario::software::{Communication, MissingEfficiency, Overlap, Software, StepEfficiency};
use crate::units::{Factor, Seconds, Tokens};
use crate::workload::{
    CheckpointMode, GradientPrecision, Mixed, Offload, Optimizer, TrainingJob, Transformer, Untrainable,
};

/// The training job and how it is spread.
#[derive(Clone, Debug)]
pub struct Training {
    /// The model's catalog entry.
    pub model: Arc<Entry<Model>>,
    /// Its arithmetic.
    pub transformer: Transformer,
    /// The job.
    pub job: TrainingJob,
    /// The layout with one replica; the accelerators at work say how many there are. Where it is searched, what the
    /// search found, or before it the keys that are given.
    pub layout: Layout,
    /// The search that the layout is left to.
    pub search: Option<LayoutSearch>,
    /// The memory that keeps what is offloaded, where something is.
    pub host_memory: Option<Arc<Entry<MemoryTier>>>,
    /// The software.
    pub software: Software,
    /// What it reaches.
    pub efficiency: StepEfficiency,
    /// How checkpoints are written.
    pub checkpoint: CheckpointMode,
    /// Useful work between them; none where it is the best.
    pub checkpoint_interval: Option<Seconds>,
    /// The run around the step.
    pub plan: RunPlan,
    /// What the data's way is filled by.
    pub data_preparation: Arc<Entry<DataPreparation>>,
    /// What the software keeps in memory beside the model.
    pub memory: Arc<Entry<MemoryAllowance>>,
    /// What of it the framework keeps.
    pub framework_memory: FrameworkMemory,
    /// The set of constants that the efficiency comes from.
    pub efficiency_source: Arc<Entry<TrainingEfficiency>>,
}

/// What is trained: the model and the job.
pub(super) fn work(
    wanted: &TrainingFile,
    catalog: &Catalog,
    defaults: &mut Defaults,
    sink: &Sink,
) -> Option<(Arc<Entry<Model>>, TrainingJob)> {
    let job = TrainingJob {
        sequence_length: wanted.sequence_length,
        global_batch: sequences(wanted.global_batch, &wanted.global_batch_at, wanted.sequence_length, sink),
        tokens: wanted.tokens,
        precision: wanted.precision,
        gradients: defaults.or("training.gradients", wanted.gradients, GradientPrecision::Fp32),
        optimizer: defaults.or("training.optimizer", wanted.optimizer, Optimizer::Adam),
        offload: wanted.offload.unwrap_or(Offload::None),
        expert_imbalance: wanted.expert_imbalance.unwrap_or(Factor::ONE),
    };
    check_tokens(wanted, &job, sink);
    check_offload(wanted, sink);
    let model = catalog.models.find(&wanted.model, &wanted.model.at, sink)?;
    check_positions(&model, &job, &wanted.model.at, sink);
    split::check(&wanted.layout, model.layers(), sink);
    let experts = model.blocks.iter().any(|block| block.moe().is_some());
    if let Some(factor) = wanted.expert_imbalance.filter(|factor| !experts && *factor != Factor::ONE) {
        let message = format!("`{}` has no experts that an expert_imbalance of {} could be of", model.id, factor.get());
        let at = &wanted.expert_imbalance_at;
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(at, "says nothing here").hint("leave it out"));
    }
    Some((model, job))
}

/// The arithmetic of a model whose step time is modelled.
pub(super) fn arithmetic(wanted: &TrainingFile, model: &Entry<Model>, sink: &Sink) -> Option<Transformer> {
    let refused = |reason: Untrainable| {
        let hint = match Mixed::try_from(&model.part) {
            Ok(_) => "`clusterplan memory` answers what its training takes",
            Err(_) => "`clusterplan model` has its parameters, and `clusterplan memory --model` what serving it takes",
        };
        sink.push(Diagnostic::new(Code::Unsupported, reason.to_string()).at(&wanted.model.at, "this model").hint(hint));
    };
    Transformer::try_from(&model.part).map_err(refused).ok()
}

/// Weights are offloaded in parts, which is what sharding makes of them.
fn check_offload(wanted: &TrainingFile, sink: &Sink) {
    let sharding = wanted.layout.sharding.unwrap_or(Sharding::Optimizer);
    if let Some(offload) = wanted.offload.filter(|offload| offload.weights() && !sharding.weights()) {
        let message =
            format!("offload \"{offload}\" with sharding \"{sharding}\": weights that are whole on each rank stay");
        let hint = "set training.layout.sharding to \"full\" or \"hybrid\", or offload \"optimizer\" alone";
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.offload_at, "here").hint(hint));
    }
}

/// The memory that keeps what is offloaded: the one that is named, or the hosts' own over the way that they have.
fn host_memory(
    wanted: &TrainingFile,
    file: &ScenarioFile,
    cluster: &Cluster,
    catalog: &Catalog,
    defaults: &mut Defaults,
    sink: &Sink,
) -> Option<Arc<Entry<MemoryTier>>> {
    let Some(offload) = wanted.offload.filter(|offload| *offload != Offload::None) else {
        if let Some(tier) = &wanted.offload_to {
            let message = format!("nothing is offloaded to `{}`", tier.id);
            let hint = "set training.offload, such as \"optimizer\"";
            sink.push(Diagnostic::new(Code::Inconsistent, message).at(&tier.at, "says nothing here").hint(hint));
        }
        return None;
    };
    let usual = match (cluster.node.host, cluster.accelerator.pcie) {
        (Host::Grace, _) => Some("grace-lpddr"),
        (Host::X86, Some(bus)) if bus.generation <= 4 => Some("host-dram-pcie4"),
        (Host::X86, Some(_)) => Some("host-dram-pcie5"),
        (Host::X86, None) => None,
    };
    if wanted.offload_to.is_none() && usual.is_none() {
        let message = format!("the catalog does not know the PCIe link of `{}`", cluster.accelerator.id);
        let hint = "name a tier of catalogs/memory_tiers in training.offload_to";
        let at = &file.cluster.node.at;
        sink.push(Diagnostic::new(Code::NotInCatalog, message).at(at, "what is offloaded goes over it").hint(hint));
        return None;
    }
    let id = by_default(
        "training.offload_to",
        wanted.offload_to.as_ref(),
        usual.unwrap_or_default(),
        &wanted.offload_at,
        defaults,
    );
    let tier = catalog.memory_tiers.find(&id, &id.at, sink)?;
    if offload.optimizer() && tier.update_bandwidth.is_none() {
        let message = format!("no processors update states in `{}`", tier.id);
        let hint =
            "offload \"activations\" to it, or optimizer states to a memory of the hosts, such as \"host-dram-pcie5\"";
        sink.push(Diagnostic::new(Code::Unsupported, message).at(&id.at, "keeps optimizer states").hint(hint));
    }
    Some(tier)
}

/// A run is one step at least.
fn check_tokens(wanted: &TrainingFile, job: &TrainingJob, sink: &Sink) {
    let step = job.tokens_per_step();
    if wanted.tokens > Tokens::ZERO && wanted.tokens < step {
        let message = format!("a run of {} is less than one step of {step}", wanted.tokens);
        let hint = "a step is global_batch sequences of sequence_length tokens";
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.tokens_at, "too few").hint(hint));
    }
}

pub(super) fn bind(
    wanted: &TrainingFile,
    file: &ScenarioFile,
    cluster: &Cluster,
    catalog: &Catalog,
    defaults: &mut Defaults,
    sink: &Sink,
) -> Option<Training> {
    let constants = catalog.training_efficiency.find("published-runs", &wanted.model.at, sink)?;
    let memory = catalog.memory_allowances.find("cuda", &wanted.model.at, sink)?;
    let software = software(file, cluster, &constants, defaults);
    if !software.communication.gpudirect && cluster.node.host_bus(&cluster.accelerator).is_none() {
        let message = format!("the catalog does not know the PCIe link of `{}`", cluster.accelerator.id);
        let at = file.software.places.gpudirect.as_ref().unwrap_or(&file.cluster.node.at);
        let hint = "add `pcie` to the accelerator in a catalog given with --catalog";
        sink.push(Diagnostic::new(Code::NotInCatalog, message).at(at, "data is staged over it").hint(hint));
    }
    let work = work(wanted, catalog, defaults, sink);
    let transformer = work.as_ref().and_then(|(model, _)| arithmetic(wanted, model, sink));
    let efficiency =
        StepEfficiency::bind(&constants, &cluster.accelerator, cluster.node.host, wanted.precision, &software);
    let efficiency = efficiency.map_err(|missing| report_missing(&missing, file, sink));
    let framework_memory = framework_memory(&memory, &software, file, sink);
    let (model, job) = work?;
    let transformer = transformer?;
    let data_preparation = catalog.data_preparation.find("text", &wanted.model.at, sink)?;
    let around = run::Surroundings {
        model: &model,
        job,
        vocab: transformer.vocab,
        preparation: &data_preparation,
        cluster,
        framework: software.framework,
    };
    let plan = run::bind(wanted, &around, defaults, sink);
    let layout = layout(&wanted.layout, cluster, software.framework, defaults, sink);
    let host_memory = host_memory(wanted, file, cluster, catalog, defaults, sink);
    Some(Training {
        host_memory,
        data_preparation,
        plan,
        transformer,
        model,
        job,
        search: search(&wanted.layout, &layout, file.software.overlap),
        layout,
        software,
        efficiency: efficiency.ok()?,
        checkpoint: defaults.or("training.checkpoint", wanted.checkpoint, CheckpointMode::Asynchronous),
        checkpoint_interval: wanted.checkpoint_interval,
        framework_memory: framework_memory?,
        memory,
        efficiency_source: constants,
    })
}

/// What the software keeps in memory.
pub(super) fn framework_memory(
    memory: &MemoryAllowance,
    software: &Software,
    file: &ScenarioFile,
    sink: &Sink,
) -> Option<FrameworkMemory> {
    let found = memory.with_loss(software.framework, software.loss);
    if found.is_none() {
        let message = format!("no measured memory allowance for framework \"{}\"", software.framework);
        let hint = "choose another framework, or add it to an overlay of catalogs/efficiency/memory";
        let at = file.software.places.framework.as_ref().unwrap_or(&file.cluster.node.at);
        sink.push(Diagnostic::new(Code::NotInCatalog, message).at(at, "needed for this").hint(hint));
    }
    found
}

/// Reports a missing constant at the key that asked for it; what a default asked for, at the node.
fn report_missing(missing: &MissingEfficiency, file: &ScenarioFile, sink: &Sink) {
    let places = &file.software.places;
    let at = match missing {
        MissingEfficiency::Date(_) => &places.date,
        MissingEfficiency::Framework(_) => &places.framework,
        MissingEfficiency::Kernel { .. } => &places.attention_kernel,
        _ => &None,
    };
    let hint = match missing {
        MissingEfficiency::Kernel { .. } => "set software.attention_kernel to a measured one",
        MissingEfficiency::Date(_) => "the first era of the constants begins later: see catalogs/efficiency/training",
        _ => "add the constants to an overlay of catalogs/efficiency/training and pass it with --catalog",
    };
    let at = at.as_ref().unwrap_or(&file.cluster.node.at);
    sink.push(Diagnostic::new(Code::NotInCatalog, missing.to_string()).at(at, "needed for this").hint(hint));
}

/// The software, filled by what was usual at its date on that accelerator.
pub(super) fn software(
    file: &ScenarioFile,
    cluster: &Cluster,
    constants: &TrainingEfficiency,
    defaults: &mut Defaults,
) -> Software {
    let wanted = &file.software;
    let date = match wanted.date {
        Some(date) => date.0,
        None => defaults.or("software.date", None, Software::USUAL_DATE),
    };
    let framework = defaults.or("software.framework", wanted.framework, Framework::MegatronCore);
    let usual = Software::usual_kernel(&cluster.accelerator.generation, date);
    let attention_kernel = defaults.or("software.attention_kernel", wanted.attention_kernel, usual);
    let sharding = file.training.as_ref().and_then(|training| training.layout.sharding);
    let overlap = constants.usual_overlap(framework, date, sharding.is_some_and(Sharding::weights));
    let [tensor, data, expert] = wanted.overlap;
    let overlap = Overlap {
        tensor: defaults.or("software.overlap.tensor", tensor, overlap.0),
        data: defaults.or("software.overlap.data", data, overlap.1),
        expert: defaults.or("software.overlap.expert", expert, false),
    };
    let [sharp, pat, gpudirect] = wanted.communication;
    let communication = Communication {
        sharp: defaults.or("software.sharp", sharp, Communication::USUAL.sharp),
        pat: defaults.or("software.pat", pat, Communication::USUAL.pat),
        gpudirect: defaults.or("software.gpudirect", gpudirect, Communication::USUAL.gpudirect),
    };
    let loss = loss(wanted.loss, framework, defaults);
    Software { date, framework, attention_kernel, loss, overlap, communication }
}

/// The loss, which frameworks that leave it to PyTorch have in several ways; the others' own is one of theirs.
fn loss(given: Option<Loss>, framework: Framework, defaults: &mut Defaults) -> Loss {
    match framework {
        Framework::PytorchNative | Framework::PytorchFsdp => defaults.or("software.loss", given, Loss::Plain),
        _ => given.unwrap_or_default(),
    }
}
