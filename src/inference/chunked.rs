//! Prompts in chunks: each shares a step with the sequences in decode, which never wait for a whole prompt.

use super::features::{Chunks, TokenTime};
use super::step::prefill::while_launching;
use super::{Context, Replica, Request, StepTime};
use crate::units::{RequestRate, Seconds};

impl Replica<'_> {
    /// Chunks of a prompt of so many new tokens: full ones and a rest.
    pub fn chunks(&self, new: f64) -> f64 {
        self.features.chunks.map_or(1.0, |chunks| (new / chunks.tokens).ceil().max(1.0))
    }

    /// Steps of decode that chunks of a prompt of so many new tokens share, where steps are full of such chunks.
    pub(super) fn shared_steps(&self, new: f64) -> f64 {
        let shared = self.features.chunks.filter(|chunks| chunks.shared);
        shared.map_or(0.0, |chunks| new / chunks.tokens / f64::from(self.spread.pipeline))
    }

    /// The same of requests on average, which share none where their answers have no decode.
    pub(super) fn shared_with(&self, request: &Request) -> f64 {
        if request.decodes() { self.shared_steps(request.input) } else { 0.0 }
    }

    /// How many times as long a token waits for chunks as where steps have them whatever is in decode, where prompts come at random at
    /// such a rate and each chunk makes its step longer by so much.
    ///
    /// Those in decode began at the end of prompts, in the steps of their answer before: as far as prompts follow each other, a step of many in decode
    /// has a chunk. Counted in steps, prompts are M/D/1, of which one that ends leaves as many behind as are there on average (Kleinrock, Queueing
    /// Systems I, 1975, section 5.6), each for a busy period; so many more steps with chunks follow it than a random one, as far as
    /// they come within its answer.
    pub(super) fn followed(&self, request: &Request, rate: RequestRate, longer: Seconds, token: &TokenTime) -> f64 {
        let (count, cycle) = (self.shared_with(request), token.cycle);
        let busy = rate.over((cycle + longer) * count);
        // What fits in a step is that of an engine without chunks.
        if count <= 1.0 || busy >= 1.0 || busy <= 0.0 {
            return 1.0;
        }
        let answer = request.output * (token.step.total() / cycle);
        // Steps of a busy period, and those without a prompt until the next.
        let (with, between) = (count / (1.0 - busy), rate.over(cycle).recip());
        let part = with / (with + between);
        let behind = busy + busy * busy / (2.0 * (1.0 - busy));
        // Mean square over twice the mean of a busy period, and how much longer than that is left after a prompt.
        let lasts = count / (1.0 - busy).powi(2);
        let more = (1.0 - part) * (behind * (1.0 - busy) - part / 2.0) * lasts;
        let within = -(-answer / lasts).exp_m1();
        let above = more * within / (answer * part);
        // Requests begin by steps, which take less than a token does by then.
        (1.0 + above) / (1.0 + rate.over(longer * count) * above)
    }

    /// Steps of decode in the time to the first token of a prompt of so many new tokens: the one that it joins, and that of every
    /// further chunk where any of so many others is in decode (as many as come at random).
    pub(super) fn joined_steps(&self, new: f64, others: f64) -> f64 {
        1.0 + (self.chunks(new) - 1.0) * (1.0 - (-others).exp())
    }

    /// How a prompt of so many new tokens is cut, where it is.
    pub(super) fn cut(&self, new: f64) -> Option<(Chunks, f64)> {
        let chunks = self.features.chunks.filter(|chunks| chunks.tokens < new)?;
        Some((chunks, self.chunks(new)))
    }

    /// Prefill in so many chunks (Agrawal et al., Sarathi-Serve, arXiv 2403.02310, section 4).
    ///
    /// Arithmetic is that of the whole prompt; weights are read again for each chunk, projections among them only where no
    /// sequence in decode shares the step and has them read anyway; layers are launched again; and every chunk's
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
        let device = full + rest + self.cut_attention(new, cached, (chunks, count));
        while_launching(device, self.prefill_overhead(new + cached) * count)
    }

    /// Attention of a prompt in chunks: its arithmetic, or reading what stands before each chunk, whichever is longer.
    pub(super) fn cut_attention(&self, new: f64, cached: f64, (chunks, count): (Chunks, f64)) -> Seconds {
        // Contexts before chunks grow evenly.
        let reach = chunks.tokens * (count - 1.0) / 2.0;
        let before = Context { mean: cached + reach, reach };
        self.prompt_attention(new, cached).max(self.cache(1.0, before, 1.0) * count)
    }

    /// The longest that a sequence in decode waits for its next token: a step that the last whole chunk of a prompt shares.
    pub fn longest_gap(&self, new: f64, cached: f64, cycle: Seconds) -> Option<Seconds> {
        let chunks = self.features.chunks.filter(|chunks| chunks.shared)?;
        let last = chunks.tokens.min(new);
        let before = cached + new - last;
        let attention = self.prompt_attention(last, before).max(self.cache(1.0, before, 1.0));
        let device = self.prompt_step(last, last, chunks.shared) + attention;
        Some(cycle + while_launching(device, self.prefill_overhead(new + cached)))
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
    use std::collections::VecDeque;

    use super::*;
    use crate::inference::simulation::Draws;
    use crate::inference::{Coming, Features, Room, Scratch, fixture};
    use crate::scenario::Balancing;
    use crate::units::Factor;
    use crate::workload::{Moments, Requests};

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
        // Launches of small chunks take longer than what they launch; those of larger ones are hidden by it. Sarathi-Serve (figure 14):
        // chunks of 2,048 cost a prefill of Yi-34B next to nothing; those of 512 up to a quarter, which is not met.
        let times = [2_048.0, 512.0, 64.0, 32.0].map(|tokens| cut(tokens, true) / whole);
        assert!((times[0] - 1.0).abs() < 0.01 && (times[1] - 1.0).abs() < 0.01, "{times:?}");
        assert!(1.2 < times[2] && times[2] * 1.9 < times[3], "{times:?}");
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

    /// Mean time to the first token and between tokens, step by step: each takes in as many tokens of the prompts that wait as a chunk
    /// has, and makes a token of all in decode, whose step comes on top.
    fn simulated(
        (input, output, chunk): (f64, f64, f64),
        rate: f64,
        cycle: impl Fn(f64) -> f64,
        taken_in: impl Fn(f64) -> f64,
    ) -> [f64; 2] {
        let (mut draws, count) = (Draws::new(), 6_000);
        let mut next = draws.exponential(rate.recip());
        let (mut now, mut waiting, mut ends) = (0.0, VecDeque::new(), VecDeque::new());
        let (mut step, mut first, mut seen, mut tokens, mut spent) = (0_u64, 0.0, 0, 0.0, 0.0);
        while seen < count {
            while next <= now {
                waiting.push_back((next, input));
                next += draws.exponential(rate.recip());
            }
            if waiting.is_empty() && ends.is_empty() {
                now = next;
                continue;
            }
            let (mut left, mut taken, open) = (chunk, Vec::new(), ends.len() as f64);
            while let Some((came, rest)) = waiting.front_mut() {
                let part = rest.min(left);
                (*rest, left) = (*rest - part, left - part);
                if *rest > 0.0 {
                    break;
                }
                taken.push(*came);
                waiting.pop_front();
            }
            let time = cycle(open) + taken_in(chunk - left);
            (now, step, tokens, spent) = (now + time, step + 1, tokens + open, spent + open * time);
            while ends.front().is_some_and(|end| *end <= step) {
                ends.pop_front();
            }
            for came in taken {
                (first, seen) = (first + now - came, seen + 1);
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of tokens")]
                ends.push_back(step + output as u64);
            }
        }
        [first / f64::from(seen), spent / tokens]
    }

    #[test]
    fn chunks_share_their_steps_with_those_in_decode_as_step_by_step() {
        let (model, mut hardware) = (fixture::shape("llama-3.1-70b"), fixture::h100());
        // Steps that are shared are waited for to their end.
        hardware.batching.stall.value = Factor::ONE;
        hardware.first_token = Seconds::ZERO;
        for (input, output, chunk) in [(8_192.0, 256.0, 512.0), (8_192.0, 256.0, 2_048.0), (2_048.0, 512.0, 512.0)] {
            let chunks = Some(Chunks { tokens: chunk, shared: true });
            let engine =
                Replica::new(&model, &hardware, fixture::tensor(4)).with(Features { chunks, ..Features::default() });
            let one = |mean| Moments { mean, cv: 0.0 };
            let requests = Requests::lognormal(one(input), one(output));
            let request = Request { input, cached: 0.0, output, beyond: requests.beyond, spread: 0.0 };
            let coming = Coming {
                requests: &requests,
                hit: 0.0,
                cached: 0.0,
                cv: 1.0,
                replay: false,
                balancing: Balancing::Random,
            };
            let mut scratch = Scratch::default();
            let filled = engine.filled(&request, Room { requests: 1_000.0 }, &coming, &mut scratch);
            for load in [0.1, 0.3, 0.6, 0.8] {
                let rate = filled.most * load;
                let (state, _) = engine.open_loop(&request, rate, 1, &coming, &filled, &mut scratch).unwrap();
                let cycle =
                    |open: f64| if open > 0.0 { engine.token_step(open, request.contexts()).1.value() } else { 0.0 };
                let taken_in = |tokens: f64| engine.packed_prefill(input, 0.0).value() * tokens / input;
                let [first, token] = simulated((input, output, chunk), rate.value(), cycle, taken_in);
                let near = (state.ttft.value() / first - 1.0).abs();
                assert!(near < 0.04, "{input} in {chunk}, load {load}: {}, {first} step by step", state.ttft);
                let off = state.tpot.value() / token;
                assert!((off - 1.0).abs() < 0.025, "{input} in {chunk}, load {load}: {}, {token}", state.tpot);
            }
        }
    }
}
