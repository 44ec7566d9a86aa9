//! Prefixes of prompts kept in tiers of memory: what is found, what it costs, and links that fill up.

use serde_json::Value;

use super::{eval, figure, program};

const TIERS: &str = "scenarios/serve-llama3.1-70b-64-h100-prefix-tiers.toml";

fn cached(settings: &[&str]) -> (i32, Value, String) {
    let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let answer = program::run(&[&["eval", TIERS, "--format", "json"], &set[..]].concat());
    (answer.code, serde_json::from_str(&answer.stdout).unwrap_or(Value::Null), answer.stderr)
}

#[test]
fn tiers_find_more_prefixes_and_are_paid_for() {
    let of = |tiers: &str| {
        let (code, json, stderr) = cached(&[&format!("serving.cache.tiers={tiers}")]);
        assert_eq!(code, 0, "{stderr}");
        json
    };
    let none = of("[]");
    let host = of("[{ tier = \"host-dram-pcie5\" }]");
    let more = of("[{ tier = \"host-dram-pcie5\", capacity = \"1 TB\" }]");
    let hit = |json: &Value| json["serving"]["prefix_found_ratio"].as_f64().unwrap();
    assert!(hit(&none) < hit(&host) && hit(&host) < hit(&more) && hit(&more) <= 0.75);
    assert!(figure(&more, "ttft_s") < figure(&none, "ttft_s"));
    assert!(figure(&more, "requests_per_s") > figure(&none, "requests_per_s"));
    // What the nodes have, 2 TB for eight GPUs, costs nothing more. A terabyte a GPU is 750 GB more, 6 TB in each of nine nodes,
    // a spare among them: 24 modules of 256 GB at $4,812.
    let price = |json: &Value| json["cost"]["memory_tiers_usd"].as_f64().unwrap();
    assert!(price(&none).abs() < 1e-9 && price(&host).abs() < 1e-9);
    assert!((price(&more) - 9.0 * 24.0 * 4_812.0).abs() < 1e-6, "{}", price(&more));
    let capex = |json: &Value| json["cost"]["capex_usd"].as_f64().unwrap();
    assert!(capex(&more) - capex(&host) >= price(&more));
    // The link of a prefix of 6,000 tokens: 80 layers x 2 x 8 heads x 128 bytes a token over four links of 55.4 GB/s, 2 us, and
    // the wait for loads before it on links that are busy for a small share of the time.
    let transfer = 80.0 * 2.0 * 8.0 * 128.0 * 6_000.0 / (4.0 * 55.4e9);
    let busy = figure(&host, "cache_links_busy_ratio");
    let load = transfer * (1.0 + busy / (2.0 * (1.0 - busy))) + 2e-6;
    let waited = figure(&host, "cache_load_s") / figure(&host, "hits.tier_1_ratio");
    assert!((waited / load - 1.0).abs() < 1e-6, "{waited} {load}");
}

#[test]
fn tiers_draw_power_and_stand_in_racks() {
    let of = |tiers: &str| cached(&[&format!("serving.cache.tiers={tiers}")]).1;
    let none = of("[]");
    let it = |json: &Value| json["facility"]["it_kw"].as_f64().unwrap();
    for (tiers, watts) in [
        // A drive of 25 W at each of 72 GPUs beside the 3.84 TB in the node, and two cards in each of nine nodes.
        ("[{ tier = \"local-nvme-gen5\", capacity = \"15.36 TB\" }]", 72.0 * 25.0),
        ("[{ tier = \"cxl-gen5\" }]", 9.0 * 2.0 * 70.0),
    ] {
        let some = of(tiers);
        assert!((it(&some) - it(&none) - watts / 1e3).abs() < 1e-6, "{tiers}: {} {}", it(&some), it(&none));
        assert_eq!(some["fabric"]["parts"], none["fabric"]["parts"], "{tiers}");
    }
}

