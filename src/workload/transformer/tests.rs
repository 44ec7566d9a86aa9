//! Counts of published models.

use super::*;
use crate::workload::shapes::{gpt, llama, llama_405b, mixtral_8x7b};

#[test]
fn parameters_of_llama_3_are_exact() {
    // 8B by hand: a layer has 4096*4096*2 + 2*4096*1024 + 3*4096*14336 + 2*4096 = 218,112,000 parameters; 32 layers,
    // two tables of 128256*4096 and a norm of 4096 make 8,030,261,248.
    let small = llama(32, 4_096, 32, 14_336);
    assert_eq!(small.layer_parameters(LayerKind::Dense).total(), 218_112_000);
    assert_eq!(small.parameters().total(), 8_030_261_248);
    assert_eq!(llama(80, 8_192, 64, 28_672).parameters().total(), 70_553_706_496);
    assert_eq!(llama_405b().parameters().total(), 405_853_388_800);
    assert_eq!(llama_405b().active_parameters(), 405_853_388_800);
}

#[test]
fn mixtral_uses_12_9_of_46_7_billion_parameters() {
    let model = mixtral_8x7b();
    assert_eq!(model.parameters().total(), 46_702_792_704);
    // Six idle experts of 3*4096*14336 in each of 32 layers: 46,702,792,704 - 33,822,867,456.
    assert_eq!(model.active_parameters(), 12_879_925_248);
    assert_eq!((model.dense_layers(), model.moe_layers()), (0, 32));
}

#[test]
fn parameters_of_a_gpt_follow_the_megatron_paper() {
    // SC21 (arXiv 2104.04473) equation 2, P = 12 l h^2 (1 + 13/(12h) + (V + s)/(12 l h)), and the last norm's 2h.
    for (layers, hidden, heads) in [(24, 2_304, 24), (96, 12_288, 96), (128, 25_600, 160)] {
        let (l, h) = (u64::from(layers), u64::from(hidden));
        let equation = 12 * l * h * h + 13 * l * h + (51_200 + 2_048) * h;
        assert_eq!(gpt(layers, hidden, heads).parameters().total(), equation + 2 * h);
    }
}

#[test]
fn shared_experts_and_leading_dense_layers_count() {
    let experts = Experts { count: 8, per_token: 2, ffn: 1_024, shared: 1, leading_dense_layers: 1 };
    let model = Transformer { experts: Some(experts), ..llama(4, 4_096, 32, 14_336) };
    assert_eq!([0, 1, 3].map(|layers| model.dense_before(layers)), [0, 1, 1]);
    assert_eq!(model.moe_layers(), 3);
    let expert = 3 * 4_096 * 1_024;
    let moe = model.layer_parameters(LayerKind::Moe);
    assert_eq!((moe.experts, moe.shared_experts, moe.router), (8 * expert, expert, 8 * 4_096));
    assert_eq!(model.active_parameters(), model.parameters().total() - 3 * 6 * expert);
    let flops = model.layer_flops(LayerKind::Moe, 4_096, AttentionCount::Causal);
    assert_eq!(flops.experts, Flops::new(3.0 * 2.0 * 3.0 * 4_096.0 * 1_024.0));
}

#[test]
fn model_flops_of_a_gpt_follow_the_megatron_paper() {
    let (l, h, s, v) = (96.0, 12_288.0, 2_048.0, 51_200.0);
    let equation = 72.0 * l * h * h * (1.0 + s / (6.0 * h) + v / (12.0 * l * h));
    let ours = gpt(96, 12_288, 96).model_flops_per_token(2_048, AttentionCount::Full);
    assert!((ours / Flops::new(equation) - 1.0).abs() < 1e-12);
}

#[test]
fn causal_attention_is_counted_by_half() {
    // Llama 3 405B at 8,192: 3 * (2 * (405.85e9 - the embedding's 2.10e9 - norms) + 126 * 2 * 16384 * 8192).
    let model = llama_405b();
    let [causal, full] = [AttentionCount::Causal, AttentionCount::Full].map(|c| model.model_flops_per_token(8_192, c));
    let scores = Flops::new(3.0 * 126.0 * 4.0 * 16_384.0 * 4_096.0);
    assert_eq!(full - causal, scores);
    let parameters = model.parameters();
    let norms = 126 * 2 * 16_384 + parameters.final_norm;
    let weights = parameters.total() - parameters.embedding - norms;
    assert!(((causal - scores) / Flops::new(6.0 * weights as f64) - 1.0).abs() < 1e-12);
}
