//! What the user typed: ids with their places, quantities with their units, nothing bound yet.

mod agents;
mod arrivals;
mod cache;
mod cluster;
mod compare;
mod engine;
mod expert_load;
mod finance;
mod layout;
mod limits;
mod plan;
mod run;
mod serving;
mod software;
mod sweep;
mod tenants;
mod trace;
mod training;
mod uncertainty;
mod varied;

pub(super) use agents::{AgentsFile, RunFile};
pub use arrivals::{ArrivalTerms, Arrivals};
pub use cache::Routing;
pub(super) use cache::{CacheFile, CacheTierFile};
pub(super) use cluster::{ClusterFile, PrefillFile, SitesFile, TopologyFile};
pub use cluster::{NetworksFile, PowerBudget, Tenancy, TierCount, TopologyKind};
pub use compare::CompareFile;
pub(in crate::scenario) use engine::{
    Acceptance, AdaptersFile, EngineFile, GraphsFile, SharedFile, SliceFile, SpeculationFile,
};
pub use engine::{AdapterRouting, AdapterTargets, SharedBy};
pub use expert_load::ExpertImbalance;
pub use finance::Amortisation;
pub(super) use finance::FinanceFile;
pub use finance::TokenPricesFile;
pub(super) use layout::LayoutFile;
pub use limits::Limits;
pub use plan::{Choice, Counts, Minimise, PlanFile, PlanLimits};
pub use run::StageKind;
pub(super) use run::{DataFile, RampFile, StageFile};
pub use serving::{Balancing, Lengths, ServingEngine};
pub(super) use serving::{ServingFile, ServingLayoutFile};
pub use software::SoftwareDate;
pub(super) use software::SoftwareFile;
pub use sweep::{AxisFile, Drawn, SweepFile, ValuesFile, signs_of_unit, written};
pub(in crate::scenario) use tenants::{TenantFile, TenantsFile};
pub(super) use trace::TraceFile;
pub(super) use training::{TrainingFile, sequences};
pub use uncertainty::{CorrelationFile, MOST_SAMPLES, Spread, UncertainFile, UncertaintyFile};
pub use varied::CatalogField;

use super::keys::keys;
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{KnownKeys, Node, Reader, Schema};

/// The longest title, in characters.
const LONGEST_TITLE: usize = 200;

/// A scenario as it stands in its file.
#[derive(Clone, Debug, Default)]
pub struct ScenarioFile {
    /// What is asked, in a line.
    pub title: String,
    /// What is built.
    pub cluster: ClusterFile,
    /// The software, where given.
    pub software: SoftwareFile,
    /// The training job.
    pub training: Option<TrainingFile>,
    /// What is served.
    pub(super) serving: Option<ServingFile>,
    /// Agents whose tasks are served.
    pub(super) agents: Option<AgentsFile>,
    /// Money.
    pub finance: FinanceFile,
    /// What `compare` varies.
    pub compare: Option<CompareFile>,
    /// The axes of `sweep`.
    pub sweep: Option<SweepFile>,
    /// What `plan` wants and varies.
    pub plan: Option<PlanFile>,
    /// What is not known for certain.
    pub uncertainty: Option<UncertaintyFile>,
}

impl ScenarioFile {
    /// Reads a scenario; mistakes go to the sink.
    pub fn read(document: &Node, sink: &Sink) -> Self {
        let Some(reader) = Reader::new(document, "", sink) else { return Self::default() };
        let known = KnownKeys::new(keys);
        let file = Self::keys(&mut reader.knowing(&known));
        if ["training", "serving"].iter().all(|work| document.at_path(work).is_none()) {
            sink.push(
                Diagnostic::new(Code::MissingKey, "the scenario asks for nothing: `training` or `serving` is missing")
                    .at(&document.at, "in this file")
                    .hint("add a [training] table with model, precision, sequence_length, global_batch, tokens and layout, or [serving] with model, engine, input_tokens, output_tokens and layout"),
            );
        }
        let asks = |work: &str| document.at_path(work).is_some();
        match (asks("training"), asks("serving")) {
            (false, true) => {
                refuse_of_others(&OF_TRAINING, "of training, and the scenario trains nothing", document, sink);
            }
            (true, false) => {
                refuse_of_others(
                    &OF_SERVING,
                    "of tokens that are served, and the scenario serves none",
                    document,
                    sink,
                );
            }
            _ => {}
        }
        file
    }

    /// The shape of a scenario's file.
    pub fn shape() -> Schema {
        Reader::describe(Self::keys)
    }

    fn keys(reader: &mut Reader<'_>) -> Self {
        Self {
            title: title(reader),
            cluster: reader.about("what is built, where, and at which prices").table("cluster", ClusterFile::read),
            software: reader
                .about("what the job runs on, and of which date")
                .optional_table("software", SoftwareFile::read)
                .unwrap_or_default(),
            training: reader
                .about("the training job and its layout; this or `serving` must be there")
                .optional_table("training", TrainingFile::read),
            serving: reader.about("what is served, and how").optional_table("serving", ServingFile::read),
            agents: reader.about("agents whose tasks are what is served").optional_table("agents", AgentsFile::read),
            finance: reader
                .about("how long the cluster is held, what capital costs, how much of it is used")
                .optional_table("finance", FinanceFile::read)
                .unwrap_or_default(),
            compare: reader.about("what `compare` varies").optional_table("compare", CompareFile::read),
            sweep: reader.about("axes of `sweep`").optional_table("sweep", SweepFile::read),
            plan: reader.about("what `plan` wants, and what it may choose").optional_table("plan", PlanFile::read),
            uncertainty: reader
                .about("what `uncertainty` takes as not known for certain")
                .optional_table("uncertainty", UncertaintyFile::read),
        }
    }
}

impl ScenarioFile {
    /// Reads `[finance]` alone.
    pub(super) fn read_finance(document: &Node, sink: &Sink) -> FinanceFile {
        let Some(reader) = Reader::new(document, "", sink) else { return FinanceFile::default() };
        let known = KnownKeys::new(keys);
        reader.knowing(&known).optional_table("finance", FinanceFile::read).unwrap_or_default()
    }
}

/// Keys beside the tables of work that change nothing where there is none of that work, and what to do with them.
const OF_TRAINING: [(&str, &str); 1] =
    [("software", "leave it out: what serves is `serving.engine` and `serving.engine_version`")];
const OF_SERVING: [(&str, &str); 2] = [("finance.margin", "leave it out"), ("finance.token_prices", "leave it out")];

fn refuse_of_others(keys: &[(&str, &str)], whose: &str, document: &Node, sink: &Sink) {
    for (path, hint) in keys {
        if let Some(node) = document.at_path(path) {
            let message = format!("`{path}` is {whose}");
            sink.push(Diagnostic::new(Code::Inconsistent, message).at(&node.at, "changes nothing").hint(*hint));
        }
    }
}

/// The title, which is one line.
fn title(r: &mut Reader<'_>) -> String {
    let title: String = r.about("what is asked, in a line").get("title");
    if title.chars().any(char::is_control) {
        let message = "`title` has a line break or another control character";
        r.report("title", Code::OutOfRange, message, "write it in one line");
    }
    let length = title.chars().count();
    if length > LONGEST_TITLE {
        let message = format!("`title` has {length} characters; at most {LONGEST_TITLE} are taken");
        r.report("title", Code::OutOfRange, message, "ask one question, in a line");
    }
    title
}
