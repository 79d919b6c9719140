//! Errors of the KME client, with advice for the user. No message contains any byte of a key.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum number of characters that a message quotes of foreign text.
const QUOTED_CHARS_MAX: usize = 200;

/// Why a [`Kme`](crate::Kme) cannot be created: the configuration or one of its files is invalid.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The URL cannot be used.
    #[error("`{url}` is not the URL of a KME: {what} (as in https://10.9.0.1:8443)")]
    Url {
        /// As given.
        url: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The host has no address.
    #[error(
        "KME host `{host}` has no address: {source} (give the URL with an IP address, or fix name resolution)"
    )]
    NoAddress {
        /// Name.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// An SAE ID that cannot be part of a URL.
    #[error("SAE id {id} cannot be used: {what}")]
    Sae {
        /// Quoted.
        id: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A timeout of zero.
    #[error("a timeout of 0 s for the KME lets no call succeed (a few seconds are enough)")]
    NoTimeout,
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", .path.display())]
    NotRead {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others could have written the file, which decides on trust.
    #[error(transparent)]
    Insecure(#[from] guard::Insecure),
    /// Users other than its owner may use the private key.
    #[error("private key {} has mode {mode:04o}: others than its owner may use it (chmod 600 {})",
        .path.display(), .path.display())]
    TooOpen {
        /// The file.
        path: PathBuf,
        /// Its mode bits.
        mode: u32,
    },
    /// A file has invalid content.
    #[error("{}: {what}", .path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what was expected.
        what: String,
    },
    /// Certificate and private key do not belong together.
    #[error("certificate {} and private key {} cannot be used together: {what}",
        .certificate.display(), .key.display())]
    Pair {
        /// Certificate.
        certificate: PathBuf,
        /// Private key.
        key: PathBuf,
        /// Why.
        what: String,
    },
}

/// Why a call to a KME failed. The whole response is rejected: no part of it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KmeError {
    /// The URL of the call, without the query.
    pub url: String,
    /// What went wrong.
    pub failure: Failure,
}

impl KmeError {
    /// The KME's Retry-After, if it sent one.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self.failure {
            Failure::Unavailable { retry_after, .. } => retry_after,
            _ => None,
        }
    }
}

impl fmt::Display for KmeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KME {}: {}", self.url, self.failure)
    }
}

impl std::error::Error for KmeError {}

/// Why a call to a KME failed. Text from a KME is quoted, escaped and truncated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The request cannot be met by any KME. Nothing was sent.
    #[error("{0}")]
    Request(String),
    /// The peer names a key that this side has already received.
    #[error(
        "key {id} was already delivered here, and no key is used twice (the peer must take another)"
    )]
    Used {
        /// Key id.
        id: String,
    },
    /// No TCP connection could be made.
    #[error("no connection: {cause} (is the KME running, and its address right?)")]
    Unreachable {
        /// By the operating system.
        cause: String,
    },
    /// The TLS handshake failed: one side does not accept the other.
    #[error("TLS fails: {problem} ({advice})")]
    Tls {
        /// What is wrong.
        problem: String,
        /// What to do.
        advice: &'static str,
    },
    /// A step took too long.
    #[error(
        "{doing} took more than {limit:?} (the KME or the path to it is overloaded, or the timeout is too short)"
    )]
    Slow {
        /// The step.
        doing: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// The connection ended too early.
    #[error(
        "the connection ended before the answer was complete: {cause} (see the KME's log; some KMEs close the \
         connection on a certificate that they do not accept)"
    )]
    Broken {
        /// Why.
        cause: String,
    },
    /// Status 400: the KME rejects the request. An unknown key ID has this status too.
    #[error("the KME refuses the request: status 400{detail}")]
    BadRequest {
        /// From the error in its body.
        detail: String,
    },
    /// Status 401.
    #[error(
        "the KME refuses this SAE: status 401{detail} (register the SAE id, its certificate and its \
         peer with the KME)"
    )]
    Unauthorized {
        /// From the error in its body.
        detail: String,
    },
    /// Status 503: the KME has no keys at present, or an internal error.
    #[error("the KME cannot deliver now: status 503{detail}")]
    Unavailable {
        /// From the error in its body.
        detail: String,
        /// When to retry (Retry-After).
        retry_after: Option<Duration>,
    },
    /// Status 405 to each method that the call can use.
    #[error(
        "the KME accepts neither GET nor POST for this call: status 405{detail} (is the path before /api/v1/keys right?)"
    )]
    Method {
        /// From the error in its body.
        detail: String,
    },
    /// Any other status than 200.
    #[error(
        "the KME answers with status {status}{detail}, which ETSI GS QKD 014 does not define (is this a KME, and the path before \
         /api/v1/keys right?)"
    )]
    Status {
        /// The status.
        status: u16,
        /// From the error in its body.
        detail: String,
    },
    /// The KME redirects the client; keys are fetched from the configured URL only.
    #[error(
        "the KME redirects clients to {location} (status {status}; if that is right, configure that URL)"
    )]
    Redirect {
        /// The status.
        status: u16,
        /// The target, quoted.
        location: String,
    },
    /// The response is too long.
    #[error("the answer has more than {limit} bytes (ask for fewer or smaller keys)")]
    TooLong {
        /// Maximum length in bytes.
        limit: usize,
    },
    /// The response cannot be parsed.
    #[error("the answer is not understood: {what}")]
    Garbage {
        /// What is wrong.
        what: String,
    },
    /// The KME knows this SAE by another ID.
    #[error(
        "the KME identifies the certificate as that of SAE {reported}, but the configuration says {own} (the peer could \
         not fetch keys under that name: correct `sae`, or the certificate)"
    )]
    WrongSae {
        /// The ID that the KME reports, quoted.
        reported: String,
        /// The configured ID, quoted.
        own: String,
    },
    /// More or fewer keys than requested.
    #[error("the KME delivers {got} keys where {asked} were requested")]
    Count {
        /// In the request.
        asked: usize,
        /// In the answer.
        got: usize,
    },
    /// A key of the wrong size.
    #[error("key {id} has {bits} bits, not {expected}")]
    Size {
        /// Key id.
        id: String,
        /// In the answer.
        bits: usize,
        /// In the request, or in the answer's first key.
        expected: usize,
    },
    /// A key ID that is not a UUID.
    #[error("{id} is delivered as a key id but is not a UUID")]
    NoUuid {
        /// Quoted.
        id: String,
    },
    /// A key that was not requested.
    #[error("key {id} is delivered but was not requested")]
    Unasked {
        /// Key id.
        id: String,
    },
    /// A key ID that already occurred in this response or an earlier one.
    #[error(
        "key id {id} is delivered twice: its keys are not used (see the KME's log for the cause)"
    )]
    SameId {
        /// Key id.
        id: String,
    },
    /// A key that was delivered before, under any ID.
    #[error(
        "the key of {id} was delivered before: it is not used (see the KME's log for the cause)"
    )]
    SameKey {
        /// Key id.
        id: String,
    },
}

