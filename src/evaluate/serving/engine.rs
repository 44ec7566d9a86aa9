//! What an engine does beside its plain loop, as the model of it takes it, and the figures of it.

use super::holding::{adapter_numbers, adapters_on_rank};
use crate::inference::{
    Adapters, Chunks, Features, Graphs, Hardware, ModelShape, Popularity, Replayed, Replica, Request, Speculation,
    Spread, SteadyState,
};
use crate::memory::serving::ServingLayout;
use crate::scenario::{AdapterRouting, AdapterSet, ExpertImbalance, Serving};
use crate::units::{Bytes, RequestRate, Seconds};
use crate::workload::{Tenants, prediction_inputs, replicas};

/// The mean request, of whose prompt such a share is cached.
pub(super) fn mean_request(serving: &Serving, hit: f64) -> Request {
    let (input, output) = serving.mean_lengths();
    let spread = serving.input.mean * serving.input.cv;
    Request { input: input * (1.0 - hit), cached: input * hit, output, beyond: serving.requests.beyond, spread }
}

/// Arithmetic of all that an engine runs.
#[derive(Clone, Debug)]
pub(super) struct Shapes {
    /// The model.
    pub(super) model: ModelShape,
    /// What drafts for it.
    draft: Option<ModelShape>,
    /// How popular adapters are.
    popularity: Option<Popularity>,
}

impl Shapes {
    pub(super) fn new(serving: &Serving) -> Self {
        let draft = serving.features.speculation.as_ref().map(|speculation| {
            let shape = ModelShape::new(&speculation.model);
            if speculation.layer { shape.behind(&serving.model, prediction_inputs(&serving.model)) } else { shape }
        });
        let popularity = serving.features.adapters.as_ref();
        let popularity = popularity.map(|set| Popularity::zipf(f64::from(set.count), set.popularity));
        Self { model: ModelShape::new(&serving.model), draft, popularity }
    }

    /// An engine of a scenario, one of so many; `sharing` are requests whose prompts share steps with sequences in decode, where they do.
    pub(super) fn engine<'a>(
        &'a self,
        serving: &'a Serving,
        hardware: &'a Hardware,
        layout: ServingLayout,
        sharing: Option<&Request>,
        engines: f64,
    ) -> Replica<'a> {
        let features = self.features((serving, hardware), layout, sharing, engines);
        let replica = Replica::new(&self.model, hardware, Spread::from(layout)).with(features);
        if serving.features.expert_imbalance == ExpertImbalance::ByPlacement { replica.as_they_lie() } else { replica }
    }

    /// What it does beside.
    fn features<'a>(
        &'a self,
        (serving, hardware): (&'a Serving, &Hardware),
        layout: ServingLayout,
        sharing: Option<&Request>,
        engines: f64,
    ) -> Features<'a> {
        let asked = &serving.features;
        let speculation = asked.speculation.as_ref().zip(self.draft.as_ref());
        let speculation = speculation.map(|(asked, draft)| Speculation { draft, acceptance: &asked.acceptance });
        let chunks = asked.chunk_tokens.map(|tokens| Chunks { tokens: f64::from(tokens), shared: sharing.is_some() });
        let adapters = asked.adapters.as_ref().zip(self.popularity.as_ref()).map(|(set, popularity)| Adapters {
            popularity,
            parts: shared_out(set, engines),
            resident: f64::from(set.resident),
            passed_over: !serving.engine_memory.adapters_in_turn,
            parameters: adapter_numbers(set, &layout),
            projections: set.parameters.projections,
            kernel: serving.efficiency.adapter_kernel,
        });
        let launch = asked.eager.then_some(serving.efficiency.eager_unit);
        let excess = asked.expert_imbalance.excess();
        let two_batches = asked.two_batch_overlap;
        let (balance, polls) = (asked.balance_steps.map(f64::from), asked.poll_steps.map(f64::from));
        let graphs = asked.graphs.as_ref().map(|sizes| Graphs {
            sizes,
            most: asked.max_num_seqs.map_or(f64::INFINITY, f64::from),
            replayed: Replayed::Beside {
                prompts: sharing.map_or(0.0, |request| request.input / request.output),
                tokens: f64::from(asked.chunk_tokens.unwrap_or(serving.engine_memory.batched_tokens)),
            },
            launch: serving.efficiency.eager_unit,
        });
        let longest = serving.context.map(f64::from);
        Features {
            speculation,
            chunks,
            two_batches,
            adapters,
            excess,
            launch,
            balance,
            polls,
            longest,
            gathers: hardware.gathers(serving.engine_version),
            graphs,
        }
    }

    /// A worker that only takes prompts in.
    pub(super) fn worker<'a>(
        &'a self,
        serving: &'a Serving,
        hardware: &'a Hardware,
        layout: ServingLayout,
    ) -> Replica<'a> {
        self.engine(serving, hardware, layout, None, 1.0)
    }

    /// Sequences at once, at most, where an engine takes requests in turn and one whose adapter has no place in memory holds up those
    /// behind it: as many as bring no more different ones.
    pub(super) fn held_up_by_adapters(&self, serving: &Serving, layout: &ServingLayout, engines: f64) -> f64 {
        let found = serving.features.adapters.as_ref().zip(self.popularity.as_ref());
        let Some((set, popularity)) = found.filter(|_| serving.engine_memory.adapters_in_turn) else {
            return f64::INFINITY;
        };
        let parts = shared_out(set, engines);
        popularity.requests_of(f64::from(set.resident) * parts) / parts * f64::from(layout.attention_data)
    }

    /// Different adapters that so many sequences of a replica bring to each attention group, were there places for all.
    pub(super) fn different(&self, serving: &Serving, sequences: f64, engines: f64) -> f64 {
        let found = serving.features.adapters.as_ref().zip(self.popularity.as_ref());
        found.map_or(0.0, |(set, popularity)| {
            let parts = shared_out(set, engines);
            popularity.different(sequences / f64::from(serving.layout.attention_data) * parts) / parts
        })
    }

    /// What becomes of requests whose adapter is not in the memory of the one of so many engines that they come to.
    ///
    /// Where each adapter has one engine, that keeps of its part what all together would keep of the whole, and requests differ
    /// as much from each other as so many times as many of all.
    pub(super) fn swaps(&self, serving: &Serving, layout: &ServingLayout, engines: f64) -> Option<AdapterPoint> {
        let (set, popularity) = (serving.features.adapters.as_ref()?, self.popularity.as_ref()?);
        let resident = f64::from(set.resident);
        let parts = shared_out(set, engines);
        let [anywhere, sent] = [1.0, engines].map(|parts| popularity.found(resident * parts));
        let missed = 1.0 - popularity.found(resident * parts);
        let busiest = popularity.busiest(engines);
        // All ranks fetch what each of them keeps at the same time, over links of their own.
        let load = set.tier.fetch(adapters_on_rank(set, layout, 1.0));
        Some(AdapterPoint {
            each: Adapters::held(set.parameters.whole + set.parameters.split, 1.0),
            held: adapters_on_rank(set, layout, resident),
            missed,
            wait: load * missed,
            sequences: self.held_up_by_adapters(serving, layout, engines),
            different: 0.0,
            found: [anywhere, sent],
            busiest,
            uneven: if parts > 1.0 { busiest } else { 1.0 },
        })
    }
}

