//! Parses HTTP requests into the three calls of the standard (ETSI GS QKD 014 v1.1.1, clause 5).
//!
//! Parsing has two steps: the path identifies the call and the SAE, which fault injection and
//! counters need; the rest is parsed only if the request gets that far. This module checks neither
//! the caller nor the available keys.

use super::refusal::Refusal;
use crate::types::{Error, KeyIds, KeyRequest};
use axum::http::{Method, StatusCode};

/// A call of the standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// "Get status".
    Status,
    /// "Get key".
    EncKeys,
    /// "Get key with key IDs".
    DecKeys,
}

impl Call {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Status, Self::EncKeys, Self::DecKeys];

    /// The call's name in paths.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::EncKeys => "enc_keys",
            Self::DecKeys => "dec_keys",
        }
    }
}

/// A call and the SAE in its path: the slave, or for "Get key with key IDs" the master.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) call: Call,
    pub(super) sae: String,
}

impl Target {
    /// Parses `/api/v1/keys/{SAE ID}/{call}`; the ID may be percent-encoded. `None` for any other
    /// path.
    pub(super) fn of_path(path: &str) -> Option<Self> {
        let (sae, call) = path.strip_prefix("/api/v1/keys/")?.split_once('/')?;
        let call = Call::ALL.into_iter().find(|known| known.name() == call)?;
        // Decoded after the split: an encoded slash belongs to the ID.
        let sae = percent_decoded(sae)?;
        (!sae.is_empty()).then_some(Self { call, sae })
    }
}

/// A parsed request.
#[derive(Debug, PartialEq)]
pub(super) enum Ask {
    Status,
    NewKeys(KeyRequest),
    /// IDs in the requested order, in lower case: UUIDs compare without case (RFC 9562 §4).
    KeysById(Vec<String>),
}

impl Ask {
    /// Parses method, query and body of a call.
    pub(super) fn read(
        call: Call,
        method: &Method,
        query: Option<&str>,
        body: &[u8],
    ) -> Result<Self, Refusal> {
        let query = query.unwrap_or_default();
        match (call, method) {
            (Call::Status, &Method::GET) => Ok(Self::Status),
            (Call::EncKeys, &Method::GET) => simple_request(query).map(Self::NewKeys),
            // All fields have defaults, and some clients send no body for them.
            (Call::EncKeys, &Method::POST) if body.trim_ascii().is_empty() => {
                Ok(Self::NewKeys(KeyRequest::default()))
            }
            (Call::EncKeys, &Method::POST) => from_json(body, "Key request").map(Self::NewKeys),
            (Call::DecKeys, &Method::GET) => simple_id(query).map(|id| Self::KeysById(vec![id])),
            (Call::DecKeys, &Method::POST) => {
                let ids: KeyIds = from_json(body, "Key IDs")?;
                let ids = ids.key_ids.into_iter();
                Ok(Self::KeysById(
                    // UUIDs compare without case (RFC 9562 §4), and the store has lower case.
                    ids.map(|id| id.key_id.to_ascii_lowercase()).collect(),
                ))
            }
            _ => Err(Refusal::Error(
                StatusCode::METHOD_NOT_ALLOWED,
                Error::new(format!("`{}` is not called by {method}", call.name())),
            )),
        }
    }
}

fn from_json<'b, T: serde::Deserialize<'b>>(body: &'b [u8], what: &str) -> Result<T, Refusal> {
    // Serde would also accept a JSON array of the field values.
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(Refusal::bad_request(format!(
            "the body is not a {what}: it is not a JSON object"
        )));
    }
    serde_json::from_slice(body)
        .map_err(|error| Refusal::bad_request(format!("the body is not a {what}: {error}")))
}

/// `number` and `size` of "Get key" by GET (clause 5.3).
fn simple_request(query: &str) -> Result<KeyRequest, Refusal> {
    let mut request = KeyRequest::default();
    for (name, value) in pairs(query)? {
        let place = match name.as_str() {
            "number" => &mut request.number,
            "size" => &mut request.size,
            _ => {
                let why = "a GET has only `number` and `size`: use POST for other fields";
                return Err(Refusal::bad_request(why));
            }
        };
        let value = value
            .parse()
            .map_err(|_| Refusal::bad_request(format!("`{name}` is not a whole number")))?;
        if place.replace(value).is_some() {
            return Err(Refusal::bad_request(format!("`{name}` is given twice")));
        }
    }
    Ok(request)
}

/// `key_ID` of "Get key with key IDs" by GET (clause 5.4).
fn simple_id(query: &str) -> Result<String, Refusal> {
    match pairs(query)?.as_slice() {
        [(name, id)] if name == "key_ID" => Ok(id.to_ascii_lowercase()),
        _ => Err(Refusal::bad_request(
            "a GET has one `key_ID` and nothing else: use POST for several",
        )),
    }
}

