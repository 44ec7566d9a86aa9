//! `collective` and `fabric`: what they answer, and the answers that published cases call right.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod collective;
mod fabric;
mod workloads;

use assert_cmd::Command;
use serde_json::Value;

fn run(line: &str) -> (i32, String, String) {
    let output = Command::cargo_bin("clusterplan").unwrap().args(line.split(' ')).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(line: &str) -> Value {
    let (code, out, error) = run(&format!("{line} --format json"));
    assert_eq!(code, 0, "{line}: {error}");
    serde_json::from_str(&out).unwrap()
}

fn on_h100(call: &str) -> Value {
    json(&format!("collective {call} --node dgx-h100 --fabric quantum-2-ndr"))
}

fn busbw(answer: &Value) -> f64 {
    answer["answer"]["busbw_gbytes_per_s"].as_f64().unwrap()
}

#[track_caller]
fn near(figure: f64, measured: f64, share: f64) {
    assert!((figure / measured - 1.0).abs() <= share, "{figure}, measured {measured}");
}

#[test]
fn what_cannot_be_is_said() {
    let (code, _, error) = run("fabric --node dgx-h100 --fabric quantum-2-ndr --accelerators 100");
    assert_eq!(code, 2);
    assert!(error.contains("do not fill nodes of 8"), "{error}");
    let (code, _, error) = run("fabric --node dgx-h100 --fabric quantum-2-ndr --accelerators 80000 --tiers 2");
    assert_eq!(code, 1);
    assert!(error.contains("2 tiers reach"), "{error}");
    let (code, _, error) =
        run("collective all_gather --node dgx-h100 --fabric quantum-2-ndr --ranks 16 --bytes 1MB --algorithm tree");
    assert_eq!(code, 1, "{error}");
    let (code, _, error) = run("collective all_gather --node dgx-h10 --fabric quantum-2-ndr --ranks 16 --bytes 1MB");
    assert_eq!(code, 2);
    assert!(error.contains("did you mean \"dgx-h100\"?"), "{error}");
}

#[test]
fn sites_are_bought_and_timed_together() {
    let between = "--sites 2 --distance 100km --site-bandwidth 51.2Tbit/s";
    let quote = json(&format!("fabric --node dgx-h100 --fabric roce-400g --accelerators 16384 {between}"));
    let fabric = &quote["fabric"];
    // 128 links of 400G a site, on both sides of routers of 36 ports.
    assert_eq!(fabric["long_haul_links_of_a_site_count"], 128);
    assert_eq!(fabric["border_routers_count"], 2 * 8);
    let count = |id: &str| {
        let parts = quote["parts"].as_array().unwrap();
        parts
            .iter()
            .filter(|part| part["id"] == id && part["tier"] == "site")
            .map(|part| part["count"].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!((count("400g-zr-qsfp-dd"), count("fibre-smf-duplex")), (256, 256));
    // Two pairs of 64 wavelengths over 100 km, leased by the kilometre; one site leases none.
    let leased = |quote: &Value| {
        let lines = quote["lines"].as_array().unwrap().clone();
        lines.into_iter().find(|line| line["per"] == "fibre_km")
    };
    let lease = leased(&quote).unwrap();
    assert_eq!((lease["quantity"].as_f64(), lease["unit_amount_usd"].as_f64()), (Some(200.0), Some(600.0)));
    let one = json("fabric --node dgx-h100 --fabric roce-400g --accelerators 8192");
    assert_eq!(leased(&one), None);
    assert_eq!(fabric["nics_count"].as_u64().unwrap(), 2 * one["fabric"]["nics_count"].as_u64().unwrap());
    // A hundred kilometres are 490 us of light, there and back for an all-reduce, and twice that around a ring.
    let time = |rest: &str| {
        let call = "collective all_reduce --node dgx-h100 --fabric roce-400g --ranks 8192 --bytes 8MiB";
        let answer = json(&format!("{call} {rest}"));
        answer["answer"]["time_us"].as_f64().unwrap()
    };
    let (near_by, far) = ("--sites 2 --distance 1m --site-bandwidth 51.2Tbit/s", between);
    for (algorithm, light) in [("tree-ll128", 2.0 * 489.7), ("ring-ll128", 4.0 * 489.7)] {
        let grown =
            time(&format!("{far} --algorithm {algorithm}")) - time(&format!("{near_by} --algorithm {algorithm}"));
        near(grown, light, 0.01);
    }
    // Farther than the module reaches, uneven nodes, and a torus are refused.
    let refused = |rest: &str| run(&format!("fabric --node dgx-h100 --fabric roce-400g --accelerators 16384 {rest}"));
    let (code, _, error) = refused("--sites 2 --distance 200km --site-bandwidth 1Tbit/s");
    assert_eq!(code, 2);
    assert!(error.contains("farther than the 120 km"), "{error}");
    assert_eq!(refused("--sites 2 --distance 200km --site-bandwidth 1Tbit/s --long-haul 400g-zr-plus").0, 0);
    let (code, _, error) = refused("--sites 3 --distance 10km --site-bandwidth 1Tbit/s");
    assert_eq!(code, 1);
    assert!(error.contains("do not divide over 3 sites"), "{error}");
    assert_eq!(refused("--sites 2 --distance 10km --site-bandwidth 1Tbit/s --topology torus").0, 2);
}
