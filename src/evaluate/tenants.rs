//! What tenants take, what that costs each of them, and how soon they are answered: with replicas of their own, with those given anew
//! through the day, and with all replicas shared.

use super::{Evaluation, serving_point};
use crate::inference::Latencies;
use crate::scenario::{Arrivals, Serving};
use crate::units::{RequestRate, Seconds, Tokens, UsdPerHour, UsdPerToken};
use crate::workload::{TenantClass, replicas};

const HOUR: Seconds = Seconds::new(3_600.0);
/// Costs that differ by no more than this, over them, are equal.
const ROUNDING: f64 = 1e-12;

/// One tenant in an arrangement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TenantShare {
    /// Accelerators at its busiest; those of a shared replica by its requests.
    pub busiest: f64,
    /// The same on the mean of a day.
    pub mean: f64,
    /// Its part of what all cost, of an hour of calendar time.
    pub cost: UsdPerHour,
    /// The same over its tokens, of prompts and answers, in the share of hours that are in use.
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

/// What those of a class have part in a cost by.
struct Part {
    count: f64,
    by: f64,
    most: Option<UsdPerHour>,
}

/// A cost by what each takes, up to the most that each pays: what is above that is the others', again by what they take.
fn shared_out(all: UsdPerHour, parts: &[Part]) -> Vec<UsdPerHour> {
    let mut costs: Vec<Option<UsdPerHour>> = vec![None; parts.len()];
    loop {
        let paid: UsdPerHour = parts.iter().zip(&costs).filter_map(|(part, cost)| Some((*cost)? * part.count)).sum();
        let others = parts.iter().zip(&costs).filter(|(_, cost)| cost.is_none());
        let by: f64 = others.map(|(part, _)| part.count * part.by).sum();
        let share = |part: &Part| all.saturating_sub(paid) * (part.by / by);
        let mut more = false;
        for (part, cost) in parts.iter().zip(&mut costs).filter(|(_, cost)| cost.is_none()) {
            if let Some(most) = part.most.filter(|most| share(part) > *most * (1.0 + ROUNDING)) {
                *cost = Some(most);
                more = true;
            }
        }
        if !more {
            return parts.iter().zip(costs).map(|(part, cost)| cost.unwrap_or_else(|| share(part))).collect();
        }
    }
}

impl Evaluation {
    /// Cost of so many accelerators at work for an hour of calendar time, with their part of the spares: all at work cost what the
    /// cluster does.
    pub fn cost_of_tenants(&self, accelerators: f64) -> UsdPerHour {
        let bought = self.built.drivers.accelerators as f64 / f64::from(self.scenario.cluster.accelerators);
        self.unit_costs.per_gpu_hour * (accelerators * bought)
    }

