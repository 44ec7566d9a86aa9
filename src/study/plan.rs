//! The inverse question: of all clusters that may be chosen, the one that is least in something within limits.
//!
//! Every combination is evaluated, so that a wider limit never gives a worse answer; what is told of the best and of those
//! after it is evaluated once more by itself.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::catalog::Catalog;
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{Node, Value};
use crate::evaluate::Evaluation;
use crate::scenario::{AxisFile, Choice as Parts, Counts, Minimise, PlanFile, SweepFile, ValuesFile};
use crate::sweep::{Cursor, Row, Shard, Sweep};

/// So many are told after the best.
const RUNNERS_UP: usize = 5;
/// Counts of accelerators that are tried: 8 x 2^k and 12 x 2^k, up to this.
const MOST_ACCELERATORS: i64 = 131_072;
/// More combinations are not tried.
const MOST_POINTS: u64 = 100_000;

/// A limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Wall time.
    Deadline,
    /// Cost of the run.
    Budget,
    /// Provisioned power.
    Power,
}

impl Limit {
    /// What the scenario calls it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Budget => "budget",
            Self::Power => "power",
        }
    }

    /// What is held against it.
    pub const fn of(self) -> &'static str {
        match self {
            Self::Deadline => "wall time with failures",
            Self::Budget => "cost of the run, its part of owning the cluster",
            Self::Power => "provisioned power of the facility",
        }
    }
}

/// A cluster and what it comes to.
#[derive(Clone, Debug)]
pub struct TrainingChoice {
    /// What was chosen: keys and values.
    pub settings: Vec<(String, String)>,
    /// The answer.
    pub evaluation: Box<Evaluation>,
}

/// A limit that decides: without it another would be better.
#[derive(Clone, Debug, PartialEq)]
pub struct BindingLimit {
    /// The limit.
    pub limit: Limit,
    /// What is least, over what it is within the limit.
    pub without_ratio: f64,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct TrainingPlan {
    /// What is asked, in a line.
    pub title: String,
    /// What is least.
    pub minimise: Minimise,
    /// The best, and those after it; nothing where none is within the limits.
    pub choices: Vec<TrainingChoice>,
    /// The limits that decide.
    pub binding: Vec<BindingLimit>,
    /// The combination that is nearest to the limits, where none is within them, and by how much it is beyond.
    pub nearest: Option<(TrainingChoice, Vec<(Limit, f64)>)>,
    /// Reasons for which others are no answer, the most frequent first.
    pub rejected: Vec<(String, u64)>,
    /// Combinations that were tried.
    pub tried: u64,
}

/// What is held against limits. Base numbers, because each is only compared with its own kind.
#[derive(Clone, Copy, Debug)]
struct Figures {
    point: u64,
    time: f64,
    cost: f64,
    accelerators: f64,
    power: f64,
}

impl Figures {
    fn of(row: &Row<'_>, evaluation: &Evaluation) -> Option<Self> {
        Some(Self {
            point: row.place.point,
            time: evaluation.effective_duration()?.value(),
            cost: evaluation.point?.run.value(),
            accelerators: f64::from(evaluation.scenario.cluster.accelerators),
            power: evaluation.built.facility.provisioned_total.value(),
        })
    }

