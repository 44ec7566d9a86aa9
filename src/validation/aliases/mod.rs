//! Published names and the catalog's: a table of patterns in which the first match holds.

mod meaning;
mod pattern;

use super::reliability::{Cause, Figure, Fleet};
use crate::diagnostics::Sink;
use crate::document::{Node, Reader};
use crate::parallelism::Sharding;
use crate::topology::Managers;
use crate::workload::Precision;
use pattern::{Alias, Pattern, Supported, aliases, first, supported};

pub(super) use meaning::{
    Beside, Convention, Design, Family, Hardware, Links, NamedFramework, PartAlias, ScriptedCache, Served, Shape,
    StatedRecompute,
};

/// Requests that are open from which scripts let an engine look for new ones less often.
const MANY: f64 = 16.0;

/// A rule about the data that leaves rows out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exclusion {
    pattern: Pattern,
    /// The columns that it looks at.
    pub(super) columns: Vec<String>,
    /// The reason.
    pub(super) reason: String,
}

impl Exclusion {
    /// Whether the text of one of its columns calls for it.
    pub(super) fn holds(&self, text: &str) -> bool {
        self.pattern.matches(text)
    }
}

/// Prompts of a benchmark's run of offline throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Prompts {
    /// Tokens of each.
    input: u32,
    /// Tokens of its answer.
    output: u32,
    /// How many there are.
    count: u32,
}

/// The alias table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Aliases {
    exclusions: Vec<Exclusion>,
    hardware: Vec<Alias<Hardware>>,
    links: Vec<Alias<Links>>,
    network_classes: Vec<Alias<String>>,
    gpus_per_process: Vec<Alias<(u32, String)>>,
    fabrics: Vec<Alias<Vec<String>>>,
    families: Vec<Alias<Supported<Shape>>>,
    models: Vec<Alias<String>>,
    served: Vec<Alias<Served>>,
    prompts: Vec<Prompts>,
    polls: Vec<Alias<[u32; 2]>>,
    caches: Vec<Alias<ScriptedCache>>,
    precisions: Vec<Alias<Precision>>,
    shardings: Vec<Alias<Sharding>>,
    recomputes: Vec<Alias<StatedRecompute>>,
    no_sequence_parallel: Vec<Alias<()>>,
    pipelines: Vec<Alias<u32>>,
    conventions: Vec<Convention>,
    frameworks: Vec<Alias<NamedFramework>>,
    always_fitted: Vec<Alias<()>>,
    designs: Vec<Alias<Design>>,
    parts: Vec<Alias<PartAlias>>,
    fleets: Vec<Alias<Supported<Fleet>>>,
    failure_figures: Vec<Alias<Supported<Figure>>>,
    failure_causes: Vec<Alias<Cause>>,
}

