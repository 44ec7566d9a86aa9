//! The search of layouts: against the evaluation of every one, for any number of threads, and what it says where nothing
//! works.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod setup;

use std::path::Path;

use assert_cmd::Command;
use clusterplan::diagnostics::{Sink, Sources};
use clusterplan::evaluate::{BuiltCluster, Evaluation, Found, Infeasible, Point, Prepared, Reason};
use clusterplan::load;
use clusterplan::parallelism::{Objective, Sharding};
use clusterplan::scenario::{Scenario, ScenarioFile, Training};
use clusterplan::search;
use proptest::prelude::*;
use setup::CATALOG;

/// A shipped scenario with some of its keys set anew.
fn scenario(name: &str, set: &[&str]) -> Scenario {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name);
    let set: Vec<String> = set.iter().map(|setting| (*setting).to_owned()).collect();
    let document = load::scenario(&path, &set, &mut sources, &sink).unwrap();
    let scenario = Scenario::resolve(&ScenarioFile::read(&document, &sink), &CATALOG, &sink);
    scenario.unwrap_or_else(|| panic!("{:?}", sink.into_diagnostics()))
}

fn job(scenario: &Scenario) -> &Training {
    scenario.training.as_ref().unwrap()
}

/// A small job: its space is searched whole in a moment.
fn small(set: &[&str]) -> Scenario {
    let base = ["cluster.accelerators=16", "training.global_batch=8", "training.tokens=1 Btoken"];
    scenario("train-mixtral-8x7b-64-h100.toml", &[&base[..], &["training.layout=\"auto\""], set].concat())
}

fn found(scenario: &Scenario) -> Result<Found, Infeasible> {
    search::settle(scenario.clone()).map(|(_, found)| found.unwrap())
}

/// Every layout of the space that works, one after the other, with each choice of overlap.
fn every_point(scenario: &Scenario) -> Vec<Point> {
    let built = BuiltCluster::new(&scenario.cluster, &scenario.finance).unwrap();
    let training = job(scenario);
    let wanted = training.search.unwrap();
    let mut points = Vec::new();
    for &sharding in Sharding::ALL {
        for overlap in wanted.overlaps(training, sharding) {
            let training = training.with_overlap(overlap, &scenario.cluster).unwrap();
            let prepared = Prepared::new(scenario, &training, &built);
            let all = wanted.space.layouts(&training.transformer, &training.job, prepared.accelerators);
            points.extend(
                all.filter(|layout| layout.sharding == sharding).filter_map(|layout| prepared.point(&layout).ok()),
            );
        }
    }
    points
}

fn in_threads(threads: usize, scenario: &Scenario) -> Result<Found, Infeasible> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| found(scenario))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_best_is_the_best_of_all_and_any_number_of_threads_finds_it(
        accelerators in 1_u32..=3,
        batch in 0_usize..4,
        model in prop_oneof![Just("mixtral-8x7b"), Just("llama-3.1-8b"), Just("llama-2-13b")],
        context in 1_u32..=2,
        threads in 2_usize..6,
    ) {
        let scenario = small(&[
            &format!("cluster.accelerators={}", 8 * accelerators),
            &format!("training.global_batch={}", [12, 16, 24, 48][batch]),
            &format!("training.model=\"{model}\""),
            &format!("training.layout={{ search = \"fastest\", context = {context}, micro_batch = 1 }}"),
        ]);
        let points = every_point(&scenario);
        let one = in_threads(1, &scenario);
        prop_assert_eq!(&one, &in_threads(threads, &scenario));
        let Ok(found) = one else {
            prop_assert!(points.is_empty());
            return Ok(());
        };
        prop_assert_eq!(found.tally.feasible, points.len() as u64);
        let built = BuiltCluster::new(&scenario.cluster, &scenario.finance).unwrap();
        let usable = Prepared::new(&scenario, job(&scenario), &built).usable_memory;
        let best = found.best[0].point;
        let fastest = points.iter().map(|point| point.step.iteration()).reduce(clusterplan::units::Seconds::min).unwrap();
        prop_assert_eq!(best.step.iteration(), fastest);
        for candidate in found.best.iter().chain(&found.front) {
            let point = &candidate.point;
            prop_assert!(point.memory.fits(usable));
            prop_assert!(point.layout.check(&job(&scenario).transformer, &job(&scenario).job).is_ok());
            prop_assert!(points.contains(point), "{} is none of the space", point.layout);
        }
        // Nothing beats a member of the front in both, and its first is the best.
        for candidate in &found.front {
            let (time, memory) = (candidate.point.step.iteration(), candidate.point.memory.total());
            let beaten = points.iter().any(|point| {
                point.step.iteration() <= time && point.memory.total() <= memory
                    && (point.step.iteration() < time || point.memory.total() < memory)
            });
            prop_assert!(!beaten, "{}", candidate.point.layout);
        }
        prop_assert_eq!(found.front[0].point.step.iteration(), fastest);
    }
}

