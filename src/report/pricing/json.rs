//! A pricing study as JSON, and the figures of an offer by key.

use serde_json::{Map, Value as Json, json};

use super::super::cost_lines::line_object;
use super::super::infeasible::advice;
use super::super::notes::price_note;
use super::side_by_side::{hour_by_method, tokens};
use super::{against_first, basis, owned, rented, years};
use crate::evaluate::Footprint;
use crate::provenance::Basis;
use crate::scenario::Amortisation;
use crate::study::pricing::{Answer, OfferTurn, PricedOffer, PricingStudy, Reading};
use crate::tco::{ProForma, Year};
use crate::units::{Quantity, SECONDS_PER_DAY, SECONDS_PER_YEAR, Seconds, Tokens, Usd, UsdPerHour};

/// A study as JSON.
pub fn pricing_json(study: &PricingStudy) -> String {
    let offer = |offer: &PricedOffer| {
        let mut object = offer_object(offer);
        object["total_against_first_ratio"] = against_first(study, offer).into();
        object
    };
    let offers: Vec<Json> = study.offers.iter().map(offer).collect();
    let break_even: Vec<Json> = study.break_even.iter().map(break_even_object).collect();
    let mut object = json!({ "title": study.title, "job": study.job, "offers": offers, "break_even": break_even });
    if let Some(currency) = &study.currency {
        object["currency"] = json!({ "code": currency.code, "usd": currency.usd.get(), "date": currency.date.0 });
    }
    format!("{object:#}\n")
}

