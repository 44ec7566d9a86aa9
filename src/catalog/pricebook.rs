//! Price books: what one kind of buyer pays at one time, for parts and for everything around them.

use super::Reference;
use super::fabric::Transport;
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::document::{Date, Reader, choices};
use crate::provenance::Basis;
use crate::units::{Factor, Fraction, Ranged, Seconds, Usd};

choices! {
    /// When a cost line is paid.
    pub enum Category {
        /// Once, at the beginning.
        Capex = "capex",
        /// Every year.
        Opex = "opex",
        /// Earned, or not spent elsewhere, every year: it lowers the opex.
        Saving = "saving",
    }
}

choices! {
    /// What a cost line is multiplied by.
    pub enum Driver {
        /// Accelerators bought.
        Accelerator = "accelerator",
        /// Nodes bought.
        Node = "node",
        /// Racks.
        Rack = "rack",
        /// Switches of the scale-out fabric.
        Switch = "switch",
        /// Scale-out network cards.
        Nic = "nic",
        /// Optical modules.
        Optic = "optic",
        /// Cables.
        Cable = "cable",
        /// Kilometres of fibre pairs between sites.
        FibreKm = "fibre_km",
        /// Terabytes of usable storage.
        StorageTb = "storage_tb",
        /// Kilowatts of provisioned IT power.
        Kw = "kw",
        /// Kilowatt-hours that the facility draws in a year.
        Kwh = "kwh",
        /// One: paid every year whatever the size.
        Year = "year",
        /// One: paid whatever the size.
        Cluster = "cluster",
        /// Dollars spent on parts.
        CapexRatio = "capex_ratio",
    }
}

/// What stands behind a price or a line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// How it was come by.
    pub basis: Basis,
    /// Title of the document, or the judgement.
    pub source: String,
    /// Where the document is.
    pub url: Option<String>,
    /// The day that the price is of.
    pub date: String,
    /// What a reader must know to use it.
    pub note: Option<String>,
}

impl Evidence {
    /// Reads what stands behind a price, of a price book or of a study.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            basis: reader.about("how it was come by").get("basis"),
            source: reader.about("title of the document, or the judgement").get("source"),
            url: reader.about("where the document is").optional("url"),
            date: reader.about("day that it is of").get::<Date>("date").0,
            note: reader.about("what a reader must know to use it").optional("note"),
        }
    }
}

/// The price of one part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Price {
    /// The part's id in the catalog.
    pub part: Reference,
    /// Price of one. A node's excludes its scale-out network cards, which the fabric brings.
    pub usd: Ranged<Usd>,
    /// What stands behind it.
    pub evidence: Evidence,
}

impl Price {
    /// Reads a price, of a price book or of a study.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self { part: reader.about("id of the part").get("part"), usd: reader.about("price of one; that of a node is without its network cards").get("usd"), evidence: Evidence::read(reader) }
    }
}

/// What a line costs for one of its driver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// An amount of money.
    Money(Ranged<Usd>),
    /// A share of what the parts cost.
    ShareOfParts(Ranged<Factor>),
}

/// A cost that is no part: once for capex, in the first year for opex.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// When it is paid.
    pub category: Category,
    /// What it is multiplied by.
    pub per: Driver,
    /// What it costs for one of that.
    pub amount: Amount,
    /// Capex: the time over which it is written off; none where that is the accelerators'.
    pub life: Option<Seconds>,
    /// Opex: its growth a year.
    pub escalation: Fraction,
    /// The transports that it is paid with; all where empty.
    pub transports: Vec<Transport>,
    /// What stands behind it.
    pub evidence: Evidence,
}

impl Line {
    /// Whether the line is paid with this transport.
    pub fn applies_to(&self, transport: Transport) -> bool {
        self.transports.is_empty() || self.transports.contains(&transport)
    }