#[test]
fn the_cheapest_costs_least() {
    let scenario = small(&["training.layout={ search = \"cheapest\", pipeline = 2 }"]);
    let found = found(&scenario).unwrap();
    assert_eq!(found.objective, Objective::Cheapest);
    assert!(found.best.iter().chain(&found.front).all(|candidate| candidate.point.layout.pipeline == 2));
    let points = every_point(&scenario);
    assert!(points.iter().all(|point| point.run >= found.best[0].point.run));
}

#[test]
fn a_found_layout_evaluates_as_if_it_had_been_given() {
    let searched: Evaluation = search::evaluate(small(&[])).unwrap();
    let (layout, overlap) = (searched.point.unwrap().layout, job(&searched.scenario).software.overlap);
    let mut given = small(&[]);
    let training = Training { search: None, layout, ..job(&given).clone() };
    given.training = Some(training.with_overlap(overlap, &given.cluster).unwrap());
    let given = search::evaluate(given).unwrap();
    assert_eq!(given.point, searched.point);
    assert!(given.found.is_none() && searched.found.is_some());
}

#[test]
fn where_nothing_works_the_reasons_are_counted() {
    // 405 billion parameters on two nodes.
    let scenario = small(&["training.model=\"llama-3.1-405b\""]);
    let infeasible = search::evaluate(scenario.clone()).unwrap_err();
    // All there are have been tried: none is nearest.
    assert_eq!(search::nearest(&scenario, &infeasible), None);
    let Infeasible::NoLayout(none) = &infeasible else { panic!("{infeasible}") };
    assert_eq!(none.tally.feasible, 0);
    let counted: u64 = none.tally.reasons().iter().map(|(_, count)| count).sum();
    assert_eq!(counted, none.tally.considered());
    assert!(none.tally.reasons().iter().any(|(reason, _)| *reason == Reason::Memory));
    let (.., footprint) = none.closest.as_ref().unwrap();
    assert!(footprint.total() > none.usable);
    assert!(infeasible.to_string().contains("short by"), "{infeasible}");
}

#[test]
fn a_degree_that_no_replicas_fill_up_is_told() {
    let infeasible = search::evaluate(small(&["training.layout={ search = \"fastest\", tensor = 3 }"])).unwrap_err();
    assert!(infeasible.to_string().contains("16 accelerators are no multiple of the 3 of a replica"), "{infeasible}");
}

/// The scenario of a fixed layout that cannot be, and the nearest that can.
fn nearest(set: &[&str]) -> (Infeasible, search::Nearest) {
    let scenario = scenario("train-gpt3-175b-1k-h100.toml", set);
    let infeasible = search::evaluate(scenario.clone()).unwrap_err();
    let nearest = search::nearest(&scenario, &infeasible).unwrap();
    // It is a layout like any other.
    let mut works = scenario;
    works.training.as_mut().unwrap().layout = nearest.point.layout;
    assert_eq!(search::evaluate(works).unwrap().point, Some(nearest.point));
    (infeasible, nearest)
}

