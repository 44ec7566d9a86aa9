//! What sums are made of, item by item: cost lines, the parts of networks, and all that draws power.

use super::cost_lines::{over, quantity};
use super::figure::{dollars, grouped, percent};
use crate::catalog::pricebook::Driver;
use crate::evaluate::{Evaluation, PartLine, PowerLine};
use crate::facility::Load;
use crate::tco::{CostLine, Rests, Spending};
use crate::units::{Usd, Watts};

/// A part of a sum.
pub(super) struct Item {
    /// What it is.
    pub(super) name: String,
    /// How much of the sum, in the unit of the figure's key.
    pub(super) value: f64,
    /// The same for people.
    pub(super) text: String,
    /// What is multiplied.
    pub(super) origin: String,
    /// Fields of the catalog that it rests on, as (folder, id, field).
    pub(super) fields: Vec<(&'static str, String, String)>,
    /// Figures and keys that its count hangs on.
    pub(super) inputs: Vec<&'static str>,
}

/// Takes the items of a sum from an evaluation.
type Items = fn(&Evaluation) -> Vec<Item>;

/// The sums that figures are computed from, by the name that stands among their inputs.
const SUMS: &[(&str, Items)] = &[
    ("lines.capex", |e| lines(e, is_capex, at_once)),
    ("lines.opex", |e| lines(e, |line| !is_capex(line), at_once)),
    ("lines.memory_tiers", |e| lines(e, |line| line.name.starts_with("Memory tier, "), at_once)),
    ("lines.annualised", |e| lines(e, |_| true, by_the_year)),
    ("lines.annualised_power", |e| lines(e, CostLine::is_of_power, by_the_year)),
    ("lines.horizon", |e| lines(e, |_| true, over_the_horizon)),
    ("parts.fabric_price", |e| e.built.parts.iter().map(|part| priced(e, part.called(), part)).collect()),
    ("parts.side_price", |e| {
        let of_network = |network| move |part| priced(e, crate::evaluate::SideBill::called(network, part), part);
        e.built.side.iter().flat_map(|network| network.parts.iter().map(of_network(network))).collect()
    }),
    ("parts.fabric_power", |e| drawing(&e.built.fabric_power_lines(&e.scenario.cluster), AVERAGE)),
    ("parts.side_power", |e| drawing(&e.built.side_power_lines(&e.scenario.cluster), AVERAGE)),
    ("loads.maximum", |e| {
        in_kilowatts(drawing(&e.built.power_lines(&e.scenario.cluster, &e.scenario.finance), MAXIMUM))
    }),
    ("loads.average", |e| {
        in_kilowatts(drawing(&e.built.power_lines(&e.scenario.cluster, &e.scenario.finance), AVERAGE))
    }),
];

/// The items of the sum of that name, what is nothing left out; none where it is no sum.
pub(super) fn items(sum: &str, evaluation: &Evaluation) -> Option<Vec<Item>> {
    let (_, items) = SUMS.iter().find(|(name, _)| *name == sum)?;
    Some(items(evaluation).into_iter().filter(|item| item.value != 0.0).collect())
}

/// Whether an input of a figure is such a sum.
pub fn is_sum(input: &str) -> bool {
    SUMS.iter().any(|(name, _)| *name == input)
}

const fn is_capex(line: &CostLine) -> bool {
    matches!(line.spending, Spending::Capex { .. })
}

/// What a line adds to a sum, and how that comes of its amount.
type Amount = fn(&Evaluation, &CostLine) -> (Usd, String);

/// Its own amount.
fn at_once(_: &Evaluation, line: &CostLine) -> (Usd, String) {
    (line.amount, String::new())
}

/// The yearly payment that is worth as much.
fn by_the_year(_: &Evaluation, line: &CostLine) -> (Usd, String) {
    let paid = match line.spending {
        Spending::Capex { .. } => format!(": {} once in {}", line.amount, over(line)),
        Spending::Opex { .. } => format!(": {} a year {}", line.amount, over(line)),
    };
    (line.annualised, paid.trim_end().to_owned())
}

/// All that is paid over the horizon.
fn over_the_horizon(evaluation: &Evaluation, line: &CostLine) -> (Usd, String) {
    let horizon = evaluation.scenario.finance.horizon;
    let (_, paid) = by_the_year(evaluation, line);
    (line.paid_over(horizon), paid)
}

fn lines(evaluation: &Evaluation, of: impl Fn(&CostLine) -> bool, amount: Amount) -> Vec<Item> {
    let cluster = &evaluation.scenario.cluster;
    let item = |line: &CostLine| {
        let (paid, how) = amount(evaluation, line);
        let field = match line.rests {
            Rests::Price => line.part().map(|part| ("prices", &cluster.prices.id, format!("price {part}"))),
            Rests::Book => Some(("prices", &cluster.prices.id, format!("line {}", line.name))),
            Rests::Site(field) => Some(("sites", &cluster.site.id, field.to_owned())),
            Rests::Stated => None,
        };
        Item {
            name: line.name.clone(),
            value: paid.value(),
            text: paid.to_string(),
            origin: format!("{}{how}", product(line)),
            fields: field.into_iter().map(|(folder, id, field)| (folder, id.clone(), field)).collect(),
            inputs: counted_by(line, evaluation),
        }
    };
    evaluation.built.costs.lines.iter().filter(|line| of(line)).map(item).collect()
}

/// How many at what.
fn product(line: &CostLine) -> String {
    let count = quantity(line.quantity);
    match line.per {
        Driver::CapexRatio => {
            format!("{} of {} for parts", percent(line.unit_amount.value()), Usd::new(line.quantity))
        }
        Driver::Year | Driver::Cluster => format!("{count} x {}", dollars(line.unit_amount)),
        per => format!("{count} x {} per {per}", dollars(line.unit_amount)),
    }
}

/// What the count of a line hangs on.
fn counted_by(line: &CostLine, evaluation: &Evaluation) -> Vec<&'static str> {
    let mut inputs = match line.per {
        Driver::Cluster if line.part() == Some(&evaluation.scenario.cluster.storage.id) => {
            vec!["cluster.storage_units"]
        }
        Driver::Accelerator | Driver::Node => vec!["cluster.accelerators", "cluster.spares"],
        Driver::Rack => vec!["facility.racks_count"],
        Driver::Switch => {
            vec!["fabric.leaf_switches_count", "fabric.spine_switches_count", "fabric.core_switches_count"]
        }
        Driver::Nic => vec!["fabric.nics_count"],
        Driver::Optic => vec!["fabric.optics_count"],
        Driver::Cable => vec!["fabric.cables_count"],
        Driver::FibreKm => vec!["cluster.topology.sites"],
        Driver::StorageTb => vec!["cluster.storage", "cluster.storage_units"],
        Driver::Kw => vec!["facility.it_kw"],
        Driver::Kwh => vec!["facility.energy_kwh_per_year"],
        Driver::Year | Driver::Cluster | Driver::CapexRatio => Vec::new(),
    };
    // Lines of the price book are paid for those in use alone.
    if line.part().is_some() && matches!(line.per, Driver::Switch | Driver::Optic | Driver::Cable) {
        inputs.push("cluster.fabric_spares");
    }
    inputs
}

