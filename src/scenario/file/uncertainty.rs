//! `[uncertainty]`: what is not known for certain, and how it spreads.

use super::varied::{check_key, varied_twice};
use crate::diagnostics::{Code, Diagnostic, Span, did_you_mean};
use crate::document::{FromNode, Node, Reader, Rows, Schema, Value};

/// The most samples: the length of the sequence that they are taken from.
pub const MOST_SAMPLES: u32 = 1 << 16;
/// Samples where a scenario does not say.
const USUAL_SAMPLES: u32 = 1_024;
/// Beyond it lies no quantity of a cluster; its square, which a triangle takes, is a number still.
const LARGEST: f64 = 1e30;
/// The most that a lognormal's P90 may be of its median: a sample in a million is then that to the power of 3.7 away.
const MOST_LOGNORMAL: f64 = 1e6;

/// `[uncertainty]`
#[derive(Clone, Debug)]
pub struct UncertaintyFile {
    /// Inputs and how they spread.
    pub inputs: Vec<UncertainFile>,
    /// Inputs that move together.
    pub correlations: Vec<CorrelationFile>,
    /// Whether values of the catalog that have a range spread over it.
    pub catalog: bool,
    /// Samples.
    pub samples: u32,
    /// What samples are drawn by.
    pub seed: u32,
}

impl Default for UncertaintyFile {
    fn default() -> Self {
        Self { inputs: Vec::new(), correlations: Vec::new(), catalog: true, samples: USUAL_SAMPLES, seed: 0 }
    }
}

/// An input and how it spreads.
#[derive(Clone, Debug, PartialEq)]
pub struct UncertainFile {
    /// The key: of the scenario, or `catalog/<folder>/<id>/<field>`.
    pub key: String,
    /// How it spreads.
    pub spread: Spread,
    /// Written after its numbers.
    pub unit: Option<String>,
    /// Its place.
    pub at: Span,
}

/// Two inputs that move together.
#[derive(Clone, Debug, PartialEq)]
pub struct CorrelationFile {
    /// Their keys.
    pub between: [String; 2],
    /// The correlation of their ranks (Spearman's), between -1 and 1.
    pub rank: f64,
    /// Its place.
    pub at: Span,
}

/// How a number spreads.
#[derive(Clone, Debug, PartialEq)]
pub enum Spread {
    /// Anywhere between two numbers.
    Uniform {
        /// The least.
        low: f64,
        /// The most.
        high: f64,
    },
    /// Between two numbers, most often near a third.
    Triangular {
        /// The least.
        low: f64,
        /// The most frequent.
        mode: f64,
        /// The most.
        high: f64,
    },
    /// As often below a number as above it, nearer to it than to two others on either side (the double triangle that estimators of
    /// costs take where ranges reach further to one side; AACE International, Recommended Practice 41R-08, 2008): how a value of
    /// the catalog spreads over its range.
    DoubleTriangular {
        /// The least.
        low: f64,
        /// As often below as above.
        median: f64,
        /// The most.
        high: f64,
    },
    /// Its logarithm is normal.
    LogNormal {
        /// As often below as above.
        median: f64,
        /// Above it in a tenth of all cases.
        p90: f64,
    },
    /// One of these, each as often.
    Empirical(Vec<f64>),
}

impl UncertaintyFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let usual = Self::default();
        r.about("inputs that are not known for certain, and how each spreads");
        let inputs: Vec<UncertainFile> = tables(r, "inputs", input);
        for (index, input) in inputs.iter().enumerate() {
            if let Some(first) = inputs[..index].iter().find(|other| other.key == input.key) {
                varied_twice(&input.key, &input.at, &first.at, r.sink());
            }
        }
        r.about("inputs that move together");
        Self {
            inputs,
            correlations: tables(r, "correlations", correlation),
            catalog: r
                .about("whether values of the catalog that have a range spread over it")
                .usually("true")
                .or("catalog", usual.catalog),
            samples: r
                .about("how many samples are drawn")
                .usually("1024")
                .optional_within("samples", &(16..=MOST_SAMPLES))
                .unwrap_or(usual.samples),
            seed: r.about("what they are drawn by: the same for the same seed").usually("0").or("seed", usual.seed),
        }
    }
}

