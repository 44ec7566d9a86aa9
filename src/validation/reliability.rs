//! Published failures: from a fleet's size and kind to its interruptions, mean times and useful time.
//!
//! A fleet is found by its `case`, and what a figure is by its `metric`, both in the alias table. Interruptions by cause of
//! one case are finer in public than the catalog's components: those of one component are added up and held together, at
//! the first of their rows.

use super::aliases::Aliases;
use super::outcome::{Fill, Outcome, Prediction};
use super::table::{Row, Unusable};
use crate::catalog::reliability::Reliability;
use crate::catalog::{Catalog, Entry, NetworkReliability};
use crate::document::{Reader, choices};
use crate::reliability::{
    Checkpoint, CheckpointPath, Components, Hazards, Interruptions, Recovery, daly_interval, young_interval,
};
use crate::units::{Bandwidth, Bytes, Quantity, Seconds, to_integer};
use crate::workload::CheckpointMode;

/// Columns that a table of failures must have; no others are read.
pub(super) const COLUMNS: &[&str] = &["id", "case", "metric", "value", "unit", "inputs"];

choices! {
    /// What a figure says.
    pub(in crate::validation) enum Figure {
        /// Interruptions of a component, in the days of the case.
        Cause = "cause",
        /// Interruptions of all kinds, in the days of the case.
        Interruptions = "interruptions",
        /// Mean time between interruptions of the job.
        Mtbf = "mtbf",
        /// The same as far as components explain it.
        MtbfOfNodes = "mtbf-of-nodes",
        /// Interruptions of a node in a day, as far as components explain them.
        NodeRate = "node-rate",
        /// Hours of one GPU between interruptions.
        GpuHours = "gpu-hours",
        /// Hosts that fail in a day.
        HostsPerDay = "hosts-per-day",
        /// GPUs that fail in a week.
        GpusPerWeek = "gpus-per-week",
        /// Useful share of the time.
        Goodput = "goodput",
        /// Daly's interval of the inputs `M` and `delta`.
        Daly = "daly",
        /// Young's interval.
        Young = "young",
    }
}

choices! {
    /// A component of the catalog that causes are put down to.
    pub(in crate::validation) enum Cause {
        /// Accelerators without their memory.
        Accelerator = "accelerator",
        /// Memory of accelerators.
        Memory = "memory",
        /// Hosts.
        Host = "host",
        /// Software.
        Software = "software",
        /// Network cards.
        Nic = "nic",
        /// Switches, modules and cables.
        Network = "network",
    }
}

/// A fleet, or a job on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fleet {
    set: String,
    gpus: u32,
    days: Option<f64>,
    shared: bool,
    network: Option<[u32; 3]>,
    parameters: Option<f64>,
    write: Option<Bandwidth>,
    read: Option<Bandwidth>,
    checkpoint: Option<CheckpointMode>,
    stall: Option<Seconds>,
}

impl Fleet {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            set: r.get("reliability"),
            gpus: r.get("gpus"),
            days: r.optional("days"),
            shared: r.or("shared", false),
            network: r.optional_table("network", |r| [r.get("switches"), r.get("optics"), r.get("cables")]),
            parameters: r.optional("parameters"),
            write: r.optional("write"),
            read: r.optional("read"),
            checkpoint: r.optional("checkpoint"),
            stall: r.optional("stall"),
        }
    }
}

/// GPUs of a host in every fleet here.
const PER_HOST: u32 = 8;
/// Switches, modules and cables of Llama 3's 16,384 GPUs, which other fleets have in proportion.
const META: (u32, [u32; 3]) = (16_384, [1_100, 37_450, 35_109]);
/// Bytes of a checkpoint by parameter, with Adam in mixed precision.
const STATE: Bytes = Bytes::new(14.0);

/// Predicts one row; `all` has the rows of the table.
pub(super) fn case(row: &Row, all: &[Row], catalog: &Catalog, aliases: &Aliases) -> (Vec<Fill>, Outcome) {
    let value = row.text("value").unwrap_or_default();
    let Some(measured) = value.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0) else {
        return (Vec::new(), Outcome::Excluded(format!("no numeric value: \"{value}\"")));
    };
    let mut filled = Vec::new();
    let outcome = match predict(row, measured, all, catalog, aliases, &mut filled) {
        Ok(prediction) => Outcome::Predicted(prediction),
        Err(Unusable(reason)) => Outcome::Skipped(reason),
    };
    (filled, outcome)
}

