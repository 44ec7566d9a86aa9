//! Rails alone: each rail is a network of its own and nothing joins them (Wang et al., arXiv 2307.12169). As long as the
//! cards of a rail fit one switch there are no spines at all.

use super::{FatTreeSpec, Layer, Managers, SwitchLoad, Topology, TopologyError};

impl Topology {
    /// Counts a fat tree for each rail. Every rail is a subnet and has fabric managers of its own, with one port each.
    ///
    /// # Errors
    /// [`TopologyError`] where a rail can't be built.
    pub(super) fn rail_only(spec: &FatTreeSpec) -> Result<Self, TopologyError> {
        spec.check()?;
        let managers = Managers { ports_per_server: spec.managers.ports_per_server.min(1), ..spec.managers };
        let [border_ports, server_ports] =
            [spec.border_ports, spec.server_ports].map(|ports| ports.div_ceil(spec.rails));
        let rail = FatTreeSpec {
            nics_per_node: spec.nics_per_node / spec.rails,
            rails: 1,
            managers,
            border_ports,
            server_ports,
            ..*spec
        };
        let one = Self::fat_tree(&rail)?;
        let rails = spec.rails;
        let managers = Managers { servers: managers.servers * rails, ..managers };
        Ok(Self {
            spec: FatTreeSpec {
                managers,
                border_ports: border_ports * rails,
                server_ports: server_ports * rails,
                ..*spec
            },
            unit_leaves: one.unit_leaves * rails,
            spine_groups: one.spine_groups * rails,
            leaf: times(&one.leaf, rails),
            spine: times(&one.spine, rails),
            core: times(&one.core, rails),
            ..one
        })
    }
}

fn times(layer: &Layer, rails: u32) -> Layer {
    let load = |load: &SwitchLoad| SwitchLoad { switches: load.switches * u64::from(rails), ..*load };
    Layer { loads: layer.loads.iter().map(load).collect(), ..layer.clone() }
}
