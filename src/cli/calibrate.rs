//! `clusterplan calibrate`

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

use super::calibrate_collectives::Collectives;
use super::calibrate_serving::Serving;
use super::network::{Network, NetworkArguments, gpus};
use super::options::{ENDINGS, Format};
use super::{Answer, Session};
use crate::calibration::{LoggedRun, NcclLog, SetTitle, calibrate_collectives, fit_set, read_nccl_log};
use crate::catalog::training_efficiency::TrainingEfficiency;
use crate::catalog::{Accelerator, Catalog, CollectiveEfficiency};
use crate::collectives::Collective;
use crate::diagnostics::{Code, Diagnostic};
use crate::load::{self, today};
use crate::report::{CalibrationTitle, calibration_grid, calibration_json, calibration_page, calibration_toml};
use crate::scenario::Communication;
use crate::study::Call;
use crate::units::Bytes;
use crate::validation::{Aliases, Domain, Run, training_runs};

/// The set of training constants that is fitted to the project's own runs.
const FITTED_SET: &str = "published-runs";
/// The set that it began from.
const SET_BEFORE: &str = "priors";

/// `clusterplan calibrate`
#[derive(Debug, Subcommand)]
pub(super) enum Calibrate {
    /// The constants of collectives from a table of runs: without each source in turn, or as a file of a catalog
    Collectives(Collectives),
    /// Efficiencies of links and networks from logs of nccl-tests
    NcclTests(NcclTests),
    /// The constants of serving engines, from tables of points and throughputs
    Serving(Serving),
    /// The constants of training steps, from tables of runs: a file for DIR/efficiency/training of a catalog
    Training(Training),
}

impl Calibrate {
    /// What a file of the answer may end in.
    pub(super) const fn endings(&self) -> &'static [&'static str] {
        match self {
            // What people get of logs is the catalog.
            Self::NcclTests(_) => &["toml", "csv", "json", "md"],
            Self::Training(_)
            | Self::Collectives(Collectives { toml: true, .. })
            | Self::Serving(Serving { toml: true, .. }) => &["toml"],
            Self::Collectives(_) | Self::Serving(_) => &ENDINGS,
        }
    }

    pub(super) fn run(&self, session: Session) -> (Answer, Session) {
        match self {
            Self::Collectives(command) => command.run(session),
            Self::NcclTests(command) => command.run(session),
            Self::Serving(command) => command.run(session),
            Self::Training(command) => command.run(session),
        }
    }
}

/// `clusterplan calibrate nccl-tests`
#[derive(Args, Debug)]
pub(super) struct NcclTests {
    /// Logs, each of one run on that node and fabric
    #[arg(required = true, value_name = "FILE")]
    logs: Vec<PathBuf>,
    #[command(flatten)]
    network: NetworkArguments,
    /// The collective, where logs don't say (before nccl-tests 2.17)
    #[arg(long, value_parser = kinds())]
    collective: Option<Collective>,
    /// Ranks, where logs don't list them
    #[arg(long, value_parser = gpus())]
    ranks: Option<u32>,
    /// Ranks on each node, where logs don't list hosts [default: as many as it has GPUs]
    #[arg(long, value_name = "GPUS", value_parser = gpus())]
    ranks_per_node: Option<u32>,
}

/// What the runs were on, and the constants that are fitted.
#[derive(Clone, Copy)]
struct Hardware<'a> {
    network: &'a Network,
    accelerator: &'a Accelerator,
    constants: &'a CollectiveEfficiency,
}

/// The words of the collectives.
fn kinds() -> impl TypedValueParser<Value = Collective> {
    let find = |word: String| Collective::ALL.iter().copied().find(|kind| kind.word() == word);
    PossibleValuesParser::new(Collective::ALL.iter().map(|kind| kind.word()))
        .map(move |word| find(word).unwrap_or_default())
}

