//! A user's own files over the shipped ones: field by field, entry by entry, or as frozen copies; and what is wrong in
//! them is reported with file and line, while nothing half-read is used.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

use std::path::{Path, PathBuf};

use clusterplan::catalog::Catalog;
use clusterplan::diagnostics::{Sink, Sources, render};
use clusterplan::load;
use clusterplan::provenance::Basis;
use clusterplan::units::{Bandwidth, Quantity, Usd};

/// A directory with files in it, and its removal.
fn files(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

/// The catalog with overlays, and the rendered mistakes.
fn read(overlays: &[&Path]) -> (Catalog, String) {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let overlays: Vec<PathBuf> = overlays.iter().map(|path| path.to_path_buf()).collect();
    let catalog = load::catalog(&overlays, &mut sources, &sink);
    (catalog, render(&sink.into_diagnostics(), &sources, false))
}

fn good(overlays: &[&Path]) -> Catalog {
    let (catalog, mistakes) = read(overlays);
    assert_eq!(mistakes.trim(), "");
    catalog
}

/// A file of the shipped catalog.
fn shipped(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("catalogs").join(path)).unwrap()
}

/// A source in one line.
fn assumed(field: &str) -> String {
    format!("source = [{{ fields = [\"{field}\"], basis = \"assumed\", title = \"Ours\", accessed = 2026-11-20 }}]\n")
}

#[test]
fn an_overlay_names_a_source_for_what_it_changes() {
    let dir = files(&[("accelerators/h100-sxm-80gb.toml", "tdp = \"600 W\"\n")]);
    let (_, shown) = read(&[dir.path()]);
    assert!(shown.contains("`tdp` has 0 sources") && shown.contains("h100-sxm-80gb.toml:1:1"), "{shown}");
    assert!(shown.contains("source = [{ fields = [\"tdp\"], basis = \"assumed\""), "{shown}");
    let undated = "tdp = \"600 W\"\n[[source]]\nfields = [\"tdp\"]\nbasis = \"assumed\"\ntitle = \"Ours\"\n";
    let dir = files(&[("accelerators/h100-sxm-80gb.toml", undated)]);
    let (_, shown) = read(&[dir.path()]);
    assert!(shown.contains("`source.accessed` is missing") && shown.contains("h100-sxm-80gb.toml:2:1"), "{shown}");
}

#[test]
fn a_table_that_an_overlay_changes_is_shown_in_the_overlay() {
    let text = format!("{}[scale_up]\ndomain = 3\n", assumed("scale_up.domain"));
    let dir = files(&[("nodes/dgx-h100.toml", &text)]);
    let (_, shown) = read(&[dir.path()]);
    let file = dir.path().join("nodes/dgx-h100.toml").display().to_string();
    assert!(shown.contains("scale-up domains of 3") && shown.contains(&format!("{file}:2:1")), "{shown}");
    assert!(!shown.contains("--> catalogs/"), "{shown}");
}

#[test]
fn a_misspelt_key_is_one_mistake() {
    let shown = broken("accelerators/h100-sxm-80gb.toml", "sm_count =", "sm_cuont =");
    assert!(shown.contains("did you mean `sm_count`?") && !shown.contains("`sm_count` is missing"), "{shown}");
}

const FASTER: &str = "memory_bandwidth = \"3.5 TB/s\"\n[peak_dense]\nbf16 = \"1000 TFLOP/s\"\n\
    [[source]]\nfields = [\"memory_bandwidth\"]\nbasis = \"measured\"\ntitle = \"Our own stream test\"\naccessed = 2026-11-20\n\
    [[source]]\nfields = [\"peak_dense\", \"sparsity_gain.bf16\"]\nbasis = \"measured\"\ntitle = \"Our own matrix test\"\naccessed = 2026-11-20\n\
    [sparsity_gain]\nbf16 = 1.9\n";

#[test]
fn a_field_and_its_source_win_together() {
    let dir = files(&[("accelerators/h100-sxm-80gb.toml", FASTER)]);
    let catalog = good(&[dir.path()]);
    let h100 = catalog.accelerators.get("h100-sxm-80gb").unwrap();
    assert_eq!(h100.memory_bandwidth, Bandwidth::parse("3.5 TB/s").unwrap());
    assert_eq!(h100.source_of("memory_bandwidth").unwrap().title, "Our own stream test");
    // The source of a table stands behind what the overlay has of it; the rest keeps the one that it had.
    assert_eq!(h100.source_of("peak_dense.bf16").unwrap().basis, Basis::Measured);
    assert_eq!(h100.source_of("peak_dense.fp8").unwrap().basis, Basis::Secondary);
    assert_eq!(h100.source_of("tdp").unwrap().basis, Basis::Secondary);
}

