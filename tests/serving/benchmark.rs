//! TensorRT-LLM's documented benchmark, written as a scenario: keys for all that its documents set and that it works out for itself.

use clusterplan::catalog::Catalog;
use clusterplan::diagnostics::{Sink, Sources};
use clusterplan::load;
use clusterplan::validation::{ALIASES, Aliases, Domain, Outcome, Validation};

use super::{eval, figure};

/// Rows of the table of v1.0, dense and with experts, as a scenario has their model and node.
const ROWS: [(&str, &str, &str); 8] = [
    ("tp031", "llama-3.1-70b", "hgx-h200-8"),
    ("tp035", "llama-3.1-70b", "hgx-h100-8"),
    ("tp099", "llama-3.1-405b", "hgx-b200-8"),
    ("tp122", "llama-3.1-8b", "hgx-h100-8"),
    ("tp013", "llama-4-scout-17b-16e", "hgx-h200-8"),
    ("tp062", "qwen3-235b-a22b", "hgx-b200-8"),
    ("tp074", "qwen3-30b-a3b", "hgx-b200-8"),
    ("tp091", "llama-4-maverick-17b-128e", "hgx-h200-8"),
];
const GRAPHS: &str =
    "serving.cuda_graphs={ batch_sizes = [1, 2, 4, 8, 16, 32, 64, 128, 256, 384, 512, 1024, 2048, 4096, 8192] }";

/// What validation says of those rows, and how it has them run.
fn validated() -> Validation {
    let cases = Domain::Throughput.own_cases();
    let kept = |line: &&str| line.starts_with("id,") || ROWS.iter().any(|(id, ..)| line.starts_with(&format!("{id},")));
    let cases: Vec<&str> = cases.lines().filter(kept).collect();
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog: Catalog = load::catalog(&[], &mut sources, &sink);
    let file = sources.add("aliases.toml", ALIASES);
    let aliases = Aliases::read(&load::parse(&sources, file, &sink), &sink);
    Validation::new(Domain::Throughput, &cases.join("\n"), &catalog, &aliases).unwrap()
}

/// The table's own columns of a row: ranks, format of weights, and lengths.
fn columns(id: &str) -> [String; 4] {
    let line = Domain::Throughput.own_cases().lines().find(|line| line.starts_with(&format!("{id},"))).unwrap();
    let columns: Vec<&str> = line.split(',').collect();
    [columns[3].trim_start_matches("TP").to_owned(), columns[4].to_lowercase(), columns[5].into(), columns[6].into()]
}

/// Tokens of answers in a second of one replica, by a scenario.
fn tokens(settings: &[String], output: &str) -> f64 {
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let (code, json, stderr) = eval(&settings);
    assert_eq!(code, 0, "{settings:?}: {stderr}");
    figure(&json, "requests_per_s") / json["serving"]["replicas_count"].as_f64().unwrap()
        * output.parse::<f64>().unwrap()
}

#[test]
fn a_scenario_of_the_documented_benchmark_gets_what_validation_predicts() {
    let validation = validated();
    assert_eq!(validation.rows.len(), ROWS.len());
    for row in &validation.rows {
        let (id, model, node) = ROWS.iter().find(|(id, ..)| *id == row.id).unwrap();
        let Outcome::Predicted(of) = &row.outcome else { panic!("{id}") };
        let filled = |field: &str| row.filled.iter().find(|fill| fill.field == field).map(|fill| fill.value.as_str());
        let number = |field: &str| filled(field).unwrap().parse::<u32>().unwrap();
        let [ranks, weights, input, output] = columns(id);
        let replicas = 8 / ranks.parse::<u32>().unwrap();
        let layout = match filled("attention_data") {
            Some(groups) => format!("{{ tensor = 1, attention_data = {groups}, expert = {groups} }}"),
            None => format!("{{ tensor = {ranks} }}"),
        };
        let mut asked = vec![
            format!("cluster.node=\"{node}\""),
            "cluster.accelerators=8".to_owned(),
            format!("serving.model=\"{model}\""),
            "serving.engine=\"trtllm\"".to_owned(),
            "serving.engine_version=\"1.0\"".to_owned(),
            format!("serving.weights=\"{weights}\""),
            "serving.kv_cache=\"fp8\"".to_owned(),
            format!("serving.input_tokens={input}"),
            format!("serving.output_tokens={output}"),
            format!("serving.max_model_len={}", input.parse::<u32>().unwrap() + output.parse::<u32>().unwrap()),
            "serving.prefix_hit=0".to_owned(),
            format!("serving.layout={layout}"),
            "serving.memory_fraction=0.95".to_owned(),
            format!("serving.max_num_seqs={}", number("max_num_seqs")),
            format!("serving.chunk_tokens={}", number("chunk_tokens")),
            format!("serving.arrivals={{ prompts = {} }}", number("prompts") * replicas),
            GRAPHS.to_owned(),
        ];
        if filled("attention_data").is_some() {
            asked.push("serving.attention_data_balance={ wait_steps = 60 }".to_owned());
        }
        let got = tokens(&asked, &output);
        assert!((got / of.predicted - 1.0).abs() < 0.02, "{id}: {got} by the scenario, {} by validation", of.predicted);
    }
}

