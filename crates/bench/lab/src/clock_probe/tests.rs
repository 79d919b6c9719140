use super::*;
use proptest::prelude::*;
use wire::headers::IpView;

/// On a cable, and through boxes.
const ADDRESSES: [Addresses; 2] = [of(None), of(Some([SOURCE, TARGET]))];
const SOURCE: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const TARGET: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 1);

const fn of(udp: Option<[Ipv4Addr; 2]>) -> Addresses {
    Addresses {
        target: [2, 0, 0, 0, 0, 1],
        source: [2, 0, 0, 0, 0, 2],
        udp,
    }
}

fn probe() -> impl Strategy<Value = Probe> {
    let values = (
        any::<[bool; 2]>(),
        any::<u32>(),
        any::<[i64; 4]>(),
        any::<u64>(),
    );
    values.prop_map(|([is_answer, by_card], number, signed, within_ns)| Probe {
        is_answer,
        by_card,
        number,
        received_ns: signed[0],
        last_answered_ns: signed[1],
        ahead_ns: signed[2],
        within_ns,
        corrected_ppb: signed[3],
    })
}

proptest! {
    #[test]
    fn a_probe_is_read_as_it_was_written(probe in probe()) {
        for addresses in ADDRESSES {
            let frame = probe.write(&addresses);
            prop_assert_eq!(Probe::read(&frame), Some((probe, addresses)));
            prop_assert_eq!(is_probe(&frame), addresses.udp.is_none());
        }
    }

    /// Boxes drop what has a wrong checksum, and an answer goes back the same way.
    #[test]
    fn over_udp_it_is_a_datagram_that_routers_forward(probe in probe()) {
        let addresses = ADDRESSES[1];
        let frame = probe.write(&addresses);
        prop_assert_eq!(frame.len(), UDP_PROBE_BYTES);
        let packet = &frame[HEADER_BYTES..];
        let view = IpView::parse(packet).unwrap();
        prop_assert!(!view.opaque && view.header_checksum_is_valid(packet));
        prop_assert!(view.transport_checksum_is_valid(packet, portable));
        prop_assert_eq!(addresses.back_from([9; 6]).udp, Some([TARGET, SOURCE]));
        // A router decrements the time to live.
        let mut routed = frame;
        routed[HEADER_BYTES + 8] -= 1;
        prop_assert_eq!(Probe::read(&routed).map(|(read, _)| read), Some(probe));
    }

    /// No sum or difference of what is taken from the link overflows.
    #[test]
    fn what_is_plausible_can_be_reckoned_with(probe in probe()) {
        if probe.is_plausible() {
            prop_assert!(probe.received_ns.checked_sub(probe.ahead_ns).is_some());
            prop_assert!(probe.last_answered_ns.checked_sub(probe.ahead_ns).is_some());
        }
    }

    #[test]
    fn extreme_values_are_refused_and_not_reckoned_with(value in prop_oneof![Just(i64::MIN), Just(i64::MAX)]) {
        let extreme = |set: fn(&mut Probe, i64)| {
            let mut probe = Probe::default();
            set(&mut probe, value);
            probe.is_plausible()
        };
        prop_assert!(!extreme(|probe, value| probe.ahead_ns = value));
        prop_assert!(!extreme(|probe, value| probe.received_ns = value));
        prop_assert!(!extreme(|probe, value| probe.corrected_ppb = value));
    }

    #[test]
    fn nothing_else_is_a_probe(probe in probe(), at in 12_usize..22, change in 1_u8.., cut in 0..PROBE_BYTES) {
        let mut frame = probe.write(&ADDRESSES[0]);
        prop_assert!(!is_probe(&frame[..cut]));
        prop_assert!(!is_probe(&[&frame[..], &[0]].concat()));
        // The range of `at` covers the EtherType and the magic.
        frame[at] ^= change;
        prop_assert!(!is_probe(&frame));
        let mut over_udp = probe.write(&ADDRESSES[1]);
        prop_assert_eq!(Probe::read(&over_udp[..cut]), None);
        over_udp[UDP_BODY_AT + at - 12] ^= change;
        // The magic has 8 bytes; behind it any value may be a probe.
        prop_assert!(at >= 20 || Probe::read(&over_udp).is_none());
    }
}
