//! A gateway's configuration as text, and the expected output of `swanctl --list-conns`.

use super::UNUSED_MARK;
use super::answers::Answer;
use super::secrets::Secrets;
use super::suites::Words;
use crate::dut::Site;
use crate::dut::xfrm::INTERFACE_ID;
use crate::settings::{UNUSED_INTERFACE, UNUSED_TABLE};
use crate::topology::{Side, cipher_ends};
use plan::{DataPath, IkeAuth, IkePeer, StrongSwan};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use testbed::{Node, NodeId};

/// The connection's name.
pub(super) const CONNECTION: &str = "t";

/// The gateway that sets up the tunnels: the one that trials kill, so that it restores them when it
/// restarts. Its peer then drops its old SAs (INITIAL_CONTACT, RFC 7296 §2.4).
pub(super) const INITIATOR: NodeId = NodeId::Gw2;

/// Seconds without a packet from the peer after which a gateway checks its liveness (RFC 7296
/// §2.4), as in strongSwan's examples. It retries for 165 s, `charon`'s default, before it declares
/// the peer dead.
const DPD_DELAY_S: u32 = 30;

/// When a station renews its SAs: 2^32 packets last 11 minutes at 6 M frames/s.
const STATION_REKEY_TIME: &str = "rekey_time = 10m\n        rand_time = 0";

/// Restricts a station's SAs in its kernel, which must open nothing, to a mark that no packet has.
const STATION_MARK: &str = "        mark_in = 1\n        mark_in_sa = yes\n";

/// Traffic selector of all addresses.
const ANY_ADDRESS: &str = "0.0.0.0/0";

/// Identity of the post-quantum pre-shared key.
const PPK_ID: &str = "cipherbench";

/// Plugins that the daemon loads besides those for ML-KEM and libipsec.
const PLUGINS: &str = "random nonce openssl kdf pubkey pem x509";

/// A gateway's side of the tunnel.
#[derive(Clone)]
pub(super) struct Half<'a> {
    pub(super) plan: &'a StrongSwan,
    /// Identity and address.
    pub(super) own: (String, String),
    peer: (String, String),
    /// Whether it sets up the tunnels as soon as they are configured.
    pub(super) initiates: bool,
    /// Whether it is a station in a gateway's place.
    pub(super) is_station: bool,
    /// How long its first tunnel may take; `None`: the default.
    pub(super) ready: Option<Duration>,
    /// Proposal of the IKE SA.
    pub(super) proposal: String,
    ppk_id: &'a str,
    /// Name of the authority that issued the peer's certificate, if it is known.
    authority: Option<&'static str>,
    /// The network that contains an address of the gateway's interface.
    own_network: String,
    /// One for each pair of SAs.
    children: Vec<Child>,
    /// Test addresses of its side, set if a child covers all addresses: the peer may narrow the
    /// child to a network that holds them.
    narrowed: Vec<String>,
}

/// The networks of one pair of SAs.
#[derive(Clone)]
struct Child {
    /// Networks behind the gateway.
    own: Vec<String>,
    /// Networks behind its peer.
    peer: Vec<String>,
}

impl<'a> Half<'a> {
    pub(super) fn of(plan: &'a StrongSwan, site: &Site<'_>, node: &dyn Node) -> Self {
        let (own, peer) = cipher_ends(node.id());
        let networks = |end| site.map.networks_behind(Side::of(end), site.links);
        let in_tunnel = |end, tunnel| {
            let side = Side::of(end);
            site.map
                .networks_in_tunnel(side, site.links, tunnel, plan.tunnels)
        };
        let children = match plan.tunnels {
            1 => networks(own)
                .into_iter()
                .zip(networks(peer))
                .map(|(own, peer)| Child {
                    own: vec![own],
                    peer: vec![peer],
                })
                .collect(),
            tunnels => (0..tunnels)
                .map(|tunnel| Child {
                    own: in_tunnel(own, tunnel),
                    peer: in_tunnel(peer, tunnel),
                })
                .collect(),
        };
        Self {
            plan,
            own: (
                own.node.name().to_owned(),
                site.map.address(own).to_string(),
            ),
            // The address that this side sees: the peer may be behind NATs.
            peer: (
                peer.node.name().to_owned(),
                site.map.seen_address(peer).to_string(),
            ),
            initiates: node.id() == INITIATOR,
            is_station: !site.loads(node.id()),
            ready: None,
            proposal: proposal(plan.ml_kem),
            ppk_id: PPK_ID,
            authority: Some(Secrets::AUTHORITY),
            own_network: site.map.station_network(Side::of(own)),
            children,
            narrowed: Vec::new(),
        }
    }

