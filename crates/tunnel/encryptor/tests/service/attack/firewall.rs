//! Other programs that use nftables on the gateway: they reload, and translate addresses.

use super::{FAMILIES, FRAMES, SEEN_BY_GATEWAY, SPOOFED, Site, Traffic, count, nft};
use crate::gateway::metrics;
use crate::namespace::Namespace;
use crate::tests::{await_that, keys, one_tunnel, start};
use encryptor::barrier;
use nix::sys::signal::{Signal, kill};
use std::fs;
use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};
use testing::attack;

/// The longest time in which the tables are back, at the best of several attempts.
const BACK: Duration = Duration::from_secs(1);
/// CAP_NET_ADMIN alone.
const NET_ADMIN: &str = "0000000000001000";

/// The gateway's tables without their counters; `None` where one is missing.
fn tables(namespace: &Namespace, names: &'static [&str]) -> Option<String> {
    namespace.run(move || {
        let list = |name: &&str| {
            let mut nft = Command::new("nft");
            nft.args(["-s", "list", "table"]).args(name.split(' '));
            let output = nft.output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            output.status.success().then_some(text)
        };
        names.iter().map(list).collect()
    })
}

pub(crate) fn what_a_reload_of_the_firewall_removes_is_back_at_once() {
    const TABLES: &[&str] = &["ip cipherbench-cb0", "ip6 cipherbench-cb0"];
    let site = Site::new();
    let gateway = site.start("");
    let holder = gateway.holder().expect("a process that holds the tables");
    let status = fs::read_to_string(format!("/proc/{holder}/status")).unwrap();
    for set in ["CapEff", "CapPrm", "CapBnd"] {
        let held = status.lines().find_map(|line| line.strip_prefix(set));
        assert_eq!(held.unwrap().trim_start_matches(':').trim(), NET_ADMIN);
    }
    let before = tables(&site.gateway, TABLES).expect("the tables");
    let is_back = || tables(&site.gateway, TABLES).as_ref() == Some(&before);
    let mut fastest = Duration::MAX;
    for change in [
        "flush ruleset",
        "flush ruleset\ntable inet filter { chain input { type filter hook input priority 0; }; }",
        "delete table ip cipherbench-cb0",
        "flush table ip6 cipherbench-cb0",
        "flush chain ip cipherbench-cb0 outbound",
        "insert rule ip cipherbench-cb0 inbound accept",
    ] {
        nft(&site.gateway, change);
        let since = Instant::now();
        await_that("the tables are back", is_back);
        fastest = fastest.min(since.elapsed());
    }
    attack(
        "milliseconds until tables that another program removed are back",
        fastest.as_millis(),
        BACK.as_millis(),
    );
    let forged = || {
        nft(&site.gateway, "flush ruleset");
        await_that("the tables are back", is_back);
        nft(&site.gateway, SEEN_BY_GATEWAY);
        site.spoof().iter().sum::<u64>()
    };
    attack("spoofed clear packets taken after a reload", forged(), 0);
    let traffic = Traffic::from(&site.station);
    site.gateway.ip("link set cb0 down\n\
         route replace 10.2.0.0/25 via 192.0.2.2\n\
         -6 route replace fd00:2::/65 via fd00:99::2");
    let clear = || site.clear().iter().sum::<u64>();
    let leaked = clear();
    traffic.await_more();
    attack("clear packets outside after a reload", clear() - leaked, 0);
    drop(traffic);
    // Many reloads are few lines.
    for _ in 0..50 {
        nft(&site.gateway, "flush ruleset");
    }
    await_that("the tables are back", is_back);
    let said = gateway.stop();
    let lines = said.lines().filter(|line| line.contains("in place again"));
    let lines = lines.count();
    assert!((1..=57).contains(&lines), "{said}");
    // What is removed on request stays removed.
    for _ in 0..10 {
        site.start("").stop();
        site.release().unwrap();
        assert_eq!(tables(&site.gateway, &TABLES[..1]), None);
    }

    // Without its holder a gateway still runs, and says what it lacks.
    let mut gateway = site.start("");
    kill(gateway.holder().unwrap(), Signal::SIGKILL).unwrap();
    let line = gateway.line();
    assert!(line.contains("the process that keeps the tables"), "{line}");
    gateway.stop();
}

pub(crate) fn a_bump_in_the_wire_is_closed_again_after_a_reload() {
    const TABLES: &[&str] = &["inet cipherbench-clear0"];
    let site = Site::new();
    let gateway = site.start_as(FRAMES, "");
    let before = tables(&site.gateway, TABLES).expect("the table");
    nft(&site.gateway, "flush ruleset");
    await_that("the table is back", || {
        tables(&site.gateway, TABLES).as_ref() == Some(&before)
    });
    let error = site.release().unwrap_err();
    assert!(
        matches!(error, barrier::BarrierError::PortInUse { .. }),
        "{error}"
    );
    gateway.stop();
    site.release().unwrap();
    assert_eq!(tables(&site.gateway, TABLES), None);
}

