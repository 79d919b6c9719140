//! Checks of an impaired path.

use super::*;
use impair::{Counts, Impaired, Impairment, Loss, Profile};

/// A trial over a path that lost one frame in ten of a thousand each way.
fn lossy() -> Fixture {
    let counts = Counts {
        received: 1000,
        sent: 900,
        lost_by_model: 80,
        lost_by_queue: 20,
        added_ns_p50: 2_000,
        added_ns_p99: 50_000,
        added_ns_max: 900_000,
        ..Counts::default()
    };
    let mut fixture = Fixture::tcp(encrypting(), 1);
    fixture.cell.impair = Some(Profile {
        name: "lossy".to_owned(),
        ..Profile::none()
    });
    fixture.impaired = Some(Impaired {
        a_to_b: counts,
        b_to_a: counts,
    });
    fixture
}

fn back(fixture: &mut Fixture) -> &mut Counts {
    &mut fixture.impaired.as_mut().unwrap().b_to_a
}

#[test]
fn what_the_model_lost_is_no_objection_and_is_stated() {
    let fixture = lossy();
    assert_eq!(fixture.failing(), Vec::<String>::new());
    let detail = fixture.detail("impair-kept-up");
    assert!(
        detail.starts_with(
            "profile `lossy`: from A to B 1000 frames came and 900 left; lost by the model: 80, by its queue: 20, \
             by the tester: 0"
        ),
        "{detail}"
    );
}

/// Nothing was lost, and a tenth arrived twice.
#[test]
fn copies_that_the_model_made_are_no_excess_and_others_are() {
    let copied = |duplicated, out_of_order| {
        let mut fixture = Fixture::udp(None);
        fixture.cell.impair = Some(Profile::none());
        fixture.impaired = Some(Impaired {
            a_to_b: Counts {
                duplicated,
                ..Counts::default()
            },
            ..Impaired::default()
        });
        let datagrams = fixture.transfer.datagrams.as_mut().unwrap();
        datagrams.out_of_order = out_of_order;
        let size = u64::from(fixture.commands.parameters.datagram_bytes.unwrap());
        let sent = fixture.totals.sent_bytes + fixture.totals.uncounted_bytes;
        fixture.totals.received_bytes = sent + 1000 * size;
        fixture.totals.received_summary_bytes = Some(sent + 1000 * size);
        fixture
            .failing()
            .contains(&"tool-agrees-with-itself".to_owned())
    };
    assert!(!copied(1000, 1000));
    assert!(copied(999, 1000), "the model made fewer");
    assert!(copied(1000, 999), "the receiver counted fewer out of order");
}

#[test]
fn what_the_tester_lost_held_up_or_did_not_count_is_an_objection() {
    let mut fixture = lossy();
    (back(&mut fixture).sent, back(&mut fixture).lost_by_tester) = (899, 1);
    assert_eq!(fixture.failing(), ["impair-kept-up"]);
    let mut fixture = lossy();
    // Without a delay of the path, 50 us are allowed for the tester.
    back(&mut fixture).added_ns_p99 = 50_001;
    assert_eq!(fixture.failing(), ["impair-kept-up"]);
    // A hundredth of what the path itself adds to a round trip does not count.
    let profile = fixture.cell.impair.as_mut().unwrap();
    (profile.a_to_b.delay_ns, profile.b_to_a.delay_ns) = (8_000_000, 2_000_000);
    back(&mut fixture).added_ns_p99 = 100_000;
    assert_eq!(fixture.failing(), Vec::<String>::new());
    back(&mut fixture).added_ns_p99 = 100_001;
    assert_eq!(fixture.failing(), ["impair-kept-up"]);
    let mut fixture = lossy();
    back(&mut fixture).sent = 899;
    assert_eq!(fixture.failing(), ["impair-kept-up"]);
}

/// iperf3 agrees with its server over the same path, before and after it sends; what is lost then
/// is sent again after a second.
#[test]
fn a_tool_has_ten_round_trips_of_the_path_to_agree_with_its_other_end() {
    let ending = |later_ns, loss| {
        let mut fixture = lossy();
        let profile = fixture.cell.impair.as_mut().unwrap();
        (profile.a_to_b.delay_ns, profile.b_to_a.delay_ns) = (50_000_000, 50_000_000);
        profile.b_to_a.loss = loss;
        fixture.client_ends_ns = vec![fixture.commands.timing.run_ns + later_ns];
        fixture.failing()
    };
    assert_eq!(ending(1_000_000_000, None), Vec::<String>::new());
    assert_eq!(ending(2_000_000_000, None), ["tools-kept-time"]);
    let loss = Some(Loss::Random { ppm: 1000 });
    assert_eq!(ending(2_000_000_000, loss), Vec::<String>::new());
    assert_eq!(ending(3_000_000_000, loss), ["tools-kept-time"]);
}

#[test]
fn a_path_that_lets_nothing_through_is_an_objection() {
    let mut fixture = lossy();
    *back(&mut fixture) = Counts {
        received: 3,
        lost_by_model: 3,
        ..Counts::default()
    };
    assert_eq!(fixture.failing(), ["impaired-path-passes"]);
    // Nothing came: nothing can be said.
    *back(&mut fixture) = Counts::default();
    assert_eq!(fixture.failing(), Vec::<String>::new());
}

#[test]
fn damaged_samples_are_not_opened() {
    let mut fixture = lossy();
    fixture.cipher_link.opened.as_mut().unwrap().opened = 23;
    assert_eq!(fixture.failing(), ["samples-opened"]);
    fixture.cell.impair.as_mut().unwrap().b_to_a = Impairment {
        corrupt_ppm: 1,
        ..Impairment::default()
    };
    assert_eq!(fixture.failing(), Vec::<String>::new());
    assert!(fixture.detail("samples-not-opened").contains("damages"));
}

/// Offloads are off at the impaired link alone.
#[test]
fn super_packets_on_the_impaired_link_are_an_objection() {
    let mut fixture = lossy();
    fixture.links.offloads = true;
    for (end, features) in &mut fixture.offloads {
        let is_cipher = ["gw1/w0", "gw2/w1"].contains(&end.as_str());
        let state = if is_cipher { "off" } else { "on" };
        features.values_mut().for_each(|it| *it = state.to_owned());
    }
    let failing = fixture.failing();
    assert!(
        !failing.contains(&"offloads-as-asked".to_owned()),
        "{failing:?}"
    );
    let end = fixture.offloads.get_mut("gw1/w0").unwrap();
    end.values_mut().for_each(|it| *it = "on".to_owned());
    assert!(fixture.failing().contains(&"offloads-as-asked".to_owned()));
}

#[test]
fn copies_that_the_path_made_are_no_objection() {
    let mut fixture = Fixture::ping(encrypting());
    let sent = fixture.settings.ip_packets_sent("a").unwrap();
    // 64 packets of others are allowed, so that these are 6 too many.
    *fixture.stack("b/InNoECTPkts") = sent + 70 + sent / 1000;
    let check = "packets-cross-once".to_owned();
    assert!(fixture.failing().contains(&check));
    fixture.impaired = Some(Impaired {
        a_to_b: Counts {
            duplicated: 6,
            ..Counts::default()
        },
        ..Impaired::default()
    });
    assert!(!fixture.failing().contains(&check));
}
