//! The same points give the same rows, wherever they are computed: by `clusterplan sweep`, whole and in merged shards, by
//! DataFusion in one process, and on a Ballista cluster, one of whose executors is killed in mid-run.
//!
//! Needs the program `clusterplan` beside the engine's: `engines/ballista/test.sh` builds both.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as its tests do")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Values in between, and texts, flags and keys that some points lack; every kind of reason for which a row has no figures.
const AXES: &str = r#"
[sweep]
axes = [
  { key = "cluster.accelerators", values = [16, 20, 32] },
  { key = "cluster.spares", range = { from = 0, to = 0.1, steps = 4 } },
  { key = "training.layout.tensor", values = [1, 2, 16] },
  { key = "finance.utilisation", range = { from = 0.6, to = 0.9, steps = 3 } },
  { cases = [
    [{ key = "cluster.fabric", values = ["quantum-2-ndr"] }],
    [
      { key = "cluster.fabric", values = ["roce-400g"] },
      { key = "catalog/fabrics/roce-400g/spine_efficiency", values = [0.5, 0.8] },
    ],
  ] },
]
where = ["cluster.spares < 0.09"]
"#;

/// Points whose clusters all differ, so that they take a while.
const MANY: &str = "\n[sweep]\naxes = [{ key = \"cluster.spares\", range = { from = 0, to = 0.5, steps = 10000 } }]\n";

/// Layouts of points, some of which have none, and some of which conditions leave out.
const LAYOUTS: &str = r#"
[sweep]
axes = [
  { key = "cluster.accelerators", values = [8, 12, 16] },
  { key = "training.layout", values = "all" },
  { key = "cluster.spares", values = [0, 0.05] },
]
where = ["cluster.accelerators = 12 or cluster.accelerators = 8 and training.layout.tensor = 4"]
"#;

/// Another spine.
const OVERLAY: &str = r#"
source = [{ fields = ["spine_efficiency"], basis = "assumed", title = "a test", accessed = 2026-11-29 }]
spine_efficiency = 0.7
"#;

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(5);

type Rows = Vec<BTreeMap<String, String>>;

struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// A scenario of the project's with axes.
    fn scenario(&self, axes: &str) -> String {
        let shipped =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/train-llama3.1-8b-16-h100-two-nodes.toml");
        let text = fs::read_to_string(shipped).unwrap();
        fs::write(self.path("scenario.toml"), text.split("\n[compare]").next().unwrap().to_owned() + axes).unwrap();
        self.text("scenario.toml")
    }

    /// The rows of a file, by point.
    fn rows(&self, name: &str) -> Rows {
        let mut reader = csv::Reader::from_path(self.path(name)).unwrap();
        let mut rows: Rows = reader.deserialize().map(Result::unwrap).collect();
        rows.sort_by_key(|row| row["point"].parse::<u64>().unwrap());
        rows
    }
}

fn engine() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_clusterplan-ballista"))
}

fn clusterplan() -> PathBuf {
    let path = engine().with_file_name("clusterplan");
    assert!(path.exists(), "{} is missing: run engines/ballista/test.sh", path.display());
    path
}

