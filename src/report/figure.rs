//! What a figure is: its key, unit and place, and how its value is written for people.

pub(super) use crate::units::{counted, grouped};

use crate::evaluate::{Bases, Evaluation, Evidence, Input};
use crate::provenance::Basis;
use crate::units::{
    Bandwidth, Bytes, CarbonMass, FlopRate, Joules, Quantity, RequestRate, Seconds, TokenRate, Usd, UsdPerHour, Watts,
    significant, to_integer,
};

/// The value of a figure, in the unit that its key names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A measure or a share.
    Number(f64),
    /// A count of things.
    Count(u64),
    /// Yes or no.
    Flag(bool),
    /// A word.
    Word(&'static str),
}

impl Value {
    /// The value as a number, where it is one.
    pub fn number(self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Count(count) => Some(count as f64),
            Self::Flag(_) | Self::Word(_) => None,
        }
    }

    /// This over the same figure of a baseline, less one; none where that is zero, or no number.
    pub fn delta(self, baseline: Self) -> Option<f64> {
        let ratio = self.number()? / baseline.number()? - 1.0;
        ratio.is_finite().then_some(ratio)
    }
}

/// The unit of a figure, as the end of its key names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Days.
    Days,
    /// A share, or a quotient that is shown in hundredths.
    Ratio,
    /// A quotient that is shown as it is.
    Quotient,
    /// A count.
    Count,
    /// Events a day.
    PerDay,
    /// Events a second.
    PerSecond,
    /// The most requests a second that are served.
    MostPerSecond,
    /// Hours of work.
    Hours,
    /// 10^9 bytes a second.
    GbytesPerSecond,
    /// How many of a thing each GPU has, or takes.
    PerGpu,
    /// 10^12 floating-point operations a second.
    TflopsPerSecond,
    /// Tokens a second.
    TokensPerSecond,
    /// Watts.
    Watts,
    /// Kilowatts.
    Kilowatts,
    /// Kilowatt-hours.
    KilowattHours,
    /// Tonnes of CO2 equivalent.
    Tonnes,
    /// Grams of CO2 equivalent.
    Grams,
    /// US dollars.
    Usd,
    /// US dollars an hour.
    UsdPerHour,
    /// None: yes or no.
    Flag,
    /// None: a word.
    Word,
}

impl Unit {
    /// What the key of such a figure says.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Seconds => "s",
            Self::Days => "days",
            Self::Ratio | Self::Quotient => "ratio",
            Self::Count => "count",
            Self::PerDay => "per_day",
            Self::PerSecond | Self::MostPerSecond => "per_s",
            Self::Hours => "h",
            Self::GbytesPerSecond => "gbytes_per_s",
            Self::PerGpu => "per_gpu",
            Self::TflopsPerSecond => "tflops_per_s",
            Self::TokensPerSecond => "tokens_per_s",
            Self::Watts => "w",
            Self::Kilowatts => "kw",
            Self::KilowattHours => "kwh",
            Self::Tonnes => "tco2e",
            Self::Grams => "gco2e",
            Self::Usd | Self::UsdPerHour => "usd",
            Self::Flag | Self::Word => "",
        }
    }

    /// A value for people: a fitting prefix and four significant digits; counts whole.
    pub fn text(self, value: Value) -> String {
        match value {
            Value::Flag(yes) => if yes { "yes" } else { "no" }.to_owned(),
            Value::Word(word) => word.to_owned(),
            Value::Count(count) => grouped(count),
            Value::Number(number) => self.number(number),
        }
    }

    fn number(self, number: f64) -> String {
        match self {
            Self::Bytes => Bytes::new(number).to_string(),
            Self::Seconds => Seconds::new(number).to_string(),
            Self::Days => format!("{} days", significant(number, 4)),
            Self::Ratio => percent(number),
            Self::Count if number.abs() >= 1e3 => grouped(to_integer(number.round())),
            Self::Count | Self::Flag | Self::Word | Self::Quotient | Self::PerGpu => significant(number, 4),
            Self::Hours => format!("{} h", significant(number, 4)),
            Self::GbytesPerSecond => scaled::<Bandwidth>(number * 1e9),
            Self::PerDay => format!("{} a day", Self::Count.number(number)),
            Self::PerSecond => format!("{} a second", significant(number, 4)),
            Self::MostPerSecond => Self::PerSecond.number(RequestRate::new(number).told_as_most().base()),
            Self::TflopsPerSecond => scaled::<FlopRate>(number * 1e12),
            Self::TokensPerSecond => scaled::<TokenRate>(number),
            Self::Watts => scaled::<Watts>(number),
            Self::Kilowatts => scaled::<Watts>(number * 1e3),
            Self::KilowattHours => scaled::<Joules>(number * 3.6e6),
            Self::Tonnes => scaled::<CarbonMass>(number * 1e3),
            Self::Grams => format!("{} gCO2e", significant(number, 4)),
            Self::Usd => scaled::<Usd>(number),
            Self::UsdPerHour => scaled::<UsdPerHour>(number),
        }
    }
}

fn scaled<Q: Quantity + ToString>(base: f64) -> String {
    Q::from_base(base).to_string()
}

/// A share in hundredths, to four significant digits.
pub(super) fn percent(share: f64) -> String {
    format!("{}%", significant(share * 100.0, 4))
}

/// A change in hundredths with its sign, to three digits and not below a hundredth of one; none where that leaves nothing.
pub(super) fn change(ratio: f64) -> Option<String> {
    let hundredths = (ratio * 1e4).round() / 100.0;
    let sign = if hundredths < 0.0 { "-" } else { "+" };
    (hundredths != 0.0).then(|| format!("{sign}{}%", significant(hundredths.abs(), 3)))
}

