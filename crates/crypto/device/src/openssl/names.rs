//! libcrypto's names of algorithms; for GOST, the names in its GOST engine and provider.

use catalog::{Cipher, Curve, Hash, MlDsa, MlKem, Mode};

pub(super) const fn hash(hash: Hash) -> &'static str {
    match hash {
        Hash::Md5 => "MD5",
        Hash::Sha1 => "SHA1",
        Hash::Sha224 => "SHA224",
        Hash::Sha256 => "SHA256",
        Hash::Sha384 => "SHA384",
        Hash::Sha512 => "SHA512",
        Hash::Sha3_256 => "SHA3-256",
        Hash::Sha3_512 => "SHA3-512",
        Hash::Streebog256 => "md_gost12_256",
        Hash::Streebog512 => "md_gost12_512",
    }
}

/// `None`: libcrypto does not have the cipher in this mode.
pub(super) const fn cipher(cipher: Cipher, mode: Mode) -> Option<&'static str> {
    Some(match (cipher, mode) {
        (Cipher::Aes128, Mode::Ecb) => "AES-128-ECB",
        (Cipher::Aes192, Mode::Ecb) => "AES-192-ECB",
        (Cipher::Aes256, Mode::Ecb) => "AES-256-ECB",
        (Cipher::Aes128, Mode::Cbc | Mode::CbcPad) => "AES-128-CBC",
        (Cipher::Aes192, Mode::Cbc | Mode::CbcPad) => "AES-192-CBC",
        (Cipher::Aes256, Mode::Cbc | Mode::CbcPad) => "AES-256-CBC",
        (Cipher::Aes128, Mode::Ctr) => "AES-128-CTR",
        (Cipher::Aes192, Mode::Ctr) => "AES-192-CTR",
        (Cipher::Aes256, Mode::Ctr) => "AES-256-CTR",
        (Cipher::Des, Mode::Cbc) => "DES-CBC",
        (Cipher::TripleDes, Mode::Cbc) => "DES-EDE3-CBC",
        (Cipher::Magma, Mode::Ecb) => "magma-ecb",
        (Cipher::Magma, Mode::Cbc) => "magma-cbc",
        (Cipher::Magma, Mode::Ctr) => "magma-ctr",
        (Cipher::Magma, Mode::CtrAcpkm) => "magma-ctr-acpkm",
        (Cipher::Kuznyechik, Mode::Ecb) => "kuznyechik-ecb",
        (Cipher::Kuznyechik, Mode::Cbc) => "kuznyechik-cbc",
        (Cipher::Kuznyechik, Mode::Ctr) => "kuznyechik-ctr",
        (Cipher::Kuznyechik, Mode::CtrAcpkm) => "kuznyechik-ctr-acpkm",
        _ => return None,
    })
}

/// AES in GCM.
pub(super) const fn gcm(cipher: Cipher) -> &'static str {
    match cipher {
        Cipher::Aes128 => "AES-128-GCM",
        Cipher::Aes192 => "AES-192-GCM",
        _ => "AES-256-GCM",
    }
}

/// A GOST cipher in MGM.
pub(super) const fn mgm(cipher: Cipher) -> &'static str {
    match cipher {
        Cipher::Magma => "magma-mgm",
        _ => "kuznyechik-mgm",
    }
}

/// The name of a GOST cipher's MAC; `None` for other ciphers, with CMAC as their MAC.
pub(super) const fn mac(cipher: Cipher) -> Option<&'static str> {
    match cipher {
        Cipher::Magma => Some("magma-mac"),
        Cipher::Kuznyechik => Some("kuznyechik-mac"),
        _ => None,
    }
}

/// The hash that goes with a curve.
pub(super) const fn curve_hash(curve: Curve) -> &'static str {
    match curve {
        Curve::P256 | Curve::Secp256k1 => "SHA256",
        Curve::P384 => "SHA384",
    }
}

pub(super) const fn ml_dsa(parameters: MlDsa) -> &'static str {
    match parameters {
        MlDsa::MlDsa44 => "ML-DSA-44",
        MlDsa::MlDsa65 => "ML-DSA-65",
        MlDsa::MlDsa87 => "ML-DSA-87",
    }
}

pub(super) const fn ml_kem(parameters: MlKem) -> &'static str {
    match parameters {
        MlKem::MlKem512 => "ML-KEM-512",
        MlKem::MlKem768 => "ML-KEM-768",
        MlKem::MlKem1024 => "ML-KEM-1024",
    }
}