    /// Returns the half of a station that is the peer of an external gateway; tunnels may take
    /// `ready`. They are for test frames only.
    pub(super) fn beside_box(
        plan: &'a StrongSwan,
        peer: &'a IkePeer,
        (site, node): (&Site<'_>, &dyn Node),
        ready: Duration,
    ) -> Self {
        let mut half = Self::of(plan, site, node);
        let networks = [Side::A, Side::B].map(|side| site.map.station_network(side));
        for child in &mut half.children {
            for list in [&mut child.own, &mut child.peer] {
                // External boxes are measured with IPv4 only.
                list.retain(|network| !networks.contains(network) && !network.contains(':'));
            }
        }
        // Those of the stations' networks have become empty.
        half.children.retain(|child| !child.own.is_empty());
        if peer.any_address {
            let (own, _) = cipher_ends(node.id());
            // The first of several tunnels has a single test address.
            let first = site.map.networks_in_tunnel(Side::of(own), site.links, 0, 2);
            half.narrowed = first.into_iter().filter(|it| it.ends_with("/32")).collect();
            half.children = vec![Child {
                own: vec![ANY_ADDRESS.to_owned()],
                peer: vec![ANY_ADDRESS.to_owned()],
            }];
        }
        for ((id, address), given) in [
            (&mut half.own, &peer.own_id),
            (&mut half.peer, &peer.box_id),
        ] {
            *id = given.as_ref().unwrap_or(address).clone();
        }
        if let Some(proposal) = &peer.proposal {
            half.proposal.clone_from(proposal);
        }
        Self {
            initiates: !peer.box_initiates,
            is_station: true,
            ready: Some(ready),
            ppk_id: peer.ppk.as_ref().map_or(PPK_ID, |(_, id)| id),
            // The lab does not know the name of the user's authority.
            authority: None,
            ..half
        }
    }

    /// Returns an address in each of its networks in which no interface has an address. The daemon
    /// sets a route to the peer's network only if it finds a source address in the local one.
    pub(super) fn addresses(&self) -> Vec<String> {
        let own = self.children.iter().flat_map(|child| &child.own);
        if self.plan.tunnels > 1 {
            let is_host = |network: &&String| network.ends_with("/32") || network.ends_with("/128");
            return own.filter(is_host).cloned().collect();
        }
        own.filter(|network| ![&self.own_network, ANY_ADDRESS].contains(&network.as_str()))
            .filter_map(|network| last_address(network))
            .chain(self.narrowed.iter().cloned())
            .collect()
    }

    /// The ML-KEM of its key exchange, as the daemon lists it.
    pub(super) fn ml_kem(&self) -> Option<&'static str> {
        ml_kem_of(&self.proposal)
    }

    /// Number of pairs of SAs.
    pub(super) fn sas(&self) -> usize {
        self.children.len()
    }

    /// Names of the children.
    pub(super) fn children(&self) -> Vec<String> {
        (0..self.sas()).map(|n| format!("c{n}")).collect()
    }

    /// The networks of each child, the local ones first.
    pub(super) fn networks(&self) -> Vec<String> {
        let words =
            |Child { own, peer }: &Child| format!("{} === {}", own.join(","), peer.join(","));
        self.children.iter().map(words).collect()
    }

