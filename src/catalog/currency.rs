//! Currencies: one rate each, fixed and dated, so that a figure is the same today and tomorrow.
//!
//! Amounts in catalog files may be written in any currency that has a file here; they become dollars at its rate
//! when the catalog is read, and nothing is fetched. Another rate is another file in an overlay.

use std::collections::{BTreeMap, BTreeSet};

use super::Catalog;
use crate::diagnostics::Code;
use crate::document::{Date, Node, Reader, Value};
use crate::units::{Factor, Usd};

/// The folder of currency files.
pub const FOLDER: &str = "currencies";

/// A currency.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Currency {
    /// Its three letters, which amounts are written with.
    pub code: String,
    /// What one of it is worth in dollars.
    pub usd: Factor,
    /// The day of that rate.
    pub date: Date,
}

impl Currency {
    /// Reads the fields of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let before = reader.sink().len();
        let currency = Self { code: reader.get("code"), usd: reader.get("usd"), date: reader.get("date") };
        if reader.sink().len() > before {
            return currency;
        }
        let letters = currency.code.len() == 3 && currency.code.bytes().all(|byte| byte.is_ascii_uppercase());
        if !letters || currency.code == "USD" {
            let message = format!("\"{}\" is no code of another currency than the dollar", currency.code);
            reader.report("code", Code::OutOfRange, message, "three capital letters, such as \"EUR\"");
        }
        if currency.usd == Factor::default() {
            reader.report("usd", Code::OutOfRange, "`usd` is zero", "what one of the currency is worth in dollars");
        }
        currency
    }

    /// An amount of dollars in this currency, by its code: `EUR 25.25`.
    pub fn show(&self, amount: Usd) -> String {
        // The base number, because a dollar amount leaves its type here to become another currency's.
        format!("{} {:.2}", self.code, amount.value() / self.usd.get())
    }

    /// The rate with its day, to be printed wherever it was used.
    pub fn rate(&self) -> String {
        format!("1 {} = {} USD, fixed on {}", self.code, self.usd.get(), self.date.0)
    }
}

/// What one of a currency is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// In dollars.
    pub usd: f64,
    /// The rate with its day, in a sentence.
    pub sentence: String,
}

/// The rate of each currency, by code.
pub type Rates = BTreeMap<String, Rate>;

impl Catalog {
    /// The fixed rates of all currencies.
    pub fn rates(&self) -> Rates {
        let rate = |currency: &Currency| Rate { usd: currency.usd.get(), sentence: currency.rate() };
        self.currencies.iter().map(|currency| (currency.code.clone(), rate(currency))).collect()
    }
}

/// Turns every amount of another currency in a document into dollars, and notes the rates that were used.
pub(super) fn to_dollars(node: &mut Node, rates: &Rates, used: &mut BTreeSet<String>) {
    match &mut node.value {
        Value::String(text) => {
            if let Some((dollars, rate)) = converted(text, rates) {
                *text = dollars;
                used.insert(rate.sentence.clone());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| to_dollars(item, rates, used)),
        Value::Table(table) => table.entries.iter_mut().for_each(|entry| to_dollars(&mut entry.node, rates, used)),
        _ => {}
    }
}

/// `0.171 EUR/kWh` at 1.08 as `0.18468 USD/kWh`; none where the text is no amount of a known currency.
pub(super) fn in_dollars(text: &str, rates: &Rates) -> Option<String> {
    converted(text, rates).map(|(dollars, _)| dollars)
}

/// The same with the rate that was used.
fn converted<'a>(text: &str, rates: &'a Rates) -> Option<(String, &'a Rate)> {
    let (number, unit) = text.split_once(' ')?;
    let rate = rates.get(unit.get(..3)?)?;
    let rest = unit.get(3..)?;
    if !(rest.is_empty() || rest.starts_with('/')) {
        return None;
    }
    let number: f64 = crate::units::number(number).ok()?;
    Some((format!("{} USD{rest}", number * rate.usd), rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_known_currencies_become_dollars() {
        let rates = Rates::from([("EUR".to_owned(), Rate { usd: 1.25, sentence: String::new() })]);
        assert_eq!(in_dollars("0.2 EUR/kWh", &rates).as_deref(), Some("0.25 USD/kWh"));
        assert_eq!(in_dollars("1,000 EUR", &rates).as_deref(), Some("1250 USD"));
        for kept in ["$0.08/kWh", "400 Gbit/s", "10 CHF", "2 EUROS", "about EUR"] {
            assert_eq!(in_dollars(kept, &rates), None);
        }
    }

    #[test]
    fn money_is_shown_with_its_code_and_the_rate_with_its_day() {
        let date = Date("2024-12-31".to_owned());
        let euro = Currency { code: "EUR".to_owned(), usd: Factor::new(1.04).unwrap(), date };
        assert_eq!(euro.show(Usd::new(26.26)), "EUR 25.25");
        assert_eq!(euro.rate(), "1 EUR = 1.04 USD, fixed on 2024-12-31");
    }
}
