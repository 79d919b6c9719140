//! GOST ciphers and their modes, from the crate `gost`.

use super::{function, in_place};
use crate::device::refused;
use crate::{DeviceError, Job, Secret};
use catalog::Operation;
use catalog::{Action, Cipher, Family, Mode};
use gost::kuznyechik::Kuznyechik;
use gost::magma::{Gost89, Magma, Sbox};
use gost::mode::{Cbc, Cnt, Ctr, CtrAcpkm, Ecb, IV_BLOCKS_MAX, Imito, Mgm, Omac};
use gost::{BlockCipher, KEY_BYTES, Kernel};

/// Bytes that one key encrypts in CTR-ACPKM.
const MAGMA_SECTION_BYTES: usize = 1024;
const KUZNYECHIK_SECTION_BYTES: usize = 4096;
/// Length of the MAC of GOST 28147-89.
const IMITO_BYTES: usize = 4;

type JobResult = Result<Box<dyn Job>, DeviceError>;

pub(super) fn job(operation: Operation, secret: &Secret, kernel: Kernel) -> JobResult {
    let key: &[u8; KEY_BYTES] = secret.key.as_slice().try_into().map_err(refused)?;
    let (Family::Mac(cipher) | Family::Cipher(cipher, _) | Family::Mgm(cipher)) =
        operation.algorithm.family()
    else {
        unreachable!("{operation} has no GOST cipher");
    };
    match cipher {
        Cipher::Gost28147 => gost28147(
            operation,
            Gost89::with_sbox(key, Sbox::Tc26Z, kernel),
            secret,
        ),
        Cipher::Magma => modern::<Magma>(operation, key, MAGMA_SECTION_BYTES, secret, kernel),
        _ => modern::<Kuznyechik>(operation, key, KUZNYECHIK_SECTION_BYTES, secret, kernel),
    }
}

fn gost28147(operation: Operation, cipher: Gost89, secret: &Secret) -> JobResult {
    let encrypts = operation.action == Action::Encrypt;
    Ok(match operation.algorithm.family() {
        Family::Mac(_) => {
            let mut imito = Imito::new(cipher);
            function(move |input, output| {
                output.resize(IMITO_BYTES, 0);
                imito.mac(input, output);
                Ok(true)
            })
        }
        Family::Cipher(_, Mode::Ecb) => ecb(Ecb::new(cipher), encrypts),
        Family::Cipher(_, Mode::Ctr) => {
            let iv = iv(secret, Gost89::BLOCK_BYTES)?;
            let mut cnt = Cnt::new(cipher);
            in_place(1, move |text| {
                cnt.apply(&iv, text);
                true
            })
        }
        _ => {
            return Err(DeviceError::NotOffered(
                "GOST 28147-89 in this mode is not implemented".to_owned(),
            ));
        }
    })
}

/// Magma and Kuznyechik in the modes of GOST R 34.13-2015 and after it.
fn modern<C: BlockCipher + 'static>(
    operation: Operation,
    key: &[u8; KEY_BYTES],
    section_bytes: usize,
    secret: &Secret,
    kernel: Kernel,
) -> JobResult {
    let cipher = C::new(key, kernel);
    let encrypts = operation.action == Action::Encrypt;
    Ok(match operation.algorithm.family() {
        Family::Mac(_) => {
            let mut omac = Omac::new(cipher);
            function(move |input, output| {
                output.resize(C::BLOCK_BYTES, 0);
                omac.mac(input, output);
                Ok(true)
            })
        }
        Family::Mgm(_) => mgm(Mgm::new(cipher), encrypts, secret)?,
        Family::Cipher(_, Mode::Ecb) => ecb(Ecb::new(cipher), encrypts),
        Family::Cipher(_, Mode::Cbc) => {
            // Vectors of GOST R 34.13-2015 have IVs of several blocks.
            let iv = secret.nonce.clone();
            let blocks = iv.len() / C::BLOCK_BYTES;
            if !iv.len().is_multiple_of(C::BLOCK_BYTES) || !(1..=IV_BLOCKS_MAX).contains(&blocks) {
                return Err(refused(format_args!(
                    "an IV of {} B, where 1 to {IV_BLOCKS_MAX} blocks of {} B are needed",
                    iv.len(),
                    C::BLOCK_BYTES
                )));
            }
            let mut cbc = Cbc::new(cipher);
            in_place(C::BLOCK_BYTES, move |text| {
                if encrypts {
                    cbc.encrypt(&iv, text);
                } else {
                    cbc.decrypt(&iv, text);
                }
                true
            })
        }
        Family::Cipher(_, Mode::Ctr) => {
            let iv = iv(secret, C::BLOCK_BYTES / 2)?;
            let mut ctr = Ctr::new(cipher);
            in_place(1, move |text| {
                ctr.apply(&iv, text);
                true
            })
        }
        Family::Cipher(_, Mode::CtrAcpkm) => {
            let iv = iv(secret, C::BLOCK_BYTES / 2)?;
            let mut ctr = CtrAcpkm::<C>::new(key, kernel, section_bytes);
            in_place(1, move |text| {
                ctr.apply(&iv, text);
                true
            })
        }
        _ => {
            return Err(DeviceError::NotOffered(format!(
                "{} in this mode is not implemented",
                C::NAME
            )));
        }
    })
}

