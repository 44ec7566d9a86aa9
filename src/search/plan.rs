//! Inverse planning of serving: the fewest accelerators of each kind that keep the limits, and the cheapest of those.
//!
//! On a node, a fabric and a topology, more accelerators never cost less, and more replicas never answer later: so for each way
//! to serve the fewest nodes are found by doubling and halving (or the first of the numbers that are given does), and on as many
//! of them as the best of these takes, the search that `eval` makes finds the way. What that says is held against the limits
//! again before it is an answer.

use rayon::prelude::*;

use super::apart::{Apart, apart};
use super::band::Sizing;
use super::binding::Binding;
use super::rejected::{Rejected, Rejection};
use super::serving::{Deployment, best_deployment, deployments, no_worker, out_of_reach};
use super::tried::{Known, Size, Tried};
use super::variants::{counts, variants};
use crate::catalog::Catalog;
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::Node;
use crate::evaluate::{BuiltCluster, Evaluation, ServingPoint, evaluate};
use crate::scenario::{Arrivals, Cluster, Counts, Minimise, PlanFile, PlanLimits, Scenario, ScenarioFile, Serving};
use crate::units::counted;

/// Runners-up that are shown.
const RUNNERS_UP: usize = 9;

/// A cluster that serves what is asked.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its figures, with the scenario.
    pub evaluation: Box<Evaluation>,
    /// What keeps it from being smaller.
    pub binding: Vec<Binding>,
    /// Of the best, accelerators where estimates are as far off as they may be; none where nothing says how far that is.
    pub sizing: Option<Sizing>,
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
    /// Why others are none, the most frequent first.
    pub rejected: Vec<Rejection>,
    /// Whether topologies were chosen among.
    pub topologies: bool,
    /// Where tenants' requests are planned for together, what each would take by itself of the same choices.
    pub apart: Option<Apart>,
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
    let found: Vec<Result<Answer, Rejected>> =
        variants.par_iter().map(|variant| solve(variant.as_ref(), &wanted, (minimise, &counts))).collect();
    let (mut rejected, mut answers) = (Rejected::default(), Vec::new());
    for (outcome, variant) in found.into_iter().zip(&variants) {
        match outcome {
            Ok(answer) => answers.push((answer, variant)),
            Err(why) => rejected.join(why),
        }
    }
    let of = |answer: &Answer| merit(&answer.evaluation.scenario.cluster, &answer.evaluation.built, minimise);
    answers.sort_by(|(one, _), (other, _)| of(one).total_cmp(&of(other)));
    answers.truncate(RUNNERS_UP + 1);
    if let Some((best, Ok(scenario))) = answers.first_mut() {
        let bands = best.evaluation.serving.and_then(|point| point.bands);
        best.sizing = bands.map(|bands| Sizing::new(scenario, bands, (minimise, &counts)));
    }
    let best = answers.first().and_then(|(_, variant)| variant.as_ref().ok());
    let apart = apart(&variants, best, (minimise, &counts));
    let answers = answers.into_iter().map(|(answer, _)| answer).collect();
    let topologies = !wanted.topology.is_empty();
    Some(Plan { title: scenario.title, minimise, answers, rejected: rejected.into_list(), topologies, apart })
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
        Some(serving) if serving.features.tenants.is_some() && !serving.terms.tenants => report(
            "a plan with `serving.tenants` is for their requests, and `serving.arrivals` says others",
            "give `serving.arrivals = \"tenants\"`, or leave the tenants out",
        ),
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
) -> Result<Answer, Rejected> {
    let scenario = variant.map_err(|why| Rejection::new(why.clone()))?;
    let Some(serving) = &scenario.serving else { return Err(Rejected::default()) };
    let Best { mut size, tried, .. } = fewest(scenario, serving, (minimise, counts))?;
    loop {
        let mut asked = tried.on(size).ok_or_else(|| Rejection::new("too many accelerators"))?;
        // Where the layout is left open, `eval` of the same cluster chooses as this does.
        let deployment = if serving.search { best_deployment(serving, &asked.cluster).ok() } else { None };
        let deployment = deployment.unwrap_or(tried.deployment);
        asked.serving = Some(deployment.of(serving));
        // On fewer accelerators with any split of them.
        let tried = Tried { deployment: if serving.search { deployment.anywhere() } else { deployment }, ..tried };
        let evaluation = evaluate(asked).map_err(|why| {
            let why = why.to_string();
            let instead = instead(&tried, size, |_| true);
            Rejection::with(why, instead, 1.0)
        })?;
        // The answer is held against what was asked once more, from its own figures.
        let Some(point) = &evaluation.serving else { return Err(Rejected::default()) };
        if let Some((key, ..)) = point.missed(&serving.limits) {
            return Err(Rejection::new(format!("serving.limits.{key} is missed")).into());
        }
        match tried.binding(size, point) {
            Ok(binding) => {
                within(&tried, size, &evaluation, &wanted.limits)?;
                return Ok(Answer { evaluation: Box::new(evaluation), binding, sizing: None });
            }
            Err(fewer) => size = fewer,
        }
    }
}

/// Ways to serve within limits that are worth trying on nodes of a kind, whatever the rate; or why there are none.
pub(super) fn ways(serving: &Serving, cluster: &Cluster) -> Result<Vec<Deployment>, Rejection> {
    if let Some(out_of_reach) = out_of_reach(serving, cluster) {
        return Err(out_of_reach);
    }
    let ways = if serving.search { deployments(serving, cluster, u32::MAX) } else { vec![Deployment::given(serving)] };
    if ways.is_empty() {
        let why = no_worker(serving, cluster).map(|why| why.to_string());
        return Err(Rejection::new(why.unwrap_or_else(|| "no layout serves".to_owned())));
    }
    Ok(ways)
}

