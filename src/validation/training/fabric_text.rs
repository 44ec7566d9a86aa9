//! Reads the free text with which published tables describe a network, strictly: a rate counts for what the text says it
//! is a rate of.

/// What the text states.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FabricText {
    /// Network rate of one GPU, in Gbit/s a direction.
    pub(super) gbit_per_gpu: Option<f64>,
    /// GPUs of a pod.
    pub(super) pod: Option<u32>,
    /// Oversubscription between pods.
    pub(super) oversubscription: Option<f64>,
}

/// A link of Omni-Path, in Gbit/s (Intel Omni-Path Host Fabric Interface 100 series; there has been no other until 2025).
const OMNI_PATH: f64 = 100.0;

/// Words that mean Gbit/s after a number.
const RATES: &[&str] = &["g", "gb/s", "gbps", "gbit/s", "gb/sec", "gbe"];

impl FabricText {
    /// Reads a text about nodes of so many GPUs.
    ///
    /// - "400Gb/s per GPU" is a GPU's.
    /// - "800 Gb/s per node" and "1600 Gbps node-node" are a node's: an eighth of it is a GPU's in nodes of eight.
    /// - "8x HDR 200Gb/s" are eight ports of a node.
    /// - "4 Omni-Path links" are four ports of a node at that network's one speed.
    /// - A rate of neither GPU, node nor so many ports is one port's, and a GPU is taken to have one.
    ///
    /// Of several networks in one text, the one called "compute" counts, else the fastest.
    pub(super) fn read(text: &str, gpus_per_node: u32) -> Self {
        let text = text.to_lowercase();
        let rates = text.split([',', ';']).filter_map(|part| Some((part, rate_per_gpu(part, gpus_per_node)?)));
        let rates: Vec<(&str, f64)> = rates.collect();
        let compute = rates.iter().find(|(part, _)| part.contains("compute"));
        let fastest = rates.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let words: Vec<&str> = text.split([' ', ',', ';', '(', ')']).filter(|word| !word.is_empty()).collect();
        Self {
            gbit_per_gpu: compute.or(fastest).map(|(_, rate)| *rate),
            pod: pod(&words),
            oversubscription: words.iter().find_map(|word| word.strip_prefix("1:")?.parse().ok()),
        }
    }
}

/// "3072-GPU pods", "pods of 3072".
fn pod(words: &[&str]) -> Option<u32> {
    words.windows(3).find_map(|window| match window {
        [count, "pods" | "pod", _] | [_, count, "pods" | "pod"] if count.ends_with("-gpu") => {
            count.trim_end_matches("-gpu").parse().ok()
        }
        ["pods", "of", count] => count.parse().ok(),
        _ => None,
    })
}

/// The rate that one part of the text leaves a GPU, in Gbit/s.
fn rate_per_gpu(part: &str, gpus_per_node: u32) -> Option<f64> {
    let (mut count, mut rate) = (None, None);
    let mut rest = part;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let before = rest[..start].chars().next_back();
        let digits = &rest[start..];
        let end = digits.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(digits.len());
        let (number, after) = digits.split_at(end);
        rest = after;
        // Digits inside a name (ConnectX-7, CX7, 3-level) are no number.
        if before.is_some_and(|c| (c.is_alphanumeric() && c != 'x') || c == '-') {
            continue;
        }
        let Ok(value) = number.parse::<f64>() else { continue };
        let unit: String = after.trim_start().chars().take_while(|c| c.is_alphabetic() || *c == '/').collect();
        if RATES.contains(&unit.as_str()) {
            rate = rate.or((value > 0.0).then_some(value));
        } else if unit.starts_with('x') || after.trim_start().starts_with("omni-path links") {
            count = count.or(Some(value));
        }
    }
    if part.contains("omni-path") {
        rate = rate.or(Some(OMNI_PATH));
    }
    let (rate, node) = (rate?, f64::from(gpus_per_node));
    if part.contains("per gpu") || part.contains("a gpu") {
        return Some(rate);
    }
    match count {
        Some(count) => Some(rate * count / node),
        None if part.contains("per node") || part.contains("a node") || part.contains("node-node") => Some(rate / node),
        None => Some(rate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> Option<f64> {
        FabricText::read(text, 8).gbit_per_gpu
    }

    #[test]
    fn a_rate_is_of_what_the_text_says() {
        for (text, wanted) in [
            ("Selene: 8x HDR 200Gb/s IB per node, 3-level fat tree", Some(200.0)),
            ("800 Gb/s per node", Some(100.0)),
            ("RoCE 1600 Gbps node-node (section title)", Some(200.0)),
            ("400Gb/s CX-7 RDMA per GPU", Some(400.0)),
            ("backend RDMA 400Gb/s per GPU (Grand Teton)", Some(400.0)),
            ("8x200G NIC per node, Ethernet Tomahawk-4 Clos, multi-rail", Some(200.0)),
            ("8x200G RoCE, Tomahawk 4", Some(200.0)),
            ("4x ConnectX-7 IB NDR 400 Gb/s", Some(200.0)),
            ("1x Ethernet 100Gb/Sec, 8x NVIDIA Quantum-2 CX7 InfiniBand (400Gb/s)", Some(400.0)),
            (
                "Storage+Management: 1x NVIDIA BlueField 2 DPU 100Gb/s, Compute: 8x NVIDIA ConnectX-7 IB NDR 400Gb/s",
                Some(400.0),
            ),
            ("Storage: 2x ConnectX-7 IB NDR 400Gb/s, Compute: 4x ConnectX-7 IB NDR 400Gb/s", Some(200.0)),
            ("2x Mellanox ConnectX-5 Ex 100Gb/s Ethernet; topo: L3 Fat Tree", Some(25.0)),
            ("HDR 200Gb/s", Some(200.0)),
            ("4 Omni-Path links per node (OPA)", Some(50.0)),
            ("not stated in section", None),
        ] {
            assert_eq!(rate(text), wanted, "{text}");
        }
        assert_eq!(FabricText::read("4x ConnectX-8 IB XDR 800 Gb/s", 4).gbit_per_gpu, Some(800.0));
    }

    #[test]
    fn pods_and_their_oversubscription() {
        let text = "RoCEv2 400Gb/s per GPU, 3-layer Clos, 24K cluster, 1:7 oversubscription between 3072-GPU pods";
        let wanted = FabricText { gbit_per_gpu: Some(400.0), pod: Some(3_072), oversubscription: Some(7.0) };
        assert_eq!(FabricText::read(text, 8), wanted);
        let short = FabricText { gbit_per_gpu: None, ..wanted };
        assert_eq!(FabricText::read("roce-400g, pods of 3072, 1:7", 8), short);
    }
}
