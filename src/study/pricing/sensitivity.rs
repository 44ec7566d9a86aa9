//! How what an offer comes to moves as each assumption goes from its low to its high end, the others staying.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::file::{OfferFile, SellFile};
use super::rent::Rent;
use super::{Bound, Origin, Work, interrupt, own};
use crate::catalog::Catalog;
use crate::catalog::pricebook::Amount;
use crate::diagnostics::Sink;
use crate::evaluate::Evaluation;
use crate::parallelism::Layout;
use crate::scenario::{Scenario, Training};
use crate::search::evaluate;
use crate::sweep::uncertain::{Input, ranged_inputs};
use crate::tco::CostLine;
use crate::units::{Fraction, Ranged, Rate, SECONDS_PER_YEAR, Seconds, Usd, UsdPerHour};

/// What an offer comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// The hour of useful work.
    pub hour: UsdPerHour,
    /// The job end to end, or a million tokens where it serves.
    pub headline: Usd,
    /// The present value of an owned one's project, where it earns anything.
    pub present_value: Option<Usd>,
    /// What its owners earn a year, where there is such a rate.
    pub owners_return: Option<Rate>,
}

/// One assumption, and what an offer comes to at its ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivity {
    /// The assumption, and its ends, in words.
    pub assumption: String,
    /// The ends, as text.
    pub ends: [String; 2],
    /// At the low end.
    pub low: Reading,
    /// At the high end.
    pub high: Reading,
}

impl Sensitivity {
    /// How far its ends are apart: of the headline, and of the present value, each over the typical one.
    pub fn spans(&self, typical: &Reading) -> [f64; 2] {
        let over =
            |low: Usd, high: Usd, typical: Usd| if typical == Usd::ZERO { 0.0 } else { ((high - low) / typical).abs() };
        let value = |reading: &Reading| reading.present_value.unwrap_or_default();
        [
            over(self.low.headline, self.high.headline, typical.headline),
            over(value(&self.low), value(&self.high), value(typical)),
        ]
    }
}

/// What moves a figure by less than this share of it says nothing.
const LEAST: f64 = 1e-4;

/// Those that say something, the widest first.
pub(super) fn ranked(mut found: Vec<Sensitivity>, typical: &Reading) -> Vec<Sensitivity> {
    found.retain(|found| found.spans(typical).into_iter().any(|span| span > LEAST));
    let of = |found: &Sensitivity| found.spans(typical);
    found.sort_by(|a, b| of(b)[0].total_cmp(&of(a)[0]).then(of(b)[1].total_cmp(&of(a)[1])));
    found
}

/// Catalogs with one value moved to its low and to its high end, by its key.
pub(super) type Moved = BTreeMap<String, [Option<Catalog>; 2]>;

/// Moves one assumption to an end.
type Move = Box<dyn Fn(&mut Scenario, End)>;

/// Low or high.
#[derive(Clone, Copy)]
enum End {
    Low,
    High,
}

impl End {
    fn of<T: Copy>(self, range: Ranged<T>) -> T {
        match self {
            Self::Low => range.low,
            Self::High => range.high,
        }
    }
}

/// What owners assume of money and use, with the ends that published figures span: cost of capital from a hyperscaler's 6%
/// to a young neocloud's 15% (debt of CoreWeave at 11%, SEC filing of 2025-06-30); lives of accelerators from 4 years
/// (Nebius) to 6 (CoreWeave, Microsoft); hours in use from 65% to 95% (Meta's research cluster about 80%).
const CAPITAL: [f64; 2] = [0.06, 0.15];
const LIFE_YEARS: [f64; 2] = [4.0, 6.0];
const USE: [f64; 2] = [0.65, 0.95];

