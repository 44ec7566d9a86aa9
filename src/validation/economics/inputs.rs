//! What a row of published economics says of its inputs: amounts with their words, and how they are joined.

/// How an amount is joined to the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    /// It is the first, or one of a list.
    Listed,
    /// It is added.
    Plus,
    /// It is multiplied.
    Times,
    /// It is divided by.
    Over,
}

/// An amount as a text states it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    /// How it is joined to the one before.
    pub(super) joint: Joint,
    /// The number, its suffix (K, M, B) counted in.
    pub(super) number: f64,
    /// Whether a dollar sign stands before it.
    pub(super) dollars: bool,
    /// Whether a per cent sign stands after it.
    pub(super) percent: bool,
    /// The words before it, in small letters.
    pub(super) before: String,
    /// The words after it, in small letters.
    pub(super) after: String,
}

impl Term {
    /// Whether a word stands after the number.
    pub(super) fn is(&self, word: &str) -> bool {
        self.after.split_whitespace().any(|found| found == word)
    }

    /// Whether the words after the number begin with these letters.
    pub(super) fn begins(&self, letters: &str) -> bool {
        self.after.starts_with(letters)
    }
}

/// The amounts of a text; none where a part of it has no number.
pub(super) fn terms(text: &str) -> Option<Vec<Term>> {
    parts(text).into_iter().map(|(joint, part)| term(joint, &part)).collect()
}

/// The parts of a text between `*`, `+`, ` / `, `;`, ` vs ` and commas that end a phrase; a comma between digits is in a number.
fn parts(text: &str) -> Vec<(Joint, String)> {
    let text = text.replace(" vs ", ";");
    let letters: Vec<char> = text.chars().collect();
    let digit = |at: Option<usize>| at.and_then(|at| letters.get(at)).is_some_and(char::is_ascii_digit);
    let mut found = vec![(Joint::Listed, String::new())];
    for (at, letter) in letters.iter().enumerate() {
        let (before, after) = (digit(at.checked_sub(1)), digit(Some(at + 1)));
        let spaced = letters.get(at + 1) == Some(&' ') && at > 0 && letters[at - 1] == ' ';
        let joint = match letter {
            '*' => Some(Joint::Times),
            '+' => Some(Joint::Plus),
            ';' => Some(Joint::Listed),
            '/' if spaced || (before && after) => Some(Joint::Over),
            ',' if !(before && after) => Some(Joint::Listed),
            _ => None,
        };
        match (joint, found.last_mut()) {
            (Some(joint), _) => found.push((joint, String::new())),
            (None, Some((_, part))) => part.push(*letter),
            (None, None) => {}
        }
    }
    found
}

fn term(joint: Joint, part: &str) -> Option<Term> {
    let part = part.trim();
    let from = part.find(|letter: char| letter.is_ascii_digit())?;
    let head = part[..from].trim();
    let dollars = head.ends_with('$');
    let before = head.trim_end_matches('$').trim_matches(['~', ' ']).to_lowercase();
    let rest = &part[from..];
    let end = rest.find(|letter: char| !(letter.is_ascii_digit() || matches!(letter, '.' | ','))).unwrap_or(rest.len());
    let (mut digits, mut tail) = (rest[..end].replace(',', ""), &rest[end..]);
    // An exponent, as in 1.59e9.
    if let Some(exponent) = tail.strip_prefix('e') {
        let end = exponent.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(exponent.len());
        if end > 0 {
            digits = format!("{digits}e{}", &exponent[..end]);
            tail = &exponent[end..];
        }
    }
    let mut number: f64 = digits.parse().ok()?;
    let letter = tail.chars().next();
    let alone = tail.chars().nth(1).is_none_or(|next| !next.is_alphabetic());
    let scale = letter.filter(|_| alone).and_then(|letter| match letter {
        'k' | 'K' => Some(1e3),
        'M' => Some(1e6),
        'B' => Some(1e9),
        _ => None,
    });
    if let Some(scale) = scale {
        number *= scale;
        tail = &tail[1..];
    }
    let percent = tail.starts_with('%');
    let after = tail.trim_start_matches('%').trim_start_matches('-').trim().to_lowercase();
    Some(Term { joint, number, dollars, percent, before, after })
}

