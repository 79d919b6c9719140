//! Other people's tunnels: their packets by their name, and no word on counters that they do not
//! have.

use super::fixture::{Fixture, encrypting, tunnels};
use super::*;
use plan::{DataPath, L2tpEncapsulation, L2tpv3, StrongSwan, Tool, TransferDirection, Xfrm};

const NAMES: [&str; 3] = ["ESP", "WireGuard", "OpenVPN"];

#[test]
fn a_good_trial_of_any_tunnel_passes_and_says_nothing_of_counters_that_only_ours_has() {
    for adapter in tunnels() {
        let mut fixture = Fixture::tcp(adapter, 1);
        let names = |fixture: &Fixture| -> Vec<String> {
            let checks = fixture.checks().into_iter();
            checks.map(|check| check.name).collect()
        };
        let expected = [
            "offloads-as-asked",
            "path-unchanged",
            "cores-of-stations",
            "machine-was-ours",
            "tools-kept-time",
            "tool-agrees-with-itself",
            "station-interfaces-agree",
            "packets-cross-once",
            "links-not-flooded",
            "cipher-link-encrypted",
            "sealed-looks-random",
            "no-clear-text",
            "no-foreign-frames",
            "cipher-link-amount",
            "links-lossless",
            "dut-as-asked",
        ];
        assert_eq!(fixture.failing(), Vec::<String>::new());
        assert_eq!(names(&fixture), expected);
        // Not of those that it has for itself, either.
        fixture.dut_counters = [("gw1/rx_bytes".to_owned(), 0)].into();
        assert_eq!(names(&fixture), expected);
    }
}

#[test]
fn what_was_seen_is_called_what_it_was() {
    for (adapter, name) in tunnels().into_iter().zip(NAMES) {
        let mut fixture = Fixture::tcp(adapter, 1);
        let detail = fixture.detail("cipher-link-encrypted");
        let counted = format!("299 were {name} (1 ");
        let wanted = format!("at least 10 {name} frames");
        assert!(detail.contains(&counted), "{detail}");
        assert!(detail.contains(&wanted), "{detail}");
        assert!(detail.contains("1 ARP, ND or key exchange"), "{detail}");
        assert_eq!(
            fixture.detail("no-foreign-frames"),
            format!(
                "every frame between the gateways was {name}, ARP, ND or key exchange, and none showed \
                 the stations' data inside"
            )
        );
        fixture.watch.foreign_frames = 1;
        assert_eq!(fixture.failing(), ["no-foreign-frames"]);
        let detail = fixture.detail("no-foreign-frames");
        let neither = format!("were neither {name} nor ARP, ND or key exchange");
        assert!(detail.contains(&neither), "{detail}");
    }
    // Ours has its keys before it starts.
    let ours = Fixture::tcp(encrypting(), 1).detail("no-foreign-frames");
    let inside = ", and none showed the stations' data inside";
    assert_eq!(
        ours,
        format!("every frame between the gateways was ESP, ARP or ND{inside}")
    );
}

#[test]
fn clear_text_is_an_objection_to_any_tunnel() {
    for adapter in tunnels() {
        let mut fixture = Fixture::tcp(adapter, 1);
        fixture.cipher_link.marker_frames = 1;
        assert_eq!(fixture.failing(), ["no-clear-text"]);
        fixture.cipher_link.marker_frames = 0;
        fixture.cipher_link.esp_frames = 0;
        assert_eq!(fixture.failing(), ["cipher-link-encrypted"]);
    }
}

/// Payload in segments of 1460 B, each with 40 B of headers, at least: without padding, with the
/// shorter of OpenVPN's headers.
#[test]
fn traffic_that_bypassed_any_tunnel_is_an_objection() {
    let added_least = [34 + 28, 32 + 28, 21 + 28];
    for (adapter, added) in tunnels().into_iter().zip(added_least) {
        let mut fixture = Fixture::tcp(adapter, 1);
        let least = 999_000_000_u64 + 999_000_000_u64.div_ceil(1460) * (40 + added + 14);
        fixture.counter("gw1/w0").tx_bytes = least - 1;
        assert_eq!(fixture.failing(), ["cipher-link-amount"]);
        fixture.counter("gw1/w0").tx_bytes = least;
        assert_eq!(fixture.failing(), Vec::<String>::new());
    }
}

