//! `clusterplan merge`

use std::path::PathBuf;

use clap::Args;

use super::session::complain;
use super::{Answer, Session};
use crate::diagnostics::{Code, Diagnostic};
use crate::load;

/// `clusterplan merge`
#[derive(Args, Debug)]
pub(super) struct Merge {
    /// The files of all parts of one sweep, as `sweep --shard` wrote them, each with its label beside it
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

impl Merge {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        let Some(output) = session.options.output.clone() else {
            let hint = "name it with -o";
            session.sink.push(Diagnostic::new(Code::MissingKey, "the merged rows need a file").hint(hint));
            return (Answer::Mistaken, session);
        };
        self.files.iter().for_each(|file| session.reads(file));
        session.spares_inputs();
        if !session.sink.is_empty() {
            return (Answer::Mistaken, session);
        }
        match load::merge(&self.files, &output) {
            Ok(rows) => {
                complain(&format!("{rows} rows of {} parts\n", self.files.len()));
                (Answer::Written, session)
            }
            Err(error) => {
                let hint =
                    "parts are files of `sweep --shard I/N -o FILE.csv`, each with FILE.csv.shard.json beside it";
                session.sink.push(Diagnostic::new(Code::Inconsistent, error.to_string()).hint(hint));
                (Answer::Mistaken, session)
            }
        }
    }
}
