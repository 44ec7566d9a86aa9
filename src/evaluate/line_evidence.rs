//! What stands behind a cost line: the document, and the day that it is of.

use super::Evaluation;
use crate::catalog::pricebook;
use crate::tco::{CostLine, Rests};

/// A document behind an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineEvidence<'a> {
    /// The day that the amount is of; of a site's figures the day on which they were read.
    pub date: &'a str,
    /// Its title, or the judgement.
    pub source: &'a str,
    /// Where it is.
    pub url: Option<&'a str>,
}

impl Evaluation {
    /// What stands behind a line of this evaluation's costs; none of what its caller states.
    pub fn evidence_of(&self, line: &CostLine) -> Option<LineEvidence<'_>> {
        let cluster = &self.scenario.cluster;
        let of_book = |evidence| Some(LineEvidence::of_book(evidence));
        match line.rests {
            Rests::Price => of_book(&cluster.prices.price(line.part()?)?.evidence),
            Rests::Book => of_book(&cluster.prices.lines.iter().find(|own| own.name == line.name)?.evidence),
            Rests::Site(field) => {
                let source = cluster.site.source_of(field)?;
                Some(LineEvidence { date: &source.accessed, source: &source.title, url: source.url.as_deref() })
            }
            Rests::Stated => None,
        }
    }
}

impl<'a> LineEvidence<'a> {
    fn of_book(evidence: &'a pricebook::Evidence) -> Self {
        Self { date: &evidence.date, source: &evidence.source, url: evidence.url.as_deref() }
    }
}
