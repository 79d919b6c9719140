//! TCP resets of the control channel, by an attacker on the path who cannot read it; and identity
//! files that another user of the machine could have written.

use crate::quantum::Network;
use crate::support::{Gateway, HERE, Site, listener};
use control::Identity;
use keying::chain::Policy;
use keying::rollover::Event;
use nix::sys::socket::{setsockopt, sockopt::Linger};
use pki::days_from_now;
use std::cell::Cell;
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A path on which someone resets connections.
pub(crate) struct Path {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    open: Mutex<Vec<[TcpStream; 2]>>,
    /// New connections are reset after this many messages of the listener; 0: never.
    reset_after: AtomicUsize,
    resets: AtomicUsize,
}

impl Path {
    pub(crate) fn to(target: SocketAddr) -> Self {
        let (inlet, state) = (
            TcpListener::bind((HERE, 0)).unwrap(),
            Arc::<State>::default(),
        );
        let address = inlet.local_addr().unwrap();
        let of_thread = Arc::clone(&state);
        // Ends with the test's process.
        thread::spawn(move || {
            for client in inlet.incoming().flatten() {
                if let Ok(server) = TcpStream::connect(target) {
                    of_thread.join(client, server);
                }
            }
        });
        Self { address, state }
    }

    /// Resets all connections; returns how many.
    fn reset(&self) -> usize {
        let open = std::mem::take(&mut *self.state.open.lock().unwrap());
        open.iter().for_each(reset);
        self.state.resets.fetch_add(open.len(), Relaxed);
        open.len()
    }
}

impl State {
    fn join(self: &Arc<Self>, client: TcpStream, server: TcpStream) {
        let both = [&client, &server].map(|end| end.try_clone().unwrap());
        self.open.lock().unwrap().push(both);
        let limit = self.reset_after.load(Relaxed);
        for (from, to, counts) in [(&client, &server, false), (&server, &client, true)] {
            let ends = [from, to].map(|end| end.try_clone().unwrap());
            let state = Arc::clone(self);
            thread::spawn(move || state.pass(ends, if counts { limit } else { 0 }));
        }
    }

