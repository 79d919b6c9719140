//! Checks of what must not change or double, and of the tools' clocks.

use super::*;
use crate::transfer::UnsteadyDrain;

fn changed(at_ns: Option<u64>, what: &str) -> PathSettings {
    PathSettings {
        changes: vec![SettingChange {
            node: "gw1".to_owned(),
            at_ns,
            what: what.to_owned(),
        }],
        ..PathSettings::default()
    }
}

#[test]
fn a_setting_that_changed_is_an_objection_with_its_time() {
    let mut fixture = Fixture::tcp(encrypting(), 1);
    fixture.settings = changed(Some(3512 * MS), "link w0: mtu 1000, was 1500");
    assert_eq!(fixture.failing(), ["path-unchanged"]);
    let detail = fixture.detail("path-unchanged");
    assert!(
        detail.contains("after 3.512 s gw1 link w0: mtu 1000, was 1500"),
        "{detail}"
    );
    fixture.settings = changed(None, "IPsec policies");
    let detail = fixture.detail("path-unchanged");
    assert!(detail.contains("at the end gw1 IPsec policies"), "{detail}");
    let one = fixture.settings.changes[0].clone();
    fixture.settings.changes = vec![one; 9];
    let detail = fixture.detail("path-unchanged");
    assert!(detail.ends_with("; and 3 more"), "{detail}");
}

#[test]
fn a_tunnel_that_the_device_ended_is_explained_by_the_device() {
    let mut fixture = Fixture::tcp(encrypting(), 1);
    let lost = SettingChange::lost_tunnel("b", "198.19.0.2/32 === 198.18.0.2/32");
    fixture.settings.changes = vec![lost.clone()];
    assert_eq!(fixture.failing(), ["path-unchanged"]);
    let detail = fixture.detail("path-unchanged");
    assert!(
        detail.contains("at the end b has no SA any more for 198.19.0.2/32 === 198.18.0.2/32"),
        "{detail}"
    );
    let of_device = fixture.explanation("path-unchanged");
    assert!(of_device.cause.contains("authenticated itself anew"));
    // Beside a change by another program it is not the only cause.
    let other = changed(None, "link w0: mtu 1000, was 1500");
    fixture.settings.changes.extend(other.changes);
    let of_both = fixture.explanation("path-unchanged");
    assert!(of_both.cause.contains("another program"), "{of_both:?}");
    assert!(lost.is_lost_tunnel() && !fixture.settings.changes[1].is_lost_tunnel());
}

#[test]
fn a_single_tool_that_ran_too_long_too_short_or_stood_still_is_an_objection() {
    let good = || Fixture::tcp(Adapter::Direct, 1);
    assert_eq!(good().failing(), Vec::<String>::new());
    let check = "tools-kept-time";
    for end_ms in [700, 1300] {
        let mut fixture = good();
        fixture.client_ends_ns = vec![end_ms * MS];
        assert_eq!(fixture.failing(), [check], "{end_ms}");
    }
    let mut fixture = good();
    fixture.totals.offered_ns = 600 * MS;
    assert_eq!(fixture.failing(), [check]);
    let mut fixture = good();
    fixture.transfer.duration_ns = 1400 * MS;
    assert_eq!(fixture.failing(), [check]);
    let mut fixture = good();
    fixture.totals.longest_step_ns = 180 * MS;
    assert_eq!(fixture.failing(), Vec::<String>::new());
    // Of an interval of 200 ms, a standstill of 300 ms leaves 100 at the least.
    fixture.totals.longest_step_ns = 181 * MS;
    assert_eq!(fixture.failing(), [check]);
    fixture.totals.longest_step_ns = 400 * MS;
    assert_eq!(fixture.failing(), [check], "it stood still for 300 ms");
    let detail = fixture.detail(check);
    assert!(
        detail.contains("intervals of 100 ms took 400 ms"),
        "{detail}"
    );
}

