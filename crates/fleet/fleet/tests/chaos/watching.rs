//! Who watches a fleet.

use crate::site::{PATIENCE, Site, access, end};
use fleet::{Change, Fleet, Selector};
use std::collections::BTreeMap;
use std::sync::mpsc;
use tokio::sync::watch;

pub(crate) fn changes() {
    let mut site = Site::new();
    let before = site.submit(0, "fine", Selector::default());
    let agent = site.start("agent", "lab");
    site.await_all("done", fleet::State::is_final);
    let jobs: Vec<String> = (1..4)
        .map(|number| site.submit(number, "slow", Selector::default()))
        .collect();
    let (first, begun) = mpsc::channel();
    let access = access(&site.url());
    let watched = std::thread::spawn(move || {
        let (_stop, stopped) = watch::channel(false);
        let mut seen: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        fleet::run(async {
            let fleet = Fleet::connect(&access).await.unwrap();
            let see = |change: Change<'_>| {
                if let Change::Job(job, state) = change {
                    seen.entry(job.id.clone()).or_default().push(state.word());
                    first.send(()).unwrap();
                }
            };
            fleet.watch(true, stopped, see).await;
        });
        seen
    });
    // Killed while a job runs: what it does meanwhile is seen afterwards.
    begun.recv_timeout(PATIENCE).unwrap();
    site.kill_server();
    let seen = watched.join().unwrap();
    assert!(!seen.contains_key(&before), "{seen:?}");
    for job in &jobs {
        assert_eq!(seen[job].last(), Some(&"done"), "{seen:?}");
        let mut once = seen[job].clone();
        once.dedup();
        assert_eq!(once, seen[job], "{seen:?}");
    }
    // With nothing left it ends at once; a stop ends it at any time.
    let fleet = site.fleet();
    let (_stop, stopped) = watch::channel(false);
    site.runtime.block_on(fleet.watch(true, stopped, |_| {}));
    let (stop, stopped) = watch::channel(false);
    stop.send(true).unwrap();
    site.runtime.block_on(fleet.watch(false, stopped, |_| {}));
    end(agent);
}
