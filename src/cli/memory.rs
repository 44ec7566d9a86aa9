//! `clusterplan memory`

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::eval::no;
use super::model::{CacheArguments, find, number_format};
use super::options::Format;
use super::{Answer, Session};
use crate::catalog::Catalog;
use crate::catalog::engine_memory::EngineMemory;
use crate::catalog::engine_version::EngineVersion;
use crate::catalog::model::{Format as NumberFormat, Formats, Model, ModuleFormat};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::evaluate::{Infeasible, held_by_a_rank};
use crate::memory::serving::{
    CacheFormats, Engine, Fits, Pages, Paging, ServingLayout, fits, largest_context, smallest_tensor,
};
use crate::memory::{Software, TrainingFit};
use crate::report::{
    Block, Page, Section, ServingMemory, serving_memory_csv, serving_memory_json, serving_memory_page,
    training_memory_csv, training_memory_json, training_memory_page,
};
use crate::scenario::{Cluster, MemoryJob, NodeGroup, Scenario, ScenarioFile, Serving};
use crate::search;
use crate::units::{Bytes, Fraction, Quantity, brief};
use crate::workload::{Layers, attend_to_all};

/// The most ranks of an axis that are taken.
const MOST_RANKS: i64 = 65_536;
/// Tokens of a request where none are given.
const USUAL_CONTEXT: u64 = 8_192;
/// The most tokens of a request, and the most requests, that are taken.
const MOST_TOKENS: u64 = 1_000_000_000;

/// What says how a model is served where no scenario does; a scenario's keys say all of it.
const OF_A_MODEL: [&str; 22] = [
    "model",
    "accelerator",
    "tensor",
    "pipeline",
    "expert",
    "attention_data",
    "redundant_experts",
    "engine",
    "engine_version",
    "fraction",
    "block",
    "batched_tokens",
    "max_num_seqs",
    "paging",
    "context",
    "max_model_len",
    "shared_prefix",
    "requests",
    "weights",
    "prompt_logprobs",
    "kv_cache",
    "state",
];

/// `clusterplan memory`
#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(super) struct Memory {
    /// A scenario, whose keys say what the flags below do (--set changes them): of serving, what a rank of a replica holds
    /// [default: the flags below, for serving]
    #[arg(conflicts_with_all = OF_A_MODEL)]
    scenario: Option<PathBuf>,
    /// The model to serve: an id of the catalog, a config.json, or a directory that has one
    #[arg(long, requires = "accelerator")]
    model: Option<String>,
    /// The accelerator: an id of the catalog, or its memory as the driver reports it, such as "81559 MiB"
    #[arg(long)]
    accelerator: Option<String>,
    /// Ranks that split every matrix
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MOST_RANKS))]
    tensor: u32,
    /// Stages that split the layers
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MOST_RANKS))]
    pipeline: u32,
    /// Ranks that split a layer's experts
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MOST_RANKS))]
    expert: u32,
    /// Groups of tensor ranks that attend for requests of their own
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MOST_RANKS))]
    attention_data: u32,
    /// Copies of routed experts in each layer beside one of each
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=MOST_RANKS))]
    redundant_experts: u32,
    /// The engine whose rule sizes the cache: vllm, sglang or trtllm
    #[arg(long, default_value = "vllm")]
    engine: String,
    /// The engine's version, where its defaults changed with one, such as "0.22" [default: between the changes]
    #[arg(long, value_name = "VERSION", value_parser = version)]
    engine_version: Option<EngineVersion>,
    /// The engine's fraction of all or of free memory [default: the engine's]
    #[arg(long)]
    fraction: Option<f64>,
    /// Tokens of a block of the cache [default: the engine's]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    block: Option<u32>,
    /// Tokens of a forward pass at most [default: the engine's]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    batched_tokens: Option<u32>,
    /// Requests that the engine takes at once at most, each with a row of logits [default: the engine's own]
    #[arg(long, value_name = "REQUESTS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_num_seqs: Option<u32>,
    /// How layers that keep different tokens share pages [default: the engine's]
    #[arg(long, value_parser = pagings())]
    paging: Option<Paging>,
    /// Tokens of a request at its longest, prompt and answer [default: 8192, or what the engine takes where that is less]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=MOST_TOKENS))]
    context: Option<u64>,
    /// Tokens of a request that the engine takes at most, where it extends the model's positions [default: the model's]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    max_model_len: Option<u32>,
    /// Tokens at the beginning that all requests share
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=MOST_TOKENS))]
    shared_prefix: u64,
    /// Requests that must fit at once
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=MOST_TOKENS))]
    requests: u64,
    /// Format of the weights of attention, MLPs and experts [default: the checkpoint's]
    #[arg(long, value_name = "FORMAT", value_parser = number_format)]
    weights: Option<NumberFormat>,
    /// The probabilities of prompts' own tokens are asked for: logits of every token of a forward pass are held
    #[arg(long)]
    prompt_logprobs: bool,
    #[command(flatten)]
    cache: CacheArguments,
}

