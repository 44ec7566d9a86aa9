//! An owned cluster's years, and how it fares as the market's price falls.

use super::super::page::{Block, Grid, Section};
use super::{Money, NONE, in_words};
use crate::study::pricing::{Earnings, Owned, PricedOffer};
use crate::tco::{ProForma, Year};
use crate::units::Usd;

/// The years of a project, and how it fares on each path.
pub(super) fn project(offer: &PricedOffer, owned: &Owned, money: &Money<'_>) -> Vec<Section> {
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
