//! `[sweep]`: the axes along which a scenario is repeated.

use super::uncertainty::{MOST_SAMPLES, Spread, spreads};
use super::varied::{check_key, named_once, varied_twice};
use crate::catalog::Condition;
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::document::{FromNode, Node, Reader, Schema, Value};
use crate::units::to_integer;

/// The most values of one axis; more than this is no list that anybody wrote.
const MOST_VALUES: u32 = 10_000_000;

/// `[sweep]`
#[derive(Clone, Debug, Default)]
pub struct SweepFile {
    /// The axes, the first of which turns slowest.
    pub axes: Vec<AxisFile>,
    /// Conditions on the values of axes that a point must meet, each with its place.
    pub conditions: Vec<(String, Span)>,
    /// What is best, where rows are not all wanted.
    pub by: Option<String>,
    /// Keys whose values make groups.
    pub group_by: Vec<String>,
    /// An axis along which the order turns, held against rows without it.
    pub break_even: Option<String>,
}

/// An axis, or several that belong together.
#[derive(Clone, Debug)]
pub enum AxisFile {
    /// A key and its values.
    One {
        /// The key: of the scenario, or `catalog/<folder>/<id>/<field>`.
        key: String,
        /// The place of the key.
        at: Span,
        /// What it takes.
        values: ValuesFile,
    },
    /// Axes that move together: all take their first values, then all their second.
    Zip(Vec<Self>, Span),
    /// One group of axes after the other.
    Cases(Vec<Vec<Self>>),
}

/// What an axis takes.
#[derive(Clone, Debug)]
pub enum ValuesFile {
    /// These values.
    List(Vec<Node>),
    /// All entries of the key's folder in the catalog that meet the conditions.
    Set(Vec<Condition>),
    /// Numbers that are drawn.
    Drawn(Drawn),
    /// All layouts there are.
    Layouts,
}

/// Numbers that are drawn from a spread: the same for the same seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// How they spread.
    pub spread: Spread,
    /// How many.
    pub count: u32,
    /// What they are drawn by.
    pub seed: u32,
    /// Whether they are rounded to whole numbers.
    pub whole: bool,
    /// Written after them.
    pub unit: Option<String>,
    /// Its place.
    pub at: Span,
}

impl Drawn {
    /// The value of a number.
    pub fn node(&self, number: f64) -> Node {
        number_node(number, self.whole, self.unit.as_deref(), &self.at)
    }
}

/// What stands before and after a number of a unit: money has its sign before it, as in `$0.08/kWh`.
pub fn signs_of_unit(unit: &str) -> [String; 2] {
    match unit.strip_prefix('$') {
        Some(per) => ["$".to_owned(), per.to_owned()],
        None => [String::new(), format!(" {unit}")],
    }
}

/// A number as an axis has it.
fn number_node(number: f64, whole: bool, unit: Option<&str>, at: &Span) -> Node {
    let number = if whole { number.round() } else { number };
    let value = match unit {
        Some(unit) => {
            let [before, after] = signs_of_unit(unit);
            Value::String(format!("{before}{}{after}", written(number)))
        }
        None if whole && number.abs() < 9e15 => Value::Integer(to_integer::<i64>(number)),
        None => Value::Float(number),
    };
    Node { value, at: at.clone() }
}

/// A number before its unit; one beyond what is planned not in hundreds of digits.
pub fn written(number: f64) -> String {
    if number == 0.0 || (1e-9..1e16).contains(&number.abs()) { number.to_string() } else { format!("{number:e}") }
}

/// How the steps of a range lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Linear,
    Log,
}

impl SweepFile {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let axes = r
            .about("axes along which the scenario is repeated, the first of which turns slowest")
            .node_of("axes", || Schema::list(Reader::describe(|r| axis(r, true))))
            .map(|node| axes(node, "sweep.axes", true, r))
            .unwrap_or_default();
        keys(&axes, r.sink());
        let conditions: Vec<String> = r
            .about("conditions on the values of axes that a point must meet, such as \"cluster.accelerators <= 1024\"")
            .usually("all points")
            .or("where", Vec::new());
        let at = r.place("where");
        Self {
            axes,
            conditions: conditions.into_iter().map(|condition| (condition, at.clone())).collect(),
            by: r.about("figure by which the best of each group is kept").usually("all rows").optional("by"),
            group_by: r.about("keys of axes whose values make groups").usually("one group").or("group_by", Vec::new()),
            break_even: r
                .about("axis along which the order turns, held against rows without it")
                .optional("break_even"),
        }
    }
}

/// A list of axes; `alone` where none moves together with another, so that a value that it takes again is a row again.
fn axes<'a>(node: &'a Node, path: &str, alone: bool, r: &Reader<'a>) -> Vec<AxisFile> {
    let Value::Array(items) = &node.value else {
        node.wrong_type(path, "a list of tables", r.sink());
        return Vec::new();
    };
    items.iter().filter_map(|item| axis(&mut r.inside(item, path)?, alone)).collect()
}

