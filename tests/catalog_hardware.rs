//! The shipped hardware files, and what happens when one is wrong.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

use std::path::Path;

use clusterplan::catalog::Catalog;
use clusterplan::catalog::accelerator::DataType;
use clusterplan::diagnostics::{Sink, Sources, render};
use clusterplan::load;
use clusterplan::units::{Bandwidth, Bytes, FlopRate, Quantity};

const FOLDERS: [&str; 10] =
    ["accelerators", "scale_up", "nodes", "nics", "switches", "optics", "cables", "fabrics", "currencies", "providers"];

/// The shipped files, one of them with a text replaced, and the rendered mistakes.
fn read(changed: Option<(&str, &str, &str)>) -> (Catalog, String) {
    let mut sources = Sources::default();
    let sink = Sink::default();
    let mut catalog = Catalog::default();
    for folder in FOLDERS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("catalogs").join(folder);
        let mut files: Vec<_> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files {
            let id = file.file_stem().unwrap().to_str().unwrap();
            let name = format!("{folder}/{id}.toml");
            let mut text = std::fs::read_to_string(&file).unwrap();
            if let Some((_, from, to)) = changed.filter(|(at, _, _)| *at == name) {
                assert!(text.contains(from), "{name} does not say {from}");
                text = text.replacen(from, to, 1);
            }
            let file = sources.add(name, text);
            let document = load::parse(&sources, file, &sink);
            assert!(catalog.add(folder, id, &document, &sink));
        }
    }
    catalog.check(&sink);
    (catalog, render(&sink.into_diagnostics(), &sources, false))
}

fn mistakes(file: &str, from: &str, to: &str) -> String {
    read(Some((file, from, to))).1
}

#[test]
fn shipped_files_are_without_mistakes() {
    assert_eq!(read(None).1.trim(), "");
}

#[test]
fn peaks_are_dense_and_memory_is_what_the_driver_reports() {
    let (catalog, _) = read(None);
    let h100 = catalog.accelerators.get("h100-sxm-80gb").unwrap();
    assert_eq!(h100.peak_dense.get(DataType::Bf16), Some(FlopRate::new(989.4e12)));
    assert_eq!(h100.peak_dense.get(DataType::Fp4), None);
    // 81,559 MiB of 1,048,576 bytes.
    assert_eq!(h100.memory_capacity, Bytes::new(85_520_809_984.0));
}

#[test]
fn every_fabric_has_a_radix_at_its_link_speed() {
    let (catalog, _) = read(None);
    let radix = |fabric: &str| {
        let fabric = catalog.fabrics.get(fabric).unwrap();
        catalog.switches.get(&fabric.switch.leaf).unwrap().ports_at(fabric.link_speed)
    };
    assert_eq!(radix("quantum-hdr"), Some(40));
    assert_eq!(radix("quantum-2-ndr"), Some(64));
    assert_eq!(radix("spectrum-x-400g"), Some(128));
    assert_eq!(radix("roce-400g"), Some(128));
}

#[test]
fn scale_up_bandwidth_is_one_direction() {
    let (catalog, _) = read(None);
    let node = catalog.nodes.get("dgx-h100").unwrap();
    assert_eq!(node.scale_up.bandwidth_per_direction, Bandwidth::parse("450 GB/s").unwrap());
    assert!((node.nics_per_accelerator() - 1.0).abs() < 1e-12);
}

#[test]
fn parts_that_do_not_fit_are_reported_where_they_are_named() {
    let shown = mistakes("fabrics/quantum-2-ndr.toml", "leaf = \"qm9700\"", "leaf = \"sn5600\"");
    assert!(shown.contains("`sn5600` forwards ethernet, and the transport needs infiniband"), "{shown}");
    let shown = mistakes("fabrics/quantum-2-ndr.toml", "\"connectx-7-400g\"", "\"connectx-6-hdr\"");
    assert!(shown.contains("a port of `connectx-6-hdr` runs at"), "{shown}");
    let shown = mistakes("fabrics/roce-400g.toml", "fibre-mmf-mpo12", "fibre-smf-mpo12");
    assert!(shown.contains("is for mmf, and the cable `fibre-smf-mpo12` is smf"), "{shown}");
    let shown = mistakes("fabrics/quantum-hdr.toml", "node = \"hdr-aoc-200g\"", "node = \"fibre-mmf-mpo12\"");
    assert!(shown.contains("`link` names no optics"), "{shown}");
    let shown = mistakes("nodes/dgx-h100.toml", "h100-sxm-80gb", "h100-sxm");
    assert!(shown.contains("did you mean \"h100-sxm-80gb\" or"), "{shown}");
}

#[test]
fn fields_that_contradict_each_other_are_reported() {
    let shown = mistakes("nodes/dgx-a100.toml", "count = 8,", "count = 9,");
    assert!(shown.contains("9 network slots cannot be shared out evenly"), "{shown}");
    let shown = mistakes("nodes/dgx-a100.toml", "domain = 8", "domain = 3");
    assert!(shown.contains("scale-up domains of 3"), "{shown}");
    let shown = mistakes("switches/qm9700.toml", "power_max = \"1720 W\"", "power_max = \"700 W\"");
    assert!(shown.contains("below the typical"), "{shown}");
    let shown = mistakes("switches/qm9700.toml", "count = 128", "count = 100");
    assert!(shown.contains("100 ports do not spread evenly over 32 cages"), "{shown}");
    let shown = mistakes("optics/800g-twin-sr8.toml", "links = 2", "links = 3");
    assert!(shown.contains("more than the cage's"), "{shown}");
    let shown = mistakes("cables/hdr-aoc-200g.toml", "medium = \"mmf\"", "medium = \"copper\"");
    assert!(shown.contains("a cable of kind aoc is not made of copper"), "{shown}");
    let shown = mistakes("fabrics/roce-400g.toml", "in_network_reduction = false", "in_network_reduction = true");
    assert!(shown.contains("no switch for rocev2 reduces in the network"), "{shown}");
    let shown = mistakes("fabrics/roce-400g.toml", "low = 4", "low = 9");
    assert!(shown.contains("not within its own range"), "{shown}");
    let shown = mistakes("accelerators/a100-sxm-80gb.toml", "tdp = \"400 W\"", "tdp = \"0 W\"");
    assert!(shown.contains("`tdp` is zero"), "{shown}");
}
