//! Published names and the catalog's: a table of patterns in which the first match holds.

use super::reliability::{Cause, Figure, Fleet};
use crate::catalog::model::{Format, Norm, Number};
use crate::catalog::training_efficiency::Framework;
use crate::diagnostics::Sink;
use crate::document::{Node, Reader};
use crate::parallelism::{Recompute, Sharding};
use crate::topology::Managers;
use crate::units::{Bandwidth, Fraction};
use crate::workload::{AttentionCount, Precision};

/// What a text must be or contain, in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Pattern {
    is: Vec<String>,
    all: Vec<String>,
    any: Vec<String>,
    without: Vec<String>,
}

impl Pattern {
    fn read(r: &mut Reader<'_>) -> Self {
        Self {
            is: r.or("is", Vec::new()),
            all: r.or("all", Vec::new()),
            any: r.or("any", Vec::new()),
            without: r.or("without", Vec::new()),
        }
    }

    fn matches(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let holds = |part: &String| text.contains(part.as_str());
        if self.without.iter().any(holds) {
            return false;
        }
        if self.is.contains(&text) {
            return true;
        }
        let stated = !(self.all.is_empty() && self.any.is_empty());
        stated && self.all.iter().all(holds) && (self.any.is_empty() || self.any.iter().any(holds))
    }
}

/// The cache as the scripts of a campaign set it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ScriptedCache {
    /// Its numbers.
    pub(super) number: Number,
    /// The part of the memory that is used, where it is not the engine's own.
    pub(super) fraction: Option<Fraction>,
}

/// Requests that are open from which scripts let an engine look for new ones less often.
const MANY: f64 = 16.0;

/// A pattern and what it stands for.
type Alias<T> = (Pattern, T);

fn first<'a, T>(aliases: &'a [Alias<T>], text: &str) -> Option<&'a T> {
    aliases.iter().find(|(pattern, _)| pattern.matches(text)).map(|(_, meaning)| meaning)
}

fn aliases<T>(r: &mut Reader<'_>, key: &'static str, read: impl Fn(&mut Reader<'_>) -> T) -> Vec<Alias<T>> {
    r.tables(key, |r| (Pattern::read(r), read(r)))
}

/// A framework of its makers' own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NamedFramework {
    /// The class that it is of.
    pub(super) class: Framework,
    /// Whether its makers say that it hides tensor- and data-parallel communication.
    pub(super) overlaps: bool,
}

/// Catalog ids that stand for a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hardware {
    /// The node.
    pub(super) node: String,
    /// The fabric where a row states none.
    pub(super) fabric: String,
}

/// A model that published runs serve.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Served {
    /// Its id in the catalog.
    pub(super) model: String,
    /// What 8 bits of it are published in, where that is not what its own entry says and not a scale for a whole tensor or row.
    pub(super) eight: Option<Format>,
}

/// The links of a GPU that runs of collectives name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Links {
    /// Their kind among the collective constants.
    pub(super) kind: String,
    /// What one GPU sends over them.
    pub(super) line_rate: Bandwidth,
    /// What of it can go to one other: all, or a link of a mesh.
    pub(super) peer_rate: Bandwidth,
    /// Whether their switches reduce.
    pub(super) in_network_reduction: bool,
    /// Where the text leaves the GPU open: why it is taken to be this one.
    pub(super) because: Option<String>,
}

/// What the layers of a family are like.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// As this model of the catalog has them: its sizes don't say how they differ from the usual ones.
    Catalog(String),
    /// Of the usual kind.
    Usual(Family),
}

/// What the layers of a family of models are like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Family {
    /// Whether MLPs and experts are gated.
    pub(super) gated: bool,
    /// The normalisation.
    pub(super) norm: Norm,
    /// Whether projections have biases.
    pub(super) biases: bool,
    /// Whether the output projection is the embedding again.
    pub(super) tied_embeddings: bool,
    /// Whether positions are learned, one for each place of the sequence.
    pub(super) learned_positions: bool,
    /// Whether attention and MLP stand side by side.
    pub(super) parallel: bool,
    /// Channels of a head, where they are not hidden over heads.
    pub(super) head_dim: Option<u32>,
    /// The usual vocabulary.
    pub(super) vocab: Option<u32>,
}

/// What a text says of recomputation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatedRecompute {
    /// That it says nothing.
    Unstated,
    /// What is computed again.
    Is(Recompute),
}

/// How a published FLOP rate counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Convention {
    kind: Vec<String>,
    source: Vec<String>,
    /// Whether recomputed operations count.
    pub(super) recomputed: bool,
    /// How attention's scores count.
    pub(super) attention: AttentionCount,
}

/// What a published network is built of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Design {
    /// Ports of a switch at the speed of a NIC; without it the name says.
    pub(super) radix: Option<u32>,
    /// Planes that ports are split into.
    pub(super) planes: u32,
    /// Fabric managers plugged in.
    pub(super) managers: Managers,
    /// Nodes, where the design was published without a size.
    pub(super) nodes: Option<u32>,
    /// What stands beside the fabric, where figures of that were published.
    pub(super) beside: Option<Beside>,
}

/// What stands beside a published fabric, by catalog id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Beside {
    /// The node.
    pub(super) node: String,
    /// Nodes in a rack.
    pub(super) nodes_per_rack: u32,
    /// The switch of the fabric.
    pub(super) switch: String,
    /// The storage.
    pub(super) storage: String,
    /// The networks.
    pub(super) networks: Vec<String>,
}

/// A part of the catalog, by kind and id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PartAlias {
    /// A switch.
    Switch(String),
    /// A node.
    Node(String),
}

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

/// A meaning, or why there is none.
type Supported<T> = Result<T, String>;

fn supported<T>(r: &mut Reader<'_>, read: impl Fn(&mut Reader<'_>) -> T) -> Supported<T> {
    match r.optional::<String>("unsupported") {
        Some(reason) => Err(reason),
        None => Ok(read(r)),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_pattern_is_met_by_its_words() {
        let pattern = Pattern { all: words(&["h100", "80gb"]), without: words(&["pcie"]), ..Pattern::default() };
        assert!(pattern.matches("NVIDIA H100-SXM5-80GB"));
        assert!(!pattern.matches("H100-PCIe-80GB"));
        assert!(!pattern.matches("H100-96GB"));
        let pattern = Pattern { is: words(&["ib"]), any: words(&["infiniband"]), ..Pattern::default() };
        assert!(pattern.matches("IB") && pattern.matches("HDR InfiniBand") && !pattern.matches("IB or RoCE?"));
        assert!(!Pattern::default().matches("anything"));
    }
}
