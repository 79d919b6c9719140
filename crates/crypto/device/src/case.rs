//! Inputs of operations with their expected results.
//!
//! The CPU makes inputs such as ciphertexts for decrypting and signatures for verifying. Results
//! that are not deterministic (ECDSA signatures, RSA encryption) are verified on the CPU by the
//! inverse operation.

use crate::{DeviceError, Job, Keys, Session, textbook};
use base16ct::HexDisplay;
use base16ct::lower::encode_string;
use catalog::{Action, Curve, Family, MlDsa, MlKem, Mode, Operation, Padding};

/// An input and its expected result. Made once, used by any thread.
#[derive(Debug, Clone)]
pub struct Case {
    operation: Operation,
    input: Vec<u8>,
    expected: Expected,
}

/// The expected result of an input.
#[derive(Debug, Clone)]
enum Expected {
    /// These bytes.
    Output(Vec<u8>),
    /// Bytes that begin with these: standards truncate MACs.
    Beginning(Vec<u8>),
    /// Any bytes that the inverse operation accepts: it decrypts the ciphertext to the input or
    /// verifies the signature.
    Inverse,
    /// A ciphertext and a secret: the inverse operation on the ciphertext must give that secret.
    Secret {
        /// Length of the ciphertext.
        ciphertext_bytes: usize,
    },
    /// A refusal; or, if the standard specifies implicit rejection and the forbidden result is
    /// known, any other bytes.
    Refusal(Option<Vec<u8>>),
}

/// The difference between a result and the expected one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Wrong {
    /// Offset of the first differing byte; `None` if the length or the verdict is wrong.
    pub first_differing: Option<u32>,
    /// Expected and actual result, in words or truncated hexadecimal.
    pub detail: String,
}

impl Case {
    /// Makes a valid input of about `bytes` bytes: rounded up to whole blocks, limited to the
    /// lengths that RSA accepts. Inputs of one length differ by `variant`.
    ///
    /// # Errors
    /// [`DeviceError`] of the CPU, if it makes the input.
    pub fn valid(
        operation: Operation,
        bytes: usize,
        variant: u64,
        keys: &Keys,
        cpu: &dyn Session,
    ) -> Result<Self, DeviceError> {
        let plain = plain(operation, bytes, variant);
        let compute = |action| {
            let mut output = Vec::new();
            let operation = Operation {
                action,
                ..operation
            };
            cpu.job(operation, keys)?.run(&plain, &mut output)?;
            Ok::<_, DeviceError>(output)
        };
        let (input, expected) = match operation.action {
            Action::Digest => {
                let output = compute(Action::Digest)?;
                (plain, Expected::Output(output))
            }
            // A KEM's ciphertext is different each time, so only the inverse operation can verify
            // it.
            Action::Encrypt => match kem_ciphertext_bytes(operation) {
                Some(ciphertext_bytes) => (plain, Expected::Secret { ciphertext_bytes }),
                None if operation.is_deterministic() => {
                    let output = compute(Action::Encrypt)?;
                    (plain, Expected::Output(output))
                }
                None => (plain, Expected::Inverse),
            },
            Action::Decrypt => {
                // The CPU's ciphertext, so that a device that encrypts and decrypts with the same
                // mistake is found.
                let mut sealed = compute(Action::Encrypt)?;
                match kem_ciphertext_bytes(operation) {
                    Some(ciphertext_bytes) => {
                        let secret = sealed.split_off(ciphertext_bytes);
                        (sealed, Expected::Output(secret))
                    }
                    None => (sealed, Expected::Output(plain)),
                }
            }
            Action::Sign if operation.is_deterministic() => {
                let output = compute(Action::Sign)?;
                (plain, Expected::Output(output))
            }
            Action::Sign => (plain, Expected::Inverse),
            Action::Verify => {
                let mut signed = compute(Action::Sign)?;
                signed.extend_from_slice(&plain);
                // The signature comes first: its length is known, the message's is not.
                (signed, Expected::Output(Vec::new()))
            }
        };
        Ok(Self::new(operation, input, expected))
    }

