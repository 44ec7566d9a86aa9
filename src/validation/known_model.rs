//! A model of the catalog in the place of a row's sizes, for layers that sizes alone don't describe.

use super::outcome::Fill;
use super::table::{Row, Unusable};
use crate::catalog::Catalog;
use crate::workload::Transformer;

/// The catalog's model, with the row's layers where it has fewer. What the row says of its sizes must agree.
///
/// Runs on fewer layers keep one leading dense layer (SimuMax, `simu_tools/megatron_scripts/scripts/run_pretrain_deepseekv2.sh`,
/// `--moe-layer-freq` of DeepSeek V2, V3 and Kimi).
///
/// # Errors
/// When the catalog has no such model that can be trained, or the row's sizes are others.
pub(super) fn known_model(row: &Row, id: &str, catalog: &Catalog) -> Result<(Transformer, Fill), Unusable> {
    let entry = catalog.models.get(id).ok_or_else(|| Unusable(format!("the catalog has no model {id}")))?;
    let mut model = Transformer::try_from(&entry.part).map_err(|error| Unusable(error.to_string()))?;
    let other = |column: &str, has: u32| Unusable(format!("{column} is not the {has} of the catalog's {id}"));
    let sizes = [
        ("hidden", model.hidden),
        ("heads", model.heads),
        ("vocab", model.vocab),
        ("experts", model.experts.map_or(0, |experts| experts.count)),
        ("topk", model.experts.map_or(0, |experts| experts.per_token)),
    ];
    for (column, has) in sizes {
        if row.count(column)?.is_some_and(|stated| stated != has) {
            return Err(other(column, has));
        }
    }
    if let Some(layers) = row.count("layers")?.filter(|layers| *layers != model.layers) {
        // Which of them would keep their windows, nobody says.
        if layers > model.layers || model.detail.windowed_layers > 0 {
            return Err(other("layers", model.layers));
        }
        model.layers = layers;
        if let Some(experts) = &mut model.experts {
            experts.leading_dense_layers = experts.leading_dense_layers.min(1);
        }
    }
    let rule = "the catalog's, for the sizes that no column has and the kind of its layers".to_owned();
    Ok((model, Fill { field: "model", value: id.to_owned(), rule }))
}
