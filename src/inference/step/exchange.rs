//! Messages of an engine's ranks that lie in several scale-up domains.

use crate::collectives::{Collective, Group, Wires, best};
use crate::units::{Bandwidth, Bytes, Seconds};

/// What joins ranks of an engine that lie in several scale-up domains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Across {
    /// Ranks in one scale-up domain.
    pub domain: f64,
    /// What one rank sends to other domains while all do, in one direction.
    pub rate: Bandwidth,
    /// Latency of a dispatch to experts, or of their combine.
    pub latency: Seconds,
    /// Time in which kernels send and receive a token in both, a part of what both take.
    pub kernel: Seconds,
}

impl Across {
    /// Dispatch of `own` tokens of a rank to their experts among so many ranks, or the way back; `links` is what a rank's
    /// scale-up links carry meanwhile.
    ///
    /// Kernels of low latency send a copy to each of a token's `chosen` experts, straight through the network card where
    /// the expert is in another domain (DeepEP). Ranks are chosen alike, so `1 - domain / ranks` of the copies leave.
    pub(in crate::inference) fn dispatch(
        &self,
        own: f64,
        chosen: f64,
        token: Bytes,
        ranks: f64,
        links: Bandwidth,
    ) -> Seconds {
        self.latency + self.leaving(own, chosen, token, ranks).max(self.staying(own, chosen, token, ranks, links))
    }

    /// Time of the copies of a dispatch that leave a rank's domain, on its network cards.
    pub(in crate::inference) fn leaving(&self, own: f64, chosen: f64, token: Bytes, ranks: f64) -> Seconds {
        token * (own * chosen) * (1.0 - self.domain / ranks) / self.rate
    }

    /// Time of those that stay, on its scale-up links.
    pub(in crate::inference) fn staying(
        &self,
        own: f64,
        chosen: f64,
        token: Bytes,
        ranks: f64,
        links: Bandwidth,
    ) -> Seconds {
        token * (own * chosen) * (self.domain / ranks) / links
    }

    /// The same of so many tokens that bytes decide, as prefill has them: a token crosses once to each other domain that has one
    /// of its experts, and is handed on there (DeepEP's kernels of high throughput).
    pub(in crate::inference) fn forwarded(
        &self,
        own: f64,
        chosen: f64,
        token: Bytes,
        ranks: f64,
        links: Bandwidth,
    ) -> Seconds {
        self.crossing(own, chosen, token, ranks).max(token * (own * reached(ranks, chosen)) / links)
    }

    /// Of that, the time on a rank's network cards.
    pub(in crate::inference) fn crossing(&self, own: f64, chosen: f64, token: Bytes, ranks: f64) -> Seconds {
        let domains = ranks / self.domain;
        let crossing = reached(domains, chosen) * (1.0 - domains.recip());
        token * (own * crossing) / self.rate
    }

    /// Time of an all-reduce of a buffer on a rank's scale-up links: reduced within each domain, gathered there in the end.
    pub(in crate::inference) fn reduced_within(&self, buffer: Bytes, links: Bandwidth) -> Seconds {
        buffer * ring(self.domain) / links
    }

    /// And that on its network cards, by which each rank of a domain reduces its part.
    pub(in crate::inference) fn reduced_across(&self, buffer: Bytes, ranks: f64) -> Seconds {
        buffer * (ring(ranks / self.domain) / self.domain) / self.rate
    }
}

/// All-reduces of tensor ranks that lie in several scale-up domains, which engines leave to the library: their own kernels read
/// peers' memory, and reach no further than that (vLLM's custom all-reduce, TensorRT-LLM's one-shot and two-shot).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reduction {
    /// The tensor ranks.
    pub group: Group,
    /// What joins them.
    pub wires: Wires,
}

impl Reduction {
    /// One, of a buffer that each rank has.
    pub(in crate::inference) fn time(&self, buffer: Bytes) -> Seconds {
        best(Collective::AllReduce, buffer, &self.group, &self.wires).time
    }
}

/// What a rank sends of a buffer that is reduced around a ring of so many.
fn ring(ranks: f64) -> f64 {
    2.0 * (ranks - 1.0) / ranks
}

/// Of so many parts those that have one of a token's `chosen` experts: it goes to each once.
pub(in crate::inference) fn reached(parts: f64, chosen: f64) -> f64 {
    parts * (1.0 - (1.0 - parts.recip()).powf(chosen))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DeepEP's kernels of low latency on H800 with a 400 Gbit/s ConnectX-7 each: 128 tokens of 7,168 numbers to 8 experts,
    /// dispatched in FP8 with a scale for each 128, combined in BF16 (deepseek-ai/DeepEP, docs/legacy.md): ranks, and the
    /// microseconds of both.
    const PUBLISHED: [(f64, f64, f64); 5] = [
        (16.0, 118.0, 195.0),
        (32.0, 155.0, 273.0),
        (64.0, 173.0, 314.0),
        (128.0, 192.0, 369.0),
        (256.0, 194.0, 360.0),
    ];

    #[test]
    fn published_exchanges_are_met() {
        // The payload that rings reach on such a card: 97% of 50 GB/s.
        let across = Across {
            domain: 8.0,
            rate: Bandwidth::new(50e9 * 0.97),
            latency: Seconds::new(40e-6),
            kernel: Seconds::ZERO,
        };
        let links = Bandwidth::new(160e9);
        let mut errors = Vec::new();
        for (ranks, dispatched, combined) in PUBLISHED {
            for (token, measured) in [(7_168.0 * (1.0 + 4.0 / 128.0), dispatched), (7_168.0 * 2.0, combined)] {
                let time = across.dispatch(128.0, 8.0, Bytes::new(token), ranks, links);
                errors.push(time / Seconds::new(measured * 1e-6) - 1.0);
            }
        }
        assert!(errors.iter().all(|error| error.abs() < 0.13), "{errors:?}");
        let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        assert!(sizes[5] < 0.03, "{errors:?}");
    }

    #[test]
    fn tokens_that_are_handed_on_cross_as_published() {
        // DeepEP V2 on Hopper with a ConnectX-7 each, 8,192 tokens to 8 experts: 90 and 61 GB/s on two and four nodes of 8,
        // counting a copy for each node that a token goes to, its own among them (deepseek-ai/DeepEP, README at 0297fc8).
        let rate = Bandwidth::new(50e9 * 0.97);
        let across = Across { domain: 8.0, rate, latency: Seconds::new(40e-6), kernel: Seconds::ZERO };
        for (nodes, published) in [(2.0, 90e9), (4.0, 61e9)] {
            let token = Bytes::new(7_168.0);
            // Links reach 81% of their bandwidth there (726 of 900 GB/s on Blackwell): they do not bind.
            let time = across.forwarded(8_192.0, 8.0, token, nodes * 8.0, Bandwidth::new(0.81 * 450e9));
            let counted = token * (8_192.0 * reached(nodes, 8.0)) / time;
            assert!((counted / Bandwidth::new(published) - 1.0).abs() < 0.08, "{nodes}: {counted}");
        }
    }
}
