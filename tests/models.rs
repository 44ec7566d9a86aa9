//! Parameter counts of the models that ship, exact where they are published exactly.

mod setup;

use clusterplan::catalog::model::Mixer;
use clusterplan::provenance::Basis;
use clusterplan::workload::census;
use setup::{CATALOG, model};

fn parameters(id: &str) -> u64 {
    census(&model(id)).total()
}

#[test]
fn exact_counts() {
    // Bytes of the published bf16 weights, halved.
    assert_eq!(parameters("llama-3.1-8b"), 8_030_261_248);
    assert_eq!(parameters("llama-3.1-70b"), 70_553_706_496);
    assert_eq!(parameters("llama-3.1-405b"), 405_853_388_800);
    assert_eq!(parameters("mixtral-8x7b"), 46_702_792_704);
    // Distilled models, of the shapes of those that they were trained from.
    assert_eq!(parameters("deepseek-r1-distill-qwen-1.5b"), 1_777_088_000);
    assert_eq!(parameters("deepseek-r1-distill-qwen-7b"), 7_615_616_512);
    assert_eq!(parameters("deepseek-r1-distill-qwen-14b"), 14_770_033_664);
    assert_eq!(parameters("deepseek-r1-distill-qwen-32b"), 32_763_876_352);
    assert_eq!(parameters("deepseek-r1-distill-llama-8b"), 8_030_261_248);
    assert_eq!(parameters("deepseek-r1-distill-llama-70b"), 70_553_706_496);
    // 96 (12 h^2 + 13 h) + (50257 + 2048) h + 2 h with h = 12288.
    assert_eq!(parameters("gpt-3-175b"), 174_604_259_328);
}

#[test]
fn every_count_is_near_what_its_publisher_states() {
    for entry in CATALOG.models.iter() {
        let census = census(&entry.part);
        let counted = census.total() as f64;
        if let Some(published) = entry.published_parameters {
            // Names round to two digits: 1.65 billion are called 1.7.
            assert!((counted / published as f64 - 1.0).abs() < 0.03, "{}: {counted} for {published}", entry.id);
        }
        if let Some(published) = entry.published_active_parameters {
            let active = census.active() as f64;
            assert!((active / published as f64 - 1.0).abs() < 0.005, "{}: {active} for {published}", entry.id);
        }
    }
}

#[test]
fn pruned_models_have_what_their_pages_say() {
    // Billions as published, two digits after the point.
    for (id, billions) in [
        ("llama-3.1-minitron-4b-width", 4.51),
        ("llama-3.1-minitron-4b-depth", 4.54),
        ("llama-3.1-nemotron-nano-4b", 4.51),
        ("llama-3.1-nemotron-nano-8b", 8.03),
    ] {
        let counted = parameters(id) as f64 / 1e9;
        assert!((counted - billions).abs() < 0.005, "{id}: {counted}");
    }
    let ultra = parameters("llama-3.1-nemotron-ultra-253b") as f64 / 1e9;
    assert!((ultra - 253.0).abs() < 0.5, "{ultra}");
    // Of 162 blocks 64 have a cache.
    let ultra = model("llama-3.1-nemotron-ultra-253b");
    let layers = |cached: bool| -> u32 {
        let of = ultra.blocks.iter().filter(|block| matches!(block.mixer, Mixer::Attention(_)) == cached);
        of.map(|block| block.layers).sum()
    };
    assert_eq!((layers(true), layers(false)), (64, 98));
}

#[test]
fn megatron_sizes_round_to_the_figures_of_the_paper() {
    // arXiv 2104.04473, table 1: billions, one digit after the point (the largest none).
    for (id, billions) in [
        ("megatron-gpt-1.7b", 1.7),
        ("megatron-gpt-3.6b", 3.6),
        ("megatron-gpt-7.5b", 7.5),
        ("megatron-gpt-18.4b", 18.4),
        ("megatron-gpt-39.1b", 39.1),
        ("megatron-gpt-76.1b", 76.1),
        ("megatron-gpt-145.6b", 145.6),
        ("megatron-gpt-175b", 174.6),
        ("megatron-gpt-310.1b", 310.1),
        ("megatron-gpt-529.6b", 529.6),
        ("megatron-gpt-1008b", 1_008.0),
    ] {
        let counted = parameters(id) as f64 / 1e9;
        assert!((counted - billions).abs() < 0.05, "{id}: {counted}");
    }
}

#[test]
fn the_two_trillion_model_is_an_assumption_and_takes_32_tb_of_states() {
    let model = CATALOG.models.get("dense-2t").unwrap();
    assert_eq!(model.basis(), Basis::Assumed);
    let count = census(&model.part).total() as f64;
    assert!((count / 2.0e12 - 1.0).abs() < 0.01, "{count}");
    // 16 bytes a parameter: 400 H100 of 80 GB hold them and nothing else.
    assert!((16.0 * count / 32e12 - 1.0).abs() < 0.01);
}
