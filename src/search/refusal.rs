//! Why accelerators do not serve what is asked, with figures.

use std::fmt::{self, Display, Formatter};

use crate::evaluate::Infeasible;
use crate::inference::Short;
use crate::units::{RequestRate, Seconds};

/// Why accelerators do not serve what is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// A latency is beyond its limit.
    Limit {
        /// The table that the limit is in.
        table: &'static str,
        /// The limit's key.
        key: &'static str,
        /// The limit.
        limit: Seconds,
        /// What it comes to.
        got: Seconds,
    },
    /// More requests come than are served.
    Throughput {
        /// What comes.
        asked: RequestRate,
        /// What is served at most.
        most: RequestRate,
        /// What runs out.
        short: Short,
    },
    /// A replica holds no request, or a prefill worker no prompt.
    Memory(String),
    /// They hold no whole replica, or not both pools, with those to spare.
    Layout(String),
    /// The network, the racks or the power do not take as many, or constants are missing.
    Other(String),
}

impl From<Infeasible> for Refusal {
    fn from(infeasible: Infeasible) -> Self {
        match infeasible {
            Infeasible::Limit { table, key, limit, got } => Self::Limit { table, key, limit, got },
            Infeasible::Overload { asked, most, short, .. } => Self::Throughput { asked, most, short },
            of_memory @ (Infeasible::NoRequestFits { .. }
            | Infeasible::NoForwardPass { .. }
            | Infeasible::Prefill(_)
            | Infeasible::NoWorker { .. }) => Self::Memory(of_memory.to_string()),
            of_layout @ (Infeasible::PartReplica { .. }
            | Infeasible::PartPools { .. }
            | Infeasible::PartPool { .. }
            | Infeasible::NoReplicaLeft { .. }) => Self::Layout(of_layout.to_string()),
            other => Self::Other(other.to_string()),
        }
    }
}

impl Refusal {
    /// What is asked over what can be had, 1 where no figure says so: the least is the nearest to working.
    pub(super) fn missed_by(&self) -> f64 {
        match self {
            Self::Limit { limit, got, .. } => *got / *limit,
            Self::Throughput { asked, most, .. } => *asked / *most,
            Self::Memory(_) | Self::Layout(_) | Self::Other(_) => 1.0,
        }
    }

    /// What it is about: a limit by its key, requests and what runs out, memory, the layout.
    pub fn subject(&self) -> String {
        match self {
            Self::Limit { table, key, .. } => format!("{table}.{key}"),
            Self::Throughput { short, .. } => format!("requests served: {}", resource(*short)),
            Self::Memory(_) => "memory".to_owned(),
            Self::Layout(_) => "the layout".to_owned(),
            Self::Other(_) => "what is built".to_owned(),
        }
    }
}

/// What replicas need more of.
const fn resource(short: Short) -> &'static str {
    match short {
        Short::Cache => "memory for their caches",
        Short::Sequences => "the engines' limit of requests at once",
        Short::Adapters => "places for different adapters",
        Short::Sessions => "memory for sessions that wait",
        Short::Prefill => "time for their prompts",
        Short::Transfer => "the links that caches go over from prefill to decode",
    }
}

impl Display for Refusal {
    /// What so many accelerators do, to follow upon how many.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit { limit, got, .. } => {
                write!(f, "come to {got}, {} over the limit of {limit}", got.saturating_sub(*limit))
            }
            Self::Throughput { asked, most, .. } => write!(f, "serve {most} of {asked} at most"),
            Self::Memory(why) => write!(f, "hold no request: {why}"),
            Self::Layout(why) => write!(f, "do not do: {why}"),
            Self::Other(why) => write!(f, "cannot be: {why}"),
        }
    }
}
