//! Prices of tokens by kind, and what selling them leaves.

use crate::units::{Fraction, Tokens, Usd, UsdPerToken};

/// Prices of a token by kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenPrices {
    /// Of prompts, computed.
    pub input: UsdPerToken,
    /// Of prompts, cached.
    pub cached: UsdPerToken,
    /// Of answers.
    pub output: UsdPerToken,
}

impl TokenPrices {
    /// What so many tokens come to.
    pub fn of(&self, fresh: Tokens, cached: Tokens, output: Tokens) -> Usd {
        self.input * fresh + self.cached * cached + self.output * output
    }

    /// Prices at which a share of the income is left where these are what tokens cost; none where all of it is to be left.
    pub fn at_margin(&self, margin: Fraction) -> Option<Self> {
        let over = 1.0 - margin.get();
        let of = |price: UsdPerToken| price / over;
        (over > 0.0).then(|| Self { input: of(self.input), cached: of(self.cached), output: of(self.output) })
    }
}

/// What tokens sold bring in, and what serving them costs, over the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenSales {
    /// Income.
    pub income: Usd,
    /// Cost.
    pub cost: Usd,
}

impl TokenSales {
    /// What is left over what it costs: 1 where the income is twice the cost.
    pub fn on_cost(&self) -> f64 {
        self.income / self.cost - 1.0
    }

    /// Share of the tokens that pays for all: where the same machines sell less than this share of what they could, buying
    /// the tokens at these prices is cheaper than serving them. Above one, serving never pays.
    pub fn break_even(&self) -> f64 {
        self.cost / self.income
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Seconds, UsdPerHour};

    /// DeepSeek's day: 608e9 tokens of prompts, 342e9 of them cached, 168e9 of answers in 24 h on 226.75 nodes of eight GPUs
    /// on average at $2 a GPU-hour; sold at R1's prices of $0.55, $0.14 and $2.19 a million tokens (open-infra-index, day 6,
    /// 2025-02-28).
    fn deepseek() -> TokenSales {
        let price = |usd: f64| UsdPerToken::new(usd * 1e-6);
        let prices = TokenPrices { input: price(0.55), cached: price(0.14), output: price(2.19) };
        let billion = |count: f64| Tokens::new(count * 1e9);
        let day = UsdPerHour::new(2.0).over(Seconds::new(86_400.0));
        TokenSales {
            income: prices.of(billion(608.0 - 342.0), billion(342.0), billion(168.0)),
            cost: day * (226.75 * 8.0),
        }
    }

    #[test]
    fn deepseeks_day_costs_and_earns_what_was_published() {
        let day = deepseek();
        // 226.75 x 8 x 24 x 2 = $87,072.
        assert!((day.cost.value() - 87_072.0).abs() < 1e-6);
        // $562,027 by its account; the rounded tokens give 266,000 x 0.55 + 342,000 x 0.14 + 168,000 x 2.19 = $562,100.
        assert!((day.income.value() / 562_027.0 - 1.0).abs() < 2e-4, "{}", day.income);
        // A cost profit margin of 545%.
        assert!((day.on_cost() - 5.45).abs() < 0.01, "{}", day.on_cost());
        // Selling 15.5% of that day's tokens would have paid for it.
        assert!((day.break_even() - 0.1549).abs() < 1e-4);
        // $0.112 for a million tokens of both kinds.
        let blended = day.cost / 776e3;
        assert!((blended.value() - 0.1122).abs() < 1e-4);
    }

    #[test]
    fn a_margin_is_a_share_of_the_price() {
        let cost = UsdPerToken::new(0.3e-6);
        let prices = TokenPrices { input: cost, cached: cost / 10.0, output: cost * 4.0 };
        let sold = prices.at_margin(Fraction::new(0.4).unwrap()).unwrap();
        // 0.3 / 0.6 = 0.5.
        assert!((sold.input / UsdPerToken::new(0.5e-6) - 1.0).abs() < 1e-12);
        assert!((sold.output / sold.input - 4.0).abs() < 1e-12);
        assert_eq!(prices.at_margin(Fraction::ONE), None);
    }
}
