//! Checks of the evidence, and explanations of failed ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One check of the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CheckInfo")]
pub struct Check {
    /// Short name, for example `no-clear-text`.
    pub name: String,
    /// Whether it passed.
    pub passed: bool,
    /// A sentence with the numbers.
    pub detail: String,
    /// Explanation of a failed check; absent if it passed, and in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
}

/// Explanation of a failed check, for people. The counters are in [`Check::detail`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ExplanationInfo")]
pub struct Explanation {
    /// The difference from the expected value, in a clause, with its size.
    pub difference: String,
    /// Its likely cause.
    pub cause: String,
    /// The recommended action.
    pub advice: String,
}

impl Explanation {
    /// From the three parts, each a clause without a full stop.
    pub fn new(
        difference: impl Into<String>,
        cause: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            difference: difference.into(),
            cause: cause.into(),
            advice: advice.into(),
        }
    }
}

impl Check {
    /// Combines this check with the same check of another part: it passed if both did. The
    /// explanation is the one of the first failure.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            passed: self.passed && other.passed,
            // Also of two that passed: details are evidence.
            detail: format!("{}; {}", self.detail, other.detail),
            // One cause is enough to act on; the details of both are in `detail`.
            explanation: self.explanation.or(other.explanation),
            name: self.name,
        }
    }

    /// Its result: passed without an explanation.
    pub fn new(
        name: impl Into<String>,
        explanation: impl Into<Option<Explanation>>,
        detail: impl Into<String>,
    ) -> Self {
        let explanation = explanation.into();
        Self {
            name: name.into(),
            // No explanation, no failure: a failed check without a reason cannot be made.
            passed: explanation.is_none(),
            detail: detail.into(),
            explanation,
        }
    }
}

/// Shortens a reason of [`super::Outcome::Invalid`] to the name of the failed check that it begins
/// with; returns the whole reason if it has none.
#[must_use]
pub fn in_brief(reason: &str) -> &str {
    let is_name = |name: &str| {
        // Names of checks have a hyphen. A sentence may hold a colon, and its first word must not
        // be taken for one.
        name.contains('-')
            && name
                .bytes()
                .all(|byte| byte == b'-' || byte.is_ascii_lowercase())
    };
    match reason.split_once(": ") {
        Some((name, _)) if is_name(name) => name,
        _ => reason,
    }
}