/// The beginning of a body that is not the standard's error object: on one line, without control
/// characters, truncated, and without what may be a key. `None` for an empty one, for one that is
/// no text, and for one that may be a key container.
pub(crate) fn beginning(body: &[u8]) -> Option<String> {
    // Longer than what is shown, since blanks are merged.
    const BYTES_MAX: usize = 4 * QUOTED_CHARS_MAX;
    let part = &body[..body.len().min(BYTES_MAX)];
    let text = match std::str::from_utf8(part) {
        Ok(text) => text,
        // A character may be cut at the end.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&part[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    if body
        .to_ascii_lowercase()
        .windows(4)
        .any(|four| four == b"\"key")
    {
        return None;
    }
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = without_keys(&line);
    let mut shown: String = guard::visible(&line)
        .chars()
        .take(QUOTED_CHARS_MAX)
        .collect();
    if line.chars().count() > QUOTED_CHARS_MAX || part.len() < body.len() {
        shown.push('…');
    }
    (!line.is_empty()).then_some(shown)
}

/// Replaces each word that may be a key in base64 by `[…]`: those that end with padding, those of
/// 12 characters with a digit or a plus sign, and those of 24 characters.
fn without_keys(text: &str) -> String {
    let is_base64 = |character: char| {
        character.is_ascii_alphanumeric() || matches!(character, '+' | '/' | '=' | '_' | '-')
    };
    let may_be_key = |word: &str| {
        let is_mixed = word.contains(|c: char| c.is_ascii_digit() || c == '+');
        word.ends_with('=') || word.len() >= 24 || (word.len() >= 12 && is_mixed)
    };
    let mut rest = text;
    let mut clean = String::new();
    while !rest.is_empty() {
        let begin = rest.find(is_base64).unwrap_or(rest.len());
        let (before, from) = rest.split_at(begin);
        let end = from.find(|c| !is_base64(c)).unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        clean.push_str(before);
        clean.push_str(if may_be_key(word) { "[…]" } else { word });
        rest = after;
    }
    clean
}

/// Quotes foreign text for a message: control characters escaped, truncated.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_escaped_and_truncated() {
        assert_eq!(quoted("a\n\u{1b}[31m\"b"), r#""a\n\u{1b}[31m\"b""#);
        let long = quoted(&"ä".repeat(500));
        assert_eq!(long.chars().count(), QUOTED_CHARS_MAX + 3);
    }

    #[test]
    fn the_beginning_of_a_body_has_no_key() {
        let shown = |body: &str| beginning(body.as_bytes());
        let html = shown("<html>c2VjcmV0IGtleSE=</html>\n<p>Internal Server Error");
        assert_eq!(
            html.as_deref(),
            Some("<html>[…]</html> <p>Internal Server Error")
        );
        assert_eq!(shown("AQI="), Some("[…]".to_owned()));
        assert_eq!(shown(r#"{"Keys": [1]}"#), None);
        assert_eq!(shown(" \n"), None);
        let text = r#"{"detail": "no such SAE: gw2 at kme.example:8443"}"#;
        assert_eq!(shown(text).as_deref(), Some(text));
        let long = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldY";
        assert_eq!(shown(long), Some("[…]".to_owned()));
    }

    #[test]
    fn a_message_says_what_where_and_what_to_do() {
        let error = KmeError {
            url: "https://10.9.0.1:8443/api/v1/keys/gw2/enc_keys".to_owned(),
            failure: Failure::Unauthorized {
                detail: ", without a body".to_owned(),
            },
        };
        assert_eq!(
            error.to_string(),
            "KME https://10.9.0.1:8443/api/v1/keys/gw2/enc_keys: the KME refuses this SAE: status 401, without a body \
             (register the SAE id, its certificate and its peer with the KME)"
        );
    }
}
