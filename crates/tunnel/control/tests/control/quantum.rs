//! QKD keys from two simulated KMEs over their real interface, and the behaviour without them.

use crate::support::{Gateway, HERE, Pair, Site, listener, settings, tunnel, write_secret};
use keying::chain::Policy;
use keying::message::{Cause, Refusal};
use keying::rollover::{Allowance, Event, Role};
use qkd::Kme;
use qkd::kme::{Armed, Config, Fault, Keys, KmeConfig, Simulator};
use rcgen::{CertificateParams, Issuer, KeyPair};
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

/// Two KMEs, `kme1` for the SAE gw1 and `kme2` for gw2, of the site's authority; and that site.
pub(crate) struct Network {
    site: Site,
    simulator: Simulator,
}

impl Network {
    pub(crate) fn start() -> Self {
        let site = Site::new();
        let authority = site.authority.texts();
        let key = KeyPair::from_pem(&authority.key).expect("a key");
        let issuer = Issuer::from_ca_cert_pem(&authority.certificate, key).expect("an issuer");
        let kmes = ["1", "2"].map(|number| {
            let name = format!("kme{number}");
            let key = KeyPair::generate().expect("a key");
            let params = CertificateParams::new(vec![HERE.to_string()]).expect("an address");
            let certificate = params.signed_by(&key, &issuer).expect("a certificate");
            let path = |kind: &str| site.path(&format!("{name}.{kind}"));
            fs::write(path("pem"), certificate.pem()).expect("a file");
            write_secret(&path("key"), key.serialize_pem().as_bytes());
            KmeConfig {
                certificate: path("pem"),
                key: path("key"),
                ca: site.path("ca.pem"),
                name,
                listen: SocketAddr::new(HERE, 0),
                saes: vec![format!("gw{number}")],
                start_with: Vec::new(),
            }
        });
        let simulator = qkd::kme::start(&Config {
            kmes: kmes.into(),
            // What is taken shows in the store.
            keys: Keys {
                rate: 0,
                ..Keys::default()
            },
            faults: None,
        });
        Self {
            site,
            simulator: simulator.expect("two KMEs"),
        }
    }

    fn url(&self, place: usize) -> String {
        format!("https://{}", self.simulator.kmes()[place].1)
    }

    /// A pair with these policies; each side's SAE has the certificate of the gateway.
    fn pair(self, connects: Policy, listens: Policy) -> (Pair, Simulator) {
        let urls = [self.url(0), self.url(1)];
        let Self { site, simulator } = self;
        (pair(site, connects, listens, &urls), simulator)
    }

    /// A pair with this policy, of which the connector reaches the listener at that address.
    pub(crate) fn pair_over(
        self,
        policy: Policy,
        over: SocketAddr,
        bound: TcpListener,
    ) -> (Pair, Simulator) {
        let urls = [self.url(0), self.url(1)];
        let Self { site, simulator } = self;
        let provoked = Allowance::OF_TUNNEL;
        let pair = pair_at(site, [policy; 2], provoked, &urls, (bound, over));
        (pair, simulator)
    }

    /// A client of the first KME, which looks at its store for keys.
    pub(crate) fn client(&self, sae: &str) -> Looker {
        self.site.identity(sae);
        let path = |kind: &str| -> PathBuf { self.site.path(&format!("{sae}.{kind}")) };
        let setup = qkd::Setup {
            url: self.url(0),
            sae: sae.to_owned(),
            certificate: path("pem"),
            key: path("key"),
            ca: self.site.path("ca.pem"),
            timeout: Duration::from_secs(5),
        };
        Looker {
            kme: Kme::new(&setup).expect("a client"),
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime"),
        }
    }
}

/// Looks at the number of keys in a KME's store.
pub(crate) struct Looker {
    kme: Kme,
    runtime: tokio::runtime::Runtime,
}

impl Looker {
    pub(crate) fn stored(&self) -> u64 {
        let status = self.runtime.block_on(self.kme.status("gw2"));
        status.expect("a status").stored_key_count
    }

    /// The number once it no longer changes.
    pub(crate) fn settled(&self) -> u64 {
        let (mut last, mut same) = (self.stored(), 0);
        while same < 20 {
            let now = self.stored();
            same = if now == last { same + 1 } else { 0 };
            last = now;
        }
        last
    }
}

fn pair(site: Site, connects: Policy, listens: Policy, urls: &[String; 2]) -> Pair {
    let (bound, address) = listener();
    let many = Allowance {
        burst: 1000,
        refill: Duration::from_millis(10),
    };
    pair_at(site, [connects, listens], many, urls, (bound, address))
}

