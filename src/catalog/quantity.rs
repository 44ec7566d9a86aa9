//! Rules of one quantity, and of two in one file.

use crate::diagnostics::Code;
use crate::document::Reader;
use crate::units::{Bandwidth, Quantity, Ranged};

/// Rounding of printed peaks: 989.4 beside 1,978.9.
pub(super) const PRINTED: f64 = 1.005;

/// Reads a quantity that must be there and must not be zero.
pub(super) fn positive<Q: Quantity>(reader: &mut Reader<'_>, key: &'static str) -> Q {
    let before = reader.sink().len();
    let quantity: Q = reader.get(key);
    report_zero(reader, key, before, quantity);
    quantity
}

fn report_zero<Q: Quantity>(reader: &Reader<'_>, key: &'static str, before: usize, quantity: Q) {
    // The base number, because zero is zero in every unit.
    if reader.sink().len() == before && quantity.base() <= 0.0 {
        let message = format!("`{}` is zero", reader.path_of(key));
        reader.report(key, Code::OutOfRange, message, "more than zero is needed");
    }
}

/// Reads a quantity with its range that must be there, all of it more than zero.
pub(super) fn positive_range<Q: Quantity + PartialOrd>(reader: &mut Reader<'_>, key: &'static str) -> Ranged<Q> {
    let before = reader.sink().len();
    let range: Ranged<Q> = reader.get(key);
    report_zero(reader, key, before, range.low);
    range
}

/// Reads a quantity that may be left out, and must not be zero.
pub(super) fn some_positive<Q: Quantity>(reader: &mut Reader<'_>, key: &'static str) -> Option<Q> {
    let before = reader.sink().len();
    let quantity: Option<Q> = reader.optional(key);
    report_zero(reader, key, before, quantity.unwrap_or_else(|| Q::from_base(1.0)));
    quantity
}

/// Reports a rate each direction that is not half of what is advertised, where that is both directions added up.
pub(super) fn check_halves(reader: &Reader<'_>, per_direction: Bandwidth, advertised: Option<Bandwidth>) {
    if let Some(advertised) = advertised
        && (per_direction * 2.0 / advertised - 1.0).abs() > 0.005
    {
        let message = format!("twice {per_direction} each direction is not the advertised {advertised}");
        let hint = "`advertised` adds both directions; leave it out where its maker states one";
        reader.report("bandwidth_per_direction", Code::Inconsistent, message, hint);
    }
}

/// Whether two quantities are the same but for rounding of their text.
pub(super) fn same<Q: Quantity>(a: Q, b: Q) -> bool {
    // Base numbers, because only their closeness matters.
    (a.base() - b.base()).abs() <= 1e-9 * b.base().abs()
}
