//! What a row of a sweep shows: values of axes, keys of the layout, and figures.

use super::axes::{ABSENT, Axes};
use super::figure::Figure;
use super::row::Row;
use crate::document::choices;
use crate::parallelism::{ContextExchange, Layout, Schedule, Sharding};
use crate::scenario::Overlap;

choices! {
    /// A key of the layout.
    pub enum LayoutKey {
        /// Ranks that split every matrix.
        Tensor = "training.layout.tensor",
        /// Ranks that split the sequence.
        Context = "training.layout.context",
        /// How they exchange.
        ContextExchange = "training.layout.context_exchange",
        /// Stages.
        Pipeline = "training.layout.pipeline",
        /// Replicas; they follow from the others.
        Data = "training.layout.data",
        /// Ranks that split experts.
        Expert = "training.layout.expert",
        /// Chunks of layers of a stage.
        VirtualStages = "training.layout.virtual_stages",
        /// Sequences of a pass.
        MicroBatch = "training.layout.micro_batch",
        /// The order of passes.
        Schedule = "training.layout.schedule",
        /// What replicas split.
        Sharding = "training.layout.sharding",
        /// What is computed again.
        Recompute = "training.layout.recompute",
        /// Whether tensor ranks split the sequence between matrices.
        SequenceParallel = "training.layout.sequence_parallel",
        /// Whether tensor-parallel communication is overlapped.
        OverlapTensor = "software.overlap.tensor",
        /// Whether data-parallel communication is.
        OverlapData = "software.overlap.data",
    }
}

/// The value of a key of the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutValue {
    /// A degree.
    Degree(u32),
    /// A word.
    Word(&'static str),
    /// What is computed again.
    Recompute(crate::parallelism::Recompute),
    /// Yes or no.
    Flag(bool),
}

impl std::fmt::Display for LayoutValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Degree(degree) => degree.fmt(f),
            Self::Word(word) => f.write_str(word),
            Self::Recompute(recompute) => recompute.fmt(f),
            Self::Flag(yes) => yes.fmt(f),
        }
    }
}

impl LayoutKey {
    /// The value of the key.
    pub const fn of(self, layout: &Layout, overlap: Overlap) -> LayoutValue {
        match self {
            Self::Tensor => LayoutValue::Degree(layout.tensor),
            Self::Context => LayoutValue::Degree(layout.context),
            Self::ContextExchange => LayoutValue::Word(layout.context_exchange.word()),
            Self::Pipeline => LayoutValue::Degree(layout.pipeline),
            Self::Data => LayoutValue::Degree(layout.data),
            Self::Expert => LayoutValue::Degree(layout.expert),
            Self::VirtualStages => LayoutValue::Degree(layout.virtual_stages),
            Self::MicroBatch => LayoutValue::Degree(layout.micro_batch),
            Self::Schedule => LayoutValue::Word(layout.schedule.word()),
            Self::Sharding => LayoutValue::Word(layout.sharding.word()),
            Self::Recompute => LayoutValue::Recompute(layout.recompute),
            Self::SequenceParallel => LayoutValue::Flag(layout.sequence_parallel),
            Self::OverlapTensor => LayoutValue::Flag(overlap.tensor),
            Self::OverlapData => LayoutValue::Flag(overlap.data),
        }
    }

    /// The value of the key as a number, words by their place among the choices.
    fn code(self, layout: &Layout, overlap: Overlap) -> f64 {
        match self {
            Self::ContextExchange => f64::from(layout.context_exchange as u8),
            Self::Schedule => f64::from(layout.schedule as u8),
            Self::Sharding => f64::from(layout.sharding as u8),
            Self::Recompute => {
                let words = crate::parallelism::Recompute::WORDS;
                words.iter().position(|word| *word == layout.recompute).map_or(f64::NAN, |place| place as f64)
            }
            _ => match self.of(layout, overlap) {
                LayoutValue::Degree(degree) => f64::from(degree),
                LayoutValue::Flag(yes) => f64::from(u8::from(yes)),
                LayoutValue::Word(_) | LayoutValue::Recompute(_) => f64::NAN,
            },
        }
    }

    /// The number of a word.
    fn word_code(self, word: &str) -> Option<f64> {
        let place = match self {
            Self::ContextExchange => ContextExchange::ALL.iter().position(|choice| choice.word() == word),
            Self::Schedule => Schedule::ALL.iter().position(|choice| choice.word() == word),
            Self::Sharding => Sharding::ALL.iter().position(|choice| choice.word() == word),
            Self::Recompute => {
                crate::parallelism::Recompute::WORDS.iter().position(|choice| choice.to_string() == word)
            }
            Self::SequenceParallel | Self::OverlapTensor | Self::OverlapData => {
                return ["false", "true"].iter().position(|choice| *choice == word).map(|place| place as f64);
            }
            _ => None,
        };
        place.map(|place| place as f64)
    }

    /// Whether its values are words, which have no order.
    const fn is_word(self) -> bool {
        matches!(self, Self::ContextExchange | Self::Schedule | Self::Sharding | Self::Recompute)
    }
}

/// A column, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The value of an axis.
    Axis(usize),
    /// A key of the layout.
    Layout(LayoutKey),
    /// A figure.
    Figure(usize),
}

impl Column {
    /// The column of a key.
    pub fn find(key: &str, axes: &Axes, figures: &[Figure]) -> Option<Self> {
        let axis = axes.columns.iter().position(|column| column.key == key).map(Self::Axis);
        let layout = || {
            let keys = LayoutKey::ALL.iter().copied();
            keys.into_iter().find(|found| found.word() == key).map(Self::Layout)
        };
        axis.or_else(layout).or_else(|| figures.iter().position(|figure| figure.key == key).map(Self::Figure))
    }

    /// Its value in a row as a number; a text by its number among the axis's values. Nothing is not a number.
    pub fn code(self, row: &Row<'_>) -> f64 {
        match self {
            Self::Axis(column) => match row.point[column] {
                ABSENT => f64::NAN,
                number => row.axes.columns[column].values[number as usize].number.unwrap_or(f64::from(number)),
            },
            Self::Layout(key) => row.layout.map_or(f64::NAN, |(layout, overlap)| key.code(&layout, overlap)),
            Self::Figure(figure) => row.figure(figure).unwrap_or(f64::NAN),
        }
    }

    /// The number by which [`Column::code`] stands for a text; none where the column never has it.
    pub(super) fn text_code(self, text: &str, axes: &Axes) -> Option<f64> {
        match self {
            Self::Axis(column) => {
                let values = &axes.columns[column].values;
                let place = values.iter().position(|value| value.text == text)?;
                Some(values[place].number.unwrap_or(place as f64))
            }
            Self::Layout(key) => key.word_code(text),
            Self::Figure(_) => ["false", "true"].iter().position(|word| *word == text).map(|place| place as f64),
        }
    }

    /// Whether more and less say something of its values.
    pub(super) fn is_ordered(self, axes: &Axes) -> bool {
        match self {
            Self::Axis(column) => axes.columns[column].values.iter().all(|value| value.number.is_some()),
            Self::Layout(key) => !key.is_word(),
            Self::Figure(_) => true,
        }
    }
}
