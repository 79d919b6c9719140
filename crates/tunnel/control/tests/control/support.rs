//! Gateways without a data plane: the control plane's events are recorded, and can be awaited.

use control::{CertificateEvent, Control, Handle, Identity, Lanes, Setup, Tunnel};
use keying::chain::{EpochSecret, Policy};
use keying::message::Refusal;
use keying::rollover::{Allowance, Event, Ppk, Role, Settings};
use keying::{KeyRing, Side};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};
use pki::{Authority, Texts, days_from_now};
use qkd::Kme;
use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wire::Suite;
use zeroize::Zeroizing;

pub(crate) const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub(crate) const LANES: u16 = 2;
/// Time limit of all waits, generous for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// An authority, and a folder for its certificates.
pub(crate) struct Site {
    pub(crate) folder: TempDir,
    pub(crate) authority: Authority,
}

impl Site {
    pub(crate) fn new() -> Self {
        let folder = testing::folder().expect("a folder");
        let authority = Authority::generate().expect("an authority");
        write_public(&folder.path().join("ca.pem"), authority.certificate());
        Self { folder, authority }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn identity(&self, name: &str) -> Identity {
        let texts = self.authority.issue(name, days_from_now(1));
        self.identity_of(name, &texts.expect("a certificate"))
    }

    pub(crate) fn identity_of(&self, name: &str, texts: &Texts) -> Identity {
        let [certificate, key] = self.write(name, texts);
        Identity::load(&certificate, &key, &self.path("ca.pem")).expect("an identity")
    }

    /// Certificate and key.
    pub(crate) fn write(&self, name: &str, texts: &Texts) -> [PathBuf; 2] {
        let files = ["pem", "key"].map(|kind| self.path(&format!("{name}.{kind}")));
        write_public(&files[0], &texts.certificate);
        write_secret(&files[1], texts.key.as_bytes());
        files
    }
}

/// Others may not write it, whatever the umask is.
fn write_public(path: &Path, content: &str) {
    fs::write(path, content).expect("a file");
    fs::set_permissions(path, Permissions::from_mode(0o644)).expect("a file of this process");
}

pub(crate) fn write_secret(path: &Path, content: &[u8]) {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path);
    file.and_then(|mut file| file.write_all(content))
        .expect("a file");
}

/// Settings for most tests: quick retries, and no rekey by time.
pub(crate) fn settings(role: Role, own: &str, peer: &str, tunnel: u16) -> Settings {
    Settings {
        role,
        own_name: own.to_owned(),
        peer_name: peer.to_owned(),
        tunnel,
        lanes: LANES,
        suite: Suite::Aes256Gcm,
        payload: "l3".to_owned(),
        policy: Policy::Pqc,
        ppks: Vec::new(),
        hard: None,
        every: Duration::from_secs(3600),
        grace: Duration::from_millis(100),
        attempt_limit: Duration::from_secs(10),
        retry_min: Duration::from_millis(20),
        retry_max: Duration::from_millis(500),
        provoked: Allowance::OF_TUNNEL,
        ping_every: Duration::from_secs(1),
    }
}

pub(crate) fn ppk(id: &str, byte: u8, required: bool) -> Ppk {
    Ppk {
        id: id.to_owned(),
        key: Arc::new(Zeroizing::new(vec![byte; 32])),
        required,
    }
}

pub(crate) fn tunnel(settings: Settings, remote: SocketAddr) -> Tunnel {
    Tunnel {
        settings,
        local: HERE,
        remote,
        peer_sae: None,
    }
}

