//! Adapters: what they take, and what requests wait for whose adapter has no place.

use serde_json::Value;

use super::{eval, figure};

#[test]
fn adapters_take_memory_time_and_loads() {
    let rate = "serving.arrivals={ rate = \"20 request/s\" }";
    let of = |adapters: &str| {
        let (code, json, stderr) = eval(&[&format!("serving.adapters={adapters}"), rate]);
        assert_eq!(code, 0, "{stderr}");
        json
    };
    let (_, none, _) = eval(&[rate]);
    let all = of("{ count = 100, rank = 16 }");
    // 80 layers: queries and outputs of 8,192 and 8,192, keys and values of 1,024, rank 16, two bytes.
    let each = 80.0 * 16.0 * (4.0 * 8_192.0 + 2.0 * 8_192.0 + 2.0 * 1_024.0) * 2.0;
    assert!((figure(&all, "adapter_bytes") - each).abs() < 1.0);
    // The side of 8,192 of each projection is whole on every rank, the other is split over four.
    let held = 100.0 * 80.0 * 16.0 * (4.0 * 8_192.0 + (2.0 * 8_192.0 + 2.0 * 1_024.0) / 4.0) * 2.0;
    assert!((figure(&all, "adapters_held_bytes") - held).abs() < 1.0);
    let weights = |json: &Value| json["memory"]["weights_bytes"].as_f64().unwrap();
    assert!((weights(&all) - weights(&none) - held).abs() < 1.0);
    // Two kernels for each of 4 x 80 projections, 4.5 us each, and adapters to read: 2.9 ms and more.
    let slower = figure(&all, "decode_step_s") - figure(&none, "decode_step_s");
    assert!(slower > 2.88e-3 && slower < 6e-3, "{slower}");
    // A quarter of them in memory, all as popular: three quarters of the requests load theirs.
    let some = of("{ count = 100, rank = 16, resident = 25 }");
    assert!((figure(&some, "adapter_loads_ratio") - 0.75).abs() < 1e-6);
    // Every rank fetches what it keeps.
    let load = 2e-6 + held / 100.0 / 55.4e9;
    assert!((figure(&some, "adapter_wait_s") - 0.75 * load).abs() < 1e-9);
    let popular = of("{ count = 100, rank = 16, resident = 25, popularity = 1.2 }");
    assert!(figure(&popular, "adapter_loads_ratio") < 0.4);
}

/// An engine that takes requests in turn, whatever their adapter.
const IN_TURN: &[&str] = &["serving.engine=\"sglang\"", "serving.engine_version=\"0.5.6\""];

#[test]
fn engines_fill_up_with_requests_for_the_adapters_that_they_have() {
    let of = |count: u32, more: &[&str]| {
        let adapters = format!("serving.adapters={{ count = {count}, rank = 16, resident = 4 }}");
        let (code, json, stderr) = eval(&[&[adapters.as_str(), "serving.arrivals=\"max\""], more].concat());
        assert_eq!(code, 0, "{stderr}");
        let told =
            |part: &str| json["notes"].as_array().unwrap().iter().any(|note| note.as_str().unwrap().contains(part));
        // Batches are full while others starve; at a rate no more are served than leave each its turn.
        let starved = figure(&json, "requests_per_s") / figure(&json, "most_requests_per_s") - 1.0;
        assert!(if told("some never do") { starved > 0.1 } else { starved.abs() < 1e-9 }, "{starved}");
        (figure(&json, "requests_per_s"), told("until one of these"))
    };
    for engine in ["vllm", "sglang", "trtllm"] {
        let engine = format!("serving.engine=\"{engine}\"");
        let (all, some, many) = (of(4, &[&engine]), of(5, &[&engine]), of(400, &[&engine]));
        // The same adapters are read in every step; a fifth more of a batch's are not there.
        assert!(
            (some.0 / all.0 - 1.0).abs() < 0.01 && (many.0 / all.0 - 1.0).abs() < 0.02,
            "{all:?} {some:?} {many:?}"
        );
        assert!(!all.1 && some.1 && many.1, "{all:?} {some:?} {many:?}");
    }
    // Where one without a place holds up the others, the batch ends there.
    let (all, some) = (of(4, IN_TURN), of(5, IN_TURN));
    assert!(some.0 < 0.3 * all.0 && !some.1, "{all:?} {some:?}");
}

