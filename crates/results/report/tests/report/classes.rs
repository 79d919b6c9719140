//! Classes of service that loaded a path in parallel.

use crate::fixture;
use journal::record::{Figures, LoadedClass, LoadedLatency, Outcome};
use plan::{Dscp, TransferDirection};

#[test]
fn classes_that_compete_have_their_payload_and_share_of_each_way() {
    let mut run = fixture::quick();
    for trial in &mut run.trials {
        let Outcome::Measured(measured) = &mut trial.outcome else {
            continue;
        };
        if let Figures::Latency(latency) = &mut measured.figures {
            let class = |class, bytes| LoadedClass { class, bytes };
            latency.loaded = vec![LoadedLatency {
                direction: TransferDirection::AToB,
                sent: 3,
                received: 3,
                round_trips_ns: vec![40_000, 50_000, 90_000],
                duration_ns: 1_000_000_000,
                link_bytes: [10_000_000, 1000],
                classes: vec![
                    class(Dscp::Be, [7_500_000, 10]),
                    class(Dscp::Ef, [2_500_000, 10]),
                ],
                outer_dscp: [("be".to_owned(), 30), ("ef".to_owned(), 10)].into(),
            }];
        }
    }
    let text = crate::terminal(&run, None, 160, false);
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    for end in [
        ["120", "60", "Mbit/s", "75", "%"],
        ["carried", "20", "Mbit/s", "25", "%"],
        ["tunnel", "20", "Mbit/s", "25", "%"],
    ] {
        assert!(
            rows.iter().any(|row| row.ends_with(&end)),
            "{end:?}\n{text}"
        );
    }
    assert!(text.contains("Classes that compete"), "{text}");
}
