//! A model that was read from a configuration, as a file of the catalog.

use super::{Fill, Imported};

impl Imported {
    /// A file of the catalog with this model, called so, that was read from a file of that name on that day.
    pub fn to_file(&self, name: &str, source: &str, accessed: &str) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let fields: Vec<String> = self.model.toml_keys().into_iter().map(quoted).collect();
        let filled = |fill: &Fill| format!("{} taken as {} ({})", fill.key, fill.value, fill.why);
        let filled: Vec<String> = self.fills.iter().map(filled).collect();
        let note = if filled.is_empty() { String::new() } else { format!("note = {}\n", quoted(&filled.join("; "))) };
        let (title, fields) = (quoted(&format!("{name}, {source}")), fields.join(", "));
        let source = format!(
            "[[source]]\nfields = [{fields}]\nbasis = \"secondary\"\ntitle = {title}\naccessed = {accessed}\n{note}"
        );
        format!("name = {}\n{}\n{source}", quoted(name), self.model.to_toml())
    }
}
