//! Uncertainty: how far every figure spreads when what is not known for certain does, what it hangs on, and how often one
//! variant beats another.

mod copula;
mod hypercube;
mod indices;
mod inputs;
mod spread;

pub use inputs::{Input, ranged_inputs};
pub(super) use spread::{draw, quantile};

use copula::Copula;
use rayon::prelude::*;

use super::field::with_fields;
use super::figure::Figure;
use super::stages::resolve;
use crate::catalog::Catalog;
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{Node, Value};
use crate::evaluate::{Bands, Evaluation, Infeasible};
use crate::parallelism::Layout;
use crate::scenario::{CatalogField, Overlap, Scenario, Serving, Training, UncertaintyFile};
use crate::search::{self, Deployment};

/// What moves a figure by less than this share of it says nothing.
const NOTHING: f64 = 1e-6;

/// A variant: a name, and the scenario.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What tells it from the others.
    pub name: String,
    /// The scenario, as read.
    pub document: Node,
}

/// A figure, and whether more of it is better.
#[derive(Debug)]
pub struct Aim {
    /// The figure.
    pub figure: Figure,
    /// Whether more is better.
    pub most: bool,
}

/// How a figure of a variant spreads.
#[derive(Clone, Debug, PartialEq)]
pub struct Spreading {
    /// With every input at its typical value; none where the variant does not have the figure.
    pub typical: Option<f64>,
    /// P10, P50 and P90.
    pub quantiles: Option<[f64; 3]>,
    /// How often it is better than the first variant's in the same sample; an equal counts half.
    pub beats_first: Option<f64>,
    /// What it hangs on, the widest first.
    pub hangs_on: Vec<Hinge>,
}

/// How a figure hangs on an input.
#[derive(Clone, Debug, PartialEq)]
pub struct Hinge {
    /// The input, by its place.
    pub input: usize,
    /// The figure with that input at its P10 and at its P90, all others typical.
    pub ends: [f64; 2],
    /// The share of the figure's variance that the input explains by itself (Sobol's first-order index), not
    /// a number where it is not told from chance. Of inputs that move together it is that of its own.
    pub share: f64,
}

/// What became of a variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Uncertain {
    /// Its name.
    pub name: String,
    /// Samples that can be.
    pub feasible: usize,
    /// How far estimates of serving are off, which no input says.
    pub bands: Option<Bands>,
    /// A figure each.
    pub figures: Vec<Spreading>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Uncertainty {
    /// What is asked, in a line.
    pub title: String,
    /// What spreads; inputs that move nothing are left out.
    pub inputs: Vec<Input>,
    /// Samples.
    pub samples: u32,
    /// The variants.
    pub variants: Vec<Uncertain>,
}

/// A variant with the layout that is best with every input at its typical value.
struct Bound<'a> {
    candidate: &'a Candidate,
    layout: Option<(Layout, Overlap)>,
    served: Option<Deployment>,
}