#[test]
fn the_last_overlay_wins_and_a_single_file_is_one() {
    let limit = |watts: &str| format!("{}tdp = \"{watts}\"\n", assumed("tdp"));
    let first = files(&[("accelerators/h100-sxm-80gb.toml", &limit("600 W"))]);
    let second = files(&[("accelerators/h100-sxm-80gb.toml", &limit("650 W"))]);
    let file = second.path().join("accelerators/h100-sxm-80gb.toml");
    let watts =
        |catalog: &Catalog| catalog.accelerators.get("h100-sxm-80gb").unwrap().tdp.unwrap().in_unit("W").unwrap();
    assert!((watts(&good(&[first.path(), &file])) - 650.0).abs() < 1e-9);
    assert!((watts(&good(&[&file, first.path()])) - 600.0).abs() < 1e-9);
}

#[test]
fn prices_merge_by_part_and_lines_by_name() {
    let book = "[[price]]\npart = \"qm9700\"\nusd = \"$30,000\"\ndate = 2026-11-20\nbasis = \"quote\"\nsource = \"An offer\"\n\
        [[line]]\nname = \"Insurance\"\ncategory = \"opex\"\nper = \"capex_ratio\"\namount = 0.01\ndate = 2026-11-20\nbasis = \"quote\"\nsource = \"A broker\"\n";
    let dir = files(&[("prices/neocloud-2026h2.toml", book)]);
    let (before, after) = (good(&[]), good(&[dir.path()]));
    let book = |catalog: &Catalog| std::sync::Arc::clone(catalog.price_books.get("neocloud-2026h2").unwrap());
    assert_eq!(book(&after).price("qm9700").unwrap().usd.value, Usd::new(30_000.0));
    assert_eq!(book(&after).price("qm9700").unwrap().evidence.basis, Basis::Quote);
    assert_eq!(book(&after).price("sn5600"), book(&before).price("sn5600"));
    assert_eq!(book(&after).prices.len(), book(&before).prices.len());
    assert_eq!(book(&after).lines.len(), book(&before).lines.len());
    // The price and the line, in this book and in the two that are based on it.
    assert_eq!(after.changes_to(&before).len(), 3 * 2);
}

#[test]
fn a_frozen_book_replaces_the_one_below() {
    let book = "name = \"As of our report\"\nfrozen = 2026-11-20\n[[price]]\npart = \"qm9700\"\nusd = \"$30,000\"\n\
        date = 2026-11-20\nbasis = \"quote\"\nsource = \"An offer\"\n";
    let dir = files(&[("prices/neocloud-2026h2.toml", book)]);
    let catalog = good(&[dir.path()]);
    let frozen = catalog.price_books.get("neocloud-2026h2").unwrap();
    assert_eq!((frozen.prices.len(), frozen.lines.len()), (1, 0));
}

#[test]
fn freezing_writes_what_reads_back_the_same() {
    let overlay = files(&[("accelerators/h100-sxm-80gb.toml", FASTER)]);
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let documents = load::catalog_documents(&[overlay.path().to_owned()], &mut sources, &sink);
    for (folder, id) in [("prices", "neocloud-2026h2"), ("accelerators", "h100-sxm-80gb"), ("reliability", "hopper")] {
        let text = documents[&(folder.to_owned(), id.to_owned())].to_toml();
        let frozen = files(&[(&format!("{folder}/{id}.toml"), &format!("frozen = 2026-11-29\n{text}"))]);
        let (with_overlay, again) = (good(&[overlay.path()]), good(&[overlay.path(), frozen.path()]));
        assert_eq!(with_overlay.changes_to(&again), Vec::new(), "{id}");
    }
}

const NEW_GPU: &str = "name = \"Example X1\"\nvendor = \"Example\"\ngeneration = \"x\"\nboard = \"x1-500w\"\nsm_count = 100\n\
    on_chip_sram = \"64 MiB\"\nmemory_capacity = \"128 GiB\"\nmemory_bandwidth = \"4 TB/s\"\ntdp = \"500 W\"\n\
    [peak_dense]\nbf16 = \"1200 TFLOP/s\"\n\
    [[source]]\nfields = [\"vendor\", \"generation\", \"board\", \"sm_count\", \"on_chip_sram\", \"memory_capacity\", \
    \"memory_bandwidth\", \"tdp\", \"peak_dense\"]\nbasis = \"assumed\"\ntitle = \"An example\"\naccessed = 2026-11-20\n";

#[test]
fn a_new_accelerator_is_one_file() {
    let node = shipped("nodes/dgx-h100.toml").replace("h100-sxm-80gb", "example-x1");
    let dir = files(&[("accelerators/example-x1.toml", NEW_GPU), ("nodes/example-8.toml", &node)]);
    let catalog = good(&[dir.path()]);
    assert_eq!(catalog.accelerators.get("example-x1").unwrap().name, "Example X1");
    assert!(catalog.records().iter().any(|record| record.id == "example-x1"));
    assert_eq!(catalog.nodes.get("example-8").unwrap().accelerator.id, "example-x1");
}

