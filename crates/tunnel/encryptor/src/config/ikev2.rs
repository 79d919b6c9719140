//! `keys.ike` of a peer.

use super::context::Context;
use super::declared::IKE;
use super::ppk::ppks;
use super::types::{Ike, IkeRole, Kind, Lifetime};
use crate::ike_suite::child_cipher;
use ike::crypto::{Cipher, Integrity, KeMethodKind, Prf};
use ike::message::{Identity, IdentityType};
use ike::session::{ADDITIONAL_MAX, IkeSuite};
use std::path::PathBuf;
use units::Bytes;
use yaml::{Map, Node, Reported};

/// The longest identity, as for names in certificates.
const IDENTITY_BYTES_MAX: usize = 255;
/// A proposal has a number of one byte, and most peers refuse long lists.
const PROPOSALS_MAX: usize = 16;

pub(super) fn read(node: Node<'_>, context: &Context<'_, '_>) -> Result<Ike, Reported> {
    // Returned at the end, so that mistakes within `ike` are reported as well.
    let unsuitable = unsuitable(node, context);
    let read = node.keys(IKE, |map| {
        let identity = map.required("identity").and_then(read_identity);
        let peer = map.required("peer").and_then(read_identity);
        let psk = map.find::<PathBuf>("psk");
        let crls = map.with_default("crl", Vec::new(), |node| node.one_or_many(Node::path));
        let certified = certified(map, psk.as_ref().is_ok_and(Option::is_none), context);
        let proposals = map.read("proposals", proposals);
        let ppks = map.with_default("ppk", Vec::new(), |node| ppks(node, context.folder));
        let role = map.read("role", |node| node.one_of("role", &IkeRole::NAMES));
        let (every, ike_every, idle) = (map.get("every"), map.get("ike_every"), map.get("idle"));
        let (bytes, packets) = (map.find("bytes"), map.find("packets"));
        certified?;
        Ok(Ike {
            identity: identity?,
            peer: peer?,
            psk: psk?.map(|it| context.folder.join(it)),
            crls: crls?
                .into_iter()
                .map(|it| context.folder.join(it))
                .collect(),
            proposals: proposals?,
            ppks: ppks?,
            role: role?,
            every: every?,
            ike_every: ike_every?,
            lifetime: Lifetime {
                bytes: bytes?.map(Bytes::get),
                packets: packets?,
            },
            idle: idle?,
        })
    });
    unsuitable.map_or(read, Err)
}

/// Whether certificates are there if they are to be used, and no key that needs them otherwise.
fn certified(
    map: &Map<'_>,
    has_certificates: bool,
    context: &Context<'_, '_>,
) -> Result<(), Reported> {
    match map.optional("crl") {
        _ if has_certificates && !context.has_identity => Err(map.node().mistake(
            "neither a shared key nor a certificate proves this gateway's identity",
            "write `psk: FILE` (`cipherbench keys ppk` makes one), or `identity: { certificate: …, \
             key: …, ca: … }` at the top of the file",
        )),
        Some(node) if !has_certificates => Err(node.mistake(
            "`crl` does nothing: the peer has a shared key, and no certificate",
            "remove it, or `psk`",
        )),
        _ => Ok(()),
    }
}

/// What IKE cannot be used with.
fn unsuitable(node: Node<'_>, context: &Context<'_, '_>) -> Option<Reported> {
    // Values that could not be read have been reported themselves.
    if matches!(context.kind, Ok(Kind::L2 | Kind::L2tpv3)) {
        return Some(node.mistake(
            "IKE negotiates tunnels of IP packets, not of frames",
            "write `mode: l3`, or `keys: { handshake: … }`",
        ));
    }
    if context.aggregate == Ok(true) {
        return Some(node.mistake(
            "`aggregate` is not negotiated by this version's IKE (USE_AGGFRAG, RFC 9347 §5.1)",
            "remove `aggregate`, or write `keys: { handshake: … }`",
        ));
    }
    if let Ok(workers @ 2..) = context.workers {
        return Some(node.mistake(
            format!("a tunnel with IKE has one child SA, but there are {workers} workers"),
            "write `workers: 1`, or `keys: { handshake: … }`",
        ));
    }
    match context.suite {
        Ok(suite) if child_cipher(suite).is_none() => Some(node.mistake(
            format!("IKE does not negotiate the suite {suite}"),
            "use AES-GCM, ChaCha20-Poly1305, or AES-CBC with SHA-1, SHA-256 or SHA-512",
        )),
        _ => None,
    }
}

/// An address, `user@domain`, or a domain name.
fn read_identity(node: Node<'_>) -> Result<Identity, Reported> {
    let text = node.text()?;
    let fits = |byte: u8| byte.is_ascii_graphic();
    if text.is_empty() || text.len() > IDENTITY_BYTES_MAX || !text.bytes().all(fits) {
        return Err(node.mistake(
            format!("`{text}` is not an identity"),
            "write a domain name (`gw1.example`), `user@domain` or an address, without spaces",
        ));
    }
    let identity = |kind, data: &[u8]| Identity {
        kind,
        data: data.to_vec(),
    };
    Ok(match text.parse() {
        Ok(address) => Identity::address(address),
        Err(_) if text.contains('@') => identity(IdentityType::RFC822_ADDR, text.as_bytes()),
        Err(_) => identity(IdentityType::FQDN, text.as_bytes()),
    })
}

