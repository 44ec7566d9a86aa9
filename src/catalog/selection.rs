//! Conditions on entries: `memory_capacity >= 100 GiB`, `vendor = NVIDIA`, `peak_dense.fp8 > 2 PFLOP/s`,
//! `accelerator in [h100-sxm-80gb, h200-sxm-141gb]`.

use std::cmp::Ordering;

use super::Record;
use super::record::text;
use super::relation::Relation;
use crate::document::{Node, Value};
use crate::units::{
    Bandwidth, Bytes, CarbonIntensity, FlopRate, Meters, Quantity, Seconds, Usd, UsdPerHour, UsdPerJoule,
    UsdPerWattSecond, Watts,
};

/// A condition on one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    field: String,
    relation: Relation,
    value: String,
    /// What else it may be equal to.
    others: Vec<String>,
}

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no condition; write a field, one of = != < <= > >=, and a value, such as \"memory_capacity >= 100 GiB\", or a field and a list, such as \"accelerator in [h100-sxm-80gb, h200-sxm-141gb]\""
)]
pub struct ConditionError(String);

impl Condition {
    /// Reads `field relation value`, or `field in [value, value]`.
    ///
    /// # Errors
    /// When a part of the three is missing.
    pub fn parse(condition: &str) -> Result<Self, ConditionError> {
        let wrong = || ConditionError(condition.to_owned());
        if let Some((field, list)) = condition.split_once(" in ") {
            let list = list.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).ok_or_else(wrong)?;
            let mut values = list.split(',').map(|value| value.trim().trim_matches('"').to_owned());
            let (field, value) = (field.trim().to_owned(), values.next().unwrap_or_default());
            let others: Vec<String> = values.collect();
            if field.is_empty() || value.is_empty() || others.iter().any(String::is_empty) {
                return Err(wrong());
            }
            return Ok(Self { field, relation: Relation::Equal, value, others });
        }
        let at = condition.find(['<', '>', '=', '!']).ok_or_else(wrong)?;
        let (field, rest) = condition.split_at(at);
        let (sign, relation) = Relation::SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)).ok_or_else(wrong)?;
        let (field, value) = (field.trim(), rest[sign.len()..].trim().trim_matches('"'));
        if field.is_empty() || value.is_empty() || value.starts_with('=') {
            return Err(wrong());
        }
        // What has no magnitude is neither more nor less than anything.
        let condition =
            Self { field: field.to_owned(), relation: *relation, value: value.to_owned(), others: Vec::new() };
        if condition.is_of_order() && magnitudes(value, value).is_none() {
            return Err(wrong());
        }
        Ok(condition)
    }

    const fn is_of_order(&self) -> bool {
        self.relation.is_of_order()
    }

    /// Whether the entry has the field, and the field something that the value can be held against.
    pub fn applies(&self, record: &Record<'_>) -> bool {
        match self.field.as_str() {
            "id" | "kind" | "name" => true,
            path => any_at(record.document, path, &|node| {
                !self.is_of_order() || magnitudes(&text(node), &self.value).is_some()
            }),
        }
    }

    /// Whether an entry meets the condition; one without the field does not.
    pub fn holds(&self, record: &Record<'_>) -> bool {
        match self.field.as_str() {
            "id" => self.compares(record.id),
            "kind" => self.compares(record.kind),
            "name" => self.compares(record.name),
            path => any_at(record.document, path, &|node| self.compares(&text(node))),
        }
    }

    fn compares(&self, have: &str) -> bool {
        let order = compare(have, &self.value);
        let is = |value: &String| compare(have, value) == Some(Ordering::Equal) || have.eq_ignore_ascii_case(value);
        match self.relation {
            Relation::Equal => is(&self.value) || self.others.iter().any(is),
            Relation::Unequal => !is(&self.value),
            relation => order.is_some_and(|order| relation.holds(order)),
        }
    }
}

/// Whether any value at a dotted path meets the condition; a path leads into each entry of a list.
fn any_at(node: &Node, path: &str, holds: &dyn Fn(&Node) -> bool) -> bool {
    if let Value::Array(items) = &node.value {
        return items.iter().any(|item| any_at(item, path, holds));
    }
    if path.is_empty() {
        return holds(node.at_path("value").unwrap_or(node));
    }
    let (key, rest) = path.split_once('.').unwrap_or((path, ""));
    node.as_table().and_then(|table| table.get(key)).is_some_and(|below| any_at(below, rest, holds))
}

/// How two texts compare as quantities of one kind, or as numbers; none where they are neither.
pub(super) fn compare(a: &str, b: &str) -> Option<Ordering> {
    let (a, b) = magnitudes(a, b)?;
    if (a - b).abs() <= 1e-9 * b.abs() { Some(Ordering::Equal) } else { a.partial_cmp(&b) }
}

/// Two texts as numbers in the same base unit.
pub fn magnitudes(a: &str, b: &str) -> Option<(f64, f64)> {
    fn pair<Q: Quantity>(a: &str, b: &str) -> Option<(f64, f64)> {
        // Base numbers, because only their order and ratio matter.
        Some((Q::parse(a).ok()?.base(), Q::parse(b).ok()?.base()))
    }
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    let kinds = [
        pair::<Bytes>,
        pair::<Bandwidth>,
        pair::<FlopRate>,
        pair::<Watts>,
        pair::<Seconds>,
        pair::<Meters>,
        pair::<Usd>,
        pair::<UsdPerHour>,
        pair::<UsdPerJoule>,
        pair::<UsdPerWattSecond>,
        pair::<CarbonIntensity>,
    ];
    number(a).zip(number(b)).or_else(|| kinds.iter().find_map(|kind| kind(a, b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_compare_across_units() {
        assert_eq!(compare("81559 MiB", "80 GB"), Some(Ordering::Greater));
        assert_eq!(compare("0.4 Tbit/s", "400 Gbit/s"), Some(Ordering::Equal));
        assert_eq!(compare("8", "16"), Some(Ordering::Less));
        assert_eq!(compare("700 W", "80 GB"), None);
        assert_eq!(compare("NVIDIA", "AMD"), None);
    }

    #[test]
    fn conditions_need_field_relation_and_value() {
        let condition = Condition::parse("memory_capacity >= 100 GiB").unwrap();
        assert_eq!((condition.field.as_str(), condition.relation), ("memory_capacity", Relation::AtLeast));
        assert!(condition.compares("143771 MiB"));
        assert!(!condition.compares("81559 MiB"));
        let listed = Condition::parse("accelerator in [h100-sxm-80gb, \"h200-sxm-141gb\"]").unwrap();
        let held = ["h100-sxm-80gb", "h200-sxm-141gb", "b200"].map(|id| listed.compares(id));
        assert_eq!(held, [true, true, false]);
        for wrong in ["vendor in NVIDIA", "vendor in [NVIDIA", "vendor in []", "vendor in [NVIDIA,]", " in [a]"] {
            assert!(Condition::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Condition::parse("vendor == NVIDIA"), Condition::parse("vendor = NVIDIA"));
        for wrong in ["vendor", "= NVIDIA", "vendor =", "vendor ==", "vendor ~ NVIDIA"] {
            assert!(Condition::parse(wrong).is_err(), "{wrong}");
        }
    }
}
