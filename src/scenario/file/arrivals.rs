//! `serving.arrivals`: how requests come.

use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{FromNode, Node, Reader, Schema};
use crate::units::{Factor, RequestRate};

/// The most requests open at once.
const MOST_OPEN: u32 = 1_000_000_000;
/// The most that times between requests scatter over their mean. Beyond, nearly all requests come in one burst, of which
/// the queue's formulas, those of a renewal process, say nothing.
const MOST_CV: f64 = 100.0;

/// How requests come, to all replicas together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Arrivals {
    /// More than can be served.
    #[default]
    Most,
    /// By themselves, so many in a time.
    Rate(RequestRate),
    /// So many open at once, each followed by another as it ends.
    Concurrency(u32),
}

impl std::fmt::Display for Arrivals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Most => f.pad("max"),
            Self::Rate(rate) => write!(f, "rate {rate}"),
            Self::Concurrency(open) => write!(f, "concurrency {open}"),
        }
    }
}

/// What else is said of how they come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArrivalTerms {
    /// Standard deviation over the mean of the times between two: 1 where they come at random (Poisson).
    pub cv: f64,
    /// Whether they come when they did in the trace, its time stretched to the rate.
    pub replay: bool,
    /// Prompts that a benchmark sends in all, as many at once as are open, or all of them; without end, and without a beginning,
    /// where not given.
    pub prompts: Option<u32>,
    /// Whether they are those of `serving.tenants`, as many as come at their busiest time together.
    pub tenants: bool,
}

impl Default for ArrivalTerms {
    fn default() -> Self {
        Self { cv: 1.0, replay: false, prompts: None, tenants: false }
    }
}

/// The forms that it has.
const EXPECTED: &str =
    "\"max\", \"trace\", \"tenants\", { rate = \"40 request/s\" }, { concurrency = 64 } or { prompts = 3000 }";

/// `serving.arrivals`
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ArrivalsFile {
    /// How they come; at the trace's own rate where there is none.
    pub kind: Option<Arrivals>,
    /// What else is said.
    pub terms: ArrivalTerms,
}

impl FromNode for ArrivalsFile {
    fn from_node(node: &Node, path: &str, sink: &Sink) -> Self {
        let of = |kind| Self { kind, ..Self::default() };
        match node.as_str() {
            Some("max") => return of(Some(Arrivals::Most)),
            Some("trace") => {
                return Self { kind: None, terms: ArrivalTerms { replay: true, ..ArrivalTerms::default() } };
            }
            Some("tenants") => {
                return Self { kind: None, terms: ArrivalTerms { tenants: true, ..ArrivalTerms::default() } };
            }
            _ => {}
        }
        if node.as_table().is_none() {
            node.wrong_type(path, EXPECTED, sink);
            return of(Some(Arrivals::Most));
        }
        Reader::new(node, path, sink).map_or(of(Some(Arrivals::Most)), |mut r| Self::of_table(&mut r, node))
    }

    fn schema() -> Schema {
        let table = Reader::describe(|r| Self::of_table(r, &Node::default()));
        Schema::Either(Box::new(Schema::Words(vec!["max", "trace", "tenants"])), Box::new(table))
    }
}

impl ArrivalsFile {
    fn of_table(r: &mut Reader<'_>, node: &Node) -> Self {
        let (path, sink) = (r.path().to_owned(), r.sink());
        let before = sink.len();
        let rate: Option<RequestRate> =
            r.about("requests that come in a time by themselves, on the mean of a day").optional("rate");
        if sink.len() == before && rate == Some(RequestRate::ZERO) {
            let message = format!("`{path}.rate` is no request at all");
            r.report("rate", Code::OutOfRange, message, "such as \"40 request/s\", or leave serving out");
        }
        let concurrency = r
            .about("requests that are open at once, each followed by another as it ends")
            .optional_within("concurrency", &(1..=MOST_OPEN));
        let before = sink.len();
        r.about("standard deviation over the mean of the times between two requests: 1 where they come at random")
            .usually("1")
            .bounded::<Factor>("cv", &(0.0..=MOST_CV));
        let cv: Option<Factor> = r.optional("cv");
        if sink.len() == before && cv.is_some_and(|cv| cv.get() > MOST_CV) {
            let message = format!("`{path}.cv` is above {MOST_CV}");
            r.report("cv", Code::OutOfRange, message, "1 where requests come at random, some more in bursts");
        }
        let prompts = r
            .about("prompts that a benchmark sends in all")
            .usually("without end")
            .optional_within("prompts", &(1..=MOST_OPEN));
        let replay: Option<bool> = r
            .about("whether requests come when they did in the trace, its time stretched to the rate")
            .usually("false")
            .optional("replay");
        let kind = match (rate, concurrency) {
            (Some(rate), None) => Arrivals::Rate(rate),
            (None, Some(open)) => Arrivals::Concurrency(open),
            (None, None) if prompts.is_some() => Arrivals::Most,
            _ => {
                let message = format!("`{path}` is one of {EXPECTED}");
                sink.push(Diagnostic::new(Code::Inconsistent, message).at(&node.at, "one of them").hint("give one"));
                Arrivals::Most
            }
        };
        let belongs = |key: &str, given: bool, to: &str| {
            if given {
                let message = format!("`{path}.{key}` is of requests that come {to}");
                r.report(key, Code::Inconsistent, message, "leave it out");
            }
        };
        if let Arrivals::Rate(_) = kind {
            belongs("prompts", prompts.is_some(), "as others end: a benchmark's");
            belongs("replay", replay == Some(true) && cv.is_some(), "when they did, so that `cv` follows");
        } else {
            belongs("cv", cv.is_some(), "at a rate");
            belongs("replay", replay.is_some(), "at a rate");
        }
        if let (Arrivals::Concurrency(open), Some(all)) = (kind, prompts)
            && all < open
        {
            let message = format!("{all} prompts in all are fewer than the {open} that are open at once");
            r.report("prompts", Code::Inconsistent, message, format!("at least {open}"));
        }
        let (cv, replay) = (cv.map_or(1.0, Factor::get), replay.unwrap_or(false));
        Self { kind: Some(kind), terms: ArrivalTerms { cv, replay, prompts, tenants: false } }
    }
}
