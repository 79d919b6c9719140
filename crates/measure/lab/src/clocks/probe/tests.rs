use super::*;
use proptest::prelude::*;

const SIDES: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

fn probe() -> impl Strategy<Value = Probe> {
    let values = (any::<bool>(), any::<u32>(), any::<[i64; 4]>(), any::<u64>());
    values.prop_map(|(is_answer, number, signed, within_ns)| Probe {
        is_answer,
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
        let frame = probe.write(SIDES[0], SIDES[1]);
        prop_assert_eq!(Probe::read(&frame), Some((probe, SIDES[1])));
        prop_assert!(is_probe(&frame));
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
        let mut frame = probe.write(SIDES[0], SIDES[1]);
        prop_assert!(!is_probe(&frame[..cut]));
        frame[at] ^= change;
        prop_assert!(!is_probe(&frame));
    }
}
