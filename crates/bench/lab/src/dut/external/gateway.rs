//! One gateway alone: the station at B's cable is the other end of its tunnels.

use super::super::keys::write_file;
use super::super::strongswan::IkeStation;
use crate::dut::Site;
use crate::on_node::run_tool;
use crate::secret_file;
use crate::topology::Side;
use plan::{self, GatewayPeer, WireGuardPeer};
use std::path::Path;
use std::time::Duration;
use testbed::protocol::Program;
use testbed::{LabError, Node, Result, StationKeys, StationPeer};
use wire::Suite;

/// The station's keys for WireGuard's handshake.
const WIREGUARD_FILE: &str = "station.conf";

/// The station as the gateway's peer.
pub(super) enum PeerStation {
    /// A daemon that agrees on keys.
    Ike(Box<IkeStation>),
    /// Keys, for the handshakes of generator and analyser.
    WireGuard {
        peer: WireGuardPeer,
        suite: Suite,
        /// The gateway's port, and the station's.
        port: u16,
        /// The file with the keys, once it is written.
        file: Option<String>,
    },
}

impl PeerStation {
    /// The peer that these settings ask for, if any.
    pub(super) fn of(external: &plan::External) -> Option<Self> {
        let carrier = external.carrier?;
        Some(match external.gateway.as_deref()? {
            GatewayPeer::Ike(peer) => {
                let ready = Duration::from_nanos(external.ready_ns);
                let station = IkeStation::new(peer.clone(), carrier, external.tunnels, ready);
                Self::Ike(Box::new(station))
            }
            GatewayPeer::WireGuard(peer) => Self::WireGuard {
                peer: peer.clone(),
                suite: carrier.suite,
                port: *external.ports.first()?,
                file: None,
            },
        })
    }

    /// Agrees on keys, or prepares to; returns facts of the tunnels.
    pub(super) fn start(
        &mut self,
        site: &Site<'_>,
        node: &dyn Node,
    ) -> Result<Vec<(&'static str, String)>> {
        match self {
            Self::Ike(station) => station.start(site, node),
            Self::WireGuard { peer, file, .. } => {
                let text = wireguard_keys(site.dut, peer)?;
                // Noted, so that `stop` removes it with the keys in it.
                *file = Some(write_file(node, WIREGUARD_FILE, &text, true)?);
                Ok(Vec::new())
            }
        }
    }

    /// How the station seals and opens, once it was started.
    pub(super) fn as_peer(&self, site: &Site<'_>, node: &dyn Node) -> Result<StationPeer> {
        match self {
            Self::Ike(station) => station.as_peer(site, node),
            Self::WireGuard {
                suite, port, file, ..
            } => {
                let Some(file) = file else {
                    return Err(site.error("has no peer: the station got no keys"));
                };
                Ok(StationPeer {
                    keys: StationKeys::WireGuard(file.clone()),
                    suite: *suite,
                    local: site.map.cipher_end(Side::B),
                    remote: site.map.cipher_end(Side::A),
                    port: Some(*port),
                    lanes: 1,
                    tunnels: 1,
                })
            }
        }
    }

    /// # Errors
    /// When its daemon has died, or has sealed packets with the generator's keys.
    pub(super) fn check(&self, site: &Site<'_>, node: &dyn Node) -> Result<()> {
        match self {
            Self::Ike(station) => station.check(site, node),
            Self::WireGuard { .. } => Ok(()),
        }
    }

    /// # Errors
    /// When the gateway does not answer the station's daemon any more. WireGuard's handshakes are
    /// the generator's and the analyser's.
    pub(super) fn expect_answer(&self, site: &Site<'_>, node: &dyn Node) -> Result<()> {
        match self {
            Self::Ike(station) => station.expect_answer(site, node),
            Self::WireGuard { .. } => Ok(()),
        }
    }

    /// As [`Adapter::lost_tunnels`](crate::dut::Adapter::lost_tunnels). WireGuard has one.
    pub(super) fn lost_tunnels(&self, site: &Site<'_>, node: &dyn Node) -> Result<Vec<String>> {
        match self {
            Self::Ike(station) => station.lost_tunnels(site, node),
            Self::WireGuard { .. } => Ok(Vec::new()),
        }
    }

    /// Ends its daemon, and removes its keys.
    pub(super) fn stop(&mut self, site: &Site<'_>, node: &dyn Node) -> Result<()> {
        match self {
            Self::Ike(station) => station.stop(site, node),
            Self::WireGuard { file, .. } => match file.take() {
                Some(file) => run_tool(node, Program::new(["rm", "-f", &file])),
                None => Ok(()),
            },
        }
    }
}

/// The station's keys, as `wg setconf` reads them.
fn wireguard_keys(dut: &str, peer: &WireGuardPeer) -> Result<String> {
    let secret = |file: &Path| {
        let line = secret_file::first_line(file);
        line.map_err(|reason| LabError::unread_secret(dut, &reason))
    };
    let private = secret(&peer.key_file)?;
    let mut text = format!(
        "[Interface]\nPrivateKey = {}\n[Peer]\nPublicKey = {}\n",
        *private, peer.box_public_key
    );
    if let Some(file) = &peer.psk_file {
        text += &format!("PresharedKey = {}\n", *secret(file)?);
    }
    Ok(text)
}
