//! Patterns of published texts, and what stands for what they meet: the first that holds.

use crate::document::Reader;

/// What a text must be or contain, in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pattern {
    is: Vec<String>,
    all: Vec<String>,
    any: Vec<String>,
    without: Vec<String>,
}

impl Pattern {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            is: r.or("is", Vec::new()),
            all: r.or("all", Vec::new()),
            any: r.or("any", Vec::new()),
            without: r.or("without", Vec::new()),
        }
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let holds = |part: &String| text.contains(part.as_str());
        if self.without.iter().any(holds) {
            return false;
        }
        if self.is.contains(&text) {
            return true;
        }
        let stated = !(self.all.is_empty() && self.any.is_empty());
        stated && self.all.iter().all(holds) && (self.any.is_empty() || self.any.iter().any(holds))
    }
}

/// A pattern and what it stands for.
pub(super) type Alias<T> = (Pattern, T);

pub(super) fn first<'a, T>(aliases: &'a [Alias<T>], text: &str) -> Option<&'a T> {
    aliases.iter().find(|(pattern, _)| pattern.matches(text)).map(|(_, meaning)| meaning)
}

pub(super) fn aliases<T>(r: &mut Reader<'_>, key: &'static str, read: impl Fn(&mut Reader<'_>) -> T) -> Vec<Alias<T>> {
    r.tables(key, |r| (Pattern::read(r), read(r)))
}

/// A meaning, or why there is none.
pub(in crate::validation) type Supported<T> = Result<T, String>;

pub(super) fn supported<T>(r: &mut Reader<'_>, read: impl Fn(&mut Reader<'_>) -> T) -> Supported<T> {
    match r.optional::<String>("unsupported") {
        Some(reason) => Err(reason),
        None => Ok(read(r)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_pattern_is_met_by_its_words() {
        let pattern = Pattern { all: words(&["h100", "80gb"]), without: words(&["pcie"]), ..Pattern::default() };
        assert!(pattern.matches("NVIDIA H100-SXM5-80GB"));
        assert!(!pattern.matches("H100-PCIe-80GB"));
        assert!(!pattern.matches("H100-96GB"));
        let pattern = Pattern { is: words(&["ib"]), any: words(&["infiniband"]), ..Pattern::default() };
        assert!(pattern.matches("IB") && pattern.matches("HDR InfiniBand") && !pattern.matches("IB or RoCE?"));
        assert!(!Pattern::default().matches("anything"));
    }
}
