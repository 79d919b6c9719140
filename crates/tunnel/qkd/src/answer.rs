//! Validation of a KME's responses: a status, keys, or the reason for rejecting the response.
//!
//! Performs no I/O; `channel` supplies the responses.

use crate::error::{Failure, quoted};
use crate::key::QkdKey;
use crate::types::{Error, KeyContainer, KeyRequest, Status};
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use std::collections::HashSet;
use std::time::Duration;
use zeroize::Zeroizing;

/// An HTTP response.
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Content-Type.
    pub content_type: Option<String>,
    /// Location of a redirect.
    pub location: Option<String>,
    /// Retry-After in seconds; `None` for the rare HTTP date, which is not parsed.
    pub retry_after: Option<Duration>,
    /// The complete body; wiped when dropped.
    pub body: Zeroizing<Vec<u8>>,
}

impl Answer {
    /// Parses the response to "Get status".
    ///
    /// # Errors
    /// The KME's refusal, or the defect of the response.
    pub fn status(self) -> Result<Status, Failure> {
        self.read("a status")
    }

    /// Parses the response to "Get key": the requested number of keys, of the requested size, with
    /// distinct IDs.
    ///
    /// # Errors
    /// The KME's refusal, or the defect of the response.
    pub fn new_keys(self, request: &KeyRequest) -> Result<Vec<QkdKey>, Failure> {
        let size = request.size.map(|bits| bits as usize);
        self.keys(request.number.unwrap_or(1) as usize, size)
    }

    /// Parses the response to "Get key with key IDs": the keys with these IDs, in the order of
    /// `ids`. IDs compare without case; the returned keys carry them as they were requested.
    ///
    /// # Errors
    /// The KME's refusal, or the defect of the response.
    pub fn keys_by_id(self, ids: &[String]) -> Result<Vec<QkdKey>, Failure> {
        let keys = self.keys(ids.len(), None)?;
        let mut ordered: Vec<Option<QkdKey>> = ids.iter().map(|_| None).collect();
        for QkdKey { id, key } in keys {
            let place = ids.iter().position(|asked| asked.eq_ignore_ascii_case(&id));
            let Some(place) = place else {
                return Err(Failure::Unasked { id });
            };
            let id = ids[place].clone();
            if ordered[place].replace(QkdKey { id, key }).is_some() {
                // Not reached for distinct `ids`: `keys` has rejected repeated ones.
                return Err(Failure::SameId {
                    id: ids[place].clone(),
                });
            }
        }
        let keys: Vec<_> = ordered.into_iter().flatten().collect();
        // `keys` checked the count, and the loop rejected unrequested and repeated IDs.
        assert_eq!(keys.len(), ids.len());
        Ok(keys)
    }

    fn keys(self, asked: usize, bits: Option<usize>) -> Result<Vec<QkdKey>, Failure> {
        let container: KeyContainer = self.read("a key container")?;
        let got = container.keys.len();
        if got != asked {
            return Err(Failure::Count { asked, got });
        }
        let mut ids = HashSet::new();
        let mut expected = bits;
        let mut keys = Vec::with_capacity(got);
        for key in container.keys {
            let (id, key) = (key.key_id, key.key.0);
            if !is_uuid(&id) {
                return Err(Failure::NoUuid { id: quoted(&id) });
            }
            if !ids.insert(id.to_ascii_lowercase()) {
                return Err(Failure::SameId { id });
            }
            let bits = key.len() * 8;
            if bits == 0 {
                return Err(Failure::Garbage {
                    what: format!("key {id} is empty"),
                });
            }
            // Without a requested size the KME uses one default size: mixed sizes are an error.
            let expected = *expected.get_or_insert(bits);
            if bits != expected {
                return Err(Failure::Size { id, bits, expected });
            }
            keys.push(QkdKey { id, key });
        }
        Ok(keys)
    }

    fn read<T: DeserializeOwned>(mut self, expected: &str) -> Result<T, Failure> {
        if self.status != 200 {
            return Err(self.refusal());
        }
        // Serde would also accept a JSON array of the field values.
        if !self.body.trim_ascii_start().starts_with(b"{") {
            return Err(Failure::Garbage {
                what: format!("it is not a JSON object, {}", self.described()),
            });
        }
        unescape(&mut self.body);
        serde_json::from_slice(&self.body).map_err(|error| Failure::Garbage {
            what: self.json_problem(&error, expected),
        })
    }

