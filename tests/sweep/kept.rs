//! What is kept of the rows of a sweep, and sweeps that stop, go on and are put together.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{AXES, Bench, GPT, LAYOUTS, SEARCHED, clusterplan, rows, stdout};

#[test]
fn the_best_layout_is_what_a_search_finds() {
    let bench = Bench::new();
    let path = bench.scenario(SEARCHED, LAYOUTS);
    let path = path.to_str().unwrap();
    let small = ["--set", "cluster.accelerators=64", "--set", "training.layout.micro_batch=1", "--format", "json"];
    let swept = stdout(&[&["sweep", path, "--top", "1", "--by", "training.iteration_s"], &small[..]].concat());
    let swept: serde_json::Value = serde_json::from_str(&swept).unwrap();
    let searched = stdout(&[&["eval", path], &small[..]].concat());
    let searched: serde_json::Value = serde_json::from_str(&searched).unwrap();
    assert_eq!(swept["top"][0]["training.iteration_s"], searched["training"]["iteration_s"]);
    assert_eq!(swept["top"][0]["cost.usd_per_run"], searched["cost"]["usd_per_run"]);
}

#[test]
fn what_is_kept_is_what_all_rows_say() {
    let bench = Bench::new();
    let path = bench.scenario(GPT, AXES);
    let path = path.to_str().unwrap();
    let all = rows(&stdout(&["sweep", path, "--format", "csv"]));
    let cost = |row: &BTreeMap<String, String>| row["cost.usd_per_run"].parse::<f64>().unwrap();
    let days = |row: &BTreeMap<String, String>| row["training.effective_days"].parse::<f64>().unwrap();
    let feasible: Vec<_> = all.iter().filter(|row| row["feasible"] == "true").collect();
    let kept = stdout(&[
        "sweep",
        path,
        "--format",
        "json",
        "--top",
        "3",
        "--by",
        "cost.usd_per_run",
        "--pareto",
        "cost.usd_per_run,training.effective_days",
        "--group-by",
        "cluster.accelerators,cluster.fabric",
        "--quantiles",
        "cost.usd_per_run",
        "--where",
        "finance.utilisation < 0.7 or cluster.fabric = roce-400g",
    ]);
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    let mut meets: Vec<_> = feasible
        .iter()
        .filter(|row| row["finance.utilisation"] == "0.6" || row["cluster.fabric"] == "roce-400g")
        .collect();
    assert_eq!(kept["feasible_count"], meets.len());
    let front = meets.iter().filter(|row| {
        !meets.iter().any(|other| {
            cost(other) <= cost(row) && days(other) <= days(row) && (cost(other) < cost(row) || days(other) < days(row))
        })
    });
    assert_eq!(kept["pareto"].as_array().unwrap().len(), front.count());
    meets.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    for (row, kept) in meets.iter().zip(kept["top"].as_array().unwrap()) {
        assert_eq!(kept["cost.usd_per_run"].as_f64().unwrap().to_string(), row["cost.usd_per_run"]);
    }
    assert_eq!(kept["groups"].as_array().unwrap().len(), 4);
    for group in kept["groups"].as_array().unwrap() {
        let of = |row: &&&&BTreeMap<String, String>| {
            row["cluster.fabric"] == group["cluster.fabric"].as_str().unwrap()
                && row["cluster.accelerators"].parse::<f64>().ok() == group["cluster.accelerators"].as_f64()
        };
        let least = meets.iter().filter(of).map(|row| cost(row)).fold(f64::INFINITY, f64::min);
        assert!((group["cost.usd_per_run"].as_f64().unwrap() - least).abs() < 1e-6);
    }
    let spread = &kept["quantiles"][0];
    assert_eq!(spread["rows_count"], meets.len());
    assert!((spread["least"].as_f64().unwrap() - cost(meets[0])).abs() < 1e-6);
    // The rank below which half of the rows lie, within a thousandth.
    let median = cost(meets[(meets.len() - 1) / 2]);
    assert!((spread["p50"].as_f64().unwrap() / median - 1.0).abs() < 3e-3, "{spread} {median}");
}

