//! The run around the step: its stages with their batches, its evaluations, its data.

use std::borrow::Cow;

use super::layout::{check_positions, layout};
use super::{Cluster, Defaults, split};
use crate::catalog::training_efficiency::Framework;
use crate::catalog::{DataPreparation, Entry, Model};
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::parallelism::Layout;
use crate::scenario::file::{DataFile, LayoutFile, RampFile, StageFile, StageKind, TrainingFile, sequences};
use crate::units::{Bytes, Fraction, Seconds, Tokens};
use crate::workload::{DataPipeline, Stored, TrainingJob};

/// The most steps of a ramp; each is timed.
const MOST_RAMP_STEPS: u32 = 4_096;

/// A stage of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// What it is called.
    pub name: String,
    /// What it does.
    pub kind: StageKind,
    /// Its job, with its full batch and its own tokens.
    pub job: TrainingJob,
    /// A batch that grows to the full one.
    pub ramp: Option<Ramp>,
    /// Its layout, where that is not the run's.
    pub layout: Option<Layout>,
    /// Share of its time that writes what is rewarded.
    pub rollout_share: Fraction,
}

/// A batch that grows by equal steps, with as many tokens at each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// Sequences of the first steps.
    pub from: u32,
    /// Sequences that are added each time.
    pub step: u32,
    /// Batches below the full one.
    pub batches: u32,
    /// Tokens over which it grows.
    pub tokens: Tokens,
}

impl Stage {
    /// The batches of the stage, each with its tokens, in order.
    pub fn batches(&self) -> impl Iterator<Item = TrainingJob> + '_ {
        let ramped = self.ramp.map_or(Tokens::ZERO, |ramp| ramp.tokens);
        let growing = self.ramp.into_iter().flat_map(move |ramp| {
            (0..ramp.batches).map(move |index| TrainingJob {
                global_batch: ramp.from + ramp.step * index,
                tokens: ramp.tokens / f64::from(ramp.batches),
                ..self.job
            })
        });
        let rest = self.job.tokens - ramped;
        growing.chain((rest > Tokens::ZERO).then_some(TrainingJob { tokens: rest, ..self.job }))
    }
}

/// Pauses of training in which the model is evaluated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvaluationPause {
    /// Steps between two.
    pub every: u32,
    /// What one takes.
    pub time: Seconds,
}

/// The run around the step.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPlan {
    /// Its stages, in order, where there are several; else it is the job, with the ramp.
    pub stages: Vec<Stage>,
    /// A batch that grows, where there are no stages.
    pub ramp: Option<Ramp>,
    /// Pauses for evaluation.
    pub evaluation: Option<EvaluationPause>,
    /// The way of the data.
    pub data: DataPipeline,
}

impl RunPlan {
    /// The stages of a run: those of the plan, or else the job as the only one.
    pub fn stages_of(&self, job: &TrainingJob) -> Cow<'_, [Stage]> {
        if !self.stages.is_empty() {
            return Cow::Borrowed(&self.stages);
        }
        Cow::Owned(vec![Stage {
            name: "pre-training".to_owned(),
            kind: StageKind::PreTraining,
            job: *job,
            ramp: self.ramp,
            layout: None,
            rollout_share: Fraction::ZERO,
        }])
    }
}

/// What a plan is bound from beside the file.
pub(super) struct Surroundings<'a> {
    pub(super) model: &'a Entry<Model>,
    pub(super) job: TrainingJob,
    pub(super) vocab: u32,
    pub(super) preparation: &'a DataPreparation,
    pub(super) cluster: &'a Cluster,
    pub(super) framework: Framework,
}

pub(super) fn bind(wanted: &TrainingFile, around: &Surroundings<'_>, defaults: &mut Defaults, sink: &Sink) -> RunPlan {
    if !wanted.stages.is_empty() {
        if let Some(ramp) = &wanted.ramp {
            let message = "`training.ramp` beside stages: nobody knows which of them";
            sink.push(Diagnostic::new(Code::Inconsistent, message).at(&ramp.at, "here").hint("give it to a stage"));
        }
        check_sum(wanted, sink);
        check_names(&wanted.stages, sink);
    }
    let stages = wanted.stages.iter().map(|file| stage(file, wanted, around, sink)).collect();
    let ramp = wanted.ramp.as_ref().and_then(|file| ramp(file, &around.job, "the run", sink));
    let evaluation = wanted.evaluation.map(|file| EvaluationPause { every: file.every, time: file.time });
    RunPlan { stages, ramp, evaluation, data: data(wanted.data.as_ref(), around.preparation, around.vocab, defaults) }
}

/// The tokens of pre-training are the run's.
fn check_sum(wanted: &TrainingFile, sink: &Sink) {
    let pre_training = |stage: &&StageFile| matches!(stage.kind, None | Some(StageKind::PreTraining));
    let sum: Tokens = wanted.stages.iter().filter(pre_training).map(|stage| stage.tokens).sum();
    let whole = wanted.tokens;
    if (sum / whole - 1.0).abs() > 1e-6 {
        let message = format!("the stages of pre-training have {sum}, and `training.tokens` is {whole}");
        let hint = "they add up; stages of kind \"sft\", \"lora\" and \"rl\" are on top";
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.tokens_at, "the whole").hint(hint));
    }
}

fn check_names(stages: &[StageFile], sink: &Sink) {
    for (index, stage) in stages.iter().enumerate() {
        if stages[..index].iter().any(|before| before.name == stage.name) {
            let message = format!("two stages are called \"{}\"", stage.name);
            sink.push(Diagnostic::new(Code::Duplicate, message).at(&stage.at, "the second").hint("name each once"));
        }
    }
}

