//! One box between the cables, of which the station is the peer: strongSwan and wireguard-go,
//! started by commands as any other box.

use super::await_that;
use super::rack::{Rack, adapter, shipped};
use crate::frames::{assert_all_came, frames, load, passes, short};
use crate::one_gateway::{emulated, is_missing};
use crate::trials::TestLab;
use journal::record::{Measured, Outcome};
use plan::{
    Carrier, Cell, Direction, External, ExternalBox, Form, GatewayPeer, IkePeer, IkeSecrets,
    WireGuardPeer,
};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use testbed::{Bench, NodeId};
use testing::busy;
use wire::Suite;

/// The box's configuration, for its own test network and the station's.
const SWANCTL: &str = "
connections {
  edge {
    version = 2
    local_addrs = 192.0.2.1
    remote_addrs = 192.0.2.2
    proposals = aes256-sha256-modp2048
    mobike = no
    AGAIN
    PPK_OF_CONNECTION
    local { auth = METHOD
      CERTIFICATE
      id = edge.example }
    remote { auth = METHOD
      AUTHORITY
      id = bench.example }
    children { CHILDREN }
  }
}
secrets { SECRETS }
";

const CHILD: &str = "NAME { local_ts = SELECTORS_A
      remote_ts = SELECTORS_B
      rekey_time = REKEY_TIME
      rand_time = 0
      life_time = 1h
      esp_proposals = {suite_word} }
";

/// An authority, and certificates by it of the box and of the station.
const CERTIFICATES: &str = "
umask 022; cd \"$1\"; mkdir x509 x509ca private
new() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \"$@\"; }
new -subj '/CN=Authority of the test' -keyout authority.key -out x509ca/authority.pem
for name in edge bench; do
    new -subj /CN=$name -addext subjectAltName=DNS:$name.example \\
        -CA x509ca/authority.pem -CAkey authority.key -keyout private/$name.pem -out x509/$name.pem
