//! Networks counted and priced.

use serde_json::Value;

use super::{json, near, run};

#[test]
fn a_superpod_is_counted_and_priced() {
    let quote = json("fabric --node dgx-h100 --fabric quantum-2-ndr --accelerators 1016");
    let fabric = &quote["fabric"];
    for (key, count) in [
        ("leaf_switches_count", 32),
        ("spine_switches_count", 16),
        ("node_leaf_cables_count", 1_020),
        ("leaf_spine_cables_count", 1_024),
        ("free_node_places_count", 0),
        ("free_leaf_ports_count", 4),
    ] {
        assert_eq!(fabric[key], count, "{key}");
    }
    let parts = quote["parts"].as_array().unwrap();
    let number = |value: &Value| value.as_f64().unwrap();
    let price =
        |part: &Value| (number(&part["count"]) + number(&part["spares_count"])) * number(&part["unit_price_usd"]);
    let power = |part: &Value| number(&part["count"]) * number(&part["power_w"]);
    near(parts.iter().map(price).sum(), number(&fabric["capex_usd"]), 1e-9);
    near(parts.iter().map(power).sum(), number(&fabric["power_w"]), 1e-9);
    // A manager draws power, and licences are counted by card.
    let managers = parts.iter().find(|part| part["kind"] == "manager").unwrap();
    assert!(number(&managers["power_w"]) > 0.0);
    let lines = quote["lines"].as_array().unwrap();
    assert!(lines.iter().any(|line| line["name"].as_str().unwrap().contains("licences") && line["quantity"] == 1016.0));
    let cables: u64 =
        quote["cable_lengths"].as_array().unwrap().iter().map(|class| class["count"].as_u64().unwrap()).sum();
    assert_eq!(cables, fabric["cables_count"].as_u64().unwrap());
}

#[test]
fn cables_are_leaves_times_uplinks() {
    // Not leaves times spines: 32 leaves with 32 uplinks each, over 16 spines.
    let quote = json("fabric --node dgx-h100 --fabric quantum-2-ndr --accelerators 1024 --tiers 2");
    assert_eq!(
        quote["fabric"]["leaf_spine_cables_count"],
        quote["fabric"]["leaf_switches_count"].as_u64().unwrap() * 32
    );
}

#[test]
fn cubes_are_joined_by_switches_of_light() {
    let cubes = |count: u32| {
        format!("fabric --node gcp-tpu-v5p-64 --fabric ici-ocs --topology torus --accelerators {}", 64 * count)
    };
    // Jouppi et al., TPU v4, ISCA 2023: 64 cubes, 48 switches of 136 ports of which 8 are spare, 96 links to a cube.
    let pod = json(&cubes(64));
    let fabric = &pod["fabric"];
    assert_eq!((fabric["leaf_switches_count"].as_u64(), fabric["nics_count"].as_u64()), (Some(48), Some(0)));
    assert_eq!((fabric["optics_count"].as_u64(), fabric["cables_count"].as_u64()), (Some(6_144), Some(6_144)));
    assert_eq!(fabric["free_leaf_ports_count"], 48 * 8);
    let (code, _, error) = run(&cubes(69));
    assert_eq!(code, 1);
    assert!(error.contains("68 blocks of accelerators, not 69"), "{error}");
    // 32 hosts of 2 x 4 chips: 512 links, of which those between hosts are 12 on the faces of each, by copper.
    let flat = json("fabric --node gcp-tpu-v6e-8 --fabric ici-2d-800g --topology torus --accelerators 256");
    assert_eq!(
        (flat["fabric"]["cables_count"].as_u64(), flat["fabric"]["optics_count"].as_u64()),
        (Some(192), Some(0))
    );
}

