//! What the counts of packets on the links of every frame trial are there to catch.

use super::*;

fn fixture(duplex: bool) -> Fixture {
    Fixture::new(encrypting("auto"), Direction::Both, duplex)
}

impl Fixture {
    /// An interface's packets in the first trial, which is the figure's.
    fn end(&mut self, name: &str) -> &mut EndTraffic {
        let readings = self.result.trials[0].readings.as_mut().unwrap();
        readings.links.get_mut(name).unwrap()
    }

    /// Of these, those against the load.
    fn idle(&mut self, name: &str) -> &mut u64 {
        let end = self.end(name);
        if end.sent < FRAMES {
            &mut end.sent
        } else {
            &mut end.received
        }
    }

    /// A counter of a gateway in a trial.
    fn sealed(&mut self, trial: usize, name: &str) -> &mut u64 {
        let readings = self.result.trials[trial].readings.as_mut().unwrap();
        readings.dut_packets.entry(name.to_owned()).or_default()
    }
}

#[test]
fn packets_against_the_load_are_found_at_each_interface() {
    for name in testbed::path_interfaces() {
        // Neighbours may say something.
        let mut fixture = fixture(false);
        *fixture.idle(&name) = 20;
        assert_eq!(fixture.failing(), Vec::<String>::new(), "{name}");
        *fixture.idle(&name) = 24_000;
        let failing = fixture.failing();
        assert!(
            failing.contains(&"links-carried-the-load".to_owned()),
            "{name}: {failing:?}"
        );
        let words = fixture.explanation("links-carried-the-load").difference;
        assert!(
            words.contains(&format!("frame trial 1 (100 kpps) {name} "))
                && words.ends_with(" more, against the load, than the load explains"),
            "{words}"
        );
    }
}

#[test]
fn in_the_direction_of_the_load_the_frames_are_both_bounds() {
    let slack = (FRAMES / 1000 + 64).cast_signed();
    for (by, fails) in [
        (-1 - slack, true),
        (-slack, false),
        (slack, false),
        (FRAMES.cast_signed() / 10, true),
    ] {
        let mut fixture = fixture(true);
        for end in ["gw2/b1", "a/a0"] {
            let sent = &mut fixture.end(end).sent;
            *sent = sent.saturating_add_signed(by);
        }
        let failing = fixture.failing();
        let failed = failing.contains(&"links-carried-the-load".to_owned());
        assert_eq!(failed, fails, "{by}: {failing:?}");
    }
    // What a queue held until the next trial is allowed there.
    let mut late = fixture(false);
    let lost = FRAMES / 10;
    late.end("b/b0").received -= lost;
    let first = &mut late.result.trials[0];
    (first.received, first.received_bytes) = (FRAMES - lost, (FRAMES - lost) * FRAME_BYTES);
    let second = late.result.trials[1].readings.as_mut().unwrap();
    second.links.get_mut("b/b0").unwrap().received += lost;
    let failing = late.failing();
    assert!(
        !failing.contains(&"links-carried-the-load".to_owned()),
        "{failing:?}"
    );
}

#[test]
fn packets_in_the_form_of_esp_that_no_gateway_sent_are_found() {
    // By the gateways, and by the reason why they were refused.
    let mut extra = fixture(false);
    *extra.sealed(0, "gw2/cipher_rx_packets") += 89;
    assert_eq!(extra.failing(), ["sealed-as-sent"]);
    let detail = extra.detail("sealed-as-sent");
    assert!(
        detail.contains("trial 1 (100000 frames/s): gw2 received 89 "),
        "{detail}"
    );
    let mut refused = fixture(false);
    *refused.sealed(0, "gw2/dropped_packets.integrity_failed") = 1;
    assert_eq!(refused.failing(), ["sealed-as-sent"]);
    let words = refused.explanation("sealed-as-sent");
    assert_eq!(
        words.difference,
        "in frame trial 1 (100 kpps) gw2 refused 1 sealed packet (< 0.1 %) as damaged or made up"
    );
    assert!(words.cause.contains("not the device's"), "{words:?}");
    // By the link alone, where no gateway took them in.
    for end in ["gw1/w0", "gw2/w1"] {
        let mut unseen = fixture(false);
        unseen.end(end).sent += 24;
        let names = [unseen.failing(), {
            unseen.end(end).sent += 65;
            unseen.failing()
        }];
        let is_found = names.map(|names| names.contains(&"sealed-as-sent".to_owned()));
        assert_eq!(is_found, [false, true], "{end}");
    }
}

#[test]
fn what_was_under_way_between_two_readings_is_no_extra_packet() {
    let mut fixture = fixture(false);
    *fixture.sealed(0, "gw2/cipher_rx_packets") -= 60;
    *fixture.sealed(1, "gw2/cipher_rx_packets") += 60;
    assert_eq!(fixture.failing(), Vec::<String>::new());
    // What was lost in one trial hides nothing in another.
    *fixture.sealed(0, "gw2/cipher_rx_packets") -= 5000;
    *fixture.sealed(1, "gw2/cipher_rx_packets") += 100;
    assert_eq!(fixture.failing(), ["sealed-as-sent"]);
}
