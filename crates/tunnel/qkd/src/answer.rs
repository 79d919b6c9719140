//! Validation of a KME's responses: a status, keys, or the reason for rejecting the response.
//!
//! Performs no I/O; `channel` supplies the responses.

use crate::error::{Failure, beginning, quoted};
use crate::key::QkdKey;
use crate::types::{Error, KeyContainer, KeyRequest, Status};
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_json::{Map, Value};
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
    pub fn status(mut self) -> Result<Status, Failure> {
        // A status holds no key, so that its values may be copied and quoted.
        if self.status == 200
            && let Ok(Value::Object(fields)) = serde_json::from_slice(&self.body)
            && let Some(what) = wrong_field(&fields)
        {
            // It may still be half a key container: nothing of it is kept.
            self.body.clear();
            return Err(Failure::Garbage {
                what: format!("it is not a status: {what}"),
            });
        }
        self.read("a status")
    }

    /// Whether the KME does not accept the method of the request.
    pub(crate) const fn refuses_method(&self) -> bool {
        self.status == 405
    }

    /// Parses the response to "Get key": the requested number of keys, of the requested size, with
    /// distinct IDs.
    ///
    /// # Errors
    /// The KME's refusal, or the defect of the response.
    pub fn new_keys(self, request: &KeyRequest) -> Result<Vec<QkdKey>, Failure> {
        // The defaults are the standard's: one key, of the KME's usual size (clause 6.2).
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
        // The standard does not fix the order of the keys in the response.
        let mut ordered: Vec<Option<QkdKey>> = ids.iter().map(|_| None).collect();
        for QkdKey { id, key } in keys {
            let place = ids.iter().position(|asked| asked.eq_ignore_ascii_case(&id));
            let Some(place) = place else {
                return Err(Failure::Unasked { id });
            };
            // In the requested spelling: the caller looks for its key under that.
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
        // Also for more keys than requested: the peer would not learn of the others.
        if got != asked {
            return Err(Failure::Count { asked, got });
        }
        let mut ids = HashSet::new();
        let mut expected = bits;
        let mut keys = Vec::with_capacity(got);
        for key in container.keys {
            // Extensions are dropped: none is known here.
            let (id, key) = (key.key_id, key.key.0);
            if !is_uuid(&id) {
                return Err(Failure::NoUuid { id: quoted(&id) });
            }
            // Under one ID both ends might take different keys.
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
        // Otherwise the parser would copy strings with escapes into memory that is not wiped.
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
            // The usual sign of a KME that closed the connection early.
            Category::Eof => format!("its JSON ends too early, after {} bytes", self.body.len()),
            Category::Data => {
                let message = error.to_string();
                // By their beginnings: the rest of a message may be from the input.
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
        // A redirect is never followed: the other address has no certificate that was configured.
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
            405 => Failure::Method { detail },
            503 => Failure::Unavailable {
                detail,
                retry_after: self.retry_after,
            },
            _ => Failure::Status { status, detail },
        }
    }

    /// The suffix for the status in an error text: message and details of the standard's error
    /// object, otherwise the body's length and type and its beginning.
    fn detail(&self) -> String {
        let Ok(error) = serde_json::from_slice::<Error>(&self.body) else {
            let described = self.described();
            return match beginning(&self.body) {
                Some(beginning) => format!(", {described}: {beginning}"),
                None => format!(", {described}"),
            };
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

/// Names the first field of a status that has the wrong type or range: some KMEs write numbers as
/// text.
fn wrong_field(fields: &Map<String, Value>) -> Option<String> {
    const TEXTS: [&str; 4] = [
        "source_KME_ID",
        "target_KME_ID",
        "master_SAE_ID",
        "slave_SAE_ID",
    ];
    const NUMBERS: [(&str, u64); 7] = [
        ("key_size", u32::MAX as u64),
        ("stored_key_count", u64::MAX),
        ("max_key_count", u64::MAX),
        ("max_key_per_request", u64::MAX),
        ("max_key_size", u32::MAX as u64),
        ("min_key_size", u32::MAX as u64),
        ("max_SAE_ID_count", u64::MAX),
    ];
    let texts = TEXTS.iter().filter_map(|&name| {
        // A missing field is left to the parser, which names it.
        let value = fields.get(name).filter(|value| !value.is_string())?;
        Some(format!(
            "`{name}` is {}, where a text is expected",
            shown(value)
        ))
    });
    let numbers = NUMBERS.iter().filter_map(|&(name, most)| {
        let value = fields.get(name)?;
        // `null` is an absent value.
        if value.is_null() && name == "max_key_count" {
            return None;
        }
        match value.as_u64() {
            // Limits of the types here; the standard has none.
            Some(number) if number <= most => None,
            Some(number) => Some(format!("`{name}` is {number}, above {most}")),
            None => Some(format!(
                "`{name}` is {}, where a whole number is expected (a fault of the KME: report it to its maker)",
                shown(value)
            )),
        }
    });
    texts.chain(numbers).next()
}

/// A JSON value for a message, truncated.
fn shown(value: &Value) -> String {
    const CHARS_MAX: usize = 60;
    if let Some(text) = value.as_str() {
        return format!("the text {}", quoted(text));
    }
    let text = value.to_string();
    // By characters: a cut inside of one would not be text.
    let beginning: String = text.chars().take(CHARS_MAX).collect();
    let end = if beginning.len() < text.len() {
        "…"
    } else {
        ""
    };
    format!("{}{end}", guard::visible(&beginning))
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
            // Both bytes, so that an escaped backslash does not begin another escape.
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
mod tests;
