//! Prefill and decode in pools of their own, with requests at a rate, at a concurrency, or without end.

mod at_rate;
mod open;
mod prompts;

use super::features::TokenTime;
use super::hand_over::{End, HandOver};
use super::open_loop::Short;
use super::queue::coming::Coming;
use super::queue::crossing::{LEAST, crossing};
use super::state::{Request, SteadyState};
use super::step::links::{Cycle, messaging};
use super::step::prefill::PromptCosts;
use super::{Hardware, Replica, Room, Scratch, StepTime};
use crate::units::{RequestRate, Seconds};

/// Halvings of what is sought.
const HALVINGS: u32 = 50;
const SECOND: Seconds = Seconds::new(1.0);
/// The least part of a step that a prompt counts for in waits: one that is all cached takes a step, and no part of a fuller one.
const LEAST_PART: f64 = 1e-9;

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
    /// Handing a request's cache over.
    pub transfer: HandOver,
    /// How long a prompt keeps an attention group of a worker that has the next one already.
    pub served: Seconds,
}

impl Separate<'_> {
    /// Prompts that are prefilled side by side: one in each attention group of each stage of each worker.
    fn servers(&self) -> f64 {
        let spread = self.prefill.spread;
        self.workers * f64::from(spread.attention_data) * f64::from(spread.pipeline)
    }

    /// What a prompt of a request takes of a worker that has the next one already, and of its links.
    fn prompt(&self, request: &Request) -> Cycle {
        let (new, cached) = (request.input, request.cached);
        let served = served(&self.prefill, &self.prefill.prompt_costs(), new, cached);
        let messages = self.prefill.prefilling_on(self.transfer.links, new);
        let caches = self.transfer.keeps_sender() * f64::from(self.prefill.spread.pipeline);
        Cycle { messages, rest: served.saturating_sub(messages), caches }
    }

    /// The accelerator of a worker that has the next prompt already, where caches of those before slow its messages.
    fn busy_worker(&self, prompt: &Cycle) -> Hardware {
        self.prefill.hardware.slowed_on(self.transfer.links, prompt.slowed())
    }

    /// How long a prompt of that length keeps an attention group of a worker that has the next one already.
    pub fn served_alike(&self, request: &Request) -> Seconds {
        let hardware = self.busy_worker(&self.prompt(request));
        let worker = Replica { hardware: &hardware, ..self.prefill };
        served(&worker, &worker.prompt_costs(), request.input, request.cached)
    }

    /// The same, the mean of prompts that come.
    pub fn served_on_average(&self, request: &Request, coming: &Coming<'_>, scratch: &mut Scratch) -> Seconds {
        self.time_prompts(request, coming, scratch);
        scratch.over_prompts(|timed| timed.served).mean
    }

    pub(super) fn time_prompts(&self, request: &Request, coming: &Coming<'_>, scratch: &mut Scratch) {
        if !scratch.knows() {
            scratch.time(coming, self.times_of_prompts(request));
        }
    }

    /// Times of a prompt of so many new tokens behind cached ones: alone, and in a group of a worker that has the next one.
    fn times_of_prompts(&self, request: &Request) -> impl Fn(f64, f64) -> (Seconds, Seconds) {
        let (alone, hardware) = (self.prefill, self.busy_worker(&self.prompt(request)));
        let groups = f64::from(alone.spread.attention_data);
        let worker = Replica { hardware: &hardware, ..alone };
        let (costs, full) = (worker.prompt_costs(), worker.full_step(&worker.prompt_costs()));
        move |new: f64, cached: f64| {
            let worker = Replica { hardware: &hardware, ..alone };
            let packed = worker.packed_by(&full, new, cached) * groups;
            let served = packed.min(worker.together_by(&costs, groups, new, cached));
            (alone.prefill_by(&costs, new, cached), served)
        }
    }

    /// The most that the prefill workers have time for.
    pub fn prefilled(&self) -> RequestRate {
        RequestRate::of(self.servers(), self.served)
    }

    /// The most that the prefill workers take in and hand over.
    pub fn taken_in(&self, request: &Request) -> RequestRate {
        self.prefilled().min(self.sent(request))
    }

    /// Attention groups that hand over.
    fn senders(&self) -> f64 {
        self.workers * f64::from(self.prefill.spread.attention_data)
    }

    /// Attention groups that they hand to.
    fn receivers(&self) -> f64 {
        self.replicas * f64::from(self.decode.spread.attention_data)
    }

    /// The most caches that the links of the prefill workers carry beside the messages of workers that always have a prompt, or of
    /// as many prompts as there are caches where that is less.
    fn sent(&self, request: &Request) -> RequestRate {
        let (prompt, senders) = (self.prompt(request), self.senders());
        let carried = prompt.left_of(self.transfer.sends(senders));
        if prompt.filled() <= 1.0 {
            return carried;
        }
        let of_rank = (prompt.caches + prompt.messages) / f64::from(self.prefill.spread.pipeline);
        carried.min(RequestRate::of(senders, of_rank))
    }

    /// The most that the links of the decode replicas carry beside messages.
    fn received(&self, request: &Request) -> RequestRate {
        let alone = self.transfer.receives(self.receivers());
        let beside = |batch: f64| {
            let cycle = self.turn(request, batch).cycle;
            (cycle, cycle.left_of(alone))
        };
        let largest = self.room.requests;
        let (cycle, carried) = beside(largest);
        if cycle.messages <= Seconds::ZERO || cycle.filled() <= 1.0 {
            return carried;
        }
        let (mut low, mut high) = (0.0, largest);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if beside(middle).0.filled() < 1.0 { low = middle } else { high = middle }
        }
        beside(high).1
    }

    /// The most caches that the links of both pools carry.
    pub fn handed_over(&self, request: &Request) -> RequestRate {
        self.sent(request).min(self.received(request))
    }

    /// A step of decode with so many sequences in each replica, and what its links have to carry.
    fn turn(&self, request: &Request, batch: f64) -> Turn {
        let links = self.transfer.links;
        let (step, whole) = self.decode.token_step(batch, request.contexts());
        let tokens = whole / step.total();
        let groups = f64::from(self.decode.spread.attention_data);
        let caches = self.transfer.keeps_receiver() * (batch / groups * tokens / request.output);
        let verified = self.decode.features.speculation.map_or(1.0, |drafts| drafts.drafted() + 1.0);
        let messages = self.decode.decoding_on(links, batch * verified);
        let cycle = Cycle { messages, rest: whole.saturating_sub(messages), caches };
        if messages <= Seconds::ZERO {
            return Turn { step, whole, cycle };
        }
        let hardware = self.decode.hardware.slowed_on(links, cycle.slowed());
        let (step, whole) = Replica { hardware: &hardware, ..self.decode }.token_step(batch, request.contexts());
        Turn { step, whole, cycle }
    }

    pub(super) fn step(&self, request: &Request, batch: f64) -> StepTime {
        self.turn(request, batch).step
    }

    /// Both ends of the links at such a rate, with so many sequences in each replica.
    fn ends_of_links(&self, request: &Request, rate: RequestRate, batch: f64) -> (End, End) {
        let prompts = rate / self.senders();
        let stages = f64::from(self.prefill.spread.pipeline);
        let messages = prompts.over(self.prefill.prefilling_on(self.transfer.links, request.input)) / stages;
        let sending = messaging(messages, prompts.over(self.transfer.keeps_sender()));
        let receiving = self.turn(request, batch).cycle.messaging();
        (End { groups: self.senders(), messaging: sending }, End { groups: self.receivers(), messaging: receiving })
    }

    /// Requests that end with so many in decode in each replica.
    fn ends(&self, request: &Request, batch: f64) -> RequestRate {
        RequestRate::of(batch * self.replicas, self.step(request, batch).total() * request.output)
    }

    /// The most that the decode replicas have time and room for.
    pub fn decoded(&self, request: &Request) -> RequestRate {
        self.ends(request, self.room.requests)
    }

    /// The most that the decode replicas are handed and finish.
    pub fn finished(&self, request: &Request) -> RequestRate {
        self.decoded(request).min(self.received(request))
    }

    /// The most of requests that come by themselves at which each adapter has its turn in decode; without end where all have a place, or
    /// requests are taken in turn.
    pub fn turns(&self, request: &Request) -> RequestRate {
        let room = self.room.requests;
        let number = self.decode.with_turns(room);
        if number >= room {
            return RequestRate::new(f64::INFINITY);
        }
        let token = self.step(request, (number + 1.0).min(room)).total();
        RequestRate::of(number * self.replicas, token * request.output)
    }

    /// With so many in decode in each replica, where nobody waits.
    pub fn at_batch(&self, request: &Request, batch: f64) -> SteadyState {
        self.state(request, self.ends(request, batch), batch, Waited::default())
    }

    /// The batch in each replica at which that many end.
    fn batch_at(&self, request: &Request, rate: RequestRate) -> f64 {
        let room = self.room.requests;
        let over = |batch: f64| self.ends(request, batch) / rate - 1.0;
        if over(room) <= 0.0 { room } else { crossing(over, LEAST, room) }
    }

    fn state(&self, request: &Request, rate: RequestRate, batch: f64, waited: Waited) -> SteadyState {
        let Turn { step, whole: cycle, .. } = self.turn(request, batch);
        let prefill = self.prefill.prefill(request.input, request.cached);
        let first = self.decode.hardware.first_token + prefill + self.transfer.alone() + cycle;
        SteadyState {
            ttft: first + waited.queue + waited.links,
            joined: cycle,
            queue: waited.queue,
            links: waited.links,
            requests_per_second: rate.over(SECOND) / self.replicas,
            ..SteadyState::of(&TokenTime { step, cycle, stall: Seconds::ZERO }, batch, prefill)
        }
    }

    /// As many as the slower pool serves, or the links between them carry; the time to the first token is without the wait, which has no end.
    pub fn most(&self, request: &Request) -> SteadyState {
        let (decode, others) = (self.decoded(request), self.prefilled().min(self.handed_over(request)));
        if others < decode {
            return self.state(request, others, self.batch_at(request, others), Waited::default());
        }
        self.at_batch(request, self.room.requests)
    }

    /// The most of requests that come by themselves.
    pub fn most_at_a_rate(&self, request: &Request) -> RequestRate {
        (self.most(request).rate() * self.replicas).min(self.turns(request))
    }

    /// What keeps pools from serving more.
    pub fn short(&self, request: &Request) -> Short {
        let (decode, prefill, links) = (self.decoded(request), self.prefilled(), self.handed_over(request));
        if links < decode.min(prefill) {
            Short::Transfer
        } else if decode <= prefill {
            Short::Cache
        } else {
            Short::Prefill
        }
    }
}

