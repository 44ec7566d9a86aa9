//! The model of a row: its own sizes, the catalog's where it has none, and the shape that its family has.

use super::Filled;
use crate::catalog::Catalog;
use crate::units::to_integer;
use crate::validation::aliases::{Aliases, Family, Shape};
use crate::validation::known_model::known_model;
use crate::validation::table::{Row, Unusable};
use crate::workload::{Detail, Experts, Transformer};

/// A matrix of each layer may hold so many parameters in all: the sizes are a slip beyond it.
const MOST_PARAMETERS: f64 = 1e15;

/// Reads the transformer of a row.
pub(super) fn transformer(
    row: &Row,
    sequence: u32,
    catalog: &Catalog,
    aliases: &Aliases,
    filled: &mut Filled,
) -> Result<Transformer, Unusable> {
    let name = row.needed("model")?;
    let family = aliases.family(name).ok_or_else(|| Unusable(format!("model family of \"{name}\" is unknown")))?;
    let family = match family.as_ref().map_err(|reason| Unusable(reason.clone()))? {
        Shape::Catalog(id) => {
            let (model, fill) = known_model(row, id, catalog)?;
            filled.0.push(fill);
            return Ok(model);
        }
        Shape::Usual(family) => family,
    };
    let known =
        aliases.model(name).and_then(|id| Some((id, Transformer::try_from(&catalog.models.get(id)?.part).ok()?)));
    let mut sizes = Sizes { row, known, filled };
    let (layers, hidden, heads) = (
        layers(&mut sizes, sequence)?,
        sizes.needed("hidden", |model| Some(model.hidden))?,
        sizes.needed("heads", |model| Some(model.heads))?,
    );
    let kv_heads = sizes.find("kv_heads", |model| Some(model.kv_heads))?.unwrap_or_else(|| {
        sizes.filled.push("kv_heads", &heads, "as many as heads");
        heads
    });
    let experts = experts(&mut sizes)?;
    let ffn = match experts {
        // A layer of experts has no other MLP, unless the catalog says so.
        Some(_) => known.map_or(0, |(_, model)| model.ffn),
        None => sizes.needed("ffn", |model| Some(model.ffn))?,
    };
    let vocab = match (row.count("vocab")?, family.vocab) {
        (Some(stated), _) => stated,
        (None, Some(usual)) => {
            sizes.filled.push("vocab", &usual, "usual in this family of models");
            usual
        }
        (None, None) => sizes.needed("vocab", |model| Some(model.vocab))?,
    };
    let head_dim = head_dim(family, known.map(|(_, model)| model), hidden, heads, &mut *sizes.filled)?;
    let widest = experts.map_or(0.0, |all| f64::from(all.count) * f64::from(all.ffn)).max(f64::from(hidden.max(ffn)));
    let size = f64::from(layers) * f64::from(hidden) * widest;
    if size > MOST_PARAMETERS {
        return Err(Unusable("nobody trains a model of that size".to_owned()));
    }
    // One norm instead of two, a weight and a bias each where there are biases.
    let norm = i64::from(hidden) * if family.biases { 2 } else { 1 };
    let less_norms = if family.parallel { -norm } else { 0 };
    Ok(Transformer {
        layers,
        hidden,
        heads,
        kv_heads,
        head_dim,
        ffn,
        gated: family.gated,
        vocab,
        tied_embeddings: family.tied_embeddings,
        norm: family.norm,
        biases: family.biases,
        learned_positions: if family.learned_positions { sequence } else { 0 },
        experts,
        detail: Detail { parallel: family.parallel, dense_vectors: less_norms, ..Detail::NONE },
    })
}

