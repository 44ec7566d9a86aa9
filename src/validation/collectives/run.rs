//! A row bound to all but the constants, so that fits need not read it again.

use std::collections::BTreeSet;

use super::RowCall;
use crate::calibration::MeasuredCall;
use crate::catalog::{Catalog, CollectiveEfficiency, Section};
use crate::collectives::Wires;
use crate::units::Seconds;
use crate::validation::aliases::Aliases;
use crate::validation::outcome::Outcome;
use crate::validation::table::Row;

/// A published run of one size.
#[derive(Clone, Debug)]
pub struct CollectiveRun {
    source: String,
    call: RowCall,
    measured: Seconds,
}

impl CollectiveRun {
    /// A row that the model takes; `None` of one that it does not, or that a rule about the data leaves out.
    pub(in crate::validation) fn of(row: &Row, catalog: &Catalog, aliases: &Aliases) -> Option<Self> {
        let Outcome::Predicted(prediction) = super::case(row, catalog, aliases).1 else { return None };
        let call = RowCall::of(row, catalog, aliases, &mut Vec::new()).ok()?;
        let source = row.text("source").unwrap_or_default().to_owned();
        Some(Self { source, call, measured: Seconds::new(prediction.measured * 1e-6) })
    }

    /// What was run.
    pub(super) const fn call(&self) -> &RowCall {
        &self.call
    }

    /// How long it took.
    pub(super) const fn measured(&self) -> Seconds {
        self.measured
    }
}

impl MeasuredCall for CollectiveRun {
    fn source(&self) -> &str {
        &self.source
    }

    fn sections(&self) -> BTreeSet<Section> {
        let kind = &self.call.links.kind;
        let mut sections = BTreeSet::new();
        // One GPU a node sends nothing over its links.
        if self.call.network.is_none() || self.call.group.ranks_per_domain > 1 {
            sections.insert(Section::ScaleUp(kind.clone()));
            if self.call.links.in_network_reduction {
                sections.insert(Section::Nvls(kind.clone()));
            }
        }
        sections.extend(self.call.network.as_ref().map(|(class, _)| Section::Network(class.clone())));
        sections
    }

    fn wires(&self, set: &CollectiveEfficiency) -> Option<Wires> {
        self.call.wires(set)
    }

    fn log_error(&self, wires: &Wires) -> Option<f64> {
        Some((self.call.time_on(wires)? / self.measured).ln())
    }
}
