//! The whole run: its stages one after the other, each batch of a growing one by itself, with pauses for evaluation.

use super::{Infeasible, Point, Prepared};
use crate::memory;
use crate::parallelism::Layout;
use crate::reliability::Goodput;
use crate::scenario::{RunPlan, Stage, StageKind};
use crate::training::TrainingEstimate;
use crate::units::{Seconds, Tokens};
use crate::workload::TrainingJob;

/// What a stage takes.
#[derive(Clone, Debug, PartialEq)]
pub struct StageTime {
    /// What it is called.
    pub name: String,
    /// What it does.
    pub kind: StageKind,
    /// Its tokens.
    pub tokens: Tokens,
    /// Tokens of a sequence.
    pub sequence_length: u32,
    /// Sequences of its full batch.
    pub global_batch: u32,
    /// Its layout.
    pub layout: Layout,
    /// Its step with the full batch.
    pub step: TrainingEstimate,
    /// Optimizer steps.
    pub steps: f64,
    /// Time of training.
    pub training: Seconds,
    /// Part of that time in which steps wait for data.
    pub data_wait: Seconds,
    /// Part of it that a batch below the full one costs beyond what its tokens take with the full one.
    pub ramp: Seconds,
    /// Time of writing what is rewarded.
    pub rollout: Seconds,
    /// Pauses for evaluation after its steps.
    pub evaluation: Seconds,
    /// The useful share of its wall time.
    pub goodput: Goodput,
    /// Its wall time with failures: training, rollouts and pauses over its goodput.
    pub effective: Seconds,
}

/// A run, without failures and with them.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its stages.
    pub stages: Vec<StageTime>,
    /// Optimizer steps.
    pub steps: f64,
    /// Pauses for evaluation.
    pub evaluation: Seconds,
    /// Steps that wait for data.
    pub data_wait: Seconds,
    /// What small batches at the beginning cost.
    pub ramp: Seconds,
    /// Rollouts.
    pub rollout: Seconds,
    /// All of it, were there no failures.
    pub duration: Seconds,
    /// All of it with failures: the sum over stages, each at its own goodput.
    pub effective: Seconds,
}

impl Run {
    /// The same run, of steps of one kind, with another layout.
    pub(super) fn repeat(&mut self, point: &Point) {
        self.data_wait = point.step.other.data * self.steps;
        self.duration = point.step.iteration() * self.steps;
        self.effective = self.duration / point.goodput.ratio;
        for stage in &mut self.stages {
            (stage.layout, stage.step) = (point.layout, point.step);
            (stage.training, stage.data_wait) = (self.duration, self.data_wait);
            (stage.goodput, stage.effective) = (point.goodput, self.effective);
        }
    }
}

impl Prepared {
    /// The whole run, with the layout of `point` wherever a stage has none of its own.
    ///
    /// # Errors
    /// When a stage's layout or batch cannot be, or does not fit.
    pub fn run(&self, plan: &RunPlan, point: &Point) -> Result<Run, Infeasible> {
        let mut stages: Vec<StageTime> =
            plan.stages_of(&self.step.job).iter().map(|stage| self.stage(stage, point)).collect::<Result<_, _>>()?;
        let mut steps = 0.0;
        for stage in &mut stages {
            let pauses = |steps: f64| plan.evaluation.map_or(0.0, |pause| (steps / f64::from(pause.every)).floor());
            let before = pauses(steps);
            steps += stage.steps;
            let time = plan.evaluation.map_or(Seconds::ZERO, |pause| pause.time);
            stage.evaluation = time * (pauses(steps) - before);
            stage.effective = (stage.training + stage.rollout + stage.evaluation) / stage.goodput.ratio;
        }
        let sum = |part: fn(&StageTime) -> Seconds| -> Seconds { stages.iter().map(part).sum() };
        let (rollout, evaluation) = (sum(|stage| stage.rollout), sum(|stage| stage.evaluation));
        Ok(Run {
            steps,
            evaluation,
            data_wait: sum(|stage| stage.data_wait),
            ramp: sum(|stage| stage.ramp),
            rollout,
            duration: sum(|stage| stage.training) + rollout + evaluation,
            effective: sum(|stage| stage.effective),
            stages,
        })
    }

    fn stage(&self, stage: &Stage, point: &Point) -> Result<StageTime, Infeasible> {
        let within = |reason| Infeasible::Stage { name: stage.name.clone(), reason: Box::new(reason) };
        let layout = match &stage.layout {
            Some(own) => own.over(self.accelerators).map_err(|error| within(error.into()))?,
            None => point.layout,
        };
        let step = self.stage_estimate(stage, &stage.job, &layout).map_err(within)?;
        let full_rate = stage.job.tokens_per_step() / step.iteration();
        // Training has the rest of the time that rollouts leave.
        let rollouts = stage.rollout_share.get() / (1.0 - stage.rollout_share.get());
        // A step is kept with its rollouts or not at all.
        let whole_step = step.iteration() * (1.0 + rollouts);
        let goodput = self.stage_goodput(stage.kind, whole_step).map_err(within)?;
        let mut time = StageTime {
            name: stage.name.clone(),
            kind: stage.kind,
            tokens: stage.job.tokens,
            sequence_length: stage.job.sequence_length,
            global_batch: stage.job.global_batch,
            layout,
            step,
            steps: 0.0,
            training: Seconds::ZERO,
            data_wait: Seconds::ZERO,
            ramp: Seconds::ZERO,
            rollout: Seconds::ZERO,
            evaluation: Seconds::ZERO,
            goodput,
            effective: Seconds::ZERO,
        };
        for job in stage.batches() {
            let step = if job.global_batch == stage.job.global_batch {
                step
            } else {
                self.stage_estimate(stage, &job, &layout).map_err(within)?
            };
            let (steps, of_step) = (job.steps(), step.iteration());
            time.steps += steps;
            time.training += of_step * steps;
            time.rollout += of_step * (steps * rollouts);
            time.data_wait += step.other.data * steps;
            if job.global_batch < stage.job.global_batch {
                time.ramp += (of_step * steps).saturating_sub(job.tokens / full_rate);
            }
        }
        Ok(time)
    }

    /// A step of a stage with that batch, if it can be and fits.
    fn stage_estimate(
        &self,
        stage: &Stage,
        job: &TrainingJob,
        layout: &Layout,
    ) -> Result<TrainingEstimate, Infeasible> {
        layout.check(&self.step.transformer, job)?;
        self.check_memory(stage.kind, job, layout)?;
        Ok(self.estimate(job, layout, stage.kind))
    }

    /// Adapters keep neither gradients nor optimizer states of the frozen model.
    fn check_memory(&self, kind: StageKind, job: &TrainingJob, layout: &Layout) -> Result<(), Infeasible> {
        let (model, allowances) = (&self.step.transformer, &self.allowances);
        let (stage, footprint) = if kind == StageKind::Lora {
            let frozen = memory::all_stages(model, job, layout, allowances).map(|footprint| memory::MemoryFootprint {
                gradients: crate::units::Bytes::ZERO,
                optimizer: crate::units::Bytes::ZERO,
                ..footprint
            });
            let worst = (0..).zip(frozen).max_by(|a, b| a.1.total().value().total_cmp(&b.1.total().value()));
            worst.unwrap_or_else(|| memory::worst(model, job, layout, allowances))
        } else {
            memory::worst(model, job, layout, allowances)
        };
        self.fits(stage, &footprint)
    }
}
