//! Binding of adapters that are served beside each other.

use std::sync::Arc;

use crate::catalog::model::Model;
use crate::catalog::{Catalog, Entry, MemoryTier, Reference};
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::scenario::file::{AdapterRouting, AdapterTargets, AdaptersFile};
use crate::scenario::resolve::Defaults;
use crate::units::Factor;
use crate::workload::{AdapterParameters, adapter_parameters};

/// Where adapters wait that are not in the accelerators' memory.
const USUAL_TIER: &str = "host-dram-pcie5";

/// Low-rank adapters that are served beside each other.
#[derive(Clone, Debug)]
pub struct AdapterSet {
    /// How many there are.
    pub count: u32,
    /// Their rank.
    pub rank: u32,
    /// What they change.
    pub targets: AdapterTargets,
    /// How many are in the accelerators' memory at once.
    pub resident: u32,
    /// Exponent of Zipf's law of how often each is asked for.
    pub popularity: f64,
    /// Parameters of one.
    pub parameters: AdapterParameters,
    /// Where requests go.
    pub routing: AdapterRouting,
    /// Where the others wait.
    pub tier: Arc<Entry<MemoryTier>>,
}

/// Those that are asked for.
pub(super) fn bind(
    wanted: &AdaptersFile,
    model: &Model,
    catalog: &Catalog,
    defaults: &mut Defaults,
    sink: &Sink,
) -> Option<AdapterSet> {
    let refuse = |message: String, hint: &str| {
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.at, "in this table").hint(hint));
        None
    };
    let resident = defaults.or("serving.adapters.resident", wanted.resident, wanted.count);
    if resident > wanted.count {
        let message = format!("{resident} of {} adapters in memory", wanted.count);
        return refuse(message, "resident is at most count");
    }
    let targets = defaults.or("serving.adapters.targets", wanted.targets, AdapterTargets::Attention);
    let parameters = match adapter_parameters(model, wanted.rank, targets == AdapterTargets::All) {
        Ok(parameters) => parameters,
        Err(of) => {
            let hint = "use targets = \"attention\", or a model whose layers are grouped or latent attention";
            return refuse(format!("adapters of {of} are not modelled"), hint);
        }
    };
    let usual = || Reference { id: USUAL_TIER.to_owned(), at: wanted.at.clone() };
    let given = wanted.from.as_ref().map(|from| from.id.clone());
    defaults.or("serving.adapters.from", given, USUAL_TIER.to_owned());
    let tier = wanted.from.clone().unwrap_or_else(usual);
    Some(AdapterSet {
        count: wanted.count,
        rank: wanted.rank,
        targets,
        resident,
        popularity: defaults.or("serving.adapters.popularity", wanted.popularity.map(Factor::get), 0.0),
        routing: defaults.or("serving.adapters.routing", wanted.routing, AdapterRouting::Balanced),
        parameters,
        tier: catalog.memory_tiers.find(&tier, &tier.at, sink)?,
    })
}
