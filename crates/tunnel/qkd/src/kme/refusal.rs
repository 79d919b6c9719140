//! Error responses of a KME: status codes and texts (ETSI GS QKD 014 v1.1.1, clauses 5 and 6).
//!
//! Texts of the standard are used verbatim; where it defines a status code only, the text is ours.

use crate::types::Error;
use axum::http::StatusCode;
use serde_json::Value;

/// An error response.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Refusal {
    /// 401: the caller is not one of this KME's SAEs, or the keys are not for it. Without a body
    /// (tables 4, 6 and 8).
    Unauthorized,
    /// 400, 503, or an HTTP status for calls that the standard does not define.
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

    /// The standard's text for a size that is not a whole number of bytes.
    pub(super) fn size_is_no_multiple() -> Self {
        Self::bad_request("size shall be a multiple of 8")
    }

    /// The standard's text for IDs without a key, or whose key is no longer available.
    pub(super) fn keys_not_found() -> Self {
        Self::bad_request("one or more keys specified are not found on KME")
    }

    /// The standard's text for unknown mandatory extensions, which the details name.
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

    /// The standard's text for known mandatory extensions with an unsupported value.
    pub(super) fn unmet() -> Self {
        Self::bad_request("not all extension_mandatory request options could be met")
    }
}
