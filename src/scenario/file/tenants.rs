//! `serving.tenants`: who shares the replicas.

use super::limits::Limits;
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{FromNode, Node, Reader, Schema, Value};
use crate::units::RequestRate;

/// Tenants.
const TENANTS: std::ops::RangeInclusive<u32> = 1..=10_000_000;
/// Hours of a day, and a day's peak over its mean at most: its busiest half hour has all of it.
const HOURS: std::ops::RangeInclusive<f64> = 0.0..=24.0;
const MOST_PEAKED: f64 = 50.0;

/// `serving.tenants`: who shares the replicas, each with requests of its own: a table, or a list of several where they differ.
#[derive(Clone, Debug, Default)]
pub(in crate::scenario) struct TenantsFile(pub(in crate::scenario) Vec<TenantFile>);

/// Tenants that are alike.
#[derive(Clone, Debug, Default)]
pub(in crate::scenario) struct TenantFile {
    /// How many.
    pub(in crate::scenario) count: u32,
    /// Requests of one on average.
    pub(in crate::scenario) mean: RequestRate,
    /// Requests of one at its busiest.
    pub(in crate::scenario) peak: RequestRate,
    /// The hour of the day when that is.
    pub(in crate::scenario) busiest_hour: Option<f64>,
    /// What its latencies must stay below, where that is not what others' must.
    pub(in crate::scenario) limits: Option<Limits>,
}

impl TenantFile {
    fn read(r: &mut Reader<'_>) -> Self {
        let before = r.sink().len();
        let read = Self {
            count: r.about("tenants that are alike").within("count", &TENANTS),
            mean: r.about("requests of one tenant, on the mean of a day").such_as("1 request/s").get("mean"),
            peak: r.about("requests of one tenant at its busiest").such_as("3 request/s").get("peak"),
            busiest_hour: r
                .about("hour of the day when that is")
                .usually("at any time")
                .optional_within("busiest_hour", &HOURS),
            limits: r
                .about("what its latencies must stay below")
                .usually("`serving.limits`")
                .optional_table("limits", Limits::read),
        };
        if r.sink().len() > before {
            return read;
        }
        let report = |message: String, hint: &str| {
            r.sink().push(Diagnostic::new(Code::Inconsistent, message).at(r.at(), "in this table").hint(hint));
        };
        if read.peak < read.mean || read.mean <= RequestRate::ZERO {
            let message = format!("tenants of {} on average and {} at their busiest", read.mean, read.peak);
            report(message, "mean is above zero, and peak at least as much");
        } else if read.busiest_hour.is_some() && read.peak > read.mean * MOST_PEAKED {
            let message = format!("{} on average and {} at one hour of the day", read.mean, read.peak);
            report(message, "a day's peak is at most 50 times its mean; leave busiest_hour out for shorter ones");
        }
        read
    }
}

impl TenantsFile {
    /// Requests of all on average.
    pub(super) fn mean(&self) -> RequestRate {
        self.0.iter().map(|class| class.mean * f64::from(class.count)).sum()
    }
}

impl FromNode for TenantsFile {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        let one = |node: &Node| Reader::new(node, path, sink).map(|mut r| TenantFile::read(&mut r));
        match &node.value {
            Value::Array(classes) if classes.is_empty() => {
                let message = format!("`{path}` names nobody");
                let hint = "name at least one as { count = 10, mean = \"1 request/s\", peak = \"3 request/s\" }, or leave it out";
                sink.push(Diagnostic::new(Code::OutOfRange, message).at(&node.at, "an empty list").hint(hint));
                Self::default()
            }
            Value::Array(classes) => Self(classes.iter().filter_map(one).collect()),
            _ => Self(one(node).into_iter().collect()),
        }
    }

    fn schema() -> Schema {
        let table = Reader::describe(TenantFile::read);
        Schema::Either(Box::new(table.clone()), Box::new(Schema::List(Box::new(table))))
    }
}
