//! Networks that are cut while jobs run.

use crate::relay::{Network, Relay};
use crate::site::{Site, end};
use fleet::{Selector, State};

/// Both ways in which a network is away, longer than a lease lasts; `CUT_S=180` keeps it so for
/// minutes.
pub(crate) fn longer_than_a_lease() {
    let site = Site::new();
    let cuts = [("dark", Network::Silent), ("refusing", Network::Closed)];
    let relays = cuts.map(|_| Relay::to(site.options.listen));
    let first: Vec<_> = cuts
        .iter()
        .zip(&relays)
        .map(|((lab, _), relay)| site.start_via(&format!("first-{lab}"), lab, &relay.url()))
        .collect();
    let fleet = site.fleet();
    let submit = |number: usize, campaign: &str, lab: &str| {
        let selector = Selector {
            lab: Some(lab.to_owned()),
            ..Selector::default()
        };
        site.submit(number, campaign, selector)
    };
    let jobs = (0..).zip(&cuts);
    let jobs: Vec<_> = jobs
        .map(|(number, (lab, _))| submit(number, "held", lab))
        .collect();
    site.await_all("running", |state| matches!(state, State::Running(_)));
    for ((_, network), relay) in cuts.iter().zip(&relays) {
        relay.set(*network);
    }
    // What waits for the labs meanwhile.
    let later = (2..).zip(&cuts);
    let later: Vec<_> = later
        .map(|(number, (lab, _))| submit(number, "fine", lab))
        .collect();
    cuts.iter()
        .for_each(|(lab, _)| site.go(&format!("first-{lab}")));
    let second = cuts.map(|(lab, _)| site.start(&format!("second-{lab}"), lab));
    for (((lab, _), job), next) in cuts.iter().zip(&jobs).zip(&later) {
        site.await_end_of_run(&format!("first-{lab}"), lab, job);
        // The lease has run out, and nobody takes a lab with a job in it.
        site.await_some("word that the lab is awaited", || {
            let log = site.log(&format!("second-{lab}"));
            let says = format!("runs job {job} there and has not been heard of for 10 s");
            log.contains(&says).then_some(())
        });
        site.await_some("word that the server is away", || {
            let log = site.log(&format!("first-{lab}"));
            log.contains("the server does not answer").then_some(())
        });
        let states = site.states();
        assert!(matches!(states[job], State::Running(_)), "{states:?}");
        assert!(matches!(states[next], State::Queued { .. }), "{states:?}");
    }
    if let Ok(seconds) = std::env::var("CUT_S") {
        std::thread::sleep(std::time::Duration::from_secs(seconds.parse().unwrap()));
    }
    for relay in &relays {
        relay.set(Network::Open);
    }
    let states = site.await_all("done", |state| matches!(state, State::Done { .. }));
    let mut holders = Vec::new();
    for (id, state) in &states {
        let State::Done { held, .. } = state else {
            panic!("{state:?}");
        };
        assert_eq!(held.attempt, 1, "{id}: {state:?}");
        site.check_run(&fleet, id);
        holders.push((held.lab.clone(), held.agent.clone()));
    }
    // One agent for each lab, before and after.
    holders.sort();
    holders.dedup();
    assert_eq!(holders.len(), 2, "{holders:?}");
    first.into_iter().chain(second).for_each(end);
}

/// Stopped in order behind a cut, an agent ends; what it measured is uploaded at its next start.
pub(crate) fn stopped_behind_a_cut() {
    let site = Site::new();
    let relay = Relay::to(site.options.listen);
    let mut agent = site.start_via("agent", "lab", &relay.url());
    let id = site.submit(0, "held", Selector::default());
    // The server knows of it a moment before it begins, which behind a cut it would not.
    let journal = site.run_of("agent", "lab", &id).join("journal.jsonl");
    site.await_some("begun run", || journal.exists().then_some(()));
    relay.set(Network::Silent);
    site.go("agent");
    site.await_end_of_run("agent", "lab", &id);
    site.stop("agent");
    site.await_some("end of the agent", || agent.try_wait().unwrap());
    let folder = site.agent_folder("agent").join("lab").join(&id);
    assert!(folder.join("job.json").exists());
    std::fs::remove_file(site.agent_folder("agent").join("stop")).unwrap();
    relay.set(Network::Open);
    let agent = site.start_via("agent", "lab", &relay.url());
    let states = site.await_all("done", |state| matches!(state, State::Done { .. }));
    assert!(matches!(&states[&id], State::Done { held, .. } if held.attempt == 1));
    site.check_run(&site.fleet(), &id);
    end(agent);
}
