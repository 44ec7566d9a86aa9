//! Users, and how often each begins a task.

use crate::units::{RequestRate, Seconds};

/// Users, each of whom begins a task every so often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fleet {
    /// How many.
    pub users: u32,
    /// Time between two tasks of a user, longer than none.
    pub every: Seconds,
}

impl Fleet {
    /// Tasks that begin.
    pub fn tasks(&self) -> RequestRate {
        RequestRate::of(f64::from(self.users), self.every)
    }
}
