//! Kills and cuts at random moments.

use crate::relay::{Network, Relay};
use crate::site::{Site, kill};
use fleet::{Selector, State};
use std::process::Child;
use std::time::Duration;

/// The clocks of agents, one after the other.
const CLOCKS: [&str; 3] = ["", "+1d", "-1d"];

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

/// An agent behind its own network.
struct Player {
    name: String,
    lab: String,
    clock: &'static str,
    relay: Relay,
    process: Child,
}

impl Player {
    fn new(site: &Site, number: usize) -> Self {
        let (name, lab) = (format!("agent-{number}"), format!("lab-{number}"));
        let relay = Relay::to(site.options.listen);
        let clock = CLOCKS[number % CLOCKS.len()];
        Self {
            process: site.start_with(&name, &lab, &relay.url(), clock),
            name,
            lab,
            clock,
            relay,
        }
    }

    fn kill(&mut self) {
        // It may have ended by itself: at its start the server was away.
        if matches!(self.process.try_wait(), Ok(None)) {
            kill(self.process.id());
        }
        self.process.wait().unwrap();
    }

    fn start(&mut self, site: &Site) {
        self.process = site.start_with(&self.name, &self.lab, &self.relay.url(), self.clock);
    }
}

pub(crate) fn chaos() {
    let game = std::env::var("CHAOS").unwrap_or_else(|_| "7 4 24 16".to_owned());
    let game: Vec<u64> = game
        .split(' ')
        .map(|number| number.parse().unwrap())
        .collect();
    let [seed, agents, jobs, events] = game[..] else {
        panic!("CHAOS=\"SEED AGENTS JOBS EVENTS\"");
    };
    let mut dice = Dice(seed + 1);
    let mut site = Site::new();
    let players = 0..agents as usize;
    let mut players: Vec<Player> = players.map(|number| Player::new(&site, number)).collect();
    for number in 0..jobs as usize {
        site.submit(number, "fine", Selector::default());
    }
    let mut happened = [0; 3];
    for nth in 0..events {
        std::thread::sleep(Duration::from_millis(100 + dice.below(900)));
        if nth % 11 == 5 {
            site.kill_server();
            happened[0] += 1;
            continue;
        }
        let player = &mut players[dice.below(agents) as usize];
        let network = match dice.below(8) {
            0..4 => {
                player.kill();
                player.start(&site);
                happened[1] += 1;
                continue;
            }
            4 => Network::Silent,
            5 => Network::Closed,
            6 => Network::Slow(Duration::from_millis(dice.below(300))),
            _ => Network::Open,
        };
        player.relay.set(network);
        happened[2] += 1;
    }
    for player in &players {
        player.relay.set(Network::Open);
    }
    // A job whose run was killed three times is parked: reported, and not lost.
    let states = site.await_some("end of all jobs", || {
        for player in &mut players {
            // Who keeps an agent running starts it again.
            if matches!(player.process.try_wait(), Ok(Some(_))) {
                player.start(&site);
            }
        }
        let states = site.states();
        states.values().all(State::is_final).then_some(states)
    });
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
    let [servers, killed, networks] = happened;
    println!(
        "{done} of {jobs} jobs done, {} parked; killed: server {servers} times, agents {killed} times; networks changed \
         {networks} times",
        states.len() - done
    );
    assert!(done > states.len() / 2, "{states:?}");
    players.iter_mut().for_each(Player::kill);
}
