//! Speculative decoding: a cheap model drafts tokens, and one step of the model verifies all of them.

use super::features::Features;
use super::{ModelShape, Replica, StepTime};
use crate::units::Seconds;

/// Tokens drafted and verified.
#[derive(Clone, Copy, Debug)]
pub struct Speculation<'a> {
    /// What drafts: a smaller model, or one more layer on top of the model (multi-token prediction).
    pub draft: &'a ModelShape,
    /// Tokens drafted for each sequence in a step.
    pub tokens: u32,
    /// Share of drafted tokens that the model would have chosen too, each as likely as any other.
    pub acceptance: f64,
}

impl Speculation<'_> {
    /// Tokens of a sequence that a step makes on average: those accepted before the first that is not, and the model's own
    /// in its place or behind the last. With `k` drafted and a share `a` accepted, `(1 - a^(k+1)) / (1 - a)` (Leviathan et
    /// al., arXiv 2211.17192, equation 1).
    pub fn tokens_per_step(&self) -> f64 {
        (0..=self.tokens).map(|drafted| self.acceptance.powf(f64::from(drafted))).sum()
    }
}

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
    pub fn token_step(&self, sequences: f64, context: f64) -> (StepTime, Seconds) {
        let Some((speculation, draft)) = self.features.speculation.zip(self.drafting()) else {
            let step = self.decode(sequences, context, 1.0);
            return (step, step.total());
        };
        let drafted = f64::from(speculation.tokens);
        let mut pass = draft.decode(sequences, context, 1.0);
        pass.overhead = pass.overhead.saturating_sub(self.hardware.step);
        let whole = self.decode(sequences, context, drafted + 1.0).plus(pass, drafted);
        (whole.scaled(speculation.tokens_per_step().recip()), whole.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::fixture;

    #[test]
    fn tokens_of_a_step_are_those_before_the_first_refused_and_one() {
        let shape = fixture::shape("llama-3.2-1b");
        let of = |tokens, acceptance| Speculation { draft: &shape, tokens, acceptance }.tokens_per_step();
        // 1 + 0.8 + 0.64 + 0.512 = 2.952 = (1 - 0.8^4) / 0.2.
        assert!((of(3, 0.8) - 2.952).abs() < 1e-12);
        assert!((of(3, 1.0) - 4.0).abs() < 1e-12 && (of(3, 0.0) - 1.0).abs() < 1e-12);
        // DeepSeek-V3's report (arXiv 2412.19437, section 5.4.3): the second token is accepted in 85% to 90% of cases.
        assert!((of(1, 0.875) - 1.875).abs() < 1e-12);
    }

    #[test]
    fn few_sequences_gain_and_many_lose() {
        let (model, draft) = (fixture::shape("llama-3.1-70b"), fixture::shape("llama-3.2-1b"));
        let hardware = fixture::h100();
        let plain = Replica::new(&model, &hardware, fixture::tensor(4));
        let features = |acceptance| Features {
            speculation: Some(Speculation { draft: &draft, tokens: 4, acceptance }),
            ..Features::default()
        };
        let gain = |sequences: f64, acceptance: f64| {
            let drafted = plain.with(features(acceptance)).token_step(sequences, 1_024.0).0;
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
        let speculation = Speculation { draft: &draft, tokens: 2, acceptance: 0.5 };
        let engine = plain.with(Features { speculation: Some(speculation), ..Features::default() });
        let (step, cycle) = engine.token_step(8.0, 2_000.0);
        let small = Replica::new(&draft, &hardware, fixture::tensor(4)).decode(8.0, 2_000.0, 1.0);
        let caches = plain.decode(8.0, 2_000.0, 1.0).cache + small.cache * 2.0;
        // 1 + 0.5 + 0.25 tokens a step.
        assert!((step.cache * 1.75 / caches - 1.0).abs() < 1e-12);
        assert!((step.total() * 1.75 / cycle - 1.0).abs() < 1e-12);
    }
}
