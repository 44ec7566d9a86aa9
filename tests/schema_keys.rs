//! The keys of scenarios, sweeps and studies against their schemas: each that is read is described, each that is described is
//! read, and the defaults that are told are those that are taken.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

mod program;
mod schema;

use std::collections::{BTreeMap, BTreeSet};

use clusterplan::diagnostics::{Code, Sink, Sources};
use clusterplan::document::{Entry, Node, Property, Schema, Table, Value};
use clusterplan::scenario::ScenarioFile;
use clusterplan::study::pricing::StudyFile;

/// How a reader takes a document.
type Read = fn(&Node, &Sink);
/// A step from a value to one inside it.
#[derive(Clone)]
enum Step {
    Key(&'static str),
    Item,
}

fn node(value: Value) -> Node {
    Node { value, ..Node::default() }
}

fn table(entries: &[(&str, Node)]) -> Node {
    let entry = |(key, node): &(&str, Node)| Entry { key: (*key).to_owned(), at: <_>::default(), node: node.clone() };
    node(Value::Table(Table { entries: entries.iter().map(entry).collect() }))
}

/// All tables of a schema with the way to each.
fn tables<'a>(schema: &'a Schema, way: &[Step], found: &mut Vec<(Vec<Step>, &'a [Property])>) {
    match schema {
        Schema::Either(one, other) => [one, other].into_iter().for_each(|schema| tables(schema, way, found)),
        Schema::List(item) => tables(item, &[way, &[Step::Item]].concat(), found),
        Schema::Table(properties) => {
            found.push((way.to_vec(), properties));
            for property in properties {
                tables(&property.schema, &[way, &[Step::Key(property.key)]].concat(), found);
            }
        }
        _ => {}
    }
}

/// The dotted words of a way.
fn dotted(way: &[Step]) -> String {
    let keys = way.iter().filter_map(|step| if let Step::Key(key) = step { Some(*key) } else { None });
    keys.collect::<Vec<_>>().join(".")
}

/// A document that has a value at the end of a way. Offers are of each kind in turn.
fn document(way: &[Step], value: &Node) -> Vec<Node> {
    let kinds = if matches!(way.first(), Some(Step::Key("offer"))) { &["own", "rent", "api"][..] } else { &[""] };
    let with = |kind: &str| {
        way.iter().enumerate().rev().fold(value.clone(), |inner, (depth, step)| match step {
            Step::Item => match &inner.value {
                Value::Table(fields) if depth == 1 && !kind.is_empty() => {
                    let mut fields = fields.clone();
                    fields.set("kind", node(Value::String(kind.to_owned()))).unwrap();
                    node(Value::Array(vec![node(Value::Table(fields))]))
                }
                _ => node(Value::Array(vec![inner])),
            },
            Step::Key(key) => table(&[(key, inner)]),
        })
    };
    kinds.iter().map(|kind| with(kind)).collect()
}

/// Unknown keys of each document with their hints.
fn unknown(documents: &[Node], read: Read) -> Vec<Vec<String>> {
    let of = |document: &Node| {
        let sink = Sink::default();
        read(document, &sink);
        let all = sink.into_diagnostics().into_iter().filter(|one| one.code == Code::UnknownKey);
        // Axes and inputs may name keys that no scenario has; that is of their values.
        let named = all.filter_map(|one| {
            Some((one.message.strip_prefix("unknown key `")?.split_once('`')?.0.to_owned(), one.hint))
        });
        named.map(|(key, hint)| format!("{key}: {}", hint.unwrap_or_default())).collect()
    };
    documents.iter().map(of).collect()
}

fn shapes() -> [(&'static str, Schema, Read); 2] {
    let scenario: Read = |document, sink| drop(ScenarioFile::read(document, sink));
    let study: Read = |document, sink| drop(StudyFile::read(document, sink));
    [("scenario", ScenarioFile::shape(), scenario), ("study", StudyFile::shape(), study)]
}

#[test]
fn what_is_described_is_read_and_what_is_read_is_described() {
    for (what, shape, read) in shapes() {
        let (mut found, mut described) = (Vec::new(), BTreeMap::<String, BTreeSet<&str>>::new());
        tables(&shape, &[], &mut found);
        for (way, properties) in &found {
            described.entry(dotted(way)).or_default().extend(properties.iter().map(|property| property.key));
        }
        assert!(described.values().map(BTreeSet::len).sum::<usize>() > 100, "{what}");
        for (way, properties) in &found {
            for property in *properties {
                let documents = document(way, &table(&[(property.key, node(Value::Integer(1)))]));
                let refused = unknown(&documents, read);
                assert!(refused.iter().any(Vec::is_empty), "{what}: `{}.{}` is not read", dotted(way), property.key);
            }
            let mut told = 0;
            for hint in unknown(&document(way, &table(&[("qqq", node(Value::Integer(1)))])), read).concat() {
                // What an offer of another kind does not have is told as unknown itself.
                let Some(keys) = hint.strip_prefix("qqq: ") else { continue };
                told += 1;
                for key in keys.trim_start_matches("the keys here are ").split(", ") {
                    let key = key.trim_matches('`');
                    assert!(described[&dotted(way)].contains(key), "{what}: `{}.{key}` is not described", dotted(way));
                }
            }
            assert!(told > 0, "{what}: `{}` takes what it does not know", dotted(way));
        }
    }
}

#[test]
fn every_key_says_what_it_is_and_takes() {
    // What they take is what another key takes.
    let open = ["offer.figure.value"];
    for (what, shape, _) in shapes() {
        let mut found = Vec::new();
        tables(&shape, &[], &mut found);
        for (way, properties) in found {
            for property in properties {
                let path = [dotted(&way), property.key.to_owned()].join(".");
                assert!(property.about.says.len() > 5, "{what}: `{path}` says nothing");
                assert!(property.schema != Schema::Any || open.contains(&&*path), "{what}: `{path}` takes anything");
            }
        }
        let json = shape.document(what);
        assert!(json["properties"]["title"]["description"].as_str().unwrap().len() > 5);
    }
    let answer = program::run(&["schema", "study"]);
    let json: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    let of_time = &json["properties"]["offer"]["items"]["properties"]["wait"];
    assert_eq!(of_time["examples"][0], "6 months");
    assert!(of_time["description"].as_str().unwrap().contains("(s, ms, "), "{of_time}");
}

#[test]
fn studies_are_as_their_schema_says() {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("studies").unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "toml") {
            continue;
        }
        let (mut sources, sink) = (Sources::default(), Sink::default());
        let file = sources.add(path.display().to_string(), std::fs::read_to_string(&path).unwrap());
        let document = clusterplan::load::parse(&sources, file, &sink);
        schema::mistakes(&StudyFile::shape().to_json(), &document, &path.display().to_string(), &mut found);
    }
    assert_eq!(found, Vec::<String>::new());
}

