//! Inverse planning of serving: the fewest accelerators of each kind that keep the limits, and the cheapest of those.
//!
//! On a node, a fabric and a topology, more accelerators never cost less, and more replicas never answer later: so for each way
//! to serve the fewest nodes are found by doubling and halving (or the first of the numbers that are given does), and on as many
//! of them as the best of these takes, the search that `eval` makes finds the way. What that says is held against the limits
//! again before it is an answer.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::serving::{Deployment, best_deployment, deployments, no_worker};
use super::tried::{Binding, Known, Size, Tried};
use super::variants::{counts, variants};
use crate::catalog::Catalog;
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::Node;
use crate::evaluate::{BuiltCluster, Evaluation, ServingPoint, evaluate};
use crate::scenario::{Arrivals, Cluster, Counts, Minimise, PlanFile, Scenario, ScenarioFile};

/// Runners-up that are shown.
const RUNNERS_UP: usize = 9;

/// A cluster that serves what is asked.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its figures, with the scenario.
    pub evaluation: Box<Evaluation>,
    /// What keeps it from being smaller.
    pub binding: Vec<Binding>,
}

/// What planning came to.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What was asked, in a line.
    pub title: String,
    /// What was minimised.
    pub minimise: Minimise,
    /// The answers, the best first: one for each node, fabric, topology and node of prefill's own.
    pub answers: Vec<Answer>,
    /// Why others are none, with how many.
    pub rejected: Vec<(String, u64)>,
    /// Whether topologies were chosen among.
    pub topologies: bool,
}

/// Finds clusters that serve what a scenario asks; mistakes go to the sink, and there is a plan only if there are none.
pub fn plan(document: &Node, catalog: &Catalog, sink: &Sink) -> Option<Plan> {
    let file = ScenarioFile::read(document, sink);
    let wanted = file.plan.clone().unwrap_or_default();
    let scenario = Scenario::resolve(&file, catalog, sink)?;
    let minimise = wanted.minimise.unwrap_or(Minimise::Cost);
    check(&scenario, &wanted, minimise, document, sink);
    if !sink.is_empty() {
        return None;
    }
    let variants = variants(document, &wanted, catalog, &scenario, sink);
    let counts = counts(&wanted, sink);
    if !sink.is_empty() {
        return None;
    }
    let found: Vec<Result<Answer, BTreeMap<String, u64>>> =
        variants.par_iter().map(|variant| solve(variant.as_ref(), &wanted, (minimise, &counts))).collect();
    let mut rejected: BTreeMap<String, u64> = BTreeMap::new();
    let mut answers = Vec::new();
    for outcome in found {
        match outcome {
            Ok(answer) => answers.push(answer),
            Err(reasons) => {
                for (reason, count) in reasons {
                    *rejected.entry(reason).or_default() += count;
                }
            }
        }
    }
    let of = |answer: &Answer| merit(&answer.evaluation.scenario.cluster, &answer.evaluation.built, minimise);
    answers.sort_by(|one, other| of(one).total_cmp(&of(other)));
    answers.truncate(RUNNERS_UP + 1);
    let mut rejected: Vec<(String, u64)> = rejected.into_iter().collect();
    rejected.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let topologies = !wanted.topology.is_empty();
    Some(Plan { title: scenario.title, minimise, answers, rejected, topologies })
}

/// Reports what cannot be planned for.
fn check(scenario: &Scenario, wanted: &PlanFile, minimise: Minimise, document: &Node, sink: &Sink) {
    let report = |message: &str, hint: &str| {
        sink.push(Diagnostic::new(Code::Inconsistent, message.to_owned()).at(&document.at, "this scenario").hint(hint));
    };
    match &scenario.serving {
        None => report("a plan is for requests to serve, and there is no `serving`", "add a [serving] table"),
        Some(serving) if !matches!(serving.arrivals, Arrivals::Rate(_)) => {
            report(
                "a plan is for requests that come at a rate",
                "give `serving.arrivals = { rate = \"40 request/s\" }`",
            );
        }
        Some(_) => {}
    }
    if minimise == Minimise::Time {
        report("serving has no time to minimise", "minimise cost, accelerators or power, and give serving.limits");
    }
    let two_kinds = wanted.prefill_nodes.is_some() || scenario.cluster.prefill.is_some();
    if two_kinds && matches!(wanted.accelerators, Some(Counts::Of(_))) {
        report(
            "numbers of accelerators to choose from say nothing of how many prefill has on nodes of its own",
            "write \"cluster.accelerators\" = \"auto\"",
        );
    }
    if wanted.limits.deadline.is_some() {
        report("serving has no deadline", "give limits of latencies as serving.limits");
    }
}

