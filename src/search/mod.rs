//! Many evaluations: the best layout of a job, the nearest to one that cannot be, and the cheapest cluster that serves
//! what is asked.
//!
//! Work is shared out among threads by rows of a space (the degrees, the microbatch, sequence parallelism) and put
//! together again in order, so that any number of threads gives the same answer.

mod answer;
mod apart;
mod band;
mod binding;
mod doubled;
mod front;
mod layouts;
mod nearest;
mod plan;
mod refusal;
mod rejected;
mod serving;
mod shared;
mod tried;
mod variants;
mod walk;

pub use answer::{evaluate, settle};
pub use apart::{Alone, Apart, Beside, OwnCluster, OwnReplicas};
pub use band::Sizing;
pub use binding::Binding;
pub use doubled::{Doubled, Resource};
pub use layouts::{Variant, Variants, search};
pub use nearest::{Nearest, nearest};
pub use plan::{Answer as PlanAnswer, Plan, plan};
pub use refusal::Refusal;
pub use rejected::Rejection;
pub use serving::{Deployment, best_deployment, deployments, serving_layouts};
pub use tried::Size as PlanSize;