fn ecb<C: BlockCipher + 'static>(mut ecb: Ecb<C>, encrypts: bool) -> Box<dyn Job> {
    in_place(C::BLOCK_BYTES, move |text| {
        if encrypts {
            ecb.encrypt(text);
        } else {
            ecb.decrypt(text);
        }
        true
    })
}

fn mgm<C: BlockCipher + 'static>(mut mgm: Mgm<C>, encrypts: bool, secret: &Secret) -> JobResult {
    let nonce = iv(secret, C::BLOCK_BYTES)?;
    if nonce[0] >= 0x80 {
        return Err(refused("the first bit of the nonce is not zero"));
    }
    let aad = secret.aad.clone();
    Ok(function(move |input, output| {
        output.clear();
        output.extend_from_slice(input);
        if encrypts {
            if input.is_empty() && aad.is_empty() {
                let nothing = "MGM does not take an empty text without additional data";
                return Err(DeviceError::NotOffered(nothing.to_owned()));
            }
            output.resize(input.len() + C::BLOCK_BYTES, 0);
            let (text, tag) = output.split_at_mut(input.len());
            mgm.seal(&nonce, &aad, text, tag);
            return Ok(true);
        }
        let Some(length) = input.len().checked_sub(C::BLOCK_BYTES) else {
            output.clear();
            return Ok(false);
        };
        if length == 0 && aad.is_empty() {
            output.clear();
            return Ok(false);
        }
        let (text, tag) = output.split_at_mut(length);
        let authentic = mgm.open(&nonce, &aad, text, tag);
        output.truncate(if authentic { length } else { 0 });
        Ok(authentic)
    }))
}

/// Returns the IV, which must be `bytes` long.
fn iv(secret: &Secret, bytes: usize) -> Result<Vec<u8>, DeviceError> {
    if secret.nonce.len() == bytes {
        return Ok(secret.nonce.clone());
    }
    Err(refused(format_args!(
        "an IV of {} B, where {bytes} B are needed",
        secret.nonce.len()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use catalog::Algorithm;

    fn made(algorithm: &str, action: Action, nonce_bytes: usize) -> JobResult {
        let operation = Operation {
            algorithm: Algorithm::parse(algorithm).expect("an algorithm"),
            action,
        };
        let secret = Secret {
            key: vec![7; KEY_BYTES].into(),
            nonce: vec![0; nonce_bytes],
            aad: Vec::new(),
        };
        job(operation, &secret, Kernel::PORTABLE)
    }

    /// RFC 9058 §4.1.
    #[test]
    fn mgm_refuses_an_empty_text_without_additional_data() {
        for (algorithm, block) in [("magma-mgm", 8), ("kuznyechik-mgm", 16)] {
            let mut output = Vec::new();
            let mut seals = made(algorithm, Action::Encrypt, block).expect("a job");
            let error = seals.run(&[], &mut output).expect_err("it is refused");
            assert!(matches!(error, DeviceError::NotOffered(_)), "{error}");
            assert_eq!(seals.run(&[1], &mut output), Ok(true));

            let mut opens = made(algorithm, Action::Decrypt, block).expect("a job");
            let sealed = output.clone();
            assert_eq!(opens.run(&sealed, &mut output), Ok(true));
            assert_eq!(output, [1]);
            for bytes in [0, block - 1, block] {
                assert_eq!(opens.run(&vec![0; bytes], &mut output), Ok(false));
                assert!(output.is_empty());
            }
        }
    }

    #[test]
    fn cbc_accepts_ivs_of_one_to_four_blocks() {
        for (algorithm, block) in [("magma-cbc", 8), ("kuznyechik-cbc", 16)] {
            for blocks in 1..=4 {
                let mut job = made(algorithm, Action::Encrypt, blocks * block).expect("a job");
                assert_eq!(job.run(&[0; 64], &mut Vec::new()), Ok(true));
            }
            for bytes in [0, block - 1, block + 1, 5 * block] {
                let error = made(algorithm, Action::Encrypt, bytes)
                    .err()
                    .expect("it is refused");
                assert!(error.to_string().contains("1 to 4 blocks"), "{error}");
            }
        }
    }
}
