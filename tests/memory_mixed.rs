//! Memory in training of models whose layers are of several kinds.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod setup;

use clusterplan::catalog::memory_allowance::SelectiveRecompute;
use clusterplan::catalog::model::{
    Attention, Block, Feed, Gate, GatedDelta, Mamba, Mamba2, Mixer, Mlp, Model, MoeBlock, Norm,
};
use clusterplan::memory::{Software, all_stages, worst};
use clusterplan::parallelism::{Layout, Recompute, Sharding, StagePlan};
use clusterplan::units::Bytes;
use clusterplan::workload::{Layers, Mixed, Precision, TrainingJob, Transformer, census};
use setup::{BARE, CATALOG, job, model};

/// What one token of one layer keeps, without tables.
fn kept(mixer: Mixer, feed: Feed, norms: u32, layout: &Layout) -> f64 {
    let block = Block { layers: 1, norms, mixer, feed, ..Block::default() };
    let kept = layout.block_activations(1_024, &block, &job(1_000, 8), &BARE).kept;
    kept / Bytes::new(1_000.0)
}

fn near(found: f64, wanted: f64) {
    assert!((found / wanted - 1.0).abs() < 1e-9, "{found} for {wanted}");
}

#[test]
fn layer_by_layer_agrees_with_layers_alike() {
    for id in ["llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b", "deepseek-v3", "deepseek-v2-lite", "qwen3-30b-a3b"] {
        let model = model(id);
        let (alike, mixed) = (Transformer::try_from(&model).unwrap(), Mixed::try_from(&model).unwrap());
        let policies = [Recompute::None, Recompute::Selective, Recompute::Full, Recompute::Layers(1)];
        let selective = [SelectiveRecompute::AttentionCore, SelectiveRecompute::AlternateMatmuls];
        for (tensor, pipeline, expert) in [(1, 1, 1), (2, 4, 1), (4, 2, 8)] {
            for (recompute, policy) in policies.into_iter().flat_map(|one| selective.map(|two| (one, two))) {
                for (fused_attention, cast_inputs) in [(true, false), (false, false), (true, true)] {
                    let expert = if alike.experts.is_some() { expert } else { 1 };
                    let sequence_parallel = tensor > 1;
                    let layout =
                        Layout { tensor, pipeline, expert, data: 8, recompute, sequence_parallel, ..Layout::SINGLE };
                    let software = Software { selective_recompute: policy, fused_attention, cast_inputs, ..BARE };
                    let job = TrainingJob { precision: Precision::Fp8, ..job(4_096, 64) };
                    layout.check_layers(Layers::from(&mixed), &job).unwrap();
                    let pairs =
                        all_stages(&alike, &job, &layout, &software).zip(all_stages(&mixed, &job, &layout, &software));
                    for (one, other) in pairs {
                        near(one.total() / Bytes::new(1.0), other.total() / Bytes::new(1.0));
                        near(one.weights / Bytes::new(1.0), other.weights / Bytes::new(1.0));
                    }
                }
            }
        }
    }
}

#[test]
fn every_parameter_is_held_once() {
    let mut several = 0;
    for entry in CATALOG.models.iter() {
        let Ok(mixed) = Mixed::try_from(&entry.part) else {
            assert_eq!(entry.id, "llama-3.2-90b-vision");
            continue;
        };
        assert_eq!(mixed.order.len(), mixed.frame.layers as usize, "{}", entry.id);
        several += u32::from(Transformer::try_from(&entry.part).is_err());
        for pipeline in [1, 3] {
            let layout = Layout { pipeline, ..Layout::SINGLE };
            let plan = StagePlan::new(mixed.frame.layers, &layout);
            let job = job(4_096, 8);
            let held: Bytes = all_stages(&mixed, &job, &layout, &BARE).map(|stage| stage.weights).sum();
            // Tied tables are held on the first and on the last stage.
            let twice = if mixed.frame.tied_embeddings && pipeline > 1 { mixed.frame.table_parameters() } else { 0 };
            let wanted = census(&entry.part).total() + twice;
            near(held / Bytes::new(2.0), wanted as f64);
            let ranges: u32 = (0..pipeline).flat_map(|stage| plan.ranges(stage)).map(|[from, to]| to - from).sum();
            assert_eq!(ranges, mixed.frame.layers);
        }
    }
    assert!(several >= 8, "{several}");
}