fn predict(
    row: &Row,
    measured: f64,
    all: &[Row],
    catalog: &Catalog,
    aliases: &Aliases,
    filled: &mut Vec<Fill>,
) -> Result<Prediction, Unusable> {
    let metric = row.needed("metric")?;
    let figure = match aliases.failure_figure(metric) {
        Some(Ok(figure)) => *figure,
        Some(Err(reason)) => return Err(Unusable(reason.clone())),
        None => return Err(Unusable(format!("metric \"{metric}\" is unknown"))),
    };
    let mut prediction =
        Prediction { metric: metric.to_owned(), measured, predicted: f64::NAN, convention: None, gpus: None };
    if figure == Figure::Daly {
        let interval = daly_interval(input(row, "delta")?, input(row, "M")?);
        prediction.predicted = in_unit(interval, row)?;
        return Ok(prediction);
    }
    let job = Job::new(row, catalog, aliases, filled)?;
    prediction.gpus = Some(job.fleet.gpus);
    let days = || job.fleet.days.ok_or_else(|| Unusable("the days of the case are unknown".to_owned()));
    let rates = &job.interruptions;
    let alone = Interruptions { job: 0.0, ..*rates };
    prediction.predicted = match figure {
        Figure::Cause => {
            let cause = *aliases.failure_cause(metric).ok_or_else(|| Unusable("the cause is unknown".to_owned()))?;
            let same = |other: &&Row| {
                let text = other.text("metric").unwrap_or_default();
                other.text("case") == row.text("case")
                    && aliases.failure_figure(text) == Some(&Ok(Figure::Cause))
                    && aliases.failure_cause(text) == Some(&cause)
            };
            let rows: Vec<&Row> = all.iter().filter(same).collect();
            if rows.first().is_some_and(|first| first.text("id") != row.text("id")) {
                let first = rows[0].text("id").unwrap_or_default();
                return Err(Unusable(format!("a part of {cause}, which is held as a whole at {first}")));
            }
            // A part that cannot be read would make the sum another cause's.
            let part = |row: &&Row| {
                let id = row.text("id").unwrap_or_default();
                row.number("value")?.ok_or_else(|| Unusable(format!("a part of {cause} at {id} has no number")))
            };
            prediction.measured = rows.iter().map(part).sum::<Result<f64, Unusable>>()?;
            prediction.metric = format!("interruptions by {cause}");
            of_cause(rates, cause) * days()?
        }
        Figure::Interruptions => rates.total() * days()?,
        Figure::Mtbf => in_unit(rates.mtbf(), row)?,
        Figure::MtbfOfNodes => in_unit(alone.mtbf(), row)?,
        Figure::NodeRate => alone.total() / f64::from(job.fleet.gpus / PER_HOST),
        Figure::GpuHours => rates.mtbf().in_unit("hours").unwrap_or(f64::NAN) * f64::from(job.fleet.gpus),
        Figure::HostsPerDay => rates.of_hosts(),
        Figure::GpusPerWeek => (rates.accelerator + rates.memory) * 7.0,
        Figure::Goodput => job.goodput(filled)?,
        Figure::Young => {
            let stall = job.fleet.stall.ok_or_else(|| Unusable("the time of a checkpoint is unknown".to_owned()))?;
            in_unit(young_interval(stall, rates.mtbf()), row)?
        }
        Figure::Daly => prediction.predicted,
    };
    Ok(prediction)
}

fn of_cause(rates: &Interruptions, cause: Cause) -> f64 {
    match cause {
        Cause::Accelerator => rates.accelerator,
        Cause::Memory => rates.memory,
        Cause::Host => rates.host,
        Cause::Software => rates.software,
        Cause::Nic => rates.nic,
        Cause::Network => rates.of_network(),
    }
}

/// A fleet with what interrupts it.
struct Job<'a> {
    fleet: Fleet,
    rates: &'a Entry<Reliability>,
    interruptions: Interruptions,
}

