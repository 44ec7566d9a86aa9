//! What an engine does with its steps: drafts, chunks, blocks of the cache, adapters, steps without graphs.

use serde_json::Value;

use super::{eval, figure, serving};

#[test]
fn drafts_gain_with_few_requests_and_lose_with_many() {
    let of = |arrivals: &str, draft: &str| {
        let mut settings = vec![format!("serving.arrivals={arrivals}")];
        if !draft.is_empty() {
            settings.push(format!("serving.speculation={{ draft = \"{draft}\", tokens = 4, acceptance = 0.75 }}"));
        }
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let (code, json, stderr) = eval(&settings);
        assert_eq!(code, 0, "{stderr}");
        json
    };
    let few = "{ concurrency = 16 }";
    let (plain, drafted) = (of(few, ""), of(few, "llama-3.2-1b"));
    // (1 - 0.75^5) / 0.25 tokens a step.
    assert!((figure(&drafted, "tokens_per_step_count") - 3.0508).abs() < 1e-3);
    assert!(figure(&drafted, "tpot_s") < 0.75 * figure(&plain, "tpot_s"));
    let step = figure(&drafted, "decode_step_s") * figure(&drafted, "tokens_per_step_count");
    assert!((step / figure(&drafted, "step_s") - 1.0).abs() < 1e-9, "a step is that of all its tokens");
    let (plain, drafted) = (of("\"max\"", ""), of("\"max\"", "llama-3.2-1b"));
    assert!(figure(&drafted, "output_tokens_per_s_per_gpu") < figure(&plain, "output_tokens_per_s_per_gpu"));
    // Weights of the draft, a quarter of 1.24 billion in 16 bits on each of four ranks, and its cache, are held too.
    let held = |json: &Value| json["memory"]["weights_bytes"].as_f64().unwrap();
    assert!(((held(&drafted) - held(&plain)) / (1.236e9 * 2.0 / 4.0) - 1.0).abs() < 0.03);
    let token = |layers: f64, heads: f64, width: f64| layers * 2.0 * heads * width / 4.0;
    let (model, draft) = (token(80.0, 8.0, 128.0), token(16.0, 8.0, 64.0));
    let most = |json: &Value| json["memory"]["kv_cache_bytes"].as_f64().unwrap() / 2_560.0;
    let fits = (most(&drafted) / (model + draft)).floor() * 16.0;
    assert!((figure(&drafted, "max_concurrency_count") - fits).abs() < 0.5);
}

#[test]
fn chunks_bound_the_wait_of_a_token_and_cost_time_to_the_first() {
    let of = |tokens: u32| {
        let chunk = format!("serving.chunk_tokens={tokens}");
        let (code, json, stderr) =
            eval(&[&chunk, "serving.input_tokens=8192", "serving.arrivals={ rate = \"10 request/s\" }"]);
        assert_eq!(code, 0, "{stderr}");
        json
    };
    let (large, small) = (of(8_192), of(512));
    // 0.7 x 8,192 tokens are computed, in 12 steps of at most 512.
    assert!((figure(&large, "prefill_chunks_count") - 1.0).abs() < 1e-12);
    assert!((figure(&small, "prefill_chunks_count") - 12.0).abs() < 1e-12);
    assert!(figure(&small, "longest_gap_s") < 0.25 * figure(&large, "longest_gap_s"));
    assert!(figure(&small, "ttft_s") > figure(&large, "ttft_s"));
    // More tokens of a forward pass leave less memory for the cache.
    assert!(figure(&of(32_768), "max_concurrency_count") < figure(&large, "max_concurrency_count"));
    // A chunk as large as the engine's usual step is what is modelled anyway.
    let (_, usual, _) = eval(&["serving.input_tokens=8192", "serving.arrivals={ rate = \"10 request/s\" }"]);
    assert!((figure(&usual, "tpot_s") / figure(&large, "tpot_s") - 1.0).abs() < 1e-9);
}

#[test]
fn blocks_of_the_cache_waste_half_of_one() {
    let of = |tokens: u32| eval(&[&format!("serving.block_tokens={tokens}"), "serving.arrivals=\"max\""]).1;
    let (one, large) = (of(1), of(256));
    assert!(figure(&one, "block_waste_ratio").abs() < 1e-12);
    // 127.5 tokens behind 2,048 and half of 512.
    assert!((figure(&large, "block_waste_ratio") - 127.5 / (2_304.0 + 127.5)).abs() < 1e-3);
    let batch = figure(&large, "batch_count") / figure(&one, "batch_count");
    assert!((batch - (1.0 - 127.5 / 2_431.5)).abs() < 0.01, "{batch}");
}

