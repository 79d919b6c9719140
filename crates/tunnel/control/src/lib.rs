//! The control channel: two gateways agree on keys over TLS, outside the tunnel.
//!
//! One thread, named `control`, drives one [`Rollover`](keying::rollover::Rollover) per tunnel. It
//! opens and accepts connections, verifies the result of each handshake ([`tls::session`]),
//! transfers messages, fetches QKD keys, and has the [`Lanes`] install, switch to and retire
//! epochs. An inbound connection passes these steps:
//!
//! 1. Its source must be the address of some tunnel's peer. All others are closed before a byte is
//!    read.
//! 2. A mutually authenticated TLS handshake, within [`OPEN_LIMIT`]. Each address may have
//!    [`PENDING_PER_ADDRESS_MAX`] connections that have not completed it; a further one evicts the
//!    oldest, so an address that opens many silent connections evicts only these.
//! 3. The first message, [`Open`](keying::message::Message::Open), names the tunnel. The name in
//!    the certificate and the source address must belong to that tunnel's peer. Only then does the
//!    connection reach the tunnel's `Rollover`.
//!
//! `docs/security.md` specifies the key derivation, and the guarantees that this does not give.
//!
//! Deliberately left out: it writes no log (events go to [`Lanes::event`]), checks no revocation,
//! and handles no packets.

#![forbid(unsafe_code)]

mod clock;
pub mod frame;
mod identity;
mod reason;
mod shell;
pub mod tls;
mod validity;

pub use identity::{Identity, IdentityError};
pub use shell::{LINKS_PER_TUNNEL_MAX, OPEN_LIMIT, PENDING_MAX, PENDING_PER_ADDRESS_MAX};
pub use validity::CertificateEvent;

use keying::chain::EpochSecret;
use keying::message::Cause;
use keying::rollover::{Event, Settings};
use nix::sys::socket::{Backlog, listen};
use shell::{Requests, Shell};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Name of the control thread.
pub const THREAD_NAME: &str = "control";
/// Connections that may wait to be accepted.
const ACCEPT_QUEUE: i32 = 1024;

/// Configuration of a control plane.
pub struct Setup {
    /// This gateway's certificate and key.
    pub identity: Identity,
    /// The KME, if any tunnel's policy uses QKD.
    pub qkd: Option<qkd::Kme>,
    /// The tunnels; [`Lanes`] identifies each by its index in this list.
    pub tunnels: Vec<Tunnel>,
}

/// One tunnel.
pub struct Tunnel {
    /// Key policy and rekey times.
    pub settings: Settings,
    /// Source address of outbound connections.
    pub local: IpAddr,
    /// Address and TCP port of the peer; the peer's connections come from this address.
    pub remote: SocketAddr,
    /// The peer's SAE ID (ETSI GS QKD 014); required if the policy uses QKD.
    pub peer_sae: Option<String>,
}

/// The control plane's interface to the data plane. Called on the control thread: no call may block
/// for long.
pub trait Lanes: Send {
    /// Opens inbound packets of this epoch from now on.
    fn install_inbound(&mut self, tunnel: usize, secret: &Arc<EpochSecret>);
    /// Seals outbound packets with this epoch from now on.
    fn switch_outbound(&mut self, tunnel: usize, secret: &Arc<EpochSecret>);
    /// Stops opening inbound packets of this epoch.
    fn retire_inbound(&mut self, tunnel: usize, epoch: u32);
    /// Stops sealing outbound packets with this epoch at the end of its hard lifetime.
    fn expire_outbound(&mut self, tunnel: usize, epoch: u32);
    /// Reports an event of a tunnel.
    fn event(&mut self, tunnel: usize, event: &Event);
    /// Reports an event of this gateway's certificate.
    fn certificate(&mut self, event: &CertificateEvent) {
        let _ = event;
    }
    /// Counts a connection that was refused before its tunnel was known.
    fn count_refused(&mut self) {}
    /// Reports a connection that was refused before its tunnel was known. Calls are rate-limited.
    fn refused(&mut self, from: SocketAddr, reason: &str) {
        let _ = (from, reason);
    }
}

/// The running control plane. It ends when this is dropped, which closes all connections, so peers
/// notice immediately.
pub struct Control {
    requests: Arc<Requests>,
    thread: Option<JoinHandle<()>>,
}

