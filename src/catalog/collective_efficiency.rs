//! What a communication library reaches on the wires: efficiencies, latencies and the library's own tuning constants.
//!
//! Hardware says what a link carries; this says what collectives get of it. Constants are keyed by the kind of scale-up
//! link (`nvlink4`) and by the class of network (`ib-cx7`), never by site, node or message size.

use std::collections::BTreeMap;

use super::constant::{Constant, Constants, Kind};
use crate::document::{Reader, Table, Value};
use crate::units::{Bandwidth, Bytes, Factor, Fraction, Ranged, Seconds};

/// What to do where no run was measured on a node's links or a fabric's class.
pub const UNMEASURED: &str = "add its section to an overlay of catalogs/efficiency/collectives, or let `calibrate \
                              collectives` write one from logs, and pass it with --catalog";

/// Declares a set of constants that is read as a whole: each is a number, or a table of `value`, `low` and `high`.
///
/// `Ranged<Set>` then holds three sets: the typical constants, the low end of each, and the high end of each.
macro_rules! constants {
    ($($(#[$doc:meta])* pub struct $name:ident { $($(#[$field_doc:meta])* pub $field:ident: $kind:ty,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $kind,)+
        }

        impl $name {
            fn read(reader: &mut Reader<'_>) -> Ranged<Self> {
                $(let $field: Ranged<$kind> = reader.get(stringify!($field));)+
                Ranged {
                    value: Self { $($field: $field.value),+ },
                    low: Self { $($field: $field.low),+ },
                    high: Self { $($field: $field.high),+ },
                }
            }
        }

        impl Constants for $name {
            const NAMES: &'static [&'static str] = &[$(stringify!($field)),+];
            const KINDS: &'static [Kind] = &[$(<$kind as Constant>::KIND),+];

            fn bases(&self) -> Vec<f64> {
                vec![$(self.$field.base()),+]
            }

            fn with(mut self, name: &str, base: f64) -> Option<Self> {
                match name {
                    $(stringify!($field) => self.$field = Constant::of_base(base)?,)+
                    _ => return None,
                }
                Some(self)
            }
        }
    )+};
}

