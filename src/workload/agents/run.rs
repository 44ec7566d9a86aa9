//! One way through a task, and the tokens that it takes.

use crate::units::{Factor, Fraction, Tokens};
use crate::workload::Call;

/// The steps of one agent on its way through a task: a prompt that grows by what tools return and by what was answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// Calls of the model, one after another; a mean, at least one.
    pub steps: f64,
    /// Tokens that all tasks begin with: the system's instructions and the descriptions of tools.
    pub shared: Tokens,
    /// Tokens of the first prompt beyond those.
    pub first: Tokens,
    /// Tokens that tools or users add before each further step.
    pub added: Tokens,
    /// Tokens of an answer, reasoning among them.
    pub output: Tokens,
    /// Those of an answer that are left out of the next prompt.
    pub reasoning: Tokens,
}

/// How often the same way is gone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fan {
    /// Agents, each with a first prompt of its own.
    pub agents: u32,
    /// Ways that each agent tries from its first prompt.
    pub branches: u32,
    /// Attempts that a call takes on average, at least one.
    pub attempts: f64,
}

/// What the prefix cache keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reuse {
    /// Share of further steps that find the cache of the step before.
    pub session: Fraction,
    /// Share of first steps that find the shared tokens; a step that lost its session has them too.
    pub shared: Fraction,
    /// Tokens of a block of the cache: only whole blocks are found.
    pub block: Factor,
}

/// Calls and tokens of a run, all agents, branches and attempts together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunTokens {
    /// Calls of the model.
    pub calls: f64,
    /// Prompts, cached tokens among them.
    pub input: Tokens,
    /// Prompts' tokens that the cache has.
    pub cached: Tokens,
    /// Cached tokens of a session's own earlier steps: what has to be fetched where sessions wait elsewhere.
    pub resumed: Tokens,
    /// Answers.
    pub output: Tokens,
}

impl Run {
    /// Tokens of the first prompt.
    pub fn first_prompt(&self) -> Tokens {
        self.shared + self.first
    }

    /// Tokens that a step leaves in the prompt of the next beside the old prompt.
    pub fn growth(&self) -> Tokens {
        self.added + self.output - self.reasoning
    }

    /// Tokens of the last prompt.
    pub fn last_prompt(&self) -> Tokens {
        self.first_prompt() + self.growth() * (self.steps - 1.0)
    }

    /// Tokens of the last step's prompt and answer.
    pub fn longest(&self) -> Tokens {
        self.last_prompt() + self.output
    }

    /// Tokens of a prompt, the mean over steps.
    pub fn mean_prompt(&self) -> Tokens {
        (self.first_prompt() + self.last_prompt()) / 2.0
    }

    /// Standard deviation of prompts over steps, over their mean: they grow evenly.
    pub fn prompt_scatter(&self) -> f64 {
        let steps = (self.steps * self.steps - 1.0) / 12.0;
        self.growth() * steps.max(0.0).sqrt() / self.mean_prompt()
    }

    /// What of an answer the next prompt finds in the cache: all of it, or nothing where reasoning is cut out before it, as
    /// then what follows stands at another place.
    fn found_answer(&self) -> Tokens {
        if self.reasoning > Tokens::ZERO { Tokens::ZERO } else { self.output }
    }

    /// Calls and tokens with so many agents, branches and attempts, and what the cache keeps of them.
    ///
    /// With `n` steps, a first prompt of `p` and growth of `g`, prompts are `n p + g n (n - 1) / 2` tokens. A further step
    /// finds the last prompt (and answer) where its session is kept, and the shared tokens else; the first step of a further
    /// branch is a further step that adds nothing. An attempt repeated finds its whole prompt.
    pub fn tokens(&self, fan: Fan, reuse: Reuse) -> RunTokens {
        let (agents, branches) = (f64::from(fan.agents), f64::from(fan.branches));
        let further = self.steps - 1.0;
        let (session, shared) = (reuse.session.get(), self.shared * reuse.shared.get());
        // Of a prefix that ends anywhere in a block, half a block is lost on average.
        let lost = Tokens::new((reuse.block.get() - 1.0).max(0.0) / 2.0);
        let prompts = self.mean_prompt() * self.steps;
        let before = prompts - self.last_prompt() + self.found_answer() * further;
        let resumed = before.saturating_sub(lost * further) * session;
        let of_branch = resumed + shared * ((1.0 - session) * further);
        let first_again = self.first_prompt() * session + shared * (1.0 - session);
        let first = shared + first_again * (branches - 1.0);
        let once = (of_branch * branches + first) * agents;
        let again = (fan.attempts - 1.0) * agents * branches;
        let ways = agents * branches * fan.attempts;
        RunTokens {
            calls: self.steps * ways,
            input: prompts * ways,
            cached: once + prompts * again,
            resumed: resumed * (agents * branches),
            output: self.output * (self.steps * ways),
        }
    }
}

