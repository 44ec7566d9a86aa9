//! Two DGX H100 on 400G InfiniBand with round constants, for arithmetic by hand.

use super::call::{Call, Parts};
use super::wires::{Collective, Group, Network, ScaleUp, Wires};
use crate::catalog::collective_efficiency::{
    LibraryEfficiency, MpiEfficiency, NetworkEfficiency, NvlsEfficiency, PatEfficiency, ScaleUpEfficiency,
    SharpEfficiency,
};
use crate::units::{Bandwidth, Bytes, Factor, Fraction, Seconds};

pub(super) const fn us(us: f64) -> Seconds {
    Seconds::new(us * 1e-6)
}

pub(super) const fn gb(gb: f64) -> Bytes {
    Bytes::new(gb * 1e9)
}

fn gb_per_s(rate: f64) -> Bandwidth {
    Bandwidth::new(rate * 1e9)
}

fn share(share: f64) -> Fraction {
    Fraction::new(share).unwrap()
}

pub(super) fn wires() -> Wires {
    let library = LibraryEfficiency {
        ll_launch: us(7.5),
        ll128_launch: us(16.0),
        simple_launch: us(7.0),
        grouped_launch: us(33.0),
        remote_peer: us(1.0),
        ll_network_limit: gb_per_s(17.0),
        ll128_network_limit: gb_per_s(39.0),
        ll128_hop: Factor::new(1.5).unwrap(),
        grouped_ll: share(0.125),
        grouped_ll_network: share(0.25),
        single_ll: share(0.25),
        pipeline_stage: us(0.4),
        single_pipeline_stage: us(0.9),
        pipeline_limit: us(130.0),
        tree_chunk: Bytes::new(1e6),
        all_to_all: share(0.9),
        incast: share(0.2),
        paced_incast: share(0.3),
        process_launch: us(6.0),
        grouped_process_launch: us(10.0),
    };
    let efficiency = ScaleUpEfficiency {
        ring: share(0.8),
        tree: share(0.9),
        all_to_all: share(0.75),
        ll: share(0.3),
        ll_step: us(0.6),
        chain_step: us(2.5),
        simple_step: us(3.0),
        tree_step: us(4.0),
    };
    let nvls = NvlsEfficiency {
        launch: us(30.0),
        multimem: share(0.7),
        rack: share(0.8),
        tree_level: Factor::new(0.1).unwrap(),
        pipe: Bytes::new(3e6),
        pipe_level: Factor::new(0.5).unwrap(),
        tuner_link: share(0.824),
        tuner_efficiency: share(0.85),
        tuner_channel_two: gb_per_s(57.7),
        tuner_channel_many: gb_per_s(45.5),
    };
    Wires {
        scale_up: ScaleUp {
            line_rate: gb_per_s(450.0),
            peer_rate: gb_per_s(450.0),
            efficiency,
            ll128: true,
            nvls: Some(nvls),
            torus: None,
        },
        network: Network {
            line_rate: gb_per_s(50.0),
            efficiency: NetworkEfficiency {
                payload: share(0.96),
                ll_hop: us(10.0),
                simple_hop: us(14.0),
                tree_ll_extra: us(0.0),
                tree_hop_extra: us(2.0),
            },
            switch_latency: us(0.0),
        },
        library,
        pat: Some(PatEfficiency { launch: us(8.0), rank: us(2.0), level: share(0.5), rate: share(0.75) }),
        sharp: Some(SharpEfficiency {
            direct_hop: us(31.0),
            chain_hop: us(30.0),
            nvls_hop: us(18.0),
            nic: share(0.8),
            direct: share(0.85),
        }),
        mpi: MpiEfficiency {
            launch: us(5.0),
            message_inside: us(4.0),
            message_across: us(6.0),
            reduction: us(8.0),
            rate: share(0.9),
        },
    }
}

/// A rail each: `ranks` ranks, so many in a domain.
pub(super) fn group(ranks: u32, ranks_per_domain: u32) -> Group {
    Group::filling(ranks, ranks_per_domain, f64::from(ranks_per_domain))
}

/// A line's parts in microseconds: latency, bandwidth.
pub(super) fn line<T: Into<Option<Parts>>>(
    line: impl Fn(&Call<'_>) -> T,
    kind: Collective,
    payload: Bytes,
    group: &Group,
) -> (f64, f64) {
    let wires = wires();
    let parts: Option<Parts> = line(&Call::new(kind, payload, group, &wires)).into();
    let parts = parts.unwrap();
    (parts.latency / us(1.0), parts.bandwidth / us(1.0))
}

/// Holds a line against a derivation by hand.
#[track_caller]
pub(super) fn assert_us((latency, bandwidth): (f64, f64), by_hand: (f64, f64)) {
    assert!((latency - by_hand.0).abs() < 1e-6, "latency {latency}, by hand {}", by_hand.0);
    assert!((bandwidth - by_hand.1).abs() < 1e-6 * by_hand.1.max(1.0), "bandwidth {bandwidth}, by hand {}", by_hand.1);
}
