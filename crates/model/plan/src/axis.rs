//! Axes of the matrix, each declared once.
//!
//! Expansion, ids, claims, texts and CSV columns read [`DECLARATIONS`]. To add an axis: a variant
//! of [`Axis`], its entry there, the key of its trial, and the code that uses its value.

mod parts;
mod values;

use self::parts::{datagram_bytes, http, traffic, video};
use crate::value::Value;
use crate::{
    Direction, Dut, ImpairProfile, LatencyPath, Measurement, Overlay, Stations, TransferDirection,
};
use serde::{Deserialize, Serialize};
use wire::mix::Contents;

/// A parameter that a campaign can vary, or that distinguishes trials of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the declaration of each says what it is")]
pub enum Axis {
    Mtu,
    Streams,
    Window,
    Congestion,
    Datagram,
    Payload,
    Loaded,
    Route,
    Count,
    Interval,
    Server,
    Client,
    Object,
    Version,
    Tls,
    Store,
    Connections,
    TransactionsPerConnection,
    TransactionsPerS,
    SetupsPerS,
    UpTo,
    Within,
    Ramp,
    Player,
    Transport,
    Picture,
    Frame,
    Ip,
    Direction,
    Duplex,
    Flows,
    Tunnels,
    Cores,
    Offloads,
    Overlay,
    Dscp,
    Ports,
    Contents,
    Rate,
    Load,
    Loads,
    MaxLoad,
    MinLoad,
    Step,
    Cir,
    Eir,
    Loss,
    Delay,
    Variation,
    Policing,
    Profile,
    Drain,
    Timeout,
    Burst,
    Bursts,
    Overload,
    Relief,
    OverloadTime,
    ReliefTime,
    Every,
    Failure,
    Kind,
    Cause,
    Attack,
    Shares,
    Times,
    Down,
    Watch,
    Operation,
    Bytes,
    AtOnce,
    Algorithms,
    Operations,
    Threads,
    Loops,
    Workers,
    Depth,
    InvalidEvery,
    Restart,
    Duration,
    Trials,
    Path,
    Warmup,
    Tune,
    Tool,
    Impair,
}

/// A cell's value on one axis.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Coordinate {
    /// The axis.
    pub axis: Axis,
    /// As in the campaign: a load of `1 Gbit/s L1` is one value, though it is another number of
    /// frames for each size.
    pub value: Value,
}

/// The parts of a cell that an axis reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conditions<'a> {
    pub(crate) measurement: &'a Measurement,
    pub(crate) dut: &'a Dut,
    pub(crate) stations: Option<Stations>,
    pub(crate) impair: Option<&'a ImpairProfile>,
}

/// Unit of an axis's numbers in print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// None: counts and words.
    Plain,
    /// Bytes, without a prefix; in ids without the unit.
    Bytes,
    /// Bytes, printed with a prefix.
    Size,
    /// Payload bits per second.
    Rate,
    /// Nanoseconds.
    Time,
    /// Per cent.
    Percent,
}

/// Which ids contain an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    /// Every id of its trials.
    Always,
    /// Ids of campaigns that vary it.
    IfVaried,
    /// Every id of transfers by a tool; of other trials if it is varied.
    AlwaysInTransfers,
    /// Ids of transfers by a tool if it is varied; every id of other trials.
    ExceptInTransfers,
}

/// A column of `results.csv`.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its key, with the unit.
    pub key: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
}

