//! The configuration file: accepted and rejected content, and the messages.

use dispatch::Choice;
use encryptor::Config;
use encryptor::config::{Dscp, KeySource, Mode, MssClamp, Privileges, Tunnel};
use encryptor::counters::DropReason;
use encryptor::policy::Selectors;
use std::path::{Path, PathBuf};
use wire::Suite;

const SMALLEST: &str = "\
local: 192.0.2.1
remote: 192.0.2.2
keys: { static: gw1.key }
tunnel: { routes: 10.2.0.0/24 }
";

#[test]
fn a_configuration_of_four_lines_suffices() {
    let config = Config::from_text("gw1.yaml", SMALLEST).unwrap();
    assert_eq!(
        (config.port, config.workers, config.suite),
        (4500, 1, Suite::Aes256Gcm)
    );
    assert_eq!(config.engine, Choice::Auto);
    let tunnel = tunnel(&config);
    assert_eq!((tunnel.mtu, tunnel.name.as_str()), (None, "cb0"));
    let [peer] = &config.peers[..] else {
        panic!("{:?}", config.peers)
    };
    assert_eq!((peer.id, peer.remote.port()), (0, 4500));
    assert!(config.metrics.is_none());
}

#[test]
fn all_keys_can_be_set() {
    let text = "\
local: 2001:db8::1
remote: 2001:db8::2
port: 5000
suite: chacha20-poly1305
workers: 4
engine: aws-lc
keys: { static: /etc/cipherbench/gw1.key }
replay_window: 1024
tunnel:
  name: tun7
  mtu: 1280 B
  queue_length: 100
  address: 10.9.0.1/24
  routes: [10.2.0.0/24, 2001:db8:2::/48]
metrics: 127.0.0.1:9464
offloads: { uso: off, gro: off }
";
    let config = Config::from_text("gw1.yaml", text).unwrap();
    let keys = PathBuf::from("/etc/cipherbench/gw1.key");
    assert_eq!(config.peers[0].keys, Some(KeySource::Static(keys)));
    assert_eq!(config.engine, Choice::Named("aws-lc".to_owned()));
    let tunnel = tunnel(&config);
    assert_eq!(tunnel.mtu, Some(1280));
    let address = tunnel.address.unwrap();
    assert_eq!(address.to_string(), "10.9.0.1/24");
    assert_eq!(address.network.to_string(), "10.9.0.0/24");
    // Includes the network of the interface's own address.
    assert_eq!(config.peers[0].selectors.remote.len(), 3);
    assert!(config.offloads.tun.tso && !config.offloads.tun.uso);
    assert!(config.offloads.udp.gso && !config.offloads.udp.gro);
}

#[test]
fn paths_are_relative_to_the_file() {
    let folder = testing::folder().unwrap();
    let path = folder.path().join("gw1.yaml");
    std::fs::write(&path, SMALLEST).unwrap();
    assert_eq!(
        Config::load(&path).unwrap().peers[0].keys,
        Some(KeySource::Static(folder.path().join("gw1.key")))
    );
}

#[test]
fn a_route_that_leads_the_tunnel_into_itself_is_refused() {
    let text = SMALLEST.replace("10.2.0.0/24", "[10.2.0.0/24, 192.0.0.0/8]");
    let message = Config::from_text("gw1.yaml", &text)
        .unwrap_err()
        .to_string();
    assert!(message.contains("the route 192.0.0.0/8 leads"), "{message}");
    assert!(message.contains("(tunnel.routes)"), "{message}");
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let text = "\
local: 192.0.2.1
remote: 2001:db8::2
port: 65535
workers: 4
suite: aes-256-gmc
keys: { static: gw1.key }
replay_window: 1500
tunnel: { mtu: 1400, routes: [10.2.0.1/24], adress: 10.9.0.1/24 }
metric: 127.0.0.1:9464
";
    let mistakes = Config::from_text("gw1.yaml", text).unwrap_err();
    let message = mistakes.to_string();
    for expected in [
        "gw1.yaml:2:9  (remote)",
        "gw1.yaml:3:7  (port)",
        "use at most 65532",
        "gw1.yaml:5:8  (suite)",
        "aes-256-gcm",
        "write 2048",
        "(tunnel.mtu)",
        "1400 B",
        "(tunnel.routes)",
        "(tunnel.adress)",
        "did you mean `address`",
        "(metric)",
    ] {
        assert!(
            message.contains(expected),
            "`{expected}` is missing in\n{message}"
        );
    }
    assert_eq!(mistakes.count(), 8, "{message}");
}

