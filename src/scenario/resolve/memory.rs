//! A training job of which memory alone is asked: models whose step time is not modelled.

use std::sync::Arc;

use super::layout::layout;
use super::training::{framework_memory, software, work};
use super::{Cluster, Defaults, cluster};
use crate::catalog::memory_allowance::FrameworkMemory;
use crate::catalog::{Catalog, Entry, MemoryAllowance};
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::parallelism::Layout;
use crate::scenario::file::ScenarioFile;
use crate::scenario::software::Software;
use crate::workload::{Mixed, TrainingJob, Transformer};

/// A training job on a model of several kinds of layers, bound to a cluster.
#[derive(Clone, Debug)]
pub struct MemoryJob {
    /// What is asked, in a line.
    pub title: String,
    /// The model, layer by layer.
    pub model: Mixed,
    /// The job.
    pub job: TrainingJob,
    /// The layout with one replica.
    pub layout: Layout,
    /// What it runs on.
    pub cluster: Cluster,
    /// The software.
    pub software: Software,
    /// What the software keeps in memory beside the model.
    pub memory: Arc<Entry<MemoryAllowance>>,
    /// What of it the framework keeps.
    pub framework_memory: FrameworkMemory,
}

impl MemoryJob {
    /// Whether a scenario trains a model whose memory is known, and its step time not.
    pub fn is_wanted(file: &ScenarioFile, catalog: &Catalog) -> bool {
        let model = file.training.as_ref().and_then(|wanted| catalog.models.get(&wanted.model.id));
        model.is_some_and(|model| Transformer::try_from(&model.part).is_err() && Mixed::try_from(&model.part).is_ok())
    }

    /// Binds the training job of such a scenario; mistakes go to the sink, and there is a job only if there are none.
    pub fn resolve(file: &ScenarioFile, catalog: &Catalog, sink: &Sink) -> Option<Self> {
        let mut defaults = Defaults::default();
        let wanted = file.training.as_ref()?;
        let cluster = cluster::bind(file, catalog, &mut defaults, sink);
        let work = work(wanted, catalog, &mut defaults, sink);
        if wanted.layout.search.is_some() {
            let message = "a layout is searched by its step time, which is not modelled for this model";
            let hint =
                "give training.layout its degrees: the answer names the fewest accelerators with a layout that fits";
            sink.push(Diagnostic::new(Code::Unsupported, message).at(&wanted.model.at, "this model").hint(hint));
        }
        let cluster = cluster?;
        let (entry, job) = work?;
        let model = Mixed::try_from(&entry.part).ok()?;
        let constants = catalog.training_efficiency.find("published-runs", &wanted.model.at, sink)?;
        let memory = catalog.memory_allowances.find("cuda", &wanted.model.at, sink)?;
        let software = software(file, &cluster, &constants, &mut defaults);
        let framework_memory = framework_memory(&memory, &software, file, sink)?;
        let layout = layout(&wanted.layout, &cluster, software.framework, &mut defaults, sink);
        let title = file.title.clone();
        sink.is_empty().then_some(Self { title, model, job, layout, cluster, software, memory, framework_memory })
    }
}
