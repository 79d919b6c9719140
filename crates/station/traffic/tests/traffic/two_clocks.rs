//! A receiver whose clock is not the sender's.

use crate::analyser::{TAG, analyse, traffic};
use crate::wire_tap::{all_frames, receive};
use traffic_spec::{Part, Receive, Received, SenderClock};

/// Its clock is a quarter of an hour ahead of the sender's, and slower or faster by 100 ppm: it
/// reports the same as by the sender's.
#[test]
fn a_receiver_on_another_host_counts_by_the_senders_clock() {
    const AHEAD_NS: i64 = 900_000_000_000;
    let frames = || {
        let mut frames = all_frames(&traffic(false, 1, 1), TAG, Part::WHOLE, None);
        frames.iter_mut().for_each(|(_, now_ns)| *now_ns += 25_000);
        frames
    };
    let expected = analyse(&receive(1), frames());
    for faster_ppb in [-100_000, 100_000] {
        let clock = SenderClock {
            at_ns: AHEAD_NS,
            ahead_ns: -AHEAD_NS,
            faster_ppb,
        };
        let mut late = frames();
        for (_, now_ns) in &mut late {
            let own_ns = *now_ns as f64 / (1.0 + faster_ppb as f64 * 1e-9);
            *now_ns = AHEAD_NS.unsigned_abs() + own_ns.round() as u64;
        }
        let wanted = Receive {
            sender_clock: Some(clock),
            ..receive(1)
        };
        let received = analyse(&wanted, late);
        assert_eq!(received.frames, expected.frames);
        let least = |received: &Received| received.latency[0].0;
        assert!(least(&expected) > 20_000, "{}", least(&expected));
        let off_ns = least(&received).abs_diff(least(&expected));
        assert!(off_ns <= 100, "{off_ns}");
        assert!(received.elapsed_ns.abs_diff(expected.elapsed_ns) <= 10);
    }
}
