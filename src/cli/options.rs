//! Options of every command.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Options of every command.
#[derive(Args, Debug)]
pub(super) struct Options {
    /// How the answer is written [default: as the ending of -o says: .csv, .json, .md or .txt; else table]
    #[arg(long, global = true, value_enum)]
    pub(super) format: Option<Format>,
    /// A directory laid over the built-in catalog, field by field; the last one wins
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) catalog: Vec<PathBuf>,
    /// Sets a key of the scenario, such as cluster.accelerators=8192 or cluster.fabric=roce-400g
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,
    /// Writes the answer to a file, whole or not at all; - is stdout
    #[arg(long, short, global = true, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Begins CSV with a byte order mark, for spreadsheets that need one
    #[arg(long, global = true)]
    pub(super) bom: bool,
}

/// Endings of files that say a format.
pub(super) const ENDINGS: [&str; 4] = ["csv", "json", "md", "txt"];

impl Options {
    /// The format that is asked for, by name or else by the ending of the file.
    pub(super) fn wanted_format(&self) -> Option<Format> {
        let of_ending = || match self.ending()?.as_str() {
            "csv" => Some(Format::Csv),
            "json" => Some(Format::Json),
            "md" => Some(Format::Md),
            "txt" => Some(Format::Table),
            _ => None,
        };
        self.format.or_else(of_ending)
    }

    /// What the file's name ends in, in small letters.
    pub(super) fn ending(&self) -> Option<String> {
        Some(self.output.as_ref()?.extension()?.to_string_lossy().to_ascii_lowercase())
    }
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For a terminal
    Table,
    /// For programs
    Json,
    /// For spreadsheets
    Csv,
    /// Markdown
    Md,
}
