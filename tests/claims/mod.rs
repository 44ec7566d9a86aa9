//! Statements that planners repeat, held against what the program computes: each with its figures, whether it holds, and where
//! it doesn't, why.

use clusterplan::catalog::accelerator::DataType;
use clusterplan::catalog::fabric::{Encapsulation, Transport};
use clusterplan::catalog::{Accelerator, Catalog};
use clusterplan::collectives::transport::payload_share;
use clusterplan::diagnostics::{Sink, Sources};
use clusterplan::load;
use clusterplan::units::{Seconds, UsdPerHour};
use serde_json::Value;

use crate::program::run;
use std::fmt::Write as _;

/// How far a statement holds.
enum Verdict {
    Holds,
    InPart,
    DoesNotHold,
}

/// A statement, and what is computed.
struct Claim {
    says: &'static str,
    verdict: Verdict,
    computed: String,
    how: &'static str,
}

fn json(arguments: &[&str]) -> Value {
    let answer = run(&[arguments, &["--format", "json"]].concat());
    assert_eq!(answer.code, 0, "{arguments:?}: {}", answer.stderr);
    serde_json::from_str(&answer.stdout).unwrap()
}

fn at(value: &Value, path: &str) -> f64 {
    let found = path.split('.').fold(value, |value, key| match key.parse::<usize>() {
        Ok(index) => &value[index],
        Err(_) => &value[key],
    });
    found.as_f64().unwrap_or_else(|| panic!("{path} is no number in {value}"))
}

fn holds(so: bool) -> Verdict {
    if so { Verdict::Holds } else { Verdict::DoesNotHold }
}

/// Of a statement with several parts.
fn of_parts(parts: &[bool]) -> Verdict {
    match parts.iter().filter(|holds| **holds).count() {
        0 => Verdict::DoesNotHold,
        all if all == parts.len() => Verdict::Holds,
        _ => Verdict::InPart,
    }
}

/// Whether a figure is within a tenth of what is said.
fn about(figure: f64, said: f64) -> bool {
    (figure / said - 1.0).abs() < 0.1
}

/// Dense bf16 rate over the memory's, and the clock that the dense rate implies, from the catalog.
struct Chip<'a>(&'a Accelerator);

impl Chip<'_> {
    fn flops(&self) -> f64 {
        self.0.peak_dense.get(DataType::Bf16).unwrap().value()
    }

    fn bandwidth(&self) -> f64 {
        self.0.memory_bandwidth.value()
    }

    /// Bytes a second that its multiprocessors read of shared memory: 128 each cycle, at the clock at which `per_cycle`
    /// operations of each make the dense rate.
    fn shared_memory(&self, per_cycle: f64) -> f64 {
        128.0 * self.flops() / per_cycle
    }
}

fn price_of_an_hour() -> Claim {
    let study = json(&["price", "studies/dgx-h100-hour.toml"]);
    let total = |index: usize| at(&study, &format!("offers.{index}.total_usd"));
    let saved = 1.0 - total(0) / total(1);
    let today = 1.0 - total(4) / total(2);
    Claim {
        says: "A DGX-H100-class hour at $34 in a neocloud and $98 at a hyperscaler saves about 65%.",
        verdict: holds((saved - 0.65).abs() < 0.02),
        computed: format!(
            "A job on 16 H100 costs {:.1}% less at $34 than at $98.32 for eight. That was the gap of early 2025: at the list \
             prices of 2026 in the catalog, with 20 TB that leave, CoreWeave is {:.0}% below AWS and {:.0}% below Azure.",
            saved * 100.0,
            today * 100.0,
            (1.0 - total(4) / total(3)) * 100.0,
        ),
        how: "`clusterplan price studies/dgx-h100-hour.toml`",
    }
}

fn sram(catalog: &Catalog) -> Claim {
    let chip = |id: &str| Chip(&catalog.accelerators.get(id).unwrap().part);
    let (a100, h100) = (chip("a100-sxm-40gb"), chip("h100-sxm-80gb"));
    // Dense bf16 operations of a multiprocessor in a cycle: 2,048 in Ampere, 4,096 in Hopper (NVIDIA's whitepapers).
    let (old, new) = (a100.shared_memory(2_048.0), h100.shared_memory(4_096.0));
    Claim {
        says: "SRAM moves 19 TB/s against 3.35 TB/s of HBM.",
        // Of one part: the memory's and the multiprocessors'.
        verdict: of_parts(&[about(h100.bandwidth(), 3.35e12), about(new, 19e12)]),
        computed: format!(
            "3.35 TB/s is the H100's memory ({:.2} TB/s in the catalog); 19 TB/s is an A100's shared memory ({:.1} TB/s: 128 bytes \
             a cycle of each multiprocessor). An H100's is {:.1} TB/s, {:.1} times its memory; an A100's {:.1} times its own.",
            h100.bandwidth() / 1e12,
            old / 1e12,
            new / 1e12,
            new / h100.bandwidth(),
            old / a100.bandwidth(),
        ),
        how: "dense peaks and bandwidths of `catalogs/accelerators`",
    }
}