#[test]
fn drafts_are_accepted_by_their_place() {
    let of = |acceptance: &str| {
        let asked = format!("serving.speculation={{ draft = \"eagle\", tokens = 3, acceptance = {acceptance} }}");
        eval(&[&asked]).1["serving"]["tokens_per_step_count"].as_f64().unwrap()
    };
    // 1 + 0.85 + 0.85 x 0.3, and 1 + 0.85 + 0.7225 + 0.614125.
    assert!((of("[0.85, 0.3, 0]") - 2.105).abs() < 1e-9);
    assert!((of("0.85") - 3.186_625).abs() < 1e-9 && (of("[0.85, 0.85, 0.85]") - 3.186_625).abs() < 1e-9);
}

#[test]
fn what_an_engine_cannot_do_is_refused_with_a_hint() {
    for (settings, said, hint) in [
        (
            &["serving.speculation={ draft = \"qwen2.5-7b\", tokens = 4, acceptance = 0.7 }"][..],
            "the draft has a vocabulary of 152064, and the model one of 128256",
            "name a draft of the same family",
        ),
        (
            &["serving.speculation={ draft = \"eagle\", tokens = 0, acceptance = 0.7 }"],
            "`serving.speculation.tokens`",
            "1",
        ),
        (&["serving.speculation={ draft = \"eagle\", tokens = 2, acceptance = 1.2 }"], "acceptance", "1"),
        (&["serving.speculation={ draft = \"eagle\", tokens = 2, acceptance = [0.8, 1.2] }"], "acceptance", "1"),
        (
            &["serving.speculation={ draft = \"eagle\", tokens = 3, acceptance = [0.85, 0.3] }"],
            "2 shares of acceptance for 3 drafted tokens",
            "as many as `tokens`",
        ),
        (
            &["serving.speculation={ draft = \"eagle\", tokens = 2, acceptance = 0.7 }", "serving.layout.pipeline=2"],
            "split over pipeline stages",
            "serving.layout.pipeline = 1",
        ),
        (&["serving.two_batch_overlap=true"], "nothing to overlap", "attention_data above 1"),
        (&["serving.two_batch_overlap=true", "serving.layout=\"auto\""], "nothing to overlap", "that has experts"),
        (&["serving.chunk_tokens=4"], "outside 16 to", "at least 16"),
        // What a dense model, and one without a layer for it, cannot have.
        (&["serving.layout.expert=2"], "expert 2 of a model that has no experts", "change the degrees"),
        (
            &["serving.speculation={ draft = \"mtp\", tokens = 1, acceptance = 0.7 }"],
            "no layer of Llama 3.1 70B that predicts further tokens is known",
            "or \"eagle\" for a head",
        ),
    ] {
        let (code, _, stderr) = eval(settings);
        assert_eq!(code, 2, "{settings:?}: {stderr}");
        assert!(stderr.contains(said) && stderr.contains(hint), "{settings:?}: {stderr}");
    }
}

#[test]
fn stages_hand_activations_over() {
    // One request in each replica, of which 2,048 tokens are computed.
    let of = |layout: &str, replicas: u32, fabric: &str| {
        let (layout, open) = (format!("serving.layout={layout}"), replicas.to_string());
        let (open, fabric) =
            (format!("serving.arrivals={{ concurrency = {open} }}"), format!("cluster.fabric=\"{fabric}\""));
        let (code, json, stderr) = eval(&[&layout, &open, &fabric, "serving.prefix_hit=0"]);
        assert_eq!(code, 0, "{stderr}");
        ["ttft_s", "tpot_s"].map(|key| figure(&json, key))
    };
    // Within a node the network between them has no part. A token waits for the second stage's own step (the engine's, 0.7 to 2.1 ms).
    let within = ["quantum-2-ndr", "roce-400g"].map(|fabric| of("{ tensor = 4, pipeline = 2 }", 8, fabric));
    assert!((within[0][0] - within[1][0]).abs() < 1e-12 && (within[0][1] - within[1][1]).abs() < 1e-12, "{within:?}");
    let alone = of("{ tensor = 4 }", 16, "quantum-2-ndr");
    let step = within[0][1] - alone[1];
    assert!(within[0][0] > alone[0] && step > 0.7e-3 && step < 2.1e-3, "{step}");
    for fabric in ["quantum-2-ndr", "roce-400g"] {
        let (one, two) = (of("{ tensor = 8 }", 8, fabric), of("{ tensor = 8, pipeline = 2 }", 4, fabric));
        // 8,192 numbers of 16 bits a token, from each rank to the one in its place on the next node.
        let wire = 2_048.0 * 8_192.0 * 2.0 / 50e9;
        // A first token goes through a prefill, and a step of decode.
        let token = two[1] - one[1];
        let handed = two[0] - one[0] - token;
        assert!(handed > wire && handed < 1.25 * wire + 0.2e-3, "{fabric}: {handed} for {wire}");
        // Beyond what a second stage in the same node takes: the network's latency.
        assert!(token - step > 5e-6 && token - step < 60e-6, "{fabric}: {token} {step}");
    }
}

