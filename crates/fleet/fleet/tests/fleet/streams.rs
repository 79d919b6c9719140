//! What a real nats-server keeps of runs, and how many may follow it.

use crate::job::job;
use async_nats::jetstream::stream::Stream;
use fleet::{
    Figure, Fleet, LoadHistogram, RunFigures, Server, ServerOptions, fetch, free_address, upload,
};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::time::sleep;

/// What parts of files must be older than to be removed here, by the server's clock.
const AGE: Duration = Duration::from_secs(5);
/// More than a part of a file has.
const FILE_BYTES: usize = 300_000;
/// Between looks.
const STEP: Duration = Duration::from_millis(50);
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
            spread: None,
        };
        RunFigures {
            surroundings: json!({}),
            cells: BTreeMap::from([("a cell".to_owned(), vec![figure])]),
            names: Vec::new(),
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

/// The number of parts by upload.
async fn parts(archive: &Stream) -> BTreeMap<String, usize> {
    let parts = archive.info_with_subjects("$O.fleet-files.C.>").await;
    parts.unwrap().try_collect().await.unwrap()
}

#[test]
fn parts_of_uploads_that_were_cut_short_are_removed_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = server(&folder) else {
        return;
    };
    let run = folder.path().join("the-run");
    fs::create_dir(&run).unwrap();
    fs::write(run.join("journal.jsonl"), vec![1; FILE_BYTES]).unwrap();
    fleet::run(async {
        let fleet = server.set_up().await.unwrap();
        upload(&fleet, "done", &run).await.unwrap();
        let client = async_nats::connect(&server.access().url).await.unwrap();
        let context = async_nats::jetstream::new(client);
        let files = context.get_object_store("fleet-files").await.unwrap();
        let archive = context.get_stream("OBJ_fleet-files").await.unwrap();
        let some = async |uploads: usize| {
            while parts(&archive).await.len() < uploads {
                sleep(STEP).await;
            }
        };
        let (mut content, mut reader) = duplex(FILE_BYTES);
        let slow = files.put("slow", &mut reader);
        let others = async {
            content.write_all(&vec![2; FILE_BYTES]).await.unwrap();
            some(2).await;
            // Later than the slow one: its agent is killed.
            let (mut rest, mut reader) = duplex(FILE_BYTES);
            rest.write_all(&vec![3; FILE_BYTES]).await.unwrap();
            tokio::select! {
                put = files.put("cut", &mut reader) => panic!("{put:?}"),
                () = some(3) => {}
            }
            let mut written = FILE_BYTES;
            loop {
                content.write_all(b"more").await.unwrap();
                written += b"more".len();
                match fleet.remove_leftovers(AGE).await.unwrap() {
                    0 => sleep(STEP).await,
                    removed => {
                        assert_eq!(removed, 1);
                        break;
                    }
                }
            }
            assert_eq!(parts(&archive).await.len(), 2);
            content.shutdown().await.unwrap();
            written
        };
        let (slow, written) = tokio::join!(slow, others);
        assert_eq!(slow.unwrap().size, written);

        // However old they are, the parts of files stay.
        assert_eq!(fleet.remove_leftovers(Duration::ZERO).await.unwrap(), 0);
        let mut read = Vec::new();
        let mut object = files.get("slow").await.unwrap();
        object.read_to_end(&mut read).await.unwrap();
        assert_eq!(read.len(), written);
        let fetched = fetch(&fleet, "done", &folder.path().join("fetched")).await;
        let journal = fs::read(fetched.unwrap().unwrap().join("journal.jsonl")).unwrap();
        assert_eq!(journal, vec![1; FILE_BYTES]);
    });
}
