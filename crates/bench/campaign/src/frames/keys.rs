//! Keys that several kinds of frame trials have.

use crate::axis::RUN_MAX;
use crate::frames::mix;
use crate::frames::profile::{GOAL, NAMED};
use crate::frames::rate::{LOAD, Rate};
use crate::frames::{FLOWS_MAX, IP_VERSIONS, TUNNELS_MAX};
use crate::keys::{AS_FOR_TCP, CORES, millis, seconds};
use plan::{Direction, PortKind, Profile};
use std::time::Duration;
use units::Ratio;
use wire::mix::{Contents, FrameMix};
use yaml::Absent::{Default, Depends, Required};
use yaml::{Key, Node, Spanned, Value};

/// The time of a trial.
pub(super) const TRIAL: Value = Value::Time(millis(10), RUN_MAX);
/// Per cents of frames that may be lost.
pub(super) const LOSS: Value = Value::Ratio(Ratio::from_ppm(0), Ratio::from_percent(10));

const PORT: Value = Value::Or("auto", &Value::Name(Value::variants::<PortKind>));
pub(crate) const DIRECTION: Value =
    Value::Name(|| Direction::ALL.iter().map(|it| it.name()).collect());
pub(crate) const IP: Value = Value::Name(|| Value::names(&IP_VERSIONS));

/// Keys of all frame trials.
#[rustfmt::skip]
pub(super) const TRAFFIC: Key = Key::group("(frames)", &[
    Key::new("frame", Value::Axis(&mix::VALUE), Required,
        "Frame size on the clear side, or a [mix](#mixes)")
        .words("size or mix, axis").range("64 B to 9216 B"),
    Key::new("ip", Value::Axis(&IP), Default("4"), "IP version; IPv6 from 84 B on"),
    Key::new("direction", Value::Axis(&DIRECTION), Default("both"),
        "Part of the DUT in the path, see below"),
    CORES.meaning("Cores that each station may use, each with a port and a share of the flows"),
    Key::new("flows", Value::Axis(&Value::Or("auto", &Value::Integer(1, FLOWS_MAX as u64))),
        Default("auto"),
        "Flows, which differ by port; `auto`: 64, or more if tunnels or cores need them")
        .range("1 to 65535, at least `tunnels` and `cores`, 32768 a tunnel"),
    Key::new("tunnels", Value::Axis(&Value::Or("auto", &Value::Integer(1, TUNNELS_MAX as u64))),
        Default("auto"),
        "Tunnels that share the flows, round-robin; they differ by address. `auto`: all of the \
         DUT, or one")
        .range("1 to 65535; of `cipherbench` and `strongswan` as many as they have"),
    Key::new("duplex", Value::Axis(&Value::Switch), Default("off"),
        "The same load from B to A at the same time; a goal must be met [each \
         way](methodology/frames.md)").range("with `direction: both`"),
    Key::new("ports", Value::Axis(&Value::Any(&[PORT, Value::Map(PORTS)])), Default("auto"),
        "Kind of ports that stations send and receive by; `auto`: the fastest that works. `{ \
         send: xdp, receive: packet }` forces each end. `socket`: IPv4, one tunnel, and not if \
         the station seals (`decrypt`: `send`) or opens (`encrypt`: `receive`)")
        .words("`auto`, a kind, or a map, axis").range("`xdp`, `packet`, `socket`, `memory`"),
    Key::new("contents", Value::Axis(&Value::Or("auto", &CONTENTS)), Default("auto"),
        "[Ports and payloads](methodology/frames.md#ports-and-payloads) of the frames. `auto`: `random` \
         if a DUT of the trial is `external` and `random` is possible, otherwise `fixed`. \
         `random`: not with several tunnels over IPv4, nor with `ports: socket`"),
    Key::new("offloads", Value::Axis(&Value::Switch), Default("off"),
        "As for `tcp`. Our frames are never super-packets; refused with encryptors, which may \
         join sealed or opened packets into super-packets that stations cannot split"),
]);

const CONTENTS: Value = Value::Name(|| Value::names(&CONTENTS_NAMES));
pub(super) const CONTENTS_NAMES: [(&str, Contents); 2] = [
    (Contents::Fixed.name(), Contents::Fixed),
    (Contents::Random.name(), Contents::Random),
];

/// Keys of `ports` as a map.
#[rustfmt::skip]
pub(super) const PORTS: &[Key] = &[
    Key::new("send", PORT, Default("auto"), "Kind of the sender's ports"),
    Key::new("receive", PORT, Default("auto"), "Kind of the receiver's ports"),
];

/// Keys of searches.
#[rustfmt::skip]
pub(super) const SEARCH: &[Key] = &[
    // No declared default: a given profile excludes goals, and the default one does not.
    Key::new("profile", Value::Name(|| NAMED.map(Profile::name).to_vec()),
        Depends("`fast`"), "Goals and times, see above"),
    Key::new("goals", Value::List(&Value::Map(GOAL)), Depends("the profile's"),
        "Goals spelled out, without `profile`").range("1 to 8").excludes(&["profile"]).apart(),
    MAX_LOAD.meaning("Highest load tried"),
    Key::new("min_load", LOAD, Default("1 k frames/s"), "Lowest load tried")
        .words("load").range("below `max_load`, a frame in each trial"),
    Key::new("drain", DRAIN_TIME, Depends("the profile's"),
        "Time after the last frame for late frames, which still count (RFC 2544 §23)"),
    Key::new("timeout", Value::Time(seconds(1), RUN_MAX),
        Depends("the profile's; for `goals` 30 × their sums, at least 1 min"),
        "Longest time of the search; the bounds found by then are reported")
        .range("1 s to 24 h, at least any goal's `sum`"),
];
pub(super) const SEARCHED: Key = Key::group("(search)", SEARCH);

/// Highest load; `auto`: the line rate, or the generator's maximum.
pub(super) const MAX_LOAD: Key = Key::new(
    "max_load",
    Value::Or("auto", &LOAD),
    Default("auto"),
    AS_FOR_TCP,
)
.words("load or `auto`")
.range("1 frame/s to 1 G frames/s");

const DRAIN_TIME: Value = Value::Time(Duration::ZERO, seconds(60));
/// Time after the last frame while stragglers still count: in short trials that of `fast`.
pub(super) const DRAIN: Key = Key::new("drain", DRAIN_TIME, Default("100 ms"), "As for searches");

/// Whether a trial is too short for one frame.
pub(super) fn is_empty(frames_per_s: u64, trial: Duration) -> bool {
    // Frames per second × nanoseconds below 10⁹ are less than one frame; a division would round.
    u128::from(frames_per_s) * trial.as_nanos() < Duration::from_secs(1).as_nanos()
}

/// Reports a load without a frame in a trial of this time, for some mix.
pub(super) fn check_for_frames(
    node: Node<'_>,
    load: &Spanned<Rate>,
    trial: Duration,
    mixes: &[&FrameMix],
    help: &str,
) {
    let least = mixes.iter().map(|mix| load.value.frames_per_s(mix)).min();
    if least.is_some_and(|least| is_empty(least, trial)) {
        let time = units::time::print(trial);
        let what = format!("in {time} at {} there is no frame", load.value);
        node.mistake_at(&load.place, what, help);
    }
}
