//! Calls of collectives against what was measured, and against each other.

use clusterplan::units::Quantity;
use serde_json::Value;

use super::{busbw, json, near, on_h100, run};

#[test]
fn two_nodes_meet_the_measured_bus_bandwidth_and_say_why() {
    let answer = on_h100("all_reduce --ranks 16 --bytes 8GiB");
    near(busbw(&answer), 469.0, 0.05);
    assert_eq!((&answer["best"], &answer["rule"]), (&"nvlstree".into(), &"fastest".into()));
    assert!(answer["reason"].as_str().unwrap().contains("scale-up domain"));
    let first = &answer["algorithms"][0];
    assert_eq!(first["name"], answer["best"]);
    for key in ["time_us", "algbw_gbytes_per_s", "busbw_gbytes_per_s"] {
        assert!(first[key].as_f64().unwrap() > 0.0, "{key}");
    }
    // NCCL, MPI and frameworks side by side.
    let libraries: Vec<&Value> = answer["algorithms"].as_array().unwrap().iter().map(|line| &line["library"]).collect();
    for library in ["nccl", "mpi", "composed"] {
        assert!(libraries.contains(&&library.into()), "{library}");
    }
    assert!(!libraries.contains(&&"nccl+sharp".into()));
    let sharp = on_h100("all_reduce --ranks 16 --bytes 8GiB --sharp");
    assert!(sharp["algorithms"].as_array().unwrap().iter().any(|line| line["library"] == "nccl+sharp"));
}

#[test]
fn one_node_by_nvls_and_by_ring() {
    // NVIDIA/nccl-tests issue 212: 450 GB/s is the line rate of one direction, not what to expect.
    near(busbw(&on_h100("all_reduce --ranks 8 --bytes 8GiB")), 480.0, 0.05);
    near(busbw(&on_h100("all_reduce --ranks 8 --bytes 8GiB --algorithm ring")), 360.0, 0.05);
    // NVIDIA/nccl-tests issue 149: A100's "600 GB/s" are both directions; about 230 is normal.
    let a100 = json("collective all_reduce --ranks 8 --bytes 8GiB --node dgx-a100 --fabric quantum-hdr");
    near(busbw(&a100), 235.0, 0.05);
}

#[test]
fn four_nodes_are_slower_than_two() {
    // NVIDIA/nccl-tests issue 309: 365.84 GB/s on four nodes is 91 to 95% of what the cards carry, and normal.
    let four = busbw(&on_h100("all_reduce --ranks 32 --bytes 16GiB"));
    assert!((350.0..=390.0).contains(&four), "{four}");
}

#[test]
fn an_all_to_all_has_one_card_a_gpu() {
    // NVIDIA/nccl-tests issue 267: 6 nodes of 8; a GPU's own card, 48 to 49 GB/s, and what stays in the node.
    let answer = busbw(&on_h100("alltoall --ranks 48 --bytes 8GiB"));
    let most = 48.5 * 47.0 / 40.0;
    assert!(answer < most && answer > 0.75 * most, "{answer} of {most}");
}

#[test]
fn fabrics_are_level_on_two_nodes_and_not_on_a_thousand() {
    let on = |fabric: &str, rest: &str| {
        busbw(&json(&format!("collective all_reduce --node dgx-h100 --fabric {fabric} --bytes 8GiB {rest}")))
    };
    let two = "--ranks 16";
    near(on("roce-400g", two), on("quantum-2-ndr", two), 0.01);
    near(on("roce-400g-ecmp", two), on("quantum-2-ndr", two), 0.01);
    let thousand = "--ranks 8192 --algorithm ring --scattered";
    let (infiniband, ecmp) = (on("quantum-2-ndr", thousand), on("roce-400g-ecmp", thousand));
    assert!(ecmp < 0.75 * infiniband, "{ecmp} against {infiniband}");
    // Nodes side by side on rails never meet.
    let packed = "--ranks 8192 --algorithm ring";
    near(on("roce-400g-ecmp", packed), on("quantum-2-ndr", packed), 0.03);
}

