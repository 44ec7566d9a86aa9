//! What must hold for any input: parts add up, and a change moves exactly the figures that it should.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::{Arc, LazyLock};

use clusterplan::catalog::Catalog;
use clusterplan::diagnostics::{Sink, Sources};
use clusterplan::evaluate::{Evaluation, Infeasible, Point, evaluate};
use clusterplan::load;
use clusterplan::parallelism::Schedule;
use clusterplan::scenario::{Scenario, ScenarioFile};
use clusterplan::tco::Spending;
use clusterplan::units::{Bandwidth, Fraction, Seconds, Tokens, Usd, UsdPerJoule};
use proptest::prelude::*;

static SCENARIO: LazyLock<Scenario> = LazyLock::new(|| {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog: Catalog = load::catalog(&[], &mut sources, &sink);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/train-llama3.1-405b-16k-h100.toml");
    let document = load::read(&path, &mut sources, &sink).unwrap();
    Scenario::resolve(&ScenarioFile::read(&document, &sink), &catalog, &sink).unwrap()
});

static BASE: LazyLock<Evaluation> = LazyLock::new(|| evaluate(SCENARIO.clone()).unwrap());

fn point(evaluation: &Evaluation) -> Point {
    evaluation.point.unwrap()
}

fn changed(change: impl FnOnce(&mut Scenario)) -> Evaluation {
    let mut scenario = SCENARIO.clone();
    change(&mut scenario);
    evaluate(scenario).unwrap()
}

/// The fabric with its network cards at a multiple of their speed, all counts as they were.
fn with_bandwidth(factor: f64) -> Evaluation {
    changed(|scenario| {
        let nic = Arc::make_mut(&mut scenario.cluster.fabric.nic);
        nic.part.speed = Bandwidth::new(nic.part.speed.value() * factor);
    })
}

/// Every part of the fabric at a multiple of its price.
fn with_fabric_price(factor: f64) -> Evaluation {
    let node = SCENARIO.cluster.node.id.clone();
    let storage = SCENARIO.cluster.storage.id.clone();
    changed(|scenario| {
        let book = Arc::make_mut(&mut scenario.cluster.prices);
        for price in book.part.prices.iter_mut().filter(|price| price.part.id != node && price.part.id != storage) {
            price.usd.value = price.usd.value * factor;
        }
    })
}

fn with_tariff(factor: f64) -> Evaluation {
    changed(|scenario| {
        let site = Arc::make_mut(&mut scenario.cluster.site);
        site.part.electricity.value = UsdPerJoule::new(site.part.electricity.value.value() * factor);
    })
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn less_bandwidth_takes_longer_and_costs_more_a_run(factor in 0.1..0.95_f64) {
        let slow = with_bandwidth(factor);
        prop_assert!(point(&slow).step.iteration() > point(&BASE).step.iteration());
        prop_assert!(point(&slow).step.exposed.data > point(&BASE).step.exposed.data);
        prop_assert!(point(&slow).step.exposed.pipeline > point(&BASE).step.exposed.pipeline);
        prop_assert!(point(&slow).run > point(&BASE).run);
        // What the network does not touch stays.
        prop_assert_eq!(point(&slow).step.compute, point(&BASE).step.compute);
        prop_assert_eq!(point(&slow).step.exposed.tensor, point(&BASE).step.exposed.tensor);
        prop_assert_eq!(point(&slow).memory, point(&BASE).memory);
        prop_assert_eq!(slow.built.costs.capex, BASE.built.costs.capex);
        prop_assert_eq!(slow.built.facility, BASE.built.facility);
        prop_assert_eq!(slow.unit_costs.per_gpu_hour, BASE.unit_costs.per_gpu_hour);
    }

    #[test]
    fn a_dearer_fabric_costs_more_and_is_no_slower(factor in 1.01..5.0_f64) {
        let dear = with_fabric_price(factor);
        prop_assert!(close(dear.built.fabric_capex() / BASE.built.fabric_capex(), factor));
        prop_assert!(dear.built.costs.capex > BASE.built.costs.capex);
        prop_assert!(dear.unit_costs.per_gpu_hour > BASE.unit_costs.per_gpu_hour);
        prop_assert!(point(&dear).run > point(&BASE).run);
        prop_assert_eq!(point(&dear).step, point(&BASE).step);
        prop_assert_eq!(point(&dear).goodput, point(&BASE).goodput);
        prop_assert_eq!(point(&dear).memory, point(&BASE).memory);
        prop_assert_eq!(dear.built.facility, BASE.built.facility);
    }

    #[test]
    fn dearer_power_moves_electricity_alone(factor in 1.01..5.0_f64) {
        let dear = with_tariff(factor);
        prop_assert_eq!(dear.built.costs.capex, BASE.built.costs.capex);
        prop_assert!(dear.built.costs.opex_per_year > BASE.built.costs.opex_per_year);
        prop_assert!(dear.unit_costs.per_gpu_hour > BASE.unit_costs.per_gpu_hour);
        prop_assert_eq!(point(&dear).step, point(&BASE).step);
        prop_assert_eq!(dear.built.facility, BASE.built.facility);
        for (new, old) in dear.built.costs.lines.iter().zip(&BASE.built.costs.lines) {
            let expected = if old.name == "Electricity" { factor } else { 1.0 };
            // Lines that a book names at nothing stay at nothing.
            let nothing = old.amount == Usd::ZERO && new.amount == Usd::ZERO;
            prop_assert!(nothing || close(new.amount / old.amount, expected), "{}", old.name);
        }
    }

    #[test]
    fn no_count_breaks_the_arithmetic(
        degrees in proptest::array::uniform6(1_u32..=i32::MAX.unsigned_abs()),
        shifts in proptest::array::uniform6(0_u32..31),
        batch in 1_u32..=i32::MAX.unsigned_abs(),
        schedule in 0_usize..Schedule::ALL.len(),
    ) {
        // Degrees of every magnitude, most of them impossible: an answer with numbers, or a no.
        let mut scenario = SCENARIO.clone();
        let at = |index: usize| (degrees[index] >> shifts[index]).max(1);
        let layout = &mut scenario.training.as_mut().unwrap().layout;
        layout.tensor = at(0);
        layout.context = at(1);
        layout.pipeline = at(2);
        layout.virtual_stages = at(3);
        layout.expert = at(4);
        layout.micro_batch = at(5);
        layout.schedule = Schedule::ALL[schedule];
        scenario.training.as_mut().unwrap().job.global_batch = batch;
        if let Ok(evaluation) = evaluate(scenario) {
            prop_assert!(point(&evaluation).run.is_finite());
        }
    }

    #[test]
    fn a_run_is_whole_steps(tokens in 1e8..1e14_f64) {
        let run = changed(|scenario| scenario.training.as_mut().unwrap().job.tokens = Tokens::new(tokens));
        let job = &run.scenario.training.as_ref().unwrap().job;
        let steps = job.steps();
        prop_assert!(close(steps, steps.round()) && job.tokens_per_step() * steps >= job.tokens * (1.0 - 1e-9));
        prop_assert!(job.tokens_per_step() * (steps - 1.0) < job.tokens);
        prop_assert_eq!(point(&run).duration, point(&run).step.iteration() * steps);
    }

    #[test]
    fn prices_times_k_are_costs_times_k(factor in 0.1..10.0_f64) {
        // Parts alone: lines that are a ratio of parts follow, lines in dollars stay.
        let scaled = changed(|scenario| {
            let book = Arc::make_mut(&mut scenario.cluster.prices);
            for price in &mut book.part.prices {
                price.usd.value = price.usd.value * factor;
            }
        });
        for (part, old) in scaled.built.parts.iter().zip(&BASE.built.parts) {
            prop_assert!(close(part.unit_price / old.unit_price, factor));
        }
        prop_assert!(close(scaled.built.fabric_capex() / BASE.built.fabric_capex(), factor));
    }
}

