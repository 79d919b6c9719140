//! Checks of what must not change or double, and of the tools' clocks.

use super::*;

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