#[test]
fn a_sweep_that_is_killed_goes_on_where_it_was() {
    let bench = Bench::new();
    let path = bench.scenario(SEARCHED, LAYOUTS);
    let (path, whole, broken) = (path.to_str().unwrap(), bench.path("whole.csv"), bench.path("broken.csv"));
    let sweep = |output: &Path| {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("clusterplan"));
        command.args(["sweep", path, "--set", "cluster.accelerators=64", "--set", "training.layout.micro_batch=1"]);
        command.args(["--part-bytes", "1000", "-o", output.to_str().unwrap()]);
        command.stderr(std::process::Stdio::null());
        command
    };
    assert!(sweep(&whole).status().unwrap().success());
    let parts = || {
        let there = fs::read_dir(bench.path("broken.csv.parts"));
        there.map_or(0, |there| {
            there
                .filter(|entry| {
                    entry.as_ref().is_ok_and(|entry| entry.path().extension().is_some_and(|end| end == "csv"))
                })
                .count()
        })
    };
    // Killed ten times at whatever it is doing: after a number of further parts and of turns of this loop that are drawn.
    let mut state = 7_u32;
    let mut drawn = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    let (mut killed, mut tries) = (0, 0);
    while killed < 10 {
        tries += 1;
        assert!(tries < 100, "killed {killed} times in {tries} tries");
        let wanted = parts() + drawn(4) as usize;
        let mut child = sweep(&broken).spawn().unwrap();
        while child.try_wait().unwrap().is_none() && parts() <= wanted {
            std::thread::yield_now();
        }
        for _ in 0..drawn(300) {
            std::thread::yield_now();
        }
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            killed += 1;
        }
        child.wait().unwrap();
        if broken.exists() {
            // It came to its end before; the next begins anew.
            assert!(fs::read(&whole).unwrap() == fs::read(&broken).unwrap());
            fs::remove_file(&broken).unwrap();
        }
    }
    assert!(sweep(&broken).status().unwrap().success());
    assert!(fs::read(&whole).unwrap() == fs::read(&broken).unwrap());
    assert!(!bench.path("broken.csv.parts").exists());
}

#[test]
fn parts_made_apart_are_the_whole() {
    let bench = Bench::new();
    for (name, axes, small) in [
        (GPT, AXES, &[][..]),
        (SEARCHED, LAYOUTS, &["--set", "cluster.accelerators=64", "--set", "training.layout.micro_batch=1"][..]),
    ] {
        let path = bench.scenario(name, axes);
        let path = path.to_str().unwrap();
        let file = |name: &str| bench.path(name).display().to_string();
        let make = |output: &str, shard: &[&str]| {
            stdout(&[&["sweep", path, "-o", output], small, shard].concat());
        };
        make(&file("all.csv"), &[]);
        let names: Vec<String> = (0..3).map(|index| file(&format!("{index}.csv"))).collect();
        for (index, output) in names.iter().enumerate() {
            make(output, &["--shard", &format!("{index}/3")]);
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let merged = file("merged.csv");
        stdout(&[&["merge", "-o", &merged], &[names[2], names[0], names[1]][..]].concat());
        assert!(fs::read(&merged).unwrap() == fs::read(file("all.csv")).unwrap(), "{name}");

        let refused = |files: &[&str], told: &str| {
            let output = clusterplan(&[&["merge", "-o", &merged], files].concat()).output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2));
            assert!(stderr.contains(told), "{stderr}");
        };
        refused(&names[..2], "2 is missing");
        refused(&[names[0], names[0]], "the same part");
        refused(&[&file("all.csv")], "says nothing");
        let mut bytes = fs::read(names[1]).unwrap();
        let last = bytes.len() - 3;
        bytes[last] ^= 1;
        fs::write(names[1], bytes).unwrap();
        refused(&names, "damaged");
    }
}

#[test]
fn the_order_turns_where_the_costs_cross() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sweeps/fabric-by-size.toml");
    let answer: serde_json::Value =
        serde_json::from_str(&stdout(&["sweep", path.to_str().unwrap(), "--format", "json"])).unwrap();
    let turns = answer["break_even"]["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 24);
    let mut crossings = 0;
    for turn in turns {
        let along: Vec<(f64, f64)> = serde_json::from_value(turn["along"].clone()).unwrap();
        assert!(along.is_sorted_by(|a, b| a.0 < b.0 && a.1 >= b.1), "a better spine costs no more: {turn}");
        let Some(without) = turn["without"].as_f64() else {
            // Three tiers of these switches do not reach so many nodes.
            assert!(turn["of"]["cluster.accelerators"].as_str().unwrap().parse::<u32>().unwrap() >= 65_536);
            continue;
        };
        match (turn["value"].as_f64(), turn["winner"].as_str()) {
            (Some(value), None) => {
                crossings += 1;
                let below = along.iter().rfind(|point| point.0 <= value).unwrap();
                let above = along.iter().find(|point| point.0 >= value).unwrap();
                assert!(below.1 >= without && without >= above.1, "{turn}");
            }
            (None, Some("with")) => assert!(along.iter().all(|point| point.1 <= without), "{turn}"),
            (None, Some("without")) => assert!(along.iter().all(|point| point.1 > without), "{turn}"),
            _ => panic!("{turn}"),
        }
    }
    assert!(crossings > 0);
}