fn gap(catalog: &Catalog) -> Claim {
    let chip = |id: &str| Chip(&catalog.accelerators.get(id).unwrap().part);
    let (old, new) = (chip("a100-sxm-40gb"), chip("b200-sxm-180gb"));
    // First shipped in May 2020 and at the end of 2024.
    let decade = |ratio: f64| ratio.powf(10.0 / 4.5);
    let (compute, bandwidth) = (new.flops() / old.flops(), new.bandwidth() / old.bandwidth());
    Claim {
        says: "Compute grew 80 times and bandwidth 17 times in a decade, a gap of 4.7 times.",
        verdict: of_parts(&[
            about(decade(compute), 80.0),
            about(decade(bandwidth), 17.0),
            about(decade(compute / bandwidth), 4.7),
        ]),
        computed: format!(
            "80 / 17 is 4.7. Of the catalog's accelerators, from the A100 of 40 GB (2020) to the B200 (end of 2024) dense bf16 grew \
             {compute:.1} times and bandwidth {bandwidth:.1} times, which over ten years would be {:.0} and {:.0} times, a gap of {:.1}. \
             Compute holds, and memory kept up better than the statement has it. Narrower formats (fp8, fp4) widen the gap again.",
            decade(compute),
            decade(bandwidth),
            decade(compute / bandwidth),
        ),
        how: "dense peaks and bandwidths of `catalogs/accelerators`",
    }
}

/// The serving scenario with other settings.
fn served(settings: &[&str]) -> Value {
    let mut arguments = vec!["eval", "scenarios/serve-llama3.1-70b-64-h100.toml"];
    arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    json(&arguments)
}

fn prefill() -> Claim {
    let time = |model: &str, gpus: u32, weights: &str| {
        let settings = [
            format!("serving.model={model}"),
            format!("serving.layout.tensor={gpus}"),
            format!("serving.weights={weights}"),
        ];
        let alone = [
            "cluster.accelerators=8",
            "serving.input_tokens=10000",
            "serving.output_tokens=500",
            "serving.prefix_hit=0",
            "serving.arrivals.rate=\"0.1 request/s\"",
        ];
        let all: Vec<&str> = settings.iter().map(String::as_str).chain(alone).collect();
        at(&served(&all), "serving.prefill_s") * 1e3
    };
    let small = time("llama-3.1-8b", 1, "bf16");
    let large = [time("llama-3.1-70b", 4, "fp8"), time("llama-3.1-70b", 8, "bf16"), time("llama-3.1-70b", 8, "fp8")];
    let within = |time: f64| (200.0..=400.0).contains(&time);
    Claim {
        says: "10,000 prompt tokens prefill in 200 to 400 ms on H100.",
        verdict: if within(small) && !large.iter().any(|time| within(*time)) {
            Verdict::InPart
        } else {
            holds(within(small))
        },
        computed: format!(
            "That is so of Llama 3.1 8B in bf16 on one H100: {small:.0} ms, alone and not cached. Of the 70B model it takes {:.0} ms on four in \
             fp8, {:.0} ms on eight in bf16 and {:.0} ms on eight in fp8: ten times the operations, and messages between the GPUs of a replica.",
            large[0], large[1], large[2],
        ),
        how: "`clusterplan eval scenarios/serve-llama3.1-70b-64-h100.toml` with other models, layouts and prompts",
    }
}

fn seventy_billion() -> Claim {
    let model = json(&["model", "llama-3.1-70b"]);
    let (weights, token) = (at(&model, "weight_bytes"), at(&model, "kv_bytes_per_token"));
    let sequence = token * 32_000.0;
    let all = 32.0 * sequence;
    Claim {
        says: "A 70B model has 140 GB of FP16 weights, needs about 8 GB of KV cache at 32,000 tokens, and at batch 32 more KV than weights.",
        verdict: of_parts(&[about(weights, 140e9), about(sequence, 8e9), all > weights]),
        computed: format!(
            "Llama 3.1 70B: {:.0} GB of weights; {:.1} GB of keys and values at 32,000 tokens in 16 bits ({} bytes a token: 2 x 80 \
             layers x 8 heads x 128 x 2), {:.1} GB in 8 bits; at batch 32 {:.0} GB, {:.1} times the weights. 8 GB is the cache at {:.0} tokens.",
            weights / 1e9,
            sequence / 1e9,
            token,
            sequence / 2e9,
            all / 1e9,
            all / weights,
            8e9 / token,
        ),
        how: "`clusterplan model llama-3.1-70b`",
    }
}