    /// Reads a line, of a price book or of a study.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let before = reader.sink().len();
        let per = reader.about("what the amount is multiplied by").get("per");
        let line = Self {
            name: reader.about("what the line is called").get("name"),
            category: reader.about("when it is paid").get("category"),
            per,
            amount: reader.about("what it costs for one of that; a share where it is per \"capex_ratio\"").either("amount", per == Driver::CapexRatio, Amount::Money, Amount::ShareOfParts),
            life: reader.about("of what is paid once, the time over which it is written off").usually("that of the accelerators").such_as("10 years").optional("life"),
            escalation: reader.about("of what is paid every year, its growth a year").usually("0").or("escalation", Fraction::ZERO),
            transports: reader.about("transports that it is paid with").usually("all").or("transports", Vec::new()),
            evidence: Evidence::read(reader),
        };
        if reader.sink().len() == before {
            line.check(reader);
        }
        line
    }

    fn check(&self, reader: &Reader<'_>) {
        let capex = self.category == Category::Capex;
        if capex && matches!(self.per, Driver::Kwh | Driver::Year) {
            let message = format!("`{}` recurs, and the line is paid once", self.per);
            reader.report("per", Code::Inconsistent, message, "the category is opex");
        }
        if !capex && self.life.is_some() {
            reader.report("life", Code::Inconsistent, "an opex line has no life", "remove `life`");
        }
        if capex && self.escalation != Fraction::ZERO {
            let message = "a capex line is paid once and cannot grow";
            reader.report("escalation", Code::Inconsistent, message, "remove `escalation`");
        }
        if self.life.is_some_and(|life| life <= Seconds::ZERO) {
            reader.report("life", Code::OutOfRange, "`life` is zero", "more than zero is needed");
        }
    }
}

choices! {
    /// What whoever buys at these prices is taken to reckon with, where a scenario says nothing else.
    pub enum OwnerTerm {
        /// How long accelerators earn.
        AcceleratorLife = "accelerator_life",
        /// What capital costs a year, of debt and equity together.
        CostOfCapital = "cost_of_capital",
    }
}

/// How much it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OwnerValue {
    /// Of a life.
    Time(Seconds),
    /// Of capital.
    Rate(Fraction),
}

/// `[[owner]]`: what the buyers of the book reckon with at its time, beside prices.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnerAssumption {
    /// Of what.
    pub assumes: OwnerTerm,
    /// How much.
    pub value: OwnerValue,
    /// What stands behind it.
    pub evidence: Evidence,
}

impl OwnerAssumption {
    fn read(reader: &mut Reader<'_>) -> Self {
        let assumes = reader.get("assumes");
        let before = reader.sink().len();
        let lasts = assumes == OwnerTerm::AcceleratorLife;
        let value = reader.either("value", lasts, OwnerValue::Rate, OwnerValue::Time);
        if reader.sink().len() == before && value == OwnerValue::Time(Seconds::ZERO) {
            reader.report("value", Code::OutOfRange, "accelerators that last no time", "such as \"5 years\"");
        }
        Self { assumes, value, evidence: Evidence::read(reader) }
    }
}

/// A price book.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceBook {
    /// What its buyers reckon with.
    pub owner: Vec<OwnerAssumption>,
    /// Prices of parts.
    pub prices: Vec<Price>,
    /// All other costs but those of the site: electricity, rent, the building.
    pub lines: Vec<Line>,
}

impl PriceBook {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        // What it is based on was laid below it before it is read; a schema lists the key.
        reader.optional::<String>("based_on");
        let prices = reader.tables("price", Price::read);
        check_twice(&prices, reader.sink());
        let owner = reader.tables("owner", OwnerAssumption::read);
        Self { owner, prices, lines: reader.tables("line", Line::read) }
    }

    /// How long accelerators earn for its buyers, where it says so.
    pub fn accelerator_life(&self) -> Option<Seconds> {
        self.owner.iter().find_map(|own| match own.value {
            OwnerValue::Time(life) => Some(life),
            OwnerValue::Rate(_) => None,
        })
    }

    /// What capital costs its buyers, where it says so.
    pub fn cost_of_capital(&self) -> Option<Fraction> {
        self.owner.iter().find_map(|own| match own.value {
            OwnerValue::Rate(rate) => Some(rate),
            OwnerValue::Time(_) => None,
        })
    }

    /// The price of a part.
    pub fn price(&self, part: &str) -> Option<&Price> {
        self.prices.iter().find(|price| &*price.part == part)
    }
}

