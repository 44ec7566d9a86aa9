//! Counts in words.

/// A count with commas between thousands.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// "1 tier", "2 tiers", "3 switches".
pub(crate) fn counted(count: u64, what: &str) -> String {
    let many = if what.ends_with("ch") { "es" } else { "s" };
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { many })
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_of_a_thing_is_not_told_as_many() {
        assert_eq!(counted(1, "GPU"), "1 GPU");
        assert_eq!(counted(0, "GPU"), "0 GPUs");
        assert_eq!(counted(1, "switch"), "1 switch");
        assert_eq!(counted(1_474, "switch"), "1,474 switches");
    }
}