/// A shipped file with one text replaced, laid over as a new part; the mistakes.
fn broken(path: &str, from: &str, to: &str) -> String {
    let text = shipped(path);
    assert!(text.contains(from), "{path} does not say {from}");
    let (folder, _) = path.split_once('/').unwrap();
    let dir = files(&[(&format!("{folder}/mine.toml"), &text.replacen(from, to, 1))]);
    read(&[dir.path()]).1
}

#[test]
fn what_is_wrong_is_named_with_file_and_line() {
    let shown = broken("accelerators/h100-sxm-80gb.toml", "tdp = \"700 W\"", "tpd = \"700 W\"");
    assert!(shown.contains("unknown key `tpd`") && shown.contains("accelerators/mine.toml:9:1"), "{shown}");
    let shown = broken("accelerators/h100-sxm-80gb.toml", "\"tdp\", \"pcie\", ", "");
    assert!(shown.contains("`tdp` has 0 sources") && shown.contains("mine.toml:9:1"), "{shown}");
    let shown = broken("accelerators/h100-sxm-80gb.toml", "tdp = \"700 W\"", "tdp = \"700 GB\"");
    assert!(shown.contains("`GB` is no unit of a power") && shown.contains("mine.toml:9:7"), "{shown}");
    let shown = broken("nodes/dgx-h100.toml", "h100-sxm-80gb", "h100-smx-80gb");
    assert!(shown.contains("did you mean \"h100-sxm-80gb\"?") && shown.contains("mine.toml:2:15"), "{shown}");
    let shown = broken("switches/qm9700.toml", "count = 64", "count = 64, count = 32");
    assert!(shown.contains("the text is not TOML") && shown.contains("mine.toml:"), "{shown}");
    let shown = broken("providers/lambda.toml", "gh200-96gb", "gh200");
    assert!(shown.contains("no accelerator has the id \"gh200\""), "{shown}");
}

#[test]
fn an_id_stands_for_one_part() {
    let dir = files(&[("components/qm9700.toml", &shipped("components/patch-panel-port.toml"))]);
    let shown = read(&[dir.path()]).1;
    assert!(shown.contains("`qm9700` is the id of two entries: switch and component"), "{shown}");
    let dir = files(&[("nodes/h100-sxm-80gb.toml", &shipped("nodes/dgx-h100.toml"))]);
    let shown = read(&[dir.path()]).1;
    assert!(shown.contains("`h100-sxm-80gb` is the id of two entries: accelerator and node"), "{shown}");
    let dir = files(&[("gadgets/qm9700.toml", "name = \"Mine\"\n")]);
    let shown = read(&[dir.path()]).1;
    assert!(shown.contains("`gadgets` is no folder of a catalog"), "{shown}");
    let dir = files(&[("qm9700.toml", "name = \"Mine\"\n")]);
    let shown = read(&[dir.path()]).1;
    assert!(shown.contains("qm9700.toml lies in no folder that says what it is"), "{shown}");
}

#[test]
fn what_cannot_be_is_refused() {
    let shown = broken("accelerators/h100-sxm-80gb.toml", "bf16 = \"989.4 TFLOP/s\"", "bf16 = \"1978.9 TFLOP/s\"");
    assert!(
        shown.contains("the dense bf16 peak") && shown.contains("product pages print peaks with sparsity"),
        "{shown}"
    );
    let shown = broken("accelerators/h100-sxm-80gb.toml", "\"450 GB/s\"", "\"900 GB/s\"");
    assert!(shown.contains("twice 900 GB/s each direction is not the advertised 900 GB/s"), "{shown}");
    let shown = broken("nics/connectx-7-400g.toml", "Gen5 x16", "Gen4 x16");
    assert!(shown.contains("Gen4 x16 carries 31.51 GB/s each direction"), "{shown}");
    let shown = broken("nodes/dgx-h200.toml", "pcie = \"Gen5 x16\"", "pcie = \"Gen5 x8\"");
    assert!(shown.contains("a slot of Gen5 x8 cannot feed a card"), "{shown}");
    let shown = broken("nodes/dgx-h100.toml", "max_power = \"10.2 kW\"", "max_power = \"1.02 kW\"");
    assert!(shown.contains("alone draw more than `max_power`"), "{shown}");
    let shown = broken("nodes/dgx-h100.toml", "kind = \"nvlink4\"", "kind = \"nvlink3\"");
    assert!(shown.contains("over `nvlink3`, which carries 300 GB/s"), "{shown}");
    let shown = broken("currencies/eur.toml", "code = \"EUR\"", "code = \"Euro\"");
    assert!(shown.contains("is no code of another currency"), "{shown}");
    let shown = broken("sites/eu-paris.toml", "0.171 EUR/kWh", "0.171 CHF/kWh");
    assert!(shown.contains("`CHF/kWh` is no unit of a price of energy"), "{shown}");
}
