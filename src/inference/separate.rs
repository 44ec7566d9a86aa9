//! Prefill and decode in pools of their own, with requests at a rate, at a concurrency, or without end.

use super::admission::Admission;
use super::batching::{Request, SteadyState};
use super::features::TokenTime;
use super::latency::{Coming, Latencies, Sources, Wait, distribution, peakedness, tokens};
use super::open_loop::{Overload, Short};
use super::replay::{ByPrompt, Servers, dispersion, replay};
use super::scratch::over_prompts;
use super::{Replica, Room, Scratch, StepTime};
use crate::units::{RequestRate, Seconds};

/// Halvings of what is sought.
const HALVINGS: u32 = 50;
const SECOND: Seconds = Seconds::new(1.0);

/// Pools of prefill workers and of decode replicas; a request is prefilled by one, and its cache handed to another.
#[derive(Clone, Copy, Debug)]
pub struct Separate<'a> {
    /// A prefill worker.
    pub prefill: Replica<'a>,
    /// How many there are.
    pub workers: f64,
    /// A decode replica.
    pub decode: Replica<'a>,
    /// How many there are.
    pub replicas: f64,
    /// Room of one of them.
    pub room: Room,
    /// Handing a request's cache over: a fixed part, and its bytes over the links between the pools.
    pub transfer: Seconds,
}

