//! Soaks that contradict themselves.

use super::*;

pub(super) fn segment() -> SoakSegment {
    let point = |at_ns| SoakPoint {
        at_ns,
        intended: 10,
        received: 10,
        p50_ns: Some(100),
        p99_ns: Some(200),
        max_ns: 195,
        ..SoakPoint::default()
    };
    SoakSegment {
        point_ns: 10,
        points: vec![point(0), point(10)],
        histogram: histogram(),
        ..SoakSegment::default()
    }
}

type SegmentChange = (fn(&mut SoakSegment), &'static str);

/// Changes of a segment and their contradictions.
pub(super) const SEGMENTS: [SegmentChange; 4] = [
    (
        |s| s.points[0].p50_ns = Some(300),
        "percentiles in ns: 200 after 300",
    ),
    (
        |s| s.points[0].max_ns = 95,
        "percentiles in ns: 99 after 200",
    ),
    (
        |s| s.points[1].received = 90,
        "100 received of 20 frames intended in the points of a soak",
    ),
    (|s| s.points[0].at_ns = 50, "points in ns: 10 after 50"),
];

#[test]
fn soaks() {
    let outcome = |segment| {
        measured(Figures::Frames(Box::new(FrameResult {
            found: ProcedureRecord::Soak(vec![segment]),
            ..frame_result()
        })))
    };
    for (change, problem) in SEGMENTS {
        contradicts(&frames(), &segment(), outcome, &[(&change, problem)]);
    }
}
