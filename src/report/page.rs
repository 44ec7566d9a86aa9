//! What a report shows, before it is a text: sections of tables, lists and sentences.

/// A whole report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// What is asked, in a line.
    pub title: String,
    /// Its sections.
    pub sections: Vec<Section>,
}

/// A heading and what stands under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The heading; none at the top.
    pub heading: String,
    /// What stands under it.
    pub blocks: Vec<Block>,
}

/// A part of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// A sentence or two.
    Text(String),
    /// Sentences, each for itself.
    List(Vec<String>),
    /// Rows and columns.
    Grid(Grid),
}

/// Rows and columns of text; the cells of numeric columns stand to the right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// The heads of the columns.
    pub header: Vec<String>,
    /// The rows, as long as the header.
    pub rows: Vec<Vec<String>>,
    /// Columns from this one on hold numbers.
    pub numeric_from: usize,
}

/// Text that stays in its line and does nothing to a terminal: line breaks become spaces, other control characters the sign
/// for what cannot be shown.
pub(super) fn in_line(text: &str) -> String {
    shown(text).replace('\n', " ")
}

/// The same with its line breaks kept, for cells.
pub(super) fn shown(text: &str) -> String {
    text.replace("\r\n", "\n").replace(|sign: char| sign.is_control() && sign != '\n', "\u{fffd}")
}

impl Grid {
    /// An empty grid under these heads.
    pub fn new(header: &[&str], numeric_from: usize) -> Self {
        Self { header: header.iter().map(|&head| head.to_owned()).collect(), rows: Vec::new(), numeric_from }
    }
}

impl Section {
    /// A section of one block.
    pub fn new(heading: impl Into<String>, block: Block) -> Self {
        Self { heading: heading.into(), blocks: vec![block] }
    }
}
