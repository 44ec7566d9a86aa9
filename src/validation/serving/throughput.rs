//! Rows of offline throughput.

use super::named::Named;
use super::setup::{Asked, Measured, Quantity, Setup, version_after};
use crate::catalog::Catalog;
use crate::catalog::engine_version::EngineVersion;
use crate::inference::{ModelShape, Request, Spread};
use crate::parallelism::ServingLayout;
use crate::validation::aliases::Aliases;
use crate::validation::outcome::Fill;
use crate::validation::table::{Row, Unusable};

/// Engine families by how their names begin.
const ENGINES: [(&str, &str); 3] = [("TensorRT-LLM", "trtllm"), ("vLLM", "vllm"), ("SGLang", "sglang")];

pub(super) fn setup(row: &Row, catalog: &Catalog, aliases: &Aliases) -> Result<Setup, Unusable> {
    let engine_text = row.needed("engine")?;
    let offline = row.text("scenario") == Some("offline max throughput");
    let family = ENGINES.iter().find(|(name, _)| engine_text.starts_with(name));
    let Some(&(name, engine)) = family.filter(|_| offline) else {
        return Err(Unusable(format!("no offline throughput of an engine that is known: {engine_text}")));
    };
    if row.needed("metric")? != super::THROUGHPUT {
        return Err(Unusable(format!("no {}", super::THROUGHPUT)));
    }
    let engine = engine.to_owned();
    let mut named = Named::find(row.needed("model")?, row.needed("gpu")?, catalog, aliases)?;
    let mut filled: Vec<Fill> =
        named.serve_in(row.needed("weight_precision")?, row.text("kv_cache"), None)?.into_iter().collect();
    let version = version_after(name, engine_text);
    named.run_by((&engine, version), catalog)?;
    let mut layout = parse(row.needed("parallelism")?)?;
    if name == "TensorRT-LLM" && attends_apart(version) && layout.tensor > 1 && named.has_experts() {
        layout = ServingLayout { tensor: 1, attention_data: layout.tensor, expert: layout.tensor, ..layout };
        let rule = "as the engine's documents have it for experts".to_owned();
        filled.push(Fill { field: "attention_data", value: layout.attention_data.to_string(), rule });
    }
    let needed = |column: &str| row.number(column)?.ok_or_else(|| Unusable(format!("{column} is missing")));
    let (input, output) = (needed("isl")?, needed("osl")?);
    let benchmark = (engine == "trtllm").then(|| named.benchmark(layout, version, (input, output)));
    let room = named.room(layout, (&engine, version), (input, output), benchmark.as_ref(), catalog)?;
    let most = match (row.number("most_requests")?, benchmark) {
        (Some(most), _) => most,
        (None, Some(benchmark)) => {
            let rule = "the rule of the engine's benchmark";
            for (field, value) in [("max_num_seqs", benchmark.requests), ("chunk_tokens", benchmark.tokens)] {
                filled.push(Fill { field, value: value.to_string(), rule: rule.to_owned() });
            }
            benchmark.requests
        }
        (None, None) => return Err(Unusable("most_requests is missing".to_owned())),
    };
    let count = match row.number("prompts")? {
        Some(count) => Some(count),
        None if engine == "trtllm" => aliases.prompts(input, output).inspect(|count| {
            let rule = "as the engine's documents have it for prompts and answers of these lengths".to_owned();
            filled.push(Fill { field: "prompts", value: count.to_string(), rule });
        }),
        None => None,
    };
    let value = needed("value")?;
    let spread = Spread::from(layout);
    let scale = match row.needed("unit")? {
        "output tok/s (all GPUs)" => 1.0,
        "output tok/s/GPU" => spread.accelerators().recip(),
        other => {
            return Err(Unusable(format!(
                "no unit \"{other}\" is known: \"output tok/s (all GPUs)\", or \"output tok/s/GPU\""
            )));
        }
    };
    Ok(Setup {
        draft: None,
        links: named.links(),
        shape: ModelShape::new(&named.model),
        formats: named.formats(),
        model: named.id,
        accelerator: named.accelerator,
        version,
        balance: None,
        polls: None,
        table: Some(engine_text.split(" (").next().unwrap_or(engine_text).to_owned()),
        engine,
        spread,
        room,
        asked: Asked::Endless {
            request: Request { input, cached: 0.0, output, beyond: 0.0, spread: 0.0 },
            most,
            count,
            benchmark,
        },
        counted_output: output,
        measured: vec![Measured { quantity: Quantity::Throughput, column: "value", value, scale }],
        filled,
        source: row.text("source").unwrap_or_default().to_owned(),
        cold: false,
        held_out: super::held_out(row),
    })
}

/// Whether layouts of experts are those of ranks that attend for requests of their own: the documents of v1.0 call them by the number
/// of ranks alone, and set it in their command for such models.
fn attends_apart(version: Option<EngineVersion>) -> bool {
    let first = EngineVersion::parse("1.0");
    version.zip(first).is_some_and(|(version, first)| version >= first)
}

/// `TP8`, `TP1,PP4`, `TP8 EP2`, `attn-DP8 EP8`.
fn parse(text: &str) -> Result<ServingLayout, Unusable> {
    let mut layout = ServingLayout::SINGLE;
    for word in text.split([',', ' ']).filter(|word| !word.is_empty()) {
        let digits = word.find(|c: char| c.is_ascii_digit()).unwrap_or(word.len());
        let (axis, degree) = word.split_at(digits);
        let unknown = || Unusable(format!("no layout is known by \"{text}\""));
        let degree: u32 = degree.parse().map_err(|_| unknown())?;
        if degree == 0 {
            return Err(Unusable(format!("parallelism is \"{text}\", and a degree is 1 at least")));
        }
        match axis {
            "TP" => layout.tensor = degree,
            "PP" => layout.pipeline = degree,
            "EP" => layout.expert = degree,
            "attn-DP" => layout.attention_data = degree,
            _ => return Err(unknown()),
        }
    }
    Ok(layout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_layouts_are_read() {
        let single = ServingLayout::SINGLE;
        let of = |text| parse(text).unwrap();
        assert_eq!(of("TP8"), ServingLayout { tensor: 8, ..single });
        assert_eq!(of("TP1,PP4"), ServingLayout { pipeline: 4, ..single });
        assert_eq!(of("attn-DP8 EP8"), ServingLayout { attention_data: 8, expert: 8, ..single });
        assert!(parse("see bench config").is_err());
        for none in ["TP0", "TP8 EP0", "TP1 PP0", "attn-DP0"] {
            assert_eq!(parse(none), Err(Unusable(format!("parallelism is \"{none}\", and a degree is 1 at least"))));
        }
    }
}