#[test]
fn the_examples_of_the_reference_are_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/encryptor.md");
    let text = std::fs::read_to_string(path).unwrap();
    let blocks: Vec<_> = text.split("```yaml\n").skip(1).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let yaml = block.split("```").next().unwrap();
        Config::from_text("docs/encryptor.md", yaml).unwrap();
    }
}

#[test]
fn the_reference_has_every_count() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/encryptor.md");
    let reference = std::fs::read_to_string(path).unwrap();
    for reason in DropReason::ALL {
        assert!(
            reference.contains(&format!("| `{}` |", reason.name())),
            "{}",
            reason.name()
        );
    }
}

#[test]
fn operation_without_encryption_requires_consent() {
    let text = format!("{SMALLEST}engine: \"null\"\n");
    let mistakes = Config::from_text("gw1.yaml", &text)
        .unwrap_err()
        .to_string();
    assert!(
        mistakes.contains("neither encrypts nor authenticates")
            && mistakes.contains("insecure: true")
            && mistakes.contains("gw1.yaml:5:9"),
        "{mistakes}"
    );
    let config = Config::from_text("gw1.yaml", &format!("{text}insecure: true\n")).unwrap();
    assert!(config.engine.is_null());
}

fn tunnel(config: &Config) -> &Tunnel {
    let Mode::L3(tunnel) = &config.mode else {
        panic!("{:?}", config.mode)
    };
    tunnel
}

/// Two gateways' worth of keys, without peers.
const WITH_PEERS: &str = "\
local: 192.0.2.1
workers: 4
peers:
  - { remote: 192.0.2.2, keys: { static: a.key }, routes: [10.2.0.0/24, 10.3.0.0/24] }
  - remote: 192.0.2.3
    id: 9
    port: 4600
    keys: { static: b.key }
    routes: 10.4.0.0/16
    local: [10.1.0.0/24]
    protocol: udp
    local_ports: 5000-5999
    remote_ports: 53
";

fn mistakes(text: &str) -> String {
    Config::from_text("gw1.yaml", text).unwrap_err().to_string()
}

/// The message for `text` with `from` in it replaced by `to`.
fn mistakes_with(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    mistakes(&text.replace(from, to))
}

#[test]
fn peers_are_numbered_by_their_places_unless_configured_otherwise() {
    let config = Config::from_text("gw1.yaml", WITH_PEERS).unwrap();
    let ids: Vec<_> = config.peers.iter().map(|peer| peer.id).collect();
    assert_eq!(ids, [0, 9]);
    let ports: Vec<_> = config.peers.iter().map(|peer| peer.remote.port()).collect();
    assert_eq!(ports, [4500, 4600]);
    assert_eq!(
        config.peers[0].selectors,
        Selectors::to(config.peers[0].selectors.remote.clone())
    );
    let second = &config.peers[1].selectors;
    assert_eq!((second.protocol, second.local.len()), (Some(17), 1));
    assert_eq!(
        (&second.local_ports, &second.remote_ports),
        (&(5000..=5999), &(53..=53))
    );
    assert!(matches!(config.mode, Mode::L3(_)));
}