#[test]
fn an_endless_run_and_a_figure_without_number_are_answers() {
    let endless = |mean: f64| {
        let mut scenario = SCENARIO.clone();
        let reliability = Arc::make_mut(&mut scenario.cluster.reliability);
        reliability.part.mtbf.accelerator.value = Seconds::new(mean);
        evaluate(scenario)
    };
    let error = endless(3_600.0).unwrap_err();
    assert!(matches!(error, Infeasible::Endless { .. }), "{error}");
    assert!(error.to_string().contains("interrupted every"), "{error}");
    let mut scenario = SCENARIO.clone();
    let node = scenario.cluster.node.id.clone();
    for price in &mut Arc::make_mut(&mut scenario.cluster.prices).part.prices {
        if price.part.id == node {
            price.usd.value = Usd::new(f64::INFINITY);
        }
    }
    let error = evaluate(scenario).unwrap_err();
    assert!(matches!(error, Infeasible::NotFinite { .. }), "{error}");
}

#[test]
fn time_memory_and_cost_parts_add_up() {
    let step = &point(&BASE).step;
    let parts = step.compute + step.exposed.total() + step.bubble + step.optimizer + step.other.total();
    assert_eq!(parts, step.iteration());
    let memory = &point(&BASE).memory;
    let parts =
        memory.weights + memory.gradients + memory.optimizer + memory.activations + memory.kv_cache + memory.workspace;
    assert_eq!(parts, memory.total());
    let costs = &BASE.built.costs;
    let sum = |capex: bool| -> Usd {
        costs
            .lines
            .iter()
            .filter(|line| matches!(line.spending, Spending::Capex { .. }) == capex)
            .map(|line| line.amount)
            .sum()
    };
    assert_eq!(sum(true), costs.capex);
    assert_eq!(sum(false), costs.opex_per_year);
    assert_eq!(costs.lines.iter().map(|line| line.annualised).sum::<Usd>(), costs.annualised);
    let goodput = &point(&BASE).goodput;
    assert!((goodput.ratio + goodput.lost.total() - 1.0).abs() < 1e-12);
    assert!(BASE.effective_duration().unwrap() > point(&BASE).duration && point(&BASE).duration > Seconds::ZERO);
}

#[test]
fn what_stands_by_slows_nothing() {
    let with_spares = |share: f64| {
        changed(|scenario| {
            scenario.cluster.topology.leaf_oversubscription = 2.0;
            scenario.cluster.spares = Fraction::new(share).unwrap();
        })
    };
    let (none, some) = (with_spares(0.0), with_spares(0.03));
    let bought = |of: &Evaluation| of.built.kinds[0].all();
    assert!(bought(&some) > bought(&none) && some.built.costs.capex > none.built.costs.capex);
    let ratio = point(&some).step.iteration() / point(&none).step.iteration();
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
}

#[test]
fn slower_switches_delay_what_leaves_a_leaf() {
    let slow = changed(|scenario| {
        for switch in &mut scenario.cluster.fabric.switches {
            Arc::make_mut(switch).part.latency = Seconds::new(5e-6);
        }
    });
    assert!(point(&slow).step.exposed.data > point(&BASE).step.exposed.data);
    assert_eq!(point(&slow).step.exposed.tensor, point(&BASE).step.exposed.tensor);
    assert_eq!(slow.built.costs, BASE.built.costs);
}
