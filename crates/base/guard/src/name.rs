//! Names that become paths.

use crate::text::is_hidden;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Maximum length of one component in bytes (`NAME_MAX` of Linux's file systems).
const BYTES_MAX: usize = 255;
/// Maximum length of a relative path in bytes.
const PATH_BYTES_MAX: usize = 1024;

/// The reason why a text is not accepted as a name of a file or folder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not accepted as a file name: {reason}")]
pub struct NameError {
    name: String,
    reason: &'static str,
}

/// A name of a file or folder from outside: joined to a folder, it names an entry of that folder.
///
/// Not empty, at most 255 bytes, and without `/`, NUL and all characters that
/// [`visible`](crate::visible) replaces. Without a leading dot, which excludes `.`, `..` and hidden
/// names such as `.ssh`, and without a leading `-`, which programs take for an option.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Component(String);

impl Component {
    /// Checks a name.
    ///
    /// # Errors
    /// [`NameError`] with the violated rule.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        let name = name.into();
        match fault(&name) {
            None => Ok(Self(name)),
            Some(reason) => Err(NameError { name, reason }),
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the rule that a name violates.
fn fault(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("it is empty")
    } else if name.len() > BYTES_MAX {
        Some("it has more than 255 bytes")
    } else if name.starts_with('.') {
        Some("it begins with a dot")
    } else if name.contains('/') {
        Some("it contains a slash")
    } else if name.starts_with('-') {
        Some("it begins with a hyphen")
    } else if name.contains(is_hidden) {
        Some("it contains a character that is not visible")
    } else {
        None
    }
}

impl TryFrom<String> for Component {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
        Self::new(name)
    }
}

impl From<Component> for String {
    fn from(name: Component) -> Self {
        name.0
    }
}

impl AsRef<Path> for Component {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A path from outside, relative to a folder: [`Component`]s separated by single slashes, at most
/// 1024 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RelativePath(String);

impl RelativePath {
    /// Checks a path.
    ///
    /// # Errors
    /// [`NameError`] with the rule that one of its components violates.
    pub fn new(path: impl Into<String>) -> Result<Self, NameError> {
        let path = path.into();
        let reason = if path.len() > PATH_BYTES_MAX {
            Some("the path has more than 1024 bytes")
        } else {
            // An absolute path begins with an empty component.
            path.split('/').find_map(fault)
        };
        match reason {
            None => Ok(Self(path)),
            Some(reason) => Err(NameError { name: path, reason }),
        }
    }

    /// The path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Joins the path to a folder.
    #[must_use]
    pub fn below(&self, folder: &Path) -> PathBuf {
        folder.join(&self.0)
    }
}

impl TryFrom<String> for RelativePath {
    type Error = NameError;

    fn try_from(path: String) -> Result<Self, NameError> {
        Self::new(path)
    }
}

impl From<RelativePath> for String {
    fn from(path: RelativePath) -> Self {
        path.0
    }
}

impl AsRef<Path> for RelativePath {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a text has `length` characters, all of them `a-z`, `0-9` or `-`, which suits names of
/// files and interfaces.
#[must_use]
pub fn is_identifier(text: &str, length: RangeInclusive<usize>) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    text.chars().all(fits) && length.contains(&text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path;

    #[test]
    fn names_that_leave_their_folder_or_hide_in_it_are_refused() {
        for name in ["run-1", "2026-11-29 T 10", "gw1.yaml", "ä"] {
            assert_eq!(Component::new(name).unwrap().as_str(), name);
        }
        let long = "x".repeat(256);
        for name in [
            "",
            ".",
            "..",
            ".ssh",
            "a/b",
            "/",
            "/etc",
            "a\0b",
            "a\nb",
            "\u{9b}2J",
            &long,
            "--help",
            "r\u{202e}un",
            "run\u{200b}",
            "re\u{2028}un",
            "j\u{2066}ournal",
        ] {
            let error = Component::new(name).unwrap_err().to_string();
            assert!(!error.contains(char::is_control), "{error}");
        }
    }

    #[test]
    fn paths_that_leave_their_folder_are_refused() {
        assert!(RelativePath::new("captures/a.pcapng").is_ok());
        let long = "x/".repeat(600) + "x";
        for path in [
            "",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a//b",
            "a/",
            "./a",
            "a/.git/x",
            &long,
        ] {
            assert!(RelativePath::new(path).is_err(), "{path}");
        }
    }

    proptest! {
        #[test]
        fn accepted_names_are_one_normal_component(name in "\\PC{0,8}|[./a\0\n]{0,6}") {
            if let Ok(accepted) = Component::new(&name) {
                let parts: Vec<_> = Path::new(accepted.as_str()).components().collect();
                prop_assert_eq!(parts, [path::Component::Normal(name.as_ref())]);
            }
        }

        #[test]
        fn accepted_paths_have_normal_components_only(path in "[./ab\0]{0,12}") {
            if let Ok(accepted) = RelativePath::new(path) {
                let normal = |part| matches!(part, path::Component::Normal(_));
                prop_assert!(Path::new(accepted.as_str()).components().all(normal));
            }
        }
    }
}
