//! Keys that several kinds of trials have.

use crate::axis::{CORES_MAX, MTU_MAX, MTU_MIN, RUN_MAX};
use std::time::Duration;
use units::Ratio;
use yaml::Absent::{Default, Depends, Required};
use yaml::{Key, Value};

pub(crate) const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub(crate) const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// The meaning of keys that are documented with the first of the trials that have them.
pub(crate) const AS_FOR_TCP: &str = "As for `tcp`";

pub(crate) const CORES_VALUE: Value = Value::Integer(1, CORES_MAX as u64);
/// A UDP payload, up to the limit of an IPv4 packet; iperf3 needs 16 bytes for its counters.
pub(crate) const DATAGRAM: Value = Value::Size(16, 65_507);
/// Any share.
pub(crate) const SHARE: Value = Value::Ratio(Ratio::from_ppm(0), Ratio::from_percent(100));

/// Keys of every trial, but of devices.
#[rustfmt::skip]
pub(crate) const OF_ALL: Key = Key::group("(all)", &[
    Key::new("duts", Value::OneOrMany(&Value::Text), Depends("all"),
        "The DUTs that this trial measures. The name of an entry with lists as settings selects \
         all of its DUTs").words("name or list").range("names of DUTs"),
    Key::new("impair", Value::Axis(&Value::Text), Depends("none"),
        "Profile of the [impaired path](#impairments) between the gateways. The lab then has an \
         element `impair`").words("name, axis").range("`none` and the names in `impairments`"),
]);

#[rustfmt::skip]
pub(crate) const CORES: Key = Key::new("cores", Value::Axis(&CORES_VALUE), Default("1"),
    "Cores that each station may use");

/// Keys of every trial by a tool.
#[rustfmt::skip]
pub(crate) const MTU: Key = Key::new("mtu", Value::Axis(&Value::Size(MTU_MIN, MTU_MAX)), Required,
    AS_FOR_TCP);
#[rustfmt::skip]
pub(crate) const OFFLOADS: Key = Key::new("offloads", Value::Axis(&Value::Switch), Default("on"),
    AS_FOR_TCP);

/// Measured time, in [steps](crate::axis::in_steps).
#[rustfmt::skip]
pub(crate) const DURATION: Key = Key::new("duration",
    Value::Axis(&Value::Time(seconds(1), RUN_MAX)), Default("10 s"), AS_FOR_TCP);
