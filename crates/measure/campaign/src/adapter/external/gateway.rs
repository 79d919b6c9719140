//! One gateway alone: what the station in its peer's place needs to agree on keys with it.

use crate::adapter::carrier::{Form, LinkForm};
use crate::adapter::profile::Direction;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use yaml::{Map, Node, Reported};

/// Directions in which one gateway can be loaded.
pub(super) const DIRECTIONS: &[Direction] = &[Direction::Encrypt, Direction::Decrypt];

/// Longest identity, and longest proposal, in characters.
const WORD_CHARS_MAX: usize = 200;
/// Bytes of a key of WireGuard, in base64.
const WIREGUARD_KEY_CHARS: usize = 44;

/// How the station agrees on keys with the gateway. The files are on this machine, for its user
/// alone (mode 600), and are read at each start of the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GatewayPeer {
    /// By IKEv2, of a strongSwan daemon on the station (RFC 7296).
    Ike(IkePeer),
    /// By WireGuard's handshake.
    #[serde(rename = "wireguard")]
    WireGuard(WireGuardPeer),
}

/// The station as an IKEv2 peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IkePeer {
    /// How both authenticate.
    pub auth: IkeSecrets,
    /// File of a post-quantum pre-shared key, and its identity (RFC 8784).
    pub ppk: Option<(PathBuf, String)>,
    /// The station's identity; `None`: its address.
    pub own_id: Option<String>,
    /// The gateway's identity; `None`: its address.
    pub box_id: Option<String>,
    /// Proposal of the IKE SA, in strongSwan's words; `None`: that of the DUT `strongswan`.
    pub proposal: Option<String>,
    /// Whether ML-KEM-768 is added to the key exchange (RFC 9370).
    pub ml_kem: bool,
    /// Whether the traffic selectors are all addresses, and not the test networks.
    pub any_address: bool,
    /// Whether the gateway sets up the tunnels, and not the station.
    pub box_initiates: bool,
}

/// How IKEv2 peers authenticate, and the files for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IkeSecrets {
    /// File with a pre-shared key: its first line.
    Psk(PathBuf),
    /// Certificates in PEM.
    Certificates {
        /// Of the authority that issued the gateway's certificate.
        authority: PathBuf,
        /// The station's.
        certificate: PathBuf,
        /// The station's private key.
        key: PathBuf,
    },
}

/// The station as a WireGuard peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireGuardPeer {
    /// File with the station's private key, as `wg genkey` prints it.
    pub key_file: PathBuf,
    /// The gateway's public key, in base64.
    pub box_public_key: String,
    /// File with a pre-shared key, as `wg genpsk` prints it.
    pub psk_file: Option<PathBuf>,
}

impl GatewayPeer {
    /// Files of this machine whose secrets the station uses, each with its key.
    pub(super) fn files(&self) -> Vec<(&'static str, &Path)> {
        let mut files: Vec<(_, &Path)> = Vec::new();
        match self {
            Self::Ike(peer) => {
                match &peer.auth {
                    IkeSecrets::Psk(file) => files.push(("psk_file", file)),
                    IkeSecrets::Certificates {
                        authority,
                        certificate,
                        key,
                    } => files.extend([
                        ("authority", authority.as_path()),
                        ("certificate", certificate),
                        ("key", key),
                    ]),
                }
                files.extend(peer.ppk.iter().map(|(file, _)| ("ppk", file.as_path())));
            }
            Self::WireGuard(peer) => {
                files.push(("key_file", &peer.key_file));
                files.extend(
                    peer.psk_file
                        .iter()
                        .map(|file| ("psk_file", file.as_path())),
                );
            }
        }
        files
    }

    /// The words that no configuration file could have, each with its key.
    pub(super) fn wrong_words(&self) -> Vec<(&'static str, &str)> {
        let mut words: Vec<(_, &str)> = Vec::new();
        match self {
            Self::Ike(peer) => {
                let ppk = peer.ppk.as_ref().map(|(_, id)| id);
                let all = [
                    ("ppk", ppk),
                    ("own_id", peer.own_id.as_ref()),
                    ("box_id", peer.box_id.as_ref()),
                    ("proposal", peer.proposal.as_ref()),
                ];
                let given = all.into_iter().filter_map(|(key, word)| Some((key, word?)));
                words.extend(
                    given
                        .filter(|(_, word)| !is_word(word))
                        .map(|(key, word)| (key, word.as_str())),
                );
            }
            Self::WireGuard(peer) if !is_wireguard_key(&peer.box_public_key) => {
                words.push(("box_public_key", &peer.box_public_key));
            }
            Self::WireGuard(_) => {}
        }
        words
    }

    /// For people, continuing `keys`.
    pub(super) const fn in_words(&self) -> &'static str {
        match self {
            Self::Ike(_) => "agreed on by IKEv2 with the station",
            Self::WireGuard(_) => "of WireGuard's handshake with the station",
        }
    }
}

/// Reads `gateway` of a device whose packets have that form, and whether they are in UDP.
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
        match proposal.contains(',') {
            false => Ok(Some(proposal)),
            true => Err(node.mistake(
                "which of several proposals is used would be the gateway's choice",
                "write one",
            )),
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
        match is_wireguard_key(key) {
            true => Ok(key.to_owned()),
            false => Err(node.mistake(
                "this is no public key of WireGuard",
                "write the 44 characters that `wg pubkey` prints",
            )),
        }
    });
    let psk_file = map.with_default("psk_file", None, |node| node.path().map(Some));
    Ok(WireGuardPeer {
        key_file: key_file?,
        box_public_key: box_public_key?,
        psk_file: psk_file?,
    })
}

/// A word for strongSwan's configuration file, where it stands in quotes.
fn read_word(node: Node<'_>) -> Result<String, Reported> {
    let word = node.text()?.trim();
    if !is_word(word) {
        let help =
            format!("write 1 to {WORD_CHARS_MAX} characters, without quotes and backslashes");
        return Err(node.mistake("this is no identity or proposal", help));
    }
    Ok(word.to_owned())
}

/// Whether strongSwan reads this between quotes as it is.
fn is_word(word: &str) -> bool {
    let fits = |c: char| !c.is_control() && c != '"' && c != '\\';
    (1..=WORD_CHARS_MAX).contains(&word.chars().count()) && word.chars().all(fits)
}

fn is_wireguard_key(key: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    key.len() == WIREGUARD_KEY_CHARS && key.chars().all(fits)
}
