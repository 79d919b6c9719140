//! Ports, encapsulation and SPIs that the caller chooses.

use super::world::*;
use crate::crypto::KeMethodKind;
use crate::session::*;

#[test]
fn an_end_that_claims_a_nat_has_esp_in_udp_on_ports_of_its_choice() {
    for claims in 0..2 {
        let world = &mut set_up(|settings| {
            settings[claims].transport.always_in_udp = true;
            settings[0].transport.nat_port = 4501;
            settings[0].transport.peer_nat_port = 4502;
        });
        assert!(world.check_child().in_udp);
        let ports = world.outputs[0].iter().filter_map(|it| match it {
            Output::Send { path, marker, .. } => {
                Some((path.local.port(), path.remote.port(), *marker))
            }
            _ => None,
        });
        let ports: Vec<_> = ports.collect();
        assert_eq!(ports, [(500, 500, false), (4501, 4502, true)]);
    }
}

#[test]
fn spis_have_the_callers_low_bits_and_never_return() {
    let spis = ChildSpis::new(12, 0xabc, u32::MAX);
    let shared = spis.clone();
    let mut world = set_up(|settings| settings[0].transport.child_spis = Some(spis));
    let mut seen = vec![world.check_child()];
    for _ in 0..3 {
        let spi = seen.last().unwrap().inbound_spi;
        let at = usize::from(seen.len() % 2 == 0);
        let own = if at == 0 {
            spi
        } else {
            seen.last().unwrap().outbound_spi
        };
        world.order(at, |it, now, out| assert!(it.rekey_child(now, own, out)));
        world.pass(5);
        let child = world.initiator.as_ref().unwrap().children().next().unwrap();
        seen.push(child.clone());
    }
    let inbound: Vec<u32> = seen.iter().map(|it| it.inbound_spi).collect();
    // 0 in the upper bits is left out: SPIs below 256 are reserved.
    assert_eq!(inbound, [0xffff_fabc, 0x1abc, 0x2abc, 0x3abc]);
    // The end that began knows that the other has the SA.
    let began: Vec<bool> = seen.iter().map(|it| it.has_peer).collect();
    assert_eq!(began, [true, true, false, true]);
    // Another session does not use them again.
    assert_eq!(shared.take(), 0x4abc);
}

#[test]
fn a_refused_first_request_is_reported() {
    let mut world = World::new(|settings| {
        settings[0].ike.truncate(1);
        settings[0].ike[0].exchange = KeMethodKind::P521;
    });
    world.start(&mut prompt);
    world.run(Duration::from_secs(1), &mut prompt);
    let refused = Event::FirstRefused(NotifyType::NO_PROPOSAL_CHOSEN);
    assert!(world.event(1, &refused), "{:?}", world.outputs);
    assert!(world.event(0, &Event::Hint(NotifyType::NO_PROPOSAL_CHOSEN)));
}
