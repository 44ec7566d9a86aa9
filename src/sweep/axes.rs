//! The axes of a sweep: which value each key has at a point, by the point's number alone.
//!
//! Points are numbered as nested loops would count them, the first axis outermost, so that any part of a sweep can be
//! begun anywhere.

use std::cell::Cell;

use super::uncertain::{draw, quantile};
use crate::catalog::{Catalog, Record};
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::document::{Node, Value};
use crate::scenario::{AxisFile, CatalogField, SweepFile, ValuesFile};

/// What an axis that a point does not have takes.
pub const ABSENT: u32 = u32::MAX;

/// The folders whose entries the keys of a scenario name.
pub(super) const SETS: [(&str, &str); 12] = [
    ("cluster.node", "nodes"),
    ("cluster.prefill.node", "nodes"),
    ("cluster.fabric", "fabrics"),
    ("cluster.site", "sites"),
    ("cluster.prices", "prices"),
    ("cluster.storage", "storage"),
    ("cluster.reliability", "reliability"),
    ("cluster.network_reliability", "network_reliability"),
    ("cluster.networks.storage", "networks"),
    ("cluster.networks.in_band", "networks"),
    ("training.model", "models"),
    ("serving.model", "models"),
];

/// A value that a key takes.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisValue {
    /// As the scenario writes it, texts of their own without quotes.
    pub text: String,
    /// The number that it is, where it is one.
    pub number: Option<f64>,
    pub(super) node: Node,
}

/// What a key sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A key of the scenario.
    Scenario,
    /// A field of the catalog.
    Catalog(CatalogField),
}

/// A key and all values that it takes anywhere in the sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisColumn {
    /// The key.
    pub key: String,
    /// The values, by number.
    pub values: Vec<AxisValue>,
    pub(super) target: Target,
}

/// Keys that move together: of each the column and, step by step, the number of its value.
#[derive(Clone, Debug, PartialEq)]
struct Leaf {
    steps: u64,
    sets: Vec<(usize, Vec<u32>)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Tree {
    Leaf(Leaf),
    /// Every combination, the first turning slowest.
    Product(Vec<(Self, u64)>, u64),
    /// One after the other.
    Sum(Vec<(Self, u64)>, u64),
}

/// All axes of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Axes {
    /// The keys, in the order in which they were first named.
    pub columns: Vec<AxisColumn>,
    /// Whether each point is taken with every layout that there is.
    pub layouts: bool,
    tree: Tree,
}

impl Tree {
    const fn size(&self) -> u64 {
        match self {
            Self::Leaf(leaf) => leaf.steps,
            Self::Product(_, size) | Self::Sum(_, size) => *size,
        }
    }

    fn at(&self, index: u64, point: &mut [u32]) {
        match self {
            Self::Leaf(leaf) => {
                let step = usize::try_from(index).unwrap_or_default();
                for (column, values) in &leaf.sets {
                    point[*column] = values[step];
                }
            }
            Self::Product(parts, _) => {
                let mut rest = index;
                for (part, size) in parts.iter().rev() {
                    part.at(rest % size, point);
                    rest /= size;
                }
            }
            Self::Sum(parts, _) => {
                let mut rest = index;
                for (part, size) in parts {
                    if rest < *size {
                        return part.at(rest, point);
                    }
                    rest -= size;
                }
            }
        }
    }
}

impl Axes {
    /// Binds the axes of a scenario to a catalog; mistakes go to the sink.
    pub fn bind(file: &SweepFile, catalog: &Catalog, sink: &Sink) -> Option<Self> {
        let mut binding =
            Binding { columns: Vec::new(), layouts: false, records: catalog.records(), drawn: Cell::new(0), sink };
        let tree = binding.product(&file.axes, true)?;
        let Binding { columns, layouts, .. } = binding;
        sink.is_empty().then_some(Self { columns, layouts, tree })
    }

    /// Points, each with all its layouts counted once.
    pub const fn size(&self) -> u64 {
        self.tree.size()
    }

    /// Writes down the number of each column's value at a point, [`ABSENT`] where the point does not have it.
    pub fn at(&self, index: u64, point: &mut [u32]) {
        point.fill(ABSENT);
        self.tree.at(index, point);
    }
}

struct Binding<'a> {
    columns: Vec<AxisColumn>,
    layouts: bool,
    records: Vec<Record<'a>>,
    /// Axes that were drawn: each has a dimension of its own.
    drawn: Cell<usize>,
    sink: &'a Sink,
}

