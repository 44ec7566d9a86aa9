//! Offers side by side: a row a figure.

use super::super::figure::{change, percent};
use super::super::page::Grid;
use super::{Money, NONE, against_first, basis, in_words, metered, owned, rented, years, years_text};
use crate::evaluate::{ByToken, Footprint};
use crate::scenario::Amortisation;
use crate::study::pricing::{Answer, PricedOffer, PricingStudy};
use crate::units::UsdPerHour;

const END_TO_END: &str = "The job, end to end";

/// A row of the table of offers: its head, and what stands there for an answer.
type Row = (&'static str, fn(&Answer, &Money<'_>) -> Option<String>);

const ROWS: &[Row] = &[
    ("An accelerator's hour, owned or rented", |answer, _| answer.per_gpu_hour.map(|price| price.to_string())),
    ("  by level payments", |answer, _| by_method(answer, Amortisation::Annuity)),
    ("  by progress, as Epoch AI", |answer, _| by_method(answer, Amortisation::Epoch)),
    ("  by monthly loans, as The Datacenter as a Computer", |answer, _| by_method(answer, Amortisation::MonthlyLoan)),
    ("  over the hours sold", |answer, _| {
        owned(answer).map(|_| answer.evaluation.unit_costs.per_sold_gpu_hour.to_string())
    }),
    ("An accelerator's hour of useful work", |answer, _| Some(answer.per_useful_gpu_hour.to_string())),
    (END_TO_END, |answer, money| Some(money.show(answer.total))),
    ("  accelerators' hours", |answer, money| rented(answer).map(|rented| money.show(rented.compute))),
    ("  egress", |answer, money| rented(answer).map(|rented| money.show(rented.egress))),
    ("  storage", |answer, money| rented(answer).map(|rented| money.show(rented.storage))),
    ("  tokens of prompts", |answer, money| metered(answer).map(|metered| money.show(metered.input))),
    ("  cached tokens", |answer, money| metered(answer).map(|metered| money.show(metered.cached))),
    ("  tokens of answers", |answer, money| metered(answer).map(|metered| money.show(metered.output))),
    ("Tokens served, of prompts and answers", |answer, _| Some(answer.work.tokens(&answer.evaluation)?.to_string())),
    ("Million tokens, all alike", |answer, _| answer.million_tokens().map(|cost| cost.to_string())),
    ("  of prompts", |answer, _| answer.by_kind().map(|tokens| tokens.input.to_string())),
    ("  cached", |answer, _| answer.by_kind()?.cached.map(|cost| cost.to_string())),
    ("  of answers", |answer, _| answer.by_kind().map(|tokens| tokens.output.to_string())),
    ("A PFLOP-day", |answer, money| answer.pflop_day().map(|cost| money.show(cost))),
    ("A task, runs that fail among them", |answer, money| answer.task().map(|(task, _)| money.show(task))),
    ("A task that succeeds", |answer, money| answer.task().map(|(_, success)| money.show(success))),
    ("Time that is paid for", |answer, _| rented(answer).map(|rented| rented.paid.to_string())),
    ("Run with failures, or year of serving", |answer, _| Some(answer.work.wall.to_string())),
    ("From the order until it is done", |answer, _| Some(answer.ready_after.to_string())),
    ("Goodput", |answer, _| answer.evaluation.point.map(|point| percent(point.goodput.ratio))),
    ("Weakest basis of what is paid", |answer, _| Some(basis(answer)?.to_string())),
    ("Accelerators at work", |answer, _| Some(answer.work.accelerators.to_string())),
    ("  bought, spares among them", |answer, _| {
        owned(answer).map(|_| answer.evaluation.built.drivers.accelerators.to_string())
    }),
    ("Node", |answer, _| Some(answer.evaluation.scenario.cluster.node.id.clone())),
    ("  prefill's own", |answer, _| Some(answer.evaluation.scenario.cluster.prefill.as_ref()?.node.id.clone())),
    ("Fabric", |answer, _| Some(answer.evaluation.scenario.cluster.fabric.entry.id.clone())),
    ("Site", |answer, _| Some(answer.evaluation.scenario.cluster.site.id.clone())),
    ("IT power, provisioned", |answer, _| {
        owned(answer).map(|_| answer.evaluation.built.facility.provisioned_it.to_string())
    }),
    ("Facility power, provisioned", |answer, _| {
        owned(answer).map(|_| answer.evaluation.built.facility.provisioned_total.to_string())
    }),
    ("Energy of an hour owned or rented", |answer, _| Some(answer.housed()?.owned_hour().energy.to_string())),
    ("  emissions, location-based", |answer, _| Some(answer.housed()?.owned_hour().emissions.to_string())),
    ("Energy of an hour of useful work", |answer, _| Some(answer.housed()?.useful_hour().energy.to_string())),
    ("  emissions", |answer, _| Some(answer.housed()?.useful_hour().emissions.to_string())),
    ("  of making the accelerators", |answer, _| Some(answer.housed()?.embodied_of_useful_hour()?.to_string())),
    ("Energy of a PFLOP-day", |answer, _| Some(answer.housed()?.pflop_day_footprint()?.energy.to_string())),
    ("  emissions", |answer, _| Some(answer.housed()?.pflop_day_footprint()?.emissions.to_string())),
    ("Energy of a million tokens of prompts", |answer, _| Some(tokens(answer)?.input.energy.to_string())),
    ("  emissions", |answer, _| Some(tokens(answer)?.input.emissions.to_string())),
    ("Energy of a million cached tokens", |answer, _| Some(tokens(answer)?.cached?.energy.to_string())),
    ("  emissions", |answer, _| Some(tokens(answer)?.cached?.emissions.to_string())),
    ("Energy of a million tokens of answers", |answer, _| Some(tokens(answer)?.output.energy.to_string())),
    ("  emissions", |answer, _| Some(tokens(answer)?.output.emissions.to_string())),
    ("Energy of a task that succeeds", |answer, _| Some(answer.housed()?.success_footprint()?.energy.to_string())),
    ("  emissions", |answer, _| Some(answer.housed()?.success_footprint()?.emissions.to_string())),
    ("Energy of the job, end to end", |answer, _| Some(answer.of_job()?.energy.to_string())),
    ("  emissions", |answer, _| Some(answer.of_job()?.emissions.to_string())),
    ("Capex", |answer, money| owned(answer).map(|_| money.show(answer.evaluation.built.costs.capex))),
    ("Net present value", |answer, money| years(answer).map(|years| money.show(years.net_present_value))),
    ("Return without debt", |answer, _| years(answer).map(|years| in_words(&years.unlevered_return))),
    ("Return of owners", |answer, _| years(answer).map(|years| in_words(&years.levered_return))),
    ("Payback", |answer, _| years(answer)?.payback.map(years_text)),
    ("Least cover of debt service", |answer, _| years(answer)?.least_cover.map(|cover| format!("{cover:.2}"))),
    ("Levelised price of an hour sold", |answer, _| Some(owned(answer)?.levelised?.to_string())),
    ("Price floor for owners' target", |answer, _| Some(owned(answer)?.floor?.to_string())),
    ("Share of hours in use at which it breaks even", |answer, _| owned(answer)?.break_even_utilisation.map(percent)),
    ("Margin over the levelised price, first year", |answer, _| {
        let owned = owned(answer)?;
        Some((owned.price? - owned.levelised?).to_string())
    }),
];