/// The declaration of an axis.
struct Declaration {
    axis: Axis,
    /// In ids; also the key in campaigns, but for the axes of crypto devices.
    key: &'static str,
    unit: Unit,
    named: Named,
    /// Word for [`Value::Open`].
    open: &'static str,
    /// Returns the value in force in a cell; `None` if the axis does not apply, or nothing reads
    /// it.
    value: fn(&Conditions<'_>) -> Option<Value>,
    /// In a sentence about the traffic.
    phrase: Option<fn(&Value) -> String>,
    /// Whether a figure is printed without this value.
    is_usual: fn(&Value) -> bool,
    column: Option<Column>,
}

const fn declare(axis: Axis, key: &'static str, unit: Unit) -> Declaration {
    Declaration {
        axis,
        key,
        unit,
        // Ids stay short: they name the axes that every trial of a kind has to state, and varied
        // ones.
        named: Named::IfVaried,
        open: "auto",
        value: |_| None,
        phrase: None,
        is_usual: |_| false,
        column: None,
    }
}

const fn always(axis: Axis, key: &'static str, unit: Unit) -> Declaration {
    Declaration {
        named: Named::Always,
        ..declare(axis, key, unit)
    }
}

const fn column(key: &'static str, meaning: &'static str) -> Option<Column> {
    Some(Column { key, meaning })
}

/// The declarations, in the order of texts and tables.
static DECLARATIONS: &[Declaration] = &[
    Declaration {
        value: |cell| Some(cell.stations?.mtu.into()),
        column: column("mtu_bytes", "IP MTU of the stations' interfaces"),
        ..always(Axis::Mtu, "mtu", Unit::Bytes)
    },
    Declaration {
        value: |cell| match *cell.measurement {
            Measurement::Tcp { streams, .. } | Measurement::Udp { streams, .. } => {
                Some(streams.into())
            }
            Measurement::Http(test) => Some(test.streams.into()),
            Measurement::Video(test) => Some(test.streams.into()),
            _ => None,
        },
        ..declare(Axis::Streams, "streams", Unit::Plain)
    },
    declare(Axis::Window, "window", Unit::Size),
    Declaration {
        value: |cell| match cell.measurement {
            Measurement::Tcp { congestion, .. } => Some(congestion.clone().into()),
            _ => None,
        },
        phrase: Some(|name| format!("congestion control {}", name.plain())),
        is_usual: |name| *name == Value::Open,
        column: column(
            "congestion_control",
            "requested for a TCP transfer; auto: the kernel's default",
        ),
        ..declare(Axis::Congestion, "congestion", Unit::Plain)
    },
    Declaration {
        value: datagram_bytes,
        ..always(Axis::Datagram, "datagram", Unit::Bytes)
    },
    Declaration {
        value: |cell| match *cell.measurement {
            Measurement::Ping { payload_bytes, .. } => Some(payload_bytes.into()),
            _ => None,
        },
        ..declare(Axis::Payload, "payload", Unit::Bytes)
    },
    Declaration {
        value: |cell| match *cell.measurement {
            Measurement::Ping { loaded, .. } => Some(loaded.into()),
            _ => None,
        },
        is_usual: |on| *on == Value::Switch(false),
        ..declare(Axis::Loaded, "loaded", Unit::Plain)
    },
    declare(Axis::Route, "route", Unit::Plain),
    declare(Axis::Count, "count", Unit::Plain),
    declare(Axis::Interval, "interval", Unit::Time),
    Declaration {
        value: |cell| Some(http(cell)?.server.name().into()),
        column: column("http_server", "nginx, or Python's http.server"),
        ..always(Axis::Server, "server", Unit::Plain)
    },
    Declaration {
        value: |cell| Some(http(cell)?.client.name().into()),
        column: column("http_client", "open-loop, which is our client, or wget2"),
        ..always(Axis::Client, "client", Unit::Plain)
    },
    Declaration {
        open: "mix",
        value: |cell| {
            let mix = || Value::Word("mix".to_owned());
            Some(http(cell)?.object_bytes.map_or_else(mix, Value::from))
        },
        column: column("object_bytes", "size of the objects of HTTP, or mix"),
        ..always(Axis::Object, "object", Unit::Bytes)
    },
    Declaration {
        value: |cell| Some(http(cell)?.version.name().into()),
        column: column("http_version", "1.1 or 2"),
        ..always(Axis::Version, "version", Unit::Plain)
    },
    Declaration {
        value: |cell| Some(http(cell)?.tls.into()),
        column: column("tls", "whether TLS 1.3 protects HTTP"),
        ..declare(Axis::Tls, "tls", Unit::Plain)
    },
    Declaration {
        value: |cell| Some(http(cell)?.store.name().into()),
        column: column("store", "storage for the HTTP client's files: ram or disk"),
        ..declare(Axis::Store, "store", Unit::Plain)
    },
    Declaration {
        value: |cell| Some(http(cell)?.connections.into()),
        column: column(
            "connections",
            "concurrent connections of HTTP; for wget2 files in parallel",
        ),
        ..declare(Axis::Connections, "connections", Unit::Plain)
    },
    Declaration {
        open: "unlimited",
        value: |cell| Some(http(cell)?.transactions_per_connection?.into()),
        column: column(
            "transactions_per_connection",
            "number after which the client of HTTP closes a connection; empty: never",
        ),
        ..declare(
            Axis::TransactionsPerConnection,
            "transactions-per-connection",
            Unit::Plain,
        )
    },
    Declaration {
        open: "max",
        value: |cell| Some(http(cell)?.transactions_per_s?.into()),
        column: column(
            "intended_transactions_per_s",
            "of the open-loop client; empty: closed loop",
        ),
        ..declare(Axis::TransactionsPerS, "transactions-per-s", Unit::Plain)
    },
    Declaration {
        open: "max",
        value: |cell| Some(cell.measurement.ike()?.setups_per_s?.into()),
        column: column(
            "intended_setups_per_s",
            "IKEv2 set-ups offered; empty: the highest rate is searched",
        ),
        ..always(Axis::SetupsPerS, "setups-per-s", Unit::Plain)
    },
    declare(Axis::UpTo, "up-to", Unit::Plain),
    Declaration {
        value: |cell| Some(cell.measurement.ike()?.within_ns.into()),
        column: column(
            "within_ns",
            "time from the intended start in which an IKEv2 set-up completes in time",
        ),
        ..always(Axis::Within, "within", Unit::Time)
    },
    declare(Axis::Ramp, "ramp", Unit::Time),
    Declaration {
        value: |cell| Some(video(cell)?.player.name().into()),
        column: column("player", "player of the video: vlc or ffmpeg"),
        ..always(Axis::Player, "player", Unit::Plain)
    },
    Declaration {
        value: |cell| Some(video(cell)?.transport.name().into()),
        column: column("transport", "transport of the video: rtp or http"),
        ..always(Axis::Transport, "transport", Unit::Plain)
    },
    Declaration {
        value: |cell| Some(video(cell)?.picture.name().into()),
        column: column("picture", "size of the picture of video"),
        ..declare(Axis::Picture, "picture", Unit::Plain)
    },
    Declaration {
        // A mix with one size is that number, so that sizes sort and a size is found by it.
        value: |cell| Some(traffic(cell)?.frames.mix.clone().into()),
        ..always(Axis::Frame, "frame", Unit::Bytes)
    },
    Declaration {
        value: |cell| Some(traffic(cell)?.ip.into()),
        phrase: Some(|version| format!("IPv{}", version.plain())),
        column: column("ip_version", "of the test packets"),
        ..declare(Axis::Ip, "ip", Unit::Plain)
    },
    Declaration {
        // Two meanings share the key: the loaded part of the DUT, and the way of a tool's payload.
        named: Named::ExceptInTransfers,
        value: |cell| match cell.measurement.transfer_direction() {
            Some(direction) => Some(direction.into()),
            None => Some(traffic(cell)?.direction.into()),
        },
        phrase: Some(|direction| match direction.plain() {
            both if both == Direction::Both.name() => "both gateways".to_owned(),
            one => format!("direction {one}"),
        }),
        is_usual: |direction| *direction == TransferDirection::default().into(),
        column: column(
            "direction",
            "for frames encrypt, decrypt or both: the loaded part of the device; for a tool's transfer a-to-b, b-to-a or duplex",
        ),
        ..declare(Axis::Direction, "direction", Unit::Plain)
    },
    Declaration {
        value: |cell| Some(traffic(cell)?.duplex.into()),
        phrase: Some(|duplex| match duplex {
            Value::Switch(true) => "both ways at once".to_owned(),
            _ => "one-way traffic".to_owned(),
        }),
        is_usual: |on| *on == Value::Switch(false),
        column: column(
            "duplex",
            "whether the same load goes from B to A at the same time",
        ),
        ..declare(Axis::Duplex, "duplex", Unit::Plain)
    },
    Declaration {
        value: |cell| Some(traffic(cell)?.frames.flows.into()),
        phrase: Some(|flows| flows.counted("flow")),
        column: column("flows", "flows"),
        ..declare(Axis::Flows, "flows", Unit::Plain)
    },
    Declaration {
        value: |cell| Some(traffic(cell)?.frames.tunnels.into()),
        phrase: Some(|tunnels| tunnels.counted("tunnel")),
        is_usual: |tunnels| *tunnels == Value::Number(1),
        column: column("tunnels", "tunnels that share the flows"),
        ..declare(Axis::Tunnels, "tunnels", Unit::Plain)
    },
    Declaration {
        named: Named::AlwaysInTransfers,
        value: |cell| Some(cell.stations?.cores.into()),
        phrase: Some(|cores| format!("{} per station", cores.counted("core"))),
        column: column(
            "cores_per_station",
            "cores that each station's tools may use",
        ),
        ..declare(Axis::Cores, "cores", Unit::Plain)
    },
    Declaration {
        value: |cell| Some(cell.stations?.offloads.into()),
        phrase: Some(|offloads| match offloads {
            Value::Switch(true) => "offloads on".to_owned(),
            _ => "offloads off".to_owned(),
        }),
        is_usual: |on| *on == Value::Switch(false),
        column: column("offloads", "whether TSO, GSO and UDP segmentation are on"),
        ..declare(Axis::Offloads, "offloads", Unit::Plain)
    },
    Declaration {
        value: |cell| match cell.measurement {
            Measurement::Tcp { .. } | Measurement::Udp { .. } => {
                Some(cell.stations?.overlay.into())
            }
            _ => None,
        },
        phrase: Some(|name| format!("overlay {}", name.plain())),
        is_usual: |name| *name == Overlay::None.into(),
        column: column(
            "overlay",
            "overlay network between the stations that a tool's transfer uses: none, vxlan or geneve",
        ),
        ..declare(Axis::Overlay, "overlay", Unit::Plain)
    },
    Declaration {
        value: |cell| match cell.measurement {
            Measurement::Tcp { .. } | Measurement::Udp { .. } | Measurement::Ping { .. } => {
                Some(cell.stations?.dscp.into())
            }
            _ => None,
        },
        phrase: Some(|name| format!("class {}", name.plain())),
        is_usual: |name| *name == Value::Open,
        column: column(
            "dscp",
            "class of service of the tools' packets; auto: the tools' default",
        ),
        ..declare(Axis::Dscp, "dscp", Unit::Plain)
    },
    Declaration {
        value: |cell| Some(traffic(cell)?.ports.into()),
        phrase: Some(|ports| format!("ports {}", ports.plain())),
        is_usual: |ports| *ports == Value::Open,
        ..declare(Axis::Ports, "ports", Unit::Plain)
    },
    Declaration {
        value: |cell| Some(traffic(cell)?.frames.contents.into()),
        phrase: Some(|contents| format!("{} ports and payloads", contents.plain())),
        is_usual: |contents| *contents == Contents::Fixed.into(),
        column: column(
            "contents",
            "fixed, or random: pseudo-random ports of each flow and payload of each frame",
        ),
        ..declare(Axis::Contents, "contents", Unit::Plain)
    },
    Declaration {
        open: "max",
        ..declare(Axis::Rate, "rate", Unit::Rate)
    },
    // Nothing reads the values of the next axes: procedures print their settings themselves, and
    // coordinates only distinguish their cells.
    declare(Axis::Load, "load", Unit::Percent),
    declare(Axis::Loads, "loads", Unit::Plain),
    declare(Axis::MaxLoad, "max_load", Unit::Plain),
    declare(Axis::MinLoad, "min_load", Unit::Plain),
    declare(Axis::Step, "step", Unit::Percent),
    declare(Axis::Cir, "cir", Unit::Plain),
    Declaration {
        open: "none",
        ..declare(Axis::Eir, "eir", Unit::Plain)
    },
    declare(Axis::Loss, "loss", Unit::Plain),
    Declaration {
        open: "none",
        ..declare(Axis::Delay, "delay", Unit::Time)
    },
    Declaration {
        open: "none",
        ..declare(Axis::Variation, "variation", Unit::Time)
    },
    declare(Axis::Policing, "policing", Unit::Plain),
    declare(Axis::Profile, "profile", Unit::Plain),
    declare(Axis::Drain, "drain", Unit::Time),
    declare(Axis::Timeout, "timeout", Unit::Time),
    declare(Axis::Burst, "burst", Unit::Time),
    declare(Axis::Bursts, "bursts", Unit::Plain),
    declare(Axis::Overload, "overload", Unit::Percent),
    declare(Axis::Relief, "relief", Unit::Percent),
    declare(Axis::OverloadTime, "overload_time", Unit::Time),
    declare(Axis::ReliefTime, "relief_time", Unit::Time),
    declare(Axis::Every, "every", Unit::Time),
    // Ids always name the disturbance of the DUT.
    always(Axis::Failure, "failure", Unit::Plain),
    always(Axis::Kind, "kind", Unit::Plain),
    always(Axis::Cause, "cause", Unit::Plain),
    always(Axis::Attack, "attack", Unit::Plain),
    declare(Axis::Shares, "shares", Unit::Plain),
    declare(Axis::Times, "times", Unit::Plain),
    declare(Axis::Down, "down", Unit::Time),
    declare(Axis::Watch, "watch", Unit::Time),
    // Ids of crypto devices always name the operation, its size and its concurrency.
    always(Axis::Operation, "operation", Unit::Plain),
    always(Axis::Bytes, "bytes", Unit::Bytes),
    always(Axis::AtOnce, "at-once", Unit::Plain),
    declare(Axis::Algorithms, "algorithms", Unit::Plain),
    declare(Axis::Operations, "operations", Unit::Plain),
    always(Axis::Threads, "threads", Unit::Plain),
    Declaration {
        open: "none",
        // A fatigue trial may end by its time alone.
        ..declare(Axis::Loops, "loops", Unit::Plain)
    },
    // A property of the DUT, not of the trial: claims select by it. For crypto devices, their
    // concurrency.
    Declaration {
        value: |cell| Some(cell.dut.adapter.encryptor()?.workers.into()),
        ..declare(Axis::Workers, "workers", Unit::Plain)
    },
    declare(Axis::Depth, "depth", Unit::Plain),
    declare(Axis::InvalidEvery, "invalid-every", Unit::Plain),
    declare(Axis::Restart, "restart", Unit::Plain),
    Declaration {
        open: "none",
        // A fatigue trial may end by its loops alone.
        ..declare(Axis::Duration, "duration", Unit::Time)
    },
    declare(Axis::Trials, "trials", Unit::Plain),
    Declaration {
        value: |cell| Some(cell.measurement.frames()?.procedure.latency()?.path.into()),
        is_usual: |path| *path == LatencyPath::OneWay.into(),
        ..declare(Axis::Path, "path", Unit::Plain)
    },
    declare(Axis::Warmup, "warmup", Unit::Time),
    declare(Axis::Tune, "tune", Unit::Plain),
    declare(Axis::Tool, "tool", Unit::Plain),
    Declaration {
        value: |cell| Some(cell.impair?.name.clone().into()),
        phrase: Some(|name| format!("impairment {}", name.plain())),
        is_usual: |name| *name == ImpairProfile::NONE.into(),
        column: column(
            "impair",
            "profile of the impaired path between the gateways",
        ),
        ..always(Axis::Impair, "impair", Unit::Plain)
    },
];

#[cfg(test)]
mod tests;