/// Keys with a default that is a value, which a scenario leaves out while it has the table that they are in.
fn left_out(scenario: &Node) -> Vec<String> {
    let mut found = Vec::new();
    let shape = ScenarioFile::shape();
    tables(&shape, &[], &mut found);
    let mut settings = Vec::new();
    for (way, properties) in found.into_iter().filter(|(way, _)| way.iter().all(|step| matches!(step, Step::Key(_)))) {
        let at = dotted(&way);
        let there = scenario.at_path(&at).and_then(Node::as_table);
        for property in properties {
            let (Some(there), Some(default)) = (there, property.about.value()) else { continue };
            if there.get(property.key).is_none() {
                settings.push(format!("{at}.{}={default}", property.key));
            }
        }
    }
    settings
}

#[test]
fn defaults_that_are_told_are_those_that_are_taken() {
    let told = [
        ("scenarios/train-mixtral-8x7b-64-h100.toml", 15),
        ("scenarios/serve-llama3.1-70b-64-h100.toml", 12),
        ("scenarios/serve-coding-agents-64-h200.toml", 12),
    ];
    for (path, at_least) in told {
        let (mut sources, sink) = (Sources::default(), Sink::default());
        let document = clusterplan::load::scenario(path.as_ref(), &[], &mut sources, &sink).unwrap();
        let mut settings = left_out(&document);
        if document.at_path("agents").is_some() {
            // These follow from agents.
            settings.retain(|set| !["serving.prefix_hit=", "serving.arrivals="].iter().any(|key| set.starts_with(key)));
        }
        assert!(settings.len() >= at_least, "{path}: {settings:?}");
        let set: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
        let figures = |set: &[&str]| {
            let answer = program::run(&[&["eval", path, "--format", "json"], set].concat());
            assert_eq!(answer.code, 0, "{path}: {}", answer.stderr);
            let mut json: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
            // What was given and what by default is said there, and nothing else may differ.
            json.as_object_mut()
                .unwrap()
                .retain(|key, _| !["scenario", "assumed", "assumptions"].contains(&key.as_str()));
            json
        };
        let (plain, told) = (figures(&[]), figures(&set));
        for (key, value) in plain.as_object().unwrap() {
            assert_eq!(value, &told[key], "{path}: {key}");
        }
    }
}
