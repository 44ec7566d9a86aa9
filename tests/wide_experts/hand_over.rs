//! Caches that pools hand over: what the network carries, by cards and by scale-up links.

use super::{NVL72, RACKS, of};

const HANDED: [&str; 3] = ["serving.input_tokens=32000", "serving.output_tokens=16", "serving.prefix_hit=0.98"];

#[test]
fn the_fabric_bounds_what_pools_hand_over() {
    let at = |fabric: &str, arrivals: &str, kind: &str| {
        let fabric = format!("cluster.fabric=\"{fabric}\"");
        let (arrivals, kind) = (format!("serving.arrivals={arrivals}"), format!("cluster.topology.kind=\"{kind}\""));
        of(RACKS, &[&HANDED[..], &[fabric.as_str(), arrivals.as_str(), kind.as_str()]].concat())
    };
    let fabrics = ["quantum-2-ndr", "roce-400g", "roce-400g-ecmp"];
    let most = |fabric: &str| at(fabric, "\"max\"", "tor-fat-tree")("kv_transfer_most_requests_per_s");
    let [ndr, tuned, plain] = fabrics.map(most);
    assert!(ndr > tuned && tuned > 1.2 * plain, "{ndr} {tuned} {plain}");
    // At one rate, far below what any carries, links are the busier the less of them the fabric leaves; caches hardly meet yet.
    let rate = format!(
        "{{ rate = \"{} request/s\" }}",
        0.7 * plain.min(at("roce-400g-ecmp", "\"max\"", "tor-fat-tree")("requests_per_s"))
    );
    let [ndr, tuned, plain] = fabrics.map(|fabric| at(fabric, &rate, "tor-fat-tree"));
    for fabric in [&ndr, &tuned, &plain] {
        assert!(fabric("kv_transfer_wait_s") < 0.02 * fabric("kv_transfer_s"));
    }
    assert!(ndr("kv_links_busy_ratio") < tuned("kv_links_busy_ratio"));
    assert!(tuned("kv_links_busy_ratio") < plain("kv_links_busy_ratio") && plain("kv_links_busy_ratio") < 1.0);
    // Rails that one leaf joins carry them without a spine.
    let rails = at("roce-400g-ecmp", &rate, "rail-fat-tree");
    assert!(rails("kv_links_busy_ratio") < 0.8 * plain("kv_links_busy_ratio"));
    // Spines of which there are fewer carry less.
    let over = |share: &str| {
        let over = format!("cluster.topology.oversubscription=[1.0, {share}]");
        of(RACKS, &[&HANDED[..], &["serving.arrivals=\"max\"", &over]].concat())("kv_transfer_most_requests_per_s")
    };
    let [one, two, four] = ["1.0", "2.0", "4.0"].map(over);
    assert!(one > 1.5 * two && two > 1.5 * four, "{one} {two} {four}");
}

#[test]
fn four_times_the_cards_hand_over_in_a_quarter_of_the_time() {
    // One card for four accelerators, or one for each.
    let transfer = |node: &str, input: u32| {
        let node = format!("cluster.node=\"{node}\"");
        let input = format!("serving.input_tokens={input}");
        let settings = [
            node.as_str(),
            input.as_str(),
            "cluster.accelerators=16",
            "cluster.fabric=\"roce-100g\"",
            "cluster.topology.kind=\"rail-fat-tree\"",
            "serving.model=\"llama-3.1-8b\"",
            "serving.expert_imbalance=1",
            "serving.weights=\"bf16\"",
            "serving.kv_cache=\"bf16\"",
            "serving.layout={ decode = { tensor = 1 }, prefill = { tensor = 1 }, prefill_accelerators = 8 }",
            "serving.arrivals={ concurrency = 8 }",
        ];
        of(RACKS, &settings)("kv_transfer_s")
    };
    let bytes = |node: &str| transfer(node, 16_000) - transfer(node, 8_000);
    let (shared, rails) = (bytes("a100-pcie-4-shared"), bytes("a100-pcie-4-rails"));
    assert!((shared / rails - 4.0).abs() < 1e-6, "{shared} and {rails}");
}

#[test]
fn pools_beside_each_other_hand_over_by_scale_up_links() {
    // 32 of a rack prefill beside 32 that decode; or by cards, in two racks.
    let layout = "serving.layout={ decode = { tensor = 1, attention_data = 32, expert = 32 }, prefill = { tensor = 1, attention_data = 32, expert = 32 }, prefill_accelerators = 32 }";
    let rate = "serving.arrivals={ rate = \"1 request/s\" }";
    let rack = of(NVL72, &[layout, rate, "serving.input_tokens=32000", "cluster.accelerators=64"]);
    let racks = of(
        NVL72,
        &[
            "serving.layout={ decode = { tensor = 1, attention_data = 64, expert = 64 }, prefill = { tensor = 1, attention_data = 64, expert = 64 }, prefill_accelerators = 64 }",
            rate,
            "serving.input_tokens=32000",
            "cluster.accelerators=128",
        ],
    );
    assert!(rack("kv_transfer_s") < racks("kv_transfer_s"));
    assert!(rack("kv_transfer_most_requests_per_s") > 4.0 * racks("kv_transfer_most_requests_per_s"));
}
