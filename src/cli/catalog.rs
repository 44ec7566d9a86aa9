//! `clusterplan catalog`

use std::path::{Path, PathBuf};

use clap::Subcommand;

use super::options::{ENDINGS, Format};
use super::{Answer, Session};
use crate::catalog::{Catalog as Known, Change, Condition, StalePrice, difference, named_by};
use crate::diagnostics::{Code, Diagnostic, Sink, did_you_mean, did_you_mean_one_of};
use crate::document::Node;
use crate::load::{self, CatalogDocuments, today};
use crate::report::{Grid, entry_grid, entry_page, list_grid, list_objects, objects_csv, objects_json};
use crate::units::{Quantity, Seconds};

/// `clusterplan catalog`
#[derive(Debug, Subcommand)]
pub(super) enum Catalog {
    /// Lists what is known, of one kind or of all
    List {
        /// accelerators, nodes, switches, fabrics, models, sites, prices, ...
        kind: Option<String>,
        /// Only entries that meet a condition, such as "memory_capacity >= 100 GiB" or "vendor = AMD"; all of several
        #[arg(long = "where", value_name = "CONDITION")]
        conditions: Vec<String>,
    },
    /// Shows every field of an entry with its source, basis, date and age
    Show {
        /// An id, as the list has it
        id: String,
        /// The day that ages are counted to; today where it is not given
        #[arg(long, value_name = "DATE")]
        on: Option<String>,
    },
    /// Checks that every field has its source, and that the entries fit together and can be true
    Check {
        /// Also lists prices older than this, such as "18 months", and answers no where there are any
        #[arg(long, value_name = "AGE")]
        older_than: Option<String>,
        /// The day that ages are counted to; today where it is not given
        #[arg(long, value_name = "DATE")]
        on: Option<String>,
    },
    /// What differs between two entries, or between the catalogs that two directories make
    Diff {
        /// An id, or a directory laid over the catalog
        before: String,
        /// The same for the other side
        after: String,
    },
    /// Writes entries as they are now, as files that replace later ones: for reports that must be run again unchanged
    Freeze {
        /// Ids, as the list has them; of several, -o names a new directory
        #[arg(required_unless_present = "scenario")]
        ids: Vec<String>,
        /// Freezes all that this scenario rests on: its price book, parts, site, and what these name
        #[arg(long, value_name = "FILE")]
        scenario: Option<PathBuf>,
        /// The day that is written into it; today where it is not given
        #[arg(long, value_name = "DATE")]
        on: Option<String>,
    },
}

impl Catalog {
    /// What a file of the answer may end in; a directory of several files may in anything.
    pub(super) fn endings(&self) -> &'static [&'static str] {
        match self {
            Self::Freeze { ids, scenario: None, .. } if ids.len() == 1 => &["toml"],
            Self::Freeze { .. } => &[],
            _ => &ENDINGS,
        }
    }

    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        let documents = session.catalog_documents();
        let answer = match self {
            Self::List { kind, conditions } => list(kind.as_deref(), conditions, &documents, &session),
            Self::Show { id, on } => show(id, on.as_deref(), &documents, &session),
            Self::Check { older_than, on } => check(older_than.as_deref(), on.as_deref(), &documents, &session),
            Self::Diff { before, after } => diff([before, after], &documents, &mut session),
            Self::Freeze { ids, scenario, on } => {
                freeze(ids, scenario.as_deref(), on.as_deref(), &documents, &mut session)
            }
        };
        (answer, session)
    }
}

