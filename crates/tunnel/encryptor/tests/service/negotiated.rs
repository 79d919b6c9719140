//! Services that negotiate their keys.
//!
//! ```text
//!   ns A: cb0 10.1.0.1 ~ gw1 ~ w0 192.0.2.1 ==== 192.0.2.2 w1 ~ gw2 ~ cb0 10.2.0.1 :ns B
//! ```
//!
//! gw1 has the lower address, so it connects.

use crate::gateway::{Gateway, metrics};
use crate::namespace::{Namespace, pair};
use crate::stations::Stations;
use crate::tests::{PATIENCE, await_that, keys, one_tunnel, start};
use base16ct::lower::encode_string;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use pki::{Authority, create_authority, create_certificate, days_from_now};
use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Maximum outage of a tunnel after either side restarts.
const RESTART_MAX: Duration = Duration::from_secs(2);
/// Attempts to meet that on a machine that may be busy.
const RESTARTS: usize = 4;
/// Text that no output may contain.
const PPK: [u8; 32] = *b"\x91q\xf3\x07B~\xd8\x1c\xaa\x55\x10\xee\x3d\x88\x4f\xc2\x99\x61\x7b\x02\xbe\xd0\xe5\x33\x0c\x76\xfa\x2b\x80\x19\xc7\x5d";

/// A folder with an authority, certificates of gw1 and gw2, and a PPK.
pub(crate) fn folder() -> TempDir {
    let folder = testing::folder().unwrap();
    let path = folder.path();
    create_authority(path).unwrap();
    for name in ["gw1", "gw2"] {
        create_certificate(path, name, path, 30).unwrap();
    }
    write_ppk(&path.join("alpha.ppk"), &PPK);
    folder
}

/// The PPK in `alpha.ppk`, in hexadecimal.
pub(crate) fn ppk_hex() -> String {
    encode_string(&PPK)
}