/// The price of one of what is counted, to the dollar, where it is no smaller: that of many is of four digits, as all sums are.
pub(super) fn dollars(price: Usd) -> String {
    // The base number, because only its size matters.
    if price.value() >= 1e3 { format!("${}", grouped(to_integer(price.value().round()))) } else { price.to_string() }
}

/// What a figure is about; figures of a group stand together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Memory of a GPU.
    Memory,
    /// The training step and the run.
    Training,
    /// Serving.
    Serving,
    /// Agents' tasks.
    Agents,
    /// The way of the data, and storage.
    Data,
    /// Failures and what they cost.
    Goodput,
    /// The scale-out network.
    Fabric,
    /// Power, racks, energy.
    Facility,
    /// Money.
    Cost,
}

impl Group {
    /// All of them, in order.
    pub const ALL: &'static [Self] = &[
        Self::Memory,
        Self::Training,
        Self::Serving,
        Self::Agents,
        Self::Data,
        Self::Goodput,
        Self::Fabric,
        Self::Facility,
        Self::Cost,
    ];

    /// The first word of its figures' keys.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Training => "training",
            Self::Serving => "serving",
            Self::Agents => "agents",
            Self::Data => "data",
            Self::Goodput => "goodput",
            Self::Fabric => "fabric",
            Self::Facility => "facility",
            Self::Cost => "cost",
        }
    }

    /// Its heading.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Memory => "Memory of a GPU, on the pipeline stage that needs most",
            Self::Training => "Training step and run",
            Self::Serving => "Serving",
            Self::Agents => "Agents' tasks",
            Self::Data => "Data and storage",
            Self::Goodput => "Failures and goodput",
            Self::Fabric => "Fabric",
            Self::Facility => "Facility",
            Self::Cost => "Cost",
        }
    }

    /// What its figures are computed from.
    pub fn inputs(self, evidence: &Evidence) -> &[Input] {
        match self {
            Self::Memory => &evidence.memory,
            Self::Training => &evidence.training,
            Self::Serving => &evidence.serving,
            Self::Agents => &evidence.agents,
            Self::Data => &evidence.data,
            Self::Goodput => &evidence.goodput,
            Self::Fabric => &evidence.fabric,
            Self::Facility => &evidence.facility,
            Self::Cost => &evidence.cost,
        }
    }

    /// The weakest basis behind its figures.
    pub const fn basis(self, bases: &Bases) -> Basis {
        match self {
            Self::Memory => bases.memory,
            Self::Training => bases.training,
            Self::Serving => bases.serving,
            Self::Agents => bases.agents,
            Self::Data => bases.data,
            Self::Goodput => bases.goodput,
            Self::Fabric => bases.fabric,
            Self::Facility => bases.facility,
            Self::Cost => bases.cost,
        }
    }
}

/// A figure of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// `group.name_unit`: the JSON key and the CSV header.
    pub key: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// What it is about.
    pub group: Group,
    /// A few words for tables.
    pub label: &'static str,
    /// What it says, in a sentence.
    pub description: &'static str,
    /// How it is computed, in words.
    pub formula: &'static str,
    /// The keys of what it is computed from: other figures, keys of the scenario, and `folder.field` of the catalog.
    pub inputs: &'static [&'static str],
    /// Takes it from an evaluation; none where the scenario has no such part.
    pub extract: fn(&Evaluation) -> Option<Value>,
}

impl Metric {
    /// The value, where there is one and it is finite.
    pub fn value(&self, evaluation: &Evaluation) -> Option<Value> {
        (self.extract)(evaluation).filter(|value| !matches!(value, Value::Number(number) if !number.is_finite()))
    }

    /// The key without its group.
    pub fn name(&self) -> &'static str {
        self.key.split_once('.').map_or(self.key, |(_, name)| name)
    }

    /// The value for people.
    pub fn text(&self, value: Value) -> String {
        self.unit.text(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_with_four_digits_and_a_fitting_unit() {
        let number = |unit: Unit, number| unit.text(Value::Number(number));
        assert_eq!(number(Unit::Bytes, 80.123_456e9), "80.12 GB");
        assert_eq!(number(Unit::Ratio, 0.376_134), "37.61%");
        assert_eq!(number(Unit::Kilowatts, 23_475.632), "23.48 MW");
        assert_eq!(number(Unit::KilowattHours, 165_756_290.0), "165.8 GWh");
        assert_eq!(number(Unit::TflopsPerSecond, 372.14), "372.1 TFLOP/s");
        assert_eq!(number(Unit::Days, 74.739), "74.74 days");
        assert_eq!(number(Unit::Usd, 78_151_870.4), "$78.15M");
        assert_eq!([3_123.4, 312.34].map(|count| number(Unit::Count, count)), ["3,123", "312.3"]);
        assert_eq!(Unit::Count.text(Value::Count(16_880)), "16,880");
        assert_eq!([grouped(0), grouped(999), grouped(1_000_000)], ["0", "999", "1,000,000"]);
    }

    #[test]
    fn changes_have_a_sign() {
        let changes = [-0.0312, 0.5, 0.000_293, 12.3].map(|ratio| change(ratio).unwrap());
        assert_eq!(changes, ["-3.12%", "+50%", "+0.03%", "+1230%"]);
        assert_eq!([change(1e-9), change(-2e-5), change(0.0)], [None, None, None]);
        assert_eq!(Value::Count(3).delta(Value::Count(2)), Some(0.5));
        assert_eq!(Value::Count(3).delta(Value::Count(0)), None);
        assert_eq!(Value::Flag(true).delta(Value::Flag(true)), None);
    }
}
