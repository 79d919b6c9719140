//! The rollover machine: two of them with faults between them, and each against a peer that
//! violates the protocol.
//!
//! `ROLLOVER_SEED=17 cargo test -p cipherbench-keying rollover::` runs the simulation with one
//! seed.

mod attack;
mod duo;
mod gateway;
mod hard;
mod hostile;
mod model;
mod offers;
mod paths;
mod random;
mod turns;
mod world;

use keying::chain::Policy;
use keying::rollover::{Allowance, Ppk, Role, Settings};
use std::sync::Arc;
use std::time::Duration;
use wire::Suite;
use zeroize::Zeroizing;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Settings of the connector and the listener of one tunnel.
fn settings(policy: Policy) -> [Settings; 2] {
    let of = |role, own: &str, peer: &str| Settings {
        role,
        own_name: own.to_owned(),
        peer_name: peer.to_owned(),
        tunnel: 7,
        lanes: 4,
        suite: Suite::Aes256Gcm,
        payload: "l3".to_owned(),
        policy,
        ppks: Vec::new(),
        every: ms(3000),
        hard: None,
        grace: ms(1000),
        attempt_limit: ms(2000),
        retry_min: ms(50),
        retry_max: ms(1000),
        // The simulated faults are more than any attacker's.
        provoked: Allowance {
            burst: 1000,
            refill: ms(10),
        },
        ping_every: ms(500),
    };
    [
        of(Role::Connector, "gw1", "gw2"),
        of(Role::Listener, "gw2", "gw1"),
    ]
}

fn ppk(id: &str, required: bool) -> Ppk {
    Ppk {
        id: id.to_owned(),
        key: Arc::new(Zeroizing::new(
            format!("{id}: a key of some 32 bytes or more").into_bytes(),
        )),
        required,
    }
}
