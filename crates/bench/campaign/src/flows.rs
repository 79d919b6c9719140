//! Trials of short flows: their axes and their points. A flow is a transaction of the client of
//! HTTP, without HTTP: a TCP connection that brings one object.

use crate::axis::{Axes, in_steps};
use crate::grid::Grid;
use plan::{Axis, HttpServer, HttpTest, nanos};
use std::time::Duration;
use yaml::{Map, Reported, Spanned};

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
    let axes = Axes::of(map);
    let read = FlowAxes {
        object: axes.get("object"),
        connections: axes.get("connections"),
        rate: axes.get("transactions_per_s"),
        duration: axes.checked("duration", in_steps),
        ramp: axes.one("ramp"),
        cores: axes.get("cores"),
    };
    axes.done().map(|()| read)
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