/// Of an offer, the widest first; assumptions without a range are left out. Ranges are those that [`ranged_inputs`] finds, as
/// uncertainty does, the offer's own, and those of money and use. `saved` is what an hour would cost that is not rented.
pub(super) fn of(
    bound: &Bound<'_>,
    evaluation: &Evaluation,
    from: &Origin<'_>,
    saved: Option<UsdPerHour>,
    typical: &Reading,
) -> Vec<Sensitivity> {
    let rent = bound.rent.as_ref();
    let read = |scenario: Scenario, rent: Option<&Rent>, file: &OfferFile| {
        let evaluation = evaluate(settled(scenario, evaluation)?).ok()?;
        let work = Work::of(&evaluation);
        if let Some(rent) = rent {
            return Some(work.reading(&evaluation, rent.rented(&evaluation, &work).total(), None));
        }
        let years = own::expected_years(&evaluation, &file.own, saved, own::horizon(&evaluation)?);
        Some(work.reading(&evaluation, work.owned(&evaluation), years.as_ref()))
    };
    let of_catalog = beside_prices(evaluation, from.catalog).filter(|input| rent.is_none() || is_work(input));
    let of_catalog = of_catalog.filter_map(|input| {
        // An offer is bound to the catalog with that one value moved.
        let at = |catalog: &Option<Catalog>| {
            read(Bound::new(bound.file, from.job, catalog.as_ref()?, &Sink::default())?.scenario, rent, bound.file)
        };
        let [low, high] = from.moved.get(&input.key)?;
        let ends = [input.text(0.0), input.text(1.0)];
        Some(Sensitivity { assumption: words(&input.key), ends, low: at(low)?, high: at(high)? })
    });
    let of_offer = assumptions(&bound.scenario, &evaluation.built.costs.lines, rent).into_iter().filter_map(
        |(assumption, ends, moved)| {
            let at = |end: End| {
                let mut scenario = bound.scenario.clone();
                moved(&mut scenario, end);
                read(scenario, rent, bound.file)
            };
            Some(Sensitivity { assumption, ends, low: at(End::Low)?, high: at(End::High)? })
        },
    );
    let hour = rent.and_then(|rent| {
        let (range, listed) = rent.hour.range?;
        let at = |price: UsdPerHour| read(bound.scenario.clone(), Some(&rent.at(price)), bound.file);
        let assumption = match listed {
            Some(count) => format!("list price, of {count} in the catalog"),
            None => "price of an hour".to_owned(),
        };
        Some(Sensitivity { assumption, ends: ends(range), low: at(range.low)?, high: at(range.high)? })
    });
    let market = bound.file.own.sell.as_ref().filter(|sell| sell.market.low < sell.market.high).and_then(|sell| {
        let at = |price: UsdPerHour| {
            let mut file = bound.file.clone();
            file.own.sell = Some(SellFile { market: Ranged::exact(price), ..sell.clone() });
            read(bound.scenario.clone(), None, &file)
        };
        let (low, high) = (at(sell.market.low)?, at(sell.market.high)?);
        Some(Sensitivity { assumption: "the market's price".to_owned(), ends: ends(sell.market), low, high })
    });
    ranked(of_catalog.chain(of_offer).chain(hour).chain(market).collect(), typical)
}

/// The values of the catalog with a range, but for those of price books.
fn beside_prices(evaluation: &Evaluation, catalog: &Catalog) -> impl Iterator<Item = Input> + use<> {
    ranged_inputs(evaluation, catalog).into_iter().filter(|input| !input.key.starts_with("catalog/prices/"))
}

/// The catalog with each ranged value that any of these is built from at its low and at its high end, by key.
pub(super) fn moved<'a>(evaluations: impl Iterator<Item = &'a Evaluation>, catalog: &Catalog) -> Moved {
    let mut moved = Moved::new();
    for input in evaluations.flat_map(|evaluation| beside_prices(evaluation, catalog)) {
        let ends = || [0.0, 1.0].map(|share| input.in_catalog(catalog, share));
        moved.entry(input.key.clone()).or_insert_with(ends);
    }
    moved
}

/// A scenario with the layout that was found for the typical one, where it was looked for.
fn settled(scenario: Scenario, typical: &Evaluation) -> Option<Scenario> {
    let (Some(_), Some(training), Some(found)) = (&typical.found, &scenario.training, &typical.scenario.training)
    else {
        return Some(scenario);
    };
    let layout = Layout { data: 1, ..typical.point?.layout };
    let settled = training.with_overlap(found.software.overlap, &scenario.cluster).ok()?;
    Some(Scenario { training: Some(Training { search: None, layout, ..settled }), ..scenario })
}

/// Whether an input has a part in what is done in an hour, and not only in what an owner pays for it.
fn is_work(input: &Input) -> bool {
    !["sites", "power"].iter().any(|folder| input.key.starts_with(&format!("catalog/{folder}/")))
}

