//! Keys as objects in a token.

use std::sync::{Arc, Mutex};

use aws_lc_rs::digest::{Context, SHA256};
use cryptoki::error::RvError;
use cryptoki::object::{
    Attribute, KeyType, MlDsaParameterSetType, MlKemParameterSetType, ObjectClass, ObjectHandle,
};
use cryptoki::session::Session as Connection;

use super::{code, describe, failed};
use crate::ml_dsa;
use crate::threads::lock;
use crate::{DeviceError, Keys};
use catalog::Operation;
use catalog::{Action, Cipher, Curve, Family, MlDsa, MlKem};

/// Identifies the object in the token that an operation needs. Operations with equal values share
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct KeyUse {
    usage: Usage,
    /// Hash of the object's content: no key is kept longer than its import takes.
    digest: Vec<u8>,
}

/// The only use that the object permits. Tokens that follow FIPS 140 refuse keys with two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Usage {
    Encrypt,
    Decrypt,
    Sign,
    Verify,
    Encapsulate,
    Decapsulate,
}

/// A key in the token, destroyed on drop.
pub(super) struct KeyObject {
    owner: Arc<Mutex<Connection>>,
    handle: ObjectHandle,
}

impl KeyUse {
    /// Returns the object that `operation` needs; `None` for digests, which need no key.
    pub(super) fn of(operation: Operation, keys: &Keys) -> Option<Self> {
        let algorithm = operation.algorithm;
        let mut context = Context::new(&SHA256);
        match algorithm.family() {
            Family::Digest(_) => return None,
            family if is_public_key(family) => {
                let pair = keys.pair(algorithm);
                context.update(b"pair");
                // Paddings of RSA share a key. An ML-DSA seed gives a different key in each
                // parameter set.
                if !matches!(family, Family::Rsa(..)) {
                    context.update(algorithm.name().as_bytes());
                }
                context.update(if is_private(operation) {
                    pair.private
                } else {
                    pair.public
                });
            }
            _ => {
                context.update(algorithm.name().as_bytes());
                context.update(&keys.secret(algorithm).key);
            }
        }
        Some(Self {
            usage: Usage::of(operation),
            digest: context.finish().as_ref().to_vec(),
        })
    }
}

impl Usage {
    const fn of(operation: Operation) -> Self {
        let is_kem = matches!(operation.algorithm.family(), Family::MlKem(_));
        match operation.action {
            Action::Encrypt if is_kem => Self::Encapsulate,
            Action::Decrypt if is_kem => Self::Decapsulate,
            Action::Encrypt => Self::Encrypt,
            Action::Decrypt => Self::Decrypt,
            // MACs are made by signing.
            Action::Digest | Action::Sign => Self::Sign,
            Action::Verify => Self::Verify,
        }
    }

    const fn attribute(self) -> Attribute {
        match self {
            Self::Encrypt => Attribute::Encrypt(true),
            Self::Decrypt => Attribute::Decrypt(true),
            Self::Sign => Attribute::Sign(true),
            Self::Verify => Attribute::Verify(true),
            Self::Encapsulate => Attribute::Encapsulate(true),
            Self::Decapsulate => Attribute::Decapsulate(true),
        }
    }
}

impl KeyObject {
    /// Imports the object that `operation` needs.
    ///
    /// # Errors
    /// [`DeviceError::NotOffered`] if the token does not accept the key.
    pub(super) fn import(
        owner: &Arc<Mutex<Connection>>,
        operation: Operation,
        keys: &Keys,
    ) -> Result<Self, DeviceError> {
        let template = template(operation, keys)?;
        let handle = lock(owner)
            .create_object(&template)
            .map_err(|error| match code(&error) {
                Some(
                    RvError::ActionProhibited
                    | RvError::AttributeReadOnly
                    | RvError::AttributeTypeInvalid
                    | RvError::AttributeValueInvalid
                    | RvError::CurveNotSupported
                    | RvError::DomainParamsInvalid
                    | RvError::FunctionNotSupported
                    | RvError::KeySizeRange
                    | RvError::MechanismInvalid
                    | RvError::TemplateIncomplete
                    | RvError::TemplateInconsistent,
                ) => DeviceError::NotOffered(format!(
                    "the token does not accept the key for {}: {}",
                    operation.algorithm,
                    describe(&error)
                )),
                _ => failed(&error),
            })?;
        Ok(Self {
            owner: Arc::clone(owner),
            handle,
        })
    }

    pub(super) fn handle(&self) -> ObjectHandle {
        self.handle
    }
}

impl Drop for KeyObject {
    fn drop(&mut self) {
        // It is destroyed with the owner's session at the latest.
        let _ = lock(&self.owner).destroy_object(self.handle);
    }
}