/// Parts that the further steps of a run are told apart by: prompts grow from the first to the last.
const PARTS: u32 = 16;

impl Run {
    /// The calls whose tokens [`Run::tokens`] adds up, `weight` for each of the run's.
    pub(super) fn calls(&self, fan: Fan, reuse: Reuse, weight: f64) -> Vec<Call> {
        let (agents, branches) = (f64::from(fan.agents), f64::from(fan.branches));
        let (session, shared_hit) = (reuse.session.get(), reuse.shared.get());
        let one = Tokens::new(1.0);
        let lost = (reuse.block.get() - 1.0).max(0.0) / 2.0;
        let [prompt, growth, shared, found] =
            [self.first_prompt(), self.growth(), self.shared, self.found_answer()].map(|tokens| tokens / one);
        let further = self.steps - 1.0;
        let mut calls = Vec::new();
        let mut add = |tokens: f64, cached: f64, ways: f64| {
            let cached = cached.clamp(0.0, tokens);
            calls.push(Call { new: tokens - cached, cached, weight: weight * ways });
        };
        // What all tasks begin with is there or not.
        let mut begins = |tokens: f64, ways: f64| {
            add(tokens, shared, ways * shared_hit);
            add(tokens, 0.0, ways * (1.0 - shared_hit));
        };
        begins(prompt, agents);
        begins(prompt, agents * (branches - 1.0) * (1.0 - session));
        // Prompts of further steps, evenly from the second to the last.
        let tokens = |part: u32| prompt + growth * (0.5 + further * (f64::from(part) + 0.5) / f64::from(PARTS));
        let (ways, again) = (agents * branches * further / f64::from(PARTS), fan.attempts - 1.0);
        for part in 0..PARTS {
            begins(tokens(part), ways * (1.0 - session));
        }
        add(prompt, prompt, agents * (branches - 1.0) * session);
        for part in 0..PARTS {
            add(tokens(part), tokens(part) - growth + found - lost, ways * session);
            add(tokens(part), tokens(part), ways * again);
        }
        add(prompt, prompt, agents * branches * again);
        calls
    }
}

impl RunTokens {
    /// Tokens of prompts that are computed.
    pub fn fresh(&self) -> Tokens {
        self.input - self.cached
    }

    /// Share of prompts' tokens that the cache has.
    pub fn hit(&self) -> f64 {
        self.cached / self.input
    }

