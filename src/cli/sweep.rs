//! `clusterplan sweep`

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;

use super::options::Format;
use super::progress::Progress;
use super::session::complain;
use super::sweep_rows::{Rows, write_rows};
use super::{Answer, Session};
use crate::catalog::Catalog;
use crate::diagnostics::{Code, Diagnostic};
use crate::report::{BreakEvenOf, all_figures, sweep_csv, sweep_figures, sweep_json, sweep_page, sweep_size};
use crate::scenario::ScenarioFile;
use crate::sweep::{Aim, Column, ConditionError, Cursor, MOST_KEYS, Reduced, Reduction, Shard, Sweep, Wanted};

/// More rows than this are not begun unasked.
const MOST_ROWS: u64 = 10_000_000;

/// What rows are the best in where nobody says, of a run and of serving.
const USUAL_BY: [&str; 2] = ["cost.usd_per_run", "cost.usd_per_mtok_blended"];

/// Costs that rows have, of a run and of serving.
const COSTS: [&str; 2] = ["cost.usd_per_run", "cost.usd_per_gpu_hour"];
const COSTS_OF_SERVING: [&str; 3] = ["cost.usd_per_mtok_blended", "cost.usd_per_mtok_output", "cost.usd_per_gpu_hour"];

/// Where nothing is said of what is kept, people see so many of the best rows.
const SHOWN: usize = 50;

/// What is kept, by the command line or else by the scenario.
struct Asked {
    by: String,
    groups: Vec<String>,
    break_even: Option<String>,
}

/// Bytes of a part: a fraction of a second's rows.
const PART: usize = 1 << 22;

/// `clusterplan sweep`
#[derive(Args, Debug)]
pub(super) struct SweepCommand {
    /// A scenario file with a [sweep] table
    scenario: PathBuf,
    /// Keeps the N best rows only
    #[arg(long, value_name = "N")]
    top: Option<NonZeroUsize>,
    /// What is best: a key, the less the better; max:KEY, the more
    /// [default: the scenario's, or cost.usd_per_run, or cost.usd_per_mtok_blended where nothing is trained]
    #[arg(long, value_name = "KEY")]
    by: Option<String>,
    /// Keeps the rows that no other beats in these keys; max:KEY where more is better
    #[arg(long, value_name = "KEY,KEY", value_delimiter = ',')]
    pareto: Vec<String>,
    /// Keeps the best row of each group with the same values of these keys
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    group_by: Vec<String>,
    /// Shows at which value of this axis the order turns, against the rows that do not have it, for each group
    #[arg(long, value_name = "KEY")]
    break_even: Option<String>,
    /// Shows how these keys spread: least, P10, P50, P90, most
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    quantiles: Vec<String>,
    /// Leaves out rows that do not meet it, such as "cost.usd_per_run < 2e6 and memory.fits = true"
    #[arg(long = "where", value_name = "CONDITION")]
    conditions: Vec<String>,
    /// Figures of a row beside the usual ones; "all" for all
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    figures: Vec<String>,
    /// Begins a sweep of up to so many rows
    #[arg(long, value_name = "N", default_value_t = MOST_ROWS)]
    max_points: u64,
    /// Does a part of the rows only, the Ith of N counted from zero; `merge` puts the files together
    #[arg(long, value_name = "I/N", value_parser = shard)]
    shard: Option<Shard>,
    /// Writes parts of about so many bytes, which an interrupted sweep goes on from
    #[arg(long, value_name = "BYTES", default_value_t = PART)]
    part_bytes: usize,
}

