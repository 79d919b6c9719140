//! Jobs that are repeated.

use crate::site::{Site, end, job, kill};
use fleet::{Job, State};
use std::collections::BTreeSet;

/// In seconds: longer than an agent needs to find a server that was killed.
const PERIOD: u64 = 6;

pub(crate) fn periods() {
    let mut site = Site::new();
    let names = ["one", "two", "three"];
    let mut agents = names.map(|name| site.start(name, name));
    let repeated = Job {
        every: Some(PERIOD),
        ..job("daily", "fine")
    };
    let fleet = site.fleet();
    site.runtime.block_on(fleet.repeat(&repeated)).unwrap();
    site.runtime.block_on(fleet.repeat(&repeated)).unwrap();
    let periods = |site: &Site| -> BTreeSet<u64> {
        let states = site.states();
        let numbers = states.keys().map(|id| {
            let number = id.strip_prefix("daily-").unwrap();
            number.parse().unwrap()
        });
        numbers.collect()
    };
    let last = |site: &Site| periods(site).last().copied();
    let next = |site: &Site| {
        let before = last(site);
        site.await_some("next period", || {
            last(site).filter(|now| Some(*now) > before)
        })
    };
    // Whoever makes the job of a period is killed around that time.
    for round in 0..3 {
        next(&site);
        kill(agents[round].id());
        agents[round].wait().unwrap();
        if round == 1 {
            site.kill_server();
        }
        agents[round] = site.start(names[round], names[round]);
    }
    // Nothing is killed any more: no period is left out.
    let first = next(&site);
    next(&site);
    let third = next(&site);
    assert!(third >= first + 2);
    assert!(
        (first..=third).all(|period| periods(&site).contains(&period)),
        "{:?}",
        periods(&site)
    );
    let fleet = site.fleet();
    assert_eq!(site.runtime.block_on(fleet.repeats()).unwrap().len(), 1);
    assert!(site.runtime.block_on(fleet.end_repeat("daily")).unwrap());
    assert!(!site.runtime.block_on(fleet.end_repeat("daily")).unwrap());
    assert!(site.runtime.block_on(fleet.repeats()).unwrap().is_empty());
    // Begun again it would have another id: this one is over.
    site.runtime.block_on(fleet.repeat(&repeated)).unwrap();
    assert!(site.runtime.block_on(fleet.repeats()).unwrap().is_empty());
    let states = site.await_all("at an end", State::is_final);
    for (id, state) in &states {
        assert!(matches!(state, State::Done { .. }), "{id}: {state:?}");
        site.check_run(&fleet, id);
    }
    agents.into_iter().for_each(end);
}
