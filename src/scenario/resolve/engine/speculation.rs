//! Binding of drafts that are verified.

use super::Layouts;
use crate::catalog::Catalog;
use crate::catalog::model::Model;
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::scenario::file::{Acceptance, SpeculationFile};
use crate::units::Fraction;
use crate::workload::prediction_layer;

/// The word for a layer of the checkpoint that predicts further tokens as what drafts, and for a head like one of the model's
/// layers that was trained apart (EAGLE): both are one more layer on top of the model.
const LAYER: &str = "mtp";
const HEAD: &str = "eagle";

/// Tokens that are drafted and then verified in one step.
#[derive(Clone, Debug)]
pub struct Speculation {
    /// What drafts, by the word or id of the scenario.
    pub draft: String,
    /// Its dimensions: those of another model, or of one more layer as the model's last.
    pub model: Model,
    /// Whether it is one more layer on top of the model, which shares the model's embedding and head.
    pub layer: bool,
    /// Tokens drafted for each sequence in a step.
    pub tokens: u32,
    /// Share of them that the model would have chosen too, for each in turn: of those before which all were accepted.
    pub acceptance: Vec<Fraction>,
}

/// That which is asked for.
pub(super) fn bind(
    wanted: &SpeculationFile,
    (name, model): (&str, &Model),
    layouts: &Layouts<'_>,
    catalog: &Catalog,
    sink: &Sink,
) -> Option<Speculation> {
    let refuse = |message: String, hint: &str| {
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.at, "asked for here").hint(hint));
    };
    if layouts.given.iter().any(|layout| layout.pipeline > 1) {
        let message = "drafts of a model whose layers are split over pipeline stages are not modelled".to_owned();
        refuse(message, "use serving.layout.pipeline = 1, or leave speculation out");
    }
    let layer = [LAYER, HEAD].contains(&wanted.draft.id.as_str());
    if wanted.draft.id == LAYER && model.prediction_layers == 0 {
        let message =
            format!("no layer of {name} that predicts further tokens is known, by which \"{LAYER}\" would draft");
        let hint = "name a smaller model of the same family, or \"eagle\" for a head that was trained for this one; a checkpoint that has such a layer, like the model's last one, says prediction_layers = 1 in its file of the catalog";
        sink.push(Diagnostic::new(Code::Inconsistent, message).at(&wanted.draft.at, "this draft").hint(hint));
    }
    let mut draft = if layer {
        prediction_layer(model)
    } else {
        catalog.models.find(&wanted.draft, &wanted.draft.at, sink)?.part.clone()
    };
    draft.formats.kv_cache = model.formats.kv_cache;
    if draft.vocab != model.vocab {
        let message = format!("the draft has a vocabulary of {}, and the model one of {}", draft.vocab, model.vocab);
        refuse(message, "tokens are verified one by one: name a draft of the same family, or \"eagle\"");
    }
    let given = if layouts.search { &[] } else { layouts.given };
    if let Some(reason) = given.iter().find_map(|layout| layout.of(&draft).check(&draft).err()) {
        let message = format!("the draft runs on the ranks of the model: {reason}");
        sink.push(
            Diagnostic::new(Code::Inconsistent, message).at(layouts.at, "this layout").hint("name another draft"),
        );
    }
    let tokens = wanted.tokens as usize;
    let acceptance = match &wanted.acceptance {
        Acceptance::Alike(share) => vec![*share; tokens],
        Acceptance::ByPlace(shares) => shares.clone(),
    };
    if acceptance.len() != tokens {
        let message = format!("{} shares of acceptance for {tokens} drafted tokens", acceptance.len());
        refuse(message, "give one share for all, or as many as `tokens`: of each, where those before it are accepted");
    }
    Some(Speculation { draft: wanted.draft.id.clone(), model: draft, layer, tokens: wanted.tokens, acceptance })
}
