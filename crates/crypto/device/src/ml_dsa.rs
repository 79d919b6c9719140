//! Private keys of ML-DSA, made from their seeds.

use crate::DeviceError;
use crate::device::{aws_lc_failed, refused};
use aws_lc_rs::encoding::AsRawBytes;
use aws_lc_rs::signature::{self, PqdsaKeyPair};
use catalog::MlDsa;
use zeroize::Zeroizing;

/// Expands a seed to the private key in the encoding of FIPS 204 (algorithm 24).
pub(crate) fn expanded(parameters: MlDsa, seed: &[u8]) -> Result<Zeroizing<Vec<u8>>, DeviceError> {
    let key = key(parameters, seed)?;
    let raw = key.private_key().as_raw_bytes().map_err(aws_lc_failed)?;
    Ok(Zeroizing::new(raw.as_ref().to_vec()))
}

/// Expands a seed to a key pair.
pub(crate) fn key(parameters: MlDsa, seed: &[u8]) -> Result<PqdsaKeyPair, DeviceError> {
    let algorithm = match parameters {
        MlDsa::MlDsa44 => &signature::ML_DSA_44_SIGNING,
        MlDsa::MlDsa65 => &signature::ML_DSA_65_SIGNING,
        MlDsa::MlDsa87 => &signature::ML_DSA_87_SIGNING,
    };
    PqdsaKeyPair::from_seed(algorithm, seed).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keys;
    use aws_lc_rs::signature::KeyPair as _;
    use catalog::Algorithm;

    #[test]
    fn an_expanded_key_has_the_same_public_key() {
        // Lengths of FIPS 204, table 2.
        let algorithms = [
            (
                "ml-dsa-44",
                MlDsa::MlDsa44,
                &signature::ML_DSA_44_SIGNING,
                2560,
            ),
            (
                "ml-dsa-65",
                MlDsa::MlDsa65,
                &signature::ML_DSA_65_SIGNING,
                4032,
            ),
            (
                "ml-dsa-87",
                MlDsa::MlDsa87,
                &signature::ML_DSA_87_SIGNING,
                4896,
            ),
        ];
        for (name, parameters, signing, bytes) in algorithms {
            let algorithm = Algorithm::parse(name).expect("an algorithm");
            let keys = Keys::new(1);
            let pair = keys.pair(algorithm);
            let expanded = expanded(parameters, pair.private).expect("a seed");
            assert_eq!(expanded.len(), bytes, "{name}");
            let read =
                PqdsaKeyPair::from_raw_private_key(signing, &expanded).expect("a private key");
            assert_eq!(read.public_key().as_ref(), pair.public, "{name}");
        }
    }
}
