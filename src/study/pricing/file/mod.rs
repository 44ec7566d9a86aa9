//! A pricing study as it stands in its file: the job, the ways to buy it, and how the market's price may go.

mod dpus;
mod known;
mod own;
mod rent;

pub(super) use dpus::{DPUS, DpusFile, FREED};
pub(super) use known::{FigureFile, with_figures};
pub(super) use own::{ContractFile, DebtFile, DepreciationWord, OwnFile, RepaymentWord, SellFile, TaxFile};
pub(super) use rent::{ApiFile, PricedBy, RentFile};

use std::collections::BTreeMap;

use crate::catalog::Reference;
use crate::catalog::pricebook::{Line, Price};
use crate::diagnostics::{Code, Diagnostic, Sink, Span};
use crate::document::{Node, Reader, Schema, Value, choices};
use crate::units::{Factor, SECONDS_PER_YEAR, Seconds};

/// The most years that anything in a study lasts.
const MOST_YEARS: u32 = 50;
/// The most offers that can be read side by side.
const MOST_OFFERS: usize = 32;

choices! {
    /// How accelerators are come by.
    pub enum OfferKind {
        /// They are bought, housed and run.
        Own = "own",
        /// They are rented by the hour.
        Rent = "rent",
        /// They are another's, who is paid by the token.
        Api = "api",
    }
}

/// A study as it stands in its file.
#[derive(Clone, Debug, Default)]
pub struct StudyFile {
    /// What is asked, in a line.
    pub title: String,
    /// The scenario of the job, a path from the study's folder.
    pub job: Reference,
    /// Keys of the job's scenario that are otherwise in the whole study.
    pub set: Vec<(String, Node)>,
    /// The currency that amounts are shown in; dollars where none is named.
    pub currency: Option<Reference>,
    /// The ways to buy it.
    pub offers: Vec<OfferFile>,
    /// How the market's price may go.
    pub paths: Vec<PathFile>,
}

/// `[[offer]]`
#[derive(Clone, Debug, Default)]
pub struct OfferFile {
    /// Its name.
    pub name: String,
    /// Its place.
    pub at: Span,
    /// How accelerators are come by.
    pub kind: OfferKind,
    /// From the order to the first hour.
    pub wait: Option<Seconds>,
    /// Keys of the job's scenario that are otherwise with this offer.
    pub set: Vec<(String, Node)>,
    /// Figures of the catalog instead of its own.
    pub figures: Vec<FigureFile>,
    /// Prices of parts instead of the price book's.
    pub prices: Vec<Price>,
    /// Cost lines beside those of the price book, or instead of those of the same name.
    pub lines: Vec<Line>,
    /// Data processing units of the nodes of an owned one.
    pub dpus: Option<DpusFile>,
    /// Of an owned one.
    pub own: OwnFile,
    /// Of a rented one.
    pub rent: RentFile,
    /// Of one that is paid by the token.
    pub api: Option<ApiFile>,
}

/// `[[path]]`: the market's price of each year over that of the first.
#[derive(Clone, Debug, Default)]
pub struct PathFile {
    /// Its name.
    pub name: String,
    /// Price of each year over the first's; the last holds on.
    pub prices: Vec<Factor>,
    /// Its place.
    pub at: Span,
}

impl StudyFile {
    /// Reads a study; mistakes go to the sink.
    pub fn read(document: &Node, sink: &Sink) -> Self {
        Reader::new(document, "", sink).map_or_else(Self::default, |mut r| Self::keys(&mut r))
    }

    /// The shape of a study's file.
    pub fn shape() -> Schema {
        Reader::describe(Self::keys)
    }

    fn keys(r: &mut Reader<'_>) -> Self {
        let sink = r.sink();
        let study = Self {
            title: r.about("what is asked, in a line").get("title"),
            job: r.about("scenario of the job, a path from the folder of the study").get("job"),
            set: settings(r),
            currency: r
                .about("id of the currency that amounts are shown in")
                .usually("US dollars")
                .optional("currency"),
            offers: r.about("ways to buy the job").tables("offer", OfferFile::read),
            paths: r.about("how the market's price of an accelerator's hour may go").usually("as it is").tables(
                "path",
                |r| PathFile {
                    name: r.about("what the path is called").get("name"),
                    prices: r.about("price of each year over that of the first; the last holds on").get("prices"),
                    at: r.at().clone(),
                },
            ),
        };
        if study.offers.is_empty() && r.place_of("offer").is_none() {
            r.report("offer", Code::MissingKey, "the study has no offer", "add an [[offer]] with name and kind");
        }
        if study.offers.len() > MOST_OFFERS {
            let message = format!("{} offers side by side; at most {MOST_OFFERS} can be read", study.offers.len());
            r.report("offer", Code::OutOfRange, message, "split the study");
        }
        for (index, offer) in study.offers.iter().enumerate() {
            if study.offers[..index].iter().any(|earlier| earlier.name == offer.name) && !offer.name.is_empty() {
                let message = format!("two offers are called \"{}\"", offer.name);
                sink.push(Diagnostic::new(Code::Duplicate, message).at(&offer.at, "the second").hint("name each once"));
            }
        }
        for (index, path) in study.paths.iter().enumerate() {
            if study.paths[..index].iter().any(|earlier| earlier.name == path.name) && !path.name.is_empty() {
                let message = format!("two paths are called \"{}\"", path.name);
                let duplicate = Diagnostic::new(Code::Duplicate, message);
                sink.push(duplicate.at(&path.at, "the second").hint("name each once"));
            }
            if path.prices.is_empty() {
                r.report("path", Code::OutOfRange, format!("\"{}\" has no prices", path.name), "such as [1, 0.8, 0.6]");
            }
        }
        study
    }
}