/// Amounts at one place of a book.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// The place in its list.
    pub place: usize,
    /// The amounts.
    pub amounts: Amounts,
}

/// Amounts of a price or of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amounts {
    /// Of a part.
    Price(Ranged<Usd>),
    /// Of a line: how much, how long it lasts, and how it grows.
    Line(Amount, Option<Seconds>, Fraction),
    /// What owners reckon with.
    Owner(OwnerValue),
}

impl PriceBook {
    /// The amounts of another reading of this book that it has otherwise; none where more than amounts differs.
    pub fn terms_unlike(&self, other: &Self) -> Option<Vec<Term>> {
        let Self { owner, prices, lines } = self;
        if owner.len() != other.owner.len() || prices.len() != other.prices.len() || lines.len() != other.lines.len() {
            return None;
        }
        let mut terms = Vec::new();
        for (place, (own, other)) in prices.iter().zip(&other.prices).enumerate() {
            if own.part != other.part || own.evidence != other.evidence {
                return None;
            }
            if own.usd != other.usd {
                terms.push(Term { place, amounts: Amounts::Price(other.usd) });
            }
        }
        for (place, (own, other)) in lines.iter().zip(&other.lines).enumerate() {
            let Line { amount, life, escalation, .. } = *other;
            if *other != (Line { amount, life, escalation, ..own.clone() }) {
                return None;
            }
            if own != other {
                terms.push(Term { place, amounts: Amounts::Line(amount, life, escalation) });
            }
        }
        for (place, (own, other)) in owner.iter().zip(&other.owner).enumerate() {
            if own.assumes != other.assumes || own.evidence != other.evidence {
                return None;
            }
            if own.value != other.value {
                terms.push(Term { place, amounts: Amounts::Owner(other.value) });
            }
        }
        Some(terms)
    }

    /// The book's own amounts where others have theirs.
    pub fn term_at(&self, other: &Term) -> Option<Term> {
        let amounts = match other.amounts {
            Amounts::Price(_) => Amounts::Price(self.prices.get(other.place)?.usd),
            Amounts::Line(..) => {
                let line = self.lines.get(other.place)?;
                Amounts::Line(line.amount, line.life, line.escalation)
            }
            Amounts::Owner(_) => Amounts::Owner(self.owner.get(other.place)?.value),
        };
        Some(Term { amounts, ..*other })
    }

    /// Sets amounts, where the book has the place.
    pub fn set(&mut self, term: &Term) {
        match term.amounts {
            Amounts::Price(usd) => self.prices.iter_mut().skip(term.place).take(1).for_each(|price| price.usd = usd),
            Amounts::Line(amount, life, escalation) => {
                let line = self.lines.iter_mut().skip(term.place).take(1);
                line.for_each(|line| (line.amount, line.life, line.escalation) = (amount, life, escalation));
            }
            Amounts::Owner(value) => self.owner.iter_mut().skip(term.place).take(1).for_each(|own| own.value = value),
        }
    }
}

/// Reports every part that has a second price.
fn check_twice(prices: &[Price], sink: &Sink) {
    for (index, price) in prices.iter().enumerate() {
        let first = prices[..index].iter().find(|earlier| earlier.part.id == price.part.id);
        if let Some(first) = first.filter(|_| !price.part.is_empty()) {
            sink.push(
                Diagnostic::new(Code::Duplicate, format!("`{}` has two prices", price.part.id))
                    .at(&price.part.at, "the second")
                    .at(&first.part.at, "the first")
                    .hint("leave one of them out: a part has one price in a book"),
            );
        }
    }
}
