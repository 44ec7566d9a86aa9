//! Runs of several stages, batches that grow, pauses, and data that do not come fast enough.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

use std::fs;
use std::path::Path;

use program::{Answer, LLAMA, MIXTRAL, run};

const WHOLE: &str = "scenarios/train-llama3.1-405b-whole-run.toml";

fn evaluated(path: &str, settings: &[&str]) -> serde_json::Value {
    let mut arguments = vec!["eval", path, "--format", "json"];
    for setting in settings {
        arguments.extend(["--set", setting]);
    }
    let answer = run(&arguments);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    serde_json::from_str(&answer.stdout).unwrap()
}

fn number(value: &serde_json::Value, at: &str) -> f64 {
    value.pointer(at).and_then(serde_json::Value::as_f64).unwrap_or_else(|| panic!("{at}"))
}

/// The Llama scenario with stages, or other tables, behind its own.
fn with_tables(tables: &str) -> Answer {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(LLAMA)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.toml");
    fs::write(&path, format!("{text}\n{tables}")).unwrap();
    run(&["eval", path.to_str().unwrap(), "--format", "json"])
}

fn stages(tables: &str) -> serde_json::Value {
    let answer = with_tables(tables);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    serde_json::from_str(&answer.stdout).unwrap()
}

#[test]
fn stages_and_pauses_make_up_the_run() {
    let whole = evaluated(WHOLE, &[]);
    let stages = whole.pointer("/training/stages").unwrap().as_array().unwrap();
    let sum = |key: &str| stages.iter().map(|stage| stage[key].as_f64().unwrap()).sum::<f64>();
    let pauses = number(&whole, "/training/evaluation_days");
    let days = sum("training_days") + sum("rollout_days") + pauses;
    assert!((days / number(&whole, "/training/duration_days") - 1.0).abs() < 1e-9, "{days}");
    // 10 minutes every 2,000 steps.
    let steps = number(&whole, "/training/steps_count");
    assert!((pauses - (steps / 2_000.0).floor() * 10.0 / 1_440.0).abs() < 1e-9);
    assert!((sum("steps_count") - steps).abs() < 1e-6);
    for stage in stages {
        let days = stage["steps_count"].as_f64().unwrap() * stage["iteration_s"].as_f64().unwrap() / 86_400.0;
        assert!((days / stage["training_days"].as_f64().unwrap() - 1.0).abs() < 1e-9, "{stage}");
    }
    // The paper's long context: 38% MFU on 16,384 GPUs with context 16 (Table 4 of arXiv 2407.21783).
    let mfu = stages[3]["mfu_ratio"].as_f64().unwrap();
    assert!((0.33..0.43).contains(&mfu), "{mfu}");
    // A whole run costs more than its main step times all tokens.
    let plain = evaluated(LLAMA, &["cluster.fabric=roce-400g"]);
    assert!(number(&whole, "/cost/usd_per_run") > number(&plain, "/cost/usd_per_run"));
    assert!((number(&whole, "/training/iteration_s") - number(&plain, "/training/iteration_s")).abs() < 1e-9);
}

#[test]
fn each_stage_has_its_own_goodput_and_they_add_up() {
    let of = |answer: &serde_json::Value| answer.pointer("/training/stages").unwrap().as_array().unwrap().clone();
    let day = |stage: &serde_json::Value, key: &str| stage[key].as_f64().unwrap();
    let adds_up = |answer: &serde_json::Value| {
        let mut sum = 0.0;
        for stage in of(answer) {
            let parts = ["training_days", "rollout_days", "evaluation_days"].map(|key| day(&stage, key));
            let wall = parts.iter().sum::<f64>() / day(&stage, "goodput_ratio");
            assert!((wall / day(&stage, "effective_days") - 1.0).abs() < 1e-12, "{stage}");
            sum += wall;
        }
        assert!((sum / number(answer, "/training/effective_days") - 1.0).abs() < 1e-12, "{sum}");
        // The cost is that of the wall time: of a year's, by the hours used.
        let share = sum / 365.0 / 0.8;
        let cost = number(answer, "/cost/annualised_per_year_usd") * share;
        assert!((number(answer, "/cost/usd_per_run") / cost - 1.0).abs() < 2e-3, "{cost}");
    };
    let whole = evaluated(WHOLE, &[]);
    adds_up(&whole);
    let pauses: f64 = of(&whole).iter().map(|stage| day(stage, "evaluation_days")).sum();
    assert!((pauses / number(&whole, "/training/evaluation_days") - 1.0).abs() < 1e-12);
    // Steps below the interval between checkpoints lose the same; an interval below the long context's step is that step.
    let main = number(&whole, "/goodput/ratio");
    for stage in of(&whole) {
        assert!((day(&stage, "goodput_ratio") - main).abs() < 1e-12, "{stage}");
    }
    let often = evaluated(WHOLE, &["training.checkpoint_interval=5 s"]);
    adds_up(&often);
    for stage in of(&often) {
        let (own, main) = (day(&stage, "goodput_ratio"), number(&often, "/goodput/ratio"));
        let (step, main_step) = (day(&stage, "iteration_s"), number(&often, "/training/iteration_s"));
        // Of stalls of seconds each, the longer step waits for fewer.
        assert_eq!(own.total_cmp(&main), step.max(5.0).total_cmp(&main_step.max(5.0)), "{stage}");
    }
}

