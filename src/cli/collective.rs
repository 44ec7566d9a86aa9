//! `clusterplan collective`

use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::eval::no;
use super::network::{Network, NetworkArguments, gpus};
use super::options::Format;
use super::{Answer, Session};
use crate::catalog::collective_efficiency::UNMEASURED;
use crate::catalog::fabric::{Encapsulation, Transport};
use crate::catalog::node::Host;
use crate::catalog::{Accelerator, CollectiveEfficiency, Fabric};
use crate::collectives::{ALGORITHMS, Algorithm, Collective, IntraNode, Library};
use crate::diagnostics::{Code, Diagnostic};
use crate::evaluate::Infeasible;
use crate::report::{Beside, CallTitle, call_grid, call_json, call_page};
use crate::scenario::{BoundFabric, Communication};
use crate::study::{Call, CallAnswer, call, calls_together};
use crate::units::{Bytes, Factor, Quantity, Ranged};

/// `clusterplan collective`
#[derive(Args, Debug)]
pub(super) struct CollectiveCommand {
    /// The collective
    #[arg(value_parser = kinds())]
    kind: Collective,
    #[command(flatten)]
    network: NetworkArguments,
    /// Ranks, one a GPU, side by side
    #[arg(long, value_parser = gpus())]
    ranks: u32,
    /// Ranks on each node [default: as many as it has GPUs]
    #[arg(long, value_name = "GPUS", value_parser = gpus())]
    ranks_per_node: Option<u32>,
    /// The size column of nccl-tests: 8GiB, "512 MB" or plain bytes
    #[arg(long, value_parser = bytes)]
    bytes: Bytes,
    /// Only this algorithm, or family of algorithms: ring, tree, nvls, ring-simple, mpi, ...
    #[arg(long)]
    algorithm: Option<String>,
    /// Only this protocol
    #[arg(long, value_parser = ["ll", "ll128", "simple"])]
    protocol: Option<String>,
    /// GPUs of the cluster that the ranks are part of [default: the ranks]
    #[arg(long, value_name = "GPUS", value_parser = gpus())]
    accelerators: Option<u32>,
    /// GPUs that one host process drives (-g of nccl-tests); 0 where a graph starts the work
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=4_096))]
    gpus_per_process: u32,
    /// Groups that send through the same network cards at the same time, this one included
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    concurrent: u32,
    /// The job's nodes lie anywhere in the cluster, not side by side
    #[arg(long)]
    scattered: bool,
    /// Lets the network's switches reduce, where they can (SHARP)
    #[arg(long)]
    sharp: bool,
    /// Lets the library use parallel aggregated trees (NCCL from 2.23)
    #[arg(long)]
    pat: bool,
    /// Network cards cannot reach the accelerators' memory: data is staged through the hosts'
    #[arg(long)]
    no_gpudirect: bool,
    /// The way between GPUs of a node [default: the node's own, the first of these that it has]
    #[arg(long, value_parser = paths())]
    intra_node: Option<IntraNode>,
    /// RDMA payload of a packet in bytes, instead of the fabric's
    #[arg(long)]
    mtu: Option<u32>,
    /// What is wrapped around packets, instead of the fabric's
    #[arg(long, value_parser = encapsulations())]
    encapsulation: Option<Encapsulation>,
    /// Flows that one card sends at a time, channels times queue pairs, where the fabric spreads them by a hash
    #[arg(long, value_name = "FLOWS", value_parser = clap::value_parser!(u32).range(1..=256))]
    flows_per_nic: Option<u32>,
    /// Another collective of the same ranks at the same time, such as alltoall:64MB
    #[arg(long, value_name = "KIND:BYTES", value_parser = other_call)]
    beside: Option<(Collective, Bytes)>,
}

