//! What stands behind figures: the weakest basis of each group, and the inputs that have it.

use super::figure::Group;
use super::page::{Block, Grid, Section};
use crate::evaluate::{Bases, Evaluation};

/// More inputs than this are counted, not named.
const MOST_INPUTS: usize = 8;

/// The weakest basis behind each group, in a column for each evaluation, and the inputs that have it.
pub(super) fn basis(columns: &[(&str, &Evaluation)]) -> Section {
    let heads: Vec<&str> = ["Figures of"].into_iter().chain(columns.iter().map(|(head, _)| *head)).collect();
    let mut grid = Grid::new(&heads, heads.len());
    let mut inputs = Vec::new();
    for &group in Group::ALL {
        if columns.iter().all(|(_, evaluation)| group.inputs(&evaluation.evidence()).is_empty()) {
            continue;
        }
        let bases = columns.iter().map(|(_, evaluation)| group.basis(&evaluation.bases()).to_string());
        grid.rows.push([group.word().to_owned()].into_iter().chain(bases).collect());
        let mut names: Vec<String> = Vec::new();
        for (_, evaluation) in columns {
            for name in weakest_inputs(group, evaluation) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let more = names.len().saturating_sub(MOST_INPUTS);
        names.truncate(MOST_INPUTS);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        inputs.push(format!("{}: {}{rest}", group.word(), names.join(", ")));
    }
    let sentence = "The inputs that are as weak as that:".to_owned();
    Section { heading: "Basis".to_owned(), blocks: vec![Block::Grid(grid), Block::Text(sentence), Block::List(inputs)] }
}

/// The names of a group's inputs that have its weakest basis.
fn weakest_inputs(group: Group, evaluation: &Evaluation) -> Vec<String> {
    let evidence = evaluation.evidence();
    let weakest = group.basis(&Bases::from(&evidence));
    let weak = group.inputs(&evidence).iter().filter(|input| input.basis == weakest);
    weak.map(|input| input.name.clone()).collect()
}