/// Numbers of a cell that has one or more, between slashes; what stands after a number is its unit.
pub(super) fn figures(text: &str) -> Vec<f64> {
    text.split(" / ")
        .filter_map(|part| part.split_whitespace().next()?.replace(',', "").parse().ok())
        .filter(|figure: &f64| figure.is_finite())
        .collect()
}

/// Equal things and what each counts for: how many, and the number.
pub(super) type Counted = Vec<(f64, f64)>;

/// A sum of numbers and of whole multiples of such sums, as `((4*1.4+1.0)+0.9)*18`, taken apart into what is counted; none
/// where it is not of that form.
pub(super) fn counted(text: &str) -> Option<Counted> {
    let letters: Vec<char> = text.chars().filter(|letter| !letter.is_whitespace()).collect();
    let mut at = 0;
    let found = sum(&letters, &mut at)?;
    (at == letters.len()).then_some(found)
}

fn sum(letters: &[char], at: &mut usize) -> Option<Counted> {
    let mut found = product(letters, at)?;
    while letters.get(*at) == Some(&'+') {
        *at += 1;
        found.extend(product(letters, at)?);
    }
    Some(found)
}

fn product(letters: &[char], at: &mut usize) -> Option<Counted> {
    let mut found = factor(letters, at)?;
    while letters.get(*at) == Some(&'*') {
        *at += 1;
        let other = factor(letters, at)?;
        found = match (whole(&found), whole(&other)) {
            (_, Some(times)) => multiplied(found, times),
            (Some(times), None) => multiplied(other, times),
            (None, None) => return None,
        };
    }
    Some(found)
}

fn factor(letters: &[char], at: &mut usize) -> Option<Counted> {
    if letters.get(*at) == Some(&'(') {
        *at += 1;
        let inner = sum(letters, at)?;
        (letters.get(*at) == Some(&')')).then_some(())?;
        *at += 1;
        return Some(inner);
    }
    let from = *at;
    while letters.get(*at).is_some_and(|letter| letter.is_ascii_digit() || *letter == '.') {
        *at += 1;
    }
    let number: f64 = letters[from..*at].iter().collect::<String>().parse().ok()?;
    Some(vec![(1.0, number)])
}

/// A single whole number, which counts.
fn whole(found: &Counted) -> Option<f64> {
    match found[..] {
        [(count, number)] if number.fract() == 0.0 && count.total_cmp(&1.0).is_eq() => Some(number),
        _ => None,
    }
}

fn multiplied(found: Counted, times: f64) -> Counted {
    found.into_iter().map(|(count, number)| (count * times, number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<(Joint, f64, String, String)> {
        terms(text).unwrap().into_iter().map(|term| (term.joint, term.number, term.before, term.after)).collect()
    }

    #[test]
    fn amounts_are_read_with_their_words() {
        let text = |text: &str| text.to_owned();
        assert_eq!(
            said("2,788K H800-h * $2"),
            [(Joint::Listed, 2_788e3, text(""), text("h800-h")), (Joint::Times, 2.0, text(""), text(""))]
        );
        let lines = said("8 switches; ops 3200000; cables 675,840");
        assert_eq!(lines[0], (Joint::Listed, 8.0, text(""), text("switches")));
        assert_eq!(lines[2], (Joint::Listed, 675_840.0, text("cables"), text("")));
        assert!((said("1.59e9 kWh * $0.078")[0].1 - 1.59e9).abs() < 1e-3);
        assert_eq!(said("5.8B / 76,000")[1], (Joint::Over, 76_000.0, text(""), text("")));
        assert_eq!(said("50k capex/GPU, 3-yr payback, opex 20%").len(), 3);
        assert!(terms("50k capex/GPU, 3-yr payback, opex 20%").unwrap()[2].percent);
        assert_eq!(said("$40k GPU, 3 yr vs 6 yr").iter().map(|term| term.1).collect::<Vec<_>>(), [40e3, 3.0, 6.0]);
        assert_eq!(terms("avg KV length"), None);
    }

    #[test]
    fn what_is_multiplied_is_counted() {
        // 18 trays: 72 of 1.4, 18 of 1.0, 18 of 0.9.
        assert_eq!(counted("((4*1.4+1.0)+0.9)*18"), Some(vec![(72.0, 1.4), (18.0, 1.0), (18.0, 0.9)]));
        assert_eq!(counted("1.5*1.5"), None);
        assert_eq!(counted("3*(1"), None);
    }
}