/// The words of the collectives.
fn kinds() -> impl TypedValueParser<Value = Collective> {
    let find = |word: String| Collective::ALL.iter().copied().find(|kind| kind.word() == word);
    PossibleValuesParser::new(Collective::ALL.iter().map(|kind| kind.word()))
        .map(move |word| find(word).unwrap_or_default())
}

/// The words of the ways within a node.
fn paths() -> impl TypedValueParser<Value = IntraNode> {
    let find = |word: String| IntraNode::ALL.iter().copied().find(|path| path.word() == word);
    PossibleValuesParser::new(IntraNode::ALL.iter().map(|path| path.word()))
        .map(move |word| find(word).unwrap_or_default())
}

/// The words of what is wrapped around packets.
fn encapsulations() -> impl TypedValueParser<Value = Encapsulation> {
    let find = |word: String| Encapsulation::ALL.iter().copied().find(|kind| kind.word() == word);
    PossibleValuesParser::new(Encapsulation::ALL.iter().map(|kind| kind.word()))
        .map(move |word| find(word).unwrap_or_default())
}

/// A collective and its payload, `alltoall:64MB`.
fn other_call(text: &str) -> Result<(Collective, Bytes), String> {
    let (word, payload) = text.split_once(':').ok_or("a collective and its bytes, such as alltoall:64MB")?;
    let kind = Collective::ALL.iter().copied().find(|kind| kind.word() == word);
    let all = || Collective::ALL.iter().map(|kind| kind.word()).collect::<Vec<_>>().join(", ");
    Ok((kind.ok_or_else(|| format!("no collective \"{word}\"; there are {}", all()))?, bytes(payload)?))
}

/// Bytes with a unit, or a plain number of them, as nccl-tests takes it.
fn bytes(text: &str) -> Result<Bytes, String> {
    let found = match text.parse::<u64>() {
        Ok(count) => Bytes::new(count as f64),
        Err(_) => Bytes::parse(text).map_err(|error| error.to_string())?,
    };
    if found < Bytes::new(1.0) {
        return Err("no collective moves less than a byte".to_owned());
    }
    Ok(found)
}