#[test]
fn tensor_ranks_hold_a_part_and_what_is_copied() {
    for id in ["nemotron-h-56b", "qwen3.5-27b", "jamba-1.5-mini", "llama-4-maverick-17b-128e", "qwen3-next-80b-a3b"] {
        let model = model(id);
        for block in &model.blocks {
            let whole = Layout::SINGLE.block_shard(&model, block);
            let part = Layout { tensor: 2, ..Layout::SINGLE }.block_shard(&model, block);
            near(2.0 * part.split + part.copied, whole.split + whole.copied);
            near((2.0 * part.experts).max(1.0), whole.experts.max(1.0));
            let spread = Layout { data: 2, expert: 2, ..Layout::SINGLE }.block_shard(&model, block);
            near((2.0 * spread.experts).max(1.0), whole.experts.max(1.0));
        }
    }
}

#[test]
fn recurrent_layers_by_hand() {
    // A norm of 1,024 channels keeps 2 + 2 bytes of each.
    let norm = 4.0 * 1_024.0;
    // 32 heads of 64 channels, a state of 128 in 8 groups: projected are 2*2048 + 2*8*128 + 32 numbers; the scan's output and
    // the normed one are 2048 each, and a norm a group in single precision.
    let mamba2 = Mamba2 { heads: 32, head_dim: 64, groups: 8, state: 128, kernel: 4, conv_bias: true, biases: false };
    let by_hand = norm + 2.0 * (4_096.0 + 2_048.0 + 32.0) + 4.0 * 2_048.0 + 32.0;
    near(kept(Mixer::Mamba2(mamba2), Feed::None, 1, &Layout::SINGLE), by_hand);
    let two = Layout { tensor: 2, sequence_parallel: true, ..Layout::SINGLE };
    near(kept(Mixer::Mamba2(mamba2), Feed::None, 1, &two), by_hand / 2.0);
    // 2,048 channels with a state of 16 and a step of 64: projection and output 3*2048, gated output 2048, x_dbl and both
    // its parts 64 + 4*16, and a state of 16 pairs for 2,048 tokens.
    let mamba =
        Mamba { inner: 2_048, state: 16, kernel: 4, step_rank: 64, conv_bias: true, biases: false, norms: false };
    let by_hand = norm + 2.0 * (3.0 * 2_048.0 + 2_048.0 + 64.0 + 64.0) + 8.0 * 16.0;
    near(kept(Mixer::Mamba(mamba), Feed::None, 1, &Layout::SINGLE), by_hand);
    let jamba = Mamba { norms: true, ..mamba };
    near(kept(Mixer::Mamba(jamba), Feed::None, 1, &Layout::SINGLE), by_hand + 2.0 * 2.0 * 2_048.0);
    // 16 key heads and 32 value heads of 128: keys 2048, values 4096; convolved 2*2048 + 4096, values, gate, output and
    // normed output 4*4096, queries and keys of all value heads 2*4096; a head 65 numbers and 20 bytes.
    let delta = GatedDelta { key_heads: 16, value_heads: 32, key_dim: 128, value_dim: 128, kernel: 4 };
    let by_hand = norm + 2.0 * (8_192.0 + 4.0 * 4_096.0 + 8_192.0) + 32.0 * (130.0 + 20.0);
    near(kept(Mixer::GatedDelta(delta), Feed::None, 1, &Layout::SINGLE), by_hand);
}

