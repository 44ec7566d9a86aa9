//! How far a long run has come, on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::sweep::{Cursor, Shard, Sweep};

/// A bar on stderr, with the rate and the time that is left; nothing where that is no terminal.
pub(super) struct Progress<'a> {
    bar: ProgressBar,
    sweep: &'a Sweep<'a>,
    shard: Shard,
}

impl<'a> Progress<'a> {
    /// Of a part of a sweep of so many rows, which is gone on with from a place: the rate is that of the rows from there on, and
    /// the time left is theirs.
    pub(super) fn new(sweep: &'a Sweep<'a>, shard: Shard, begin: Cursor, rows: u64) -> Self {
        let target = ProgressDrawTarget::stderr();
        let done = if begin == Cursor::default() || target.is_hidden() { 0 } else { sweep.before(shard, begin) };
        let template = "{wide_bar} {human_pos} of {human_len} rows, {per_sec}, {eta} left";
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(rows / shard.count), target).with_style(style).with_position(done);
        bar.reset_eta();
        Self { bar, sweep, shard }
    }

    /// So many rows have come, and the next is in a place. Points that conditions leave out are done, too.
    pub(super) fn advance(&self, next: Cursor, rows: u64) {
        if self.sweep.axes.layouts {
            self.bar.inc(rows);
        } else {
            self.bar.set_position(self.sweep.before(self.shard, next));
        }
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