#[test]
fn an_engine_s_share_of_memory_is_that_of_its_version_or_as_it_is_given() {
    let pool = |settings: &[&str]| {
        let (code, json, stderr) = eval(settings);
        assert_eq!(code, 0, "{stderr}");
        let of = |key: &str| json["memory"][key].as_f64().unwrap();
        (of("kv_cache_bytes"), of("usable_bytes"))
    };
    let (usual, usable) = pool(&[]);
    // vLLM takes 0.9 of it by default, and 0.92 from version 0.22 on (ai-dynamo/aiconfigurator, issue 1396); 0.95 is not its
    // default in any.
    for (settings, share) in [
        (&["serving.engine_version=\"0.21.1\""][..], 0.9),
        (&["serving.engine_version=\"0.22\""], 0.92),
        (&["serving.engine_version=\"v0.23.0rc1\""], 0.92),
        (&["serving.memory_fraction=0.95"], 0.95),
        (&["serving.engine_version=\"0.22\"", "serving.memory_fraction=0.8"], 0.8),
    ] {
        let more = (pool(settings).0 - usual) / usable;
        assert!((more - (share - 0.9)).abs() < 1e-6, "{settings:?}: {more}");
    }
    for (setting, said, hint) in [
        ("serving.engine_version=\"newest\"", "which is no version", "0.22"),
        ("serving.engine_version=0.22", "a version in quotes", ""),
        ("serving.memory_fraction=0", "an engine with no memory", "such as 0.9"),
        ("serving.memory_fraction=92", "must be 0 to 1", "92% is 0.92"),
    ] {
        let (code, _, stderr) = eval(&[setting]);

        assert_eq!(code, 2, "{setting}: {stderr}");
        assert!(stderr.contains(said) && stderr.contains(hint), "{setting}: {stderr}");
    }
}

#[test]
fn what_is_kept_of_windows_and_seen_of_chunks_is_by_engine_and_version() {
    let on = |node: &str, model: &str, engine: &str, version: &str, (input, longest): (u32, u32)| {
        let asked = [
            format!("cluster.node=\"{node}\""),
            format!("serving.max_model_len={longest}"),
            "cluster.accelerators=8".to_owned(),
            format!("serving.model=\"{model}\""),
            "serving.layout={ tensor = 8 }".to_owned(),
            format!("serving.engine=\"{engine}\""),
            format!("serving.engine_version=\"{version}\""),
            format!("serving.input_tokens={input}"),
            "serving.output_tokens=2016".to_owned(),
            "serving.kv_cache=\"fp8\"".to_owned(),
            "serving.prefix_hit=0".to_owned(),
            "serving.arrivals={ concurrency = 16 }".to_owned(),
        ];
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        let asked =
            if model.starts_with("llama") { [&asked[..], &["serving.weights=\"fp8\""]].concat() } else { asked };
        let (code, json, stderr) = eval(&asked);
        assert_eq!(code, 0, "{model} by {engine} {version}: {stderr}");
        json
    };
    let of = |model, engine, version, input| on("dgx-h200", model, engine, version, (input, 30_000));
    let of_room = |json: &Value, request: f64| {
        let each = json["memory"]["kv_cache_bytes"].as_f64().unwrap() / request;
        (figure(json, "max_concurrency_count") - each.floor()).abs() < 0.5
    };
    // Of 22,016 tokens, 688 blocks of 32: keys and values of one head on each of eight ranks, in all 48 layers of Maverick, of which
    // 36 attend within chunks of 8,192, and in all 36 of GPT-OSS, of which 18 have windows of 128.
    let (maverick, gpt) = (48.0 * 2.0 * 128.0 * 22_016.0, 36.0 * 2.0 * 64.0 * 22_016.0);
    for version in ["0.20", "0.21", "1.2"] {
        assert!(of_room(&of("llama-4-maverick-17b-128e", "trtllm", version, 20_000), maverick), "{version}");
    }
    assert!(of_room(&of("gpt-oss-120b", "trtllm", "1.2", 20_000), gpt));
    // vLLM gives back what is behind a window.
    let freed = of("gpt-oss-120b", "vllm", "0.22", 20_000);
    let all = freed["memory"]["kv_cache_bytes"].as_f64().unwrap() / gpt;
    assert!(figure(&freed, "max_concurrency_count") > 1.2 * all);
    // Before 0.21 a prompt attends to all of itself, and a token to all before it, in the 36 layers too.
    let both = |node, lengths| {
        ["0.20", "1.0"].map(|version| on(node, "llama-4-maverick-17b-128e", "trtllm", version, lengths))
    };
    let over = |[before, since]: [Value; 2], figures| figure(&before, figures) / figure(&since, figures);
    for figures in ["prefill_s", "decode_step_s"] {
        assert!(over(both("dgx-b200", (20_000, 30_000)), figures) > 1.02, "{figures}");
    }
    // Hopper has no kernel of decode that knows of chunks and reads a cache once for all heads that share it: an engine that is set for
    // longer sequences than a chunk reads it for each.
    assert!(over(both("dgx-h200", (20_000, 30_000)), "prefill_s") > 1.02);
    assert!(over(both("dgx-h200", (5_000, 30_000)), "decode_step_s") < 0.98);
    // Nothing of it matters within a chunk.
    for figures in ["prefill_s", "decode_step_s", "max_concurrency_count"] {
        let within = over(both("dgx-h200", (5_000, 8_192)), figures);
        assert!((within - 1.0).abs() < 1e-9, "{figures}: {within}");
    }
}