/// Reports a list that stands for no points.
fn some<'a>(node: &'a Node, what: &str, sink: &Sink) -> Option<&'a Node> {
    if matches!(&node.value, Value::Array(items) if items.is_empty()) {
        nothing(node, what, sink);
        return None;
    }
    Some(node)
}

fn nothing(node: &Node, what: &str, sink: &Sink) {
    let hint = "leave it out, or name axes in it: { key = \"cluster.accelerators\", values = [8, 16] }";
    let message = format!("`{what}` holds no axes, so that nothing varies");
    sink.push(Diagnostic::new(Code::OutOfRange, message).at(&node.at, "nothing").hint(hint));
}

fn axis(r: &mut Reader<'_>, alone: bool) -> Option<AxisFile> {
    let (path, sink) = (r.path().to_owned(), r.sink());
    let path = path.as_str();
    let (zip, cases) = (
        r.about("axes that move together: all take their first values, then all their second")
            .node_of("zip", || Schema::list(Schema::Any)),
        r.about("lists of axes, one after the other").node_of("cases", || Schema::list(Schema::list(Schema::Any))),
    );
    if let Some(zip) = zip {
        let zip = some(zip, "zip", sink)?;
        return Some(AxisFile::Zip(axes(zip, &format!("{path}.zip"), false, r), zip.at.clone()));
    }
    if let Some(cases) = cases {
        let cases = some(cases, "cases", sink)?;
        let path = format!("{path}.cases");
        let Value::Array(groups) = &cases.value else {
            cases.wrong_type(&path, "a list of lists of axes", sink);
            return None;
        };
        // One group may be the scenario as it stands, but not all.
        if groups.iter().all(|group| matches!(&group.value, Value::Array(axes) if axes.is_empty())) {
            nothing(cases, "cases", sink);
            return None;
        }
        return Some(AxisFile::Cases(groups.iter().map(|group| axes(group, &path, alone, r)).collect()));
    }
    let before = sink.len();
    // One that moves with others has its keys in these.
    r.about("dotted key of the scenario, or catalog/<folder>/<id>/<field>").describes("key", String::schema, false);
    let key: String = r.get("key");
    let at = r.place("key");
    if sink.len() == before {
        check_key(&key, &at, r);
    }
    let values = values(r, &key)?;
    if alone {
        repeated(r, &key);
    }
    Some(AxisFile::One { key, at, values })
}

/// Reports values that a list has twice.
fn repeated(r: &mut Reader<'_>, key: &str) {
    let Some(Node { value: Value::Array(values), .. }) = r.node("values") else { return };
    named_once(values, key, r.sink());
}

fn values(r: &mut Reader<'_>, key: &str) -> Option<ValuesFile> {
    let list = r.about("values that it takes; \"all\" for training.layout");
    let list = list.node_of("values", || Schema::word_or("all", Schema::list(Schema::Any)));
    let range = r.about("numbers in steps").node_of("range", || Reader::describe(|r| steps(r, &Span::default())));
    let set = r.about("conditions on entries of the key's folder in the catalog, all of which are taken");
    let set = set.node_of("all", Vec::<String>::schema);
    let sample =
        r.about("numbers that are drawn").node_of("sample", || Reader::describe(|r| drawn(r, &Span::default())));
    match (list, range, set, sample) {
        (Some(list), None, None, None) => match &list.value {
            Value::Array(values) if !values.is_empty() => Some(ValuesFile::List(values.clone())),
            Value::String(word) if word == "all" && key == "training.layout" => Some(ValuesFile::Layouts),
            _ => {
                list.wrong_type(&r.path_of("values"), "a list of values", r.sink());
                None
            }
        },
        (None, Some(range), None, None) => {
            let path = r.path_of("range");
            let reader = &mut Reader::new(range, path, r.sink())?;
            steps(reader, &range.at).map(ValuesFile::List)
        }
        (None, None, None, Some(sample)) => {
            let path = r.path_of("sample");
            let reader = &mut Reader::new(sample, path, r.sink())?;
            drawn(reader, &sample.at).map(ValuesFile::Drawn)
        }
        (None, None, Some(set), None) => {
            let conditions: Vec<String> = FromNode::from_node(set, &r.path_of("all"), r.sink());
            let mut parsed = Vec::new();
            for condition in &conditions {
                match Condition::parse(condition) {
                    Ok(condition) => parsed.push(condition),
                    Err(error) => r.report("all", Code::Syntax, error.to_string(), "write one condition a text"),
                }
            }
            Some(ValuesFile::Set(parsed))
        }
        _ => {
            let message = "an axis takes one of `values`, `range`, `all` and `sample`";
            let hint =
                "such as values = [1, 2], range = { from = 1, to = 4, steps = 4 }, or all = [\"transport = rocev2\"]";
            r.sink().push(Diagnostic::new(Code::MissingKey, message).at(r.at(), "here").hint(hint));
            None
        }
    }
}