#[test]
fn gates_norms_and_feeds_by_hand() {
    let norm = 4.0 * 1_024.0;
    let plain = Attention { heads: 8, kv_heads: 2, head_dim: 128, value_dim: 128, ..Attention::default() };
    let of = |attention, feed, norms| kept(Mixer::Attention(attention), feed, norms, &Layout::SINGLE);
    // Query and output 2*1024, keys and values 2*256, a log-sum a head.
    let attention = norm + 2.0 * (2_048.0 + 512.0) + 32.0;
    near(of(plain, Feed::None, 1), attention);
    // A gate's sigmoid and its product with the output; of a head, one number and the product.
    near(of(Attention { gate: Gate::Channel, ..plain }, Feed::None, 1), attention + 4.0 * 1_024.0);
    near(of(Attention { gate: Gate::Head, ..plain }, Feed::None, 1), attention + 2.0 * (8.0 + 1_024.0));
    let mlp = Feed::Mlp(Mlp { ffn: 3_000, gated: true, biases: false });
    near(of(plain, mlp, 2), attention + norm + 6.0 * 3_000.0);
    // Side by side, both read the one norm; norms behind keep what they norm.
    near(of(plain, mlp, 1), attention + 6.0 * 3_000.0);
    near(of(plain, mlp, 4), attention + norm + 6.0 * 3_000.0 + 2.0 * 2.0 * 1_024.0);
    near(kept(Mixer::None, mlp, 1, &Layout::SINGLE), norm + 6.0 * 3_000.0);
    // Experts that work on 256 channels: a router of 2*4*16, two visits of 4*256 outside and 6*500 inside, and 4*256 of
    // what they read and give.
    let expert = Mlp { ffn: 500, gated: true, biases: false };
    let moe = MoeBlock { experts: 16, per_token: 2, expert, latent: 256, ..MoeBlock::default() };
    near(kept(Mixer::None, Feed::Moe(moe), 1, &Layout::SINGLE), norm + 128.0 + 2.0 * (1_024.0 + 3_000.0) + 1_024.0);
}

#[test]
fn stages_hold_the_layers_that_stand_there() {
    // Two kinds of layers, the first half of one, the second of the other: the stages differ as the kinds do.
    let small = Block {
        layers: 4,
        norms: 2,
        feed: Feed::Mlp(Mlp { ffn: 100, gated: false, biases: false }),
        ..Block::default()
    };
    let large = Block { feed: Feed::Mlp(Mlp { ffn: 900, gated: false, biases: false }), ..small };
    let model = Model { hidden: 64, vocab: 1, norm: Norm::RmsNorm, blocks: vec![small, large], ..Model::default() };
    let weights = |model: &Model, stages: u32| -> Vec<f64> {
        let mixed = Mixed::try_from(model).unwrap();
        let layout = Layout { pipeline: stages, ..Layout::SINGLE };
        all_stages(&mixed, &job(128, 8), &layout, &BARE).map(|stage| stage.weights / Bytes::new(2.0)).collect()
    };
    let of = |ffn: f64| 4.0 * (2.0 * 64.0 * ffn + 2.0 * 64.0);
    let ordered = Model { order: vec![1, 1, 1, 1, 2, 2, 2, 2], ..model.clone() };
    assert_eq!(weights(&ordered, 2), [of(100.0) + 64.0, of(900.0) + 2.0 * 64.0]);
    // Without an order they are spread evenly.
    let even = f64::midpoint(of(100.0), of(900.0));
    assert_eq!(weights(&model, 2), [even + 64.0, even + 2.0 * 64.0]);
    let leading = Model { blocks: vec![Block { leading: true, ..small }, large], ..model };
    assert_eq!(weights(&leading, 2), weights(&ordered, 2));
}

