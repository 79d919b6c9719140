//! The token that authorises one check.

use crate::error::{CheckError, here};
use ctutils::CtEq;
use std::fmt;
use std::str::FromStr;

const BYTES: usize = 16;

/// A random token, which the listener makes and the asker presents. Written as hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Token([u8; BYTES]);

impl Token {
    /// Length as text.
    pub(crate) const DIGITS: usize = 2 * BYTES;

    /// Returns a new one.
    ///
    /// # Errors
    /// When the operating system has no random bytes.
    pub fn new() -> Result<Self, CheckError> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes)
            .map_err(|error| here("make a token")(std::io::Error::other(error)))?;
        Ok(Self(bytes))
    }

    /// Whether the text is this token. The time does not depend on the place of a difference.
    pub(crate) fn is(&self, text: &str) -> bool {
        text.parse::<Self>()
            .is_ok_and(|other| self.0.ct_eq(&other.0).into())
    }

    /// Its digits.
    #[must_use]
    pub fn digits(&self) -> String {
        base16ct::lower::encode_string(&self.0)
    }
}

impl FromStr for Token {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; BYTES];
        let is_whole = text.len() == Self::DIGITS
            && base16ct::lower::decode(text.as_bytes(), &mut bytes).is_ok();
        if is_whole {
            Ok(Self(bytes))
        } else {
            Err("no token: it has 32 hexadecimal digits, as `--listen` prints it")
        }
    }
}

/// Shows no digit: a token in a log would still be a token.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_its_digits_and_no_other() {
        let token = Token::new().unwrap();
        let digits = token.digits();
        assert!(token.is(&digits));
        assert_eq!(digits.parse::<Token>().unwrap(), token);
        for wrong in ["", &digits[1..], &format!("{digits}0"), &"0".repeat(32)] {
            assert!(!token.is(wrong), "{wrong}");
        }
        assert!(digits.to_uppercase().parse::<Token>().is_err() || digits.to_uppercase() == digits);
        assert_eq!(format!("{token:?}"), "Token");
    }
}