fn is_private(operation: Operation) -> bool {
    matches!(operation.action, Action::Sign | Action::Decrypt)
        && is_public_key(operation.algorithm.family())
}

fn is_public_key(family: Family) -> bool {
    matches!(
        family,
        Family::Rsa(..) | Family::Ecdsa(_) | Family::Ed25519 | Family::MlDsa(_) | Family::MlKem(_)
    )
}

/// Returns the template of the object.
fn template(operation: Operation, keys: &Keys) -> Result<Vec<Attribute>, DeviceError> {
    let algorithm = operation.algorithm;
    let private = is_private(operation);
    // Session objects: they vanish with the session, so a killed process leaves nothing in the
    // token's memory.
    let mut template = vec![Attribute::Token(false), Usage::of(operation).attribute()];
    let class = match (is_public_key(algorithm.family()), private) {
        (false, _) => ObjectClass::SECRET_KEY,
        (true, false) => ObjectClass::PUBLIC_KEY,
        (true, true) => ObjectClass::PRIVATE_KEY,
    };
    template.push(Attribute::Class(class));
    if class != ObjectClass::PUBLIC_KEY {
        template.extend([
            Attribute::Private(true),
            Attribute::Sensitive(true),
            Attribute::Extractable(false),
        ]);
    } else {
        template.push(Attribute::Private(false));
    }
    match algorithm.family() {
        Family::Hmac(_) => template.extend(secret(KeyType::GENERIC_SECRET, keys, operation)),
        Family::Mac(cipher) | Family::Cipher(cipher, _) | Family::Gcm(cipher) => {
            let kind = match cipher {
                Cipher::Aes128 | Cipher::Aes192 | Cipher::Aes256 => KeyType::AES,
                Cipher::Des => KeyType::DES,
                Cipher::TripleDes => KeyType::DES3,
                _ => return Err(no_key(operation)),
            };
            template.extend(secret(kind, keys, operation));
        }
        Family::Rsa(..) => template.extend(rsa(operation, keys)?),
        Family::Ecdsa(curve) => {
            template.extend(elliptic(KeyType::EC, curve_oid(curve), operation, keys));
        }
        Family::Ed25519 => {
            template.extend(elliptic(KeyType::EC_EDWARDS, ED25519, operation, keys));
        }
        Family::MlDsa(parameters) => template.extend(ml_dsa_key(parameters, operation, keys)?),
        Family::MlKem(parameters) => template.extend(ml_kem(parameters, operation, keys)),
        _ => return Err(no_key(operation)),
    }
    Ok(template)
}

fn no_key(operation: Operation) -> DeviceError {
    DeviceError::NotOffered(format!(
        "PKCS#11 has no key type for {}",
        operation.algorithm
    ))
}

fn secret(kind: KeyType, keys: &Keys, operation: Operation) -> [Attribute; 2] {
    let value = keys.secret(operation.algorithm).key.to_vec();
    [Attribute::KeyType(kind), Attribute::Value(value)]
}

fn rsa(operation: Operation, keys: &Keys) -> Result<Vec<Attribute>, DeviceError> {
    let numbers = keys
        .pair(operation.algorithm)
        .rsa()
        .ok_or_else(|| no_key(operation))?;
    let mut template = vec![
        Attribute::KeyType(KeyType::RSA),
        Attribute::Modulus(numbers.n.to_vec()),
        Attribute::PublicExponent(numbers.e.to_vec()),
    ];
    if is_private(operation) {
        template.extend([
            Attribute::PrivateExponent(numbers.d.to_vec()),
            Attribute::Prime1(numbers.p.to_vec()),
            Attribute::Prime2(numbers.q.to_vec()),
            Attribute::Exponent1(numbers.d_p.to_vec()),
            Attribute::Exponent2(numbers.d_q.to_vec()),
            Attribute::Coefficient(numbers.q_inverse.to_vec()),
        ]);
    }
    Ok(template)
}

fn elliptic(kind: KeyType, oid: &[u8], operation: Operation, keys: &Keys) -> [Attribute; 3] {
    let pair = keys.pair(operation.algorithm);
    let value = if is_private(operation) {
        Attribute::Value(pair.private_bytes().to_vec())
    } else {
        // CKA_EC_POINT is the point wrapped in an octet string (PKCS #11 v3.2, EC public key
        // objects).
        Attribute::EcPoint(octet_string(pair.public_bytes()))
    };
    [
        Attribute::KeyType(kind),
        Attribute::EcParams(oid.to_vec()),
        value,
    ]
}