#[test]
fn what_differs_in_goodput_is_adapters_and_long_steps() {
    let goodput = |more: &str| {
        let base = "[[training.stage]]\nname = \"base\"\ntokens = \"15.6 Ttoken\"\n[[training.stage]]\nname = \"after\"\n\
                    tokens = \"20 Gtoken\"\n";
        let found = stages(&format!("{base}{more}\n"));
        let of = |at| number(&found, &format!("/training/stages/{at}/goodput_ratio"));
        assert!((of(0) - number(&found, "/goodput/ratio")).abs() < 1e-12);
        (of(0), of(1), found)
    };
    let (base, same, _) = goodput("kind = \"sft\"");
    assert!((base - same).abs() < 1e-12);
    // The frozen model is not stored, so no failure falls back to the checkpoint before, and less is read.
    let (base, adapters, _) = goodput("kind = \"lora\"");
    assert!(adapters > base && adapters - base < 5e-3, "{base}, {adapters}");
    // A step of which rollouts take all but a hundredth is longer than the best interval, and is lost or kept whole.
    let (base, rewarded, found) = goodput("kind = \"rl\"\nrollout_share = 0.99");
    let step = number(&found, "/training/stages/1/iteration_s") * 100.0;
    assert!(step > number(&found, "/goodput/checkpoint_interval_s") && rewarded < base, "{step}, {base}, {rewarded}");
}

#[test]
fn a_growing_batch_costs_time() {
    let plain = evaluated(LLAMA, &[]);
    let ramp = ["training.ramp.from=512", "training.ramp.step=512", "training.ramp.tokens=300 Gtoken"];
    let layout = ["training.layout.schedule=1f1b", "training.layout.virtual_stages=1"];
    let steady = evaluated(LLAMA, &layout);
    let growing = evaluated(LLAMA, &[&ramp[..], &layout[..]].concat());
    // Three batches of 100 Gtoken each, of 512, 1,024 and 1,536 sequences of 8,192; the rest in full ones. Whole steps.
    let steps: f64 = [512.0, 1_024.0, 1_536.0].iter().map(|batch: &f64| (100e9 / (batch * 8_192.0)).ceil()).sum();
    let steps = steps + (15.3e12_f64 / (2_048.0 * 8_192.0)).ceil();
    assert!((number(&growing, "/training/steps_count") - steps).abs() < 1e-6, "{steps}");
    let lost = number(&growing, "/training/ramp_days");
    let longer = number(&growing, "/training/duration_days") - number(&steady, "/training/duration_days");
    assert!(lost > 1.0 && (longer / lost - 1.0).abs() < 1e-3, "{lost}, {longer}");
    assert!(number(&plain, "/training/ramp_days") == 0.0);
}

#[test]
fn adapters_take_two_thirds_and_rollouts_the_rest_of_the_time() {
    let tables = |kind: &str, more: &str| {
        format!(
            "[[training.stage]]\nname = \"base\"\ntokens = \"15.6 Ttoken\"\n[[training.stage]]\nname = \"after\"\nkind = \"{kind}\"\n\
             tokens = \"20 Gtoken\"\n{more}\n"
        )
    };
    let of = |kind: &str, more: &str| stages(&tables(kind, more)).pointer("/training/stages/1").unwrap().clone();
    let days = |stage: &serde_json::Value, key: &str| stage[key].as_f64().unwrap();
    let (sft, lora, rl) = (of("sft", ""), of("lora", ""), of("rl", "rollout_share = 0.75"));
    let ratio = days(&lora, "training_days") / days(&sft, "training_days");
    assert!((0.6..0.75).contains(&ratio), "{ratio}");
    // The step that is shown is the adapters', of two thirds of the FLOPs.
    let step = days(&lora, "iteration_s") / days(&sft, "iteration_s");
    assert!((step / ratio - 1.0).abs() < 1e-9, "{step}");
    let mfu = days(&lora, "mfu_ratio") / days(&sft, "mfu_ratio");
    assert!((mfu * ratio * 1.5 - 1.0).abs() < 1e-9, "{mfu}");
    assert!((days(&rl, "rollout_days") / days(&rl, "training_days") - 3.0).abs() < 1e-9);
    assert!((days(&rl, "training_days") / days(&sft, "training_days") - 1.0).abs() < 1e-9);
}

