//! What a million tokens cost.

use super::{Evaluation, ServingPoint};
use crate::scenario::{Cluster, PrefillNodes};
use crate::tco::{TokenPrices, TokenSales};
use crate::units::{Joules, RequestRate, Seconds, Tokens, Usd, UsdPerHour, UsdPerToken};

const MILLION: f64 = 1e6;

/// Costs of a million tokens by kind; at the mix that is served they add up to what the replicas cost, idle or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenCosts {
    /// Of prompts, computed.
    pub input: Usd,
    /// Of prompts, cached; none where none are.
    pub cached: Option<Usd>,
    /// Of answers.
    pub output: Usd,
    /// All alike.
    pub blended: Usd,
}

impl Evaluation {
    /// What tokens cost, where anything is served.
    pub fn token_costs(&self) -> Option<TokenCosts> {
        self.token_costs_at(self.unit_costs.per_useful_gpu_hour, None)
    }

    /// The same at another cost of an accelerator's hour, on the mean of all accelerators, and where prefill has nodes of another
    /// kind at their share of it, which is that of owning them where none is given.
    pub fn token_costs_at(&self, gpu: UsdPerHour, of_prefill: Option<f64>) -> Option<TokenCosts> {
        let of_prefill = of_prefill.unwrap_or_else(|| self.built.shares_of_prefill().cost);
        Some(TokenCosts::new(&self.serving?, gpu, &self.scenario.cluster, of_prefill))
    }

    /// Share of the cost that prompts bear.
    pub fn share_of_prompts(&self) -> Option<f64> {
        let of_prefill = self.built.shares_of_prefill().cost;
        Some(self.serving?.share_of_prompts(dearer(&self.scenario.cluster, of_prefill)))
    }
}

/// What an accelerator of prefill's own nodes takes over one that decodes, where so large a share of all is theirs.
fn dearer(cluster: &Cluster, of_prefill: f64) -> f64 {
    let of = |own: &PrefillNodes| {
        let decode = f64::from(cluster.main_nodes().accelerators) / f64::from(own.accelerators);
        of_prefill / (1.0 - of_prefill) * decode
    };
    cluster.prefill.as_ref().map_or(1.0, of)
}

/// What a million tokens of answers cost by what the time goes into, and the energy that they take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostElements {
    /// Reading weights.
    pub weights: Usd,
    /// Reading keys, values and states.
    pub cache: Usd,
    /// Arithmetic, prefill's among it.
    pub compute: Usd,
    /// Messages between ranks.
    pub network: Usd,
    /// Waiting: for the host and between kernels, and without a request.
    pub waiting: Usd,
    /// Of all of these together, power and the building that brings it.
    pub power: Usd,
    /// Energy that the facility takes meanwhile, in hours that nobody uses too.
    pub energy: Joules,
}

/// What a million tokens cost by where the capacity goes that they pay for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapacityCosts {
    /// Served on the mean of a day: what they would cost by use alone.
    pub used: Usd,
    /// There for the peak.
    pub off_peak: Usd,
    /// Left free at the peak, so that latencies are what they are.
    pub headroom: Usd,
    /// Standing by.
    pub standby: Usd,
}

impl CostElements {
    /// All that is paid while a million tokens of answers are made, their prompts among it; power is a part of the others.
    pub fn total(&self) -> Usd {
        self.weights + self.cache + self.compute + self.network + self.waiting
    }
}

impl Evaluation {
    /// What a million tokens of answers cost by element: all that the replicas cost, shared out by their time on the mean
    /// of a day. A pool of prefill computes while it takes prompts in, and waits else.
    pub fn cost_elements(&self) -> Option<CostElements> {
        let point = self.serving?;
        let second = self.unit_costs.per_useful_gpu_hour.over(Seconds::new(1.0)) * point.accelerators_per_replica();
        let million =
            second * (MILLION * point.peak_to_mean / (point.state.requests_per_second * point.request.output));
        let day = self.day_shares()?;
        let shares = &day.time;
        let request = &point.request;
        // What stands by waits.
        let at_work = point.serving_share();
        // What a pool of prefill costs, busy or not.
        let own = self.scenario.cluster.prefill.as_ref().map(|_| self.built.shares_of_prefill().cost);
        let share = own.unwrap_or(point.prefill_accelerators() as f64 / point.accelerators as f64);
        let (prefill, busy) = point.pool.map_or((0.0, 0.0), |pool| (share, (point.mean_rate() / pool.most).min(1.0)));
        let of = |share: f64| million * (share * at_work * (1.0 - prefill));
        let of_prefill = |share: f64| million * (share * at_work * prefill);
        Some(CostElements {
            weights: of(shares.weights),
            cache: of(shares.cache),
            compute: of(shares.compute) + of_prefill(busy),
            network: of(shares.network),
            waiting: of(shares.idle) + of_prefill(1.0 - busy) + million * (1.0 - at_work),
            power: million * self.power_share(),
            energy: self.token_footprint()?.blended.energy * (request.tokens() / request.output),
        })
    }

