//! Did you mean?

/// The longest text that is taken for a slip, in bytes.
const LONGEST: usize = 100;

/// The candidate closest to what was typed, if one is close enough to be a slip of the hand or a part of the name.
pub fn did_you_mean<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // No id or key is longer, and distances of long texts take long.
    if typed.len() > LONGEST {
        return None;
    }
    let typed = typed.to_ascii_lowercase();
    let allowed = 1 + typed.len() / 4;
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .filter_map(|candidate| {
            let lower = candidate.to_ascii_lowercase();
            let distance = strsim::osa_distance(&typed, &lower);
            // What is typed beyond a known name is an addition to it where it is the smaller part, and else another name.
            let longer = typed.contains(&lower) && lower.len() >= 3 && lower.len() * 2 >= typed.len();
            let part = typed.len() >= 3 && (lower.contains(&typed) || longer);
            (distance <= allowed || part).then_some((distance, candidate))
        })
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_and_parts_are_recognised() {
        let ids = ["h100-sxm-80gb", "a100-sxm-80gb", "h200-sxm"];
        assert_eq!(did_you_mean("h100-smx-80gb", ids), Some("h100-sxm-80gb"));
        assert_eq!(did_you_mean("h100", ids), Some("h100-sxm-80gb"));
        assert_eq!(did_you_mean("tpu-v5p", ids), None);
        // A model that was distilled from another is not that other; a version of it is.
        assert_eq!(did_you_mean("deepseek-r1-distill-falcon-11b", ["deepseek-r1"]), None);
        assert_eq!(did_you_mean("deepseek-r1-0528", ["deepseek-r1"]), Some("deepseek-r1"));
        assert_eq!(did_you_mean(&"h100-sxm-80gb".repeat(100_000), ids), None);
    }
}
