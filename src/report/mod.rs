//! Answers as texts: pages of tables for people, JSON for programs, CSV for spreadsheets. Nothing here prints.

mod break_even_map;
mod calibration;
mod collective;
mod comparison;
mod csv;
mod derivation;
mod evaluation;
mod fabric;
mod figure;
mod infeasible;
mod inventory;
mod json;
mod key_figures;
mod layout_search;
mod markdown;
mod memory;
mod metrics;
mod model;
mod page;
mod plan;
mod pricing;
mod scaling;
mod settings;
mod stages;
mod sweep;
mod sweep_break_even;
mod table;
mod training_plan;
mod uncertainty;

pub use calibration::{CalibrationTitle, calibration_grid, calibration_json, calibration_page, calibration_toml};
pub use collective::{Beside, CallTitle, call_grid, call_json, call_page, call_reason};
pub use comparison::comparison_page;
pub use csv::{comparison_csv, evaluation_csv, grid_csv, infeasible_csv};
pub use derivation::{Derivation, derivation, derivation_grid, derivation_json, derivation_page};
pub use evaluation::{HEADLINES, evaluation_page};
pub use fabric::{quote_csv, quote_json, quote_page};
pub use figure::{Group, Metric, Unit, Value};
pub use infeasible::infeasible_page;
pub use inventory::{entry_grid, entry_page, list_grid};
use json::evaluation_object;
pub use json::{comparison_json, evaluation_json, grid_json, infeasible_json};
pub use markdown::markdown;
pub use memory::{ServingMemory, serving_memory_json, serving_memory_page, training_memory_json, training_memory_page};
pub use metrics::{METRICS, metric};
pub use model::{ModelSheet, model_grid, model_json, model_page};
pub use page::{Block, Grid, Page, Section};
pub use plan::{plan_grid, plan_json, plan_page};
pub use pricing::{pricing_grid, pricing_json, pricing_page};
pub use scaling::{scaling_grid, scaling_json, scaling_page};
pub use settings::{Origin, Setting, settings};
pub use sweep::{
    BreakEvenOf, SweepCsv, SweepRows, all_figures, sweep_csv, sweep_figures, sweep_json, sweep_page, sweep_size,
};
pub use table::{Style, table};
pub use training_plan::{training_plan_grid, training_plan_json, training_plan_page};
pub use uncertainty::{uncertain_figures, uncertainty_grid, uncertainty_json, uncertainty_page};
