//! Textbook RSA (RFC 8017 §5.1.1): a block to the power of the public exponent, without padding.
//!
//! The libraries in use do not encrypt a deliberately malformed block, which a device must reject.
//! The computation is not in constant time: its inputs are public, in tests as well, which decrypt
//! with the built-in private keys.

use crate::keys::RsaNumbers;
use num_bigint::BigUint;

/// Returns the block to the power of the public exponent, padded to the length of the modulus.
/// `None`: the block is longer than the modulus or not below it.
pub(crate) fn encrypt(block: &[u8], key: &RsaNumbers<'_>) -> Option<Vec<u8>> {
    let [base, exponent, modulus] = [block, key.e, key.n].map(BigUint::from_bytes_be);
    if block.len() > key.n.len() || base >= modulus {
        return None;
    }
    let power = base.modpow(&exponent, &modulus).to_bytes_be();
    let mut bytes = vec![0; key.n.len() - power.len()];
    bytes.extend(power);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device as _;
    use crate::{Keys, cpu};
    use catalog::{Algorithm, Operation};

    /// Numbers small enough for a calculator: the example of the inventors (n = 47 × 59, e = 17).
    #[test]
    fn small_numbers_match_the_inventors_paper() {
        let key = |n| RsaNumbers {
            n,
            e: &[17],
            d: &[],
            p: &[],
            q: &[],
            d_p: &[],
            d_q: &[],
            q_inverse: &[],
        };
        let modulus = 2773_u16.to_be_bytes();
        let key = key(&modulus);
        let power = encrypt(&920_u16.to_be_bytes(), &key);
        assert_eq!(power, Some(948_u16.to_be_bytes().to_vec()));
        assert_eq!(encrypt(&modulus, &key), None);
        assert_eq!(encrypt(&[0; 9], &key), None);
    }

    #[test]
    fn our_engine_decrypts_a_correctly_padded_block() {
        let keys = Keys::new(0);
        for name in ["rsa-1024-pkcs1", "rsa-2048-pkcs1"] {
            let pair = keys.pair(Algorithm::parse(name).expect("it is known"));
            let numbers = pair.rsa().expect("an RSA key");
            let mut block = vec![0x77; numbers.n.len()];
            block[..2].copy_from_slice(&[0, 2]);
            let end = block.len() - 5;
            block[end..].copy_from_slice(b"\0Text");
            let input = encrypt(&block, &numbers).expect("it is below the modulus");
            let cpu = cpu::open(None).expect("our own engines");
            let session = cpu.session().expect("a session");
            let decrypt = Operation::parse(&format!("{name} decrypt")).expect("it is known");
            let mut output = Vec::new();
            let job = session.job(decrypt, &keys);
            assert_eq!(job.expect("a job").run(&input, &mut output), Ok(true));
            assert_eq!(output, b"Text");
        }
    }
}
