//! Financial functions against those of a spreadsheet.
//!
//! `finance/spreadsheet.csv` was computed by LibreOffice Calc 7.4.7: the function of that name, its arguments in order (of
//! `NPV` and `IRR` the amounts; of `XIRR` and `XNPV` days after the first, and amount, in turns), and the cell to 15 digits.
//! `SCULPT` is debt sculpted to cash flows: its rate, the cover, and the cash of each year, the cell being `NPV` of each over the cover.
//! `PMT`, `IPMT`, `PPMT` and `PV` are there with the sign of the payer turned.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use clusterplan::finance::{
    Dated, Depreciation, dated_present_value, dated_rate_of_return, level_debt, level_payment, present_value,
    rate_of_return, sculpted_debt,
};
use clusterplan::units::{Factor, Rate, Seconds, Usd};

const YEAR: Seconds = Seconds::new(365.0 * 86_400.0);

fn rate(rate: f64) -> Rate {
    Rate::new(rate).unwrap()
}

fn amounts(amounts: &[f64]) -> Vec<Usd> {
    amounts.iter().copied().map(Usd::new).collect()
}

fn dated(pairs: &[f64]) -> Vec<Dated> {
    let dated = |pair: &[f64]| Dated { after: Seconds::new(pair[0] * 86_400.0), amount: Usd::new(pair[1]) };
    pairs.chunks(2).map(dated).collect()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the table has whole years there")]
fn written_off(a: &[f64], year: f64, factor: f64, then_straight: bool) -> f64 {
    let way =
        Depreciation::DecliningBalance { years: a[2] as u32, factor: Factor::new(factor).unwrap(), then_straight };
    way.schedule(Usd::new(a[0]), Usd::new(a[1]))[year as usize - 1].value()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the table has whole periods there")]
fn ours(function: &str, a: &[f64]) -> f64 {
    match function {
        "PMT" => level_payment(rate(a[0]), a[1], Usd::new(a[2])).value(),
        "IPMT" => level_debt(Usd::new(a[3]), rate(a[0]), a[2] as u32)[a[1] as usize - 1].interest.value(),
        "PPMT" => level_debt(Usd::new(a[3]), rate(a[0]), a[2] as u32)[a[1] as usize - 1].principal.value(),
        "PV" => {
            let flow: Vec<Usd> = std::iter::repeat_n(Usd::new(a[2]), a[1] as usize).collect();
            present_value(rate(a[0]), &flow).value() / (1.0 + a[0])
        }
        "NPV" => present_value(rate(a[0]), &amounts(&a[1..])).value() / (1.0 + a[0]),
        "IRR" => rate_of_return(&amounts(a)).unwrap().get(),
        "SCULPT" => sculpted_debt(&amounts(&a[2..]), rate(a[0]), Factor::new(a[1]).unwrap()).borrowed.value(),
        "XNPV" => dated_present_value(rate(a[0]), YEAR, &dated(&a[1..])).value(),
        "XIRR" => dated_rate_of_return(YEAR, &dated(a)).unwrap().get(),
        "SLN" => Depreciation::StraightLine { years: a[2] }.schedule(Usd::new(a[0]), Usd::new(a[1]))[0].value(),
        "DDB" => written_off(a, a[3], a[4], false),
        "VDB" => written_off(a, a[4], a[5], true),
        other => panic!("no function {other}"),
    }
}

#[test]
fn financial_functions_agree_with_a_spreadsheet() {
    let mut seen = std::collections::BTreeMap::new();
    for row in csv::Reader::from_path("tests/finance/spreadsheet.csv").unwrap().deserialize() {
        let (function, arguments, there): (String, String, f64) = row.unwrap();
        let numbers: Vec<f64> = arguments.split(' ').map(|number| number.parse().unwrap()).collect();
        let here = ours(&function, &numbers);
        let apart = (here - there).abs() / there.abs().max(1.0);
        assert!(apart < 1e-9, "{function}({arguments}): {here} here, {there} there");
        *seen.entry(function).or_insert(0) += 1;
    }
    assert_eq!(seen.len(), 12, "{seen:?}");
}
