//! Axes of requests that come: what each value sets, bound once before the sweep begins.

use rayon::prelude::*;

use super::super::Sweep;
use super::super::axes::{ABSENT, AxisColumn};
use super::point::resolve;
use super::touches::{LOAD, Touches, is_of};
use crate::evaluate::{Evaluation, Infeasible, StagedServing};
use crate::scenario::{ArrivalTerms, Arrivals, Lengths, Scenario, Serving};
use crate::search;
use crate::units::Fraction;
use crate::workload::LengthShapes;

/// What a value of an axis of requests sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::sweep) enum Asked {
    /// How they come, and the most in a time over the mean of a day.
    Arrivals(Arrivals, ArrivalTerms, f64),
    Input(Lengths),
    Output(Lengths),
    Hit(Fraction),
}

impl Asked {
    /// Of a key, in a scenario that has a value of it.
    fn of(key: &str, serving: &Serving) -> Option<Self> {
        let tables = LOAD.iter().position(|table| is_of(key, &[table]))?;
        Some(match tables {
            0 => Self::Arrivals(serving.arrivals, serving.terms, serving.peak_to_mean),
            1 => Self::Input(serving.input),
            2 => Self::Output(serving.output),
            _ => Self::Hit(serving.prefix_hit),
        })
    }

    /// Sets a scenario's, but for the lengths of requests, which are set together.
    const fn set(self, serving: &mut Serving, lengths: &mut [Lengths; 2]) {
        match self {
            Self::Arrivals(arrivals, terms, peak_to_mean) => {
                (serving.arrivals, serving.terms, serving.peak_to_mean) = (arrivals, terms, peak_to_mean);
            }
            Self::Input(input) => lengths[0] = input,
            Self::Output(output) => lengths[1] = output,
            Self::Hit(hit) => serving.prefix_hit = hit,
        }
    }
}

/// Why nothing is served at a point.
pub(super) enum Unserved<'a> {
    /// The requests cannot be asked for.
    Mistake(&'a str),
    /// They cannot be served.
    Not(Infeasible),
}

impl Sweep<'_> {
    /// The answer at a point's requests.
    pub(super) fn serve<'s>(
        &self,
        staged: &'s mut StagedServing,
        point: &[u32],
    ) -> Result<&'s Evaluation, Unserved<'_>> {
        let Some((serving, cluster, shapes)) = staged.serving() else { return staged.at().map_err(Unserved::Not) };
        let mut lengths = [serving.input, serving.output];
        for ((values, touched), value) in self.asked.iter().zip(&self.touches).zip(point) {
            if *touched == Touches::Load && *value != ABSENT {
                match &values[*value as usize] {
                    Ok(asked) => asked.set(serving, &mut lengths),
                    Err(mistake) => return Err(Unserved::Mistake(mistake)),
                }
            }
        }
        let [input, output] = lengths;
        serving.set_lengths(input, output, shapes);
        if serving.search {
            let found = search::best_deployment(serving, cluster).map_err(Unserved::Not)?;
            (serving.layout, serving.prefill, serving.left_over) = (found.layout, found.prefill, found.left_over);
        }
        staged.at().map_err(Unserved::Not)
    }

    /// Whether a value of one axis of requests may be a mistake or none by that of another: what is a mistake beside the usual ones,
    /// and prompts that go through in waves, which lengths that scatter do not.
    pub(in crate::sweep) fn requests_clash(&self) -> bool {
        let axes = self.touches.iter().filter(|touched| **touched == Touches::Load).count();
        let values = || self.asked.iter().flatten();
        let scatters =
            |asked: &Result<Asked, String>| matches!(asked, Ok(Asked::Input(of) | Asked::Output(of)) if of.cv > 0.0);
        let waves = |asked: &Result<Asked, String>| matches!(asked, Ok(Asked::Arrivals(Arrivals::Most, terms, _)) if terms.prompts.is_some());
        axes > 1 && (values().any(Result::is_err) || values().any(scatters) && values().any(waves))
    }

    /// Whether axes of requests set nothing but what [`Asked`] is: held against the scenario as it is bound with the first
    /// and the last value of each, but for the list of defaults.
    pub(in crate::sweep) fn requests_are_apart(&self, usual: &Scenario) -> bool {
        let text = |scenario: &mut Scenario| {
            scenario.assumed.clear();
            format!("{scenario:?}")
        };
        let mut columns = self.axes.columns.iter().zip(&self.touches).enumerate();
        columns.all(|(column, (AxisColumn { key, values, .. }, touched))| {
            let mut ends = [0, values.len().saturating_sub(1)].into_iter();
            *touched != Touches::Load
                || ends.all(|number| {
                    let mut point = vec![ABSENT; self.axes.columns.len()];
                    point[column] = u32::try_from(number).unwrap_or(ABSENT);
                    let document = self.document(&point, |touched| touched == Touches::Load);
                    let Ok(mut bound) = resolve(&document, self.catalog) else { return true };
                    let mut set = usual.clone();
                    if let (Some(own), Some(bound)) = (&mut set.serving, &bound.serving)
                        && let Some(asked) = Asked::of(key, bound)
                    {
                        let mut lengths = [own.input, own.output];
                        asked.set(own, &mut lengths);
                        let [input, output] = lengths;
                        own.set_lengths(input, output, &mut LengthShapes::default());
                    }
                    text(&mut set) == text(&mut bound)
                })
        })
    }

    /// What each value of an axis of requests sets, by column; nothing of the others.
    pub(in crate::sweep) fn requests(&self) -> Vec<Vec<Result<Asked, String>>> {
        let of = |column: usize| {
            let AxisColumn { key, values, .. } = &self.axes.columns[column];
            let asked = |number: usize| {
                let mut point = vec![ABSENT; self.axes.columns.len()];
                point[column] = u32::try_from(number).unwrap_or(ABSENT);
                let scenario = resolve(&self.document(&point, |touched| touched == Touches::Load), self.catalog)?;
                let serving = scenario.serving.as_ref();
                serving.and_then(|serving| Asked::of(key, serving)).ok_or_else(|| "nothing is served".to_owned())
            };
            (0..values.len()).into_par_iter().map(asked).collect()
        };
        let columns = self.touches.iter().enumerate();
        columns.map(|(column, touched)| if *touched == Touches::Load { of(column) } else { Vec::new() }).collect()
    }
}