/// An input of the catalog in words.
fn words(key: &str) -> String {
    let parts: Vec<&str> = key.split('/').skip(1).collect();
    let spaced = |field: &[&str]| field.join(" ").replace('_', " ");
    match parts[..] {
        ["sites", _, "pue"] => "PUE".to_owned(),
        ["power", _, ref field @ ..] => format!("share of power, {}", spaced(field)),
        [_, _, ref field @ ..] => spaced(field),
        _ => key.to_owned(),
    }
}

/// What the price book and the offer's own prices, and those of money and use assume. A book is changed in the scenario: a
/// catalog would have to be read anew for each price.
fn assumptions(scenario: &Scenario, lines: &[CostLine], rent: Option<&Rent>) -> Vec<(String, [String; 2], Move)> {
    if let Some(rent) = rent {
        return taken_back(rent).into_iter().collect();
    }
    let book = &scenario.cluster.prices;
    let mut all = Vec::new();
    let bought = |part: &str| lines.iter().any(|line| line.part() == Some(part));
    for (index, price) in book.prices.iter().enumerate().filter(|(_, price)| bought(&price.part.id)) {
        let range = price.usd;
        all.push((
            format!("price of {}", price.part.id),
            ends(range),
            in_book(move |book, end| {
                book.prices[index].usd.value = end.of(range);
            }),
        ));
    }
    let paid = |name: &str| lines.iter().any(|line| line.name == name);
    for (index, line) in book.lines.iter().enumerate().filter(|(_, line)| paid(&line.name)) {
        let (ends, moved): (_, Move) = match line.amount {
            Amount::Money(range) => (
                ends(range),
                in_book(move |book, end| {
                    book.lines[index].amount = Amount::Money(Ranged { value: end.of(range), ..range });
                }),
            ),
            Amount::ShareOfParts(range) => (
                [range.low, range.high].map(|share| percent(share.get())),
                in_book(move |book, end| {
                    book.lines[index].amount = Amount::ShareOfParts(Ranged { value: end.of(range), ..range });
                }),
            ),
        };
        all.push((line.name.clone(), ends, moved));
    }
    all.extend(money());
    all
}

/// How often spot instances are taken back.
fn taken_back(rent: &Rent) -> Option<(String, [String; 2], Move)> {
    let range = rent.interruptions_per_day?;
    let ends = [range.low, range.high].map(|per_day| per_day.get().to_string());
    let moved: Move = Box::new(move |scenario, end| interrupt(scenario, range.value, end.of(range)));
    Some(("interruptions of an instance a day".to_owned(), ends, moved))
}

/// What owners assume of money and use.
fn money() -> Vec<(String, [String; 2], Move)> {
    let share = |ends: [f64; 2], end: End| {
        let share = match end {
            End::Low => ends[0],
            End::High => ends[1],
        };
        Fraction::new(share).unwrap_or_default()
    };
    let years = |count: f64| Seconds::new(count * SECONDS_PER_YEAR);
    vec![
        (
            "cost of capital".to_owned(),
            CAPITAL.map(percent),
            Box::new(move |scenario, end| scenario.finance.cost_of_capital = share(CAPITAL, end)),
        ),
        (
            "life of accelerators".to_owned(),
            LIFE_YEARS.map(|count| years(count).to_string()),
            Box::new(move |scenario, end| {
                scenario.finance.accelerator_life = match end {
                    End::Low => years(LIFE_YEARS[0]),
                    End::High => years(LIFE_YEARS[1]),
                };
            }),
        ),
        (
            "share of hours in use".to_owned(),
            USE.map(percent),
            Box::new(move |scenario, end| scenario.finance.utilisation = share(USE, end)),
        ),
    ]
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn ends<T: Copy + std::fmt::Display>(range: Ranged<T>) -> [String; 2] {
    [range.low.to_string(), range.high.to_string()]
}

fn in_book(change: impl Fn(&mut crate::catalog::PriceBook, End) + 'static) -> Move {
    Box::new(move |scenario, end| {
        let mut book = (*scenario.cluster.prices).clone();
        change(&mut book.part, end);
        scenario.cluster.prices = Arc::new(book);
    })
}
