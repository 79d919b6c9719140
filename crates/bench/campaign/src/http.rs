//! Trials over HTTP: their axes, checked one by one and against one another, and their points.

use crate::axis::{self, AxisValues, axis};
use crate::grid::Grid;
use plan::{Axis, HttpClient, HttpServer, HttpTest, HttpVersion, Store, nanos};
use std::time::Duration;
use units::Bytes;
use yaml::{Map, Node, Reported, Spanned};

pub(crate) const DURATION_DEFAULT: Duration = Duration::from_secs(10);
const RAMP_DEFAULT: Duration = Duration::from_secs(1);
const RAMP_MAX: Duration = Duration::from_secs(600);
const CONNECTIONS_DEFAULT: u32 = 10;
/// Ports of one address that Linux gives to clients by default.
const CONNECTIONS_MAX: u32 = 28_000;
/// Streams that nginx permits on a connection by default.
const STREAMS_MAX: u16 = 128;
const RATE_MAX: u32 = 10_000_000;
const OBJECT_MAX: u64 = 1 << 30;
/// Shorter objects have no room for the marker that identifies clear text.
const OBJECT_MIN: u64 = 64;
/// wget2 downloads no more files in parallel.
const FILES_MAX: u32 = 100;

/// The axes of HTTP.
#[derive(Debug)]
pub(crate) struct HttpAxes {
    server: Vec<Spanned<HttpServer>>,
    client: Vec<Spanned<HttpClient>>,
    object: Vec<Spanned<Option<u64>>>,
    version: Vec<Spanned<HttpVersion>>,
    tls: Vec<Spanned<bool>>,
    store: Vec<Spanned<Store>>,
    connections: Vec<Spanned<u32>>,
    transactions: Vec<Spanned<Option<u32>>>,
    streams: Vec<Spanned<u16>>,
    rate: Vec<Spanned<Option<u32>>>,
    duration: Vec<Spanned<Duration>>,
    ramp: Duration,
    pub(crate) cores: Vec<Spanned<u16>>,
}

/// Reads the keys of an `http` trial.
pub(crate) fn read(map: &Map<'_>) -> Result<HttpAxes, Reported> {
    let node = map.node();
    let server = axis(map, "server", HttpServer::default(), |node| {
        node.one_of("server", &HttpServer::ALL)
    });
    let client = axis(map, "client", HttpClient::default(), |node| {
        node.choice("client")
    });
    let object = axis(map, "object", None, |node| {
        node.word_or("mix", object_bytes)
    });
    let version = axis(map, "version", HttpVersion::default(), |node| {
        node.choice("HTTP version")
    });
    let tls = axis(map, "tls", false, |node| {
        node.one_of("TLS version", &[("off", false), ("1.3", true)])
    });
    let store = axis(map, "store", Store::default(), |node| node.choice("store"));
    let connections = connections(map, CONNECTIONS_DEFAULT);
    let transactions = axis(map, "transactions_per_connection", None, |node| {
        node.word_or("unlimited", |node| node.integer(1..=u32::MAX))
    });
    let streams = axis(map, "streams", 1, |node| node.integer(1..=STREAMS_MAX));
    let rate = rate(map);
    let duration = axis(map, "duration", DURATION_DEFAULT, axis::duration);
    let ramp = ramp(map);
    let cores = axis(map, "cores", 1, |node| node.integer(1..=axis::CORES_MAX));

    check_python(node, &server, &version, &tls);
    let unknown = |client: &AxisValues<HttpClient>| {
        client
            .iter()
            .any(|client| client.value == HttpClient::Wget2)
    };
    if unknown(&client) {
        let unencrypted = tls.iter().any(|tls| !tls.value);
        // With one client of several, too: axes multiply, so some cell would have both values.
        let given = [
            given(&version, |version| {
                // wget2 has no prior knowledge (RFC 9113 §3.3): without TLS's ALPN it speaks
                // HTTP/1.1.
                *version == HttpVersion::Http2 && unencrypted
            })
            .map(|at| (at, "wget2 has HTTP/2 with TLS only", "write `tls: 1.3`")),
            given(&transactions, Option::is_some).map(|at| {
                (
                    at,
                    "wget2 decides itself when it closes a connection",
                    "leave `transactions_per_connection` out",
                )
            }),
            given(&rate, Option::is_some).map(|at| {
                (
                    at,
                    "wget2 has no rate of requests",
                    "leave `transactions_per_s` out",
                )
            }),
            given(&streams, |streams| *streams > 1).map(|at| {
                (
                    at,
                    "wget2 decides itself how many requests share a connection",
                    "leave `streams` out and set `connections`, its files in parallel",
                )
            }),
            given(&connections, |files| *files > FILES_MAX).map(|at| {
                (
                    at,
                    "wget2 fetches no more than 100 files in parallel",
                    "write `connections: 100` or less",
                )
            }),
        ];
        for (place, what, help) in given.into_iter().flatten() {
            let help = format!("{help}, or `client: open-loop` in a trial of its own");
            node.mistake_at(place, what, help);
        }
    } else if let Some(disk) = given(&store, |store| *store == Store::Disk) {
        let what = "the open-loop client stores nothing";
        node.mistake_at(disk, what, "leave `store` out, or write `client: wget2`");
    }
    if let Some(place) = given(&streams, |streams| *streams > 1)
        && version
            .iter()
            .any(|version| version.value == HttpVersion::Http1)
    {
        let what = "HTTP/1.1 has one request in flight on a connection";
        let help = "leave `streams` out, or write `version: 2` in a trial of its own";
        node.mistake_at(place, what, help);
    }
    Ok(HttpAxes {
        server: server.all()?,
        client: client.all()?,
        object: object.all()?,
        version: version.all()?,
        tls: tls.all()?,
        store: store.all()?,
        connections: connections.all()?,
        transactions: transactions.all()?,
        streams: streams.all()?,
        rate: rate.all()?,
        duration: duration.all()?,
        ramp: ramp?,
        cores: cores.all()?,
    })
}

