//! Proof of having the same keys.

use super::CHAIN_BYTES;
use crate::hex;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// Proof of having the same keys; hexadecimal in messages.
#[derive(Clone, PartialEq, Eq)]
pub struct Confirmation(pub [u8; CHAIN_BYTES]);

impl Serialize for Confirmation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut digits = String::new();
        hex::push(&mut digits, &self.0);
        serializer.serialize_str(&digits)
    }
}

impl<'de> Deserialize<'de> for Confirmation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = String::deserialize(deserializer)?;
        let mut bytes = [0; CHAIN_BYTES];
        hex::read(&digits, &mut bytes)
            .ok_or_else(|| de::Error::custom("a confirmation has 96 hexadecimal digits"))?;
        Ok(Self(bytes))
    }
}

/// Omits the bytes: not secret once sent, but of no use in a log.
impl fmt::Debug for Confirmation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Confirmation(..)")
    }
}
