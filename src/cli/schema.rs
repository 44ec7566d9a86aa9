//! `clusterplan schema`

use clap::Subcommand;
use serde_json::{Map, Value};

use super::catalog::folder_of;
use super::{Answer, Session};
use crate::catalog::Catalog;
use crate::diagnostics::{Code, Diagnostic};
use crate::scenario::ScenarioFile;
use crate::study::pricing::StudyFile;

/// `clusterplan schema`
#[derive(Debug, Subcommand)]
pub(super) enum Schema {
    /// The files of a catalog folder, or of each where none is named
    Catalog {
        /// accelerators, nodes, switches, fabrics, models, sites, prices, ...
        folder: Option<String>,
    },
    /// The file of a scenario, with its axes of a sweep
    Scenario,
    /// The file of a study of prices
    Study,
}

impl Schema {
    pub(super) fn run(&self, session: Session) -> (Answer, Session) {
        session.writes_json();
        let schema = match self {
            Self::Scenario => ScenarioFile::shape().document("A scenario"),
            Self::Study => StudyFile::shape().document("A study of prices"),
            Self::Catalog { folder } => match folder.as_deref().map(folder_of) {
                None => Value::Object(
                    Catalog::FOLDERS
                        .iter()
                        .filter_map(|folder| Some(((*folder).to_owned(), Catalog::schema(folder)?)))
                        .collect::<Map<_, _>>(),
                ),
                Some(Ok(folder)) => Catalog::schema(folder).unwrap_or_default(),
                Some(Err(hint)) => {
                    let message = "the catalog has no such folder";
                    session.sink.push(Diagnostic::new(Code::UnknownWord, message).hint(hint));
                    return (Answer::Mistaken, session);
                }
            },
        };
        (Answer::Yes(format!("{schema:#}\n").into_bytes()), session)
    }
}
