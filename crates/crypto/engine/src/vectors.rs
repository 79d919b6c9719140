//! Parser of files with known answers (format: `vectors/README.md`).

/// A file of the folder `vectors`: its name and its text.
macro_rules! shipped {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../vectors/", $name)))
    };
}

/// The shipped vector files, each with its name.
pub const SHIPPED: [(&str, &str); 11] = [
    shipped!("gcm-spec.txt"),
    shipped!("rfc8439.txt"),
    shipped!("rfc7634.txt"),
    shipped!("draft-mcgrew-gcm-test.txt"),
    shipped!("sp800-38a.txt"),
    shipped!("rfc3602.txt"),
    shipped!("tdes.txt"),
    shipped!("des.txt"),
    shipped!("hmac.txt"),
    shipped!("esp-packets.txt"),
    shipped!("gost-packets.txt"),
];

/// The error for a malformed vector file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VectorError {
    /// A line that is neither a field nor the continuation of one.
    #[error("line {line}: expected `field = value`, got `{got}`")]
    NotAField {
        /// Line number, from 1.
        line: usize,
        /// The line.
        got: String,
    },
    /// A record lacks a field that its reader needs.
    #[error("{record}: field `{field}` is missing")]
    Missing {
        /// The record's name.
        record: String,
        /// The field.
        field: &'static str,
    },
    /// A field is not hexadecimal.
    #[error("{record}: field `{field}` is not hexadecimal")]
    NotHex {
        /// The record's name.
        record: String,
        /// The field.
        field: &'static str,
    },
    /// A field has a wrong length.
    #[error("{record}: field `{field}` has a wrong length")]
    WrongLength {
        /// The record's name.
        record: String,
        /// The field.
        field: &'static str,
    },
}

/// One record of a vector file: fields by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vector {
    fields: Vec<(String, String)>,
}

impl Vector {
    /// Returns the record's name in its origin; empty if it has none.
    #[must_use]
    pub fn name(&self) -> &str {
        self.find("name").unwrap_or_default()
    }

    /// Returns the text of a field.
    ///
    /// # Errors
    /// [`VectorError::Missing`].
    pub fn text(&self, field: &'static str) -> Result<&str, VectorError> {
        self.find(field).ok_or_else(|| VectorError::Missing {
            record: self.name().to_owned(),
            field,
        })
    }

    /// Returns the bytes of a hexadecimal field.
    ///
    /// # Errors
    /// [`VectorError::Missing`] or [`VectorError::NotHex`].
    pub fn bytes(&self, field: &'static str) -> Result<Vec<u8>, VectorError> {
        let text = self.text(field)?;
        base16ct::mixed::decode_vec(text).map_err(|_| VectorError::NotHex {
            record: self.name().to_owned(),
            field,
        })
    }

    /// Returns a hexadecimal field of a fixed length.
    pub(crate) fn array<const N: usize>(
        &self,
        field: &'static str,
    ) -> Result<[u8; N], VectorError> {
        let bytes = self.bytes(field)?;
        bytes.try_into().map_err(|_| self.wrong_length(field))
    }

    /// Whether the field exists.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.find(field).is_some()
    }

    pub(crate) fn wrong_length(&self, field: &'static str) -> VectorError {
        VectorError::WrongLength {
            record: self.name().to_owned(),
            field,
        }
    }

    fn find(&self, field: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|(name, _)| name == field)
            .map(|(_, value)| value.as_str())
    }
}

/// Parses the records of a vector file, in order.
///
/// # Errors
/// [`VectorError::NotAField`].
pub fn parse(text: &str) -> Result<Vec<Vector>, VectorError> {
    let mut records = vec![Vector::default()];
    for (index, line) in text.lines().enumerate() {
        // `records` is never empty: it starts with one record and only grows.
        let last = records.len() - 1;
        let fields = &mut records[last].fields;
        if line.trim().is_empty() {
            if !fields.is_empty() {
                records.push(Vector::default());
            }
        } else if line.starts_with('#') {
        } else if let (true, Some((_, value))) = (line.starts_with(' '), fields.last_mut()) {
            // An indented line continues the value above it.
            value.push_str(line.trim());
        } else if let Some((name, value)) = line.split_once('=') {
            fields.push((name.trim().to_owned(), value.trim().to_owned()));
        } else {
            return Err(VectorError::NotAField {
                line: index + 1,
                got: line.to_owned(),
            });
        }
    }
    // The text may end in empty lines.
    records.retain(|record| !record.fields.is_empty());
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_records_comments_and_continued_values() {
        let text = "# c\n\nname = one\nkey =\n  0a0B\n  ff\n# c\naad =\n\n\nname = two\n";
        let records = parse(text).unwrap();
        assert_eq!(records.len(), 2);
        assert_eq!(records[0].name(), "one");
        assert_eq!(records[0].bytes("key").unwrap(), [0x0a, 0x0b, 0xff]);
        assert!(records[0].bytes("aad").unwrap().is_empty());
        assert_eq!(
            records[1].bytes("key"),
            Err(VectorError::Missing {
                record: "two".to_owned(),
                field: "key"
            })
        );
    }

    #[test]
    fn reports_unreadable_lines_and_fields() {
        assert_eq!(
            parse("name = one\nkey\n"),
            Err(VectorError::NotAField {
                line: 2,
                got: "key".to_owned()
            })
        );
        for text in ["key = 0", "key = 0g"] {
            let not_hex = VectorError::NotHex {
                record: String::new(),
                field: "key",
            };
            assert_eq!(parse(text).unwrap()[0].bytes("key"), Err(not_hex));
        }
    }

    #[test]
    fn every_shipped_file_has_the_records_its_origin_has() {
        let counts = SHIPPED.map(|(_, text)| parse(text).unwrap().len());
        assert_eq!(counts, [8, 2, 1, 13, 2, 8, 5, 5, 18, 92, 28]);
    }
}