#[test]
fn parts_of_tiers_are_whole_in_each_host_or_at_each_gpu_and_priced_by_the_gigabyte() {
    let of = |node: &str, tier: &str| {
        let node = format!("cluster.node=\"{node}\"");
        let (code, json, stderr) = cached(&[&node, "cluster.spares=0", &format!("serving.cache.tiers=[{{ {tier} }}]")]);
        assert_eq!(code, 0, "{tier}: {stderr}");
        let lines = json["cost"]["lines"].as_array().unwrap();
        let line = lines.iter().find(|line| line["name"].as_str().unwrap().starts_with("Memory tier"));
        let bought = json["cost"]["memory_tiers"][0].clone();
        let paid = line.map_or(0.0, |line| line["quantity"].as_f64().unwrap());
        assert!((paid - bought["parts_count"].as_f64().unwrap()).abs() < 1e-9, "{tier}: {paid} and {bought}");
        bought
    };
    // Eight nodes of eight GPUs, of which `hgx-h200-8` has 2 TB of memory and no drives.
    for (tier, parts, per_gb) in [
        ("tier = \"local-nvme-gen5\", capacity = \"100 GB\"", 64, 10_950.0 / 30_000.0),
        ("tier = \"local-nvme-gen5\", capacity = \"30 TB\"", 64, 10_950.0 / 30_000.0),
        ("tier = \"local-nvme-gen5\", capacity = \"60 TB\"", 128, 10_950.0 / 30_000.0),
        ("tier = \"host-dram-pcie5\", capacity = \"251 GB\"", 8, 4_812.0 / 256.0),
        // 400 GB are two modules.
        ("tier = \"host-dram-pcie5\", capacity = \"300 GB\"", 16, 4_812.0 / 256.0),
        ("tier = \"cxl-gen5\", capacity = \"64 GB\"", 8, 11_600.0 / 512.0),
        ("tier = \"cxl-gen5\", capacity = \"65 GB\"", 16, 11_600.0 / 512.0),
        // Servers are shared by all.
        ("tier = \"remote-dram-400g\", capacity = \"100 GB\"", 2, 108_000.0 / 4_096.0),
    ] {
        let bought = of("hgx-h200-8", tier);
        assert_eq!(bought["parts_count"], parts, "{tier}");
        assert!((bought["usd_per_gb"].as_f64().unwrap() / per_gb - 1.0).abs() < 1e-9, "{tier}: {bought}");
    }
    let own = of("hgx-h200-8", "tier = \"host-dram-pcie5\"");
    assert_eq!((&own["part"], &own["parts_count"], &own["usd_per_gb"]), (&Value::Null, &0.into(), &Value::Null));
    let (set, tier) = ("--set", "serving.cache.tiers=[{ tier = \"host-dram-pcie5\", capacity = \"300 GB\" }]");
    let page = program::run(&["eval", TIERS, set, tier]).stdout;
    assert!(page.contains("Memory tier") && page.contains("A GB") && page.contains("$18.8"), "{page}");
}

#[test]
fn hosts_take_so_many_parts_of_a_tier() {
    for (tier, most) in [
        // 32 modules of 256 GB, 16 drives of 30 TB and two cards of 512 GB, over eight GPUs.
        ("host-dram-pcie5", "1.024 TB"),
        ("local-nvme-gen5", "60 TB"),
        ("cxl-gen5", "128 GB"),
    ] {
        let with = |capacity: &str| {
            cached(&[&format!("serving.cache.tiers=[{{ tier = \"{tier}\", capacity = \"{capacity}\" }}]")])
        };
        let (code, _, stderr) = with(most);
        assert_eq!(code, 0, "{tier}: {stderr}");
        for more in ["61 TB", "999 EB"] {
            let (code, _, stderr) = with(more);
            assert_eq!(code, 2, "{tier}: {stderr}");
            assert!(stderr.contains(&format!("{most} a GPU")) && stderr.contains("ask for no more"), "{stderr}");
        }
    }
    // What comes with a node is not asked about.
    let (code, _, stderr) = cached(&[
        "cluster.node=\"gb200-nvl72\"",
        "cluster.accelerators=72",
        "cluster.site=\"us-colo-liquid\"",
        "serving.cache.tiers=[{ tier = \"grace-lpddr\" }, { tier = \"local-nvme-gen5\" }]",
    ]);
    assert_eq!(code, 0, "{stderr}");
    // A catalog of one's own says how many.
    let folder = tempfile::tempdir().unwrap();
    let tiers = folder.path().join("memory_tiers");
    std::fs::create_dir(&tiers).unwrap();
    let text = std::fs::read_to_string("catalogs/memory_tiers/cxl-gen5.toml").unwrap();
    let overlay = |places: &str| {
        std::fs::write(tiers.join("cxl-own.toml"), text.replace("places = 2\n", places)).unwrap();
        let tier = "serving.cache.tiers=[{ tier = \"cxl-own\", capacity = \"256 GB\" }]";
        program::run(&["eval", TIERS, "--catalog", folder.path().to_str().unwrap(), "--set", tier])
    };
    let [own, none] = ["places = 4\n", ""].map(overlay);
    assert_eq!(own.code, 0, "{}", own.stderr);
    assert!(none.code == 2 && none.stderr.contains("`places` are of parts that go into hosts"), "{}", none.stderr);
}