    /// The bill of one tenant of each class. What an arrangement costs is shared out by what each takes: the replicas that are its own,
    /// those on the mean of a day, or its requests. None pays more than apart: what others have in common is as large as their
    /// peaks make it, which one that is steady is not to pay for.
    pub fn tenant_bills(&self) -> Option<Vec<TenantBill>> {
        let (serving, point, counts) = (self.scenario.serving.as_ref()?, self.serving?, self.tenants()?);
        let tenants = serving.features.tenants.as_ref()?;
        let all = (point.replicas + point.spares) as f64;
        let (each, own, of_replica) =
            (self.most_of_a_replica()?, self.most_of_tenants()?, point.accelerators as f64 / all);
        let apart = tenants.classes().iter().zip(&own).map(|(class, each)| {
            let own = replicas(class.peak, *each);
            Taken { busiest: own * of_replica, mean: own * of_replica, by: own, load: class.peak / own }
        });
        let apart = self.shares(serving, tenants.classes(), counts.apart, apart.collect(), None);
        let by_hour = tenants.days().zip(counts.reallocated).map(|(days, accelerators)| {
            let taken = tenants.classes().iter().zip(days).zip(&own).map(|((class, day), each)| {
                let mean = day.iter().map(|asked| replicas(*asked, *each)).sum::<f64>() / day.len() as f64;
                let loads = day.iter().chain([&class.peak]).map(|asked| *asked / replicas(*asked, *each).max(1.0));
                let load = loads.fold(RequestRate::ZERO, RequestRate::max);
                Taken { busiest: replicas(class.peak, *each) * of_replica, mean: mean * of_replica, by: mean, load }
            });
            self.shares(serving, tenants.classes(), accelerators, taken.collect(), Some(&apart))
        });
        let together = tenants.pooled();
        let load = together / replicas(together, each);
        let pooled = tenants.classes().iter().map(|class| {
            let [busiest, mean] = [class.peak, class.mean].map(|asked| asked / each * of_replica);
            Taken { busiest, mean, by: mean, load }
        });
        let pooled = self.shares(serving, tenants.classes(), counts.pooled, pooled.collect(), Some(&apart));
        let bills = tenants.classes().iter().enumerate().map(|(index, class)| TenantBill {
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
        apart: Option<&[TenantShare]>,
    ) -> Vec<TenantShare> {
        let (input, output) = serving.mean_lengths();
        let tokens = Tokens::new(input + output);
        let parts: Vec<Part> = classes
            .iter()
            .zip(&taken)
            .enumerate()
            .map(|(index, (class, taken))| Part {
                count: class.count.into(),
                by: taken.by,
                most: apart.map(|apart| apart[index].cost),
            })
            .collect();
        let costs = shared_out(self.cost_of_tenants(accelerators), &parts);
        let used = self.scenario.finance.utilisation.get();
        let share = |((class, taken), cost): ((&TenantClass, Taken), UsdPerHour)| {
            let price = cost.over(HOUR) / (tokens * (class.mean.over(HOUR) * used));
            let latencies = self.latencies_at(serving, taken.load);
            TenantShare { busiest: taken.busiest, mean: taken.mean, cost, price, latencies }
        };
        classes.iter().zip(taken).zip(costs).map(share).collect()
    }

    /// How requests are answered by replicas of which each has so many to answer.
    fn latencies_at(&self, serving: &Serving, each: RequestRate) -> Option<Latencies> {
        let arrivals = Arrivals::Rate(each * self.serving?.replicas as f64);
        serving_point(&Serving { arrivals, ..serving.clone() }, &self.scenario.cluster)
            .ok()
            .map(|point| point.latencies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_pays_more_than_the_most_and_all_is_paid() {
        let of = |parts: &[(f64, f64, Option<f64>)], all: f64| -> Vec<f64> {
            let part = |(count, by, most): &(f64, f64, Option<f64>)| Part {
                count: *count,
                by: *by,
                most: most.map(UsdPerHour::new),
            };
            let parts: Vec<Part> = parts.iter().map(part).collect();
            shared_out(UsdPerHour::new(all), &parts).into_iter().map(UsdPerHour::value).collect()
        };
        assert_eq!(of(&[(2.0, 1.0, None), (1.0, 2.0, None)], 8.0), [2.0, 4.0]);
        assert_eq!(of(&[(2.0, 1.0, Some(3.0)), (1.0, 2.0, Some(4.0))], 8.0), [2.0, 4.0]);
        // By use 2 and 4; the second pays 3 at most, and what it leaves is the first two's.
        assert_eq!(of(&[(2.0, 1.0, Some(3.0)), (1.0, 2.0, Some(3.0))], 8.0), [2.5, 3.0]);
        // One limit makes another hold: 12 by 1, 1 and 4 are 2, 2 and 8; the last pays 4, then the others 4 each, one of them 3.
        assert_eq!(of(&[(1.0, 1.0, Some(9.0)), (1.0, 1.0, Some(3.0)), (1.0, 4.0, Some(4.0))], 12.0), [5.0, 3.0, 4.0]);
    }
}
