//! Layouts that `plan` and searches of serving take: ranks, experts and stages within nodes and over them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod planned;
mod program;

use planned::{run, setting, wide};
use serde_json::Value;

#[test]
fn a_model_beyond_a_node_is_served_over_two() {
    let model = "serving.model=\"llama-3.1-405b\"";
    let few = "serving.arrivals={ rate = \"0.2 request/s\" }";
    let slow = "serving.limits={ ttft_p95 = \"20 s\", tpot_p95 = \"200 ms\" }";
    let one = "plan.vary={ \"cluster.accelerators\" = \"auto\" }";
    let settings =
        [model, few, slow, "serving.weights=\"bf16\"", "serving.kv_cache=\"bf16\"", "cluster.node=\"hgx-h100-8\""];
    let (code, plan, stderr) = run("plan", &[&settings[..], &[one]].concat());
    assert_eq!(code, 0, "{stderr}");
    let of = |degree: &str| setting(&plan["best"], &format!("serving.layout.{degree}"));
    assert_eq!(of("tensor") * of("pipeline"), 16);
    let accelerators = setting(&plan["best"], "cluster.accelerators");
    let (code, json, stderr) =
        run("eval", &[&settings[..], &[format!("cluster.accelerators={accelerators}").as_str()]].concat());
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(json["serving"], plan["best"]["evaluation"]["serving"]);
    assert_eq!(accelerators, 16);
}

#[test]
fn a_model_of_three_nodes_takes_three() {
    // 1.3 TB of weights in 16 bits: three nodes of 640 GB hold them, as stages of a node each.
    let settings = [
        "serving.weights=\"bf16\"",
        "serving.kv_cache=\"bf16\"",
        "serving.arrivals={ rate = \"0.2 request/s\" }",
        "serving.limits={ ttft_p95 = \"20 s\", tpot_p95 = \"200 ms\" }",
        "serving.spare_replicas=0",
        "plan.vary={ \"cluster.node\" = [\"hgx-h100-8\"], \"cluster.accelerators\" = \"auto\" }",
    ];
    let (code, plan, stderr) = wide("plan", &settings);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(setting(&plan["best"], "cluster.accelerators"), 24);
    assert_eq!(setting(&plan["best"], "serving.layout.pipeline"), 3);
    let binding = plan["binding"][0].as_str().unwrap();
    assert!(binding.starts_with("memory: 16 GPUs, the next fewer that are bought, hold no request"), "{binding}");
}

#[test]
fn experts_are_spread_over_nodes_where_that_takes_fewer_gpus() {
    // Within 25 ms a replica in one node reads too many weights for each token.
    let pace = "serving.limits={ ttft_p95 = \"2 s\", tpot_p95 = \"25 ms\" }";
    let (code, plan, stderr) = wide("plan", &[pace]);
    assert_eq!(code, 0, "{stderr}");
    let answers: Vec<&Value> = std::iter::once(&plan["best"]).chain(plan["runners_up"].as_array().unwrap()).collect();
    assert_eq!(answers.len(), 4, "two nodes on two fabrics");
    let of = |node: &str, fabric: &str| {
        let found = answers.iter().find(|answer| {
            answer["scenario"]["cluster.node"] == node && answer["scenario"]["cluster.fabric"] == fabric
        });
        *found.unwrap()
    };
    let ranks =
        |answer: &Value| setting(answer, "serving.layout.tensor") * setting(answer, "serving.layout.attention_data");
    let (fast, plain) = (of("hgx-h200-8", "quantum-2-ndr"), of("hgx-h200-8", "roce-400g-ecmp"));
    assert!(ranks(fast) > 8, "a replica of {} lies in one node", ranks(fast));
    // What collides takes GPUs, where replicas lie under several leaves; under one nothing does.
    let over_leaves = "serving.layout={ decode = { tensor = 1, attention_data = 128, expert = 128 }, prefill = { tensor = 1, attention_data = 8, expert = 8 } }";
    let of_plan = |fabric: &str| {
        let fabric = format!("cluster.fabric=\"{fabric}\"");
        let one = "plan.vary={ \"cluster.accelerators\" = \"auto\" }";
        let (code, plan, _) = wide("plan", &[pace, over_leaves, &fabric, one]);
        if code == 1 { u32::MAX } else { setting(&plan["best"], "cluster.accelerators") }
    };
    let given = ["quantum-2-ndr", "roce-400g-ecmp"].map(of_plan);
    assert!(given[0] < given[1], "{given:?}");
    let least = |answer: &Value| setting(answer, "cluster.accelerators");
    assert!(least(fast) <= given[0] && least(plain) <= given[1]);
    let in_node =
        "serving.layout={ decode = { tensor = 1, attention_data = 8, expert = 8 }, prefill = { tensor = 8 } }";
    let one = "plan.vary={ \"cluster.accelerators\" = \"auto\" }";
    let (code, given, stderr) = wide("plan", &[pace, in_node, one]);
    let (_, found, _) = wide("plan", &[pace, one]);
    assert!(
        code == 1 || setting(&given["best"], "cluster.accelerators") >= setting(&found["best"], "cluster.accelerators"),
        "{stderr}"
    );
    // In a rack of NVLink, experts spread without the network, and what a rack leaves over idles.
    let rack = of("gb200-nvl72", "quantum-2-ndr");
    assert!(ranks(rack) > 8 && ranks(rack) <= 72);
    assert!(setting(rack, "cluster.accelerators").is_multiple_of(72));
    // The answer is what `eval` says of it: the same latencies, and limits that are kept, with a replica to spare.
    for answer in answers {
        let serving = &answer["evaluation"]["serving"];
        assert_eq!(serving["limits_kept"], true);
        assert_eq!(serving["spare_replicas_count"], 1);
        assert!((serving["mean_requests_per_s"].as_f64().unwrap() - 100.0).abs() < 1e-6);
    }
}

