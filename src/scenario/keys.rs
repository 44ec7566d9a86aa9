//! Every key that a scenario may have, from what reads it.

use super::ScenarioFile;

/// Dotted paths of all keys, tables too; a key at the wrong level is told its place from here. What is in lists has none.
pub(super) fn keys() -> Vec<String> {
    ScenarioFile::shape().paths()
}

#[cfg(test)]
mod tests {
    use crate::diagnostics::{Code, Sink};
    use crate::document::{Node, Table, Value};
    use crate::scenario::ScenarioFile;

    fn leaf(value: Value) -> Node {
        Node { value, ..Node::default() }
    }

    #[test]
    fn a_key_at_the_wrong_level_is_told_its_place() {
        let hint = |path: &str, value: Value| {
            let mut root = Table::default();
            root.set(path, leaf(value)).unwrap();
            let sink = Sink::default();
            ScenarioFile::read(&leaf(Value::Table(root)), &sink);
            let unknown = sink.into_diagnostics().into_iter().find(|one| one.code == Code::UnknownKey).unwrap();
            unknown.hint.unwrap()
        };
        assert_eq!(hint("cluster.utilisation", Value::Float(0.8)), "it belongs at `finance.utilisation`");
        assert_eq!(
            hint("training.tensor", Value::Integer(8)),
            "it belongs at `software.overlap.tensor` or `training.layout.tensor` or `serving.layout.tensor` or `serving.layout.prefill.tensor` or `serving.layout.decode.tensor`"
        );
    }
}
