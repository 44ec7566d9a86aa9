//! NVLS: the scale-up switches reduce and multicast. Between domains, a tree joins them (NVLSTree).

use super::call::{Call, Parts, parts};
use super::wires::Collective;
use crate::catalog::collective_efficiency::NvlsEfficiency;
use crate::units::{Bandwidth, Bytes, Seconds};

/// GPUs of a domain that head a reduction, at most (NCCL_MAX_NVLS_ARITY, src/include/device.h).
const MAX_HEADS: f64 = 32.0;
/// GPUs that one layer of switches joins; more make a rack.
const BOARD: f64 = 8.0;
/// Domains from which an NVLSTree halves its chunks (nvls.cc, ncclNvlsTuning).
const SMALL_CHUNK_DOMAINS: f64 = 4.0;

/// Heads of a domain.
pub(super) fn heads(call: &Call<'_>) -> f64 {
    call.per_domain.min(MAX_HEADS)
}

/// All-reduce within one domain.
pub(super) fn one_domain(call: &Call<'_>) -> Option<Parts> {
    let nvls = call.wires.scale_up.nvls.as_ref()?;
    if call.kind != Collective::AllReduce || call.crosses_network() {
        return None;
    }
    Some(parts(nvls.launch, piped(call, nvls, switch_rate(call, nvls, call.levels), call.levels)))
}

/// All-reduce across domains: NVLS within each, a tree per head between them.
///
/// A head's tree moves its share of 2(N-1)/N payloads through the head's NIC; with fewer heads than GPUs the other
/// GPUs' NICs stay idle.
pub(super) fn tree(call: &Call<'_>) -> Option<Parts> {
    let nvls = call.wires.scale_up.nvls.as_ref()?;
    if call.kind != Collective::AllReduce || !call.crosses_network() || call.fewest < 2.0 {
        return None;
    }
    let heads_network = (call.rank_network() * heads(call)).min(call.domain_network);
    let rate = switch_rate(call, nvls, call.levels).min(heads_network * (call.domains / (2.0 * (call.domains - 1.0))));
    Some(parts(nvls.launch + call.tree_hop() * (2.0 * call.levels), piped(call, nvls, rate, call.levels)))
}

/// How much smaller the chunks of an NVLSTree of many domains are.
fn chunk_cut(call: &Call<'_>, levels: f64) -> f64 {
    if levels > 0.0 && call.domains >= SMALL_CHUNK_DOMAINS { 2.0 } else { 1.0 }
}

/// Algorithm bandwidth of the switches under a tree of so many levels, or none.
///
/// Each GPU sends the payload to be reduced, and multicasts its g-th of the result: g+1 parts of g on its links.
pub(super) fn switch_rate(call: &Call<'_>, nvls: &NvlsEfficiency, levels: f64) -> Bandwidth {
    let g = call.per_domain;
    let rack = if g > BOARD { 1.0 / nvls.rack.get() - 1.0 } else { 0.0 };
    let loss = (rack + nvls.tree_level.get() * levels) * chunk_cut(call, levels);
    call.links * (nvls.multimem.get() * g / (g + 1.0) / (1.0 + loss))
}

/// Transfer with what the pipe holds before it flows at full rate: channels x heads x chunk, so it grows with the domain.
pub(super) fn piped(call: &Call<'_>, nvls: &NvlsEfficiency, rate: Bandwidth, levels: f64) -> Seconds {
    let pipe: Bytes = nvls.pipe * (call.per_domain * (1.0 + nvls.pipe_level.get() * levels) / chunk_cut(call, levels));
    let held = pipe * (call.payload / (call.payload + pipe));
    (call.payload + held) / rate
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{assert_us, gb, group, line};
    use super::*;

    #[test]
    fn one_domain_sends_nine_eighths() {
        // 0.7 x 450 x 8/9 = 280 GB/s; 24 MB of pipe hold 1 GB x 24 / 1,024 = 23.4375 MB.
        assert_us(line(one_domain, Collective::AllReduce, gb(1.0), &group(8, 8)), (30.0, (1e9 + 23.4375e6) / 280e3));
    }

    #[test]
    fn two_domains_lose_a_level() {
        // 280 / 1.1 = 254.5 GB/s, below the NICs' 384; the pipe grows by half to 36 MB.
        let hop = 10.0 + 1e6 / 48e3 + 2.0;
        assert_us(
            line(tree, Collective::AllReduce, gb(1.0), &group(16, 8)),
            (30.0 + 2.0 * hop, (1e9 + 36e6 * 1e9 / 1.036e9) / (280e3 / 1.1)),
        );
    }

    #[test]
    fn four_domains_halve_their_chunks() {
        // Loss 2 levels x 0.1 x 2; pipe 24 MB x (1 + 2 x 0.5) / 2 = 24 MB; NICs 384 x 4/6 = 256 GB/s.
        let hop = 10.0 + 1e6 / 48e3 + 2.0;
        assert_us(
            line(tree, Collective::AllReduce, gb(1.0), &group(32, 8)),
            (30.0 + 4.0 * hop, (1e9 + 23.4375e6) / (280e3 / 1.4)),
        );
    }

    #[test]
    fn a_rack_pays_for_its_second_layer() {
        // 0.7 x 450 x 64/65 x 0.8; pipe 192 MB holds 1 GB x 192 / 1,192.
        assert_us(
            line(one_domain, Collective::AllReduce, gb(1.0), &group(64, 64)),
            (30.0, (1e9 + 192e6 / 1.192) / (0.7 * 450e3 * 64.0 / 65.0 * 0.8)),
        );
    }
}
