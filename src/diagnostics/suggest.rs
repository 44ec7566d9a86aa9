//! Did you mean?

/// The longest text that is taken for a slip, in bytes.
const LONGEST: usize = 100;
/// The most names that are told where several fit as well.
const MOST: usize = 3;
/// Signs between the words of a name.
const BETWEEN: [char; 5] = ['-', '_', '.', ' ', '/'];

/// How a name comes close to what was typed, the closest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Close {
    /// One letter apart, with the same digits.
    Letter,
    /// It begins with it, or has it from the beginning of one of its words on.
    Named,
    /// A slip of the hand.
    Slip,
    /// One is a part of the other.
    Part,
}

/// The candidate closest to what was typed, if one is close enough to be a slip of the hand or a part of the name.
pub fn did_you_mean<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest(typed, candidates).into_iter().next()
}

/// Which names may be meant, in words for a hint; none where no name is close.
pub fn did_you_mean_one_of<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names: Vec<String> = nearest(typed, candidates).into_iter().map(|name| format!("\"{name}\"")).collect();
    let (last, others) = names.split_last()?;
    let list = if others.is_empty() { last.clone() } else { format!("{} or {last}", others.join(", ")) };
    Some(format!("did you mean {list}?"))
}

/// The candidates closest to what was typed, the closest first: those that have it in their name, or else those that the same
/// slip of the hand may be, so that a name of other digits is not told where one with these is.
fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    // No id or key is longer, and distances of long texts take long.
    if typed.len() > LONGEST {
        return Vec::new();
    }
    let typed = typed.to_ascii_lowercase();
    let mut close: Vec<(Close, usize, &str)> = candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .filter_map(|candidate| close(&typed, candidate).map(|(how, distance)| (how, distance, candidate)))
        .collect();
    close.sort_unstable();
    let Some((best, least, _)) = close.first().copied() else { return Vec::new() };
    let fits =
        |(how, distance, _): &&(Close, usize, &str)| *how == best && (best == Close::Named || *distance == least);
    let mut names: Vec<&str> = close.iter().filter(fits).map(|(_, _, name)| *name).collect();
    names.dedup();
    names.truncate(MOST);
    names
}

/// How close a candidate is to what was typed in small letters, and the distance of both.
fn close(typed: &str, candidate: &str) -> Option<(Close, usize)> {
    let lower = candidate.to_ascii_lowercase();
    let distance = strsim::osa_distance(typed, &lower);
    let begins = |(at, _): (usize, &str)| at == 0 || lower[..at].ends_with(BETWEEN);
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    if distance <= 1 && digits(typed) == digits(&lower) {
        return Some((Close::Letter, distance));
    }
    if typed.len() >= 3 && lower.match_indices(typed).any(begins) {
        return Some((Close::Named, distance));
    }
    if distance <= 1 + typed.len() / 4 {
        return Some((Close::Slip, distance));
    }
    // What is typed beyond a known name is an addition to it where it is the smaller part, and else another name.
    let longer = typed.contains(&lower) && lower.len() >= 3 && lower.len() * 2 >= typed.len();
    (typed.len() >= 3 && (lower.contains(typed) || longer)).then_some((Close::Part, distance))
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

    #[test]
    fn names_that_have_what_was_typed_come_before_names_like_it() {
        let nodes = ["gh200-1", "gb200-nvl72", "dgx-h200", "hgx-h200-8", "dgx-h100"];
        assert_eq!(did_you_mean_one_of("h200", nodes).unwrap(), "did you mean \"dgx-h200\" or \"hgx-h200-8\"?");
        let models = ["qwen3-32b", "qwen3-235b-a22b", "qwen3-vl-235b-a22b", "qwen3-30b-a3b"];
        assert_eq!(did_you_mean_one_of("qwen3-235b", models).unwrap(), "did you mean \"qwen3-235b-a22b\"?");
        // Of slips those that are as close, three at most.
        let models = ["qwen3-4b", "qwen3-8b", "qwen3-14b", "qwen2-7b", "qwen3-1b"];
        let told = "did you mean \"qwen2-7b\", \"qwen3-1b\" or \"qwen3-4b\"?";
        assert_eq!(did_you_mean_one_of("qwen3-7b", models).unwrap(), told);
        assert_eq!(did_you_mean_one_of("mixtral", models), None);
        // A letter too many is a slip.
        assert_eq!(did_you_mean("experts", ["redundant_experts", "expert"]), Some("expert"));
    }
}
