//! Constants fitted to a planner's own runs: as a catalog overlay, and as figures.

use serde_json::{Value as Json, json};

use super::figure::counted;
use super::page::{Block, Grid, Page, Section};
use crate::calibration::{CollectiveCalibration, Errors, FittedConstant, HeldOut};
use crate::catalog::Kind;
use crate::units::significant;

/// Whose runs they are.
#[derive(Clone, Debug)]
pub struct CalibrationTitle {
    /// Node id.
    pub node: String,
    /// Fabric id.
    pub fabric: String,
    /// Names of the logs.
    pub logs: Vec<String>,
    /// The day that they were read.
    pub date: String,
}

/// Median error of the catalog's constants from which logs hardly are of what was said.
const SUSPECT: f64 = 0.5;

fn percent(share: f64) -> String {
    format!("{}%", significant(share * 100.0, 3))
}

fn sentence(what: &str, errors: &Errors) -> String {
    format!(
        "{what}: median error {}, 90th percentile {}, of {}",
        percent(errors.median),
        percent(errors.p90),
        counted(errors.count as u64, "size")
    )
}

fn sentences(calibration: &CollectiveCalibration) -> Vec<String> {
    let mut list = vec![
        sentence("With the catalog's constants", &calibration.before),
        sentence("With the fitted ones, on the runs that they were fitted to", &calibration.after),
    ];
    list.extend(calibration.held_out.iter().map(|held: &HeldOut| {
        let before = percent(held.before.median);
        sentence(&format!("Left out of the fit, {} (catalog: median {before})", held.name), &held.after)
    }));
    if calibration.before.median > SUSPECT {
        list.push("So far off, the logs may be of another node, fabric or number of ranks".to_owned());
    }
    let (moved, others) = (calibration.constants.len(), calibration.unmoved);
    list.push(format!("The runs move {moved} of {} constants; the others stay as they were", moved + others));
    list
}

/// The overlay: what to lay over the catalog with `--catalog`, in a file `efficiency/collectives/nccl.toml`.
pub fn calibration_toml(title: &CalibrationTitle, calibration: &CollectiveCalibration) -> String {
    let mut lines = vec![
        format!("# Collective constants of {} on {}, fitted to nccl-tests logs.", title.node, title.fabric),
        "# Lay this over the catalog as efficiency/collectives/nccl.toml in a directory given with --catalog."
            .to_owned(),
    ];
    lines.extend(sentences(calibration).iter().map(|sentence| format!("# {sentence}.")));
    let mut section = None;
    for constant in &calibration.constants {
        if section != Some(&constant.path.section) {
            section = Some(&constant.path.section);
            lines.push(format!("\n[{}]", constant.path.section));
        }
        let after = constant.after;
        let [value, low, high] = [after.value, after.low, after.high].map(|base| constant.kind.toml(base));
        lines.push(format!("{} = {{ value = {value}, low = {low}, high = {high} }}", constant.path.name));
    }
    if !calibration.constants.is_empty() {
        lines.push("\n[[source]]\nfields = [".to_owned());
        lines.extend(calibration.constants.iter().map(|constant| format!("  \"{}\",", constant.path)));
        let logs = title.logs.join(", ").replace(['"', '\\'], "'");
        lines.push(format!("]\nbasis = \"derived\"\ntitle = \"Fit to own nccl-tests logs: {logs}\""));
        lines.push(format!("accessed = {}", title.date));
    }
    lines.join("\n") + "\n"
}

const COLUMNS: [&str; 6] = ["constant", "unit", "before", "after", "low", "high"];

fn unit(kind: Kind) -> (&'static str, f64) {
    match kind {
        Kind::Fraction | Kind::Factor => ("", 1.0),
        Kind::Time => ("us", 1e-6),
        Kind::Rate => ("GB/s", 1e9),
        Kind::Data => ("MB", 1e6),
    }
}

/// The constants as a grid; `digits` rounds for people.
pub fn calibration_grid(calibration: &CollectiveCalibration, digits: Option<usize>) -> Grid {
    let mut grid = Grid::new(&COLUMNS, 2);
    let row = |constant: &FittedConstant| {
        let (unit, base) = unit(constant.kind);
        let after = constant.after;
        let figure = |value: f64| digits.map_or((value / base).to_string(), |digits| significant(value / base, digits));
        let mut row = vec![constant.path.to_string(), unit.to_owned()];
        row.extend([constant.before, after.value, after.low, after.high].map(figure));
        row
    };
    grid.rows.extend(calibration.constants.iter().map(row));
    grid
}

/// For people.
pub fn calibration_page(title: &CalibrationTitle, calibration: &CollectiveCalibration) -> Page {
    let heading = format!("Collective constants of {} on {}, fitted to nccl-tests logs", title.node, title.fabric);
    let fit = Section::new(String::new(), Block::List(sentences(calibration)));
    let constants = Section::new("Constants", Block::Grid(calibration_grid(calibration, Some(4))));
    Page { title: heading, sections: vec![fit, constants] }
}

/// For programs.
pub fn calibration_json(title: &CalibrationTitle, calibration: &CollectiveCalibration) -> String {
    let errors = |errors: &Errors| {
        json!({
            "rows": errors.count,
            "median_abs_error_ratio": errors.median,
            "p90_abs_error_ratio": errors.p90,
        })
    };
    let constant = |constant: &FittedConstant| {
        let (unit, base) = unit(constant.kind);
        json!({
            "constant": constant.path.to_string(),
            "unit": unit,
            "before": constant.before / base,
            "value": constant.after.value / base,
            "low": constant.after.low / base,
            "high": constant.after.high / base,
        })
    };
    let held =
        |held: &HeldOut| json!({ "name": held.name, "before": errors(&held.before), "after": errors(&held.after) });
    let object = json!({
        "node": title.node,
        "fabric": title.fabric,
        "logs": title.logs,
        "before": errors(&calibration.before),
        "after": errors(&calibration.after),
        "held_out": calibration.held_out.iter().map(held).collect::<Vec<Json>>(),
        "unmoved_count": calibration.unmoved,
        "constants": calibration.constants.iter().map(constant).collect::<Vec<Json>>(),
    });
    format!("{object:#}\n")
}
