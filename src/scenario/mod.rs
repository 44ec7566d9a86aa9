//! A scenario: what the user typed, and what is true once every id is bound and every default applied.

mod file;
mod keys;
mod resolve;
mod software;

pub use file::{CompareFile, ScenarioFile, SoftwareDate, TierCount, TopologyKind};
pub use keys::KEYS;
pub use resolve::{
    Assumption, BoundFabric, Cluster, Finance, LinkParts, MANAGER_PART, Scenario, TopologyChoice, Training, check_adapter,
    check_fabric_prices,
};
pub use software::{MissingEfficiency, Overlap, Software, StepEfficiency};
