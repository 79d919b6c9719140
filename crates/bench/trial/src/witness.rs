//! Opens sampled packets of our encryptor with the keys that the lab created, without the gateways.

use crate::error::TrialError;
use journal::record::OpenedPackets;
use lab::TunnelKeys;
use plan::Mode;
use std::net::IpAddr;
use traffic::{Payload, Tunnels, Witness};

/// Opens packets that were sampled on the cipher link, each in a frame from its Ethernet header.
///
/// # Errors
/// When no engine of the tester has the suite.
pub(crate) fn open_all(
    tunnel_keys: &TunnelKeys,
    packets: &[Vec<u8>],
    not_whole: u64,
) -> Result<OpenedPackets, TrialError> {
    let mut result = OpenedPackets {
        packets: packets.len() as u64,
        not_whole,
        ..OpenedPackets::default()
    };
    if packets.is_empty() {
        return Ok(result);
    }
    let witness = Witness::new(&tunnel_keys.keys, tunnels(tunnel_keys));
    let witness = witness.map_err(|error| TrialError::Samples {
        problem: error.to_string(),
    })?;
    for packet in packets {
        match witness.open(packet) {
            Ok(content) => {
                result.opened += 1;
                let mut packets = content.packets.into_iter();
                let is_theirs = |ends| tunnel_keys.is_between_stations(content.sender, ends);
                result.between_stations += u64::from(packets.any(is_theirs));
            }
            Err(refusal) => *result.refused.entry(refusal.name().to_owned()).or_default() += 1,
        }
    }
    Ok(result)
}

fn tunnels(tunnel_keys: &TunnelKeys) -> Tunnels {
    let encryptor = &tunnel_keys.encryptor;
    let gateways = tunnel_keys.gateways.iter();
    let gateways = gateways.map(|ends| ends.map(IpAddr::from));
    Tunnels {
        suite: encryptor.suite,
        gateways: gateways.collect(),
        port: tunnel_keys.port,
        lanes: encryptor.workers,
        tunnels: encryptor.tunnels,
        payload: match encryptor.mode {
            Mode::L3 => Payload::Ip {
                aggregates: encryptor.aggregate,
            },
            Mode::L2 => Payload::Ethernet,
            Mode::L2tpv3 | Mode::L2tpv3Clear => Payload::Pseudowire(tunnel_keys.sessions),
        },
    }
}
