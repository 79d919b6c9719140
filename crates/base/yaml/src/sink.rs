//! The mistakes found in a file.

use crate::{MISTAKES_MAX, Mistake, Mistakes};

/// The mistakes found so far.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    kept: Vec<Mistake>,
    not_kept: usize,
}

impl Sink {
    pub(crate) fn put(&mut self, mistake: Mistake) {
        if !self.count_if_full() {
            self.kept.push(mistake);
        }
    }

    /// Counts a mistake without storing it if the list is full; returns whether it was.
    pub(crate) fn count_if_full(&mut self) -> bool {
        let full = self.kept.len() == MISTAKES_MAX;
        self.not_kept += usize::from(full);
        full
    }

    /// Adds to the help of the mistake found last.
    pub(crate) fn amend_help(&mut self, addition: &str) {
        // When the list is full, the last one kept is of another node.
        if let Some(last) = self.kept.last_mut().filter(|_| self.not_kept == 0) {
            last.help
                .push_str(if last.help.is_empty() { "" } else { "; " });
            last.help.push_str(addition);
        }
    }

    pub(crate) fn into_mistakes(self) -> Option<Mistakes> {
        Mistakes::with_more(self.kept, self.not_kept)
    }
}
