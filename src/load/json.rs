//! JSON as other programs write it, `Infinity` and `NaN` included, as a spanned tree.

use std::collections::HashMap;
use std::path::Path;

use jiter::{Jiter, JiterError, Peek};

use crate::diagnostics::{Code, Diagnostic, FileId, Sink, Sources, Span};
use crate::document::{Entry, Node, Table, Value};

/// Tables and lists inside each other, more than any configuration has.
const DEEPEST: u32 = 64;

/// Parses a JSON text that is already in `sources`; a syntax error goes to the sink.
///
/// `null` is read as if its key were not there.
pub fn parse_json(sources: &Sources, file: FileId, sink: &Sink) -> Node {
    let text = sources.text(file);
    let mut parser = Parser { json: Jiter::new(text.as_bytes()).with_allow_inf_nan(), text, file, sink };
    let parsed = parser.document();
    let at = Span { file, range: 0..text.find('\n').unwrap_or(text.len()) };
    match parsed {
        Ok(node) => Node { value: node.map_or_else(Value::default, |node| node.value), at },
        Err(problem) => {
            let start = problem.at.min(text.len());
            let range = start..text.len().min(start + 1).max(start);
            sink.push(Diagnostic::new(Code::Syntax, "the text is not JSON").at(&Span { file, range }, problem.what));
            Node { value: Value::default(), at }
        }
    }
}

/// Reads and parses a JSON file; a failure goes to the sink.
pub fn read_json(path: &Path, sources: &mut Sources, sink: &Sink) -> Option<Node> {
    match super::read_text(path) {
        Ok(text) => {
            let file = sources.add(path.display().to_string(), text);
            Some(parse_json(sources, file, sink))
        }
        Err(error) => {
            super::unreadable(path, &error, sink);
            None
        }
    }
}

/// A model's configuration: a `config.json`, or a directory that has one, with the `hf_quant_config.json` beside it.
pub fn model_config(path: &Path, sources: &mut Sources, sink: &Sink) -> Option<(Node, Option<Node>)> {
    let file = if path.is_dir() { path.join("config.json") } else { path.to_owned() };
    let root = read_json(&file, sources, sink)?;
    let beside = file.with_file_name("hf_quant_config.json");
    let quantisation = if beside.is_file() { read_json(&beside, sources, sink) } else { None };
    Some((root, quantisation))
}

/// A syntax error and its place.
struct Problem {
    at: usize,
    what: String,
}

impl From<JiterError> for Problem {
    fn from(error: JiterError) -> Self {
        Self { at: error.index, what: error.error_type.to_string() }
    }
}

struct Parser<'a> {
    json: Jiter<'a>,
    text: &'a str,
    file: FileId,
    sink: &'a Sink,
}

impl Parser<'_> {
    fn document(&mut self) -> Result<Option<Node>, Problem> {
        let peek = self.json.peek()?;
        let node = self.value(peek, 0)?;
        self.json.finish()?;
        Ok(node)
    }

    fn span(&self, start: usize) -> Span {
        Span { file: self.file, range: start..self.json.current_index() }
    }

    /// The value that begins here; none where it is `null`.
    fn value(&mut self, peek: Peek, depth: u32) -> Result<Option<Node>, Problem> {
        let start = self.json.current_index();
        if depth > DEEPEST {
            return Err(Problem { at: start, what: format!("more than {DEEPEST} levels deep") });
        }
        let value = match peek {
            Peek::Null => {
                self.json.known_null()?;
                return Ok(None);
            }
            Peek::True | Peek::False => Value::Boolean(self.json.known_bool(peek)?),
            Peek::String => Value::String(self.json.known_str()?.to_owned()),
            Peek::Array => {
                let mut items = Vec::new();
                let mut next = self.json.known_array()?;
                while let Some(peek) = next {
                    items.extend(self.value(peek, depth + 1)?);
                    next = self.json.array_step()?;
                }
                Value::Array(items)
            }
            Peek::Object => Value::Table(self.table(start, depth)?),
            _ => self.number(peek)?,
        };
        Ok(Some(Node { value, at: self.span(start) }))
    }

    fn number(&mut self, peek: Peek) -> Result<Value, Problem> {
        let digits = String::from_utf8_lossy(self.json.known_number_bytes(peek)?).into_owned();
        if let Ok(whole) = digits.parse::<i64>() {
            return Ok(Value::Integer(whole));
        }
        Ok(Value::Float(digits.parse().unwrap_or(f64::NAN)))
    }

    fn table(&mut self, start: usize, depth: u32) -> Result<Table, Problem> {
        let mut table = Table::default();
        let mut places: HashMap<String, Span> = HashMap::new();
        let mut before = start + 1;
        let mut next = self.json.known_object()?.map(str::to_owned);
        while let Some(key) = next {
            let after = self.json.current_index();
            let quote = self.text[before..after].find('"').map_or(before, |offset| before + offset);
            let end = self.text[quote..after].rfind('"').map_or(after, |offset| quote + offset + 1);
            let at = Span { file: self.file, range: quote..end };
            let peek = self.json.peek()?;
            if let Some(node) = self.value(peek, depth + 1)? {
                if let Some(first) = places.get(&key) {
                    let twice = Diagnostic::new(Code::Duplicate, format!("`{key}` is given twice"));
                    self.sink.push(twice.at(&at, "again").at(first, "first here"));
                } else {
                    places.insert(key.clone(), at.clone());
                    table.entries.push(Entry { key, at, node });
                }
            }
            before = self.json.current_index();
            next = self.json.next_key()?.map(str::to_owned);
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Node, Vec<String>) {
        let mut sources = Sources::default();
        let file = sources.add("config.json", text);
        let sink = Sink::default();
        let node = parse_json(&sources, file, &sink);
        (node, sink.into_diagnostics().into_iter().map(|diagnostic| diagnostic.message).collect())
    }

    #[test]
    fn values_know_their_place() {
        let text = "{\"a\": {\"b\": [1, 2.5, -3]}, \"c\" : null, \"d\": [0.0, Infinity], \"e\": NaN}";
        let (node, mistakes) = parsed(text);
        assert_eq!(mistakes, Vec::<String>::new());
        let list = node.at_path("a.b").unwrap();
        assert_eq!(&text[list.at.range.clone()], "[1, 2.5, -3]");
        assert!(node.at_path("c").is_none());
        let table = node.as_table().unwrap();
        assert_eq!(
            table.entries.iter().map(|entry| &text[entry.at.range.clone()]).collect::<Vec<_>>(),
            ["\"a\"", "\"d\"", "\"e\""]
        );
        let Value::Array(limits) = &node.at_path("d").unwrap().value else { panic!("no list") };
        assert_eq!(limits[1].value, Value::Float(f64::INFINITY));
        assert!(matches!(node.at_path("e").unwrap().value, Value::Float(number) if number.is_nan()));
    }

    #[test]
    fn what_is_no_json_is_said() {
        assert_eq!(parsed("{\"a\": 1,, }").1, ["the text is not JSON"]);
        assert_eq!(parsed("").1, ["the text is not JSON"]);
        assert_eq!(parsed(&"[".repeat(1_000)).1, ["the text is not JSON"]);
        assert_eq!(parsed("{\"a\": 1, \"a\": 2}").1, ["`a` is given twice"]);
        assert_eq!(parsed("{} {}").1, ["the text is not JSON"]);
        // Too large for 64 bits: a number, so that whoever reads it reports its range.
        let big = parsed("{\"a\": 123456789012345678901234567890}").0;
        assert!(matches!(big.at_path("a").unwrap().value, Value::Float(number) if number > 1.2e29));
    }
}