#[test]
fn graphs_pad_batches_that_are_open_too() {
    let of = |settings: &[&str]| {
        let (code, json, stderr) = eval(settings);
        assert_eq!(code, 0, "{settings:?}: {stderr}");
        figure(&json, "decode_step_s")
    };
    // 16 replicas of 260 sequences, or of 256 and fewer, which a graph is of.
    let open = |each: u32| format!("serving.arrivals={{ concurrency = {} }}", each * 16);
    let (many, few) = (open(270), open(64));
    let sizes = |sizes: &str| format!("serving.cuda_graphs={{ batch_sizes = [{sizes}] }}");
    let (wide, close) =
        (sizes("1, 4096"), sizes(&(1..=300).map(|size| size.to_string()).collect::<Vec<_>>().join(",")));
    for open in [&many, &few] {
        assert!(of(&[open, &wide, "serving.max_num_seqs=1024"]) > of(&[open, &close, "serving.max_num_seqs=1024"]));
    }
}

#[test]
fn an_engine_that_looks_for_requests_every_so_many_steps_takes_them_in_later() {
    let of = |steps: u32, open: u32| {
        let (steps, open) =
            (format!("serving.poll_steps={steps}"), format!("serving.arrivals={{ concurrency = {} }}", open * 16));
        let (code, json, stderr) = eval(&["serving.engine=\"sglang\"", &steps, &open]);
        assert_eq!(code, 0, "{stderr}");
        ["ttft_s", "decode_step_s", "prefill_s"].map(|key| figure(&json, key))
    };
    let [[each, step, prefill], [seldom, slower, _]] = [1, 31].map(|steps| of(steps, 64));
    // 15 steps on average, and the prompts of others that came meanwhile.
    let waited = seldom - each;
    assert!(waited > 15.0 * slower.min(step) && waited < 15.0 * step + 4.0 * prefill, "{waited} {step} {prefill}");
    // One by itself is found at once.
    assert!((of(31, 1)[0] / of(1, 1)[0] - 1.0).abs() < 1e-9);
}

#[test]
fn wrong_graphs_balances_and_waves_are_refused() {
    let experts = "serving.model=\"qwen3-235b-a22b\"";
    let groups = "serving.layout={ tensor = 1, attention_data = 8, expert = 8 }";
    let balance = "serving.attention_data_balance={ wait_steps = 60 }";
    let sglang = "serving.engine=\"sglang\"";
    for (settings, said, hint) in [
        (&["serving.cuda_graphs={ batch_sizes = [] }"][..], "graphs of no batch", "such as [1, 2, 4, 8, 16]"),
        (&["serving.cuda_graphs={ batch_sizes = [8, 4] }"], "4 sequences comes after one of 8", "larger than the one"),
        (&["serving.cuda_graphs={ batch_sizes = [4, 4] }"], "4 sequences comes after one of 4", "larger than the one"),
        (&["serving.cuda_graphs={ batch_sizes = [0, 4] }"], "serving.cuda_graphs.batch_sizes", "1 to"),
        (&["serving.cuda_graphs={ batch_sizes = [2000000] }"], "a graph of 2000000", "at most 1,000,000"),
        (&["serving.cuda_graphs={}"], "serving.cuda_graphs.batch_sizes", "missing"),
        (&["serving.cuda_graphs=3"], "serving.cuda_graphs", "batch_sizes"),
        (&["cluster.node=\"gaudi3-8\"", "serving.cuda_graphs={ batch_sizes = [4] }"], "of GPUs", "cuda_graphs out"),
        (&[balance], "one attention group", "attention_data above 1"),
        (&[experts, groups, "serving.attention_data_balance={ wait_steps = 0 }"], "wait_steps", "1 to"),
        (
            &[experts, groups, balance, "serving.arrivals={ rate = \"1 request/s\" }"],
            "that is open",
            "concurrency = 64",
        ),
        (&["serving.poll_steps=30", "serving.arrivals={ concurrency = 64 }"], "only SGLang", "engine = \"sglang\""),
        (&[sglang, "serving.poll_steps=0"], "serving.poll_steps", "1 to"),
        (&[sglang, "serving.poll_steps=30", "serving.arrivals={ rate = \"1 request/s\" }"], "that is open", "= 64"),
        (&[sglang, "serving.poll_steps=30", "serving.layout=\"auto\""], "that is open", "one layout"),
        (&[experts, groups, "serving.expert_imbalance=\"even\""], "serving.expert_imbalance", "\"by-placement\""),
        (&["serving.expert_imbalance=\"by-placement\""], "an expert_imbalance of by-placement", "an expert above 1"),
        (
            &[
                "serving.arrivals={ prompts = 100 }",
                "serving.layout={ prefill = { tensor = 4 }, decode = { tensor = 4 } }",
            ],
            "in waves",
            "one layout",
        ),
        (&["serving.arrivals={ prompts = 100 }", "serving.layout=\"auto\""], "in waves", "one layout"),
        (
            &["serving.arrivals={ prompts = 100 }", "serving.input_tokens={ mean = 100, cv = 1 }"],
            "in waves",
            "input_tokens and output_tokens as numbers",
        ),
    ] {
        let (code, _, stderr) = eval(settings);
        assert_eq!(code, 2, "{settings:?}: {stderr}");
        assert!(stderr.contains(said) && stderr.contains(hint) && stderr.contains("-->"), "{settings:?}: {stderr}");
    }
}

