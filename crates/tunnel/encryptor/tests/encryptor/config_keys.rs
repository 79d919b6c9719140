//! The configuration of negotiated keys.

use encryptor::Config;
use encryptor::config::Fault;
use encryptor::config::{KeySource, Lifetime};
use keying::chain::Policy;
use std::path::Path;
use std::time::Duration;

const SMALLEST: &str = "\
local: 192.0.2.1
remote: 192.0.2.2
identity: { certificate: gw1.pem, key: gw1.key, ca: ca.pem }
keys: { handshake: { peer: gw2 } }
tunnel: { routes: 10.2.0.0/24 }
";

const QKD: &str = "qkd: { kme: \"https://10.9.0.1:8443\", sae: gw1, certificate: s.pem, key: s.key, ca: k.pem }\n";

fn config(text: &str) -> Config {
    Config::from_text("gw1.yaml", text).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn mistakes(text: &str) -> String {
    match Config::from_text("gw1.yaml", text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(mistakes) => mistakes.to_string(),
    }
}

/// The smallest file, with `more` behind the peer's name.
fn with(more: &str) -> String {
    SMALLEST.replace("peer: gw2", &format!("peer: gw2, {more}"))
}

#[test]
fn a_name_and_a_certificate_suffice() {
    let config = config(SMALLEST);
    let identity = config.identity.as_ref().unwrap();
    assert_eq!(identity.certificate, Path::new("gw1.pem"));
    assert_eq!(config.control_port, 4500);
    let (place, _, handshake) = config.handshakes().next().unwrap();
    assert_eq!((place, handshake.peer.as_str()), (0, "gw2"));
    assert_eq!(
        (handshake.control_port, handshake.policy),
        (4500, Policy::Pqc)
    );
    assert!(handshake.ppks.is_empty() && handshake.sae.is_none());
    assert_eq!(handshake.every, Duration::from_secs(3600));
    assert_eq!(handshake.grace, Duration::from_secs(5));
    assert_eq!(handshake.hard, None);
    let unlimited = Lifetime {
        bytes: None,
        packets: None,
    };
    assert_eq!(handshake.lifetime, unlimited);
    assert!(config.qkd.is_none() && config.fault.is_none());
}

#[test]
fn all_keys_of_negotiation_can_be_set() {
    let more = "policy: either, ppk: [{ id: alpha, file: a.ppk }, { id: beta, file: b.ppk, optional: true }], \
                sae: gw2, every: 1 s, hard: 8 h, bytes: 1 TB, packets: 1000000000, grace: 500 ms";
    let text = with(more) + QKD + "control_port: 7443\ninsecure: on\nfaults: missed-rollover\n";
    let config = config(&text);
    assert_eq!(
        (config.control_port, config.fault),
        (7443, Some(Fault::MissedRollover))
    );
    let qkd = config.qkd.as_ref().unwrap();
    assert_eq!(
        (qkd.kme.as_str(), qkd.sae.as_str()),
        ("https://10.9.0.1:8443", "gw1")
    );
    let (_, _, handshake) = config.handshakes().next().unwrap();
    assert_eq!(handshake.control_port, 7443, "both sides have the same");
    assert_eq!(handshake.policy, Policy::Either);
    assert_eq!(handshake.sae.as_deref(), Some("gw2"));
    let ppks: Vec<_> = handshake
        .ppks
        .iter()
        .map(|ppk| (ppk.id.as_str(), ppk.optional))
        .collect();
    assert_eq!(ppks, [("alpha", false), ("beta", true)]);
    assert_eq!(handshake.lifetime.bytes, Some(1_000_000_000_000));
    assert_eq!(handshake.lifetime.packets, Some(1_000_000_000));
    assert_eq!(handshake.grace, Duration::from_millis(500));
    assert_eq!(handshake.hard, Some(Duration::from_secs(8 * 3600)));
}

#[test]
fn peers_may_have_static_or_negotiated_keys() {
    let text = "\
local: 192.0.2.1
identity: { certificate: gw1.pem, key: gw1.key, ca: ca.pem }
peers:
  - { remote: 192.0.2.2, keys: { static: a.key }, routes: 10.2.0.0/24 }
  - { remote: 192.0.2.3, port: 5000, keys: { handshake: { peer: gw3.example.net } }, routes: 10.3.0.0/24 }
";
    let config = config(text);
    assert!(matches!(config.peers[0].keys, Some(KeySource::Static(_))));
    let handshakes: Vec<_> = config
        .handshakes()
        .map(|(place, _, handshake)| (place, handshake.control_port))
        .collect();
    // By default the TCP port equals the peer's UDP port.
    assert_eq!(handshakes, [(1, 5000)]);
}

#[test]
fn mistakes_in_key_settings_are_reported_with_their_places() {
    let without = SMALLEST.replace(
        "identity: { certificate: gw1.pem, key: gw1.key, ca: ca.pem }\n",
        "",
    );
    for (text, place, what) in [
        (
            without,
            "(keys.handshake)",
            "this gateway has no certificate",
        ),
        (
            SMALLEST.replace("handshake: { peer: gw2 }", "static: a.key"),
            "(identity)",
            "`identity` does nothing",
        ),
        (
            SMALLEST.replace("handshake: {", "static: a.key, handshake: {"),
            "(keys.handshake)",
            "`keys` names several sources",
        ),
        (
            SMALLEST.replace("handshake: { peer: gw2 }", ""),
            "(keys)",
            "names no source",
        ),
        (
            SMALLEST.replace("peer: gw2", ""),
            "(keys.handshake)",
            "has no key `peer`",
        ),
        (
            SMALLEST.replace("gw2", "GW2"),
            "(keys.handshake.peer)",
            "`GW2` is not a valid name",
        ),
        (with("policy: pq"), "(keys.handshake.policy)", "pqc"),
        (with("policy: qkd"), "(keys.handshake)", "`sae` is missing"),
        (
            with("sae: gw2"),
            "(keys.handshake.sae)",
            "`sae` does nothing",
        ),
        (
            with("policy: both, sae: gw2"),
            "(keys.handshake)",
            "there is no KME to ask",
        ),
        (SMALLEST.to_owned() + QKD, "(qkd)", "`qkd` does nothing"),
        (
            with("policy: both, sae: gw2") + &QKD.replace("https", "http"),
            "(qkd.kme)",
            "is not the URL of a KME",
        ),
        (
            with("ppk: [{ id: a, file: a.ppk }, { id: a, file: b.ppk }]"),
            "(keys.handshake.ppk[1].id)",
            "is in the list twice",
        ),
        (with("ppk: [{ id: a }]"), "(keys.handshake.ppk[0]", "`file`"),
        (with("every: 1 ms"), "(keys.handshake.every)", "100 ms"),
        (with("every: 60"), "(keys.handshake.every)", "no unit"),
        (
            with("bytes: 1 kB"),
            "(keys.handshake.bytes)",
            "out of range",
        ),
        (
            with("packets: 10"),
            "(keys.handshake.packets)",
            "out of range",
        ),
        (
            with("every: 100 ms, grace: 60 s"),
            "(keys.handshake.grace)",
            "more than 64 epochs are live at a time",
        ),
        (
            with("every: 1 h, hard: 60 min"),
            "(keys.handshake.hard)",
            "all packets would be dropped after 1 h",
        ),
        (
            with("grace: 1 ms"),
            "(keys.handshake.grace)",
            "out of range",
        ),
        (
            with("gracee: 1 s"),
            "(keys.handshake.gracee)",
            "did you mean `grace`",
        ),
        (
            SMALLEST.to_owned() + "faults: wrong-keys\n",
            "(faults)",
            "write `insecure: true`",
        ),
        (
            SMALLEST.to_owned() + "insecure: on\nfaults: wrong\n",
            "(faults)",
            "wrong-keys",
        ),
        (
            SMALLEST.to_owned() + "control_port: 0\n",
            "(control_port)",
            "out of range",
        ),
    ] {
        let message = mistakes(&text);
        assert!(message.contains(place), "{place}: {message}\n{text}");
        assert!(message.contains(what), "{what}: {message}");
    }
}

#[test]
fn all_mistakes_in_key_settings_are_reported_together() {
    let more = "policy: both, ppk: [{ id: a }], every: 1, grace: 1 h";
    let message = mistakes(&(with(more) + "control_port: 70000\n"));
    for place in [
        "(keys.handshake.ppk[0]",
        "(keys.handshake)",
        "(keys.handshake.every)",
        "(keys.handshake.grace)",
        "(control_port)",
    ] {
        assert!(message.contains(place), "{place}: {message}");
    }
}