    /// `swanctl.conf`. Nothing is renegotiated while a trial runs, since neither IKE nor SAs
    /// expire, unless the peer is dead; a station's SAs alone are renewed, before their sequence
    /// numbers end.
    pub(super) fn connections(&self, secrets: &Secrets) -> String {
        let StrongSwan {
            suite, auth, ppk, ..
        } = self.plan;
        let (proposal, ppk_id) = (&self.proposal, self.ppk_id);
        let ((id, own), (peer_id, peer)) = (&self.own, &self.peer);
        let esp = Words::of(*suite).proposal();
        let rekey_time = if self.is_station {
            STATION_REKEY_TIME
        } else {
            "rekey_time = 0"
        };
        let in_kernel = self.plan.data_path.in_kernel();
        let mark = if self.is_station && in_kernel {
            STATION_MARK
        } else {
            ""
        };
        let initiates = if self.initiates {
            "        start_action = start\n        dpd_action = restart\n"
        } else {
            ""
        };
        // One section for each pair of SAs: a child with several networks would have a single pair
        // for all.
        let children: String = self
            .children()
            .iter()
            .zip(&self.children)
            .map(|(name, Child { own, peer })| {
                let (own, peer) = (own.join(","), peer.join(","));
                format!(
                    "      {name} {{\n        local_ts = {own}\n        remote_ts = {peer}\n        \
                     esp_proposals = {esp}\n        {rekey_time}\n{mark}{initiates}      }}\n"
                )
            })
            .collect();
        let (local, remote) = match auth {
            IkeAuth::Psk => ("auth = psk", "auth = psk"),
            IkeAuth::Certificates => (
                "auth = pubkey\n      certs = own.crt",
                "auth = pubkey\n      cacerts = ca.crt",
            ),
        };
        let ppk_of_connection = if *ppk {
            format!("    ppk_id = \"{ppk_id}\"\n    ppk_required = yes\n")
        } else {
            String::new()
        };
        let mut kept = String::new();
        if *auth == IkeAuth::Psk {
            kept = format!(
                "  ike-1 {{\n    id-1 = \"{id}\"\n    id-2 = \"{peer_id}\"\n    secret = 0x{}\n  }}\n",
                secrets.psk
            );
        }
        if *ppk {
            let secret = &secrets.ppk;
            kept += &format!("  ppk-1 {{\n    id = \"{ppk_id}\"\n    secret = 0x{secret}\n  }}\n");
        }
        // Gateways without NAT between them use bare ESP, which kernel-libipsec lacks.
        let mut carrier = if self.plan.carrier().udp {
            "    encap = yes\n".to_owned()
        } else {
            "    encap = no\n".to_owned()
        };
        // In the kernel, an interface seals packets, so the daemon sets no routes.
        if in_kernel {
            let id = if self.is_station {
                UNUSED_INTERFACE
            } else {
                INTERFACE_ID
            };
            carrier += &format!("    if_id_in = {id}\n    if_id_out = {id}\n");
        }
        // MOBIKE would move IKE to port 4500 even without NAT, so it is off.
        format!(
            "connections {{\n  {CONNECTION} {{\n    version = 2\n    local_addrs = {own}\n    \
             remote_addrs = {peer}\n    proposals = {proposal}\n    \
             mobike = no\n    rekey_time = 0\n    \
             dpd_delay = {DPD_DELAY_S}s\n{carrier}{ppk_of_connection}    \
             local {{\n      {local}\n      id = \"{id}\"\n    }}\n    \
             remote {{\n      {remote}\n      id = \"{peer_id}\"\n    }}\n    \
             children {{\n{children}    }}\n  }}\n}}\nsecrets {{\n{kept}}}\n"
        )
    }

    /// Returns the connection as the daemon must list it.
    pub(super) fn expected(&self) -> Answer {
        let class = match self.plan.auth {
            IkeAuth::Psk => "pre-shared key",
            IkeAuth::Certificates => "public key",
        };
        let ((id, own), (peer_id, peer)) = (&self.own, &self.peer);
        let mut expected = Answer::new();
        let mut expect = |path: &str, value: &str| {
            expected.insert(format!("{CONNECTION}/{path}"), value.to_owned());
        };
        expect("version", "IKEv2");
        expect("local_addrs", own);
        expect("remote_addrs", peer);
        expect("rekey_time", "0");
        expect("local-1/class", class);
        expect("remote-1/class", class);
        // The daemon prints distinguished names in another form.
        let ids = [("local-1/id", id), ("remote-1/id", peer_id)];
        for (path, id) in ids.into_iter().filter(|(_, id)| !id.contains('=')) {
            expect(path, id);
        }
        if self.plan.auth == IkeAuth::Certificates
            && let Some(authority) = self.authority
        {
            expect("remote-1/cacerts", authority);
        }
        if self.plan.ppk {
            expect("ppk_id", self.ppk_id);
            expect("ppk_required", "yes");
        }
        for (name, Child { own, peer }) in self.children().iter().zip(&self.children) {
            expect(&format!("children/{name}/mode"), "TUNNEL");
            expect(&format!("children/{name}/local-ts"), &own.join(" "));
            expect(&format!("children/{name}/remote-ts"), &peer.join(" "));
        }
        expected
    }
}

