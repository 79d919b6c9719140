//! The checks of a trial in an overlay network.

use super::fixture::encrypting;
use super::*;
use plan::Overlay;

/// A gigabyte of TCP in VXLAN, in full segments, without offloads.
fn in_vxlan(adapter: Adapter) -> Fixture {
    let mut fixture = Fixture::tcp(adapter, 1);
    let stations = fixture.cell.stations.as_mut().unwrap();
    stations.overlay = Overlay::Vxlan;
    // The MTU inside is 1450 B; 50 B of headers more around each packet.
    fixture.carry(1_000_000_000, 999_000_000, 1398, 66 + 50);
    // The kernel that receives counts each packet outside and inside.
    for name in ["a/InNoECTPkts", "b/InNoECTPkts"] {
        *fixture.stack(name) *= 2;
    }
    let off = fixture.offloads["a/a0"].clone();
    for (name, outside) in [("a/ov0", "a/a0"), ("b/ov0", "b/b0")] {
        let mut counters = fixture.counters[outside];
        counters.tx_bytes -= counters.tx_packets.min(counters.tx_bytes) * 36;
        counters.rx_bytes = counters.rx_bytes.saturating_sub(counters.rx_packets * 36);
        fixture.counters.insert(name.to_owned(), counters);
        fixture.offloads.insert(name.to_owned(), off.clone());
    }
    fixture
}

#[test]
fn packets_of_an_overlay_have_its_headers_and_pass_every_check() {
    for adapter in [Adapter::Direct, encrypting()] {
        let fixture = in_vxlan(adapter);
        assert_eq!(fixture.failing(), Vec::<String>::new());
        let detail = fixture.detail("overlay-carried");
        assert!(detail.starts_with("a/ov0 sent "), "{detail}");
        assert!(
            detail.contains(" in VXLAN, for 999000000 B of payload"),
            "{detail}"
        );
    }
    let without = Fixture::tcp(encrypting(), 1).checks();
    assert!(without.iter().all(|check| check.name != "overlay-carried"));
}

#[test]
fn traffic_past_the_overlay_is_an_objection() {
    let mut fixture = in_vxlan(encrypting());
    fixture.counter("b/ov0").rx_bytes = 998_000_000;
    assert_eq!(fixture.failing(), ["overlay-carried"]);
    let mut fixture = in_vxlan(encrypting());
    fixture.counters.remove("a/ov0");
    assert_eq!(fixture.failing(), ["overlay-carried"]);
    // The tools on the stations' own interfaces: no headers, and nothing inside.
    let mut fixture = in_vxlan(encrypting());
    fixture.carry(1_000_000_000, 999_000_000, 1448, 66);
    fixture.counter("a/ov0").tx_bytes = 0;
    fixture.counter("b/ov0").rx_bytes = 0;
    let failing = fixture.failing();
    assert!(
        failing.contains(&"overlay-carried".to_owned()),
        "{failing:?}"
    );
    assert!(
        failing.contains(&"station-interfaces-agree".to_owned()),
        "{failing:?}"
    );
}

#[test]
fn traffic_of_the_overlay_past_the_device_is_an_objection() {
    let mut fixture = in_vxlan(Adapter::Direct);
    fixture.counter("b/b0").rx_bytes = 900_000_000;
    let failing = fixture.failing();
    assert!(
        failing.contains(&"overlay-carried".to_owned()),
        "{failing:?}"
    );
}

#[test]
fn packets_that_arrive_twice_in_an_overlay_are_an_objection() {
    let mut fixture = in_vxlan(encrypting());
    *fixture.stack("b/InNoECTPkts") *= 2;
    assert_eq!(fixture.failing(), ["packets-cross-once"]);
}

#[test]
fn offloads_of_the_overlay_are_as_asked() {
    let mut fixture = in_vxlan(Adapter::Direct);
    let found = fixture.offloads.get_mut("b/ov0").unwrap();
    found.insert(FEATURES[0].to_owned(), "on".to_owned());
    assert_eq!(fixture.failing(), ["offloads-as-asked"]);
}
