//! What each kind of parallelism costs: schedules by bubble, memory and messages, exchanges of context ranks, and tensor
//! ranks within a node and across nodes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::LazyLock;

use clusterplan::diagnostics::{Sink, Sources};
use clusterplan::evaluate::{BuiltCluster, Infeasible, Point, Prepared};
use clusterplan::load;
use clusterplan::parallelism::{ContextExchange, Layout, Schedule, Sharding};
use clusterplan::scenario::{Scenario, ScenarioFile};
use clusterplan::units::{Factor, Seconds};
use clusterplan::workload::GradientPrecision;

fn scenario(name: &str) -> (Prepared, Layout) {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog = load::catalog(&[], &mut sources, &sink);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name);
    let document = load::read(&path, &mut sources, &sink).unwrap();
    let scenario = Scenario::resolve(&ScenarioFile::read(&document, &sink), &catalog, &sink).unwrap();
    let built = BuiltCluster::new(&scenario.cluster, &scenario.finance).unwrap();
    let training = scenario.training.as_ref().unwrap();
    (Prepared::new(&scenario, training, &built), training.layout)
}

static GPT: LazyLock<(Prepared, Layout)> = LazyLock::new(|| scenario("train-gpt3-175b-1k-h100.toml"));
static LONG: LazyLock<(Prepared, Layout)> = LazyLock::new(|| scenario("train-llama3.1-405b-131k-16k-h100.toml"));

fn gpt(change: impl FnOnce(Layout) -> Layout) -> Result<Point, Infeasible> {
    GPT.0.point(&change(Layout { tensor: 8, pipeline: 16, virtual_stages: 1, schedule: Schedule::OneF1b, ..GPT.1 }))
}

fn under(schedule: Schedule, virtual_stages: u32) -> Point {
    gpt(|layout| Layout { schedule, virtual_stages, ..layout }).unwrap()
}

#[test]
fn schedules_trade_idle_time_for_memory_and_messages() {
    let plain = under(Schedule::OneF1b, 1);
    let interleaved = under(Schedule::Interleaved, 3);
    let zero = under(Schedule::ZeroBubble, 1);
    let dual = under(Schedule::DualPipe, 1);
    // The same passes: what differs is the order.
    assert!([interleaved, zero, dual].iter().all(|point| point.step.compute == plain.step.compute));
    let bubble = |point: &Point| point.step.bubble;
    assert!((bubble(&interleaved) / bubble(&plain) - 1.0 / 3.0).abs() < 1e-9);
    assert!(bubble(&dual) < bubble(&zero) && bubble(&zero) < bubble(&interleaved) * 2.0);
    assert!(bubble(&zero) > Seconds::ZERO && bubble(&zero) < bubble(&plain) * 0.5);
    // Three chunks send three times as many messages; the others as many as 1F1B.
    let messages = |point: &Point| point.step.exposed.pipeline;
    assert!((messages(&interleaved) / messages(&plain) - 3.0).abs() < 1e-9);
    assert_eq!((messages(&zero), messages(&dual)), (messages(&plain), messages(&plain)));
    assert!(messages(&plain) > Seconds::ZERO);
    // Interleaving keeps more in flight; DualPipe holds the weights twice.
    let activations = |point: &Point| point.memory.activations;
    assert!(activations(&interleaved) > activations(&plain) && activations(&zero) >= activations(&plain));
    assert!((dual.memory.weights / plain.memory.weights - 2.0).abs() < 0.2);
    // GPipe keeps every microbatch.
    let error = gpt(|layout| Layout { schedule: Schedule::Gpipe, ..layout }).unwrap_err();
    let Infeasible::Memory { footprint, .. } = error else { panic!("{error}") };
    assert!(footprint.activations > activations(&plain) * 3.0);
}

#[test]
fn uneven_stages_are_paced_by_the_slowest() {
    // 96 layers, the embedding and the loss: seven layers on most of 14 stages, as many as on each of 14 equal stages of a
    // model with two layers more; sixteen stages of six are faster, but for the loss on the last.
    let compute = |pipeline: u32| {
        let mut prepared = GPT.0;
        prepared.step.job.global_batch = 2_048;
        prepared.step.estimate(&Layout {
            tensor: 8,
            pipeline,
            data: 8,
            virtual_stages: 1,
            schedule: Schedule::OneF1b,
            ..GPT.1
        })
    };
    let (even, uneven) = (compute(16), compute(14));
    let layers = uneven.compute / even.compute;
    assert!(layers > 7.0 / 7.5 && layers < 7.0 / 6.0, "{layers}");
}

#[test]
fn tensor_ranks_across_nodes_wait_longer_than_within() {
    let of = |tensor: u32, pipeline: u32| gpt(|layout| Layout { tensor, pipeline, ..layout }).unwrap().step;
    let (within, across) = (of(8, 16), of(16, 8));
    // Twice as many layers a stage, and each of their messages takes longer.
    let longer = across.exposed.tensor / within.exposed.tensor / 2.0;
    assert!(longer > 1.2, "{longer}");
    assert!(across.iteration() > within.iteration());
}

