//! `keys.ike` of a peer.

use super::context::Context;
use super::declared::IKE;
use super::ppk::ppks;
use super::types::{Ike, IkeRole, Kind, Lifetime};
use crate::ike_suite::child_cipher;
use ike::message::Identity;
use ike::session::IkeSuite;
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
    Ok(Identity::of_text(text))
}

fn proposals(node: Node<'_>) -> Result<Vec<IkeSuite>, Reported> {
    let proposals = node.one_or_many(|node| {
        let text = node.text()?;
        text.parse::<IkeSuite>().map_err(|what| {
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
