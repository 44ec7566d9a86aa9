//! Each line by hand, and the laws that all of them keep.

use super::*;
use crate::catalog::node::Cooling;
use crate::catalog::pricebook::Evidence;
use crate::catalog::site::RackLimits;
use crate::diagnostics::Span;
use crate::scenario::{Amortisation, ByBook};
use crate::tco::CostTotals;
use crate::units::{Bytes, CarbonIntensity, Factor, Quantity, UsdPerJoule};
use proptest::prelude::*;

fn site(housing: Housing) -> Entry<Site> {
    let part = Site {
        pue: Ranged::exact(Factor::ONE),
        electricity: Ranged::exact(UsdPerJoule::parse("$0.08/kWh").unwrap()),
        carbon_intensity: CarbonIntensity::ZERO,
        cooling: Cooling::Air,
        rack: RackLimits::default(),
        housing,
    };
    Entry {
        id: "here".to_owned(),
        name: "Here".to_owned(),
        sources: Vec::new(),
        exchange: std::collections::BTreeSet::new(),
        at: Span::default(),
        document: std::sync::Arc::default(),
        part,
        sound: true,
    }
}

fn colocation() -> Housing {
    let rent = Ranged::exact(UsdPerWattSecond::parse("$130/kW-month").unwrap());
    Housing::Colocation { rent, includes_power: false }
}

fn line(name: &str, category: Category, per: Driver, amount: Amount) -> Line {
    let (name, evidence) = (name.to_owned(), Evidence::default());
    Line { name, category, per, amount, life: None, escalation: Fraction::ZERO, transports: Vec::new(), evidence }
}

fn money(usd: f64) -> Amount {
    Amount::Money(Ranged::exact(Usd::new(usd)))
}

fn share(share: f64) -> Amount {
    Amount::ShareOfParts(Ranged::exact(Factor::new(share).unwrap()))
}

fn book() -> PriceBook {
    let infiniband =
        Line { transports: vec![Transport::Infiniband], ..line("Licences", Category::Opex, Driver::Nic, money(100.0)) };
    let lines = vec![
        line("Staff", Category::Opex, Driver::Accelerator, money(350.0)),
        line("Installation", Category::Capex, Driver::CapexRatio, share(0.02)),
        Line {
            life: Some(Seconds::new(10.0 * SECONDS_PER_YEAR)),
            ..line("Racks", Category::Capex, Driver::Rack, money(12e3))
        },
        infiniband,
    ];
    PriceBook { owner: Vec::new(), prices: Vec::new(), lines }
}

fn parts(price: f64) -> Vec<PartCost> {
    let part = |name: &str, per, count, unit_price: f64| PartCost {
        name: name.to_owned(),
        per,
        count,
        unit_price: Usd::new(unit_price),
        basis: Basis::Quote,
    };
    vec![part("Nodes", Driver::Node, 128, 256_400.0 * price), part("Switches", Driver::Switch, 48, 36_000.0 * price)]
}

/// 1,024 accelerators at 1.40 kW of IT; a year's energy at 1.73 kW of the grid.
fn drivers() -> Drivers {
    Drivers {
        accelerators: 1_024,
        nodes: 128,
        racks: 32,
        switches: 48,
        nics: 1_024,
        optics: 3_072,
        cables: 2_048,
        fibre: Meters::ZERO,
        storage: Bytes::new(2e15),
        provisioned_it: Watts::new(1_400.0 * 1_024.0),
        energy_per_year: Watts::new(1_730.0 * 1_024.0) * Seconds::new(SECONDS_PER_YEAR),
    }
}

fn finance(rate: f64, life: f64, horizon: f64) -> Finance {
    Finance {
        horizon: Seconds::new(horizon * SECONDS_PER_YEAR),
        accelerator_life: Seconds::new(life * SECONDS_PER_YEAR),
        cost_of_capital: Fraction::new(rate).unwrap(),
        method: Amortisation::Annuity,
        by_book: ByBook::default(),
        hardware_age: Seconds::ZERO,
        inflation: Fraction::ZERO,
        utilisation: Fraction::new(0.8).unwrap(),
    }
}

fn costs(parts: &[PartCost], book: &PriceBook, finance: &Finance) -> CostBreakdown {
    let (drivers, site) = (drivers(), site(colocation()));
    breakdown(&Inputs { parts, drivers: &drivers, book, site: &site, transport: Transport::Infiniband, finance })
}

fn named<'a>(costs: &'a CostBreakdown, name: &str) -> &'a CostLine {
    costs.lines.iter().find(|line| line.name == name).unwrap()
}

#[test]
fn each_line_is_its_amount_times_its_driver() {
    let costs = costs(&parts(1.0), &book(), &finance(0.10, 4.0, 4.0));
    let amount = |name| named(&costs, name).amount.value();
    // Nodes 128 x 256,400 = 32,819,200 and switches 48 x 36,000 = 1,728,000; 2% of 34,547,200 is 690,944.
    assert!((amount("Nodes") - 32_819_200.0).abs() < 1e-6);
    assert!((amount("Installation") - 690_944.0).abs() < 1e-6);
    assert!((amount("Racks") - 384_000.0).abs() < 1e-6);
    // $130 x 12 x 1,433.6 kW = 2,236,416; $0.08 x 1.73 kW x 8,760 h x 1,024 = 1,241,481.
    assert!((amount("Colocation") - 2_236_416.0).abs() < 1e-3);
    assert!((amount("Electricity") - 1_241_481.0).abs() < 1.0);
    assert!((amount("Staff") - 358_400.0).abs() < 1e-6);
}

