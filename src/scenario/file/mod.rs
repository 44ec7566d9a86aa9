//! What the user typed: ids with their places, quantities with their units, nothing bound yet.

mod agents;
mod arrivals;
mod cache;
mod cluster;
mod compare;
mod engine;
mod expert_load;
mod finance;
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
pub(super) use training::{LayoutFile, TrainingFile, sequences};
pub use uncertainty::{CorrelationFile, MOST_SAMPLES, Spread, UncertainFile, UncertaintyFile};
pub use varied::CatalogField;

use super::keys::KEYS;
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{DIALECT, Node, Reader};

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
        let file = Self::keys(&mut reader.knowing(KEYS));
        if ["training", "serving"].iter().all(|work| document.at_path(work).is_none()) {
            sink.push(
                Diagnostic::new(Code::MissingKey, "the scenario asks for nothing: `training` or `serving` is missing")
                    .at(&document.at, "in this file")
                    .hint("add a [training] table with model, precision, sequence_length, global_batch, tokens and layout, or [serving] with model, engine, input_tokens, output_tokens and layout"),
            );
        }
        file
    }

    /// The shape of a scenario's file.
    pub fn schema() -> serde_json::Value {
        let mut schema = Reader::describe(Self::keys).to_json();
        schema["$schema"] = DIALECT.into();
        schema["title"] = "A scenario".into();
        schema
    }

    fn keys(reader: &mut Reader<'_>) -> Self {
        Self {
            title: title(reader),
            cluster: reader.table("cluster", ClusterFile::read),
            software: reader.optional_table("software", SoftwareFile::read).unwrap_or_default(),
            training: reader.optional_table("training", TrainingFile::read),
            serving: reader.optional_table("serving", ServingFile::read),
            agents: reader.optional_table("agents", AgentsFile::read),
            finance: reader.optional_table("finance", FinanceFile::read).unwrap_or_default(),
            compare: reader.optional_table("compare", CompareFile::read),
            sweep: reader.optional_table("sweep", SweepFile::read),
            plan: reader.optional_table("plan", PlanFile::read),
            uncertainty: reader.optional_table("uncertainty", UncertaintyFile::read),
        }
    }
}

impl ScenarioFile {
    /// Reads `[finance]` alone.
    pub(super) fn read_finance(document: &Node, sink: &Sink) -> FinanceFile {
        let Some(reader) = Reader::new(document, "", sink) else { return FinanceFile::default() };
        reader.knowing(KEYS).optional_table("finance", FinanceFile::read).unwrap_or_default()
    }
}

/// The title, which is one line.
fn title(r: &mut Reader<'_>) -> String {
    let title: String = r.get("title");
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
