//! Pools of prefill and decode, and the links between them.

use super::{eval, serving};

#[test]
fn links_between_pools_bound_what_is_served() {
    // Four A100s a card of 100 Gbit/s; 24 of them prefill, most of each prompt from their cache. Keys and values of 8,000 tokens
    // of Llama 3.1 8B: 32 layers x 2 x 8 heads x 128 x 2 bytes a token, 1.05 GB, and six cards carry 75 GB/s before headers.
    let at = |arrivals: &str, settings: &[&str]| {
        let arrivals = format!("serving.arrivals={arrivals}");
        let shape = [
            "cluster.node=\"a100-pcie-4-shared\"",
            "cluster.fabric=\"roce-100g\"",
            "cluster.accelerators=48",
            "serving.model=\"llama-3.1-8b\"",
            "serving.weights=\"bf16\"",
            "serving.kv_cache=\"bf16\"",
            "serving.input_tokens=8000",
            "serving.output_tokens=64",
            "serving.prefix_hit=0.95",
            "serving.layout={ decode = { tensor = 1 }, prefill = { tensor = 1 }, prefill_accelerators = 24 }",
            arrivals.as_str(),
        ];
        eval(&[&shape[..], settings].concat())
    };
    let of = |arrivals: &str| {
        let (code, json, stderr) = at(arrivals, &[]);
        assert_eq!(code, 0, "{stderr}");
        serving(&json)
    };
    let cache = 8_000.0 * 32.0 * 2.0 * 8.0 * 128.0 * 2.0;
    let idle = of("{ rate = \"0.01 request/s\" }");
    let carried = idle("kv_transfer_most_requests_per_s") * cache / 75e9;
    assert!(carried > 0.9 && carried <= 1.0, "{carried} of the cards' rate");
    assert!(idle("prefill_most_requests_per_s") > 131.0 && idle("decode_most_requests_per_s") > 131.0);
    assert!(idle("queue_s") < 1e-4, "{}", idle("queue_s"));
    // More than that is refused, and said to be for the links; without end, and with any number open, no more comes through.
    let (code, json, stderr) = at("{ rate = \"131 request/s\" }", &[]);
    assert_eq!(code, 1, "{stderr}");
    let reason = json["infeasible"]["reason"].as_str().unwrap();
    assert!(reason.contains("131 request/s come") && reason.contains("links between prefill and decode"), "{reason}");
    // What would help does not name what would not: cached prompts are handed over too.
    let advice = json["infeasible"]["advice"].as_str().unwrap();
    assert!(advice.contains("network cards") && advice.contains("cached prompts are handed over"), "{advice}");
    let most = idle("kv_transfer_most_requests_per_s");
    assert!((of("\"max\"")("requests_per_s") / most - 1.0).abs() < 1e-9);
    assert!(of("{ concurrency = 20000 }")("requests_per_s") <= most);
    // Caches wait for each other as the links fill up: M/D/1 at each end, 24 GPUs of either pool.
    let rate = 0.8 * most;
    let busy = of(&format!("{{ rate = \"{rate} request/s\" }}"));
    assert!((busy("kv_links_busy_ratio") - 0.8).abs() < 1e-9);
    let wait = 2.0 * (24.0 / most) * 0.8 / (2.0 * 0.2);
    let waited = busy("kv_transfer_wait_s");
    assert!((waited / wait - 1.0).abs() < 1e-2 && busy("queue_s") < 1e-4, "{waited} and {wait}");
    // In one domain of scale-up links there is next to no load.
    let pools = "serving.layout={ decode = { tensor = 4 }, prefill = { tensor = 4 } }";
    let (_, json, _) = eval(&["cluster.accelerators=8", pools, "serving.arrivals={ rate = \"2 request/s\" }"]);
    assert!(serving(&json)("kv_links_busy_ratio") < 1e-3, "{json}");
}

