//! From component counts to a job's mean time between interruptions.

use crate::catalog::reliability::ComponentMtbf;
use crate::units::{Ranged, SECONDS_PER_DAY, Seconds};

/// The components whose failure stops a job: those at work, spares not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Components {
    /// Accelerators.
    pub accelerators: u64,
    /// Scale-out network cards.
    pub nics: u64,
    /// Links of the scale-out network, all tiers.
    pub links: u64,
    /// Hosts: a node, or a tray where a node has several.
    pub hosts: u64,
}

/// Interruptions a day, by cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interruptions {
    /// Accelerators without their memory.
    pub accelerator: f64,
    /// Memory of the accelerators.
    pub memory: f64,
    /// Network cards.
    pub nic: f64,
    /// Switches and cables.
    pub network: f64,
    /// Hosts.
    pub host: f64,
    /// Software.
    pub software: f64,
}

impl Interruptions {
    /// Rates of independent components in series: each cause's count over its mean time between failures.
    pub fn new(mtbf: &ComponentMtbf, components: &Components) -> Self {
        let per_day = |count: u64, mtbf: Ranged<Seconds>| count as f64 * (Seconds::new(SECONDS_PER_DAY) / mtbf.value);
        Self {
            accelerator: per_day(components.accelerators, mtbf.accelerator),
            memory: per_day(components.accelerators, mtbf.memory),
            nic: per_day(components.nics, mtbf.nic),
            network: per_day(components.links, mtbf.link),
            host: per_day(components.hosts, mtbf.host),
            software: per_day(components.hosts, mtbf.software),
        }
    }

    /// All causes together, a day.
    pub fn total(&self) -> f64 {
        self.accelerator + self.memory + self.nic + self.network + self.host + self.software
    }

    /// Mean time between interruptions of the job.
    pub fn mtbf(&self) -> Seconds {
        Seconds::new(SECONDS_PER_DAY) / self.total()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean times of Llama 3's Table 5 (arXiv 2407.21783): counts over 1,296 h of 16,384 GPUs and cards, 2,048 hosts and
    /// 35,109 links.
    fn llama3() -> ComponentMtbf {
        let hours = |count: f64, events: f64| Ranged::exact(Seconds::new(count * 1_296.0 / events * 3_600.0));
        ComponentMtbf {
            accelerator: hours(16_384.0, 196.0),
            memory: hours(16_384.0, 72.0),
            nic: hours(16_384.0, 7.0),
            link: hours(35_109.0, 35.0),
            host: hours(2_048.0, 46.0),
            software: hours(2_048.0, 63.0),
        }
    }

    #[test]
    fn llama_3_was_interrupted_419_times_in_54_days() {
        let components = Components { accelerators: 16_384, nics: 16_384, links: 35_109, hosts: 2_048 };
        let interruptions = Interruptions::new(&llama3(), &components);
        assert!((interruptions.total() * 54.0 - 419.0).abs() < 1e-9);
        // 1,296 h / 419 = 3.093 h, "one in about three hours".
        assert!((interruptions.mtbf().value() / 3_600.0 - 3.093).abs() < 1e-3);
        assert!((interruptions.memory * 54.0 - 72.0).abs() < 1e-9);
    }

    #[test]
    fn twice_the_links_add_only_the_network_s_interruptions() {
        let few = Components { accelerators: 1_024, nics: 1_024, links: 2_048, hosts: 128 };
        let many = Components { links: 4_096, ..few };
        let (few, many) = (Interruptions::new(&llama3(), &few), Interruptions::new(&llama3(), &many));
        assert!((many.total() - few.total() - few.network).abs() < 1e-12);
    }
}
