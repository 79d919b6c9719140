//! What a KME and an SAE send each other, as ETSI GS QKD 014 v1.1.1 clause 6 has it: JSON with these very names.
//!
//! Members that the standard does not know are skipped when read: a KME may be newer than this. No `Debug` shows a key.

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
    /// The KME that was asked.
    #[serde(rename = "source_KME_ID")]
    pub source_kme_id: String,
    /// The KME of the slave SAE.
    #[serde(rename = "target_KME_ID")]
    pub target_kme_id: String,
    /// The SAE that asked.
    #[serde(rename = "master_SAE_ID")]
    pub master_sae_id: String,
    /// The SAE that it asked about.
    #[serde(rename = "slave_SAE_ID")]
    pub slave_sae_id: String,
    /// Size of a key in bits, where a request names none.
    pub key_size: u32,
    /// Keys that the KME has ready.
    pub stored_key_count: u64,
    /// Keys that it has room for.
    pub max_key_count: u64,
    /// The most that one request may ask for.
    pub max_key_per_request: u64,
    /// The longest key that it can deliver, in bits.
    pub max_key_size: u32,
    /// The shortest, in bits.
    pub min_key_size: u32,
    /// Further slave SAEs that one request may name; 0: none.
    #[serde(rename = "max_SAE_ID_count")]
    pub max_sae_id_count: u64,
    /// For future use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_extension: Option<Value>,
}

/// What "Get key" asks for (clause 6.2); the default asks for one key of the KME's own size.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyRequest {
    /// How many keys; 1 where it is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// Size of each in bits, a multiple of 8; [`Status::key_size`] where it is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// Further SAEs that are to have the same keys.
    #[serde(
        rename = "additional_slave_SAE_IDs",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    pub additional_slave_sae_ids: Vec<String>,
    /// What the KME must obey, or refuse the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extension_mandatory: Vec<Extension>,
    /// What it may ignore.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extension_optional: Vec<Extension>,
}

impl KeyRequest {
    /// Asks for `number` keys of `size` bits each.
    #[must_use]
    pub fn new(number: u32, size: u32) -> Self {
        Self {
            number: Some(number),
            size: Some(size),
            ..Self::default()
        }
    }

    /// Whether the query of a URL can say it: "Get key" by GET has nothing but number and size (clause 5.3).
    #[must_use]
    pub fn is_simple(&self) -> bool {
        self.additional_slave_sae_ids.is_empty()
            && self.extension_mandatory.is_empty()
            && self.extension_optional.is_empty()
    }
}

/// Keys, as "Get key" and "Get key with key IDs" answer (clause 6.3).
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
    /// UUID, by which the other SAE gets the same key.
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

/// Shows no extension either: what a vendor puts there may be as secret as the key.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("key_id", &self.key_id)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// What "Get key with key IDs" asks for (clause 6.4).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyIds {
    /// The ids, in any order.
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

/// One id of [`KeyIds`].
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

/// The body of an answer with status 400, 401 or 503 (clause 6.5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Error {
    /// What is wrong.
    pub message: String,
    /// More of it: by the standard a list of objects with one string each.
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

/// With or without padding: some KMEs leave it out, and it carries nothing.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl Serialize for KeyBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Of its full length from the beginning: growing would leave a copy behind.
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
        // The decoder's own error names the character it stumbled over, which is a piece of the key.
        let length = BASE64
            .decode_slice(text, &mut key)
            .map_err(|_| E::custom("a key is no base64"))?;
        key.truncate(length);
        Ok(KeyBytes(key))
    }
}

impl fmt::Debug for KeyBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
    fn skips_members_that_it_does_not_know() {
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
            assert_eq!(error, "a key is no base64", "{bad}");
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