#[test]
fn caches_share_a_hashed_spine_and_the_answer_says_that_they_do() {
    // Eight ports down for one up, and flows hashed over them: the spine carries what 5.6 of 64 groups send. With as many on their
    // way as it carries, none loses anything; a server that took them one by one would make each wait for eleven times its own time.
    let at = |rate: f64, settings: &[&str]| {
        let rate = format!("serving.arrivals={{ rate = \"{rate} request/s\" }}");
        let shape = [
            "cluster.node=\"hgx-h200-8\"",
            "cluster.fabric=\"roce-400g-ecmp\"",
            "cluster.accelerators=512",
            "cluster.topology.kind=\"tor-fat-tree\"",
            "cluster.topology.oversubscription=[1,8]",
            "serving.model=\"llama-3.1-70b\"",
            "serving.weights=\"fp8\"",
            "serving.kv_cache=\"bf16\"",
            "serving.prefix_hit=0.9",
            "serving.input_tokens=20000",
            "serving.output_tokens=50",
            "serving.layout={ prefill = { tensor = 4 }, decode = { tensor = 4 }, prefill_accelerators = 256 }",
            rate.as_str(),
        ];
        let (code, json, stderr) = eval(&[&shape[..], settings].concat());
        assert_eq!(code, 0, "{stderr}");
        json
    };
    let most = serving(&at(1.0, &[]))("kv_transfer_most_requests_per_s");
    let lost = [0.15, 0.5, 0.9].map(|share| {
        let of = serving(&at(share * most, &[]));
        assert!(of("queue_s") < 1e-6, "{}", of("queue_s"));
        of("kv_transfer_wait_s") / of("kv_transfer_s")
    });
    assert!(lost[0] < 0.1 && lost[1] < 0.5 && lost[2] > 1.5 && lost[2] < 6.0, "{lost:?}");
    let json = at(0.95 * most, &["serving.limits={ ttft_p95 = \"600 ms\" }"]);
    let notes = json["notes"].to_string();
    assert!(notes.contains("first tokens wait for the links between the pools"), "{notes}");
}

#[test]
fn pools_on_nodes_of_one_kind_share_their_spares() {
    let pools = "prefill = { tensor = 4 }, decode = { tensor = 4 }";
    let of = |settings: &[&str]| {
        let (code, json, stderr) = eval(settings);
        assert_eq!(code, 0, "{stderr}");
        ["capex_usd", "usd_per_mtok_blended"].map(|key| json["cost"][key].as_f64().unwrap())
    };
    let apart = format!("serving.layout={{ {pools} }}");
    let apart = of(&["cluster.prefill={ node = \"dgx-h100\", accelerators = 16 }", &apart]);
    let together = format!("serving.layout={{ {pools}, prefill_accelerators = 16 }}");
    let together = of(&[&together]);
    for (apart, together) in apart.iter().zip(together) {
        assert!((apart / together - 1.0).abs() < 1e-9, "{apart} {together}");
    }
}

#[test]
fn pools_whose_prompts_are_all_cached_prefill_nothing() {
    let pools = [
        "prefill = { tensor = 4 }, decode = { tensor = 4 }",
        "prefill = { tensor = 1, attention_data = 8 }, decode = { tensor = 8 }",
    ];
    for (layout, model) in pools.into_iter().zip(["llama-3.1-70b", "llama-3.1-8b"]) {
        for arrivals in ["{ concurrency = 64 }", "{ concurrency = 100000 }", "{ concurrency = 64, prompts = 64 }"] {
            let of = |hit: &str| {
                let (code, json, stderr) = eval(&[
                    &format!("serving.model=\"{model}\""),
                    &format!("serving.layout={{ {layout} }}"),
                    &format!("serving.arrivals={arrivals}"),
                    &format!("serving.prefix_hit={hit}"),
                    "serving.input_tokens=2048",
                ]);
                assert_eq!(code, 0, "{layout} {arrivals} {hit}: {stderr}");
                serving(&json)
            };
            // As where hardly a token is new.
            let (all, nearly) = (of("1"), of("0.9999999999"));
            for key in ["ttft_s", "ttft_p99_s", "requests_per_s", "batch_count", "prefill_s"] {
                let off = all(key) / nearly(key) - 1.0;
                assert!(off.abs() < 1e-3, "{layout} {arrivals} {key}: {} {}", all(key), nearly(key));
            }
        }
    }
}
