//! What is kept, by a number that says what it depends on: nothing is hashed, and memory does not grow.

/// A table of fixed size; what comes to the same place replaces what was there.
#[derive(Debug)]
pub(super) struct Slots<T>(Vec<Option<(u128, T)>>);

impl<T> Slots<T> {
    pub(super) fn new(size: usize) -> Self {
        Self((0..size).map(|_| None).collect())
    }

    /// What is kept under a number, made where it is not.
    pub(super) fn get_or(&mut self, key: u128, make: impl FnOnce() -> T) -> &mut T {
        #[allow(clippy::cast_possible_truncation, reason = "less than the size")]
        let place = (key % self.0.len() as u128) as usize;
        let slot = &mut self.0[place];
        match slot {
            Some((known, _)) if *known == key => {}
            _ => *slot = None,
        }
        &mut slot.get_or_insert_with(|| (key, make())).1
    }
}
