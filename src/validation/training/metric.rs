//! What a training row is compared by.

use crate::parallelism::{Layout, Recompute};
use crate::training::TrainingEstimate;
use crate::units::{FlopRate, Flops, Quantity};
use crate::validation::aliases::Aliases;
use crate::validation::table::{Row, Unusable};
use crate::workload::{AttentionCount, TrainingJob, Transformer};

/// The columns that can be compared, the first that a row has.
const COLUMNS: [&str; 3] = ["iter_s", "tokens_s_gpu", "tflops_per_gpu"];

/// A published figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Metric {
    /// Its column.
    pub(super) name: &'static str,
    /// In the column's unit.
    pub(super) measured: f64,
}

/// Which operations a FLOP rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counting {
    recomputed: bool,
    attention: AttentionCount,
}

impl std::fmt::Display for Counting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let recomputed = if self.recomputed { "with" } else { "without" };
        write!(f, "{} attention, {recomputed} recomputation", self.attention)
    }
}

impl Metric {
    /// The first figure that the row has; nothing where it has none.
    pub(super) fn read(row: &Row) -> Result<Option<Self>, Unusable> {
        for name in COLUMNS {
            if let Some(measured) = row.number(name)? {
                let positive = measured > 0.0;
                return if positive {
                    Ok(Some(Self { name, measured }))
                } else {
                    Err(Unusable(format!("{name} is {measured}")))
                };
            }
        }
        Ok(None)
    }

    /// How a FLOP rate counts; nothing for the other metrics.
    pub(super) fn counting(&self, row: &Row, aliases: &Aliases) -> Result<Option<Counting>, Unusable> {
        if self.name != "tflops_per_gpu" {
            return Ok(None);
        }
        let kind = row.needed("tflops_kind")?;
        let convention = aliases.convention(kind, row.text("source").unwrap_or_default());
        let convention = convention.ok_or_else(|| Unusable(format!("tflops_kind \"{kind}\" is unknown")))?;
        Ok(Some(Counting { recomputed: convention.recomputed, attention: convention.attention }))
    }

    /// The model's figure, in the column's unit. A FLOP rate is the published convention's operations over the model's
    /// time, so that its error is that of the time it implies.
    pub(super) fn predicted(
        &self,
        estimate: &TrainingEstimate,
        layout: &Layout,
        model: &Transformer,
        job: &TrainingJob,
        counting: Option<Counting>,
    ) -> f64 {
        let iteration = estimate.iteration();
        match counting {
            Some(counting) => {
                let sequence = job.sequence_length;
                let again = if counting.recomputed { layout.recompute } else { Recompute::None };
                let token: Flops = model.model_flops_per_token(sequence, counting.attention)
                    + again.flops_per_token(model, sequence, counting.attention, layout.most_layers(model.layers));
                // Tokens are a count here: operations of a token times how many there are.
                let flops = token * job.tokens_per_step().base();
                let rate: FlopRate = flops / iteration / estimate.accelerators;
                rate.in_unit("TFLOP/s").unwrap_or_default()
            }
            // The columns are in base units.
            None if self.name == "tokens_s_gpu" => (estimate.token_rate() / estimate.accelerators).base(),
            None => iteration.base(),
        }
    }
}
