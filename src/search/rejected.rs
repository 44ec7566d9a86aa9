//! Ways that are no answer, counted by why.

/// Why ways are no answer: those of one kind, with the figures of the one that comes nearest.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejection {
    /// Why, in words.
    pub why: String,
    /// Figures of the one that comes nearest to working.
    pub nearest: Option<String>,
    /// Ways.
    pub count: u64,
    /// What that one needs over what there is.
    missed_by: f64,
}

impl Rejection {
    /// One without figures.
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), nearest: None, count: 1, missed_by: f64::INFINITY }
    }

    /// One with figures, which needs so many times what there is.
    pub(super) fn with(why: impl Into<String>, nearest: String, missed_by: f64) -> Self {
        Self { nearest: Some(nearest), missed_by, ..Self::new(why) }
    }

    /// All of it in a line.
    pub fn line(&self) -> String {
        self.nearest.as_ref().map_or_else(|| self.why.clone(), |nearest| format!("{}: {nearest}", self.why))
    }
}

/// Rejections of each kind.
#[derive(Debug, Default)]
pub(super) struct Rejected(Vec<Rejection>);

impl From<Rejection> for Rejected {
    fn from(one: Rejection) -> Self {
        Self(vec![one])
    }
}

impl Rejected {
    /// Counts one in.
    pub(super) fn add(&mut self, more: Rejection) {
        let Some(known) = self.0.iter_mut().find(|known| known.why == more.why) else {
            self.0.push(more);
            return;
        };
        let count = known.count + more.count;
        if more.missed_by < known.missed_by {
            *known = more;
        }
        known.count = count;
    }

    /// Counts all of others in.
    pub(super) fn join(&mut self, others: Self) {
        others.0.into_iter().for_each(|other| self.add(other));
    }

    /// The one that comes nearest to working.
    pub(super) fn nearest(&self) -> Option<&Rejection> {
        self.0.iter().min_by(|one, other| one.missed_by.total_cmp(&other.missed_by))
    }

    /// The most frequent first.
    pub(super) fn into_list(mut self) -> Vec<Rejection> {
        self.0.sort_by_key(|rejection| std::cmp::Reverse(rejection.count));
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_one_kind_the_nearest_is_told() {
        let mut rejected = Rejected::default();
        for (why, missed_by) in [("late", 3.0), ("dear", 1.1), ("late", 1.5), ("late", 2.0)] {
            rejected.add(Rejection::with(why, format!("by {missed_by}"), missed_by));
        }
        rejected.join(Rejected::from(Rejection::new("dear")));
        assert_eq!(rejected.nearest().map(Rejection::line), Some("dear: by 1.1".to_owned()));
        let lines: Vec<_> = rejected.into_list().into_iter().map(|one| (one.line(), one.count)).collect();
        assert_eq!(lines, [("late: by 1.5".to_owned(), 3), ("dear: by 1.1".to_owned(), 2)]);
    }
}