#[test]
fn of_a_number_open_those_whose_adapter_has_no_place_wait() {
    let of = |count: u32, open: u32| {
        let adapters = format!("serving.adapters={{ count = {count}, rank = 16, resident = 4 }}");
        let (code, json, stderr) = eval(&[&adapters, &format!("serving.arrivals={{ concurrency = {open} }}")]);
        assert_eq!(code, 0, "{stderr}");
        // By Little's law, those that wait too.
        let whole = figure(&json, "ttft_s") + figure(&json, "tpot_s") * 512.0;
        assert!((figure(&json, "requests_per_s") * whole / f64::from(open) - 1.0).abs() < 1e-6, "{count} {open}");
        json
    };
    let mut before = 0.0;
    for open in [256, 432, 1_600, 6_400] {
        let (all, few) = (of(4, open), of(20, open));
        let served = figure(&few, "requests_per_s");
        assert!(served > before && served < figure(&all, "requests_per_s"), "{open}: {served} {before}");
        assert!(
            figure(&few, "queue_s") > figure(&all, "queue_s") && figure(&few, "ttft_p99_s") > figure(&few, "ttft_s")
        );
        assert!(figure(&few, "batch_count") < figure(&all, "batch_count"), "{open}");
        before = served;
    }
}

#[test]
fn at_a_rate_all_adapters_have_their_turn_or_it_is_refused() {
    let places = |count: u32| format!("serving.adapters={{ count = {count}, rank = 16, resident = 4 }}");
    let at = |rate: f64, count: u32, more: &[&str]| {
        eval(
            &[&[places(count).as_str(), &format!("serving.arrivals={{ rate = \"{rate} request/s\" }}")], more].concat(),
        )
    };
    let queue = |rate: f64, count: u32| {
        let (code, json, stderr) = at(rate, count, &[]);
        assert_eq!(code, 0, "{stderr}");
        (figure(&json, "queue_s"), figure(&json, "ttft_p95_s"))
    };
    // A fifth waits until one of the other four has no request left: the longer, the more come, up to the most.
    let (_, json, _) = at(2.0, 5, &[]);
    let most = figure(&json, "most_requests_per_s");
    let waits = [0.04, 0.4, 0.8, 0.95, 0.999].map(|part| (queue(most * part, 4), queue(most * part, 5)));
    assert!((waits[0].1.0 / waits[0].0.0 - 1.0).abs() < 1e-3, "{waits:?}");
    assert!(waits[2].1.0 > 1.0 + waits[2].0.0 && waits[2].1.1 > 5.0 + waits[2].0.1, "{waits:?}");
    assert!(waits.is_sorted_by(|before, after| before.1.0 <= after.1.0 && before.1.1 <= after.1.1), "{waits:?}");
    // It is the same whatever is asked for, and nothing beyond it is served, though batches would hold more than twice that.
    let pools = ["serving.layout={ prefill = { tensor = 4 }, decode = { tensor = 4 } }"];
    for layout in [&[][..], &pools] {
        let (_, full, _) = eval(&[&[places(5).as_str(), "serving.arrivals=\"max\""], layout].concat());
        let most = figure(&full, "most_requests_per_s");
        let [(_, half, _), (_, below, _)] = [0.5, 0.999].map(|part| at(most * part, 5, layout));
        assert!(
            figure(&half, "queue_s") > 0.5 && figure(&below, "queue_s") > 10.0 * figure(&half, "queue_s"),
            "{below}"
        );
        assert!((figure(&below, "most_requests_per_s") / most - 1.0).abs() < 1e-6, "{most} {below}");
        for part in [1.001, 1.2, 1.5, 1.8, 2.2, 4.0] {
            let (code, json, _) = at(most * part, 5, layout);
            let reason = json["infeasible"]["reason"].as_str().unwrap_or_default();
            // Pools are split so that prompts of as many are taken in as adapters have their turn.
            let prompts = !layout.is_empty() && reason.contains("no more time is left for prompts");
            let whole = part > 2.0 || prompts || reason.contains("different adapters") && reason.contains("max_loras");
            assert!(code == 1 && reason.contains("at most") && whole, "{part}: {json}");
        }
    }
}

