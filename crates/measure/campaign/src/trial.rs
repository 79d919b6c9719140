//! Trials as a campaign asks for them: axes, checked one by one and against one another.

use crate::axis::{
    self, AxisValues, axis, check_payload, check_run, check_searched, check_streams, required_axis,
};
use crate::device::{self, DeviceTrial};
use crate::frames::{self, FrameTrial};
use crate::plan;
use std::time::Duration;
use units::Bytes;
use wire::overhead::{IPV4_HEADER_BYTES, UDP_HEADER_BYTES};
use yaml::{Map, Node, Place, Reported, Spanned};

/// One entry of `trials`.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) place: Place,
    /// Names of the DUTs that it measures; `None`: all.
    pub(crate) duts: Option<Vec<Spanned<String>>>,
    pub(crate) kind: Kind,
}

/// What measures.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A real program on each station.
    Tool(ToolTrial),
    /// Our own generator and analyser.
    Frames(FrameTrial),
    /// Operations of crypto devices.
    Device(DeviceTrial),
}

/// A trial by a real program.
#[derive(Debug)]
pub(crate) struct ToolTrial {
    pub(crate) mtu: Vec<Spanned<u16>>,
    pub(crate) offloads: Vec<Spanned<bool>>,
    pub(crate) tool: Tool,
}

/// The program, and the axes that only it has.
#[derive(Debug)]
pub(crate) enum Tool {
    Tcp {
        load: Load,
        window: Vec<Spanned<Option<u64>>>,
    },
    Udp {
        load: Load,
        datagram: Vec<Spanned<Option<u32>>>,
        rate: Vec<Spanned<Option<u64>>>,
    },
    Ping {
        count: u32,
        interval: Duration,
        payload: Vec<Spanned<u16>>,
    },
}

/// What TCP and UDP trials have in common.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) tool: Vec<Spanned<plan::Tool>>,
    pub(crate) cores: Vec<Spanned<u16>>,
    /// `None`: one per core.
    pub(crate) streams: Vec<Spanned<Option<u16>>>,
    pub(crate) duration: Vec<Spanned<Duration>>,
    pub(crate) warmup: Duration,
    pub(crate) tune: bool,
}

