//! The constants of serving fitted to runs: least mean distance, one constant after the other.

use crate::catalog::serving_efficiency::{EngineRates, ServingEfficiency};
use crate::units::{Factor, Seconds};

/// The first move of a constant, over its value.
const FIRST_MOVE: f64 = 0.15;
/// Moves smaller than this end; a later pass begins again with three times as much.
const LEAST_MOVE: f64 = 0.003;
/// A pass that gains less than this is the last.
const LEAST_GAIN: f64 = 2e-5;

/// Writes a constant into a set.
type Write = Box<dyn Fn(&mut ServingEfficiency, f64)>;

/// A constant of the set: its name, how it is read and written, and where it may lie.
struct Constant {
    name: String,
    get: Box<dyn Fn(&ServingEfficiency) -> f64>,
    set: Write,
    within: (f64, f64),
}

/// What a fit made of a constant; times in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedServingConstant {
    /// Its name, as in the catalog's file.
    pub name: String,
    /// Its value before.
    pub before: f64,
    /// Its value now.
    pub after: f64,
    /// Whether it is a time.
    pub is_time: bool,
}

/// A fitted set.
#[derive(Clone, Debug, PartialEq)]
pub struct ServingFit {
    /// The set.
    pub set: ServingEfficiency,
    /// Its constants.
    pub constants: Vec<FittedServingConstant>,
    /// The distance before and after.
    pub distance: (f64, f64),
}

/// Shares of a peak or of a bandwidth.
const SHARE: (f64, f64) = (0.02, 1.0);
/// Multipliers.
const FACTOR: (f64, f64) = (0.02, 8.0);
/// Times, in seconds.
const TIME: (f64, f64) = (1e-8, 1.0);

/// Reads and writes one field of each of many.
macro_rules! constant {
    (time $name:expr, |$set:ident| $field:expr) => {
        Constant {
            name: $name,
            get: Box::new(move |$set: &ServingEfficiency| $field / Seconds::new(1.0)),
            set: Box::new(move |$set: &mut ServingEfficiency, value| $field = Seconds::new(value)),
            within: TIME,
        }
    };
    ($within:ident $name:expr, |$set:ident| $field:expr) => {
        Constant {
            name: $name,
            get: Box::new(move |$set: &ServingEfficiency| $field.get()),
            set: Box::new(move |$set: &mut ServingEfficiency, value| {
                if let Some(factor) = Factor::new(value) {
                    $field = factor;
                }
            }),
            within: $within,
        }
    };
}

