//! What an agent's task costs, and one that succeeds.

use super::TokenPrices;
use crate::agents::Pace;
use crate::units::{Seconds, Usd, UsdPerHour};
use crate::workload::{RunTokens, Task};

/// What a task costs beside its tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskExtras {
    /// The tools of one call.
    pub tool: Usd,
    /// The machine that an agent's branch works on, as long as it does.
    pub sandbox: UsdPerHour,
}

/// Cost of a task by what it pays for; the parts add up to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskCost {
    /// Prompts, computed.
    pub input: Usd,
    /// Prompts, cached.
    pub cached: Usd,
    /// Answers.
    pub output: Usd,
    /// Tools.
    pub tools: Usd,
    /// Machines to work on.
    pub sandbox: Usd,
}

impl TaskCost {
    /// Of a run with these tokens that lasts so long on each of so many ways.
    fn of_run(prices: &TokenPrices, extras: &TaskExtras, tokens: &RunTokens, lasts: Seconds, ways: f64) -> Self {
        Self {
            input: prices.input * tokens.fresh(),
            cached: prices.cached * tokens.cached,
            output: prices.output * tokens.output,
            tools: extras.tool * tokens.calls,
            sandbox: extras.sandbox.over(lasts) * ways,
        }
    }

    /// Of a task on average, runs that fail among them.
    pub fn of_task(prices: &TokenPrices, extras: &TaskExtras, task: &Task, pace: &Pace) -> Self {
        let ways = f64::from(task.fan.agents) * f64::from(task.fan.branches);
        let lasts = task.mean(|run| pace.lasts(run, task.fan.attempts));
        Self::of_run(prices, extras, &task.tokens(), lasts, ways)
    }

    /// All of it.
    pub fn total(&self) -> Usd {
        self.input + self.cached + self.output + self.tools + self.sandbox
    }

    /// What a success costs: failures are paid too, and `rate` of the runs succeed. The same as a successful run's own cost
    /// and that of the `(1 - rate) / rate` failed runs that come with it.
    pub fn per_success(&self, rate: f64) -> Usd {
        self.total() / rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::fixture::PACE;
    use crate::units::UsdPerToken;
    use crate::workload::task;

    fn cost(task: &Task) -> TaskCost {
        let price = |usd: f64| UsdPerToken::new(usd * 1e-6);
        let prices = TokenPrices { input: price(1.0), cached: price(0.1), output: price(5.0) };
        let extras = TaskExtras { tool: Usd::new(0.001), sandbox: UsdPerHour::new(0.36) };
        TaskCost::of_task(&prices, &extras, task, &PACE)
    }

    #[test]
    fn a_task_pays_for_tokens_tools_and_its_machine() {
        let of = cost(&task(1.0, 10.0));
        // Computed: 1,000 + 9 x 400 = 4,600 tokens at $1 a million; of 32,500 in prompts 27,900 cached at a tenth; answers 1,000 at $5.
        assert!((of.input.value() - 0.0046).abs() < 1e-12 && (of.cached.value() - 0.00279).abs() < 1e-12);
        assert!((of.output.value() - 0.005).abs() < 1e-12 && (of.tools.value() - 0.01).abs() < 1e-12);
        // 100 s at $0.36 an hour.
        assert!((of.sandbox.value() - 0.01).abs() < 1e-12);
        assert!((of.total().value() - 0.03239).abs() < 1e-12);
    }

    #[test]
    fn a_success_pays_for_the_failures_beside_it() {
        let (success, failure) = (cost(&task(1.0, 10.0)).total(), cost(&task(1e-12, 30.0)).total());
        let per_success = cost(&task(0.64, 30.0)).per_success(0.64);
        // 0.36 / 0.64 failed runs for each that succeeds.
        let by_hand = success + failure * (0.36 / 0.64);
        assert!((per_success / by_hand - 1.0).abs() < 1e-9, "{per_success} and {by_hand}");
        assert!(per_success > cost(&task(0.64, 10.0)).per_success(0.64), "longer failures cost more");
    }

    #[test]
    fn published_costs_of_successes_are_cost_over_success() {
        // $1.193 a task at 64.0%, an agent on SWE-bench Verified (whatsthebestcodeagent.com): $1.86 a success.
        let paid = Usd::new(1.193);
        let cost = TaskCost { input: paid, cached: Usd::ZERO, output: Usd::ZERO, tools: Usd::ZERO, sandbox: Usd::ZERO };
        assert!((cost.per_success(0.64).value() - 1.864).abs() < 1e-3);
    }
}