    const fn objective(&self, minimise: Minimise) -> f64 {
        match minimise {
            Minimise::Cost => self.cost,
            Minimise::Time => self.time,
            Minimise::Accelerators => self.accelerators,
            Minimise::Power => self.power,
        }
    }
}

/// A limit, what it allows, and what is held against it.
type Allowed = (Limit, f64, fn(&Figures) -> f64);

/// Plans a training run; mistakes go to the sink.
pub fn training_plan(document: &Node, wanted: &PlanFile, catalog: &Catalog, sink: &Sink) -> Option<TrainingPlan> {
    let minimise = wanted.minimise.unwrap_or(Minimise::Cost);
    if wanted.prefill_nodes.is_some() {
        let message = "a training job runs on nodes of one kind";
        let hint = "leave \"cluster.prefill.node\" out of `plan.vary`: it is for serving";
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&document.at, "in this scenario").hint(hint));
        return None;
    }
    let sweep = Sweep::bind(document, &axes(wanted, document), catalog, Vec::new(), sink)?;
    let tried = sweep.axes.size();
    if tried > MOST_POINTS {
        let message = format!("{tried} combinations to choose from, more than {MOST_POINTS}");
        sink.push(Diagnostic::new(Code::OutOfRange, message).hint("name fewer values in `plan.vary`"));
        return None;
    }
    let (all, mut rejected) = evaluated(&sweep);
    let limits: [Option<Allowed>; 3] = [
        wanted
            .limits
            .deadline
            .map(|limit| (Limit::Deadline, limit.value(), (|found: &Figures| found.time) as fn(&Figures) -> f64)),
        wanted.limits.budget.map(|limit| (Limit::Budget, limit.value(), (|found: &Figures| found.cost) as _)),
        wanted.limits.power.map(|limit| (Limit::Power, limit.value(), (|found: &Figures| found.power) as _)),
    ];
    let limits: Vec<Allowed> = limits.into_iter().flatten().collect();
    for (limit, allowed, of) in &limits {
        let beyond = all.iter().filter(|found| of(found) > *allowed).count() as u64;
        if beyond > 0 {
            rejected.insert(format!("beyond the {} ({})", limit.word(), limit.of()), beyond);
        }
    }
    // Of equals the cheaper, and else the one that comes first.
    let order = |a: &Figures, b: &Figures| {
        let (own, other) = (a.objective(minimise), b.objective(minimise));
        own.total_cmp(&other).then(a.cost.total_cmp(&b.cost)).then(a.point.cmp(&b.point))
    };
    let within = |found: &&Figures, but: Option<Limit>| {
        limits.iter().all(|(limit, allowed, of)| Some(*limit) == but || of(found) <= *allowed)
    };
    let mut good: Vec<Figures> = all.iter().filter(|found| within(found, None)).copied().collect();
    good.sort_by(order);
    let choice = |found: &Figures| {
        Some(TrainingChoice {
            settings: sweep.settings(found.point),
            evaluation: Box::new(sweep.evaluate(found.point).ok()?),
        })
    };
    let best = good.first();
    let binding = limits.iter().filter_map(|(limit, ..)| {
        let best = best?.objective(minimise);
        let without = all.iter().filter(|found| within(found, Some(*limit))).min_by(|a, b| order(a, b))?;
        let ratio = without.objective(minimise) / best;
        (ratio < 1.0).then_some(BindingLimit { limit: *limit, without_ratio: ratio })
    });
    let binding = binding.collect();
    let excess = |found: &Figures| -> Vec<(Limit, f64)> {
        let beyond = limits.iter().map(|(limit, allowed, of)| (*limit, of(found) / allowed - 1.0));
        beyond.filter(|(_, beyond)| *beyond > 0.0).collect()
    };
    let worst = |found: &Figures| excess(found).iter().map(|(_, beyond)| *beyond).fold(0.0, f64::max);
    let nearest = if best.is_none() { all.iter().min_by(|a, b| worst(a).total_cmp(&worst(b))) } else { None };
    let nearest = nearest.and_then(|found| Some((choice(found)?, excess(found))));
    let mut rejected: Vec<(String, u64)> = rejected.into_iter().collect();
    rejected.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let choices = good.iter().take(1 + RUNNERS_UP).filter_map(choice).collect();
    Some(TrainingPlan { title: sweep.title.clone(), minimise, choices, binding, nearest, rejected, tried })
}

/// What may be chosen, as axes.
fn axes(wanted: &PlanFile, document: &Node) -> SweepFile {
    let parts = |key: &str, parts: &Option<Parts>| {
        let values = match parts.as_ref()? {
            Parts::Any => ValuesFile::Set(Vec::new()),
            Parts::Of(ids) => {
                let value =
                    |id: &crate::catalog::Reference| Node { value: Value::String(id.id.clone()), at: id.at.clone() };
                ValuesFile::List(ids.iter().map(value).collect())
            }
        };
        Some(AxisFile::One { key: key.to_owned(), at: document.at.clone(), values })
    };
    let counts = wanted.accelerators.as_ref().map(|counts| {
        let values = match counts {
            Counts::Of(values) => values.clone(),
            Counts::Auto => {
                let doubled = std::iter::successors(Some(8), |count| Some(count * 2));
                let doubled = doubled.take_while(|count| *count <= MOST_ACCELERATORS);
                let both = doubled.flat_map(|count| [count, count / 2 * 3]).filter(|count| *count <= MOST_ACCELERATORS);
                both.map(|count| Node { value: Value::Integer(count), at: document.at.clone() }).collect()
            }
        };
        let key = "cluster.accelerators".to_owned();
        AxisFile::One { key, at: document.at.clone(), values: ValuesFile::List(values) }
    });
    let topology = wanted.topology.iter().map(|(key, values)| {
        let values = ValuesFile::List(values.clone());
        AxisFile::One { key: key.clone(), at: document.at.clone(), values }
    });
    let axes = [parts("cluster.node", &wanted.nodes), counts, parts("cluster.fabric", &wanted.fabrics)];
    SweepFile { axes: axes.into_iter().flatten().chain(topology).collect(), ..SweepFile::default() }
}

/// Figures of what can be, and why the rest cannot.
fn evaluated(sweep: &Sweep<'_>) -> (Vec<Figures>, BTreeMap<String, u64>) {
    let mut all = Vec::new();
    let mut rejected: BTreeMap<String, u64> = BTreeMap::new();
    sweep.run(
        Shard::WHOLE,
        Cursor::default(),
        || (Vec::new(), Vec::new()),
        |(found, reasons), row| match &row.outcome {
            Ok(evaluation) => found.extend(Figures::of(row, evaluation)),
            Err(reason) => reasons.push(reason.kind().to_owned()),
        },
        |_, (found, reasons)| {
            all.extend(found);
            for reason in reasons {
                *rejected.entry(reason).or_default() += 1;
            }
            ControlFlow::Continue(())
        },
    );
    (all, rejected)
}
