//! What working out one answer after another keeps: room, so that nothing is allocated anew, and times of prompts, which do
//! not depend on how many come.

use super::latency::{Coming, DistributionRoom};
use crate::units::Seconds;

/// What is kept from one answer to the next of the same engines.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    prompts: Vec<Timed>,
    /// Prefills of the prompts of pairs with an answer, those of one length once.
    pairs: Vec<Timed>,
    known: bool,
    pub(super) distributions: DistributionRoom,
}

/// A prompt, and how long it is taken in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    /// Tokens computed.
    pub(super) new: f64,
    /// Share of requests that are so.
    pub(super) weight: f64,
    /// Its prefill.
    pub(super) alone: Seconds,
    /// How long it keeps what takes it in, where prompts fill its steps.
    pub(super) served: Seconds,
}

impl Scratch {
    /// Requests of other lengths come, more or less of a prompt is at hand, or other engines serve.
    pub fn forget(&mut self) {
        self.known = false;
    }

    /// Times prompts of computed and cached tokens: alone, and where prompts fill all steps.
    pub(super) fn time(&mut self, coming: &Coming<'_>, times: impl Fn(f64, f64) -> (Seconds, Seconds)) {
        if self.known {
            return;
        }
        let timed = |(new, cached, weight): (f64, f64, f64)| {
            let (alone, served) = times(new, cached);
            Timed { new, weight, alone, served }
        };
        self.prompts.clear();
        self.prompts.extend(coming.prompts().map(timed));
        self.pairs.clear();
        let mut prompts = self.prompts.iter();
        for input in coming.prompts_of_pairs() {
            let (new, cached) = coming.parts(input);
            // Where answers are of one length, pairs have the same prompts.
            let known = prompts.next().filter(|known| known.new.to_bits() == new.to_bits()).copied();
            self.pairs.push(known.unwrap_or_else(|| timed((new, cached, 0.0))));
        }
        self.known = true;
    }

    /// Whether prompts are timed.
    pub(super) const fn knows(&self) -> bool {
        self.known
    }

    /// Prompts.
    pub(super) fn prompts(&self) -> &[Timed] {
        &self.prompts
    }

    /// Prompts of pairs, each length once; and the room for distributions.
    pub(super) fn parts(&mut self) -> (&[Timed], &[Timed], &mut DistributionRoom) {
        (&self.prompts, &self.pairs, &mut self.distributions)
    }
}

/// Mean, and squared coefficient of variation, of a time over prompts.
pub(super) fn over_prompts(prompts: &[Timed], time: impl Fn(&Timed) -> Seconds) -> (Seconds, f64) {
    let mean: Seconds = prompts.iter().map(|prompt| time(prompt) * prompt.weight).sum();
    let squares: f64 = prompts.iter().map(|prompt| prompt.weight * (time(prompt) / mean - 1.0).powi(2)).sum();
    (mean, squares)
}
