//! JSON bodies of requests and responses, with the field names of ETSI GS QKD 014 v1.1.1 clause 6.
//!
//! Unknown fields are ignored when read: a KME may implement a newer version. No `Debug` shows a
//! key.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;
use zeroize::Zeroizing;

/// An object of name and value pairs that vendors agree upon.
pub type Extension = Map<String, Value>;

/// The answer to "Get status" (clause 6.1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The KME that responds.
    #[serde(rename = "source_KME_ID")]
    pub source_kme_id: String,
    /// The KME of the slave SAE.
    #[serde(rename = "target_KME_ID")]
    pub target_kme_id: String,
    /// The calling SAE.
    #[serde(rename = "master_SAE_ID")]
    pub master_sae_id: String,
    /// The SAE named in the call.
    #[serde(rename = "slave_SAE_ID")]
    pub slave_sae_id: String,
    /// Default size of a key in bits.
    pub key_size: u32,
    /// Number of keys that the KME has stored.
    pub stored_key_count: u64,
    /// Maximum number of stored keys. The standard requires it, and some KMEs leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_key_count: Option<u64>,
    /// Maximum number of keys per request.
    pub max_key_per_request: u64,
    /// Maximum size of a key in bits.
    pub max_key_size: u32,
    /// Minimum size of a key in bits.
    pub min_key_size: u32,
    /// Maximum number of additional slave SAEs per request.
    #[serde(rename = "max_SAE_ID_count")]
    pub max_sae_id_count: u64,
    /// For future use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_extension: Option<Value>,
}

/// The request of "Get key" (clause 6.2). The default requests one key of the KME's default size.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyRequest {
    /// Number of keys; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// Size of each key in bits, a multiple of 8; [`Status::key_size`] if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// Additional SAEs that may fetch the same keys.
    #[serde(
        rename = "additional_slave_SAE_IDs",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    pub additional_slave_sae_ids: Vec<String>,
    /// Extensions that the KME must meet, or reject the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extension_mandatory: Vec<Extension>,
    /// Extensions that the KME may ignore.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extension_optional: Vec<Extension>,
}

impl KeyRequest {
    /// A request for `number` keys of `size` bits each.
    #[must_use]
    pub fn new(number: u32, size: u32) -> Self {
        Self {
            number: Some(number),
            size: Some(size),
            ..Self::default()
        }
    }

    /// Whether a URL query can express the request: "Get key" by GET has number and size only
    /// (clause 5.3).
    #[must_use]
    pub fn is_simple(&self) -> bool {
        self.additional_slave_sae_ids.is_empty()
            && self.extension_mandatory.is_empty()
            && self.extension_optional.is_empty()
    }
}

/// The response to "Get key" and "Get key with key IDs" (clause 6.3).
#[derive(Debug, Serialize, Deserialize)]
pub struct KeyContainer {
    /// The keys.
    pub keys: Vec<Key>,
    /// For future use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_container_extension: Option<Value>,
}

/// One key of a [`KeyContainer`].
#[derive(Serialize, Deserialize)]
pub struct Key {
    /// The UUID by which the other SAE gets the same key.
    #[serde(rename = "key_ID")]
    pub key_id: String,
    /// For future use.
    #[serde(
        rename = "key_ID_extension",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub key_id_extension: Option<Value>,
    /// The key itself.
    pub key: KeyBytes,
    /// For future use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_extension: Option<Value>,
}

/// Omits extensions too: a vendor's content may be as secret as the key.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("key_id", &self.key_id)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// The request of "Get key with key IDs" (clause 6.4).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyIds {
    /// The IDs, in any order.
    #[serde(rename = "key_IDs")]
    pub key_ids: Vec<KeyId>,
    /// For future use.
    #[serde(
        rename = "key_IDs_extension",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub key_ids_extension: Option<Value>,
}

/// One ID of [`KeyIds`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeyId {
    /// UUID.
    #[serde(rename = "key_ID")]
    pub key_id: String,
    /// For future use.
    #[serde(
        rename = "key_ID_extension",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub key_id_extension: Option<Value>,
}

/// The body of a response with status 400, 401 or 503 (clause 6.5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Error {
    /// What is wrong.
    pub message: String,
    /// Details; in the standard, a list of objects with one string each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Vec<Value>>,
}

impl Error {
    /// An error without details.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            details: None,
        }
    }
}

/// The bytes of a key: base64 in JSON (RFC 4648 §4). Wiped when dropped, and never shown.
pub struct KeyBytes(pub Zeroizing<Vec<u8>>);

