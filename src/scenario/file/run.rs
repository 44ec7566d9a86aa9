//! `[[training.stage]]`, `training.ramp`, `training.evaluation` and `[training.data]`: the run around the step.

use super::layout::{GlobalBatch, LayoutFile};
use crate::diagnostics::{Code, Span};
use crate::document::{Reader, choices};
use crate::units::{Bandwidth, Bytes, Fraction, Seconds, Tokens, to_integer};
use crate::workload::Stored;

/// The most cores that prepare data.
const MOST_CORES: u32 = 100_000_000;
/// The most steps that are loaded ahead.
const MOST_AHEAD: f64 = 10_000.0;
/// The most that rollouts may take: beyond, nothing is trained.
const MOST_ROLLOUT: f64 = 0.99;

choices! {
    /// What a stage of a run does.
    pub enum StageKind {
        /// Trains on the next token of a corpus.
        PreTraining = "pre-training",
        /// Trains all parameters on examples.
        Sft = "sft",
        /// Trains adapters on examples; the model itself is frozen.
        Lora = "lora",
        /// Trains all parameters on what the model has written and was rewarded for.
        Rl = "rl",
    }
}

/// One `[[training.stage]]`
#[derive(Clone, Debug, Default)]
pub struct StageFile {
    /// What it is called.
    pub name: String,
    /// What it does.
    pub kind: Option<StageKind>,
    /// Its tokens.
    pub tokens: Tokens,
    /// Where they are written.
    pub tokens_at: Span,
    /// Tokens of a sequence, where they differ.
    pub sequence_length: Option<u32>,
    /// Its batch, where it differs.
    pub global_batch: Option<GlobalBatch>,
    /// Place of it.
    pub global_batch_at: Span,
    /// A batch that grows.
    pub ramp: Option<RampFile>,
    /// What of the layout differs.
    pub layout: Option<LayoutFile>,
    /// Share of its time that writes what is rewarded.
    pub rollout_share: Option<Fraction>,
    /// Place of the table.
    pub at: Span,
}

/// `ramp`: a batch that grows to the full one.
#[derive(Clone, Debug, Default)]
pub struct RampFile {
    /// Sequences of the first steps.
    pub from: u32,
    /// Sequences that are added each time.
    pub step: u32,
    /// Tokens over which it grows.
    pub tokens: Tokens,
    /// Place of the table.
    pub at: Span,
}

/// `training.evaluation`
#[derive(Clone, Copy, Debug, Default)]
pub struct EvaluationFile {
    /// Steps between two.
    pub every: u32,
    /// What one takes.
    pub time: Seconds,
}

/// `[training.data]`
#[derive(Clone, Copy, Debug, Default)]
pub struct DataFile {
    /// What was gathered.
    pub raw: Option<Bytes>,
    /// What is left of it.
    pub cleaned: Option<Bytes>,
    /// What loaders read.
    pub stored: Option<Stored>,
    /// A token as it is stored.
    pub token_size: Option<Bytes>,
    /// Text of a token.
    pub text_per_token: Option<Bytes>,
    /// What one core cleans.
    pub clean_rate: Option<Bandwidth>,
    /// What one core tokenises.
    pub tokenise_rate: Option<Bandwidth>,
    /// Cores that prepare.
    pub cores: Option<u32>,
    /// Cores that load, by accelerator.
    pub loader_cores: Option<u32>,
    /// Steps ahead.
    pub prefetch: Option<u32>,
}

impl StageFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let before = r.sink().len();
        let stage = Self {
            name: r.about("what the stage is called").get("name"),
            kind: r.about("what it does").usually("\"pre-training\"").optional("kind"),
            tokens: r.about("tokens of the stage").get("tokens"),
            tokens_at: r.place("tokens"),
            sequence_length: r.about("tokens of a sequence").usually("that of the job").optional("sequence_length"),
            global_batch: r.about("sequences or tokens of a step").usually("that of the job").optional("global_batch"),
            global_batch_at: r.place("global_batch"),
            ramp: r
                .about("a batch that grows to the full one")
                .usually("the full one from the start")
                .optional_table("ramp", RampFile::read),
            layout: r.about("what differs from the layout of the job").optional_table("layout", LayoutFile::read),
            rollout_share: r
                .about("share of the time of a stage of kind \"rl\" that writes what is rewarded")
                .optional("rollout_share"),
            at: r.at().clone(),
        };
        if r.sink().len() != before {
            return stage;
        }
        if stage.tokens <= Tokens::ZERO {
            r.report(
                "tokens",
                Code::OutOfRange,
                format!("the stage \"{}\" has no tokens", stage.name),
                "leave the stage out",
            );
        }
        if stage.layout.as_ref().is_some_and(|layout| layout.search.is_some()) {
            let message = format!("the layout of the stage \"{}\" is left to a search", stage.name);
            r.report(
                "layout",
                Code::Unsupported,
                message,
                "only `training.layout` is searched: name a stage's degrees",
            );
        }
        let rl = stage.kind == Some(StageKind::Rl);
        match stage.rollout_share {
            None if rl => {
                r.report(
                    "kind",
                    Code::MissingKey,
                    "`rollout_share` is missing",
                    "the share of the time that writes what is rewarded, such as 0.7",
                );
            }
            Some(_) if !rl => {
                r.report(
                    "rollout_share",
                    Code::Inconsistent,
                    "only stages of kind \"rl\" have rollouts",
                    "leave it out",
                );
            }
            Some(share) if share.get() > MOST_ROLLOUT => {
                let message = format!("rollouts take {} of the time, and training nothing", share.get());
                r.report("rollout_share", Code::OutOfRange, message, "such as 0.7");
            }
            _ => {}
        }
        stage
    }
}