fn output_against_input() -> Claim {
    let answer = served(&["serving.arrivals=\"max\"", "serving.prefix_hit=0"]);
    let most = at(&answer, "cost.usd_per_mtok_output") / at(&answer, "cost.usd_per_mtok_input");
    // DeepSeek, open-infra-index, day 6: tokens a second of a node of eight H800 in prefill, hits of the cache counted, and in
    // decode; 56.3% of input tokens were found in the cache; $2 an accelerator's hour.
    let node = UsdPerHour::new(2.0 * 8.0);
    let of_million = |rate: f64| node.over(Seconds::new(1e6 / rate));
    let (input, output) = (of_million(73_700.0), of_million(14_800.0));
    let missed = of_million(73_700.0 * (1.0 - 0.563));
    let within = |ratio: f64| (3.0..=10.0).contains(&ratio);
    Claim {
        says: "Output tokens cost 3 to 10 times input tokens.",
        verdict: if [most, output / input].into_iter().all(within) { Verdict::Holds } else { Verdict::InPart },
        computed: format!(
            "Llama 3.1 70B in fp8 on 64 H100, prompts of 2,048 and answers of 512 tokens: {most:.1} times by what either takes of a replica that is full, \
             by which hours that stand idle are shared out too. By the rates that DeepSeek published of its own service it is {:.1} times an input token with the cache's hits counted, and {:.1} times one that is not cached.",
            output / input,
            output / missed,
        ),
        how: "`clusterplan eval scenarios/serve-llama3.1-70b-64-h100.toml`; hours at their price over published rates",
    }
}

fn two_trillion() -> Claim {
    let answer = json(&["eval", "scenarios/train-dense-2t-h100.toml"]);
    let states = at(&answer, "memory.model_states_bytes");
    let holding = at(&answer, "memory.accelerators_to_hold_states_count");
    Claim {
        says: "2 T parameters need about 32 TB, 400 H100.",
        verdict: holds((states / 32e12 - 1.0).abs() < 0.05 && (holding / 400.0 - 1.0).abs() < 0.1),
        computed: format!(
            "{:.1} TB of weights, gradients and Adam's states at 16 bytes a parameter, on {holding:.0} H100 by what a process can have of \
             each. That is for the states alone: activations come on top, and training needs as many more as its time asks for.",
            states / 1e12,
        ),
        how: "`clusterplan eval scenarios/train-dense-2t-h100.toml`",
    }
}

fn interruptions() -> Claim {
    let answer = json(&["eval", "scenarios/train-llama3.1-405b-16k-h100.toml"]);
    let (published, modelled) = (54.0 * 24.0 / 419.0, at(&answer, "goodput.mtbf_s") / 3_600.0);
    Claim {
        says: "16,384 GPUs over 54 days with 419 interruptions is one in about 3 hours.",
        verdict: holds((modelled / published - 1.0).abs() < 0.1),
        computed: format!(
            "54 days over 419 are {published:.2} hours; the catalog's failure rates of Hopper nodes, links and software give {modelled:.2} \
             hours at that size."
        ),
        how: "`clusterplan eval scenarios/train-llama3.1-405b-16k-h100.toml`",
    }
}

fn one_hundredth() -> Claim {
    let answer = json(&["eval", "scenarios/train-llama3.1-405b-whole-run.toml"]);
    let (days, usd) = (at(&answer, "training.effective_days"), at(&answer, "cost.usd_per_run"));
    Claim {
        says: "Losing 1% of time costs days.",
        // A day at least, and the two that "days" are.
        verdict: of_parts(&[days * 0.01 >= 1.0, days * 0.01 >= 2.0]),
        computed: format!(
            "One hundredth of the {days:.0} days of Llama 3.1 405B on 16,384 H100 is {:.1} days and ${:.2}M. It takes a run of 200 days to lose two \
             days; of the 54 days that were reported it is {:.0} hours.",
            days * 0.01,
            usd * 0.01 / 1e6,
            54.0 * 24.0 * 0.01,
        ),
        how: "`clusterplan eval scenarios/train-llama3.1-405b-whole-run.toml`",
    }
}