#[test]
fn a_gpu_hour_of_the_public_build_up() {
    // $283,000 a server all in, four years at 10%, $130 a kW-month of 1.40 kW, $0.08 a kWh of 1.73 kW:
    // 35,375 x 0.315471 = 11,159.8 a year; 2,184.0; 1,212.4; 14,556.2 / 8,760 = $1.662 an hour.
    let cluster = [PartCost {
        name: "Servers".to_owned(),
        per: Driver::Node,
        count: 128,
        unit_price: Usd::new(283_000.0),
        basis: Basis::Secondary,
    }];
    let (finance, none) =
        (finance(0.10, 4.0, 4.0), PriceBook { owner: Vec::new(), prices: Vec::new(), lines: Vec::new() });
    let totals = CostTotals::new(&costs(&cluster, &none, &finance), &drivers(), 1_024, &finance);
    assert!((totals.unit_costs(1.0).per_gpu_hour.value() - 1.662).abs() < 1e-3);
}

#[test]
fn lines_add_up_to_the_totals_to_the_last_digit() {
    let costs = costs(&parts(1.0), &book(), &finance(0.11, 5.0, 5.0));
    let sum = |capex: bool| {
        let of_kind = |line: &&CostLine| matches!(line.spending, Spending::Capex { .. }) == capex;
        costs.lines.iter().filter(of_kind).map(|line| line.amount).sum::<Usd>()
    };
    assert_eq!((sum(true), sum(false)), (costs.capex, costs.opex_per_year));
    assert_eq!(costs.lines.iter().map(|line| line.annualised).sum::<Usd>(), costs.annualised);
    assert_eq!(costs.basis, Basis::Assumed);
}

#[test]
fn a_line_of_another_transport_is_not_paid() {
    let (drivers, site, finance) = (drivers(), site(colocation()), finance(0.11, 5.0, 5.0));
    let (parts, book) = (parts(1.0), book());
    let over = |transport| {
        let inputs =
            Inputs { parts: &parts, drivers: &drivers, book: &book, site: &site, transport, finance: &finance };
        breakdown(&inputs).opex_per_year
    };
    let difference = over(Transport::Infiniband) - over(Transport::RoceV2);
    assert!((difference.value() - 102_400.0).abs() < 1e-6);
}

#[test]
fn a_building_is_written_off_over_its_own_life() {
    let building = Building {
        cost_per_kw: Ranged::exact(Usd::new(11_700.0)),
        life: Ranged::exact(Seconds::new(12.0 * SECONDS_PER_YEAR)),
        operations: Ranged::exact(UsdPerWattSecond::parse("$20/kW-month").unwrap()),
    };
    let (drivers, site, finance) = (drivers(), site(Housing::Own(building)), finance(0.07, 5.0, 5.0));
    let (parts, book) = (parts(1.0), book());
    let transport = Transport::RoceV2;
    let costs =
        breakdown(&Inputs { parts: &parts, drivers: &drivers, book: &book, site: &site, transport, finance: &finance });
    // 1,433.6 kW x $11,700 = 16,773,120; x 0.07 / (1 - 1.07^-12) = 0.125902: 2,111,770 a year.
    assert!((named(&costs, "Building").amount.value() - 16_773_120.0).abs() < 1e-6);
    assert!((named(&costs, "Building").annualised.value() - 2_111_770.0).abs() < 10.0);
    assert!((named(&costs, "Building operations").amount.value() - 344_064.0).abs() < 1e-3);
}

proptest! {
    #[test]
    fn price_times_k_is_cost_times_k(k in 0.1..10.0_f64, rate in 0.0..0.3_f64, life in 2.0..8.0_f64) {
        let (finance, none) = (finance(rate, life, 5.0), PriceBook { owner: Vec::new(), prices: Vec::new(), lines: Vec::new() });
        let (one, scaled) = (costs(&parts(1.0), &none, &finance), costs(&parts(k), &none, &finance));
        prop_assert!((scaled.capex / (one.capex * k) - 1.0).abs() < 1e-12);
        let rest = |costs: &CostBreakdown| costs.annualised - named(costs, "Nodes").annualised - named(costs, "Switches").annualised;
        prop_assert!((rest(&scaled) / rest(&one) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn without_interest_a_year_costs_its_part_of_the_sum(life in 2.0..8.0_f64) {
        let mut book = book();
        book.lines.iter_mut().for_each(|line| line.life = None);
        let costs = costs(&parts(1.0), &book, &finance(0.0, life, life));
        prop_assert!((costs.annualised * life / costs.total - 1.0).abs() < 1e-12);
        prop_assert!(((costs.capex + costs.opex_per_year * life) / costs.total - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_cheaper_line_never_raises_a_total(cut in 0.0..1.0_f64, rate in 0.0..0.3_f64, escalation in 0.0..0.1_f64) {
        let finance = finance(rate, 5.0, 5.0);
        let with = |staff: f64| {
            let mut book = book();
            book.lines[0].amount = money(staff);
            book.lines[0].escalation = Fraction::new(escalation).unwrap();
            costs(&parts(1.0), &book, &finance)
        };
        let (dear, cheap) = (with(350.0), with(350.0 * (1.0 - cut)));
        prop_assert!(cheap.annualised <= dear.annualised && cheap.total <= dear.total);
    }
}

#[test]
fn what_wears_out_within_the_horizon_is_bought_again() {
    let years = |count: f64| Seconds::new(count * SECONDS_PER_YEAR);
    for (horizon, times) in [(3.0, 1.0), (5.0, 1.0), (5.5, 2.0), (10.0, 2.0)] {
        assert!((super::purchases(years(horizon), years(5.0)) - times).abs() < 1e-12, "{horizon}");
    }
}
