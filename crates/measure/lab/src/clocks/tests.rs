use super::*;
use proptest::prelude::*;

const SIDES: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

fn probe() -> impl Strategy<Value = Probe> {
    (any::<bool>(), any::<u32>(), any::<[i64; 3]>(), any::<u64>()).prop_map(
        |(is_answer, number, times, within_ns)| Probe {
            is_answer,
            number,
            received_ns: times[0],
            last_answered_ns: times[1],
            ahead_ns: times[2],
            within_ns,
        },
    )
}

proptest! {
    #[test]
    fn a_probe_is_read_as_it_was_written(probe in probe()) {
        let frame = probe.write(SIDES[0], SIDES[1]);
        prop_assert_eq!(Probe::read(&frame), Some((probe, SIDES[1])));
        prop_assert!(is_probe(&frame));
    }

    #[test]
    fn nothing_else_is_a_probe(probe in probe(), at in 12_usize..22, change in 1_u8.., cut in 0..PROBE_BYTES) {
        let mut frame = probe.write(SIDES[0], SIDES[1]);
        prop_assert!(!is_probe(&frame[..cut]));
        frame[at] ^= change;
        prop_assert!(!is_probe(&frame));
    }
}
