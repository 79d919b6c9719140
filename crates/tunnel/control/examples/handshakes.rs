//! Handshakes per second of the control channel's TLS, both sides on one core.
//!
//! `make bench-handshakes`. Client and server have the configurations of the control channel: TLS
//! 1.3, X25519MLKEM768, certificates of both sides, no resumption. Their bytes are passed in
//! memory, without the kernel. Each handshake ends as in the control channel: its result is
//! verified, and both sides have the same exported secret. The best of several turns counts; the
//! worst is printed beside it.

use control::Identity;
use control::tls::{self, KEY_EXCHANGE};
use pki::{Authority, Texts, days_from_now};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ConnectionCommon, ServerConnection, SideData};
use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::ops::{AddAssign, DerefMut};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of turns.
const TURNS: usize = 10;
const TURN: Duration = Duration::from_millis(500);
/// Larger than all flights of a side.
const FLIGHT_BYTES: usize = 64 * 1024;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Time taken by the handshakes.
#[derive(Clone, Copy, Default)]
struct Cost {
    handshakes: u32,
    client: Duration,
    server: Duration,
    client_bytes: usize,
    server_bytes: usize,
}

fn main() -> Outcome<()> {
    let folder = testing::folder()?;
    let authority = Authority::generate()?;
    fs::write(folder.path().join("ca.pem"), authority.certificate())?;
    let [client, server] = ["client", "server"].map(|name| -> Outcome<Identity> {
        let texts = authority.issue(name, days_from_now(1))?;
        identity(folder.path(), name, &texts)
    });
    let (client, server) = (client?, server?);
    println!(
        "TLS 1.3, {KEY_EXCHANGE}, ECDSA P-256 certificates of both sides; both sides on one core, in memory; \
         best of {TURNS} turns of {} ms",
        TURN.as_millis()
    );
    // One-time initialization, such as the library's tables, happens here.
    handshake(&client, &server)?;
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        turns.push(turn(&client, &server)?);
    }
    turns.sort_by(|a, b| b.rate().total_cmp(&a.rate()));
    let (best, worst) = (turns[0], turns[TURNS - 1]);
    println!(
        "{:.0} handshakes/s (worst turn {:.0})",
        best.rate(),
        worst.rate()
    );
    for (side, time, bytes) in [
        ("connects", best.client, best.client_bytes),
        ("listens", best.server, best.server_bytes),
    ] {
        println!(
            "  the side that {side:8}: {:4.0} µs and {} bytes sent, each; alone {:.0} handshakes/s",
            time.as_secs_f64() * 1e6 / f64::from(best.handshakes),
            bytes / best.handshakes as usize,
            f64::from(best.handshakes) / time.as_secs_f64(),
        );
    }
    Ok(())
}

impl Cost {
    /// Handshakes per second, both sides together.
    fn rate(self) -> f64 {
        f64::from(self.handshakes) / (self.client + self.server).as_secs_f64()
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.handshakes += other.handshakes;
        self.client += other.client;
        self.server += other.server;
        self.client_bytes += other.client_bytes;
        self.server_bytes += other.server_bytes;
    }
}

fn turn(client: &Identity, server: &Identity) -> Outcome<Cost> {
    let mut cost = Cost::default();
    let began = Instant::now();
    while began.elapsed() < TURN {
        cost += handshake(client, server)?;
    }
    Ok(cost)
}

/// Performs one handshake, up to the secret on both sides.
fn handshake(client: &Identity, server: &Identity) -> Outcome<Cost> {
    let mut cost = Cost {
        handshakes: 1,
        ..Cost::default()
    };
    let peer = ServerName::try_from(server.name().to_owned())?;
    let mut flight = Vec::with_capacity(FLIGHT_BYTES);
    let mut connecting = timed(&mut cost.client, || {
        ClientConnection::new(Arc::clone(client.client_config()), peer)
    })?;
    let mut listening = timed(&mut cost.server, || {
        ServerConnection::new(Arc::clone(server.server_config()))
    })?;
    while connecting.is_handshaking() || listening.is_handshaking() {
        timed(&mut cost.client, || send(&mut connecting, &mut flight))?;
        cost.client_bytes += flight.len();
        timed(&mut cost.server, || receive(&mut listening, &flight))?;
        timed(&mut cost.server, || send(&mut listening, &mut flight))?;
        cost.server_bytes += flight.len();
        timed(&mut cost.client, || receive(&mut connecting, &flight))?;
    }
    let of_client = timed(&mut cost.client, || tls::session(&connecting))?;
    let of_server = timed(&mut cost.server, || tls::session(&listening))?;
    assert_eq!(of_client.secret, of_server.secret, "one secret");
    assert_eq!(of_client.peer, server.name());
    assert_eq!(of_server.peer, client.name());
    Ok(cost)
}

/// Replaces the content of `flight` by everything that a side has to send now.
fn send<D: SideData>(
    side: &mut impl DerefMut<Target = ConnectionCommon<D>>,
    flight: &mut Vec<u8>,
) -> Outcome<()> {
    flight.clear();
    while side.wants_write() {
        side.write_tls(flight)?;
    }
    Ok(())
}

fn receive<D: SideData>(
    side: &mut impl DerefMut<Target = ConnectionCommon<D>>,
    mut flight: &[u8],
) -> Outcome<()> {
    while !flight.is_empty() {
        side.read_tls(&mut flight)?;
        side.process_new_packets()?;
    }
    Ok(())
}

fn timed<T>(time: &mut Duration, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = work();
    *time += began.elapsed();
    result
}

/// Identities are loaded from files only, since their modes are checked too.
fn identity(folder: &Path, name: &str, texts: &Texts) -> Outcome<Identity> {
    let [certificate, key] = ["pem", "key"].map(|kind| folder.join(format!("{name}.{kind}")));
    fs::write(&certificate, &texts.certificate)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&key)?;
    file.write_all(texts.key.as_bytes())?;
    Ok(Identity::load(&certificate, &key, &folder.join("ca.pem"))?)
}