#[test]
fn a_thousand_peers_may_share_a_key_file() {
    let mut text = String::from("local: 192.0.2.1\nworkers: 4\npeers:\n");
    for tunnel in 0..1000 {
        text.push_str(&format!(
            "  - {{ remote: 192.0.2.2, keys: {{ static: a.key }}, routes: [10.{}.{}.0/24] }}\n",
            tunnel / 256,
            tunnel % 256
        ));
    }
    let config = Config::from_text("gw1.yaml", &text).unwrap();
    assert_eq!(config.peers.len(), 1000);
    assert_eq!(config.peers[999].id, 999);
    let message = mistakes_with(&text, "workers: 4", "workers: 5");
    assert!(
        message.contains("no room for a tunnel with the number 819"),
        "{message}"
    );
    assert!(
        message.contains("4096 / 5 = 819 tunnels, numbered from 0 to 818"),
        "{message}"
    );
}

#[test]
fn each_mistake_in_a_list_of_peers_is_reported_with_advice() {
    for (from, to, expected) in [
        (
            "peers:",
            "remote: 192.0.2.9\npeers:",
            "`remote` and `peers` are both given",
        ),
        ("id: 9", "id: 0", "two tunnels have the number 0"),
        (
            "id: 9",
            "id: 1024",
            "4096 / 4 = 1024 tunnels, numbered from 0 to 1023",
        ),
        ("port: 4600", "port: 65534", "use at most 65532"),
        (
            "remote: 192.0.2.3",
            "remote: 2001:db8::1",
            "two address families",
        ),
        (
            "remote: 192.0.2.3",
            "remote: 192.0.2.1",
            "is `local` itself",
        ),
        (
            "routes: 10.4.0.0/16",
            "routes: 192.0.2.0/30",
            "leads the tunnel's own packets to 192.0.2.2",
        ),
        (
            "10.3.0.0/24]",
            "10.2.0.0/24]",
            "the network 10.2.0.0/24 is in the list twice",
        ),
        (
            "10.4.0.0/16",
            "10.2.0.0/24",
            "packets to 10.2.0.0/24 belong to two tunnels, 0 and 9",
        ),
        (
            "protocol: udp",
            "protocol: icmp",
            "ports are given without a protocol that has ports",
        ),
        ("protocol: udp", "protocol: upd", "did you mean `udp`"),
        (
            "5000-5999",
            "5999-5000",
            "`5999-5000` is not a range of ports",
        ),
        ("10.1.0.0/24", "10.1.0.1/24", "10.1.0.0/24"),
        (
            "    keys: { static: b.key }\n",
            "",
            "the key `keys` is missing",
        ),
        (
            "workers: 4",
            "workers: 4\ninterface: eth1",
            "the mode is `l3`",
        ),
        (
            "workers: 4",
            "workers: 4\nmode: l2\ninterface: eth1",
            "2 peers share one interface's frames",
        ),
    ] {
        let message = mistakes_with(WITH_PEERS, from, to);
        assert!(
            message.contains(expected),
            "`{expected}` is missing in\n{message}"
        );
        assert!(message.contains("help: "), "{message}");
    }
    // Both places are reported.
    let message = mistakes_with(WITH_PEERS, "10.4.0.0/16", "10.2.0.0/24");
    assert!(
        message.contains("gw1.yaml:9:13") && message.contains("gw1.yaml:4:60"),
        "{message}"
    );
}

#[test]
fn tunnels_may_share_a_network_when_other_selectors_differ() {
    let second = |rest: &str| {
        WITH_PEERS.replace("10.4.0.0/16", "10.2.0.0/24").replace(
            "10.2.0.0/24, 10.3.0.0/24] }",
            &format!("10.2.0.0/24], {rest} }}"),
        )
    };
    for apart in [
        "protocol: tcp",
        "local: [10.9.0.0/24]",
        "protocol: udp, remote_ports: 54-99",
    ] {
        Config::from_text("gw1.yaml", &second(apart)).unwrap();
    }
    for ambiguous in [
        "protocol: udp",
        "local: [10.0.0.0/8]",
        "protocol: udp, remote_ports: 50-60",
    ] {
        let message = mistakes(&second(ambiguous));
        assert!(message.contains("belong to two tunnels"), "{message}");
    }
}

