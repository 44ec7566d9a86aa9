//! What is known: hardware, models, sites, prices and what software reaches on them, keyed by id.
//!
//! One file a part; its name is the id. A part says what its maker says of it; what software achieves on it lives in
//! `efficiency`, what it costs in a price book. Every field has exactly one source.

mod check;
mod reference;
mod shelf;

pub use reference::Reference;
pub use shelf::{Entry, Part, Shelf};

use crate::diagnostics::Sink;

/// Declares the kinds of part: module, type, the catalog's field, the folder of files, what one is called, and the keys
/// whose entries carry their own source.
macro_rules! kinds {
    ($($module:ident :: $part:ident, $field:ident, folder $folder:literal, $what:literal, self_sourced $own:expr;)+) => {
        $(pub mod $module;)+
        $(pub use $module::$part;)+

        /// All that is known; immutable once read.
        #[derive(Debug, Default)]
        pub struct Catalog {
            $(#[doc = concat!("Every ", $what, ", by id.")] pub $field: Shelf<$part>,)+
        }

        $(impl Part for $part {
            const WHAT: &'static str = $what;
            const FOLDER: &'static str = $folder;
            const SELF_SOURCED: &'static [&'static str] = $own;

            fn read(reader: &mut crate::document::Reader<'_>) -> Self {
                $part::read(reader)
            }
        })+

        impl Catalog {
            /// The folders of catalog files.
            pub const FOLDERS: &'static [&'static str] = &[$($folder),+];

            /// Reads one file of a folder into its shelf; mistakes go to the sink.
            ///
            /// Returns whether the folder is one of a catalog's.
            pub fn add(&mut self, folder: &str, id: &str, document: &crate::document::Node, sink: &Sink) -> bool {
                match folder {
                    $($folder => self.$field.add(id, document, sink),)+
                    _ => return false,
                }
                true
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
    accelerator::Accelerator, accelerators, folder "accelerators", "accelerator", self_sourced &[];
    node::Node, nodes, folder "nodes", "node", self_sourced &[];
    nic::Nic, nics, folder "nics", "network card", self_sourced &[];
    switch::Switch, switches, folder "switches", "switch", self_sourced &[];
    optic::Optic, optics, folder "optics", "optical module", self_sourced &[];
    cable::Cable, cables, folder "cables", "cable", self_sourced &[];
    fabric::Fabric, fabrics, folder "fabrics", "fabric", self_sourced &[];
    collective_efficiency::CollectiveEfficiency, collective_efficiency, folder "efficiency/collectives", "set of collective constants", self_sourced &[];
    training_efficiency::TrainingEfficiency, training_efficiency, folder "efficiency/training", "set of training constants", self_sourced &[];
    site::Site, sites, folder "sites", "site", self_sourced &[];
    pricebook::PriceBook, price_books, folder "prices", "price book", self_sourced &["price", "line"];
    reliability::Reliability, reliability, folder "reliability", "set of failure rates", self_sourced &[];
    storage::Storage, storage, folder "storage", "storage system", self_sourced &[];
    power_profile::PowerProfile, power_profiles, folder "power", "power profile", self_sourced &[];
    model::Model, models, folder "models", "model", self_sourced &[];
    memory_allowance::MemoryAllowance, memory_allowances, folder "efficiency/memory", "set of memory allowances", self_sourced &[];
}