/// Samples every variant with the same draws; mistakes go to the sink.
///
/// # Errors
/// When a variant cannot be with every input at its typical value.
pub fn uncertainty(
    candidates: &[Candidate],
    wanted: &UncertaintyFile,
    aims: &[Aim],
    catalog: &Catalog,
    sink: &Sink,
) -> Option<Result<Uncertainty, (String, Infeasible)>> {
    let (mut bound, mut typical, mut title) = (Vec::new(), Vec::new(), String::new());
    for candidate in candidates {
        let scenario = match resolve(&candidate.document, catalog) {
            Ok(scenario) => scenario,
            Err(mistake) => {
                let message = format!("{}: {mistake}", candidate.name);
                sink.push(Diagnostic::new(Code::Inconsistent, message).hint("`eval` of that variant shows its place"));
                return None;
            }
        };
        title.clone_from(&scenario.title);
        match search::evaluate(scenario) {
            Ok(evaluation) => {
                bound.push(Bound { candidate, layout: layout_of(&evaluation), served: deployment_of(&evaluation) });
                typical.push(evaluation);
            }
            Err(infeasible) => return Some(Err((candidate.name.clone(), infeasible))),
        }
    }
    let inputs = inputs::all(wanted, &typical, catalog, sink)?;
    for candidate in candidates {
        inputs::try_draws(wanted, &candidate.document, catalog, sink);
    }
    if !sink.is_empty() {
        return None;
    }
    let copula = Copula::new(&wanted.correlations, &inputs, sink)?;
    let ask = |at: &[(usize, f64)]| answers(&bound, &inputs, at, aims, catalog);
    let usual: Vec<Vec<Option<f64>>> =
        typical.iter().map(|evaluation| aims.iter().map(|aim| (aim.figure.extract)(evaluation)).collect()).collect();
    // One at a time, to their tenth and their ninetieth hundredth.
    let ends: Vec<[Vec<Vec<Option<f64>>>; 2]> =
        (0..inputs.len()).into_par_iter().map(|input| [0.1, 0.9].map(|share| ask(&[(input, share)]))).collect();
    let moves = |input: &usize| {
        let moved = |end: &Vec<Vec<Option<f64>>>| {
            end.iter().flatten().zip(usual.iter().flatten()).any(|(end, usual)| differ(*end, *usual))
        };
        ends[*input].iter().any(moved)
    };
    let moving: Vec<usize> = (0..inputs.len()).filter(moves).collect();
    let drawn: Vec<usize> =
        moving.iter().copied().chain(copula.inputs().filter(|input| !moving.contains(input))).collect();
    // All at once, each variant with the same draws.
    let shares_of: Vec<Vec<f64>> =
        (0..drawn.len()).map(|place| hypercube::hypercube(wanted.samples, place, wanted.seed)).collect();
    let draw = |sample: usize| -> Vec<(usize, f64)> {
        // What moves no figure stays at its middle, but for what hangs on it.
        let mut shares = vec![0.5; inputs.len()];
        for (input, of_input) in drawn.iter().zip(&shares_of) {
            shares[*input] = of_input[sample];
        }
        copula.join(&mut shares);
        moving.iter().map(|input| (*input, shares[*input])).collect()
    };
    let samples: Vec<Vec<Vec<Option<f64>>>> =
        (0..wanted.samples as usize).into_par_iter().map(|sample| ask(&draw(sample))).collect();
    let draws: Vec<Vec<(usize, f64)>> = (0..wanted.samples as usize).map(draw).collect();
    let variants = bound
        .iter()
        .enumerate()
        .map(|(variant, bound)| {
            let figures = aims
                .iter()
                .enumerate()
                .map(|(figure, aim)| {
                    let values: Vec<Option<f64>> = samples.iter().map(|sample| sample[variant][figure]).collect();
                    let first = samples.iter().map(|sample| sample[0][figure]);
                    Spreading {
                        typical: usual[variant][figure],
                        quantiles: spread::quantiles(&values),
                        beats_first: (variant > 0).then(|| beats(&values, first, aim.most)).flatten(),
                        hangs_on: hinges(&moving, &draws, &values, |input| {
                            ends[input].each_ref().map(|end| end[variant][figure])
                        }),
                    }
                })
                .collect();
            let feasible = samples.iter().filter(|sample| sample[variant].iter().any(Option::is_some)).count();
            let bands = typical[variant].serving.and_then(|point| point.bands);
            Uncertain { name: bound.candidate.name.clone(), feasible, bands, figures }
        })
        .collect();
    let mut variants: Vec<Uncertain> = variants;
    for hinge in variants.iter_mut().flat_map(|variant| &mut variant.figures).flat_map(|figure| &mut figure.hangs_on) {
        hinge.input = moving.iter().position(|input| *input == hinge.input).unwrap_or_default();
    }
    let inputs = moving.iter().map(|input| inputs[*input].clone()).collect();
    Some(Ok(Uncertainty { title, inputs, samples: wanted.samples, variants }))
}

fn layout_of(evaluation: &Evaluation) -> Option<(Layout, Overlap)> {
    let training = evaluation.scenario.training.as_ref()?;
    evaluation.found.as_ref()?;
    Some((Layout { data: 1, ..evaluation.point?.layout }, training.software.overlap))
}

/// The way to serve that a search found.
fn deployment_of(evaluation: &Evaluation) -> Option<Deployment> {
    evaluation.scenario.serving.as_ref().filter(|serving| serving.search).map(Deployment::given)
}

