//! A scenario: what the user typed, and what is true once every id is bound and every default applied.

mod file;
mod keys;
mod resolve;
mod search;
mod software;

pub use file::Amortisation;
pub use file::{
    AdapterRouting, AdapterTargets, ArrivalTerms, Arrivals, AxisFile, Balancing, CatalogField, Choice, CompareFile,
    CorrelationFile, Counts, Drawn, ExpertImbalance, Lengths, Limits, MOST_SAMPLES, Minimise, NetworksFile, PlanFile,
    PlanLimits, PowerBudget, Routing, ScenarioFile, ServingEngine, SharedBy, SoftwareDate, Spread, StageKind,
    SweepFile, Tenancy, TierCount, TokenPricesFile, TopologyKind, UncertainFile, UncertaintyFile, ValuesFile,
    signs_of_unit, written,
};
pub use resolve::{
    AdapterSet, Agents, Assumption, BoundFabric, BoundLongHaul, BoundSideNetwork, BoundTier, ByBook, Cluster,
    EngineFeatures, EvaluationPause, FABRIC_SPARES, Finance, GroupShare, Kept, LinkParts, MANAGER_PART, MemoryJob,
    Money, NodeGroup, PrefillNodes, PrefillPool, PrefixCaching, Ramp, RunPlan, Scenario, Serving, SiteChoice, Slice,
    Speculation, Stage, TopologyChoice, Training, USUAL_LONG_HAUL, check_adapter, check_fabric_prices, check_kind,
    check_side_prices, check_site_prices, common,
};
pub use search::LayoutSearch;
pub use software::{Communication, MissingEfficiency, Overlap, Software, StepEfficiency};