#[test]
fn however_many_are_open_some_wait_for_places_of_adapters() {
    for (count, places) in [(5, 1), (6, 4)] {
        let adapters = format!("serving.adapters={{ count = {count}, rank = 16, resident = {places} }}");
        let (_, endless, _) = eval(&[&adapters, "serving.arrivals=\"max\""]);
        let most = figure(&endless, "requests_per_s");
        let (mut open, mut before, mut waited) = (16, 0.0, 0.0);
        while open < 200_000 {
            let (code, json, stderr) = eval(&[&adapters, &format!("serving.arrivals={{ concurrency = {open} }}")]);
            assert_eq!(code, 0, "{stderr}");
            let [served, first] = ["requests_per_s", "ttft_s"].map(|key| figure(&json, key));
            // Half as many more end half as many more at most, wait no less, and are no more than prompts without end come to.
            let near = 1.0 + 1e-6;
            assert!(
                served * near >= before && served <= most * near,
                "{count} {places} {open}: {served} {before} {most}"
            );
            assert!(before <= 0.0 || served <= before * 1.5 * near, "{count} {places} {open}: {served} {before}");
            assert!(first * near >= waited, "{count} {places} {open}: {first} {waited}");
            (open, before, waited) = (open * 3 / 2, served, first);
        }
        assert!(waited > 100.0 && before > 0.98 * most, "{waited} {before} {most}");
    }
}

#[test]
fn those_without_a_place_wait_for_prompts_too() {
    let adapters = "serving.adapters={ count = 20, rank = 16, resident = 4 }";
    // Places bind from about 150 request/s and 66 that are open.
    let asked = [140, 149, 150, 153, 160].map(|rate| format!("serving.arrivals={{ rate = \"{rate} request/s\" }}"));
    let open = [64, 66, 68, 72, 80].map(|open| format!("serving.arrivals={{ concurrency = {open} }}"));
    for arrivals in [asked, open] {
        let told = arrivals.map(|arrivals| {
            let (code, json, stderr) = eval(&["serving.output_tokens=8", adapters, &arrivals]);
            assert_eq!(code, 0, "{stderr}");
            ["ttft_p50_s", "ttft_p95_s", "ttft_p99_s"].map(|key| figure(&json, key))
        });
        assert!((0..3).all(|index| told.is_sorted_by(|less, more| less[index] <= more[index])), "{told:?}");
    }
}

#[test]
fn more_requests_for_adapters_without_a_place_never_take_fewer_gpus() {
    let of = |rate: u32| {
        let sets = [
            "serving.adapters={ count = 5, rank = 16, resident = 4 }".to_owned(),
            format!("serving.arrivals={{ rate = \"{rate} request/s\" }}"),
            "serving.limits={ ttft_p95 = \"2 s\" }".to_owned(),
            "plan={ minimise = \"cost\", vary = { \"cluster.accelerators\" = \"auto\" } }".to_owned(),
        ];
        let set: Vec<&str> = sets.iter().flat_map(|setting| ["--set", setting]).collect();
        let answer = super::program::run(&[&["plan", super::SCENARIO, "--format", "json"], &set[..]].concat());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        let json: Value = serde_json::from_str(&answer.stdout).unwrap();
        json["best"]["scenario"]["cluster.accelerators"].as_str().unwrap().parse::<u32>().unwrap()
    };
    let gpus = [5, 20, 40, 60, 80, 100, 120].map(of);
    assert!(gpus.is_sorted() && gpus[6] > gpus[0], "{gpus:?}");
}