#[test]
fn what_cannot_be_is_told_the_nearest_that_can() {
    // Nine stages do not divide 1,024 accelerators; eight, as in the shipped scenario, do.
    let (infeasible, near) = nearest(&["training.layout.pipeline=9"]);
    assert!(infeasible.to_string().contains("1024 accelerators are no multiple"), "{infeasible}");
    assert_eq!((near.point.layout.tensor, near.point.layout.pipeline), (4, 8));
    // Sixteen sequences at once do not fit, and fewer do.
    let (infeasible, near) = nearest(&["training.layout.micro_batch=2"]);
    assert!(matches!(infeasible, Infeasible::Memory { .. }) && infeasible.to_string().contains("short by"));
    assert!(near.distance <= 1.0, "{}", near.distance);
    // A dense model has no experts to spread.
    let (infeasible, near) = nearest(&["training.layout.expert=4"]);
    assert!(infeasible.to_string().contains("dense one has expert 1"), "{infeasible}");
    assert_eq!(near.point.layout.expert, 1);
}

#[test]
fn keys_that_leave_nothing_are_told_the_nearest_that_leave_something() {
    let near = |layout: &str| {
        let scenario = small(&[&format!("training.layout={{ search = \"fastest\", {layout} }}")]);
        let infeasible = search::evaluate(scenario.clone()).unwrap_err();
        let nearest = search::nearest(&scenario, &infeasible);
        (infeasible, nearest)
    };
    // A third of the way from two to four by doublings is nearer to four; what is open costs nothing.
    let (_, nearest) = near("tensor = 3");
    let nearest = nearest.unwrap();
    assert_eq!(nearest.point.layout.tensor, 4);
    assert!((nearest.distance - (4.0_f64 / 3.0).log2()).abs() < 1e-9, "{}", nearest.distance);
    // States of 47 billion parameters that each rank holds whole do not fit; sharded they do.
    let (infeasible, nearest) = near("tensor = 1, pipeline = 1, expert = 1, sharding = \"none\"");
    assert!(matches!(infeasible, Infeasible::NoLayout(_)), "{infeasible}");
    let nearest = nearest.unwrap();
    assert!((nearest.distance - 1.0).abs() < 1e-9 && nearest.point.memory.fits(nearest.usable), "{nearest:?}");
}

#[test]
fn the_program_says_it_in_words_and_json() {
    let run = |arguments: &[&str]| {
        let mut command = Command::cargo_bin("clusterplan").unwrap();
        command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments);
        command.assert().get_output().clone()
    };
    let small = ["eval", "scenarios/train-mixtral-8x7b-64-h100.toml", "--set", "training.layout=auto"];
    let small = [&small[..], &["--set", "cluster.accelerators=16", "--set", "training.global_batch=16"]].concat();
    let output = run(&small);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("Layout search\nThe fastest of "), "{text}");
    let output = run(&[&small[..], &["--format", "json"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let search = &json["layout_search"];
    assert_eq!(search["best"][0]["iteration_s"], json["training"]["iteration_s"]);
    assert_eq!(search["best"][0]["memory_bytes"], json["memory"]["total_bytes"]);
    assert!(search["considered_count"].as_u64() > search["feasible_count"].as_u64());
    let output = run(&["eval", "scenarios/train-mixtral-8x7b-64-h100.toml", "--set", "training.layout.expert=16"]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("8 experts do not split over expert 16"), "{message}");
    assert!(message.contains("The nearest layout that works: tensor 1, pipeline 4"), "{message}");
    let output = run(&[&["memory"], &small[1..]].concat());
    assert!(output.status.success());
    let output = run(&["eval", "scenarios/train-mixtral-8x7b-64-h100.toml", "--set", "training.layout=best"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && message.contains("\"auto\" or a table"), "{message}");
}
