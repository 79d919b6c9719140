//! The person who started a run.

/// Texts for the person who started a run, which end in a newline.
#[derive(Debug, Clone, Copy)]
pub struct Reporter {
    /// Whether progress and notices are left out; warnings are not.
    pub is_quiet: bool,
    /// Writes a text.
    pub write: fn(&str),
}

impl Reporter {
    /// Reports a text unless it is quiet.
    pub(crate) fn notice(self, text: &str) {
        if !self.is_quiet {
            (self.write)(text);
        }
    }

    /// Reports a text in any case.
    pub(crate) fn warn(self, text: &str) {
        (self.write)(text);
    }
}
