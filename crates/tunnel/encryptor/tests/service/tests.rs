//! Properties of a running service.

use crate::gateway::{Gateway, metrics};
use crate::namespace::{Namespace, pair};
use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Maximum memory for a thousand tunnels, in KiB.
const RESIDENT_KIB_MAX: u64 = 200 * 1024;
/// The user and the group `nobody`.
const NOBODY: Option<u32> = Some(65_534);
/// Limit of every wait in the tests; machines with concurrent builds are slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A folder with a pair of key files, `a.key` and `b.key`.
pub(crate) fn keys() -> TempDir {
    let folder = testing::folder().unwrap();
    let [a, b] = ["a.key", "b.key"].map(|name| folder.path().join(name));
    keying::create_pair(&a, &b).unwrap();
    folder
}

/// Waits for a state; fails with `what` if it is not reached.
pub(crate) fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "still not: {what}");
        std::thread::yield_now();
    }
}

/// The gateway in namespace A or B: `side` is 0 or 1, `rest` follows the addresses in its file.
pub(crate) fn start(
    side: usize,
    namespace: &Namespace,
    folder: &Path,
    rest: &str,
) -> Result<Gateway, String> {
    let config = format!("local: 192.0.2.{}\n{rest}", side + 1);
    let file = folder.join(format!("gw{}.yaml", side + 1));
    Gateway::start(namespace, &file, &config)
}

/// One tunnel between 10.1.0.1 and 10.2.0.1.
pub(crate) fn one_tunnel(side: usize, more: &str) -> String {
    let (own, key, remote) = [(1, "a", 2), (2, "b", 1)][side];
    format!(
        "remote: 192.0.2.{remote}\n\
         keys: {{ static: {key}.key }}\n\
         tunnel: {{ address: 10.{own}.0.1/24, routes: [10.{remote}.0.0/24] }}\n{more}"
    )
}

pub(crate) fn a_service_keeps_only_the_privileges_it_needs() {
    let (folder, namespaces) = (keys(), pair());
    let more = "workers: 2\npin: 0\nmetrics: 127.0.0.1:9464\n";
    let [gw1, gw2] = [0, 1].map(|side| {
        start(
            side,
            &namespaces[side],
            folder.path(),
            &one_tunnel(side, more),
        )
        .unwrap()
    });
    assert!(namespaces[0].reaches("10.2.0.1"));
    // A separate thread records the epoch that the packet has proven.
    for side in ["a", "b"] {
        let file = folder.path().join(format!("{side}.key.epoch"));
        await_that("both epochs are on the disk", || {
            let epochs = fs::read_to_string(&file).unwrap();
            epochs.contains("outbound: 1\npeer: 1\n")
        });
    }
    let text = metrics(&namespaces[0]);
    assert!(
        text.contains("busy_poll=\"off\",fail_open=\"off\""),
        "{text}"
    );
    assert!(
        text.contains("\ncipherbench_engine_replaced_sas_total 0\n"),
        "{text}"
    );
    assert!(
        text.contains("caps=\"none\",bounding=\"empty\",seccomp=\"on\""),
        "{text}"
    );
    assert!(
        text.contains("cipherbench_cipher_rx_packets_total"),
        "{text}"
    );

    for (field, expected) in [
        ("CapEff", "0000000000000000"),
        ("CapPrm", "0000000000000000"),
        ("CapInh", "0000000000000000"),
        ("CapAmb", "0000000000000000"),
        ("CapBnd", "0000000000000000"),
        ("NoNewPrivs", "1"),
        ("Seccomp", "2"),
    ] {
        let of_threads = gw1.status(field);
        assert!(
            of_threads.len() >= 4,
            "main, metrics and two lanes: {of_threads:?}"
        );
        for (thread, value) in of_threads {
            assert_eq!(value, expected, "{field} of the thread {thread}");
        }
    }
    let filters = gw1.status("Seccomp_filters");
    assert_eq!(filters["lane-0"], "3", "{filters:?}");
    assert_eq!(gw1.status("Cpus_allowed_list")["lane-1"], "0");
    let limits = gw1.proc("limits");
    let core = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"));
    let core: Vec<_> = core.unwrap().split_whitespace().collect();
    assert_eq!(core[4..6], ["0", "0"]);
    // The lab reads this to determine a device's CPU time.
    assert!(gw1.proc("stat").contains(") "));
    for gateway in [gw1, gw2] {
        gateway.stop();
    }
}

