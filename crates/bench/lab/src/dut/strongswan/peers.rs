//! Simulated peers of gw1: a connection for any of them, in addition to the tunnel between the
//! gateways, and routes to their addresses, which gw2 has.

use super::Strongswan;
use super::config::Half;
use super::gateway::Gateway;
use crate::dut::Site;
use crate::dut::keys::{random_hex, write_file};
use crate::dut::xfrm::INTERFACE_ID;
use crate::on_node::ip;
use crate::topology::{Side, W0, W1};
use pki::Authority;
use plan::IkeAuth;
use std::net::Ipv4Addr;
use testbed::{IkeSas, NodeId, PeersGateway, PeersProof, Result};

/// Addresses of the peers, and those behind them: shared address space (RFC 6598).
const NETWORK: &str = "100.64.0.0/16";
const NETWORK_BEHIND: &str = "100.65.0.0/16";
const FIRST: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 1);
const BEHIND: Ipv4Addr = Ipv4Addr::new(100, 65, 0, 1);
/// Ports of the peers: the daemon of gw2 has those of IKE.
const PORTS: [u16; 2] = [1500, 5500];
/// Proposal of the peers' child SAs: the cipher of their IKE SAs.
const ESP: &str = "aes256gcm16";
/// Identity of the peers' post-quantum pre-shared key.
const PPK_ID: &str = "peers";
const SECRET_BYTES: usize = 32;
const FILE: &str = "peers.conf";
const AUTHORITY: &str = "peers.crt";

/// What the configuration of the peers' connection has, besides the tunnel's.
struct Words<'a> {
    network: &'a str,
    local: &'a str,
    authority: &'a str,
    /// The shared key, and the PPK with its identity.
    psk: &'a str,
    ppk: Option<(&'a str, &'a str)>,
}

/// Lets gw1 serve the peers.
pub(super) fn serve(swan: &Strongswan, site: &Site<'_>) -> Result<PeersGateway> {
    let [gw1, gw2] = site.gateways;
    if !site.routers().is_empty() {
        return Err(site.error(
            "has a router between the gateways, and no route leads through it to simulated peers\nhelp: use a lab \
             without routers for trials of `ike`",
        ));
    }
    let gateway = swan.gateway(site, gw1)?;
    let plan = gateway.half.plan;
    let psk = random_hex(site.dut, SECRET_BYTES)?;
    let key = random_hex(site.dut, SECRET_BYTES)?;
    let ppk = plan.ppk.then_some((PPK_ID, key.as_str()));
    let local = site.map.station_network(Side::A);
    let words = Words {
        network: NETWORK,
        local: &local,
        authority: AUTHORITY,
        psk: &psk,
        ppk,
    };
    let text = configuration(&gateway.half, &words);
    let path = write_file(gw1, FILE, &text, true)?;
    let proof = match plan.auth {
        IkeAuth::Psk => PeersProof::SharedKey(psk.clone()),
        IkeAuth::Certificates => certificates(site, &gateway)?,
    };
    let address = site.map.address(W0);
    let peers = site.map.address(W1);
    ip(gw2, format!("route replace local {NETWORK} dev lo\n"))?;
    ip(gw1, format!("route replace {NETWORK} via {peers}\n"))?;
    gateway.swanctl(&["--load-all", "--noprompt", "--file", &path])?;
    Ok(PeersGateway {
        ends: [NodeId::Gw2, NodeId::Gw1],
        address,
        identity: gw1.name().to_owned(),
        proof,
        ppk: ppk.map(|(identity, key)| [identity, key].map(str::to_owned)),
        proposal: gateway.half.proposal.clone(),
        first: FIRST,
        ports: PORTS,
        local: BEHIND,
        remote: ends_of(&local),
    })
}

/// Removes the peers' routes and file.
pub(super) fn forget(swan: &Strongswan, site: &Site<'_>) -> Result<()> {
    let [gw1, gw2] = site.gateways;
    if let Some(place) = swan.place(gw1) {
        let half = Half::of(swan.plan_of(site, gw1), site, gw1);
        place
            .gateway(site, gw1, half)
            .in_folder(&format!("rm -f {FILE}"))?;
    }
    ip(gw2, format!("route flush table local root {NETWORK}\n"))?;
    ip(gw1, format!("route flush root {NETWORK}\n"))
}

