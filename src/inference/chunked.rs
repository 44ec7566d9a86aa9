//! Prompts in chunks: each shares a step with the sequences in decode, which never wait for a whole prompt.

use super::features::Chunks;
use super::{Replica, StepTime};
use crate::units::Seconds;

impl Replica<'_> {
    /// Chunks of a prompt of so many new tokens: full ones and a rest.
    pub fn chunks(&self, new: f64) -> f64 {
        self.features.chunks.map_or(1.0, |chunks| (new / chunks.tokens).ceil().max(1.0))
    }

    /// How a prompt of so many new tokens is cut, where it is.
    pub(super) fn cut(&self, new: f64) -> Option<(Chunks, f64)> {
        let chunks = self.features.chunks.filter(|chunks| chunks.tokens < new)?;
        Some((chunks, self.chunks(new)))
    }

    /// Prefill in so many chunks (Agrawal et al., Sarathi-Serve, arXiv 2403.02310, section 4).
    ///
    /// Arithmetic is that of the whole prompt; weights are read again for each chunk, projections among them only where no
    /// sequence in decode shares the step and has them read anyway; layers' fixed time comes again; and every chunk's
    /// attention reads the cache of the tokens before it. So many attention groups have a prompt each.
    pub(super) fn chunked_prefill(
        &self,
        new: f64,
        cached: f64,
        groups: f64,
        (chunks, count): (Chunks, f64),
    ) -> Seconds {
        let step = |tokens: f64| self.prompt_step(tokens, tokens * groups, chunks.shared);
        let full = step(chunks.tokens) * (count - 1.0);
        let rest = step(new - chunks.tokens * (count - 1.0));
        full + rest + self.cut_attention(new, cached, (chunks, count)) + self.prefill_overhead(new + cached) * count
    }

    /// Attention of a prompt in chunks: its arithmetic, or reading what stands before each chunk, whichever is longer.
    pub(super) fn cut_attention(&self, new: f64, cached: f64, (chunks, count): (Chunks, f64)) -> Seconds {
        // Contexts before chunks grow evenly.
        let before = cached + chunks.tokens * (count - 1.0) / 2.0;
        self.prompt_attention(new, cached).max(self.cache(1.0, before, 1.0) * count)
    }

    /// The longest that a sequence in decode waits for its next token: a step that the last whole chunk of a prompt shares.
    pub fn longest_gap(&self, new: f64, cached: f64, cycle: Seconds) -> Option<Seconds> {
        let chunks = self.features.chunks.filter(|chunks| chunks.shared)?;
        let last = chunks.tokens.min(new);
        let before = cached + new - last;
        let own = self.prompt_step(last, last, chunks.shared) + self.prefill_overhead(new + cached);
        Some(cycle + own + self.prompt_attention(last, before).max(self.cache(1.0, before, 1.0)))
    }
}

impl StepTime {
    /// This and so many of another.
    pub(super) fn plus(&self, other: Self, times: f64) -> Self {
        Self {
            weights: self.weights + other.weights * times,
            arithmetic: self.arithmetic + other.arithmetic * times,
            cache: self.cache + other.cache * times,
            network: self.network + other.network * times,
            overhead: self.overhead + other.overhead * times,
        }
    }

    /// A part of it.
    pub(super) fn scaled(&self, part: f64) -> Self {
        Self::default().plus(*self, part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::{Features, fixture};

    #[test]
    fn a_chunk_that_holds_the_prompt_changes_nothing_and_smaller_ones_take_longer() {
        let (model, hardware) = (fixture::shape("llama-3.1-70b"), fixture::h100());
        let plain = Replica::new(&model, &hardware, fixture::tensor(4));
        let cut = |tokens: f64, shared| {
            let chunks = Some(Chunks { tokens, shared });
            plain.with(Features { chunks, ..Features::default() }).prefill(8_192.0, 0.0)
        };
        let whole = plain.prefill(8_192.0, 0.0);
        assert_eq!(cut(8_192.0, true), whole);
        let times = [2_048.0, 512.0, 128.0].map(|tokens| cut(tokens, true) / whole);
        assert!(1.0 < times[0] && times[0] < times[1] && times[1] < times[2], "{times:?}");
        // Sarathi-Serve (figure 14): chunks of 512 cost a prefill of Yi-34B up to a quarter, of 2,048 next to nothing.
        assert!(times[0] < 1.1 && times[1] < 1.35, "{times:?}");
        // Alone, each chunk has all weights read for it.
        assert!(cut(128.0, false) > cut(128.0, true));
    }

    #[test]
    fn a_token_waits_for_a_chunk_and_not_for_a_prompt() {
        let (model, hardware) = (fixture::shape("llama-3.1-70b"), fixture::h100());
        let plain = Replica::new(&model, &hardware, fixture::tensor(4));
        let cycle = plain.token_step(32.0, 8_192.0).1;
        let gap = |tokens| {
            let features = Features { chunks: Some(Chunks { tokens, shared: true }), ..Features::default() };
            plain.with(features).longest_gap(8_192.0, 0.0, cycle).unwrap()
        };
        let whole = plain.prefill(8_192.0, 0.0);
        // A chunk as long as the prompt is all of it; the last 512 tokens of it are a sixteenth, with attention to all before.
        assert!(((gap(8_192.0) - cycle) / whole - 1.0).abs() < 0.01);
        let part = (gap(512.0) - cycle) / whole;
        assert!(part > 1.0 / 16.0 && part < 0.2, "{part}");
    }
}