/// Engines of which each has adapters of its own, of so many.
fn shared_out(set: &AdapterSet, engines: f64) -> f64 {
    match set.routing {
        AdapterRouting::Aware => engines.max(1.0),
        AdapterRouting::Balanced => 1.0,
    }
}

/// Figures of adapters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdapterPoint {
    /// Bytes of one.
    pub each: Bytes,
    /// Bytes on a rank of those that are in its memory.
    pub held: Bytes,
    /// Share of requests whose adapter has to be loaded.
    pub missed: f64,
    /// Wait for that, the mean over all requests.
    pub wait: Seconds,
    /// Sequences at once, at most, where one whose adapter has no place holds up those behind it.
    pub sequences: f64,
    /// Different ones that those in decode would bring to each attention group, were there places for all.
    pub different: f64,
    /// Share of requests that find theirs in memory where they are sent anywhere, and where they are sent to it.
    pub found: [f64; 2],
    /// Requests of the busiest replica over the mean where they are sent to their adapter.
    pub busiest: f64,
    /// The same as they are sent.
    pub uneven: f64,
}

impl AdapterPoint {
    /// The same where those in decode would bring so many different ones.
    pub(super) fn with(self, different: f64) -> Self {
        Self { different, ..self }
    }
}

/// Replicas that tenants take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TenantsPoint {
    /// Accelerators where each tenant has replicas of its own for its busiest time.
    pub apart: f64,
    /// The same where each has as many as it needs at the time, given anew through the day; none where hours are not known.
    pub reallocated: Option<f64>,
    /// Accelerators where all share replicas for the busiest time of all together.
    pub pooled: f64,
}

impl TenantsPoint {
    /// Of tenants on replicas that each serve so many requests a second, of all and of each class by itself, so many of which go
    /// on an accelerator.
    pub(in crate::evaluate) fn new(
        tenants: &Tenants,
        (each, of_class): (RequestRate, &[RequestRate]),
        per_accelerator: f64,
    ) -> Self {
        let accelerators = |replicas: f64| (replicas / per_accelerator).ceil();
        Self {
            apart: accelerators(tenants.apart(of_class)),
            reallocated: tenants.reallocated(of_class).map(accelerators),
            pooled: accelerators(replicas(tenants.pooled(), each)),
        }
    }
}

/// Figures of what an engine does beside its plain loop.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EnginePoint {
    /// Tokens of a sequence that a step makes on average, where drafts are verified.
    pub tokens_per_step: Option<f64>,
    /// Steps that a prompt of mean length takes, where prompts are cut into chunks.
    pub chunks: Option<f64>,
    /// The longest wait between two tokens where steps are shared with chunks.
    pub longest_gap: Option<Seconds>,
    /// What the host takes for a request before its first token, whatever its prompt.
    pub taken_in: Seconds,
}

impl EnginePoint {
    /// Of a replica in a steady state, whose requests wait so long for what they need beside; `prefill` is what takes prompts in.
    pub(super) fn new(
        (decode, wait): (&Replica<'_>, Seconds),
        prefill: &Replica<'_>,
        request: &Request,
        state: &SteadyState,
    ) -> Self {
        let chunked = prefill.features.chunks.is_some();
        let speculation = decode.features.speculation.filter(|_| request.decodes());
        let gap = || prefill.longest_gap(request.input, request.cached, state.cycle);
        Self {
            tokens_per_step: speculation.map(|speculation| speculation.tokens_per_step()),
            chunks: chunked.then(|| prefill.chunks(request.input)),
            longest_gap: request.decodes().then(gap).flatten(),
            taken_in: decode.taken_in().saturating_sub(wait),
        }
    }
}