pub(super) fn side_by_side(study: &PricingStudy, money: &Money<'_>) -> Grid {
    let header: Vec<&str> = std::iter::once("Figure").chain(study.offers.iter().map(|offer| &*offer.name)).collect();
    let mut grid = Grid::new(&header, 1);
    for (head, value) in ROWS {
        let cell = |offer: &PricedOffer| offer.outcome.as_ref().ok().and_then(|answer| value(answer, money));
        let cells: Vec<Option<String>> = study.offers.iter().map(cell).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| NONE.to_owned()));
            grid.rows.push(std::iter::once((*head).to_owned()).chain(cells).collect());
        }
        if *head == END_TO_END && study.offers.len() > 1 {
            let cells = study
                .offers
                .iter()
                .map(|offer| against_first(study, offer).and_then(change).unwrap_or_else(|| NONE.to_owned()));
            grid.rows.push(std::iter::once("  against the first offer".to_owned()).chain(cells).collect());
        }
    }
    grid
}

/// Energy of tokens, of those that are served and not bought.
pub(super) fn tokens(answer: &Answer) -> Option<ByToken<Footprint>> {
    answer.housed()?.token_footprint()
}

fn by_method(answer: &Answer, method: Amortisation) -> Option<String> {
    hour_by_method(answer, method).map(|price| price.to_string())
}

/// An owned hour by a way to spread purchases over their years.
pub(super) fn hour_by_method(answer: &Answer, method: Amortisation) -> Option<UsdPerHour> {
    owned(answer)?.by_method.iter().find(|(own, _)| *own == method).map(|(_, price)| *price)
}