impl NcclTests {
    fn run(&self, mut session: Session) -> (Answer, Session) {
        let catalog = session.catalog();
        let network = self.network.find(&catalog, &mut session);
        for log in &self.logs {
            session.reads(log);
        }
        let accelerator = network.as_ref().and_then(|network| catalog.accelerators.get(&network.node.accelerator));
        let set = |id: &str| catalog.collective_efficiency.get(id);
        let (Some(network), Some(constants), Some(before), Some(accelerator)) =
            (network, set("nccl"), set("before-logs"), accelerator)
        else {
            return (Answer::Mistaken, session);
        };
        let hardware = Hardware { network: &network, accelerator, constants };
        let runs: Vec<LoggedRun<'_>> = self.logs.iter().filter_map(|path| self.log(path, hardware, &session)).collect();
        if !session.sink.is_empty() {
            return (Answer::Mistaken, session);
        }
        let title = CalibrationTitle {
            node: network.node.id.clone(),
            fabric: network.fabric.entry.id.clone(),
            date: today(),
            logs: runs.iter().map(|run| run.name.clone()).collect(),
        };
        let answer = match calibrate_collectives(&runs, constants, before) {
            Ok(calibration) => Answer::Yes(match session.format {
                Format::Table => calibration_toml(&title, &calibration).into_bytes(),
                Format::Json => calibration_json(&title, &calibration).into_bytes(),
                Format::Csv => session.grid("", calibration_grid(&calibration, None)),
                Format::Md => session.page(&calibration_page(&title, &calibration)),
            }),
            Err(error) => Answer::No { data: None, message: format!("Nothing is fitted: {error}.\n") },
        };
        (answer, session)
    }

    /// One log and the call that it is of; mistakes go to the session.
    fn log<'a>(&self, path: &Path, hardware: Hardware<'a>, session: &Session) -> Option<LoggedRun<'a>> {
        let Hardware { network, accelerator, constants } = hardware;
        let sink = &session.sink;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let text = load::text(path, sink)?;
        let log = match read_nccl_log(&text) {
            Ok(log) => log,
            Err(error) => {
                sink.push(Diagnostic::new(Code::Syntax, format!("{name}: {error}")));
                return None;
            }
        };
        let missing = |what: &str, option: &str| {
            let message = format!("{name} does not say {what}");
            sink.push(Diagnostic::new(Code::MissingKey, message).hint(format!("say it with {option}")));
        };
        let kind = log.collective.or(self.collective);
        let ranks = log.ranks.or(self.ranks);
        if kind.is_none() {
            missing("which collective it ran", "--collective");
        }
        if ranks.is_none() {
            missing("how many ranks it had", "--ranks");
        }
        let (kind, ranks) = (kind?, ranks?);
        if ranks < 2 {
            let message = format!("{name} is of one rank, which moves nothing");
            sink.push(Diagnostic::new(Code::OutOfRange, message).hint("runs of two ranks and more say something"));
            return None;
        }
        if !log.agrees(kind, ranks) {
            let message = format!("{name}: its bandwidths are not those of {kind} on {ranks} ranks");
            let hint =
                "busbw over algbw is 2(n-1)/n of all_reduce, (n-1)/n of most others (nccl-tests, PERFORMANCE.md)";
            sink.push(Diagnostic::new(Code::Inconsistent, message).hint(hint));
            return None;
        }
        let call = Call {
            kind,
            payload: Bytes::ZERO,
            ranks,
            ranks_per_node: self.ranks_per_node(&log, ranks, &name, network, session),
            node: &network.node,
            accelerator,
            path: None,
            fabric: &network.fabric,
            topology: &network.choice,
            cluster: ranks,
            constants,
            allowed: None,
            gpus_per_process: log.gpus_per_process.unwrap_or(1),
            concurrent: 1,
            scattered: false,
            communication: Communication::USUAL,
        };
        match call.placed() {
            Ok(placed) => Some(LoggedRun { name, call, placed, points: log.points }),
            Err(infeasible) => {
                sink.push(Diagnostic::new(Code::Inconsistent, format!("{name}: {infeasible}")));
                None
            }
        }
    }

    /// Ranks on each node, where they are fewer than it has GPUs: as the log lists them, or as stated.
    fn ranks_per_node(
        &self,
        log: &NcclLog,
        ranks: u32,
        name: &str,
        network: &Network,
        session: &Session,
    ) -> Option<u32> {
        let gpus = network.node.accelerators;
        // A host of a rack is one of its trays, and ranks fill the rack before they leave it.
        let racks = network.node.accelerators_per_tray < gpus;
        let listed = log.hosts.filter(|_| !racks).map(|hosts| ranks.div_ceil(hosts));
        let each = listed.or(self.ranks_per_node);
        if let Some(each) = each.filter(|each| *each > gpus) {
            let message = format!("{name}: {each} ranks on a node of {gpus} GPUs");
            session.sink.push(Diagnostic::new(Code::Inconsistent, message).hint("another --node, or another log"));
        }
        each.filter(|each| *each < gpus && *each < ranks)
    }
}

