//! Trials by real programs: their axes, checked one by one and against one another, and their
//! points.

mod declared;

use self::declared::{PING, TCP, UDP};
use crate::axis::{
    self, Axes, check_classes, check_overlay, check_payload, check_run, check_searched,
    check_streams, in_steps,
};
use crate::flows::{self, FlowAxes};
use crate::grid::Grid;
use crate::http::{self, HttpAxes};
use crate::ike::{self, IkeAxes};
use crate::point::Point;
use crate::video::{self, VideoAxes};
use plan::{self, Axis, Dscp, HttpTest, IkeTest, Measurement, Overlay, Stations};
use plan::{TransferDirection, VideoTest, nanos};
use std::time::Duration;
use wire::overhead::{IPV4_HEADER_BYTES, UDP_HEADER_BYTES};
use yaml::{Key, Map, Node, Place, Reported, Spanned};

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
        dscp: Vec<Spanned<Option<Dscp>>>,
        loaded: bool,
        route: bool,
        load_dscp: Vec<Dscp>,
    },
    Http(HttpAxes),
    Flows(FlowAxes),
    Video(VideoAxes),
    Ike(IkeAxes),
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
    overlay: Vec<Spanned<Overlay>>,
    dscp: Vec<Spanned<Option<Dscp>>>,
    warmup: Duration,
    tune: bool,
}

