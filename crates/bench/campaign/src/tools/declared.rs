//! The declared keys of trials by TCP, UDP and ping.

use crate::axis;
use crate::keys::{AS_FOR_TCP, CORES, DATAGRAM, DURATION, MTU, OF_ALL, OFFLOADS, millis, seconds};
use plan::{Dscp, Overlay, TransferDirection};
use std::time::Duration;
use units::Layer;
use yaml::Absent::{Default as Usual, Depends};
use yaml::{Key, Value};

/// 16 bytes of time stamp, which `ping` needs to measure at all, and 4 of the marker that
/// identifies clear text on the cipher link.
const PING_PAYLOAD_MIN: u64 = 20;
/// An IPv4 packet of 65535 B has 28 B of headers.
const PING_PAYLOAD_MAX: u64 = 65_507;

#[rustfmt::skip]
pub(super) const TCP: &[Key] = &[
    OF_ALL,
    MTU.meaning("IP MTU of the stations' links"),
    CORES.meaning("Cores that each station may use, with one process of the tool on each"),
    STREAMS.meaning("Parallel streams (`-P`) over all processes; `auto`: one per core"),
    // iperf3 takes no larger buffer (`-w`), and Linux makes none smaller.
    Key::new("window", Value::Axis(&Value::Or("auto", &Value::Size(4 << 10, 512 << 20))),
        Usual("auto"), "Socket buffer (`-w`); `auto`: the kernel tunes it")
        .range("4 KiB to 512 MiB"),
    DIRECTION.meaning(
        "Direction of the payload. The client is always on A: `b-to-a` is `-R`, `duplex` is \
         iperf3's `--bidir` and iperf2's `--full-duplex`. Each direction is reported separately; \
         the figure of a duplex transfer is the [sum](methodology/tools.md#directions)"),
    Key::new("congestion", Value::Axis(&Value::Or("auto", &Value::Text)), Usual("auto"),
        "Congestion control of the sender (`-C`, of iperf2 `-Z`); `auto`: the kernel's default. \
         The trial fails if a station's `tcp_allowed_congestion_control` lacks it")
        .words("name or `auto`, axis").range("one that the kernel allows"),
    DURATION.meaning("Measured time"),
    WARMUP.meaning("Time before it that is not counted"),
    OFFLOADS.meaning("TSO and GSO at all ends of all links, UDP segmentation included; GRO is \
         always off"),
    OVERLAY.meaning("[Overlay network](how-to/overlays.md) between the stations that the tools use, as \
         in clusters: VXLAN or Geneve over UDP without checksum, inside what the DUT carries. The \
         MTU inside is `mtu` less 50 B"),
    DSCP.meaning("[Class of service](how-to/classes.md) of the packets, by its name in the RFCs (`ef` is \
         46); `auto`: the tool's default. The trial proves that the receiver sees it, and reports \
         the class of the outer header. Not in an overlay"),
    TUNE.meaning("Search the best `streams` and `window` for each cell first"),
    TOOL.meaning("Program that sends and receives. A list makes a [cross-check of \
         tools](methodology/tools.md#cross-check-of-tools)"),
];

#[rustfmt::skip]
pub(super) const UDP: &[Key] = &[
    OF_ALL,
    MTU,
    CORES.meaning(AS_FOR_TCP),
    Key::new("datagram", Value::Axis(&Value::Or("auto", &DATAGRAM)), Usual("auto"),
        "UDP payload (`-l`); `auto`: the largest that the MTU carries whole")
        .range("16 B to MTU − 28 B, less 50 B in an overlay"),
    STREAMS,
    Key::new("rate",
        Value::Axis(&Value::Or("max", &Value::BitRate(Layer::Payload, 1_000, 1_000_000_000_000))),
        Usual("max"),
        "Intended payload rate of all streams together (`-b`), each way; `max`: as fast as the \
         tool sends"),
    DIRECTION,
    DURATION,
    WARMUP,
    OFFLOADS,
    OVERLAY,
    DSCP,
    TUNE.meaning("Search the best `datagram` and `rate` for each cell first, if they are `auto` \
         and `max`"),
    TOOL.meaning("As for `tcp`. iperf2 needs datagrams of 192 B or more: its header leaves too \
         little payload in shorter ones to detect clear-text"),
];

#[rustfmt::skip]
pub(super) const PING: &[Key] = &[
    OF_ALL,
    MTU,
    Key::new("count", Value::Integer(1, 100_000), Usual("1000"), "Echo requests per trial"),
    Key::new("interval", Value::Time(millis(1), seconds(10)), Usual("10 ms"),
        "From one request to the next").range("1 ms to 10 s, whole ms"),
    Key::new("payload", Value::Axis(&Value::Size(PING_PAYLOAD_MIN, PING_PAYLOAD_MAX)),
        Usual("56 B"), "ICMP payload (`-s`)").range("20 B to MTU − 28 B"),
    Key::new("loaded", Value::Switch, Usual("off"),
        "Send the same requests again [under TCP load](methodology/tools.md#round-trips-under-load) \
         from A to B, from B to A, and both ways"),
    Key::new("route", Value::Switch, Usual("off"),
        "Find [hops and path MTU](methodology/tools.md#hops-and-path-mtu) after the requests"),
    DSCP.meaning("As for `tcp`: of the requests, and of the replies, whose class the kernel copies"),
    Key::new("load_dscp", Value::OneOrMany(&Value::Name(Value::variants::<Dscp>)),
        Depends("one connection without a class"),
        "With `loaded`: a TCP connection of each of these [classes](how-to/classes.md), in parallel")
        .words("name or list"),
    OFFLOADS,
];

const STREAMS: Key = Key::new(
    "streams",
    Value::Axis(&Value::Or(
        "auto",
        &Value::Integer(1, axis::STREAMS_MAX as u64),
    )),
    Usual("auto"),
    AS_FOR_TCP,
)
.range("1 to 128, at least `cores`");
const DIRECTION: Key = Key::new(
    "direction",
    Value::Axis(&Value::Name(|| Value::names(&TransferDirection::ALL))),
    Usual("a-to-b"),
    AS_FOR_TCP,
);
const WARMUP: Key = Key::new(
    "warmup",
    Value::Time(Duration::ZERO, seconds(60)),
    Usual("1 s"),
    AS_FOR_TCP,
);
const TUNE: Key = Key::new("tune", Value::Switch, Usual("off"), AS_FOR_TCP);
const OVERLAY: Key = Key::new(
    "overlay",
    Value::Axis(&Value::Name(Value::variants::<Overlay>)),
    Usual("none"),
    AS_FOR_TCP,
);
const DSCP: Key = Key::new(
    "dscp",
    Value::Axis(&Value::Or("auto", &Value::Name(Value::variants::<Dscp>))),
    Usual("auto"),
    AS_FOR_TCP,
);
const TOOL: Key = Key::new(
    "tool",
    Value::Axis(&Value::Name(Value::variants::<plan::Tool>)),
    Usual("iperf3"),
    AS_FOR_TCP,
);
