//! A thousand tunnels between two gateways.

use crate::support::{Gateway, Site, listener, settings, tunnel};
use keying::message::Cause;
use keying::rollover::{Event, Role};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const TUNNELS: u16 = 1000;
/// Both sides of a standing connection and of its replacement, and the process's other descriptors.
const DESCRIPTORS: u64 = TUNNELS as u64 * 4 + 500;
/// Time limit on two cores, for both sides.
const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn a_thousand_tunnels_come_up_and_rekey_in_time() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    if hard < DESCRIPTORS {
        eprintln!("SKIPPED: {DESCRIPTORS} descriptors are needed, {hard} are allowed (ulimit -Hn)");
        return;
    }
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("up to the hard limit");
    let site = Site::new();
    let (bound, address) = listener();
    let (unused, from) = listener();
    let tunnels = |role, own, peer, remote| {
        (0..TUNNELS)
            .map(|number| {
                let mut settings = settings(role, own, peer, number);
                // The last attempts wait until most others have completed.
                settings.attempt_limit = LIMIT;
                tunnel(settings, remote)
            })
            .collect::<Vec<_>>()
    };
    let began = Instant::now();
    let of_listener = tunnels(Role::Listener, "gw2", "gw1", from);
    let listener = Gateway::start(site.identity("gw2"), bound, of_listener);
    let of_connector = tunnels(Role::Connector, "gw1", "gw2", address);
    let connector = Gateway::start(site.identity("gw1"), unused, of_connector);
    wait_for_all(&connector, 1);
    wait_for_all(&listener, 1);
    let took = began.elapsed();
    assert!(took < LIMIT, "{took:?}");
    eprintln!("{TUNNELS} tunnels came up in {took:?}");
    // All together, while all standing connections exist.
    connector.handle().rekey(None, Cause::Demand);
    wait_for_all(&connector, 2);
    wait_for_all(&listener, 2);
    for gateway in [&connector, &listener] {
        gateway.log.with(|state| {
            let failed = |event: &Event| !matches!(event, Event::Established { .. });
            let failed: Vec<_> = state.events.iter().filter(|(_, e)| failed(e)).collect();
            assert!(failed.is_empty(), "{failed:?}");
            assert!(state.refused.is_empty(), "{:?}", state.refused);
        });
    }
}

/// Waits until each tunnel has had this many epochs.
fn wait_for_all(gateway: &Gateway, epochs: usize) {
    let mut missing: BTreeSet<usize> = (0..usize::from(TUNNELS)).collect();
    gateway.log.wait("all tunnels", |state| {
        if state.events.len() >= epochs * usize::from(TUNNELS) {
            missing.retain(|tunnel| state.epochs(*tunnel).len() < epochs);
        }
        missing.is_empty().then_some(())
    });
}