/// The best way to serve what is asked, and the accelerators that it takes; or why there is none.
pub(super) fn fewest<'a>(
    scenario: &'a Scenario,
    serving: &'a Serving,
    of: (Minimise, &'a [u64]),
) -> Result<Best<'a>, Rejected> {
    // What is chosen of ways on as many accelerators, a search on those says.
    let known = if serving.search { Known::of_fewer() } else { Known::default() };
    cheapest_after(known, &ways(serving, &scenario.cluster)?, scenario, serving, of)
}

/// The same of these ways; of those that take as many accelerators of one kind, the one that answers soonest.
pub(super) fn cheapest<'a>(
    ways: &[Deployment],
    scenario: &'a Scenario,
    serving: &'a Serving,
    of: (Minimise, &'a [u64]),
) -> Result<Best<'a>, Rejected> {
    cheapest_after(Known::default(), ways, scenario, serving, of)
}

/// The same, with what is known before.
fn cheapest_after<'a>(
    mut known: Known,
    ways: &[Deployment],
    scenario: &'a Scenario,
    serving: &'a Serving,
    (minimise, counts): (Minimise, &'a [u64]),
) -> Result<Best<'a>, Rejected> {
    let (mut best, mut rejected): (Option<Best<'_>>, _) = (None, Rejected::default());
    for &deployment in ways {
        let tried = Tried { scenario, serving, deployment, counts };
        match tried.fewest(&mut known) {
            Ok((size, point)) => {
                let Some(found) = Best::new(tried, size, &point, minimise) else { continue };
                if best.as_ref().is_none_or(|best| found.before(best)) {
                    best = Some(found);
                }
            }
            Err(why) => rejected.add(why),
        }
    }
    best.ok_or(rejected)
}

/// Whether an answer keeps to what may be spent.
fn within(tried: &Tried<'_>, size: Size, answer: &Evaluation, limits: &PlanLimits) -> Result<(), Rejection> {
    let costs = |built: &BuiltCluster| built.costs.total;
    let draws = |built: &BuiltCluster| built.facility.provisioned_total;
    if let Some(budget) = limits.budget {
        beyond(tried, size, answer, ("costs more than the budget over the horizon, capex and opex", budget, costs))?;
    }
    if let Some(power) = limits.power {
        beyond(tried, size, answer, ("takes more power than there is", power, draws))?;
    }
    Ok(())
}

/// By how much an answer is beyond what there is, and what gives way on as many accelerators as that is enough for.
fn beyond<Q>(
    tried: &Tried<'_>,
    size: Size,
    answer: &Evaluation,
    (why, most, of): (&str, Q, impl Fn(&BuiltCluster) -> Q),
) -> Result<(), Rejection>
where
    Q: Copy + PartialOrd + std::fmt::Display + std::ops::Sub<Output = Q> + std::ops::Div<Output = f64>,
{
    let least = of(&answer.built);
    if least <= most {
        return Ok(());
    }
    let instead = instead(tried, size, |built| of(built) <= most);
    let cluster = &answer.scenario.cluster;
    let figures = format!(
        "the least, {} of {} on {}, is {least}, {} or {:.1}% more than {most}; {instead}",
        counted(cluster.accelerators.into(), "GPU"),
        cluster.node.id,
        cluster.fabric.entry.id,
        least - most,
        (least / most - 1.0) * 100.0
    );
    Err(Rejection::with(why, figures, least / most))
}

/// What the most accelerators that can be built, and keep within what may be spent, come to instead of so many.
fn instead(tried: &Tried<'_>, size: Size, within: impl Fn(&BuiltCluster) -> bool) -> String {
    let of = |steps: u64| Size { main: steps * tried.step(), ..size };
    let can_be = |steps: u64| {
        let Some(Scenario { cluster, finance, .. }) = tried.on(of(steps)) else { return false };
        BuiltCluster::new(&cluster, &finance).is_ok_and(|built| within(&built))
    };
    let (mut enough, mut many) = (0, size.main / tried.step());
    while many - enough > 1 {
        let middle = enough + (many - enough) / 2;
        if can_be(middle) { enough = middle } else { many = middle }
    }
    if enough == 0 {
        return "not one node can be had instead".to_owned();
    }
    let most = of(enough);
    let why = tried.tested(most, tried.serving.spare_replicas).1;
    let why = why.map_or_else(|| "do".to_owned(), |why| format!("{why} ({})", why.subject()));
    format!("{} can be had instead, and {why}", counted(most.main + most.prefill, "GPU"))
}

/// The best way so far.
pub(super) struct Best<'a> {
    tried: Tried<'a>,
    pub(super) size: Size,
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

    /// The way.
    pub(super) fn deployment(&self) -> Deployment {
        self.tried.deployment
    }

    /// The scenario with it.
    pub(super) fn scenario(&self) -> Option<Scenario> {
        self.tried.on(self.size)
    }

    fn before(&self, other: &Self) -> bool {
        (self.least, self.open) < (other.least, other.open)
    }
}

/// What is minimised, as a number to order by.
pub(super) fn merit(cluster: &Cluster, built: &BuiltCluster, minimise: Minimise) -> f64 {
    // Base numbers, because they only order.
    match minimise {
        Minimise::Cost | Minimise::Time => built.costs.total.value(),
        Minimise::Accelerators => f64::from(cluster.accelerators),
        Minimise::Power => built.facility.provisioned_total.value(),
    }
}
