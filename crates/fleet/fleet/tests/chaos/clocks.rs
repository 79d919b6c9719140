//! Clocks that are wrong by a day.

use crate::site::{Site, end, job, now};
use fleet::{Job, State, submit};

const DAY: u64 = 24 * 60 * 60;

/// Ids begin with the clock of who submitted them; the server's count decides.
pub(crate) fn order() {
    let site = Site::new();
    let fleet = site.fleet();
    let submitted = [("2-of-tomorrow", 0), ("1-of-yesterday", 0), ("3-urgent", 1)];
    for (id, priority) in submitted {
        let job = Job {
            priority,
            ..job(id, "fine")
        };
        site.runtime.block_on(submit(&fleet, &job)).unwrap();
    }
    let agent = site.start_with("agent", "lab", &site.url(), "-1d");
    site.await_all("done", |state| matches!(state, State::Done { .. }));
    let points = site.runtime.block_on(fleet.history("the cell")).unwrap();
    let order: Vec<&str> = points.iter().map(|point| point.job.as_str()).collect();
    assert_eq!(order, ["3-urgent", "2-of-tomorrow", "1-of-yesterday"]);
    // The agent's clock really was wrong, where it can be made so.
    let log = site.log("agent");
    let clock = log.lines().find_map(|line| line.strip_prefix("clock "));
    let clock: u64 = clock.unwrap().parse().unwrap();
    let behind = now() - clock;
    assert!(
        behind < 600 || (DAY..DAY + 600).contains(&behind),
        "{behind}"
    );
    end(agent);
}