const PSEUDOWIRE: &str = "\
local: 192.0.2.1
remote: 192.0.2.2
keys: { static: gw1.key }
mode: l2tpv3
interface: eth1
l2tpv3: { session: 1, peer_session: 2, cookie: \"0011223344556677\", peer_cookie: \"8899aabb\" }
";

#[test]
fn the_modes_of_layer_2_have_an_interface_and_no_tunnel() {
    let config = Config::from_text("gw1.yaml", PSEUDOWIRE).unwrap();
    let Mode::L2tpv3 {
        interface,
        pseudowire,
    } = &config.mode
    else {
        panic!("{:?}", config.mode)
    };
    assert_eq!(
        (
            interface.as_str(),
            pseudowire.session,
            pseudowire.peer_session
        ),
        ("eth1", 1, 2)
    );
    assert_eq!(
        (pseudowire.cookie.len(), &pseudowire.peer_cookie[..]),
        (8, &[0x88, 0x99, 0xaa, 0xbb][..])
    );
    assert!(!config.is_keyless());

    let bridge = PSEUDOWIRE.replace("l2tpv3\n", "l2\n");
    let bridge = &bridge[..bridge.find("l2tpv3:").unwrap()];
    let config = Config::from_text("gw1.yaml", bridge).unwrap();
    assert_eq!(
        config.mode,
        Mode::L2 {
            interface: "eth1".to_owned()
        }
    );

    for (from, to, expected) in [
        ("mode: l2tpv3", "mode: l2", "write `mode: l2tpv3`"),
        ("interface: eth1\n", "", "the key `interface` is missing"),
        ("eth1", "a/b", "`a/b` is not an interface name"),
        (
            "mode: l2tpv3",
            "aggregate: on\nmode: l2tpv3",
            "AGGFRAG carries IP packets",
        ),
        (
            "mode: l2tpv3",
            "tunnel: { name: cb0 }\nmode: l2tpv3",
            "has no TUN interface",
        ),
        ("session: 1", "session: 0", "from 1 to 4294967295"),
        ("8899aabb", "8899aa", "a cookie of 6 hexadecimal digits"),
        (
            "\"8899aabb\"",
            "\"8899aabb\", encapsulation: udp",
            "neither encrypts nor authenticates",
        ),
    ] {
        let message = mistakes_with(PSEUDOWIRE, from, to);
        assert!(
            message.contains(expected),
            "`{expected}` is missing in\n{message}"
        );
    }
}

#[test]
fn a_pseudowire_without_esp_has_no_keys() {
    let open = PSEUDOWIRE.replace("\"8899aabb\"", "\"8899aabb\", encapsulation: udp");
    let open = format!("{open}insecure: true\n");
    assert!(mistakes(&open).contains("there are keys, but nothing is encrypted"));
    let open = open.replace("keys: { static: gw1.key }\n", "");
    let config = Config::from_text("gw1.yaml", &open).unwrap();
    assert!(config.is_keyless() && config.peers[0].keys.is_none());
}

#[test]
fn keys_without_effect_in_a_mode_are_refused_with_their_place() {
    let layer_2 = PSEUDOWIRE.replace("mode: l2tpv3", "mode: l2");
    let layer_2 = &layer_2[..layer_2.find("l2tpv3:").unwrap()];
    for mode in [layer_2, PSEUDOWIRE] {
        for (key, value) in [("mss_clamp", "1300"), ("dscp", "0"), ("ecn", "on")] {
            let message = mistakes(&format!("{mode}{key}: {value}\n"));
            let place = format!("({key})");
            for expected in [&place, "does nothing to frames", "or write `mode: l3`"] {
                assert!(message.contains(expected), "{expected}: {message}");
            }
        }
        let with_esp = "suite: aes-128-gcm\nengine: auto\nreplay_window: 1024\nlegacy: off\n";
        Config::from_text("gw1.yaml", &format!("{mode}{with_esp}")).unwrap();
    }
    let open = PSEUDOWIRE
        .replace("\"8899aabb\"", "\"8899aabb\", encapsulation: udp")
        .replace("keys: { static: gw1.key }", "insecure: true");
    for (key, value) in [
        ("suite", "aes-256-gcm"),
        ("engine", "auto"),
        ("legacy", "off"),
        ("replay_window", "8192"),
    ] {
        let message = mistakes(&format!("{open}{key}: {value}\n"));
        let place = format!("({key})");
        for expected in [&place, "applies to ESP", "or write `encapsulation: esp`"] {
            assert!(message.contains(expected), "{expected}: {message}");
        }
    }
}

#[test]
fn insecure_suites_require_consent() {
    let with = |rest: &str| Config::from_text("gw1.yaml", &format!("{SMALLEST}{rest}\n"));
    let message = |rest: &str| with(rest).unwrap_err().to_string();
    assert!(message("suite: des-cbc-hmac-sha256").contains("write `legacy: true`"));
    assert!(message("suite: null-hmac-sha256").contains("write `insecure: true`"));
    assert!(message("suite: null-hmac-sha256\nlegacy: true").contains("write `insecure: true`"));
    for suite in ["kuznyechik-mgm-mac", "magma-mgm-mac"] {
        let message = message(&format!("suite: {suite}\nlegacy: true"));
        assert!(message.contains("provides no encryption"), "{message}");
        assert!(message.contains("write `insecure: true`"), "{message}");
    }
    for suite in Suite::ALL {
        let config = with(&format!("suite: {suite}\nlegacy: true\ninsecure: true")).unwrap();
        assert_eq!(config.suite, suite);
        let secure = suite.insecure().is_none();
        assert_eq!(with(&format!("suite: {suite}")).is_ok(), secure, "{suite}");
    }
}

#[test]
fn packet_processing_can_be_configured() {
    let with = |rest: &str| Config::from_text("gw1.yaml", &format!("{SMALLEST}{rest}\n"));
    let defaults = with("").unwrap();
    assert_eq!((defaults.dscp, defaults.ecn), (Dscp::Fixed(0), true));
    assert_eq!(defaults.mss_clamp, MssClamp::Auto);
    assert_eq!(defaults.privileges, Privileges::Drop);
    let all = "dscp: copy\necn: off\nmss_clamp: 1300\naggregate: on\nbusy_poll: on\npin: [2, 0]\n\
               privileges: keep";
    let all = with(all).unwrap();
    assert_eq!((all.dscp, all.ecn), (Dscp::Copy, false));
    assert_eq!(all.mss_clamp, MssClamp::At(1300));
    assert!(all.aggregate && all.busy_poll);
    assert_eq!(
        (&all.pin[..], all.privileges),
        (&[2, 0][..], Privileges::Keep)
    );
    let user = with("user: cipherbench").unwrap().user;
    assert_eq!(user.as_deref(), Some("cipherbench"));
    assert_eq!(with("mss_clamp: off").unwrap().mss_clamp, MssClamp::Off);
    for (rest, expected) in [
        ("dscp: 64", "from 0 to 63"),
        ("dscp: 64", "or write `copy`"),
        ("mss_clamp: 100", "from 536 to 65535"),
        ("pin: [1, 1]", "cpu 1 is in the list twice"),
        ("privileges: none", "known"),
        ("user: a:b", "is not the name of a user"),
        ("user: cipherbench\nprivileges: keep", "`user` does nothing"),
    ] {
        let message = with(rest).unwrap_err().to_string();
        assert!(
            message.contains(expected),
            "`{expected}` is missing in\n{message}"
        );
    }
}
