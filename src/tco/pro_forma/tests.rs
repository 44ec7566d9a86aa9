use super::*;
use crate::finance::MacrsClass;
use proptest::prelude::*;

fn share(share: f64) -> Fraction {
    Fraction::new(share).unwrap()
}

/// A thousand now, 400 a year less 100 over four years, 200 when sold.
fn project() -> Project {
    Project {
        years: 4,
        outlays: vec![Outlay {
            year: 0,
            amount: Usd::new(1000.0),
            resale: Usd::new(200.0),
            sold: 4,
            delivery: true,
            written_off: Depreciation::StraightLine { years: 4.0 },
        }],
        running: vec![Usd::new(100.0); 4],
        revenue: vec![Usd::new(400.0); 4],
        prepayments: Vec::new(),
        debt: None,
        tax: None,
        discount: Rate::new(0.1).unwrap(),
    }
}

fn debt() -> Debt {
    Debt { share: share(0.7), rate: Rate::new(0.08).unwrap(), tenor: 4, fee: share(0.02), repayment: Repayment::Level }
}

fn tax() -> Tax {
    Tax { rate: share(0.25), first_year: Fraction::ZERO, loss_limit: share(0.8) }
}

#[test]
fn without_debt_and_tax_it_is_what_comes_in_less_what_goes_out() {
    let answer = project().pro_forma();
    let flow: Vec<f64> = answer.years.iter().map(|year| year.unlevered().value()).collect();
    assert_eq!(flow, [-1000.0, 300.0, 300.0, 300.0, 500.0]);
    // 300 x 3.169865 + 200 / 1.4641 - 1000 = 950.9596 + 136.6027 - 1000.
    assert!((answer.net_present_value.value() - 87.562).abs() < 1e-3);
    // 900 after three years; a fifth of the fourth.
    assert_eq!(answer.payback, Some(3.2));
    assert_eq!(answer.unlevered_return, answer.levered_return);
    assert_eq!((answer.least_cover, answer.short_in), (None, None));
}

#[test]
fn debt_raises_the_owners_return_where_the_project_earns_more_than_its_interest() {
    let answer = Project { debt: Some(debt()), ..project() }.pro_forma();
    let (unlevered, levered) = (answer.unlevered_return.unwrap(), answer.levered_return.unwrap());
    assert!(unlevered.get() > 0.08 && levered > unlevered);
    // 700 at 8% over four years is 211.345 a year; 300 / 211.345.
    assert!((answer.least_cover.unwrap() - 1.419_48).abs() < 1e-4);
    // 1000 - 700 x 0.98 are the owners' own.
    assert!((answer.years[0].owners().value() + 314.0).abs() < 1e-9);
}

#[test]
fn each_delivery_is_borrowed_against_when_it_is_paid() {
    let mut project = Project { debt: Some(Debt { tenor: 2, ..debt() }), ..project() };
    let second = Outlay { year: 1, ..project.outlays[0].clone() };
    let replaced = Outlay { year: 2, delivery: false, ..second.clone() };
    project.outlays.extend([second, replaced]);
    let years = project.pro_forma().years;
    let borrowed: Vec<f64> = years.iter().map(|year| year.borrowed.value()).collect();
    assert!(
        borrowed.iter().zip([686.0, 686.0, 0.0, 0.0, 0.0]).all(|(found, expected)| (found - expected).abs() < 1e-9)
    );
    // 700 at 8% over two years is 392.538 a year; both are served in the second.
    let service: Vec<f64> = years.iter().map(|year| (year.interest + year.principal).value()).collect();
    let expected = [0.0, 392.538, 785.077, 392.538, 0.0];
    assert!(service.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-3), "{service:?}");
}

#[test]
fn debt_that_outlives_the_project_is_paid_back_at_its_end() {
    let answer = Project { debt: Some(Debt { tenor: 8, ..debt() }), ..project() }.pro_forma();
    let paid: f64 = answer.years.iter().map(|year| year.principal.value()).sum();
    assert!((paid - 700.0).abs() < 1e-9);
}

#[test]
fn sculpted_debt_covers_every_year_alike() {
    let cover = Factor::new(1.5).unwrap();
    let shape = Debt { share: share(1.0), repayment: Repayment::Sculpted { cover }, ..debt() };
    let running = [100.0, 50.0, 150.0, 100.0].map(Usd::new).to_vec();
    let answer = Project { debt: Some(shape), running, ..project() }.pro_forma();
    let covers: Vec<f64> = answer.years.iter().filter_map(Year::cover).collect();
    assert_eq!(covers.len(), 4);
    assert!(covers.iter().all(|cover| (cover - 1.5).abs() < 1e-9), "{covers:?}");
}