/// A pair whose listener has this socket, and is reached at that address.
fn pair_at(
    site: Site,
    [connects, listens]: [Policy; 2],
    provoked: Allowance,
    urls: &[String; 2],
    (bound, address): (TcpListener, SocketAddr),
) -> Pair {
    let (of_connector, of_listener) = (site.identity("gw1"), site.identity("gw2"));
    let kme = |sae: &str, url: &String| {
        let path = |kind: &str| -> PathBuf { site.path(&format!("{sae}.{kind}")) };
        let setup = qkd::Setup {
            url: url.clone(),
            sae: sae.to_owned(),
            certificate: path("pem"),
            key: path("key"),
            ca: site.path("ca.pem"),
            timeout: Duration::from_secs(5),
        };
        Some(Kme::new(&setup).expect("a client"))
    };
    let (unused, from) = listener();
    let mut with_policy = settings(Role::Listener, "gw2", "gw1", 0);
    with_policy.policy = listens;
    let mut listening = tunnel(with_policy, from);
    listening.peer_sae = Some("gw1".to_owned());
    let mut with_policy = settings(Role::Connector, "gw1", "gw2", 0);
    with_policy.policy = connects;
    with_policy.provoked = provoked;
    let mut connecting = tunnel(with_policy, address);
    connecting.peer_sae = Some("gw2".to_owned());
    let listener = Gateway::with_kme(of_listener, kme("gw2", &urls[1]), bound, vec![listening]);
    let connector = Gateway::with_kme(of_connector, kme("gw1", &urls[0]), unused, vec![connecting]);
    Pair {
        site,
        connector,
        listener,
        address,
    }
}

/// The sources of a side's newest keys.
fn sources(gateway: &Gateway) -> (Vec<String>, bool) {
    gateway.log.with(|state| {
        let established = state
            .events
            .iter()
            .rev()
            .find_map(|(_, event)| match event {
                Event::Established {
                    sources, handshake, ..
                } => Some((sources.clone(), *handshake)),
                _ => None,
            });
        established.expect("keys")
    })
}

#[test]
fn each_policy_mixes_its_key_sources() {
    for policy in [Policy::Qkd, Policy::Both, Policy::Either] {
        let (pair, _simulator) = Network::start().pair(policy, policy);
        let mut before = Vec::new();
        for round in 1..=3 {
            let epoch = pair.connector.established(round);
            assert_eq!(pair.listener.established(round), epoch);
            pair.assert_same_keys(epoch);
            let (of_connector, handshake) = sources(&pair.connector);
            assert_eq!(sources(&pair.listener), (of_connector.clone(), handshake));
            assert_eq!(handshake, policy != Policy::Qkd);
            assert_eq!(of_connector.len(), 1, "{of_connector:?}");
            assert!(of_connector[0].starts_with("qkd:"), "{of_connector:?}");
            assert!(!before.contains(&of_connector), "a key is mixed in once");
            before.push(of_connector);
            pair.connector.handle().rekey(Some(0), Cause::Demand);
        }
    }
}

#[test]
fn a_policy_that_needs_qkd_waits_for_it() {
    for (policy, kme) in [(Policy::Both, "kme1"), (Policy::Qkd, "kme2")] {
        let network = Network::start();
        let down = Armed::new(Fault::Unavailable);
        network.simulator.arm(Some(kme), down);
        let (pair, simulator) = network.pair(policy, policy);
        for gateway in [&pair.connector, &pair.listener] {
            let (_, detail) = gateway.fails(Refusal::Qkd);
            assert!(detail.contains("503"), "{detail}");
            gateway.log.with(|state| {
                assert_eq!(state.rings[0].outbound_epoch(), None);
                assert_eq!(state.rings[0].inbound_epochs().count(), 0);
            });
        }
        simulator.clear(None);
        let epoch = pair.connector.established(1);
        pair.assert_same_keys(epoch);
        assert!(sources(&pair.connector).0[0].starts_with("qkd:"));
    }
}

#[test]
fn without_qkd_policy_either_proceeds_and_reports_it() {
    for kme in ["kme1", "kme2"] {
        let network = Network::start();
        network
            .simulator
            .arm(Some(kme), Armed::new(Fault::Unavailable));
        let (pair, _simulator) = network.pair(Policy::Either, Policy::Either);
        let epoch = pair.connector.established(1);
        pair.listener.established(1);
        pair.assert_same_keys(epoch);
        for gateway in [&pair.connector, &pair.listener] {
            let (sources, handshake) = sources(gateway);
            assert!(handshake && sources[0].starts_with("-qkd:"), "{sources:?}");
            gateway.log.with(|state| {
                let without =
                    |(_, event): &(usize, Event)| matches!(event, Event::WithoutQkd { .. });
                assert!(state.events.iter().any(without), "{:?}", state.events);
            });
        }
    }
}

#[test]
fn different_qkd_keys_establish_no_epoch() {
    let network = Network::start();
    network
        .simulator
        .arm(Some("kme1"), Armed::new(Fault::WrongKey));
    let (pair, simulator) = network.pair(Policy::Both, Policy::Both);
    pair.connector.fails(Refusal::KeysDiffer);
    pair.listener.fails(Refusal::KeysDiffer);
    simulator.clear(None);
    let epoch = pair.connector.established(1);
    pair.assert_same_keys(epoch);
}

#[test]
fn different_policies_are_reported_on_both_sides() {
    for (one, other) in [
        (Policy::Pqc, Policy::Both),
        (Policy::Either, Policy::Qkd),
        (Policy::Both, Policy::Pqc),
    ] {
        let (pair, _simulator) = Network::start().pair(one, other);
        for gateway in [&pair.connector, &pair.listener] {
            let (_, detail) = gateway.fails(Refusal::Policy);
            let names = [one.name(), other.name()];
            assert!(names.iter().all(|name| detail.contains(name)), "{detail}");
            gateway
                .log
                .with(|state| assert_eq!(state.rings[0].outbound_epoch(), None));
        }
    }
}
