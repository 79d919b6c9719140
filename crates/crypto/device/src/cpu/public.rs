//! AWS-LC: public keys. It lacks RSA of 1024 bits and signatures with SHA-1, which OpenSSL does.

use super::{function, output};
use crate::case::{kem_ciphertext_bytes, signature_bytes};
use crate::device::{aws_lc_failed, refused};
use crate::keys::KeyPair;
use crate::ml_dsa;
use crate::{DeviceError, Job};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::kem::{self, DecapsulationKey, EncapsulationKey};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{
    self, OAEP_SHA1_MGF1SHA1, OAEP_SHA256_MGF1SHA256, OaepPrivateDecryptingKey,
    OaepPublicEncryptingKey, Pkcs1PrivateDecryptingKey, Pkcs1PublicEncryptingKey,
    PrivateDecryptingKey, PublicEncryptingKey,
};
use aws_lc_rs::signature::{
    self, EcdsaKeyPair, Ed25519KeyPair, ParsedPublicKey, VerificationAlgorithm,
};
use catalog::Operation;
use catalog::{Action, Curve, Family, MlDsa, MlKem, Padding};

type JobResult = Result<Box<dyn Job>, DeviceError>;

pub(super) fn job(operation: Operation, pair: KeyPair<'_>) -> JobResult {
    match (operation.algorithm.family(), operation.action) {
        (_, Action::Verify) => verify(operation, pair),
        (Family::Rsa(_, padding), Action::Sign) => rsa_sign(padding, pair),
        (Family::Rsa(_, padding), Action::Encrypt) => rsa_encrypt(padding, pair),
        (Family::Rsa(_, padding), _) => rsa_decrypt(padding, pair),
        (Family::Ecdsa(curve), _) => ecdsa_sign(curve, pair),
        (Family::MlDsa(parameters), _) => ml_dsa_sign(operation, parameters, pair),
        (Family::MlKem(parameters), action) => ml_kem(operation, parameters, action, pair),
        _ => {
            // Without a public key in it, as version 1 of PKCS#8 and most vectors have none.
            let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pair.private).map_err(refused)?;
            Ok(output(move |input| Ok(key.sign(input))))
        }
    }
}

fn verify(operation: Operation, pair: KeyPair<'_>) -> JobResult {
    let algorithm: &'static dyn VerificationAlgorithm = match operation.algorithm.family() {
        Family::Rsa(_, Padding::Pkcs1Sha1) => {
            &signature::RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY
        }
        Family::Rsa(_, Padding::Pss) => &signature::RSA_PSS_2048_8192_SHA256,
        Family::Rsa(..) => &signature::RSA_PKCS1_2048_8192_SHA256,
        Family::Ecdsa(Curve::P256) => &signature::ECDSA_P256_SHA256_FIXED,
        Family::Ecdsa(Curve::P384) => &signature::ECDSA_P384_SHA384_FIXED,
        Family::Ecdsa(Curve::Secp256k1) => &signature::ECDSA_P256K1_SHA256_FIXED,
        Family::MlDsa(MlDsa::MlDsa44) => &signature::ML_DSA_44,
        Family::MlDsa(MlDsa::MlDsa65) => &signature::ML_DSA_65,
        Family::MlDsa(MlDsa::MlDsa87) => &signature::ML_DSA_87,
        _ => &signature::ED25519,
    };
    let key = ParsedPublicKey::new(algorithm, pair.public_bytes()).map_err(refused)?;
    let signature_bytes = signature_bytes(operation).unwrap_or_default();
    Ok(function(move |input, output| {
        output.clear();
        let parts = input.split_at_checked(signature_bytes);
        Ok(parts.is_some_and(|(signature, message)| key.verify_sig(message, signature).is_ok()))
    }))
}

fn rsa_sign(padding: Padding, pair: KeyPair<'_>) -> JobResult {
    let key = rsa::KeyPair::from_pkcs8(pair.private).map_err(refused)?;
    let encoding: &'static dyn signature::RsaEncoding = match padding {
        Padding::Pss => &signature::RSA_PSS_SHA256,
        _ => &signature::RSA_PKCS1_SHA256,
    };
    let random = SystemRandom::new();
    let bytes = key.public_modulus_len();
    Ok(fixed(bytes, move |input, output| {
        key.sign(encoding, &random, input, output)
    }))
}