/// The least of one choice of nodes and fabric, evaluated; or why there is none.
fn solve(
    variant: Result<&Scenario, &String>,
    wanted: &PlanFile,
    (minimise, counts): (Minimise, &[u64]),
) -> Result<Answer, BTreeMap<String, u64>> {
    let one = |reason: String| BTreeMap::from([(reason, 1)]);
    let scenario = variant.map_err(|why| one(why.clone()))?;
    let Some(serving) = &scenario.serving else { return Err(BTreeMap::new()) };
    let ways = if serving.search {
        deployments(serving, &scenario.cluster, u32::MAX)
    } else {
        vec![Deployment::given(serving)]
    };
    if ways.is_empty() {
        return Err(no_worker(serving, &scenario.cluster).map_or_else(BTreeMap::new, |why| one(why.to_string())));
    }
    let mut rejected: BTreeMap<String, u64> = BTreeMap::new();
    let (mut best, mut known): (Option<Best<'_>>, _) = (None, Known::default());
    for deployment in ways {
        let tried = Tried { scenario, serving, deployment, counts };
        match tried.fewest(&mut known) {
            Ok((size, point)) => {
                let Some(found) = Best::new(tried, size, &point, minimise) else { continue };
                if best.as_ref().is_none_or(|best| found.before(best)) {
                    best = Some(found);
                }
            }
            Err(reason) => *rejected.entry(reason).or_default() += 1,
        }
    }
    let Some(Best { size, tried, .. }) = best else { return Err(rejected) };
    let Some(mut asked) = tried.on(size) else { return Err(rejected) };
    // Where the layout is left open, `eval` of the same cluster chooses as this does.
    let deployment = if serving.search { best_deployment(serving, &asked.cluster).ok() } else { None };
    let deployment = deployment.unwrap_or(tried.deployment);
    asked.serving = Some(deployment.of(serving));
    // On fewer accelerators with any split of them.
    let tried = Tried { deployment: if serving.search { deployment.anywhere() } else { deployment }, ..tried };
    let evaluation = evaluate(asked).map_err(|infeasible| one(infeasible.to_string()))?;
    // The answer is held against what was asked once more, from its own figures.
    let missed = evaluation.serving.as_ref().and_then(|point| point.missed(&serving.limits));
    if let Some((key, ..)) = missed {
        return Err(one(format!("serving.limits.{key} is missed")));
    }
    if wanted.limits.budget.is_some_and(|budget| evaluation.built.costs.total > budget) {
        return Err(one("costs more than the budget over the horizon".to_owned()));
    }
    if wanted.limits.power.is_some_and(|power| evaluation.built.facility.provisioned_total > power) {
        return Err(one("takes more power than there is".to_owned()));
    }
    let binding = tried.binding(size, &evaluation);
    Ok(Answer { evaluation: Box::new(evaluation), binding })
}

/// The best way so far.
struct Best<'a> {
    tried: Tried<'a>,
    size: Size,
    /// What is minimised, where accelerators are of two kinds; their number else, which all of that grows with.
    least: f64,
    /// Requests open at once: of equals, the way that answers sooner.
    open: f64,
}

impl<'a> Best<'a> {
    /// None where the cluster cannot be built.
    fn new(tried: Tried<'a>, size: Size, point: &ServingPoint, minimise: Minimise) -> Option<Self> {
        let open = point.open_per_replica() * point.replicas as f64;
        let least = if size.prefill == 0 {
            size.main as f64
        } else {
            let Scenario { cluster, finance, .. } = tried.on(size)?;
            merit(&cluster, &BuiltCluster::new(&cluster, &finance).ok()?, minimise)
        };
        Some(Self { tried, size, least, open })
    }

    fn before(&self, other: &Self) -> bool {
        (self.least, self.open) < (other.least, other.open)
    }
}

/// What is minimised, as a number to order by.
fn merit(cluster: &Cluster, built: &BuiltCluster, minimise: Minimise) -> f64 {
    // Base numbers, because they only order.
    match minimise {
        Minimise::Cost | Minimise::Time => built.costs.total.value(),
        Minimise::Accelerators => f64::from(cluster.accelerators),
        Minimise::Power => built.facility.provisioned_total.value(),
    }
}
