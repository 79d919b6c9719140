//! Trials by real programs: their axes, checked one by one and against one another, and their
//! points.

use crate::axis::{
    self, AxisValues, axis, check_payload, check_run, check_searched, check_streams, required_axis,
};
use crate::flows::{self, FlowAxes};
use crate::grid::Grid;
use crate::http::{self, HttpAxes};
use crate::point::Point;
use crate::video::{self, VideoAxes};
use plan::{self, Axis, HttpTest, Measurement, Stations, TransferDirection, VideoTest, nanos};
use std::time::Duration;
use units::Bytes;
use wire::overhead::{IPV4_HEADER_BYTES, UDP_HEADER_BYTES};
use yaml::{Map, Node, Place, Reported, Spanned};

/// A trial by a real program.
#[derive(Debug)]
pub(crate) struct ToolTrial {
    mtu: Vec<Spanned<u16>>,
    offloads: Vec<Spanned<bool>>,
    tool: Tool,
}

/// The program, and the axes that only it has.
#[derive(Debug)]
pub(crate) enum Tool {
    Tcp {
        load: Load,
        window: Vec<Spanned<Option<u64>>>,
        congestion: Vec<Spanned<Option<String>>>,
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
        loaded: bool,
        route: bool,
    },
    Http(HttpAxes),
    Flows(FlowAxes),
    Video(VideoAxes),
}

/// The axes that TCP and UDP trials have in common.
#[derive(Debug)]
pub(crate) struct Load {
    tool: Vec<Spanned<plan::Tool>>,
    direction: Vec<Spanned<TransferDirection>>,
    cores: Vec<Spanned<u16>>,
    /// `None`: one per core.
    streams: Vec<Spanned<Option<u16>>>,
    duration: Vec<Spanned<Duration>>,
    warmup: Duration,
    tune: bool,
}