#[test]
fn packets_padded_as_far_as_the_form_does_and_what_gateways_say_are_no_objection() {
    let udp = || Measurement::Udp {
        tool: Tool::default(),
        direction: TransferDirection::AToB,
        datagram_bytes: Some(64),
        rate_bps: None,
        streams: 1,
        duration_ns: 1000 * MS,
        warmup_ns: 0,
    };
    // IPv4 and UDP headers, and behind them the most that each form adds: ESP pads to 4 B,
    // WireGuard to 16 B, and OpenVPN does not pad.
    let added_most = [28 + 37, 28 + 32 + 15, 28 + 24];
    for (adapter, added) in tunnels().into_iter().zip(added_most) {
        let mut fixture = Fixture::new(adapter, 1, udp());
        fixture.carry(6_400_000, 6_400_000, 64, 42);
        // Two seconds have begun.
        let most = 100_000 * (64 + 42 + added) + (64 << 10) + (2 << 10);
        fixture.counter("gw1/w0").tx_bytes = most;
        assert_eq!(fixture.failing(), Vec::<String>::new());
        fixture.counter("gw1/w0").tx_bytes = most + 1;
        assert_eq!(fixture.failing(), ["cipher-link-amount"]);
    }
}

/// IPsec has such suites; where one is asked for, the marker is what shows that the watch would see
/// it.
#[test]
fn a_tunnel_that_is_to_be_readable_must_show_the_marker() {
    let [strongswan, ..] = tunnels();
    let Adapter::StrongSwan(mut tunnel) = strongswan else {
        panic!("{strongswan:?}")
    };
    tunnel.suite = Suite::from_name("null-hmac-sha256").unwrap();
    let mut fixture = Fixture::tcp(Adapter::StrongSwan(tunnel), 1);
    fixture.cipher_link.marker_frames = 1;
    assert_eq!(fixture.failing(), Vec::<String>::new());
    let detail = fixture.detail("no-clear-text");
    assert!(
        detail.starts_with("as asked, it does not encrypt: 1 of "),
        "{detail}"
    );
    fixture.cipher_link.marker_frames = 0;
    assert_eq!(fixture.failing(), ["no-clear-text"]);
}

/// Bare ESP is 8 B shorter than ESP in UDP.
#[test]
fn bare_esp_is_held_to_its_own_length() {
    let suite = Suite::Aes256Gcm;
    let [in_udp, ..] = tunnels();
    let Adapter::StrongSwan(tunnel) = in_udp else {
        panic!("{in_udp:?}")
    };
    let bare = StrongSwan {
        data_path: DataPath::Kernel,
        ..tunnel
    };
    let devices = [
        (Adapter::Xfrm(Xfrm { suite }), 0),
        (Adapter::StrongSwan(bare), 0),
        (in_udp, 8),
    ];
    for (adapter, udp) in devices {
        let mut fixture = Fixture::tcp(adapter, 1);
        let least = 999_000_000_u64 + 999_000_000_u64.div_ceil(1460) * (40 + 34 + udp + 20 + 14);
        fixture.counter("gw1/w0").tx_bytes = least - 1;
        assert_eq!(fixture.failing(), ["cipher-link-amount"]);
        fixture.counter("gw1/w0").tx_bytes = least;
        assert_eq!(fixture.failing(), Vec::<String>::new());
    }
}

/// It does not encrypt, so the marker must show; and its frames are longer all the same.
#[test]
fn a_pseudowire_in_clear_is_seen_and_held_to_its_length() {
    for (encapsulation, added) in [(L2tpEncapsulation::Udp, 38), (L2tpEncapsulation::Ip, 26)] {
        let mut fixture = Fixture::tcp(Adapter::L2tpv3(L2tpv3 { encapsulation }), 1);
        let least = 999_000_000_u64 + 999_000_000_u64.div_ceil(1460) * (40 + 34 + added);
        fixture.counter("gw1/w0").tx_bytes = least - 1;
        assert_eq!(fixture.failing(), ["cipher-link-amount"]);
        fixture.counter("gw1/w0").tx_bytes = least;
        assert_eq!(fixture.failing(), Vec::<String>::new());
        fixture.cipher_link.marker_frames = 0;
        assert_eq!(fixture.failing(), ["clear-text-visible"]);
    }
}
