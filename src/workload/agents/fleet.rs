//! Users, and how often each begins a task.

use super::{RunTokens, Task};
use crate::units::Seconds;

/// Users, each of whom begins a task every so often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fleet {
    /// How many.
    pub users: u32,
    /// Time between two tasks of a user, longer than none.
    pub every: Seconds,
}

impl Fleet {
    /// Tasks that begin in a time.
    pub fn tasks_in(&self, time: Seconds) -> f64 {
        f64::from(self.users) * (time / self.every)
    }

    /// Calls and tokens of all users in a second.
    pub fn tokens_per_second(&self, task: &Task) -> RunTokens {
        task.tokens().mix(self.tasks_in(Seconds::new(1.0)), &RunTokens::default(), 0.0)
    }
}
