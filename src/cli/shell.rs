//! `clusterplan completions` and `clusterplan man`: what a shell and a manual know of the arguments.

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man as Manual;

use super::{Answer, Arguments, Session};
use crate::diagnostics::{Code, Diagnostic, did_you_mean};

/// `clusterplan completions`
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell that will read them
    shell: Shell,
}

impl Completions {
    pub(super) fn run(&self, session: Session) -> (Answer, Session) {
        session.writes_text();
        let mut command = Arguments::command();
        let name = command.get_name().to_owned();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        (Answer::Yes(script), session)
    }
}

/// `clusterplan man`
#[derive(Debug, Args)]
pub(super) struct Man {
    /// The command whose page it is, such as eval or calibrate training; of the program where none is named
    command: Vec<String>,
}

impl Man {
    pub(super) fn run(&self, session: Session) -> (Answer, Session) {
        session.writes_text();
        let mut whole = Arguments::command();
        whole.build();
        let mut command = &whole;
        for word in &self.command {
            let Some(found) = command.find_subcommand(word) else {
                let message =
                    format!("`{word}` is no command of {}", command.get_bin_name().unwrap_or(command.get_name()));
                let names = || command.get_subcommands().map(Command::get_name);
                let hint = did_you_mean(word, names()).map_or_else(
                    || format!("it has {}", names().collect::<Vec<_>>().join(", ")),
                    |name| format!("did you mean `{name}`?"),
                );
                session.sink.push(Diagnostic::new(Code::UnknownWord, message).hint(hint));
                return (Answer::Mistaken, session);
            };
            command = found;
        }
        let mut page = Vec::new();
        let answer = match Manual::new(command.clone()).render(&mut page) {
            Ok(()) => Answer::Yes(page),
            Err(error) => Answer::No { data: None, message: format!("cannot write the page: {error}\n") },
        };
        (answer, session)
    }
}