/// Every constant of a set.
fn constants(set: &ServingEfficiency) -> Vec<Constant> {
    let mut all = Vec::new();
    for (index, generation) in set.generations.iter().enumerate() {
        let name = |field: &str| format!("generation.{}.{field}", generation.ids.first().map_or("", String::as_str));
        all.push(constant!(SHARE name("weights"), |s| s.generations[index].weights));
        all.push(constant!(SHARE name("keys_values"), |s| s.generations[index].keys_values));
        all.push(constant!(SHARE name("gemm"), |s| s.generations[index].gemm));
        all.push(constant!(SHARE name("experts"), |s| s.generations[index].experts));
        all.push(constant!(SHARE name("attention"), |s| s.generations[index].attention));
        all.push(constant!(SHARE name("scale_up"), |s| s.generations[index].scale_up));
        all.push(constant!(time name("unit"), |s| s.generations[index].unit));
    }
    for engine in set.engines.keys() {
        let name = |field: &str| format!("engine.{engine}.{field}");
        // The first engine by whose steps and prefills the others' are counted.
        if engine != "trtllm" {
            all.push(rates(engine, name("overhead"), |rates| &mut rates.overhead, |rates| rates.overhead));
            all.push(rates(engine, name("prefill"), |rates| &mut rates.prefill, |rates| rates.prefill));
        }
        let (reader, writer) = (engine.clone(), engine.clone());
        all.push(Constant {
            name: name("first_token"),
            get: Box::new(move |s| s.engines.get(&reader).map_or(0.0, |rates| rates.first_token / Seconds::new(1.0))),
            set: Box::new(move |s, value| {
                if let Some(rates) = s.engines.get_mut(&writer) {
                    rates.first_token = Seconds::new(value);
                }
            }),
            within: TIME,
        });
    }
    let name = str::to_owned;
    all.extend([
        constant!(SHARE name("kernel.decode_gemm"), |s| s.kernels.decode_gemm),
        constant!(SHARE name("kernel.decode_experts"), |s| s.kernels.decode_experts),
        constant!(SHARE name("kernel.latent_cache"), |s| s.kernels.latent_cache),
        constant!(SHARE name("kernel.fp4_weights"), |s| s.kernels.fp4_weights),
        constant!(SHARE name("kernel.fp4_unpacked"), |s| s.kernels.fp4_unpacked),
        constant!(SHARE name("kernel.int4_unpacked"), |s| s.kernels.int4_unpacked),
        constant!(FACTOR name("kernel.routing"), |s| s.kernels.routing),
        constant!(time name("overhead.step"), |s| s.overhead.step),
        constant!(time name("overhead.sequence"), |s| s.overhead.sequence),
        constant!(time name("overhead.prefill_layer"), |s| s.overhead.prefill_layer),
        constant!(FACTOR name("overhead.latent"), |s| s.overhead.latent),
        constant!(FACTOR name("overhead.indexed"), |s| s.overhead.indexed),
        constant!(FACTOR name("overhead.recurrent"), |s| s.overhead.recurrent),
        constant!(FACTOR name("overhead.experts"), |s| s.overhead.experts),
        constant!(FACTOR name("overhead.quantised"), |s| s.overhead.quantised),
        constant!(time name("overhead.expert"), |s| s.overhead.expert),
        constant!(time name("messages.all_reduce"), |s| s.messages.all_reduce),
        constant!(time name("messages.all_to_all"), |s| s.messages.all_to_all),
        constant!(FACTOR name("batching.stall"), |s| s.batching.stall),
        constant!(FACTOR name("batching.fixed_length"), |s| s.batching.fixed_length),
        constant!(time name("batching.transfer"), |s| s.batching.transfer),
    ]);
    all
}

/// A multiplier of an engine.
fn rates(
    engine: &str,
    name: String,
    field: fn(&mut EngineRates) -> &mut Factor,
    value: fn(&EngineRates) -> Factor,
) -> Constant {
    let (reader, writer) = (engine.to_owned(), engine.to_owned());
    Constant {
        name,
        get: Box::new(move |s| s.engines.get(&reader).map_or(1.0, |rates| value(rates).get())),
        set: Box::new(move |s, factor| {
            if let (Some(rates), Some(factor)) = (s.engines.get_mut(&writer), Factor::new(factor)) {
                *field(rates) = factor;
            }
        }),
        within: FACTOR,
    }
}

/// Fits every constant of a set to the least distance, in at most so many passes.
///
/// Each pass tries every constant a little higher and a little lower and keeps what is nearer; moves grow where they
/// succeed and shrink where they do not. The distance has no slope where runs are far off (it is bounded for each), which
/// is why no derivative is taken. From the same set and runs the same fit follows.
pub fn fit_serving(start: &ServingEfficiency, passes: u32, distance: impl Fn(&ServingEfficiency) -> f64) -> ServingFit {
    let constants = constants(start);
    let mut set = start.clone();
    let mut moves = vec![FIRST_MOVE; constants.len()];
    let first = distance(&set);
    let mut least = first;
    for _ in 0..passes {
        let before = least;
        for (constant, step) in constants.iter().zip(&mut moves) {
            let at = (constant.get)(&set);
            let (low, high) = constant.within;
            let mut nearer = false;
            for factor in [1.0 + *step, 1.0 / (1.0 + *step)] {
                let mut tried = set.clone();
                (constant.set)(&mut tried, (at * factor).clamp(low, high));
                let reached = distance(&tried);
                if reached < least {
                    (set, least, nearer) = (tried, reached, true);
                    break;
                }
            }
            *step = if nearer { (*step * 1.3).min(0.5) } else { *step * 0.5 };
            if *step < LEAST_MOVE {
                *step = 3.0 * LEAST_MOVE;
            }
        }
        if before - least < LEAST_GAIN {
            break;
        }
    }
    let fitted = constants.iter().map(|constant| FittedServingConstant {
        name: constant.name.clone(),
        before: (constant.get)(start),
        after: (constant.get)(&set),
        is_time: constant.within == TIME,
    });
    let constants = fitted.collect();
    ServingFit { set, constants, distance: (first, least) }
}
