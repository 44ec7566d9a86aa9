//! Axes: fields and prices of the catalog, lists and drawn values, and mistakes in them.

use std::collections::BTreeMap;

use super::{AXES, Bench, GPT, PRICES, SERVED, clusterplan, rows, stdout};

/// Two prices of a book, of which points have one, the other or none, beside two fields of a site.
const PRICES_APART: &str = r#"
[sweep]
axes = [
  { cases = [
    [{ key = "catalog/prices/neocloud-2026h2/price/dgx-h100/usd", values = ["$250,000", "$300,000"] }],
    [{ key = "catalog/prices/neocloud-2026h2/price/qm9700/usd", values = ["$20,000", { value = "$40,000", low = "$30,000", high = "$50,000" }] }],
    [{ key = "finance.utilisation", values = [0.7] }],
  ] },
  { key = "catalog/sites/us-colo/pue", values = [1.2, 1.4] },
  { key = "catalog/sites/us-colo/electricity", values = ["$0.06/kWh", "$0.12/kWh"] },
]
"#;

#[test]
fn a_field_of_the_catalog_is_an_axis() {
    let bench = Bench::new();
    let axes = r#"
[sweep]
axes = [
  { cases = [
    [{ key = "cluster.fabric", values = ["quantum-2-ndr"] }],
    [{ key = "cluster.fabric", values = ["roce-400g"] }, { key = "catalog/fabrics/roce-400g/spine_efficiency", values = [0.3, 0.6, 1.0] }],
  ] },
]
where = ["catalog/fabrics/roce-400g/spine_efficiency != 0.6"]
"#;
    let path = bench.scenario(GPT, axes);
    let all = rows(&stdout(&["sweep", path.to_str().unwrap(), "--format", "csv"]));
    // What a point does not have meets no condition, so that the other fabric is left out, too.
    let points: Vec<&str> = all.iter().map(|row| row["point"].as_str()).collect();
    assert_eq!(points, ["1", "3"]);
    let iteration = |row: &BTreeMap<String, String>| row["training.iteration_s"].parse::<f64>().unwrap();
    assert!(iteration(&all[0]) > iteration(&all[1]) * 1.001, "a lower efficiency is slower");
}

#[test]
fn prices_of_the_catalog_are_axes_that_say_what_an_overlay_says() {
    let bench = Bench::new();
    for (axes, points) in [(PRICES, 16), (PRICES_APART, 20)] {
        let path = bench.scenario(GPT, axes);
        let found = rows(&stdout(&["sweep", path.to_str().unwrap(), "--format", "csv", "--figures", "all"]));
        assert_eq!(found.len(), points);
        // Each alone is evaluated afresh where it is the only point.
        for row in &found {
            let columns = row.iter().filter(|(key, value)| key.starts_with("catalog/") && !value.is_empty());
            let text =
                |value: &str| if value.starts_with(['$', 'E']) { format!("\"{value}\"") } else { value.to_owned() };
            let axes: Vec<String> =
                columns.map(|(key, value)| format!("{{ key = \"{key}\", values = [{}] }}", text(value))).collect();
            let mut alone = vec!["sweep".to_owned(), path.to_str().unwrap().to_owned()];
            alone.extend(["--format", "csv", "--figures", "all"].map(str::to_owned));
            alone.extend(["--set".to_owned(), format!("sweep.axes=[{}]", axes.join(", "))]);
            for key in ["finance.utilisation", "cluster.accelerators"] {
                if let Some(value) = row.get(key).filter(|value| !value.is_empty()) {
                    alone.extend(["--set".to_owned(), format!("{key}={value}")]);
                }
            }
            let alone: Vec<&str> = alone.iter().map(String::as_str).collect();
            let alone = rows(&stdout(&alone)).remove(0);
            for (key, value) in alone.iter().filter(|(key, _)| *key != "point") {
                assert_eq!(row[key], *value, "{key}");
            }
        }
        let costs: std::collections::BTreeSet<&str> = found.iter().map(|row| row["cost.total_usd"].as_str()).collect();
        assert_eq!(costs.len(), points, "every value counts");
    }
}