/// A part of a network at its price.
fn priced(evaluation: &Evaluation, name: String, part: &PartLine) -> Item {
    let count = grouped(part.count);
    let count = if part.spares > 0 { format!("({count} + {} to spare)", grouped(part.spares)) } else { count };
    Item {
        name,
        value: part.price().value(),
        text: part.price().to_string(),
        origin: format!("{count} x {}", dollars(part.unit_price)),
        fields: vec![("prices", evaluation.scenario.cluster.prices.id.clone(), format!("price {}", part.id))],
        inputs: Vec::new(),
    }
}

/// What is taken of a load, and the fields of the catalog that say it.
type Drawn = (fn(&Load) -> Watts, &'static [&'static str]);

const MAXIMUM: Drawn = (
    |load| load.maximum,
    &["max_power", "nic_slots.included_power", "nic_slots.count", "power_max", "power", "power_per_end"],
);
const AVERAGE: Drawn = (
    |load| load.average,
    &["max_power", "nic_slots.included_power", "nic_slots.count", "power_typical", "power", "power_per_end"],
);

fn drawing(lines: &[PowerLine], (drawn, fields): Drawn) -> Vec<Item> {
    let item = |line: &PowerLine| {
        let each = drawn(&line.load);
        let all = each * line.load.count as f64;
        let of_entry = |(folder, id): &(&'static str, String)| {
            fields.iter().map(|field| (*folder, id.clone(), (*field).to_owned())).collect::<Vec<_>>()
        };
        Item {
            name: line.name.clone(),
            value: all.value(),
            text: all.to_string(),
            origin: format!("{} x {each}", grouped(line.load.count)),
            fields: line.entries.iter().flat_map(of_entry).collect(),
            inputs: Vec::new(),
        }
    };
    lines.iter().map(item).collect()
}

fn in_kilowatts(items: Vec<Item>) -> Vec<Item> {
    items.into_iter().map(|item| Item { value: item.value / 1e3, ..item }).collect()
}