#[test]
fn a_ring_hides_behind_long_attention_and_all_to_all_needs_heads() {
    let with = |prepared: &Prepared, context_exchange| prepared.point(&Layout { context_exchange, ..LONG.1 });
    let of = |context_exchange| with(&LONG.0, context_exchange).unwrap().step.exposed.context;
    let [gathered, ring, exchanged] =
        [ContextExchange::AllGather, ContextExchange::Ring, ContextExchange::AllToAll].map(of);
    assert_eq!(ring, Seconds::ZERO);
    assert!(gathered > Seconds::ZERO && exchanged > Seconds::ZERO);
    // A sixteenth of the sequence leaves a block 1/256 of the attention to hide 1/16 of the bytes behind.
    let mut short = LONG.0;
    short.step.job.sequence_length /= 16;
    let layout = Layout { context_exchange: ContextExchange::Ring, ..LONG.1 };
    assert!(short.point(&layout).unwrap().step.exposed.context > Seconds::ZERO);
    // 128 heads over 8 x 32 ranks.
    let wide = Layout { context: 32, context_exchange: ContextExchange::AllToAll, ..LONG.1 };
    let error = LONG.0.point(&wide).unwrap_err().to_string();
    assert!(error.contains("128 heads do not split over 256 ranks (tensor x context)"), "{error}");
    assert!(LONG.0.point(&Layout { context_exchange: ContextExchange::Ring, ..wide }).is_ok());
}

#[test]
fn hybrid_sharding_gathers_within_a_node_and_reduces_across() {
    let of = |sharding, shard_ranks| {
        let layout = Layout { tensor: 1, pipeline: 1, virtual_stages: 1, schedule: Schedule::OneF1b, ..GPT.1 };
        let mut prepared = GPT.0;
        // One microbatch on each of the ranks, so that little hides the messages.
        prepared.step.job.global_batch = 1_024;
        prepared.step.overlap.data = false;
        prepared.step.job.gradients = GradientPrecision::Bf16;
        // A network so slow that it alone counts.
        prepared.step.efficiency.fully_sharded_bandwidth *= 0.1;
        prepared.step.estimate(&Layout { data: 1_024, sharding, shard_ranks, sequence_parallel: false, ..layout })
    };
    let full = of(Sharding::Full, 0);
    let [node, all] = [8, 1_024].map(|ranks| of(Sharding::Hybrid, ranks));
    // A single group of all ranks is full sharding.
    assert_eq!(all, full);
    // Within a node, gathering stays on NVLink; across go two passes over the gradients, reduced and shared, where full
    // sharding scatters them and gathers weights of the same size twice.
    let ratio = node.exposed.data / full.exposed.data;
    assert!(ratio > 0.6 && ratio < 0.9, "{ratio}");
    // Each rank updates an eighth of the weights instead of a 1,024th.
    assert!(node.optimizer > full.optimizer * 10.0);
    let gradients = of(Sharding::OptimizerGradients, 8);
    assert!(
        gradients.exposed.data > Seconds::ZERO && gradients.optimizer > of(Sharding::OptimizerGradients, 0).optimizer
    );
}

#[test]
fn uneven_experts_are_paced_by_the_fullest() {
    let (prepared, layout) = scenario("train-mixtral-8x7b-64-h100.toml");
    let even = prepared.point(&layout).unwrap().step;
    let mut uneven = prepared;
    uneven.step.job.expert_imbalance = Factor::new(1.5).unwrap();
    let uneven = uneven.step.estimate(&layout.over(64).unwrap());
    assert!(uneven.compute > even.compute * 1.2 && uneven.compute < even.compute * 1.5);
    assert!(uneven.exposed.expert > even.exposed.expert * 1.3);
}

#[test]
fn what_experts_exchange_through_the_cards_hides_no_gradients() {
    let (prepared, layout) = scenario("train-deepseek-v3-8-gb200-nvl72.toml");
    // Experts of two racks, on accelerators so fast that messages are all there is to hide behind.
    let layout = Layout { expert: 128, ..layout };
    let mut step = prepared.step;
    step.overlap.data = true;
    step.overlap.expert = true;
    step.silicon.gemm_rate = step.silicon.gemm_rate * 1e3;
    step.silicon.memory_bandwidth = step.silicon.memory_bandwidth * 1e3;
    step.silicon.attention.forward = step.silicon.attention.forward * 1e3;
    let exposed = |imbalance: f64| {
        let mut step = step;
        step.job.expert_imbalance = Factor::new(imbalance).unwrap();
        step.estimate(&layout.over(512).unwrap()).exposed
    };
    let (even, uneven) = (exposed(1.0), exposed(8.0));
    assert!(uneven.expert > even.expert * 4.0);
    // Eight times the exchange leaves the gradients no more time of the cards, though the step takes longer.
    assert!(uneven.data > even.data * 0.95, "{:?} against {:?}", uneven.data, even.data);
}
