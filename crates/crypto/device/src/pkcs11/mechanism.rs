//! Mechanisms of operations, and the calls.

use std::sync::Arc;

use aws_lc_rs::digest::{self, digest};
use base16ct::lower::encode_string;
use cryptoki::context::Function;
use cryptoki::error::{Error, RvError};
use cryptoki::mechanism::aead::GcmParams;
use cryptoki::mechanism::dsa::{HedgeType, SignAdditionalContext};
use cryptoki::mechanism::eddsa::{EddsaParams, EddsaSignatureScheme};
use cryptoki::mechanism::rsa::{PkcsMgfType, PkcsOaepParams, PkcsOaepSource, PkcsPssParams};
use cryptoki::mechanism::vendor_defined::VendorDefinedMechanism;
use cryptoki::mechanism::{Mechanism, MechanismInfo, MechanismType};
use cryptoki::object::{Attribute, KeyType, ObjectClass, ObjectHandle};
use cryptoki::session::Session as Connection;
use cryptoki::types::Ulong;

use super::key::KeyObject;
use super::raw::{CallError, Functions, Keyed};
use super::{describe, failed};
use crate::case::signature_bytes;
use crate::{DeviceError, Job, Keys};
use catalog::Operation;
use catalog::{Action, Cipher, Curve, Family, Hash, Mode, Padding};

const GCM_TAG_BITS: u64 = 128;

/// The mechanisms of a token.
pub(super) struct Mechanisms(pub(super) Vec<(MechanismType, MechanismInfo)>);

impl Mechanisms {
    /// Returns the token's information on a mechanism; `None` if it lacks it.
    fn get(&self, kind: MechanismType) -> Option<&MechanismInfo> {
        let found = self.0.iter().find(|(other, _)| *other == kind);
        found.map(|(_, info)| info)
    }
}

/// A mechanism with its parameters, and the digest computed by the host.
pub(super) struct Call {
    mechanism: Chosen,
    /// The digest that the host computes, if the token signs digests only.
    host_digest: Option<&'static digest::Algorithm>,
}

