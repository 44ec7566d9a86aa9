//! A pricing study in rows for spreadsheets: its offers, their cost lines, years, paths of the market's price, and what each
//! hangs on.

use super::super::cost_lines::{self, cells};
use super::super::page::Grid;
use super::json::{YEAR, figures, reading, turn};
use super::{answered, owned};
use crate::study::pricing::PricingStudy;
use crate::tco::ProForma;

/// What a row is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PricingRows {
    /// An offer and its figures.
    Offers,
    /// A cost line of an owned offer.
    Lines,
    /// A year of an owned offer's project, as expected and on each path.
    Years,
    /// An owned offer on a path of the market's price.
    Paths,
    /// An assumption of an offer.
    Sensitivity,
    /// An owned offer against one that is not.
    BreakEven,
}

/// A study in rows.
pub fn pricing_rows(study: &PricingStudy, of: PricingRows) -> Grid {
    match of {
        PricingRows::Offers => offers(study),
        PricingRows::Lines => lines(study),
        PricingRows::Years => project_years(study),
        PricingRows::Paths => paths(study),
        PricingRows::Sensitivity => sensitivities(study),
        PricingRows::BreakEven => break_even(study),
    }
}

fn written(figure: Option<f64>) -> String {
    figure.map_or_else(String::new, |figure| figure.to_string())
}

fn offers(study: &PricingStudy) -> Grid {
    let mut grid = Grid::new(&["name", "kind"], 2);
    for (index, offer) in study.offers.iter().enumerate() {
        let mut row = vec![offer.name.to_string(), offer.kind.word().to_owned()];
        for (key, value) in figures(offer) {
            if index == 0 {
                grid.header.push(key.to_owned());
            }
            row.push(written(value));
        }
        grid.rows.push(row);
    }
    grid
}

fn lines(study: &PricingStudy) -> Grid {
    let (heads, words) = cost_lines::CELLS;
    let heads: Vec<&str> = std::iter::once("offer").chain(heads.iter().copied()).collect();
    let mut grid = Grid::new(&heads, words + 1);
    for (offer, answer) in answered(study).filter(|(_, answer)| owned(answer).is_some()) {
        for line in &answer.evaluation.built.costs.lines {
            let row = std::iter::once(offer.name.to_string()).chain(cells(&answer.evaluation, line));
            grid.rows.push(row.collect());
        }
    }
    grid
}

fn project_years(study: &PricingStudy) -> Grid {
    let heads: Vec<&str> = ["offer", "path", "year"].into_iter().chain(YEAR.iter().map(|(key, _)| *key)).collect();
    let mut grid = Grid::new(&heads, 2);
    let mut add = |offer: &str, path: &str, years: &ProForma| {
        for (index, year) in years.years.iter().enumerate() {
            let place = [offer.to_owned(), path.to_owned(), index.to_string()];
            grid.rows.push(place.into_iter().chain(YEAR.iter().map(|(_, of)| written(of(year)))).collect());
        }
    };
    for (offer, answer) in answered(study) {
        let Some(owned) = owned(answer) else { continue };
        if let Some(years) = &owned.years {
            add(&offer.name, "", years);
        }
        for path in &owned.paths {
            add(&offer.name, &path.name, &path.years);
        }
    }
    grid
}

fn paths(study: &PricingStudy) -> Grid {
    let heads =
        ["offer", "path", "npv_usd", "irr_ratio", "levered_irr_ratio", "least_debt_cover_ratio", "short_in_year"];
    let mut grid = Grid::new(&heads, 2);
    for (offer, answer) in answered(study) {
        for path in owned(answer).iter().flat_map(|owned| &owned.paths) {
            let years = &path.years;
            grid.rows.push(vec![
                offer.name.to_string(),
                path.name.clone(),
                years.net_present_value.value().to_string(),
                written(years.unlevered_return.as_ref().ok().map(|rate| rate.get())),
                written(years.levered_return.as_ref().ok().map(|rate| rate.get())),
                written(years.least_cover),
                years.short_in.map_or_else(String::new, |year| year.to_string()),
            ]);
        }
    }
    grid
}

fn sensitivities(study: &PricingStudy) -> Grid {
    let mut grid = Grid::new(&["offer", "assumption", "low", "high"], 4);
    for (offer, answer) in answered(study) {
        let figures = reading(answer);
        if grid.header.len() == 4 {
            let ends = |key: &str| ["low", "typical", "high"].map(|end| format!("{key}_{end}"));
            grid.header.extend(figures.iter().flat_map(|(key, _)| ends(key)));
        }
        for found in &answer.sensitivities {
            let [low, high] = found.ends.clone();
            let reads = [found.low, answer.typical, found.high];
            let cells = figures.iter().flat_map(|(_, of)| reads.map(|read| written(of(&read))));
            let words = [offer.name.to_string(), found.assumption.clone(), low, high];
            grid.rows.push(words.into_iter().chain(cells).collect());
        }
    }
    grid
}

fn break_even(study: &PricingStudy) -> Grid {
    let mut grid = Grid::new(&["own", "other", "variable", "value"], 3);
    for found in &study.break_even {
        let (own, other) = &found.between;
        let (variable, value) = turn(found.turn);
        grid.rows.push(vec![own.to_string(), other.to_string(), variable.to_owned(), written(value)]);
    }
    grid
}