    /// Describes a JSON error and its position. The parser's message may quote its input, which may
    /// contain a key, so only the known messages that cannot are used.
    fn json_problem(&self, error: &serde_json::Error, expected: &str) -> String {
        let place = format!("line {}, column {}", error.line(), error.column());
        match error.classify() {
            Category::Eof => format!("its JSON ends too early, after {} bytes", self.body.len()),
            Category::Data => {
                let message = error.to_string();
                let reason = [
                    "missing field `",
                    "duplicate field `",
                    "a key is not base64",
                ]
                .into_iter()
                .find(|known| message.starts_with(known))
                .map(|_| message.split(" at line").next().unwrap_or_default());
                match reason {
                    Some(reason) => format!("it is not {expected}: {reason} ({place})"),
                    None => {
                        format!(
                            "it is not {expected}: a value has the wrong type or range ({place})"
                        )
                    }
                }
            }
            Category::Syntax | Category::Io => {
                format!("it is not JSON, {} ({place})", self.described())
            }
        }
    }

    fn refusal(self) -> Failure {
        let status = self.status;
        if matches!(status, 300..=399) {
            let location = self.location.as_deref();
            return Failure::Redirect {
                status,
                location: location.map_or("nowhere".to_owned(), quoted),
            };
        }
        let detail = self.detail();
        match status {
            400 => Failure::BadRequest { detail },
            401 => Failure::Unauthorized { detail },
            503 => Failure::Unavailable {
                detail,
                retry_after: self.retry_after,
            },
            _ => Failure::Status { status, detail },
        }
    }

    /// The suffix for the status in an error text: message and details of the standard's error
    /// object, otherwise the body's length and type. Other bodies are not quoted, since their
    /// content is unknown.
    fn detail(&self) -> String {
        let Ok(error) = serde_json::from_slice::<Error>(&self.body) else {
            return format!(", {}", self.described());
        };
        let mut detail = format!(": {}", quoted(&error.message));
        if let Some(details) = error.details.filter(|details| !details.is_empty()) {
            let details = serde_json::to_string(&details).unwrap_or_default();
            detail += ", details ";
            detail += &quoted(&details);
        }
        detail
    }

    fn described(&self) -> String {
        match (self.body.len(), &self.content_type) {
            (0, _) => "without a body".to_owned(),
            (length, Some(kind)) => format!("with {length} bytes of {}", quoted(kind)),
            (length, None) => format!("with {length} bytes of no content type"),
        }
    }
}

/// Whether the text is a UUID of any version: 8-4-4-4-12 hexadecimal digits (RFC 9562 §4).
pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Decodes needless JSON escapes in place: `\/`, and `\u002b` for `+` and other characters of
/// base64.
///
/// The parser would copy a string with an escape into a buffer of its own, which is never wiped.
fn unescape(json: &mut [u8]) {
    let (mut from, mut to) = (0, 0);
    while from < json.len() {
        let (byte, length) = match json[from..] {
            [b'\\', b'/', ..] => (Some(b'/'), 2),
            [b'\\', b'u', b'0', b'0', high, low, ..] => match plain(high, low) {
                Some(byte) => (Some(byte), 6),
                None => (None, 2),
            },
            [b'\\', _, ..] => (None, 2),
            _ => (None, 1),
        };
        match byte {
            Some(byte) => {
                json[to] = byte;
                to += 1;
            }
            None => {
                json.copy_within(from..from + length, to);
                to += length;
            }
        }
        from += length;
    }
    // A parser ignores trailing white space.
    json[to..].fill(b' ');
}