#[test]
fn replicas_do_not_lie_in_two_racks_unasked() {
    let rack =
        ["cluster.node=\"gb200-nvl72\"", "cluster.accelerators=576", "serving.spare_replicas=0", "serving.limits={}"];
    let given = "serving.layout={ tensor = 1, attention_data = 64, expert = 64 }";
    let (code, json, _) = wide("eval", &[&rack[..], &[given]].concat());
    assert_eq!(code, 1);
    let reason = json["infeasible"]["reason"].as_str().unwrap();
    assert!(reason.contains("9 replicas of 64 do not each lie in a domain of 72: 8 do"), "{reason}");
}

#[test]
fn racks_that_leave_accelerators_over_all_serve() {
    // Of 72 accelerators each of twelve racks leaves 8 over, in all more than a rack has; only a thirteenth that no replica needs
    // idles, whatever is asked, and the network is then that of the others.
    let of = |accelerators: u32, layout: &str, arrivals: &str| {
        let cluster = format!("cluster.accelerators={accelerators}");
        let rest = ["cluster.node=\"gb200-nvl72\"", "serving.limits={}", "serving.peak_to_mean=1"];
        let (code, json, stderr) = wide("eval", &[&rest[..], &[&cluster, layout, arrivals]].concat());
        assert_eq!(code, 0, "{stderr}");
        json["serving"].clone()
    };
    let wide = "serving.layout={ tensor = 1, attention_data = 64, expert = 64, left_over = true }";
    for arrivals in ["serving.arrivals=\"max\"", "serving.arrivals={ rate = \"100 request/s\" }"] {
        let eight = of(576, wide, arrivals);
        assert_eq!(eight["replicas_count"], 7);
        let twelve = of(864, wide, arrivals);
        assert_eq!((&twelve["replicas_count"], &twelve["left_over_accelerators_count"]), (&11.into(), &96.into()));
        assert!(twelve["most_requests_per_s"].as_f64() > eight["most_requests_per_s"].as_f64());
    }
    let two_racks = "serving.layout={ tensor = 1, attention_data = 128, expert = 128, left_over = true }";
    let two_racks = two_racks.replace("128", "144").replace(", left_over", ", redundant_experts = 32, left_over");
    let asked = "serving.arrivals={ rate = \"100 request/s\" }";
    let [even, odd] = [864, 936].map(|accelerators| of(accelerators, &two_racks, asked));
    assert_eq!((&odd["replicas_count"], &odd["left_over_accelerators_count"]), (&5.into(), &72.into()));
    for key in ["replicas_count", "most_requests_per_s", "tpot_s", "ttft_p95_s"] {
        assert_eq!(odd[key], even[key], "{key}");
    }
}

const BIG: [&str; 4] = [
    "serving.model=\"llama-3.1-405b\"",
    "serving.weights=\"bf16\"",
    "cluster.node=\"hgx-h100-8\"",
    "serving.limits={}",
];

/// Llama 3.1 405B in 16 bits on H100, of which no node holds it, with few requests open in two nodes.
fn big(layout: &str, settings: &[&str]) -> Value {
    let layout = format!("serving.layout={layout}");
    let rest = ["cluster.accelerators=16", "serving.arrivals={ concurrency = 2 }", "serving.peak_to_mean=1", &layout];
    let (code, json, stderr) = run("eval", &[&BIG[..], &rest, settings].concat());
    assert_eq!(code, 0, "{layout}: {stderr}");
    json
}

