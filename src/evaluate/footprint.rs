//! Energy and emissions of each unit that costs are told of: an hour, a PFLOP-day, a million tokens, a task.
//!
//! Whatever takes a share of the accelerators' useful hours takes the same share of the facility's energy, so that the units'
//! energies add up as their costs do. Emissions are location-based: energy times the carbon intensity of the site's grid.

use super::{BuiltCluster, Evaluation, TokenCosts};
use crate::units::{
    CarbonMass, FlopRate, Fraction, Joules, SECONDS_PER_DAY, SECONDS_PER_YEAR, Seconds, Usd, UsdPerHour,
};

const HOUR: Seconds = Seconds::new(3_600.0);

/// What the facility takes from the grid, and emissions of that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Footprint {
    /// Energy.
    pub energy: Joules,
    /// Emissions, location-based.
    pub emissions: CarbonMass,
}

impl Footprint {
    /// That of so many.
    #[must_use]
    pub fn times(self, count: f64) -> Self {
        Self { energy: self.energy * count, emissions: self.emissions * count }
    }
}

/// Something of each kind of token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ByToken<T> {
    /// Of prompts, computed.
    pub input: T,
    /// Of prompts, cached; none where none are.
    pub cached: Option<T>,
    /// Of answers.
    pub output: T,
    /// All alike.
    pub blended: T,
}

impl<T: Copy> ByToken<T> {
    /// The same of something else.
    fn map<U>(self, of: impl Fn(T) -> U) -> ByToken<U> {
        ByToken {
            input: of(self.input),
            cached: self.cached.map(&of),
            output: of(self.output),
            blended: of(self.blended),
        }
    }
}

impl Evaluation {
    /// The same on nodes that are rented, a share of whose hours is in use: spares, storage and other hours are the provider's, and
    /// others pay for them. None where the network cannot be built for the nodes at work alone.
    pub fn rented(&self, in_use: Fraction) -> Option<Self> {
        let mut scenario = self.scenario.clone();
        (scenario.cluster.spares, scenario.cluster.storage_units) = (Fraction::ZERO, 0);
        scenario.finance.utilisation = in_use;
        let built = BuiltCluster::new(&scenario.cluster, &scenario.finance).ok()?;
        Some(Self { scenario, built, ..self.clone() })
    }

    /// Of a year of the whole cluster.
    fn yearly(&self) -> Footprint {
        let facility = &self.built.facility;
        Footprint { energy: facility.energy_per_year, emissions: facility.emissions_per_year }
    }

    /// Of an hour of calendar time of one accelerator bought.
    pub fn owned_hour(&self) -> Footprint {
        let hours = Seconds::new(SECONDS_PER_YEAR) / HOUR * self.built.drivers.accelerators as f64;
        self.yearly().times(1.0 / hours)
    }

    /// Of an hour of one accelerator's useful work.
    pub fn useful_hour(&self) -> Footprint {
        self.yearly().times(1.0 / self.useful_hours_per_year())
    }

    /// Useful time of an accelerator that 10^15 model FLOPs a second take for a day, where anything is trained.
    pub fn pflop_day(&self) -> Option<Seconds> {
        let day = FlopRate::new(1e15) * Seconds::new(SECONDS_PER_DAY);
        Some(day / self.point?.step.rate_per_accelerator())
    }

    /// Of such a PFLOP-day.
    pub fn pflop_day_footprint(&self) -> Option<Footprint> {
        Some(self.useful_hour().times(self.pflop_day()? / HOUR))
    }

    /// Useful hours of an accelerator that a million tokens take, where anything is served.
    pub fn token_hours(&self) -> Option<ByToken<f64>> {
        // What they cost at a dollar an hour are hours.
        let cluster = &self.scenario.cluster;
        let own = cluster.own_nodes_of_prefill().map(|own| f64::from(own.accelerators));
        self.token_hours_of(own.map_or(0.0, |own| own / f64::from(cluster.accelerators)))
    }

    /// The same where so large a share of what hours take is that of prefill's own nodes.
    fn token_hours_of(&self, of_prefill: f64) -> Option<ByToken<f64>> {
        let costs = TokenCosts::new(&self.serving?, UsdPerHour::new(1.0), &self.scenario.cluster, of_prefill);
        let of = |cost: Usd| cost / Usd::new(1.0);
        Some(ByToken {
            input: of(costs.input),
            cached: costs.cached.map(of),
            output: of(costs.output),
            blended: of(costs.blended),
        })
    }

    /// Of a million tokens.
    pub fn token_footprint(&self) -> Option<ByToken<Footprint>> {
        let hour = self.useful_hour();
        Some(self.token_hours_of(self.built.shares_of_prefill().energy)?.map(|hours| hour.times(hours)))
    }

    /// Of a task of agents on average, runs that fail among them: its tokens, not its tools and machines.
    pub fn task_footprint(&self) -> Option<Footprint> {
        let cost = self.agents?.cost;
        let hours = (cost.input + cost.cached + cost.output) / self.unit_costs.per_useful_gpu_hour.over(HOUR);
        Some(self.useful_hour().times(hours))
    }

    /// Of a task that succeeds, with the failures beside it.
    pub fn success_footprint(&self) -> Option<Footprint> {
        let rate = self.scenario.agents.as_ref()?.task.rate.get();
        Some(self.task_footprint()?.times(1.0 / rate))
    }

    /// Emissions of making the accelerators, for an hour of one's useful work over their life, where they are known.
    pub fn embodied_of_useful_hour(&self) -> Option<CarbonMass> {
        let years = self.scenario.finance.accelerator_life / Seconds::new(SECONDS_PER_YEAR);
        Some(self.embodied()? * (1.0 / (self.useful_hours_per_year() * years)))
    }
}