fn run(program: &Path, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn refusal(arguments: &[&str]) -> String {
    let output = Command::new(engine()).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A process that ends with its test, however that ends.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A scheduler and executors on this machine.
struct Cluster {
    address: String,
    executors: Vec<Process>,
    _scheduler: Process,
}

impl Cluster {
    fn start(bench: &Bench, executors: &[&str]) -> Self {
        let mut command = Command::new(engine());
        command.args(["scheduler", "--port", "0", "--executor-timeout", "5"]).stderr(Stdio::piped());
        let mut scheduler = command.spawn().unwrap();
        let mut errors = BufReader::new(scheduler.stderr.take().unwrap());
        let scheduler = Process(scheduler);
        let mut address = None;
        while address.is_none() {
            let mut line = String::new();
            assert_ne!(errors.read_line(&mut line).unwrap(), 0, "the scheduler has ended");
            address = line.trim().strip_prefix("listening at ").map(str::to_owned);
        }
        // What it says later must not fill the pipe.
        std::thread::spawn(move || errors.read_to_end(&mut Vec::new()));
        let address = address.unwrap();
        let start = |name: &&str| {
            let mut command = Command::new(engine());
            command.args(["executor", "--scheduler", &address, "--tasks", "1", "--heartbeat", "1", "--work-dir"]);
            Process(command.arg(bench.path(name)).stderr(Stdio::null()).spawn().unwrap())
        };
        Self { executors: executors.iter().map(start).collect(), address, _scheduler: scheduler }
    }
}

/// Whether two cells say the same: texts to the letter, numbers to 1e-12.
fn same(one: &str, other: &str) -> bool {
    match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => (one - other).abs() <= 1e-12 * one.abs().max(other.abs()),
        _ => one == other,
    }
}

fn assert_same(expected: &Rows, found: &Rows, what: &str) {
    assert_eq!(expected.len(), found.len(), "{what}");
    for (expected, found) in expected.iter().zip(found) {
        assert!(expected.keys().eq(found.keys()), "{what}: {:?}", found.keys());
        for (key, value) in expected {
            assert!(same(value, &found[key]), "{what}: point {} {key}: {value}, {}", expected["point"], found[key]);
        }
    }
}

#[test]
fn rows_are_the_same_wherever_they_are_computed() {
    let bench = Bench::new();
    let scenario = bench.scenario(AXES);
    let path = |name: &str| bench.text(name);
    run(&clusterplan(), &["sweep", &scenario, "-o", &path("whole.csv")]);
    let whole = bench.rows("whole.csv");
    let feasible = whole.iter().filter(|row| row["feasible"] == "true").count();
    assert!(feasible > 50 && feasible < whole.len(), "{feasible} of {}", whole.len());

    let parts: Vec<String> = (0..3).map(|index| path(&format!("part-{index}.csv"))).collect();
    for (index, part) in parts.iter().enumerate() {
        run(&clusterplan(), &["sweep", &scenario, "--shard", &format!("{index}/3"), "-o", part]);
    }
    run(&clusterplan(), &["merge", &parts[2], &parts[0], &parts[1], "-o", &path("merged.csv")]);
    assert_eq!(fs::read(path("merged.csv")).unwrap(), fs::read(path("whole.csv")).unwrap());

    run(&engine(), &["local", &scenario, "-o", &path("local.csv")]);
    assert_same(&whole, &bench.rows("local.csv"), "DataFusion");

    let cluster = Cluster::start(&bench, &["one", "two"]);
    let client = ["client", "--scheduler", &cluster.address];
    run(&engine(), &[&client[..], &[&scenario, "-o", &path("cluster.csv")]].concat());
    assert_same(&whole, &bench.rows("cluster.csv"), "Ballista");

    // The values of the axes as a table of points.
    let keys: Vec<String> = csv::Reader::from_path(path("whole.csv"))
        .unwrap()
        .headers()
        .unwrap()
        .iter()
        .take_while(|key| *key != "feasible")
        .map(|key| format!("\"{key}\""))
        .collect();
    let points = path("points.parquet");
    let query = format!("select {} from sweep", keys.join(", "));
    run(&engine(), &["local", &scenario, &query, "-o", &points]);
    let given = [&scenario, "--points", &points];
    run(&engine(), &[&["local"], &given[..], &["-o", &path("given.csv")]].concat());
    assert_same(&whole, &bench.rows("given.csv"), "DataFusion, of a table of points");
    run(&engine(), &[&client[..], &given, &["-o", &path("cluster-given.csv")]].concat());
    assert_same(&whole, &bench.rows("cluster-given.csv"), "Ballista, of a table of points");

    // The best of all, asked with the keys as they are.
    let query = "select point, cost.usd_per_run, \"training.iteration_s\" from sweep s \
        where feasible and s.cluster.accelerators > 16 order by cost.usd_per_run, point limit 7";
    run(&engine(), &["local", &scenario, query, "-o", &path("best.csv")]);
    run(&engine(), &[&client[..], &[&scenario, query, "-o", &path("cluster-best.csv")]].concat());
    let cost = |row: &BTreeMap<String, String>| row["cost.usd_per_run"].parse::<f64>().unwrap();
    let large = |row: &&BTreeMap<String, String>| row["feasible"] == "true" && row["cluster.accelerators"] != "16";
    let mut best: Rows = whole.iter().filter(large).cloned().collect();
    best.sort_by(|one, other| cost(one).total_cmp(&cost(other)));
    best.truncate(7);
    best.sort_by_key(|row| row["point"].parse::<u64>().unwrap());
    for row in &mut best {
        row.retain(|key, _| ["point", "cost.usd_per_run", "training.iteration_s"].contains(&key.as_str()));
    }
    assert_same(&best, &bench.rows("best.csv"), "the best by DataFusion");
    assert_same(&best, &bench.rows("cluster-best.csv"), "the best by Ballista");
}

/// A query of many points whose second executor has done some of the work; `whole.csv` has the rows that
/// `cluster.csv` must have.
fn under_way(bench: &Bench) -> (Cluster, Process) {
    let scenario = bench.scenario(MANY);
    run(&clusterplan(), &["sweep", &scenario, "-o", &bench.text("whole.csv")]);
    let cluster = Cluster::start(bench, &["one", "two"]);
    let output = bench.text("cluster.csv");
    let arguments = ["client", "--scheduler", &cluster.address, "--partitions", "24", &scenario, "-o", &output];
    let mut client = Process(Command::new(engine()).args(arguments).stderr(Stdio::piped()).spawn().unwrap());
    let begun = Instant::now();
    while files(&bench.path("two")) == 0 {
        assert!(client.0.try_wait().unwrap().is_none(), "the query has ended before the executor did anything");
        assert!(begun.elapsed() < PATIENCE, "the executor does nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    (cluster, client)
}

/// What a client told when it has ended well.
fn ended(mut client: Process) -> String {
    let mut told = String::new();
    client.0.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(client.0.wait().unwrap().success(), "{told}");
    told
}

#[test]
fn an_executor_that_is_killed_loses_nothing() {
    let bench = Bench::new();
    let (mut cluster, mut client) = under_way(&bench);
    drop(cluster.executors.pop());
    assert!(client.0.try_wait().unwrap().is_none(), "the query has ended before the executor was killed");
    ended(client);
    assert_same(&bench.rows("whole.csv"), &bench.rows("cluster.csv"), "after an executor was killed");
}

#[test]
fn rows_of_an_executor_that_is_lost_before_they_are_fetched_are_made_again() {
    let bench = Bench::new();
    let (mut cluster, client) = under_way(&bench);
    // While the client stands still, the query ends, and then half of its rows are gone.
    signal(&client, "STOP");
    let (begun, made) = (Instant::now(), || files(&bench.path("one")) + files(&bench.path("two")));
    while made() < 24 {
        assert!(begun.elapsed() < PATIENCE, "the query does not end: {} of 24 parts", made());
        std::thread::sleep(Duration::from_millis(100));
    }
    std::thread::sleep(Duration::from_secs(2));
    drop(cluster.executors.pop());
    signal(&client, "CONT");
    let told = ended(client);
    assert!(told.contains("rows were lost with an executor, and are asked for again"), "{told}");
    assert_same(&bench.rows("whole.csv"), &bench.rows("cluster.csv"), "after rows were lost");
}

fn signal(process: &Process, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &process.0.id().to_string()]).status();
    assert!(status.unwrap().success());
}

#[test]
fn all_layouts_of_points_are_rows_too() {
    let bench = Bench::new();
    let scenario = bench.scenario(LAYOUTS);
    let text = fs::read_to_string(&scenario).unwrap().replace("global_batch = 128", "global_batch = 8");
    fs::write(&scenario, text).unwrap();
    let path = |name: &str| bench.text(name);
    run(&clusterplan(), &["sweep", &scenario, "-o", &path("whole.csv")]);
    // Rows of a point differ by their layouts alone.
    let by_layout = |name: &str| {
        let mut rows = bench.rows(name);
        let layout = |(key, cell): (&String, &String)| {
            let of_layout = key.starts_with("training.layout.") || key.starts_with("software.overlap.");
            of_layout.then(|| cell.clone())
        };
        rows.sort_by_cached_key(|row| {
            (row["point"].parse::<u64>().unwrap(), row.iter().filter_map(layout).collect::<Vec<String>>())
        });
        rows
    };
    let whole = by_layout("whole.csv");
    assert!(whole.len() > 1_000 && whole.iter().any(|row| row["feasible"] == "false"), "{}", whole.len());
    run(&engine(), &["local", &scenario, "--partitions", "3", "-o", &path("local.csv")]);
    assert_same(&whole, &by_layout("local.csv"), "DataFusion");
    let cluster = Cluster::start(&bench, &["one", "two"]);
    let client = ["client", "--scheduler", &cluster.address];
    run(&engine(), &[&client[..], &[&scenario, "-o", &path("cluster.csv")]].concat());
    assert_same(&whole, &by_layout("cluster.csv"), "Ballista");
}

/// Files below a directory that hold something.
fn files(directory: &Path) -> usize {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let count = |path: PathBuf| {
        if path.is_dir() { files(&path) } else { usize::from(path.metadata().is_ok_and(|file| file.len() > 0)) }
    };
    entries.map(|entry| count(entry.unwrap().path())).sum()
}

#[test]
fn a_point_is_evaluated_once_and_after_conditions_on_its_axes() {
    let bench = Bench::new();
    let scenario = bench.scenario(AXES);
    let query = "explain select point, cost.usd_per_run, training.iteration_s from sweep \
        where feasible and cluster.accelerators > 16 and training.mfu_ratio > 0.1 order by cost.usd_per_run limit 3";
    let output = Command::new(engine()).args(["local", &scenario, query]).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    // From the last step to the first.
    let steps = told.split("physical_plan,").nth(1).unwrap();
    assert_eq!(steps.matches("sweep_point(").count(), 1, "{steps}");
    let (_, before) = steps.split_once("sweep_point(").unwrap();
    assert!(before.contains("FilterExec") && before.contains("cluster.accelerators) > 16"), "{steps}");
}

#[test]
fn the_commands_of_the_readme_work() {
    let bench = Bench::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let cluster = Cluster::start(&bench, &["one"]);
    let known = |line: &&str| line.starts_with("SWEEP=") || line.contains("-ballista local") || line.contains("client");
    let block = readme.split("-p clusterplan-ballista\n").nth(1).unwrap().split("```").next().unwrap();
    let lines: Vec<String> = block
        .lines()
        .filter(known)
        .map(|line| line.replace("sweeps/", &format!("{}/sweeps/", root.display())))
        .map(|line| line.replace("127.0.0.1:50050", &cluster.address))
        .map(|line| line.replace("clusterplan-ballista", engine().to_str().unwrap()))
        .collect();
    assert_eq!(lines.len(), 5, "{block}");
    let script = lines.join("\n");
    let output = Command::new("bash").args(["-ec", &script]).current_dir(bench.path("")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8(output.stdout).unwrap();
    // A line of keys and one for each fabric, and of the cluster one for each of the ten best.
    assert_eq!(told.lines().count(), 3 + 11, "{told}");
}

#[test]
fn mistakes_are_told_with_a_hint() {
    let bench = Bench::new();
    let scenario = bench.scenario(AXES);
    for (arguments, expected) in [
        (vec!["select cost.usd_per_rum from sweep"], "cost"),
        (vec!["drop table sweep"], "DDL not supported"),
        (vec!["--set", "cluster.fabric=roce-40g"], "did you mean"),
        (vec!["--set", "sweep.axes=[]", "--set", "sweep.where=[]"], "has no axes"),
        (vec!["--points", "missing.parquet"], "missing.parquet"),
    ] {
        let told = refusal(&[&["local", &scenario], &arguments[..]].concat());
        assert!(told.contains(expected) && told.starts_with("error"), "{arguments:?}: {told}");
    }
    let points = bench.text("points.parquet");
    run(&engine(), &["local", &scenario, "select 'quantum-3' as \"cluster.fabric\" from sweep limit 3", "-o", &points]);
    let told = refusal(&["local", &scenario, "--points", &points]);
    assert!(told.contains("quantum-3"), "{told}");
}

#[test]
fn processes_with_different_catalogs_do_not_work_together() {
    let bench = Bench::new();
    let scenario = bench.scenario(AXES);
    let cluster = Cluster::start(&bench, &["one"]);
    let overlay = bench.path("overlay/fabrics");
    fs::create_dir_all(&overlay).unwrap();
    fs::write(overlay.join("roce-400g.toml"), OVERLAY).unwrap();
    let overlay = bench.text("overlay");
    let told = refusal(&["client", "--scheduler", &cluster.address, "--catalog", &overlay, &scenario]);
    assert!(told.contains("start scheduler, executors and client from one build"), "{told}");
}
