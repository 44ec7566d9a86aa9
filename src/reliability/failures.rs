//! From component counts to a job's mean time between interruptions.

use crate::catalog::fabric::Transport;
use crate::catalog::network_reliability::{NetworkMtbf, NetworkReliability, Stall};
use crate::catalog::reliability::{ComponentMtbf, JobLevel};
use crate::units::{Ranged, SECONDS_PER_DAY, Seconds};

/// The components whose failure stops a job: those at work, spares not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Components {
    /// Accelerators.
    pub accelerators: u64,
    /// Hosts: a node, or a tray where a node has several.
    pub hosts: u64,
    /// Scale-out network cards.
    pub nics: u64,
    /// Switches of the scale-out network, all tiers.
    pub switches: u64,
    /// Its optical modules.
    pub optics: u64,
    /// Its cables.
    pub cables: u64,
}

/// Interruptions a day, by cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interruptions {
    /// Accelerators without their memory.
    pub accelerator: f64,
    /// Memory of the accelerators.
    pub memory: f64,
    /// Hosts.
    pub host: f64,
    /// Software.
    pub software: f64,
    /// Network cards.
    pub nic: f64,
    /// Switches.
    pub switch: f64,
    /// Optical modules.
    pub optic: f64,
    /// Cables.
    pub cable: f64,
    /// What no component explains, in shared clusters.
    pub job: f64,
}

impl Interruptions {
    /// Rates of independent components in series: each cause's count over its mean time between failures.
    pub fn new(mtbf: &ComponentMtbf, network: &NetworkMtbf, components: &Components) -> Self {
        Self {
            accelerator: per_day(components.accelerators, mtbf.accelerator),
            memory: per_day(components.accelerators, mtbf.memory),
            host: per_day(components.hosts, mtbf.host),
            software: per_day(components.hosts, mtbf.software),
            nic: per_day(components.nics, network.nic),
            switch: per_day(components.switches, network.switch),
            optic: per_day(components.optics, network.optic),
            cable: per_day(components.cables, network.cable),
            job: 0.0,
        }
    }

    /// The same in a shared cluster, where jobs also end for reasons that are no component's: by host, up to the largest
    /// job in which that was measured.
    ///
    /// The series of components alone says that a job of 1,024 GPUs on Meta's RSC-1 lasts 28.8 h; it was 7.9 h (Kokolis et
    /// al., arXiv 2410.21680).
    #[must_use]
    pub fn in_shared_cluster(self, job_level: &JobLevel, hosts: u64) -> Self {
        Self { job: per_day(hosts.min(u64::from(job_level.hosts)), job_level.mtbf), ..self }
    }

    /// Those that take a host out of the job until it is repaired.
    pub fn of_hosts(&self) -> f64 {
        self.accelerator + self.memory + self.host + self.nic
    }

    /// Those of the network between hosts.
    pub fn of_network(&self) -> f64 {
        self.switch + self.optic + self.cable
    }

    /// All causes together, a day.
    pub fn total(&self) -> f64 {
        self.of_hosts() + self.of_network() + self.software + self.job
    }

    /// Mean time between interruptions of the job.
    pub fn mtbf(&self) -> Seconds {
        Seconds::new(SECONDS_PER_DAY) / self.total()
    }
}

fn per_day(count: u64, mtbf: Ranged<Seconds>) -> f64 {
    count as f64 * (Seconds::new(SECONDS_PER_DAY) / mtbf.value)
}