fn list(kind: Option<&str>, conditions: &[String], documents: &CatalogDocuments, session: &Session) -> Answer {
    let parsed: Result<Vec<Condition>, _> = conditions.iter().map(|text| Condition::parse(text)).collect();
    let parsed = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return mistake(Code::OutOfRange, error.to_string(), None, session),
    };
    let folder = match kind.map(|typed| folder_of(typed).map_err(|hint| (typed, hint))).transpose() {
        Ok(folder) => folder,
        Err((typed, hint)) => {
            return mistake(Code::UnknownWord, format!("the catalog has no kind \"{typed}\""), Some(hint), session);
        }
    };
    let mut kept: Option<Vec<(String, String)>> = None;
    if !parsed.is_empty() {
        let catalog = load::bind(documents, &session.sink);
        let mut records = catalog.records();
        records.retain(|record| folder.is_none_or(|folder| record.folder == folder));
        for (condition, typed) in parsed.iter().zip(conditions) {
            if !records.iter().any(|record| condition.applies(record)) {
                let message = format!("no entry has a field that `{typed}` can be held against");
                let hint = "`catalog show` with an id lists the fields of an entry, with their units".to_owned();
                return mistake(Code::UnknownWord, message, Some(hint), session);
            }
        }
        let fit = records.iter().filter(|record| parsed.iter().all(|condition| condition.holds(record)));
        kept = Some(fit.map(|record| (record.folder.to_owned(), record.id.to_owned())).collect());
    }
    let shown = |folder: &str, id: &str| {
        kept.as_ref().is_none_or(|kept| kept.iter().any(|(own, known)| own == folder && known == id))
    };
    Answer::Yes(match session.format {
        Format::Json => objects_json(list_objects(documents, shown, folder)).into_bytes(),
        Format::Csv => objects_csv(&list_objects(documents, shown, folder), session.options.bom),
        Format::Table | Format::Md => session.grid("", list_grid(documents, shown, folder)),
    })
}

/// The folder that is meant by its name or by the name of one of its entries, or a hint.
pub(super) fn folder_of(typed: &str) -> Result<&'static str, String> {
    let folders = || Known::FOLDERS.iter().copied();
    let is =
        |folder: &&str| *folder == typed || [format!("{typed}s"), format!("{typed}es")].contains(&(*folder).to_owned());
    folders().find(is).ok_or_else(|| {
        did_you_mean(typed, folders()).map_or_else(
            || format!("the kinds are {}", folders().collect::<Vec<_>>().join(", ")),
            |closest| format!("did you mean \"{closest}\"?"),
        )
    })
}

fn show(id: &str, on: Option<&str>, documents: &CatalogDocuments, session: &Session) -> Answer {
    if !documents.keys().any(|(_, known)| known == id) {
        return unknown_id(id, documents, session);
    }
    let Some(on) = day(on, session) else { return Answer::Mistaken };
    let catalog = load::bind(documents, &session.sink);
    Answer::Yes(match session.format {
        Format::Json | Format::Csv => session.grid(id, entry_grid(documents, id, &catalog, &on)),
        Format::Table | Format::Md => session.page(&entry_page(documents, id, &catalog, &on)),
    })
}

fn check(older_than: Option<&str>, on: Option<&str>, documents: &CatalogDocuments, session: &Session) -> Answer {
    let catalog = load::bind(documents, &session.sink);
    let sentence = format!(
        "{} entries: every field has exactly one source, and the entries fit together and can be true.\n",
        documents.len()
    );
    let for_programs = matches!(session.format, Format::Json | Format::Csv);
    let Some(age) = older_than else {
        let mut grid = Grid::new(&["entries_count", "mistakes_count"], 0);
        grid.rows.push(vec![documents.len().to_string(), session.sink.len().to_string()]);
        return Answer::Yes(if for_programs { session.grid("", grid) } else { sentence.into_bytes() });
    };
    let age = match Seconds::parse(age) {
        Ok(age) => age,
        Err(error) => return mistake(Code::WrongUnit, format!("--older-than: {error}"), error.hint(), session),
    };
    let Some(on) = day(on, session) else { return Answer::Mistaken };
    let stale = catalog.stale_prices(&on, age);
    if stale.is_empty() && for_programs {
        return Answer::Yes(session.grid("", stale_grid(&stale)));
    }
    if stale.is_empty() {
        return Answer::Yes(format!("{sentence}No price is older than {age} on {on}.\n").into_bytes());
    }
    let message = format!("{} prices are older than {age} on {on}\n", stale.len());
    Answer::No { data: Some(session.grid("Old prices", stale_grid(&stale))), message }
}

fn stale_grid(stale: &[StalePrice]) -> Grid {
    let mut grid = Grid::new(&["book", "part", "date", "age_days"], 3);
    let row =
        |price: &StalePrice| vec![price.book.clone(), price.part.clone(), price.date.clone(), price.days.to_string()];
    grid.rows.extend(stale.iter().map(row));
    grid
}