/// A list of tables, each of which may be none.
fn tables<T>(r: &mut Reader<'_>, key: &'static str, read: fn(&mut Reader<'_>) -> Option<T>) -> Vec<T> {
    r.tables(key, read).into_iter().flatten().collect()
}

fn correlation(r: &mut Reader<'_>) -> Option<CorrelationFile> {
    let sink = r.sink();
    let before = sink.len();
    let between: Vec<String> = r.about("keys of two inputs that move together").get("between");
    let rank: f64 = r.about("correlation of their ranks (Spearman's), between -1 and 1").get("rank");
    if sink.len() > before {
        return None;
    }
    let at = r.at().clone();
    let report = |message: String, hint: &str| {
        sink.push(Diagnostic::new(Code::OutOfRange, message).at(&at, "here").hint(hint));
        None
    };
    match <[String; 2]>::try_from(between) {
        Err(other) => report(
            format!("a correlation is between two inputs, not {}", other.len()),
            "write between = [\"cluster.spares\", \"finance.utilisation\"], rank = 0.5",
        ),
        Ok(_) if !(rank > -1.0 && rank < 1.0) => report(
            format!("a correlation of {rank}: that of ranks lies between -1 and 1, both apart"),
            "such as rank = 0.7; inputs that always move together are one input",
        ),
        Ok(between) => Some(CorrelationFile { between, rank, at: at.clone() }),
    }
}

/// Numbers, or the name of their file.
fn numbers() -> Schema {
    Schema::Either(Box::new(Vec::<f64>::schema()), Box::new(Schema::Text))
}

/// The ways to spread that are given.
pub(super) fn spreads(r: &mut Reader<'_>) -> Vec<Spread> {
    let uniform = r.about("anywhere between two numbers").optional_table("uniform", |r| Spread::Uniform {
        low: r.about("the least").get("low"),
        high: r.about("the most").get("high"),
    });
    let triangular =
        r.about("between two numbers, most often near a third").optional_table("triangular", |r| Spread::Triangular {
            low: r.about("the least").get("low"),
            mode: r.about("the most frequent").get("mode"),
            high: r.about("the most").get("high"),
        });
    let normal = r.about("a number whose logarithm is normal").optional_table("lognormal", |r| Spread::LogNormal {
        median: r.about("as often below as above").get("median"),
        p90: r.about("above it in a tenth of all cases").get("p90"),
    });
    let column: Option<String> =
        r.about("column of the file that `values` names").usually("the only one").optional("column");
    let empirical = match r
        .about("one of these numbers, each as often, or the name of a CSV file of them")
        .node_of("values", numbers)
    {
        Some(Node { value: Value::Rows(rows), at }) => recorded(rows, column.as_deref(), at, r).map(Spread::Empirical),
        _ if column.is_some() => {
            let message = "`column` is of a file, and `values` names none";
            r.report("column", Code::Inconsistent, message, "leave it out, or write values = \"FILE.csv\"");
            None
        }
        _ => r.optional::<Vec<f64>>("values").map(Spread::Empirical),
    };
    [uniform, triangular, normal, empirical].into_iter().flatten().collect()
}

/// The numbers of a column of a file: the one that `column` names, or the only one.
fn recorded(rows: &Rows, wanted: Option<&str>, at: &Span, r: &Reader<'_>) -> Option<Vec<f64>> {
    let found = match (wanted, &rows.columns[..]) {
        (Some(name), _) => rows.column(name),
        (None, [only]) => Some(&only.values[..]),
        (None, _) => None,
    };
    if found.is_none() {
        let known = rows.columns.iter().map(|column| column.name.as_str());
        let hint = wanted.and_then(|name| did_you_mean(name, known.clone())).map_or_else(
            || format!("name one with `column`: {}", known.clone().collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean column = \"{near}\"?"),
        );
        let message = format!("{} does not say which of its columns is meant", rows.name);
        r.sink().push(Diagnostic::new(Code::MissingKey, message).at(at, "this file").hint(hint));
    }
    found.map(<[f64]>::to_vec)
}

impl Spread {
    /// Why numbers cannot be drawn from it, and what to do; none where they can.
    pub(super) fn mistake(&self) -> Option<(&'static str, &'static str)> {
        let spreads = match self {
            Self::Uniform { low, high } => low < high,
            Self::Triangular { low, mode: between, high } | Self::DoubleTriangular { low, median: between, high } => {
                low <= between && between <= high && low < high
            }
            Self::LogNormal { median, p90 } => *median > 0.0 && p90 > median,
            Self::Empirical(values) => !values.is_empty(),
        };
        if !spreads {
            return Some((
                "spreads over nothing",
                "low < high with the mode between them; 0 < median < p90; a value or more",
            ));
        }
        let reckons = |numbers: &[f64]| numbers.iter().all(|number| number.abs() <= LARGEST);
        let within = match self {
            Self::Uniform { low, high }
            | Self::Triangular { low, high, .. }
            | Self::DoubleTriangular { low, high, .. } => reckons(&[*low, *high]),
            Self::LogNormal { median, p90 } => {
                reckons(&[*p90]) && *median >= LARGEST.recip() && p90 / median <= MOST_LOGNORMAL
            }
            Self::Empirical(values) => reckons(values),
        };
        let hint = "numbers up to 1e30, and of a lognormal a median from 1e-30 and a p90 of up to a million medians";
        (!within).then_some(("spreads further than can be reckoned with", hint))
    }
}

fn input(r: &mut Reader<'_>) -> Option<UncertainFile> {
    let (sink, at) = (r.sink(), r.at().clone());
    let before = sink.len();
    let key: String = r.about("dotted key of the scenario, or catalog/<folder>/<id>/<field>").get("key");
    if sink.len() == before {
        check_key(&key, &r.place("key"), r);
    }
    let given = spreads(r);
    let unit = r.about("unit that is written after its numbers").usually("none").optional("unit");
    let [spread] = &given[..] else {
        let message = "an input spreads in one way: `uniform`, `triangular`, `lognormal` or `values`";
        let hint = "such as triangular = { low = 0.3, mode = 0.6, high = 0.9 }";
        sink.push(Diagnostic::new(Code::MissingKey, message).at(&at, "here").hint(hint));
        return None;
    };
    if let Some((mistake, hint)) = spread.mistake().filter(|_| sink.len() == before) {
        sink.push(Diagnostic::new(Code::OutOfRange, format!("`{key}` {mistake}")).at(&at, "here").hint(hint));
    }
    Some(UncertainFile { key, spread: spread.clone(), unit, at })
}
