//! Figures that rows of a sweep have.

use crate::evaluate::Evaluation;

/// How a figure is taken from an evaluation; none where it has none.
pub type Extract = Box<dyn Fn(&Evaluation) -> Option<f64> + Send + Sync>;

/// A figure that rows have.
pub struct Figure {
    /// Its key.
    pub key: &'static str,
    /// How it is taken.
    pub extract: Extract,
}

impl std::fmt::Debug for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.key)
    }
}
