//! Official known answers in `vectors/device/`, read once. `vectors/README.md` describes the format
//! and origin of the records.

use crate::{Case, Keys, Secret};
use catalog::Operation;
use catalog::{Action, Algorithm, Family, Padding};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use zeroize::Zeroizing;

/// A shipped file, with its name for errors.
macro_rules! shipped {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../../../vectors/device/", $name)),
        )
    };
}

const SHIPPED: [(&str, &str); 5] = [
    shipped!("hashes.txt"),
    shipped!("ciphers.txt"),
    shipped!("public-keys.txt"),
    shipped!("post-quantum.txt"),
    shipped!("../gost-modes.txt"),
];
/// The fields that a record may have.
const FIELDS: &str = "name algorithm cipher mode section sbox key nonce iv aad private public plaintext \
                      ciphertext sealed message data digest mac signature secret refused";

/// One known answer.
#[derive(Debug)]
pub(crate) struct Vector {
    /// Its name in its origin.
    pub(crate) name: String,
    algorithm: Algorithm,
    pub(crate) keys: Keys,
    /// The cases for each action that it supports.
    pub(crate) cases: Vec<Case>,
}

/// Returns the known answers of an algorithm.
pub(crate) fn of(algorithm: Algorithm) -> impl Iterator<Item = &'static Vector> {
    static VECTORS: OnceLock<Vec<Vector>> = OnceLock::new();
    let read = || {
        SHIPPED
            .iter()
            .flat_map(|(file, text)| {
                parse(text).unwrap_or_else(|error| panic!("vectors/device/{file}: {error}"))
            })
            .collect()
    };
    let vectors = VECTORS.get_or_init(read);
    vectors
        .iter()
        .filter(move |vector| vector.algorithm == algorithm)
}

/// Reads records: runs of `field = value` lines, ended by an empty one.
fn parse(text: &str) -> Result<Vec<Vector>, String> {
    let mut vectors = Vec::new();
    let mut fields: BTreeMap<&str, String> = BTreeMap::new();
    let mut last = "";
    // An empty line at the end closes the last record.
    for (number, line) in (1..).zip(text.lines().chain([""])) {
        let wrong = |what: &str| format!("line {number}: {what}");
        if line.starts_with('#') {
            continue;
        }
        if line.trim().is_empty() {
            if !fields.is_empty() {
                let vector = vector(&std::mem::take(&mut fields)).map_err(|what| wrong(&what))?;
                vectors.extend(vector);
            }
        } else if line.starts_with(' ') {
            let field = fields
                .get_mut(last)
                .ok_or_else(|| wrong("a continuation without a field"))?;
            field.push_str(line.trim());
        } else {
            let (field, value) = line.split_once('=').ok_or_else(|| wrong("no `=`"))?;
            last = field.trim();
            if fields.insert(last, value.trim().to_owned()).is_some() {
                return Err(wrong("the same field twice"));
            }
        }
    }
    Ok(vectors)
}

/// Returns the name of the algorithm of a record in `gost-modes.txt`, which has cipher and mode in
/// separate fields. `None`: no algorithm here has its parameters.
fn gost(fields: &BTreeMap<&str, String>) -> Option<String> {
    // The examples have short sections, and CryptoPro's S-boxes for GOST 28147-89.
    if fields.contains_key("section") || fields.contains_key("sbox") {
        return None;
    }
    Some(format!("{}-{}", fields.get("cipher")?, fields.get("mode")?))
}