fn pairs(query: &str) -> Result<Vec<(String, String)>, Refusal> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        Some((percent_decoded(name)?, percent_decoded(value)?))
    };
    // A trailing `&` is no mistake.
    let pairs = query.split('&').filter(|text| !text.is_empty());
    pairs
        .map(|text| {
            pair(text).ok_or_else(|| Refusal::bad_request("the query is not a list of pairs"))
        })
        .collect()
}

/// Percent-decodes (RFC 3986 §2.1); `None` if malformed or not UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                // A plus stays a plus: only forms encode a space that way.
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                // Two hexadecimal digits are a byte.
                (digit()? << 4 | digit()?) as u8
            }
            byte => byte,
        });
    }
    // Checked as a whole: a character may be encoded in several bytes.
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "bc490419-7d60-487f-adc1-4ddcc177c139";

    fn message(refusal: Refusal) -> String {
        match refusal {
            Refusal::Error(StatusCode::BAD_REQUEST, error) => error.message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn paths_are_those_of_the_standard() {
        let target = |call, sae: &str| {
            Some(Target {
                call,
                sae: sae.to_owned(),
            })
        };
        let read = Target::of_path;
        assert_eq!(read("/api/v1/keys/gw1/status"), target(Call::Status, "gw1"));
        assert_eq!(
            read("/api/v1/keys/gw1/enc_keys"),
            target(Call::EncKeys, "gw1")
        );
        assert_eq!(
            read("/api/v1/keys/a%2Fb%20%C3%a4/dec_keys"),
            target(Call::DecKeys, "a/b ä")
        );
        for path in [
            "/",
            "/api/v1/keys/gw1",
            "/api/v1/keys//status",
            "/api/v1/keys/gw1/status/",
            "/api/v1/keys/gw1/a/status",
            "/api/v2/keys/gw1/status",
            "/api/v1/keys/gw1/Status",
            "/api/v1/keys/gw%/status",
            "/api/v1/keys/gw%f/status",
            "/api/v1/keys/gw%+1/status",
            "/api/v1/keys/%ff/status",
        ] {
            assert_eq!(read(path), None, "{path}");
        }
    }

    #[test]
    fn a_get_is_read_from_its_query() {
        let read = |query| Ask::read(Call::EncKeys, &Method::GET, query, b"");
        assert_eq!(read(None), Ok(Ask::NewKeys(KeyRequest::default())));
        assert_eq!(
            read(Some("number=3&size=1024")),
            Ok(Ask::NewKeys(KeyRequest::new(3, 1024)))
        );
        for query in [
            "number",
            "number=",
            "number=-1",
            "number=3&number=3",
            "size=1e3",
            "extension_mandatory=x",
            "number=%zz",
        ] {
            message(read(Some(query)).unwrap_err());
        }
        let read = |query| Ask::read(Call::DecKeys, &Method::GET, query, b"");
        let query = format!("key_ID={}", ID.to_uppercase());
        assert_eq!(read(Some(&query)), Ok(Ask::KeysById(vec![ID.to_owned()])));
        for query in ["", "key_IDs=1", "key_ID=1&key_ID=2", "key_ID=1&size=2"] {
            message(read(Some(query)).unwrap_err());
        }
    }

    #[test]
    fn a_post_is_read_from_its_body() {
        let read = |call, body: &str| Ask::read(call, &Method::POST, None, body.as_bytes());
        assert_eq!(
            read(Call::EncKeys, " {\"number\": 2, \"size\": 64}\n"),
            Ok(Ask::NewKeys(KeyRequest::new(2, 64)))
        );
        for empty in ["", " \r\n", "{}"] {
            let asked = read(Call::EncKeys, empty);
            assert_eq!(asked, Ok(Ask::NewKeys(KeyRequest::default())));
        }
        let body = format!(r#"{{"key_IDs":[{{"key_ID":"{ID}"}}]}}"#);
        assert_eq!(
            read(Call::DecKeys, &body),
            Ok(Ask::KeysById(vec![ID.to_owned()]))
        );
        for (call, body) in [
            (Call::EncKeys, "[]"),
            (Call::EncKeys, r#"{"number":"3"}"#),
            (Call::EncKeys, r#"{"number":1.5}"#),
            (Call::EncKeys, r#"{"number":-1}"#),
            (Call::EncKeys, r#"{"extension_mandatory":{"a":1}}"#),
            (Call::EncKeys, r#"{"number":1} x"#),
            (Call::DecKeys, ""),
            (Call::DecKeys, "{}"),
            (Call::DecKeys, r#"{"key_IDs":["x"]}"#),
        ] {
            let message = message(read(call, body).unwrap_err());
            assert!(
                message.starts_with("the body is not a "),
                "{body}: {message}"
            );
        }
    }

    #[test]
    fn other_methods_get_status_405() {
        for (call, method) in [
            (Call::Status, Method::POST),
            (Call::EncKeys, Method::PUT),
            (Call::DecKeys, Method::DELETE),
        ] {
            let refusal = Ask::read(call, &method, None, b"").unwrap_err();
            let expected = StatusCode::METHOD_NOT_ALLOWED;
            assert!(matches!(refusal, Refusal::Error(status, _) if status == expected));
        }
    }
}
