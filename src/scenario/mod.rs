//! A scenario: what the user typed, and what is true once every id is bound and every default applied.

mod file;
mod software;

pub use file::ScenarioFile;
pub use software::{MissingEfficiency, Overlap, Software, StepEfficiency};
