//! Settings of the command line: `KEY=VALUE`, with the value written as in a scenario.

use std::ops::Range;
use std::path::Path;

use super::rows::attach;
use super::{node, read};
use crate::diagnostics::{Code, Diagnostic, FileId, Sink, Sources, Span};
use crate::document::{Node, Table, Value};
use crate::study::Axis;
use toml::de::DeTable;

/// A scenario with settings in it, later ones winning; mistakes go to the sink.
pub fn scenario(path: &Path, settings: &[String], sources: &mut Sources, sink: &Sink) -> Option<Node> {
    let document = read(path, sources, sink);
    let settings: Vec<_> = settings.iter().filter_map(|argument| setting("--set", argument, sources, sink)).collect();
    let mut document = document?;
    let Value::Table(table) = &mut document.value else { return Some(document) };
    for (key, node) in settings {
        let value_at = node.at.clone();
        let key_at = Span { range: 0..key.len(), ..value_at.clone() };
        match table.set(&key, node) {
            Ok(()) => place(table, &key, &value_at, &key_at),
            Err(error) => {
                let refused = Diagnostic::new(Code::UnknownKey, format!("`{key}` cannot be set: {error}"));
                sink.push(refused.at(&key_at, "").hint(error.hint()));
            }
        }
    }
    attach(&mut document, path, sources, sink);
    Some(document)
}

/// Gives the keys that a setting has made their place in its text; without it they have the value's.
fn place(table: &mut Table, path: &str, value_at: &Span, key_at: &Span) {
    let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
    let Some(entry) = table.entries.iter_mut().find(|entry| entry.key == key) else { return };
    if entry.at == *value_at {
        entry.at = key_at.clone();
    }
    if let (Some(rest), Value::Table(below)) = (rest, &mut entry.node.value) {
        place(below, rest, value_at, key_at);
    }
}

/// A `KEY=VALUE`; the value's place is in the argument's own text. Mistakes go to the sink.
///
/// The value is read as TOML; what is no TOML value is a text, so that ids need no quotes.
pub fn setting(option: &str, argument: &str, sources: &mut Sources, sink: &Sink) -> Option<(String, Node)> {
    let (file, key, range) = split(option, argument, "VALUE", sources, sink)?;
    Some((key, value(file, argument, range, sink)))
}

/// A `KEY=VALUE,VALUE,...`; commas inside brackets, braces and quotes belong to a value. Mistakes go to the sink.
pub fn axis(option: &str, argument: &str, sources: &mut Sources, sink: &Sink) -> Option<Axis> {
    let (file, key, range) = split(option, argument, "VALUE,VALUE,...", sources, sink)?;
    let values = items(argument, range).into_iter().map(|range| value(file, argument, range, sink)).collect();
    Some(Axis { key, values })
}

/// The key, and the bytes of what follows the first equals sign.
fn split(
    option: &str,
    argument: &str,
    values: &str,
    sources: &mut Sources,
    sink: &Sink,
) -> Option<(FileId, String, Range<usize>)> {
    let file = sources.add(option, argument);
    let Some((key, _)) = argument.split_once('=').filter(|(key, _)| !key.trim().is_empty()) else {
        let at = Span { file, range: 0..argument.len() };
        let message = format!("`{option}` takes KEY={values}");
        let hint = format!("such as {option} cluster.spares=0.05");
        sink.push(Diagnostic::new(Code::Syntax, message).at(&at, "no key and value").hint(hint));
        return None;
    };
    Some((file, key.trim().to_owned(), key.len() + 1..argument.len()))
}

/// The parts between commas outside of brackets, braces and quotes.
fn items(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let (mut start, mut depth, mut quote) = (range.start, 0_u32, None);
    for (at, byte) in text.bytes().enumerate().take(range.end).skip(range.start) {
        match (quote, byte) {
            (Some(open), _) => quote = (byte != open).then_some(open),
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'[' | b'{') => depth += 1,
            (None, b']' | b'}') => depth = depth.saturating_sub(1),
            (None, b',') if depth == 0 => {
                found.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(start..range.end);
    found
}

/// The value that stands at these bytes of a text, which follow at least two others.
fn value(file: FileId, text: &str, range: Range<usize>, sink: &Sink) -> Node {
    let written = &text[range.clone()];
    // A document of one key, padded so that places in it are places in the text.
    let padded = format!("x{}={written}", " ".repeat(range.start.saturating_sub(2)));
    let (table, errors) = DeTable::parse_recoverable(&padded);
    let mut entries = table.get_ref().iter();
    if let (true, Some((_, parsed)), None) = (errors.is_empty(), entries.next(), entries.next()) {
        return node(parsed, file, sink);
    }
    let trimmed = written.trim();
    let start = range.start + (written.len() - written.trim_start().len());
    let at = Span { file, range: start..start + trimmed.len() };
    if let Some(error) = errors.first().filter(|_| trimmed.starts_with(['"', '\'', '[', '{'])) {
        sink.push(Diagnostic::new(Code::Syntax, "the value is not TOML").at(&at, error.message()));
    }
    Node { value: Value::String(trimmed.to_owned()), at }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(argument: &str) -> (Option<(String, Node)>, usize) {
        let sink = Sink::default();
        let read = setting("--set", argument, &mut Sources::default(), &sink);
        (read, sink.len())
    }

    #[test]
    fn a_value_is_toml_or_else_a_text() {
        for (argument, expected) in [
            ("cluster.spares=0.05", Value::Float(0.05)),
            ("cluster.accelerators = 1024", Value::Integer(1_024)),
            ("cluster.fabric=quantum-2-ndr", Value::String("quantum-2-ndr".to_owned())),
            ("cluster.fabric=\"quantum-2-ndr\"", Value::String("quantum-2-ndr".to_owned())),
            ("software.date=2024-04", Value::String("2024-04".to_owned())),
            ("training.tokens=15.6 Ttoken", Value::String("15.6 Ttoken".to_owned())),
            ("software.overlap.data=true", Value::Boolean(true)),
            ("title=a=b", Value::String("a=b".to_owned())),
        ] {
            let (read, mistakes) = set(argument);
            let (key, node) = read.unwrap();
            assert_eq!((node.value, mistakes), (expected, 0), "{argument}");
            assert!(argument.starts_with(&key));
            assert_eq!(&argument[node.at.range.clone()], argument.split_once('=').unwrap().1.trim(), "{argument}");
        }
    }

    #[test]
    fn what_has_no_key_or_a_broken_value_is_reported() {
        for argument in ["cluster.spares", "=1", "title=\"open", "cluster.topology={ kind ="] {
            assert_eq!(set(argument).1, 1, "{argument}");
        }
    }

    #[test]
    fn an_axis_splits_at_outer_commas() {
        let sink = Sink::default();
        let text = "k=a,[1, 2],{ b = 1, c = 2 },\"d,e\", 3";
        let axis = axis("--vary", text, &mut Sources::default(), &sink).unwrap();
        assert!(sink.is_empty());
        let texts: Vec<&str> = axis.values.iter().map(|node| &text[node.at.range.clone()]).collect();
        assert_eq!(texts, ["a", "[1, 2]", "{ b = 1, c = 2 }", "\"d,e\"", "3"]);
        assert_eq!(axis.values[4].value, Value::Integer(3));
    }
}