fn pagings() -> impl TypedValueParser<Value = Paging> {
    let find = |word: String| Paging::ALL.iter().copied().find(|paging| paging.word() == word);
    PossibleValuesParser::new(Paging::ALL.iter().map(|paging| paging.word()))
        .map(move |word| find(word).unwrap_or_default())
}

fn version(text: &str) -> Result<EngineVersion, String> {
    EngineVersion::parse(text).ok_or_else(|| "write a major and a minor number, such as 0.22".to_owned())
}

impl Memory {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        let answer = match (&self.scenario, &self.model) {
            (Some(path), _) => Self::of_scenario(path, &mut session),
            (None, Some(model)) => self.serving(model, &mut session),
            (None, None) => {
                let message = "neither a scenario nor a model was named";
                let hint = "name a scenario file, or --model and --accelerator";
                session.sink.push(Diagnostic::new(Code::MissingKey, message).hint(hint));
                Some(Answer::Mistaken)
            }
        };
        (answer.unwrap_or(Answer::Mistaken), session)
    }

    fn serving(&self, wanted: &str, session: &mut Session) -> Option<Answer> {
        let (name, mut model, _) = find(wanted, session)?;
        let catalog = session.catalog();
        let (accelerator, capacity) = accelerator(self.accelerator.as_deref()?, &catalog, session)?;
        let allowance = catalog.memory_allowances.get("cuda")?;
        let rules = self.rules(&catalog, session)?;
        if !rules.attends_in_chunks {
            attend_to_all(&mut model);
        }
        let mut engine = self.engine(&rules, (&accelerator, capacity), session)?;
        if let Some(format) = self.weights {
            requantise(&mut model, format);
        }
        let layout = ServingLayout {
            tensor: self.tensor,
            pipeline: self.pipeline,
            expert: self.expert,
            attention_data: self.attention_data,
            redundant_experts: self.redundant_experts,
        };
        if let Err(reason) = layout.check(&model) {
            session.sink.push(Diagnostic::new(Code::Inconsistent, reason).hint("change the degrees of the layout"));
            return None;
        }
        let usable = capacity.saturating_sub(allowance.driver_reserve.value);
        let formats = self.cache.formats(&model);
        let context = self.context(&name, &model, session)?;
        if self.shared_prefix > context {
            let message =
                format!("{} tokens that requests share are more than the {context} of each", self.shared_prefix);
            let hint = "a shorter --shared-prefix, or a longer --context";
            session.sink.push(Diagnostic::new(Code::OutOfRange, message).hint(hint));
            return None;
        }
        let request = (context, self.shared_prefix);
        let room = fits(&model, &layout, &engine, &formats, usable, request);
        let taken = |room: Fits| room.taken(self.max_num_seqs, &layout);
        let paging = engine.pages.paging;
        let mut with = |paging| {
            engine.pages.paging = paging;
            taken(fits(&model, &layout, &engine, &formats, usable, request)).requests
        };
        let (whole_windows, unified_pages) = (with(Paging::AllTokens), with(Paging::UnifiedPages));
        engine.pages.paging = paging;
        let answer = ServingMemory {
            model: name,
            accelerator,
            layout,
            tokens: context,
            shared_prefix: self.shared_prefix,
            wanted: self.requests,
            usable,
            fits: taken(room),
            room: room.requests,
            longest: largest_context(&model, &layout, &engine, &formats, room.pool),
            whole_windows,
            unified_pages,
            fewest: smallest_tensor(&model, &layout, &engine, &formats, usable, context),
            engine,
            vocabulary: (layout.padded_vocabulary(&model), layout.padding(&model)),
        };
        let page = serving_memory_page(&answer, None);
        let csv = || serving_memory_csv(&answer, None, session.options.bom);
        Some(reply(session, answer.is_enough(), &page, || serving_memory_json(&answer, None), csv))
    }

    /// Tokens of a request at its longest; none where the engine takes fewer, which is told.
    fn context(&self, name: &str, model: &Model, session: &Session) -> Option<u64> {
        let most = self.max_model_len.or(model.context()).map(u64::from);
        let context = self.context.unwrap_or_else(|| USUAL_CONTEXT.min(most.unwrap_or(u64::MAX)));
        let Some(most) = most.filter(|most| context > *most) else { return Some(context) };
        let whose =
            if self.max_model_len.is_some() { "--max-model-len says".to_owned() } else { format!("{name} takes") };
        let message = format!("a request of {context} tokens is longer than the {most} that {whose}");
        let hint = format!(
            "a shorter --context, or --max-model-len {context} where the engine extends the model's positions (YaRN)"
        );
        session.sink.push(Diagnostic::new(Code::OutOfRange, message).hint(hint));
        None
    }

    fn of_scenario(path: &std::path::Path, session: &mut Session) -> Option<Answer> {
        let mut catalog = session.catalog();
        let document = session.scenario(path, &mut catalog)?;
        let file = ScenarioFile::read(&document, &session.sink);
        if MemoryJob::is_wanted(&file, &catalog) {
            let wanted = MemoryJob::resolve(&file, &catalog, &session.sink)?;
            return Some(Self::several_kinds(&wanted, session));
        }
        let scenario = Scenario::resolve(&file, &catalog, &session.sink)?;
        let title = scenario.title.clone();
        let scenario = match search::settle(scenario) {
            Ok((scenario, _)) => scenario,
            Err(infeasible) => return Some(no(&title, &infeasible, None, session)),
        };
        let training = match (&scenario.training, &scenario.serving) {
            (Some(training), _) => training,
            (None, Some(serving)) => return Some(Self::served(serving, &scenario.cluster, session)),
            (None, None) => {
                let message = format!("{} trains and serves nothing", path.display());
                session.sink.push(Diagnostic::new(Code::MissingKey, message).hint("add [training] or [serving]"));
                return None;
            }
        };
        let software = Software::new(&training.memory, training.framework_memory, training.software.attention_kernel);
        let usable = software.usable(scenario.cluster.accelerator.memory_capacity);
        let layout = training.layout.over(scenario.cluster.accelerators);
        let checked = layout.and_then(|layout| layout.check(&training.transformer, &training.job).map(|()| layout));
        let layout = match checked {
            Ok(layout) => layout,
            Err(error) => {
                let infeasible = Infeasible::from(error);
                let nearest = search::nearest(&scenario, &infeasible);
                return Some(no(&scenario.title, &infeasible, nearest.as_ref(), session));
            }
        };
        let fit = TrainingFit::new(&training.transformer, &training.job, &layout, &software, usable);
        let page = training_memory_page(&scenario.title, &fit);
        let csv = || training_memory_csv(&scenario.title, &fit, session.options.bom);
        Some(reply(session, fit.fits(), &page, || training_memory_json(&scenario.title, &fit), csv))
    }

    /// What a rank of a replica holds; of pools, one of each.
    fn served(serving: &Serving, cluster: &Cluster, session: &Session) -> Answer {
        let replica = Self::held(serving, cluster.main_nodes(), None);
        let worker = serving.prefill.as_ref();
        let worker = worker.map(|pool| Self::held(serving, cluster.nodes_of_prefill(), Some(pool.layout)));
        let enough = replica.is_enough() && worker.as_ref().is_none_or(ServingMemory::is_enough);
        let page = serving_memory_page(&replica, worker.as_ref());
        let csv = || serving_memory_csv(&replica, worker.as_ref(), session.options.bom);
        reply(session, enough, &page, || serving_memory_json(&replica, worker.as_ref()), csv)
    }

    /// What a rank of a replica holds, or of a prefill worker of a layout.
    fn held(serving: &Serving, nodes: NodeGroup<'_>, prefill: Option<ServingLayout>) -> ServingMemory {
        let held = held_by_a_rank(serving, nodes, prefill, None);
        let layout = &prefill.unwrap_or(serving.layout);
        let taken = |room: Fits| room.taken(serving.features.max_num_seqs, layout);
        let of = |paging| taken(held_by_a_rank(serving, nodes, prefill, Some(paging)).fits).requests;
        let (model, engine) = (&serving.model, held.engine);
        let formats = CacheFormats::of(model);
        let accelerator = &nodes.accelerator.name;
        let slice = serving.features.slice.as_ref();
        ServingMemory {
            model: serving.entry.name.clone(),
            accelerator: slice.map_or_else(|| accelerator.clone(), |slice| format!("{} of {accelerator}", slice.name)),
            layout: *layout,
            tokens: held.tokens,
            shared_prefix: 0,
            wanted: 1,
            usable: held.usable,
            fits: taken(held.fits),
            room: held.fits.requests,
            longest: largest_context(model, layout, &engine, &formats, held.fits.pool),
            whole_windows: of(Paging::AllTokens),
            unified_pages: of(Paging::UnifiedPages),
            fewest: smallest_tensor(model, layout, &engine, &formats, held.usable, held.tokens),
            engine,
            vocabulary: (layout.padded_vocabulary(model), layout.padding(model)),
        }
    }

    /// Training of a model of several kinds of layers.
    fn several_kinds(wanted: &MemoryJob, session: &Session) -> Answer {
        let layers = Layers::from(&wanted.model);
        let software = Software::new(&wanted.memory, wanted.framework_memory, wanted.software.attention_kernel);
        let usable = software.usable(wanted.cluster.accelerator.memory_capacity);
        let layout = wanted.layout.over(wanted.cluster.accelerators);
        let checked = layout.and_then(|layout| layout.check_layers(layers, &wanted.job).map(|()| layout));
        let layout = match checked {
            Ok(layout) => layout,
            Err(error) => return no(&wanted.title, &Infeasible::from(error), None, session),
        };
        let fit = TrainingFit::new(layers, &wanted.job, &layout, &software, usable);
        let mut page = training_memory_page(&wanted.title, &fit);
        if wanted.model.spread_evenly() && layout.pipeline > 1 {
            let note = "The model's file does not give the order of its layers: those of each kind are spread evenly.";
            page.sections.push(Section::new("Assumed", Block::List(vec![note.to_owned()])));
        }
        let csv = || training_memory_csv(&wanted.title, &fit, session.options.bom);
        reply(session, fit.fits(), &page, || training_memory_json(&wanted.title, &fit), csv)
    }

    fn rules(&self, catalog: &Catalog, session: &Session) -> Option<EngineMemory> {
        let allowance = catalog.memory_allowances.get("cuda")?;
        let Some(memory) = allowance.engines.get(&self.engine) else {
            let known: Vec<&str> = allowance.engines.keys().map(String::as_str).collect();
            let message = format!("no serving engine is called \"{}\"", self.engine);
            let hint = format!("there is {}", known.join(", "));
            session.sink.push(Diagnostic::new(Code::UnknownWord, message).hint(hint));
            return None;
        };
        Some(memory.of_version(self.engine_version))
    }

    fn engine(&self, rules: &EngineMemory, (device, capacity): (&str, Bytes), session: &Session) -> Option<Engine> {
        let engine = Engine::new(rules, device, capacity);
        let fraction = match self.fraction {
            None => engine.fraction,
            Some(share) => Fraction::new(share).map(Some).or_else(|| {
                let message = format!("a fraction of {} is outside 0 to 1", brief(share));
                session.sink.push(Diagnostic::new(Code::OutOfRange, message).hint("it is a share, such as 0.9"));
                None
            })?,
        };
        let pages = Pages {
            paging: self.paging.unwrap_or(engine.pages.paging),
            block: self.block.unwrap_or(engine.pages.block).max(1),
            batched_tokens: self.batched_tokens.unwrap_or(engine.pages.batched_tokens),
        };
        let requests = self.max_num_seqs.unwrap_or(engine.requests);
        Some(Engine { fraction, pages, requests, prompt_logprobs: self.prompt_logprobs, ..engine })
    }
}

