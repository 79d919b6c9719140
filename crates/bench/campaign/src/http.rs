//! Trials over HTTP: their axes, checked one by one and against one another, and their points.

use crate::axis::{Axes, in_steps};
use crate::grid::Grid;
use crate::keys::{AS_FOR_TCP, CORES, DURATION, MTU, OF_ALL, OFFLOADS, millis, seconds};
use plan::{Axis, HttpClient, HttpServer, HttpTest, HttpVersion, Store, nanos};
use std::time::Duration;
use yaml::Absent::Default as Usual;
use yaml::{Key, Map, Node, Reported, Spanned, Value};

/// wget2 downloads no more files in parallel.
const FILES_MAX: u32 = 100;

/// Shorter objects have no room for the marker that identifies clear text.
const OBJECT: Value = Value::Size(64, 1 << 30);
const TLS: [(&str, bool); 2] = [("off", false), ("1.3", true)];

#[rustfmt::skip]
pub(crate) const KEYS: &[Key] = &[
    OF_ALL,
    MTU,
    CORES.meaning("Cores that each station may use: threads of the client, and workers of nginx"),
    Key::new("server", Value::Axis(&Value::Name(|| Value::names(&HttpServer::ALL))), Usual("nginx"),
        "`python` is `http.server`, with HTTP/1.1 without TLS only. Objects are served from a RAM \
         disk"),
    Key::new("client", Value::Axis(&Value::Name(Value::variants::<HttpClient>)),
        Usual("open-loop"), "`open-loop` is ours and stores nothing; wget2 writes files"),
    Key::new("object", Value::Axis(&Value::Or("mix", &OBJECT)), Usual("mix"),
        "Size of the objects; `mix`: 1, 16, 64 and 256 KiB in turn"),
    Key::new("version", Value::Axis(&Value::Name(Value::variants::<HttpVersion>)),
        Usual("1.1"), "HTTP/1.1, or HTTP/2; wget2 has HTTP/2 over TLS only"),
    Key::new("tls", Value::Axis(&Value::Name(|| Value::names(&TLS))), Usual("off"),
        "TLS 1.3 with a certificate created for the trial, which the client verifies"),
    CONNECTIONS.meaning("Concurrent connections; of wget2 files fetched in parallel, at most 100"),
    Key::new("transactions_per_connection",
        Value::Axis(&Value::Or("unlimited", &Value::Integer(1, u32::MAX as u64))),
        Usual("unlimited"),
        "Transactions before a connection is closed; 1 measures connections per second. Not for \
         wget2").range("from 1"),
    // Streams that nginx permits on a connection by default.
    Key::new("streams", Value::Axis(&Value::Integer(1, 128)), Usual("1"),
        "HTTP/2: requests in flight on each connection. Not for wget2"),
    RATE.meaning("Open loop at this rate; `max`: closed loop, each request follows the end of the \
         one before. Not for wget2"),
    Key::new("store", Value::Axis(&Value::Name(Value::variants::<Store>)), Usual("ram"),
        "wget2: a RAM disk of half the memory, or the disk with the folder for temporary files"),
    DURATION.meaning("Sustain phase, the measured part"),
    RAMP,
    OFFLOADS,
];

/// Keys of short flows, which are transactions too.
#[rustfmt::skip]
pub(crate) const FLOWS: &[Key] = &[
    OF_ALL,
    MTU,
    CORES,
    Key::new("object", Value::Axis(&OBJECT), Usual("100 kB"), "Size of a flow"),
    CONNECTIONS.default("1").meaning("Most concurrent flows; 1: one after the other"),
    RATE.meaning("Flows begun per second, by an open-loop schedule; `max`: each follows the end \
         of the one before"),
    DURATION.meaning("As for `http`"),
    RAMP.meaning("As for `http`"),
    OFFLOADS,
];

