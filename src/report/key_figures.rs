//! The figures by which entries of a kind are told apart in a list.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::number::finite;
use crate::document::{Node, Value};
use crate::units::{
    Bandwidth, Bytes, CarbonIntensity, FlopRate, Meters, Quantity, Seconds, Usd, UsdPerHour, UsdPerJoule,
    UsdPerWattSecond, Watts,
};

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

/// What the key of a field ends in for programs, and its number there.
type Bare = (&'static str, fn(&str) -> Option<f64>);

fn in_unit<Q: Quantity>(text: &str, unit: &str) -> Option<f64> {
    Q::parse(text).ok()?.in_unit(unit)
}

/// The unit of a field, by the last part of its path or the one before; none of words.
fn unit_of(path: &str) -> Option<Bare> {
    let mut parts = path.rsplit('.');
    let (last, before) = (parts.next().unwrap_or(path), parts.next());
    Some(match last {
        _ if before == Some("peak_dense") => ("tflops_per_s", |text| in_unit::<FlopRate>(text, "TFLOP/s")),
        "memory_capacity" | "capacity" | "host_memory" | "text_per_token" => {
            ("bytes", |text| in_unit::<Bytes>(text, "B"))
        }
        "memory_bandwidth"
        | "read_bandwidth"
        | "write_bandwidth"
        | "update_bandwidth"
        | "bandwidth_per_direction"
        | "clean_rate"
        | "tokenise_rate" => ("gbytes_per_s", |text| in_unit::<Bandwidth>(text, "GB/s")),
        "speed" | "link_speed" => ("gbps", |text| in_unit::<Bandwidth>(text, "Gbit/s")),
        "tdp" | "power" | "max_power" | "power_typical" | "power_max" => ("w", |text| in_unit::<Watts>(text, "W")),
        "latency" => ("us", |text| in_unit::<Seconds>(text, "us")),
        "reach" => ("m", |text| in_unit::<Meters>(text, "m")),
        "electricity" => ("usd_per_kwh", |text| in_unit::<UsdPerJoule>(text, "$/kWh")),
        "colocation" => ("usd_per_kw_month", |text| in_unit::<UsdPerWattSecond>(text, "$/kW-month")),
        "carbon_intensity" => ("gco2e_per_kwh", |text| in_unit::<CarbonIntensity>(text, "gCO2e/kWh")),
        "pue" => ("ratio", |text| text.parse().ok()),
        "accelerators" | "domain" | "largest_domain" | "ports" | "links" => ("count", |text| text.parse().ok()),
        _ => return None,
    })
}

/// The figures of an entry for programs, under the paths of their fields with units: of a range what is usual, of several
/// speeds all, joined by semicolons.
pub(super) fn bare_figures(folder: &str, id: &str, document: &Node, documents: &Documents) -> Map<String, Json> {
    let mut all = Map::new();
    let number = |number: Option<f64>| number.map_or(Json::Null, finite);
    for (_, read) in columns(folder) {
        match *read {
            Field(path) => {
                let node = document.at_path(path);
                let text = node.map(|node| node.at_path("value").unwrap_or(node).to_string());
                match unit_of(path) {
                    Some((unit, bare)) => {
                        all.insert(format!("{path}_{unit}"), number(text.and_then(|text| bare(&text))));
                    }
                    None => _ = all.insert(path.to_owned(), text.map_or(Json::Null, word)),
                }
            }
            Counts(path) => {
                let node = document.at_path(path);
                let each = match node.map(|node| &node.value) {
                    Some(Value::Array(items)) => items.as_slice(),
                    _ => node.map(std::slice::from_ref).unwrap_or_default(),
                };
                let joined = |of: &dyn Fn(&Node) -> String| each.iter().map(of).collect::<Vec<_>>().join(";");
                let speed =
                    |node: &Node| in_unit::<Bandwidth>(&text(node, "speed"), "Gbit/s").map(|speed| speed.to_string());
                all.insert(format!("{path}_count"), joined(&|node| text(node, "count")).into());
                all.insert(format!("{path}_speed_gbps"), joined(&|node| speed(node).unwrap_or_default()).into());
            }
            Length(key) => _ = all.insert(format!("{key}s_count"), items(document, key).len().into()),
            Days(key) => {
                let days = sorted_days(items(document, key).iter());
                all.insert("first_date".to_owned(), days.first().cloned().into());
                all.insert("last_date".to_owned(), days.last().cloned().into());
            }
            Rent(term) => {
                let prices = rents(items(document, "offer"), term);
                let key = term.replace(['-', ' '], "_");
                let key =
                    if key.starts_with(|first: char| first.is_ascii_digit()) { format!("term_{key}") } else { key };
                all.insert(format!("{key}_usd_per_gpu_hour_low"), number(prices.first().copied()));
                all.insert(format!("{key}_usd_per_gpu_hour_high"), number(prices.last().copied()));
            }
            Price => {
                let (prices, newest) = prices(id, documents);
                all.insert("price_usd_low".to_owned(), number(prices.first().map(|(price, _)| *price)));
                all.insert("price_usd_high".to_owned(), number(prices.last().map(|(price, _)| *price)));
                all.insert("price_date".to_owned(), newest.into());
            }
        }
    }
    all
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

/// A word, or the number or the flag that it says.
fn word(text: String) -> Json {
    match (text.parse::<f64>(), text.parse::<bool>()) {
        (Ok(number), _) => finite(number),
        (_, Ok(flag)) => flag.into(),
        _ => text.into(),
    }
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
    let days = sorted_days(entries);
    span(days.first().map(String::as_str), days.last().map(String::as_str))
}

fn sorted_days<'a>(entries: impl Iterator<Item = &'a Node>) -> Vec<String> {
    let mut days: Vec<String> = entries.map(|entry| text(entry, "date")).filter(|day| !day.is_empty()).collect();
    days.sort();
    days
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
    let prices = rents(offers, term);
    let ends = [prices.first(), prices.last()].map(|price| price.map(|price| format!("{price:.2}")));
    span(ends[0].as_deref(), ends[1].as_deref())
}

/// What an accelerator costs an hour at a term, ascending.
fn rents(offers: &[Node], term: &str) -> Vec<f64> {
    let of_term = offers.iter().filter(|offer| text(offer, "term") == term);
    let hourly = |offer: &Node| {
        let one = UsdPerHour::parse(&text(offer, "price_per_accelerator_hour")).ok();
        let whole = UsdPerHour::parse(&text(offer, "price_per_instance_hour")).ok();
        let count: f64 = text(offer, "accelerators").parse().ok()?;
        one.or_else(|| whole.map(|whole| whole / count))?.in_unit("$/h")
    };
    let mut prices: Vec<f64> = of_term.filter_map(hourly).collect();
    prices.sort_by(f64::total_cmp);
    prices
}

/// What the books ask for a part, and the newest day of these prices.
fn price(id: &str, documents: &Documents) -> String {
    let (prices, newest) = prices(id, documents);
    let range = span(prices.first().map(|(_, low)| low.as_str()), prices.last().map(|(_, high)| high.as_str()));
    newest.map_or(range.clone(), |newest| format!("{range}, {newest}"))
}

/// Prices of a part in dollars and as they are written, ascending, and the newest day of them.
fn prices(id: &str, documents: &Documents) -> (Vec<(f64, String)>, Option<String>) {
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
    let newest = entries.iter().map(|entry| text(entry, "date")).max().filter(|_| !prices.is_empty());
    (prices, newest)
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