    /// Makes an input that is not authentic or not well-formed and must be refused: a changed byte
    /// in a signature, in the signed message (odd variants) or in a ciphertext, wrong padding, a
    /// length that is not a multiple of the block.
    /// `None` if every input is valid: hashes, MACs, stream modes.
    ///
    /// # Errors
    /// As for [`Self::valid`].
    pub fn invalid(
        operation: Operation,
        bytes: usize,
        variant: u64,
        keys: &Keys,
        cpu: &dyn Session,
    ) -> Result<Option<Self>, DeviceError> {
        let family = operation.algorithm.family();
        if !has_invalid_inputs(operation) {
            return Ok(None);
        }
        // A flipped bit gives random padding, which nearly every device refuses. Padding that is
        // almost right needs a block made on purpose.
        if let Some(case) = badly_padded(operation, bytes, variant, keys) {
            return Ok(Some(case));
        }
        let Self {
            mut input,
            expected,
            ..
        } = Self::valid(operation, bytes, variant, keys, cpu)?;
        let forbidden = match expected {
            Expected::Output(bytes) => Some(bytes),
            _ => None,
        };
        // Without a tag the length is the surest mistake: padding may be right by chance.
        if let Family::Cipher(..) = family {
            input.push(0);
            return Ok(Some(Self::refused(operation, input, forbidden)));
        }
        let signature = signature_bytes(operation).unwrap_or_default();
        let place = match (family, operation.action) {
            // The signature of another message is well-formed: a device that looks only at its
            // padding or range accepts it.
            (_, Action::Verify) if variant % 2 == 1 && input.len() > signature => input.len() - 1,
            // The first byte of an RSA number is kept, so that it stays below the modulus.
            (Family::Rsa(bits, _), _) => usize::from(bits) / 16,
            (_, Action::Verify) => signature / 2,
            _ => input.len() - 1,
        };
        // One bit: a device that compares a part only, or a checksum, is most likely to miss that.
        input[place] ^= 1 << (variant % 8);
        Ok(Some(Self::refused(operation, input, forbidden)))
    }

    /// A case with a known result, such as a vector's.
    #[must_use]
    pub const fn known(operation: Operation, input: Vec<u8>, output: Vec<u8>) -> Self {
        Self::new(operation, input, Expected::Output(output))
    }

    /// A case with a known beginning of the result.
    pub(crate) const fn begins(operation: Operation, input: Vec<u8>, beginning: Vec<u8>) -> Self {
        Self::new(operation, input, Expected::Beginning(beginning))
    }

    /// A case that must be refused, as in some vectors. `forbidden` is the result of a device that
    /// does not check; without it only a refusal is right.
    #[must_use]
    pub const fn refused(operation: Operation, input: Vec<u8>, forbidden: Option<Vec<u8>>) -> Self {
        Self::new(operation, input, Expected::Refusal(forbidden))
    }

    const fn new(operation: Operation, input: Vec<u8>, expected: Expected) -> Self {
        Self {
            operation,
            input,
            expected,
        }
    }

    /// The operation.
    #[must_use]
    pub const fn operation(&self) -> Operation {
        self.operation
    }

    /// The input of [`Job::run`].
    #[must_use]
    pub fn input(&self) -> &[u8] {
        &self.input
    }

    /// Whether it must be refused.
    #[must_use]
    pub const fn is_invalid(&self) -> bool {
        matches!(self.expected, Expected::Refusal(_))
    }

    /// Whether [`Self::check`] needs a job of the inverse operation.
    #[must_use]
    pub const fn needs_inverse(&self) -> bool {
        matches!(self.expected, Expected::Inverse | Expected::Secret { .. })
    }