pub(crate) fn packets_pass_with_any_lane_settings() {
    for more in [
        "aggregate: on\n",
        "busy_poll: on\n",
        "suite: aes-128-cbc-hmac-sha256\n",
        "suite: null-hmac-sha1\ninsecure: true\ndscp: copy\n",
        "engine: \"null\"\ninsecure: true\necn: off\n",
    ] {
        let (folder, namespaces) = (keys(), pair());
        let gateways = [0, 1].map(|side| {
            let config = one_tunnel(side, more);
            start(side, &namespaces[side], folder.path(), &config).unwrap()
        });
        assert!(namespaces[0].reaches("10.2.0.1"), "{more}");
        assert!(namespaces[1].reaches_with(1390, "10.1.0.1"), "{more}");
        for gateway in gateways {
            gateway.stop();
        }
    }
}

pub(crate) fn privileges_are_kept_if_configured() {
    let (folder, namespaces) = (keys(), pair());
    let config = one_tunnel(0, "privileges: keep\n");
    let gateway = start(0, &namespaces[0], folder.path(), &config).unwrap();
    assert_eq!(gateway.facts["caps"], "kept");
    assert_eq!(gateway.facts["seccomp"], "off");
    assert!(gateway.status("Seccomp").values().all(|mode| mode == "0"));
    gateway.stop();
}

pub(crate) fn a_thousand_tunnels_share_a_key_file_and_an_address() {
    let (folder, namespaces) = (keys(), pair());
    let gateways = [0, 1].map(|side| {
        let (own, key, remote) = [(1, "a", 2), (2, "b", 1)][side];
        let mut config = format!("tunnel: {{ address: 10.{own}.0.1/32 }}\npeers:\n");
        for tunnel in 0..1000 {
            let network = format!("10.{}.{}.0/24", 10 * remote + tunnel / 256, tunnel % 256);
            writeln!(
                config,
                "  - {{ remote: 192.0.2.{remote}, keys: {{ static: {key}.key }}, routes: [{network}] }}"
            )
            .unwrap();
        }
        start(side, &namespaces[side], folder.path(), &config).unwrap()
    });
    assert_eq!(gateways[0].facts["tunnels"], "1000");
    // Every address behind either gateway is its own.
    namespaces[0].ip("route add local 10.10.0.0/15 dev lo\nroute add local 10.12.0.0/15 dev lo");
    namespaces[1].ip("route add local 10.20.0.0/14 dev lo");
    for tunnel in 0..1000u16 {
        let [number, third] = tunnel.to_be_bytes();
        let [a, b] = [0, 1].map(|side| {
            let address = Ipv4Addr::new(10, [10, 20][side] + number, third, 1);
            let socket = namespaces[side].run(move || UdpSocket::bind((address, 0)).unwrap());
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket
        });
        // There and back, so that all SAs of both gateways are in use.
        let mut buffer = [0; 8];
        for [from, to] in [[&a, &b], [&b, &a]] {
            from.send_to(b"through", to.local_addr().unwrap()).unwrap();
            let (bytes, source) = to.recv_from(&mut buffer).unwrap();
            let expected = (7, from.local_addr().unwrap());
            assert_eq!((bytes, source), expected, "tunnel {tunnel}");
        }
    }
    for gateway in &gateways {
        let status = gateway.proc("status");
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident = resident.unwrap().trim_end_matches("kB").trim();
        let kib: u64 = resident.parse().unwrap();
        assert!(kib < RESIDENT_KIB_MAX, "{kib} KiB");
    }
}

pub(crate) fn selectors_determine_the_tunnel_of_a_packet() {
    let (folder, namespaces) = (keys(), pair());
    // Pings have a tunnel of their own, which has no other traffic.
    let config = |side: usize, protocol: &str| {
        let (own, key, remote) = [(1, "a", 2), (2, "b", 1)][side];
        format!(
            "tunnel: {{ address: 10.{own}.0.1/32 }}\n\
             metrics: 127.0.0.1:9464\n\
             peers:\n  - {{ id: 7, remote: 192.0.2.{remote}, keys: {{ static: {key}.key }}, \
             routes: [10.{remote}.0.0/24], local: [10.{own}.0.0/24], protocol: {protocol} }}\n"
        )
    };
    let gateways = [0, 1].map(|side| {
        start(
            side,
            &namespaces[side],
            folder.path(),
            &config(side, "icmp"),
        )
    });
    let gateways = gateways.map(Result::unwrap);
    assert!(namespaces[0].reaches("10.2.0.1"));
    namespaces[0].run(|| {
        let socket = UdpSocket::bind("10.1.0.1:0").unwrap();
        socket.send_to(b"no", "10.2.0.1:9").unwrap();
    });
    let dropped = |text: &str| {
        let mut lines = text.lines();
        let line = lines.find(|line| line.contains("reason=\"no_tunnel\""));
        let count = line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        count.is_some_and(|count| count >= 1)
    };
    // The lane updates its counters once per batch.
    await_that("a packet was dropped", || dropped(&metrics(&namespaces[0])));
    for gateway in gateways {
        gateway.stop();
    }
}