impl SweepCommand {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        let mut catalog = session.catalog();
        let Some(document) = session.scenario(&self.scenario, &mut catalog) else { return (Answer::Mistaken, session) };
        let file = ScenarioFile::read(&document, &session.sink);
        let Some(wanted) = file.sweep.filter(|sweep| !sweep.axes.is_empty()) else {
            if session.sink.is_empty() {
                let hint = "add [sweep] with axes = [{ key = \"cluster.fabric\", values = [\"quantum-2-ndr\", \"roce-400g\"] }]";
                session.sink.push(Diagnostic::new(Code::MissingKey, "the scenario has no axes").hint(hint));
            }
            return (Answer::Mistaken, session);
        };
        let usual = if file.training.is_some() { USUAL_BY[0] } else { USUAL_BY[1] };
        let asked = Asked {
            by: self.by.clone().or_else(|| wanted.by.clone()).unwrap_or_else(|| usual.to_owned()),
            groups: if self.group_by.is_empty() { wanted.group_by.clone() } else { self.group_by.clone() },
            break_even: self.break_even.clone().or_else(|| wanted.break_even.clone()),
        };
        let figures = self.figures(&asked, &session);
        let Some(mut sweep) = Sweep::bind(&document, &wanted, &catalog, figures, &session.sink) else {
            return (Answer::Mistaken, session);
        };
        for condition in &self.conditions {
            if let Err(error) = sweep.keep(condition) {
                report("--where", &error, &session);
            }
        }
        let reduction = self.wanted(&sweep, &asked, &session);
        self.check(reduction.is_some(), &session);
        let Some(size) = self.size(&sweep, &session) else { return (Answer::Mistaken, session) };
        let answer = match reduction {
            Some((wanted, break_even)) => {
                let reduced = reduce(&sweep, &wanted, size);
                let never = reduced.never(&wanted);
                if !never.is_empty() {
                    for option in never {
                        session.sink.push(self.nothing(option, &asked, file.training.is_some()));
                    }
                    return (Answer::Mistaken, session);
                }
                kept(&sweep, &reduced, &wanted, break_even.as_ref(), (self.format(&session), &session))
            }
            None => self.rows(&sweep, size, &catalog, &session),
        };
        (answer, session)
    }

    /// The figures of rows: the usual ones and those that are named anywhere.
    fn figures(&self, asked: &Asked, session: &Session) -> Vec<crate::sweep::Figure> {
        if self.figures.iter().any(|key| key == "all") {
            return sweep_figures(&all_figures().collect::<Vec<_>>());
        }
        for key in self.figures.iter().filter(|key| !all_figures().any(|known| known == key.as_str())) {
            let hint = crate::diagnostics::did_you_mean(key, all_figures())
                .map_or_else(|| "such as cost.usd_per_run".to_owned(), |near| format!("did you mean {near}?"));
            session.sink.push(Diagnostic::new(Code::UnknownKey, format!("there is no figure `{key}`")).hint(hint));
        }
        let texts = [
            &self.pareto[..],
            &asked.groups,
            &self.quantiles,
            &self.conditions,
            &self.figures,
            std::slice::from_ref(&asked.by),
        ];
        let named =
            |figure: &&'static str| texts.iter().flat_map(|texts| texts.iter()).any(|text| text.contains(figure));
        sweep_figures(&all_figures().filter(named).collect::<Vec<_>>())
    }

    /// How the answer is written; parts that `merge` puts together are CSV.
    fn format(&self, session: &Session) -> Format {
        let usual = if self.shard.is_some() { Format::Csv } else { Format::Table };
        session.options.wanted_format().unwrap_or(usual)
    }

    /// What is kept, where not every row is: CSV has all rows, and a file of JSON too, whatever the scenario groups by.
    fn wanted(&self, sweep: &Sweep<'_>, asked: &Asked, session: &Session) -> Option<(Wanted, Option<BreakEvenOf>)> {
        let own = self.top.is_none() && self.pareto.is_empty() && self.quantiles.is_empty();
        let grouped = !asked.groups.is_empty() || asked.break_even.is_some();
        let rows = match self.format(session) {
            Format::Csv => true,
            Format::Json => session.options.output.is_some() || !grouped,
            Format::Table | Format::Md => false,
        };
        let given = own && self.group_by.is_empty() && self.break_even.is_none();
        let column = |option: &str, key: &str| {
            sweep.column(key).map_err(|error| report(option, &error, session)).unwrap_or(Column::Figure(0))
        };
        let aim = |option: &str, text: &str| -> Aim {
            let (key, most) = match text.split_once(':') {
                Some(("max", key)) => (key, true),
                Some(("min", key)) => (key, false),
                _ => (text, false),
            };
            (column(option, key), most)
        };
        let all = given && rows;
        if all && self.by.is_none() {
            return None;
        }
        let by = aim("--by", &asked.by);
        if all {
            return None;
        }
        let top = if given && !grouped { SHOWN } else { 0 };
        let mut groups: Vec<Column> = asked.groups.iter().map(|key| column("--group-by", key)).collect();
        let axis = asked.break_even.as_ref().map(|key| column("--break-even", key));
        groups.extend(axis);
        for (option, count) in [("--pareto", self.pareto.len()), ("--group-by", groups.len())] {
            if count > MOST_KEYS {
                let message = format!("`{option}` takes at most {MOST_KEYS} keys, not {count}");
                session.sink.push(Diagnostic::new(Code::OutOfRange, message).hint("name fewer"));
            }
        }
        let pareto: Vec<Aim> = self.pareto.iter().map(|text| aim("--pareto", text)).collect();
        for (index, text) in self.pareto.iter().enumerate() {
            if pareto[..index].iter().any(|(column, _)| *column == pareto[index].0) && session.sink.is_empty() {
                let message = format!("`--pareto` names the figure of `{text}` twice");
                let hint = "name figures that stand against each other, each once";
                session.sink.push(Diagnostic::new(Code::Duplicate, message).hint(hint));
            }
        }
        let break_even = match (axis, by.0) {
            (None, _) => None,
            (Some(Column::Axis(axis)), Column::Figure(by)) => Some(BreakEvenOf { groups: groups.clone(), axis, by }),
            _ => {
                let message = "`--break-even` takes an axis, along which a figure of `--by` turns";
                let hint = "such as --break-even catalog/fabrics/roce-400g/spine_efficiency --by cost.usd_per_run";
                session.sink.push(Diagnostic::new(Code::Inconsistent, message).hint(hint));
                None
            }
        };
        let wanted = Wanted {
            top: self.top.map_or(top, NonZeroUsize::get),
            by: Some(by),
            pareto,
            groups,
            quantiles: self.quantiles.iter().map(|key| column("--quantiles", key)).collect(),
        };
        Some((wanted, break_even))
    }

    /// That none of the rows has what an option asks for: a figure of training where nothing is trained, say.
    fn nothing(&self, option: &str, asked: &Asked, trains: bool) -> Diagnostic {
        let keys = match option {
            "--pareto" => self.pareto.join(", "),
            "--quantiles" => self.quantiles.join(", "),
            _ => asked.by.clone(),
        };
        let message = format!("`{option}`: none of the rows that can be has `{keys}`");
        let costs = if trains { &COSTS[..] } else { &COSTS_OF_SERVING[..] };
        Diagnostic::new(Code::Inconsistent, message).hint(format!("what they cost is {}", costs.join(" or ")))
    }

    /// All rows, or a part of them.
    fn rows(&self, sweep: &Sweep<'_>, size: u64, catalog: &Catalog, session: &Session) -> Answer {
        let rows = Rows { sweep, size, shard: self.shard, part_bytes: self.part_bytes };
        write_rows(&rows, catalog, self.format(session) == Format::Json, session)
    }

    /// Reports options that do not go with what is kept, or with rows.
    fn check(&self, kept: bool, session: &Session) {
        let report = |message: &str, hint: &str| {
            session.sink.push(Diagnostic::new(Code::Inconsistent, message).hint(hint));
        };
        if kept && self.shard.is_some() {
            report(
                "`--shard` gives a part of the rows, and what is kept is of all of them",
                "keep of the merged rows, or leave out --shard",
            );
        }
        if self.shard.is_some() && session.options.output.is_none() {
            report("a part needs a file of its own", "name it with -o");
        }
        if self.shard.is_some() && self.format(session) == Format::Json {
            report("parts that `merge` puts together are CSV", "leave out --shard, or --format");
        }
    }

    /// Counts the rows and says so; none where there are more than are begun unasked.
    fn size(&self, sweep: &Sweep<'_>, session: &Session) -> Option<u64> {
        if !session.sink.is_empty() {
            return None;
        }
        let size = sweep.size();
        complain(&format!("{}: {}\n", self.scenario.display(), sweep_size(size)));
        if size.rows > self.max_points {
            let message = format!("the sweep has {} rows, more than {}", size.rows, self.max_points);
            let hint = format!("give its axes fewer values, or pass --max-points {}", size.rows);
            session.sink.push(Diagnostic::new(Code::OutOfRange, message).hint(hint));
            return None;
        }
        Some(size.rows)
    }
}

