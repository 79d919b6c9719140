//! Parsing and writing of key, epoch and PPK files.
//!
//! All are flat YAML, one `name: value` per line, written by this program. This module parses them
//! itself because a general parser copies its input: copies of the secret would remain in freed
//! memory.

use crate::derive::SECRET_BYTES;
use crate::{EPOCH_MAX, Side, hex};
use std::fmt::Write;
use zeroize::Zeroizing;

/// Maximum file size in bytes; no valid file is larger.
pub(crate) const FILE_BYTES_MAX: usize = 4096;

const KEY_FORMAT: &str = "cipherbench_static_key";
const EPOCH_FORMAT: &str = "cipherbench_epochs";
/// Version of each format.
pub(crate) const VERSION: &str = "1";

/// A syntax error with its line number, from 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) line: usize,
    pub(crate) what: String,
}

/// Content of a key file.
pub(crate) struct KeyFile {
    pub(crate) side: Side,
    pub(crate) secret: Zeroizing<[u8; SECRET_BYTES]>,
}

impl KeyFile {
    pub(crate) fn parse(text: &[u8]) -> Result<Self, Malformed> {
        let [version, side, secret] = fields(text, [KEY_FORMAT, "side", "secret"])?;
        version.expect(VERSION, "expected version 1")?;
        let side = match side.value {
            "a" => Side::A,
            "b" => Side::B,
            _ => return Err(side.malformed("expected `side: a` or `side: b`")),
        };
        // One text for a wrong length and a wrong digit: the position of a digit would be a hint.
        let wrong = "expected 64 hexadecimal digits after `secret:`";
        let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
        hex::read(secret.value, &mut *bytes).ok_or_else(|| secret.malformed(wrong))?;
        Ok(Self {
            side,
            secret: bytes,
        })
    }

    pub(crate) fn text(&self) -> Zeroizing<String> {
        // Never reallocates, so that no copy remains in freed memory.
        let mut text = Zeroizing::new(String::with_capacity(FILE_BYTES_MAX));
        text.push_str(
            "# One end of a tunnel with static keys. Secret. Never use a copy of it, nor put back an old\n\
             # copy of the epoch file beside it: nonces would repeat, and that reveals traffic and keys.\n",
        );
        push_field(&mut text, KEY_FORMAT, VERSION);
        push_field(&mut text, "side", self.side.name());
        text.push_str("secret: ");
        hex::push(&mut text, &*self.secret);
        text.push('\n');
        text
    }
}

/// Content of an epoch file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Epochs {
    /// The last epoch that this end has drawn for sending; 0 before the first.
    pub(crate) outbound: u32,
    /// The highest epoch of the peer with an authentic packet; 0 before the first.
    pub(crate) peer: u32,
}

impl Epochs {
    pub(crate) const NONE: Self = Self {
        outbound: 0,
        peer: 0,
    };

    pub(crate) fn parse(text: &[u8]) -> Result<Self, Malformed> {
        let [version, outbound, peer] = fields(text, [EPOCH_FORMAT, "outbound", "peer"])?;
        version.expect(VERSION, "expected version 1")?;
        let epoch = |field: Field<'_>| match field.value.parse() {
            // A higher one does not fit into an SPI.
            Ok(epoch) if epoch <= EPOCH_MAX => Ok(epoch),
            _ => Err(field.malformed(&format!("expected a number from 0 to {EPOCH_MAX}"))),
        };
        Ok(Self {
            outbound: epoch(outbound)?,
            peer: epoch(peer)?,
        })
    }

    pub(crate) fn text(self) -> String {
        let mut text = String::from(
            "# Epochs used with the key file beside it. Without this file the keys cannot be used.\n",
        );
        push_field(&mut text, EPOCH_FORMAT, VERSION);
        push_field(&mut text, "outbound", self.outbound);
        push_field(&mut text, "peer", self.peer);
        text
    }
}

pub(crate) fn push_field(text: &mut String, name: &str, value: impl std::fmt::Display) {
    writeln!(text, "{name}: {value}").expect("writing to a string does not fail");
}

/// A value and its line number, from 1.
#[derive(Clone, Copy)]
pub(crate) struct Field<'t> {
    pub(crate) line: usize,
    pub(crate) value: &'t str,
}

impl Field<'_> {
    pub(crate) fn malformed(self, what: &str) -> Malformed {
        Malformed {
            line: self.line,
            what: what.to_owned(),
        }
    }

    pub(crate) fn expect(self, value: &str, otherwise: &str) -> Result<(), Malformed> {
        if self.value == value {
            Ok(())
        } else {
            Err(self.malformed(otherwise))
        }
    }
}