enum Chosen {
    /// With parameters without pointers.
    Plain(Mechanism<'static>),
    Ctr(CtrParams),
    Gcm {
        nonce: Vec<u8>,
        aad: Vec<u8>,
    },
}

/// `CK_AES_CTR_PARAMS` (PKCS #11 v3.1 §6.12.3), which the binding lacks.
#[repr(C)]
struct CtrParams {
    counter_bits: Ulong,
    block: [u8; 16],
}

impl Call {
    /// Selects the mechanism for an operation.
    ///
    /// # Errors
    /// [`DeviceError::NotOffered`]: PKCS#11, this program, or the token lacks it.
    pub(super) fn of(
        mechanisms: &Mechanisms,
        operation: Operation,
        keys: &Keys,
    ) -> Result<Self, DeviceError> {
        let algorithm = operation.algorithm;
        let mut host_digest = None;
        let mechanism = match algorithm.family() {
            Family::Digest(hash) => {
                Chosen::Plain(digest_mechanism(hash).ok_or_else(unknown(operation))?)
            }
            Family::Hmac(hash) => {
                Chosen::Plain(hmac_mechanism(hash).ok_or_else(unknown(operation))?)
            }
            Family::Mac(Cipher::Aes128 | Cipher::Aes192 | Cipher::Aes256) => {
                Chosen::Plain(Mechanism::AesCMac)
            }
            Family::Cipher(cipher, mode) => {
                let nonce = keys.secret(algorithm).nonce;
                cipher_mechanism(cipher, mode, &nonce).ok_or_else(unknown(operation))?
            }
            Family::Gcm(_) => {
                let secret = keys.secret(algorithm);
                Chosen::Gcm {
                    nonce: secret.nonce,
                    aad: secret.aad,
                }
            }
            Family::Rsa(_, padding) => Chosen::Plain(rsa_mechanism(padding, operation.action)),
            Family::Ecdsa(curve) => {
                // Many tokens sign digests only. The host then hashes, as applications do.
                let (whole, hash) = ecdsa_mechanism(curve);
                match mechanisms.get(whole.mechanism_type()) {
                    Some(_) => Chosen::Plain(whole),
                    None => {
                        host_digest = Some(hash);
                        Chosen::Plain(Mechanism::Ecdsa)
                    }
                }
            }
            Family::Ed25519 => Chosen::Plain(Mechanism::Eddsa(EddsaParams::new(
                EddsaSignatureScheme::Ed25519,
            ))),
            Family::MlDsa(_) => {
                // Hedged as by default in FIPS 204, so signatures are verified, not compared.
                let context = SignAdditionalContext::new(HedgeType::Preferred, None);
                Chosen::Plain(Mechanism::MlDsa(context))
            }
            Family::MlKem(_) => Chosen::Plain(Mechanism::MlKem),
            _ => return Err(unknown(operation)()),
        };
        let kind = mechanism.kind();
        let info = mechanisms
            .get(kind)
            .ok_or_else(|| DeviceError::NotOffered(format!("the token has no {kind}")))?;
        allows(info, kind, operation)?;
        Ok(Self {
            mechanism,
            host_digest,
        })
    }
}

fn unknown(operation: Operation) -> impl Fn() -> DeviceError {
    move || {
        DeviceError::NotOffered(format!(
            "no mechanism for {} is implemented",
            operation.algorithm
        ))
    }
}

/// Checks that the token has the mechanism for this action and key length.
fn allows(
    info: &MechanismInfo,
    kind: MechanismType,
    operation: Operation,
) -> Result<(), DeviceError> {
    let family = operation.algorithm.family();
    let allowed = match (family, operation.action) {
        (Family::Digest(_), _) => info.digest(),
        (Family::MlKem(_), Action::Encrypt) => info.encapsulate(),
        (Family::MlKem(_), Action::Decrypt) => info.decapsulate(),
        (_, Action::Digest | Action::Sign) => info.sign(),
        (_, Action::Encrypt) => info.encrypt(),
        (_, Action::Decrypt) => info.decrypt(),
        (_, Action::Verify) => info.verify(),
    };
    if !allowed {
        let action = operation.action.name();
        return Err(DeviceError::NotOffered(format!(
            "the token has {kind}, but not to {action}"
        )));
    }
    if let Family::Rsa(bits, _) = family {
        let bits = usize::from(bits);
        let (least, most) = (info.min_key_size(), info.max_key_size());
        // Some tokens report 0 for no limit.
        if bits < least || (most > 0 && bits > most) {
            return Err(DeviceError::NotOffered(format!(
                "the token has {kind} for keys of {least} to {most} bits"
            )));
        }
    }
    Ok(())
}

fn digest_mechanism(hash: Hash) -> Option<Mechanism<'static>> {
    Some(match hash {
        Hash::Sha1 => Mechanism::Sha1,
        Hash::Sha224 => Mechanism::Sha224,
        Hash::Sha256 => Mechanism::Sha256,
        Hash::Sha384 => Mechanism::Sha384,
        Hash::Sha512 => Mechanism::Sha512,
        _ => return None,
    })
}

fn hmac_mechanism(hash: Hash) -> Option<Mechanism<'static>> {
    Some(match hash {
        Hash::Sha1 => Mechanism::Sha1Hmac,
        Hash::Sha224 => Mechanism::Sha224Hmac,
        Hash::Sha256 => Mechanism::Sha256Hmac,
        Hash::Sha384 => Mechanism::Sha384Hmac,
        Hash::Sha512 => Mechanism::Sha512Hmac,
        _ => return None,
    })
}

fn cipher_mechanism(cipher: Cipher, mode: Mode, nonce: &[u8]) -> Option<Chosen> {
    let aes = matches!(cipher, Cipher::Aes128 | Cipher::Aes192 | Cipher::Aes256);
    Some(Chosen::Plain(match (cipher, mode) {
        (_, Mode::Ecb) if aes => Mechanism::AesEcb,
        (_, Mode::Cbc) if aes => Mechanism::AesCbc(nonce.try_into().ok()?),
        (_, Mode::CbcPad) if aes => Mechanism::AesCbcPad(nonce.try_into().ok()?),
        (_, Mode::Ctr) if aes => {
            let block = nonce.try_into().ok()?;
            return Some(Chosen::Ctr(CtrParams {
                // The whole block counts, as in our engines and OpenSSL; a shorter counter would
                // wrap earlier.
                counter_bits: Ulong::new(128),
                block,
            }));
        }
        (Cipher::Des, Mode::Cbc) => Mechanism::DesCbc(nonce.try_into().ok()?),
        (Cipher::TripleDes, Mode::Cbc) => Mechanism::Des3Cbc(nonce.try_into().ok()?),
        _ => return None,
    }))
}