    /// Checks a result: `authentic` and `output` as [`Job::run`] returned them. `inverse` is a job
    /// of the CPU for the [`Operation::inverse`], required if [`Self::needs_inverse`].
    ///
    /// # Errors
    /// [`Wrong`]. An error of the inverse job counts as wrong, since a right ciphertext can be
    /// decrypted.
    pub fn check(
        &self,
        authentic: bool,
        output: &[u8],
        inverse: Option<&mut (dyn Job + '_)>,
    ) -> Result<(), Wrong> {
        if let Expected::Refusal(forbidden) = &self.expected {
            // Implicit rejection returns other bytes.
            let rejected = matches!(
                self.operation.algorithm.family(),
                Family::MlKem(_) | Family::Rsa(_, Padding::Pkcs1)
            ) && self.operation.action == Action::Decrypt
                && forbidden
                    .as_ref()
                    .is_some_and(|forbidden| output != forbidden);
            return if !authentic || rejected {
                Ok(())
            } else {
                Err(Wrong::answer("an invalid input passed"))
            };
        }
        if !authentic {
            return Err(Wrong::answer("a valid input was refused"));
        }
        let (input, expected) = match &self.expected {
            Expected::Output(expected) => return compare(expected, output),
            Expected::Beginning(expected) => {
                return compare(expected, &output[..expected.len().min(output.len())]);
            }
            // The length is checked here: the inverse operation would cut a longer result, and take
            // its rest for the message.
            Expected::Inverse if self.operation.action == Action::Sign => {
                let right = signature_bytes(self.operation).unwrap_or(output.len());
                if output.len() != right {
                    let text = format!("the signature has {} B, expected {right} B", output.len());
                    return Err(Wrong::answer(&text));
                }
                ([output, &self.input].concat(), &[][..])
            }
            Expected::Secret { ciphertext_bytes } => {
                match output.split_at_checked(*ciphertext_bytes) {
                    Some((ciphertext, secret)) => (ciphertext.to_vec(), secret),
                    None => return Err(Wrong::answer("the ciphertext is too short")),
                }
            }
            _ => (output.to_vec(), &self.input[..]),
        };
        let Some(inverse) = inverse else {
            return Err(Wrong::answer(
                "the CPU does not offer the inverse operation",
            ));
        };
        let mut back = Vec::new();
        match inverse.run(&input, &mut back) {
            Ok(true) => compare(expected, &back),
            Ok(false) => Err(Wrong::answer("the CPU refuses the result")),
            Err(error) => Err(Wrong::answer(&format!(
                "the CPU fails at the result: {error}"
            ))),
        }
    }
}

impl Wrong {
    fn answer(text: &str) -> Self {
        Self {
            first_differing: None,
            detail: text.to_owned(),
        }
    }
}

/// Length of the signatures that an operation makes or verifies; `None` for other operations.
pub(crate) const fn signature_bytes(operation: Operation) -> Option<usize> {
    match (operation.algorithm.family(), operation.action) {
        (_, Action::Digest | Action::Encrypt | Action::Decrypt) => None,
        (Family::Rsa(bits, _), _) => Some(bits as usize / 8),
        (Family::Ecdsa(Curve::P384), _) => Some(96),
        (Family::Ecdsa(_) | Family::Ed25519, _) => Some(64),
        (Family::MlDsa(MlDsa::MlDsa44), _) => Some(2420),
        (Family::MlDsa(MlDsa::MlDsa65), _) => Some(3309),
        (Family::MlDsa(MlDsa::MlDsa87), _) => Some(4627),
        _ => None,
    }
}

/// Length of a KEM's ciphertext; `None` for other algorithms.
pub(crate) const fn kem_ciphertext_bytes(operation: Operation) -> Option<usize> {
    match operation.algorithm.family() {
        Family::MlKem(MlKem::MlKem512) => Some(768),
        Family::MlKem(MlKem::MlKem768) => Some(1088),
        Family::MlKem(MlKem::MlKem1024) => Some(1568),
        _ => None,
    }
}

/// Longest plaintext; `None` if no trial can reach a limit.
pub(crate) const fn plaintext_bytes_max(operation: Operation) -> Option<usize> {
    match (operation.algorithm.family(), operation.action) {
        (Family::Rsa(bits, padding), Action::Encrypt | Action::Decrypt) => {
            // RFC 8017 §7.1.1 and §7.2.1.
            let overhead = match padding {
                Padding::Oaep => 2 * 20 + 2,
                Padding::OaepSha256 => 2 * 32 + 2,
                _ => 11,
            };
            Some(bits as usize / 8 - overhead)
        }
        (Family::MlKem(_), _) => Some(0),
        _ => None,
    }
}

const fn has_invalid_inputs(operation: Operation) -> bool {
    match (operation.algorithm.family(), operation.action) {
        (Family::Cipher(_, Mode::Ecb | Mode::Cbc), _) | (_, Action::Verify) => true,
        (Family::Cipher(_, mode), Action::Decrypt) => matches!(mode, Mode::CbcPad),
        (_, action) => matches!(action, Action::Decrypt),
    }
}

/// Encrypts a block with padding that violates PKCS#1 v1.5 (RFC 8017 §7.2.1), for three of four
/// variants: a device that only looks for the zero between padding and message returns the message.
fn badly_padded(operation: Operation, bytes: usize, variant: u64, keys: &Keys) -> Option<Case> {
    /// The padding may not be shorter than 8 bytes.
    const TOO_SHORT: usize = 7;
    let (Family::Rsa(_, Padding::Pkcs1), Action::Decrypt) =
        (operation.algorithm.family(), operation.action)
    else {
        return None;
    };
    let numbers = keys.pair(operation.algorithm).rsa()?;
    let mut message = plain(operation, bytes, variant);
    let (begins, padding) = match variant % 4 {
        1 => ([0, 1], 0xff),
        2 => ([1, 2], 0xa5),
        3 => {
            // The message fills the block so far that only seven bytes are left for the padding.
            message.resize(numbers.n.len().checked_sub(3 + TOO_SHORT)?, 0x5a);
            ([0, 2], 0xa5)
        }
        _ => return None,
    };
    let mut block = begins.to_vec();
    block.resize(numbers.n.len().checked_sub(message.len() + 1)?, padding);
    block.push(0);
    block.extend_from_slice(&message);
    let input = textbook::encrypt(&block, &numbers)?;
    Some(Case::refused(operation, input, Some(message)))
}

/// Message or plaintext of an operation, or of the one that makes its input.
fn plain(operation: Operation, bytes: usize, variant: u64) -> Vec<u8> {
    let block = match operation.algorithm.family() {
        Family::Cipher(cipher, Mode::Ecb | Mode::Cbc) => cipher.block_bytes(),
        _ => 1,
    };
    let mut length = bytes.next_multiple_of(block);
    if let Some(max) = plaintext_bytes_max(operation) {
        length = length.min(max);
    }
    // Pseudo-random bytes, so that misplaced parts of a text are noticed.
    let mut state = variant ^ ((length as u64) << 32);
    let mut text = Vec::with_capacity(length.next_multiple_of(8));
    while text.len() < length {
        text.extend_from_slice(&split_mix(&mut state).to_le_bytes());
    }
    text.truncate(length);
    text
}

/// The next number of a sequence (SplitMix64).
pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn compare(expected: &[u8], actual: &[u8]) -> Result<(), Wrong> {
    if expected == actual {
        return Ok(());
    }
    if expected.len() != actual.len() {
        return Err(Wrong::answer(&format!(
            "the result has {} B, expected {} B",
            actual.len(),
            expected.len()
        )));
    }
    let first = expected
        .iter()
        .zip(actual)
        .position(|(expected, actual)| expected != actual)
        .unwrap_or_default();
    Err(Wrong {
        first_differing: u32::try_from(first).ok(),
        detail: format!(
            "from byte {first}: {}, expected {}",
            shortened(&actual[first..]),
            shortened(&expected[first..])
        ),
    })
}

/// The first bytes in hexadecimal.
fn shortened(bytes: &[u8]) -> String {
    const SHOWN: usize = 8;
    match bytes.get(..SHOWN) {
        Some(first) if bytes.len() > SHOWN => format!("{:x}…", HexDisplay(first)),
        _ => encode_string(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::RsaNumbers;
    use crate::{Device as _, cpu, vectors};

    /// Decrypts like a device that only looks for the zero between padding and message.
    fn lax(input: &[u8], numbers: &RsaNumbers<'_>) -> Vec<u8> {
        let private = RsaNumbers {
            e: numbers.d,
            ..*numbers
        };
        let block = textbook::encrypt(input, &private).expect("it is below the modulus");
        let zero = block[2..].iter().position(|&byte| byte == 0);
        block[2 + zero.expect("a zero") + 1..].to_vec()
    }

    #[test]
    fn a_device_that_accepts_bad_padding_does_not_pass() {
        let keys = Keys::new(0);
        let cpu = cpu::open(None).expect("our own engines");
        let session = cpu.session().expect("a session");
        let operation = Operation::parse("rsa-1024-pkcs1 decrypt").expect("it is known");
        let numbers = keys.pair(operation.algorithm).rsa().expect("an RSA key");
        for variant in 1..4 {
            let case = Case::invalid(operation, 32, variant, &keys, &*session);
            let case = case
                .expect("it can be made")
                .expect("there are invalid inputs");
            let actual = lax(case.input(), &numbers);
            assert!(
                case.check(true, &actual, None).is_err(),
                "{variant}: {actual:x?}"
            );
            // Implicit rejection returns other bytes.
            assert_eq!(case.check(true, b"other", None), Ok(()));
            assert_eq!(case.check(false, &[], None), Ok(()));
        }
    }

    #[test]
    fn a_vector_with_bad_padding_must_not_give_its_plaintext() {
        let algorithm = Operation::parse("rsa-2048-pkcs1 decrypt").expect("it is known");
        let refused = vectors::of(algorithm.algorithm).flat_map(|vector| &vector.cases);
        let refused = refused.filter(|case| case.is_invalid() && case.operation() == algorithm);
        let mut count = 0;
        for case in refused {
            assert!(case.check(true, b"Test", None).is_err());
            assert_eq!(case.check(true, b"", None), Ok(()));
            count += 1;
        }
        assert_eq!(count, 4);
    }
}