/// Reads the keys that only one tool has; with the MTUs.
pub(crate) type Reader = fn(&Map<'_>, &AxisValues<u16>) -> Result<Tool, Reported>;

pub(crate) const TOOLS: [(&str, Reader); 6] = [
    ("tcp", |map, _| tcp(map)),
    ("udp", udp),
    ("ping", ping),
    ("http", |map, _| http::read(map).map(Tool::Http)),
    ("flows", |map, _| flows::read(map).map(Tool::Flows)),
    ("video", |map, _| video::read(map).map(Tool::Video)),
];

const DURATION_DEFAULT: Duration = Duration::from_secs(10);
const WARMUP_DEFAULT: Duration = Duration::from_secs(1);

const PING_COUNT_DEFAULT: u32 = 1000;
const PING_COUNT_MAX: u32 = 100_000;
const PING_INTERVAL_DEFAULT: Duration = Duration::from_millis(10);
const PING_PAYLOAD_DEFAULT: u16 = 56;
/// 16 bytes of time stamp, which `ping` needs to measure at all, and 4 of the marker that
/// identifies clear text on the cipher link.
const PING_PAYLOAD_MIN: u64 = 20;
/// 160 bytes of iperf2's header, and digits that identify clear text on the cipher link.
const IPERF2_DATAGRAM_MIN: u32 = 192;
/// An ICMP echo header has the length of UDP's (RFC 792).
const ICMP_HEADER_BYTES: usize = 8;

/// Reads a trial by the tool of that reader.
pub(crate) fn read(map: &Map<'_>, reader: Reader) -> Result<ToolTrial, Reported> {
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
    direction: AxisValues<TransferDirection>,
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
                node.choice("tool")
            }),
            direction: axis(map, "direction", TransferDirection::default(), |node| {
                node.one_of("direction", &TransferDirection::ALL)
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
        // Also after other mistakes: values that could not be read are left out.
        check_streams(node, &load.streams, &load.cores);
        if let Ok(warmup) = &load.warmup {
            check_run(node, &load.duration, warmup);
        }
        load
    }

    fn all(self) -> Result<Load, Reported> {
        Ok(Load {
            tool: self.tool.all()?,
            direction: self.direction.all()?,
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
    let congestion = axis(map, "congestion", None, |node| {
        node.word_or("auto", axis::congestion)
    });
    check_searched(map.node(), &load.tune, "streams", &load.streams);
    check_searched(map.node(), &load.tune, "window", &window);
    Ok(Tool::Tcp {
        load: load.all()?,
        window: window.all()?,
        congestion: congestion.all()?,
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
    // iperf2 is checked apart: the limit above is of packets, this one of its header.
    let given = datagram
        .iter()
        .filter_map(|axis| Some((axis.value?, axis.place.clone())));
    check_iperf2(map.node(), &load.tool, given);
    // Given values stay; open ones are searched.
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

/// iperf2 begins a datagram with a header. The bytes that identify clear text between the gateways
/// come after it.
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
        // An IPv4 packet of 65535 B has 28 B of headers.
        let range = Bytes::new(PING_PAYLOAD_MIN)..=Bytes::new(65_507);
        // In range, so it fits.
        node.size(range).map(|size| size.get() as u16)
    });

    let loaded = map.with_default("loaded", false, Node::bool);
    let route = map.with_default("route", false, Node::bool);

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
        loaded: loaded?,
        route: route?,
    })
}

/// `ping` silently drops fractions of a millisecond, and floods if nothing is left.
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

/// The values that the axes of tools set; each kind of trial reads some of them.
#[derive(Clone, Default)]
struct Settings {
    mtu: u16,
    cores: u16,
    offloads: bool,
    tool: plan::Tool,
    direction: TransferDirection,
    streams: Option<u16>,
    window: Option<u64>,
    congestion: Option<String>,
    datagram: Option<u32>,
    rate: Option<u64>,
    payload: u16,
    duration: Duration,
    http: HttpTest,
    video: VideoTest,
}

type Settled<'a> = Grid<'a, Settings>;

impl ToolTrial {
    /// Its points; the first axis of an id varies slowest.
    pub(crate) fn points<'a>(&'a self, trial: &'a Place) -> Grid<'a, Point<'a>> {
        // Each axis below replaces its part; trials without an axis of cores have one.
        let start = Settings {
            cores: 1,
            ..Settings::default()
        };
        let grid = Grid::new(trial, start).over(Axis::Mtu, &self.mtu, |point, mtu| point.mtu = mtu);
        match &self.tool {
            Tool::Tcp {
                load,
                window,
                congestion,
            } => self.tcp(trial, grid, load, window, congestion),
            Tool::Udp {
                load,
                datagram,
                rate,
            } => self.udp(trial, grid, load, datagram, rate),
            Tool::Ping {
                count,
                interval,
                payload,
                loaded,
                route,
            } => self.ping(trial, grid, (*count, *interval), payload, (*loaded, *route)),
            Tool::Http(axes) => {
                let grid = axes.over(cores(grid, &axes.cores), |point| &mut point.http);
                self.application(trial, grid, |point| Measurement::Http(point.http))
            }
            // A flow is measured as a transaction, with a server and a client without HTTP.
            Tool::Flows(axes) => {
                let grid = axes.over(cores(grid, &axes.cores), |point| &mut point.http);
                self.application(trial, grid, |point| Measurement::Http(point.http))
            }
            Tool::Video(axes) => {
                let grid = axes.over(cores(grid, &axes.cores), |point| &mut point.video);
                self.application(trial, grid, |point| Measurement::Video(point.video))
            }
        }
    }

    fn tcp<'a>(
        &'a self,
        trial: &'a Place,
        grid: Settled<'a>,
        load: &'a Load,
        window: &'a [Spanned<Option<u64>>],
        congestion: &'a [Spanned<Option<String>>],
    ) -> Grid<'a, Point<'a>> {
        let grid = load
            .streams(load.cores(grid))
            .over(Axis::Window, window, |point, window| point.window = window)
            .over(Axis::Congestion, congestion, |point, congestion| {
                point.congestion = congestion
            });
        load.ending(self.offloads(grid)).map(|point| {
            let measurement = Measurement::Tcp {
                tool: point.tool,
                direction: point.direction,
                congestion: point.congestion.clone(),
                // `auto` is one stream per core, which is known once both axes have their values.
                streams: point.streams.unwrap_or(point.cores),
                window_bytes: point.window,
                duration_ns: nanos(point.duration),
                warmup_ns: nanos(load.warmup),
            };
            point.with(trial, load.tune, measurement)
        })
    }

    fn udp<'a>(
        &'a self,
        trial: &'a Place,
        grid: Settled<'a>,
        load: &'a Load,
        datagram: &'a [Spanned<Option<u32>>],
        rate: &'a [Spanned<Option<u64>>],
    ) -> Grid<'a, Point<'a>> {
        let grid = load
            .cores(grid)
            .over(Axis::Datagram, datagram, |point, datagram| {
                point.datagram = datagram
            });
        let grid = load
            .streams(grid)
            .over(Axis::Rate, rate, |point, rate| point.rate = rate);
        load.ending(self.offloads(grid)).map(|point| {
            let measurement = Measurement::Udp {
                tool: point.tool,
                direction: point.direction,
                datagram_bytes: point.datagram,
                rate_bps: point.rate,
                streams: point.streams.unwrap_or(point.cores),
                duration_ns: nanos(point.duration),
                warmup_ns: nanos(load.warmup),
            };
            point.with(trial, load.tune, measurement)
        })
    }

    fn ping<'a>(
        &'a self,
        trial: &'a Place,
        grid: Settled<'a>,
        (count, interval): (u32, Duration),
        payload: &'a [Spanned<u16>],
        (loaded, route): (bool, bool),
    ) -> Grid<'a, Point<'a>> {
        let grid = grid
            .over(Axis::Payload, payload, |point, payload| {
                point.payload = payload
            })
            .with(Axis::Loaded, loaded)
            .with(Axis::Route, route)
            .with(Axis::Count, count)
            .with(Axis::Interval, interval);
        self.offloads(grid).map(|point| {
            let measurement = Measurement::Ping {
                count,
                interval_ns: nanos(interval),
                payload_bytes: point.payload,
                loaded,
                route,
            };
            point.with(trial, false, measurement)
        })
    }

    /// The points of a trial; the grid has all its axes except offloads.
    fn application<'a>(
        &'a self,
        trial: &'a Place,
        grid: Settled<'a>,
        measurement: fn(&Settings) -> Measurement,
    ) -> Grid<'a, Point<'a>> {
        self.offloads(grid).map(|point| {
            let measurement = measurement(&point);
            point.with(trial, false, measurement)
        })
    }

    fn offloads<'a>(&'a self, grid: Settled<'a>) -> Settled<'a> {
        grid.over(Axis::Offloads, &self.offloads, |point, offloads| {
            point.offloads = offloads
        })
    }
}

