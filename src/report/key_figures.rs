//! The figures by which entries of a kind are told apart in a list.

use std::collections::BTreeMap;

use crate::document::{Node, Value};
use crate::units::{Quantity, Usd, UsdPerHour};

/// Catalog files by folder and id.
pub(super) type Documents = BTreeMap<(String, String), Node>;

/// A column: its head, and how it is read.
type Column = (&'static str, Read);

/// How a column is read from an entry.
#[derive(Clone, Copy)]
enum Read {
    /// The field of a dotted path, as written.
    Field(&'static str),
    /// Numbers of ports, or the like, by speed.
    Counts(&'static str),
    /// How many entries a list has.
    Length(&'static str),
    /// From the first to the last day in a list.
    Days(&'static str),
    /// From the lowest to the highest price of an accelerator for an hour at a term.
    Rent(&'static str),
    /// From the lowest to the highest price in the books, with the newest day.
    Price,
}

use Read::{Counts, Days, Field, Length, Price, Rent};

/// The columns of a kind; none where the name says enough.
fn columns(folder: &str) -> &'static [Column] {
    match folder {
        "accelerators" => &[
            ("memory", Field("memory_capacity")),
            ("bandwidth", Field("memory_bandwidth")),
            ("bf16", Field("peak_dense.bf16")),
            ("fp8", Field("peak_dense.fp8")),
            ("fp4", Field("peak_dense.fp4")),
            ("scale-up, each way", Field("scale_up.bandwidth_per_direction")),
            ("tdp", Field("tdp")),
        ],
        "nodes" => &[
            ("accelerators", Field("accelerators")),
            ("of", Field("accelerator")),
            ("domain", Field("scale_up.domain")),
            ("slots", Counts("nic_slots")),
            ("path", Field("nic_slots.path")),
            ("host memory", Field("host_memory")),
            ("power", Field("max_power")),
            ("price", Price),
        ],
        "switches" => &[
            ("ports", Counts("ports")),
            ("latency", Field("latency")),
            ("typical power", Field("power_typical")),
            ("most power", Field("power_max")),
            ("price", Price),
        ],
        "nics" => &[("ports", Field("ports")), ("speed", Field("speed")), ("power", Field("power")), ("price", Price)],
        "optics" => &[
            ("links", Field("links")),
            ("speed", Field("link_speed")),
            ("medium", Field("medium")),
            ("reach", Field("reach")),
            ("power", Field("power")),
            ("price", Price),
        ],
        "cables" => &[
            ("kind", Field("kind")),
            ("speed", Field("link_speed")),
            ("medium", Field("medium")),
            ("reach", Field("reach")),
            ("price", Price),
        ],
        "fabrics" => &[
            ("transport", Field("transport")),
            ("link", Field("link_speed")),
            ("leaf", Field("switch.leaf")),
            ("card", Field("nic")),
            ("load balancing", Field("load_balancing")),
        ],
        "storage" => &[
            ("read", Field("read_bandwidth")),
            ("write", Field("write_bandwidth")),
            ("capacity", Field("capacity")),
            ("power", Field("power")),
            ("price", Price),
        ],
        "components" => &[
            ("kind", Field("kind")),
            ("capacity", Field("capacity")),
            ("read", Field("read_bandwidth")),
            ("price", Price),
        ],
        "memory_tiers" => &[
            ("medium", Field("medium")),
            ("capacity", Field("capacity")),
            ("read", Field("read_bandwidth")),
            ("latency", Field("latency")),
            ("updates", Field("update_bandwidth")),
        ],
        "data" => &[
            ("text of a token", Field("text_per_token")),
            ("cleaning", Field("clean_rate")),
            ("tokenising", Field("tokenise_rate")),
        ],
        "scale_up" => &[
            ("each way", Field("bandwidth_per_direction")),
            ("largest domain", Field("largest_domain")),
            ("reduces", Field("in_network_reduction")),
        ],
        "sites" => &[
            ("pue", Field("pue")),
            ("electricity", Field("electricity")),
            ("colocation", Field("colocation")),
            ("carbon", Field("carbon_intensity")),
            ("cooling", Field("cooling")),
        ],
        "prices" => &[("prices", Length("price")), ("lines", Length("line")), ("days", Days("price"))],
        "providers" => &[
            ("class", Field("class")),
            ("offers", Length("offer")),
            ("on-demand, $/h", Rent("on-demand")),
            ("spot", Rent("spot")),
            ("1 year", Rent("1 year")),
            ("3 years", Rent("3 years")),
            ("days", Days("offer")),
        ],
        "currencies" => &[("usd", Field("usd")), ("day", Field("date"))],
        _ => &[],
    }
}

/// The heads of a kind's columns.
pub(super) fn heads(folder: &str) -> Vec<&'static str> {
    columns(folder).iter().map(|(head, _)| *head).collect()
}

/// The figures of an entry under these heads; nothing stands for what it does not say.
pub(super) fn figures(folder: &str, id: &str, document: &Node, documents: &Documents) -> Vec<String> {
    let figure = |read: Read| match read {
        Field(path) => document.at_path(path).map(ranged).unwrap_or_default(),
        Counts(path) => counts(document.at_path(path)),
        Length(key) => items(document, key).len().to_string(),
        Days(key) => days(items(document, key).iter()),
        Rent(term) => rent(items(document, "offer"), term),
        Price => price(id, documents),
    };
    columns(folder).iter().map(|(_, read)| figure(*read)).collect()
}

fn items<'a>(document: &'a Node, key: &str) -> &'a [Node] {
    match document.at_path(key).map(|node| &node.value) {
        Some(Value::Array(items)) => items,
        _ => &[],
    }
}

fn text(node: &Node, key: &str) -> String {
    node.at_path(key).map(Node::to_string).unwrap_or_default()
}

/// `64 x 800 Gbit/s or 128 x 400 Gbit/s`.
fn counts(node: Option<&Node>) -> String {
    let one = |node: &Node| format!("{} x {}", text(node, "count"), text(node, "speed"));
    match node.map(|node| &node.value) {
        Some(Value::Array(items)) => items.iter().map(one).collect::<Vec<_>>().join(" or "),
        Some(_) => node.map(one).unwrap_or_default(),
        None => String::new(),
    }
}

/// The first and the last of the days of some entries.
fn days<'a>(entries: impl Iterator<Item = &'a Node>) -> String {
    let mut days: Vec<String> = entries.map(|entry| text(entry, "date")).filter(|day| !day.is_empty()).collect();
    days.sort();
    span(days.first().map(String::as_str), days.last().map(String::as_str))
}

/// `a`, or `a to b`.
fn span(low: Option<&str>, high: Option<&str>) -> String {
    match (low, high) {
        (Some(low), Some(high)) if low != high => format!("{low} to {high}"),
        (Some(low), _) => low.to_owned(),
        _ => String::new(),
    }
}

fn rent(offers: &[Node], term: &str) -> String {
    let of_term = offers.iter().filter(|offer| text(offer, "term") == term);
    let hourly = |offer: &Node| {
        let one = UsdPerHour::parse(&text(offer, "price_per_accelerator_hour")).ok();
        let whole = UsdPerHour::parse(&text(offer, "price_per_instance_hour")).ok();
        let count: f64 = text(offer, "accelerators").parse().ok()?;
        one.or_else(|| whole.map(|whole| whole / count))?.in_unit("$/h")
    };
    let mut prices: Vec<f64> = of_term.filter_map(hourly).collect();
    prices.sort_by(f64::total_cmp);
    let ends = [prices.first(), prices.last()].map(|price| price.map(|price| format!("{price:.2}")));
    span(ends[0].as_deref(), ends[1].as_deref())
}

/// What the books ask for a part, and the newest day of these prices.
fn price(id: &str, documents: &Documents) -> String {
    let books = documents.iter().filter(|((folder, _), _)| folder == "prices");
    let entries: Vec<&Node> = books
        .flat_map(|(_, book)| items(book, "price"))
        .filter(|entry| entry.at_path("part").and_then(Node::as_str) == Some(id))
        .collect();
    let value = |entry: &&Node| {
        let usd = entry.at_path("usd")?;
        let written = usd.at_path("value").unwrap_or(usd).to_string();
        Some((Usd::parse(&written).ok()?.in_unit("USD")?, written))
    };
    let mut prices: Vec<(f64, String)> = entries.iter().filter_map(value).collect();
    prices.sort_by(|a, b| a.0.total_cmp(&b.0));
    let range = span(prices.first().map(|(_, low)| low.as_str()), prices.last().map(|(_, high)| high.as_str()));
    let newest = entries.iter().map(|entry| text(entry, "date")).max().unwrap_or_default();
    if range.is_empty() { range } else { format!("{range}, {newest}") }
}

/// A value, and its range where it has one.
pub(super) fn ranged(node: &Node) -> String {
    let Some(table) = node.as_table() else { return node.to_string() };
    let text = |key: &str| table.get(key).map(Node::to_string);
    match (text("value"), text("low"), text("high")) {
        (Some(value), Some(low), Some(high)) => format!("{value} ({low} to {high})"),
        (Some(value), None, None) => value,
        _ => node.to_string(),
    }
}