#[test]
fn rails_alone_save_what_is_published_of_switches_and_modules() {
    // Wang et al., arXiv 2307.12169: 38 to 77% of the cost of switches and modules, 37 to 75% of their power.
    let of = |gpus: u32, kind: &str| {
        let quote = json(&format!("fabric --node dgx-h100 --fabric roce-400g --accelerators {gpus} --topology {kind}"));
        let parts = quote["parts"].as_array().unwrap().clone();
        let sum = |kinds: &[&str], figure: &str| -> f64 {
            let of = parts.iter().filter(|part| kinds.contains(&part["kind"].as_str().unwrap()));
            of.map(|part| part[figure].as_f64().unwrap() * part["count"].as_f64().unwrap()).sum()
        };
        let switched = ["switch", "optic"];
        (
            sum(&switched, "unit_price_usd"),
            sum(&switched, "power_w"),
            sum(&["nic", "switch", "optic", "cable"], "unit_price_usd"),
        )
    };
    let saved = |gpus: u32| {
        let (joined, alone) = (of(gpus, "rail-fat-tree"), of(gpus, "rail-only"));
        (1.0 - alone.0 / joined.0, 1.0 - alone.1 / joined.1, 1.0 - alone.2 / joined.2)
    };
    // Domains of eight: two tiers a rail instead of three, the low end.
    let (cost, power, with_cards) = saved(32_768);
    near(cost, 0.38, 0.10);
    near(power, 0.37, 0.10);
    assert!((0.25..0.33).contains(&with_cards), "{with_cards}");
    // Where a rail fits one switch: half way to the high end, which is against three tiers.
    let (cost, power, _) = saved(1_024);
    assert!((0.5..0.77).contains(&cost) && (0.5..0.75).contains(&power), "{cost} {power}");
    let (_, page, _) = run("fabric --node dgx-h100 --fabric roce-400g --accelerators 1024 --topology rail-only");
    assert!(page.replace('\n', " ").contains("are of switches and modules"), "{page}");
}

#[test]
fn the_purchasing_list_is_csv() {
    let (code, out, _) =
        run("fabric --node dgx-h100 --fabric roce-400g --accelerators 512 --topology rail-only --format csv");
    assert_eq!(code, 0);
    let mut reader = csv::Reader::from_reader(out.as_bytes());
    let header = reader.headers().unwrap().clone();
    assert_eq!(&header[0], "kind");
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let of_fabric = |row: &&csv::StringRecord| &row[10] == "fabric";
    assert!(rows.iter().filter(of_fabric).any(|row| &row[0] == "switch" && &row[4] == "8"));
    assert!(rows.iter().filter(of_fabric).all(|row| &row[2] != "spine"));
    for network in ["storage", "in-band", "out-of-band"] {
        assert!(rows.iter().any(|row| &row[10] == network && &row[0] == "switch"), "{network}");
    }
    // What is bought is what is in use and the spares; a price each; a maker's name.
    let number = |row: &csv::StringRecord, column: &str| -> f64 {
        let index = header.iter().position(|name| name == column).unwrap();
        row[index].parse().unwrap()
    };
    for row in &rows {
        near(number(row, "count") + number(row, "spares"), number(row, "buy"), 1e-12);
        near(number(row, "buy") * number(row, "unit_price_usd"), number(row, "price_usd"), 1e-12);
        assert!(row[11].len() > 3, "{row:?}");
    }
}

/// What a side network counts.
fn beside(quote: &Value, purpose: &str, key: &str) -> u64 {
    let networks = quote["side_networks"].as_array().unwrap();
    networks.iter().find(|network| network["purpose"] == purpose).unwrap()[key].as_u64().unwrap()
}