/// The figures of an offer by key; those that it does not have are none.
pub(super) fn figures(offer: &PricedOffer) -> Vec<(&'static str, Option<f64>)> {
    let answer = offer.outcome.as_ref().ok();
    let of = |figure: fn(&Answer) -> Option<f64>| answer.and_then(figure);
    vec![
        ("total_usd", of(|answer| Some(answer.total.value()))),
        ("usd_per_gpu_hour", of(|answer| answer.per_gpu_hour.map(UsdPerHour::value))),
        ("usd_per_gpu_hour_annuity", of(|answer| hour_by_method(answer, Amortisation::Annuity).map(UsdPerHour::value))),
        ("usd_per_gpu_hour_epoch", of(|answer| hour_by_method(answer, Amortisation::Epoch).map(UsdPerHour::value))),
        (
            "usd_per_gpu_hour_monthly_loan",
            of(|answer| hour_by_method(answer, Amortisation::MonthlyLoan).map(UsdPerHour::value)),
        ),
        (
            "usd_per_sold_gpu_hour",
            of(|answer| owned(answer).map(|_| answer.evaluation.unit_costs.per_sold_gpu_hour.value())),
        ),
        ("usd_per_useful_gpu_hour", of(|answer| Some(answer.per_useful_gpu_hour.value()))),
        ("usd_per_run", of(|answer| Some(answer.total.value()))),
        ("tokens_count", of(|answer| answer.work.tokens(&answer.evaluation).map(|tokens| tokens / Tokens::new(1.0)))),
        ("usd_per_mtok_blended", of(|answer| answer.million_tokens().map(Usd::value))),
        ("usd_per_mtok_input", of(|answer| answer.by_kind().map(|tokens| tokens.input.value()))),
        ("usd_per_mtok_cached", of(|answer| answer.by_kind()?.cached.map(Usd::value))),
        ("usd_per_mtok_output", of(|answer| answer.by_kind().map(|tokens| tokens.output.value()))),
        ("usd_per_pflop_day", of(|answer| answer.pflop_day().map(Usd::value))),
        ("usd_per_task", of(|answer| answer.task().map(|(task, _)| task.value()))),
        ("usd_per_success", of(|answer| answer.task().map(|(_, success)| success.value()))),
        ("accelerators_count", of(|answer| Some(f64::from(answer.work.accelerators)))),
        (
            "bought_accelerators_count",
            of(|answer| owned(answer).map(|_| answer.evaluation.built.drivers.accelerators as f64)),
        ),
        ("effective_days", of(|answer| Some(days(answer.work.wall)))),
        ("ready_after_days", of(|answer| Some(days(answer.ready_after)))),
        ("goodput_ratio", of(|answer| answer.evaluation.point.map(|point| point.goodput.ratio))),
        ("kwh_per_gpu_hour", of(|answer| kwh(answer.housed().map(|own| own.owned_hour())))),
        ("gco2e_per_gpu_hour", of(|answer| gco2e(answer.housed().map(|own| own.owned_hour())))),
        ("kwh_per_useful_gpu_hour", of(|answer| kwh(answer.housed().map(|own| own.useful_hour())))),
        ("gco2e_per_useful_gpu_hour", of(|answer| gco2e(answer.housed().map(|own| own.useful_hour())))),
        (
            "embodied_gco2e_per_useful_gpu_hour",
            of(|answer| answer.housed()?.embodied_of_useful_hour()?.in_unit("gCO2e")),
        ),
        ("kwh_per_pflop_day", of(|answer| kwh(answer.housed().and_then(|own| own.pflop_day_footprint())))),
        ("gco2e_per_pflop_day", of(|answer| gco2e(answer.housed().and_then(|own| own.pflop_day_footprint())))),
        ("kwh_per_mtok_input", of(|answer| kwh(Some(tokens(answer)?.input)))),
        ("gco2e_per_mtok_input", of(|answer| gco2e(Some(tokens(answer)?.input)))),
        ("kwh_per_mtok_cached", of(|answer| kwh(tokens(answer)?.cached))),
        ("gco2e_per_mtok_cached", of(|answer| gco2e(tokens(answer)?.cached))),
        ("kwh_per_mtok_output", of(|answer| kwh(Some(tokens(answer)?.output)))),
        ("gco2e_per_mtok_output", of(|answer| gco2e(Some(tokens(answer)?.output)))),
        ("kwh_per_mtok_blended", of(|answer| kwh(Some(tokens(answer)?.blended)))),
        ("gco2e_per_mtok_blended", of(|answer| gco2e(Some(tokens(answer)?.blended)))),
        ("kwh_per_task", of(|answer| kwh(answer.housed().and_then(|own| own.task_footprint())))),
        ("gco2e_per_task", of(|answer| gco2e(answer.housed().and_then(|own| own.task_footprint())))),
        ("kwh_per_success", of(|answer| kwh(answer.housed().and_then(|own| own.success_footprint())))),
        ("gco2e_per_success", of(|answer| gco2e(answer.housed().and_then(|own| own.success_footprint())))),
        ("kwh_per_run", of(|answer| kwh(answer.of_job()))),
        ("gco2e_per_run", of(|answer| gco2e(answer.of_job()))),
        (
            "it_kw",
            of(|answer| owned(answer).and_then(|_| answer.evaluation.built.facility.provisioned_it.in_unit("kW"))),
        ),
        (
            "facility_kw",
            of(|answer| owned(answer).and_then(|_| answer.evaluation.built.facility.provisioned_total.in_unit("kW"))),
        ),
        ("dpus_usd_per_year", of(|answer| answer.dpus.map(|(spent, _)| spent.value()))),
        ("dpus_freed_usd_per_year", of(|answer| answer.dpus.map(|(_, freed)| freed.value()))),
        ("capex_usd", of(|answer| owned(answer).map(|_| answer.evaluation.built.costs.capex.value()))),
        ("npv_usd", of(|answer| years(answer).map(|years| years.net_present_value.value()))),
        ("irr_ratio", of(|answer| years(answer)?.unlevered_return.as_ref().ok().map(|rate| rate.get()))),
        ("levered_irr_ratio", of(|answer| years(answer)?.levered_return.as_ref().ok().map(|rate| rate.get()))),
        ("payback_years", of(|answer| years(answer)?.payback)),
        ("least_debt_cover_ratio", of(|answer| years(answer)?.least_cover)),
        ("levelised_usd_per_gpu_hour", of(|answer| owned(answer)?.levelised.map(UsdPerHour::value))),
        ("break_even_utilisation_ratio", of(|answer| owned(answer)?.break_even_utilisation)),
        ("floor_usd_per_gpu_hour", of(|answer| owned(answer)?.floor.map(UsdPerHour::value))),
        ("paid_days", of(|answer| rented(answer).map(|rented| days(rented.paid)))),
        ("egress_usd", of(|answer| rented(answer).map(|rented| rented.egress.value()))),
        ("storage_usd", of(|answer| rented(answer).map(|rented| rented.storage.value()))),
    ]
}