#[test]
fn links_are_compared_in_one_direction() {
    let (mut sources, sink) = (clusterplan::diagnostics::Sources::default(), clusterplan::diagnostics::Sink::default());
    let catalog = clusterplan::load::catalog(&[], &mut sources, &sink);
    let node = catalog.nodes.get("dgx-h100").unwrap();
    let one_way = node.scale_up.bandwidth_per_direction;
    // caomaolufei/AIInfraGuide issue 44: 900 GB/s of NVLink 4 are both directions, 64 GB/s of sixteen lanes are one: seven
    // times, not fourteen.
    let bus = node.nic_slots.pcie.unwrap().bandwidth_per_direction();
    near(one_way / bus, 7.0, 0.03);
    // aliyun/SimAI issue 60: one port of 3,600 Gbit/s a GPU is 450 GB/s each direction.
    near(one_way.in_unit("Gbit/s").unwrap(), 3_600.0, 1e-12);
}

#[test]
fn every_node_and_fabric_has_collective_constants() {
    let (mut sources, sink) = (clusterplan::diagnostics::Sources::default(), clusterplan::diagnostics::Sink::default());
    let catalog = clusterplan::load::catalog(&[], &mut sources, &sink);
    assert!(sink.is_empty());
    let constants = catalog.collective_efficiency.get("nccl").unwrap();
    for node in catalog.nodes.iter() {
        assert!(constants.scale_up.contains_key(&node.scale_up.kind), "{}: {}", node.id, node.scale_up.kind);
    }
    for fabric in catalog.fabrics.iter() {
        assert!(constants.network.contains_key(&fabric.class), "{}: {}", fabric.id, fabric.class);
    }
}

fn on_cubes(ranks: u32) -> Value {
    json(&format!(
        "collective alltoall --node gcp-tpu-v5p-64 --fabric ici-ocs --topology torus --ranks {ranks} --bytes 1GiB"
    ))
}

#[test]
fn an_all_to_all_waits_for_the_longest_side_of_the_torus_as_built() {
    // Whole cubes of 4 x 4 x 4: one in a row for each of 2, 3 and 5, 4 x 4 x 1 of 16. Half the data cross the middle of the
    // longest side, so that the rate falls as it grows.
    let time =
        |ranks| on_cubes(ranks)["answer"]["bandwidth_us"].as_f64().unwrap() / f64::from(ranks - 1) * f64::from(ranks);
    let of_one = time(64);
    for (ranks, side) in [(512, 8.0), (128, 8.0), (192, 12.0), (320, 20.0), (1_024, 16.0)] {
        // Filling the pipe adds least to what takes longest.
        near(time(ranks) / of_one, side / 4.0, 0.06);
    }
    near(busbw(&on_cubes(320)), 27.5, 0.02);
    let reason = on_cubes(320)["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("links of the torus") && !reason.contains("NCCL"), "{reason}");
    let call = "collective alltoall --node gcp-tpu-v5p-64 --fabric ici-ocs --topology torus --bytes 1GiB --ranks";
    assert!(run(&format!("{call} 320")).1.contains("a torus of 20 x 4 x 4 accelerators"));
    // No fabric managers take places among cubes.
    let (code, out, error) = run(&format!("{call} 6144"));
    let said = out + &error;
    assert!(code == 1 && said.contains("join 68 blocks of accelerators, not 96"), "{said}");
    assert!(!said.contains("manager"), "{said}");
}

#[test]
fn a_rank_alone_on_its_node_holds_up_the_others() {
    // All but its own ninth of what it sends leaves by its one card.
    let least = 8.0 / 9.0 * 2f64.powi(30) / 50e3;
    for kind in ["alltoall", "all_gather", "all_reduce", "broadcast"] {
        let answer = on_h100(&format!("{kind} --ranks 9 --bytes 1GiB"));
        for line in answer["algorithms"].as_array().unwrap() {
            assert!(line["time_us"].as_f64().unwrap() > least, "{kind}: {line}");
        }
    }
    assert!(on_h100("alltoall --ranks 9 --bytes 1GiB")["answer"]["time_us"].as_f64().unwrap() < 1.5 * least);
}

#[test]
fn staging_is_told_in_the_call_s_own_figures() {
    let call = "collective all_reduce --ranks 16 --bytes 1GiB --no-gpudirect --node";
    let note = |rest: &str| run(&format!("{call} {rest}")).1;
    let h100 = note("dgx-h100 --fabric quantum-2-ndr");
    assert!(h100.contains("GB/s of 50, 8 of a host at once"), "{h100}");
    let a100 = note("dgx-a100 --fabric quantum-hdr");
    assert!(a100.contains("GB/s of 25, 8 of a host at once"), "{a100}");
}
