//! The host beside the device: it schedules the next step's sequences, and takes the tokens of the last.

use crate::inference::{Replica, StepTime};
use crate::units::Seconds;

impl Replica<'_> {
    /// A step of so many sequences with what the host does for them.
    ///
    /// It does so ahead of the device, one step behind another, and is waited for where the device is sooner. Stages wait for it
    /// always: the first begins a step with the tokens that the last has made (TensorRT-LLM's overlap scheduler is for one stage).
    pub(in crate::inference) fn hosted(&self, step: StepTime, sequences: f64) -> StepTime {
        let stages = f64::from(self.spread.pipeline);
        let host = self.hardware.host * (sequences / f64::from(self.spread.attention_data));
        let waited = if stages > 1.0 { host } else { host.saturating_sub(step.total()) };
        StepTime { overhead: step.overhead + waited, ..step }
    }
}

impl crate::inference::Hardware {
    /// The same with an engine that is built before it runs, whose host hands all of a step over at once.
    #[must_use]
    pub fn built(self) -> Self {
        Self { host: Seconds::ZERO, prefill_layer: Seconds::ZERO, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::{Spread, fixture};

    #[test]
    fn the_host_is_waited_for_where_the_device_is_sooner_and_by_stages_always() {
        let (model, hardware) = (fixture::shape("llama-3.1-70b"), fixture::h100());
        let hosted = crate::inference::Hardware { host: Seconds::new(1e-3), ..hardware };
        let step = |hardware, pipeline, sequences| {
            let spread = Spread { pipeline, ..fixture::tensor(8) };
            Replica::new(&model, hardware, spread).token_step(sequences, 100.0).1
        };
        // 4 sequences are scheduled in 4 ms, while weights of 17 GB are read; 1,000 in a second, which all of a step is not.
        assert_eq!(step(&hosted, 1, 4.0), step(&hardware, 1, 4.0));
        assert!((step(&hosted, 1, 1_000.0).value() - 1.0).abs() < 1e-9, "{}", step(&hosted, 1, 1_000.0));
        // Two stages take half of the sequences each, and both halves are scheduled in a token's time.
        let waited = step(&hosted, 2, 64.0).value() - step(&hardware, 2, 64.0).value();
        assert!((waited / 64e-3 - 1.0).abs() < 1e-9, "{waited}");
    }
}