/// Layers of the row, else of the catalog's model; of a run whose rate of operations and step time were published both,
/// as many as explain them: recomputing everything a layer takes `8 x 12 h^2` operations a token (SC21, arXiv 2104.04473,
/// equation 3, without its small terms).
fn layers(sizes: &mut Sizes<'_, '_>, sequence: u32) -> Result<u32, Unusable> {
    if let Some(stated) = sizes.find("layers", |model| Some(model.layers))? {
        return Ok(stated);
    }
    let row = sizes.row;
    let hardware = row.text("tflops_kind").is_some_and(|kind| kind.starts_with("hardware"));
    let known = (row.number("tflops_per_gpu")?, row.number("iter_s")?, row.count("num_gpus")?, row.count("gbs")?);
    let ((Some(rate), Some(time), Some(gpus), Some(batch)), true) = (known, hardware) else {
        return sizes.needed("layers", |_| None);
    };
    let hidden = f64::from(row.needed_count("hidden")?);
    let operations = rate * 1e12 * time * f64::from(gpus);
    let layer = 96.0 * hidden * hidden * f64::from(batch) * f64::from(sequence);
    let count = (operations / layer).round();
    if !(1.0..=10_000.0).contains(&count) {
        return Err(Unusable(format!("layers is missing, and {count} would explain the rate and time of the row")));
    }
    let count = to_integer::<u32>(count);
    sizes.filled.push("layers", &count, "as many as explain the published rate of operations and step time");
    Ok(count)
}

/// The experts of a layer, where the row or the catalog's model has some. `ffn` is an expert's width there.
fn experts(sizes: &mut Sizes<'_, '_>) -> Result<Option<Experts>, Unusable> {
    let Some(count) = sizes.find("experts", |model| Some(model.experts?.count))? else {
        let sparse = sizes.row.text("active_params_b").is_some();
        return if sparse {
            Err(Unusable("experts is missing, and not all parameters are active".to_owned()))
        } else {
            Ok(None)
        };
    };
    let known = sizes.known.and_then(|(_, model)| model.experts);
    Ok(Some(Experts {
        count,
        per_token: sizes.needed("topk", |model| Some(model.experts?.per_token))?,
        ffn: sizes.needed("ffn", |model| Some(model.experts?.ffn))?,
        shared: known.map_or(0, |experts| experts.shared),
        leading_dense_layers: known.map_or(0, |experts| experts.leading_dense_layers),
    }))
}

/// Channels of a head: the family's, else hidden over heads.
fn head_dim(
    family: &Family,
    known: Option<Transformer>,
    hidden: u32,
    heads: u32,
    filled: &mut Filled,
) -> Result<u32, Unusable> {
    if let Some(usual) = family.head_dim {
        filled.push("head_dim", &usual, "usual in this family of models");
        return Ok(usual);
    }
    match known {
        Some(model) if model.hidden == hidden && model.heads == heads => Ok(model.head_dim),
        _ if hidden.is_multiple_of(heads) => Ok(hidden / heads),
        _ => Err(Unusable(format!("hidden {hidden} over heads {heads} is no head size"))),
    }
}

/// Sizes by column, with the catalog's model behind them.
struct Sizes<'a, 'f> {
    row: &'a Row,
    known: Option<(&'a str, Transformer)>,
    filled: &'f mut Filled,
}

impl Sizes<'_, '_> {
    fn find(
        &mut self,
        column: &'static str,
        of: impl Fn(&Transformer) -> Option<u32>,
    ) -> Result<Option<u32>, Unusable> {
        if let Some(stated) = self.row.count(column)? {
            return Ok(Some(stated));
        }
        let found = self.known.and_then(|(id, model)| Some((id, of(&model)?)));
        Ok(found.map(|(id, size)| {
            self.filled.push(column, &size, format!("the catalog's {id}"));
            size
        }))
    }

    fn needed(&mut self, column: &'static str, of: impl Fn(&Transformer) -> Option<u32>) -> Result<u32, Unusable> {
        self.find(column, of)?
            .ok_or_else(|| Unusable(format!("{column} is missing, and the catalog has no such model")))
    }
}