/// Size of an object in bytes.
pub(crate) fn object_bytes(node: Node<'_>) -> Result<u64, Reported> {
    let size = node.size(Bytes::new(OBJECT_MIN)..=Bytes::new(OBJECT_MAX));
    size.map(Bytes::get)
}

/// Reads the numbers of connections.
pub(crate) fn connections(map: &Map<'_>, default: u32) -> AxisValues<u32> {
    axis(map, "connections", default, |node| {
        node.integer(1..=CONNECTIONS_MAX)
    })
}

/// Reads the intended rates in transactions per second; `None`: the maximum.
pub(crate) fn rate(map: &Map<'_>) -> AxisValues<Option<u32>> {
    axis(map, "transactions_per_s", None, |node| {
        node.word_or("max", |node| node.integer(1..=RATE_MAX))
    })
}

/// Reads the time of a ramp.
pub(crate) fn ramp(map: &Map<'_>) -> Result<Duration, Reported> {
    map.with_default("ramp", RAMP_DEFAULT, |node| {
        node.duration(Duration::from_millis(100)..=RAMP_MAX)
    })
}

fn given<T>(values: &AxisValues<T>, is: impl Fn(&T) -> bool) -> Option<&yaml::Place> {
    let found = values.iter().find(|spanned| is(&spanned.value));
    found.map(|spanned| &spanned.place)
}

fn check_python(
    node: Node<'_>,
    server: &AxisValues<HttpServer>,
    version: &AxisValues<HttpVersion>,
    tls: &AxisValues<bool>,
) {
    if !server
        .iter()
        .any(|server| server.value == HttpServer::Python)
    {
        return;
    }
    let places = [
        given(version, |version| *version == HttpVersion::Http2),
        given(tls, |tls| *tls),
    ];
    for place in places.into_iter().flatten() {
        let what = "Python's http.server has HTTP/1.1 without TLS only";
        let help = "measure `server: python` in a trial of its own";
        node.mistake_at(place, what, help);
    }
}

impl HttpAxes {
    /// Multiplies by the values of its axes.
    pub(crate) fn over<'a, T: Clone>(
        &'a self,
        grid: Grid<'a, T>,
        test: fn(&mut T) -> &mut HttpTest,
    ) -> Grid<'a, T> {
        let ramp_ns = nanos(self.ramp);
        let grid = grid
            .over(Axis::Server, &self.server, |t, it| test(t).server = it)
            .over(Axis::Client, &self.client, |t, it| test(t).client = it)
            .over(Axis::Object, &self.object, |t, it| {
                test(t).object_bytes = it
            })
            .over(Axis::Version, &self.version, |t, it| test(t).version = it)
            .over(Axis::Tls, &self.tls, |t, it| test(t).tls = it)
            .over(Axis::Store, &self.store, |t, it| test(t).store = it)
            .over(Axis::Connections, &self.connections, |t, it| {
                test(t).connections = it
            })
            .over(
                Axis::TransactionsPerConnection,
                &self.transactions,
                |t, it| test(t).transactions_per_connection = it,
            )
            .over(Axis::Streams, &self.streams, |t, it| test(t).streams = it)
            .over(Axis::TransactionsPerS, &self.rate, |t, it| {
                test(t).transactions_per_s = it
            });
        // The ramp is no axis. It is set with the duration, an axis that every trial has.
        grid.over(Axis::Duration, &self.duration, |t, it| {
            test(t).duration_ns = nanos(it);
            test(t).ramp_ns = ramp_ns;
        })
        .with(Axis::Ramp, self.ramp)
    }
}