pub(crate) fn write_ppk(path: &Path, key: &[u8]) {
    let text = format!(
        "cipherbench_ppk: 1\nencoding: hex\nkey: {}\n",
        encode_string(key)
    );
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// One tunnel; `more` follows `peer` in `handshake`, `rest` follows in the file.
pub(crate) fn tunnel(side: usize, more: &str, rest: &str) -> String {
    let (own, remote) = [(1, 2), (2, 1)][side];
    format!(
        "remote: 192.0.2.{remote}\n\
         identity: {{ certificate: gw{own}.pem, key: gw{own}.key, ca: ca.pem }}\n\
         keys: {{ handshake: {{ peer: gw{remote}, {more} }} }}\n\
         tunnel: {{ address: 10.{own}.0.1/24, routes: [10.{remote}.0.0/24] }}\n\
         metrics: 127.0.0.1:9464\n{rest}"
    )
}

const WITH_PPK: &str = "ppk: [{ id: alpha, file: alpha.ppk }]";

/// Both gateways with the same settings.
pub(crate) fn start_both(
    folder: &Path,
    namespaces: &[Namespace; 2],
    more: &str,
    rest: &str,
) -> [Gateway; 2] {
    [0, 1].map(|side| {
        let config = tunnel(side, more, rest);
        start(side, &namespaces[side], folder, &config).unwrap()
    })
}

/// The value of a metric, selected by the text in front of it.
pub(crate) fn metric(namespace: &Namespace, name: &str) -> u64 {
    let text = metrics(namespace);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let line = line.unwrap_or_else(|| panic!("no {name} in\n{text}"));
    line.parse::<f64>().unwrap() as u64
}

pub(crate) fn epochs(namespace: &Namespace, cause: &str) -> u64 {
    let name = format!("cipherbench_epochs_established_total{{cause=\"{cause}\"}}");
    metric(namespace, &name)
}

pub(crate) fn await_established(namespaces: &[Namespace; 2]) {
    for namespace in namespaces {
        await_that("keys are agreed on", || {
            metric(namespace, "cipherbench_tunnels_established") == 1
        });
    }
}

/// Packets dropped so far, for all reasons but these.
pub(crate) fn dropped(namespace: &Namespace, but: &[&str]) -> Vec<String> {
    let text = metrics(namespace);
    let drops = text
        .lines()
        .filter(|line| line.starts_with("cipherbench_dropped_packets_total{"));
    let drops = drops.filter(|line| !line.ends_with(" 0"));
    drops
        .filter(|line| !but.iter().any(|reason| line.contains(reason)))
        .map(str::to_owned)
        .collect()
}

pub(crate) fn two_services_agree_on_keys_and_packets_pass() {
    let (folder, namespaces) = (folder(), pair());
    let gateways = start_both(folder.path(), &namespaces, WITH_PPK, "workers: 2\n");
    for (gateway, peer) in gateways.iter().zip(["gw2", "gw1"]) {
        assert_eq!(gateway.facts["keys"], "handshake");
        assert_eq!(gateway.facts["policy"], "pqc");
        assert_eq!(gateway.facts["kx"], "X25519MLKEM768");
        assert_eq!(
            (&*gateway.facts["caps"], &*gateway.facts["seccomp"]),
            ("none", "on"),
            "{peer}"
        );
    }
    await_established(&namespaces);
    assert!(namespaces[0].reaches("10.2.0.1"));
    assert!(namespaces[1].reaches_with(1390, "10.1.0.1"));
    for (namespace, peer) in namespaces.iter().zip(["gw2", "gw1"]) {
        let text = metrics(namespace);
        let line = format!(
            "cipherbench_tunnel_info{{tunnel=\"0\",peer=\"{peer}\",policy=\"pqc\",sources=\"handshake+ppk:alpha\"}} 1"
        );
        assert!(text.lines().any(|other| other == line), "{text}");
        assert_eq!(
            metric(namespace, "cipherbench_tunnel_epoch{tunnel=\"0\"}"),
            1
        );
        // A second attempt, if the peer was not up yet for the first.
        let first = epochs(namespace, "start") + epochs(namespace, "retry");
        assert_eq!(first, 1);
        // A lane sends keepalives at start to determine which offloads work.
        assert_eq!(dropped(namespace, &["no_keys", "keepalive"]), [""; 0]);
    }
    for gateway in gateways {
        let output = gateway.stop();
        assert!(
            output.contains("has keys, epoch 1, of handshake+ppk:alpha"),
            "{output}"
        );
    }
}

pub(crate) fn rollovers_under_traffic_lose_no_packet() {
    for (more, cause) in [
        ("every: 200 ms, grace: 500 ms", "time"),
        ("packets: 4000, grace: 500 ms", "packets"),
        ("bytes: 2 MB, grace: 500 ms", "bytes"),
    ] {
        let (folder, namespaces) = (folder(), pair());
        let gateways = start_both(folder.path(), &namespaces, more, "workers: 2\n");
        await_established(&namespaces);
        let stations = Stations::new(&namespaces);
        stations.await_passage();
        let before = [0, 1].map(|side| dropped(&namespaces[side], &[]));
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
        for asked in 1..=2 {
            for (gateway, namespace) in gateways.iter().zip(&namespaces) {
                gateway.rekey();
                enough("the requested renewals are counted", &|| {
                    metric(namespace, "cipherbench_rekeys_total") >= asked
                });
            }
        }
        enough(&format!("there were rollovers by {cause}"), &|| {
            let both = namespaces.iter().map(|side| epochs(side, cause));
            both.sum::<u64>() >= 6
        });
        for (namespace, before) in namespaces.iter().zip(before) {
            assert_eq!(dropped(namespace, &[]), before, "{more}");
            assert_eq!(metric(namespace, "cipherbench_desyncs_total"), 0);
        }
        for gateway in gateways {
            gateway.stop();
        }
    }
}

pub(crate) fn a_tunnel_recovers_soon_after_a_restart_of_either_side() {
    let (folder, namespaces) = (folder(), pair());
    let mut gateways = start_both(folder.path(), &namespaces, WITH_PPK, "").map(Some);
    await_established(&namespaces);
    for side in [0, 1] {
        let mut took = Vec::new();
        for _ in 0..RESTARTS {
            let other = 1 - side;
            let lost = metric(&namespaces[other], "cipherbench_peers_lost_total");
            // Killed: it cannot close its connections.
            drop(gateways[side].take());
            let config = tunnel(side, WITH_PPK, "");
            let gateway = start(side, &namespaces[side], folder.path(), &config).unwrap();
            let ready = Instant::now();
            gateways[side] = Some(gateway);
            Stations::new(&namespaces).await_passage();
            took.push(ready.elapsed());
            await_that("the other side has detected the loss", || {
                metric(&namespaces[other], "cipherbench_peers_lost_total") > lost
            });
        }
        let best = took.iter().min().unwrap();
        assert!(*best < RESTART_MAX, "gateway {side}: {took:?}");
    }
}

pub(crate) fn a_peer_without_a_valid_certificate_gets_no_keys_and_no_packet_leaves_in_clear() {
    let (folder, namespaces) = (folder(), pair());
    // The same name, from another authority.
    let foreign = testing::folder().unwrap();
    create_authority(foreign.path()).unwrap();
    create_certificate(foreign.path(), "gw2", foreign.path(), 30).unwrap();
    let gw1 = start(
        0,
        &namespaces[0],
        folder.path(),
        &tunnel(0, "policy: pqc", ""),
    )
    .unwrap();
    let gw2 = start(
        1,
        &namespaces[1],
        foreign.path(),
        &tunnel(1, "policy: pqc", ""),
    )
    .unwrap();
    let station = namespaces[0].run(|| UdpSocket::bind("10.1.0.1:7000").unwrap());
    for namespace in &namespaces {
        let failed = "cipherbench_handshakes_failed_total{reason=\"connection\"}";
        let refused = "cipherbench_connections_refused_total";
        await_that("it is refused", || {
            metric(namespace, failed) + metric(namespace, refused) > 0
        });
    }
    for _ in 0..20 {
        station.send_to(b"in clear", "10.2.0.1:7000").unwrap();
    }
    let no_keys = "cipherbench_dropped_packets_total{lane=\"0\",reason=\"no_keys\"}";
    await_that("packets are dropped", || {
        metric(&namespaces[0], no_keys) >= 20
    });
    let sent = "cipherbench_cipher_tx_packets_total{lane=\"0\"}";
    assert_eq!(metric(&namespaces[0], sent), 0);
    assert_eq!(metric(&namespaces[0], "cipherbench_tunnels_established"), 0);
    for gateway in [gw1, gw2] {
        let output = gateway.stop();
        assert!(output.contains("certificate"), "{output}");
    }
}

pub(crate) fn both_sides_report_what_they_disagree_on() {
    for (what, more, reason) in [
        (
            "another policy",
            ["policy: pqc", "policy: either, sae: gw1"],
            "policy",
        ),
        (
            "a PPK that one side lacks",
            [WITH_PPK, "policy: pqc"],
            "ppk",
        ),
        (
            "a PPK with another key",
            [WITH_PPK, "ppk: [{ id: alpha, file: other.ppk }]"],
            "keys_differ",
        ),
    ] {
        let (folder, namespaces) = (folder(), pair());
        write_ppk(&folder.path().join("other.ppk"), &[7; 32]);
        let gateways = [0, 1].map(|side| {
            let rest = if more[side].contains("either") {
                    "qkd: { kme: \"https://127.0.0.1:8443\", sae: gw2, certificate: gw2.pem, key: gw2.key, ca: ca.pem }\n"
                } else { "" };
            let config = tunnel(side, more[side], rest);
            start(side, &namespaces[side], folder.path(), &config).unwrap()
        });
        let name = format!("cipherbench_handshakes_failed_total{{reason=\"{reason}\"}}");
        for namespace in &namespaces {
            await_that(what, || metric(namespace, &name) > 0);
            assert_eq!(metric(namespace, "cipherbench_tunnels_established"), 0);
        }
        for gateway in gateways {
            let output = gateway.stop();
            assert!(output.contains(&format!("({reason}):")), "{what}: {output}");
        }
    }
}

pub(crate) fn different_keys_are_detected_repaired_and_counted() {
    for fault in ["wrong-keys", "missed-rollover"] {
        let (folder, namespaces) = (folder(), pair());
        let rest = format!("insecure: on\nfaults: {fault}\n");
        let gateways = start_both(folder.path(), &namespaces, "policy: pqc", &rest);
        await_established(&namespaces);
        let stations = Stations::new(&namespaces);
        stations.await_passage();
        gateways[1].inject_fault();
        let flood = |what: &str, name: &str| {
            await_that(what, || {
                for _ in 0..20 {
                    stations.a.send(b"are you there?").unwrap();
                }
                metric(&namespaces[1], name) > 0
            });
        };
        flood("the desync is detected", "cipherbench_desyncs_total");
        flood("it is over", "cipherbench_desync_lost_packets_total");
        stations.await_passage();
        let outage = metrics(&namespaces[1]);
        let outage = outage
            .lines()
            .find_map(|line| line.strip_prefix("cipherbench_desync_outage_seconds_total "));
        assert!(outage.unwrap().parse::<f64>().unwrap() > 0.0);
        // Lanes may open packets of the new epoch before the thread that installed it counts it.
        await_that("a new epoch is counted as the repair", || {
            namespaces.iter().any(|side| epochs(side, "desync") >= 1)
        });
        let [gw1, gw2] = gateways;
        gw1.stop();
        let output = gw2.stop();
        assert!(
            output.contains("packets in a row cannot be opened"),
            "{output}"
        );
        assert!(output.contains("desync over: "), "{output}");
    }
}

pub(crate) fn a_service_that_crashes_leaves_no_core_file() {
    // Raises the soft limit to the hard one: otherwise no process could leave a core file.
    let (_, most) = getrlimit(Resource::RLIMIT_CORE).unwrap();
    setrlimit(Resource::RLIMIT_CORE, most, most).unwrap();
    let namespaces = pair();
    let crash = |rest: &str| {
        let folder = folder();
        let gateways = start_both(folder.path(), &namespaces, WITH_PPK, rest);
        await_established(&namespaces);
        gateways.map(|gateway| {
            let ended = gateway.crash();
            assert_eq!(ended.signal(), Some(Signal::SIGABRT as i32));
            ended.core_dumped()
        })
    };
    if crash("privileges: keep\n") != [true; 2] {
        eprintln!("SKIPPED: this system lets no program dump its core");
    }
    assert_eq!(crash(""), [false; 2]);
}

pub(crate) fn no_output_of_a_service_contains_a_key() {
    let (folder, namespaces) = (folder(), pair());
    let gateways = start_both(folder.path(), &namespaces, WITH_PPK, "");
    await_established(&namespaces);
    assert!(namespaces[0].reaches("10.2.0.1"));
    let mut shown = metrics(&namespaces[0]) + &metrics(&namespaces[1]);
    for gateway in gateways {
        shown += &format!("{:?}", gateway.facts);
        // No core file in any case.
        let limits = gateway.proc("limits");
        let cores = limits
            .lines()
            .find(|line| line.starts_with("Max core file size"));
        let cores: Vec<_> = cores.unwrap().split_whitespace().skip(4).take(2).collect();
        assert_eq!(cores, ["0", "0"]);
        // Memory and environment are not checked: the kernel shows them to root only.
        shown += &gateway.proc("cmdline");
        shown += &gateway.stop();
    }
    let shown = shown.into_bytes();
    let own_keys = ["gw1.key", "gw2.key", "ca.key"].map(|name| {
        let text = fs::read_to_string(folder.path().join(name)).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with("-----"));
        lines.collect::<String>()
    });
    let base64 = "kXHzB0J+2Byq";
    let needles = [
        PPK.to_vec(),
        encode_string(&PPK).into(),
        encode_string(&PPK).to_uppercase().into(),
        base64.into(),
    ];
    let needles = needles.into_iter().chain(own_keys.map(String::into_bytes));
    for needle in needles {
        // A part of it would be as harmful.
        for part in needle.chunks_exact(8) {
            assert!(!shown.windows(part.len()).any(|window| window == part));
        }
    }
}