fn rsa_encrypt(padding: Padding, pair: KeyPair<'_>) -> JobResult {
    let key = PublicEncryptingKey::from_der(pair.public).map_err(refused)?;
    let bytes = key.key_size_bytes();
    let algorithm = match padding {
        Padding::Oaep => &OAEP_SHA1_MGF1SHA1,
        Padding::OaepSha256 => &OAEP_SHA256_MGF1SHA256,
        _ => {
            let key = Pkcs1PublicEncryptingKey::new(key).map_err(refused)?;
            return Ok(fixed(bytes, move |input, output| {
                key.encrypt(input, output).map(drop)
            }));
        }
    };
    let key = OaepPublicEncryptingKey::new(key).map_err(refused)?;
    Ok(fixed(bytes, move |input, output| {
        key.encrypt(algorithm, input, output, None).map(drop)
    }))
}

fn rsa_decrypt(padding: Padding, pair: KeyPair<'_>) -> JobResult {
    let key = PrivateDecryptingKey::from_pkcs8(pair.private).map_err(refused)?;
    let bytes = key.key_size_bytes();
    let algorithm = match padding {
        Padding::Oaep => &OAEP_SHA1_MGF1SHA1,
        Padding::OaepSha256 => &OAEP_SHA256_MGF1SHA256,
        _ => {
            let key = Pkcs1PrivateDecryptingKey::new(key).map_err(refused)?;
            return Ok(decrypting(bytes, move |input, output| {
                key.decrypt(input, output).map(|text| text.len())
            }));
        }
    };
    let key = OaepPrivateDecryptingKey::new(key).map_err(refused)?;
    Ok(decrypting(bytes, move |input, output| {
        let text = key.decrypt(algorithm, input, output, None);
        text.map(|text| text.len())
    }))
}

/// A job with results of `bytes` bytes.
fn fixed(
    bytes: usize,
    run: impl Fn(&[u8], &mut [u8]) -> Result<(), Unspecified> + 'static,
) -> Box<dyn Job> {
    function(move |input, output| {
        output.resize(bytes, 0);
        run(input, output).map_err(aws_lc_failed).map(|()| true)
    })
}

/// A job that decrypts up to `bytes`. `decrypt` returns the length of the plaintext.
fn decrypting(
    bytes: usize,
    decrypt: impl Fn(&[u8], &mut [u8]) -> Result<usize, Unspecified> + 'static,
) -> Box<dyn Job> {
    function(move |input, output| {
        output.resize(bytes, 0);
        let length = decrypt(input, output);
        output.truncate(length.unwrap_or(0));
        Ok(length.is_ok())
    })
}

fn ecdsa_sign(curve: Curve, pair: KeyPair<'_>) -> JobResult {
    let algorithm = match curve {
        Curve::P256 => &signature::ECDSA_P256_SHA256_FIXED_SIGNING,
        Curve::P384 => &signature::ECDSA_P384_SHA384_FIXED_SIGNING,
        Curve::Secp256k1 => &signature::ECDSA_P256K1_SHA256_FIXED_SIGNING,
    };
    let key = EcdsaKeyPair::from_pkcs8(algorithm, pair.private).map_err(refused)?;
    let random = SystemRandom::new();
    Ok(output(move |input| {
        key.sign(&random, input).map_err(aws_lc_failed)
    }))
}

fn ml_dsa_sign(operation: Operation, parameters: MlDsa, pair: KeyPair<'_>) -> JobResult {
    let bytes = signature_bytes(operation).unwrap_or_default();
    let key = ml_dsa::key(parameters, pair.private)?;
    Ok(fixed(bytes, move |input, output| {
        key.sign(input, output).map(drop)
    }))
}

fn ml_kem(operation: Operation, parameters: MlKem, action: Action, pair: KeyPair<'_>) -> JobResult {
    let algorithm = match parameters {
        MlKem::MlKem512 => &kem::ML_KEM_512,
        MlKem::MlKem768 => &kem::ML_KEM_768,
        MlKem::MlKem1024 => &kem::ML_KEM_1024,
    };
    if action == Action::Encrypt {
        let key = EncapsulationKey::new(algorithm, pair.public).map_err(refused)?;
        return Ok(function(move |_, output| {
            output.clear();
            let (ciphertext, secret) = key.encapsulate().map_err(aws_lc_failed)?;
            output.extend_from_slice(ciphertext.as_ref());
            output.extend_from_slice(secret.as_ref());
            Ok(true)
        }));
    }
    let key = DecapsulationKey::new(algorithm, pair.private).map_err(refused)?;
    let bytes = kem_ciphertext_bytes(operation).unwrap_or_default();
    Ok(function(move |input, output| {
        output.clear();
        if input.len() != bytes {
            return Ok(false);
        }
        let secret = key.decapsulate(input.into());
        output.extend(secret.iter().flat_map(|secret| secret.as_ref()));
        Ok(secret.is_ok())
    }))
}