#[test]
fn sets_lists_and_drawn_values_are_axes() {
    let bench = Bench::new();
    let axes = r#"
[sweep]
axes = [
  { key = "cluster.node", all = ["accelerator in [h100-sxm-80gb, h200-sxm-141gb]", "id in [dgx-h100, dgx-h200, dgx-b200]"] },
  { key = "cluster.fabric", all = ["transport = rocev2", "id in [roce-400g, spectrum-x-400g]"] },
  { zip = [
    { key = "finance.utilisation", sample = { count = 8, seed = 3, triangular = { low = 0.4, mode = 0.8, high = 0.9 } } },
    { key = "cluster.spares", sample = { count = 8, seed = 3, uniform = { low = 0.0, high = 0.1 } } },
  ] },
]
"#;
    let path = bench.scenario(GPT, axes);
    let all = rows(&stdout(&["sweep", path.to_str().unwrap(), "--format", "csv"]));
    let of = |key: &str| all.iter().map(|row| row[key].as_str()).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(of("cluster.fabric"), ["roce-400g", "spectrum-x-400g"].into());
    assert!(of("cluster.node").contains("dgx-h100") && !of("cluster.node").contains("dgx-b200"));
    assert_eq!((of("finance.utilisation").len(), of("cluster.spares").len()), (8, 8));
    assert_eq!(all.len(), of("cluster.node").len() * 2 * 8);
    let kept = "cluster.node in [dgx-h100, \"dgx-h200\"] and cluster.fabric in [roce-400g]";
    let kept = rows(&stdout(&["sweep", path.to_str().unwrap(), "--format", "csv", "--where", kept]));
    let expected = all.iter().filter(|row| {
        ["dgx-h100", "dgx-h200"].contains(&row["cluster.node"].as_str()) && row["cluster.fabric"] == "roce-400g"
    });
    assert!(!kept.is_empty() && kept.iter().eq(expected));
    let output =
        clusterplan(&["sweep", path.to_str().unwrap(), "--where", "cluster.fabric in roce-400g"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_range_of_whole_steps_is_of_whole_numbers() {
    let bench = Bench::new();
    let axes = r#"
[sweep]
axes = [
  { key = "cluster.accelerators", range = { from = 256, to = 1024, steps = 4 } },
  { key = "cluster.prices", values = ["neocloud-2026h2", "hyperscaler-2026h2"] },
  { key = "catalog/prices/hyperscaler-2026h2/price/dgx-h100/usd", values = ["$250,000"] },
]
"#;
    let path = bench.scenario(GPT, axes);
    let found = rows(&stdout(&["sweep", path.to_str().unwrap(), "--format", "csv"]));
    let of = |key: &str| found.iter().map(|row| row[key].as_str()).collect::<Vec<_>>();
    assert_eq!(of("cluster.accelerators"), ["256", "256", "512", "512", "768", "768", "1024", "1024"]);
}

#[test]
fn mistakes_of_values_are_told_before_anything_runs() {
    let bench = Bench::new();
    for (axes, told) in [
        ("[sweep]\naxes = [{ key = \"cluster.fabrc\", values = [1] }]", "did you mean \"cluster.fabric\""),
        ("[sweep]\naxes = [{ key = \"cluster.fabric\", values = [\"roce-400\"] }]", "roce-400g"),
        (
            "[sweep]\naxes = [{ key = \"cluster.spares\", range = { from = 0, to = 1, steps = 3, scale = \"log\" } }]",
            "logarithmic",
        ),
        ("[sweep]\naxes = [{ key = \"catalog/fabrics/roce-400g/spine\", values = [1] }]", "spine_efficiency"),
        ("[sweep]\naxes = [{ key = \"catalog/fabrics/roce-401g/class\", values = [1] }]", "the catalog has no"),
        (
            "[sweep]\naxes = [{ key = \"cluster.spares\", values = [0.1] }]\nwhere = [\"cluster.spare < 1\"]",
            "cluster.spares",
        ),
        (
            "[sweep]\naxes = [{ zip = [{ key = \"cluster.spares\", values = [0.1] }, { key = \"finance.utilisation\", values = [0.5, 0.6] }] }]",
            "as many values",
        ),
        (
            "[sweep]\naxes = [{ key = \"catalog/prices/hyperscaler-2026h2/price/dgx-h100/usd\", values = [\"$1\"] }]",
            "`cluster.prices` is neocloud-2026h2",
        ),
        (
            "[sweep]\naxes = [{ key = \"cluster.accelerators\", range = { from = 512, to = 1024, steps = 4 } }]",
            "take whole = true",
        ),
        (
            "[sweep]\naxes = [{ key = \"cluster.spares\", range = { from = 0.1, to = 0.1, steps = 3 } }]",
            "ends where it begins",
        ),
        ("", "has no axes"),
    ] {
        let path = bench.scenario(GPT, axes);
        let output = clusterplan(&["sweep", path.to_str().unwrap()]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{axes}: {stderr}");
        assert!(stderr.contains(told), "{axes}: {stderr}");
    }
}

#[test]
fn a_key_that_every_row_lacks_is_told_once_before_any() {
    let bench = Bench::new();
    let run = |axes: &str| {
        let path = bench.scenario(SERVED, &format!("[sweep]\naxes = [{axes}]"));
        clusterplan(&["sweep", path.to_str().unwrap(), "--format", "csv"]).output().unwrap()
    };
    let share = "{ key = \"serving.slice.share\", values = [0.25, 0.5] }";
    let output = run(share);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), stderr.matches("error[").count()), (Some(2), 1), "{stderr}");
    assert!(stderr.contains("`serving.slice.by` is missing"), "{stderr}");
    // Another axis brings it.
    let output = run(&format!("{share}, {{ key = \"serving.slice.by\", values = [\"mps\"] }}"));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_sweep_that_is_too_large_is_not_begun() {
    let bench = Bench::new();
    let path = bench.scenario(GPT, AXES);
    let output = clusterplan(&["sweep", path.to_str().unwrap(), "--max-points", "10"]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("24 points") && stderr.contains("--max-points 24"), "{stderr}");
    assert!(output.stdout.is_empty());
}

#[test]
fn sweeps_of_nothing_and_of_the_same_twice_are_refused() {
    let bench = Bench::new();
    let refused = |file: &str, axes: &str, more: &[&str], word: &str| {
        let path = bench.scenario(file, &format!("[sweep]\naxes = [{axes}]"));
        let output = clusterplan(&[&["sweep", path.to_str().unwrap()], more].concat()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{axes} {more:?}: {stderr}");
        assert!(stderr.contains(word) && !stderr.contains("panicked"), "{axes} {more:?}: {stderr}");
    };
    let gpus = "{ key = \"cluster.accelerators\", values = [512, 1024] }";
    let used = "{ key = \"finance.utilisation\", values = [0.5, 0.6] }";
    for (axes, word) in [
        (format!("{gpus}, {gpus}"), "varied twice"),
        (format!("{gpus}, {{ zip = [{used}, {gpus}] }}"), "varied twice"),
        (format!("{{ zip = [{gpus}, {gpus}] }}"), "varied twice"),
        (format!("{{ cases = [[{gpus}], [{used}, {used}]] }}"), "varied twice"),
        (format!("{{ cases = [[{gpus}], [{used}]] }}, {used}"), "varied twice"),
        ("{ zip = [] }".to_owned(), "`zip` holds no axes"),
        ("{ cases = [] }".to_owned(), "`cases` holds no axes"),
        ("{ cases = [[], []] }".to_owned(), "`cases` holds no axes"),
        ("{ key = \"cluster.accelerators\", values = [512, 1024, 512] }".to_owned(), "takes 512 twice"),
    ] {
        refused(GPT, &axes, &[], word);
    }
    for (more, word) in [
        (["--top", "0"], "--top"),
        (["--pareto", "cost.usd_per_run,max:cost.usd_per_run"], "twice"),
        (["--where", "cost.usd_per_run > nan"], "`nan`"),
        (["--where", "cost.usd_per_run < inf"], "`inf`"),
    ] {
        refused(GPT, gpus, &more, word);
    }
    let serving = "{ key = \"cluster.spares\", values = [0.0, 0.1] }";
    refused(SERVED, serving, &["--by", "serving.nope"], "rows have no `serving.nope`");
    // Cases follow each other, and axes that move together may come back to a value.
    for axes in [
        format!("{{ cases = [[{used}], [{used}]] }}"),
        "{ zip = [{ key = \"finance.utilisation\", values = [0.5, 0.5] }, { key = \"cluster.spares\", values = [0.0, 0.1] }] }"
            .to_owned(),
    ] {
        let path = bench.scenario(GPT, &format!("[sweep]\naxes = [{axes}]"));
        assert!(rows(&stdout(&["sweep", path.to_str().unwrap(), "--format", "csv"])).len() >= 2, "{axes}");
    }
}