impl OfferFile {
    fn read(r: &mut Reader<'_>) -> Self {
        let (name, kind) = (
            r.about("what the offer is called").get("name"),
            r.about("how accelerators are come by; the other keys depend on it").get("kind"),
        );
        let set = settings(r);
        let figures = r
            .about("figures of the catalog that are otherwise with this offer")
            .usually("none")
            .tables("figure", FigureFile::read);
        let prices = r
            .about("prices of parts in place of the price book's")
            .usually("none")
            .tables("price_of", |r| (r.at().clone(), Price::read(r)));
        let lines = r
            .about("cost lines beside those of the price book, or in place of those of the same name")
            .usually("none")
            .tables("line", |r| (r.at().clone(), Line::read(r)));
        once("figure", figures.iter().map(|figure| (figure.key.0.as_str(), &figure.key.1)), r.sink());
        once("price_of", prices.iter().map(|(at, price)| (price.part.id.as_str(), at)), r.sink());
        once("line", lines.iter().map(|(at, line)| (line.name.as_str(), at)), r.sink());
        let prices: Vec<Price> = prices.into_iter().map(|(_, price)| price).collect();
        let lines: Vec<Line> = lines.into_iter().map(|(_, line)| line).collect();
        let own = kind == OfferKind::Own;
        if !(own || lines.is_empty() && prices.is_empty()) {
            let hint = "remove it, or set kind = \"own\"";
            let key = if lines.is_empty() { "price_of" } else { "line" };
            r.report(key, Code::Inconsistent, "whoever rents pays neither parts nor cost lines of the owner's", hint);
        }
        Self {
            name,
            at: r.at().clone(),
            kind,
            wait: r
                .about("time from the order to the first hour")
                .usually("that of the provider; none where it has none, and of what is owned")
                .such_as("6 months")
                .optional("wait"),
            set,
            figures,
            prices,
            lines,
            dpus: r
                .when(own, |r| {
                    r.about("data processing units of the nodes of an owned offer")
                        .usually("none")
                        .optional_table("dpus", DpusFile::read)
                })
                .flatten(),
            own: r.when(own, OwnFile::read).unwrap_or_default(),
            rent: r.when(kind == OfferKind::Rent, RentFile::read).unwrap_or_default(),
            api: r.when(kind == OfferKind::Api, ApiFile::read),
        }
    }
}

/// Reports entries of an offer's list that change the same thing, of which only the last would count.
fn once<'a>(list: &str, named: impl Iterator<Item = (&'a str, &'a Span)>, sink: &Sink) {
    let mut seen: BTreeMap<&str, &Span> = BTreeMap::new();
    for (name, at) in named.filter(|(name, _)| !name.is_empty()) {
        if let Some(first) = seen.insert(name, at) {
            let message = format!("two [[offer.{list}]] of an offer are of `{name}`");
            let diagnostic = Diagnostic::new(Code::Duplicate, message).at(at, "the second").at(first, "the first");
            sink.push(diagnostic.hint("only the last would count: leave one out, or put both into one"));
        }
    }
}

/// The keys of the job that a study or an offer sets.
fn settings(r: &mut Reader<'_>) -> Vec<(String, Node)> {
    let Some(node) = r
        .about("keys of the job's scenario that are otherwise, and their values")
        .usually("none")
        .node_of("set", || Schema::Keyed(Box::default()))
    else {
        return Vec::new();
    };
    let Value::Table(table) = &node.value else {
        node.wrong_type(&r.path_of("set"), "a table of keys of the scenario and their values", r.sink());
        return Vec::new();
    };
    table.entries.iter().map(|entry| (entry.key.clone(), entry.node.clone())).collect()
}

/// A time of whole years.
fn whole_years(r: &mut Reader<'_>, key: &'static str) -> Seconds {
    let before = r.sink().len();
    let time: Seconds = r.get(key);
    let years = time / Seconds::new(SECONDS_PER_YEAR);
    if r.sink().len() == before && (years.fract() != 0.0 || !(1.0..=f64::from(MOST_YEARS)).contains(&years)) {
        let message = format!("`{}` is {time}: it has to be 1 to {MOST_YEARS} whole years", r.path_of(key));
        r.report(key, Code::OutOfRange, message, "such as \"5 years\"");
    }
    time
}