/// The share of a job's time that it waits for its network to come back, without being interrupted: flaps of every link,
/// and pause storms of every card where the transport pauses. A synchronous job waits for its slowest rank, so that the
/// stalls of all parts add up.
pub fn network_stalls(network: &NetworkReliability, transport: Transport, components: &Components) -> f64 {
    let share = |count: u64, stall: &Stall| count as f64 * (stall.time.value / stall.between.value);
    let storms = if transport.pauses() { share(components.nics, &network.pause_storm) } else { 0.0 };
    share(components.cables, &network.link_flap) + storms
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const fn hours(hours: f64) -> Ranged<Seconds> {
        Ranged::exact(Seconds::new(hours * 3_600.0))
    }

    /// Mean times of Llama 3's Table 5 (arXiv 2407.21783): counts over 1,296 h of 16,384 GPUs and cards, 2,048 hosts, and
    /// of its network as split in the catalog.
    fn llama3() -> (ComponentMtbf, NetworkMtbf) {
        let of = |count: f64, events: f64| hours(count * 1_296.0 / events);
        let mtbf = ComponentMtbf {
            accelerator: of(16_384.0, 196.0),
            memory: of(16_384.0, 72.0),
            host: of(2_048.0, 46.0),
            software: of(2_048.0, 63.0),
        };
        let network = NetworkMtbf {
            nic: of(16_384.0, 7.0),
            switch: of(1_100.0, 1.0),
            optic: of(37_450.0, 30.6),
            cable: of(35_109.0, 3.4),
        };
        (mtbf, network)
    }

    const META: Components = Components {
        accelerators: 16_384,
        hosts: 2_048,
        nics: 16_384,
        switches: 1_100,
        optics: 37_450,
        cables: 35_109,
    };

    #[test]
    fn llama_3_was_interrupted_419_times_in_54_days() {
        let (mtbf, network) = llama3();
        let interruptions = Interruptions::new(&mtbf, &network, &META);
        assert!((interruptions.total() * 54.0 - 419.0).abs() < 1e-9);
        // 1,296 h / 419 = 3.093 h, "one in about three hours".
        assert!((interruptions.mtbf().value() / 3_600.0 - 3.093).abs() < 1e-3);
        assert!((interruptions.memory * 54.0 - 72.0).abs() < 1e-9);
        assert!((interruptions.of_network() * 54.0 - 35.0).abs() < 1e-9);
    }

    #[test]
    fn twice_the_modules_add_only_their_interruptions() {
        let (mtbf, network) = llama3();
        let twice = Components { optics: 2 * META.optics, ..META };
        let (few, many) = (Interruptions::new(&mtbf, &network, &META), Interruptions::new(&mtbf, &network, &twice));
        assert!((many.total() - few.total() - few.optic).abs() < 1e-12);
    }

    #[test]
    fn small_jobs_of_a_shared_cluster_fail_more_often_than_their_nodes() {
        let (mtbf, network) = llama3();
        let job_level = JobLevel { mtbf: hours(1_393.0), hosts: 128 };
        let of = |hosts: u64| Interruptions::new(&mtbf, &network, &META).in_shared_cluster(&job_level, hosts).job;
        // 128 x 24 / 1,393 = 2.2053 a day; no more beyond.
        assert!((of(128) - 2.2053).abs() < 1e-4);
        assert!((of(1) * 128.0 - of(128)).abs() < 1e-12);
        assert!((of(2_048) - of(128)).abs() < 1e-12);
    }

    #[test]
    fn storms_are_ethernet_s_and_flaps_are_everybody_s() {
        let stall =
            |between: f64, time: f64| Stall { between: hours(between), time: Ranged::exact(Seconds::new(time)) };
        let (_, mtbf) = llama3();
        let network = NetworkReliability { mtbf, link_flap: stall(1e6, 36.0), pause_storm: stall(1e6, 3.6) };
        // 35,109 links, 36 s of 3.6e9 each: 3.5109e-4; 16,384 cards, 3.6 s: 1.6384e-5.
        let of = |transport| network_stalls(&network, transport, &META);
        assert!((of(Transport::Infiniband) - 3.5109e-4).abs() < 1e-12);
        assert!((of(Transport::RoceV2) - 3.5109e-4 - 1.6384e-5).abs() < 1e-12);
    }
}
