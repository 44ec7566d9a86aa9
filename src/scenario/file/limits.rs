//! `serving.limits`: what latencies must stay below.

use crate::diagnostics::Code;
use crate::document::Reader;
use crate::units::Seconds;

/// `serving.limits`: what latencies must stay below, where given.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Mean time to the first token.
    pub ttft: Option<Seconds>,
    /// That of 95% of requests.
    pub ttft_p95: Option<Seconds>,
    /// Of 99%.
    pub ttft_p99: Option<Seconds>,
    /// Mean time between tokens.
    pub tpot: Option<Seconds>,
    /// That of 95% of tokens.
    pub tpot_p95: Option<Seconds>,
    /// Of 99%.
    pub tpot_p99: Option<Seconds>,
    /// Time of 95% of requests to their last token.
    pub e2e_p95: Option<Seconds>,
}

impl Limits {
    /// The dotted keys of limits of all requests, in the order of [`Limits::named`].
    pub const DOTTED: [&'static str; 7] = [
        "serving.limits.ttft",
        "serving.limits.ttft_p95",
        "serving.limits.ttft_p99",
        "serving.limits.tpot",
        "serving.limits.tpot_p95",
        "serving.limits.tpot_p99",
        "serving.limits.e2e_p95",
    ];

    /// The least that bounds first tokens, of the mean or of a share; none where nothing does.
    pub fn of_first_token(&self) -> Option<Seconds> {
        [self.ttft, self.ttft_p95, self.ttft_p99].into_iter().flatten().reduce(Seconds::min)
    }

    /// The same of times between tokens.
    pub fn between_tokens(&self) -> Option<Seconds> {
        [self.tpot, self.tpot_p95, self.tpot_p99].into_iter().flatten().reduce(Seconds::min)
    }

    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let before = r.sink().len();
        let read = Self {
            ttft: r.about("mean time to the first token").usually("no limit").such_as("500 ms").optional("ttft"),
            ttft_p95: r
                .about("time to the first token of 95% of requests")
                .usually("no limit")
                .such_as("1 s")
                .optional("ttft_p95"),
            ttft_p99: r
                .about("time to the first token of 99% of requests")
                .usually("no limit")
                .such_as("2 s")
                .optional("ttft_p99"),
            tpot: r.about("mean time between tokens").usually("no limit").such_as("40 ms").optional("tpot"),
            tpot_p95: r
                .about("time between tokens of 95% of them")
                .usually("no limit")
                .such_as("50 ms")
                .optional("tpot_p95"),
            tpot_p99: r
                .about("time between tokens of 99% of them")
                .usually("no limit")
                .such_as("80 ms")
                .optional("tpot_p99"),
            e2e_p95: r
                .about("time to the last token of 95% of requests")
                .usually("no limit")
                .such_as("30 s")
                .optional("e2e_p95"),
        };
        for (key, limit) in read.named() {
            // What is no time has been refused, and stands as none.
            if limit == Some(Seconds::ZERO) && r.sink().len() == before {
                let message = format!("`{}` is no time at all", r.path_of(key));
                r.report(key, Code::OutOfRange, message, "such as \"500 ms\"");
            }
        }
        read
    }

    /// These where they are given, and others where they are not.
    pub(in crate::scenario) fn or(self, others: Self) -> Self {
        Self {
            ttft: self.ttft.or(others.ttft),
            ttft_p95: self.ttft_p95.or(others.ttft_p95),
            ttft_p99: self.ttft_p99.or(others.ttft_p99),
            tpot: self.tpot.or(others.tpot),
            tpot_p95: self.tpot_p95.or(others.tpot_p95),
            tpot_p99: self.tpot_p99.or(others.tpot_p99),
            e2e_p95: self.e2e_p95.or(others.e2e_p95),
        }
    }

    /// What keeps both.
    pub(in crate::scenario) fn and(self, others: Self) -> Self {
        let least = |one: Option<Seconds>, other| one.into_iter().chain(other).reduce(Seconds::min);
        Self {
            ttft: least(self.ttft, others.ttft),
            ttft_p95: least(self.ttft_p95, others.ttft_p95),
            ttft_p99: least(self.ttft_p99, others.ttft_p99),
            tpot: least(self.tpot, others.tpot),
            tpot_p95: least(self.tpot_p95, others.tpot_p95),
            tpot_p99: least(self.tpot_p99, others.tpot_p99),
            e2e_p95: least(self.e2e_p95, others.e2e_p95),
        }
    }

    /// Each limit under its key.
    pub fn named(&self) -> [(&'static str, Option<Seconds>); 7] {
        let limits = [self.ttft, self.ttft_p95, self.ttft_p99, self.tpot, self.tpot_p95, self.tpot_p99, self.e2e_p95];
        let mut keys = Self::DOTTED.iter().map(|dotted| dotted.rsplit('.').next().unwrap_or(dotted));
        limits.map(|limit| (keys.next().unwrap_or_default(), limit))
    }
}
