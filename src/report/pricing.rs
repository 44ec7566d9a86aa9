//! A pricing study as a page, as JSON and as CSV.

use serde_json::{Map, Value as Json, json};

use super::figure::{change, percent};
use super::infeasible::advice;
use super::page::{Block, Grid, Page, Section};
use crate::finance::NoReturn;
use crate::study::pricing::{Answer, Bought, Earnings, Metered, OfferTurn, Owned, PricedOffer, PricingStudy};
use crate::tco::{ProForma, Year};
use crate::units::{Quantity, Rate, SECONDS_PER_DAY, SECONDS_PER_YEAR, Seconds, Usd, UsdPerHour};

/// Stands where an offer has no such figure.
const NONE: &str = "–";
/// The assumptions of an offer that a page shows.
const SHOWN: usize = 8;

/// A study as a page.
pub fn pricing_page(study: &PricingStudy) -> Page {
    let money = Money { study };
    let mut sections = vec![
        Section::new("", Block::Text(format!("The job: {}", study.job))),
        Section::new("Side by side", Block::Grid(side_by_side(study, &money))),
    ];
    if !study.break_even.is_empty() {
        sections.push(Section::new("Where renting turns into owning", Block::List(break_even(study))));
    }
    for (offer, answer) in answered(study) {
        if let Bought::Own(owned) = &answer.bought {
            sections.extend(project(offer, owned, &money));
        }
    }
    for (offer, answer) in answered(study) {
        if !answer.sensitivities.is_empty() {
            let heading = format!("{}: what the hour of useful work hangs on", offer.name);
            sections.push(Section::new(heading, Block::Grid(tornado(answer))));
        }
    }
    sections.push(Section::new("Notes", Block::List(notes(study))));
    Page { title: study.title.clone(), sections }
}

/// Offers that can be, with their answers.
fn answered(study: &PricingStudy) -> impl Iterator<Item = (&PricedOffer, &Answer)> {
    study.offers.iter().filter_map(|offer| Some((offer, offer.outcome.as_ref().ok()?)))
}

/// Amounts in dollars, and in the study's currency where it names another.
struct Money<'a> {
    study: &'a PricingStudy,
}

impl Money<'_> {
    fn show(&self, amount: Usd) -> String {
        match &self.study.currency {
            Some(currency) => format!("{amount} ({})", currency.show(amount)),
            None => amount.to_string(),
        }
    }
}

const END_TO_END: &str = "The job, end to end";

/// A row of the table of offers: its head, and what stands there for an answer.
type Row = (&'static str, fn(&Answer, &Money<'_>) -> Option<String>);

