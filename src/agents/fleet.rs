//! Many users' tasks at once: sessions, what they keep in caches, and how much passes.

use crate::units::{RequestRate, Seconds, TokenRate, Tokens};
use crate::workload::{Run, Task};

/// Times within a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// From a call to its first token.
    pub first_token: Seconds,
    /// Of an answer, once it has begun.
    pub answer: TokenRate,
    /// That the tools of a step take, or its user.
    pub tool: Seconds,
    /// Approvals by a person in a run.
    pub approvals: f64,
    /// That a person takes for one.
    pub approval: Seconds,
}

/// What a fleet's tasks are in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Time of a task from its first call to its last answer, on average.
    pub task: Seconds,
    /// Part of it that waits for tools and people.
    pub waiting: Seconds,
    /// Sessions alive: agents and branches of all tasks under way.
    pub sessions: f64,
    /// Those of them that wait for a tool or a person.
    pub idle_sessions: f64,
    /// Tokens whose keys and values are held, by sessions in a call and by those that wait.
    pub held: Tokens,
    /// Those of them held by sessions that wait.
    pub held_idle: Tokens,
}

impl Pace {
    /// Time of a run's calls; agents and branches go side by side, attempts one after another.
    fn calling(&self, run: &Run, attempts: f64) -> Seconds {
        (self.first_token + run.output / self.answer) * (run.steps * attempts)
    }

    /// Time of a run from its first call to its last answer.
    pub fn lasts(&self, run: &Run, attempts: f64) -> Seconds {
        self.calling(run, attempts) + self.waiting(run)
    }

    /// Time that a run waits for tools and people.
    fn waiting(&self, run: &Run) -> Seconds {
        self.tool * run.steps + self.approval * self.approvals
    }
}

/// Sessions and what they hold, by Little's law: what begins in a time, times how long it lasts. A session in a call holds
/// its prompt and half its answer; one that waits holds the prompt and the answer if the cache keeps it at all.
pub fn load(tasks: RequestRate, task: &Task, pace: &Pace) -> Load {
    let attempts = task.fan.attempts;
    let calling = task.mean(|run| pace.calling(run, attempts));
    let waiting = task.mean(|run| pace.waiting(run));
    let ways = f64::from(task.fan.agents) * f64::from(task.fan.branches);
    let sessions = |time: Seconds| tasks.over(time) * ways;
    let in_calls = task.mean(|run| (run.mean_prompt() + run.output / 2.0) * sessions(pace.calling(run, attempts)));
    let in_waits = task.mean(|run| (run.mean_prompt() + run.output) * sessions(pace.waiting(run)));
    let held_idle = in_waits * task.reuse.session.get();
    Load {
        task: calling + waiting,
        waiting,
        sessions: sessions(calling + waiting),
        idle_sessions: sessions(waiting),
        held: in_calls + held_idle,
        held_idle,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::fixture::PACE;
    use crate::workload::task;
    use crate::workload::{Fan, Fleet};

    #[test]
    fn sessions_and_what_they_hold_follow_littles_law() {
        let fan = Fan { agents: 2, branches: 1, attempts: 1.0 };
        let task = Task { fan, ..task(1.0, 10.0) };
        // 360 users with a task an hour: one in 10 s. Ten calls of 0.5 + 2 s and ten tools of 5 s, and 25 s for a person:
        // 100 s, 75 of them waiting.
        let fleet = Fleet { users: 360, every: Seconds::new(3_600.0) };
        let load = load(fleet.tasks(), &task, &PACE);
        assert!((load.task.value() - 100.0).abs() < 1e-9 && (load.waiting.value() - 75.0).abs() < 1e-9);
        assert!((load.sessions - 20.0).abs() < 1e-9 && (load.idle_sessions - 15.0).abs() < 1e-9);
        // Prompts of 1,000 to 5,500 tokens, 3,250 on average: 5 sessions hold 3,300 each, 15 hold 3,350.
        assert!((load.held_idle.value() - 15.0 * 3_350.0).abs() < 1e-6);
        assert!((load.held.value() - load.held_idle.value() - 5.0 * 3_300.0).abs() < 1e-6);
    }
}