#[test]
fn places_for_adapters_bind_by_their_name() {
    let eval = |asked: &[&str]| eval(&[asked, IN_TURN].concat());
    let adapters = "serving.adapters={ count = 200, rank = 64, resident = 20 }";
    let (code, json, _) = eval(&[adapters, "serving.arrivals={ rate = \"200 request/s\" }"]);
    let reason = json["infeasible"]["reason"].as_str().unwrap_or_default().to_owned();
    assert!(code == 1 && reason.contains("different adapters") && reason.contains("max_loras"), "{json}");
    let bound = |adapters: &str, arrivals: &str| {
        let (code, json, stderr) = eval(&[&format!("serving.adapters={adapters}"), arrivals]);
        assert_eq!(code, 0, "{stderr}");
        json["serving"]["batch_bound"].as_str().unwrap().to_owned()
    };
    let (open, most) = ("serving.arrivals={ concurrency = 2048 }", "serving.arrivals=\"max\"");
    assert_eq!(bound("{ count = 200, rank = 16, resident = 1 }", open), "max_loras");
    assert_eq!(bound("{ count = 200, rank = 16, resident = 1 }", most), "max_loras");
    // With a place for each nothing else than without adapters binds.
    assert_eq!(bound("{ count = 20, rank = 16 }", most), "memory");
}

#[test]
fn requests_that_go_to_their_adapter_find_it_and_are_uneven() {
    let of = |routing: &str| {
        let adapters = format!("serving.adapters={{ count = 40, rank = 16, resident = 10, routing = \"{routing}\" }}");
        let (code, json, stderr) = eval(&[&adapters, "serving.arrivals={ rate = \"20 request/s\" }"]);
        assert_eq!(code, 0, "{stderr}");
        json
    };
    let (balanced, aware) = (of("balanced"), of("adapter-aware"));
    for json in [&balanced, &aware] {
        // Both ways are told, whichever is taken.
        let [anywhere, sent] =
            ["balanced", "adapter_aware"].map(|way| figure(json, &format!("adapter_hits.{way}_ratio")));
        // Of 40 alike on 16 replicas, eight have three.
        let busiest = figure(json, "adapter_busiest_replica_ratio");
        assert!(sent > anywhere && (busiest - 3.0 * 16.0 / 40.0).abs() < 1e-9, "{anywhere} {sent} {busiest}");
    }
    let loads = |json: &Value| figure(json, "adapter_loads_ratio");
    assert!((loads(&balanced) - (1.0 - figure(&balanced, "adapter_hits.balanced_ratio"))).abs() < 1e-12);
    assert!((loads(&aware) - (1.0 - figure(&aware, "adapter_hits.adapter_aware_ratio"))).abs() < 1e-12);
    // As many requests are served in all; the busiest replica, whose latencies are told, has more of them in decode, though
    // fewer different adapters are read.
    assert!((figure(&aware, "requests_per_s") - 20.0).abs() < 1e-6);
    assert!(figure(&aware, "batch_count") > figure(&balanced, "batch_count"));
    // Of one adapter, and of one replica, both are the same.
    let one = |more: &str| {
        let of = |routing: &str| {
            let adapters = format!("serving.adapters={{ count = 20, rank = 16, routing = \"{routing}\" }}");
            let (code, json, stderr) =
                eval(&[&adapters, more, "serving.arrivals={ rate = \"1 request/s\" }", "cluster.accelerators=8"]);
            assert_eq!(code, 0, "{stderr}");
            figure(&json, "ttft_s")
        };
        (of("balanced"), of("adapter-aware"))
    };
    let (anywhere, sent) = one("serving.layout={ tensor = 8 }");
    assert_eq!(anywhere.to_bits(), sent.to_bits());
    let pools = "serving.layout={ prefill = { tensor = 4 }, decode = { tensor = 4 }, prefill_accelerators = 16 }";
    let (code, _, stderr) = eval(&[pools, "serving.adapters={ count = 20, rank = 16, routing = \"adapter-aware\" }"]);
    assert!(code == 2 && stderr.contains("pools of prefill and decode"), "{stderr}");
}