#[test]
fn servers_of_remote_tiers_take_ports_of_the_networks() {
    let of = |tiers: &str| cached(&[&format!("serving.cache.tiers={tiers}")]).1;
    let none = of("[]");
    for (tiers, servers, watts, price) in [
        // A terabyte a GPU on 72 of them, in servers of 4.096 TB; 20 in servers of 180.
        ("[{ tier = \"remote-dram-400g\" }]", 18.0, 706.0, 108_000.0),
        ("[{ tier = \"remote-flash-400g\" }]", 8.0, 696.0, 96_700.0),
    ] {
        let some = of(tiers);
        let more = |group: &str, key: &str| {
            let of = |json: &Value| json[group][key].as_f64().unwrap_or_else(|| panic!("{group}.{key}"));
            of(&some) - of(&none)
        };
        let parts = |json: &Value, kind: &str, tier: &str| -> f64 {
            let parts = json["fabric"]["parts"].as_array().unwrap().iter();
            let of_kind = parts.filter(|part| part["kind"] == kind && part["tier"] == tier);
            of_kind.map(|part| part["count"].as_f64().unwrap()).sum()
        };
        // Four cards each, with a module and a cable, that are in the server's price.
        for kind in ["optical module", "cable"] {
            let links = parts(&some, kind, "node") - parts(&none, kind, "node");
            assert!((links - servers * 4.0).abs() < 1e-9, "{tiers}: {links} of {kind}");
        }
        assert!(more("fabric", "nics_count").abs() < 1e-9);
        assert!(parts(&some, "optical module", "leaf") > parts(&none, "optical module", "leaf"));
        // Two ports in-band and one out-of-band, and those of the switches and racks that come with them.
        let ports = |json: &Value, purpose: &str| {
            let networks = json["fabric"]["side_networks"].as_array().unwrap();
            networks.iter().find(|network| network["purpose"] == purpose).unwrap()["ports_count"].as_f64().unwrap()
        };
        assert!((ports(&some, "in-band") - ports(&none, "in-band") - 2.0 * servers).abs() < 1e-9);
        assert!(ports(&some, "out-of-band") - ports(&none, "out-of-band") >= servers);
        // All of it is paid for, with what is bought by the rack, and draws power: each of its modules takes 8 W.
        let networks = more("fabric", "capex_usd") + more("fabric", "side_networks_capex_usd");
        assert!((more("cost", "memory_tiers_usd") - servers * price).abs() < 1e-3, "{tiers}");
        assert!(networks > 0.0 && more("cost", "capex_usd") >= networks + servers * price - 1e-3, "{tiers}");
        let modules = servers * 4.0 * 8.0;
        assert!(more("fabric", "power_w") >= modules && more("fabric", "side_networks_power_w") > 0.0);
        assert!(more("facility", "it_kw") * 1e3 >= servers * watts + modules - 1e-6, "{tiers}");
        assert!(more("facility", "racks_count") >= 0.0);
    }
    // Rails by themselves and groups of a dragonfly have places for them too.
    for kind in ["rail-only", "dragonfly-plus", "tor-fat-tree"] {
        let on = |tiers: &str| {
            let kind = format!("cluster.topology.kind=\"{kind}\"");
            let (code, json, stderr) = cached(&[&format!("serving.cache.tiers={tiers}"), &kind]);
            assert_eq!(code, 0, "{kind}: {stderr}");
            json["fabric"]["cables_count"].as_f64().unwrap()
        };
        assert!(on("[{ tier = \"remote-dram-400g\" }]") >= on("[]") + 72.0, "{kind}");
    }
}