impl Separate<'_> {
    /// Prompts that are prefilled side by side: one in each attention group of each worker.
    fn servers(&self) -> f64 {
        self.workers * f64::from(self.prefill.spread.attention_data)
    }

    /// Time of a prefill of so many new tokens behind cached ones in one group where all of them prefill.
    fn served(&self, new: f64, cached: f64) -> Seconds {
        let groups = f64::from(self.prefill.spread.attention_data);
        let packed = self.prefill.packed_prefill(new, cached) * groups;
        packed.min(self.prefill.prefill_together(groups, new, cached))
    }

    /// The most that the prefill workers take in.
    pub fn taken_in(&self, request: &Request) -> RequestRate {
        RequestRate::of(self.servers(), self.served(request.input, request.cached))
    }

    fn step(&self, request: &Request, batch: f64) -> StepTime {
        self.decode.token_step(batch, request.context()).0
    }

    /// Requests that end with so many in decode in each replica.
    fn ends(&self, request: &Request, batch: f64) -> RequestRate {
        RequestRate::of(batch * self.replicas, self.step(request, batch).total() * request.output)
    }

    /// The most that the decode replicas finish, at most `most` requests in an attention group.
    pub fn finished(&self, request: &Request, most: f64) -> RequestRate {
        self.ends(request, self.largest(most))
    }

    fn largest(&self, most: f64) -> f64 {
        self.room.requests.min(most * f64::from(self.decode.spread.attention_data)).max(1.0)
    }

    /// The batch in each replica at which that many end.
    fn batch_at(&self, request: &Request, rate: RequestRate) -> f64 {
        let (mut low, mut high) = (0.0, self.room.requests);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if self.ends(request, middle) < rate { low = middle } else { high = middle }
        }
        high
    }

    fn state(&self, request: &Request, rate: RequestRate, batch: f64, queue: Seconds) -> SteadyState {
        let (step, cycle) = self.decode.token_step(batch, request.context());
        let prefill = self.prefill.prefill(request.input, request.cached);
        let first = self.decode.hardware.first_token + prefill + self.transfer + cycle;
        SteadyState {
            ttft: first + queue,
            queue,
            requests_per_second: rate.over(SECOND) / self.replicas,
            ..SteadyState::of(&TokenTime { step, cycle, stall: Seconds::ZERO }, batch, prefill)
        }
    }

    /// As many as the slower pool serves; the time to the first token is without the wait, which has no end.
    pub fn most(&self, request: &Request, most: f64) -> SteadyState {
        let (decode, prefill) = (self.finished(request, most), self.taken_in(request));
        let batch = if prefill < decode { self.batch_at(request, prefill) } else { self.largest(most) };
        self.state(request, decode.min(prefill), batch, Seconds::ZERO)
    }

    /// So many open at once in all: those that are in neither pool's hands wait. Where prompts come in a number of rounds, the
    /// first all at once, each of those waits for half of the others, side by side in all workers.
    pub fn closed(&self, request: &Request, open: f64, waves: f64) -> SteadyState {
        let most = self.finished(request, f64::INFINITY).min(self.taken_in(request));
        let at = |rate: RequestRate| self.state(request, rate, self.batch_at(request, rate), Seconds::ZERO);
        let held = |rate: RequestRate| {
            let state = at(rate);
            rate.over(state.ttft + state.tpot * request.output)
        };
        let (mut low, mut high) = (RequestRate::ZERO, most);
        if held(most) >= open {
            for _ in 0..HALVINGS {
                let middle = (low + high) / 2.0;
                if held(middle) < open { low = middle } else { high = middle }
            }
        }
        let mut state = at(high);
        let groups = f64::from(self.prefill.spread.attention_data);
        let busy = self.prefill.prefill_together(groups, request.input, request.cached);
        let burst = busy * ((open - 1.0).max(0.0) / (2.0 * waves * self.servers()));
        state.queue = SECOND * ((open - held(high)).max(0.0) / high.over(SECOND)) + burst;
        state.ttft += state.queue;
        state
    }

    /// Requests that come by themselves, and how their latencies scatter. Prompts wait for a free prefill worker: the mean wait
    /// of a G/G/k queue (Allen and Cunneen: that of M/M/k, by Erlang's C, times half the squared coefficients of variation of
    /// arrivals and service), and where decode's caches are nearly full, for room in them; or as long as a trace's own requests
    /// where it is replayed.
    ///
    /// # Errors
    /// When more come than one of the pools serves.
    pub fn at_rate(
        &self,
        request: &Request,
        rate: RequestRate,
        coming: &Coming<'_>,
        scratch: &mut Scratch,
    ) -> Result<(SteadyState, Latencies), Overload> {
        let worker = &self.prefill;
        let costs = worker.prompt_costs();
        let full = worker.full_step(&costs);
        let groups = f64::from(worker.spread.attention_data);
        let times = |new: f64, cached: f64| {
            let packed = worker.packed_by(&full, new, cached) * groups;
            let served = packed.min(worker.together_by(&costs, groups, new, cached));
            (worker.prefill_by(&costs, new, cached), served)
        };
        scratch.time(coming, times);
        let (prefill, _) = over_prompts(scratch.prompts(), |timed| timed.alone);
        let (least, serving) = over_prompts(scratch.prompts(), |timed| timed.served);
        let servers = self.servers();
        let (finished, taken_in) = (self.finished(request, f64::INFINITY), RequestRate::of(servers, least));
        if rate >= finished.min(taken_in) {
            let short = if finished < taken_in { Short::Cache } else { Short::Prefill };
            return Err(Overload { most: finished.min(taken_in), short });
        }
        let offered = rate.over(least);
        let waits = erlang_c(servers, offered);
        let squared_cv = coming.squared_cv(1.0);
        let queue = least * (waits / (servers - offered) * (squared_cv + serving) / 2.0);
        let batch = self.batch_at(request, rate);
        let over_replicas = |together: f64| 1.0 + (together - 1.0) / self.replicas;
        let peaked = peakedness(over_replicas(squared_cv), coming.requests);
        // By Little's law.
        let in_decode = |batch: f64, rate: RequestRate| SECOND * (batch * self.replicas / rate.over(SECOND));
        let admission = Admission {
            rate: rate / self.replicas,
            batch,
            held: in_decode(batch, rate),
            room: self.room.requests,
            full: in_decode(self.largest(f64::INFINITY), finished),
            peakedness: peaked,
        };
        let wait = Wait { busy: waits, mean: queue }.and(admission.wait(|| coming.requests.answer_scatter()));
        let queue = wait.mean;
        let mut state = self.state(request, rate, batch, queue);
        let fixed = state.ttft.saturating_sub(state.queue + state.prefill);
        state.prefill = prefill;
        state.ttft = fixed + prefill + queue;
        let first = |_: f64, alone: Seconds| fixed + alone;
        let token = |batch: f64| self.step(request, batch.clamp(0.0, self.room.requests)).total();
        let mut sources = Sources { first: &first, wait, token, peakedness: peaked };
        if coming.replay {
            let kept = ByPrompt::new(&coming.requests.prompts, |prompt| {
                let (new, cached) = coming.parts(prompt);
                times(new, cached).1
            });
            let to_first = ByPrompt::new(&coming.requests.prompts, |prompt| {
                let (new, cached) = coming.parts(prompt);
                first(new, times(new, cached).0)
            });
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of workers")]
            let shared = Servers::Shared(servers as u32);
            let room = Room { requests: self.room.requests * self.replicas };
            if let Some(found) = replay(coming, rate, shared, room, (&kept, &to_first, state.tpot)) {
                state.queue = found.wait;
                state.ttft = fixed + prefill + found.wait;
                sources.peakedness = over_replicas(dispersion(coming, rate, state.tpot * request.output));
                let token = tokens(&state, &sources);
                return Ok((state, Latencies { first_token: found.first_token, token, whole: found.whole }));
            }
        }
        let latencies = distribution(coming, &state, &sources, scratch);
        Ok((state, latencies))
    }
}

/// Erlang's C: the share of arrivals that find all of so many servers busy, at that many offered at once on average.
pub(super) fn erlang_c(servers: f64, offered: f64) -> f64 {
    let mut blocked = 1.0;
    let mut count = 1.0;
    while count <= servers {
        blocked = offered * blocked / (count + offered * blocked);
        count += 1.0;
    }
    let load = offered / servers;
    blocked / (1.0 - load * (1.0 - blocked))
}

#[cfg(test)]
mod tests {
    use super::erlang_c;

    #[test]
    fn erlangs_c_is_met() {
        // One server busy for 0.8 of the time: 0.8 wait. Two servers offered one at a time on average: 1/3 wait.
        assert!((erlang_c(1.0, 0.8) - 0.8).abs() < 1e-12);
        assert!((erlang_c(2.0, 1.0) - 1.0 / 3.0).abs() < 1e-12);
    }
}
