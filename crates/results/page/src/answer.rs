//! The answer to a request: refused or not, with headers that confine the page in the browser.

use super::refuse::refusal;
use axum::extract::Request;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use std::sync::LazyLock;

/// The browser refuses everything that does not come from this server.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";
/// The policy of a report, which contains its style and script.
static REPORT_POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let policy = format!(
        "{}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        report::PAGE_POLICY
    );
    // Both parts are constants of printable ASCII.
    HeaderValue::from_str(&policy).unwrap_or_else(|error| unreachable!("{policy}: {error}"))
});
/// Headers of every answer; a report has another policy.
const HEADERS: [(HeaderName, &str); 7] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    // A stored page would show the state of another time.
    (CACHE_CONTROL, "no-store"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // For browsers that do not know `frame-ancestors`.
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// Answers a request that is not refused, with the headers of every answer; `names` are host
/// names that browsers may use.
pub async fn answer(names: &[String], request: Request, next: Next) -> Response {
    let refused = refusal(names, request.method(), request.uri(), request.headers());
    let mut response = match refused {
        Some(refused) => refused.into_response(),
        None => next.run(request).await,
    };
    // Refusals have these headers too, as a browser shows them like any page.
    for (name, value) in HEADERS {
        let headers = response.headers_mut();
        headers
            // A report has already set its policy, which must stay.
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Answers with a file of the site.
#[must_use]
pub fn file(kind: &'static str, text: String) -> impl IntoResponse {
    ([(CONTENT_TYPE, kind)], text)
}

/// Answers with a run's report.
#[must_use]
pub fn report(html: String) -> Response {
    (
        [(CONTENT_SECURITY_POLICY, REPORT_POLICY.clone())],
        Html(html),
    )
        .into_response()
}