impl Binding<'_> {
    fn product(&mut self, axes: &[AxisFile], top: bool) -> Option<Tree> {
        let mut parts: Vec<(Tree, u64)> = Vec::new();
        let mut whole = true;
        for axis in axes {
            match self.tree(axis, top) {
                Some(Some(tree)) => {
                    let size = tree.size();
                    parts.push((tree, size));
                }
                Some(None) => {}
                None => whole = false,
            }
        }
        if !whole {
            return None;
        }
        let size = parts.iter().try_fold(1_u64, |product, (_, size)| product.checked_mul(*size));
        if size.is_none() {
            let message = "the sweep has more points than can be counted";
            self.sink.push(Diagnostic::new(Code::OutOfRange, message).hint("give its axes fewer values"));
        }
        Some(Tree::Product(parts, size?))
    }

    /// Of an axis; nothing of the layouts, which are no axis of numbered values.
    #[allow(clippy::option_option, reason = "the outer says whether it was bound, the inner whether there is a part")]
    fn tree(&mut self, axis: &AxisFile, top: bool) -> Option<Option<Tree>> {
        match axis {
            AxisFile::One { at, values: ValuesFile::Layouts, .. } => {
                if !top || self.layouts {
                    let message = "all layouts are taken once, beside the other axes";
                    self.report(
                        Code::Inconsistent,
                        message,
                        at,
                        "put { key = \"training.layout\", values = \"all\" } at the top of `axes`",
                    );
                    return None;
                }
                self.layouts = true;
                Some(None)
            }
            AxisFile::One { key, at, values } => {
                let values = self.values(key, at, values)?;
                let steps = values.len() as u64;
                Some(Some(Tree::Leaf(Leaf { steps, sets: vec![self.set(key, &values)] })))
            }
            AxisFile::Zip(axes, at) => self.zip(axes, at).map(Some),
            AxisFile::Cases(groups) => {
                let parts: Vec<(Tree, u64)> = groups
                    .iter()
                    .map(|group| self.product(group, false).map(|tree| (tree.size(), tree)))
                    .map(|part| part.map(|(size, tree)| (tree, size)))
                    .collect::<Option<_>>()?;
                let size = parts.iter().try_fold(0_u64, |sum, (_, size)| sum.checked_add(*size))?;
                Some(Some(Tree::Sum(parts, size)))
            }
        }
    }

    fn zip(&mut self, axes: &[AxisFile], at: &Span) -> Option<Tree> {
        let mut sets: Vec<(usize, Vec<u32>)> = Vec::new();
        for axis in axes {
            let AxisFile::One { key, at, values } = axis else {
                self.report(
                    Code::Unsupported,
                    "only single axes move together",
                    at,
                    "name keys with their values in `zip`",
                );
                return None;
            };
            if matches!(values, ValuesFile::Layouts) {
                self.report(Code::Unsupported, "all layouts move with nothing", at, "put them beside the other axes");
                return None;
            }
            let values = self.values(key, at, values)?;
            sets.push(self.set(key, &values));
        }
        let steps = sets.first().map_or(0, |(_, values)| values.len());
        if let Some((column, other)) = sets.iter().find(|(_, values)| values.len() != steps) {
            let key = &self.columns[*column].key;
            let message =
                format!("axes that move together have as many values each: {steps}, and {} of `{key}`", other.len());
            self.report(Code::Inconsistent, &message, at, "give them as many values");
            return None;
        }
        Some(Tree::Leaf(Leaf { steps: steps as u64, sets }))
    }

    /// The values of an axis, entries of the catalog among them.
    fn values(&self, key: &str, at: &Span, values: &ValuesFile) -> Option<Vec<Node>> {
        let conditions = match values {
            ValuesFile::List(values) => return Some(values.clone()),
            ValuesFile::Layouts => return None,
            ValuesFile::Drawn(drawn) => {
                let place = self.drawn.get();
                self.drawn.set(place + 1);
                let draw = |sample| drawn.node(quantile(&drawn.spread, draw(sample, place, drawn.seed)));
                return Some((0..drawn.count).map(draw).collect());
            }
            ValuesFile::Set(conditions) => conditions,
        };
        let Some((_, folder)) = SETS.iter().find(|(named, _)| *named == key) else {
            let keys = SETS.iter().map(|(key, _)| format!("`{key}`")).collect::<Vec<_>>().join(", ");
            let message = format!("`{key}` names no entries of the catalog");
            self.report(Code::Unsupported, &message, at, &format!("`all` goes with {keys}"));
            return None;
        };
        let meets = |record: &&Record<'_>| {
            record.folder == *folder && conditions.iter().all(|condition| condition.holds(record))
        };
        let found: Vec<Node> = self
            .records
            .iter()
            .filter(meets)
            .map(|record| Node { value: Value::String(record.id.to_owned()), at: at.clone() })
            .collect();
        if found.is_empty() {
            let message = format!("no entry of {folder} meets the conditions");
            self.report(Code::OutOfRange, &message, at, "`clusterplan catalog list` shows what there is");
            return None;
        }
        Some(found)
    }

    /// The column of a key, and the numbers of these values in it.
    fn set(&mut self, key: &str, values: &[Node]) -> (usize, Vec<u32>) {
        let column = self.columns.iter().position(|column| column.key == key).unwrap_or_else(|| {
            let target = CatalogField::parse(key).map_or(Target::Scenario, Target::Catalog);
            self.columns.push(AxisColumn { key: key.to_owned(), values: Vec::new(), target });
            self.columns.len() - 1
        });
        let known = &mut self.columns[column].values;
        // Only cases name a key again; a single axis is not searched for each of its values.
        let earlier = known.len();
        let numbers = values
            .iter()
            .map(|node| {
                let text = node.entered();
                let number = known[..earlier].iter().position(|value| value.text == text).unwrap_or_else(|| {
                    let number = number(node);
                    known.push(AxisValue { text, number, node: node.clone() });
                    known.len() - 1
                });
                u32::try_from(number).unwrap_or(ABSENT)
            })
            .collect();
        (column, numbers)
    }

    fn report(&self, code: Code, message: &str, at: &Span, hint: &str) {
        self.sink.push(Diagnostic::new(code, message).at(at, "here").hint(hint));
    }
}

