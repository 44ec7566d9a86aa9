//! The table of figures, and that parts add up to their totals in what is printed.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

mod figures;

use std::collections::BTreeSet;
use std::path::Path;

use clusterplan::catalog::Catalog;
use clusterplan::diagnostics::{Sink, Sources, render};
use clusterplan::document::Node;
use clusterplan::evaluate::{Evaluation, evaluate};
use clusterplan::load;
use clusterplan::report::{Derivation, METRICS, Unit, Value, derivation, evaluation_json, is_sum, metric};
use clusterplan::scenario::{Scenario, ScenarioFile};
use figures::is_conditional;

const SCENARIOS: [&str; 5] = [
    "train-dense-2t-h100",
    "train-gpt3-175b-1k-a100",
    "train-gpt3-175b-1k-h100",
    "train-llama3.1-405b-16k-h100",
    "train-mixtral-8x7b-64-h100",
];

fn evaluated(name: &str) -> Evaluation {
    evaluated_with_catalog(name).0
}

fn evaluated_with_catalog(name: &str) -> (Evaluation, Catalog) {
    let mut sources = Sources::default();
    let sink = Sink::default();
    let catalog = load::catalog(&[], &mut sources, &sink);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(format!("{name}.toml"));
    let document = load::scenario(&path, &[], &mut sources, &sink).unwrap();
    let file = ScenarioFile::read(&document, &sink);
    let scenario = Scenario::resolve(&file, &catalog, &sink);
    assert!(sink.is_empty(), "{}", render(&sink.into_diagnostics(), &sources, false));
    (evaluate(scenario.unwrap()).unwrap(), catalog)
}

fn number(evaluation: &Evaluation, key: &str) -> f64 {
    metric(key).unwrap().value(evaluation).unwrap().number().unwrap()
}

#[test]
fn keys_are_unique_and_name_group_and_unit() {
    let mut seen = BTreeSet::new();
    for metric in METRICS {
        assert!(seen.insert(metric.key), "{} is there twice", metric.key);
        assert_eq!(metric.key.split('.').next(), Some(metric.group.word()), "{}", metric.key);
        let word = metric.unit.word();
        let named = metric.name() == word
            || metric.name().ends_with(&format!("_{word}"))
            || metric.name().contains(&format!("{word}_per_"));
        assert!(
            matches!(metric.unit, Unit::Flag | Unit::Word) || named || metric.name().starts_with(&format!("{word}_")),
            "{} does not say {word}",
            metric.key
        );
        for text in [metric.label, metric.description, metric.formula] {
            assert!(!text.trim().is_empty(), "{}", metric.key);
            // `explain` shows a figure without the one before it.
            assert!(!text.starts_with("The same"), "{}", metric.key);
        }
    }
}

/// Whether some file of a catalog folder has a field; the folder is written before the field, `folder.field`.
fn in_catalog(documents: &load::CatalogDocuments, input: &str) -> bool {
    documents.iter().any(|((folder, _), document)| {
        let field = input.strip_prefix(folder.as_str()).and_then(|rest| rest.strip_prefix('.'));
        field.is_some_and(|field| document.at_path(field).is_some())
    })
}

#[test]
fn inputs_are_figures_or_sums_or_keys_of_the_scenario_or_fields_of_the_catalog() {
    let documents = load::catalog_documents(&[], &mut Sources::default(), &Sink::default());
    let keys = ScenarioFile::shape().paths();
    for figure in METRICS {
        for input in figure.inputs {
            let known = metric(input).is_some()
                || is_sum(input)
                || keys.iter().any(|key| key == input)
                || in_catalog(&documents, input);
            assert!(known, "`{input}`, an input of {}, is nowhere", figure.key);
        }
    }
}

#[test]
fn no_figure_depends_on_itself() {
    fn below(key: &str, path: &mut Vec<String>) {
        assert!(!path.iter().any(|open| open == key), "{path:?} leads back to {key}");
        path.push(key.to_owned());
        for input in metric(key).into_iter().flat_map(|figure| figure.inputs) {
            below(input, path);
        }
        path.pop();
    }
    for figure in METRICS {
        below(figure.key, &mut Vec::new());
    }
}

fn leaves<'a>(tree: &'a Derivation, all: &mut Vec<&'a Derivation>) {
    if tree.inputs.is_empty() {
        all.push(tree);
    }
    tree.inputs.iter().for_each(|input| leaves(input, all));
}

#[test]
fn every_figure_is_followed_down_to_keys_and_sources() {
    for name in ["train-mixtral-8x7b-64-h100", "serve-llama3.1-70b-64-h100"] {
        let (evaluation, catalog) = evaluated_with_catalog(name);
        for figure in METRICS {
            let Some(tree) = derivation(figure, &evaluation, &catalog, usize::MAX) else {
                assert_eq!(figure.value(&evaluation), None, "{}", figure.key);
                continue;
            };
            let mut ends = Vec::new();
            leaves(&tree, &mut ends);
            for end in ends {
                // What is no figure itself is a key with its origin, or a field with the document behind it.
                let sourced =
                    ["datasheet", "quote", "measured", "secondary", "derived", "assumed", "`clusterplan catalog"];
                let said = ["said by", "by default", "found by", "not in"];
                let told = metric(&end.key).is_none()
                    && !end.text.is_empty()
                    && (sourced.iter().any(|basis| end.origin.starts_with(basis))
                        || said.iter().any(|by| end.origin.starts_with(by)));
                assert!(told || end.origin == "as above", "{}: {end:?}", figure.key);
            }
        }
    }
}