fn headers() -> Claim {
    let share = |transport, mtu| payload_share(transport, mtu, Encapsulation::None).get();
    let (roce, infiniband) = (share(Transport::RoceV2, 4_096), share(Transport::Infiniband, 4_096));
    let bytes = 4_096.0 * (1.0 / roce - 1.0);
    Claim {
        says: "RoCEv2 carries Ethernet, IP, UDP, BTH and ICRC headers.",
        // Preamble and gap 20, Ethernet with its checksum 18, IP 20, UDP 8, BTH 12, ICRC 4.
        verdict: holds((bytes - (20.0 + 18.0 + 20.0 + 8.0 + 12.0 + 4.0)).abs() < 0.5),
        computed: format!(
            "Together {bytes:.0} bytes a packet, Ethernet's preamble and gap among them, against {:.0} of InfiniBand: at 4,096 bytes of payload {:.1}% of the line \
             rate is payload against {:.1}%, at 1,024 bytes {:.1}%.",
            4_096.0 * (1.0 / infiniband - 1.0),
            roce * 100.0,
            infiniband * 100.0,
            share(Transport::RoceV2, 1_024) * 100.0,
        ),
        how: "headers of the standards, as `clusterplan collective --mtu` counts them",
    }
}

fn one_card() -> Claim {
    let answer = json(&["compare", "scenarios/train-llama3.1-8b-64-a100-one-nic.toml"]);
    let of = |index: usize, key: &str| at(&answer, &format!("variants.{index}.evaluation.training.{key}"));
    let (shared, own) = (of(0, "iteration_s"), of(1, "iteration_s"));
    Claim {
        says: "Four GPUs behind one NIC against one NIC each.",
        verdict: holds(shared / own > 1.05),
        computed: format!(
            "It matters: Llama 3.1 8B on 64 A100 takes {shared:.2} s a step behind one card for four and {own:.2} s with a card each, {:.2} times \
             as long; exposed communication is {:.2} s against {:.2} s. Where communication hides behind compute, it does not.",
            shared / own,
            of(0, "exposed_communication_s"),
            of(1, "exposed_communication_s"),
        ),
        how: "`clusterplan compare scenarios/train-llama3.1-8b-64-a100-one-nic.toml`",
    }
}

fn campus() -> Claim {
    let study = json(&["price", "studies/campus-100k-h100.toml"]);
    let of = |key: &str| at(&study, &format!("offers.0.{key}"));
    let (it, facility) = (of("it_kw") / 1e3, of("facility_kw") / 1e3);
    // Full power all year, as the statement must mean it, and as the year goes.
    let electricity = study["offers"][1]["lines"].as_array().unwrap().iter().find(|line| line["name"] == "Electricity");
    let published = |key: &str| electricity.unwrap()[key].as_f64().unwrap();
    let (full, paid) = (published("quantity") / 1e9, published("opex_per_year_usd") / 1e6);
    let average = of("kwh_per_gpu_hour") * 8_760.0 * of("bought_accelerators_count") / 1e9;
    Claim {
        says: "100,000 H100 draw 150 MW, 1.59 TWh a year, for $124M.",
        verdict: of_parts(&[about(facility, 150.0), about(average, 1.59), about(average * 78.0, 124.0)]),
        computed: format!(
            "{:.0} H100 with network and storage: {it:.1} MW of IT at their maximum, where 1,275 W a GPU and a tenth more give 140.25, and {facility:.1} MW \
             with a hyperscaler's cooling, {:.1}% more than 150. Full power in all hours with cooling of 29%, 181 MW, makes {full:.2} TWh of it and ${paid:.0}M at \
             $0.078 a kWh: the published figures come out so, and not at 150 MW. A year at nine tenths of the hours in use is {average:.2} TWh, ${:.0}M: nodes in \
             jobs draw three quarters of their maximum.",
            of("bought_accelerators_count"),
            (facility / 150.0 - 1.0) * 100.0,
            average * 78.0,
        ),
        how: "`clusterplan price studies/campus-100k-h100.toml`",
    }
}

/// The report.
pub(crate) fn page() -> String {
    let (mut sources, sink) = (Sources::default(), Sink::default());
    let catalog = load::catalog(&[], &mut sources, &sink);
    let claims = [
        price_of_an_hour(),
        sram(&catalog),
        gap(&catalog),
        prefill(),
        seventy_billion(),
        output_against_input(),
        two_trillion(),
        interruptions(),
        one_hundredth(),
        headers(),
        one_card(),
        campus(),
    ];
    let mut page = "# Statements that planners repeat, and what the program computes\n\nMade by a test from the program's own answers.\n"
        .to_owned();
    for claim in &claims {
        let verdict = match claim.verdict {
            Verdict::Holds => "Holds.",
            Verdict::InPart => "Holds in part.",
            Verdict::DoesNotHold => "Does not hold.",
        };
        let _ = write!(page, "\n## {}\n\n**{verdict}** {} Computed from: {}.\n", claim.says, claim.computed, claim.how);
    }
    page
}
