//! Variants side by side, and that the break-even is where a run costs the same.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

use std::path::Path;
use std::sync::Arc;

use clusterplan::catalog::Catalog;
use clusterplan::diagnostics::{Sink, Sources, render};
use clusterplan::evaluate::{Evaluation, evaluate};
use clusterplan::load;
use clusterplan::study::{Axis, Case, Comparison, Level, Question, Turn, Variable, break_even, compare};
use clusterplan::units::{Fraction, Ranged, Usd};

struct Bench {
    sources: Sources,
    sink: Sink,
    catalog: Catalog,
}

impl Bench {
    fn new() -> Self {
        let (mut sources, sink) = (Sources::default(), Sink::default());
        let catalog = load::catalog(&[], &mut sources, &sink);
        Self { sources, sink, catalog }
    }

    fn case(&mut self, name: &str, settings: &[&str]) -> Case {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(format!("{name}.toml"));
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let document = load::scenario(&path, &settings, &mut self.sources, &self.sink).unwrap();
        Case { name: name.to_owned(), document }
    }

    fn axis(&mut self, text: &str) -> Axis {
        load::axis("--vary", text, &mut self.sources, &self.sink).unwrap()
    }

    fn compare(self, cases: &[Case], axes: &[Axis]) -> Comparison {
        let comparison = compare(&Question { cases, axes, baseline: None }, &self.catalog, &self.sink);
        let mistakes = render(&self.sink.into_diagnostics(), &self.sources, false);
        comparison.unwrap_or_else(|| panic!("{mistakes}"))
    }
}

const LLAMA: &str = "train-llama3.1-405b-16k-h100";
const FABRICS: &str = "cluster.fabric=quantum-2-ndr,spectrum-x-400g,roce-400g";

fn fabrics(settings: &[&str]) -> Comparison {
    let mut bench = Bench::new();
    let (cases, axes) = ([bench.case(LLAMA, settings)], [bench.axis(FABRICS)]);
    bench.compare(&cases, &axes)
}

fn answer(comparison: &Comparison, index: usize) -> &Evaluation {
    comparison.variants[index].outcome.as_ref().unwrap()
}

fn turn(comparison: &Comparison, other: usize, variable: Variable) -> Turn {
    comparison.break_even.iter().find(|found| found.between == (0, other) && found.variable == variable).unwrap().turn
}

#[test]
fn every_value_of_one_key_meets_every_value_of_the_other() {
    let mut bench = Bench::new();
    let cases = [bench.case(LLAMA, &[])];
    let axes = [bench.axis("cluster.fabric=quantum-2-ndr,roce-400g"), bench.axis("cluster.spares=0.03,0.05")];
    let comparison = bench.compare(&cases, &axes);
    let names: Vec<&str> = comparison.variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names, ["quantum-2-ndr, 0.03", "quantum-2-ndr, 0.05", "roce-400g, 0.03", "roce-400g, 0.05"]);
    assert_eq!(comparison.variants[3].settings[1], ("cluster.spares".to_owned(), "0.05".to_owned()));
    assert!(answer(&comparison, 1).built.drivers.nodes > answer(&comparison, 0).built.drivers.nodes);
}

#[test]
fn scenarios_are_compared_by_their_names() {
    let mut bench = Bench::new();
    let cases = [bench.case("train-gpt3-175b-1k-a100", &[]), bench.case("train-gpt3-175b-1k-h100", &[])];
    let comparison = bench.compare(&cases, &[]);
    let names: Vec<&str> = comparison.variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names, ["train-gpt3-175b-1k-a100", "train-gpt3-175b-1k-h100"]);
    assert!(
        answer(&comparison, 1).point.unwrap().step.iteration() < answer(&comparison, 0).point.unwrap().step.iteration()
    );
}

