//! Errors in quantities.

/// An error in a quantity and how to write it. `Display` prints the error, [`help`](Self::help) the
/// advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// What is wrong, for programs.
    pub kind: ErrorKind,
    what: String,
    help: String,
}

/// What is wrong with a text that should be a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// It does not start with a number.
    NoNumber,
    /// A number alone.
    NoUnit,
    /// A number and something that is not a unit of this quantity.
    UnknownUnit,
    /// Finer than the smallest unit, for example `1.5 B`.
    NotWhole,
    /// More than 64 bits of the smallest unit.
    TooLarge,
}

impl ParseError {
    pub(crate) const fn new(kind: ErrorKind, what: String, help: String) -> Self {
        Self { kind, what, help }
    }

    /// How to write it: a sentence without a full stop.
    #[must_use]
    pub fn help(&self) -> &str {
        &self.help
    }
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for ParseError {}
