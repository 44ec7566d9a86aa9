//! What is known: hardware, models, sites, prices and what software reaches on them, keyed by id.
//!
//! One file a part; its name is the id. A part says what its maker says of it; what software achieves on it lives in
//! `efficiency`, what it costs in a price book. Every field has exactly one source.

mod age;
mod check;
mod collective_constants;
mod constant;
mod constant_set;
mod difference;
pub mod engine_memory;
pub mod engine_version;
mod freeze;
mod overlay;
mod pcie;
mod plausible;
mod quantity;
mod record;
mod reference;
mod relation;
mod selection;
pub mod serving_coverage;
mod shelf;
mod slice;

pub use age::{StalePrice, age_in_days, date_of};
pub use collective_constants::{ConstantPath, RangedConstant, Section};
pub use constant::Kind;
pub use constant_set::{ConstantSet, FreeConstant};
pub use difference::{Change, difference};
pub use freeze::named_by;
pub use pcie::Pcie;
pub use record::{Figure, Record};
pub use reference::Reference;
pub use relation::Relation;
pub use selection::{Condition, ConditionError, magnitudes};
pub use shelf::{Entry, List, Part, Shelf, is_plain};
pub use slice::GpuSlice;

use crate::diagnostics::Sink;

/// Declares the kinds of part: module, type, the catalog's field, the folder of files, what one is called, and the lists
/// whose entries carry their own source, with what tells their entries apart.
macro_rules! kinds {
    ($($module:ident :: $part:ident, $field:ident, folder $folder:literal, $what:literal, lists $lists:expr;)+) => {
        $(pub mod $module;)+
        $(pub use $module::$part;)+

        /// All that is known; immutable once read.
        #[derive(Clone, Debug, Default)]
        pub struct Catalog {
            $(#[doc = concat!("Every ", $what, ", by id.")] pub $field: Shelf<$part>,)+
        }

        $(impl Part for $part {
            const WHAT: &'static str = $what;
            const FOLDER: &'static str = $folder;
            const LISTS: &'static [List] = $lists;

            fn read(reader: &mut crate::document::Reader<'_>) -> Self {
                $part::read(reader)
            }
        })+

        impl Catalog {
            /// The folders of catalog files.
            pub const FOLDERS: &'static [&'static str] = &[$($folder),+];

            /// Reads one file of a folder into its shelf; mistakes go to the sink. Currencies come before files with
            /// amounts in them.
            ///
            /// Returns whether the folder is one of a catalog's.
            pub fn add(&mut self, folder: &str, id: &str, document: &crate::document::Node, sink: &Sink) -> bool {
                let rates = self.rates();
                match folder {
                    $($folder => self.$field.add(id, document, &rates, sink),)+
                    _ => return false,
                }
                true
            }

            /// The lists of a folder's files whose entries carry their own source.
            fn lists(folder: &str) -> &'static [List] {
                match folder {
                    $($folder => <$part as Part>::LISTS,)+
                    _ => &[],
                }
            }

            /// The shape of a folder's files; none where it is no folder of a catalog.
            pub fn schema(folder: &str) -> Option<serde_json::Value> {
                match folder {
                    $($folder => Some(shelf::schema::<$part>()),)+
                    _ => None,
                }
            }

            /// Every entry, in the order of kinds and ids.
            pub fn records(&self) -> Vec<Record<'_>> {
                let mut all = Vec::new();
                $(all.extend(self.$field.iter().map(|entry| Record {
                    kind: $what,
                    folder: $folder,
                    id: &entry.id,
                    name: &entry.name,
                    sources: &entry.sources,
                    document: &entry.document,
                    lists: <$part as Part>::LISTS,
                }));)+
                all
            }

            /// Every entry as (kind, id, name), in the order of kinds and ids.
            pub fn entries(&self) -> Vec<(&'static str, &str, &str)> {
                let mut all = Vec::new();
                $(all.extend(self.$field.iter().map(|entry| ($what, entry.id.as_str(), entry.name.as_str())));)+
                all
            }
        }
    };
}

kinds! {
    currency::Currency, currencies, folder "currencies", "currency", lists &[];
    accelerator::Accelerator, accelerators, folder "accelerators", "accelerator", lists &[];
    node::Node, nodes, folder "nodes", "node", lists &[];
    nic::Nic, nics, folder "nics", "network card", lists &[];
    switch::Switch, switches, folder "switches", "switch", lists &[];
    optic::Optic, optics, folder "optics", "optical module", lists &[];
    cable::Cable, cables, folder "cables", "cable", lists &[];
    fabric::Fabric, fabrics, folder "fabrics", "fabric", lists &[];
    collective_efficiency::CollectiveEfficiency, collective_efficiency, folder "efficiency/collectives", "set of collective constants", lists &[];
    training_efficiency::TrainingEfficiency, training_efficiency, folder "efficiency/training", "set of training constants", lists &[];
    serving_efficiency::ServingEfficiency, serving_efficiency, folder "efficiency/serving", "set of serving constants", lists &[];
    site::Site, sites, folder "sites", "site", lists &[];
    pricebook::PriceBook, price_books, folder "prices", "price book", lists &[List { key: "price", identity: &["part"] }, List { key: "line", identity: &["name"] }, List { key: "owner", identity: &["assumes"] }];
    reliability::Reliability, reliability, folder "reliability", "set of failure rates", lists &[];
    side_network::SideNetwork, side_networks, folder "networks", "network", lists &[];
    long_haul::LongHaul, long_haul, folder "long_haul", "long-haul link", lists &[];
    network_reliability::NetworkReliability, network_reliability, folder "network_reliability", "set of network failure rates", lists &[];
    data_preparation::DataPreparation, data_preparation, folder "data", "preparation of data", lists &[];
    storage::Storage, storage, folder "storage", "storage system", lists &[];
    power_profile::PowerProfile, power_profiles, folder "power", "power profile", lists &[];
    scale_up_link::ScaleUpLink, scale_up_links, folder "scale_up", "scale-up link", lists &[];
    memory_tier::MemoryTier, memory_tiers, folder "memory_tiers", "memory tier", lists &[];
    component::Component, components, folder "components", "component", lists &[];
    provider::Provider, providers, folder "providers", "provider", lists &[List { key: "offer", identity: &["instance", "term", "region"] }];
    model::Model, models, folder "models", "model", lists &[];
    memory_allowance::MemoryAllowance, memory_allowances, folder "efficiency/memory", "set of memory allowances", lists &[];
}
