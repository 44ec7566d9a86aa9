//! A planner's own measurements turned into constants: what a log says, the constants that meet it best, and how far a
//! log that was left out is met by them.
//!
//! Constants of the catalog are where a fit begins and what holds it (a prior): a log moves those that it determines and
//! leaves the others where they are.

mod collective_set;
mod collectives;
mod fit;
mod influence;
mod least_squares;
mod nccl_log;
mod runs;
mod set_file;

pub use collective_set::{MeasuredCall, Without, collective_sets_without_sources, fit_collective_set};
pub use collectives::{CollectiveCalibration, FittedConstant, HeldOut, LoggedRun, calibrate_collectives};
pub use fit::{Errors, Fit, FitError, Prior, fit, fit_from};
pub use nccl_log::{LogError, NcclLog, Point, read_nccl_log};
pub use runs::{Deviation, MeasuredRun, fit_set, leave_out};
pub use set_file::{FittedSetConstant, SetFit, SetTitle};
