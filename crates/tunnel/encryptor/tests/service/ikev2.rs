//! Services whose keys come from IKEv2, with each other and with strongSwan's daemon.
//!
//! ```text
//!   ns A: cb0 10.1.0.1 ~ gw1 ~ w0 192.0.2.1 ==== 192.0.2.2 w1 ~ gw2 or charon ~ 10.2.0.1 :ns B
//! ```
//!
//! gw1 has the lower address, so it begins.

mod charon;

pub(crate) use charon::{
    a_tunnel_with_strongswan_carries_packets_in_both_roles,
    strongswan_is_authenticated_by_certificates_in_both_roles,
};

use crate::gateway::{Gateway, metrics};
use crate::namespace::{Namespace, pair};
use crate::negotiated::{dropped, folder, metric, write_ppk};
use crate::stations::Stations;
use crate::tests::{await_that, start};
use pki::{create_authority, create_certificate};
use std::path::Path;
use std::time::{Duration, Instant};

/// Drops that are no loss of packets: these begin before there are keys, or carry none.
const NO_LOSS: &[&str] = &["no_keys", "keepalive", "ike_message"];
/// Maximum outage after a restart: the side that is not restarted learns of it by a new IKE SA.
const RESTART_MAX: Duration = Duration::from_secs(10);

/// One tunnel; `more` follows in `ike`.
fn tunnel(side: usize, more: &str) -> String {
    let (own, remote) = [(1, 2), (2, 1)][side];
    format!(
        "remote: 192.0.2.{remote}\n\
         keys: {{ ike: {{ identity: gw{own}.example, peer: gw{remote}.example, psk: alpha.ppk, {more} }} }}\n\
         tunnel: {{ address: 10.{own}.0.1/24, routes: [10.{remote}.0.0/24] }}\n\
         metrics: 127.0.0.1:9464\n"
    )
}

/// Certificates of both gateways by one authority, with the names of IKE.
fn certify(folder: &Path) {
    for name in ["gw1.example", "gw2.example"] {
        create_certificate(folder, name, folder, 30).unwrap();
    }
}

/// One tunnel with certificates instead of a shared key.
fn certified(side: usize, more: &str) -> String {
    let own = side + 1;
    tunnel(side, more).replace("psk: alpha.ppk, ", "")
        + &format!(
            "identity: {{ certificate: gw{own}.example.pem, key: gw{own}.example.key, ca: ca.pem }}\n"
        )
}

fn start_both(folder: &Path, namespaces: &[Namespace; 2], more: [&str; 2]) -> [Gateway; 2] {
    [0, 1].map(|side| {
        let config = tunnel(side, more[side]);
        start(side, &namespaces[side], folder, &config).unwrap()
    })
}

fn await_up(namespace: &Namespace) {
    await_that("IKE has created a child SA", || {
        metric(namespace, "cipherbench_ike_tunnels_up") == 1
    });
}

/// A counter with a reason, which has no line before it counts.
fn count(namespace: &Namespace, name: &str, reason: &str) -> u64 {
    let line = format!("cipherbench_ike_{name}_total{{reason=\"{reason}\"}}");
    if metrics(namespace).contains(&line) {
        metric(namespace, &line)
    } else {
        0
    }
}

fn rekeys(namespace: &Namespace, sa: &str) -> u64 {
    let name = format!("cipherbench_ike_rekeys_total{{sa=\"{sa}\"}}");
    metric(namespace, &name)
}

pub(crate) fn two_services_negotiate_by_ike_and_packets_pass() {
    let (folder, namespaces) = (folder(), pair());
    let more = "ppk: [{ id: alpha, file: alpha.ppk }]";
    for (more, exchange, ppk, quantum) in [
        ("", "x25519+mlkem768", "no", "yes"),
        (
            "proposals: aes256gcm16-prfsha384-ecp384",
            "ecp384",
            "no",
            "no",
        ),
        (
            &*format!("proposals: [aes128-sha256-x25519, aes256gcm16-prfsha384-x25519], {more}"),
            "x25519",
            "yes",
            "yes",
        ),
    ] {
        let gateways = start_both(folder.path(), &namespaces, [more; 2]);
        for gateway in &gateways {
            assert_eq!(gateway.facts["keys"], "ike");
        }
        namespaces.iter().for_each(await_up);
        for gateway in &gateways {
            // The thread of IKE may make the system calls of a lane, and no others.
            let filters = gateway.status("Seccomp_filters");
            assert_eq!(filters["ike"], filters["lane-0"], "{filters:?}");
        }
        assert!(namespaces[0].reaches("10.2.0.1"));
        assert!(namespaces[1].reaches_with(1390, "10.1.0.1"));
        for (namespace, peer) in namespaces.iter().zip(["gw2", "gw1"]) {
            let text = metrics(namespace);
            let line = format!(
                "cipherbench_ike_tunnel_info{{tunnel=\"0\",peer=\"{peer}.example\",\
                 exchange=\"{exchange}\",ppk=\"{ppk}\",post_quantum=\"{quantum}\"}} 1"
            );
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
            assert_eq!(metric(namespace, "cipherbench_ike_established_total"), 1);
            assert_eq!(dropped(namespace, NO_LOSS), [""; 0]);
        }
        for gateway in gateways {
            let output = gateway.stop();
            let keys = format!("has keys by IKEv2 with {exchange}");
            assert!(output.contains(&keys), "{output}");
        }
    }
}