pub(crate) fn protection_on_request_restores_what_a_running_gateway_has() {
    const TABLES: &[&str] = &["ip cipherbench-cb0", "ip6 cipherbench-cb0"];
    let site = Site::new();
    let mut gateway = site.start("");
    let before = tables(&site.gateway, TABLES);
    // Other networks in the file than those of the running gateway.
    let text = "local: 192.0.2.1\nremote: 192.0.2.2\nkeys: { static: a.key }\n\
                tunnel: { routes: [10.9.0.0/24] }\n";
    let other = encryptor::Config::from_text("gw1.yaml", text).unwrap();
    let protect = || {
        let config = other.clone();
        site.gateway.run(move || barrier::protect(&config))
    };
    protect().unwrap();
    assert_eq!(tables(&site.gateway, TABLES), before);
    // Nobody holds them any more.
    let holder = gateway.holder().unwrap();
    kill(holder, Signal::SIGKILL).unwrap();
    gateway.line();
    nft(&site.gateway, "flush ruleset");
    protect().unwrap();
    assert!(
        tables(&site.gateway, &TABLES[..1])
            .unwrap()
            .contains("10.9.0.0/24")
    );
    gateway.stop();
}

/// The gateway translates destinations: those of its own services, as a router that publishes them.
const PUBLISHED: &str = "table ip nat {
    chain pre { type nat hook prerouting priority -100;
        iifname w0 ip daddr 192.0.2.1 udp dport 9 dnat to 10.1.0.2
    }
}
table ip6 nat {
    chain pre { type nat hook prerouting priority -100;
        iifname w0 ip6 daddr fd00:99::1 udp dport 9 dnat to fd00:1::2
    }
}";

pub(crate) fn no_spoofed_packet_passes_by_a_translated_destination() {
    const TARGETS: ([&str; 2], [&str; 2]) = (["192.0.2.1"; 2], ["fd00:99::1"; 2]);
    let site = Site::new();
    nft(&site.gateway, PUBLISHED);
    let gateway = site.start("fail_open: true\n");
    let taken = site.spoof_to(TARGETS.0, TARGETS.1);
    assert_eq!(taken, [SPOOFED; 2], "the attack itself works");
    gateway.stop();
    let gateway = site.start("");
    for (family, taken) in FAMILIES.iter().zip(site.spoof_to(TARGETS.0, TARGETS.1)) {
        let what = format!("spoofed clear packets taken by DNAT (IPv{family})");
        attack(&what, taken, 0);
    }
    gateway.stop();
}

pub(crate) fn what_dnat_sends_into_a_tunnel_meets_the_inbound_policy_of_the_peer() {
    let (folder, namespaces) = (keys(), crate::namespace::pair());
    // Somebody outside who is on the way of both gateways.
    namespaces[1].ip("address add 192.0.2.66/24 dev w1");
    namespaces[0].run(|| {
        for file in ["ipv4/ip_forward", "ipv4/conf/w0/forwarding"] {
            fs::write(format!("/proc/sys/net/{file}"), "1").unwrap();
        }
        for file in ["ipv4/conf/all/rp_filter", "ipv4/conf/w0/rp_filter"] {
            fs::write(format!("/proc/sys/net/{file}"), "0").unwrap();
        }
    });
    let more = "metrics: 127.0.0.1:9464\n";
    let gateways = [0, 1].map(|side| {
        let config = one_tunnel(side, more);
        start(side, &namespaces[side], folder.path(), &config).unwrap()
    });
    assert!(namespaces[0].reaches("10.2.0.1"));
    nft(
        &namespaces[0],
        "table ip nat { chain pre { type nat hook prerouting priority -100;
         iifname w0 ip daddr 192.0.2.1 udp dport 9 dnat to 10.2.0.1
         }; }",
    );
    nft(
        &namespaces[1],
        "table inet seen { counter inside { }; chain input { type filter hook input priority 0;
         iifname cb0 udp dport 9 counter name inside
         }; }",
    );
    namespaces[1].run(|| {
        let socket = UdpSocket::bind("192.0.2.66:0").unwrap();
        for _ in 0..SPOOFED {
            socket.send_to(b"clear", "192.0.2.1:9").unwrap();
        }
    });
    let dropped = || {
        let text = metrics(&namespaces[1]);
        let lines = text.lines().filter(|line| {
            line.starts_with("cipherbench_dropped_packets_total")
                && line.contains("reason=\"policy\"")
        });
        let counts = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        counts.sum::<u64>()
    };
    await_that("they come out of the tunnel", || dropped() >= SPOOFED);
    attack(
        "clear packets from outside that DNAT places in the peer's network",
        count(&namespaces[1], "inside"),
        0,
    );
    for gateway in gateways {
        gateway.stop();
    }
}