/// `clusterplan calibrate training`
#[derive(Args, Debug)]
pub(super) struct Training {
    /// Tables of runs, in the columns of the project's own; rows whose role is \"holdout\" are left out
    #[arg(required = true, value_name = "FILE.csv")]
    files: Vec<PathBuf>,
    /// The set of constants to begin from: its ranges say how far runs may move each
    #[arg(long, value_name = "ID", default_value = FITTED_SET)]
    prior: String,
}

impl Training {
    fn run(&self, mut session: Session) -> (Answer, Session) {
        session.writes_toml();
        let documents = session.catalog_documents();
        let catalog = load::bind(&documents, &session.sink);
        let aliases = load::aliases(&mut session.sources, &session.sink);
        let key = ("efficiency/training".to_owned(), self.prior.clone());
        let (Some(prior), Some(document)) = (catalog.training_efficiency.get(&self.prior), documents.get(&key)) else {
            let ids: Vec<&str> = catalog.training_efficiency.iter().map(|entry| entry.id.as_str()).collect();
            let message = format!("no set of training constants has the id \"{}\"", self.prior);
            session.sink.push(Diagnostic::new(Code::UnknownId, message).hint(format!("there is {}", ids.join(", "))));
            return (Answer::Mistaken, session);
        };
        let mut runs: Vec<Run> = Vec::new();
        for path in &self.files {
            session.reads(path);
            let Some(text) = load::text(path, &session.sink) else { continue };
            match training_runs(&text, &catalog, &aliases, prior) {
                Ok(found) => runs.extend(found),
                Err(error) => session.sink.push(error.diagnostic(&path.display().to_string())),
            }
        }
        if !session.sink.is_empty() {
            return (Answer::Mistaken, session);
        }
        let fitted: Vec<&Run> = runs.iter().filter(|run| !run.is_holdout()).collect();
        let (text, document) = session.text_of(document);
        match fit_set(&fitted, prior) {
            Ok(fit) => {
                let mut file = self.counted_twice(&fitted, &catalog, &aliases, prior);
                file.push_str(&fit.to_toml(SetTitle::TRAINING, &self.prior, &text, &document));
                (Answer::Yes(file.into_bytes()), session)
            }
            Err(reason) => {
                let message = format!("The constants cannot be fitted to {} runs: {reason}\n", fitted.len());
                (Answer::No { data: None, message }, session)
            }
        }
    }

    /// A comment that says how many of the runs the set that is begun from was itself fitted to; empty where none.
    fn counted_twice(&self, runs: &[&Run], catalog: &Catalog, aliases: &Aliases, prior: &TrainingEfficiency) -> String {
        if self.prior != FITTED_SET {
            return String::new();
        }
        // The project's own table is read wherever the program works at all.
        let own = training_runs(Domain::Training.own_cases(), catalog, aliases, prior).unwrap_or_default();
        let known = |run: &&&Run| own.iter().any(|other| !other.is_holdout() && other.is_again(run));
        match runs.iter().filter(known).count() {
            0 => String::new(),
            twice => format!(
                "# {twice} of these {} runs count twice: `{FITTED_SET}`, which the fit began from, was itself fitted to them. \
                 `--prior {SET_BEFORE}` begins before them.\n",
                runs.len()
            ),
        }
    }
}
