//! What a real nats-server keeps of runs, and how many may follow it.

#[path = "aid/job.rs"]
mod job;

use fleet::{Figure, Fleet, LoadHistogram, RunFigures, Server, ServerOptions, free_address};
use futures_util::{StreamExt, stream};
use job::job;
use serde_json::json;
use std::collections::BTreeMap;

/// More than nats-server allows a stream that sets no number.
const FOLLOWERS: usize = 1100;

/// A server with a fleet, if nats-server is installed.
fn server(folder: &tempfile::TempDir) -> Option<Server> {
    if Server::program().is_none() {
        testing::lacks(
            "streams of a server",
            "nats-server",
            "scripts/tools.sh nats",
        );
        return None;
    }
    let options = ServerOptions {
        listen: free_address().unwrap(),
        folder: folder.path().join("server"),
        users: None,
    };
    Some(Server::start(&options).unwrap())
}

#[test]
fn more_than_a_thousand_follow_one_bucket() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = server(&folder) else {
        return;
    };
    fleet::run(async {
        server.set_up().await.unwrap();
        // Again changes nothing.
        server.set_up().await.unwrap();
        let client = async_nats::connect(&server.access().url).await.unwrap();
        let context = async_nats::jetstream::new(client);
        let states = context.get_key_value("fleet-states").await.unwrap();
        let watches = stream::iter(0..FOLLOWERS).map(|_| states.watch_all());
        let watches: Vec<_> = watches.buffer_unordered(64).collect().await;
        let refused = watches.iter().find_map(|watch| watch.as_ref().err());
        assert!(refused.is_none(), "{refused:?}");
    });
}

#[test]
fn a_cells_histograms_are_read_by_run() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = server(&folder) else {
        return;
    };
    let of_run = |upto_ns: u64| {
        let histogram = LoadHistogram {
            load_percent: 50,
            buckets: vec![(upto_ns, 90), (9000, 10)],
        };
        let figure = Figure {
            key: "latency_p50_ns".to_owned(),
            load_percent: Some(50),
            value: upto_ns as f64,
            repeats: 3,
        };
        RunFigures {
            surroundings: json!({}),
            cells: BTreeMap::from([("a cell".to_owned(), vec![figure])]),
            histograms: BTreeMap::from([("a cell".to_owned(), vec![histogram])]),
        }
    };
    let add = async |fleet: &Fleet, id: &str, run: &RunFigures| {
        let (job, labels) = (job(id, ""), BTreeMap::new());
        let added = fleet.add_figures(&job, "lab", &labels, run);
        added.await.unwrap();
    };
    fleet::run(async {
        let fleet = server.set_up().await.unwrap();
        let (first, second) = (of_run(1000), of_run(2000));
        add(&fleet, "1", &first).await;
        add(&fleet, "2", &second).await;
        let without = RunFigures {
            histograms: BTreeMap::new(),
            ..first.clone()
        };
        add(&fleet, "3", &without).await;
        let found = fleet.histograms("a cell", &["1", "2", "3", "4"]).await;
        let expected = BTreeMap::from([
            ("1".to_owned(), first.histograms["a cell"].clone()),
            ("2".to_owned(), second.histograms["a cell"].clone()),
        ]);
        assert_eq!(found.unwrap(), expected);
        // They are no points of its course.
        assert_eq!(fleet.history("a cell").await.unwrap().len(), 3);
        let none = fleet.histograms("another", &["1"]).await.unwrap();
        assert!(none.is_empty());
    });
}
