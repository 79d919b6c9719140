//! Runs that an agent left when it was killed, and which have not ended when it starts again.

use crate::site::{Site, end};
use fleet::{Selector, State};
use std::fs;
use std::process::Child;

/// Renewals of the lease that an agent makes while it waits.
const BEATS: u64 = 4;

/// An agent that was killed in the midst of a run and started again, and waits for that run's end:
/// it lingers until [`Site::go`]. The lab has the agent's name.
fn waiting(site: &Site, name: &str, number: usize) -> (Child, String) {
    let agent = site.start(name, name);
    let only = Selector {
        lab: Some(name.to_owned()),
        ..Selector::default()
    };
    let id = site.submit(number, "slow and lingering", only);
    let journal = site.run_of(name, name, &id).join("journal.jsonl");
    site.await_some("trial", || {
        let text = fs::read_to_string(&journal).unwrap_or_default();
        text.contains('\n').then_some(())
    });
    end(agent);
    // The next run of the job begins one anew.
    fs::remove_file(site.agent_folder(name).join(name).join(&id).join("log")).unwrap();
    let before = beats(site, name, &id).unwrap().0;
    let agent = site.start(name, name);
    site.await_some("renewals while it waits", || {
        let (incarnation, beats) = beats(site, name, &id)?;
        (incarnation != before && beats >= BEATS).then_some(())
    });
    assert!(!has_begun(site, name, &id));
    (agent, id)
}

/// Of the lease of a lab in which a job runs: which start of the agent has it, and how often that
/// has renewed it.
fn beats(site: &Site, lab: &str, id: &str) -> Option<(String, u64)> {
    let offers = site.runtime.block_on(site.fleet().offers()).ok()?;
    let mut offers = offers.into_iter();
    let offer = offers.find(|offer| offer.lab == lab && offer.job.as_deref() == Some(id))?;
    Some((offer.incarnation, offer.beats))
}

/// Whether a run of the job was begun after the one that was left.
fn has_begun(site: &Site, name: &str, id: &str) -> bool {
    let folder = site.agent_folder(name).join(name).join(id);
    folder.join("log").exists()
}

pub(crate) fn run() {
    let site = Site::new();
    let fleet = site.fleet();

    // Cancelled: the lab is used again once the run has ended.
    let (agent, id) = waiting(&site, "one", 0);
    site.runtime.block_on(fleet.cancel(&id)).unwrap();
    let next = site.submit(1, "fine", Selector::default());
    site.go("one");
    let states = site.await_all("at an end", State::is_final);
    assert!(matches!(states[&id], State::Cancelled), "{states:?}");
    assert!(matches!(states[&next], State::Done { .. }), "{states:?}");
    assert!(
        site.log("one")
            .contains(&format!("job {id} was taken away"))
    );
    end(agent);

    // Stopped: it ends with the run, and begins none.
    let (mut agent, id) = waiting(&site, "two", 2);
    site.stop("two");
    site.await_some("word that it is asked", || {
        site.log("two").contains("asked to end").then_some(())
    });
    site.go("two");
    site.await_some("end of the agent", || agent.try_wait().unwrap());
    assert!(!has_begun(&site, "two", &id), "{}", site.logs());
    assert_eq!(beats(&site, "two", &id), None);
    fs::remove_file(site.agent_folder("two").join("stop")).unwrap();
    let agent = site.start("two", "two");
    let states = site.await_all("at an end", State::is_final);
    assert!(
        matches!(&states[&id], State::Done { held, .. } if held.attempt == 1),
        "{states:?}"
    );
    site.check_run(&fleet, &id);
    end(agent);
}