const ROWS: &[Row] = &[
    ("An accelerator's hour, owned or rented", |answer, _| answer.per_gpu_hour.map(|price| price.to_string())),
    ("An accelerator's hour of useful work", |answer, _| Some(answer.per_useful_gpu_hour.to_string())),
    (END_TO_END, |answer, money| Some(money.show(answer.total))),
    ("  accelerators' hours", |answer, money| rented(answer).map(|rented| money.show(rented.compute))),
    ("  egress", |answer, money| rented(answer).map(|rented| money.show(rented.egress))),
    ("  storage", |answer, money| rented(answer).map(|rented| money.show(rented.storage))),
    ("  tokens of prompts", |answer, money| metered(answer).map(|metered| money.show(metered.input))),
    ("  cached tokens", |answer, money| metered(answer).map(|metered| money.show(metered.cached))),
    ("  tokens of answers", |answer, money| metered(answer).map(|metered| money.show(metered.output))),
    ("Million tokens of prompts", |answer, _| answer.tokens.map(|tokens| tokens.input.to_string())),
    ("Million cached tokens", |answer, _| answer.tokens?.cached.map(|cost| cost.to_string())),
    ("Million tokens of answers", |answer, _| answer.tokens.map(|tokens| tokens.output.to_string())),
    ("Million tokens, all alike", |answer, _| answer.tokens.map(|tokens| tokens.blended.to_string())),
    ("Time that is paid for", |answer, _| rented(answer).map(|rented| rented.paid.to_string())),
    ("Run with failures, or year of serving", |answer, _| Some(answer.work.wall.to_string())),
    ("From the order until it is done", |answer, _| Some(answer.ready_after.to_string())),
    ("Goodput", |answer, _| answer.evaluation.point.map(|point| percent(point.goodput.ratio))),
    ("Fabric", |answer, _| Some(answer.evaluation.scenario.cluster.fabric.entry.id.clone())),
    ("Site", |answer, _| Some(answer.evaluation.scenario.cluster.site.id.clone())),
    ("Facility power, provisioned", |answer, _| {
        owned(answer).map(|_| answer.evaluation.built.facility.provisioned_total.to_string())
    }),
    ("Energy of an hour of useful work", |answer, _| Some(answer.energy_per_useful_hour().to_string())),
    ("Emissions of it, location-based", |answer, _| Some(answer.emissions_per_useful_hour().to_string())),
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

fn owned(answer: &Answer) -> Option<&Owned> {
    match &answer.bought {
        Bought::Own(owned) => Some(owned),
        Bought::Rent(_) | Bought::Api(_) => None,
    }
}

fn rented(answer: &Answer) -> Option<&crate::study::pricing::Rented> {
    match &answer.bought {
        Bought::Rent(rented) => Some(rented),
        Bought::Own(_) | Bought::Api(_) => None,
    }
}

fn metered(answer: &Answer) -> Option<&Metered> {
    match &answer.bought {
        Bought::Api(metered) => Some(metered),
        Bought::Own(_) | Bought::Rent(_) => None,
    }
}

fn years(answer: &Answer) -> Option<&ProForma> {
    owned(answer)?.years.as_ref()
}

fn side_by_side(study: &PricingStudy, money: &Money<'_>) -> Grid {
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

/// What the job costs more on an offer than on the first that can be, over that; less where it is negative.
fn against_first(study: &PricingStudy, offer: &PricedOffer) -> Option<f64> {
    let (_, first) = answered(study).next()?;
    Some(offer.outcome.as_ref().ok()?.total / first.total - 1.0)
}

fn in_words(rate: &Result<Rate, NoReturn>) -> String {
    match rate {
        Ok(rate) => percent(rate.get()),
        Err(NoReturn::NoChangeOfSign | NoReturn::NoRate | NoReturn::ReceivesFirst) => "none".to_owned(),
        Err(NoReturn::Several(_)) => "not unique".to_owned(),
    }
}

fn years_text(years: f64) -> String {
    Seconds::new(years * SECONDS_PER_YEAR).to_string()
}

fn break_even(study: &PricingStudy) -> Vec<String> {
    let text = |found: &crate::study::pricing::OfferBreakEven| {
        let (own, rent) = &found.between;
        match found.turn {
            OfferTurn::Utilisation(share) if share <= 1.0 => {
                format!(
                    "\"{own}\" costs less an hour of use than \"{rent}\" from {} of the hours in use on.",
                    percent(share)
                )
            }
            OfferTurn::Utilisation(_) => {
                format!("\"{own}\" costs more an hour of use than \"{rent}\" even with every hour in use.")
            }
            OfferTurn::Time(Some(time)) => {
                format!(
                    "What is paid for \"{own}\" is less than for \"{rent}\" after {time}, at the job's utilisation."
                )
            }
            OfferTurn::Time(None) => format!("What is paid for \"{own}\" never falls below that for \"{rent}\"."),
        }
    };
    study.break_even.iter().map(text).collect()
}

/// The years of a project, and how it fares on each path.
fn project(offer: &PricedOffer, owned: &Owned, money: &Money<'_>) -> Vec<Section> {
    let mut sections = Vec::new();
    if let Some(years) = &owned.years {
        let mut blocks = Vec::new();
        if let Earnings::Saved { offer, price } = &owned.earnings {
            blocks.push(Block::Text(format!("Its hours earn what \"{offer}\" would cost: {price} each.")));
        }
        blocks.push(Block::Grid(statement(years, money)));
        sections.push(Section { heading: format!("{}: year by year", offer.name), blocks });
    }
    if !owned.paths.is_empty() {
        let head =
            ["Path of the market's price", "Net present value", "Without debt", "Owners", "Least cover", "Survives"];
        let mut grid = Grid::new(&head, 1);
        for path in &owned.paths {
            let survives =
                path.years.short_in.map_or_else(|| "yes".to_owned(), |year| format!("no: short in year {year}"));
            grid.rows.push(vec![
                path.name.clone(),
                money.show(path.years.net_present_value),
                in_words(&path.years.unlevered_return),
                in_words(&path.years.levered_return),
                path.years.least_cover.map_or_else(|| NONE.to_owned(), |cover| format!("{cover:.2}")),
                survives,
            ]);
        }
        sections.push(Section::new(format!("{}: who survives a price fall", offer.name), Block::Grid(grid)));
    }
    sections
}

/// A line of a project's statement.
type Item = (&'static str, fn(&Year) -> Usd);

const STATEMENT: &[Item] = &[
    ("Revenue", |year| year.revenue),
    ("Running costs", |year| -year.running),
    ("EBITDA", Year::ebitda),
    ("Prepayments", |year| year.prepayment),
    ("Bought", |year| -year.bought),
    ("Sold at the end", |year| year.resale),
    ("Tax", |year| -year.tax),
    ("Borrowed, less fees", |year| year.borrowed),
    ("Interest", |year| -year.interest),
    ("Paid back", |year| -year.principal),
    ("Owners receive", Year::owners),
];

fn statement(years: &ProForma, money: &Money<'_>) -> Grid {
    let heads: Vec<String> = (0..years.years.len()).map(|year| format!("Year {year}")).collect();
    let header: Vec<&str> = std::iter::once("").chain(heads.iter().map(String::as_str)).collect();
    let mut grid = Grid::new(&header, 1);
    for (name, item) in STATEMENT {
        if years.years.iter().any(|year| item(year) != Usd::ZERO) {
            let cells = years.years.iter().map(|year| money.show(item(year)));
            grid.rows.push(std::iter::once((*name).to_owned()).chain(cells).collect());
        }
    }
    grid
}

fn tornado(answer: &Answer) -> Grid {
    let mut grid = Grid::new(&["Assumption", "Low", "High", "Hour at low", "typical", "at high"], 1);
    for found in answer.sensitivities.iter().take(SHOWN) {
        let [low, high] = &found.ends;
        grid.rows.push(vec![
            found.assumption.clone(),
            low.clone(),
            high.clone(),
            found.low.to_string(),
            answer.per_useful_gpu_hour.to_string(),
            found.high.to_string(),
        ]);
    }
    grid
}

fn notes(study: &PricingStudy) -> Vec<String> {
    let mut notes = Vec::new();
    for offer in &study.offers {
        match &offer.outcome {
            Err(infeasible) => notes.push(format!("\"{}\" cannot be: {infeasible}", offer.name)),
            Ok(answer) => {
                notes.extend(without_return(offer, answer));
                if let Some(metered) = metered(answer) {
                    notes.push(format!("\"{}\": {} (of {}).", offer.name, metered.from, metered.date));
                }
                if let Some(rented) = rented(answer) {
                    let hour = &rented.hour;
                    notes.push(format!(
                        "\"{}\": {} an accelerator's hour, {} (of {}, {}).",
                        offer.name, hour.price, hour.from, hour.date, hour.basis
                    ));
                }
            }
        }
    }
    let projects = answered(study).any(|(_, answer)| years(answer).is_some());
    if projects {
        notes.push(
            "A project's amounts are nominal. What is delivered first is paid now (year 0); all else falls at the end of \
             its year. Its present value is taken at the job's cost of capital, after tax and before debt."
                .to_owned(),
        );
    }
    notes.push(
        "Owned hours carry all lines of the price book, each over its own life at the cost of capital, and the hours that \
         nobody uses; rented ones the time that is paid for."
            .to_owned(),
    );
    if let Some(currency) = &study.currency {
        notes.push(format!("Other amounts are dollars at a fixed rate: {}.", currency.rate()));
    }
    notes
}

/// Why an offer has no return, in full.
fn without_return(offer: &PricedOffer, answer: &Answer) -> Vec<String> {
    let Some(years) = years(answer) else { return Vec::new() };
    let returns = [("without debt", &years.unlevered_return), ("of owners", &years.levered_return)];
    let told = |(what, rate): (&str, &Result<Rate, NoReturn>)| {
        rate.as_ref().err().map(|why| format!("\"{}\" has no return {what}: {why}.", offer.name))
    };
    returns.into_iter().filter_map(told).collect()
}

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
fn figures(offer: &PricedOffer) -> Vec<(&'static str, Option<f64>)> {
    let answer = offer.outcome.as_ref().ok();
    let of = |figure: fn(&Answer) -> Option<f64>| answer.and_then(figure);
    vec![
        ("total_usd", of(|answer| Some(answer.total.value()))),
        ("usd_per_gpu_hour", of(|answer| answer.per_gpu_hour.map(UsdPerHour::value))),
        ("usd_per_useful_gpu_hour", of(|answer| Some(answer.per_useful_gpu_hour.value()))),
        ("usd_per_run", of(|answer| Some(answer.total.value()))),
        ("usd_per_mtok_input", of(|answer| answer.tokens.map(|tokens| tokens.input.value()))),
        ("usd_per_mtok_output", of(|answer| answer.tokens.map(|tokens| tokens.output.value()))),
        ("usd_per_mtok_blended", of(|answer| answer.tokens.map(|tokens| tokens.blended.value()))),
        ("effective_days", of(|answer| Some(days(answer.work.wall)))),
        ("ready_after_days", of(|answer| Some(days(answer.ready_after)))),
        ("goodput_ratio", of(|answer| answer.evaluation.point.map(|point| point.goodput.ratio))),
        ("kwh_per_useful_gpu_hour", of(|answer| answer.energy_per_useful_hour().in_unit("kWh"))),
        ("gco2e_per_useful_gpu_hour", of(|answer| answer.emissions_per_useful_hour().in_unit("gCO2e"))),
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
            let moved = |found: &crate::study::pricing::Sensitivity| {
                json!({
                    "assumption": found.assumption,
                    "low": found.ends[0], "high": found.ends[1],
                    "usd_per_useful_gpu_hour_low": found.low.value(), "usd_per_useful_gpu_hour_high": found.high.value(),
                })
            };
            object.insert("sensitivity".to_owned(), answer.sensitivities.iter().map(moved).collect());
        }
    }
    Json::Object(object)
}

fn years_object(years: &ProForma) -> Json {
    let year = |(index, year): (usize, &Year)| {
        json!({
            "year": index,
            "revenue_usd": year.revenue.value(),
            "running_usd": year.running.value(),
            "prepayment_usd": year.prepayment.value(),
            "bought_usd": year.bought.value(),
            "resale_usd": year.resale.value(),
            "written_off_usd": year.written_off.value(),
            "tax_usd": year.tax.value(),
            "borrowed_usd": year.borrowed.value(),
            "interest_usd": year.interest.value(),
            "principal_usd": year.principal.value(),
            "unlevered_usd": year.unlevered().value(),
            "owners_usd": year.owners().value(),
            "debt_cover_ratio": year.cover(),
        })
    };
    years.years.iter().enumerate().map(year).collect()
}

fn break_even_object(found: &crate::study::pricing::OfferBreakEven) -> Json {
    let (own, rent) = &found.between;
    let (variable, value) = match found.turn {
        OfferTurn::Utilisation(share) => ("finance.utilisation", (share <= 1.0).then_some(share)),
        OfferTurn::Time(time) => ("held_months", time.map(|time| time / Seconds::new(SECONDS_PER_YEAR / 12.0))),
    };
    json!({ "between": [&**own, &**rent], "variable": variable, "value": value })
}

/// A study as CSV: a row an offer.
pub fn pricing_grid(study: &PricingStudy) -> Grid {
    let mut grid = Grid::new(&["name", "kind"], 2);
    for (index, offer) in study.offers.iter().enumerate() {
        let mut row = vec![offer.name.to_string(), offer.kind.word().to_owned()];
        for (key, value) in figures(offer) {
            if index == 0 {
                grid.header.push(key.to_owned());
            }
            row.push(value.map_or_else(String::new, |value| value.to_string()));
        }
        grid.rows.push(row);
    }
    grid
}
