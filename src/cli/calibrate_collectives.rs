//! `clusterplan calibrate collectives`

use std::path::PathBuf;

use clap::Args;

use super::options::Format;
use super::{Answer, Session};
use crate::calibration::{SetFit, SetTitle, fit_collective_set};
use crate::catalog::{Catalog, CollectiveEfficiency};
use crate::diagnostics::{Code, Diagnostic};
use crate::load;
use crate::validation::{
    Aliases, CollectiveRun, Domain, TableError, Validation, collective_runs, held_out_page, validation_csv,
    validation_json,
};

/// `clusterplan calibrate collectives`
#[derive(Args, Debug)]
pub(super) struct Collectives {
    /// Runs of your own, in the columns of the project's table [default: that table]
    #[arg(value_name = "FILE.csv")]
    cases: Option<PathBuf>,
    /// The set of constants to begin from: its ranges say how far runs may move each
    #[arg(long, value_name = "ID", default_value = "before-logs")]
    prior: String,
    /// Writes the fitted set as a file for DIR/efficiency/collectives of a catalog
    #[arg(long)]
    pub(super) toml: bool,
}

impl Collectives {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        if self.toml {
            session.writes_toml();
        }
        let documents = session.catalog_documents();
        let catalog = load::bind(&documents, &session.sink);
        let aliases = load::aliases(&mut session.sources, &session.sink);
        let key = ("efficiency/collectives".to_owned(), self.prior.clone());
        let (Some(prior), Some(document)) = (catalog.collective_efficiency.get(&self.prior), documents.get(&key))
        else {
            let ids: Vec<&str> = catalog.collective_efficiency.iter().map(|entry| entry.id.as_str()).collect();
            let message = format!("no set of collective constants has the id \"{}\"", self.prior);
            session.sink.push(Diagnostic::new(Code::UnknownId, message).hint(format!("there is {}", ids.join(", "))));
            return (Answer::Mistaken, session);
        };
        let text = match &self.cases {
            Some(path) => {
                session.reads(path);
                load::text(path, &session.sink)
            }
            None => Some(Domain::Collectives.own_cases().to_owned()),
        };
        let Some(text) = text.filter(|_| session.sink.is_empty()) else { return (Answer::Mistaken, session) };
        let table = Table { text: &text, catalog: &catalog, aliases: &aliases, prior };
        let answer = if self.toml {
            let (text, document) = session.text_of(document);
            table.fitted(|fit| fit.to_toml(SetTitle::COLLECTIVES, &self.prior, &text, &document).into_bytes())
        } else {
            table.left_out(&session)
        };
        match answer {
            Ok(answer) => (answer, session),
            Err(error) => {
                session.sink.push(error.diagnostic("the table of cases"));
                (Answer::Mistaken, session)
            }
        }
    }
}

/// A table of runs, and what constants are fitted to them from.
struct Table<'a> {
    text: &'a str,
    catalog: &'a Catalog,
    aliases: &'a Aliases,
    prior: &'a CollectiveEfficiency,
}

impl Table<'_> {
    /// The set fitted to all runs.
    fn fitted(&self, written: impl Fn(&SetFit<CollectiveEfficiency>) -> Vec<u8>) -> Result<Answer, TableError> {
        let runs = collective_runs(self.text, self.catalog, self.aliases)?;
        let runs: Vec<&CollectiveRun> = runs.iter().collect();
        Ok(match fit_collective_set(&runs, self.prior) {
            Ok(fit) => Answer::Yes(written(&fit)),
            Err(reason) => {
                let message = format!("The constants cannot be fitted to {} runs: {reason}\n", runs.len());
                Answer::No { data: None, message }
            }
        })
    }

    /// Every source predicted by constants that were fitted to the others.
    fn left_out(&self, session: &Session) -> Result<Answer, TableError> {
        let Self { text, catalog, aliases, prior } = *self;
        let within = Validation::new(Domain::Collectives, text, catalog, aliases)?;
        let without = Validation::collectives_leaving_out(text, catalog, aliases, prior)?;
        let data = match session.format {
            Format::Json => validation_json(std::slice::from_ref(&without)).into_bytes(),
            Format::Csv => validation_csv(std::slice::from_ref(&without), session.options.bom),
            Format::Table | Format::Md => session.page(&held_out_page(&within, &without)),
        };
        Ok(if without.summary().predicted > 0 {
            Answer::Yes(data)
        } else {
            let message = "No source can be left out: each is the only one of its links or its network.\n".to_owned();
            Answer::No { data: Some(data), message }
        })
    }
}
