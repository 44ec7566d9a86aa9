//! Money over time, as a spreadsheet counts it: annuities, present value, rates of return, depreciation and debt.
//!
//! Nothing here knows of clusters. A flow is a list of amounts, one at the end of each period; where a list begins now, its
//! first amount is not discounted.

mod annuity;
mod debt;
mod depreciation;
mod present_value;
mod rate_of_return;

pub use annuity::{capital_recovery_factor, level_payment, levelising_factor, present_value_factor};
pub use debt::{Instalment, Sculpted, level_debt, sculpted_debt};
pub use depreciation::{Depreciation, MacrsClass};
pub use present_value::{Dated, dated_present_value, payback, present_value};
pub use rate_of_return::{NoReturn, dated_rate_of_return, rate_of_return};