constants! {
    /// What the library costs on any hardware.
    pub struct LibraryEfficiency {
        /// Start of a collective in the LL protocol.
        pub ll_launch: Seconds,
        /// Start of a collective in the LL128 protocol.
        pub ll128_launch: Seconds,
        /// Start of a collective in the Simple protocol.
        pub simple_launch: Seconds,
        /// Start of a group of point-to-point transfers in the Simple protocol.
        pub grouped_launch: Seconds,
        /// What each peer outside the scale-up domain adds to a group of point-to-point transfers.
        pub remote_peer: Seconds,
        /// Most that LL moves across a network, as bus bandwidth.
        pub ll_network_limit: Bandwidth,
        /// Most that LL128 moves across a network, as bus bandwidth.
        pub ll128_network_limit: Bandwidth,
        /// LL128 network hop against an LL one.
        pub ll128_hop: Factor,
        /// Share of LL's ring rate that grouped point-to-point transfers get of it in one domain.
        pub grouped_ll: Fraction,
        /// Share of that left across a network.
        pub grouped_ll_network: Fraction,
        /// Share of the scale-up rate that one point-to-point transfer gets in LL.
        pub single_ll: Fraction,
        /// Stages of a collective's pipeline times the cost of a chunk in one: what fills it grows as its root.
        pub pipeline_stage: Seconds,
        /// The same for a single point-to-point transfer.
        pub single_pipeline_stage: Seconds,
        /// Longest fill of a pipeline, reached when chunks are as large as the buffers.
        pub pipeline_limit: Seconds,
        /// Data that a GPU sends through its share of the NICs before a tree's next hop may start.
        pub tree_chunk: Bytes,
        /// Share of the NICs that an all-to-all between two domains reaches.
        pub all_to_all: Fraction,
        /// Loss to unsynchronised peers (incast) that an all-to-all of very many domains adds.
        pub incast: Fraction,
        /// The same where senders are paced after the fact (PFC and ECN, or end to end) instead of by credits ahead.
        pub paced_incast: Fraction,
        /// What a host process spends on each GPU that it drives, per collective; one GPU a process hides it.
        pub process_launch: Seconds,
        /// The same where the collective is a group of point-to-point transfers.
        pub grouped_process_launch: Seconds,
    }

    /// What collectives reach on a kind of scale-up link; rates are shares of the line rate of one direction.
    pub struct ScaleUpEfficiency {
        /// Ring collectives, as bus bandwidth.
        pub ring: Fraction,
        /// Trees, as a share of what rings reach.
        pub tree: Fraction,
        /// All-to-all, as bus bandwidth.
        pub all_to_all: Fraction,
        /// LL and LL128 within one domain, as bus bandwidth.
        pub ll: Fraction,
        /// Step of a ring or tree in LL; LL128 takes two.
        pub ll_step: Seconds,
        /// Step of a chain (broadcast, reduce) in LL.
        pub chain_step: Seconds,
        /// Step of a ring in Simple.
        pub simple_step: Seconds,
        /// Step of a tree in Simple.
        pub tree_step: Seconds,
    }

    /// Reduction and multicast in the switches of a scale-up domain (NVLS), and what NCCL's tuner assumes of them.
    pub struct NvlsEfficiency {
        /// Start of an NVLS collective.
        pub launch: Seconds,
        /// Share of the line rate that the switches' reduction and multicast together reach.
        pub multimem: Fraction,
        /// Share of that left in a domain of more than eight GPUs, whose links cross two layers of cable.
        pub rack: Fraction,
        /// Loss of rate per doubling of domains (NVLSTree).
        pub tree_level: Factor,
        /// Data per GPU in the pipe before it flows at full rate.
        pub pipe: Bytes,
        /// Growth of that per doubling of domains.
        pub pipe_level: Factor,
        /// Share of the line rate that NCCL's topology search gives the GPU's links.
        pub tuner_link: Fraction,
        /// NCCL's NVLS efficiency.
        pub tuner_efficiency: Fraction,
        /// NCCL's limit of an NVLSTree channel between two domains.
        pub tuner_channel_two: Bandwidth,
        /// NCCL's limit of an NVLSTree channel between more domains.
        pub tuner_channel_many: Bandwidth,
    }

    /// All-gather and reduce-scatter of one GPU a node over parallel aggregated trees (PAT).
    pub struct PatEfficiency {
        /// Start of a collective.
        pub launch: Seconds,
        /// What each rank adds.
        pub rank: Seconds,
        /// Share of a network hop that each doubling of ranks adds.
        pub level: Fraction,
        /// Share of the ring's rate.
        pub rate: Fraction,
    }

    /// Reduction in the switches of the network (SHARP), as the library uses it through its CollNet interface.
    pub struct SharpEfficiency {
        /// Way through the network of the direct form.
        pub direct_hop: Seconds,
        /// Way through the network of the chain.
        pub chain_hop: Seconds,
        /// Way through the network after NVLS.
        pub nvls_hop: Seconds,
        /// Share of a NIC's line rate that the switches' reduction reaches, of the payload before reduction.
        pub nic: Fraction,
        /// Share of the ring's link rate that the direct form's exchange within a domain reaches.
        pub direct: Fraction,
    }

    /// Data staged through the memory of the hosts, where network cards cannot reach the accelerators'.
    pub struct StagingEfficiency {
        /// Share of the PCIe rate that is left to each direction that one card's staged traffic reaches.
        pub rate: Fraction,
        /// What the memory of one host passes each direction for all of its cards together: every byte is written there
        /// and read again, both ways at the same time.
        pub host: Bandwidth,
        /// What one more crossing of PCIe adds to a hop across the network.
        pub crossing: Seconds,
    }

    /// What the form itself misses, whatever its constants: deviations of the logarithm of a time.
    pub struct FormSpread {
        /// Payloads below 1 MiB.
        pub small: Fraction,
        /// Payloads from 1 MiB.
        pub medium: Fraction,
        /// Payloads from 16 MiB.
        pub large: Fraction,
        /// Payloads from 1 GiB.
        pub huge: Fraction,
        /// How much slower calls of more ranks than were measured may be.
        pub many_ranks: Factor,
        /// How much slower NVLS trees over more racks than were measured may be.
        pub many_racks: Factor,
    }

    /// An MPI library that takes GPU buffers (CUDA-aware), instead of NCCL.
    pub struct MpiEfficiency {
        /// Start of a collective.
        pub launch: Seconds,
        /// A message within a scale-up domain.
        pub message_inside: Seconds,
        /// A message across the network.
        pub message_across: Seconds,
        /// Start of the kernel that adds up what arrived.
        pub reduction: Seconds,
        /// Share of a link's or NIC's payload rate that one large message reaches.
        pub rate: Fraction,
    }

    /// What collectives reach on a class of network: NIC generation with its transport and plugin.
    pub struct NetworkEfficiency {
        /// Share of a NIC's line rate that is payload.
        pub payload: Fraction,
        /// A hop in LL, and in trees.
        pub ll_hop: Seconds,
        /// A hop of a ring in Simple.
        pub simple_hop: Seconds,
        /// What the network plugin adds to a hop in LL where it is a tree's: what arrives is added up and handed on, which a
        /// ring of copies does not wait for.
        pub tree_ll_extra: Seconds,
        /// What the network plugin adds to each hop of a tree in Simple.
        pub tree_hop_extra: Seconds,
    }
}

