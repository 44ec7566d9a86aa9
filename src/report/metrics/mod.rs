//! Every figure of an evaluation, one row each: the one origin of JSON keys, CSV headers, tables and the glossary.
//!
//! A figure stands in the room that its key begins with: `serving.ttft_s` in `serving.rs`.

use super::figure::{Group, Metric};
use crate::evaluate::Evaluation;
use crate::scenario::RunPlan;

/// What a room's rows become. A row reads `"key": Unit, "label", "description"; "formula" from ["input", ...] => |e| measure`,
/// parts before their total's explanation; `?` in the measure leaves the figure out where the scenario has no such part.
macro_rules! figures {
    ($group:ident: $(
        $key:literal: $unit:ident, $label:literal, $description:literal;
        $formula:literal from [$($input:literal),+] => |$e:ident| $measure:expr;
    )+) => {
        /// The figures of the group.
        pub(super) const FIGURES: &[$crate::report::Metric] = &[$($crate::report::Metric {
            key: $key,
            unit: $crate::report::Unit::$unit,
            group: $crate::report::Group::$group,
            label: $label,
            description: $description,
            formula: $formula,
            inputs: &[$($input),+],
            extract: |$e| Some(measured!($unit, $measure)),
        },)+];
    };
}

/// The value of a measure in a figure's unit, which says of what type the measure has to be.
macro_rules! measured {
    (Bytes, $measure:expr) => { measured!(base Bytes, $measure) };
    (Seconds, $measure:expr) => { measured!(base Seconds, $measure) };
    (Days, $measure:expr) => { measured!(Seconds in "days", $measure) };
    (Hours, $measure:expr) => { measured!(Seconds in "h", $measure) };
    (PerSecond, $measure:expr) => { measured!(base RequestRate, $measure) };
    (MostPerSecond, $measure:expr) => { measured!(base RequestRate, $measure) };
    (GbytesPerSecond, $measure:expr) => { measured!(Bandwidth in "GB/s", $measure) };
    (TflopsPerSecond, $measure:expr) => { measured!(FlopRate in "TFLOP/s", $measure) };
    (TokensPerSecond, $measure:expr) => { measured!(base TokenRate, $measure) };
    (Watts, $measure:expr) => { measured!(base Watts, $measure) };
    (Kilowatts, $measure:expr) => { measured!(Watts in "kW", $measure) };
    (KilowattHours, $measure:expr) => { measured!(Joules in "kWh", $measure) };
    (Tonnes, $measure:expr) => { measured!(CarbonMass in "tCO2e", $measure) };
    (Grams, $measure:expr) => { measured!(CarbonMass in "gCO2e", $measure) };
    (Usd, $measure:expr) => { measured!(base Usd, $measure) };
    (UsdPerHour, $measure:expr) => { measured!(base UsdPerHour, $measure) };
    (Count, $count:expr) => { $crate::report::Value::from($count) };
    (Word, $word:expr) => { $crate::report::Value::Word($word) };
    (Flag, $yes:expr) => { $crate::report::Value::Flag($yes) };
    (base $quantity:ident, $measure:expr) => { super::measure::base::<$crate::units::$quantity>($measure) };
    ($quantity:ident in $word:literal, $measure:expr) => {
        super::measure::scaled::<$crate::units::$quantity>($measure, $word)?
    };
    // Shares, quotients, events a day and things a GPU are plain numbers.
    ($plain:ident, $number:expr) => { $crate::report::Value::Number($number) };
}

mod agents;
mod cost;
mod data;
mod fabric;
mod facility;
mod goodput;
mod measure;
mod memory;
mod serving;
mod training;

/// The rooms in the order of groups.
const ROOMS: [&[Metric]; 9] = [
    memory::FIGURES,
    training::FIGURES,
    serving::FIGURES,
    agents::FIGURES,
    data::FIGURES,
    goodput::FIGURES,
    fabric::FIGURES,
    facility::FIGURES,
    cost::FIGURES,
];

/// How many figures there are.
const COUNT: usize = {
    let (mut count, mut room) = (0, 0);
    while room < ROOMS.len() {
        count += ROOMS[room].len();
        room += 1;
    }
    count
};

/// The rows of all rooms.
static ALL: [Metric; COUNT] = {
    let mut figures = [ROOMS[0][0]; COUNT];
    let (mut next, mut room) = (0, 0);
    while room < ROOMS.len() {
        let mut row = 0;
        while row < ROOMS[room].len() {
            figures[next] = ROOMS[room][row];
            next += 1;
            row += 1;
        }
        room += 1;
    }
    figures
};

/// All figures, those of a group together.
pub const METRICS: &[Metric] = &ALL;

/// The figure of that key.
pub fn metric(key: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.key == key)
}

/// The figures of a group.
pub(super) fn of_group(group: Group) -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().filter(move |metric| metric.group == group)
}

/// The run around the step.
fn plan(e: &Evaluation) -> Option<&RunPlan> {
    e.scenario.training.as_ref().map(|training| &training.plan)
}
