//! Points of trials by real programs.

use crate::axis::nanos;
use crate::expand::{Grid, Point};
use crate::plan::{self, Axis, Measurement, Stations};
use crate::trial::{Load, Tool, ToolTrial};
use std::time::Duration;
use yaml::{Place, Spanned};

/// What the axes of tools set; each kind of trial reads its own.
#[derive(Clone, Default)]
struct Settings {
    mtu: u16,
    cores: u16,
    offloads: bool,
    tool: plan::Tool,
    streams: Option<u16>,
    window: Option<u64>,
    datagram: Option<u32>,
    rate: Option<u64>,
    payload: u16,
    duration: Duration,
}

type Settled<'a> = Grid<'a, Settings>;

impl ToolTrial {
    /// Its points; the first axis of an id varies slowest.
    pub(super) fn points<'a>(&'a self, trial: &'a Place) -> Grid<'a, Point<'a>> {
        let start = Settings {
            cores: 1,
            ..Settings::default()
        };
        let grid = Grid::new(trial, start).over(Axis::Mtu, &self.mtu, |point, mtu| point.mtu = mtu);
        match &self.tool {
            Tool::Tcp { load, window } => self.tcp(trial, grid, load, window),
            Tool::Udp {
                load,
                datagram,
                rate,
            } => self.udp(trial, grid, load, datagram, rate),
            Tool::Ping {
                count,
                interval,
                payload,
            } => self.ping(trial, grid, *count, *interval, payload),
        }
    }

    fn tcp<'a>(
        &'a self,
        trial: &'a Place,
        grid: Settled<'a>,
        load: &'a Load,
        window: &'a [Spanned<Option<u64>>],
    ) -> Grid<'a, Point<'a>> {
        let grid = load
            .streams(load.cores(grid))
            .over(Axis::Window, window, |point, window| point.window = window);
        load.ending(self.offloads(grid)).map(|point| {
            let measurement = Measurement::Tcp {
                tool: point.tool,
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
        count: u32,
        interval: Duration,
        payload: &'a [Spanned<u16>],
    ) -> Grid<'a, Point<'a>> {
        let grid = grid
            .over(Axis::Payload, payload, |point, payload| {
                point.payload = payload
            })
            .with(Axis::Count, count)
            .with(Axis::Interval, interval);
        self.offloads(grid).map(|point| {
            let measurement = Measurement::Ping {
                count,
                interval_ns: nanos(interval),
                payload_bytes: point.payload,
            };
            point.with(trial, false, measurement)
        })
    }

    fn offloads<'a>(&'a self, grid: Settled<'a>) -> Settled<'a> {
        grid.over(Axis::Offloads, &self.offloads, |point, offloads| {
            point.offloads = offloads
        })
    }
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

    /// The axes that end the ids of TCP and UDP alike.
    fn ending<'a>(&'a self, grid: Settled<'a>) -> Settled<'a> {
        grid.over(Axis::Duration, &self.duration, |point, duration| {
            point.duration = duration
        })
        .with(Axis::Warmup, self.warmup)
        .with(Axis::Tune, self.tune)
        .over(Axis::Tool, &self.tool, |point, tool| point.tool = tool)
    }
}