    /// Passes on what one end sends, and resets both after so many pieces.
    fn pass(&self, [mut from, mut to]: [TcpStream; 2], limit: usize) {
        let (mut piece, mut count) = ([0; 4096], 0);
        while let Ok(length @ 1..) = from.read(&mut piece) {
            count += 1;
            if count == limit {
                reset(&[from.try_clone().unwrap(), to.try_clone().unwrap()]);
                self.resets.fetch_add(1, Relaxed);
                return;
            }
            if to.write_all(&piece[..length]).is_err() {
                return;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    }
}

/// Both ends see a reset rather than the end of the file.
fn reset(ends: &[TcpStream; 2]) {
    for end in ends {
        let at_once = libc_linger();
        let _ = setsockopt(end, Linger, &at_once);
        let _ = end.shutdown(Shutdown::Both);
    }
}

fn libc_linger() -> nix::libc::linger {
    nix::libc::linger {
        l_onoff: 1,
        l_linger: 0,
    }
}

fn established(gateway: &Gateway) -> usize {
    gateway.log.with(|state| state.epochs(0).len())
}

fn times_back(gateway: &Gateway) -> usize {
    gateway.log.with(|state| {
        let events = state.events.iter();
        events
            .filter(|(_, event)| matches!(event, Event::PeerBack { .. }))
            .count()
    })
}

#[test]
fn resets_of_the_control_channel_cost_neither_epochs_nor_qkd_keys() {
    let network = Network::start();
    let kme = network.client("gw1");
    let (bound, address) = listener();
    let path = Path::to(address);
    let (pair, _simulator) = network.pair_over(Policy::Both, path.address, bound);
    pair.connector.established(1);
    pair.listener.established(1);
    // The connector's pool is filled while the channel stands.
    let stored = kme.settled();
    let epochs = established(&pair.connector);
    let began = Instant::now();
    let mut back = 0;
    while began.elapsed() < Duration::from_secs(20) {
        assert!(path.reset() > 0);
        pair.connector.log.wait("the peer to be back", |state| {
            let is_back = |(_, event): &&(usize, Event)| matches!(event, Event::PeerBack { .. });
            (state.events.iter().filter(is_back).count() > back).then_some(())
        });
        back = times_back(&pair.connector);
    }
    println!("{back} resets");
    assert!(back >= 10, "{back} resets");
    let epochs = established(&pair.connector) - epochs;
    testing::attack("epochs that TCP resets cause in 20 s", epochs, 0);
    let keys = stored - kme.stored();
    testing::attack("QKD keys that TCP resets cost in 20 s", keys, 0);
    pair.connector.log.with(|state| {
        assert_eq!(
            state.rings[0].outbound_epoch(),
            Some(1),
            "the keys are in use"
        );
    });
}

#[test]
fn resets_of_every_attempt_cost_no_more_than_the_budget() {
    let network = Network::start();
    let kme = network.client("gw1");
    let before = kme.stored();
    let (bound, address) = listener();
    let path = Path::to(address);
    // TLS takes two pieces of the listener; then come `Accept`, `Ready` and `Done`.
    path.state.reset_after.store(4, Relaxed);
    let (pair, _simulator) = network.pair_over(Policy::Both, path.address, bound);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        let resets = path.state.resets.load(Relaxed);
        let until = Instant::now() + Duration::from_secs(5);
        while path.state.resets.load(Relaxed) == resets && Instant::now() < until {
            thread::yield_now();
            thread::sleep(Duration::from_millis(5));
        }
    }
    let used = before - kme.settled();
    // 8 attempts in any 30 s, and the 8 keys that the pool keeps ready.
    testing::attack(
        "QKD keys that resets of all attempts cost in 20 s",
        used,
        16,
    );
    path.state.reset_after.store(0, Relaxed);
    pair.connector
        .log
        .wait_for(Duration::from_secs(40), "keys", |state| {
            (!state.epochs(0).is_empty()).then_some(())
        });
}

#[test]
fn identity_files_that_others_could_have_written_are_refused() {
    let site = Site::new();
    let texts = site.authority.issue("gw1", days_from_now(1)).unwrap();
    let [certificate, key] = site.write("gw1", &texts);
    let ca = site.path("ca.pem");
    let load = || Identity::load(&certificate, &key, &ca);
    let mode = |path: &std::path::Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    mode(&ca, 0o644);
    mode(&certificate, 0o644);
    let identity = load().unwrap();
    let accepted = Cell::new(0);
    let refused = |what: &str, fix: &str| {
        let reasons = [load().err(), identity.reload().err()];
        let count = reasons.iter().filter(|error| error.is_none()).count();
        accepted.set(accepted.get() + count);
        for error in reasons.into_iter().flatten() {
            let text = error.to_string();
            assert!(text.contains(fix), "{what}: {text}");
        }
    };
    for (path, usual) in [(&ca, 0o644), (&certificate, 0o644)] {
        for writable in [0o666, 0o646] {
            mode(path, writable);
            refused("a file", "(chmod go-w ");
        }
        mode(path, usual);
    }
    for writable in [0o777, 0o702, 0o772] {
        mode(site.folder.path(), writable);
        refused("the folder", "(chmod go-w ");
    }
    mode(site.folder.path(), 0o700);
    // The authority is reached by a link in a folder where others may write.
    let open = site.path("open");
    fs::create_dir(&open).unwrap();
    mode(&open, 0o777);
    symlink(&ca, open.join("ca.pem")).unwrap();
    let linked = Identity::load(&certificate, &key, &open.join("ca.pem"));
    assert!(linked.is_err());
    for path in [&ca, &certificate, &key] {
        if chown(path, Some(4321), None).is_ok() {
            refused("an owner", "chown it");
            chown(path, Some(0), None).unwrap();
        }
    }
    assert!(identity.reload().is_ok());
    testing::attack(
        "identity files accepted that others could have written",
        accepted.get(),
        0,
    );
}