fn diff(sides: [&String; 2], documents: &CatalogDocuments, session: &mut Session) -> Answer {
    let catalog = load::bind(documents, &session.sink);
    let records = catalog.records();
    let find = |id: &str| records.iter().find(|record| record.id == id);
    let changes = match sides.map(|id| find(id)) {
        [Some(before), Some(after)] => difference(before, after),
        found => {
            let missing =
                sides.iter().zip(found).find(|(id, record)| record.is_none() && !Path::new(id.as_str()).exists());
            if let Some((id, _)) = missing {
                return unknown_id(id, documents, session);
            }
            // An id beside a directory means nothing, so both are taken for directories.
            let [before, after] = sides.map(|path| with(path, session));
            before.changes_to(&after)
        }
    };
    Answer::Yes(session.grid("", change_grid(&changes)))
}

/// The catalog with one more directory over it.
fn with(path: &str, session: &mut Session) -> Known {
    let mut overlays = session.options.catalog.clone();
    overlays.push(PathBuf::from(path));
    load::catalog(&overlays, &mut session.sources, &session.sink)
}

fn change_grid(changes: &[Change]) -> Grid {
    let mut grid = Grid::new(&["entry", "field", "before", "after", "ratio"], 4);
    for change in changes {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let ratio = change.ratio.map(|ratio| format!("{ratio:.3}")).unwrap_or_default();
        grid.rows.push(vec![
            change.entry.clone(),
            change.field.clone(),
            text(&change.before),
            text(&change.after),
            ratio,
        ]);
    }
    grid
}

fn freeze(
    ids: &[String],
    scenario: Option<&Path>,
    on: Option<&str>,
    documents: &CatalogDocuments,
    session: &mut Session,
) -> Answer {
    session.writes_toml();
    let Some(on) = day(on, session) else { return Answer::Mistaken };
    let mut kept = std::collections::BTreeSet::new();
    for id in ids {
        let mut of_id = documents.keys().filter(|(_, known)| known == id).peekable();
        if of_id.peek().is_none() {
            return unknown_id(id, documents, session);
        }
        kept.extend(of_id.cloned());
    }
    if let Some(path) = scenario {
        let Some(text) = session.scenario(path, &mut Known::default()) else { return Answer::Mistaken };
        for node in load::models_by_path(&text) {
            let message =
                format!("`{}` is no entry of the catalog that could be frozen", node.as_str().unwrap_or_default());
            let hint = "put it into one by `clusterplan model import` with -o DIR/models/ID.toml, name the ID, and give --catalog DIR";
            let diagnostic = Diagnostic::new(Code::NotInCatalog, message).at(&node.at, "a model by its path");
            session.sink.push(diagnostic.hint(hint));
        }
        if !session.sink.is_empty() {
            return Answer::Mistaken;
        }
        kept.extend(named_by(&text, documents));
    }
    load::bind(documents, &session.sink);
    let frozen = |key: &(String, String)| {
        let (folder, id) = key;
        let head = format!("# Keep it as {folder}/{id}.toml in a directory given with --catalog.\nfrozen = {on}\n");
        (head + &documents.get(key).map(Node::to_toml).unwrap_or_default()).into_bytes()
    };
    if scenario.is_none() && ids.len() == 1 {
        return Answer::Yes(kept.iter().flat_map(frozen).collect());
    }
    let file = |key: &(String, String)| (PathBuf::from(&key.0).join(format!("{}.toml", key.1)), frozen(key));
    Answer::Files(kept.iter().map(file).collect())
}

/// The day given, or today; a text that is no day is reported.
fn day(given: Option<&str>, session: &Session) -> Option<String> {
    let Some(text) = given else { return Some(today()) };
    if crate::catalog::age_in_days(text, text) == Some(0) && text.len() == 10 {
        return Some(text.to_owned());
    }
    mistake(Code::OutOfRange, format!("\"{text}\" is no day"), Some("write it as 2026-11-29".to_owned()), session);
    None
}

fn unknown_id(id: &str, documents: &CatalogDocuments, session: &Session) -> Answer {
    let hint = did_you_mean_one_of(id, documents.keys().map(|(_, known)| known.as_str()))
        .unwrap_or_else(|| "`clusterplan catalog list` shows all ids".to_owned());
    mistake(Code::UnknownId, format!("the catalog has no id \"{id}\""), Some(hint), session)
}

fn mistake(code: Code, message: String, hint: Option<String>, session: &Session) -> Answer {
    report(&session.sink, code, message, hint);
    Answer::Mistaken
}

fn report(sink: &Sink, code: Code, message: String, hint: Option<String>) {
    sink.push(hint.into_iter().fold(Diagnostic::new(code, message), Diagnostic::hint));
}
