//! Waits of prompts for a worker.

use super::LEAST_PART;
use crate::inference::queue::prompt_queue::PromptQueue;
use crate::inference::queue::scattered::Scattered;
use crate::inference::queue::waiting::Wait;
use crate::inference::together::Together;
use crate::inference::{Coming, Replica, Request, Scratch, Separate};
use crate::units::RequestRate;

impl Separate<'_> {
    /// Waits of prompts that come at such a rate, to the worker that has least before it, each of which takes in with a step what has
    /// come to it. So many workers share what makes prompts wait: times between those of one are sums of those between all, and
    /// long prompts hold up only what the others cannot take (in heavy traffic the wait of one queue with as many servers).
    pub(super) fn prompts(
        &self,
        request: &Request,
        coming: &Coming<'_>,
        scratch: &Scratch,
    ) -> impl Fn(RequestRate) -> Wait + use<> {
        let served = scratch.over_prompts(|timed| timed.served);
        let alone = scratch.over_prompts(|timed| timed.alone).mean;
        let hardware = self.busy_worker(&self.prompt(request));
        let worker = Replica { hardware: &hardware, ..self.prefill };
        let stages = f64::from(worker.spread.pipeline);
        let (groups, part) = Together::new(&worker, request, f64::INFINITY).of_groups();
        let each = served.mean.max(alone * LEAST_PART) / (stages * f64::from(worker.spread.attention_data));
        let of_worker = PromptQueue {
            rate: RequestRate::ZERO,
            coming: coming.cv * coming.cv / self.workers,
            fixed: (alone / stages).saturating_sub(each),
            served: Scattered {
                mean: each,
                variance: served.variance / self.workers,
                third: served.third / (self.workers * self.workers),
            },
            most: worker.prompts_of_steps(request.input, served.variance),
        };
        let workers = self.workers;
        move |rate| PromptQueue { rate: rate / workers, ..of_worker }.side_by_side(groups, part / stages)
    }
}