/// Makes a vector from a record's fields. `None`: it is for no algorithm here.
fn vector(fields: &BTreeMap<&str, String>) -> Result<Option<Vector>, String> {
    if let Some(unknown) = fields
        .keys()
        .find(|field| !FIELDS.split(' ').any(|known| known == **field))
    {
        return Err(format!("there is no field {unknown:?}"));
    }
    let text = |field: &str| {
        fields
            .get(field)
            .ok_or_else(|| format!("no field {field:?}"))
    };
    let bytes = |field: &str| match fields.get(field) {
        None => Ok(None),
        Some(digits) => base16ct::mixed::decode_vec(digits)
            .map(Some)
            .map_err(|_| format!("{field}: not hexadecimal")),
    };
    let name = text("name")?.clone();
    let algorithm = if fields.contains_key("cipher") {
        let Some(algorithm) = gost(fields) else {
            return Ok(None);
        };
        algorithm
    } else {
        text("algorithm")?.clone()
    };
    let algorithm = Algorithm::parse(&algorithm).map_err(|error| error.to_string())?;
    let either = |one: &str, other: &str| bytes(if fields.contains_key(one) { one } else { other });
    let operation = |action| Operation { algorithm, action };
    let (private, public) = (bytes("private")?, bytes("public")?);
    let keys = if private.is_some() || public.is_some() {
        Keys::of_pair(
            private.clone().unwrap_or_default(),
            public.clone().unwrap_or_default(),
        )
    } else {
        Keys::of_secret(Secret {
            key: Zeroizing::new(bytes("key")?.unwrap_or_default()),
            nonce: either("nonce", "iv")?.unwrap_or_default(),
            aad: bytes("aad")?.unwrap_or_default(),
        })
    };
    let refused = fields.contains_key("refused");
    let mut cases = Vec::new();
    if let (Some(message), Some(digest)) = (bytes("message")?, bytes("digest")?) {
        cases.push(Case::known(operation(Action::Digest), message, digest));
    }
    if let (Some(data), Some(mac)) = (bytes("data")?, bytes("mac")?) {
        cases.push(Case::begins(operation(Action::Digest), data, mac));
    }
    if let (Some(message), Some(signature)) = (bytes("message")?, bytes("signature")?) {
        let verify = operation(Action::Verify);
        let signed = [&signature[..], &message].concat();
        if refused {
            cases.push(Case::refused(verify, signed, None));
        } else {
            if public.is_some() {
                cases.push(Case::known(verify, signed, Vec::new()));
            }
            let sign = operation(Action::Sign);
            if private.is_some() && sign.is_deterministic() {
                cases.push(Case::known(sign, message, signature));
            }
        }
    }
    if let Some(ciphertext) = either("ciphertext", "sealed")? {
        let plain = bytes("plaintext")?;
        let result = if let Family::MlKem(_) = algorithm.family() {
            bytes("secret")?
        } else {
            plain
        };
        let decrypt = operation(Action::Decrypt);
        match result {
            // Any bytes might be an implicit rejection then, and a device that does not check at
            // all would pass.
            None if refused && matches!(algorithm.family(), Family::Rsa(_, Padding::Pkcs1)) => {
                return Err("a refused ciphertext without its forbidden plaintext".to_owned());
            }
            _ if refused => cases.push(Case::refused(decrypt, ciphertext, result)),
            None => return Err("a ciphertext without its plaintext".to_owned()),
            Some(result) => {
                let encrypt = operation(Action::Encrypt);
                if encrypt.is_deterministic() {
                    cases.push(Case::known(encrypt, result.clone(), ciphertext.clone()));
                }
                cases.push(Case::known(decrypt, ciphertext, result));
            }
        }
    }
    if cases.is_empty() {
        return Err(format!("{name:?} has no case"));
    }
    Ok(Some(Vector {
        name,
        algorithm,
        keys,
        cases,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_line_of_the_record() {
        let error = |text| parse(text).unwrap_err();
        assert_eq!(error("name x"), "line 1: no `=`");
        assert_eq!(error(" 00"), "line 1: a continuation without a field");
        assert_eq!(error("name = x\n"), "line 2: no field \"algorithm\"");
        assert_eq!(
            error("name = x\nalgorithm = md5\nmessage = 0\ndigest = 00\n"),
            "line 5: message: not hexadecimal"
        );
        assert_eq!(
            error("name = x\nalgorithm = md5\nmassage = 00\n"),
            "line 4: there is no field \"massage\""
        );
        assert_eq!(
            error("name = x\nalgorithm = md5\nmessage = 00\n"),
            "line 4: \"x\" has no case"
        );
        assert_eq!(error("name = x\nname = y"), "line 2: the same field twice");
        assert_eq!(
            error(
                "name = x\nalgorithm = rsa-2048-pkcs1\nprivate = 00\nciphertext = 00\nrefused = yes\n"
            ),
            "line 6: a refused ciphertext without its forbidden plaintext"
        );
    }

    #[test]
    fn most_algorithms_have_known_answers() {
        // No authoritative source has published any for these.
        let without: Vec<_> = catalog::ALGORITHMS
            .iter()
            .filter(|&&algorithm| of(algorithm).next().is_none())
            .map(|algorithm| algorithm.name())
            .collect();
        assert_eq!(
            without,
            [
                "magma-ctr-acpkm",
                "kuznyechik-ctr-acpkm",
                "gost28147-ecb",
                "gost28147-cnt",
                "gost28147-imit",
                "rsa-1024-oaep-sha-256",
                "rsa-1024-pss",
                "rsa-3072-oaep",
                "rsa-4096-oaep",
            ]
        );
    }
}