#[test]
fn tokens_are_gathered_for_experts_before_a_version_and_on_hopper_always() {
    let step = |node: &str, version: &str| {
        let node = format!("cluster.node=\"{node}\"");
        let version = format!("serving.engine_version=\"{version}\"");
        let (code, json, stderr) = eval(&[
            &node,
            "cluster.accelerators=8",
            "serving.model=\"qwen3-235b-a22b\"",
            "serving.weights=\"fp8\"",
            "serving.layout={ tensor = 1, attention_data = 8, expert = 8 }",
            "serving.engine=\"trtllm\"",
            &version,
            "serving.arrivals={ concurrency = 256 }",
        ]);
        assert_eq!(code, 0, "{stderr}");
        figure(&json, "decode_step_s")
    };
    // 94 layers, there and back, each by a message that takes 23 us longer.
    let later = |node| step(node, "1.1") - step(node, "1.2");
    assert!(later("dgx-b200") > 94.0 * 2.0 * 20e-6, "{}", later("dgx-b200"));
    assert!(later("dgx-h200").abs() < 1e-4, "{}", later("dgx-h200"));
}

#[test]
fn without_graphs_steps_take_as_long_as_their_launches() {
    let of = |settings: &[&str]| {
        let (code, json, stderr) = eval(settings);
        assert_eq!(code, 0, "{stderr}");
        serving(&json)
    };
    let few = "serving.arrivals={ concurrency = 16 }";
    let (usual, graphs) = (of(&[few]), of(&[few, "serving.cuda_graphs=true"]));
    let eager = of(&[few, "serving.cuda_graphs=false"]);
    assert_eq!(usual("tpot_s").to_bits(), graphs("tpot_s").to_bits());
    // 80 layers of 0.76 ms and more, where the device has hardly anything to do.
    assert!(eager("decode_step_s") > 80.0 * 0.76e-3 && eager("decode_step_s") > 2.0 * usual("decode_step_s"));
    // The host runs ahead of a device that takes longer.
    let large = [
        "serving.weights=\"bf16\"",
        "serving.kv_cache=\"bf16\"",
        "serving.input_tokens=60000",
        "serving.arrivals=\"max\"",
    ];
    let gain = |settings: &[&str]| {
        let eager = [settings, &["serving.cuda_graphs=false"]].concat();
        of(&eager)("decode_step_s") / of(settings)("decode_step_s")
    };
    assert!(gain(&large) < gain(&[few]) / 1.5, "{}", gain(&large));
    // One machine was measured: the band is as wide again.
    let band = |answer: &dyn Fn(&str) -> f64| answer("tpot_high_s") / answer("tpot_s");
    assert!((band(&eager) / band(&usual).powi(2) - 1.0).abs() < 1e-9, "{} {}", band(&eager), band(&usual));
    let (code, _, stderr) = eval(&["serving.cuda_graphs=\"no\""]);
    assert!(code == 2 && stderr.contains("serving.cuda_graphs"), "{stderr}");
    let (code, _, stderr) = eval(&["cluster.node=\"gaudi3-8\"", "serving.cuda_graphs=false"]);
    assert!(code == 2 && stderr.contains("of GPUs, and not of `gaudi3`"), "{stderr}");
}