#[test]
fn more_to_hold_never_takes_less() {
    for id in ["nemotron-h-56b", "qwen3.5-27b", "jamba-1.5-mini", "llama-4-maverick-17b-128e"] {
        let mixed = Mixed::try_from(&model(id)).unwrap();
        let total =
            |layout: &Layout, sequence| worst(&mixed, &job(sequence, 64), layout, &BARE).1.total() / Bytes::new(1.0);
        let staged = Layout { pipeline: 4, ..Layout::SINGLE };
        assert!(total(&staged, 8_192) > total(&staged, 4_096));
        assert!(total(&Layout { recompute: Recompute::Full, ..staged }, 8_192) < total(&staged, 8_192));
        assert!(total(&Layout { tensor: 2, sequence_parallel: true, ..staged }, 8_192) < total(&staged, 8_192));
        assert!(total(&Layout { sharding: Sharding::Full, data: 8, ..staged }, 8_192) < total(&staged, 8_192));
    }
}

fn scenario(model: &str, layout: &str) -> assert_cmd::assert::Assert {
    let text = format!(
        "title = \"t\"\n[cluster]\nnode = \"dgx-h100\"\naccelerators = 256\nfabric = \"quantum-2-ndr\"\nsite = \"us-colo\"\n\
         prices = \"neocloud-2026h2\"\n[training]\nmodel = \"{model}\"\nprecision = \"bf16\"\nsequence_length = 8192\n\
         global_batch = 256\ntokens = \"1 Ttoken\"\nlayout = {layout}\n"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.toml");
    std::fs::write(&path, text).unwrap();
    assert_cmd::Command::cargo_bin("clusterplan").unwrap().arg("memory").arg(path).arg("--format=json").assert()
}

#[test]
fn the_command_answers_for_every_kind() {
    for (id, layout, code) in [
        ("nemotron-h-56b", "{ tensor = 8, pipeline = 4, micro_batch = 1 }", 0),
        ("nemotron-h-56b", "{ tensor = 1, pipeline = 2, micro_batch = 1 }", 1),
        ("qwen3.5-27b", "{ tensor = 4, pipeline = 2, micro_batch = 1 }", 0),
        ("qwen3-next-80b-a3b", "{ tensor = 2, pipeline = 4, micro_batch = 1, expert = 64 }", 0),
        ("llama-4-maverick-17b-128e", "{ tensor = 8, pipeline = 4, micro_batch = 1, expert = 64 }", 0),
        ("jamba-1.5-mini", "{ tensor = 8, pipeline = 4, micro_batch = 1 }", 0),
        ("step-3.7-flash", "{ tensor = 8, pipeline = 3, micro_batch = 1 }", 1),
    ] {
        let output = scenario(id, layout).get_output().clone();
        assert_eq!(output.status.code(), Some(code), "{id} {layout}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let output =
        scenario("nemotron-h-56b", "{ tensor = 8, pipeline = 4, micro_batch = 1 }").get_output().stdout.clone();
    let answer: serde_json::Value = serde_json::from_slice(&output).unwrap();
    let stages = answer["stages"].as_array().unwrap();
    assert_eq!(stages.len(), 4);
    let sum: f64 = stages.iter().map(|stage| stage["weights_bytes"].as_f64().unwrap()).sum();
    let whole = 2.0 * census(&model("nemotron-h-56b")).total() as f64 / 8.0;
    // Norms are on every one of eight tensor ranks.
    assert!(sum > whole && sum < whole * 1.001, "{sum} of {whole}");
    // Three ranks split neither heads nor layers.
    let refused = scenario("nemotron-h-56b", "{ tensor = 16, pipeline = 4, micro_batch = 1 }").get_output().clone();
    let said = String::from_utf8_lossy(&refused.stdout).into_owned() + &String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said.contains("8 groups of a recurrent layer do not split over tensor 16"), "{said}");
    let searched = scenario("nemotron-h-56b", "\"auto\"").get_output().clone();
    assert_eq!(searched.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&searched.stderr).contains("searched by its step time"));
}