done
chmod 600 private/*
";

const STRONGSWAN: &str = include_str!("box.strongswan.conf");

/// Commands that every box needs first.
fn ports_up() -> Vec<String> {
    [
        "ip link set lo up && sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.disable_ipv6=1",
        "ip address replace {gateway_a}/24 dev eth0; ip link set eth0 mtu {mtu} up",
        "ip address replace {cipher_a}/24 dev wan; ip link set wan mtu {cipher_mtu} up",
        "ip route replace {test_network_a} via {station_a}",
        "for port in eth0 wan; do ethtool -K $port tso off gso off tx-udp-segmentation off; done",
    ]
    .map(str::to_owned)
    .into()
}

/// What a box does last.
pub(super) const LEAVE: &str = "ip rule del pref 1; ip rule del pref 0; ip rule add pref 0 lookup local; \
                                ip address flush dev eth0; ip address flush dev wan";

pub(super) fn kill(pid_file: &str) -> String {
    format!("pid=$(cat {pid_file}) && kill $pid && while kill -0 $pid; do sleep 0.01; done 2>&-")
}

pub(super) fn secret(rack: &Rack, name: &str, text: &str) -> PathBuf {
    let path = rack.path(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

fn gateway(
    rack: &Rack,
    carrier: Carrier,
    port: u16,
    up: Vec<String>,
    peer: GatewayPeer,
) -> External {
    let folder = rack.folder.path().display();
    External {
        boxes: vec![ExternalBox {
            via: rack.via(1),
            up,
            down: vec![kill(&format!("{folder}/box.pid")), LEAVE.to_owned()],
            ..ExternalBox::default()
        }],
        carrier: Some(carrier),
        format: None,
        ports: vec![port],
        bump: false,
        gateway: Some(Box::new(peer)),
        tunnels: 1,
        suite_word: None,
        limit_ns: 20_000_000_000,
        ready_ns: 10_000_000_000,
    }
}

/// What differs among the gateways of the tests.
#[derive(Clone, Copy, Default)]
pub(super) struct Tunnel {
    /// Selectors are all addresses.
    pub(super) any_address: bool,
    /// The station asks for all addresses, and the box takes a part of them.
    pub(super) narrows: bool,
    /// Both have certificates, and not a pre-shared key.
    pub(super) certificates: bool,
    /// A post-quantum pre-shared key is required too.
    pub(super) ppk: bool,
    /// The box renews the keys every second.
    pub(super) renews: bool,
    /// Tunnels that the box has selectors of its own for; 0: one for all.
    pub(super) apart: u8,
    /// The box ends its IKE SA every second, with all that was agreed on, and makes another one.
    pub(super) authenticates_anew: bool,
    /// It makes the other one first.
    pub(super) makes_before_break: bool,
    /// The box's kernel seals and opens, and ESP is bare.
    pub(super) bare: bool,
}

/// A strongSwan with kernel-libipsec, or with the kernel's ESP. Its TUN device, or its port to the
/// station, gets the route to all test addresses behind the station: its own are for whole networks
/// only.
pub(super) fn strongswan(rack: &Rack, tunnel: Tunnel) -> External {
    let Tunnel {
        any_address,
        narrows,
        certificates,
        ppk,
        renews,
        apart,
        authenticates_anew,
        makes_before_break,
        bare,
    } = tunnel;
    let folder = rack.folder.path().display().to_string();
    let selectors = match (any_address, narrows) {
        (true, _) => ["0.0.0.0/0", "0.0.0.0/0"],
        (false, true) => ["198.18.0.0/15", "198.19.0.0/24"],
        (false, false) => ["198.18.0.0/16", "198.19.0.0/16"],
    };
    let child = |name: &str, [own, peer]: [&str; 2]| {
        let named = CHILD.replace("NAME", name);
        named
            .replace("SELECTORS_A", own)
            .replace("SELECTORS_B", peer)
    };
    let of_one = |number: u8| {
        let [own, peer] = [18, 19].map(|side| format!("198.{side}.0.{number}/32"));
        child(&format!("tunnel{number}"), [&own, &peer])
    };
    let children = match apart {
        0 => child("all", selectors),
        apart => (1..=apart).map(of_one).collect(),
    };
    let again = if authenticates_anew {
        "reauth_time = 1s\n    rand_time = 0\n    over_time = 1h"
    } else {
        ""
    };
    let mut secrets = String::new();
    let mut words = [
        ("METHOD", "psk"),
        ("CERTIFICATE", ""),
        ("AUTHORITY", ""),
        ("PPK_OF_CONNECTION", ""),
    ];
    if certificates {
        words = [
            ("METHOD", "pubkey"),
            ("CERTIFICATE", "certs = edge.pem"),
            ("AUTHORITY", "cacerts = authority.pem"),
            ("PPK_OF_CONNECTION", ""),
        ];
    } else {
        secrets += "ike-1 { id-1 = edge.example\n  secret = \"a secret of the test\" }\n";
    }
    if ppk {
        words[3].1 = "ppk_id = lab-ppk\n    ppk_required = yes";
        secrets += "ppk-1 { id = lab-ppk\n  secret = \"a second secret of the test\" }\n";
    }
    let text = words
        .into_iter()
        .fold(SWANCTL.to_owned(), |text, (from, to)| {
            text.replace(from, to)
        })
        .replace("CHILDREN", &children)
        .replace("REKEY_TIME", if renews { "1s" } else { "0" })
        .replace("AGAIN", again)
        .replace("SECRETS", &secrets);
    let auth = if certificates {
        // Made once for all gateways of a rack.
        if !rack.path("x509").exists() {
            run_script(CERTIFICATES, &folder);
        }
        IkeSecrets::Certificates {
            authority: rack.path("x509ca/authority.pem"),
            certificate: rack.path("x509/bench.pem"),
            key: rack.path("private/bench.pem"),
        }
    } else {
        IkeSecrets::Psk(secret(rack, "psk", "a secret of the test\n"))
    };
    let order = if makes_before_break { "yes" } else { "no" };
    let mut daemon = STRONGSWAN
        .replace("FOLDER", &folder)
        .replace("MAKE_BEFORE_BREAK", order);
    if bare {
        // Without this plugin the daemon gives the keys to the kernel.
        daemon = daemon.replace(" kernel-libipsec", "");
    }
    fs::write(rack.path("strongswan.conf"), daemon).unwrap();
    let mut up = ports_up();
    // The daemon wants an address of the box in the network of each tunnel; packets for it are
    // passed on all the same.
    up.push(
        "for last in 0.1 0.2 0.3 255.254; do ip address replace 198.18.$last/32 dev lo; done\n\
         ip rule del pref 0; ip rule add pref 1 lookup local\n\
         ip rule add pref 0 to {test_network_a} lookup main"
            .to_owned(),
    );
    up.push(format!("cat > {folder}/swanctl.conf << 'END'\n{text}END"));
    // Its file with the process id has a fixed place.
    up.push(format!(
        "rm -f {folder}/box.vici; : > {folder}/box.log\n\
         STRONGSWAN_CONF={folder}/strongswan.conf unshare --mount sh -c \
         'mount -t tmpfs tmpfs /run; exec \"$(PATH=$PATH:/usr/lib/ipsec:/usr/libexec/ipsec command -v charon)\"' \
         > {folder}/box.log 2>&1 & echo $! > {folder}/box.pid\n\
         until grep -q 'JOB. spawning' {folder}/box.log\n\
         do kill -0 $! || {{ cat {folder}/box.log >&2; exit 1; }}; sleep 0.01; done"
    ));
    up.push(format!(
        "swanctl --load-all --noprompt --file {folder}/swanctl.conf --uri unix://{folder}/box.vici"
    ));
    let route = if bare {
        "ip route replace {test_network_b} via {cipher_b} dev wan metric 1"
    } else {
        "ip link set ipsec0 mtu 1400 txqueuelen 5000 up; ip route replace {test_network_b} dev ipsec0 metric 1"
    };
    up.push(route.to_owned());
    let peer = GatewayPeer::Ike(IkePeer {
        auth,
        ppk: ppk.then(|| {
            let file = secret(rack, "ppk", "a second secret of the test\n");
            (file, "lab-ppk".to_owned())
        }),
        own_id: Some("bench.example".to_owned()),
        box_id: Some("edge.example".to_owned()),
        proposal: Some("aes256-sha256-modp2048".to_owned()),
        ml_kem: false,
        any_address: any_address || narrows,
        box_initiates: false,
    });
    let carrier = Carrier {
        form: Form::Esp,
        suite: Suite::Aes256Gcm,
        udp: !bare,
    };
    let mut device = External {
        suite_word: Some("aes256gcm16".to_owned()),
        ..gateway(rack, carrier, 4500, up, peer)
    };
    device.boxes[0].counters = [(
        "renewals".to_owned(),
        format!("grep -c 'CHILD_SA.*established' {folder}/box.log"),
    )]
    .into();
    device
}

/// Runs a shell script that must succeed, with one argument.
fn run_script(script: &str, argument: &str) {
    let output = Command::new("sh")
        .args(["-euc", script, "sh", argument])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// All that was sent through the one gateway came, and the station was its peer.
fn assert_alone(measured: &Measured, direction: Direction) {
    let result = measured.frames().unwrap();
    let decrypts = direction == Direction::Decrypt;
    assert_eq!(result.sender.engine.is_some(), decrypts);
    assert_eq!(result.receiver.engine.is_some(), !decrypts);
    let checks = &measured.evidence.checks;
    assert!(passes(measured, "station-is-peer"), "{checks:?}");
    assert!(passes(measured, "only-test-frames"), "{checks:?}");
    assert!(passes(measured, "path-unchanged"), "{checks:?}");
    assert!(checks.iter().all(|it| it.name != "encryption-not-proven"));
    assert_eq!(measured.cpu.dut_ns, None, "the box has cores of its own");
}

fn measure(lab: &mut TestLab, device: &External, direction: Direction, ms: u64) -> Measured {
    let measured = lab.measured(&cell(device, direction, ms));
    assert_all_came(&measured, ms, 1);
    assert_alone(&measured, direction);
    measured
}

pub(super) fn cell(device: &External, direction: Direction, ms: u64) -> Cell {
    let mut traffic = short(direction);
    traffic.frames.tunnels = device.tunnels.into();
    frames(adapter(device.clone()), traffic, load(ms))
}

/// What a trial measured that passed every check, but for what other programs spoilt.
pub(super) fn nearly_measured(
    lab: &mut TestLab,
    device: &External,
    direction: Direction,
    ms: u64,
) -> Box<Measured> {
    let has = |reasons: &[String], check: &str| reasons.iter().any(|it| it.starts_with(check));
    let measured = match lab.record(&cell(device, direction, ms)).outcome {
        Outcome::Measured(measured) => measured,
        Outcome::Invalid { reasons, measured }
            if busy::is_the_cause(reasons.iter().map(String::as_str)) =>
        {
            measured
        }
        // Where the box gets no time to agree on keys, nothing comes.
        Outcome::Invalid { reasons, .. }
            if has(&reasons, "machine-was-ours") && !has(&reasons, "path-unchanged") =>
        {
            busy::too_busy(reasons.join("; "))
        }
        other => panic!("{other:#?}"),
    };
    assert_alone(&measured, direction);
    assert!(passes(&measured, "frames-arrived"));
    measured
}

/// The station asks for all addresses, and the box takes a part of them.
pub(super) fn narrowing() {
    let rack = Rack::with_one_box();
    if is_missing(adapter(strongswan(&rack, Tunnel::default()))) {
        return;
    }
    let mut lab = TestLab::on(&shipped("gateway.yaml"));
    let tunnel = Tunnel {
        narrows: true,
        ..Tunnel::default()
    };
    let device = strongswan(&rack, tunnel);
    for direction in [Direction::Encrypt, Direction::Decrypt] {
        nearly_measured(&mut lab, &device, direction, 200);
    }
    drop(lab);
    assert!(rack.has_all_back());
}

pub(super) fn ike() {
    let rack = Rack::with_one_box();
    if is_missing(adapter(strongswan(&rack, Tunnel::default()))) {
        return;
    }
    let before = Rack::addresses();
    let mut lab = TestLab::on(&shipped("gateway.yaml"));
    let plain = Tunnel::default();
    let mixed = Tunnel {
        any_address: true,
        ppk: true,
        ..plain
    };
    let renewed = Tunnel {
        certificates: true,
        ppk: true,
        renews: true,
        ..plain
    };
    for (tunnel, tunnels, suite, word) in [
        (plain, 1, "aes-256-gcm", "aes256gcm16"),
        (renewed, 3, "aes-128-cbc-hmac-sha256", "aes128-sha256"),
        (mixed, 1, "chacha20-poly1305", "chacha20poly1305"),
    ] {
        let mut device = strongswan(&rack, tunnel);
        device.tunnels = tunnels;
        device.carrier.as_mut().unwrap().suite = Suite::from_name(suite).unwrap();
        device.suite_word = Some(word.to_owned());
        // Longer than the second after which keys are renewed, so that a trial has a renewal in it.
        let ms = if tunnel.renews { 1200 } else { 200 };
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let measured = measure(&mut lab, &device, direction, ms);
            let facts = &measured.evidence.dut_facts;
            assert_eq!(facts["gw1/suite"], suite, "{facts:?}");
            let ike = &facts["gw1/ike"];
            assert!(ike.contains("MODP_2048"), "{facts:?}");
            assert_eq!(ike.ends_with("/PPK"), tunnel.ppk, "{facts:?}");
            assert!(measured.evidence.dut_counters.contains_key("gw1/renewals"));
            // Of all trials: that of the evidence may fall between two of them.
            let log = fs::read_to_string(rack.path("box.log")).unwrap();
            let set_up = log.matches(" established with SPIs ").count();
            assert_eq!(set_up > usize::from(tunnels), tunnel.renews, "{log}");
        }
    }
    drop(lab);
    assert!(rack.has_all_back());
    assert_eq!(Rack::addresses(), before);
}

/// The ESP of the box's kernel is bare.
pub(super) fn kernel() {
    let rack = Rack::with_one_box();
    let mut lab = TestLab::on(&shipped("gateway.yaml"));
    let tunnel = Tunnel {
        bare: true,
        ..Tunnel::default()
    };
    let device = strongswan(&rack, tunnel);
    for direction in [Direction::Encrypt, Direction::Decrypt] {
        let measured = emulated(&mut lab, &cell(&device, direction, 200));
        assert_alone(&measured, direction);
    }
    drop(lab);
    // A station on an emulated processor may have to be killed.
    await_that("all is given back", || rack.has_all_back());
}

pub(super) fn wireguard() {
    let rack = Rack::with_one_box();
    let mut lab = TestLab::on(&shipped("gateway.yaml"));
    let host = lab.lab.node(NodeId::Host);
    let located = |program| host.locate(program).unwrap();
    let started = match (located("wireguard-go"), located("boringtun-cli")) {
        (Some(go), _) => format!("{go} --foreground wgbox"),
        (None, Some(boringtun)) => {
            format!("{boringtun} --foreground --disable-drop-privileges wgbox")
        }
        (None, None) => {
            return testing::lacks(
                "one gateway that speaks WireGuard",
                "wireguard-go or boringtun-cli",
                "scripts/peers.sh",
            );
        }
    };
    let folder = rack.folder.path().display().to_string();
    let [station, own] = [wg(&["genkey"], ""), wg(&["genkey"], "")];
    let [station_public, own_public] = [&station, &own].map(|key| wg(&["pubkey"], key));
    let psk = wg(&["genpsk"], "");
    let conf = format!(
        "[Interface]\nPrivateKey = {own}\nListenPort = 51820\n[Peer]\nPublicKey = {station_public}\n\
         PresharedKey = {psk}\nEndpoint = 192.0.2.2:51820\nAllowedIPs = 10.2.0.0/24, 198.19.0.0/16\n"
    );
    secret(&rack, "wg.conf", &conf);
    let mut up = ports_up();
    up.push(format!(
        "{started} > {folder}/box.log 2>&1 & echo $! > {folder}/box.pid\n\
         until wg show wgbox > /dev/null 2>&1; do kill -0 $!; sleep 0.05; done"
    ));
    up.push(format!("wg setconf wgbox {folder}/wg.conf"));
    up.push("ip link set wgbox mtu {mtu} txqueuelen 5000 up; ip route replace {test_network_b} dev wgbox".to_owned());
    let peer = GatewayPeer::WireGuard(WireGuardPeer {
        key_file: secret(&rack, "station.key", &station),
        box_public_key: own_public,
        psk_file: Some(secret(&rack, "psk", &psk)),
    });
    let carrier = Carrier {
        form: Form::WireGuard,
        suite: Suite::ChaCha20Poly1305,
        udp: true,
    };
    let device = gateway(&rack, carrier, 51820, up, peer);
    for direction in [Direction::Encrypt, Direction::Decrypt] {
        measure(&mut lab, &device, direction, 200);
    }
    drop(lab);
    assert!(rack.has_all_back());
}

/// Runs `wg` with an input; what it prints.
fn wg(words: &[&str], input: &str) -> String {
    let mut child = Command::new("wg")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