/// The expanded private key, since tokens need not accept its seed (PKCS #11 v3.2, `CKA_SEED` of
/// ML-DSA private keys).
fn ml_dsa_key(
    parameters: MlDsa,
    operation: Operation,
    keys: &Keys,
) -> Result<[Attribute; 3], DeviceError> {
    let pair = keys.pair(operation.algorithm);
    let set = match parameters {
        MlDsa::MlDsa44 => MlDsaParameterSetType::ML_DSA_44,
        MlDsa::MlDsa65 => MlDsaParameterSetType::ML_DSA_65,
        MlDsa::MlDsa87 => MlDsaParameterSetType::ML_DSA_87,
    };
    let value = if is_private(operation) {
        ml_dsa::expanded(parameters, pair.private)?.to_vec()
    } else {
        pair.public.to_vec()
    };
    Ok([
        Attribute::KeyType(KeyType::ML_DSA),
        Attribute::ParameterSet(set.into()),
        Attribute::Value(value),
    ])
}

fn ml_kem(parameters: MlKem, operation: Operation, keys: &Keys) -> [Attribute; 3] {
    let pair = keys.pair(operation.algorithm);
    let set = match parameters {
        MlKem::MlKem512 => MlKemParameterSetType::ML_KEM_512,
        MlKem::MlKem768 => MlKemParameterSetType::ML_KEM_768,
        MlKem::MlKem1024 => MlKemParameterSetType::ML_KEM_1024,
    };
    let value = if is_private(operation) {
        pair.private
    } else {
        pair.public
    };
    [
        Attribute::KeyType(KeyType::ML_KEM),
        Attribute::ParameterSet(set.into()),
        Attribute::Value(value.to_vec()),
    ]
}

/// Object identifiers in DER: prime256v1 and secp384r1 (RFC 5480 §2.1.1.1), secp256k1 (SEC 2
/// §A.2.1), id-Ed25519 (RFC 8410 §3).
fn curve_oid(curve: Curve) -> &'static [u8] {
    match curve {
        Curve::P256 => &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
        Curve::P384 => &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22],
        Curve::Secp256k1 => &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x0a],
    }
}

const ED25519: &[u8] = &[0x06, 0x03, 0x2b, 0x65, 0x70];

/// Encodes an octet string of less than 128 bytes, such as every point here.
fn octet_string(bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len())
        .ok()
        .filter(|length| *length < 128);
    let mut der = vec![
        0x04,
        length.expect("a point of P-384 has 97 bytes, and none has more"),
    ];
    der.extend_from_slice(bytes);
    der
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_use(operation: &str, keys: &Keys) -> Option<KeyUse> {
        KeyUse::of(Operation::parse(operation).expect("an operation"), keys)
    }

    #[test]
    fn only_operations_with_the_same_key_share_an_object() {
        let keys = Keys::new(1);
        let shared = |one, other| key_use(one, &keys) == key_use(other, &keys);
        assert!(shared("rsa-2048-pss sign", "rsa-2048-pkcs1 sign"));
        assert!(!shared("rsa-2048-pss sign", "rsa-2048-oaep decrypt"));
        assert!(!shared("rsa-2048-pss sign", "rsa-2048-pss verify"));
        assert!(!shared("rsa-2048-pss sign", "rsa-3072-pss sign"));
        assert!(!shared("aes-128-gcm encrypt", "aes-128-gcm decrypt"));
        assert!(!shared("aes-128-gcm encrypt", "aes-128-ctr encrypt"));
    }

    #[test]
    fn every_template_asks_for_one_usage() {
        let keys = Keys::new(1);
        let is_usage = |attribute: &&Attribute| {
            matches!(
                attribute,
                Attribute::Encrypt(true)
                    | Attribute::Decrypt(true)
                    | Attribute::Sign(true)
                    | Attribute::Verify(true)
                    | Attribute::Encapsulate(true)
                    | Attribute::Decapsulate(true)
            )
        };
        let mut templates = 0;
        for operation in catalog::ALGORITHMS.iter().flat_map(|one| one.operations()) {
            let Ok(template) = template(operation, &keys) else {
                continue;
            };
            assert_eq!(template.iter().filter(is_usage).count(), 1, "{operation}");
            templates += 1;
        }
        assert!(templates > 60, "{templates}");
    }

    #[test]
    fn a_seed_gives_a_different_key_in_each_parameter_set() {
        let keys = Keys::of_pair(vec![7; 32], Vec::new());
        let sets = ["ml-dsa-44 sign", "ml-dsa-65 sign", "ml-dsa-87 sign"];
        let uses = sets.map(|set| key_use(set, &keys));
        assert!(uses[0] != uses[1] && uses[1] != uses[2] && uses[0] != uses[2]);
    }
}
