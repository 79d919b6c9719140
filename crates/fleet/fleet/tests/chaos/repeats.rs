//! Jobs that are repeated.

use crate::site::{Site, end, job, kill};
use fleet::{Job, State};
use std::collections::BTreeSet;

/// In seconds: longer than an agent needs to find a server that was killed.
const PERIOD: u64 = 6;

pub(crate) fn periods() {
    let mut site = Site::new();
    let names = ["one", "two", "three"];
    // The clock of none of them counts: it is the server's.
    let start = |site: &Site, which: usize| {
        let clock = ["+1d", "-1d", ""][which];
        site.start_with(names[which], names[which], &site.url(), clock)
    };
    let mut agents = [0, 1, 2].map(|which| start(&site, which));
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
    for (round, agent) in agents.iter_mut().enumerate() {
        next(&site);
        kill(agent.id());
        agent.wait().unwrap();
        if round == 1 {
            site.kill_server();
        }
        *agent = start(&site, round);
    }
    // Nothing is killed any more: period follows period. A machine that others use may leave one
    // out, and then the next ones count.
    let first = next(&site);
    site.await_some("three periods in a row", || {
        let periods = periods(&site);
        let last = *periods.last()?;
        let row = last.checked_sub(2).filter(|begin| *begin >= first)?..=last;
        row.into_iter()
            .all(|period| periods.contains(&period))
            .then_some(())
    });
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
