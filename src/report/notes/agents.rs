//! What agents' tasks are taken to be.

use crate::evaluate::Evaluation;
use crate::report::figure::percent;
use crate::units::{SECONDS_PER_DAY, Seconds, significant};

/// Users who begin tasks at all hours that are used.
pub(super) fn round_the_clock(evaluation: &Evaluation) -> Option<String> {
    let (fleet, point) = (evaluation.scenario.agents.as_ref()?.fleet?, evaluation.agents?);
    let tasks = point.tasks.over(Seconds::new(SECONDS_PER_DAY));
    let used = evaluation.scenario.finance.utilisation.get();
    let each = tasks * used / f64::from(fleet.users);
    Some(format!(
        "Users begin tasks round the clock, on all days, in the {} of hours that are used: {} a day each. Where they work for fewer hours, `finance.utilisation` is the share of these, and a task costs as much more.",
        percent(used),
        significant(each, 3)
    ))
}
