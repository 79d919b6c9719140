//! Why the encryptor did not start, or stopped by itself.

use crate::barrier::BarrierError;
use crate::ikev2::SetupError;
use crate::privileges::PrivilegeError;
use crate::tunnel::TunnelError;
use port::{LinkError, TunError};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// Why the encryptor did not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// No engine is usable.
    #[error(transparent)]
    Engine(#[from] engine::EngineError),
    /// The keys cannot be used.
    #[error(transparent)]
    Keys(#[from] keying::KeyError),
    /// Others could have written the configuration.
    #[error(transparent)]
    Insecure(#[from] guard::Insecure),
    /// The certificate for the control channel.
    #[error(transparent)]
    Identity(#[from] control::IdentityError),
    /// The KME.
    #[error(transparent)]
    Kme(#[from] qkd::SetupError),
    /// The control channel's port.
    #[error(
        "cannot listen on {address} for the control channel: {error}\n\
         help: another process may have the TCP port; choose another `control_port`, the same on both sides"
    )]
    ControlPort {
        /// `local` and `control_port`.
        address: SocketAddr,
        /// The kernel's error.
        error: io::Error,
    },
    /// The port of IKE.
    #[error(
        "cannot bind {address} for IKE: {error}\n\
         help: another process may have the UDP port, for example an IKE daemon; stop it, or choose another \
         `ike_port`, the same on both sides and not `port`"
    )]
    IkePort {
        /// `local` and `ike_port`.
        address: SocketAddr,
        /// The kernel's error.
        error: io::Error,
    },
    /// The control channel.
    #[error("cannot start the control channel: {0}")]
    Control(io::Error),
    /// Root without capabilities is subject to the permissions of the key folder.
    #[error(
        "epoch file {} cannot be written by user {user} without root's privileges, which the encryptor has dropped\n\
         help: give the folder and its files to that user (`chown -R {user} {}`), or write `privileges: keep`",
        .path.display(), .path.parent().unwrap_or(Path::new(".")).display()
    )]
    KeyFolder {
        /// The epoch file.
        path: PathBuf,
        /// User id of the process.
        user: u32,
    },
    /// The user of `user` does not exist.
    #[error(
        "there is no user `{name}`: {said}\n\
         help: create it (`useradd --system {name}`), or correct `user`; `make install` describes the user `cipherbench` \
         to systemd-sysusers"
    )]
    NoUser {
        /// As configured.
        name: String,
        /// Why.
        said: String,
    },
    /// The TUN device.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// The link, in the modes of layer 2.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Packets cannot be held back while the service does not run.
    #[error(transparent)]
    Barrier(#[from] BarrierError),
    /// The interface's settings.
    #[error(transparent)]
    Tunnel(#[from] TunnelError),
    /// Privileges could not be dropped.
    #[error(transparent)]
    Privileges(#[from] PrivilegeError),
    /// A lane's socket.
    #[error("cannot open lane {lane} on {local} for {peers}: {error}\nhelp: {help}")]
    Lane {
        /// Number of the lane.
        lane: u16,
        /// Its local address.
        local: SocketAddr,
        /// The only peer's address, or the number of peers.
        peers: String,
        /// The kernel's error.
        error: io::Error,
        /// What to do.
        help: &'static str,
    },
    /// There is no route to a peer.
    #[error("there is no route to the peer {remote}: {error}\nhelp: see `ip route get {remote}`")]
    NoRoute {
        /// The peer's address.
        remote: IpAddr,
        /// The kernel's error.
        error: io::Error,
    },
    /// The tunnel's packets would not fit the path.
    #[error(
        "an MTU of {mtu} B makes ESP packets too long for the route to {remote}, which takes {path_mtu} B\n\
         help: {help}"
    )]
    PathMtu {
        /// `tunnel.mtu`, or the smallest that makes sense.
        mtu: u16,
        /// The peer's address.
        remote: IpAddr,
        /// MTU of the route to the peer, in bytes.
        path_mtu: usize,
        /// What to do.
        help: String,
    },
    /// The link to bridge is the one to the peer.
    #[error(
        "the interface {interface} has {local}, which is `local`: all its frames would be sent to the peer, including \
         the tunnel's own\nhelp: `interface` is the link on the clear side, `local` an address of another one"
    )]
    OwnInterface {
        /// `interface`.
        interface: String,
        /// `local`.
        local: IpAddr,
    },
    /// A CPU of `pin`.
    #[error(
        "there is no cpu {cpu} for a worker; this process may use {allowed}\nhelp: correct `pin`"
    )]
    NoCpu {
        /// As configured.
        cpu: usize,
        /// The usable CPUs, as in `0-3,7`.
        allowed: String,
    },
    /// The metrics port.
    #[error(
        "cannot serve metrics on {address}: {error}\nhelp: another process may have the port; choose another under `metrics`"
    )]
    Metrics {
        /// Configured address.
        address: SocketAddr,
        /// The kernel's error.
        error: io::Error,
    },
    /// A thread or a stop flag could not be created.
    #[error("the system refused a thread or a descriptor: {0}")]
    Resources(io::Error),
    /// A lane ended by itself.
    #[error("lane {lane} lost its port: {error}\nhelp: was the interface removed?")]
    LaneEnded {
        /// Number of the lane.
        lane: u16,
        /// The kernel's error.
        error: io::Error,
    },
}

impl From<SetupError> for ServiceError {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::Keys(error) => Self::Keys(error),
            SetupError::Identity(error) => Self::Identity(error),
            SetupError::Port { address, error } => Self::IkePort { address, error },
            SetupError::Resources(error) => Self::Resources(error),
        }
    }
}
