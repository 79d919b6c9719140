//! The configuration file: what is taken, what is refused and how that is said.

use encryptor::Config;
use encryptor::config::{Mode, Tunnel};
use engine::Choice;
use std::path::{Path, PathBuf};
use wire::Suite;

const SMALLEST: &str = "\
local: 192.0.2.1
remote: 192.0.2.2
keys: { static: gw1.key }
tunnel: { routes: 10.2.0.0/24 }
";

#[test]
fn four_lines_are_enough() {
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
fn everything_can_be_set() {
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
    assert_eq!(config.peers[0].keys, Some(keys));
    assert_eq!(config.engine, Choice::Named("aws-lc".to_owned()));
    let tunnel = tunnel(&config);
    assert_eq!(tunnel.mtu, Some(1280));
    let address = tunnel.address.unwrap();
    assert_eq!(address.to_string(), "10.9.0.1/24");
    assert_eq!(address.network.to_string(), "10.9.0.0/24");
    // And the network of the interface's own address.
    assert_eq!(config.peers[0].selectors.remote.len(), 3);
    assert!(config.offloads.tun.tso && !config.offloads.tun.uso);
    assert!(config.offloads.udp.gso && !config.offloads.udp.gro);
}

#[test]
fn paths_are_relative_to_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gw1.yaml");
    std::fs::write(&path, SMALLEST).unwrap();
    assert_eq!(
        Config::load(&path).unwrap().peers[0].keys,
        Some(folder.path().join("gw1.key"))
    );
}

#[test]
fn a_route_that_leads_the_tunnel_into_itself_is_refused() {
    let text = SMALLEST.replace("10.2.0.0/24", "[10.2.0.0/24, 192.0.0.0/8]");
    let told = Config::from_text("gw1.yaml", &text)
        .unwrap_err()
        .to_string();
    assert!(told.contains("the route 192.0.0.0/8 leads"), "{told}");
    assert!(told.contains("(tunnel.routes)"), "{told}");
}

#[test]
fn all_mistakes_are_told_at_once() {
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
    let told = mistakes.to_string();
    for expected in [
        "gw1.yaml:2:9  (remote)",
        "gw1.yaml:3:7  (port)",
        "take at most 65532",
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
            told.contains(expected),
            "`{expected}` is missing in\n{told}"
        );
    }
    assert_eq!(mistakes.count(), 8, "{told}");
}

#[test]
fn the_examples_of_the_reference_are_right() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/encryptor.md");
    let text = std::fs::read_to_string(path).unwrap();
    let blocks: Vec<_> = text.split("```yaml\n").skip(1).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let yaml = block.split("```").next().unwrap();
        Config::from_text("docs/encryptor.md", yaml).unwrap();
    }
}

#[test]
fn the_control_without_encryption_is_taken_only_when_that_is_meant() {
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