/// The proposal of an IKE SA between two daemons of the lab.
fn proposal(ml_kem: bool) -> String {
    let exchange = if ml_kem {
        "x25519-ke1_mlkem768"
    } else {
        "x25519"
    };
    format!("aes256gcm16-prfsha384-{exchange}")
}

/// Returns the daemon's name of the ML-KEM in a proposal, or in the daemon's list.
pub(super) fn ml_kem_of(text: &str) -> Option<&'static str> {
    // Proposals and lists of the daemon write it differently: `mlkem768`, `ML_KEM_768`.
    let word = text.to_ascii_lowercase().replace('_', "");
    let names = ["ML_KEM_512", "ML_KEM_768", "ML_KEM_1024"];
    let is_it = |name: &&str| word.contains(&name.to_ascii_lowercase().replace('_', ""));
    names.into_iter().find(is_it)
}

/// Returns the plugins that a daemon loads.
pub(super) fn plugins(plan: &StrongSwan) -> Vec<&'static str> {
    let ml_kem = plan.ml_kem.then_some("ml");
    let libipsec = (plan.data_path == DataPath::Libipsec).then_some("kernel-libipsec");
    // kernel-libipsec comes before kernel-netlink, because the first plugin with a data path is
    // used.
    PLUGINS
        .split(' ')
        .chain(ml_kem)
        .chain(libipsec)
        .chain(["kernel-netlink", "socket-default", "vici"])
        .collect()
}

/// `strongswan.conf`: the plugins above, a separate socket, routes in the main table (which go with
/// the TUN device and need no rule), and an unbuffered log; for a station's daemon also a log with
/// the keys of its SAs, and routes in a separate table.
pub(super) fn daemon(plan: &StrongSwan, socket: &str, keys_log: Option<&str>) -> String {
    let (table, rule) = match keys_log {
        Some(_) => {
            let rule = format!("    kernel-netlink {{\n      fwmark = {UNUSED_MARK}\n    }}\n");
            (UNUSED_TABLE, rule)
        }
        None => (0, String::new()),
    };
    let keys_log = keys_log.map_or_else(String::new, |path| {
        // Level 4 of `chd` has the keys of SAs.
        format!(
            "    keys {{\n      path = {path}\n      append = no\n      flush_line = yes\n      \
             default = -1\n      ike = 1\n      net = 1\n      cfg = 1\n      knl = 1\n      \
             chd = 4\n    }}\n"
        )
    });
    format!(
        "charon {{\n  load = {}\n  install_virtual_ip = no\n  routing_table = {table}\n  \
         filelog {{\n    stderr {{\n      default = 1\n      enc = 0\n    }}\n{keys_log}  }}\n  \
         plugins {{\n{rule}    vici {{\n      socket = {socket}\n    }}\n  }}\n}}\n",
        plugins(plan).join(" ")
    )
}