    /// So much of this and so much of another.
    #[must_use]
    pub fn mix(&self, part: f64, other: &Self, rest: f64) -> Self {
        Self {
            calls: self.calls * part + other.calls * rest,
            input: self.input * part + other.input * rest,
            cached: self.cached * part + other.cached * rest,
            resumed: self.resumed * part + other.resumed * rest,
            output: self.output * part + other.output * rest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Fan = Fan { agents: 1, branches: 1, attempts: 1.0 };

    fn kept(block: f64) -> Reuse {
        Reuse { session: Fraction::ONE, shared: Fraction::ONE, block: Factor::new(block).unwrap() }
    }

    /// Codex with GPT-5.4 on SWE-bench Pro, 610 traces: a median of 33 turns, prompts that grow by 2,242 tokens a turn from
    /// 12K to 80K, 131 tokens in for one out, 94.2% of them cached (vLLM blog, "Serving Agentic Workloads at Scale with vLLM
    /// x Mooncake", 2026-05-06). An answer's length follows: 47,872 / 131 = 365 tokens. How much of it is reasoning that the
    /// next prompt lacks is not published.
    fn codex(reasoning: f64) -> Run {
        let output = 47_872.0 / 131.0;
        Run {
            steps: 33.0,
            shared: Tokens::ZERO,
            first: Tokens::new(12_000.0),
            added: Tokens::new(2_242.0 - output + reasoning),
            output: Tokens::new(output),
            reasoning: Tokens::new(reasoning),
        }
    }

    #[test]
    fn codex_traces_are_met() {
        let run = codex(0.0);
        // 12,000 + 32 x 2,242 = 83,744, near the 80K of the traces.
        assert!((run.last_prompt().value() - 83_744.0).abs() < 1e-6);
        let tokens = run.tokens(ONE, kept(128.0));
        assert!((tokens.calls - 33.0).abs() < 1e-12);
        // 33 x 12,000 + 2,242 x 33 x 32 / 2 = 1,579,776 tokens of prompts.
        assert!((tokens.input.value() - 1_579_776.0).abs() < 1e-3);
        assert!((tokens.input / tokens.output - 131.0).abs() < 1e-9);
        // Missed: 12,000 first, 32 times 1,876.6 added, and half of 127 tokens: 95.3%.
        let missed = 12_000.0 + 32.0 * (2_242.0 - 47_872.0 / 131.0 + 63.5);
        assert!((tokens.fresh().value() - missed).abs() < 1e-3);
        assert!((tokens.hit() - 0.953).abs() < 1e-3, "{}", tokens.hit());
        // Where any reasoning is cut out, what follows it is computed again: 94.6%, half a point from the traces' 94.2%.
        let cut = codex(200.0).tokens(ONE, kept(128.0));
        assert!((cut.hit() - 0.942).abs() < 0.005, "{}", cut.hit());
    }

    #[test]
    fn a_published_synthetic_agent_is_met() {
        // The same source's scaling test: 20K common tokens, 10K first input, 30 turns of 2,048 in and 900 out; answers are
        // about 1.3% of prompts, and more than 95% of prompts are cached.
        let run = Run {
            steps: 30.0,
            shared: Tokens::new(20e3),
            first: Tokens::new(10e3),
            added: Tokens::new(2_048.0),
            output: Tokens::new(900.0),
            reasoning: Tokens::ZERO,
        };
        let tokens = run.tokens(ONE, kept(16.0));
        // 30 x 30,000 + 2,948 x 435 = 2,182,380; 27,000 / 2,182,380 = 1.24%.
        assert!((tokens.input.value() - 2_182_380.0).abs() < 1e-6);
        assert!((tokens.output / tokens.input - 0.013).abs() < 0.001);
        assert!(tokens.hit() > 0.95 && tokens.hit() < 0.975, "{}", tokens.hit());
    }

    #[test]
    fn prompts_scatter_as_they_grow() {
        // 1,000, 1,500 and 2,000 tokens: 1,500 on average, deviating by sqrt(2 x 500^2 / 3) = 408.2.
        let run = Run {
            steps: 3.0,
            first: Tokens::new(1_000.0),
            added: Tokens::new(500.0),
            output: Tokens::ZERO,
            ..codex(0.0)
        };
        assert!((run.prompt_scatter() - 408.248 / 1_500.0).abs() < 1e-6);
    }

    #[test]
    fn without_sessions_only_shared_tokens_are_found() {
        let run = Run { shared: Tokens::new(800.0), first: Tokens::new(11_200.0), ..codex(0.0) };
        let reuse = Reuse { session: Fraction::ZERO, ..kept(1.0) };
        let tokens = run.tokens(ONE, reuse);
        assert!((tokens.cached.value() - 33.0 * 800.0).abs() < 1e-6);
        assert_eq!(tokens.resumed, Tokens::ZERO);
        assert!((tokens.hit() - 33.0 * 800.0 / 1_579_776.0).abs() < 1e-9);
    }

    #[test]
    fn agents_branches_and_attempts_multiply_calls_and_branches_share_their_beginning() {
        let run = Run { steps: 2.0, shared: Tokens::new(100.0), first: Tokens::new(50.0), ..codex(0.0) };
        let once = run.tokens(ONE, kept(1.0));
        let fan = Fan { agents: 3, branches: 2, attempts: 1.5 };
        let all = run.tokens(fan, kept(1.0));
        assert!((all.calls - 2.0 * 3.0 * 2.0 * 1.5).abs() < 1e-12);
        assert!((all.input / once.input - 9.0).abs() < 1e-12 && (all.output / once.output - 9.0).abs() < 1e-12);
        // An agent computes its first 50 tokens once for both branches, and each branch what is added once.
        let fresh = 3.0 * (50.0 + 2.0 * run.added.value());
        assert!((all.fresh().value() - fresh).abs() < 1e-6, "{}", all.fresh());
    }

    #[test]
    fn cached_tokens_are_never_more_than_prompts() {
        for session in [0.0, 0.3, 1.0] {
            for (agents, branches, attempts) in [(1, 1, 1.0), (4, 3, 2.5)] {
                let reuse = Reuse { session: Fraction::new(session).unwrap(), ..kept(64.0) };
                let tokens = codex(100.0).tokens(Fan { agents, branches, attempts }, reuse);
                assert!(tokens.fresh() > Tokens::ZERO && tokens.cached <= tokens.input);
            }
        }
    }
}