#[test]
fn prompts_that_are_all_there_take_as_long_as_their_waves() {
    let of = |prompts: f64| {
        let lengths = ["serving.input_tokens=2048", "serving.output_tokens=512", "serving.prefix_hit=0"];
        let all = format!("serving.arrivals={{ prompts = {prompts} }}");
        let (code, json, stderr) = eval(&[&lengths[..], &[all.as_str()]].concat());
        assert_eq!(code, 0, "{stderr}");
        json
    };
    let (mut before, mut each_before) = (0.0, 0.0);
    for prompts in [1.0, 8.0, 16.0, 128.0, 3_000.0, 30_000.0, 300_000.0] {
        let json = of(prompts);
        let [served, tpot, ttft] = ["requests_per_s", "tpot_s", "ttft_s"].map(|key| figure(&json, key));
        let (batch, replicas) = (figure(&json, "batch_count"), figure(&json, "replicas_count"));
        let (whole, each) = (prompts / served, (prompts / replicas).ceil());
        // The run ends with the last answer, and no more are open than there are.
        let (open, last) = (figure(&json, "open_count"), figure(&json, "e2e_p99_s"));
        assert!(open <= prompts * (1.0 + 1e-9) && last <= whole * (1.0 + 1e-9), "{prompts}: {open} {last} {whole}");
        assert!(batch <= each && served > before && tpot >= each_before, "{prompts}: {batch} {served} {tpot}");
        if (batch - each).abs() < 1e-9 {
            // One wave: all are in decode at once, and the last token of each is made at its end.
            let alone = figure(&of(1.0), "ttft_s");
            let decode = tpot * 512.0;
            assert!(whole > decode && whole < decode + alone, "{prompts}: {whole} {decode} {alone}");
            // First tokens come as prompts are taken in, one behind the other.
            let [p50, p99] = ["ttft_p50_s", "ttft_p99_s"].map(|key| figure(&json, key));
            assert!(ttft - alone <= 0.5 * each * alone && p99 - alone <= each * alone, "{prompts}: {ttft} {p99}");
            assert!(each < 2.0 || p99 > 1.5 * p50 * (1.0 - alone / p50), "{prompts}: {p50} {p99}");
            assert!(figure(&json, "open_count") / prompts.min(each * replicas) > 0.99, "{prompts}");
        } else {
            // The last wave's last token is made at the end; a half of the waves before it is waited for on average.
            let waves = each / batch;
            let (p50, p99) = (figure(&json, "e2e_p50_s"), figure(&json, "e2e_p99_s"));
            assert!(waves > 1.0 && p50 < whole && p99 > 0.9 * whole, "{prompts}: {p99} {whole}");
        }
        (before, each_before) = (served, tpot);
    }
    // Of answers of few tokens the host's part is the larger.
    for (output, prompts) in [(1, 1.0), (1, 100.0), (1, 3_000.0), (2, 1.0), (2, 100.0), (2, 3_000.0), (16, 17.0)] {
        let lengths = format!("serving.output_tokens={output}");
        let all = format!("serving.arrivals={{ prompts = {prompts} }}");
        let (code, json, stderr) = eval(&["serving.input_tokens=1024", "serving.prefix_hit=0", &lengths, &all]);
        assert_eq!(code, 0, "{stderr}");
        let [served, open, first, last] =
            ["requests_per_s", "open_count", "ttft_p99_s", "e2e_p99_s"].map(|key| figure(&json, key));
        let whole = prompts / served * (1.0 + 1e-9);
        assert!(
            first <= last && last <= whole && open <= prompts * (1.0 + 1e-9),
            "{output} {prompts}: {open} {last} {whole}"
        );
        assert!(prompts > 1.0 || (open / prompts - 1.0).abs() < 0.01, "{output}: {open}");
    }
    // Fewer prompts than replicas: one each, and others idle.
    assert!((figure(&of(8.0), "requests_per_s") / figure(&of(16.0), "requests_per_s") - 0.5).abs() < 1e-9);
}
