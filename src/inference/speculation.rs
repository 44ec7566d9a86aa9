//! Speculative decoding: a cheap model drafts tokens, and one step of the model verifies all of them.

use super::features::Features;
use super::{Context, Replica, StepTime};
use crate::units::Seconds;

impl Replica<'_> {
    /// The draft on the same ranks.
    pub(super) fn drafting(&self) -> Option<Replica<'_>> {
        let draft = self.features.speculation?.draft;
        let features = Features { speculation: None, adapters: None, ..self.features };
        Some(Replica { shape: draft, hardware: self.hardware, spread: self.spread, features })
    }

    /// Of a step of so many sequences the part that one token of each takes, and the whole step.
    ///
    /// A step that verifies `k` drafted tokens is one of `k + 1` tokens a sequence, whose caches are read once; before it the
    /// draft makes `k` passes of its own, launched within the same step of the engine. With few sequences weights are read
    /// all the same and the further tokens cost little; with many, arithmetic, experts and messages grow with them.
    pub fn token_step(&self, sequences: f64, context: impl Into<Context>) -> (StepTime, Seconds) {
        let context = context.into();
        let Some((speculation, draft)) = self.features.speculation.zip(self.drafting()) else {
            let step = self.hosted(self.decode(sequences, context, 1.0), sequences);
            return (step, step.total());
        };
        let drafted = speculation.drafted();
        let mut pass = draft.decode(sequences, context, 1.0);
        pass.overhead = pass.overhead.saturating_sub(self.hardware.step);
        let whole = self.hosted(self.decode(sequences, context, drafted + 1.0).plus(pass, drafted), sequences);
        (whole.scaled(speculation.tokens_per_step().recip()), whole.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::{Speculation, fixture};
    use crate::units::Fraction;

    fn accepted(shares: &[f64]) -> Vec<Fraction> {
        shares.iter().map(|share| Fraction::new(*share).unwrap()).collect()
    }

    #[test]
    fn tokens_of_a_step_are_those_before_the_first_refused_and_one() {
        let shape = fixture::shape("llama-3.2-1b");
        let of = |shares: &[f64]| Speculation { draft: &shape, acceptance: &accepted(shares) }.tokens_per_step();
        // 1 + 0.8 + 0.64 + 0.512 = 2.952 = (1 - 0.8^4) / 0.2.
        assert!((of(&[0.8; 3]) - 2.952).abs() < 1e-12);
        assert!((of(&[1.0; 3]) - 4.0).abs() < 1e-12 && (of(&[0.0; 3]) - 1.0).abs() < 1e-12);
        // DeepSeek-V3's report (arXiv 2412.19437, section 5.4.3): the second token is accepted in 85% to 90% of cases.
        assert!((of(&[0.875]) - 1.875).abs() < 1e-12);
        // A place counts where those before it are accepted: 1 + 0.85 + 0.85 x 0.3, whatever is drafted behind a refused one.
        assert!((of(&[0.85, 0.3, 0.0, 0.9]) - 2.105).abs() < 1e-12);
    }

    #[test]
    fn few_sequences_gain_and_many_lose() {
        let (model, draft) = (fixture::shape("llama-3.1-70b"), fixture::shape("llama-3.2-1b"));
        let hardware = fixture::h100();
        let plain = Replica::new(&model, &hardware, fixture::tensor(4));
        let gain = |sequences: f64, acceptance: f64| {
            let acceptance = accepted(&[acceptance; 4]);
            let speculation = Some(Speculation { draft: &draft, acceptance: &acceptance });
            let features = Features { speculation, ..Features::default() };
            let drafted = plain.with(features).token_step(sequences, 1_024.0).0;
            plain.token_step(sequences, 1_024.0).0.total() / drafted.total()
        };
        assert!(gain(1.0, 0.8) > 1.5, "{}", gain(1.0, 0.8));
        assert!(gain(4_096.0, 0.8) < 1.0, "{}", gain(4_096.0, 0.8));
        // What is never accepted only costs; what is accepted more often gains more.
        assert!(gain(1.0, 0.0) < 1.0 && gain(1.0, 0.9) > gain(1.0, 0.7));
    }

    #[test]
    fn a_step_has_the_caches_read_once_and_the_draft_in_it() {
        let (model, draft) = (fixture::shape("llama-3.1-70b"), fixture::shape("llama-3.2-1b"));
        let hardware = fixture::h100();
        let plain = Replica::new(&model, &hardware, fixture::tensor(4));
        let acceptance = accepted(&[0.5; 2]);
        let speculation = Speculation { draft: &draft, acceptance: &acceptance };
        let engine = plain.with(Features { speculation: Some(speculation), ..Features::default() });
        let (step, cycle) = engine.token_step(8.0, 2_000.0);
        let small = Replica::new(&draft, &hardware, fixture::tensor(4)).decode(8.0, 2_000.0, 1.0);
        let caches = plain.decode(8.0, 2_000.0, 1.0).cache + small.cache * 2.0;
        // 1 + 0.5 + 0.25 tokens a step.
        assert!((step.cache * 1.75 / caches - 1.0).abs() < 1e-12);
        assert!((step.total() * 1.75 / cycle - 1.0).abs() < 1e-12);
    }
}
