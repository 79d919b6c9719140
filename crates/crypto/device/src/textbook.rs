//! RSA as in a textbook (RFC 8017 §5.1.1): a block to the public exponent, without padding.
//!
//! No library at hand encrypts a block whose padding is wrong on purpose, and a device that takes such a block must be found
//! out. What it does not do: hide what it computes, which is public, or hurry.

use crate::keys::RsaNumbers;

/// A number, the least significant word first. All of one computation have the length of the modulus.
type Words = Vec<u64>;

/// The block to the power of the public exponent; as long as the modulus. `None`: it is not below the modulus.
pub(crate) fn encrypt(block: &[u8], key: &RsaNumbers<'_>) -> Option<Vec<u8>> {
    let length = key.n.len().div_ceil(8);
    let modulus = words(key.n, length)?;
    let base = words(block, length)?;
    if !is_below(&base, &modulus) {
        return None;
    }
    let mut power = words(&[1], length)?;
    for bit in bits(key.e) {
        power = multiply(&power, &power, &modulus);
        if bit {
            power = multiply(&power, &base, &modulus);
        }
    }
    let bytes: Vec<u8> = power
        .iter()
        .rev()
        .flat_map(|word| word.to_be_bytes())
        .collect();
    Some(bytes[bytes.len() - key.n.len()..].to_vec())
}

/// Reads a big-endian number. `None`: it is too long.
fn words(bytes: &[u8], length: usize) -> Option<Words> {
    let mut words = vec![0; length];
    for (place, &byte) in bytes.iter().rev().enumerate() {
        *words.get_mut(place / 8)? |= u64::from(byte) << (place % 8 * 8);
    }
    Some(words)
}

/// Bits of a big-endian number, the most significant first.
fn bits(bytes: &[u8]) -> impl Iterator<Item = bool> {
    bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |place| byte >> place & 1 == 1))
}

/// The product, by doubling and adding: both factors are below the modulus.
fn multiply(one: &[u64], other: &[u64], modulus: &[u64]) -> Words {
    let mut product = vec![0; modulus.len()];
    for word in one.iter().rev() {
        for place in (0..64).rev() {
            let twice = product.clone();
            add(&mut product, &twice, modulus);
            if word >> place & 1 == 1 {
                add(&mut product, other, modulus);
            }
        }
    }
    product
}

/// Adds; both are below the modulus, and so is the sum then.
fn add(sum: &mut [u64], other: &[u64], modulus: &[u64]) {
    let mut carry = false;
    for (word, &other) in sum.iter_mut().zip(other) {
        let (sum, over) = word.overflowing_add(other);
        let (sum, over_by_carry) = sum.overflowing_add(u64::from(carry));
        (*word, carry) = (sum, over || over_by_carry);
    }
    if carry || !is_below(sum, modulus) {
        let mut borrow = false;
        for (word, &other) in sum.iter_mut().zip(modulus) {
            let (difference, under) = word.overflowing_sub(other);
            let (difference, under_by_borrow) = difference.overflowing_sub(u64::from(borrow));
            (*word, borrow) = (difference, under || under_by_borrow);
        }
    }
}

fn is_below(one: &[u64], other: &[u64]) -> bool {
    one.iter().rev().lt(other.iter().rev())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device as _;
    use crate::{Algorithm, Keys, Operation, cpu};

    /// Numbers small enough for a calculator: the example of the inventors (n = 47 × 59, e = 17).
    #[test]
    fn small_numbers_come_out_as_in_the_inventors_paper() {
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
        let came = encrypt(&920_u16.to_be_bytes(), &key);
        assert_eq!(came, Some(948_u16.to_be_bytes().to_vec()));
        assert_eq!(encrypt(&modulus, &key), None);
        assert_eq!(encrypt(&[0; 9], &key), None);
    }

    #[test]
    fn a_block_that_is_padded_right_is_decrypted_by_our_engine() {
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