pub(crate) fn an_engine_that_fails_is_replaced_logged_and_counted() {
    let (folder, namespaces) = (keys(), pair());
    // This device is the fastest engine until it fails.
    let device = "{ latency: 0 s, rate: 10 Tbit/s, errors: 1 }";
    let more = format!("engine: {{ model: {device}, else: aws-lc }}\nmetrics: 127.0.0.1:9464\n");
    let gateways = [0, 1].map(|side| {
        let config = one_tunnel(side, &more);
        start(side, &namespaces[side], folder.path(), &config).unwrap()
    });
    assert!(namespaces[0].reaches("10.2.0.1"), "no packet is lost");
    let text = metrics(&namespaces[0]);
    let counts = text
        .lines()
        .find_map(|line| line.strip_prefix("cipherbench_engine_replaced_sas_total "));
    let replaced: u64 = counts.unwrap().parse().unwrap();
    assert!(
        replaced >= 2,
        "it sealed for one SA and opened for another: {replaced}"
    );
    for gateway in gateways {
        let output = gateway.stop();
        assert!(output.contains("failed and is no longer used"), "{output}");
    }
}

pub(crate) fn a_missing_cpu_is_refused() {
    let (folder, namespaces) = (keys(), pair());
    let config = one_tunnel(0, "pin: [0, 1000]\n");
    let Err(output) = start(0, &namespaces[0], folder.path(), &config) else {
        panic!("it came up")
    };
    assert!(output.contains("there is no cpu 1000"), "{output}");
    // No epoch was wasted.
    let epochs = fs::read_to_string(folder.path().join("a.key.epoch")).unwrap();
    assert!(epochs.contains("outbound: 0\n"), "{epochs}");
}

/// ```text
/// 10.9.0.1 eth0 ~ clear0 ~ gw1 ~ w0 ==== w1 ~ gw2 ~ clear0 ~ eth0 10.9.0.2
/// ```
fn frames_pass(mode: &str) {
    let (folder, namespaces) = (keys(), pair());
    let stations = [0, 1].map(|side| {
        let address = format!("10.9.0.{}/24", side + 1);
        namespaces[side].station("clear0", &address)
    });
    let gateways = [0, 1].map(|side| {
        let (own, key, remote) = [(1, "a", 2), (2, "b", 1)][side];
        let config = format!(
            "remote: 192.0.2.{remote}\ninterface: clear0\n{}",
            mode.replace("OWN", &own.to_string())
                .replace("PEER", &remote.to_string())
                .replace("KEY", key)
        );
        start(side, &namespaces[side], folder.path(), &config).unwrap()
    });
    assert!(stations[0].reaches("10.9.0.2"), "{mode}");
    // A full frame: longer than the path's MTU once it is encapsulated.
    assert!(stations[1].reaches_with(1472, "10.9.0.1"), "{mode}");
    for gateway in gateways {
        assert_eq!(gateway.facts["caps"], "none");
        gateway.stop();
    }
}

pub(crate) fn frames_pass_between_interfaces() {
    frames_pass("keys: { static: KEY.key }\nmode: l2\n");
}

pub(crate) fn frames_pass_in_a_pseudowire() {
    let sessions = "session: OWN, peer_session: PEER, cookie: \"0000000OWN\", \
                    peer_cookie: \"0000000PEER\"";
    frames_pass(&format!(
        "keys: {{ static: KEY.key }}\nmode: l2tpv3\nl2tpv3: {{ {sessions} }}\n"
    ));
    frames_pass(&format!(
        "mode: l2tpv3\ninsecure: true\nl2tpv3: {{ {sessions}, encapsulation: udp }}\n"
    ));
}

pub(crate) fn keys_of_another_user_are_refused_with_advice() {
    let (folder, namespaces) = (keys(), pair());
    if chown(folder.path(), NOBODY, None).is_err() {
        eprintln!("SKIPPED: there is no other user in this user namespace");
        return;
    }
    let config = one_tunnel(0, "");
    // The folder's owner could put an old epoch file beside root's key.
    let Err(output) = start(0, &namespaces[0], folder.path(), &config) else {
        panic!("it came up")
    };
    assert!(output.contains("belongs to the user "), "{output}");
    // So is a configuration of that user, who may then name files of his.
    for file in fs::read_dir(folder.path()).unwrap() {
        chown(file.unwrap().path(), NOBODY, None).unwrap();
    }
    let Err(output) = start(0, &namespaces[0], folder.path(), &config) else {
        panic!("it came up")
    };
    assert!(
        output.contains("a.key.epoch cannot be written by user 0"),
        "{output}"
    );
    assert!(output.contains("`chown -R 0 /"), "{output}");
    // With root's privileges everything is available.
    let config = one_tunnel(0, "privileges: keep\n");
    let gateway = start(0, &namespaces[0], folder.path(), &config);
    gateway.unwrap().stop();
}

