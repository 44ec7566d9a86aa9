//! Why accelerators do not serve what is asked, with figures.

use std::fmt::{self, Display, Formatter};

use super::doubled::Doubled;
use crate::evaluate::{Infeasible, MissedLimit, ServingPoint};
use crate::inference::Short;
use crate::scenario::Serving;
use crate::units::RequestRate;

/// Why accelerators do not serve what is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// Latencies are beyond their limits.
    Limits {
        /// The one that is missed by most, over the limit.
        worst: MissedLimit,
        /// The others that are missed.
        others: Vec<MissedLimit>,
    },
    /// More requests come than are served.
    Throughput {
        /// What comes.
        asked: RequestRate,
        /// What is served at most.
        most: RequestRate,
        /// What runs out.
        short: Short,
        /// Of what twice as much would let them serve more, what helps most first; none where that is not looked at.
        doubled: Vec<Doubled>,
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
            Infeasible::Limit { table, key, limit, got } => {
                Self::Limits { worst: MissedLimit { table, key, limit, got }, others: Vec::new() }
            }
            Infeasible::Overload { asked, most, short, .. } => {
                Self::Throughput { asked, most, short, doubled: Vec::new() }
            }
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
    /// The limits that what is served misses; none where all are kept.
    pub(super) fn of_limits(point: &ServingPoint, serving: &Serving) -> Option<Self> {
        let (key, ..) = point.missed(&serving.limits)?;
        let (worst, others): (Vec<_>, Vec<_>) = point.all_missed(serving).partition(|missed| missed.key == key);
        worst.first().map(|worst| Self::Limits { worst: *worst, others })
    }

    /// What is asked over what can be had, 1 where no figure says so: the least is the nearest to working.
    pub(super) fn missed_by(&self) -> f64 {
        match self {
            Self::Limits { worst, .. } => worst.got / worst.limit,
            Self::Throughput { asked, most, .. } => *asked / *most,
            Self::Memory(_) | Self::Layout(_) | Self::Other(_) => 1.0,
        }
    }

    /// What it is about: a limit by its key, requests and what runs out, memory, the layout.
    pub fn subject(&self) -> String {
        match self {
            Self::Limits { worst: MissedLimit { table, key, .. }, .. } => format!("{table}.{key}"),
            Self::Throughput { short, doubled, .. } => format!("requests served: {}", scarce(*short, doubled)),
            Self::Memory(_) => "memory".to_owned(),
            Self::Layout(_) => "the layout".to_owned(),
            Self::Other(_) => "what is built".to_owned(),
        }
    }
}

/// What binds what is served: that of which more would let most more be served, where it is the time that replicas have or the room
/// in them; else what runs out.
fn scarce(short: Short, doubled: &[Doubled]) -> String {
    let hardware = matches!(short, Short::Cache | Short::Prefill | Short::Steps);
    match doubled {
        [best, others @ ..] if hardware => {
            others.iter().fold(best.of.word().to_owned(), |all, also| format!("{all} and {}", also.of.word()))
        }
        _ => resource(short).to_owned(),
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
        Short::Steps => "time for tokens of their answers",
        Short::Transfer => "the links that caches go over from prefill to decode",
    }
}

impl Display for Refusal {
    /// What so many accelerators do, to follow upon how many.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limits { worst: MissedLimit { limit, got, .. }, others } => {
                write!(f, "come to {got}, {} over the limit of {limit}", got.saturating_sub(*limit))?;
                others.iter().try_for_each(|MissedLimit { table, key, limit, got }| {
                    let over = got.saturating_sub(*limit);
                    write!(f, ", and to {got} of {table}.{key}, {over} over {limit}")
                })
            }
            Self::Throughput { asked, most, doubled, .. } => {
                write!(f, "serve {most} of {asked} at most")?;
                doubled.iter().try_for_each(|doubled| write!(f, ", {doubled}"))
            }
            Self::Memory(why) => write!(f, "hold no request: {why}"),
            Self::Layout(why) => write!(f, "do not do: {why}"),
            Self::Other(why) => write!(f, "cannot be: {why}"),
        }
    }
}