/// The printable ASCII character with this code, if JSON allows it unescaped in a string.
fn plain(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = u8::try_from(digit(high)? * 16 + digit(low)?).ok()?;
    matches!(byte, b' '..=b'~' if byte != b'"' && byte != b'\\').then_some(byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const ID: [&str; 3] = [
        "bc490419-7d60-487f-adc1-4ddcc177c139",
        "0a782fb5-3434-48fe-aa4d-14f41d46cf92",
        "64a7e9a2-269c-4b2c-832c-5351f3ac5adb",
    ];

    fn answer(status: u16, body: &str) -> Answer {
        Answer {
            status,
            content_type: Some("application/json".to_owned()),
            location: None,
            retry_after: None,
            body: Zeroizing::new(body.as_bytes().to_vec()),
        }
    }

    /// A container with keys of two bytes.
    fn container(keys: &[(&str, &str)]) -> Answer {
        let keys: Vec<_> = keys
            .iter()
            .map(|(id, key)| format!(r#"{{"key_ID":"{id}","key":"{key}"}}"#))
            .collect();
        answer(200, &format!(r#"{{"keys":[{}]}}"#, keys.join(",")))
    }

    fn ids(of: &[&str]) -> Vec<String> {
        of.iter().map(|&id| id.to_owned()).collect()
    }

    #[track_caller]
    fn refused<T: std::fmt::Debug>(result: Result<T, Failure>, expected: &str) {
        let message = result.expect_err(expected).to_string();
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains("AQI"), "a key: {message}");
    }

    #[test]
    fn accepts_the_requested_keys() {
        let request = KeyRequest::new(2, 16);
        let keys = container(&[(ID[0], "AQI="), (ID[1], "AwQ=")])
            .new_keys(&request)
            .unwrap();
        assert_eq!(
            (keys[0].id.as_str(), &keys[0].key[..]),
            (ID[0], &[1, 2][..])
        );
        assert_eq!(
            (keys[1].id.as_str(), &keys[1].key[..]),
            (ID[1], &[3, 4][..])
        );
        let one = container(&[(ID[0], "AQI=")]);
        assert_eq!(one.new_keys(&KeyRequest::default()).unwrap().len(), 1);
    }

    #[test]
    fn returns_keys_in_the_order_of_the_requested_ids() {
        let upper = ID[2].to_uppercase();
        let answer = container(&[(ID[1], "AwQ="), (&upper, "BQY="), (ID[0], "AQI=")]);
        let keys = answer.keys_by_id(&ids(&ID)).unwrap();
        let got: Vec<_> = keys
            .iter()
            .map(|key| (key.id.as_str(), key.key[0]))
            .collect();
        assert_eq!(got, [(ID[0], 1), (ID[1], 3), (ID[2], 5)]);
    }

    #[test]
    fn rejects_keys_that_do_not_match_the_request() {
        let two = KeyRequest::new(2, 16);
        let one = KeyRequest::new(1, 16);
        let new = |keys: &[(&str, &str)], request: &KeyRequest| container(keys).new_keys(request);
        refused(new(&[(ID[0], "AQI=")], &two), "1 keys where 2");
        refused(new(&[], &one), "0 keys where 1");
        refused(
            new(&[(ID[0], "AQI="), (ID[1], "AwQ=")], &one),
            "2 keys where 1",
        );
        refused(new(&[(ID[0], "AQID")], &one), "has 24 bits, not 16");
        refused(
            new(&[(ID[0], "AQI="), (ID[1], "AQID")], &two),
            "has 24 bits, not 16",
        );
        let unsized_two = KeyRequest {
            number: Some(2),
            ..KeyRequest::default()
        };
        refused(
            new(&[(ID[0], "AQI="), (ID[1], "AQID")], &unsized_two),
            "has 24 bits, not 16",
        );
        refused(new(&[(ID[0], "")], &KeyRequest::default()), "is empty");
        refused(
            new(&[(ID[0], "AQI="), (ID[0], "AwQ=")], &two),
            "delivered twice",
        );
        let upper = ID[0].to_uppercase();
        refused(
            new(&[(ID[0], "AQI="), (&upper, "AwQ=")], &two),
            "delivered twice",
        );
        for id in [
            "",
            "x",
            &ID[0][1..],
            &format!("{}0", ID[0]),
            &ID[0].replace('-', "_"),
        ] {
            refused(new(&[(id, "AQI=")], &one), "not a UUID");
        }
        let by_id = |keys: &[(&str, &str)], of: &[&str]| container(keys).keys_by_id(&ids(of));
        refused(by_id(&[(ID[1], "AQI=")], &ID[..1]), "was not requested");
        refused(by_id(&[], &ID[..1]), "0 keys where 1");
        refused(
            by_id(&[(ID[0], "AQI="), (ID[0], "AQI=")], &ID[..2]),
            "delivered twice",
        );
    }

    #[test]
    fn describes_a_malformed_response_without_quoting_it() {
        let one = KeyRequest::default();
        for (body, expected) in [
            ("", "not a JSON object, without a body"),
            ("<html>AQI=</html>", "not a JSON object, with 17 bytes of"),
            ("{AQI=}", "not JSON, "),
            (r#"{"keys":[{"key_ID":"#, "ends too early"),
            ("[]", "not a JSON object"),
            ("[[],null]", "not a JSON object"),
            ("null", "not a JSON object"),
            (r#""AQI=""#, "not a JSON object"),
            (r#"{"keys":"AQI="}"#, "wrong type"),
            (r#"{"keys":[{"key":"AQI="}]}"#, "missing field `key_ID`"),
            (r#"{"key":"AQI="}"#, "missing field `keys`"),
            (r#"{"keys":[{"key_ID":"x","key":["AQI="]}]}"#, "wrong type"),
            (
                r#"{"keys":[{"key_ID":"x","key":"AQI=-"}]}"#,
                "a key is not base64",
            ),
            (r#"{"keys":[],"keys":["AQI="]}"#, "duplicate field `keys`"),
            (r#"{"message":"AQI="}"#, "missing field `keys`"),
        ] {
            refused(answer(200, body).new_keys(&one), expected);
        }
        refused(answer(200, "{}").status(), "missing field `source_KME_ID`");
        let deep = format!(r#"{{"keys":{}"#, "[".repeat(100_000));
        assert!(answer(200, &deep).new_keys(&one).is_err());
    }

    #[test]
    fn describes_refusals_of_the_standard_and_others() {
        let one = KeyRequest::default();
        let with_details = r#"{"message":"not all extension_mandatory parameters supported",
            "details":[{"extension_mandatory_unsupported":"abc_route_type"}]}"#;
        for (status, body, expected) in [
            (
                400,
                r#"{"message":"size shall be a multiple of 8"}"#,
                "status 400: \"size shall",
            ),
            (400, with_details, "abc_route_type"),
            (400, "", "status 400, without a body"),
            (400, r#"{"error":"AQI="}"#, "status 400, with 16 bytes of"),
            (400, "<html>AQI=", "status 400, with 10 bytes of"),
            (401, "", "register the SAE id"),
            (
                401,
                r#"{"message":"no\u001b[31m"}"#,
                r#"status 401: "no\u{1b}[31m""#,
            ),
            (
                503,
                r#"{"message":"no keys"}"#,
                "cannot deliver now: status 503: \"no keys\"",
            ),
            (404, "<html>", "status 404, with 6 bytes of"),
            (500, "", "does not define"),
            (204, "", "status 204"),
            (302, "", "redirects clients to nowhere (status 302"),
        ] {
            refused(answer(status, body).new_keys(&one), expected);
        }
        let mut redirect = answer(307, "");
        redirect.location = Some("https://other.example/".to_owned());
        refused(redirect.status(), "\"https://other.example/\"");
    }

    #[test]
    fn decodes_needless_escapes_only() {
        for text in [
            r#"{"a":"b\/c\u002b\u002F\u003d"}"#,
            r#""\\/\\u002b\u0022\u005c\n\ud83d\ude00""#,
            r#""\u00e4\u0000""#,
            r#"["\/\/","\u0041"]"#,
        ] {
            let mut plain = text.as_bytes().to_vec();
            unescape(&mut plain);
            let before: Value = serde_json::from_str(text).unwrap();
            let after: Value = serde_json::from_slice(&plain).unwrap();
            assert_eq!(before, after, "{text}");
        }
        let mut key = br#""AQ\/\u002B\u003D""#.to_vec();
        unescape(&mut key);
        assert_eq!(key.trim_ascii_end(), br#""AQ/+=""#);
        for cut in [r#"\"#, r"\u", r"\u002", r"\u00zz", r"a\"] {
            let mut bytes = cut.as_bytes().to_vec();
            unescape(&mut bytes);
            assert_eq!(bytes, cut.as_bytes());
        }
    }

    #[test]
    fn recognizes_a_uuid() {
        assert!(is_uuid(ID[0]) && is_uuid(&ID[0].to_uppercase()));
        assert!(!is_uuid("bc490419-7d60-487f-adc1-4ddcc177c13g"));
        assert!(!is_uuid("bc490419x7d60x487fxadc1x4ddcc177c139"));
        assert!(!is_uuid("{c490419-7d60-487f-adc1-4ddcc177c139"));
    }
}