#[test]
fn networks_beside_the_fabric_grow_with_the_cluster() {
    let quote = |gpus: u32| json(&format!("fabric --node dgx-h100 --fabric quantum-2-ndr --accelerators {gpus}"));
    let (small, large) = (quote(64), quote(4_096));
    for purpose in ["storage", "in-band", "out-of-band"] {
        let ports = |quote: &Value| beside(quote, purpose, "ports_count");
        assert!(ports(&large) > 30 * ports(&small), "{purpose}");
    }
    // Eight nodes are a pair of storage leaves; 512 nodes with two ports and 16 units with three are 1,072 ports.
    assert_eq!(beside(&small, "storage", "leaf_switches_count"), 2);
    assert_eq!(beside(&large, "storage", "ports_count"), 2 * 512 + 3 * 16);
    assert!(beside(&large, "storage", "spine_switches_count") >= 2);
    // Every parts line of theirs has a price and adds to their price.
    for network in large["side_networks"].as_array().unwrap() {
        let number = |value: &Value| value.as_f64().unwrap();
        let parts = network["parts"].as_array().unwrap();
        let sum: f64 = parts
            .iter()
            .map(|part| (number(&part["count"]) + number(&part["spares_count"])) * number(&part["unit_price_usd"]))
            .sum();
        near(sum, number(&network["capex_usd"]), 1e-9);
        assert!(parts.iter().all(|part| number(&part["unit_price_usd"]) > 0.0));
    }
}

#[test]
fn cables_beyond_their_reach_are_said() {
    let beyond = |gpus: u32| {
        let quote = json(&format!("fabric --node dgx-h100 --fabric roce-400g --accelerators {gpus}"));
        quote["fabric"]["cables_beyond_reach_count"].as_u64().unwrap()
    };
    // 16,384 GPUs stand within a hundred metres, half a million do not.
    assert_eq!(beyond(16_384), 0);
    assert!(beyond(500_000) > 0);
    let (_, page, _) = run("fabric --node dgx-h100 --fabric roce-400g --accelerators 500000");
    assert!(page.contains("cables are longer than"), "{page}");
}

#[test]
fn spares_are_a_share_and_one_of_each_model_at_least() {
    let spares = |share: &str| {
        let quote = json(&format!("fabric --node dgx-h100 --fabric roce-400g --accelerators 4096 --spares {share}"));
        quote["fabric"]["spare_parts_count"].as_u64().unwrap()
    };
    assert_eq!(spares("0"), 0);
    assert!(spares("0.000001") >= 4);
    assert!(spares("0.1") > 4 * spares("0.02"));
    let (code, _, error) = run("fabric --node dgx-h100 --fabric roce-400g --accelerators 512 --spares 1.5");
    assert_eq!(code, 2);
    assert!(error.contains("a share is from 0 to 1"), "{error}");
}

#[test]
fn networks_beside_the_fabric_are_chosen_or_left_out() {
    let line = "fabric --node dgx-h100 --fabric quantum-2-ndr --accelerators 512 --format json";
    let ids = |flags: &str| -> Vec<String> {
        let (code, out, error) = run(&format!("{line} {flags}"));
        assert_eq!(code, 0, "{error}");
        let quote: Value = serde_json::from_str(&out).unwrap();
        let side = quote["side_networks"].as_array().unwrap();
        side.iter().map(|network| network["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        ids("--storage-network storage-ndr --in-band none"),
        ["storage-ndr".to_owned(), "out-of-band-1g".to_owned()]
    );
    assert!(ids("--storage-network none --in-band none --out-of-band none").is_empty());
    for (flags, why) in [
        ("--storage-network in-band-100g", "is a network for"),
        ("--storage-network storage-ethernet-200g", "storage ports of 400 Gbit/s"),
        ("--out-of-band out-of-band", "did you mean \"out-of-band-1g\"?"),
    ] {
        let (code, _, error) = run(&format!("{line} {flags}"));
        assert_eq!(code, 2);
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn planes_split_the_lanes_of_a_port() {
    let (code, _, error) = run("fabric --node dgx-h100 --fabric quantum-2-ndr --accelerators 512 --planes 3");
    assert_eq!(code, 2);
    assert!(error.contains("2, 4 or 8 planes, not into 3"), "{error}");
}