pub(crate) fn static_and_negotiated_keys_coexist() {
    let (folder, namespaces) = (folder(), pair());
    let keys = keys();
    for file in fs::read_dir(keys.path()).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    let gateways = [0, 1].map(|side| {
        let (own, remote, key) = [(1, 2, "a"), (2, 1, "b")][side];
        let config = format!(
            "identity: {{ certificate: gw{own}.pem, key: gw{own}.key, ca: ca.pem }}\n\
             control_port: 7443\n\
             metrics: 127.0.0.1:9464\n\
             tunnel: {{ address: 10.{own}.0.1/32 }}\n\
             peers:\n  \
             - {{ remote: 192.0.2.{remote}, keys: {{ static: {key}.key }}, routes: [10.{remote}.1.0/24] }}\n  \
             - {{ remote: 192.0.2.{remote}, keys: {{ handshake: {{ peer: gw{remote} }} }}, routes: [10.{remote}.0.0/24] }}\n"
        );
        start(side, &namespaces[side], folder.path(), &config).unwrap()
    });
    assert_eq!(gateways[0].facts["keys"], "static+handshake");
    await_established(&namespaces);
    for (namespace, own) in namespaces.iter().zip([1, 2]) {
        namespace.ip(&format!("address add 10.{own}.1.1/32 dev lo"));
    }
    assert!(namespaces[0].reaches("10.2.0.1"));
    let ping = [
        "-n", "-q", "-c", "1", "-w", "5", "-I", "10.1.1.1", "10.2.1.1",
    ];
    let output = namespaces[0].run(move || Command::new("ping").args(ping).output().unwrap());
    assert!(output.status.success(), "{output:?}");
    let rekeys = "cipherbench_rekeys_total";
    gateways[0].rekey();
    await_that("both have new keys", || metric(&namespaces[0], rekeys) == 1);
    assert!(namespaces[0].reaches("10.2.0.1"));
    // The control channel's thread counts by itself.
    await_that("the negotiated tunnel is in its second epoch", || {
        metric(&namespaces[0], "cipherbench_tunnel_epoch{tunnel=\"1\"}") == 2
    });
    for gateway in gateways {
        gateway.stop();
    }
}