#[test]
fn tensor_ranks_over_two_nodes_answer_sooner_than_two_stages_and_pay_the_fabric() {
    let of = |json: &Value, key: &str| json["serving"][key].as_f64().unwrap();
    let (tensor, stages) = (big("{ tensor = 16 }", &[]), big("{ tensor = 8, pipeline = 2 }", &[]));
    // Each token waits for the weights of half as many layers at half the part; and twice for 126 layers' messages.
    assert!(of(&tensor, "tpot_s") < 0.9 * of(&stages, "tpot_s"), "{} and {}", tensor["serving"], stages["serving"]);
    let network = |json: &Value| of(json, "time_share.network_ratio") * of(json, "tpot_s");
    // What `collective` says of the 16 kB of each of two sequences, over two nodes of eight.
    let call =
        ["collective", "all_reduce", "--node", "hgx-h100-8", "--ranks", "16", "--bytes", "32768", "--format", "json"];
    let wait = |fabric: &str| {
        let answer = program::run(&[&call[..], &["--fabric", fabric]].concat());
        let json: Value = serde_json::from_str(&answer.stdout).unwrap();
        let best = json["best"].as_str().unwrap();
        let all = json["algorithms"].as_array().unwrap();
        all.iter().find(|one| one["name"] == best).unwrap()["time_us"].as_f64().unwrap() * 252e-6
    };
    let fabric = |id: &str| format!("cluster.fabric=\"{id}\"");
    let [ndr, plain] = ["quantum-2-ndr", "roce-400g-ecmp"].map(|id| {
        let json = big("{ tensor = 16 }", &[&fabric(id)]);
        let (told, expected) = (network(&json), wait(id));
        assert!((told / expected - 1.0).abs() < 0.15, "{id}: {told} and {expected}");
        told
    });
    assert!(plain > 1.02 * ndr, "{plain} and {ndr}");
    assert!(network(&stages) < 0.4 * network(&tensor));
}

#[test]
fn a_search_takes_ranks_over_nodes_for_pace_and_stages_for_throughput() {
    let auto = |settings: &[&str]| {
        let (code, json, stderr) = run("eval", &[&BIG[..], &["serving.layout=\"auto\""], settings].concat());
        assert_eq!(code, 0, "{stderr}");
        let of = |key: &str| json["scenario"][key].as_str().unwrap().parse::<u32>().unwrap();
        (of("serving.layout.tensor"), of("serving.layout.pipeline"))
    };
    let slow = ["cluster.accelerators=16", "serving.arrivals={ rate = \"0.02 request/s\" }", "serving.peak_to_mean=1"];
    assert_eq!(auto(&[&slow[..], &["serving.spare_replicas=0"]].concat()), (16, 1));
    let full = ["cluster.accelerators=64", "serving.arrivals=\"max\"", "serving.peak_to_mean=1"];
    let (tensor, stages) = auto(&full);
    assert!(tensor <= 8 && stages > 1, "{tensor} x {stages}");
}

#[test]
fn a_search_serves_no_less_than_tensor_ranks_over_nodes_in_stages_or_without() {
    let rest = ["cluster.accelerators=32", "serving.arrivals=\"max\"", "serving.peak_to_mean=1"];
    let rate = |json: &Value| json["serving"]["requests_per_s"].as_f64().unwrap();
    for limit in [35, 55] {
        let limit = format!("serving.limits={{ tpot = \"{limit} ms\" }}");
        let full = [&rest[..], &[&limit]].concat();
        let (code, json, stderr) = run("eval", &[&BIG[..], &full, &["serving.layout=\"auto\""]].concat());
        assert_eq!(code, 0, "{stderr}");
        for layout in ["{ tensor = 16 }", "{ tensor = 16, pipeline = 2 }", "{ tensor = 32 }"] {
            let given = rate(&big(layout, &full));
            assert!(rate(&json) >= given * (1.0 - 1e-9), "{limit} {layout}: {} and {given}", rate(&json));
        }
    }
}

#[test]
fn boards_without_links_prefill_in_stages() {
    // Long prompts on cards that reach each other over PCIe alone: what all-reduces of tensor ranks carry is in their way.
    let long =
        ["serving.input_tokens=16384", "serving.output_tokens=64", "serving.limits={}", "serving.layout=\"auto\""];
    let rest = [
        "cluster.fabric=\"roce-200g\"",
        "cluster.node=\"l40s-4\"",
        "cluster.accelerators=16",
        "serving.arrivals=\"max\"",
        "serving.peak_to_mean=1",
    ];
    let (code, json, stderr) = run("eval", &[&long[..], &rest].concat());
    assert_eq!(code, 0, "{stderr}");
    let stages = |side: &str| json["scenario"][&format!("serving.layout{side}.pipeline")].as_str().map(str::to_owned);
    assert!([stages(""), stages(".prefill")].into_iter().flatten().any(|stages| stages != "1"), "{}", json["scenario"]);
    let rate = |json: &Value| json["serving"]["requests_per_s"].as_f64().unwrap();
    for layout in ["{ tensor = 4 }", "{ tensor = 2, pipeline = 2 }", "{ tensor = 1, pipeline = 4 }"] {
        let layout = format!("serving.layout={layout}");
        let (code, other, stderr) = run("eval", &[&long[..3], &rest, &[&layout]].concat());
        assert!(code == 0 && rate(&other) <= rate(&json), "{layout}: {stderr}");
    }
}