/// Gives a folder and its files to the user `nobody`; `None` in a user namespace without that user.
pub(crate) fn give_to_nobody(folder: &Path) -> Option<()> {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    for path in files.chain([folder.to_owned()]) {
        if chown(path, NOBODY, NOBODY).is_err() {
            eprintln!("SKIPPED: there is no other user in this user namespace");
            return None;
        }
    }
    Some(())
}

/// Checks that every thread of the gateway is an unprivileged one of `nobody`.
pub(crate) fn assert_is_nobody(gateway: &Gateway) {
    let number = "65534";
    for (field, expected) in [
        ("Uid", [number; 4].join("\t")),
        ("Gid", [number; 4].join("\t")),
        ("Groups", String::new()),
        ("CapEff", "0".repeat(16)),
        ("CapPrm", "0".repeat(16)),
        ("CapInh", "0".repeat(16)),
        ("CapAmb", "0".repeat(16)),
        ("CapBnd", "0".repeat(16)),
        ("NoNewPrivs", "1".to_owned()),
        ("Seccomp", "2".to_owned()),
    ] {
        for (thread, value) in gateway.status(field) {
            assert_eq!(value, expected, "{field} of the thread {thread}");
        }
    }
    assert_eq!(gateway.facts["uid"], number);
}

pub(crate) fn a_service_runs_as_its_user() {
    let (folder, namespaces) = (keys(), pair());
    let Some(()) = give_to_nobody(folder.path()) else {
        return;
    };
    let more = "user: nobody\nworkers: 2\nmetrics: 127.0.0.1:9464\n";
    let gateways = [0, 1].map(|side| {
        let config = one_tunnel(side, more);
        start(side, &namespaces[side], folder.path(), &config).unwrap()
    });
    gateways.iter().for_each(assert_is_nobody);
    assert!(namespaces[0].reaches("10.2.0.1"));
    gateways[0].rekey();
    await_that("there are new keys", || {
        metrics(&namespaces[0]).contains("\ncipherbench_rekeys_total 1\n")
    });
    assert!(namespaces[0].reaches("10.2.0.1"));
    for (side, epochs) in [
        ("a", "outbound: 2\npeer: 1\n"),
        ("b", "outbound: 1\npeer: 2\n"),
    ] {
        let file = folder.path().join(format!("{side}.key.epoch"));
        await_that("the epochs are on the disk", || {
            fs::read_to_string(&file).unwrap().contains(epochs)
        });
    }
    for gateway in gateways {
        gateway.stop();
    }
}

pub(crate) fn a_user_who_does_not_exist_or_may_not_write_is_reported() {
    let (folder, namespaces) = (keys(), pair());
    for (user, expected) in [
        ("no-such-user", "there is no user `no-such-user`"),
        // The files are root's.
        ("nobody", "a.key.epoch cannot be written by user 65534"),
    ] {
        let config = one_tunnel(0, &format!("user: {user}\n"));
        let Err(output) = start(0, &namespaces[0], folder.path(), &config) else {
            panic!("it came up")
        };
        let errors = output.lines().filter(|line| line.starts_with("error"));
        assert_eq!(errors.count(), 1, "{output}");
        assert!(output.contains(expected), "{output}");
    }
}

pub(crate) fn the_packaged_user_can_be_created() {
    let (root, file) = (
        testing::folder().unwrap(),
        "../../../packaging/sysusers.conf",
    );
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    fs::create_dir(root.path().join("etc")).unwrap();
    let mut sysusers = Command::new("systemd-sysusers");
    let sysusers = sysusers.arg("--root").arg(root.path());
    let Ok(output) = sysusers.arg(file.canonicalize().unwrap()).output() else {
        eprintln!("SKIPPED: there is no systemd-sysusers");
        return;
    };
    assert!(output.status.success(), "{output:?}");
    let users = fs::read_to_string(root.path().join("etc/passwd")).unwrap();
    let user = users.lines().find(|line| line.starts_with("cipherbench:"));
    assert!(
        user.is_some_and(|line| line.ends_with("/nologin")),
        "{users}"
    );
}

pub(crate) fn dropped_privileges_cannot_be_regained() {
    let folder = keys();
    let output = Command::new(std::env::current_exe().unwrap())
        .arg("confined")
        .arg(folder.path().join("a.key"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
}

pub(crate) fn a_service_that_may_connect_is_otherwise_confined() {
    let folder = testing::folder().unwrap();
    let file = folder.path().join("alpha.ppk");
    keying::create_ppk(&[&file]).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .arg("connecting")
        .arg(file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
}