impl Aliases {
    /// Reads an alias table; mistakes go to the sink.
    pub fn read(document: &Node, sink: &Sink) -> Self {
        let Some(mut reader) = Reader::new(document, "", sink) else { return Self::default() };
        let r = &mut reader;
        Self {
            exclusions: r.tables("exclude", |r| Exclusion {
                pattern: Pattern::read(r),
                columns: r.optional("column").map_or_else(|| r.get("columns"), |column| vec![column]),
                reason: r.get("reason"),
            }),
            hardware: aliases(r, "accelerator", |r| Hardware { node: r.get("node"), fabric: r.get("fabric") }),
            links: aliases(r, "scale_up_link", |r| {
                let line_rate = r.get("line_rate");
                Links {
                    kind: r.get("kind"),
                    line_rate,
                    peer_rate: r.or("peer_rate", line_rate),
                    in_network_reduction: r.or("in_network_reduction", false),
                    because: r.optional("because"),
                }
            }),
            network_classes: aliases(r, "network_class", |r| r.get("class")),
            gpus_per_process: aliases(r, "host_process", |r| (r.get("gpus"), r.get("because"))),
            fabrics: aliases(r, "fabric", |r| r.get("fabrics")),
            families: aliases(r, "family", |r| {
                supported(r, |r| match r.optional("catalog") {
                    Some(id) => Shape::Catalog(id),
                    None => Shape::Usual(Family {
                        gated: r.get("gated"),
                        norm: r.get("norm"),
                        biases: r.get("biases"),
                        tied_embeddings: r.get("tied_embeddings"),
                        learned_positions: r.get("learned_positions"),
                        parallel: r.or("parallel", false),
                        head_dim: r.optional("head_dim"),
                        vocab: r.optional("vocab"),
                    }),
                })
            }),
            models: aliases(r, "model", |r| r.get("model")),
            served: aliases(r, "served_model", |r| Served { model: r.get("model"), eight: r.optional("eight") }),
            polls: aliases(r, "polls", |r| [r.get("few"), r.get("many")]),
            caches: aliases(r, "cache", |r| ScriptedCache {
                number: r.get("number"),
                fraction: r.optional("fraction"),
            }),
            prompts: r.tables("prompts", |r| Prompts {
                input: r.get("input"),
                output: r.get("output"),
                count: r.get("count"),
            }),
            precisions: aliases(r, "precision", |r| r.get("precision")),
            shardings: aliases(r, "sharding", |r| r.get("sharding")),
            recomputes: aliases(r, "recompute", |r| {
                r.optional("recompute").map_or(StatedRecompute::Unstated, StatedRecompute::Is)
            }),
            no_sequence_parallel: aliases(r, "no_sequence_parallel", |_| ()),
            pipelines: aliases(r, "pipeline", |r| r.get("virtual_stages")),
            conventions: r.tables("convention", |r| Convention {
                kind: r.get("kind"),
                source: r.or("source", Vec::new()),
                recomputed: r.get("recomputed"),
                attention: r.get("attention"),
            }),
            frameworks: aliases(r, "framework", |r| NamedFramework {
                class: r.get("class"),
                overlaps: r.get("overlaps"),
            }),
            always_fitted: aliases(r, "always_fitted", |_| ()),
            designs: aliases(r, "design", |r| Design {
                radix: r.optional("radix"),
                planes: r.or("planes", 1),
                managers: r.optional_table("managers", managers).unwrap_or_default(),
                nodes: r.optional("nodes"),
                beside: r.optional_table("beside", |r| Beside {
                    node: r.get("node"),
                    nodes_per_rack: r.within("nodes_per_rack", &(1..=64)),
                    switch: r.get("switch"),
                    storage: r.get("storage"),
                    networks: r.get("networks"),
                }),
            }),
            parts: aliases(r, "part", |r| match r.optional("switch") {
                Some(id) => PartAlias::Switch(id),
                None => PartAlias::Node(r.get("node")),
            }),
            fleets: aliases(r, "fleet", |r| supported(r, Fleet::read)),
            failure_figures: aliases(r, "failure_figure", |r| supported(r, |r| r.get("figure"))),
            failure_causes: aliases(r, "failure_cause", |r| r.get("cause")),
        }
    }

    pub(super) fn exclusions(&self) -> &[Exclusion] {
        &self.exclusions
    }

    pub(super) fn hardware(&self, gpu: &str) -> Option<&Hardware> {
        first(&self.hardware, gpu)
    }

    /// The links of a GPU.
    pub(super) fn links(&self, gpu: &str) -> Option<&Links> {
        first(&self.links, gpu)
    }

    /// The class of network among the collective constants.
    pub(super) fn network_class(&self, fabric: &str) -> Option<&str> {
        first(&self.network_classes, fabric).map(String::as_str)
    }

    /// GPUs that one process drives in the runs of a source, and how that is known.
    pub(super) fn gpus_per_process(&self, source: &str) -> Option<&(u32, String)> {
        first(&self.gpus_per_process, source)
    }

    /// Fabric ids of a class, slowest first.
    pub(super) fn fabrics(&self, class: &str) -> Option<&[String]> {
        first(&self.fabrics, class).map(Vec::as_slice)
    }

    pub(super) fn family(&self, model: &str) -> Option<&Supported<Shape>> {
        first(&self.families, model)
    }