/// At most the ports of one address that Linux gives to clients by default.
const CONNECTIONS: Key = Key::new(
    "connections",
    Value::Axis(&Value::Integer(1, 28_000)),
    Usual("10"),
    AS_FOR_TCP,
);
const RATE: Key = Key::new(
    "transactions_per_s",
    Value::Axis(&Value::Or("max", &Value::Integer(1, 10_000_000))),
    Usual("max"),
    AS_FOR_TCP,
);
const RAMP: Key = Key::new(
    "ramp",
    Value::Time(millis(100), seconds(600)),
    Usual("1 s"),
    "Ramp-up phase before it, and ramp-down phase after it",
);

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
    let axes = Axes::of(map);
    let read = HttpAxes {
        server: axes.read("server", |node| node.one_of("server", &HttpServer::ALL)),
        client: axes.read("client", |node| node.choice("client")),
        object: axes.get("object"),
        version: axes.read("version", |node| node.choice("HTTP version")),
        tls: axes.read("tls", |node| node.one_of("TLS version", &TLS)),
        store: axes.read("store", |node| node.choice("store")),
        connections: axes.get("connections"),
        transactions: axes.get("transactions_per_connection"),
        streams: axes.get("streams"),
        rate: axes.get("transactions_per_s"),
        duration: axes.checked("duration", in_steps),
        ramp: axes.one("ramp"),
        cores: axes.get("cores"),
    };
    read.check(map.node());
    axes.done().map(|()| read)
}

impl HttpAxes {
    /// Checks axes against each other.
    fn check(&self, node: Node<'_>) {
        let Self {
            client,
            version,
            tls,
            store,
            connections,
            transactions,
            streams,
            rate,
            ..
        } = self;
        self.check_python(node);
        if given(client, |client| *client == HttpClient::Wget2).is_some() {
            let unencrypted = tls.iter().any(|tls| !tls.value);
            // With one client of several, too: axes multiply, so some cell would have both values.
            let given = [
                given(version, |version| {
                    // wget2 has no prior knowledge (RFC 9113 §3.3): without TLS's ALPN it speaks
                    // HTTP/1.1.
                    *version == HttpVersion::Http2 && unencrypted
                })
                .map(|at| (at, "wget2 has HTTP/2 with TLS only", "write `tls: 1.3`")),
                given(transactions, Option::is_some).map(|at| {
                    (
                        at,
                        "wget2 decides itself when it closes a connection",
                        "leave `transactions_per_connection` out",
                    )
                }),
                given(rate, Option::is_some).map(|at| {
                    (
                        at,
                        "wget2 has no rate of requests",
                        "leave `transactions_per_s` out",
                    )
                }),
                given(streams, |streams| *streams > 1).map(|at| {
                    (
                        at,
                        "wget2 decides itself how many requests share a connection",
                        "leave `streams` out and set `connections`, its files in parallel",
                    )
                }),
                given(connections, |files| *files > FILES_MAX).map(|at| {
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
        } else if let Some(disk) = given(store, |store| *store == Store::Disk) {
            let what = "the open-loop client stores nothing";
            node.mistake_at(disk, what, "leave `store` out, or write `client: wget2`");
        }
        if let Some(place) = given(streams, |streams| *streams > 1)
            && version
                .iter()
                .any(|version| version.value == HttpVersion::Http1)
        {
            let what = "HTTP/1.1 has one request in flight on a connection";
            let help = "leave `streams` out, or write `version: 2` in a trial of its own";
            node.mistake_at(place, what, help);
        }
    }

    fn check_python(&self, node: Node<'_>) {
        if given(&self.server, |server| *server == HttpServer::Python).is_none() {
            return;
        }
        let places = [
            given(&self.version, |version| *version == HttpVersion::Http2),
            given(&self.tls, |tls| *tls),
        ];
        for place in places.into_iter().flatten() {
            let what = "Python's http.server has HTTP/1.1 without TLS only";
            let help = "measure `server: python` in a trial of its own";
            node.mistake_at(place, what, help);
        }
    }

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

fn given<T>(values: &[Spanned<T>], is: impl Fn(&T) -> bool) -> Option<&yaml::Place> {
    let found = values.iter().find(|spanned| is(&spanned.value));
    found.map(|spanned| &spanned.place)
}
