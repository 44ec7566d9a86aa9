//! What a command answers.

use std::path::PathBuf;

/// What a command answers.
#[derive(Debug)]
pub(super) enum Answer {
    /// Done.
    Yes(Vec<u8>),
    /// Done, and written already.
    Written,
    /// Done: files of a directory, by their paths in it.
    Files(Vec<(PathBuf, Vec<u8>)>),
    /// An answer that is "no": what goes to stdout, if anything, and what goes to stderr.
    No {
        /// For programs.
        data: Option<Vec<u8>>,
        /// For people.
        message: String,
    },
    /// What was asked holds mistakes, which the session has collected.
    Mistaken,
}