    /// The catalog's id of a model.
    pub(super) fn model(&self, model: &str) -> Option<&str> {
        first(&self.models, model).map(String::as_str)
    }

    /// Steps of decode from one look of an engine for new requests to the next, with so many open, where the scripts that ran a
    /// campaign set them.
    pub(super) fn polls(&self, campaign: &str, open: f64) -> Option<f64> {
        first(&self.polls, campaign).map(|[few, many]| f64::from(if open < MANY { *few } else { *many }))
    }

    /// The cache of a campaign, where the scripts that ran it set it.
    pub(super) fn cache(&self, campaign: &str) -> Option<ScriptedCache> {
        first(&self.caches, campaign).copied()
    }

    /// Prompts of a run of TensorRT-LLM's benchmark with prompts and answers of so many tokens, where its documents say.
    pub(super) fn prompts(&self, input: f64, output: f64) -> Option<f64> {
        let same = |tokens: u32, stated: f64| (f64::from(tokens) - stated).abs() < 0.5;
        let of_lengths = |run: &&Prompts| same(run.input, input) && same(run.output, output);
        self.prompts.iter().find(of_lengths).map(|run| f64::from(run.count))
    }

    /// What a run serves.
    pub(super) fn served(&self, model: &str) -> Option<&Served> {
        first(&self.served, model)
    }

    pub(super) fn precision(&self, precision: &str) -> Option<Precision> {
        first(&self.precisions, precision).copied()
    }

    pub(super) fn sharding(&self, text: &str) -> Option<Sharding> {
        first(&self.shardings, text).copied()
    }

    /// What a text says of recomputation.
    pub(super) fn recompute(&self, text: &str) -> Option<StatedRecompute> {
        first(&self.recomputes, text).copied()
    }

    pub(super) fn denies_sequence_parallel(&self, notes: &str) -> bool {
        first(&self.no_sequence_parallel, notes).is_some()
    }

    /// Chunks of a stage that a program's pipelines have unless told otherwise, where its documents say so; the same
    /// documents make a step one microbatch a stage.
    pub(super) fn usual_chunks(&self, source: &str) -> Option<u32> {
        first(&self.pipelines, source).copied()
    }

    /// What a framework of that name is.
    pub(super) fn framework(&self, name: &str) -> Option<NamedFramework> {
        first(&self.frameworks, name).copied()
    }

    /// Whether a source stays in every fit, because its runs alone identify some constants.
    pub(super) fn always_fitted(&self, source: &str) -> bool {
        first(&self.always_fitted, source).is_some()
    }

    /// What a published network is built of.
    pub(super) fn design(&self, name: &str) -> Option<&Design> {
        first(&self.designs, name)
    }

    /// The catalog's part of a name.
    pub(super) fn part(&self, name: &str) -> Option<&PartAlias> {
        first(&self.parts, name)
    }

    /// The fleet of a case, or why there is none.
    pub(super) fn fleet(&self, case: &str) -> Option<&Supported<Fleet>> {
        first(&self.fleets, case)
    }

    /// What a metric of failures is, or why it is none of the model's.
    pub(super) fn failure_figure(&self, metric: &str) -> Option<&Supported<Figure>> {
        first(&self.failure_figures, metric)
    }

    /// The component that a cause is put down to.
    pub(super) fn failure_cause(&self, metric: &str) -> Option<&Cause> {
        first(&self.failure_causes, metric)
    }

    /// How a FLOP rate of that kind counts in that source.
    pub(super) fn convention(&self, kind: &str, source: &str) -> Option<&Convention> {
        let (kind, source) = (kind.to_lowercase(), source.to_lowercase());
        let begins = |words: &[String]| words.iter().any(|word| kind.starts_with(word.as_str()));
        let within = |words: &[String]| words.is_empty() || words.iter().any(|word| source.contains(word.as_str()));
        self.conventions.iter().find(|convention| begins(&convention.kind) && within(&convention.source))
    }
}

fn managers(r: &mut Reader<'_>) -> Managers {
    Managers { servers: r.get("servers"), ports_per_server: r.get("ports_per_server") }
}
