//! An owned cluster's years, and how it fares as the market's price falls.

use super::super::figure::percent;
use super::super::page::{Block, Grid, Section};
use super::{Money, NONE, in_words};
use crate::study::pricing::{Earnings, Owned, PricedOffer};
use crate::tco::{Contract, Income, ProForma, Year};
use crate::units::{Fraction, Usd};

/// The years of a project, and how it fares on each path.
pub(super) fn project(offer: &PricedOffer, owned: &Owned, money: &Money<'_>) -> Vec<Section> {
    let mut sections = Vec::new();
    if let Some(years) = &owned.years {
        let mut blocks = Vec::new();
        if let Earnings::Saved { offer, price } = &owned.earnings {
            blocks.push(Block::Text(format!("Its hours earn what \"{offer}\" would cost: {price} each.")));
        }
        if let (Earnings::Sold, Some(income)) = (&owned.earnings, &owned.income) {
            blocks.push(Block::Text(sold(income)));
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

/// What hours are sold for: contracts, and the market's price for the rest.
fn sold(income: &Income) -> String {
    let contract = |one: &Contract| {
        let ahead = if one.prepaid > Fraction::ZERO {
            format!(", {} of it paid ahead", percent(one.prepaid.get()))
        } else {
            String::new()
        };
        let term = if one.years == 1 { "a year".to_owned() } else { format!("{} years", one.years) };
        format!("{} at {} for {term}{ahead}; ", percent(one.share.get()), one.price)
    };
    let contracted: f64 = income.contracts.iter().map(|one| one.share.get()).sum();
    let contracts: String = income.contracts.iter().map(contract).collect();
    let market = income.market.first().copied().unwrap_or_default();
    let rest = if contracted < 1.0 {
        format!("{} at the market's {market}; ", percent(1.0 - contracted))
    } else {
        String::new()
    };
    format!("Of the hours sold: {contracts}{rest}{} in the mean of the first year.", income.price(0))
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
    ("Written off for tax", |year| -year.written_off),
    ("Tax", |year| -year.tax),
    ("  saved by interest", Year::tax_shield),
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
    let covers: Vec<Option<f64>> = years.years.iter().map(Year::cover).collect();
    if covers.iter().any(Option::is_some) {
        let cells =
            covers.into_iter().map(|cover| cover.map_or_else(|| NONE.to_owned(), |cover| format!("{cover:.2}")));
        grid.rows.push(std::iter::once("Cover of debt service".to_owned()).chain(cells).collect());
    }
    grid
}
