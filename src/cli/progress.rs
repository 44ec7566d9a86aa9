//! How far a long run has come, on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on stderr, with the rate and the time that is left; nothing where that is no terminal.
pub(super) struct Progress(ProgressBar);

impl Progress {
    pub(super) fn new(rows: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(rows), ProgressDrawTarget::stderr());
        let template = "{wide_bar} {human_pos} of {human_len} rows, {per_sec}, {eta} left";
        Self(bar.with_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())))
    }

    pub(super) fn advance(&self, rows: u64) {
        self.0.inc(rows);
    }

    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}
