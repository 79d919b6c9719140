//! The keys of `back-to-back`.

use super::ProcedureConfig;
use crate::frames::keys::drain;
use crate::frames::rate::Rate;
use plan::{Axis, BackToBack, Coordinate, Procedure, Profile, nanos};
use std::time::Duration;
use wire::mix::FrameMix;
use yaml::{Map, Node, Reported, Spanned};

/// RFC 9004 §5.
const BURST_DEFAULT: Duration = Duration::from_secs(2);
const BURST_MIN: Duration = Duration::from_millis(1);
const BURST_MAX: Duration = Duration::from_secs(60);
/// RFC 2544 §26.4.
const BURSTS_DEFAULT: u32 = 50;
const BURSTS_MAX: u32 = 1000;

pub(super) fn read(map: &Map<'_>) -> Result<Vec<BackToBack>, Reported> {
    let burst = map.with_default("burst", BURST_DEFAULT, |node| {
        node.duration(BURST_MIN..=BURST_MAX)
    });
    let bursts = map.with_default("bursts", BURSTS_DEFAULT, |node| {
        node.integer(1..=BURSTS_MAX)
    });
    let drain = drain(map, Profile::Fast.times().drain);
    Ok(vec![BackToBack {
        burst_ns_max: nanos(burst?),
        bursts: bursts?,
        drain_ns: nanos(drain?),
    }])
}

/// No load is set: bursts are sent at the highest.
impl ProcedureConfig for BackToBack {
    fn resolve(&self, _mix: &FrameMix) -> Procedure {
        Procedure::BackToBack(self.clone())
    }

    fn loads(&self) -> Vec<&Spanned<Rate>> {
        Vec::new()
    }

    fn check(&self, _node: Node<'_>, _mixes: &[&FrameMix]) {}

    fn coordinates(&self) -> Vec<Coordinate> {
        vec![
            Axis::Burst.at(self.burst_ns_max),
            Axis::Bursts.at(self.bursts),
            Axis::Drain.at(self.drain_ns),
        ]
    }
}
