//! Answers as texts: pages of tables for people, JSON for programs, CSV for spreadsheets. Nothing here prints.

mod break_even_map;
mod calibration;
mod collective;
mod comparison;
mod csv;
mod evaluation;
mod fabric;
mod figure;
mod infeasible;
mod inventory;
mod json;
mod layout_search;
mod markdown;
mod memory;
mod metrics;
mod model;
mod page;
mod settings;
mod table;

pub use calibration::{CalibrationTitle, calibration_grid, calibration_json, calibration_page, calibration_toml};
pub use collective::{Beside, CallTitle, call_grid, call_json, call_page, call_reason};
pub use comparison::comparison_page;
pub use csv::{comparison_csv, evaluation_csv, grid_csv, infeasible_csv};
pub use evaluation::{HEADLINES, evaluation_page};
pub use fabric::{quote_csv, quote_json, quote_page};
pub use figure::{Group, Metric, Unit, Value};
pub use infeasible::infeasible_page;
pub use inventory::{entry_grid, entry_page, list_grid};
pub use json::{comparison_json, evaluation_json, grid_json, infeasible_json};
pub use markdown::markdown;
pub use memory::{ServingMemory, serving_memory_json, serving_memory_page, training_memory_json, training_memory_page};
pub use metrics::{METRICS, metric};
pub use model::{ModelSheet, model_grid, model_json, model_page};
pub use page::{Block, Grid, Page, Section};
pub use settings::{Origin, Setting, settings};
pub use table::{Style, table};