pub(crate) fn keys_of_a_qkd_network_are_mixed_in() {
    let (folder, namespaces) = (folder(), pair());
    let authority = Authority::load(folder.path()).unwrap();
    let address = "192.0.2.1".parse().unwrap();
    for name in ["kme1", "kme2"] {
        let texts = authority
            .issue_at(name, address, days_from_now(30))
            .unwrap();
        let write = |ending: &str, text: &str| {
            let path = folder.path().join(format!("{name}.{ending}"));
            fs::write(&path, text).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        };
        write("pem", &texts.certificate);
        write("key", &texts.key);
    }
    let kme = |number: usize| {
        format!(
            "  - {{ name: kme{number}, listen: \"192.0.2.1:844{number}\", certificate: kme{number}.pem, \
             key: kme{number}.key, ca: ca.pem, saes: [gw{number}] }}\n"
        )
    };
    let file = folder.path().join("kme.yaml");
    fs::write(&file, format!("kmes:\n{}{}", kme(1), kme(2))).unwrap();
    let simulator = namespaces[0].run(move || {
        let config = qkd::kme::Config::load(&file).unwrap();
        qkd::kme::start(&config).unwrap()
    });
    let gateways = [0, 1].map(|side| {
        let (own, remote) = [(1, 2), (2, 1)][side];
        let qkd = format!(
            "qkd: {{ kme: \"https://192.0.2.1:844{own}\", sae: gw{own}, certificate: gw{own}.pem, \
             key: gw{own}.key, ca: ca.pem }}\n"
        );
        let more = format!("policy: both, sae: gw{remote}");
        let config = tunnel(side, &more, &qkd);
        start(side, &namespaces[side], folder.path(), &config).unwrap()
    });
    await_established(&namespaces);
    assert!(namespaces[0].reaches("10.2.0.1"));
    gateways[1].rekey();
    await_that("there are new keys", || {
        metric(&namespaces[1], "cipherbench_rekeys_total") == 1
    });
    assert!(namespaces[0].reaches("10.2.0.1"));
    for namespace in &namespaces {
        let text = metrics(namespace);
        assert!(
            text.contains("policy=\"both\",sources=\"handshake+qkd\"} 1"),
            "{text}"
        );
    }
    drop(simulator);
    for gateway in gateways {
        gateway.stop();
    }
}

