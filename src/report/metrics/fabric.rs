//! The scale-out network.

figures! {
    Fabric:
    "fabric.tiers_count": Count, "Tiers of switches", "One: leaf; two: and spine; three: and core.";
        "as few as reach every node, unless the scenario says" from ["cluster.topology.tiers", "cluster.accelerators", "switches.ports"]
        => |e| e.built.topology.tiers;
    "fabric.pods_count": Count, "Pods", "Groups of nodes that reach each other without the core.";
        "nodes / nodes of a pod, rounded up" from ["cluster.topology.pod", "cluster.accelerators"]
        => |e| e.built.topology.pods;
    "fabric.leaf_oversubscription_ratio": Quotient, "Oversubscription, leaf to spine", "Bandwidth down over bandwidth up of a leaf switch, as built; none where nothing is above.";
        "links down / links up of a fully populated leaf switch" from ["cluster.topology.oversubscription", "switches.ports"]
        => |e| e.built.topology.leaf.oversubscription;
    "fabric.spine_oversubscription_ratio": Quotient, "Oversubscription, spine to core", "Bandwidth down over bandwidth up of a spine switch, as built; none where nothing is above.";
        "links down / links up of a spine switch" from ["cluster.topology.oversubscription", "switches.ports"]
        => |e| e.built.topology.spine.oversubscription;
    "fabric.leaf_switches_count": Count, "Leaf switches", "Switches that nodes plug into.";
        "counted by the rules of a rail-optimised fat tree" from ["cluster.accelerators", "cluster.topology", "switches.ports"]
        => |e| e.fabric().leaf_switches;
    "fabric.spine_switches_count": Count, "Spine switches", "Switches that join the leaves of a pod.";
        "counted by the rules of a rail-optimised fat tree" from ["cluster.accelerators", "cluster.topology", "switches.ports"]
        => |e| e.fabric().spine_switches;
    "fabric.core_switches_count": Count, "Core switches", "Switches that join the pods.";
        "counted by the rules of a rail-optimised fat tree" from ["cluster.accelerators", "cluster.topology", "switches.ports"]
        => |e| e.fabric().core_switches;
    "fabric.nics_count": Count, "Network cards", "Scale-out network cards of all nodes, spares among them.";
        "nodes x slots of a node" from ["cluster.accelerators", "cluster.spares", "nodes.nic_slots"]
        => |e| e.fabric().nics;
    "fabric.optics_count": Count, "Optical modules", "Modules at both ends of every link, a module of two links counted once.";
        "links of each box / links of a module, rounded up, at every end" from ["fabrics.link", "optics.links"]
        => |e| e.fabric().optics;
    "fabric.cables_count": Count, "Cables", "One a link, of nodes, fabric managers and switches.";
        "links of all tiers" from ["fabric.leaf_switches_count", "fabric.spine_switches_count", "fabric.core_switches_count"]
        => |e| e.fabric().cables;
    "fabric.power_w": Watts, "Power in use", "Network cards, switches, modules and cables at their typical power.";
        "sum over parts of count x power of one" from ["parts.fabric_power"]
        => |e| e.built.fabric_power();
    "fabric.capex_usd": Usd, "Price of all parts", "Network cards, switches, modules, cables and fabric managers, spares among them.";
        "sum over parts of (count + spares) x price of one" from ["parts.fabric_price", "cluster.fabric_spares"] => |e| e.built.fabric_capex();
    "fabric.capex_usd_per_gpu": Usd, "  a GPU at work", "The price of all parts, over the accelerators at work.";
        "price of all parts / accelerators at work" from ["fabric.capex_usd", "cluster.accelerators"]
        => |e| e.built.fabric_capex() / f64::from(e.scenario.cluster.accelerators);
    "fabric.share_of_capex_ratio": Ratio, "  share of capex", "The price of all parts, over the capex of the whole cluster.";
        "price of all parts / capex" from ["fabric.capex_usd", "cost.capex_usd"]
        => |e| e.built.fabric_capex() / e.built.costs.capex;
    "fabric.side_networks_power_w": Watts, "Power beside it", "Storage and management networks: switches, modules and cables at their typical power.";
        "sum over parts of count x power of one" from ["parts.side_power", "cluster.networks"]
        => |e| e.built.side_power();
    "fabric.side_networks_capex_usd": Usd, "Price beside it", "Storage and management networks: switches, modules and cables, spares among them.";
        "sum over parts of (count + spares) x price of one" from ["parts.side_price", "cluster.networks", "cluster.fabric_spares"]
        => |e| e.built.side_capex();
}