/// A kind of scale-up link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScaleUpKind {
    /// Whether the library uses its LL128 protocol on such links: they must keep 128 bytes together.
    pub ll128: bool,
    /// What collectives reach on it.
    pub links: Ranged<ScaleUpEfficiency>,
    /// What its switches' reduction reaches, where they have one.
    pub nvls: Option<Ranged<NvlsEfficiency>>,
}

/// The constants of one communication library.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectiveEfficiency {
    /// What it costs on any hardware.
    pub library: Ranged<LibraryEfficiency>,
    /// Parallel aggregated trees.
    pub pat: Ranged<PatEfficiency>,
    /// Reduction in the network's switches.
    pub sharp: Ranged<SharpEfficiency>,
    /// MPI, held beside the library.
    pub mpi: Ranged<MpiEfficiency>,
    /// Staging through the memory of the hosts.
    pub staging: Ranged<StagingEfficiency>,
    /// What the form misses.
    pub form: FormSpread,
    /// By kind of scale-up link.
    pub scale_up: BTreeMap<String, ScaleUpKind>,
    /// By class of network.
    pub network: BTreeMap<String, Ranged<NetworkEfficiency>>,
}

impl CollectiveEfficiency {
    /// Reads the constants of a file.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            library: reader.table("library", LibraryEfficiency::read),
            pat: reader.table("pat", PatEfficiency::read),
            sharp: reader.table("sharp", SharpEfficiency::read),
            mpi: reader.table("mpi", MpiEfficiency::read),
            staging: reader.table("staging", StagingEfficiency::read),
            form: reader.table("form", FormSpread::read).value,
            scale_up: keyed(reader, "scale_up", |reader| ScaleUpKind {
                ll128: reader.get("ll128"),
                links: ScaleUpEfficiency::read(reader),
                nvls: reader.optional_table("nvls", NvlsEfficiency::read),
            }),
            network: keyed(reader, "network", NetworkEfficiency::read),
        }
    }
}

/// The tables below a key, by their own keys.
fn keyed<T>(
    reader: &mut Reader<'_>,
    key: &'static str,
    mut read: impl FnMut(&mut Reader<'_>) -> T,
) -> BTreeMap<String, T> {
    let path = reader.path_of(key);
    let sink = reader.sink();
    let Some(node) = reader.node(key) else { return BTreeMap::new() };
    let Value::Table(Table { entries }) = &node.value else {
        node.wrong_type(&path, "a table", sink);
        return BTreeMap::new();
    };
    let inner = |entry: &crate::document::Entry| {
        let mut reader = Reader::new(&entry.node, format!("{path}.{}", entry.key), sink)?;
        Some((entry.key.clone(), read(&mut reader)))
    };
    entries.iter().filter_map(inner).collect()
}
