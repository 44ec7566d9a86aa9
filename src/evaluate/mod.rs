//! The whole model for one scenario: memory, step time, serving, goodput, bill of materials, power and cost.
//!
//! Two stages: [`Prepared`] binds what does not depend on the layout, once; [`Prepared::point`] evaluates one layout
//! without allocating. [`evaluate`] adds what only a report needs.

mod agents;
mod bases;
mod bought;
mod cliffs;
mod cluster;
mod day_shares;
mod drawn;
mod evaluation;
mod failures;
mod footprint;
mod found;
mod infeasible;
mod line_evidence;
mod most_served;
mod network;
mod parts;
mod prepared;
mod run;
mod serving;
mod shares_of_prefill;
mod side;
mod staged;
mod step;
mod tenants;
mod tiers;
mod token_costs;

pub use agents::AgentsPoint;
pub use bases::{Bases, Evidence, Input};
pub use bought::NodesBought;
pub use cluster::BuiltCluster;
pub use drawn::PowerLine;
pub use evaluation::{Evaluation, FabricCounts, evaluate};
pub use failures::Failures;
pub use footprint::{ByToken, Footprint};
pub use found::{Candidate, Found, FoundWays, NoLayout, Reason, Tally};
pub use infeasible::{Infeasible, Pool};
pub use line_evidence::LineEvidence;
pub use most_served::most_of_one_replica;
pub use network::{Occupancy, fibre, network, network_as_asked};
pub use parts::{PartLine, parts, racked};
pub use prepared::{Fit, Point, Prepared};
pub use run::{Run, StageTime};
pub use serving::{
    AdapterPoint, Bands, BatchBound, CachePoint, CapacityShares, EnginePoint, HeldByRank, MissedLimit, PoolPoint,
    ReplicaPoint, ResidentPoint, ServingPoint, TenantsPoint, TimeShares, WorkerPoint, held_by_a_rank, prefill_worker,
    replica_alone, served_point, serving_point,
};
pub use shares_of_prefill::SharesOfPrefill;
pub use side::{Devices, SideBill, side_bills};
pub use staged::{Staged, StagedServing};
pub use step::{StepInputs, domain, reach, wires, wires_of_cards, with_efficiency};
pub use tenants::{TenantBill, TenantShare};
pub use tiers::{TierBought, TierParts};
pub use token_costs::{CapacityCosts, CostElements, TokenCosts};
