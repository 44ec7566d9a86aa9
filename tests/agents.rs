//! Agents: what a scenario with `[agents]` answers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

use serde_json::Value;

const SCENARIO: &str = "scenarios/serve-coding-agents-64-h200.toml";

fn eval(settings: &[&str]) -> (i32, Value, String) {
    let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let answer = program::run(&[&["eval", SCENARIO, "--format", "json"], &set[..]].concat());
    (answer.code, serde_json::from_str(&answer.stdout).unwrap_or(Value::Null), answer.stderr)
}

fn agents(settings: &[&str]) -> impl Fn(&str) -> f64 + use<> {
    let (code, json, stderr) = eval(settings);
    assert_eq!(code, 0, "{stderr}");
    move |key| json["agents"][key].as_f64().unwrap_or_else(|| panic!("agents.{key}"))
}

/// The run of the published traces, without retries and failures: 33 turns, 131 tokens in for one out.
const TRACES: [&str; 3] = ["agents.retries=1", "agents.success=1", "agents.failed.steps=33"];

#[test]
fn a_task_has_the_calls_and_tokens_of_its_traces() {
    let of = agents(&TRACES);
    assert!((of("calls_per_task_count") - 33.0).abs() < 1e-9);
    assert!((of("input_to_output_ratio") - 131.0).abs() < 1.0, "{}", of("input_to_output_ratio"));
    assert!((of("prefix_hit_ratio") - 0.942).abs() < 0.01, "{}", of("prefix_hit_ratio"));
    // 1,000 users, one task each in 40 minutes.
    assert!((of("tasks_per_day") - 36_000.0).abs() < 1e-6);
    assert!((of("cost_per_success_usd") / of("cost_per_task_usd") - 1.0).abs() < 1e-12);
}

#[test]
fn a_task_is_paid_in_full_and_a_success_with_its_failures() {
    let (_, json, _) = eval(&[]);
    let of = |group: &str, key: &str| json[group][key].as_f64().unwrap_or_else(|| panic!("{group}.{key}"));
    let parts = ["input", "cached", "output", "tools", "sandbox"];
    let all: f64 = parts.iter().map(|part| of("agents", &format!("cost_{part}_per_task_usd"))).sum();
    assert!((all / of("agents", "cost_per_task_usd") - 1.0).abs() < 1e-12);
    assert!((of("agents", "cost_per_success_usd") * 0.64 / all - 1.0).abs() < 1e-12);
    // The tasks' tokens are the cluster's: what they pay for is what its GPUs cost.
    let tokens: f64 = parts[..3].iter().map(|part| of("agents", &format!("cost_{part}_per_task_usd"))).sum();
    let gpus = of("cost", "usd_per_useful_gpu_hour") * 64.0 * 24.0;
    assert!((tokens * of("agents", "tasks_per_day") / gpus - 1.0).abs() < 1e-9);
    // Little's law, and calls that are served.
    let alive = of("agents", "tasks_per_day") / 86_400.0 * of("agents", "task_s");
    assert!((of("agents", "sessions_count") / alive - 1.0).abs() < 1e-9);
    let calls = of("agents", "tasks_per_day") * of("agents", "calls_per_task_count") / 86_400.0;
    assert!((of("serving", "requests_per_s") / calls - 1.0).abs() < 1e-9);
}

#[test]
fn longer_waits_hold_more_and_lost_sessions_cost_more() {
    let of = |setting| agents(&[FEWER, setting]);
    let (usual, slow, lost) = (agents(&[FEWER]), of("agents.tool_time=\"10 s\""), of("agents.session_hit=0.97"));
    assert!(slow("kv_idle_bytes") > usual("kv_idle_bytes") && slow("kv_held_ratio") > usual("kv_held_ratio"));
    assert!(lost("prefix_hit_ratio") < usual("prefix_hit_ratio"));
    assert!(lost("cost_per_task_usd") > usual("cost_per_task_usd"), "what is lost is computed again");
    assert!(lost("gpu_load_ratio") > usual("gpu_load_ratio"));
}

