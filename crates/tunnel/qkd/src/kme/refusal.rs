//! Why a KME does not do what it was asked for: status codes and texts (ETSI GS QKD 014 v1.1.1, clauses 5 and 6).
//!
//! Where the standard has a text, this is it, letter by letter; for the rest it has status codes only, and the texts
//! are ours.

use crate::types::Error;
use axum::http::StatusCode;
use serde_json::Value;

/// A refusal.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Refusal {
    /// 401: the caller is none of this KME's SAEs, or the keys are not for it. Without a body (tables 4, 6 and 8).
    Unauthorized,
    /// 400, 503, or what HTTP itself has for calls that the standard does not know.
    Error(StatusCode, Error),
}

impl Refusal {
    /// 400: "Bad request format".
    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::Error(StatusCode::BAD_REQUEST, Error::new(message))
    }

    /// 503: "Error of server side".
    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self::Error(StatusCode::SERVICE_UNAVAILABLE, Error::new(message))
    }

    /// The standard's text for a size that is no whole number of bytes.
    pub(super) fn size_is_no_multiple() -> Self {
        Self::bad_request("size shall be a multiple of 8")
    }

    /// The standard's text for IDs that do not stand for a key, or no longer.
    pub(super) fn keys_not_found() -> Self {
        Self::bad_request("one or more keys specified are not found on KME")
    }

    /// The standard's text for mandatory extensions that this KME does not know, which are named in the details.
    pub(super) fn unsupported(names: &[&str]) -> Self {
        let detail = |name: &&str| {
            let text = format!("{name} is not supported");
            Value::Object(
                [("extension_mandatory_unsupported".to_owned(), text.into())]
                    .into_iter()
                    .collect(),
            )
        };
        Self::Error(
            StatusCode::BAD_REQUEST,
            Error {
                message: "not all extension_mandatory parameters are supported".to_owned(),
                details: Some(names.iter().map(detail).collect()),
            },
        )
    }

    /// The standard's text for mandatory extensions that this KME knows, but not with such a value.
    pub(super) fn unmet() -> Self {
        Self::bad_request("not all extension_mandatory request options could be met")
    }
}
