//! The control channel: two gateways agree on keys over TLS, outside of the tunnel.
//!
//! One thread, named `control`, drives one [`Rollover`](keying::rollover::Rollover) for each tunnel: it makes and takes
//! connections, looks at what came out of each handshake ([`tls::session`]), carries messages, fetches keys of QKD, and tells
//! the [`Lanes`] what to install, switch to and retire. The way of a connection that comes in:
//!
//! 1. Its source must be the address of some tunnel's peer. All others are closed before a byte is read.
//! 2. TLS, with certificates of both sides; within [`OPEN_LIMIT`]. Of those that are not through, each address may have
//!    [`PENDING_PER_ADDRESS_MAX`]; one more takes the place of the oldest, so one who opens many and says nothing only
//!    drives out himself.
//! 3. The first message, [`Open`](keying::message::Message::Open), names the tunnel. The name in the certificate and the
//!    source address must be those of that tunnel's peer. Only then does its `Rollover` learn of the connection.
//!
//! `docs/security.md` has the derivation of keys, and what all this does not promise.
//!
//! What it deliberately does not do: it writes no log (events go to [`Lanes::event`]), checks no revocation, and has nothing to
//! do with packets.

#![forbid(unsafe_code)]

pub mod certificates;
mod files;
pub mod frame;
mod identity;
pub mod names;
mod reason;
mod shell;
pub mod tls;

pub use files::ReadError;
pub use identity::{Identity, IdentityError};
pub use shell::{LINKS_PER_TUNNEL_MAX, OPEN_LIMIT, PENDING_MAX, PENDING_PER_ADDRESS_MAX};

use keying::chain::EpochSecret;
use keying::message::Cause;
use keying::rollover::{Event, Settings};
use shell::{Requests, Shell};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Name of the thread.
pub const THREAD_NAME: &str = "control";

/// Everything that a control plane needs to know.
pub struct Setup {
    /// Who this gateway is.
    pub identity: Identity,
    /// Where keys of QKD come from, if any tunnel's policy has them.
    pub qkd: Option<qkd::Kme>,
    /// The tunnels; events and keys are told by the index in this list.
    pub tunnels: Vec<Tunnel>,
}

/// One tunnel.
pub struct Tunnel {
    /// What its keys must be, and when they change.
    pub settings: Settings,
    /// Address that connections go out from.
    pub local: IpAddr,
    /// Address and TCP port of the peer; connections of the peer come from that address.
    pub remote: SocketAddr,
    /// The peer's SAE, as its KME knows it (ETSI GS QKD 014); needed where the policy has QKD.
    pub peer_sae: Option<String>,
}

/// The data plane, as the control plane sees it. Called on the control thread: no call may block for long.
pub trait Lanes: Send {
    /// Open what comes in this epoch from now on.
    fn install_inbound(&mut self, tunnel: usize, secret: &Arc<EpochSecret>);
    /// Seal with this epoch from now on.
    fn switch_outbound(&mut self, tunnel: usize, secret: &Arc<EpochSecret>);
    /// Open nothing of this epoch any more.
    fn retire_inbound(&mut self, tunnel: usize, epoch: u32);
    /// Something that people want to know.
    fn event(&mut self, tunnel: usize, event: &Event);
    /// A connection was refused before it could be told which tunnel it was for; not more than some a second are told.
    fn refused(&mut self, from: SocketAddr, reason: &str) {
        let _ = (from, reason);
    }
}

/// The running control plane. It ends when this is dropped; peers notice at once.
pub struct Control {
    requests: Arc<Requests>,
    thread: Option<JoinHandle<()>>,
}

/// Asks the control plane for new keys; for any thread, and never blocks for long.
#[derive(Clone)]
pub struct Handle {
    requests: Arc<Requests>,
}

/// Starts the control plane, on a bound listener.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] where tunnels contradict each other, the identity, or what is needed for QKD; others
/// where the thread or its listener cannot be had.
pub fn start(
    setup: Setup,
    listener: TcpListener,
    lanes: impl Lanes + 'static,
) -> io::Result<Control> {
    check(&setup).map_err(|what| io::Error::new(io::ErrorKind::InvalidInput, what))?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
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
            // Here all connections are closed, whatever their tasks were waiting for.
            drop(runtime);
        })?;
    Ok(Control {
        requests,
        thread: Some(thread),
    })
}

impl Control {
    /// A way to ask for new keys.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle {
            requests: Arc::clone(&self.requests),
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.requests.stop();
        if let Some(thread) = self.thread.take() {
            // If it panicked, the panic was told where it was.
            let _ = thread.join();
        }
    }
}

impl Handle {
    /// Asks for new keys of one tunnel, or of all. While the control plane has not yet got round to it, further requests for
    /// the same change nothing.
    pub fn rekey(&self, tunnel: Option<usize>, cause: Cause) {
        self.requests.rekey(tunnel, cause);
    }
}

/// Whether this can work at all.
fn check(setup: &Setup) -> Result<(), String> {
    for (index, tunnel) in setup.tunnels.iter().enumerate() {
        let settings = &tunnel.settings;
        let named = format!("tunnel {} with {}", settings.tunnel, settings.peer_name);
        names::check(&settings.peer_name).map_err(|bad| bad.to_string())?;
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
