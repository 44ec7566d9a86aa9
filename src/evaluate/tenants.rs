//! What tenants take, what that costs each of them, and how soon they are answered: with replicas of their own, with those given anew
//! through the day, and with all replicas shared.

use super::{Evaluation, serving_point};
use crate::inference::Latencies;
use crate::scenario::{Arrivals, Serving};
use crate::units::{RequestRate, Seconds, Tokens, UsdPerHour, UsdPerToken};
use crate::workload::{TenantClass, replicas};

const HOUR: Seconds = Seconds::new(3_600.0);

/// One tenant in an arrangement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TenantShare {
    /// Accelerators at its busiest; those of a shared replica by its requests.
    pub busiest: f64,
    /// The same on the mean of a day.
    pub mean: f64,
    /// Its part of what all cost.
    pub cost: UsdPerHour,
    /// The same over its tokens, of prompts and answers.
    pub price: UsdPerToken,
    /// How its requests are answered while a replica has most to do; none where that is as much as it serves with no latency to keep.
    pub latencies: Option<Latencies>,
}

/// Tenants that are alike, each in the three arrangements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TenantBill {
    /// What they ask for.
    pub class: TenantClass,
    /// With replicas of its own for its busiest time.
    pub apart: TenantShare,
    /// With as many of its own as it needs at the time; none where an hour is not known.
    pub reallocated: Option<TenantShare>,
    /// With all replicas shared.
    pub pooled: TenantShare,
}

/// What one tenant of each class takes at its busiest and on the mean, by which it pays, and the most that a replica has to do then.
struct Taken {
    busiest: f64,
    mean: f64,
    by: f64,
    load: RequestRate,
}

impl Evaluation {
    /// Cost of so many accelerators, owned.
    pub fn cost_of_tenants(&self, accelerators: f64) -> UsdPerHour {
        self.unit_costs.per_gpu_hour * accelerators
    }

    /// The bill of one tenant of each class. What an arrangement costs is shared out by what each takes: the replicas that are its own,
    /// those on the mean of a day, or its requests.
    pub fn tenant_bills(&self) -> Option<Vec<TenantBill>> {
        let (serving, point, counts) = (self.scenario.serving.as_ref()?, self.serving?, self.tenants()?);
        let tenants = serving.features.tenants.as_ref()?;
        let all = (point.replicas + point.spares) as f64;
        let (each, of_replica) = (self.most_served()? / all, point.accelerators as f64 / all);
        let apart = tenants.0.iter().map(|class| {
            let own = replicas(class.peak, each);
            Taken { busiest: own * of_replica, mean: own * of_replica, by: own, load: class.peak / own }
        });
        let apart = self.shares(serving, &tenants.0, counts.apart, apart.collect());
        let by_hour = tenants.days().zip(counts.reallocated).map(|(days, accelerators)| {
            let taken = days.iter().map(|day| {
                let own = || day.iter().map(|asked| replicas(*asked, each));
                let mean = own().sum::<f64>() / day.len() as f64;
                let load = day.iter().zip(own()).map(|(asked, own)| *asked / own.max(1.0));
                let busiest = own().fold(0.0, f64::max);
                let load = load.fold(RequestRate::ZERO, RequestRate::max);
                Taken { busiest: busiest * of_replica, mean: mean * of_replica, by: mean, load }
            });
            self.shares(serving, &tenants.0, accelerators, taken.collect())
        });
        let together = tenants.pooled();
        let load = together / replicas(together, each);
        let pooled = tenants.0.iter().map(|class| {
            let [busiest, mean] = [class.peak, class.mean].map(|asked| asked / each * of_replica);
            Taken { busiest, mean, by: mean, load }
        });
        let pooled = self.shares(serving, &tenants.0, counts.pooled, pooled.collect());
        let bills = tenants.0.iter().enumerate().map(|(index, class)| TenantBill {
            class: *class,
            apart: apart[index],
            reallocated: by_hour.as_ref().map(|by_hour| by_hour[index]),
            pooled: pooled[index],
        });
        Some(bills.collect())
    }

    fn shares(
        &self,
        serving: &Serving,
        classes: &[TenantClass],
        accelerators: f64,
        taken: Vec<Taken>,
    ) -> Vec<TenantShare> {
        let all: f64 = classes.iter().zip(&taken).map(|(class, taken)| f64::from(class.count) * taken.by).sum();
        let (input, output) = serving.mean_lengths();
        let tokens = Tokens::new(input + output);
        let cost = self.cost_of_tenants(accelerators);
        let share = |(class, taken): (&TenantClass, Taken)| {
            let cost = cost * (taken.by / all);
            let price = cost.over(HOUR) / (tokens * class.mean.over(HOUR));
            let latencies = self.latencies_at(serving, taken.load);
            TenantShare { busiest: taken.busiest, mean: taken.mean, cost, price, latencies }
        };
        classes.iter().zip(taken).map(share).collect()
    }

    /// How requests are answered by replicas of which each has so many to answer.
    fn latencies_at(&self, serving: &Serving, each: RequestRate) -> Option<Latencies> {
        let arrivals = Arrivals::Rate(each * self.serving?.replicas as f64);
        serving_point(&Serving { arrivals, ..serving.clone() }, &self.scenario.cluster)
            .ok()
            .map(|point| point.latencies)
    }
}