/// Reads the keys that only one tool has; with the MTUs.
pub(crate) type Reader = fn(&Map<'_>, &[Spanned<u16>]) -> Result<Tool, Reported>;

/// The tools, their readers and their keys.
pub(crate) const TOOLS: [(&str, Reader, &[Key]); 7] = [
    ("tcp", tcp, TCP),
    ("udp", udp, UDP),
    ("ping", ping, PING),
    ("http", |map, _| http::read(map).map(Tool::Http), http::KEYS),
    (
        "flows",
        |map, _| flows::read(map).map(Tool::Flows),
        http::FLOWS,
    ),
    (
        "video",
        |map, _| video::read(map).map(Tool::Video),
        video::KEYS,
    ),
    ("ike", |map, _| ike::read(map).map(Tool::Ike), ike::KEYS),
];

/// 160 bytes of iperf2's header, and digits that identify clear text on the cipher link.
const IPERF2_DATAGRAM_MIN: u32 = 192;
/// An ICMP echo header has the length of UDP's (RFC 792).
const ICMP_HEADER_BYTES: usize = 8;

fn dscp(node: Node<'_>) -> Result<Option<Dscp>, Reported> {
    node.word_or("auto", |node| node.choice("codepoint"))
}

/// Reads a trial by the tool of that reader.
pub(crate) fn read(map: &Map<'_>, reader: Reader) -> Result<ToolTrial, Reported> {
    let axes = Axes::of(map);
    let mtu = axes.read("mtu", |node| axis::mtu(node, axis::MTU_MAX));
    let offloads = axes.get("offloads");
    let tool = reader(map, &mtu);
    axes.done()?;
    Ok(ToolTrial {
        mtu,
        offloads,
        tool: tool?,
    })
}

impl Load {
    /// Reads the keys that TCP and UDP have in common; with the place of `tune`.
    fn read(map: &Map<'_>, axes: &Axes<'_, '_>, mtu: &[Spanned<u16>]) -> (Self, Place) {
        let node = map.node();
        let tool = axes.read("tool", |node| node.choice("tool"));
        let direction = axes.read("direction", |node| {
            node.one_of("direction", &TransferDirection::ALL)
        });
        let (cores, streams) = (axes.get("cores"), axes.get("streams"));
        let duration = axes.checked("duration", in_steps);
        let overlay = axes.read("overlay", |node| node.choice("overlay"));
        check_overlay(node, &overlay, mtu);
        let dscp = axes.read("dscp", dscp);
        check_classes(node, &dscp, &overlay);
        let warmup = map.get_with("warmup", |node, warmup| {
            in_steps(node, warmup).map(|warmup| node.spanned(warmup))
        });
        let tune = map.spanned::<bool>("tune");
        // Also after other mistakes: values that could not be read are left out.
        check_streams(node, &streams, &cores);
        if let Ok(warmup) = &warmup {
            check_run(node, &duration, warmup);
        }
        // Zero and off stand for values that could not be read: `done` fails then.
        let load = Self {
            tool,
            direction,
            cores,
            streams,
            duration,
            overlay,
            dscp,
            warmup: warmup.as_ref().map_or(Duration::ZERO, |it| it.value),
            tune: tune.as_ref().is_ok_and(|tune| tune.value),
        };
        let place = tune
            .as_ref()
            .map_or_else(|_| node.place(), |tune| tune.place.clone());
        axes.and(warmup);
        axes.and(tune);
        (load, place)
    }
}

fn tcp(map: &Map<'_>, mtu: &[Spanned<u16>]) -> Result<Tool, Reported> {
    let axes = Axes::of(map);
    let (load, _) = Load::read(map, &axes, mtu);
    let window = axes.get("window");
    let congestion = axes.read("congestion", |node| node.word_or("auto", axis::congestion));
    check_searched(map.node(), load.tune, "streams", &load.streams);
    check_searched(map.node(), load.tune, "window", &window);
    axes.done()?;
    Ok(Tool::Tcp {
        load,
        window,
        congestion,
    })
}

fn udp(map: &Map<'_>, mtu: &[Spanned<u16>]) -> Result<Tool, Reported> {
    let axes = Axes::of(map);
    let (load, tune) = Load::read(map, &axes, mtu);
    let datagram: Vec<Spanned<Option<u32>>> = axes.get("datagram");
    let rate = axes.get("rate");

    // Axes multiply: each datagram meets the overlay with the longest headers.
    let overlays = load
        .overlay
        .iter()
        .map(|overlay| overlay.value.added_bytes());
    let around = usize::from(overlays.max().unwrap_or(0));
    let headers = IPV4_HEADER_BYTES + UDP_HEADER_BYTES + around;
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
        && rate
            .iter()
            .all(|rate: &Spanned<Option<u64>>| rate.value.is_some());
    if load.tune && all_given {
        let what = "`tune` has nothing to search: `datagram` and `rate` are given";
        let help = "write `rate: max` to have the best rate searched, or leave `tune` off";
        map.node().mistake_at(&tune, what, help);
    }
    axes.done()?;
    Ok(Tool::Udp {
        load,
        datagram,
        rate,
    })
}

/// iperf2 begins a datagram with a header. The bytes that identify clear text between the gateways
/// come after it.
fn check_iperf2(
    node: Node<'_>,
    tools: &[Spanned<plan::Tool>],
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

fn ping(map: &Map<'_>, mtu: &[Spanned<u16>]) -> Result<Tool, Reported> {
    let (node, axes) = (map.node(), Axes::of(map));
    let count = map.get::<u32>("count");
    let interval = map.get_with("interval", |node, interval| {
        whole_millis(node, interval).map(|interval| node.spanned(interval))
    });
    let payload: Vec<Spanned<u16>> = axes.get("payload");
    let dscp = axes.read("dscp", dscp);
    let (loaded, route) = (map.get::<bool>("loaded"), map.get("route"));
    let load_dscp = map.with_default("load_dscp", Vec::new(), |node| {
        if matches!(loaded, Ok(false)) {
            let what = "without `loaded` there is no load";
            return Err(node.mistake(what, "write `loaded: on`, or remove `load_dscp`"));
        }
        load_classes(node)
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
    axes.done()?;
    Ok(Tool::Ping {
        count: count?,
        interval: interval?.value,
        payload,
        dscp,
        loaded: loaded?,
        route: route?,
        load_dscp: load_dscp?,
    })
}

/// The classes of loads in parallel, each once.
fn load_classes(node: Node<'_>) -> Result<Vec<Dscp>, Reported> {
    let mut read = Vec::new();
    node.one_or_many(|item| {
        let class = item.choice::<Dscp>("codepoint")?;
        if read.contains(&class) {
            let what = format!("`{}` is given twice", class.name());
            return Err(item.mistake(what, "one load a class: remove one"));
        }
        read.push(class);
        Ok(class)
    })
}

/// `ping` silently drops fractions of a millisecond, and floods if nothing is left.
fn whole_millis(node: Node<'_>, interval: Duration) -> Result<Duration, Reported> {
    if interval.subsec_nanos().is_multiple_of(1_000_000) {
        return Ok(interval);
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
    overlay: Overlay,
    dscp: Option<Dscp>,
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
    ike: IkeTest,
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
                dscp,
                loaded,
                route,
                load_dscp,
            } => {
                let axes = (payload.as_slice(), dscp.as_slice());
                let more = (*loaded, *route, load_dscp.as_slice());
                self.ping(trial, grid, (*count, *interval), axes, more)
            }
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
            Tool::Ike(axes) => {
                let grid = axes.over(grid, |point| &mut point.ike);
                self.application(trial, grid, |point| Measurement::Ike(point.ike))
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
            .streams(cores(grid, &load.cores))
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
        let grid = cores(grid, &load.cores).over(Axis::Datagram, datagram, |point, datagram| {
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
        (payload, dscp): (&'a [Spanned<u16>], &'a [Spanned<Option<Dscp>>]),
        (loaded, route, load_dscp): (bool, bool, &'a [Dscp]),
    ) -> Grid<'a, Point<'a>> {
        let grid = grid
            .over(Axis::Payload, payload, |point, payload| {
                point.payload = payload
            })
            .with(Axis::Loaded, loaded)
            .with(Axis::Route, route)
            .with(Axis::Count, count)
            .with(Axis::Interval, interval);
        classes(self.offloads(grid), dscp).map(|point| {
            let measurement = Measurement::Ping {
                count,
                interval_ns: nanos(interval),
                payload_bytes: point.payload,
                loaded,
                route,
                load_dscp: load_dscp.to_vec(),
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

fn classes<'a>(grid: Settled<'a>, values: &'a [Spanned<Option<Dscp>>]) -> Settled<'a> {
    grid.over(Axis::Dscp, values, |point, dscp| point.dscp = dscp)
}

impl Settings {
    fn with(self, trial: &Place, tune: bool, measurement: Measurement) -> Point<'_> {
        Point {
            stations: Some(Stations {
                mtu: self.mtu,
                cores: self.cores,
                offloads: self.offloads,
                overlay: self.overlay,
                dscp: self.dscp,
            }),
            tune,
            ..Point::new(trial, measurement)
        }
    }
}

impl Load {
    fn streams<'a>(&'a self, grid: Settled<'a>) -> Settled<'a> {
        grid.over(Axis::Streams, &self.streams, |point, streams| {
            point.streams = streams
        })
    }

    /// The axes that end the ids of both TCP and UDP.
    fn ending<'a>(&'a self, grid: Settled<'a>) -> Settled<'a> {
        let grid = grid.over(Axis::Overlay, &self.overlay, |point, overlay| {
            point.overlay = overlay
        });
        let grid = classes(grid, &self.dscp);
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
