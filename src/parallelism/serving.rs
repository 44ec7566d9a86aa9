//! How a model is spread over the ranks of a serving engine.

use crate::catalog::model::{Mixer, Model};

/// How a model is spread over the ranks of one replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServingLayout {
    /// Ranks that split every matrix.
    pub tensor: u32,
    /// Stages that split the layers.
    pub pipeline: u32,
    /// Ranks that split a layer's experts; 1 leaves them to `tensor`.
    pub expert: u32,
    /// Groups of tensor ranks that attend for requests of their own and share the experts.
    pub attention_data: u32,
    /// Copies of routed experts in each layer beside one of each, so that each rank holds as many.
    pub redundant_experts: u32,
}

impl std::fmt::Display for ServingLayout {
    /// Its degrees, but for those of one.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "tensor {}", self.tensor)?;
        let others = [("attention data", self.attention_data), ("expert", self.expert), ("pipeline", self.pipeline)];
        for (axis, degree) in others.into_iter().filter(|(_, degree)| *degree > 1) {
            write!(f, ", {axis} {degree}")?;
        }
        if self.redundant_experts > 0 { write!(f, ", {} redundant experts", self.redundant_experts) } else { Ok(()) }
    }
}

impl ServingLayout {
    /// One rank.
    pub const SINGLE: Self = Self { tensor: 1, pipeline: 1, expert: 1, attention_data: 1, redundant_experts: 0 };

    /// Ranks of a replica.
    pub fn ranks(&self) -> u64 {
        u64::from(self.tensor) * u64::from(self.pipeline) * u64::from(self.attention_data)
    }

    /// The same ranks for another model beside it, such as a draft: one without experts has none to hold whole.
    #[must_use]
    pub fn of(self, model: &Model) -> Self {
        if has_experts(model) { self } else { Self { expert: 1, redundant_experts: 0, ..self } }
    }

    /// Entries of the vocabulary with those that are added for every tensor rank to have as many: each holds as many rows of
    /// the embedding and of the output projection.
    pub fn padded_vocabulary(&self, model: &Model) -> u64 {
        u64::from(model.vocab).next_multiple_of(u64::from(self.tensor.max(1)))
    }

    /// What is said of a vocabulary that does not split over the tensor ranks.
    pub fn padding(&self, model: &Model) -> Option<String> {
        let padded = self.padded_vocabulary(model);
        (padded > u64::from(model.vocab)).then(|| {
            format!(
                "{} entries of the vocabulary do not split over tensor {}: at least {padded} are needed with padding",
                model.vocab, self.tensor
            )
        })
    }

    /// What keeps a model from this layout, in words.
    ///
    /// A vocabulary that does not split is no reason: tables are padded.
    ///
    /// # Errors
    /// The first clash of numbers found.
    pub fn check(&self, model: &Model) -> Result<(), String> {
        self.clash(model).map_err(|reason| match self.padding(model) {
            Some(padding) if self.tensor > 1 => format!("{reason}; besides, {padding}"),
            _ => reason,
        })
    }

    fn clash(&self, model: &Model) -> Result<(), String> {
        let Self { tensor, pipeline, expert, attention_data, redundant_experts } = *self;
        if [tensor, pipeline, expert, attention_data].contains(&0) {
            return Err("every degree of a layout is at least 1".to_owned());
        }
        if pipeline > model.layers() {
            return Err(format!("{pipeline} stages are more than {} layers", model.layers()));
        }
        for block in &model.blocks {
            if let Mixer::Attention(attention) = block.mixer {
                let (heads, kv_heads) = (attention.heads, attention.kv_heads);
                if !heads.is_multiple_of(tensor) {
                    return Err(format!("{heads} heads do not split over tensor {tensor}"));
                }
                if !kv_heads.is_multiple_of(tensor) && !tensor.is_multiple_of(kv_heads) {
                    return Err(format!(
                        "{kv_heads} key and value heads neither split over tensor {tensor} nor repeat in it"
                    ));
                }
            }
            if let Some(moe) = block.moe() {
                split_experts(moe.experts, redundant_experts, expert)?;
            }
        }
        if !has_experts(model) && redundant_experts > 0 {
            return Err(format!("{redundant_experts} redundant experts of a model that has none"));
        }
        if !has_experts(model) && expert > 1 {
            return Err(format!("expert {expert} of a model that has no experts; a dense one has expert 1"));
        }
        if expert > 1 && u64::from(expert) > u64::from(tensor) * u64::from(attention_data) {
            return Err(format!("expert {expert} is more than the ranks of a stage ({tensor} x {attention_data})"));
        }
        Ok(())
    }
}

fn has_experts(model: &Model) -> bool {
    model.blocks.iter().any(|block| block.moe().is_some())
}

/// Whether so many experts, with copies beside them, lie whole on as many ranks, no expert twice on one.
fn split_experts(experts: u32, copies: u32, ranks: u32) -> Result<(), String> {
    if copies > 0 && ranks == 1 {
        return Err(format!("{copies} redundant experts need ranks that hold experts whole: expert above 1"));
    }
    let slots = u64::from(experts) + u64::from(copies);
    if slots > u64::from(experts) * u64::from(ranks) {
        return Err(format!("{copies} redundant experts put some of {experts} twice on one of {ranks} ranks"));
    }
    if slots.is_multiple_of(ranks.into()) {
        return Ok(());
    }
    let beside = if copies > 0 { format!(" and {copies} copies") } else { String::new() };
    let missing = slots.next_multiple_of(ranks.into()) - u64::from(experts);
    Err(format!(
        "{experts} experts{beside} do not split over expert {ranks}; with redundant_experts = {missing} each rank would hold {}",
        slots.div_ceil(ranks.into())
    ))
}
