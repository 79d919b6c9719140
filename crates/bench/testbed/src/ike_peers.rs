//! Simulated IKEv2 peers of a device.

use crate::NodeId;
use std::net::Ipv4Addr;

/// How simulated peers set up tunnels to a gateway of the device. Not `Debug`: it has secrets.
#[derive(Clone)]
pub struct PeersGateway {
    /// The node that the peers are on, and the gateway.
    pub ends: [NodeId; 2],
    /// The gateway's address.
    pub address: Ipv4Addr,
    /// Its identity.
    pub identity: String,
    /// How both ends prove their identities.
    pub proof: PeersProof,
    /// Identity and text of a post-quantum pre-shared key, which must be used.
    pub ppk: Option<[String; 2]>,
    /// The suite.
    pub proposal: String,
    /// Address of the first peer; those of the others follow.
    pub first: Ipv4Addr,
    /// The peers' ports: of first messages, and the one shared with ESP.
    pub ports: [u16; 2],
    /// The address behind the first peer; those behind the others follow.
    pub local: Ipv4Addr,
    /// First and last address behind the gateway.
    pub remote: [Ipv4Addr; 2],
}

/// How a gateway and its simulated peers prove their identities.
#[derive(Clone)]
pub enum PeersProof {
    /// A shared key, as text.
    SharedKey(String),
    /// Certificates, PEM.
    Certificates {
        /// Certificate of the authority that issues the peers'.
        authority: String,
        /// Its private key.
        key: String,
        /// Certificate of the authority of the gateway's.
        trusted: String,
    },
}

/// IKE SAs by a gateway's own count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IkeSas {
    /// All, half-open ones too.
    pub all: u64,
    /// Half-open ones.
    pub half_open: u64,
}