pub(crate) fn rekeys_by_ike_under_traffic_lose_no_packet() {
    for (more, by_time) in [
        ("every: 400 ms, ike_every: 1500 ms", true),
        ("packets: 3000", false),
    ] {
        let (folder, namespaces) = (folder(), pair());
        let gateways = start_both(folder.path(), &namespaces, [more; 2]);
        namespaces.iter().for_each(await_up);
        let stations = Stations::new(&namespaces);
        stations.await_passage();
        let before = [0, 1].map(|side| dropped(&namespaces[side], &["ike_message"]));
        let mut number = 0;
        let mut enough = |what: &str, holds: &dyn Fn() -> bool| {
            await_that(what, || {
                for _ in 0..20 {
                    stations.cross(number);
                    number += 1;
                }
                holds()
            });
        };
        for (gateway, namespace) in gateways.iter().zip(&namespaces) {
            gateway.rekey();
            enough("the requested renewal is counted", &|| {
                metric(namespace, "cipherbench_rekeys_total") >= 1
            });
        }
        enough("child SAs were replaced", &|| {
            namespaces.iter().all(|side| rekeys(side, "child") >= 6)
        });
        if by_time {
            enough("the IKE SA was replaced", &|| {
                namespaces.iter().all(|side| rekeys(side, "ike") >= 2)
            });
        }
        for (namespace, before) in namespaces.iter().zip(before) {
            assert_eq!(dropped(namespace, &["ike_message"]), before, "{more}");
            assert_eq!(metric(namespace, "cipherbench_ike_established_total"), 1);
        }
        for gateway in gateways {
            gateway.stop();
        }
    }
}

pub(crate) fn a_tunnel_with_ike_recovers_after_a_restart_of_either_side() {
    let (folder, namespaces) = (folder(), pair());
    let mut gateways = start_both(folder.path(), &namespaces, [""; 2]).map(Some);
    namespaces.iter().for_each(await_up);
    Stations::new(&namespaces).await_passage();
    for side in [0, 1] {
        // Killed: it cannot delete its IKE SA.
        drop(gateways[side].take());
        let gateway = start(side, &namespaces[side], folder.path(), &tunnel(side, "")).unwrap();
        let ready = Instant::now();
        gateways[side] = Some(gateway);
        Stations::new(&namespaces).await_passage();
        let took = ready.elapsed();
        assert!(took < RESTART_MAX, "gateway {side}: {took:?}");
    }
    // One that stops deletes its IKE SA, and the other drops its packets at once.
    let stopped = gateways[1].take().unwrap();
    stopped.stop();
    await_that("the peer has deleted the IKE SA", || {
        metric(&namespaces[0], "cipherbench_ike_tunnels_up") == 0
    });
    assert!(count(&namespaces[0], "ended", "deleted_by_peer") >= 1);
    assert!(!namespaces[0].reaches("10.2.0.1"));
    await_that("packets are dropped", || {
        let expired = "cipherbench_dropped_packets_total{lane=\"0\",reason=\"keys_expired\"}";
        metric(&namespaces[0], expired) > 0
    });
}

