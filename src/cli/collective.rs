//! `clusterplan collective`

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::network::{NetworkArguments, gpus};
use super::options::Format;
use super::session::message;
use super::{Answer, Session};
use crate::collectives::{ALGORITHMS, Algorithm, Collective};
use crate::diagnostics::{Code, Diagnostic};
use crate::report::{CallTitle, call_grid, call_json, call_page, infeasible_page};
use crate::study::{Call, call};
use crate::units::{Bytes, Quantity};

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
    #[arg(long, default_value_t = 1)]
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
}

/// The words of the collectives.
fn kinds() -> impl TypedValueParser<Value = Collective> {
    let find = |word: String| Collective::ALL.iter().copied().find(|kind| kind.word() == word);
    PossibleValuesParser::new(Collective::ALL.iter().map(|kind| kind.word()))
        .map(move |word| find(word).unwrap_or_default())
}

/// Bytes with a unit, or a plain number of them, as nccl-tests takes it.
fn bytes(text: &str) -> Result<Bytes, String> {
    if let Ok(count) = text.parse::<u64>() {
        return Ok(Bytes::new(count as f64));
    }
    Bytes::parse(text).map_err(|error| error.to_string())
}

impl CollectiveCommand {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        let catalog = session.catalog();
        let network = self.network.find(&catalog, &mut session);
        let allowed = self.allowed(&session);
        let constants = catalog.collective_efficiency.get("nccl");
        let (Some(network), Some(constants)) = (network, constants) else { return (Answer::Mistaken, session) };
        for (known, what) in [
            (constants.scale_up.contains_key(&network.node.scale_up.kind), &network.node.scale_up.kind),
            (constants.network.contains_key(&network.fabric.entry.class), &network.fabric.entry.class),
        ] {
            if !known {
                let message = format!("no measured collective constants for \"{what}\"");
                session.sink.push(Diagnostic::new(Code::NotInCatalog, message));
            }
        }
        if let Some(all) = self.accelerators.filter(|all| *all < self.ranks) {
            let message = format!("{} ranks are more than a cluster of {all} GPUs has", self.ranks);
            let hint = "leave --accelerators out where the ranks are all there is";
            session.sink.push(Diagnostic::new(Code::Inconsistent, message).hint(hint));
        }
        if let Some(each) = self.ranks_per_node.filter(|each| *each > network.node.accelerators) {
            let message = format!("{each} ranks on a node of {} GPUs", network.node.accelerators);
            session.sink.push(Diagnostic::new(Code::Inconsistent, message).hint("a rank has a GPU of its own"));
        }
        if !session.sink.is_empty() {
            return (Answer::Mistaken, session);
        }
        let title = CallTitle {
            kind: self.kind,
            payload: self.bytes,
            node: network.node.id.clone(),
            fabric: network.fabric.entry.id.clone(),
        };
        let asked = Call {
            kind: self.kind,
            payload: self.bytes,
            ranks: self.ranks,
            ranks_per_node: self.ranks_per_node,
            node: &network.node,
            fabric: &network.fabric,
            topology: &network.choice,
            cluster: self.accelerators.unwrap_or(self.ranks),
            constants,
            allowed: allowed.as_deref(),
            gpus_per_process: self.gpus_per_process,
            concurrent: self.concurrent,
            scattered: self.scattered,
            sharp: self.sharp,
            pat: self.pat,
        };
        let answer = match call(&asked) {
            Ok(Some(answer)) => Answer::Yes(match session.options.format {
                Format::Json => call_json(&title, &answer).into_bytes(),
                Format::Csv => session.grid("", call_grid(&title, &answer)),
                Format::Table | Format::Md => session.page(&call_page(&title, &answer)),
            }),
            Ok(None) => Answer::No {
                data: None,
                message: format!("None of the allowed algorithms can carry out {} here.\n", self.kind),
            },
            Err(infeasible) => {
                Answer::No { data: None, message: message(&infeasible_page("The network", &infeasible, None)) }
            }
        };
        (answer, session)
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
        let name = |algorithm: &Algorithm| {
            self.algorithm.as_deref().is_none_or(|wanted| {
                let name = algorithm.name();
                name == wanted || name.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('-'))
            })
        };
        let found: Vec<Algorithm> = ALGORITHMS.iter().copied().filter(name).filter(protocol).collect();
        if found.is_empty() {
            let names: Vec<&str> = ALGORITHMS.iter().map(|algorithm| algorithm.name()).collect();
            let message = format!("no algorithm \"{}\"", self.algorithm.as_deref().unwrap_or_default());
            let hint = format!("there are {}", names.join(", "));
            session.sink.push(Diagnostic::new(Code::UnknownWord, message).hint(hint));
        }
        Some(found)
    }
}