fn rsa_mechanism(padding: Padding, action: Action) -> Mechanism<'static> {
    let oaep = |hash, mask| {
        Mechanism::RsaPkcsOaep(PkcsOaepParams::new(hash, mask, PkcsOaepSource::empty()))
    };
    match (padding, action) {
        (Padding::Pkcs1, Action::Encrypt | Action::Decrypt) => Mechanism::RsaPkcs,
        (Padding::Pkcs1, _) => Mechanism::Sha256RsaPkcs,
        (Padding::Pkcs1Sha1, _) => Mechanism::Sha1RsaPkcs,
        (Padding::Oaep, _) => oaep(MechanismType::SHA1, PkcsMgfType::MGF1_SHA1),
        (Padding::OaepSha256, _) => oaep(MechanismType::SHA256, PkcsMgfType::MGF1_SHA256),
        (Padding::Pss, _) => Mechanism::Sha256RsaPkcsPss(PkcsPssParams {
            hash_alg: MechanismType::SHA256,
            mgf: PkcsMgfType::MGF1_SHA256,
            s_len: Ulong::new(32),
        }),
    }
}

/// Returns the mechanism for whole messages, and the digest for tokens that sign digests only.
fn ecdsa_mechanism(curve: Curve) -> (Mechanism<'static>, &'static digest::Algorithm) {
    match curve {
        Curve::P256 | Curve::Secp256k1 => (Mechanism::EcdsaSha256, &digest::SHA256),
        Curve::P384 => (Mechanism::EcdsaSha384, &digest::SHA384),
    }
}

impl Chosen {
    fn kind(&self) -> MechanismType {
        match self {
            Self::Plain(mechanism) => mechanism.mechanism_type(),
            Self::Ctr(_) => MechanismType::AES_CTR,
            Self::Gcm { .. } => MechanismType::AES_GCM,
        }
    }

    /// Runs one call with the mechanism.
    fn with<T>(
        &mut self,
        call: impl FnOnce(&Mechanism) -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        match self {
            Self::Plain(mechanism) => call(mechanism),
            Self::Ctr(params) => {
                let mechanism = VendorDefinedMechanism::new(MechanismType::AES_CTR, Some(&*params));
                call(&Mechanism::VendorDefined(mechanism))
            }
            Self::Gcm { nonce, aad } => {
                // Some tokens write the IV that they chose over this one.
                let mut iv = nonce.clone();
                let params = GcmParams::new(&mut iv, aad, Ulong::new(GCM_TAG_BITS))?;
                let result = call(&Mechanism::AesGcm(params));
                if iv == *nonce {
                    return result;
                }
                Err(CallError::Wrong(DeviceError::NotOffered(format!(
                    "the token ignores the IV that it is given for CKM_AES_GCM, and returns one of its own ({}, not \
                     {}): without a known IV its results cannot be compared",
                    encode_string(&iv),
                    encode_string(nonce)
                ))))
            }
        }
    }
}

/// A job with a token.
pub(super) struct TokenJob<'a> {
    functions: &'a Functions,
    connection: &'a Connection,
    operation: Operation,
    call: Call,
    /// `None` for digests.
    key: Option<Arc<KeyObject>>,
}

impl<'a> TokenJob<'a> {
    /// Prepares the job.
    ///
    /// # Errors
    /// [`DeviceError::NotOffered`]: the token has the mechanism but rejects these parameters.
    pub(super) fn new(
        functions: &'a Functions,
        connection: &'a Connection,
        operation: Operation,
        call: Call,
        key: Option<Arc<KeyObject>>,
    ) -> Result<Self, DeviceError> {
        let mut job = Self {
            functions,
            connection,
            operation,
            call,
            key,
        };
        // Only an attempt shows some limits: tokens do not list their hashes for these paddings,
        // nor whether they accept an IV.
        let is_hidden = match operation.algorithm.family() {
            Family::Rsa(_, padding) => {
                matches!(padding, Padding::Oaep | Padding::OaepSha256 | Padding::Pss)
            }
            Family::Gcm(_) => operation.action == Action::Encrypt,
            _ => false,
        };
        if is_hidden
            && let Err(error) = job.call(&[], &mut Vec::new())
            && let error @ DeviceError::NotOffered(_) = fault(error)
        {
            return Err(error);
        }
        Ok(job)
    }

