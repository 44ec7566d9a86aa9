//! The command line: arguments in, an answer out. Data goes to stdout or a file, everything else to stderr.

mod answer;
mod calibrate;
mod calibrate_collectives;
mod calibrate_serving;
mod catalog;
mod collective;
mod compare;
mod eval;
mod explain;
mod fabric;
mod memory;
mod merge;
mod model;
mod network;
mod options;
mod plan;
mod price;
mod progress;
mod scaling;
mod schema;
mod session;
mod shell;
mod sweep;
mod sweep_rows;
mod uncertainty;
mod validate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use answer::Answer;
use options::{ENDINGS, Options};
use session::Session;

/// Plan AI clusters: memory, speed, failures, parts, power and cost, on InfiniBand and on RoCEv2.
#[derive(Debug, Parser)]
#[command(name = "clusterplan", version, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 done; 1 an answer that is \"no\", such as a model that does not fit; 2 a mistake in what was asked."
)]
struct Arguments {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Command,
}

/// What can be asked.
#[derive(Debug, Subcommand)]
enum Command {
    /// How fast, how big, how reliable, how much? The whole chain for one scenario
    Eval(eval::Eval),
    /// How one figure comes about: its formula, what it is computed from, and the source behind each leaf
    Explain(explain::Explain),
    /// The same work on several fabrics, GPUs or prices, side by side against a baseline
    Compare(compare::Compare),
    /// The cheapest nodes, fabric, number of GPUs and layout that serve requests within limits, and the runners-up
    Plan(plan::Plan),
    /// Own, neocloud or hyperscaler: what a job costs end to end, returns, and where renting turns into owning
    Price(price::Price),
    /// The same work on more and more GPUs: how much faster, what does not shrink, and where more do not pay
    Scaling(scaling::ScalingCommand),
    /// A row for every combination of values: all of them, the best, what no other beats, how figures spread
    Sweep(sweep::SweepCommand),
    /// How far figures spread when what is not certain does, what they hang on, and how often one variant beats another
    Uncertainty(uncertainty::UncertaintyCommand),
    /// Parts of a sweep, made with --shard, put together into one file
    Merge(merge::Merge),
    /// Bytes of an accelerator by component: whether it fits, by how much, and what else would
    Memory(memory::Memory),
    /// Parameters, weights, cache and operations of a model: of the catalog, or read from its config.json
    Model(model::ModelCommand),
    /// How long a collective takes, by every algorithm: is a measured bus bandwidth normal?
    Collective(collective::CollectiveCommand),
    /// Switches, modules, cables, power and price of a network; as CSV a purchasing list
    Fabric(fabric::Fabric),
    /// What is known, with the source and date of each figure
    #[command(subcommand)]
    Catalog(catalog::Catalog),
    /// JSON Schema of the files that are read, for editors to complete and check
    #[command(subcommand)]
    Schema(schema::Schema),
    /// A script for a shell that completes commands and their options
    Completions(shell::Completions),
    /// The page of the manual, for man to show
    Man(shell::Man),
    /// The model against published measurements, or against your own
    Validate(validate::Validate),
    /// Constants fitted to your own measurements, as a catalog to lay over the built-in one
    #[command(subcommand)]
    Calibrate(calibrate::Calibrate),
}

impl Command {
    /// What a file of the answer may end in; nothing where it has no format of its own.
    fn endings(&self) -> &'static [&'static str] {
        match self {
            Self::Completions(_) | Self::Man(_) => &[],
            Self::Schema(_) => &["json"],
            Self::Merge(_) => &["csv"],
            Self::Model(command) => command.endings(),
            Self::Catalog(command) => command.endings(),
            Self::Calibrate(command) => command.endings(),
            _ => &ENDINGS,
        }
    }
}

/// Runs the program.
pub fn run() -> ExitCode {
    let Arguments { options, command } = Arguments::parse();
    let session = Session::new(options);
    session.takes_endings(command.endings());
    if !session.sink.is_empty() {
        return session.deliver(Answer::Mistaken);
    }
    let (answer, session) = match command {
        Command::Eval(command) => command.run(session),
        Command::Explain(command) => command.run(session),
        Command::Compare(command) => command.run(session),
        Command::Plan(command) => command.run(session),
        Command::Price(command) => command.run(session),
        Command::Scaling(command) => command.run(session),
        Command::Sweep(command) => command.run(session),
        Command::Uncertainty(command) => command.run(session),
        Command::Merge(command) => command.run(session),
        Command::Memory(command) => command.run(session),
        Command::Model(command) => command.run(session),
        Command::Collective(command) => command.run(session),
        Command::Fabric(command) => command.run(session),
        Command::Catalog(command) => command.run(session),
        Command::Schema(command) => command.run(session),
        Command::Completions(command) => command.run(session),
        Command::Man(command) => command.run(session),
        Command::Validate(command) => command.run(session),
        Command::Calibrate(command) => command.run(session),
    };
    session.deliver(answer)
}
