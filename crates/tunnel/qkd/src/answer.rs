//! What a KME has answered, judged: status or keys, or why it is refused. Pure; `channel` brings the answers.

use crate::QkdKey;
use crate::error::{Failure, quoted};
use crate::types::{Error, KeyContainer, KeyRequest, Status};
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use std::collections::HashSet;
use std::time::Duration;
use zeroize::Zeroizing;

/// One answer of HTTP.
pub struct Answer {
    /// Status.
    pub status: u16,
    /// Content-Type.
    pub content_type: Option<String>,
    /// Location, of a redirect.
    pub location: Option<String>,
    /// Retry-After; a date is not understood, and rare.
    pub retry_after: Option<Duration>,
    /// The whole body; wiped when dropped.
    pub body: Zeroizing<Vec<u8>>,
}

impl Answer {
    /// As the answer to "Get status".
    ///
    /// # Errors
    /// What the KME says, or what is wrong with the answer.
    pub fn status(self) -> Result<Status, Failure> {
        self.read("a status")
    }

    /// As the answer to "Get key": as many keys as `request` asks for, of its size, with ids all different.
    ///
    /// # Errors
    /// What the KME says, or what is wrong with the answer.
    pub fn new_keys(self, request: &KeyRequest) -> Result<Vec<QkdKey>, Failure> {
        let size = request.size.map(|bits| bits as usize);
        self.keys(request.number.unwrap_or(1) as usize, size)
    }

    /// As the answer to "Get key with key IDs": the keys with these ids, put in their order. A KME that writes ids in another
    /// case is understood; the keys have the ids as they were asked for.
    ///
    /// # Errors
    /// What the KME says, or what is wrong with the answer.
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
                // The ids asked for differ, and those delivered do too.
                return Err(Failure::SameId {
                    id: ids[place].clone(),
                });
            }
        }
        let keys: Vec<_> = ordered.into_iter().flatten().collect();
        // As many as were asked for, none unasked, none twice.
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
            // Where no size was asked for, the KME has one default: keys of two sizes are a mistake.
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
        // Serde would take a list of the members' values, too.
        if !self.body.trim_ascii_start().starts_with(b"{") {
            return Err(Failure::Garbage {
                what: format!("it is no JSON object, {}", self.described()),
            });
        }
        unescape(&mut self.body);
        serde_json::from_slice(&self.body).map_err(|error| Failure::Garbage {
            what: self.json_problem(&error, expected),
        })
    }

    /// Where the JSON is wrong, and how. The parser's own message may quote what it has read: only the part of it that
    /// cannot is taken.
    fn json_problem(&self, error: &serde_json::Error, expected: &str) -> String {
        let place = format!("line {}, column {}", error.line(), error.column());
        match error.classify() {
            Category::Eof => format!("its JSON ends too early, after {} bytes", self.body.len()),
            Category::Data => {
                let message = error.to_string();
                let reason = ["missing field `", "duplicate field `", "a key is no base64"]
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
                format!("it is no JSON, {} ({place})", self.described())
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
        let said = self.said();
        match status {
            400 => Failure::BadRequest { said },
            401 => Failure::Unauthorized { said },
            503 => Failure::Unavailable {
                said,
                retry_after: self.retry_after,
            },
            _ => Failure::Status { status, said },
        }
    }

    /// What the body of a refusal says, to stand behind the status: the message and the details of the standard's error,
    /// or what is there instead. Other bodies are not quoted: nobody knows what is in them.
    fn said(&self) -> String {
        let Ok(error) = serde_json::from_slice::<Error>(&self.body) else {
            return format!(", {}", self.described());
        };
        let mut said = format!(": {}", quoted(&error.message));
        if let Some(details) = error.details.filter(|details| !details.is_empty()) {
            let details = serde_json::to_string(&details).unwrap_or_default();
            said += ", details ";
            said += &quoted(&details);
        }
        said
    }

    fn described(&self) -> String {
        match (self.body.len(), &self.content_type) {
            (0, _) => "without a body".to_owned(),
            (length, Some(kind)) => format!("with {length} bytes of {}", quoted(kind)),
            (length, None) => format!("with {length} bytes of no content type"),
        }
    }
}

/// Whether it is a UUID as text: 8-4-4-4-12 hexadecimal digits (RFC 9562 §4), of whatever version.
pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Takes back, in place, what JSON need not escape and some encoders do: `\/`, and `\u002b` for `+` and its like, which stand
/// in base64. The parser would collect a string with an escape in a buffer of its own, which nobody wipes.
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
    // What is left over at the end is white space to a parser.
    json[to..].fill(b' ');
}

/// The printable character of ASCII with that code, if JSON lets it stand in a string as it is.
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
    fn takes_what_was_asked_for() {
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
    fn puts_keys_in_the_order_of_the_ids_asked_for() {
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
    fn refuses_other_keys_than_asked_for() {
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
            refused(new(&[(id, "AQI=")], &one), "no UUID");
        }
        let by_id = |keys: &[(&str, &str)], of: &[&str]| container(keys).keys_by_id(&ids(of));
        refused(by_id(&[(ID[1], "AQI=")], &ID[..1]), "not asked for");
        refused(by_id(&[], &ID[..1]), "0 keys where 1");
        refused(
            by_id(&[(ID[0], "AQI="), (ID[0], "AQI=")], &ID[..2]),
            "delivered twice",
        );
    }

    #[test]
    fn tells_what_is_wrong_with_an_answer_without_quoting_it() {
        let one = KeyRequest::default();
        for (body, expected) in [
            ("", "no JSON object, without a body"),
            ("<html>AQI=</html>", "no JSON object, with 17 bytes of"),
            ("{AQI=}", "no JSON, "),
            (r#"{"keys":[{"key_ID":"#, "ends too early"),
            ("[]", "no JSON object"),
            ("[[],null]", "no JSON object"),
            ("null", "no JSON object"),
            (r#""AQI=""#, "no JSON object"),
            (r#"{"keys":"AQI="}"#, "wrong type"),
            (r#"{"keys":[{"key":"AQI="}]}"#, "missing field `key_ID`"),
            (r#"{"key":"AQI="}"#, "missing field `keys`"),
            (r#"{"keys":[{"key_ID":"x","key":["AQI="]}]}"#, "wrong type"),
            (
                r#"{"keys":[{"key_ID":"x","key":"AQI=-"}]}"#,
                "a key is no base64",
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
    fn tells_refusals_of_the_standard_and_others() {
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
            (500, "", "does not know"),
            (204, "", "status 204"),
            (302, "", "sends clients on to nowhere (status 302"),
        ] {
            refused(answer(status, body).new_keys(&one), expected);
        }
        let mut redirect = answer(307, "");
        redirect.location = Some("https://other.example/".to_owned());
        refused(redirect.status(), "\"https://other.example/\"");
    }

    #[test]
    fn takes_back_needless_escapes_only() {
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
    fn knows_a_uuid() {
        assert!(is_uuid(ID[0]) && is_uuid(&ID[0].to_uppercase()));
        assert!(!is_uuid("bc490419-7d60-487f-adc1-4ddcc177c13g"));
        assert!(!is_uuid("bc490419x7d60x487fxadc1x4ddcc177c139"));
        assert!(!is_uuid("{c490419-7d60-487f-adc1-4ddcc177c139"));
    }
}