#[test]
fn sessions_that_memory_does_not_hold_are_told() {
    let told = |settings: &[&str]| {
        let (code, json, stderr) = eval(settings);
        assert_eq!(code, 0, "{stderr}");
        json["notes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|note| note.as_str().unwrap().contains("`agents.session_hit` says"))
    };
    assert!(!told(&[FEWER]));
    assert!(told(&CROWDED));
}

/// A few users fewer than GPUs serve at most, whose people take half an hour to approve.
const CROWDED: [&str; 2] = [FEWER, "agents.approval_time=\"30 min\""];
const FEWER: &str = "agents.users=900";
/// So few that sessions go on before what has ended takes their room.
const FEW: &str = "agents.users=300";

#[test]
fn sessions_that_find_no_room_are_computed_again() {
    let (usual, crowded) = (agents(&[FEWER]), agents(&CROWDED));
    // All find room beside what runs, and nearly all that the agents say is found: what has ended pushes out the longest waits.
    assert!(usual("sessions_fit_count") > usual("idle_sessions_count"));
    assert!(usual("session_found_ratio") < 0.98 && usual("session_found_ratio") > 0.979);
    assert!((agents(&[FEW])("session_found_ratio") - 0.98).abs() < 1e-9, "little has ended before all go on");
    // One wait in thirty-odd is a person's, and hardly one of those finds its session: fewer prompts are cached, and the rest
    // loads the GPUs and costs.
    assert!(crowded("sessions_fit_count") < crowded("idle_sessions_count"));
    assert!(crowded("session_found_ratio") < 0.98 && crowded("session_found_ratio") > 0.98 * 32.0 / 34.0);
    assert!(crowded("prefix_hit_ratio") < usual("prefix_hit_ratio"));
    assert!(crowded("gpu_load_ratio") > usual("gpu_load_ratio"));
    // The same GPUs are paid for by as many tasks, and what prompts take of a full replica grows by an eighth.
    let tokens = |of: &dyn Fn(&str) -> f64| -> f64 {
        ["input", "cached", "output"].map(|kind| of(&format!("cost_{kind}_per_task_usd"))).iter().sum()
    };
    assert!((tokens(&crowded) / tokens(&usual) - 1.0).abs() < 1e-9);
    let prompts = |of: &dyn Fn(&str) -> f64| of("cost_input_per_task_usd");
    assert!(prompts(&crowded) > prompts(&usual) * 1.1);
    // What is held is no more than there is room for, but for what all begin with, which is counted in each and lies there once: an
    // eighth of a session.
    assert!(crowded("kv_held_ratio") * 7.0 / 8.0 < 1.2, "{}", crowded("kv_held_ratio"));
    // A tier that holds them gives it back.
    let (code, tier, stderr) =
        eval(&[CROWDED[0], CROWDED[1], "serving.cache={ tiers = [{ tier = \"host-dram-pcie5\" }] }"]);
    assert_eq!(code, 0, "{stderr}");
    // Most of them: three in four of those that wait for half an hour, as what ended meanwhile is in the tier, too.
    let found = tier["agents"]["session_found_ratio"].as_f64().unwrap();
    let lost = |found: f64| (0.98 - found) / 0.98 * 39.4;
    assert!(lost(found) > 0.1 && lost(found) < 0.3 && lost(crowded("session_found_ratio")) > 0.8, "{found}");
    assert!(tier["agents"]["gpu_load_ratio"].as_f64().unwrap() < crowded("gpu_load_ratio"));
}

#[test]
fn more_waiting_never_finds_more_and_what_thrashes_is_a_no() {
    let mut before = 1.0;
    for minutes in [2, 6, 15, 30] {
        let waits = format!("agents.approval_time=\"{minutes} min\"");
        let wanted = [FEWER, waits.as_str()];
        let of = agents(&wanted);
        assert!(of("session_found_ratio") <= before + 1e-9, "{minutes}");
        before = of("session_found_ratio");
    }
    // Tools of a minute: every session lost makes others run longer, which leaves less room. Nothing settles at that rate.
    let (code, json, _) = eval(&["agents.tool_time=\"60 s\""]);
    assert_eq!(code, 1);
    let reason = json["infeasible"]["reason"].as_str().unwrap();
    assert!(reason.contains("sessions that wait do not all find room beside what runs"), "{reason}");
    // What it says is served at most is: fewer users do, and hardly more do not.
    let most: f64 = reason.split("replicas serve ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let asked: f64 = reason.split(' ').next().unwrap().parse().unwrap();
    let at = |part: f64| {
        let users = (1_000.0 * most / asked * part).round();
        eval(&["agents.tool_time=\"60 s\"", &format!("agents.users={users}")]).0
    };
    assert_eq!([at(0.99), at(1.01)], [0, 1]);
}

#[test]
fn replicas_without_end_leave_room_for_sessions_that_wait() {
    // Tasks as fast as they are served.
    let text = std::fs::read_to_string(SCENARIO).unwrap();
    let kept = text.lines().filter(|line| !line.starts_with("users") && !line.starts_with("task_every"));
    let text = kept.collect::<Vec<_>>().join("\n");
    let dir = program::files(&[("agents.toml", text.as_bytes())]);
    let path = dir.path().join("agents.toml");
    let run = |more: &str| {
        let set = ["--set", "serving.arrivals=\"max\"", "--set", more];
        let answer = program::run(&[&["eval", program::text(&path), "--format", "json"], &set[..]].concat());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        serde_json::from_str::<Value>(&answer.stdout).unwrap()
    };
    let of = |json: &Value, key: &str| json["serving"][key].as_f64().unwrap();
    let (short, long) = (run("agents.tool_time=\"1 s\""), run("agents.tool_time=\"20 s\""));
    for json in [&short, &long] {
        assert_eq!(json["serving"]["batch_bound"], "sessions");
        assert!(json["agents"]["session_found_ratio"].as_f64().unwrap() > 0.9, "{}", json["agents"]);
    }
    // The longer tools take, the more of memory is theirs, and the fewer run.
    assert!(of(&long, "batch_count") < of(&short, "batch_count"));
    assert!(of(&long, "requests_per_s") < of(&short, "requests_per_s"));
    // A rate near it is served with as many in decode.
    let near = format!("serving.arrivals={{ rate = \"{} request/s\" }}", of(&long, "requests_per_s") * 0.98);
    let set = ["--set", near.as_str(), "--set", "agents.tool_time=\"20 s\""];
    let answer = program::run(&[&["eval", program::text(&path), "--format", "json"], &set[..]].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
}

#[test]
fn more_tasks_than_are_served_are_a_no() {
    let (code, json, _) = eval(&["agents.users=20000"]);
    assert_eq!(code, 1);
    assert!(json["infeasible"]["reason"].as_str().unwrap().contains("8 replicas serve"), "{json}");
}

#[test]
fn what_contradicts_itself_is_refused_with_its_place() {
    for (setting, said) in [
        ("serving.input_tokens=1000", "`serving.input_tokens` follows from `agents`"),
        ("serving.arrivals=\"max\"", "`serving.arrivals` follows from `agents`"),
        ("agents.success=0", "`agents.success` is 0"),
        ("agents.reasoning_tokens=400", "reasoning is part of an answer"),
        ("agents.steps=0.5", "`agents.steps`"),
        ("agents.added_tokens=-1e6", "`agents.added_tokens`"),
        ("agents.shared_tokens=-1e6", "`agents.shared_tokens`"),
        ("agents.failed.added_tokens=-1e6", "`agents.failed.added_tokens`"),
        ("agents.reasoning_tokens=-1e6", "`agents.reasoning_tokens`"),
        ("agents.output_tokens=0", "`agents.output_tokens`"),
        ("agents.success=64", "64% is 0.64"),
        ("agents.failed.output_tokens=-1", "`agents.failed.output_tokens`"),
        ("agents.users=0", "`agents.users`"),
    ] {
        // Of keys that follow from the agents nothing is said, whatever is wrong with these.
        let (code, _, stderr) = eval(&[setting]);
        assert_eq!(code, 2, "{setting}");
        assert!(stderr.contains(said) && stderr.matches("error[").count() == 1, "{setting}: {stderr}");
    }
}

#[test]
fn calls_that_lost_their_session_hold_the_others_up() {
    let times = |settings: &[&str]| {
        let (code, json, stderr) = eval(settings);
        assert_eq!(code, 0, "{stderr}");
        ["ttft_p50_s", "ttft_p99_s", "queue_s"].map(|key| json["serving"][key].as_f64().unwrap())
    };
    // One call in fifty computes its tens of thousands of tokens again, in seconds, behind which others wait.
    let [half, last, waits] = times(&["agents.users=700", "agents.session_hit=0.98"]);
    let [kept_half, kept_last, kept_waits] = times(&["agents.users=700", "agents.session_hit=1"]);
    assert!(last > 10.0 * half && kept_last < 5.0 * kept_half, "{last} of {half}, {kept_last} of {kept_half}");
    assert!(waits > 5.0 * kept_waits && half > kept_half);
}

/// A cache for sessions that wait: its share of the GPUs' memory, and tiers beyond.
fn with_tiers(own_share: f64, tiers: &str, more: &str) -> (i32, Value, String) {
    eval(&[&format!("serving.cache={{ own_share = {own_share}, tiers = [{tiers}]{more} }}")])
}

const HOST: &str = "{ tier = \"host-dram-pcie5\" }";
const FLASH: &str = "{ tier = \"remote-flash-400g\" }";

#[test]
fn sessions_that_wait_go_to_tiers_and_come_back() {
    // Little of the GPUs' own memory: what falls out of it has to be computed again, which is more than is served.
    let (code, _, stderr) = with_tiers(0.02, "", "");
    assert_eq!(code, 1, "{stderr}");
    let of =
        |json: &Value, group: &str, key: &str| json[group][key].as_f64().unwrap_or_else(|| panic!("{key}: {json}"));
    let (code, host, stderr) = with_tiers(0.02, HOST, "");
    assert_eq!(code, 0, "{stderr}");
    let plain = eval(&[FEW]).1;
    // All that the agents say is found: 98% of further steps, a share of the calls as their steps and retries make it.
    let (own, tier) = (of(&host, "serving", "hits.own_ratio"), of(&host, "serving", "hits.tier_1_ratio"));
    let further = (0.64 * 32.0 + 0.36 * 49.0) / of(&host, "agents", "calls_per_task_count");
    assert!(((own + tier) / (0.98 * further) - 1.0).abs() < 1e-6, "{own} {tier} {further}");
    assert!(own > 0.0 && tier > own, "{own} {tier}");
    let cached = |json: &Value| of(json, "agents", "cached_tokens_per_task_count");
    assert!((cached(&host) / cached(&plain) - 1.0).abs() < 1e-6);
    // Loads are waited for, and keep the links busy by what is fetched: of 64 links of 55.4 GB/s.
    let (fetched, waited) = (of(&host, "agents", "kv_fetch_gbytes_per_s"), of(&host, "serving", "cache_load_s"));
    assert!(waited > 0.0 && of(&host, "serving", "ttft_s") > waited);
    let busy = of(&host, "serving", "cache_links_busy_ratio");
    assert!((busy / (fetched / (64.0 * 55.4)) - 1.0).abs() < 0.05, "{busy} {fetched}");
    // What a call adds goes to the tier as it comes.
    let written = of(&host, "agents", "kv_store_gbytes_per_s") / (64.0 * 55.1);
    assert!((of(&host, "serving", "cache_writes_busy_ratio") / written - 1.0).abs() < 0.3, "{written}");
    // Tasks pay for all of it, and a tier that is bought makes them dearer.
    let (_, flash, _) = with_tiers(0.02, FLASH, "");
    let success = |json: &Value| of(json, "agents", "cost_per_success_usd");
    assert!(of(&flash, "cost", "memory_tiers_usd") > 0.0 && success(&flash) > success(&host));
}

#[test]
fn what_follows_from_tasks_is_not_said_to_be_given() {
    let tiers = format!("serving.cache={{ own_share = 0.4, tiers = [{HOST}] }}");
    let answer =
        program::run(&["explain", SCENARIO, "serving.prefix_found_ratio", "--format", "json", "--set", &tiers]);
    let tree: Value = serde_json::from_str(&answer.stdout).unwrap();
    let inputs = tree["inputs"].as_array().unwrap();
    let origin = |key: &str| inputs.iter().find(|input| input["key"] == key).map(|input| input["origin"].clone());
    assert_eq!(origin("serving.input_tokens"), Some("by the tasks of the agents".into()), "{tree}");
    assert_eq!(origin("agents.session_hit"), Some("said by the scenario".into()), "{tree}");
    assert_eq!(origin("serving.cache.popularity"), None, "{tree}");
}

#[test]
fn a_cache_with_room_for_all_sessions_changes_no_token() {
    let cache = format!("serving.cache={{ own_share = 0.4, tiers = [{HOST}] }}");
    let (plain, roomy) = (eval(&[FEW]).1, eval(&[FEW, &cache]).1);
    for key in ["cached_tokens_per_task_count", "input_tokens_per_task_count", "kv_idle_bytes"] {
        let of = |json: &Value| json["agents"][key].as_f64().unwrap();
        assert!((of(&roomy) / of(&plain) - 1.0).abs() < 1e-6, "{key}");
    }
}

#[test]
fn sessions_sent_anywhere_are_found_where_all_see_them() {
    let found = |json: &Value, key: &str| json["serving"][key].as_f64().unwrap_or_else(|| panic!("{key}"));
    let (code, flash, stderr) = with_tiers(0.2, FLASH, ", routing = \"balanced\"");
    assert_eq!(code, 0, "{stderr}");
    // One of eight groups has it by chance; the rest is fetched.
    assert!((found(&flash, "hits.tier_1_ratio") / found(&flash, "hits.own_ratio") - 7.0).abs() < 0.5);
    let (balanced, aware) = (found(&flash, "hits.balanced_ratio"), found(&flash, "hits.cache_aware_ratio"));
    assert!((balanced / aware - 1.0).abs() < 1e-6, "{balanced} {aware}");
    // Memory of each node alone is found one time in eight, and serves too little.
    let (code, _, stderr) = with_tiers(0.2, HOST, ", routing = \"balanced\"");
    assert_eq!(code, 1, "{stderr}");
}

#[test]
fn a_cache_beside_agents_keeps_their_sessions_and_nothing_else() {
    for (more, said) in [
        (", prefixes = 100", "`serving.cache.prefixes` follows from `agents`"),
        (", prefix_tokens = 100", "`serving.cache.prefix_tokens` follows from `agents`"),
        (", popularity = 0.7", "`serving.cache.popularity` follows from `agents`"),
    ] {
        let (code, _, stderr) = with_tiers(0.2, HOST, more);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains(said) && stderr.contains("keeps their sessions"), "{stderr}");
    }
}