/// Returns a network's last host address, as a host route.
fn last_address(network: &str) -> Option<String> {
    let (prefix, bits) = network.split_once('/')?;
    let bits: u32 = bits.parse().ok()?;
    match prefix.parse().ok()? {
        IpAddr::V4(prefix) => {
            // The part of the address behind the prefix, all ones: the broadcast address of the
            // network.
            let hosts = u32::MAX.checked_shr(bits)?;
            // One below the broadcast address. A single address has none, as the shift above fails.
            let last = u32::from(prefix) | hosts.checked_sub(1)?;
            Some(format!("{}/32", Ipv4Addr::from(last)))
        }
        IpAddr::V6(prefix) => {
            let hosts = u128::MAX.checked_shr(bits)?;
            let last = u128::from(prefix) | hosts.checked_sub(1)?;
            Some(format!("{}/128", Ipv6Addr::from(last)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Suite;

    fn half(plan: &StrongSwan) -> Half<'_> {
        Half {
            plan,
            own: ("gw1".to_owned(), "192.0.2.1".to_owned()),
            peer: ("gw2".to_owned(), "192.0.2.2".to_owned()),
            initiates: true,
            is_station: false,
            ready: None,
            proposal: proposal(plan.ml_kem),
            ppk_id: PPK_ID,
            authority: Some(Secrets::AUTHORITY),
            own_network: "10.1.0.0/24".to_owned(),
            children: [
                ("10.1.0.0/24", "10.2.0.0/24"),
                ("198.18.0.0/16", "198.19.0.0/16"),
                ("2001:2:0:18::/64", "2001:2:0:19::/64"),
            ]
            .map(|(own, peer)| Child {
                own: vec![own.to_owned()],
                peer: vec![peer.to_owned()],
            })
            .into(),
            narrowed: Vec::new(),
        }
    }

    const PLAN: StrongSwan = StrongSwan {
        data_path: DataPath::Libipsec,
        suite: Suite::Aes256Gcm,
        auth: IkeAuth::Psk,
        ppk: false,
        ml_kem: false,
        tunnels: 1,
    };

    #[test]
    fn a_gateway_has_the_last_address_of_each_network_but_the_stations() {
        let expected = ["198.18.255.254/32", "2001:2:0:18:ffff:ffff:ffff:fffe/128"];
        assert_eq!(half(&PLAN).addresses(), expected);
    }

    #[test]
    fn what_is_asked_for_is_in_the_text() {
        let mut secrets = Secrets::default();
        secrets.psk = "aa".to_owned();
        secrets.ppk = "bb".to_owned();
        let plain = half(&PLAN).connections(&secrets);
        assert!(
            plain.contains("proposals = aes256gcm16-prfsha384-x25519\n"),
            "{plain}"
        );
        assert!(
            plain.contains("secret = 0xaa\n") && !plain.contains("ppk"),
            "{plain}"
        );
        let plan = StrongSwan {
            auth: IkeAuth::Certificates,
            ppk: true,
            ml_kem: true,
            ..PLAN
        };
        let all = half(&plan).connections(&secrets);
        assert!(all.contains("prfsha384-x25519-ke1_mlkem768\n"), "{all}");
        assert!(
            all.contains("secret = 0xbb\n") && !all.contains("0xaa"),
            "{all}"
        );
        assert!(all.contains("ppk_required = yes\n"), "{all}");
        assert_eq!(half(&plan).ml_kem(), Some("ML_KEM_768"));
        assert_eq!(ml_kem_of("ML_KEM_1024"), Some("ML_KEM_1024"));
        assert_eq!(half(&PLAN).ml_kem(), None);
        assert_eq!(half(&plan).expected()["t/ppk_id"], PPK_ID);
        assert!(
            daemon(&plan, "unix:///run/x", None).contains(" ml kernel-libipsec kernel-netlink ")
        );
        let plan = StrongSwan {
            data_path: DataPath::Kernel,
            ..PLAN
        };
        assert!(!daemon(&plan, "unix:///run/x", None).contains("libipsec"));
        let bare = half(&plan).connections(&secrets);
        assert!(
            bare.contains("encap = no\n") && bare.contains("if_id_in = 1\n"),
            "{bare}"
        );
        assert!(
            plain.contains("encap = yes\n") && !plain.contains("if_id"),
            "{plain}"
        );
        let of_station = Half {
            is_station: true,
            ..half(&plan)
        };
        let marked = of_station.connections(&secrets);
        assert!(marked.contains(STATION_MARK), "{marked}");
        assert!(marked.contains("if_id_in = 4500\n"), "{marked}");
        assert!(!bare.contains("mark_in"), "{bare}");
    }
}
