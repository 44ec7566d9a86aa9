//! Tenants and what they pay, an arrangement beside the other.

use serde_json::{Value as Json, json};

use super::figure::grouped;
use super::number::finite;
use super::page::Grid;
use crate::evaluate::{Evaluation, TenantBill, TenantShare};
use crate::units::{Seconds, Tokens, significant};

/// Hours of a month.
const MONTH: f64 = 730.0;

/// The arrangements of a class of tenants by their words.
fn arrangements(bill: &TenantBill) -> impl Iterator<Item = (&'static str, TenantShare)> {
    let all = [("apart", Some(bill.apart)), ("reallocated", bill.reallocated), ("pooled", Some(bill.pooled))];
    all.into_iter().filter_map(|(word, share)| Some((word, share?)))
}

/// Whether answers have tokens beyond the first.
fn decodes(evaluation: &Evaluation) -> bool {
    evaluation.serving.is_some_and(|point| point.that_decodes().is_some())
}

/// A row for each class of tenants and arrangement: what one of them takes, pays and waits.
pub(super) fn tenant_grid(evaluation: &Evaluation) -> Option<Grid> {
    let heads = [
        "Tenant",
        "Asks for",
        "Replicas",
        "GPUs, busiest",
        "GPUs, mean",
        "An hour",
        "A month",
        "Million tokens",
        "TTFT P95",
        "TPOT P95",
    ];
    let mut grid = Grid::new(&heads, 3);
    let decodes = decodes(evaluation);
    for (index, bill) in evaluation.tenant_bills()?.iter().enumerate() {
        for (word, share) in arrangements(bill) {
            let latency = |of: fn(&crate::inference::Latencies) -> Seconds| {
                share.latencies.as_ref().map_or_else(|| "–".to_owned(), |all| of(all).to_string())
            };
            grid.rows.push(vec![
                format!("one of {} ({})", grouped(bill.class.count.into()), index + 1),
                format!("{}, {} at its busiest", bill.class.mean, bill.class.peak),
                word.to_owned(),
                significant(share.busiest, 3),
                significant(share.mean, 3),
                share.cost.to_string(),
                (share.cost * MONTH).over(Seconds::new(3_600.0)).to_string(),
                (share.price * Tokens::new(1e6)).to_string(),
                latency(|all| all.first_token.p95),
                if decodes { latency(|all| all.token.p95) } else { "–".to_owned() },
            ]);
        }
    }
    Some(grid)
}

/// What bills come to, and what of the cluster is in none.
pub(super) fn billed(evaluation: &Evaluation) -> Option<String> {
    let (tenants, at_work) = (evaluation.tenants()?, f64::from(evaluation.scenario.cluster.accelerators));
    let (bills, all) = (evaluation.cost_of_tenants(tenants.pooled), evaluation.cost_of_tenants(at_work));
    let left = at_work - tenants.pooled;
    let beside = if left > 0.0 {
        let rest = evaluation.cost_of_tenants(left);
        format!("; the {} GPUs that they do not need together cost {rest} and are in no bill", significant(left, 4))
    } else if left < 0.0 {
        format!("; they need {} GPUs more than there are", significant(-left, 4))
    } else {
        String::new()
    };
    Some(format!(
        "Bills are of hours of calendar time with their part of the spares, and what a million tokens cost is of hours in use, as above. Pooled, all bills are {bills} of the cluster's {all}{beside}."
    ))
}

/// The same for programs.
pub(super) fn tenant_objects(evaluation: &Evaluation) -> Option<Json> {
    let decodes = decodes(evaluation);
    let share = |share: TenantShare| {
        let latency = |of: fn(&crate::inference::Latencies) -> crate::inference::Quantiles| {
            share.latencies.as_ref().map(|all| {
                let all = of(all);
                json!({ "p50_s": all.p50.value(), "p95_s": all.p95.value(), "p99_s": all.p99.value() })
            })
        };
        let mut object = json!({
            "busiest_gpus_count": finite(share.busiest),
            "mean_gpus_count": finite(share.mean),
            "usd_per_hour": finite(share.cost.value()),
            "usd_per_month": finite(share.cost.value() * MONTH),
            "usd_per_mtok": finite((share.price * Tokens::new(1e6)).value()),
            "ttft": latency(|all| all.first_token),
        });
        // Answers of one token wait for no other.
        if decodes {
            object["tpot"] = latency(|all| all.token).into();
        }
        object
    };
    let bill = |bill: &TenantBill| {
        let mut object = json!({
            "count": bill.class.count,
            "mean_requests_per_s": finite(bill.class.mean.value()),
            "peak_requests_per_s": finite(bill.class.peak.value()),
            "busiest_hour": bill.class.busiest,
        });
        for (word, of) in arrangements(bill) {
            object[word] = share(of);
        }
        object
    };
    Some(evaluation.tenant_bills()?.iter().map(bill).collect())
}
