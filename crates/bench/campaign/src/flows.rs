//! Trials of short flows: their axes and their points. A flow is a transaction of the client of
//! HTTP, without HTTP: a TCP connection that brings one object.

use crate::axis::{self, axis};
use crate::grid::Grid;
use crate::http::{DURATION_DEFAULT, connections, object_bytes, ramp, rate};
use plan::{Axis, HttpServer, HttpTest, nanos};
use std::time::Duration;
use yaml::{Map, Reported, Spanned};

/// Size of a flow: its completion is then mostly slow start.
const OBJECT_DEFAULT: u64 = 100_000;

/// The axes of short flows.
#[derive(Debug)]
pub(crate) struct FlowAxes {
    object: Vec<Spanned<u64>>,
    connections: Vec<Spanned<u32>>,
    rate: Vec<Spanned<Option<u32>>>,
    duration: Vec<Spanned<Duration>>,
    ramp: Duration,
    pub(crate) cores: Vec<Spanned<u16>>,
}

/// Reads the keys of a `flows` trial.
pub(crate) fn read(map: &Map<'_>) -> Result<FlowAxes, Reported> {
    let object = axis(map, "object", OBJECT_DEFAULT, object_bytes);
    let connections = connections(map, 1);
    let rate = rate(map);
    let duration = axis(map, "duration", DURATION_DEFAULT, axis::duration);
    let ramp = ramp(map);
    let cores = axis(map, "cores", 1, |node| node.integer(1..=axis::CORES_MAX));
    Ok(FlowAxes {
        object: object.all()?,
        connections: connections.all()?,
        rate: rate.all()?,
        duration: duration.all()?,
        ramp: ramp?,
        cores: cores.all()?,
    })
}

impl FlowAxes {
    /// Multiplies by the values of its axes.
    pub(crate) fn over<'a, T: Clone>(
        &'a self,
        grid: Grid<'a, T>,
        test: fn(&mut T) -> &mut HttpTest,
    ) -> Grid<'a, T> {
        let ramp_ns = nanos(self.ramp);
        // The first axis sets the whole test: short flows have none of the other axes of HTTP.
        grid.over(Axis::Object, &self.object, |t, it| {
            *test(t) = HttpTest {
                server: HttpServer::Plain,
                object_bytes: Some(it),
                transactions_per_connection: Some(1),
                streams: 1,
                ramp_ns,
                ..HttpTest::default()
            }
        })
        .over(Axis::Connections, &self.connections, |t, it| {
            test(t).connections = it
        })
        .over(Axis::TransactionsPerS, &self.rate, |t, it| {
            test(t).transactions_per_s = it
        })
        .over(Axis::Duration, &self.duration, |t, it| {
            test(t).duration_ns = nanos(it)
        })
        .with(Axis::Ramp, self.ramp)
    }
}
