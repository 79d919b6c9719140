//! Our engines as a device: the reference for the speed and the results of others.
//!
//! AWS-LC computes most algorithms, RustCrypto MD5, DES, Streebog and AES in ECB, and the crate
//! `gost` GOST. None of them has all of RSA: OpenSSL does keys of 1024 bits and signatures with
//! SHA-1 ([`Cpu::is_openssl`]).

mod aws;
mod gost;
mod peer;
mod public;
mod rustcrypto;

pub(crate) use peer::Peer;

use crate::openssl::{self, OpenSsl};
use crate::{Device, DeviceError, Job, Keys, Session};
use ::gost::Kernel;
use catalog::device::Facts;
use catalog::{Action, Family, Hash, Mode, Padding};
use catalog::{Cipher, Operation};
use std::cell::OnceCell;
use std::sync::OnceLock;

/// Our engines.
pub(crate) struct Cpu {
    /// The kernel of the GOST ciphers.
    kernel: Kernel,
    /// Loaded on first use.
    openssl: OnceLock<Result<OpenSsl, DeviceError>>,
}

/// Opens our engines. `kernel` is the name of the GOST kernel; the fastest if `None`.
///
/// # Errors
/// [`DeviceError::Unusable`]: the machine has no kernel of that name.
pub(crate) fn open(kernel: Option<&str>) -> Result<Cpu, DeviceError> {
    let kernel = match kernel {
        None => Kernel::detect(),
        Some(name) => {
            let all = Kernel::all();
            all.iter()
                .copied()
                .find(|kernel| kernel.name() == name)
                .ok_or_else(|| {
                    let names: Vec<_> = all.iter().map(|kernel| kernel.name()).collect();
                    DeviceError::Unusable(format!(
                        "this machine has no GOST kernel {name:?}; it has: {}",
                        names.join(", ")
                    ))
                })?
        }
    };
    Ok(Cpu {
        kernel,
        openssl: OnceLock::new(),
    })
}

impl Cpu {
    /// Its name in [`Facts`].
    pub(crate) const NAME: &str = "CPU";

    /// Whether OpenSSL's default provider does the operation here: a comparison with that provider
    /// then proves nothing.
    pub(crate) const fn is_openssl(operation: Operation) -> bool {
        match operation.algorithm.family() {
            Family::Rsa(1024, _) => true,
            Family::Rsa(_, Padding::Pkcs1Sha1) => matches!(operation.action, Action::Sign),
            _ => false,
        }
    }
}

impl Device for Cpu {
    fn facts(&self) -> Facts {
        let more = [
            ("AES, SHA, public keys", "AWS-LC by aws-lc-rs"),
            ("MD5, DES, Streebog, AES in ECB", "RustCrypto"),
            (
                "RSA-1024, RSA signatures with SHA-1",
                "OpenSSL's default provider",
            ),
            ("GOST kernel", self.kernel.name()),
        ];
        Facts {
            name: Self::NAME.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            more: more
                .map(|(what, by)| (what.to_owned(), by.to_owned()))
                .to_vec(),
        }
    }

    fn session(&self) -> Result<Box<dyn Session + '_>, DeviceError> {
        Ok(Box::new(Thread {
            cpu: self,
            openssl: OnceCell::new(),
        }))
    }
}

/// A thread's session.
struct Thread<'a> {
    cpu: &'a Cpu,
    openssl: OnceCell<Box<dyn Session + 'a>>,
}

impl Thread<'_> {
    fn openssl(&self) -> Result<&dyn Session, DeviceError> {
        if let Some(session) = self.openssl.get() {
            return Ok(&**session);
        }
        let opened = self
            .cpu
            .openssl
            .get_or_init(|| openssl::open(None, None, None));
        let session = opened.as_ref().map_err(Clone::clone)?.session()?;
        // Stored only now: after an error the next job tries again.
        Ok(&**self.openssl.get_or_init(|| session))
    }
}

impl Session for Thread<'_> {
    fn job(&self, operation: Operation, keys: &Keys) -> Result<Box<dyn Job + '_>, DeviceError> {
        if Cpu::is_openssl(operation) {
            return self.openssl()?.job(operation, keys);
        }
        let secret = || keys.secret(operation.algorithm);
        let encrypts = operation.action == Action::Encrypt;
        match operation.algorithm.family() {
            Family::Digest(hash @ (Hash::Md5 | Hash::Streebog256 | Hash::Streebog512)) => {
                Ok(rustcrypto::digest(hash))
            }
            Family::Digest(hash) => Ok(aws::digest(hash)),
            Family::Hmac(hash @ (Hash::Md5 | Hash::Streebog256 | Hash::Streebog512)) => {
                Ok(rustcrypto::hmac(hash, &secret().key))
            }
            Family::Hmac(hash) => Ok(aws::hmac(hash, &secret().key)),
            Family::Mac(cipher @ (Cipher::Aes128 | Cipher::Aes192 | Cipher::Aes256)) => {
                aws::cmac(cipher, &secret().key)
            }
            Family::Cipher(Cipher::Magma | Cipher::Kuznyechik | Cipher::Gost28147, _)
            | Family::Mac(_)
            | Family::Mgm(_) => gost::job(operation, &secret(), self.cpu.kernel),
            Family::Cipher(cipher @ (Cipher::Des | Cipher::TripleDes), _) => {
                rustcrypto::des_cbc(cipher, encrypts, &secret())
            }
            Family::Cipher(cipher, Mode::Ecb) => {
                rustcrypto::aes_ecb(cipher, encrypts, &secret().key)
            }
            Family::Cipher(cipher, mode) => aws::cipher(cipher, mode, encrypts, &secret()),
            Family::Gcm(cipher) => aws::aead(aws::gcm(cipher), encrypts, &secret()),
            Family::ChaCha20Poly1305 => {
                aws::aead(&aws_lc_rs::aead::CHACHA20_POLY1305, encrypts, &secret())
            }
            Family::Rsa(..)
            | Family::Ecdsa(_)
            | Family::Ed25519
            | Family::MlDsa(_)
            | Family::MlKem(_) => public::job(operation, keys.pair(operation.algorithm)),
        }
    }
}

/// A job implemented by a function.
struct Function<F>(F);

impl<F: FnMut(&[u8], &mut Vec<u8>) -> Result<bool, DeviceError>> Job for Function<F> {
    fn run(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<bool, DeviceError> {
        (self.0)(input, output)
    }
}

/// Makes a job from a function.
fn function<'a>(
    run: impl FnMut(&[u8], &mut Vec<u8>) -> Result<bool, DeviceError> + 'a,
) -> Box<dyn Job + 'a> {
    Box::new(Function(run))
}

/// Makes a job from a function that returns the output.
fn output<'a, T: AsRef<[u8]>>(
    mut compute: impl FnMut(&[u8]) -> Result<T, DeviceError> + 'a,
) -> Box<dyn Job + 'a> {
    function(move |input, output| {
        output.clear();
        output.extend_from_slice(compute(input)?.as_ref());
        Ok(true)
    })
}

/// Makes a job from a function that changes a text in place, in blocks of `block_bytes`; other
/// lengths are refused.
fn in_place<'a>(
    block_bytes: usize,
    mut run: impl FnMut(&mut [u8]) -> bool + 'a,
) -> Box<dyn Job + 'a> {
    function(move |input, output| {
        // Also when the text is refused: no earlier result stays behind.
        output.clear();
        if !input.len().is_multiple_of(block_bytes) {
            return Ok(false);
        }
        output.extend_from_slice(input);
        Ok(run(output))
    })
}
