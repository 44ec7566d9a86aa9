//! What working out one answer after another keeps: room, so that nothing is allocated anew, and times of prompts, which do
//! not depend on how many come.

use super::coming::{Coming, Prompt};
use super::own_times::OwnTimes;
use super::scattered::Scattered;
use crate::units::Seconds;
use crate::workload::Answers;

/// What is kept from one answer to the next of the same engines.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    prompts: Vec<Timed>,
    known: bool,
    times: OwnTimes,
}

/// A prompt, and how long it is taken in.
#[derive(Clone, Copy, Debug)]
pub(in crate::inference) struct Timed {
    /// Tokens computed.
    pub(in crate::inference) new: f64,
    /// Share of requests that are so.
    pub(in crate::inference) weight: f64,
    /// Its prefill.
    pub(in crate::inference) alone: Seconds,
    /// How long it keeps what takes it in, where prompts fill its steps.
    pub(in crate::inference) served: Seconds,
    /// Standard deviations from the middle of a normal distribution of which as much is below, where prompts stand in order.
    pub(in crate::inference) deviations: f64,
    /// Their answers.
    pub(in crate::inference) answers: Answers,
}

impl Scratch {
    /// Requests of other lengths come, more or less of a prompt is at hand, or other engines serve.
    pub fn forget(&mut self) {
        self.known = false;
    }

    /// Times prompts of computed and cached tokens: alone, and where prompts fill all steps.
    pub(in crate::inference) fn time(&mut self, coming: &Coming<'_>, times: impl Fn(f64, f64) -> (Seconds, Seconds)) {
        if self.known {
            return;
        }
        self.prompts.clear();
        self.prompts.extend(coming.prompts().map(|Prompt { new, cached, weight, deviations, answers }| {
            let (alone, served) = times(new, cached);
            Timed { new, weight, alone, served, deviations: deviations.unwrap_or_default(), answers }
        }));
        self.known = true;
    }

    /// Whether prompts are timed.
    pub(in crate::inference) const fn knows(&self) -> bool {
        self.known
    }

    /// A time over prompts.
    pub(in crate::inference) fn over_prompts(&self, time: impl Fn(&Timed) -> Seconds) -> Scattered {
        Scattered::of(self.prompts.iter().map(|timed| (time(timed), timed.weight)))
    }

    /// Prompts, and room for the times to their first tokens.
    pub(in crate::inference) fn parts(&mut self) -> (&[Timed], &mut OwnTimes) {
        (&self.prompts, &mut self.times)
    }
}