#[test]
fn data_that_come_too_slowly_leave_gpus_idle() {
    let wait = |settings: &[&str]| {
        let found = evaluated(LLAMA, settings);
        (number(&found, "/training/other_data_s"), number(&found, "/training/iteration_s"), found)
    };
    let (none, base, _) = wait(&[]);
    assert!(none == 0.0);
    // 16.8 Mtoken of 2 MB each are 33.6 TB a step; one unit of storage reads 125 GB/s: 268.4 s, of which a step hides its own.
    let slow = ["training.data.token_size=2 MB", "cluster.storage_units=1"];
    let (starved, whole, found) = wait(&slow);
    assert!((starved + base - 16_777_216.0 * 2e6 / 125e9).abs() < 1e-6, "{starved}");
    assert!((whole - base - starved).abs() < 1e-9);
    assert_eq!(found.pointer("/data/storage_suffices").unwrap(), false);
    assert!(number(&found, "/training/data_wait_days") > 1_000.0);
    // Nothing read ahead: all of it is waited for.
    let (ahead, _, _) = wait(&["training.data.token_size=2 MB"]);
    let (bare, _, _) = wait(&["training.data.token_size=2 MB", "training.data.prefetch=0"]);
    let supply = 16_777_216.0 * 2e6 / (64.0 * 125e9);
    assert!(ahead == 0.0 && (bare - supply).abs() < 1e-9, "{ahead}, {bare}");
    // Pictures that few cores decode.
    let text = ["training.data.stored=text", "training.data.text_per_token=20 kB", "training.data.loader_cores=1"];
    let (decoding, step, found) = wait(&text);
    assert!((decoding + base - 16_777_216.0 * 2e4 / (16_384.0 * 2e6)).abs() < 1e-9, "{decoding}");
    assert!((number(&found, "/data/loader_cores_per_gpu") * step - (decoding + base)).abs() < 1e-9);
}

#[test]
fn a_petabyte_is_cleaned_tokenised_and_read() {
    let whole = evaluated(WHOLE, &[]);
    // 160 TB of four bytes a token are 40 Ttoken, of which the run reads 15.6.
    assert!((number(&whole, "/data/epochs_ratio") - 0.39).abs() < 1e-9);
    let core_hours = (1e15 / 0.13e6 + 160e12 / 2e6) / 3_600.0;
    assert!((number(&whole, "/data/preparation_core_h") / core_hours - 1.0).abs() < 1e-9);
    assert!((number(&whole, "/data/preparation_days") / (core_hours / 20_000.0 / 24.0) - 1.0).abs() < 1e-9);
    // Tokens of 4 B: the vocabulary has more than 65,536.
    let read = number(&whole, "/training/tokens_per_s") * 4.0 / 1e9;
    assert!((number(&whole, "/data/read_gbytes_per_s") / read - 1.0).abs() < 1e-9);
    // Mixtral's 32,000 fit two bytes.
    let small = evaluated(MIXTRAL, &[]);
    let read = number(&small, "/training/tokens_per_s") * 2.0 / 1e9;
    assert!((number(&small, "/data/read_gbytes_per_s") / read - 1.0).abs() < 1e-9);
}