#[test]
fn a_derivation_ends_where_it_is_told_to_and_its_parts_add_up() {
    let (evaluation, catalog) = evaluated_with_catalog("train-mixtral-8x7b-64-h100");
    let of = |key: &str, depth| derivation(metric(key).unwrap(), &evaluation, &catalog, depth).unwrap();
    assert_eq!(of("training.iteration_s", 0).inputs, []);
    let tree = of("training.iteration_s", 1);
    let parts: f64 = tree.inputs.iter().map(|input| input.value.unwrap()).sum();
    assert!((parts / tree.value.unwrap() - 1.0).abs() < 1e-12);
    assert!(tree.inputs.iter().all(|input| input.inputs.is_empty()));
    // Of all price lines and peaks, those of this cluster and number format.
    let mut ends = Vec::new();
    let cost = of("cost.usd_per_run", usize::MAX);
    leaves(&cost, &mut ends);
    let keys: Vec<&str> = ends.iter().map(|end| end.key.as_str()).collect();
    assert!(keys.contains(&"neocloud-2026h2.price dgx-h100"));
    assert!(keys.contains(&"h100-sxm-80gb.peak_dense.bf16"));
    assert!(
        !keys.iter().any(|key| key.contains("RoCEv2") || key.ends_with("peak_dense.fp64") || key.contains("ampere"))
    );
}

#[test]
fn keys_that_scripts_rely_on_are_there() {
    let training = "memory.weights_bytes memory.gradients_bytes memory.optimizer_bytes memory.activations_bytes \
        memory.kv_cache_bytes memory.workspace_bytes memory.total_bytes memory.usable_bytes memory.fits \
        training.iteration_s training.compute_s training.exposed_communication_s training.bubble_s training.optimizer_s \
        training.other_s training.mfu_ratio training.hfu_ratio training.tflops_per_s_per_gpu training.tokens_per_s \
        training.duration_days training.effective_days goodput.ratio goodput.mtbf_s goodput.checkpoint_interval_s \
        goodput.interruptions_per_day fabric.leaf_switches_count fabric.spine_switches_count fabric.core_switches_count \
        fabric.optics_count fabric.cables_count fabric.power_w fabric.capex_usd facility.it_kw facility.total_kw \
        facility.racks_count facility.energy_kwh_per_year facility.emissions_tco2e_per_year cost.capex_usd \
        cost.opex_per_year_usd cost.total_usd cost.usd_per_gpu_hour cost.usd_per_sold_gpu_hour \
        cost.usd_per_useful_gpu_hour cost.usd_per_run";
    let evaluation = evaluated("train-mixtral-8x7b-64-h100");
    for key in training.split_whitespace() {
        assert!(metric(key).is_some_and(|metric| metric.value(&evaluation).is_some()), "{key}");
    }
}

#[test]
fn every_figure_of_a_scenario_is_finite() {
    for name in SCENARIOS {
        let evaluation = evaluated(name);
        // What is said of data is optional, few makers state what making a GPU emits, and hosts seldom keep anything.
        let given = [
            "data.raw",
            "data.cleaned",
            "data.tokenised",
            "data.epochs",
            "data.preparation",
            "facility.embodied",
            "training.other_host",
        ];
        let optional = |key: &str| given.iter().any(|start| key.starts_with(start));
        for metric in METRICS.iter().filter(|metric| !is_conditional(metric) && !optional(metric.key)) {
            assert!(metric.value(&evaluation).is_some(), "{name}: {}", metric.key);
        }
    }
}

/// The sum of these keys, in their order, as a script would add them up.
fn sum(evaluation: &Evaluation, keys: &[&str]) -> f64 {
    keys.iter().fold(0.0, |total, key| total + number(evaluation, key))
}