/// Reads the keys that only one tool has; with the MTUs.
type ToolReader = fn(&Map<'_>, &AxisValues<u16>) -> Result<Tool, Reported>;

#[derive(Debug, Clone, Copy)]
enum Reader {
    Tool(ToolReader),
    Frames(frames::Reader),
}

const TOOLS: [(&str, ToolReader); 3] = [("tcp", |map, _| tcp(map)), ("udp", udp), ("ping", ping)];

const DURATION_DEFAULT: Duration = Duration::from_secs(10);
const WARMUP_DEFAULT: Duration = Duration::from_secs(1);

const PING_COUNT_DEFAULT: u32 = 1000;
const PING_COUNT_MAX: u32 = 100_000;
const PING_INTERVAL_DEFAULT: Duration = Duration::from_millis(10);
const PING_PAYLOAD_DEFAULT: u16 = 56;
/// 16 bytes of time stamp, which `ping` needs to measure at all, and 4 of the marker by which
/// clear-text is told on the cipher link.
const PING_PAYLOAD_MIN: u64 = 20;
/// 160 bytes of iperf2's header, and digits by which clear-text is told on the cipher link.
const IPERF2_DATAGRAM_MIN: u32 = 192;
/// An ICMP echo header is as long as UDP's (RFC 792).
const ICMP_HEADER_BYTES: usize = 8;

/// Reads one entry of `trials`.
pub(crate) fn read(node: Node<'_>) -> Result<Trial, Reported> {
    let tools = TOOLS.map(|(name, reader)| (name, Reader::Tool(reader)));
    let frames = frames::PROCEDURES.map(|(name, reader)| (name, Reader::Frames(reader)));
    let kinds: Vec<_> = tools.into_iter().chain(frames).collect();
    let (reader, body) = node.variant("trial", &kinds)?;
    body.map(|map| {
        let kind = match reader {
            Reader::Frames(reader) => frames::read(map, reader).map(Kind::Frames),
            Reader::Tool(reader) => tool(map, reader).map(Kind::Tool),
        };
        let duts = map.optional("duts").map(dut_names).transpose();
        Ok(Trial {
            place: body.place(),
            duts: duts?,
            kind: kind?,
        })
    })
}

/// Reads one entry of the `trials` of crypto devices.
pub(crate) fn read_of_devices(node: Node<'_>) -> Result<Trial, Reported> {
    let (reader, body) = node.variant("device trial", &device::TRIALS)?;
    body.map(|map| {
        let kind = reader(map).map(Kind::Device);
        let devices = map.optional("devices").map(dut_names).transpose();
        Ok(Trial {
            place: body.place(),
            duts: devices?,
            kind: kind?,
        })
    })
}

/// Names of DUTs; whether there are such is known when the whole file is read.
fn dut_names(node: Node<'_>) -> Result<Vec<Spanned<String>>, Reported> {
    node.one_or_many(|item| Ok(item.spanned(item.text()?.to_owned())))
}

fn tool(map: &Map<'_>, reader: ToolReader) -> Result<ToolTrial, Reported> {
    let mtu = required_axis(map, "mtu", |node| axis::mtu(node, axis::MTU_MAX));
    let offloads = axis(map, "offloads", true, Node::bool);
    let tool = reader(map, &mtu);
    Ok(ToolTrial {
        mtu: mtu.all()?,
        offloads: offloads.all()?,
        tool: tool?,
    })
}

/// [`Load`] as it is read.
struct RawLoad {
    tool: AxisValues<plan::Tool>,
    cores: AxisValues<u16>,
    streams: AxisValues<Option<u16>>,
    duration: AxisValues<Duration>,
    warmup: Result<Spanned<Duration>, Reported>,
    tune: Result<Spanned<bool>, Reported>,
}

impl RawLoad {
    fn read(map: &Map<'_>) -> Self {
        let node = map.node();
        let streams = |node: Node<'_>| node.integer(1..=axis::STREAMS_MAX);
        let load = Self {
            tool: axis(map, "tool", plan::Tool::default(), |node| {
                node.one_of("tool", &plan::Tool::ALL)
            }),
            cores: axis(map, "cores", 1, |node| node.integer(1..=axis::CORES_MAX)),
            streams: axis(map, "streams", None, |node| node.word_or("auto", streams)),
            duration: axis(map, "duration", DURATION_DEFAULT, axis::duration),
            warmup: map.with_default("warmup", node.spanned(WARMUP_DEFAULT), |node| {
                axis::warmup(node).map(|warmup| node.spanned(warmup))
            }),
            tune: map.with_default("tune", node.spanned(false), |node| {
                node.bool().map(|tune| node.spanned(tune))
            }),
        };
        check_streams(node, &load.streams, &load.cores);
        if let Ok(warmup) = &load.warmup {
            check_run(node, &load.duration, warmup);
        }
        load
    }

    fn all(self) -> Result<Load, Reported> {
        Ok(Load {
            tool: self.tool.all()?,
            cores: self.cores.all()?,
            streams: self.streams.all()?,
            duration: self.duration.all()?,
            warmup: self.warmup?.value,
            tune: self.tune?.value,
        })
    }
}

fn tcp(map: &Map<'_>) -> Result<Tool, Reported> {
    let load = RawLoad::read(map);
    let window = axis(map, "window", None, |node| {
        node.word_or("auto", axis::window)
    });
    check_searched(map.node(), &load.tune, "streams", &load.streams);
    check_searched(map.node(), &load.tune, "window", &window);
    Ok(Tool::Tcp {
        load: load.all()?,
        window: window.all()?,
    })
}

fn udp(map: &Map<'_>, mtu: &AxisValues<u16>) -> Result<Tool, Reported> {
    let load = RawLoad::read(map);
    let datagram = axis(map, "datagram", None, |node| {
        node.word_or("auto", axis::datagram)
    });
    let rate = axis(map, "rate", None, |node| node.word_or("max", axis::rate));

    let headers = IPV4_HEADER_BYTES + UDP_HEADER_BYTES;
    let given = datagram
        .iter()
        .filter_map(|axis| Some((axis.value?.into(), axis.place.clone())));
    check_payload(map.node(), "datagram", headers, given, mtu);
    let given = datagram
        .iter()
        .filter_map(|axis| Some((axis.value?, axis.place.clone())));
    check_iperf2(map.node(), &load.tool, given);
    // What is given stays; what is left open is searched.
    let all_given = datagram.iter().all(|datagram| datagram.value.is_some())
        && rate.iter().all(|rate| rate.value.is_some());
    if let Ok(tune) = &load.tune
        && tune.value
        && all_given
    {
        let what = "`tune` has nothing to search: `datagram` and `rate` are given";
        let help = "write `rate: max` to have the best rate searched, or leave `tune` off";
        map.node().mistake_at(&tune.place, what, help);
    }
    Ok(Tool::Udp {
        load: load.all()?,
        datagram: datagram.all()?,
        rate: rate.all()?,
    })
}

/// iperf2 fills the beginning of a datagram with a header, behind which it has to show what is
/// looked for between the gateways.
fn check_iperf2(
    node: Node<'_>,
    tools: &AxisValues<plan::Tool>,
    datagrams: impl Iterator<Item = (u32, Place)>,
) {
    if !tools.iter().any(|tool| tool.value == plan::Tool::Iperf2) {
        return;
    }
    for (bytes, place) in datagrams.filter(|(bytes, _)| *bytes < IPERF2_DATAGRAM_MIN) {
        let what = format!(
            "iperf2 cannot be watched with datagrams of {bytes} B: they hold nothing but its header"
        );
        let help = format!("write {IPERF2_DATAGRAM_MIN} B or more, or `tool: iperf3`");
        node.mistake_at(&place, what, help);
    }
}

fn ping(map: &Map<'_>, mtu: &AxisValues<u16>) -> Result<Tool, Reported> {
    let node = map.node();
    let count = map.with_default("count", PING_COUNT_DEFAULT, |node| {
        node.integer(1..=PING_COUNT_MAX)
    });
    let interval = map.with_default(
        "interval",
        node.spanned(PING_INTERVAL_DEFAULT),
        ping_interval,
    );
    let payload = axis(map, "payload", PING_PAYLOAD_DEFAULT, |node| {
        let range = Bytes::new(PING_PAYLOAD_MIN)..=Bytes::new(65_507);
        // In range, so it fits.
        node.size(range).map(|size| size.get() as u16)
    });

    let headers = IPV4_HEADER_BYTES + ICMP_HEADER_BYTES;
    let given = payload
        .iter()
        .map(|axis| (axis.value.into(), axis.place.clone()));
    check_payload(node, "ping payload", headers, given, mtu);
    if let (Ok(count), Ok(interval)) = (&count, &interval)
        && interval.value * *count > axis::RUN_MAX
    {
        let time = units::human::duration(interval.value * *count);
        let help = format!(
            "at most {} are possible: lower `count` or `interval`",
            units::time::print(axis::RUN_MAX)
        );
        node.mistake_at(
            &interval.place,
            format!("{count} requests take {time}"),
            help,
        );
    }
    Ok(Tool::Ping {
        count: count?,
        interval: interval?.value,
        payload: payload.all()?,
    })
}

/// `ping` drops fractions of a millisecond without a word, and floods when nothing is left.
fn ping_interval(node: Node<'_>) -> Result<Spanned<Duration>, Reported> {
    let interval = node.duration(Duration::from_millis(1)..=Duration::from_secs(10))?;
    if interval.subsec_nanos().is_multiple_of(1_000_000) {
        return Ok(node.spanned(interval));
    }
    let what = format!(
        "{} is not a whole number of milliseconds",
        units::time::print(interval)
    );
    Err(node.mistake(what, "`ping` counts its interval in milliseconds"))
}