fn stage(file: &StageFile, wanted: &TrainingFile, around: &Surroundings<'_>, sink: &Sink) -> Stage {
    let sequence_length = file.sequence_length.unwrap_or(around.job.sequence_length);
    let (batch, at) = match file.global_batch {
        Some(batch) => (batch, &file.global_batch_at),
        None => (wanted.global_batch, &file.at),
    };
    let global_batch = sequences(batch, at, sequence_length, sink);
    let job = TrainingJob { sequence_length, global_batch, tokens: file.tokens, ..around.job };
    check_positions(around.model, &job, &file.at, sink);
    if job.tokens > Tokens::ZERO && job.tokens < job.tokens_per_step() {
        let message =
            format!("the stage \"{}\" of {} is less than one step of {}", file.name, job.tokens, job.tokens_per_step());
        let hint = "a step is global_batch sequences of sequence_length tokens";
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&file.tokens_at, "too few").hint(hint));
    }
    let own = file.layout.as_ref().map(|changes| {
        let whole = changes.over(&wanted.layout);
        if changes.stage_layers.is_some() {
            split::check(&whole, around.model.layers(), sink);
        }
        // Defaults of a stage's layout are the run's, which are told there.
        layout(&whole, around.cluster, around.framework, &mut Defaults::default(), sink)
    });
    Stage {
        name: file.name.clone(),
        kind: file.kind.unwrap_or(StageKind::PreTraining),
        ramp: file.ramp.as_ref().and_then(|ramp_file| ramp(ramp_file, &job, &file.name, sink)),
        job,
        layout: own,
        rollout_share: file.rollout_share.unwrap_or(Fraction::ZERO),
    }
}

/// A ramp, whose last step leads to the full batch.
fn ramp(file: &RampFile, job: &TrainingJob, name: &str, sink: &Sink) -> Option<Ramp> {
    let refuse = |at: &Span, message: String, hint: &str| {
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(at, "this ramp").hint(hint.to_owned()));
        None
    };
    let (from, step, full) = (file.from, file.step, job.global_batch);
    if from == 0 || step == 0 {
        return None;
    }
    if from >= full || !(full - from).is_multiple_of(step) {
        let message = format!("a ramp from {from} by {step} does not lead to the full batch of {full} sequences");
        return refuse(&file.at, message, "the full batch less `from` is a multiple of `step`");
    }
    let batches = (full - from) / step;
    if batches > MOST_RAMP_STEPS {
        let message = format!("a ramp of {batches} batches; at most {MOST_RAMP_STEPS} are timed");
        return refuse(&file.at, message, "make `step` larger");
    }
    if file.tokens > job.tokens {
        let message = format!("the batch of {name} grows over {}, and it has {}", file.tokens, job.tokens);
        return refuse(&file.at, message, "the ramp ends within it");
    }
    let largest = TrainingJob { global_batch: full - step, ..*job }.tokens_per_step();
    let each = file.tokens / f64::from(batches);
    if each < largest {
        let message = format!(
            "a ramp over {} has {each} for each of {batches} batches, less than a step of {largest}",
            file.tokens
        );
        return refuse(&file.at, message, "more tokens, or a larger `step`");
    }
    Some(Ramp { from, step, batches, tokens: file.tokens })
}

/// The way of the data, filled by what is usual; numbers of tokens have two bytes as long as the vocabulary lets them.
fn data(wanted: Option<&DataFile>, usual: &DataPreparation, vocab: u32, defaults: &mut Defaults) -> DataPipeline {
    let wanted = wanted.copied().unwrap_or_default();
    let narrow = if vocab <= 1 << 16 { 2.0 } else { 4.0 };
    let text = usual.text_per_token.value;
    DataPipeline {
        raw: wanted.raw,
        cleaned: wanted.cleaned,
        stored: defaults.or("training.data.stored", wanted.stored, Stored::Tokens),
        token_size: defaults.or("training.data.token_size", wanted.token_size, Bytes::new(narrow)),
        text_per_token: defaults.or("training.data.text_per_token", wanted.text_per_token, text),
        clean_rate: defaults.or("training.data.clean_rate", wanted.clean_rate, usual.clean_rate.value),
        tokenise_rate: defaults.or("training.data.tokenise_rate", wanted.tokenise_rate, usual.tokenise_rate.value),
        cores: defaults.or("training.data.cores", wanted.cores, usual.cores),
        loader_cores: defaults.or("training.data.loader_cores", wanted.loader_cores, usual.loader_cores),
        prefetch: defaults.or("training.data.prefetch", wanted.prefetch, usual.prefetch),
    }
}

impl LayoutFile {
    /// A stage's keys over the run's. The run's split of the layers holds for as many chunks.
    fn over(&self, run: &Self) -> Self {
        let virtual_stages = self.virtual_stages.or(run.virtual_stages);
        let alike = self.pipeline == run.pipeline && virtual_stages == run.virtual_stages;
        let inherited = if alike { run.stage_layers.clone() } else { None };
        Self {
            virtual_stages,
            stage_layers: self.stage_layers.clone().or(inherited),
            context: self.context.or(run.context),
            expert: self.expert.or(run.expert),
            schedule: self.schedule.or(run.schedule),
            sharding: self.sharding.or(run.sharding),
            shard_ranks: self.shard_ranks.or(run.shard_ranks),
            recompute: self.recompute.or(run.recompute),
            sequence_parallel: self.sequence_parallel.or(run.sequence_parallel),
            order: self.order.or(run.order),
            ..self.clone()
        }
    }
}