#[test]
#[allow(clippy::float_cmp, reason = "parts are to add up to the last digit")]
fn parts_add_up_exactly() {
    for name in SCENARIOS {
        let evaluation = evaluated(name);
        let parts = ["weights", "gradients", "optimizer", "activations", "kv_cache", "workspace"]
            .map(|part| format!("memory.{part}_bytes"));
        assert_eq!(sum(&evaluation, &parts.each_ref().map(String::as_str)), number(&evaluation, "memory.total_bytes"));
        let parts = ["compute", "exposed_communication", "bubble", "optimizer", "other"]
            .map(|part| format!("training.{part}_s"));
        assert_eq!(
            sum(&evaluation, &parts.each_ref().map(String::as_str)),
            number(&evaluation, "training.iteration_s")
        );
        let parts =
            ["tensor", "context", "expert", "pipeline", "data"].map(|part| format!("training.exposed_{part}_s"));
        assert_eq!(
            sum(&evaluation, &parts.each_ref().map(String::as_str)),
            number(&evaluation, "training.exposed_communication_s")
        );
        let parts =
            ["launch", "accumulation", "step", "stragglers", "data"].map(|part| format!("training.other_{part}_s"));
        assert_eq!(sum(&evaluation, &parts.each_ref().map(String::as_str)), number(&evaluation, "training.other_s"));
        let lost = ["checkpoint", "rework", "detection", "restart", "spares", "network"]
            .map(|part| format!("goodput.lost_{part}_ratio"));
        let whole = number(&evaluation, "goodput.ratio") + sum(&evaluation, &lost.each_ref().map(String::as_str));
        assert!((whole - 1.0).abs() < 1e-9, "{whole}");
        let causes = ["accelerator", "memory", "host", "nic", "switch", "optic", "cable", "software", "job"]
            .map(|cause| format!("goodput.interruptions_{cause}_per_day"));
        let causes = sum(&evaluation, &causes.each_ref().map(String::as_str));
        assert!((causes / number(&evaluation, "goodput.interruptions_per_day") - 1.0).abs() < 1e-9, "{causes}");
        // What is lost by cause is what the run costs beyond its useful time.
        let lost = ["checkpoint", "accelerator", "memory", "host", "nic", "network", "software"]
            .map(|cause| format!("goodput.lost_{cause}_usd"));
        let lost = sum(&evaluation, &lost.each_ref().map(String::as_str));
        let useless = number(&evaluation, "cost.usd_per_run") * (1.0 - number(&evaluation, "goodput.ratio"));
        assert!((lost / useless - 1.0).abs() < 1e-9, "{lost}, {useless}");
    }
}

#[test]
#[allow(clippy::float_cmp, reason = "parts are to add up to the last digit")]
fn printed_parts_and_lines_add_up_exactly() {
    for name in SCENARIOS {
        let json: serde_json::Value = serde_json::from_str(&evaluation_json(&evaluated(name))).unwrap();
        let total = |list: &str, key: &str, only: &dyn Fn(&serde_json::Value) -> bool| {
            let items = json.pointer(list).and_then(serde_json::Value::as_array).unwrap();
            items.iter().filter(|item| only(item)).fold(0.0, |total, item| total + item[key].as_f64().unwrap())
        };
        let all = |_: &serde_json::Value| true;
        let figure = |at: &str| json.pointer(at).and_then(serde_json::Value::as_f64).unwrap();
        assert_eq!(total("/fabric/parts", "total_price_usd", &all), figure("/fabric/capex_usd"));
        assert_eq!(total("/fabric/parts", "total_power_w", &all), figure("/fabric/power_w"));
        let paid = |category: &'static str| move |line: &serde_json::Value| line["category"] == category;
        assert_eq!(total("/cost/lines", "capex_usd", &paid("capex")), figure("/cost/capex_usd"));
        assert_eq!(total("/cost/lines", "opex_per_year_usd", &paid("opex")), figure("/cost/opex_per_year_usd"));
        assert_eq!(total("/cost/lines", "annualised_per_year_usd", &all), figure("/cost/annualised_per_year_usd"));
        for kind in ["switch", "optical module", "cable", "network card"] {
            let key = match kind {
                "optical module" => "/fabric/optics_count",
                "cable" => "/fabric/cables_count",
                "network card" => "/fabric/nics_count",
                _ => "",
            };
            let counted = total("/fabric/parts", "count", &|part| part["kind"] == kind);
            let figure = if key.is_empty() {
                ["leaf", "spine", "core"].map(|tier| figure(&format!("/fabric/{tier}_switches_count"))).iter().sum()
            } else {
                figure(key)
            };
            assert_eq!(counted, figure, "{kind}");
        }
    }
}

#[test]
fn two_trillion_parameters_take_32_tb_and_about_400_h100() {
    let evaluation = evaluated("train-dense-2t-h100");
    // 2.01e12 parameters at 16 bytes: bf16 weights and gradients (2 each), fp32 master weights and two moments (4 each).
    let states = number(&evaluation, "memory.model_states_bytes");
    assert!((31.5e12..32.5e12).contains(&states), "{states}");
    let Value::Count(holding) = metric("memory.accelerators_to_hold_states_count").unwrap().value(&evaluation).unwrap()
    else {
        panic!()
    };
    assert!((370..=430).contains(&holding), "{holding}");
}

#[test]
fn texts_of_a_node_read_as_they_were_written() {
    let mut sources = Sources::default();
    let file = sources.add("x.toml", "v = { kind = \"rail-fat-tree\", oversubscription = [1, 1.5, 7], on = true }");
    let document = load::parse(&sources, file, &Sink::default());
    let text = document.at_path("v").map(Node::to_string);
    assert_eq!(text.as_deref(), Some("{ kind = rail-fat-tree, oversubscription = [1, 1.5, 7], on = true }"));
}
