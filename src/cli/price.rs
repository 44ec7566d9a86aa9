//! `clusterplan price`

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::options::Format;
use super::session::message;
use super::{Answer, Session};
use crate::diagnostics::{Code, Diagnostic};
use crate::load;
use crate::report::{PricingRows, grid_csv, infeasible_page, pricing_json, pricing_page, pricing_rows};
use crate::study::pricing::{StudyFile, price};

/// `clusterplan price`
#[derive(Args, Debug)]
pub(super) struct Price {
    /// The study: a job and the ways to buy it
    study: PathBuf,
    /// What a row of CSV is of [default: offers]
    #[arg(long, value_enum, value_name = "WHAT")]
    rows: Option<Rows>,
}

/// What a row of CSV is of.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Rows {
    /// An offer and its figures
    Offers,
    /// A cost line of an owned offer: driver, quantity, amount, life or growth, date and source
    Lines,
    /// A year of an owned offer's project, as expected and on each path of the market's price
    Years,
    /// An owned offer on a path of the market's price
    Paths,
    /// An assumption of an offer, and the hour of useful work at its low, typical and high value
    Sensitivity,
    /// An owned offer against one that is not: where the order turns
    BreakEven,
}

impl From<Rows> for PricingRows {
    fn from(rows: Rows) -> Self {
        match rows {
            Rows::Offers => Self::Offers,
            Rows::Lines => Self::Lines,
            Rows::Years => Self::Years,
            Rows::Paths => Self::Paths,
            Rows::Sensitivity => Self::Sensitivity,
            Rows::BreakEven => Self::BreakEven,
        }
    }
}

impl Price {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        if self.rows.is_some() && session.format != Format::Csv {
            let message = "--rows chooses the rows of CSV";
            session
                .sink
                .push(Diagnostic::new(Code::Inconsistent, message).hint("add --format csv, or leave --rows out"));
            return (Answer::Mistaken, session);
        }
        let mut catalog = session.catalog();
        let Some(document) = session.document(&self.study) else { return (Answer::Mistaken, session) };
        let study = StudyFile::read(&document, &session.sink);
        if !session.sink.is_empty() {
            return (Answer::Mistaken, session);
        }
        // A job's path begins at the folder of the study that names it.
        let path =
            self.study.parent().map_or_else(|| PathBuf::from(&study.job.id), |folder| folder.join(&study.job.id));
        if !path.is_file() {
            let message = format!("there is no scenario {}", path.display());
            let hint = "paths begin at the study's folder";
            session.sink.push(Diagnostic::new(Code::Unreadable, message).at(&study.job.at, "the job").hint(hint));
            return (Answer::Mistaken, session);
        }
        let Some(job) = session.scenario(&path, &mut catalog) else { return (Answer::Mistaken, session) };
        load::models(&document, &self.study, &mut catalog, &mut session.sources, &session.sink);
        let Some(priced) = price(&study, &job, &catalog, &session.sink) else { return (Answer::Mistaken, session) };
        let data = match session.format {
            Format::Json => pricing_json(&priced).into_bytes(),
            Format::Csv => {
                let of = self.rows.map_or(PricingRows::Offers, PricingRows::from);
                grid_csv(&pricing_rows(&priced, of), session.options.bom)
            }
            Format::Table | Format::Md => session.page(&pricing_page(&priced)),
        };
        // "No" only where no offer can be.
        let reason = priced.offers.iter().map(|offer| offer.outcome.as_ref().err()).collect::<Option<Vec<_>>>();
        let answer = match reason.as_deref() {
            Some([first, ..]) => {
                Answer::No { data: Some(data), message: message(&infeasible_page(&priced.title, first, None)) }
            }
            _ => Answer::Yes(data),
        };
        (answer, session)
    }
}
