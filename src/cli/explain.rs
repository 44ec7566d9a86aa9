//! `clusterplan explain`

use std::path::PathBuf;

use clap::Args;

use super::eval::no;
use super::options::Format;
use super::{Answer, Session};
use crate::diagnostics::{Code, Diagnostic, did_you_mean};
use crate::report::{METRICS, derivation, derivation_grid, derivation_json, derivation_page, metric};
use crate::scenario::{Scenario, ScenarioFile};
use crate::search;

/// `clusterplan explain`
#[derive(Args, Debug)]
pub(super) struct Explain {
    /// A scenario file
    scenario: PathBuf,
    /// A figure by its key, such as cost.usd_per_run: the keys of `eval --format json`
    metric: String,
    /// Steps that are followed down; all of them where it is not given
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
}

impl Explain {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        let mut catalog = session.catalog();
        let document = session.scenario(&self.scenario, &mut catalog);
        let found = metric(&self.metric);
        if found.is_none() {
            let message = format!("no figure has the key `{}`", self.metric);
            let hint = did_you_mean(&self.metric, METRICS.iter().map(|metric| metric.key)).map_or_else(
                || "`clusterplan eval --format json` has all keys, as group.name".to_owned(),
                |key| format!("did you mean `{key}`?"),
            );
            session.sink.push(Diagnostic::new(Code::UnknownWord, message).hint(hint));
        }
        let file = document.map(|document| ScenarioFile::read(&document, &session.sink));
        let scenario = file.and_then(|file| Scenario::resolve(&file, &catalog, &session.sink));
        let (Some(scenario), Some(found)) = (scenario, found) else { return (Answer::Mistaken, session) };
        let evaluation = match search::evaluate(scenario.clone()) {
            Ok(evaluation) => evaluation,
            Err(infeasible) => {
                let nearest = search::nearest(&scenario, &infeasible);
                return (no(&scenario.title, &infeasible, nearest.as_ref(), &session), session);
            }
        };
        let Some(tree) = derivation(found, &evaluation, &catalog, self.depth.unwrap_or(usize::MAX)) else {
            let message = format!("this scenario has no `{}`", found.key);
            let hint = "it lacks the part that the figure is of; `clusterplan eval` shows those that it has";
            session.sink.push(Diagnostic::new(Code::Inconsistent, message).hint(hint));
            return (Answer::Mistaken, session);
        };
        let answer = match session.format {
            Format::Json => format!("{:#}\n", derivation_json(&tree)).into_bytes(),
            Format::Csv => session.grid("", derivation_grid(&tree)),
            Format::Table | Format::Md => session.page(&derivation_page(found, &tree, &evaluation.scenario.title)),
        };
        (Answer::Yes(answer), session)
    }
}
