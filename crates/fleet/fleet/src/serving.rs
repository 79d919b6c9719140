//! A file that shows a probe that an agent takes jobs in all of its labs.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Interval between writes.
const PERIOD: Duration = Duration::from_secs(10);

/// The file `serving` of an agent's folder. It is rewritten while every lab is on offer or at work,
/// so its age shows whether the agent serves.
pub(crate) struct Serving {
    path: PathBuf,
    labs: usize,
    shown: RefCell<Shown>,
}

#[derive(Default)]
struct Shown {
    labs: BTreeSet<String>,
    last: Option<Instant>,
}

impl Serving {
    pub(crate) fn new(path: PathBuf, labs: usize) -> Self {
        Self {
            path,
            labs,
            shown: RefCell::default(),
        }
    }

    /// Records that a lab is on offer or at work.
    pub(crate) fn note(&self, lab: &str) {
        let mut shown = self.shown.borrow_mut();
        if !shown.labs.contains(lab) {
            shown.labs.insert(lab.to_owned());
        }
        let is_due = shown.last.is_none_or(|last| last.elapsed() >= PERIOD);
        if is_due && shown.labs.len() == self.labs {
            // Each lab must be seen anew, or one that hangs would not show.
            shown.labs.clear();
            shown.last = Some(Instant::now());
            // A full disk is reported by writes that matter.
            let _ = fs::write(
                &self.path,
                "Every lab of this agent is on offer or at work.\n",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shows_only_that_every_lab_is_served() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("serving");
        let serving = Serving::new(path.clone(), 2);
        serving.note("one");
        serving.note("one");
        assert!(!path.exists());
        serving.note("two");
        assert!(path.exists());
    }
}
