//! `clusterplan catalog`

use clap::Subcommand;

use super::options::Format;
use super::{Answer, Session};
use crate::diagnostics::{Code, Diagnostic, did_you_mean};
use crate::load::{self, CatalogDocuments};
use crate::report::{entry_grid, entry_page, list_grid};

/// `clusterplan catalog`
#[derive(Debug, Subcommand)]
pub(super) enum Catalog {
    /// Lists what is known, of one kind or of all
    List {
        /// accelerators, nodes, switches, fabrics, models, sites, prices, ...
        kind: Option<String>,
    },
    /// Shows every field of an entry with its source, basis and date
    Show {
        /// An id, as the list has it
        id: String,
    },
    /// Checks that every field has its source and that the entries fit together
    Check,
}

impl Catalog {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        let documents = session.catalog_documents();
        let answer = match self {
            Self::List { kind } => list(kind.as_deref(), &documents, &session),
            Self::Show { id } => show(id, &documents, &session),
            Self::Check => check(&documents, &session),
        };
        (answer, session)
    }
}

fn list(kind: Option<&str>, documents: &CatalogDocuments, session: &Session) -> Answer {
    let Some(typed) = kind else { return Answer::Yes(session.grid("", list_grid(documents, None))) };
    let folders = crate::catalog::Catalog::FOLDERS.iter().copied();
    let is =
        |folder: &&str| *folder == typed || [format!("{typed}s"), format!("{typed}es")].contains(&(*folder).to_owned());
    if let Some(folder) = folders.clone().find(is) {
        return Answer::Yes(session.grid("", list_grid(documents, Some(folder))));
    }
    let hint = did_you_mean(typed, folders.clone()).map_or_else(
        || format!("the kinds are {}", folders.clone().collect::<Vec<_>>().join(", ")),
        |closest| format!("did you mean \"{closest}\"?"),
    );
    session.sink.push(Diagnostic::new(Code::UnknownWord, format!("the catalog has no kind \"{typed}\"")).hint(hint));
    Answer::Mistaken
}

fn show(id: &str, documents: &CatalogDocuments, session: &Session) -> Answer {
    if documents.keys().any(|(_, known)| known == id) {
        return Answer::Yes(match session.options.format {
            Format::Json | Format::Csv => session.grid(id, entry_grid(documents, id)),
            Format::Table | Format::Md => session.page(&entry_page(documents, id)),
        });
    }
    let hint = did_you_mean(id, documents.keys().map(|(_, known)| known.as_str())).map_or_else(
        || "`clusterplan catalog list` shows all ids".to_owned(),
        |closest| format!("did you mean \"{closest}\"?"),
    );
    session.sink.push(Diagnostic::new(Code::UnknownId, format!("the catalog has no id \"{id}\"")).hint(hint));
    Answer::Mistaken
}

fn check(documents: &CatalogDocuments, session: &Session) -> Answer {
    load::bind(documents, &session.sink);
    let sentence =
        format!("{} entries: every field has exactly one source, and the entries fit together.\n", documents.len());
    Answer::Yes(sentence.into_bytes())
}
