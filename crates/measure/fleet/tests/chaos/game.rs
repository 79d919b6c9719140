//! Kills at random moments.

use crate::site::{Site, kill};
use fleet::{Selector, State};
use std::process::Child;
use std::time::Duration;

/// xorshift64*: the same game for the same seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }
}

pub(crate) fn chaos() {
    let game = std::env::var("CHAOS").unwrap_or_else(|_| "7 4 24 12".to_owned());
    let game: Vec<u64> = game
        .split(' ')
        .map(|number| number.parse().unwrap())
        .collect();
    let [seed, agents, jobs, kills] = game[..] else {
        panic!("CHAOS=\"SEED AGENTS JOBS KILLS\"");
    };
    let mut dice = Dice(seed + 1);
    let mut site = Site::new();
    let names: Vec<(String, String)> = (0..agents)
        .map(|number| (format!("agent-{number}"), format!("lab-{number}")))
        .collect();
    let mut running: Vec<Child> = names
        .iter()
        .map(|(name, lab)| site.start(name, lab))
        .collect();
    for number in 0..jobs as usize {
        site.submit(number, "fine", Selector::default());
    }
    for nth in 0..kills {
        std::thread::sleep(Duration::from_millis(100 + dice.below(900)));
        if nth % 11 == 5 {
            site.kill_server();
            continue;
        }
        let which = dice.below(agents) as usize;
        kill(running[which].id());
        running[which].wait().unwrap();
        let (name, lab) = &names[which];
        running[which] = site.start(name, lab);
    }
    // A job whose run was killed three times is parked: reported, and not lost.
    let states = site.await_all("at an end", State::is_final);
    assert_eq!(states.len() as u64, jobs);
    let fleet = site.fleet();
    let mut done = 0;
    for (id, state) in &states {
        let State::Done { exit, .. } = state else {
            assert!(matches!(state, State::Parked { .. }), "{state:?}");
            continue;
        };
        done += 1;
        assert_eq!(*exit, 0);
        site.check_run(&fleet, id);
    }
    site.check_history(&fleet, done);
    println!("{done} of {jobs} jobs done, {} parked", states.len() - done);
    assert!(done > states.len() / 2, "{states:?}");
    for agent in &mut running {
        kill(agent.id());
        agent.wait().unwrap();
    }
}