/// The values of a range, each from its number and none from the one before, so that nothing adds up.
fn steps(r: &mut Reader<'_>, at: &Span) -> Option<Vec<Node>> {
    let before = r.sink().len();
    let (from, to): (f64, f64) = (r.about("the first number").get("from"), r.about("the last number").get("to"));
    let written_whole = |r: &mut Reader<'_>, key| matches!(r.node(key), Some(Node { value: Value::Integer(_), .. }));
    let ends_are_whole = written_whole(r, "from") && written_whole(r, "to");
    let count = r.about("how many numbers").within("steps", &(2..=MOST_VALUES));
    let scale = match r
        .about("how they lie: \"linear\" or \"log\"")
        .usually("\"linear\"")
        .optional::<String>("scale")
        .as_deref()
    {
        None | Some("linear") => Scale::Linear,
        Some("log") => Scale::Log,
        Some(other) => {
            let message = format!("`scale` has no choice \"{other}\"");
            r.report("scale", Code::UnknownWord, message, "it is one of \"linear\", \"log\"");
            Scale::Linear
        }
    };
    let (whole, unit): (bool, Option<String>) = (
        r.about("whether they are rounded to whole numbers").usually("false").or("whole", false),
        r.about("unit that is written after them").usually("none").optional("unit"),
    );
    if scale == Scale::Log && !(from > 0.0 && to > 0.0) {
        r.report("scale", Code::OutOfRange, "a logarithmic range has no zero and nothing below it", "begin above zero");
    }
    if r.sink().len() == before && from.to_bits() == to.to_bits() {
        let hint = format!("write values = [{from}], or ends that differ");
        r.report("to", Code::OutOfRange, "the range ends where it begins, so that every value is the same", hint);
    }
    if r.sink().len() > before {
        return None;
    }
    let number = |index: u32| {
        let part = f64::from(index) / f64::from(count - 1);
        match scale {
            _ if index == 0 => from,
            _ if index == count - 1 => to,
            Scale::Linear => short(from + (to - from) * part),
            Scale::Log => short(from * (to / from).powf(part)),
        }
    };
    // From 64 to 640 in ten steps are whole numbers, and keys that take no others take them.
    let whole = whole || (ends_are_whole && (0..count).all(|index| number(index).fract() == 0.0));
    Some((0..count).map(|index| number_node(number(index), whole, unit.as_deref(), at)).collect())
}

/// A number without the last digits of its rounding: 0.2, not 0.19999999999999998.
fn short(number: f64) -> f64 {
    format!("{number:.14e}").parse().unwrap_or(number)
}

/// Numbers that are drawn.
fn drawn(r: &mut Reader<'_>, at: &Span) -> Option<Drawn> {
    let before = r.sink().len();
    let count = r.about("how many are drawn").within("count", &(1..=MOST_SAMPLES));
    let seed = r.about("what they are drawn by: the same for the same seed").usually("0").or("seed", 0);
    let given = spreads(r);
    let (whole, unit) = (
        r.about("whether they are rounded to whole numbers").usually("false").or("whole", false),
        r.about("unit that is written after them").usually("none").optional("unit"),
    );
    if r.sink().len() > before {
        return None;
    }
    let [spread] = &given[..] else {
        let message = "a sample spreads in one way: `uniform`, `triangular`, `lognormal` or `values`";
        let hint = "such as sample = { count = 100, seed = 1, triangular = { low = 0.3, mode = 0.6, high = 0.9 } }";
        r.sink().push(Diagnostic::new(Code::MissingKey, message).at(at, "here").hint(hint));
        return None;
    };
    if let Some((mistake, hint)) = spread.mistake() {
        r.sink().push(Diagnostic::new(Code::OutOfRange, format!("a sample {mistake}")).at(at, "here").hint(hint));
        return None;
    }
    Some(Drawn { spread: spread.clone(), count, seed, whole, unit, at: at.clone() })
}

/// The keys of axes that are taken together, each with its place; one that stands there twice is reported. Cases follow
/// each other, so that two of them may name the same key.
fn keys<'a>(axes: &'a [AxisFile], sink: &Sink) -> Vec<(&'a str, &'a Span)> {
    let mut taken: Vec<(&str, &Span)> = Vec::new();
    for axis in axes {
        let own: Vec<(&str, &Span)> = match axis {
            AxisFile::One { key, at, .. } => vec![(key, at)],
            AxisFile::Zip(axes, _) => keys(axes, sink),
            AxisFile::Cases(groups) => groups.iter().flat_map(|group| keys(group, sink)).collect(),
        };
        let before = taken.len();
        for (key, at) in own {
            match taken.iter().position(|(other, _)| *other == key) {
                Some(index) if index < before => varied_twice(key, at, taken[index].1, sink),
                Some(_) => {}
                None => taken.push((key, at)),
            }
        }
    }
    taken
}
