//! One gateway alone: the settings that the station in its peer's place needs for the key exchange.

use crate::adapter::profile::Direction;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Directions that load a single gateway.
pub(super) const DIRECTIONS: &[Direction] = &[Direction::Encrypt, Direction::Decrypt];

/// Longest identity, and longest proposal, in characters.
pub const WORD_CHARS_MAX: usize = 200;
/// Bytes of a key of WireGuard, in base64.
const WIREGUARD_KEY_CHARS: usize = 44;

/// How the station agrees on keys with the gateway. The files are on this machine, for its user
/// alone (mode 600), and are read at each start of the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GatewayPeer {
    /// By IKEv2, of a strongSwan daemon on the station (RFC 7296).
    Ike(IkePeer),
    /// By WireGuard's handshake.
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
    /// Proposal of the IKE SA in strongSwan's syntax; `None`: the default of the DUT `strongswan`.
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
    /// Files on this machine with secrets that the station uses, each with its key.
    pub(super) fn files(&self) -> Vec<(&'static str, &Path)> {
        match self {
            // Certificates are no secrets, but they decide on trust, so they are listed too.
            Self::Ike(peer) => {
                let mut files = match &peer.auth {
                    IkeSecrets::Psk(file) => vec![("psk_file", file.as_path())],
                    IkeSecrets::Certificates {
                        authority,
                        certificate,
                        key,
                    } => vec![
                        ("authority", authority.as_path()),
                        ("certificate", certificate),
                        ("key", key),
                    ],
                };
                files.extend(peer.ppk.iter().map(|(file, _)| ("ppk", file.as_path())));
                files
            }
            Self::WireGuard(peer) => {
                let psk_file = peer.psk_file.iter().map(|file| ("psk_file", file));
                let all = [("key_file", &peer.key_file)].into_iter().chain(psk_file);
                all.map(|(key, file)| (key, file.as_path())).collect()
            }
        }
    }

    /// The words that no configuration file can contain, each with its key.
    pub(super) fn wrong_words(&self) -> Vec<(&'static str, &str)> {
        match self {
            Self::Ike(peer) => {
                let all = [
                    ("ppk", peer.ppk.as_ref().map(|(_, id)| id)),
                    ("own_id", peer.own_id.as_ref()),
                    ("box_id", peer.box_id.as_ref()),
                    ("proposal", peer.proposal.as_ref()),
                ];
                let given = all
                    .into_iter()
                    .filter_map(|(key, word)| Some((key, word?.as_str())));
                given.filter(|(_, word)| !is_word(word)).collect()
            }
            Self::WireGuard(peer) if !is_wireguard_key(&peer.box_public_key) => {
                vec![("box_public_key", &peer.box_public_key)]
            }
            Self::WireGuard(_) => Vec::new(),
        }
    }

    /// Words that follow `keys`.
    pub(super) const fn in_words(&self) -> &'static str {
        match self {
            Self::Ike(_) => "agreed on by IKEv2 with the station",
            Self::WireGuard(_) => "of WireGuard's handshake with the station",
        }
    }
}

/// Whether strongSwan reads this text unchanged between quotes.
#[must_use]
pub fn is_word(word: &str) -> bool {
    // A quote would end the quoted text, and a backslash would change the next character.
    let fits = |c: char| !c.is_control() && c != '"' && c != '\\';
    (1..=WORD_CHARS_MAX).contains(&word.chars().count()) && word.chars().all(fits)
}

/// Whether this is a key of WireGuard in base64.
#[must_use]
pub fn is_wireguard_key(key: &str) -> bool {
    // Whether it decodes is left to WireGuard: these characters cannot begin another setting.
    let fits = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    key.len() == WIREGUARD_KEY_CHARS && key.chars().all(fits)
}