/// The IKE SAs of gw1, by its daemon.
pub(super) fn count(swan: &Strongswan, site: &Site<'_>) -> Result<IkeSas> {
    let gateway = swan.gateway(site, site.gateways[0])?;
    let stats = gateway.ask(&["--stats"])?;
    let of = |key: &str| {
        let found = stats.get(&format!("ikesas/{key}"));
        found.and_then(|count| count.parse().ok()).ok_or_else(|| {
            gateway.error(format!(
                "does not count its IKE SAs: `ikesas/{key}` is missing"
            ))
        })
    };
    Ok(IkeSas {
        all: of("total")?,
        half_open: of("half-open")?,
    })
}

/// `swanctl.conf` with another connection, for any of the simulated peers: keys are not renewed
/// while a trial runs.
fn configuration(half: &Half<'_>, words: &Words<'_>) -> String {
    let Half { plan, own, .. } = half;
    let (id, address) = own;
    let Words {
        network,
        local: local_ts,
        authority,
        psk,
        ppk,
    } = words;
    let (local, remote) = match plan.auth {
        IkeAuth::Psk => ("auth = psk".to_owned(), "auth = psk".to_owned()),
        IkeAuth::Certificates => (
            "auth = pubkey\n      certs = own.crt".to_owned(),
            format!("auth = pubkey\n      cacerts = {authority}"),
        ),
    };
    let mut carrier = format!("    encap = {}\n", words_of_switch(plan.carrier().udp));
    if plan.data_path.in_kernel() {
        carrier += &format!("    if_id_in = {INTERFACE_ID}\n    if_id_out = {INTERFACE_ID}\n");
    }
    let mut secrets = String::new();
    if plan.auth == IkeAuth::Psk {
        secrets += &format!("  ike-peers {{\n    secret = \"{psk}\"\n  }}\n");
    }
    if let Some((id, key)) = ppk {
        carrier += &format!("    ppk_id = \"{id}\"\n    ppk_required = yes\n");
        secrets += &format!("  ppk-peers {{\n    id = \"{id}\"\n    secret = \"{key}\"\n  }}\n");
    }
    format!(
        "include swanctl.conf\nconnections {{\n  peers {{\n    version = 2\n    local_addrs = {address}\n    \
         remote_addrs = {network}\n    proposals = {}\n    mobike = no\n    rekey_time = 0\n{carrier}    \
         local {{\n      {local}\n      id = \"{id}\"\n    }}\n    \
         remote {{\n      {remote}\n      id = %any\n    }}\n    \
         children {{\n      c {{\n        local_ts = {local_ts}\n        remote_ts = {NETWORK_BEHIND}\n        \
         esp_proposals = {ESP}\n        rekey_time = 0\n      }}\n    }}\n  }}\n}}\nsecrets {{\n{secrets}}}\n",
        half.proposal
    )
}

const fn words_of_switch(is_on: bool) -> &'static str {
    if is_on { "yes" } else { "no" }
}

/// An authority for the peers, which gw1 trusts from now on.
fn certificates(site: &Site<'_>, gateway: &Gateway<'_>) -> Result<PeersProof> {
    let authority = Authority::generate().map_err(|error| site.error(error.to_string()))?;
    let texts = authority.texts();
    let from = write_file(gateway.node, AUTHORITY, &texts.certificate, false)?;
    let into = format!("{}/x509ca/{AUTHORITY}", gateway.folder);
    gateway.run(&["mv", &from, &into])?;
    let trusted = gateway.run(&["cat", &format!("{}/x509ca/ca.crt", gateway.folder)])?;
    Ok(PeersProof::Certificates {
        authority: texts.certificate.clone(),
        key: texts.key.to_string(),
        trusted,
    })
}

/// First and last address of a network.
fn ends_of(network: &str) -> [Ipv4Addr; 2] {
    let (address, bits) = network.split_once('/').unwrap_or((network, "32"));
    let address: Ipv4Addr = address.parse().unwrap_or(Ipv4Addr::UNSPECIFIED);
    let hosts = u32::MAX
        .checked_shr(bits.parse().unwrap_or(u32::BITS))
        .unwrap_or(0);
    let first = address.to_bits() & !hosts;
    [first, first | hosts].map(Ipv4Addr::from_bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_a_first_and_a_last_address() {
        let found = ends_of("10.1.0.0/24").map(|it| it.to_string());
        assert_eq!(found, ["10.1.0.0", "10.1.0.255"]);
    }
}