pub(crate) fn listener() -> (TcpListener, SocketAddr) {
    let listener = control::bind((HERE, 0).into()).expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// A running control plane with its events.
pub(crate) struct Gateway {
    pub(crate) control: Control,
    pub(crate) log: Arc<EventLog>,
}

impl Gateway {
    pub(crate) fn start(identity: Identity, listener: TcpListener, tunnels: Vec<Tunnel>) -> Self {
        Self::with_kme(identity, None, listener, tunnels)
    }

    pub(crate) fn with_kme(
        identity: Identity,
        qkd: Option<Kme>,
        listener: TcpListener,
        tunnels: Vec<Tunnel>,
    ) -> Self {
        let log = Arc::new(EventLog::new(&tunnels));
        let setup = Setup {
            identity,
            qkd,
            tunnels,
        };
        let control = control::start(setup, listener, Recorder(Arc::clone(&log)));
        Self {
            control: control.expect("a control plane"),
            log,
        }
    }

    pub(crate) fn handle(&self) -> Handle {
        self.control.handle()
    }

    /// Waits until this many epochs of the first tunnel were established; returns the last one's
    /// number.
    pub(crate) fn established(&self, count: usize) -> u32 {
        self.log.wait(&format!("{count} epochs"), |state| {
            let epochs = state.epochs(0);
            (epochs.len() >= count).then(|| epochs[count - 1])
        })
    }

    /// Waits for a failure of the first tunnel for that reason.
    pub(crate) fn fails(&self, refusal: Refusal) -> (bool, String) {
        self.log.wait(&format!("{refusal:?}"), |state| {
            state.failures().find_map(|(why, by_peer, detail)| {
                (why == Some(refusal)).then(|| (by_peer, detail.to_owned()))
            })
        })
    }

    /// Waits for a failure of the first tunnel, or a refused connection, with these words.
    pub(crate) fn says(&self, words: &str) {
        self.log.wait(words, |state| {
            let failed = state
                .failures()
                .any(|(_, _, detail)| detail.contains(words));
            let refused = state.refused.iter().any(|reason| reason.contains(words));
            (failed || refused).then_some(())
        });
    }
}

/// A pair: gw1 connects, gw2 listens; one tunnel.
pub(crate) struct Pair {
    pub(crate) site: Site,
    pub(crate) connector: Gateway,
    pub(crate) listener: Gateway,
    pub(crate) address: SocketAddr,
}

impl Pair {
    pub(crate) fn start() -> Self {
        Self::with(|_| {}, |_| {})
    }

    /// With other settings of the side that connects, and of the side that listens.
    pub(crate) fn with(
        of_connector: impl FnOnce(&mut Settings),
        of_listener: impl FnOnce(&mut Settings),
    ) -> Self {
        let site = Site::new();
        let mut connects = settings(Role::Connector, "gw1", "gw2", 0);
        let mut listens = settings(Role::Listener, "gw2", "gw1", 0);
        of_connector(&mut connects);
        of_listener(&mut listens);
        let (bound, address) = listener();
        let (unused, from) = listener();
        let listener = Gateway::start(site.identity("gw2"), bound, vec![tunnel(listens, from)]);
        let connector = Gateway::start(
            site.identity("gw1"),
            unused,
            vec![tunnel(connects, address)],
        );
        Self {
            site,
            connector,
            listener,
            address,
        }
    }

    /// Both sides have the same keys of their newest epoch, which has that number. May be called
    /// once per epoch.
    pub(crate) fn assert_same_keys(&self, epoch: u32) {
        let both = [&self.connector, &self.listener];
        for gateway in both {
            gateway.log.wait("to seal with it", |state| {
                (state.rings[0].outbound_epoch() == Some(epoch)).then_some(())
            });
        }
        for (sender, receiver) in [(both[0], both[1]), (both[1], both[0])] {
            for slot in 0..LANES {
                let sealing = sender.log.with(|state| state.rings[0].outbound(slot));
                let sealing = sealing.expect("keys to seal with");
                let opening = receiver
                    .log
                    .with(|state| state.rings[0].inbound(sealing.spi, slot))
                    .expect("keys to open with");
                assert_eq!(sealing.keymat, opening.keymat);
            }
        }
    }
}

/// The recorded events of a control plane.
pub(crate) struct EventLog {
    state: Mutex<State>,
    changed: Condvar,
}

pub(crate) struct State {
    pub(crate) rings: Vec<KeyRing>,
    pub(crate) events: Vec<(usize, Event)>,
    pub(crate) refused: Vec<String>,
    /// Refused connections, also those that were not reported.
    pub(crate) refused_count: u32,
    pub(crate) certificates: Vec<CertificateEvent>,
}

impl State {
    /// Numbers of the epochs that were established, in that order.
    pub(crate) fn epochs(&self, tunnel: usize) -> Vec<u32> {
        let of_tunnel = self.events.iter().filter(|(of, _)| *of == tunnel);
        of_tunnel
            .filter_map(|(_, event)| match event {
                Event::Established { epoch, .. } => Some(*epoch),
                _ => None,
            })
            .collect()
    }

    /// The rule, whether the peer refused, and the message.
    fn failures(&self) -> impl Iterator<Item = (Option<Refusal>, bool, &str)> {
        self.events.iter().filter_map(|(_, event)| match event {
            Event::Failed {
                refusal,
                by_peer,
                detail,
            } => Some((*refusal, *by_peer, detail.as_str())),
            _ => None,
        })
    }
}

impl EventLog {
    fn new(tunnels: &[Tunnel]) -> Self {
        let side = |tunnel: &Tunnel| match tunnel.settings.role {
            Role::Connector => Side::A,
            Role::Listener => Side::B,
        };
        Self {
            state: Mutex::new(State {
                rings: tunnels
                    .iter()
                    .map(|tunnel| KeyRing::new(side(tunnel)))
                    .collect(),
                events: Vec::new(),
                refused: Vec::new(),
                refused_count: 0,
                certificates: Vec::new(),
            }),
            changed: Condvar::new(),
        }
    }

    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().expect("no test thread panics here"))
    }

    /// Waits until `look` finds something.
    pub(crate) fn wait<T>(&self, what: &str, look: impl FnMut(&mut State) -> Option<T>) -> T {
        self.wait_for(PATIENCE, what, look)
    }

    /// As [`wait`](Self::wait), with another limit.
    pub(crate) fn wait_for<T>(
        &self,
        patience: Duration,
        what: &str,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> T {
        let until = Instant::now() + patience;
        let mut state = self.state.lock().expect("no test thread panics here");
        loop {
            if let Some(found) = look(&mut state) {
                return found;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let (events, refused) = (&state.events, &state.refused);
                let last = &events[events.len().saturating_sub(20)..];
                let text = format!("timeout waiting for {what}: {last:#?}\nrefused: {refused:#?}");
                drop(state);
                panic!("{text}");
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .expect("no test thread panics here")
                .0;
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        self.with(change);
        self.changed.notify_all();
    }
}

struct Recorder(Arc<EventLog>);

impl Lanes for Recorder {
    fn install_inbound(&mut self, tunnel: usize, secret: &Arc<EpochSecret>) {
        let secret = Arc::clone(secret);
        self.0
            .change(|state| state.rings[tunnel].install_inbound(secret));
    }

    fn switch_outbound(&mut self, tunnel: usize, secret: &Arc<EpochSecret>) {
        let secret = Arc::clone(secret);
        self.0
            .change(|state| state.rings[tunnel].switch_outbound(secret));
    }

    fn retire_inbound(&mut self, tunnel: usize, epoch: u32) {
        self.0
            .change(|state| state.rings[tunnel].retire_inbound(epoch));
    }

    fn expire_outbound(&mut self, tunnel: usize, epoch: u32) {
        self.0
            .change(|state| state.rings[tunnel].expire_outbound(epoch));
    }

    fn certificate(&mut self, event: &CertificateEvent) {
        self.0
            .change(|state| state.certificates.push(event.clone()));
    }

    fn event(&mut self, tunnel: usize, event: &Event) {
        self.0
            .change(|state| state.events.push((tunnel, event.clone())));
    }

    fn count_refused(&mut self) {
        self.0.change(|state| state.refused_count += 1);
    }

    fn refused(&mut self, from: SocketAddr, reason: &str) {
        self.0
            .change(|state| state.refused.push(format!("{from}: {reason}")));
    }
}

/// Opens a connection from that address.
pub(crate) fn connect_from(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = socket(
        AddressFamily::Inet,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
    .expect("a socket");
    let SocketAddr::V4(to) = to else {
        panic!("{to} is not of IPv4")
    };
    let from = SockaddrIn::from(SocketAddrV4::new(from, 0));
    bind(socket.as_raw_fd(), &from).expect("an address of this host");
    connect(socket.as_raw_fd(), &SockaddrIn::from(to)).expect("it listens");
    TcpStream::from(socket)
}

pub(crate) fn provider(groups: &[&'static dyn SupportedKxGroup]) -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        kx_groups: groups.to_vec(),
        ..default_provider()
    })
}

pub(crate) fn roots(site: &Site) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(site.authority.certificate().as_bytes());
    roots
        .add(certificate.expect("a certificate"))
        .expect("a root");
    roots
}
