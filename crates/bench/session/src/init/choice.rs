//! Answers to choose from.

/// One of several answers.
#[derive(Debug)]
pub struct Choice<T> {
    /// The word that selects it on the command line.
    pub word: &'static str,
    /// Its description.
    pub what: &'static str,
    /// Its meaning.
    pub value: T,
}

impl<T> Choice<T> {
    pub(super) const fn new(word: &'static str, what: &'static str, value: T) -> Self {
        Self { word, what, value }
    }
}
