//! How a job is spread over accelerators: the degree of each parallel axis, what cannot be, which layers a pipeline stage
//! holds, what a rank holds of the parameters, and which ranks talk to which.

mod groups;
mod layout;
mod limits;
mod recompute;
mod serving;
mod shards;
mod space;
mod stage_layers;
mod stages;

pub use groups::{Groups, RankGroup};
pub use layout::{ContextExchange, Layout, RankOrder, Schedule, Sharding};
pub use limits::LayoutError;
pub use recompute::{Module, Modules, Recompute};
pub use serving::ServingLayout;
pub use shards::RankParameters;
pub use space::{Objective, Space};
pub use stage_layers::StageLayers;
pub use stages::{Stage, StagePlan};

#[cfg(test)]
pub(crate) use layout::tests::SINGLE;