#[test]
fn a_variant_that_cannot_be_leaves_the_others() {
    let mut bench = Bench::new();
    let (cases, axes) = ([bench.case(LLAMA, &[])], [bench.axis("training.layout.tensor=8,3,2")]);
    let comparison = bench.compare(&cases, &axes);
    let feasible: Vec<bool> = comparison.variants.iter().map(|variant| variant.outcome.is_ok()).collect();
    assert_eq!(feasible, [true, false, false]);
    assert!(comparison.break_even.is_empty());
}

#[test]
fn a_baseline_that_cannot_be_is_told_the_nearest_that_can() {
    let mut bench = Bench::new();
    let (cases, axes) = ([bench.case(LLAMA, &[])], [bench.axis("training.layout.tensor=3,8")]);
    let comparison = bench.compare(&cases, &axes);
    let nearest = comparison.nearest.unwrap();
    assert!(comparison.baseline().outcome.is_err() && nearest.point.layout.tensor == 8, "{nearest:?}");
    assert_eq!(fabrics(&[]).nearest, None);
}

/// What a run costs on a variant of which every part of the fabric costs so many times as much.
fn dearer(evaluation: &Evaluation, factor: f64) -> Evaluation {
    let mut scenario = evaluation.scenario.clone();
    let mut book = (*scenario.cluster.prices).clone();
    for price in &mut book.part.prices {
        if evaluation.built.parts.iter().any(|part| part.id == price.part.id) {
            price.usd.value = price.usd.value * factor;
        }
    }
    scenario.cluster.prices = Arc::new(book);
    evaluate(scenario).unwrap()
}

/// The same with another spine efficiency.
fn with_efficiency(evaluation: &Evaluation, efficiency: f64) -> Evaluation {
    let mut scenario = evaluation.scenario.clone();
    let mut fabric = (*scenario.cluster.fabric.entry).clone();
    fabric.part.spine_efficiency = Fraction::new(efficiency).map(Ranged::exact);
    scenario.cluster.fabric.entry = Arc::new(fabric);
    evaluate(scenario).unwrap()
}

#[test]
fn at_the_price_of_the_break_even_runs_cost_the_same() {
    let comparison = fabrics(&[]);
    for other in [1, 2] {
        let Turn::At(Level::Price(price)) = turn(&comparison, other, Variable::FabricCapex) else {
            panic!("no crossing")
        };
        let evaluation = answer(&comparison, other);
        let moved = dearer(evaluation, price / evaluation.built.fabric_capex());
        assert!((moved.built.fabric_capex() / price - 1.0).abs() < 1e-9);
        assert!(
            (moved.point.unwrap().run / answer(&comparison, 0).point.unwrap().run - 1.0).abs() < 1e-9,
            "variant {other}"
        );
    }
}

#[test]
fn at_the_efficiency_of_the_break_even_runs_cost_the_same() {
    let comparison = fabrics(&[]);
    let Turn::At(Level::Efficiency(efficiency)) = turn(&comparison, 2, Variable::SpineEfficiency) else {
        panic!("no crossing")
    };
    let (baseline, other) = (answer(&comparison, 0).point.unwrap().run, answer(&comparison, 2));
    let run = |moved: f64| with_efficiency(other, efficiency.get() * moved).point.unwrap().run;
    assert!((run(1.0) / baseline - 1.0).abs() < 1e-6);
    // On either side the order is another.
    assert!(run(0.98) > baseline && run(1.02) < baseline);
}

#[test]
fn the_present_efficiency_is_on_the_scale_of_the_break_even() {
    // Flows that are hashed have no stated efficiency: what is shown as present gives the present cost.
    let comparison = fabrics(&[]);
    for found in comparison.break_even.iter().filter(|found| found.variable == Variable::SpineEfficiency) {
        let Level::Efficiency(present) = found.present else { panic!("no efficiency") };
        let evaluation = answer(&comparison, found.between.1);
        // Beside it stands what the hash of its flows leaves at full load, where they are hashed.
        let hashed = evaluation.scenario.cluster.fabric.entry.load_balancing.is_hashed();
        assert_eq!(found.collisions.is_some(), hashed);
        assert!(found.collisions.is_none_or(|collisions| (0.2..0.9).contains(&collisions.share())), "{found:?}");
        let again = with_efficiency(evaluation, present.get());
        assert!((again.point.unwrap().run / evaluation.point.unwrap().run - 1.0).abs() < 1e-3, "{found:?}");
    }
}