impl RampFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            from: r.about("sequences of the first steps").within("from", &(1..=u32::MAX)),
            step: r.about("sequences that are added each time").within("step", &(1..=u32::MAX)),
            tokens: r.about("tokens over which the batch grows").such_as("252 Gtoken").get("tokens"),
            at: r.at().clone(),
        }
    }
}

impl EvaluationFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            every: r.about("steps between two evaluations").within("every", &(1..=u32::MAX)),
            time: r.about("time that one takes").such_as("5 min").get("time"),
        }
    }
}

impl DataFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let before = r.sink().len();
        let data = Self {
            raw: r.about("data that was gathered").such_as("1 PB").optional("raw"),
            cleaned: r.about("what cleaning leaves of it").such_as("160 TB").optional("cleaned"),
            stored: r.about("what loaders read").usually("\"tokens\"").optional("stored"),
            token_size: r
                .about("a token as it is stored")
                .usually("as many bytes as the vocabulary needs")
                .such_as("4 B")
                .optional("token_size"),
            text_per_token: r
                .about("text of a token")
                .usually("as the catalog has it")
                .such_as("4 B")
                .optional("text_per_token"),
            clean_rate: r
                .about("what a core cleans")
                .usually("as the catalog has it")
                .such_as("1 MB/s")
                .optional("clean_rate"),
            tokenise_rate: r
                .about("what a core tokenises")
                .usually("as the catalog has it")
                .such_as("2 MB/s")
                .optional("tokenise_rate"),
            cores: r
                .about("cores that prepare data")
                .usually("as the catalog has it")
                .optional_within("cores", &(1..=MOST_CORES)),
            loader_cores: r
                .about("cores that load data, by accelerator")
                .usually("as the catalog has it")
                .optional_within("loader_cores", &(1..=MOST_CORES)),
            prefetch: steps_ahead(r),
        };
        if r.sink().len() != before {
            return data;
        }
        let zero_size = [
            ("raw", data.raw),
            ("cleaned", data.cleaned),
            ("token_size", data.token_size),
            ("text_per_token", data.text_per_token),
        ];
        let zero_rate = [("clean_rate", data.clean_rate), ("tokenise_rate", data.tokenise_rate)];
        let zeros =
            zero_size.into_iter().filter(|(_, size)| size.is_some_and(|size| size <= Bytes::ZERO)).map(|(key, _)| key);
        let rates = zero_rate
            .into_iter()
            .filter(|(_, rate)| rate.is_some_and(|rate| rate <= Bandwidth::ZERO))
            .map(|(key, _)| key);
        for key in zeros.chain(rates) {
            r.report(key, Code::OutOfRange, format!("`training.data.{key}` is zero"), "more than zero is needed");
        }
        if let (Some(raw), Some(cleaned)) = (data.raw, data.cleaned)
            && cleaned > raw
        {
            let message = format!("{cleaned} are left of {raw}");
            r.report("cleaned", Code::Inconsistent, message, "cleaning takes away: `cleaned` is at most `raw`");
        }
        if data.raw.is_some() && data.cleaned.is_none() {
            r.report(
                "raw",
                Code::MissingKey,
                "`training.data.cleaned` is missing beside `raw`",
                "what filters and deduplication leave, such as \"160 TB\"",
            );
        }
        data
    }
}

/// Steps that loaders are ahead: a count that may be none.
fn steps_ahead(r: &mut Reader<'_>) -> Option<u32> {
    r.about("steps that loaders are ahead")
        .usually("as the catalog has it")
        .bounded::<f64>("prefetch", &(0.0..=MOST_AHEAD));
    let steps: f64 = r.optional("prefetch")?;
    if steps.fract() != 0.0 || !(0.0..=MOST_AHEAD).contains(&steps) {
        let message = format!("`training.data.prefetch` is {steps}, no count of steps from 0 to {MOST_AHEAD}");
        r.report("prefetch", Code::OutOfRange, message, "2 is usual; 0 waits for every step's data");
        return None;
    }
    Some(to_integer::<u32>(steps))
}