/// The number that a value is; of a list of one, that one's.
fn number(node: &Node) -> Option<f64> {
    match &node.value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        Value::Array(items) => match &items[..] {
            [only] => number(only),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Drawn, Spread};

    fn list(key: &str, values: &[i64]) -> AxisFile {
        let values = values.iter().map(|&value| Node { value: Value::Integer(value), ..Node::default() }).collect();
        AxisFile::One { key: key.to_owned(), at: Span::default(), values: ValuesFile::List(values) }
    }

    fn points(axes: Vec<AxisFile>) -> Vec<Vec<Option<f64>>> {
        let sink = Sink::default();
        let file = SweepFile { axes, ..SweepFile::default() };
        let axes = Axes::bind(&file, &Catalog::default(), &sink).unwrap();
        let mut point = vec![0; axes.columns.len()];
        (0..axes.size())
            .map(|index| {
                axes.at(index, &mut point);
                let value = |(column, number): (&AxisColumn, &u32)| {
                    column.values.get(*number as usize).and_then(|value| value.number)
                };
                axes.columns.iter().zip(&point).map(value).collect()
            })
            .collect()
    }

    #[test]
    fn the_first_axis_turns_slowest() {
        let found = points(vec![list("a", &[1, 2]), list("b", &[10, 20, 30])]);
        let expected: Vec<Vec<Option<f64>>> =
            [1.0, 2.0].iter().flat_map(|a| [10.0, 20.0, 30.0].iter().map(|b| vec![Some(*a), Some(*b)])).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn zipped_axes_move_together_and_cases_follow_each_other() {
        let zip = AxisFile::Zip(vec![list("a", &[1, 2]), list("b", &[3, 4])], Span::default());
        let cases = AxisFile::Cases(vec![vec![list("c", &[5])], vec![list("c", &[6]), list("d", &[7, 8])]]);
        let found = points(vec![zip, cases]);
        let row = |a, b, c, d: Option<f64>| vec![Some(a), Some(b), Some(c), d];
        assert_eq!(
            found,
            [
                row(1.0, 3.0, 5.0, None),
                row(1.0, 3.0, 6.0, Some(7.0)),
                row(1.0, 3.0, 6.0, Some(8.0)),
                row(2.0, 4.0, 5.0, None),
                row(2.0, 4.0, 6.0, Some(7.0)),
                row(2.0, 4.0, 6.0, Some(8.0)),
            ]
        );
    }

    #[test]
    fn drawn_axes_are_the_same_for_a_seed_and_fill_their_square() {
        let drawn = |key: &str, seed| {
            let spread = Spread::Uniform { low: 10.0, high: 20.0 };
            let drawn = Drawn { spread, count: 64, seed, whole: false, unit: None, at: Span::default() };
            AxisFile::One { key: key.to_owned(), at: Span::default(), values: ValuesFile::Drawn(drawn) }
        };
        let pairs = |seed| points(vec![AxisFile::Zip(vec![drawn("a", seed), drawn("b", seed)], Span::default())]);
        assert_eq!(pairs(3), pairs(3));
        assert_ne!(pairs(3), pairs(4));
        // Of 64 points of the sequence, four are in each sixteenth of the square.
        for corner in 0..16 {
            let low = [corner / 4, corner % 4].map(|part| 10.0 + 2.5 * f64::from(part));
            let within = |point: &&Vec<Option<f64>>| {
                point.iter().zip(low).all(|(value, low)| (low..low + 2.5).contains(&value.unwrap()))
            };
            assert_eq!(pairs(3).iter().filter(within).count(), 4, "{corner}");
        }
    }

    #[test]
    fn unequal_axes_do_not_move_together() {
        let sink = Sink::default();
        let axes = vec![AxisFile::Zip(vec![list("a", &[1, 2]), list("b", &[3])], Span::default())];
        assert_eq!(Axes::bind(&SweepFile { axes, ..SweepFile::default() }, &Catalog::default(), &sink), None);
        assert_eq!(sink.len(), 1);
    }
}