#[test]
fn at_the_step_time_of_the_break_even_runs_cost_the_same() {
    let comparison = fabrics(&[]);
    for other in [1, 2] {
        let Turn::At(Level::Time(time)) = turn(&comparison, other, Variable::StepTime) else { panic!("no crossing") };
        let evaluation = answer(&comparison, other);
        let slower = time / evaluation.point.unwrap().step.iteration();
        assert!(
            (evaluation.point.unwrap().run * slower / answer(&comparison, 0).point.unwrap().run - 1.0).abs() < 1e-12
        );
    }
}

#[test]
fn where_no_value_turns_the_order_the_winner_is_named() {
    // At ten times its price, the multi-vendor fabric is never cheaper, however well its spines work.
    let comparison = fabrics(&[]);
    let dear = dearer(answer(&comparison, 2), 10.0);
    let found = break_even((0, answer(&comparison, 0)), (2, &dear));
    assert!(matches!(found[1].turn, Turn::Never { winner: 0, .. }), "{found:?}");
    // Against a baseline that costs almost nothing, even a free fabric loses.
    let mut bench = Bench::new();
    let (cases, axes) = ([bench.case(LLAMA, &[])], [bench.axis("training.tokens=1 Btoken,15.6 Ttoken")]);
    let tokens = bench.compare(&cases, &axes);
    let never = Turn::Never {
        winner: 0,
        from: Level::Price(Usd::ZERO),
        to: Level::Price(answer(&tokens, 1).built.fabric_capex()),
    };
    assert_eq!(turn(&tokens, 1, Variable::FabricCapex), never);
}

#[test]
fn the_map_crosses_where_costs_are_the_same() {
    let mut bench = Bench::new();
    let case = bench.case("train-llama3.1-405b-16k-h100", &[]);
    let axis = bench.axis("cluster.fabric=quantum-2-ndr,roce-400g-ecmp");
    let comparison = bench.compare(&[case], &[axis]);
    let [map] = &comparison.maps[..] else { panic!("{:?}", comparison.maps) };
    assert!(map.rows.is_sorted_by(|a, b| a.efficiency < b.efficiency && a.step >= b.step));
    for row in &map.rows {
        // A dearer fabric never makes a run cheaper, and the winner changes at the crossing.
        assert!(row.run.is_sorted_by(|a, b| a < b));
        for (ratio, run) in clusterplan::study::PRICE_RATIOS.iter().zip(&row.run) {
            assert_eq!(*run < map.baseline_run, row.crossing.is_some_and(|crossing| *ratio < crossing), "{row:?}");
        }
    }
    // Badly balanced no price helps; well balanced the price decides.
    assert_eq!(map.rows[0].crossing, None);
    assert!(map.rows.last().unwrap().crossing.unwrap() > map.present_ratio);
}

#[test]
fn four_gpus_behind_one_card_take_about_twice_as_long() {
    let mut bench = Bench::new();
    let case = bench.case("train-llama3.1-8b-64-a100-one-nic", &[]);
    let axis = bench.axis("cluster.node=a100-pcie-4-shared,a100-pcie-4-rails");
    let comparison = bench.compare(&[case], &[axis]);
    let step = |index: usize| comparison.variants[index].outcome.as_ref().unwrap().point.unwrap().step;
    let (shared, rails) = (step(0), step(1));
    assert!((1.6..2.4).contains(&(shared.iteration() / rails.iteration())));
    // Of the communication itself the cards are nearly all: four times the rate, until PCIe between the GPUs binds.
    assert!(shared.exposed.data / rails.exposed.data > 2.0);
    assert_eq!(shared.compute, rails.compute);
}