/// Parses the fields `names`, each exactly once and in any order. Returns their values in the order
/// of `names`.
pub(crate) fn fields<'t, const N: usize>(
    text: &'t [u8],
    names: [&str; N],
) -> Result<[Field<'t>; N], Malformed> {
    let malformed = |line, what: String| Malformed { line, what };
    let text = str::from_utf8(text).map_err(|_| malformed(1, "the file is not text".to_owned()))?;
    // In any order: people may edit these files.
    let mut found = [None; N];
    let mut last = 1;
    // Borrows from the text, so that the only copy of a secret is the caller's, which is wiped.
    for (line, content) in (1..).zip(text.lines()) {
        last = line;
        // Only whole lines are comments: a value may contain the sign.
        if content.trim_start().starts_with('#') || content.trim().is_empty() {
            continue;
        }
        // The error does not quote the line, which may be a misplaced secret.
        let known = content.split_once(": ").and_then(|(name, value)| {
            let index = names.iter().position(|known| *known == name)?;
            Some((index, value.trim()))
        });
        let Some((index, value)) = known else {
            let expected = names.map(|name| format!("`{name}: …`")).join(", ");
            return Err(malformed(line, format!("expected one of {expected}")));
        };
        // Neither of two values is preferred: a guess might use the wrong secret.
        if found[index].replace(Field { line, value }).is_some() {
            return Err(malformed(
                line,
                format!("`{}` is given twice", names[index]),
            ));
        }
    }
    if let Some(missing) = found.iter().position(Option::is_none) {
        return Err(malformed(
            last,
            format!("`{}: …` is missing", names[missing]),
        ));
    }
    Ok(found.map(|field| field.expect("none is missing")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_error(text: &str) -> (usize, String) {
        let Err(malformed) = KeyFile::parse(text.as_bytes()) else {
            panic!("{text} is accepted")
        };
        (malformed.line, malformed.what)
    }

    const DIGITS: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1F";

    #[test]
    fn what_is_written_reads_the_same() {
        for side in [Side::A, Side::B] {
            let secret = Zeroizing::new(std::array::from_fn(|index| index as u8 ^ 0xa5));
            let text = KeyFile {
                side,
                secret: secret.clone(),
            }
            .text();
            let read = KeyFile::parse(text.as_bytes()).unwrap();
            assert_eq!((read.side, read.secret), (side, secret));
            assert!(text.len() <= FILE_BYTES_MAX && text.lines().all(|line| line.len() <= 100));
        }
        for epochs in [
            Epochs::NONE,
            Epochs {
                outbound: EPOCH_MAX,
                peer: 7,
            },
        ] {
            assert_eq!(Epochs::parse(epochs.text().as_bytes()), Ok(epochs));
        }
    }

    #[test]
    fn order_comments_and_case_of_digits_do_not_matter() {
        let text = format!("secret: {DIGITS}\n\n  # mine\nside: b \ncipherbench_static_key: 1\n");
        let read = KeyFile::parse(text.as_bytes()).unwrap();
        assert_eq!(read.side, Side::B);
        assert_eq!(*read.secret, std::array::from_fn(|index| index as u8));
    }

    #[test]
    fn an_error_names_the_line_and_not_the_secret() {
        let good = format!("cipherbench_static_key: 1\nside: a\nsecret: {DIGITS}\n");
        assert!(KeyFile::parse(good.as_bytes()).is_ok());
        let hex = "expected 64 hexadecimal digits after `secret:`";
        let one_of = "expected one of `cipherbench_static_key: …`, `side: …`, `secret: …`";
        let cases = [
            (good.replace("key: 1", "key: 2"), 1, "expected version 1"),
            (
                good.replace("side: a", "side: A"),
                2,
                "expected `side: a` or `side: b`",
            ),
            (good.replace("1F", "1"), 3, hex),
            (good.replace("1F", "1Fa0"), 3, hex),
            (good.replace("1F", "1g"), 3, hex),
            (good.replace("1F", "+1"), 3, hex),
            (good.replace("secret:", "secret: 0x"), 3, hex),
            (good.replace("secret: ", ""), 3, one_of),
            (good.replace("side:", "peer:"), 2, one_of),
            (good.replace("side: a", "side:a"), 2, one_of),
            (format!("{good}side: a\n"), 4, "`side` is given twice"),
            (good.replace("side: a\n", ""), 2, "`side: …` is missing"),
            (String::new(), 1, "`cipherbench_static_key: …` is missing"),
        ];
        for (text, line, what) in cases {
            assert_eq!(key_error(&text), (line, what.to_owned()), "{text}");
        }
        assert_eq!(
            KeyFile::parse(&[0xff; 8]).err().unwrap().what,
            "the file is not text"
        );
    }

    #[test]
    fn an_epoch_beyond_the_last_is_refused() {
        for (value, good) in [
            ("0", true),
            ("1048575", true),
            ("1048576", false),
            ("-1", false),
        ] {
            let text = format!("cipherbench_epochs: 1\noutbound: {value}\npeer: 0\n");
            assert_eq!(Epochs::parse(text.as_bytes()).is_ok(), good, "{value}");
        }
    }
}