/// A figure that assumptions move: its key, and where it is.
type ReadFigure = (&'static str, fn(&Reading) -> Option<f64>);

/// The figures of an offer that assumptions move.
pub(super) fn reading(answer: &Answer) -> [ReadFigure; 4] {
    let headline = if answer.evaluation.point.is_some() { "total_usd" } else { "usd_per_mtok_blended" };
    [
        (headline, |read| Some(read.headline.value())),
        ("usd_per_useful_gpu_hour", |read| Some(read.hour.value())),
        ("npv_usd", |read| Some(read.present_value?.value())),
        ("levered_irr_ratio", |read| Some(read.owners_return?.get())),
    ]
}

fn kwh(footprint: Option<Footprint>) -> Option<f64> {
    footprint?.energy.in_unit("kWh")
}

fn gco2e(footprint: Option<Footprint>) -> Option<f64> {
    footprint?.emissions.in_unit("gCO2e")
}

fn days(time: Seconds) -> f64 {
    time / Seconds::new(SECONDS_PER_DAY)
}

fn offer_object(offer: &PricedOffer) -> Json {
    let mut object = Map::new();
    object.insert("name".to_owned(), (*offer.name).into());
    object.insert("kind".to_owned(), offer.kind.word().into());
    for (key, value) in figures(offer) {
        object.insert(key.to_owned(), value.into());
    }
    match &offer.outcome {
        Err(infeasible) => {
            let why = json!({ "reason": infeasible.to_string(), "advice": advice(infeasible) });
            object.insert("infeasible".to_owned(), why);
        }
        Ok(answer) => {
            if let Some(rented) = rented(answer) {
                let hour = &rented.hour;
                let price = json!({
                    "usd_per_gpu_hour": hour.price.value(), "from": hour.from, "date": hour.date, "basis": hour.basis.word(),
                });
                object.insert("price".to_owned(), price);
            }
            if let Some(owned) = owned(answer) {
                let years = owned.years.as_ref().map_or(Json::Null, years_object);
                object.insert("years".to_owned(), years);
                let lines = &answer.evaluation.built.costs.lines;
                let lines = lines.iter().map(|line| line_object(&answer.evaluation, line)).collect();
                object.insert("lines".to_owned(), lines);
                object.insert("prices".to_owned(), price_note(&answer.evaluation).into());
                let path = |path: &crate::study::pricing::OnPath| {
                    json!({
                        "name": path.name,
                        "npv_usd": path.years.net_present_value.value(),
                        "irr_ratio": path.years.unlevered_return.as_ref().ok().map(|rate| rate.get()),
                        "levered_irr_ratio": path.years.levered_return.as_ref().ok().map(|rate| rate.get()),
                        "least_debt_cover_ratio": path.years.least_cover,
                        "short_in_year": path.years.short_in,
                    })
                };
                object.insert("paths".to_owned(), owned.paths.iter().map(path).collect());
            }
            let of_answer = reading(answer);
            let moved = |found: &crate::study::pricing::Sensitivity| {
                let mut object = Map::new();
                object.insert("assumption".to_owned(), found.assumption.as_str().into());
                for ((end, text), read) in ["low", "high"].iter().zip(&found.ends).zip([&found.low, &found.high]) {
                    object.insert((*end).to_owned(), text.as_str().into());
                    object.extend(of_answer.iter().map(|(key, of)| (format!("{key}_{end}"), of(read).into())));
                }
                Json::Object(object)
            };
            object.insert("basis".to_owned(), basis(answer).map(Basis::word).into());
            object.insert("sensitivity".to_owned(), answer.sensitivities.iter().map(moved).collect());
        }
    }
    Json::Object(object)
}

/// A figure of a year: its key, and where it is.
type YearFigure = (&'static str, fn(&Year) -> Option<f64>);

/// The figures of a project's year by key; those that it does not have are none.
pub(super) const YEAR: &[YearFigure] = &[
    ("revenue_usd", |year| Some(year.revenue.value())),
    ("running_usd", |year| Some(year.running.value())),
    ("ebitda_usd", |year| Some(year.ebitda().value())),
    ("prepayment_usd", |year| Some(year.prepayment.value())),
    ("bought_usd", |year| Some(year.bought.value())),
    ("resale_usd", |year| Some(year.resale.value())),
    ("written_off_usd", |year| Some(year.written_off.value())),
    ("tax_usd", |year| Some(year.tax.value())),
    ("tax_shield_usd", |year| Some(year.tax_shield().value())),
    ("borrowed_usd", |year| Some(year.borrowed.value())),
    ("interest_usd", |year| Some(year.interest.value())),
    ("principal_usd", |year| Some(year.principal.value())),
    ("unlevered_usd", |year| Some(year.unlevered().value())),
    ("owners_usd", |year| Some(year.owners().value())),
    ("debt_cover_ratio", Year::cover),
];

fn years_object(years: &ProForma) -> Json {
    let year = |(index, year): (usize, &Year)| {
        let mut object = Map::from_iter([("year".to_owned(), index.into())]);
        object.extend(YEAR.iter().map(|(key, of)| ((*key).to_owned(), of(year).into())));
        Json::Object(object)
    };
    years.years.iter().enumerate().map(year).collect()
}

/// What is moved until the order of two offers turns, and where it does.
pub(super) fn turn(turn: OfferTurn) -> (&'static str, Option<f64>) {
    match turn {
        OfferTurn::Utilisation(share) => ("finance.utilisation", (share <= 1.0).then_some(share)),
        OfferTurn::Whatever(less) => ("finance.utilisation", less.then_some(0.0)),
        OfferTurn::Load { from, most } => ("serving.requests_per_s", (from <= most).then(|| from.value())),
        OfferTurn::Time { after, .. } => {
            ("held_months", after.map(|time| time / Seconds::new(SECONDS_PER_YEAR / 12.0)))
        }
    }
}

fn break_even_object(found: &crate::study::pricing::OfferBreakEven) -> Json {
    let (own, rent) = &found.between;
    let (variable, value) = turn(found.turn);
    json!({ "between": [&**own, &**rent], "variable": variable, "value": value })
}