/// Accepts missing padding: some KMEs omit it, and it carries no information.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    // The alphabet of the standard (RFC 4648 §4), not the one for URLs.
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl Serialize for KeyBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Allocated at full length: growing would leave a copy in freed memory.
        let length = base64::encoded_len(self.0.len(), true).expect("a key is not half the memory");
        let mut text = Zeroizing::new(String::with_capacity(length));
        BASE64.encode_string(&*self.0, &mut text);
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for KeyBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyBytesVisitor)
    }
}

struct KeyBytesVisitor;

impl Visitor<'_> for KeyBytesVisitor {
    type Value = KeyBytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key in base64")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<KeyBytes, E> {
        let mut key = Zeroizing::new(vec![0; base64::decoded_len_estimate(text.len())]);
        // The decoder's error names the invalid character, which is part of the key.
        let length = BASE64
            .decode_slice(text, &mut key)
            .map_err(|_| E::custom("a key is not base64"))?;
        // The estimate may be longer than the result.
        key.truncate(length);
        Ok(KeyBytes(key))
    }
}

impl fmt::Debug for KeyBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The length only: it is agreed in clear anyway.
        write!(f, "({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the standard's annex, with an extension added.
    #[test]
    fn reads_and_writes_the_names_of_the_standard() {
        let text = r#"{"source_KME_ID":"AAAABBBBCCCCDDDD","target_KME_ID":"EEEEFFFFGGGGHHHH",
            "master_SAE_ID":"IIIIJJJJKKKKLLLL","slave_SAE_ID":"MMMMNNNNOOOOPPPP","key_size":352,
            "stored_key_count":25000,"max_key_count":100000,"max_key_per_request":128,
            "max_key_size":1024,"min_key_size":64,"max_SAE_ID_count":0}"#;
        round_trip::<Status>(text);
        round_trip::<KeyRequest>(r#"{"number":3,"size":1024}"#);
        round_trip::<KeyRequest>("{}");
        round_trip::<KeyRequest>(
            r#"{"number":20,"size":512,"additional_slave_SAE_IDs":["ABCDEFG"],
                "extension_mandatory":[{"abc_route_type":"direct"}],
                "extension_optional":[{"abc_max_age":30000}]}"#,
        );
        round_trip::<KeyIds>(
            r#"{"key_IDs":[{"key_ID":"bc490419-7d60-487f-adc1-4ddcc177c139"},
                {"key_ID":"0a782fb5-3434-48fe-aa4d-14f41d46cf92","key_ID_extension":{"a":1}}],
                "key_IDs_extension":{"b":[2]}}"#,
        );
        round_trip::<KeyContainer>(
            r#"{"keys":[{"key_ID":"bc490419-7d60-487f-adc1-4ddcc177c139",
                "key":"wHHVxRwDJs3/bXd38GHP3oe4svTuRpZS0yCC7x4Ly+s=","key_extension":{"c":null}}],
                "key_container_extension":{"d":true}}"#,
        );
        round_trip::<Error>(
            r#"{"message":"not all extension_mandatory parameters are supported",
                "details":[{"extension_mandatory_unsupported":"abc_route_type"}]}"#,
        );
        round_trip::<Error>(r#"{"message":"size shall be a multiple of 8"}"#);
    }

    fn round_trip<T: Serialize + for<'de> Deserialize<'de>>(text: &str) {
        let value: T = serde_json::from_str(text).unwrap();
        let given: Value = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_value(&value).unwrap(), given);
    }

    #[test]
    fn ignores_unknown_fields() {
        let error: Error = serde_json::from_str(r#"{"message":"m","code":7}"#).unwrap();
        assert_eq!(error, Error::new("m"));
    }

    #[test]
    fn reads_base64_with_and_without_padding_and_nothing_else() {
        let read = |text: &str| serde_json::from_value::<KeyBytes>(Value::from(text));
        assert_eq!(**read("AQI=").unwrap().0, [1, 2]);
        assert_eq!(**read("AQI").unwrap().0, [1, 2]);
        assert!(read("").unwrap().0.is_empty());
        for bad in ["AQI-", "AQ I", "AQJ=", "A", "AQI=AQI=", "ä"] {
            let error = read(bad).unwrap_err().to_string();
            assert_eq!(error, "a key is not base64", "{bad}");
        }
    }

    #[test]
    fn shows_no_key() {
        let container: KeyContainer = serde_json::from_str(
            r#"{"keys":[{"key_ID":"x","key":"c2VjcmV0IQ==","key_extension":"c2VjcmV0IQ=="}]}"#,
        )
        .unwrap();
        let shown = format!("{container:?}");
        assert!(shown.contains("(7 bytes)"), "{shown}");
        assert!(!shown.contains("c2V") && !shown.contains("115"), "{shown}");
    }
}
