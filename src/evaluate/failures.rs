//! How a job on a built cluster fails and comes back: which components are at work, where checkpoints go, which spares
//! stand by.

use super::BuiltCluster;
use crate::reliability::{
    Checkpoint, CheckpointPath, Components, Hazards, Interruptions, Recovery, checkpoint_size, frozen_size,
    network_stalls, spare_wait, spares_for,
};
use crate::scenario::{Cluster, Tenancy, Training};
use crate::units::Seconds;

/// The share of its pool that an average failure may wait for a spare and spares still count as enough: a minute.
const SHORT_WAIT: Seconds = Seconds::new(60.0);

/// What interrupts a job, and what that costs it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failures {
    /// Parts whose failure stops the job.
    pub components: Components,
    /// How often each kind does.
    pub interruptions: Interruptions,
    /// What goodput follows from.
    pub hazards: Hazards,
    /// The same of a stage that trains adapters: its checkpoints leave the frozen model out.
    pub of_adapters: Hazards,
    /// Hosts that stand by.
    pub spare_hosts: u64,
    /// Hosts that would have to stand by for failures to wait a minute at most, on average.
    pub enough_spare_hosts: u64,
}

impl Failures {
    /// Of a job on all accelerators at work of a cluster.
    pub fn new(cluster: &Cluster, training: &Training, built: &BuiltCluster) -> Self {
        let per_tray = cluster.node.accelerators_per_tray;
        let trays = cluster.node.accelerators / per_tray;
        let hosts = u64::from(cluster.accelerators / per_tray);
        let components = Components {
            accelerators: u64::from(cluster.accelerators),
            hosts,
            nics: hosts * u64::from(cluster.node.nic_slots.count / trays),
            switches: built.drivers.switches,
            optics: built.drivers.optics,
            cables: built.drivers.cables,
        };
        let (rates, network) = (&cluster.reliability, &cluster.network_reliability);
        let mut interruptions = Interruptions::new(&rates.mtbf, &network.mtbf, &components);
        if cluster.tenancy == Tenancy::Shared {
            interruptions = interruptions.in_shared_cluster(&rates.job_level, hosts);
        }
        // Trays of racks at work that the job leaves idle stand by too.
        let nodes = built.main_nodes();
        let idle = u64::from((cluster.node.accelerators - nodes.each) / per_tray) * u64::from(nodes.at_work);
        let spare_hosts = u64::from(nodes.spare) * u64::from(trays) + idle;
        let (of_hosts, repair) = (interruptions.of_hosts(), rates.recovery.repair.value);
        // Failures of other kinds need no spare.
        let wait = spare_wait(of_hosts, repair, spare_hosts) * (of_hosts / interruptions.total());
        let units = f64::from(cluster.storage_units);
        let path = CheckpointPath {
            write: cluster.storage.write_bandwidth.value * units,
            read: cluster.storage.read_bandwidth.value * units,
            peers: cluster.fabric.nic.speed * f64::from(cluster.fabric.nic.ports) * components.nics as f64,
            snapshot: rates.recovery.snapshot.value,
        };
        let size = checkpoint_size(&training.transformer, training.job.precision, training.job.optimizer);
        let frozen = frozen_size(&training.transformer, training.job.precision);
        let hazards = Hazards {
            mtbf: interruptions.mtbf(),
            checkpoint: Checkpoint::new(size, &path, training.checkpoint),
            recovery: Recovery { spare: wait, ..Recovery::from(&rates.recovery) },
            network_stalls: network_stalls(network, cluster.fabric.entry.transport, &components),
        };
        Self {
            components,
            interruptions,
            hazards,
            of_adapters: Hazards { checkpoint: Checkpoint::of_adapters(frozen, &path, training.checkpoint), ..hazards },
            spare_hosts,
            enough_spare_hosts: spares_for(of_hosts, repair, SHORT_WAIT),
        }
    }
}
