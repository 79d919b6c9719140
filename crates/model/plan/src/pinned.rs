//! A program that was found when a run began.

use serde::{Deserialize, Serialize};

/// A program as it was when a run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedProgram {
    /// Whole path of the file that is started.
    pub path: String,
    /// SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
    /// The version that it prints; empty if it prints none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}

impl PinnedProgram {
    /// The first digits of its SHA-256.
    #[must_use]
    pub fn short(&self) -> &str {
        self.sha256.get(..12).unwrap_or(&self.sha256)
    }

    /// What no run could have found.
    pub(crate) fn mistake(&self) -> Option<String> {
        let is_digest =
            self.sha256.len() == 64 && self.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_whole = is_digest && self.path.starts_with('/');
        (!is_whole).then(|| format!("the program `{}`", self.path.escape_debug()))
    }
}