pub(crate) fn disagreements_in_ike_are_reported_with_what_to_change() {
    const AUTHENTICATION: &str = "AUTHENTICATION_FAILED (RFC 7296 section 2.21.2)";
    const PROPOSAL: &str = "NO_PROPOSAL_CHOSEN (RFC 7296 section 2.7)";
    let folder = folder();
    write_ppk(&folder.path().join("beta.ppk"), &[0x5a; 32]);
    let classic = "proposals: aes256gcm16-prfsha384-x25519";
    let with_ppk = "ppk: [{ id: alpha, file: alpha.ppk }]";
    for (of_gw2, reason, expected) in [
        (
            "other key",
            "AUTHENTICATION_FAILED",
            [
                vec!["the peer refuses with", AUTHENTICATION, "`psk`"],
                vec!["the peer has another shared key", AUTHENTICATION, "`psk`"],
            ],
        ),
        (
            classic,
            "NO_PROPOSAL_CHOSEN",
            [
                vec!["answers", PROPOSAL, "`proposals`"],
                vec!["a first message is refused", PROPOSAL, "`proposals`"],
            ],
        ),
        (
            with_ppk,
            "AUTHENTICATION_FAILED",
            [
                vec!["the peer refuses with", AUTHENTICATION, "the same `id`"],
                vec!["the peer uses no PPK", AUTHENTICATION, "the same `id`"],
            ],
        ),
    ] {
        let namespaces = pair();
        let mut configs = [0, 1].map(|side| tunnel(side, "role: initiate"));
        configs[1] = if of_gw2 == "other key" {
            tunnel(1, "role: respond").replace("alpha.ppk", "beta.ppk")
        } else {
            tunnel(1, &format!("role: respond, {of_gw2}"))
        };
        let gateways = [0, 1]
            .map(|side| start(side, &namespaces[side], folder.path(), &configs[side]).unwrap());
        await_that("the peer is refused", || {
            count(&namespaces[1], "ended", reason) > 0
        });
        await_that("the peer learns it", || {
            count(&namespaces[0], "ended", reason) > 0
                || count(&namespaces[0], "ignored", "unauthenticated_error") > 0
        });
        assert!(!namespaces[0].reaches("10.2.0.1"));
        for ((gateway, namespace), expected) in gateways.into_iter().zip(&namespaces).zip(expected)
        {
            assert_eq!(metric(namespace, "cipherbench_ike_tunnels_up"), 0);
            let output = gateway.stop();
            let has_all = |line: &str| expected.iter().all(|part| line.contains(part));
            assert!(output.lines().any(has_all), "{expected:?} in\n{output}");
            // Repeated attempts do not repeat the line.
            let lines = output.lines().filter(|line| has_all(line));
            assert_eq!(lines.count(), 1, "{output}");
        }
    }
}

pub(crate) fn certificates_authenticate_both_services() {
    let folder = folder();
    certify(folder.path());
    let strange = folder.path().join("strange");
    create_authority(&strange).unwrap();
    create_certificate(&strange, "gw2.example", &strange, 30).unwrap();
    let namespaces = pair();
    let every = "every: 400 ms, ike_every: 1500 ms";
    let gateways = [0, 1].map(|side| {
        let config = certified(side, every);
        start(side, &namespaces[side], folder.path(), &config).unwrap()
    });
    namespaces.iter().for_each(await_up);
    assert!(namespaces[0].reaches("10.2.0.1"));
    // New IKE SAs need no certificates.
    await_that("both SAs are replaced", || {
        rekeys(&namespaces[0], "child") > 1 && rekeys(&namespaces[0], "ike") > 1
    });
    assert!(namespaces[1].reaches_with(1390, "10.1.0.1"));
    for gateway in gateways {
        gateway.stop();
    }
    // Another authority's certificate of the same name.
    let other = certified(1, "role: respond")
        .replace("gw2.example.pem", "strange/gw2.example.pem")
        .replace("gw2.example.key", "strange/gw2.example.key");
    let namespaces = pair();
    let configs = [certified(0, "role: initiate"), other];
    let gateways =
        [0, 1].map(|side| start(side, &namespaces[side], folder.path(), &configs[side]).unwrap());
    await_that("the peer is refused", || {
        count(&namespaces[0], "ended", "AUTHENTICATION_FAILED") > 0
    });
    assert!(!namespaces[0].reaches("10.2.0.1"));
    let [refusing, _] = gateways.map(Gateway::stop);
    let expected = "this side refuses the peer, the peer's certificate: it is not signed by the \
                    authority that this side trusts, with AUTHENTICATION_FAILED";
    assert!(refusing.contains(expected), "{refusing}");
}

pub(crate) fn a_certificate_that_ike_cannot_use_is_reported() {
    let (folder, namespaces) = (folder(), pair());
    certify(folder.path());
    let config = certified(0, "role: initiate");
    for (changed, parts) in [
        (
            config.replace("identity: gw1.example,", "identity: gw9.example,"),
            [
                "it is that of gw1.example",
                "not of the `identity` gw9.example",
            ],
        ),
        (
            config.replace("key: gw1.example.key", "key: gw2.example.key"),
            ["does not match the certificate", "made together"],
        ),
        (
            config.replace("ca: ca.pem", "ca: alpha.ppk"),
            ["alpha.ppk", "no certificate in PEM"],
        ),
        (
            config.replace("role: initiate", "crl: ca.pem"),
            ["ca.pem", "no revocation list in PEM"],
        ),
    ] {
        let refused = start(0, &namespaces[0], folder.path(), &changed);
        let message = refused.err().expect("the certificate cannot be used");
        for part in parts {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
}

pub(crate) fn an_ike_port_in_use_is_reported() {
    let (folder, namespaces) = (folder(), pair());
    let taken = namespaces[0].run(|| std::net::UdpSocket::bind("192.0.2.1:500").unwrap());
    let refused = start(0, &namespaces[0], folder.path(), &tunnel(0, ""));
    let message = refused.err().expect("the port is taken");
    for part in ["cannot bind 192.0.2.1:500 for IKE", "`ike_port`"] {
        assert!(message.contains(part), "{message}");
    }
    drop(taken);
}