/// Requests new keys from the control plane. May be used on any thread; never blocks for long.
#[derive(Debug, Clone)]
pub struct Handle {
    requests: Arc<Requests>,
}

/// Binds the listener of a control plane. Its queue holds a second of a thousand connections a
/// second, while this host is busy: past the usual 128 the kernel drops a peer's request, which is
/// repeated only after a second.
///
/// # Errors
/// When the address is in use, or not this host's.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    // A second call changes the length.
    listen(&listener, Backlog::new(ACCEPT_QUEUE)?)?;
    Ok(listener)
}

/// Starts the control plane on a bound listener.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if the tunnels contradict each other or the identity, or lack a
/// requirement of QKD; other kinds if the thread, its runtime or the listener cannot be set up.
pub fn start(
    setup: Setup,
    listener: TcpListener,
    lanes: impl Lanes + 'static,
) -> io::Result<Control> {
    // Before anything is started, so that a mistake leaves no thread behind.
    check(&setup).map_err(|what| io::Error::new(io::ErrorKind::InvalidInput, what))?;
    // tokio requires it; a blocking accept would stop the whole thread.
    listener.set_nonblocking(true)?;
    // One thread for all tunnels: rekeying is rare, and the order of events easier to follow.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    // `from_std` registers the socket with the runtime, so it must be called inside of it.
    let listener = {
        let _inside = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    let requests = Arc::new(Requests::default());
    let of_shell = Arc::clone(&requests);
    let thread = thread::Builder::new()
        .name(THREAD_NAME.to_owned())
        .spawn(move || {
            runtime.block_on(async { Shell::new(setup, lanes).run(listener, &of_shell).await });
            // Closes all connections, even if their tasks still wait.
            drop(runtime);
        })?;
    Ok(Control {
        requests,
        thread: Some(thread),
    })
}

impl Control {
    /// Returns a handle for requesting new keys.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle {
            requests: Arc::clone(&self.requests),
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // A request like others, so the thread ends between two events and not within one.
        self.requests.stop();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has already been reported.
            let _ = thread.join();
        }
    }
}

impl Handle {
    /// Requests new keys for one tunnel, or for all. Further requests for the same are merged until
    /// the control plane has handled the first.
    pub fn rekey(&self, tunnel: Option<usize>, cause: Cause) {
        self.requests.rekey(tunnel, cause);
    }

    /// Requests that the certificate, its key and the authority are read again, and then new keys
    /// for all tunnels. The result is reported to [`Lanes::certificate`].
    pub fn reload(&self) {
        self.requests.reload();
    }
}

/// Checks the configuration for contradictions.
fn check(setup: &Setup) -> Result<(), String> {
    for (index, tunnel) in setup.tunnels.iter().enumerate() {
        let settings = &tunnel.settings;
        // Numbers of tunnels are not unique here: two peers may use the same one.
        let named = format!("tunnel {} with {}", settings.tunnel, settings.peer_name);
        pki::check_name(&settings.peer_name).map_err(|bad| bad.to_string())?;
        if settings.own_name != setup.identity.name() {
            return Err(format!(
                "{named}: this side is to be {}, but its certificate is that of {}",
                settings.own_name,
                setup.identity.name()
            ));
        }
        if settings.peer_name == settings.own_name {
            return Err(format!("{named}: the peer has the same name as this side"));
        }
        // Otherwise each connect would fail, and look like an unreachable peer.
        if tunnel.local.is_ipv4() != tunnel.remote.is_ipv4() {
            return Err(format!(
                "{named}: {} and {} are not of one family",
                tunnel.local, tunnel.remote
            ));
        }
        if settings.policy.asks_qkd() && (setup.qkd.is_none() || tunnel.peer_sae.is_none()) {
            return Err(format!(
                "{named}: its policy needs QKD, so a KME and the peer's SAE"
            ));
        }
        // An inbound connection is assigned by these two values.
        let twin = setup.tunnels[..index].iter().any(|other| {
            (other.settings.tunnel, &other.settings.peer_name)
                == (settings.tunnel, &settings.peer_name)
        });
        if twin {
            return Err(format!("{named} is there twice"));
        }
    }
    Ok(())
}