/// Waits before a first token: for prefills and room, and for links between the pools.
#[derive(Clone, Copy, Debug, Default)]
struct Waited {
    queue: Seconds,
    links: Seconds,
}

/// A step of decode, and what its links have to carry meanwhile.
struct Turn {
    step: StepTime,
    /// All of it, which makes several tokens of each sequence where drafts are verified.
    whole: Seconds,
    /// As it would be without caches on their way.
    cycle: Cycle,
}

/// Time of a prefill of so many new tokens behind cached ones in one group where all of them prefill.
fn served(worker: &Replica<'_>, costs: &PromptCosts, new: f64, cached: f64) -> Seconds {
    let groups = f64::from(worker.spread.attention_data);
    let packed = worker.packed_by(&worker.full_step(costs), new, cached) * groups;
    packed.min(worker.together_by(costs, groups, new, cached))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::{Across, Links, Spread, fixture};
    use crate::topology::Pairs;
    use crate::units::Bandwidth;

    #[test]
    fn caches_and_the_exchange_of_experts_share_the_cards() {
        let model = fixture::shape("deepseek-v3");
        let rate = Bandwidth::new(48e9);
        let across = Across { domain: 8.0, rate, latency: Seconds::new(40e-6), kernel: Seconds::ZERO };
        let hardware = fixture::h100().across(across);
        let spread = Spread { tensor: 1, attention_data: 32, pipeline: 1, expert_parallel: true, redundant_experts: 0 };
        let engine = Replica::new(&model, &hardware, spread);
        let request = Request { input: 4_000.0, cached: 0.0, output: 500.0, beyond: 0.0, spread: 0.0 };
        let pools = |carried: f64, links: Links| {
            let [sent, received] = [Seconds::new(carried); 2];
            let transfer =
                HandOver { fixed: Seconds::ZERO, sent, received, pairs: Pairs::NEAR, sharing: [1.0; 2], links };
            let pools = Separate {
                prefill: engine,
                workers: 100.0,
                decode: engine,
                replicas: 1.0,
                room: Room { requests: 4_096.0 },
                transfer,
                served: Seconds::ZERO,
            };
            Separate { served: pools.served_alike(&request), ..pools }
        };
        let none = pools(0.0, Links::Cards);
        let (few, many) = (pools(0.02, Links::Cards), pools(0.5, Links::Cards));
        // With 128 sequences in each group that end after 500 steps, as many caches come in a second as keep cards busy for the
        // share that the exchange loses half of.
        let batch = 4_096.0;
        let [idle, some, most] = [&none, &few, &many].map(|pools| pools.turn(&request, batch));
        assert_eq!(idle.step, engine.decode(batch, request.context(), 1.0));
        let slowed = some.step.network.saturating_sub(idle.step.network);
        let of_cards = idle.cycle.messages;
        let caching = some.cycle.caches / some.whole / (1.0 - some.cycle.messaging() / 2.0);
        let expected = of_cards * ((1.0 - caching / 2.0).recip() - 1.0);
        assert!((slowed / expected - 1.0).abs() < 1e-6, "{slowed} {expected}");
        assert!(slowed > Seconds::ZERO && most.step.network > some.step.network);
        // Prefill's exchange too, and the links carry fewer caches than they would alone.
        assert!(few.prefilled() < none.prefilled());
        let alone = RequestRate::of(32.0, few.transfer.received);
        assert!(few.received(&request) < alone);
        // Where more come than are carried beside the exchange, what is handed over binds.
        let (bound, free) = (many.most(&request), none.most(&request));
        assert!(bound.requests_per_second < free.requests_per_second);
        let carried = many.handed_over(&request).over(Seconds::new(1.0));
        assert!((bound.requests_per_second / carried - 1.0).abs() < 1e-6, "{} {carried}", bound.requests_per_second);
        // Cards that caches do not take are left alone.
        let other = pools(0.0002, Links::ScaleUp).turn(&request, batch);
        assert!(other.step.network < some.step.network);
    }
}