    /// Calls the token. The result of a verification is empty.
    fn call(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<(), CallError> {
        let (functions, connection) = (self.functions, self.connection);
        let Some(key) = self.key.as_ref().map(|key| key.handle()) else {
            return self
                .call
                .mechanism
                .with(|mechanism| functions.digest(connection, mechanism, input, output));
        };
        let host_digest = self.call.host_digest;
        let signed = |message: &[u8]| host_digest.map(|algorithm| digest(algorithm, message));
        let mechanism = &mut self.call.mechanism;
        let is_kem = matches!(self.operation.algorithm.family(), Family::MlKem(_));
        let mut keyed = |what, input: &[u8]| {
            mechanism
                .with(|mechanism| functions.keyed(what, connection, mechanism, key, input, output))
        };
        match self.operation.action {
            Action::Encrypt if is_kem => {
                let secret = mechanism.with(|mechanism| {
                    functions.encapsulate(connection, mechanism, key, &SECRET, output)
                })?;
                take_secret(functions, connection, secret, output)
            }
            Action::Decrypt if is_kem => {
                let secret = mechanism.with(|mechanism| {
                    Ok(connection.decapsulate_key(mechanism, key, &SECRET, input)?)
                })?;
                take_secret(functions, connection, secret, output)
            }
            Action::Encrypt => keyed(Keyed::Encrypt, input),
            Action::Decrypt => keyed(Keyed::Decrypt, input),
            Action::Digest | Action::Sign => {
                let digest = signed(input);
                keyed(Keyed::Sign, digest.as_ref().map_or(input, AsRef::as_ref))
            }
            Action::Verify => {
                let bytes = signature_bytes(self.operation).unwrap_or_default();
                let (signature, message) = input.split_at(bytes.min(input.len()));
                let digest = signed(message);
                let message = digest.as_ref().map_or(message, AsRef::as_ref);
                mechanism
                    .with(|mechanism| Ok(connection.verify(mechanism, key, message, signature)?))
            }
        }
    }
}

/// Template of a KEM's shared secret in the token, with the attributes required to read it.
const SECRET: [Attribute; 5] = [
    Attribute::Class(ObjectClass::SECRET_KEY),
    Attribute::KeyType(KeyType::GENERIC_SECRET),
    Attribute::Token(false),
    Attribute::Sensitive(false),
    Attribute::Extractable(true),
];

/// Appends a shared secret to `output` and destroys it in the token.
fn take_secret(
    functions: &Functions,
    connection: &Connection,
    secret: ObjectHandle,
    output: &mut Vec<u8>,
) -> Result<(), CallError> {
    let read = functions.value(connection, secret, output);
    // Also if it could not be read: each operation makes an object, and the room in a token is
    // limited.
    connection.destroy_object(secret)?;
    read
}

impl Job for TokenJob<'_> {
    fn run(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<bool, DeviceError> {
        output.clear();
        match self.call(input, output) {
            Ok(()) => Ok(true),
            Err(error) => {
                output.clear();
                if refuses(self.operation, &error) {
                    return Ok(false);
                }
                Err(fault(error))
            }
        }
    }
}

/// Converts an error that is not due to the input.
fn fault(error: CallError) -> DeviceError {
    let error = match error {
        CallError::Wrong(error) => return error,
        CallError::Reported(error) => error,
    };
    let is_unsupported = match &error {
        // Tokens that list no key lengths for a mechanism report them only now.
        Error::Pkcs11(RvError::KeySizeRange | RvError::MechanismParamInvalid, _) => true,
        // SoftHSM2 returns this for hashes that it lacks in OAEP, before the operation starts.
        Error::Pkcs11(RvError::ArgumentsBad | RvError::MechanismInvalid, function) => matches!(
            function,
            Function::EncryptInit
                | Function::DecryptInit
                | Function::SignInit
                | Function::VerifyInit
        ),
        _ => false,
    };
    if is_unsupported {
        return DeviceError::NotOffered(format!(
            "the token rejects these parameters: {}",
            describe(&error)
        ));
    }
    failed(&error)
}

/// Whether an error means that the input is not authentic or not well-formed, rather than a
/// failure. SoftHSM2 returns CKR_GENERAL_ERROR for a wrong tag or padding, and so does a failing
/// token: trials distinguish them by the token's next operation.
fn refuses(operation: Operation, error: &CallError) -> bool {
    matches!(
        (operation.action, error.code()),
        (
            Action::Verify,
            Some(RvError::SignatureInvalid | RvError::SignatureLenRange)
        ) | (
            Action::Encrypt | Action::Decrypt,
            Some(
                RvError::DataInvalid
                    | RvError::DataLenRange
                    | RvError::EncryptedDataInvalid
                    | RvError::EncryptedDataLenRange
                    | RvError::WrappedKeyInvalid
                    | RvError::WrappedKeyLenRange
            )
        )
    )
}