#[test]
fn sculpted_debt_is_drawn_for_each_delivery() {
    // Half now and half a year later; by then the first draw's service takes its part of the cash.
    let delivery =
        |year: u32| Outlay { year, amount: Usd::new(500.0), resale: Usd::ZERO, ..project().outlays.remove(0) };
    let outlays = vec![delivery(0), delivery(1)];
    let shape = |cover: f64| Debt { repayment: Repayment::Sculpted { cover: Factor::new(cover).unwrap() }, ..debt() };
    let plenty = Project { outlays: outlays.clone(), debt: Some(shape(1.2)), ..project() }.pro_forma();
    // 300 a year are enough for 70% of both: 350 each, less 2%.
    for drawn in [0, 1] {
        assert!((plenty.years[drawn].borrowed.value() - 343.0).abs() < 1e-9, "{:?}", plenty.years[drawn]);
    }
    assert!(plenty.years.iter().filter_map(Year::cover).all(|cover| cover > 1.2 - 1e-9));
    // At a cover of 3, a hundred a year: 331.2 now, which leaves nothing to serve more with.
    let scarce = Project { outlays, debt: Some(shape(3.0)), ..project() }.pro_forma();
    assert!((scarce.years[0].borrowed.value() / 0.98 - 331.212_684).abs() < 1e-5, "{:?}", scarce.years[0]);
    assert!(scarce.years[1].borrowed.value().abs() < 1e-9);
    assert!(scarce.years.iter().filter_map(Year::cover).all(|cover| (cover - 3.0).abs() < 1e-9));
    let paid: f64 = scarce.years.iter().map(|year| year.principal.value()).sum();
    assert!((paid - 331.212_684).abs() < 1e-5);
}

#[test]
fn debt_that_was_sculpted_to_better_years_is_owed_in_worse_ones() {
    let cover = Factor::new(1.5).unwrap();
    let shape = Debt { share: share(1.0), repayment: Repayment::Sculpted { cover }, ..debt() };
    let agreed = Project { debt: Some(shape), ..project() };
    let expected = agreed.pro_forma();
    // 300 a year serve 200; a fifth less is earned: 220 over 200, and 120 where the market halves.
    let at = |revenue: f64| {
        Project { revenue: vec![Usd::new(revenue); 4], ..agreed.clone() }.pro_forma_owing(&expected.years)
    };
    let (less, half) = (at(320.0), at(220.0));
    assert!((less.least_cover.unwrap() - 1.1).abs() < 1e-9 && less.short_in.is_none());
    assert!((half.least_cover.unwrap() - 0.6).abs() < 1e-9);
    assert_eq!(half.short_in, Some(1));
    assert!((half.years[0].borrowed - expected.years[0].borrowed).value().abs() < 1e-9);
    // What was agreed on these very years is what is owed in them.
    assert_eq!(agreed.pro_forma_owing(&expected.years), expected);
}

#[test]
fn interest_and_depreciation_are_deducted() {
    let answer = Project { debt: Some(debt()), tax: Some(tax()), ..project() }.pro_forma();
    // 400 - 100 - 250 = 50: 12.5 without debt; interest of 56 leaves a loss of 6.
    assert!((answer.years[1].tax_without_debt.value() - 12.5).abs() < 1e-9);
    assert_eq!(answer.years[1].tax, Usd::ZERO);
    // The last year has the sale too: 50 + 200, less interest of 211.345 / 1.08 x 0.08 = 15.655.
    let last = answer.years[4];
    assert!((last.interest.value() - 15.655).abs() < 1e-3 && (last.tax_without_debt.value() - 62.5).abs() < 1e-9);
}

#[test]
fn a_schedule_longer_than_the_project_ends_with_it() {
    let mut project = Project { tax: Some(tax()), ..project() };
    project.outlays[0].written_off = Depreciation::Macrs(MacrsClass::Five);
    let written: f64 = project.pro_forma().years.iter().map(|year| year.written_off.value()).sum();
    assert!((written - 1000.0).abs() < 1e-9);
}

#[test]
fn whoever_receives_first_has_no_return() {
    let prepayments = [1500.0, 0.0, -1500.0].map(Usd::new).to_vec();
    let answer = Project { prepayments, ..project() }.pro_forma();
    assert_eq!(answer.unlevered_return, Err(NoReturn::ReceivesFirst));
}

#[test]
fn debt_that_cash_does_not_cover_is_told() {
    let answer =
        Project { debt: Some(debt()), revenue: [400.0, 400.0, 250.0, 400.0].map(Usd::new).to_vec(), ..project() };
    assert_eq!(answer.pro_forma().short_in, Some(3));
}

#[test]
fn who_owes_nothing_is_short_where_running_costs_are_not_earned() {
    let revenue = [400.0, 99.0, 400.0, 400.0].map(Usd::new).to_vec();
    assert_eq!(Project { revenue, ..project() }.pro_forma().short_in, Some(2));
}

proptest! {
    /// At no discount the present value is what comes in less what goes out, and what financiers receive beside the
    /// project adds up to it.
    #[test]
    fn at_no_discount_sums_are_plain(
        revenue in prop::collection::vec(0.0..1e9, 1..10),
        amount in 1.0..1e9, share_ in 0.0..1.0, rate in 0.0..0.3,
    ) {
        let years = u32::try_from(revenue.len()).unwrap();
        let project = Project {
            years,
            outlays: vec![Outlay { amount: Usd::new(amount), sold: years, ..project().outlays.remove(0) }],
            running: vec![Usd::new(10.0); revenue.len()],
            revenue: revenue.iter().copied().map(Usd::new).collect(),
            debt: Some(Debt { share: share(share_), rate: Rate::new(rate).unwrap(), tenor: years, ..debt() }),
            discount: Rate::ZERO,
            ..project()
        };
        let answer = project.pro_forma();
        let plain = revenue.iter().sum::<f64>() - 10.0 * f64::from(years) - amount + 200.0;
        prop_assert!((answer.net_present_value.value() - plain).abs() < 1e-6 * amount.max(1e9));
        let owners: f64 = answer.years.iter().map(|year| year.owners().value()).sum();
        let lenders: f64 = answer.years.iter().map(|year| (year.interest + year.principal - year.borrowed).value()).sum();
        prop_assert!((owners + lenders - plain).abs() < 1e-6 * amount.max(1e9));
    }
}
