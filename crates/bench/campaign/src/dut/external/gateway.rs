//! Reads how a station agrees on keys with one gateway alone.

use super::declared::{IKE, INITIATORS, SELECTORS, WIREGUARD};
use crate::words::path;
use plan::{
    Form, GatewayPeer, IkePeer, IkeSecrets, LinkForm, WORD_CHARS_MAX, WireGuardPeer,
    is_wireguard_key, is_word,
};
use std::path::PathBuf;
use yaml::{Map, Node, Reported};

/// Reads `gateway` of a device with packets of this form, and whether they are in UDP.
pub(super) fn read(node: Node<'_>, form: LinkForm) -> Result<(GatewayPeer, bool), Reported> {
    match form {
        LinkForm::Sealed(Form::Esp) => node.keys(IKE, |map| {
            let (peer, udp) = (read_ike(map), map.get("udp"));
            Ok((GatewayPeer::Ike(peer?), udp?))
        }),
        LinkForm::Sealed(Form::WireGuard) => {
            let peer = node.keys(WIREGUARD, read_wireguard)?;
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
    let (own_id, box_id) = (map.find_with("own_id", word), map.find_with("box_id", word));
    let proposal = map.find_with("ike", |node, text| {
        let proposal = word(node, text)?;
        // strongSwan takes a list here, and the report could not say which one was in force.
        if proposal.contains(',') {
            Err(node.mistake(
                "which of several proposals is used would be the gateway's choice",
                "write one",
            ))
        } else {
            Ok(proposal)
        }
    });
    let ml_kem = map.get("ml_kem");
    let any_address = map.read("selectors", |node| node.one_of("selectors", &SELECTORS));
    let box_initiates = map.read("initiator", |node| node.one_of("initiator", &INITIATORS));
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
    // All are requested, so that a mixture of both ways is reported as one, not as unknown keys.
    let files = [
        map.find_with("psk_file", path),
        map.find_with("ca_file", path),
        map.find_with("certificate_file", path),
        map.find_with("key_file", path),
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
    let (file, id) = (
        map.find_with("ppk_file", path),
        map.find_with("ppk_id", word),
    );
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
    let key_file = map.get_with("key_file", path);
    let box_public_key = map.get_with("box_public_key", |node, key: String| {
        if is_wireguard_key(&key) {
            Ok(key)
        } else {
            Err(node.mistake(
                "this is no public key of WireGuard",
                "write the 44 characters that `wg pubkey` prints",
            ))
        }
    });
    let psk_file = map.find_with("psk_file", path);
    Ok(WireGuardPeer {
        key_file: key_file?,
        box_public_key: box_public_key?,
        psk_file: psk_file?,
    })
}

/// A word for strongSwan's configuration file, which has it in quotes.
fn word(node: Node<'_>, text: String) -> Result<String, Reported> {
    let word = text.trim();
    if !is_word(word) {
        let help =
            format!("write 1 to {WORD_CHARS_MAX} characters, without quotes and backslashes");
        return Err(node.mistake("this is no identity or proposal", help));
    }
    Ok(word.to_owned())
}
