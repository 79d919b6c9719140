//! The keys of `back-to-back`.

use super::ProcedureConfig;
use crate::frames::keys::{DRAIN, TRAFFIC};
use crate::frames::rate::Rate;
use crate::keys::{OF_ALL, millis, seconds};
use plan::{Axis, BackToBack, Coordinate, Procedure};
use wire::mix::FrameMix;
use yaml::Absent::Default;
use yaml::{Key, Map, Node, Reported, Spanned, Value};

#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    OF_ALL,
    TRAFFIC,
    // RFC 9004 §5.
    Key::new("burst", Value::Time(millis(1), seconds(60)), Default("2 s"), "Longest burst tried"),
    // RFC 2544 §26.4.
    Key::new("bursts", Value::Integer(1, 1000), Default("50"),
        "Times that a burst of the found length must pass"),
    DRAIN.meaning("Time after each burst; frames still in a deeper queue of the device then count \
        as lost"),
];

pub(super) fn read(map: &Map<'_>) -> Result<Vec<BackToBack>, Reported> {
    let (burst, bursts, drain) = (map.get("burst"), map.get("bursts"), map.get("drain"));
    Ok(vec![BackToBack {
        burst_ns_max: burst?,
        bursts: bursts?,
        drain_ns: drain?,
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
