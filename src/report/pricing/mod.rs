//! A pricing study as a page, as JSON and in rows.

mod hour;
mod json;
mod project;
mod rows;
mod side_by_side;

pub use json::pricing_json;
pub use rows::{PricingRows, pricing_rows};

use super::cost_lines::sources;
use super::figure::percent;
use super::notes::price_note;
use super::page::{Block, Grid, Page, Section};
use crate::finance::NoReturn;
use crate::provenance::Basis;
use crate::study::pricing::{Answer, Bought, Metered, OfferTurn, Owned, PricedOffer, PricingStudy, Rented};
use crate::tco::ProForma;
use crate::units::{Rate, SECONDS_PER_YEAR, Seconds, Usd};
use project::project;
use side_by_side::side_by_side;

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
    sections.extend(hour::section(study));
    for (offer, answer) in answered(study) {
        if let Bought::Own(owned) = &answer.bought {
            sections.extend(project(offer, owned, &money));
        }
    }
    for (offer, answer) in answered(study) {
        if !answer.sensitivities.is_empty() {
            let heading = format!("{}: what it hangs on", offer.name);
            sections.push(Section { heading, blocks: tornado(answer, &money) });
        }
    }
    let behind = sources(answered(study).filter(|(_, answer)| owned(answer).is_some()).map(|(_, a)| &*a.evaluation));
    if !behind.is_empty() {
        sections.push(Section::new("What stands behind owners' lines", Block::List(behind)));
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

fn owned(answer: &Answer) -> Option<&Owned> {
    match &answer.bought {
        Bought::Own(owned) => Some(owned),
        Bought::Rent(_) | Bought::Api(_) => None,
    }
}

fn rented(answer: &Answer) -> Option<&Rented> {
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

/// The weakest basis of what is paid for; none of tokens, whose prices are a list's.
fn basis(answer: &Answer) -> Option<Basis> {
    match &answer.bought {
        Bought::Own(_) => Some(answer.evaluation.built.costs.basis),
        Bought::Rent(rented) => Some(rented.hour.basis),
        Bought::Api(_) => None,
    }
}

fn years(answer: &Answer) -> Option<&ProForma> {
    owned(answer)?.years.as_ref()
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
            OfferTurn::Utilisation(share) if share <= 0.0 => {
                format!("\"{own}\" always costs less than \"{rent}\": what it saves is worth more than it costs.")
            }
            OfferTurn::Utilisation(share) if share <= 1.0 => {
                format!(
                    "\"{own}\" costs less an hour of use than \"{rent}\" from {} of the hours in use on.",
                    percent(share)
                )
            }
            OfferTurn::Utilisation(_) => {
                format!("\"{own}\" costs more an hour of use than \"{rent}\" even with every hour in use.")
            }
            OfferTurn::Whatever(less) => format!(
                "\"{own}\" costs {} than \"{rent}\" whatever share of the hours is in use: all are paid for either way.",
                if less { "less" } else { "more" }
            ),
            OfferTurn::Load { from, most } if from <= most => format!(
                "\"{own}\" costs less a token than \"{rent}\" in the same hours from {from} on, {} of the most that it serves.",
                percent(from / most)
            ),
            OfferTurn::Load { most, .. } => format!(
                "\"{own}\" costs more a token than \"{rent}\" in the same hours even with all that it serves, {most}."
            ),
            OfferTurn::Time { after: Some(time), .. } => {
                format!(
                    "What is paid for \"{own}\" is less than for \"{rent}\" after {time}, at the job's utilisation."
                )
            }
            OfferTurn::Time { after: None, life } => format!(
                "What is paid for \"{own}\" never falls below that for \"{rent}\" within its accelerators' life of {life}."
            ),
        }
    };
    study.break_even.iter().map(text).collect()
}

/// What an offer comes to at both ends of the assumptions that move it most, and how far the rest moves it at most.
fn tornado(answer: &Answer, money: &Money<'_>) -> Vec<Block> {
    let what = if answer.evaluation.point.is_some() { "Job" } else { "Million tokens" };
    let projects = answer.typical.present_value.is_some();
    let ends = |what: &str| ["at low", "typical", "at high"].map(|end| format!("{what} {end}"));
    let mut heads: Vec<String> = ["Assumption", "Low", "High"].map(str::to_owned).to_vec();
    heads.extend(ends(what));
    if projects {
        heads.extend(ends("Owners"));
    }
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut grid = Grid::new(&heads, 1);
    for found in answer.sensitivities.iter().take(SHOWN) {
        let reads = [&found.low, &answer.typical, &found.high];
        let mut row = vec![found.assumption.clone()];
        row.extend(found.ends.clone());
        row.extend(reads.map(|read| money.show(read.headline)));
        if projects {
            row.extend(
                reads.map(|read| read.owners_return.map_or_else(|| NONE.to_owned(), |rate| percent(rate.get()))),
            );
        }
        grid.rows.push(row);
    }
    let mut blocks = vec![Block::Grid(grid)];
    if let Some(next) = answer.sensitivities.get(SHOWN) {
        let [headline, _] = next.spans(&answer.typical);
        let more = answer.sensitivities.len() - SHOWN;
        blocks.push(Block::Text(format!(
            "{more} more move it by {} of itself or less: `--format csv --rows sensitivity` has all.",
            percent(headline)
        )));
    }
    blocks
}

fn notes(study: &PricingStudy) -> Vec<String> {
    let mut notes = Vec::new();
    for offer in &study.offers {
        match &offer.outcome {
            Err(infeasible) => notes.push(format!("\"{}\" cannot be: {infeasible}", offer.name)),
            Ok(answer) => {
                notes.extend(without_return(offer, answer));
                notes.extend(owned(answer).map(|_| format!("\"{}\": {}", offer.name, price_note(&answer.evaluation))));
                if let Some((spent, freed)) = answer.dpus {
                    notes.push(format!(
                        "\"{}\": DPUs cost {spent} a year, and the host cores that they free are worth {freed} in it: {} for them.",
                        offer.name,
                        if freed > spent { "that speaks" } else { "nothing of that speaks" }
                    ));
                }
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
    notes.extend(answered(study).find_map(|(_, answer)| tokens_note(answer)));
    notes.push(
        "What an offer hangs on are the ranges of the catalog, what software reaches among them, of the study and of money, one \
         after the other; `uncertainty` samples all of them together."
            .to_owned(),
    );
    if let Some(currency) = &study.currency {
        notes.push(format!("Other amounts are dollars at a fixed rate: {}.", currency.rate()));
    }
    notes
}

/// How many tokens offers are compared by, where anything is served.
fn tokens_note(answer: &Answer) -> Option<String> {
    answer.work.tokens(&answer.evaluation)?;
    let finance = &answer.evaluation.scenario.finance;
    Some(format!(
        "Every offer is for the tokens of the hours in use, {} of a year by the job's `finance.utilisation` unless an offer says another: APIs \
         and hours that are rented are paid for these alone, owners pay for all hours. With 1 the rate is served all year.",
        percent(finance.utilisation.get())
    ))
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