impl CollectiveCommand {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        let catalog = session.catalog();
        let network = self.network.find(&catalog, &mut session);
        let allowed = self.allowed(&session);
        let constants = catalog.collective_efficiency.get("nccl");
        let accelerator = network.as_ref().and_then(|network| catalog.accelerators.get(&network.node.accelerator));
        let (Some(network), Some(constants), Some(accelerator)) = (network, constants, accelerator) else {
            return (Answer::Mistaken, session);
        };
        let fabric = self.fabric(&network.fabric, &session);
        let communication = self.communication(allowed.as_deref(), &fabric, &session);
        self.check(&network, accelerator, constants, &session);
        if !session.sink.is_empty() {
            return (Answer::Mistaken, session);
        }
        let asked = Call {
            kind: self.kind,
            payload: self.bytes,
            ranks: self.ranks,
            ranks_per_node: self.ranks_per_node,
            node: &network.node,
            accelerator,
            path: self.intra_node,
            fabric: &fabric,
            topology: &network.choice,
            cluster: self.accelerators.unwrap_or(self.ranks),
            constants,
            allowed: allowed.as_deref(),
            gpus_per_process: self.gpus_per_process,
            concurrent: self.concurrent,
            scattered: self.scattered,
            communication,
        };
        let answer = match self.answer(&asked, &network.node.id) {
            Ok(Some((title, answer))) => Answer::Yes(match session.format {
                Format::Json => call_json(&title, &answer).into_bytes(),
                Format::Csv => session.grid("", call_grid(&title, &answer)),
                Format::Table | Format::Md => session.page(&call_page(&title, &answer)),
            }),
            Ok(None) => Answer::No {
                data: None,
                message: format!("None of the allowed algorithms can carry out {} here.\n", self.kind),
            },
            Err(infeasible) => no("The network", &infeasible, None, &session),
        };
        (answer, session)
    }

    /// The answer under its title.
    fn answer(&self, asked: &Call<'_>, node: &str) -> Result<Option<(CallTitle, CallAnswer)>, Infeasible> {
        let mut beside = None;
        if let Some((kind, payload)) = self.beside {
            let other = Call { kind, payload, allowed: None, ..asked.clone() };
            let times = calls_together(asked, &other)?;
            beside = times.map(|times| Beside { kind, payload, times });
        }
        let title = CallTitle {
            kind: self.kind,
            payload: self.bytes,
            node: node.to_owned(),
            fabric: asked.fabric.entry.id.clone(),
            path: self.intra_node.unwrap_or(IntraNode::of(&asked.node.scale_up.kind)),
            beside,
        };
        Ok(call(asked)?.map(|answer| (title, answer)))
    }

    /// The fabric with the packets and flows that were asked for; mistakes go to the session.
    fn fabric(&self, fabric: &BoundFabric, session: &Session) -> BoundFabric {
        let mut entry = (*fabric.entry).clone();
        let changed = &mut entry.part;
        let mistake = |code, message: String, hint: &str| session.sink.push(Diagnostic::new(code, message).hint(hint));
        if let Some(mtu) = self.mtu {
            if !Fabric::PACKETS.contains(&mtu) {
                mistake(Code::OutOfRange, format!("an RDMA packet of {mtu} bytes"), "256, 512, 1024, 2048 or 4096");
            }
            changed.mtu = mtu;
        }
        if let Some(encapsulation) = self.encapsulation {
            if encapsulation != Encapsulation::None && changed.transport == Transport::Infiniband {
                let message = "InfiniBand keeps tenants apart by partitions, not by an overlay".to_owned();
                mistake(Code::Inconsistent, message, "leave --encapsulation out");
            }
            changed.encapsulation = encapsulation;
        }
        if let Some(flows) = self.flows_per_nic {
            if changed.spine_efficiency.is_some() || !changed.load_balancing.is_hashed() {
                let message =
                    format!("`{}` does not spread flows by a hash, so their number changes nothing", entry.id);
                mistake(Code::Inconsistent, message, "leave --flows-per-nic out");
            }
            changed.flows_per_nic = Factor::new(f64::from(flows)).map(Ranged::exact);
        }
        BoundFabric { entry: Arc::new(entry), ..fabric.clone() }
    }

    /// How the network is used: what is asked for by name is switched on; mistakes go to the session.
    fn communication(&self, allowed: Option<&[Algorithm]>, fabric: &BoundFabric, session: &Session) -> Communication {
        let wanted = |of: fn(Algorithm) -> bool| allowed.is_some_and(|allowed| allowed.iter().all(|&one| of(one)));
        let sharp = self.sharp || wanted(|algorithm| algorithm.library() == Library::Sharp);
        if sharp && !fabric.entry.in_network_reduction {
            let message = format!("the switches of `{}` do not reduce", fabric.entry.id);
            let hint = "leave --sharp out, or choose a fabric with in_network_reduction";
            session.sink.push(Diagnostic::new(Code::Inconsistent, message).hint(hint));
        }
        let pat = self.pat || wanted(|algorithm| algorithm == Algorithm::Pat);
        Communication { sharp, pat, gpudirect: !self.no_gpudirect }
    }

    /// Mistakes in what is asked of the node and its ranks.
    fn check(&self, network: &Network, accelerator: &Accelerator, constants: &CollectiveEfficiency, session: &Session) {
        let node = &network.node;
        for (known, what) in [
            (constants.scale_up.contains_key(&node.scale_up.kind), &node.scale_up.kind),
            (constants.network.contains_key(&network.fabric.entry.class), &network.fabric.entry.class),
        ] {
            if !known {
                let message = format!("no measured collective constants for \"{what}\"");
                session.sink.push(Diagnostic::new(Code::NotInCatalog, message).hint(UNMEASURED));
            }
        }
        let hinted = |message: String, hint: &str| {
            session.sink.push(Diagnostic::new(Code::Inconsistent, message).hint(hint));
        };
        if let Some(all) = self.accelerators.filter(|all| *all < self.ranks) {
            let message = format!("{} ranks are more than a cluster of {all} GPUs has", self.ranks);
            hinted(message, "leave --accelerators out where the ranks are all there is");
        }
        if let Some(each) = self.ranks_per_node.filter(|each| *each > node.accelerators) {
            let message = format!("{each} ranks on a node of {} GPUs", node.accelerators);
            hinted(message, "a rank has a GPU of its own");
        }
        let on_node = self.ranks_per_node.unwrap_or(node.accelerators).min(self.ranks);
        // At zero no process is on the way.
        if on_node.checked_rem(self.gpus_per_process).is_some_and(|rest| rest > 0) {
            let message = format!("processes of {} GPUs each on a node of {on_node} ranks", self.gpus_per_process);
            hinted(message, "--gpus-per-process divides the ranks of a node");
        }
        let own = IntraNode::of(&node.scale_up.kind);
        if self.intra_node == Some(IntraNode::ScaleUp) && own != IntraNode::ScaleUp {
            let message = format!("GPUs of `{}` have no links but {}", node.id, node.scale_up.kind);
            hinted(message, "leave --intra-node out, or choose pcie, host-memory or nic");
        }
        let over_pcie = self.intra_node.is_some_and(|path| path != own && path.kind().is_some());
        if over_pcie && node.host == Host::Grace {
            let (links, tray) = (&node.scale_up.kind, node.accelerators_per_tray);
            let message = match self.intra_node {
                Some(IntraNode::HostMemory) => format!(
                    "the memory of a Grace host joins the {tray} GPUs of a tray alone, by NVLink-C2C, on which no collective was measured"
                ),
                _ => format!(
                    "GPUs of `{}` reach each other by {links} and their host by NVLink-C2C: no PCIe joins them",
                    node.id
                ),
            };
            hinted(message, "leave --intra-node out, or choose nic");
        } else if (over_pcie || self.no_gpudirect) && node.host_bus(accelerator).is_none() {
            let message = format!("the catalog knows no PCIe link of `{}` or of its cards", node.id);
            hinted(
                message,
                "add `pcie` to the accelerator, or to nic_slots of the node, in a catalog given with --catalog",
            );
        }
    }

    /// The algorithms of a name, a family, a library or a protocol.
    fn allowed(&self, session: &Session) -> Option<Vec<Algorithm>> {
        if self.algorithm.is_none() && self.protocol.is_none() {
            return None;
        }
        let protocol = |algorithm: &Algorithm| {
            let tail =
                algorithm.name().rsplit('-').next().filter(|tail| ["ll", "ll128"].contains(tail)).unwrap_or("simple");
            self.protocol.as_deref().is_none_or(|wanted| wanted == tail)
        };
        let name = |algorithm: &Algorithm| self.algorithm.as_deref().is_none_or(|wanted| algorithm.answers_to(wanted));
        let found: Vec<Algorithm> = ALGORITHMS.iter().copied().filter(name).filter(protocol).collect();
        if let (true, Some(wanted), Some(protocol)) =
            (found.is_empty() && ALGORITHMS.iter().any(name), &self.algorithm, &self.protocol)
        {
            let message = format!("\"{wanted}\" does not run in {protocol}");
            session.sink.push(Diagnostic::new(Code::Inconsistent, message).hint("leave --protocol out"));
        } else if found.is_empty() {
            let names: Vec<&str> = ALGORITHMS.iter().map(|algorithm| algorithm.name()).collect();
            let message = format!("no algorithm \"{}\"", self.algorithm.as_deref().unwrap_or_default());
            let hint = format!("there are {}", names.join(", "));
            session.sink.push(Diagnostic::new(Code::UnknownWord, message).hint(hint));
        }
        Some(found)
    }
}