fn report(option: &str, error: &ConditionError, session: &Session) {
    let message = format!("`{option}`: {}", error.message);
    session.sink.push(Diagnostic::new(Code::UnknownKey, message).hint(error.hint.clone()));
}

/// Keeps what is wanted of all rows.
fn reduce(sweep: &Sweep<'_>, wanted: &Wanted, size: u64) -> Reduced {
    let progress = Progress::new(sweep, Shard::WHOLE, Cursor::default(), size);
    let mut all = Reduction::new(wanted);
    sweep.run(
        Shard::WHOLE,
        Cursor::default(),
        || (0, Reduction::new(wanted)),
        |(_, part), row| part.take(row),
        |next, (_, part)| {
            progress.advance(next, part.rows());
            all.merge(part);
            ControlFlow::Continue(())
        },
    );
    progress.end();
    all.finish()
}

fn kept(
    sweep: &Sweep<'_>,
    reduced: &Reduced,
    wanted: &Wanted,
    break_even: Option<&BreakEvenOf>,
    (format, session): (Format, &Session),
) -> Answer {
    let data = match format {
        Format::Json => sweep_json(sweep, reduced, break_even).into_bytes(),
        Format::Csv => sweep_csv(sweep, reduced, session.options.bom),
        Format::Table | Format::Md => session.page(&sweep_page(sweep, reduced, wanted, break_even)),
    };
    let no = |message: &str| Answer::No { data: Some(data.clone()), message: message.to_owned() };
    if reduced.rows == 0 {
        return no("no row meets the conditions\n");
    }
    if reduced.feasible == 0 {
        return no("none of the rows can be\n");
    }
    if reduced.missing == reduced.feasible {
        return no("none of the rows keeps its limits\n");
    }
    Answer::Yes(data)
}

/// Reads `I/N`.
fn shard(text: &str) -> Result<Shard, String> {
    let parts = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
    match parts {
        Some((index, count)) if index < count => Ok(Shard { index, count }),
        _ => Err("write I/N, with I from 0 to N - 1, such as 0/4".to_owned()),
    }
}