pub(crate) fn a_control_port_in_use_is_reported() {
    let (folder, namespaces) = (folder(), pair());
    let _taken = namespaces[0].run(|| std::net::TcpListener::bind("192.0.2.1:4500").unwrap());
    let Err(output) = start(
        0,
        &namespaces[0],
        folder.path(),
        &tunnel(0, "policy: pqc", ""),
    ) else {
        panic!("it came up")
    };
    assert!(
        output.contains("cannot listen on 192.0.2.1:4500 for the control channel"),
        "{output}"
    );
    // With static keys no socket listens there.
    let keys = keys();
    let config = one_tunnel(0, "");
    start(0, &namespaces[0], keys.path(), &config)
        .unwrap()
        .stop();
}

pub(crate) fn a_thousand_tunnels_agree_on_keys() {
    const TUNNELS: u64 = 1000;
    let (folder, namespaces) = (folder(), pair());
    let start_of_all = Instant::now();
    let gateways = [0, 1].map(|side| {
        let (own, remote) = [(1, 2), (2, 1)][side];
        let mut config = format!(
            "identity: {{ certificate: gw{own}.pem, key: gw{own}.key, ca: ca.pem }}\n\
             metrics: 127.0.0.1:9464\n\
             tunnel: {{ address: 10.{own}.0.1/32 }}\npeers:\n"
        );
        for tunnel in 0..TUNNELS {
            let network = format!("10.{}.{}.0/24", 10 * remote + tunnel / 256, tunnel % 256);
            config += &format!(
                "  - {{ remote: 192.0.2.{remote}, keys: {{ handshake: {{ peer: gw{remote} }} }}, routes: [{network}] }}\n"
            );
        }
        start(side, &namespaces[side], folder.path(), &config).unwrap()
    });
    // A busy machine takes longer.
    let established = |side: usize| metric(&namespaces[side], "cipherbench_tunnels_established");
    while established(0) + established(1) < 2 * TUNNELS {
        let took = start_of_all.elapsed();
        assert!(
            took < 4 * PATIENCE,
            "{} and {} of {TUNNELS}",
            established(0),
            established(1)
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    namespaces[0].ip("route add local 10.10.0.0/15 dev lo\nroute add local 10.12.0.0/15 dev lo");
    namespaces[1].ip("route add local 10.20.0.0/14 dev lo");
    // The first, one in the middle, and the last.
    for target in ["10.20.0.1", "10.22.7.1", "10.23.231.1"] {
        let source = target.replacen(".2", ".1", 1);
        let words = ["-n", "-q", "-c", "1", "-w", "5", "-I"].map(str::to_owned);
        let words = words.into_iter().chain([source, target.to_owned()]);
        let words: Vec<_> = words.collect();
        let output = namespaces[0].run(move || Command::new("ping").args(words).output().unwrap());
        assert!(output.status.success(), "{target}: {output:?}");
    }
    for gateway in gateways {
        gateway.stop();
    }
}
