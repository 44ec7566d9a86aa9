//! Links that an engine's messages share with caches on their way from one pool to another.
//!
//! Both have half of a link while both are on their way, and all of it else. Messages come and go within a step, caches take
//! longer: each meets the other for its share of the time.

use super::exchange::reached;
use super::shape::ACTIVATION;
use crate::inference::{Hardware, Replica};
use crate::units::{Bandwidth, Bytes, RequestRate, Seconds};

/// The links that caches take from one pool to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Network cards.
    Cards,
    /// Links of a scale-up domain that both pools lie in.
    ScaleUp,
}

/// What a link does in a cycle of its engine: a step of decode, or a prompt where others follow without a pause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::inference) struct Cycle {
    /// Time for which messages have the link, were they alone on it.
    pub(in crate::inference) messages: Seconds,
    /// Time without any.
    pub(in crate::inference) rest: Seconds,
    /// Time of the caches that pass in a cycle, were they alone.
    pub(in crate::inference) caches: Seconds,
}

impl Cycle {
    /// Time of messages over that alone, at most twice.
    ///
    /// Messages are slowed by `s = 1 / (1 - p / 2)` where caches are on their way for a share `p` of the time, and caches take
    /// `1 / (1 - a / 2)` as long where messages are for `a = m s / (r + m s)`: so `p = t / (r + m s / 2)`, a quadratic in `s`.
    pub(in crate::inference) fn slowed(&self) -> f64 {
        let Self { messages, rest, caches } = *self;
        if messages <= Seconds::ZERO {
            return 1.0;
        }
        if caches >= rest + messages {
            return 2.0;
        }
        // (m / 2) s^2 + (r - t / 2 - m / 2) s - r = 0, in units of the messages' time.
        let (rest, caches) = (rest / messages, caches / messages);
        let half = rest - caches / 2.0 - 0.5;
        (half * half + 2.0 * rest).sqrt() - half
    }

    /// Share of the time for which messages have the link.
    pub(in crate::inference) fn messaging(&self) -> f64 {
        let messages = self.messages * self.slowed();
        if messages > Seconds::ZERO { messages / (self.rest + messages) } else { 0.0 }
    }

    /// Of the most caches that the link carries alone, those that it does beside messages, which then take twice as long.
    pub(in crate::inference) fn left_of(&self, alone: RequestRate) -> RequestRate {
        let Self { messages, rest, .. } = *self;
        if messages > Seconds::ZERO { alone * ((rest + messages) / (rest + messages * 2.0)) } else { alone }
    }

    /// Time of the caches over what the link has for them: beside messages, which then take twice as long, the link is theirs
    /// but for that of messages alone. Above one, more come than it carries.
    pub(in crate::inference) fn filled(&self) -> f64 {
        self.caches / (self.rest + self.messages)
    }
}

/// Share of the time for which messages have a link on which they, and caches, would be for such shares alone.
pub(in crate::inference) fn messaging(messages: f64, caches: f64) -> f64 {
    // a (1 - p / 2) = m and p (1 - a / 2) = t: p - a = t - m.
    let half = 1.0 - (caches - messages) / 2.0;
    (half - (half * half - 2.0 * messages).max(0.0).sqrt()).clamp(0.0, 1.0)
}

impl Hardware {
    /// The same where messages take so many times as long on some links.
    pub(in crate::inference) fn slowed_on(mut self, links: Links, slowed: f64) -> Self {
        match links {
            Links::Cards => {
                if let Some(across) = &mut self.across {
                    across.rate = across.rate / slowed;
                }
                if let Some(stages) = &mut self.stages {
                    stages.far.nics_per_domain /= slowed;
                }
                if let Some(reduction) = &mut self.reduction {
                    reduction.group.nics_per_domain /= slowed;
                }
            }
            Links::ScaleUp => {
                (self.links, self.exchange) = (self.links / slowed, self.exchange / slowed);
                if let Some(reduction) = &mut self.reduction {
                    let line_rate = &mut reduction.wires.scale_up.line_rate;
                    *line_rate = *line_rate / slowed;
                }
            }
        }
        self
    }
}

