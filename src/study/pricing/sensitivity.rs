//! How an hour of useful work moves as each assumption goes from its low to its high end, the others staying.

use std::sync::Arc;

use super::rent::Rent;
use super::{Work, interrupt};
use crate::catalog::pricebook::Amount;
use crate::catalog::site::Housing;
use crate::evaluate::evaluate;
use crate::scenario::Scenario;
use crate::units::{Fraction, Ranged, SECONDS_PER_YEAR, Seconds, UsdPerHour};

/// One assumption, and the hour of useful work at its ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivity {
    /// The assumption, and its ends, in words.
    pub assumption: String,
    /// The ends, as text.
    pub ends: [String; 2],
    /// The hour of useful work at the low end.
    pub low: UsdPerHour,
    /// At the high end.
    pub high: UsdPerHour,
}

impl Sensitivity {
    /// How far apart the two are.
    pub fn span(&self) -> UsdPerHour {
        (self.high - self.low).max(self.low - self.high)
    }
}

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

/// Of an offer, the widest first; assumptions without a range are left out.
pub(super) fn of(scenario: &Scenario, rent: Option<&Rent>, typical: UsdPerHour) -> Vec<Sensitivity> {
    let mut found: Vec<Sensitivity> = assumptions(scenario, rent)
        .into_iter()
        .filter_map(|(assumption, ends, moved)| {
            let at = |end: End| {
                let mut scenario = scenario.clone();
                moved(&mut scenario, end);
                let evaluation = evaluate(scenario).ok()?;
                let work = Work::of(&evaluation);
                let total = match rent {
                    Some(rent) => rent.rented(&evaluation, &work).total(),
                    None => work.owned(&evaluation),
                };
                Some(work.per_useful_hour(total))
            };
            Some(Sensitivity { assumption, ends, low: at(End::Low)?, high: at(End::High)? })
        })
        .chain(rent.and_then(|rent| list_price(scenario, rent)))
        // What moves the figure by less than a ten-thousandth says nothing.
        .filter(|found| found.span() > typical * 1e-4)
        .collect();
    // Base numbers, because only their order matters.
    found.sort_by(|a, b| b.span().value().total_cmp(&a.span().value()));
    found
}

/// What the hour of useful work costs at the lowest and the highest list price of such accelerators.
fn list_price(scenario: &Scenario, rent: &Rent) -> Option<Sensitivity> {
    let (range, count) = rent.hour.others?;
    let evaluation = evaluate(scenario.clone()).ok()?;
    let work = Work::of(&evaluation);
    let at = |price: UsdPerHour| work.per_useful_hour(rent.at(price).rented(&evaluation, &work).total());
    let assumption = format!("list price, of {count} in the catalog");
    Some(Sensitivity { assumption, ends: ends(range), low: at(range.low), high: at(range.high) })
}

fn assumptions(scenario: &Scenario, rent: Option<&Rent>) -> Vec<(String, [String; 2], Move)> {
    let mut all = failures(scenario);
    if let Some(rent) = rent {
        all.extend(taken_back(rent));
        return all;
    }
    let book = &scenario.cluster.prices;
    for (index, price) in book.prices.iter().enumerate() {
        let range = price.usd;
        all.push((
            format!("price of {}", price.part.id),
            ends(range),
            in_book(move |book, end| {
                book.prices[index].usd.value = end.of(range);
            }),
        ));
    }
    for (index, line) in book.lines.iter().enumerate() {
        match line.amount {
            Amount::Money(range) => all.push((
                line.name.clone(),
                ends(range),
                in_book(move |book, end| {
                    book.lines[index].amount = Amount::Money(Ranged { value: end.of(range), ..range });
                }),
            )),
            Amount::ShareOfParts(range) => {
                let shares = [range.low, range.high].map(|share| percent(share.get()));
                all.push((
                    line.name.clone(),
                    shares,
                    in_book(move |book, end| {
                        book.lines[index].amount = Amount::ShareOfParts(Ranged { value: end.of(range), ..range });
                    }),
                ));
            }
        }
    }
    all.extend(site(scenario));
    all.extend(money());
    all
}

/// What the site assumes.
fn site(scenario: &Scenario) -> Vec<(String, [String; 2], Move)> {
    let site = &scenario.cluster.site;
    let (pue, electricity) = (site.pue, site.electricity);
    let mut all: Vec<(String, [String; 2], Move)> = vec![
        (
            "PUE".to_owned(),
            [pue.low, pue.high].map(|pue| pue.get().to_string()),
            in_site(move |site, end| site.pue.value = end.of(pue)),
        ),
        (
            "electricity".to_owned(),
            ends(electricity),
            in_site(move |site, end| site.electricity.value = end.of(electricity)),
        ),
    ];
    match site.housing {
        Housing::Colocation { rent, includes_power } => all.push((
            "colocation".to_owned(),
            ends(rent),
            in_site(move |site, end| {
                site.housing = Housing::Colocation { rent: Ranged { value: end.of(rent), ..rent }, includes_power };
            }),
        )),
        Housing::Own(building) => all.push((
            "building".to_owned(),
            ends(building.cost_per_kw),
            in_site(move |site, end| {
                let mut moved = building;
                moved.cost_per_kw.value = end.of(building.cost_per_kw);
                site.housing = Housing::Own(moved);
            }),
        )),
    }
    all
}

/// How often and for how long the job stands still.
fn failures(scenario: &Scenario) -> Vec<(String, [String; 2], Move)> {
    let recovery = scenario.cluster.reliability.recovery;
    let moved =
        |change: fn(&mut crate::catalog::reliability::RecoveryTimes, Seconds), range: Ranged<Seconds>| -> Move {
            Box::new(move |scenario, end| {
                let mut reliability = (*scenario.cluster.reliability).clone();
                change(&mut reliability.part.recovery, end.of(range));
                scenario.cluster.reliability = Arc::new(reliability);
            })
        };
    vec![
        (
            "time until a failure is understood".to_owned(),
            ends(recovery.detection),
            moved(|recovery, time| recovery.detection.value = time, recovery.detection),
        ),
        (
            "time to restart".to_owned(),
            ends(recovery.restart),
            moved(|recovery, time| recovery.restart.value = time, recovery.restart),
        ),
    ]
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

fn in_site(change: impl Fn(&mut crate::catalog::Site, End) + 'static) -> Move {
    Box::new(move |scenario, end| {
        let mut site = (*scenario.cluster.site).clone();
        change(&mut site.part, end);
        scenario.cluster.site = Arc::new(site);
    })
}
