//! `plan` for tenants: together, each alone, and each with replicas of its own on common nodes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod planned;
mod program;

use planned::{number, run, setting};
use serde_json::Value;

const ONE_SYSTEM: &str = "plan.vary={ \"cluster.node\" = [\"hgx-h100-8\"], \"cluster.accelerators\" = \"auto\" }";

fn of(tenants: &str, more: &[&str]) -> Value {
    let tenants = format!("serving.tenants={tenants}");
    let settings = [&[tenants.as_str(), "serving.arrivals=\"tenants\"", ONE_SYSTEM], more].concat();
    let (code, plan, stderr) = run("plan", &settings);
    assert_eq!(code, 0, "{stderr}");
    plan
}

fn at(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} of {value}"))
}

#[test]
fn a_tenant_alone_has_what_a_plan_for_it_alone_says() {
    let plan = of(
        "[{ count = 3, mean = \"4 request/s\", peak = \"24 request/s\" }, { count = 2, mean = \"1 request/s\", peak = \"5 request/s\", limits = { tpot_p95 = \"18 ms\", ttft_p95 = \"800 ms\" } }]",
        &["serving.spare_replicas=1"],
    );
    let mut sums = [0.0; 2];
    for (place, mean, peak, limits) in [
        (0, 4.0, 24.0, "{ ttft_p95 = \"1 s\", tpot_p95 = \"40 ms\" }"),
        (1, 1.0, 5.0, "{ tpot_p95 = \"18 ms\", ttft_p95 = \"800 ms\" }"),
    ] {
        let rate = format!("serving.arrivals={{ rate = \"{mean} request/s\" }}");
        let peak = format!("serving.peak_to_mean={}", peak / mean);
        let limits = format!("serving.limits={limits}");
        let (code, own, stderr) = run("plan", &[&rate, &peak, &limits, ONE_SYSTEM, "serving.spare_replicas=1"]);
        assert_eq!(code, 0, "{stderr}");
        assert!(own.get("apart").is_none(), "nobody shares");
        let tenant = &plan["apart"]["tenants"][place];
        let gpus = f64::from(setting(&own["best"], "cluster.accelerators"));
        assert!((at(tenant, "/alone/accelerators_count") - gpus).abs() < 1e-9, "{gpus} and {tenant}");
        let cost = number(&own["best"], "cost", "total_usd");
        assert!((at(tenant, "/alone/total_usd") / cost - 1.0).abs() < 1e-12);
        sums[0] += at(tenant, "/count") * gpus;
        sums[1] += at(tenant, "/count") * cost;
    }
    // All of them add up, and what sharing saves is of that.
    let (alone, together) = (&plan["apart"]["alone"], number(&plan["best"], "cost", "total_usd"));
    assert!((at(alone, "/accelerators_count") - sums[0]).abs() < 1e-9);
    assert!((at(alone, "/total_usd") / sums[1] - 1.0).abs() < 1e-12);
    assert!((at(alone, "/sharing_saves_ratio") - (1.0 - together / sums[1])).abs() < 1e-12);
}

#[test]
fn one_tenant_alone_is_all_of_them() {
    let plan = of("{ count = 1, mean = \"10 request/s\", peak = \"30 request/s\", busiest_hour = 14 }", &[]);
    let (alone, together) = (&plan["apart"]["alone"], number(&plan["best"], "cost", "total_usd"));
    assert!(
        (at(alone, "/total_usd") / together - 1.0).abs() < 1e-12 && at(alone, "/sharing_saves_ratio").abs() < 1e-12
    );
}

#[test]
fn small_tenants_take_slices_that_keep_their_limits() {
    let small = "{ count = 40, mean = \"0.3 request/s\", peak = \"1 request/s\" }";
    let fast = "{ count = 10, mean = \"0.2 request/s\", peak = \"2 request/s\", limits = { tpot_p95 = \"20 ms\", ttft_p95 = \"500 ms\" } }";
    let model = "serving.model=llama-3.1-8b";
    let plan = of(&format!("[{small}, {fast}]"), &[model]);
    let apart = &plan["apart"];
    let gpus = |how: &str| at(apart, &format!("/{how}/accelerators_count"));
    let together = f64::from(setting(&plan["best"], "cluster.accelerators"));
    assert!(together <= gpus("beside") && gpus("beside") < gpus("alone"));
    let mut taken = 0.0;
    for (place, peak, limits) in [
        (0, 1.0, "{ ttft_p95 = \"1 s\", tpot_p95 = \"40 ms\" }"),
        (1, 2.0, "{ tpot_p95 = \"20 ms\", ttft_p95 = \"500 ms\" }"),
    ] {
        let tenant = &apart["tenants"][place];
        taken += at(tenant, "/count") * at(tenant, "/beside/accelerators_count");
        // `eval` on a node whose GPUs are cut so says the same of as many tenants as have slices on it.
        let slice = format!("serving.slice=\"{}\"", tenant["beside"]["slice"].as_str().unwrap());
        let own = at(tenant, "/beside/replicas_count");
        let parts = own / at(tenant, "/beside/accelerators_count");
        let kept = |replicas: f64| {
            let rate = format!("serving.arrivals={{ rate = \"{} request/s\" }}", peak / replicas * parts * 8.0);
            let limits = format!("serving.limits={limits}");
            let rest = ["serving.layout={ tensor = 1 }", "cluster.accelerators=8", model, "serving.peak_to_mean=1"];
            let (code, json, _) = run("eval", &[&[slice.as_str(), &rate, &limits], &rest[..]].concat());
            code == 0 && json["serving"]["limits_kept"] == true
        };
        assert!(kept(own), "{tenant}");
        assert!(own < 2.0 || !kept(own - 1.0), "{tenant}");
    }
    assert!((gpus("beside") - (taken / 8.0).ceil() * 8.0).abs() < 1e-9, "{taken}");
    // Where slices are refused to them, they take more.
    let whole = of(&format!("[{small}, {fast}]"), &[model, "serving.layout={ tensor = 1 }"]);
    assert!(whole["apart"]["tenants"][0]["beside"]["slice"].is_null());
    assert!(at(&whole["apart"], "/beside/accelerators_count") > gpus("beside"));
}

#[test]
fn a_strict_tenant_makes_sharing_dear_and_the_page_says_so() {
    let many = "{ count = 1, mean = \"200 request/s\", peak = \"200 request/s\" }";
    let strict = "{ count = 1, mean = \"0.5 request/s\", peak = \"0.5 request/s\", limits = { tpot_p95 = \"9 ms\", ttft_p95 = \"400 ms\" } }";
    let loose = "serving.limits={ tpot_p95 = \"80 ms\", ttft_p95 = \"5 s\" }";
    let plan = of(&format!("[{many}, {strict}]"), &[loose]);
    assert!(at(&plan["apart"], "/alone/sharing_saves_ratio") < 0.0, "{}", plan["apart"]["alone"]);
    let tenants = format!("serving.tenants=[{many}, {strict}]");
    let settings = ["--set", &tenants, "--set", loose, "--set", "serving.arrivals=\"tenants\"", "--set", ONE_SYSTEM];
    let page = program::run(&[&["plan", "scenarios/plan-llama3.1-70b-40-rps.toml"], &settings[..]].concat()).stdout;
    assert!(page.contains("as all then keep the strictest limits of any"), "{page}");
}