/// The tool's end waits in the queue, too; what it takes beyond the queue's time is a standstill.
#[test]
fn a_queue_that_drained_is_no_tool_that_stood_still() {
    let check = "tools-kept-time";
    let drained = |drain_ms: u64, received_ms, end_ms: u64| {
        let mut fixture = Fixture::udp(None);
        fixture.transfer.duration_ns = received_ms * MS;
        fixture.client_ends_ns = vec![end_ms * MS];
        fixture.totals.drained_ns = drain_ms * MS;
        let datagrams = fixture.transfer.datagrams.as_mut().unwrap();
        datagrams.drain = (drain_ms > 0).then_some(Drain {
            time_ns: drain_ms * MS,
            offered: 100_000,
            offered_ns: 1000 * MS,
        });
        fixture
    };
    assert_eq!(drained(0, 1800, 1810).failing(), [check]);
    let found = drained(800, 1800, 1810);
    assert_eq!(found.failing(), Vec::<String>::new());
    let detail = found.detail(check);
    assert!(
        detail.contains("B received for 800 ms longer than station A sent"),
        "{detail}"
    );
    assert_eq!(drained(800, 2200, 1810).failing(), [check]);
    assert_eq!(drained(800, 1800, 2200).failing(), [check]);
    // A sender that stood still is none the less one.
    let mut still = drained(800, 1800, 1810);
    still.totals.longest_step_ns = 400 * MS;
    assert_eq!(still.failing(), [check]);
    let mut short = drained(800, 1800, 1810);
    short.totals.offered_ns = 600 * MS;
    assert_eq!(short.failing(), [check]);
}

/// There is no one rate, so the trial has no figure, but nothing else on the machine is to blame.
#[test]
fn a_queue_that_drained_at_another_rate_is_explained() {
    let check = "tools-kept-time";
    let drained = |received_ms, end_ms: u64| {
        let mut fixture = Fixture::udp(None);
        fixture.transfer.duration_ns = received_ms * MS;
        fixture.client_ends_ns = vec![end_ms * MS];
        fixture.totals.unsteady_drain = Some(UnsteadyDrain {
            time_ns: 800 * MS,
            before_bps: 32_000_000,
            after_bps: 360_000_000,
        });
        assert_eq!(fixture.failing(), [check]);
        fixture.explanation(check)
    };
    let found = drained(1800, 1810);
    assert_eq!(
        found.difference,
        "station B received for 800 ms after station A had stopped sending, at 360 Mbit/s instead of 32 Mbit/s before"
    );
    assert!(
        found.cause.starts_with("a queue on the path drained"),
        "{found:?}"
    );
    assert!(found.advice.contains("`rate:`"), "{found:?}");
    // What lasted longer than the queue is no queue.
    for (received_ms, end_ms) in [(2200, 1810), (1800, 2200)] {
        let found = drained(received_ms, end_ms);
        assert!(found.advice.starts_with("stop what else uses"), "{found:?}");
    }
}

#[test]
fn packets_that_arrive_twice_are_an_objection_in_either_direction() {
    let check = "packets-cross-once";
    let mut tcp = Fixture::tcp(Adapter::Direct, 1);
    tcp.offload();
    for mut fixture in [Fixture::udp(None), Fixture::ping(encrypting()), tcp] {
        let settings = &fixture.settings;
        let sent = settings.ip_packets_sent("a").unwrap();
        *fixture.stack("b/InNoECTPkts") = sent + 64 + sent / 1000;
        assert!(!fixture.failing().contains(&check.to_owned()));
        *fixture.stack("b/InNoECTPkts") = sent + 65 + sent / 1000;
        assert!(fixture.failing().contains(&check.to_owned()));
        let cause = fixture.explanation(check).cause;
        assert!(cause.contains("duplicates packets"), "{cause}");
    }
    let mut fixture = Fixture::ping(encrypting());
    *fixture.stack("b/OutSegs") = 1000;
    *fixture.stack("a/InNoECTPkts") = 990;
    assert_eq!(fixture.failing(), Vec::<String>::new());
    let detail = fixture.detail(check);
    assert!(
        detail.contains("the kernel of b sent 1000 IP packets, and 990 arrived at that of a"),
        "{detail}"
    );
    *fixture.stack("a/InNoECTPkts") = 2000;
    assert_eq!(fixture.failing(), [check]);
}

#[test]
fn a_flood_of_arp_or_neighbour_discovery_is_an_objection_at_each_node() {
    // Each trial took 1.1 s.
    let most = 64 + 2 * 20;
    for node in ["a", "b", "gw1", "gw2"] {
        for mut fixture in [
            Fixture::ping(encrypting()),
            Fixture::tcp(Adapter::Direct, 1),
        ] {
            let counted = |frames| [(node.to_owned(), frames)].into();
            fixture.settings.neighbour_frames = counted(most);
            assert_eq!(fixture.failing(), Vec::<String>::new());
            fixture.settings.neighbour_frames = counted(most + 1);
            assert_eq!(fixture.failing(), ["links-not-flooded"]);
            let difference = fixture.explanation("links-not-flooded").difference;
            let expected = format!("{node} received 105 frames of ARP");
            assert!(difference.starts_with(&expected), "{difference}");
        }
    }
}
