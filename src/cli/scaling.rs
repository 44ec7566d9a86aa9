//! `clusterplan scaling`

use std::path::PathBuf;

use clap::Args;

use super::network::gpus;
use super::options::Format;
use super::{Answer, Session};
use crate::report::{grid_csv, scaling_grid, scaling_json, scaling_page};
use crate::study::{Curve, Growth, scaling};

/// `clusterplan scaling`
#[derive(Args, Debug)]
pub(super) struct ScalingCommand {
    /// A scenario file
    scenario: PathBuf,
    /// The sizes, such as 1024,2048,4096,8192
    #[arg(long, value_name = "GPUS,...", value_delimiter = ',', required = true, value_parser = gpus())]
    accelerators: Vec<u32>,
    /// The batch grows with the GPUs
    #[arg(long)]
    weak: bool,
    /// The least that added GPUs bring, of what they would bring if they were used as well as the others
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = share)]
    least_gain: f64,
}

fn share(text: &str) -> Result<f64, String> {
    let read = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    read.ok_or_else(|| "a share from 0 to 1 is needed, such as 0.5".to_owned())
}

impl ScalingCommand {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        let mut catalog = session.catalog();
        let Some(document) = session.scenario(&self.scenario, &mut catalog) else { return (Answer::Mistaken, session) };
        let growth = if self.weak { Growth::Weak } else { Growth::Strong };
        let curve =
            Curve { document: &document, accelerators: &self.accelerators, growth, least_marginal: self.least_gain };
        let Some(found) = scaling(&curve, &catalog, &session.sink) else { return (Answer::Mistaken, session) };
        let data = match session.format {
            Format::Json => scaling_json(&found).into_bytes(),
            Format::Csv => grid_csv(&scaling_grid(&found), session.options.bom),
            Format::Table | Format::Md => session.page(&scaling_page(&found)),
        };
        let answer = if found.fastest().is_some() {
            Answer::Yes(data)
        } else {
            Answer::No { data: Some(data), message: "none of the sizes can be\n".to_owned() }
        };
        (answer, session)
    }
}
