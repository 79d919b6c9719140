//! Reads how a station agrees on keys with one gateway alone.

use plan::{
    Form, GatewayPeer, IkePeer, IkeSecrets, LinkForm, WORD_CHARS_MAX, WireGuardPeer,
    is_wireguard_key, is_word,
};
use std::path::PathBuf;
use yaml::{Map, Node, Reported};

/// Reads `gateway` of a device with packets of this form, and whether they are in UDP.
pub(super) fn read(node: Node<'_>, form: LinkForm) -> Result<(GatewayPeer, bool), Reported> {
    match form {
        LinkForm::Sealed(Form::Esp) => node.map(|map| {
            let (peer, udp) = (read_ike(map), map.with_default("udp", true, Node::bool));
            Ok((GatewayPeer::Ike(peer?), udp?))
        }),
        LinkForm::Sealed(Form::WireGuard) => {
            let peer = node.map(read_wireguard)?;
            Ok((GatewayPeer::WireGuard(peer), true))
        }
        other => {
            let what = format!(
                "a station cannot be the peer of a gateway that sends {} frames",
                other.name()
            );
            Err(node.mistake(
                what,
                "write `form: esp` or `form: wireguard`, or measure two boxes",
            ))
        }
    }
}

fn read_ike(map: &Map<'_>) -> Result<IkePeer, Reported> {
    let word = |key| map.with_default(key, None, |node| read_word(node).map(Some));
    let (own_id, box_id) = (word("own_id"), word("box_id"));
    let proposal = map.with_default("ike", None, |node| {
        let proposal = read_word(node)?;
        // strongSwan takes a list here, and the report could not say which one was in force.
        if proposal.contains(',') {
            Err(node.mistake(
                "which of several proposals is used would be the gateway's choice",
                "write one",
            ))
        } else {
            Ok(Some(proposal))
        }
    });
    let ml_kem = map.with_default("ml_kem", false, Node::bool);
    let any_address = map.with_default("selectors", false, |node| {
        node.one_of("selectors", &[("test-networks", false), ("any", true)])
    });
    let box_initiates = map.with_default("initiator", false, |node| {
        node.one_of("initiator", &[("station", false), ("box", true)])
    });
    let (auth, ppk) = (read_auth(map), read_ppk(map));
    let peer = IkePeer {
        auth: auth?,
        ppk: ppk?,
        own_id: own_id?,
        box_id: box_id?,
        proposal: proposal?,
        ml_kem: ml_kem?,
        any_address: any_address?,
        box_initiates: box_initiates?,
    };
    if let (Some(node), Some(_)) = (map.optional("ml_kem"), &peer.proposal) {
        let what = "`ike` already says what is exchanged";
        return Err(node.mistake(
            what,
            "write `ke1_mlkem768` in `ike`, and leave `ml_kem` out",
        ));
    }
    Ok(peer)
}

fn read_auth(map: &Map<'_>) -> Result<IkeSecrets, Reported> {
    let path = |key| map.with_default(key, None, |node| node.path().map(Some));
    // All are requested, so that a mixture of both ways is reported as one, not as unknown keys.
    let files = [
        path("psk_file"),
        path("ca_file"),
        path("certificate_file"),
        path("key_file"),
    ];
    let [psk, authority, certificate, key] = files;
    match (psk?, authority?, certificate?, key?) {
        (Some(psk), None, None, None) => Ok(IkeSecrets::Psk(psk)),
        (None, Some(authority), Some(certificate), Some(key)) => Ok(IkeSecrets::Certificates {
            authority,
            certificate,
            key,
        }),
        _ => Err(map.node().mistake(
            "it is not clear how the station and the gateway authenticate",
            "write `psk_file`; or `ca_file`, `certificate_file` and `key_file`",
        )),
    }
}

fn read_ppk(map: &Map<'_>) -> Result<Option<(PathBuf, String)>, Reported> {
    let file = map.with_default("ppk_file", None, |node| node.path().map(Some));
    let id = map.with_default("ppk_id", None, |node| read_word(node).map(Some));
    match (file?, id?) {
        (Some(file), Some(id)) => Ok(Some((file, id))),
        (None, None) => Ok(None),
        _ => Err(map.node().mistake(
            "a post-quantum pre-shared key needs its file and its identity",
            "write `ppk_file` and `ppk_id`",
        )),
    }
}

fn read_wireguard(map: &Map<'_>) -> Result<WireGuardPeer, Reported> {
    let key_file = map.required("key_file").and_then(Node::path);
    let box_public_key = map.required("box_public_key").and_then(|node| {
        let key = node.text()?;
        if is_wireguard_key(key) {
            Ok(key.to_owned())
        } else {
            Err(node.mistake(
                "this is no public key of WireGuard",
                "write the 44 characters that `wg pubkey` prints",
            ))
        }
    });
    let psk_file = map.with_default("psk_file", None, |node| node.path().map(Some));
    Ok(WireGuardPeer {
        key_file: key_file?,
        box_public_key: box_public_key?,
        psk_file: psk_file?,
    })
}

/// Reads a word for strongSwan's configuration file, which has it in quotes.
fn read_word(node: Node<'_>) -> Result<String, Reported> {
    let word = node.text()?.trim();
    if !is_word(word) {
        let help =
            format!("write 1 to {WORD_CHARS_MAX} characters, without quotes and backslashes");
        return Err(node.mistake("this is no identity or proposal", help));
    }
    Ok(word.to_owned())
}
