//! A QKD key.

use std::fmt;
use zeroize::Zeroizing;

/// A QKD key and the ID by which the other side gets the same key.
#[derive(Clone)]
pub struct QkdKey {
    /// UUID.
    pub id: String,
    /// The key bytes; wiped when dropped.
    pub key: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for QkdKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QkdKey({}, {} bits)", self.id, self.key.len() * 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_no_key() {
        let key = QkdKey {
            id: "x".to_owned(),
            key: Zeroizing::new(vec![0xab; 4]),
        };
        assert_eq!(format!("{key:?}"), "QkdKey(x, 32 bits)");
    }
}