impl Replica<'_> {
    /// Time for which links of a rank carry messages of a decode step of so many tokens over all groups.
    pub(in crate::inference) fn decoding_on(&self, links: Links, tokens: f64) -> Seconds {
        let tokens = tokens / f64::from(self.spread.pipeline);
        let of_group = tokens / f64::from(self.spread.attention_data);
        let others = self.reducing_on(links, of_group) + self.handing_over_on(links, of_group);
        if !self.exchanges() {
            return others;
        }
        let (ranks, own) = (self.spread.stage(), of_group / self.tensor() * self.busiest());
        let all = self.shape.experts.iter().map(|layers| {
            let token = layers.token_both_ways() * layers.layers;
            match (links, self.beyond(ranks)) {
                (Links::Cards, Some(across)) => across.leaving(own, layers.per_token, token, ranks),
                (Links::Cards, None) => Seconds::ZERO,
                (Links::ScaleUp, Some(across)) => {
                    across.staying(own, layers.per_token, token, ranks, self.hardware.links)
                }
                (Links::ScaleUp, None) => self.wire(token * (own * reached(ranks, layers.per_token))),
            }
        });
        all.sum::<Seconds>() + others
    }

    /// The same of a prefill of so many tokens in each group.
    pub(in crate::inference) fn prefilling_on(&self, links: Links, of_group: f64) -> Seconds {
        let others = self.reducing_on(links, of_group) + self.handing_over_on(links, of_group);
        if !self.exchanges() {
            return others;
        }
        let (ranks, rate, own) =
            (self.spread.stage(), self.hardware.exchange, of_group / self.tensor() * self.busiest());
        let all = self.shape.experts.iter().map(|layers| {
            let token = layers.token_both_ways() * layers.layers;
            match (links, self.beyond(ranks)) {
                (Links::Cards, Some(across)) => across.crossing(own, layers.per_token, token, ranks),
                (Links::Cards, None) => Seconds::ZERO,
                (Links::ScaleUp, _) => token * (own * reached(ranks, layers.per_token)) / rate,
            }
        });
        all.sum::<Seconds>() + others
    }

    /// Time of all-reduces of all layers, of so many tokens' activations.
    fn reducing_on(&self, links: Links, tokens: f64) -> Seconds {
        if self.spread.tensor == 1 {
            return Seconds::ZERO;
        }
        let buffer = Bytes::new(tokens * self.shape.hidden * ACTIVATION) * self.reductions_of_layers();
        match (links, self.beyond(self.tensor())) {
            (Links::Cards, Some(across)) => across.reduced_across(buffer, self.tensor()),
            (Links::Cards, None) => Seconds::ZERO,
            (Links::ScaleUp, Some(across)) => across.reduced_within(buffer, self.hardware.links),
            (Links::ScaleUp, None) => self.wire(buffer * (2.0 * (self.tensor() - 1.0) / self.tensor())),
        }
    }

    /// Time of activations of so many tokens at a time on their way to the next stage, of all that a stage hands over while a
    /// token passes all of them; the mean of stages, of which some hand over by these links.
    fn handing_over_on(&self, links: Links, own: f64) -> Seconds {
        let Some(stages) = self.hardware.stages else { return Seconds::ZERO };
        let bytes = Bytes::new(own * self.shape.hidden * ACTIVATION) * f64::from(self.spread.pipeline);
        let card = &stages.wires.network;
        let cards = stages.far.nics_per_domain / f64::from(stages.far.ranks_per_domain.max(1));
        let (part, rate): (f64, Bandwidth) = match links {
            Links::Cards => {
                (stages.across, card.line_rate * (card.efficiency.payload.get() * stages.far.network_share * cards))
            }
            Links::ScaleUp => (stages.within, self.hardware.links),
        };
        bytes * (part / (stages.within + stages.across)) / rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(messages: f64, rest: f64, caches: f64) -> Cycle {
        let [messages, rest, caches] = [messages, rest, caches].map(Seconds::new);
        Cycle { messages, rest, caches }
    }

    #[test]
    fn who_shares_a_link_waits_for_the_other() {
        // Caches that never end take half of the link from messages: 2 and 6 s become 4 and 6, in which caches had 6 + 4 / 2.
        let full = cycle(2.0, 6.0, 8.0);
        assert!((full.slowed() - 2.0).abs() < 1e-12 && (full.filled() - 1.0).abs() < 1e-12);
        assert!((full.messaging() - 0.4).abs() < 1e-12);
        // Half as many: as said of both, messages are slowed by the share of the time that caches are on their way.
        let half = cycle(2.0, 6.0, 4.0);
        let (slowed, messaging) = (half.slowed(), half.messaging());
        let caching = 4.0 / (6.0 + 2.0 * slowed) / (1.0 - messaging / 2.0);
        assert!((slowed * (1.0 - caching / 2.0) - 1.0).abs() < 1e-12, "{slowed} {caching}");
        // The same by shares of a time that is given.
        let time = 6.0 + 2.0 * slowed;
        assert!((super::messaging(2.0 / time, 4.0 / time) - messaging).abs() < 1e-12);
        // Nobody waits for nothing.
        assert!((cycle(2.0, 6.0, 0.0).slowed() - 1.0).abs() < 1e-12 && cycle(0.0, 6.0, 3.0).messaging().abs() < 1e-12);
        assert!((super::messaging(0.3, 0.0) - 0.3).abs() < 1e-12 && super::messaging(0.0, 0.9).abs() < 1e-12);
    }

    #[test]
    fn more_of_either_is_never_faster() {
        for messages in [0.0, 0.1, 1.0, 10.0] {
            let slowed: Vec<f64> =
                (0..100).map(|caches| cycle(messages, 1.0, f64::from(caches) / 20.0).slowed()).collect();
            assert!(messages == 0.0 || slowed.is_sorted(), "{slowed:?}");
            assert!(slowed.iter().all(|slowed| (1.0..=2.0).contains(slowed)), "{slowed:?}");
        }
    }
}