fn cores<'a>(grid: Settled<'a>, values: &'a [Spanned<u16>]) -> Settled<'a> {
    grid.over(Axis::Cores, values, |point, cores| point.cores = cores)
}

impl Settings {
    fn with(self, trial: &Place, tune: bool, measurement: Measurement) -> Point<'_> {
        Point {
            stations: Some(Stations {
                mtu: self.mtu,
                cores: self.cores,
                offloads: self.offloads,
            }),
            tune,
            ..Point::new(trial, measurement)
        }
    }
}

impl Load {
    fn cores<'a>(&'a self, grid: Settled<'a>) -> Settled<'a> {
        grid.over(Axis::Cores, &self.cores, |point, cores| point.cores = cores)
    }

    fn streams<'a>(&'a self, grid: Settled<'a>) -> Settled<'a> {
        grid.over(Axis::Streams, &self.streams, |point, streams| {
            point.streams = streams
        })
    }

    /// The axes that end the ids of both TCP and UDP.
    fn ending<'a>(&'a self, grid: Settled<'a>) -> Settled<'a> {
        let grid = grid.over(Axis::Direction, &self.direction, |point, direction| {
            point.direction = direction
        });
        grid.over(Axis::Duration, &self.duration, |point, duration| {
            point.duration = duration
        })
        .with(Axis::Warmup, self.warmup)
        .with(Axis::Tune, self.tune)
        .over(Axis::Tool, &self.tool, |point, tool| point.tool = tool)
    }
}