#[test]
fn odd_runs_are_told_what_is_wrong_with_them() {
    let stage = |more: &str| format!("[[training.stage]]\nname = \"base\"\ntokens = \"15.6 Ttoken\"\n{more}\n");
    let second = |more: &str| stage(&format!("[[training.stage]]\nname = \"two\"\ntokens = \"1 Ttoken\"\n{more}"));
    for (tables, said) in [
        (second(""), "the stages of pre-training have 16.6 Ttoken, and `training.tokens` is 15.6 Ttoken"),
        (stage("").replace("15.6 Ttoken", "0 token"), "the stage \"base\" has no tokens"),
        (stage("").replace("15.6 Ttoken", "1 token"), "less than one step"),
        (stage("").replace("base", " "), "`training.stage.name` is empty"),
        (second("kind = \"sft\"").replace("two", "base"), "two stages are called \"base\""),
        (stage("sequence_length = 0"), "`training.stage.sequence_length` is 0, outside 1"),
        (stage("global_batch = \"1 Mtoken\""), "1 Mtoken are no whole number of sequences of 8192"),
        (second("kind = \"rl\""), "`rollout_share` is missing"),
        (second("kind = \"rl\"\nrollout_share = 1.0"), "rollouts take 1 of the time"),
        (stage("rollout_share = 0.5"), "only stages of kind \"rl\" have rollouts"),
        (stage("kind = \"distillation\""), "`training.stage.kind` has no choice"),
        (stage("tempo = 3"), "unknown key `tempo` in `training.stage`"),
        (
            "[training.ramp]\nfrom = 0\nstep = 1\ntokens = \"1 Gtoken\"".to_owned(),
            "`training.ramp.from` is 0, outside 1",
        ),
        (
            "[training.ramp]\nfrom = 100\nstep = 3\ntokens = \"1 Gtoken\"".to_owned(),
            "a ramp from 100 by 3 does not lead to the full batch",
        ),
        (
            "[training.ramp]\nfrom = 4096\nstep = 8\ntokens = \"1 Gtoken\"".to_owned(),
            "does not lead to the full batch of 2048",
        ),
        ("[training.ramp]\nfrom = 1024\nstep = 1024\ntokens = \"1 Mtoken\"".to_owned(), "less than a step of"),
        ("[training.ramp]\nfrom = 1024\nstep = 1024\ntokens = \"20 Ttoken\"".to_owned(), "the ramp ends within it"),
        (
            stage("") + "[training.ramp]\nfrom = 1024\nstep = 1024\ntokens = \"1 Ttoken\"",
            "`training.ramp` beside stages",
        ),
        (
            "[training.evaluation]\nevery = 0\ntime = \"1 min\"".to_owned(),
            "`training.evaluation.every` is 0, outside 1",
        ),
        ("[training.data]\nraw = \"1 TB\"\ncleaned = \"2 TB\"".to_owned(), "2 TB are left of 1 TB"),
        ("[training.data]\nraw = \"1 TB\"".to_owned(), "`training.data.cleaned` is missing beside `raw`"),
        ("[training.data]\ntoken_size = \"0 B\"".to_owned(), "`training.data.token_size` is zero"),
        ("[training.data]\nprefetch = 1.5".to_owned(), "`training.data.prefetch` is 1.5, no count of steps"),
        ("[training.data]\nprefetch = -1".to_owned(), "prefetch"),
        ("[training.data]\nloader_cores = 0".to_owned(), "`training.data.loader_cores` is 0, outside 1"),
    ] {
        let answer = with_tables(&tables);
        assert_eq!(answer.code, 2, "{tables}\n{}{}", answer.stdout, answer.stderr);
        assert!(answer.stderr.contains(said), "{tables}\n{}", answer.stderr);
    }
}

#[test]
fn a_stage_that_cannot_be_is_named() {
    let tables = "[[training.stage]]\nname = \"short\"\ntokens = \"15 Ttoken\"\n[[training.stage]]\nname = \"long\"\n\
         tokens = \"0.6 Ttoken\"\nsequence_length = 131072\nglobal_batch = 128\n";
    let answer = with_tables(tables);
    assert_eq!(answer.code, 1);
    let no: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    assert!(no.to_string().contains("stage \\\"long\\\""), "{no}");
}

#[test]
fn gpu_hours_are_those_of_all_accelerators_together() {
    // As published ones are: 1.3 million GPU-hours on 24,576 are 52.9 hours of wall time (meta-llama/llama3#91).
    for (path, accelerators) in [(LLAMA, 16_384.0), (MIXTRAL, 64.0)] {
        let run = evaluated(path, &[]);
        let wall = number(&run, "/training/effective_days") * 24.0;
        let hours = number(&run, "/training/gpu_hours_count");
        assert!((hours / (wall * accelerators) - 1.0).abs() < 1e-9, "{hours}");
        // Failures are in them.
        assert!(number(&run, "/training/effective_days") > number(&run, "/training/duration_days"));
    }
}