/// The figures of every variant with some inputs at these shares of their spread; none where it cannot be.
fn answers(
    bound: &[Bound<'_>],
    inputs: &[Input],
    at: &[(usize, f64)],
    aims: &[Aim],
    catalog: &Catalog,
) -> Vec<Vec<Option<f64>>> {
    let mut fields: Vec<(CatalogField, Node)> = Vec::new();
    let mut keys: Vec<(&str, Node)> = Vec::new();
    for (input, share) in at {
        let input = &inputs[*input];
        match CatalogField::parse(&input.key) {
            Some(field) => fields.push((field, input.node(*share))),
            None => keys.push((&input.key, input.node(*share))),
        }
    }
    let sink = Sink::default();
    let changed = (!fields.is_empty()).then(|| {
        let fields: Vec<(&CatalogField, &Node)> = fields.iter().map(|(field, node)| (field, node)).collect();
        with_fields(catalog, &fields, &sink)
    });
    let catalog = changed.as_ref().unwrap_or(catalog);
    let nothing = || aims.iter().map(|_| None).collect();
    if !sink.is_empty() {
        return bound.iter().map(|_| nothing()).collect();
    }
    let of = |bound: &Bound<'_>| match answer(bound, &keys, catalog) {
        Some(answer) => aims.iter().map(|aim| (aim.figure.extract)(&answer)).collect(),
        None => nothing(),
    };
    bound.iter().map(of).collect()
}

/// The answer with these keys set.
fn answer(bound: &Bound<'_>, keys: &[(&str, Node)], catalog: &Catalog) -> Option<Evaluation> {
    let mut document = bound.candidate.document.clone();
    if let Value::Table(table) = &mut document.value {
        for (key, node) in keys {
            table.set(key, node.clone()).ok()?;
        }
    }
    let mut scenario = resolve(&document, catalog).ok()?;
    if let (Some((layout, overlap)), Some(training)) = (bound.layout, &scenario.training) {
        let settled = training.with_overlap(overlap, &scenario.cluster).ok()?;
        scenario = Scenario { training: Some(Training { search: None, layout, ..settled }), ..scenario };
    }
    if let (Some(served), Some(serving)) = (bound.served, &scenario.serving) {
        let serving = Serving { search: false, ..served.of(serving) };
        scenario = Scenario { serving: Some(serving), ..scenario };
    }
    search::evaluate(scenario).ok()
}

fn differ(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() > NOTHING * a.abs().max(b.abs()),
        (a, b) => a.is_some() != b.is_some(),
    }
}

fn beats(values: &[Option<f64>], first: impl Iterator<Item = Option<f64>>, most: bool) -> Option<f64> {
    let pairs: Vec<(f64, f64)> = values.iter().zip(first).filter_map(|(own, first)| (*own).zip(first)).collect();
    let score = |(own, first): &(f64, f64)| match if most { own.total_cmp(first) } else { first.total_cmp(own) } {
        _ if !differ(Some(*own), Some(*first)) => 0.5,
        std::cmp::Ordering::Greater => 1.0,
        _ => 0.0,
    };
    (!pairs.is_empty()).then(|| pairs.iter().map(score).sum::<f64>() / pairs.len() as f64)
}

/// What a figure hangs on, the widest first.
fn hinges(
    moving: &[usize],
    draws: &[Vec<(usize, f64)>],
    values: &[Option<f64>],
    ends: impl Fn(usize) -> [Option<f64>; 2],
) -> Vec<Hinge> {
    let widths = moving.iter().enumerate().filter_map(|(place, input)| match ends(*input) {
        [Some(low), Some(high)] if differ(Some(low), Some(high)) => Some((place, *input, [low, high])),
        _ => None,
    });
    let widths: Vec<(usize, usize, [f64; 2])> = widths.collect();
    let (there, y): (Vec<_>, Vec<f64>) =
        draws.iter().zip(values).filter_map(|(draw, value)| Some((draw, (*value)?))).unzip();
    let drawn = |place: usize| -> Vec<f64> { there.iter().map(|draw| draw[place].1).collect() };
    let shares = indices::shares(&widths.iter().map(|(place, ..)| drawn(*place)).collect::<Vec<_>>(), &y);
    let hinge = |((_, input, ends), share)| Hinge { input, ends, share };
    let mut found: Vec<Hinge> = widths.into_iter().zip(shares).map(hinge).collect();
    let width = |hinge: &Hinge| (hinge.ends[1] - hinge.ends[0]).abs();
    found.sort_by(|a, b| width(b).total_cmp(&width(a)));
    found
}