#[test]
fn loads_share_their_links_and_are_limited_to_what_comes_sooner() {
    // A tier on which everything lies, and requests at a rate: the link's share of the time follows from it.
    let tier = "serving.cache.tiers=[{ tier = \"remote-flash-400g\" }]";
    let of = |rate: f64| {
        let (code, json, stderr) = cached(&[tier, &format!("serving.arrivals={{ rate = \"{rate} request/s\" }}")]);
        assert_eq!(code, 0, "{stderr}");
        json
    };
    let (calm, busy) = (of(10.0), of(30.0));
    let share = |json: &Value| figure(json, "cache_links_busy_ratio");
    assert!((share(&busy) / share(&calm) - 3.0).abs() < 1e-6);
    assert!(figure(&busy, "cache_load_s") > figure(&calm, "cache_load_s"));
    // Writes of what is not found in the own memory, at 10 GB/s and four ranks; the busiest of 16 replicas.
    let prefix = 80.0 * 2.0 * 8.0 * 128.0 * 6_000.0;
    let missed = 1.0 - figure(&busy, "hits.own_ratio");
    let each = 30.0 / 16.0 * figure(&busy, "busiest_replica_ratio");
    let written = each * missed * prefix / (4.0 * 10e9);
    assert!((figure(&busy, "cache_writes_busy_ratio") / written - 1.0).abs() < 1e-4, "{written}");
    // Links of 700 MB/s carry a part of the hits; the others are computed again, and the answer says so.
    let folder = tempfile::tempdir().unwrap();
    let tiers = folder.path().join("memory_tiers");
    std::fs::create_dir(&tiers).unwrap();
    let text = std::fs::read_to_string("catalogs/memory_tiers/remote-flash-400g.toml").unwrap();
    let slow = text.replace("\"20 GB/s\", low = \"5 GB/s\"", "\"700 MB/s\", low = \"700 MB/s\"");
    assert_ne!(text, slow);
    std::fs::write(tiers.join("remote-flash-400g.toml"), slow).unwrap();
    let answer = program::run(&[
        "eval",
        TIERS,
        "--catalog",
        folder.path().to_str().unwrap(),
        "--set",
        tier,
        "--set",
        "serving.arrivals={ rate = \"30 request/s\" }",
    ]);
    assert!(answer.stdout.contains("The links of a tier are overrun"), "{} {}", answer.stdout, answer.stderr);
}

#[test]
fn routing_to_caches_finds_more_and_loads_unevenly() {
    let of = |routing: &str| {
        cached(&[
            &format!("serving.cache.routing=\"{routing}\""),
            "serving.cache.tiers=[{ tier = \"host-dram-pcie5\" }]",
        ])
        .1
    };
    let (anywhere, aware) = (of("balanced"), of("cache-aware"));
    assert!(figure(&aware, "prefix_found_ratio") > 2.0 * figure(&anywhere, "prefix_found_ratio"));
    // Both shares stand in both answers.
    for json in [&anywhere, &aware] {
        assert!(figure(json, "hits.cache_aware_ratio") > figure(json, "hits.balanced_ratio"));
        // Many prefixes come to even loads where each new one goes to the replica with the least.
        assert!((figure(json, "busiest_replica_ratio") - 1.0).abs() < 0.01);
    }
    // Which is as even as it gets, and is told where requests are sent so.
    let told =
        |json: &Value| json["notes"].as_array().unwrap().iter().any(|note| note.to_string().contains("By a hash"));
    assert!(told(&aware) && !told(&anywhere));
    // One that all share is on all 16 replicas, and so are four of them on four each; of 24 alike, eight replicas have two.
    let few = |prefixes: u32| {
        let prefixes = format!("serving.cache.prefixes={prefixes}");
        cached(&["serving.cache.routing=\"cache-aware\"", "serving.cache.popularity=0", &prefixes]).1
    };
    for (prefixes, busiest) in [(1, 1.0), (4, 1.0), (16, 1.0), (24, 32.0 / 24.0)] {
        let found = figure(&few(prefixes), "busiest_replica_ratio");
        assert!((found - busiest).abs() < 1e-9, "{prefixes}: {found}");
    }
    let aware = few(24);
    // Replicas that are not the busiest wait: shares of the time still add up, and costs of tokens to what is owned.
    let shares = ["weights", "kv", "compute", "network", "idle"];
    let all: f64 = shares.iter().map(|part| figure(&aware, &format!("time_share.{part}_ratio"))).sum();
    assert!((all - 1.0).abs() < 1e-9, "{all}");
    let of = |key: &str| aware["cost"][key].as_f64().unwrap();
    let found = figure(&aware, "prefix_found_ratio");
    let paid = figure(&aware, "requests_per_s")
        * (8_000.0 * ((1.0 - found) * of("usd_per_mtok_input") + found * of("usd_per_mtok_cached"))
            + 400.0 * of("usd_per_mtok_output"));
    let owned = of("usd_per_useful_gpu_hour") * 64.0 / 3_600.0 * 1e6;
    assert!((paid / owned - 1.0).abs() < 1e-9, "{paid} and {owned}");
}