    /// Share of a year's cost that is paid by the kilowatt or the kilowatt-hour.
    fn power_share(&self) -> f64 {
        let costs = &self.built.costs;
        let of_power = costs.lines.iter().filter(|line| line.is_of_power());
        of_power.map(|line| line.annualised).sum::<Usd>() / costs.annualised
    }

    /// What a million tokens of both kinds cost by where the capacity goes that is paid for; the parts add up to all of it.
    pub fn cost_of_capacity(&self) -> Option<CapacityCosts> {
        let (shares, costs) = (self.capacity()?, self.token_costs()?);
        let of = |share: f64| costs.blended * share;
        Some(CapacityCosts {
            used: of(shares.used),
            off_peak: of(shares.off_peak),
            headroom: of(shares.headroom),
            standby: of(shares.standby),
        })
    }

    /// Prices that leave the wanted share of the income, where one is wanted.
    pub fn prices_at_margin(&self) -> Option<TokenPrices> {
        self.token_costs()?.prices().at_margin(self.scenario.margin?)
    }

    /// The tokens of a second at what they cost elsewhere, and what serving them here costs, where that is asked.
    pub fn against_elsewhere(&self) -> Option<TokenSales> {
        let (point, costs, prices) = (self.serving?, self.token_costs()?, self.scenario.token_prices?);
        let second = point.mean_rate().over(Seconds::new(1.0));
        let of = |each: f64| Tokens::new(each * second);
        let request = &point.request;
        let (fresh, cached, output) = (of(request.input), of(request.cached), of(request.output));
        let elsewhere =
            TokenPrices { input: prices.input, cached: prices.cached.unwrap_or(prices.input), output: prices.output };
        Some(TokenSales { income: elsewhere.of(fresh, cached, output), cost: costs.prices().of(fresh, cached, output) })
    }

    /// The share of owned hours that has to be in use for tokens to cost as much here as elsewhere: what they cost grows as
    /// the share falls, a year's cost being taken as the same (energy that idle hours save is left out). Above one, buying
    /// them is cheaper however much is used.
    pub fn break_even_utilisation(&self) -> Option<f64> {
        Some(self.against_elsewhere()?.break_even() * self.scenario.finance.utilisation.get())
    }

    /// The requests a second at the peak of a day from which tokens cost as much here as elsewhere in the same hours: a year's cost
    /// does not hang on the load, and as much of prompts is taken to be cached. More than can be served, where buying them is
    /// cheaper at any load.
    pub fn break_even_rate(&self) -> Option<RequestRate> {
        Some(self.serving?.request_rate() * self.against_elsewhere()?.break_even())
    }

    /// The same over the most that is served.
    pub fn break_even_load(&self) -> Option<f64> {
        Some(self.break_even_rate()? / self.most_served()?)
    }
}

impl TokenCosts {
    /// All that is paid, for idle hours too, is shared out by what a request's prompt and its answer take where as much is served
    /// as can be ([`ServingPoint::share_of_prompts`]), so that their prices stand to each other as they do at any load and
    /// whatever pools there are; a prompt's part is its own tokens' but for what attention to cached ones adds.
    ///
    /// `gpu` is the cost of an accelerator's hour on the mean of all; where prefill has nodes of another kind so large a share of
    /// all cost is theirs.
    pub fn new(point: &ServingPoint, gpu: UsdPerHour, cluster: &Cluster, of_prefill: f64) -> Self {
        let prefill = point.share_of_prompts(dearer(cluster, of_prefill));
        let second = gpu.over(Seconds::new(1.0)) * point.accelerators_per_replica();
        let (request, state) = (&point.request, &point.state);
        let rate = state.requests_per_second / point.peak_to_mean;
        let of = |share: f64, tokens: f64| second * (share / (rate * tokens) * MILLION);
        let to_cached = prefill * point.cached_share;
        Self {
            input: of(prefill - to_cached, request.input.max(f64::MIN_POSITIVE)),
            cached: (request.cached > 0.0).then(|| of(to_cached, request.cached)),
            output: of(1.0 - prefill, request.output),
            blended: of(1.0, request.tokens()),
        }
    }

    /// Each kind's cost of a token; of none where no token is cached.
    pub fn prices(&self) -> TokenPrices {
        let million = Tokens::new(MILLION);
        let of = |cost: Usd| cost / million;
        TokenPrices {
            input: of(self.input),
            cached: self.cached.map_or(UsdPerToken::ZERO, of),
            output: of(self.output),
        }
    }
}