/// An accelerator by id, or by the memory that it reports.
fn accelerator(wanted: &str, catalog: &Catalog, session: &mut Session) -> Option<(String, Bytes)> {
    if let Some(entry) = catalog.accelerators.get(wanted) {
        return Some((entry.name.clone(), entry.memory_capacity));
    }
    if wanted.starts_with(|first: char| first.is_ascii_digit()) {
        match Bytes::parse(wanted) {
            Ok(capacity) => return Some((format!("accelerator of {wanted}"), capacity)),
            Err(error) => {
                session.sink.push(Diagnostic::new(Code::WrongUnit, format!("--accelerator: {error}")));
                return None;
            }
        }
    }
    let file = session.sources.add("command line", wanted);
    let at = Span { file, range: 0..wanted.len() };
    catalog.accelerators.find(wanted, &at, &session.sink)?;
    None
}

/// Gives every projection one format.
fn requantise(model: &mut Model, format: NumberFormat) {
    let format = ModuleFormat { format, kept_layers: 0 };
    model.formats.modules = Formats::LINEAR.into_iter().map(|module| (module, format)).collect();
}

/// The answer; one that is "no" goes to stderr for people, and to stdout for programs.
fn reply(session: &Session, yes: bool, page: &Page, json: impl Fn() -> String, csv: impl Fn() -> Vec<u8>) -> Answer {
    let data = match session.format {
        Format::Json => json().into_bytes(),
        Format::Csv => csv(),
        Format::Table | Format::Md => session.page(page),
    };
    if yes {
        return Answer::Yes(data);
    }
    Answer::No { data: Some(data), message: "does not fit\n".to_owned() }
}