#[test]
fn caches_that_cannot_be_are_refused_with_a_hint() {
    for (setting, said, hint) in [
        ("serving.prefix_hit=0.2", "follows from `serving.cache`", "leave one of both out"),
        ("serving.cache={ tiers = [] }", "`serving.cache.prefix_tokens` is missing", ""),
        ("serving.cache.prefix_tokens=8000", "is all of a prompt of 8000", "below serving.input_tokens"),
        ("serving.cache.tiers=[{ tier = \"hbm3-h100\" }]", "no tier beyond it", "serving.cache.own_share"),
        ("serving.cache.popularity=-1", "serving.cache.popularity", ""),
        (
            "serving.cache.tiers=[{ tier = \"host-dram-pcie5\" }, { tier = \"host-dram-pcie5\" }]",
            "tier \"host-dram-pcie5\" is named twice",
            "name each once",
        ),
        (
            "serving.cache.tiers=[{ tier = \"host-dram-pcie5\", capacity = \"0 B\" }]",
            "a tier of no capacity",
            "leave the tier out",
        ),
    ] {
        let (code, _, stderr) = cached(&[setting]);
        assert_eq!(code, 2, "{setting}: {stderr}");
        assert!(stderr.contains(said) && stderr.contains(hint), "{setting}: {stderr}");
    }
    let more = "serving.cache.tiers=[{ tier = \"grace-lpddr\", capacity = \"4 TB\" }]";
    let (code, _, stderr) = cached(&["cluster.node=\"gb200-nvl72\"", "cluster.accelerators=72", more]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("is bought as") && stderr.contains("no more than that"), "{stderr}");
}

#[test]
fn what_was_refused_is_not_refused_again_for_what_stands_in_its_place() {
    let places = |stderr: &str| stderr.matches("error[").count();
    let big = "serving.cache.tiers=[{ tier = \"host-dram-pcie5\", capacity = \"1e300 B\" }]";
    let (code, _, stderr) = cached(&[big]);
    assert_eq!((code, places(&stderr)), (2, 1), "{stderr}");
    let (code, _, stderr) = cached(&["serving.trace=\"none.csv\""]);
    assert_eq!(code, 2);
    assert!(!stderr.contains("a prompt of") && !stderr.contains("catalogs/"), "{stderr}");
    for setting in
        ["serving.layout=\"fast\"", "serving.tenants={ count = 2, mean = \"1 request/s\", peak = \"1e300 request/s\" }"]
    {
        let (code, _, stderr) = eval(&[setting]);
        assert_eq!((code, places(&stderr)), (2, 1), "{setting}: {stderr}");
    }
}

#[test]
fn memory_of_other_nodes_is_reached_at_the_rate_of_the_cards() {
    // One card of 100 Gbit/s for four accelerators, or one for each: both less than what memory's servers give.
    let load = |node: &str| {
        let (code, json, stderr) = cached(&[
            &format!("cluster.node=\"{node}\""),
            "cluster.fabric=\"roce-100g\"",
            "cluster.accelerators=16",
            "serving.model=\"llama-3.1-8b\"",
            "serving.weights=\"bf16\"",
            "serving.kv_cache=\"bf16\"",
            "serving.layout={ tensor = 1 }",
            "serving.arrivals={ rate = \"0.01 request/s\" }",
            "serving.cache.tiers=[{ tier = \"remote-dram-400g\" }]",
        ]);
        assert_eq!(code, 0, "{stderr}");
        figure(&json, "cache_load_s") / figure(&json, "hits.tier_1_ratio")
    };
    // 6,000 tokens of 131 kB are 0.79 GB: 63 ms over a card by itself.
    let (shared, own) = (load("a100-pcie-4-shared"), load("a100-pcie-4-rails"));
    assert!((shared / own - 4.0).abs() < 0.01 && own > 0.063 && own < 0.07, "{shared} and {own}");
}