fn proposals(node: Node<'_>) -> Result<Vec<IkeSuite>, Reported> {
    let proposals = node.one_or_many(|node| {
        let text = node.text()?;
        proposal(text).map_err(|what| {
            node.mistake(
                format!("the proposal `{text}` {what}"),
                "write for example `aes256gcm16-prfsha384-x25519-ke1_mlkem768`, \
                 `aes256gcm16-prfsha384-x25519` or `aes256-sha256-ecp256`",
            )
        })
    })?;
    if proposals.is_empty() || proposals.len() > PROPOSALS_MAX {
        return Err(node.mistake(
            format!("there are {} proposals", proposals.len()),
            format!("write 1 to {PROPOSALS_MAX}"),
        ));
    }
    Ok(proposals)
}

/// Reads a proposal; the error continues a sentence about it.
fn proposal(text: &str) -> Result<IkeSuite, String> {
    let mut encryption = None;
    let mut integrity = None;
    let mut prf = None;
    let mut exchange = None;
    let mut additional = [None; ADDITIONAL_MAX];
    for token in text.split('-') {
        let is_repeated = if let Some(found) = encryption_of(token) {
            encryption.replace(found).is_some()
        } else if let Some(found) = integrity_of(token) {
            integrity.replace(found).is_some()
        } else if let Some(found) = prf_of(token) {
            prf.replace(found).is_some()
        } else if let Some(found) = exchange_of(token) {
            exchange.replace(found).is_some()
        } else {
            let found =
                additional_of(token).ok_or_else(|| format!("has an unknown part `{token}`"))?;
            let (place, kind) = found;
            additional[place].replace(kind).is_some()
        };
        if is_repeated {
            return Err(format!("has a second algorithm of one kind, `{token}`"));
        }
    }
    let encryption = encryption.ok_or("has no cipher")?;
    let exchange = exchange.ok_or("has no key exchange")?;
    let (cipher, usual_prf) = match (encryption, integrity) {
        (Encryption::Aead(cipher), None) => (cipher, None),
        (Encryption::Aead(_), Some(_)) => {
            return Err("has a cipher with integrity, and another integrity".to_owned());
        }
        (Encryption::Cbc(_), None) => return Err("has no integrity".to_owned()),
        (Encryption::Cbc(key_bits), Some((integrity, prf))) => {
            let cipher = Cipher::AesCbc {
                key_bits,
                integrity,
            };
            (cipher, Some(prf))
        }
    };
    let prf = prf.or(usual_prf).ok_or("has no pseudo-random function")?;
    // Without gaps, as the exchanges follow each other.
    if additional
        .windows(2)
        .any(|pair| pair[0].is_none() && pair[1].is_some())
    {
        return Err("has additional key exchanges with a gap".to_owned());
    }
    Ok(IkeSuite {
        cipher,
        prf,
        exchange,
        additional,
    })
}

#[derive(Clone, Copy)]
enum Encryption {
    Aead(Cipher),
    Cbc(u16),
}

fn encryption_of(token: &str) -> Option<Encryption> {
    let gcm = |key_bits| Some(Encryption::Aead(Cipher::AesGcm16 { key_bits }));
    match token {
        "aes128gcm16" => gcm(128),
        "aes192gcm16" => gcm(192),
        "aes256gcm16" => gcm(256),
        "chacha20poly1305" => Some(Encryption::Aead(Cipher::ChaCha20Poly1305)),
        "aes128" => Some(Encryption::Cbc(128)),
        "aes192" => Some(Encryption::Cbc(192)),
        "aes256" => Some(Encryption::Cbc(256)),
        _ => None,
    }
}

fn integrity_of(token: &str) -> Option<(Integrity, Prf)> {
    match token {
        "sha1" => Some((Integrity::HmacSha1, Prf::HmacSha1)),
        "sha256" => Some((Integrity::HmacSha256, Prf::HmacSha256)),
        "sha384" => Some((Integrity::HmacSha384, Prf::HmacSha384)),
        "sha512" => Some((Integrity::HmacSha512, Prf::HmacSha512)),
        _ => None,
    }
}

fn prf_of(token: &str) -> Option<Prf> {
    match token {
        "prfsha1" => Some(Prf::HmacSha1),
        "prfsha256" => Some(Prf::HmacSha256),
        "prfsha384" => Some(Prf::HmacSha384),
        "prfsha512" => Some(Prf::HmacSha512),
        _ => None,
    }
}

fn exchange_of(token: &str) -> Option<KeMethodKind> {
    match token {
        "x25519" | "curve25519" => Some(KeMethodKind::X25519),
        "ecp256" => Some(KeMethodKind::P256),
        "ecp384" => Some(KeMethodKind::P384),
        "ecp521" => Some(KeMethodKind::P521),
        "mlkem512" => Some(KeMethodKind::MlKem512),
        "mlkem768" => Some(KeMethodKind::MlKem768),
        "mlkem1024" => Some(KeMethodKind::MlKem1024),
        _ => None,
    }
}

/// The place among the additional exchanges, and the exchange.
fn additional_of(token: &str) -> Option<(usize, KeMethodKind)> {
    let (place, name) = token.strip_prefix("ke")?.split_once('_')?;
    let place: usize = place.parse().ok()?;
    let place = place.checked_sub(1).filter(|it| *it < ADDITIONAL_MAX)?;
    Some((place, exchange_of(name)?))
}