impl<'a> Job<'a> {
    fn new(row: &Row, catalog: &'a Catalog, aliases: &Aliases, filled: &mut Vec<Fill>) -> Result<Self, Unusable> {
        let case = row.needed("case")?;
        let mut fleet = match aliases.fleet(case) {
            Some(Ok(fleet)) => fleet.clone(),
            Some(Err(reason)) => return Err(Unusable(reason.clone())),
            None => return Err(Unusable(format!("the fleet of \"{case}\" is unknown"))),
        };
        if let Some(gpus) = gpus_of(row.needed("metric")?) {
            fleet.gpus = gpus;
        }
        let missing = |id: &str| Unusable(format!("the catalog has no failure rates \"{id}\""));
        let rates = catalog.reliability.get(&fleet.set).ok_or_else(|| missing(&fleet.set))?;
        let network: &Entry<NetworkReliability> =
            catalog.network_reliability.get("usual").ok_or_else(|| missing("usual"))?;
        filled.push(Fill {
            field: "failure rates",
            value: fleet.set.clone(),
            rule: "the set of the case in the alias table".to_owned(),
        });
        let [switches, optics, cables] = fleet.network.unwrap_or_else(|| {
            let share = f64::from(fleet.gpus) / f64::from(META.0);
            let network = META.1.map(|count| to_integer::<u32>((f64::from(count) * share).round()));
            filled.push(Fill {
                field: "network",
                value: format!("{} switches, {} modules, {} cables", network[0], network[1], network[2]),
                rule: "in proportion to Llama 3's".to_owned(),
            });
            network
        });
        let hosts = u64::from(fleet.gpus.div_ceil(PER_HOST));
        let components = Components {
            accelerators: fleet.gpus.into(),
            hosts,
            nics: fleet.gpus.into(),
            switches: switches.into(),
            optics: optics.into(),
            cables: cables.into(),
        };
        let mut interruptions = Interruptions::new(&rates.mtbf, &network.mtbf, &components);
        if fleet.shared {
            interruptions = interruptions.in_shared_cluster(&rates.job_level, hosts);
        }
        Ok(Self { fleet, rates, interruptions })
    }

    /// The useful share with the best interval between checkpoints and enough spares.
    fn goodput(&self, filled: &mut Vec<Fill>) -> Result<f64, Unusable> {
        let fleet = &self.fleet;
        let parameters = fleet.parameters.ok_or_else(|| Unusable("what is trained is unknown".to_owned()))?;
        let fill = |field, value: String| Fill { field, value, rule: "published with the case".to_owned() };
        let mode = fleet.checkpoint.unwrap_or(CheckpointMode::Asynchronous);
        filled.push(fill("checkpoints", format!("{mode}, of {parameters} parameters")));
        let endless = Bandwidth::new(f64::INFINITY);
        let path = CheckpointPath {
            write: fleet.write.unwrap_or(endless),
            read: fleet.read.unwrap_or(endless),
            peers: endless,
            snapshot: self.rates.recovery.snapshot.value,
        };
        let hazards = Hazards {
            mtbf: self.interruptions.mtbf(),
            checkpoint: Checkpoint::new(STATE * parameters, &path, mode),
            recovery: Recovery::from(&self.rates.recovery),
            network_stalls: 0.0,
        };
        Ok(hazards.goodput(Seconds::ZERO).ratio)
    }
}

/// The size that a metric names: "MTTF at 1024 GPUs".
fn gpus_of(metric: &str) -> Option<u32> {
    let (_, rest) = metric.split_once(" at ")?;
    rest.split_once(" GPU")?.0.trim().parse().ok()
}

/// A time among the inputs of a row: `M=24 h`.
fn input(row: &Row, name: &str) -> Result<Seconds, Unusable> {
    let inputs = row.needed("inputs")?;
    let found = inputs.split(',').find_map(|part| part.trim().strip_prefix(name)?.trim().strip_prefix('='));
    found.and_then(|text| Seconds::parse(text.trim()).ok()).ok_or_else(|| Unusable(format!("inputs have no {name}")))
}

/// A time in the unit of the row.
fn in_unit(time: Seconds, row: &Row) -> Result<f64, Unusable> {
    let unit = row.needed("unit")?;
    time.in_unit(unit).ok_or_else(|| Unusable(format!("unit \"{unit}\" is no time")))
}
