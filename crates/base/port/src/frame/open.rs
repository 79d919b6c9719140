//! Opening the fastest frame port that works.
//!
//! The order follows measurements by `examples/frames.rs`: 60-byte frames over a veth pair, MTU
//! 1500, one core sending, one receiving; millions of frames per second received (without a
//! receiver: sent). Median of five runs of a second, and the best of them, on 2 virtual cores of an
//! Intel Xeon with Linux 6.18 under other load (load average 3.6):
//!
//! | sender | none | AF_PACKET | AF_XDP | UDP socket |
//! |---|---:|---:|---:|---:|
//! | AF_XDP | 1.61, 2.37 | 1.01, 1.52 | 0.56, 0.83 | 0.38, 0.85 |
//! | AF_PACKET | 0.94, 1.62 | 0.62, 1.17 | 0.34, 0.71 | 0.30, 0.71 |
//! | UDP socket | 0.39, 0.64 | 0.46, 0.80 | 0.24, 0.55 | 0.26, 0.50 |
//!
//! The rates vary as the load did, but the order is the same by median and by best: AF_XDP is the
//! fastest sender, and AF_PACKET the fastest receiver.

use super::memory::{MemoryFrameReceiver, MemoryFrameSender};
use super::packet::{OutgoingReceiver, PacketReceiver, PacketSender, PromptReceiver};
use super::socket::{SocketReceiver, SocketSender};
use super::wanted::{OpenFrames, Packets};
use super::xdp::{self, XdpReceiver, XdpSender};
use super::xdp_mode::{XdpAttach, XdpMode};
use super::{FRAME_SLOT_BYTES, FramePortKind, FramePortStats, FrameReceiver, FrameSender};
use crate::kernel::Interface;
use std::io;
use std::os::fd::BorrowedFd;

/// Kinds of senders, the fastest first.
const SENDERS: [FramePortKind; 3] = [
    FramePortKind::Xdp,
    FramePortKind::Packet,
    FramePortKind::Socket,
];
/// Kinds of receivers, the fastest first.
const RECEIVERS: [FramePortKind; 3] = [
    FramePortKind::Packet,
    FramePortKind::Xdp,
    FramePortKind::Socket,
];

/// Ports of one kind, and the faster kinds that were rejected, each with the reason.
pub type Opened<P> = (Vec<P>, Vec<(FramePortKind, String)>);

/// Why no frame port could be opened.
#[derive(Debug, thiserror::Error)]
pub enum FramePortError {
    /// The interface does not exist.
    #[error(
        "there is no interface `{name}` in this network namespace\nhelp: `ip link` lists the existing ones"
    )]
    NoInterface {
        /// Its name.
        name: String,
    },
    /// The interface cannot be queried.
    #[error("cannot look up the interface `{name}`: {error}")]
    Interface {
        /// Its name.
        name: String,
        /// The kernel's error.
        error: io::Error,
    },
    /// The interface is down.
    #[error("interface `{name}` is down\nhelp: `ip link set {name} up`")]
    Down {
        /// Its name.
        name: String,
    },
    /// Frames do not fit the link.
    #[error("frames of {bytes} B (FCS not counted) do not fit interface `{name}`, whose MTU of {mtu} B allows {max} B\nhelp: choose smaller frames or `ip link set {name} mtu {}`", bytes - ETHERNET_HEADER_BYTES)]
    TooLong {
        /// The interface's name.
        name: String,
        /// The frame's length without FCS.
        bytes: usize,
        /// The interface's MTU.
        mtu: usize,
        /// The longest frame without FCS.
        max: usize,
    },
    /// Frames are longer than any port carries.
    #[error(
        "frames of {bytes} B (FCS not counted) are longer than the {FRAME_SLOT_BYTES} B that a frame port carries"
    )]
    BeyondSlot {
        /// The frame's length without FCS.
        bytes: usize,
    },
    /// The requested kind does not work.
    #[error("{kind} does not work on interface `{name}`: {reason}")]
    Forced {
        /// The kind.
        kind: FramePortKind,
        /// The interface's name.
        name: String,
        /// What failed and what to do.
        reason: String,
    },
    /// No kind works.
    #[error("no kind of frame port works on interface `{name}`:{}", list(.reasons))]
    None {
        /// The interface's name.
        name: String,
        /// What failed for each kind, and what to do.
        reasons: Vec<(FramePortKind, String)>,
    },
}

const ETHERNET_HEADER_BYTES: usize = 14;
const PORTS_ARE_TAKEN: &str = "those ports are the key exchange's: use AF_PACKET or AF_XDP";
const UDP_ONLY: &str = "it carries UDP, and ESP is bare: use AF_PACKET or AF_XDP";

fn list(reasons: &[(FramePortKind, String)]) -> String {
    let line = |(kind, reason): &(FramePortKind, String)| format!("\n  {kind}: {reason}");
    reasons.iter().map(line).collect()
}

/// Opens senders, one per thread: the first that works of AF_XDP, AF_PACKET, UDP sockets.
///
/// # Errors
/// [`FramePortError`] with advice.
pub fn open_senders(wanted: &OpenFrames<'_>) -> Result<Opened<AnySender>, FramePortError> {
    let interface = interface(wanted)?;
    // Before any kind is tried: the MTU limits all of them.
    let max = interface.mtu + ETHERNET_HEADER_BYTES;
    if wanted.max_frame_bytes > max {
        return Err(FramePortError::TooLong {
            name: interface.name,
            bytes: wanted.max_frame_bytes,
            mtu: interface.mtu,
            max,
        });
    }
    first_that_works(wanted, &SENDERS, |kind| match kind {
        FramePortKind::Packet => (0..wanted.threads)
            .map(|_| PacketSender::open(&interface).map(AnySender::Packet))
            .collect::<io::Result<_>>()
            .map_err(|error| packet_reason(&error)),
        FramePortKind::Xdp => {
            fits_a_page(wanted.max_frame_bytes, xdp::SEND_BYTES_MAX)?;
            (0..wanted.threads)
                // Each thread has its queue: two sockets on one queue would need shared memory
                // for frames.
                .map(|queue| XdpSender::open(&interface, queue as u32).map(AnySender::Xdp))
                .collect::<io::Result<_>>()
                .map_err(|error| xdp_reason(&error))
        }
        FramePortKind::Socket if matches!(wanted.packets, Packets::BareEsp) => {
            Err(UDP_ONLY.to_owned())
        }
        FramePortKind::Socket => Ok((0..wanted.threads)
            .map(|_| AnySender::Socket(SocketSender::open(&interface)))
            .collect()),
        FramePortKind::Memory => Err(NOT_ON_AN_INTERFACE.to_owned()),
    })
}

/// Opens receivers, one per thread, among which flows are divided: the first that works of
/// AF_PACKET, AF_XDP, UDP sockets.
///
/// # Errors
/// [`FramePortError`] with advice.
pub fn open_receivers(wanted: &OpenFrames<'_>) -> Result<Opened<AnyReceiver>, FramePortError> {
    open_receivers_by(wanted, |interface| {
        let receivers = PacketReceiver::open(interface, wanted)?;
        Ok(receivers.into_iter().map(AnyReceiver::Packet).collect())
    })
}

/// The same for frames that are answered: each is delivered as it arrives, whereas the fastest kind
/// collects them for up to a millisecond.
///
/// # Errors
/// [`FramePortError`] with advice.
pub fn open_prompt_receivers(
    wanted: &OpenFrames<'_>,
) -> Result<Opened<AnyReceiver>, FramePortError> {
    open_receivers_by(wanted, |interface| {
        let receivers = PromptReceiver::open(interface, wanted)?;
        Ok(receivers.into_iter().map(AnyReceiver::Prompt).collect())
    })
}

/// Opens receivers; `open_packet` opens AF_PACKET receivers.
fn open_receivers_by(
    wanted: &OpenFrames<'_>,
    open_packet: impl Fn(&Interface) -> io::Result<Vec<AnyReceiver>>,
) -> Result<Opened<AnyReceiver>, FramePortError> {
    let interface = interface(wanted)?;
    first_that_works(wanted, &RECEIVERS, |kind| match kind {
        FramePortKind::Packet => open_packet(&interface).map_err(|error| packet_reason(&error)),
        FramePortKind::Xdp => open_xdp_receivers(&interface, wanted),
        FramePortKind::Socket => match wanted.packets {
            Packets::Udp(udp_ports) => SocketReceiver::open(&interface, wanted.threads, udp_ports)
                .map(|receivers| receivers.into_iter().map(AnyReceiver::Socket).collect())
                .map_err(|error| socket_reason(&error)),
            Packets::UdpBeside(..) => Err(PORTS_ARE_TAKEN.to_owned()),
            Packets::BareEsp => Err(UDP_ONLY.to_owned()),
        },
        FramePortKind::Memory => Err(NOT_ON_AN_INTERFACE.to_owned()),
    })
}

/// Opens an interface to capture the frames that leave by it, from any sender.
///
/// # Errors
/// [`FramePortError`] with advice.
pub fn open_outgoing(interface: &str) -> Result<OutgoingReceiver, FramePortError> {
    OutgoingReceiver::open(&find(interface)?).map_err(|error| FramePortError::Forced {
        kind: FramePortKind::Packet,
        name: interface.to_owned(),
        reason: packet_reason(&error),
    })
}

fn interface(wanted: &OpenFrames<'_>) -> Result<Interface, FramePortError> {
    if wanted.max_frame_bytes > FRAME_SLOT_BYTES {
        return Err(FramePortError::BeyondSlot {
            bytes: wanted.max_frame_bytes,
        });
    }
    find(wanted.interface)
}

/// An interface that is up.
fn find(name: &str) -> Result<Interface, FramePortError> {
    let found = Interface::find(name);
    let name = name.to_owned();
    match found {
        Ok(interface) if interface.is_up => Ok(interface),
        Ok(_) => Err(FramePortError::Down { name }),
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
            Err(FramePortError::NoInterface { name })
        }
        Err(error) => Err(FramePortError::Interface { name, error }),
    }
}

fn first_that_works<P>(
    wanted: &OpenFrames<'_>,
    kinds: &[FramePortKind],
    open: impl Fn(FramePortKind) -> Result<Vec<P>, String>,
) -> Result<Opened<P>, FramePortError> {
    let name = wanted.interface.to_owned();
    // A kind that is requested is not replaced: a campaign that names one measures it, or
    // nothing.
    if let Some(kind) = wanted.kind {
        return match open(kind) {
            Ok(ports) => Ok((ports, Vec::new())),
            Err(reason) => Err(FramePortError::Forced { kind, name, reason }),
        };
    }
    let mut reasons = Vec::new();
    for &kind in kinds {
        match open(kind) {
            Ok(ports) => return Ok((ports, reasons)),
            Err(reason) => reasons.push((kind, reason)),
        }
    }
    Err(FramePortError::None { name, reasons })
}

/// In the driver if possible, else behind it.
fn open_xdp_receivers(
    interface: &Interface,
    wanted: &OpenFrames<'_>,
) -> Result<Vec<AnyReceiver>, String> {
    // Frames longer than the MTU never arrive.
    let longest_by_mtu = interface.mtu + ETHERNET_HEADER_BYTES;
    let max_frame_bytes = wanted.max_frame_bytes.min(longest_by_mtu);
    fits_a_page(max_frame_bytes, xdp::RECEIVE_BYTES_MAX).map_err(|reason| {
        format!(
            "{reason}; if all frames are shorter, use `ip link set {} mtu {}`",
            interface.name,
            xdp::RECEIVE_BYTES_MAX - ETHERNET_HEADER_BYTES
        )
    })?;
    queue_for_each(interface, wanted.threads)?;
    let open = |attach| XdpReceiver::open(interface, attach, max_frame_bytes, wanted);
    // Generic mode works behind any driver, at the cost of a copy and an `skb` for each frame.
    open(XdpAttach::Native)
        .or_else(|native| {
            open(XdpAttach::Generic)
                .map_err(|error| format!("{}; in generic mode: {error}", xdp_reason(&native)))
        })
        .map(|receivers| receivers.into_iter().map(AnyReceiver::Xdp).collect())
}

/// Checks that every frame arrives at one of the first `threads` queues, one per thread.
fn queue_for_each(interface: &Interface, threads: usize) -> Result<(), String> {
    let (name, queues) = (&interface.name, interface.receive_queues as usize);
    // With more queues than threads, the device must spread frames over the first ones alone.
    // Frames at other queues would reach no socket.
    let used = match interface.hashed_over() {
        Some(used) if queues > threads => used as usize,
        _ => queues,
    };
    if queues >= threads && used <= threads {
        return Ok(());
    }
    let between = if queues > threads {
        format!(", or let the interface use as many with `ethtool -X {name} equal {threads}`")
    } else {
        String::new()
    };
    Err(format!(
        "the interface has {queues} receive queue(s) for {threads} thread(s), and each needs one; \
         set the threads, or the queues with `ethtool -L {name} rx {threads}`{between}"
    ))
}

fn fits_a_page(bytes: usize, max: usize) -> Result<(), String> {
    if bytes > max {
        return Err(format!(
            "it carries frames of up to {max} B, which fit a page of memory, and not of {bytes} B"
        ));
    }
    Ok(())
}

fn xdp_reason(error: &io::Error) -> String {
    let help = match error.raw_os_error() {
        Some(libc::EPERM) => {
            "it needs CAP_NET_RAW, and to receive CAP_NET_ADMIN and CAP_BPF outside of any user \
             namespace: run as root"
        }
        Some(libc::EAFNOSUPPORT) => "the kernel is built without it (CONFIG_XDP_SOCKETS)",
        Some(libc::EBUSY | libc::EEXIST) => {
            "another AF_XDP port has the queue, or another program the interface: stop that one"
        }
        Some(libc::EINVAL) => "there are not as many queues as threads: `ethtool -l` shows them",
        Some(libc::ERANGE) => {
            "the interface's MTU, whatever the frames, is longer than its driver's XDP takes (veth: \
             3498 B): set a shorter one"
        }
        Some(libc::ENOBUFS | libc::ENOMEM) => {
            "it locks 5 MB of memory a thread to send, 16 MB to receive: raise `ulimit -l`"
        }
        _ => "see the kernel's af_xdp.rst",
    };
    format!("{error}; {help}")
}

fn packet_reason(error: &io::Error) -> String {
    let help = match error.raw_os_error() {
        Some(libc::EPERM) => "it needs CAP_NET_RAW: run as root or in a user namespace",
        Some(libc::EAFNOSUPPORT) => "the kernel lacks it: `modprobe af_packet`",
        Some(libc::ENOMEM) => "its rings need 64 MB of memory: free some",
        _ => "see packet(7)",
    };
    format!("{error}; {help}")
}

fn socket_reason(error: &io::Error) -> String {
    let help = match error.raw_os_error() {
        Some(libc::EADDRINUSE) => "another process listens on a test port: stop that one",
        Some(libc::EMFILE) => "raise `ulimit -n`",
        _ => "see udp(7)",
    };
    format!("{error}; {help}")
}

const NOT_ON_AN_INTERFACE: &str =
    "it joins parts of one process; leave the choice open or choose another kind";

/// A sender of any kind.
#[derive(Debug)]
pub enum AnySender {
    /// AF_XDP.
    Xdp(XdpSender),
    /// AF_PACKET.
    Packet(PacketSender),
    /// UDP sockets.
    Socket(SocketSender),
    /// Memory.
    Memory(MemoryFrameSender),
}

/// A receiver of any kind.
#[derive(Debug)]
pub enum AnyReceiver {
    /// AF_XDP.
    Xdp(XdpReceiver),
    /// AF_PACKET.
    Packet(PacketReceiver),
    /// AF_PACKET, without a delay.
    Prompt(PromptReceiver),
    /// UDP sockets.
    Socket(SocketReceiver),
    /// Memory.
    Memory(MemoryFrameReceiver),
}

/// Evaluates the same expression for the inner port of any kind.
macro_rules! each {
    ($any:expr, $port:ident => $result:expr $(, $more:ident)*) => {
        match $any {
            Self::Xdp($port) => $result,
            Self::Packet($port) => $result,
            Self::Socket($port) => $result,
            Self::Memory($port) => $result,
            $(Self::$more($port) => $result,)*
        }
    };
}

impl AnySender {
    /// The inner kind.
    #[must_use]
    pub const fn kind(&self) -> FramePortKind {
        match self {
            Self::Xdp(_) => FramePortKind::Xdp,
            Self::Packet(_) => FramePortKind::Packet,
            Self::Socket(_) => FramePortKind::Socket,
            Self::Memory(_) => FramePortKind::Memory,
        }
    }

    /// How a port of AF_XDP works.
    #[must_use]
    pub const fn xdp_mode(&self) -> Option<XdpMode> {
        match self {
            Self::Xdp(port) => Some(port.mode()),
            _ => None,
        }
    }
}

impl AnyReceiver {
    /// How a port of AF_XDP works.
    #[must_use]
    pub const fn xdp_mode(&self) -> Option<XdpMode> {
        match self {
            Self::Xdp(port) => Some(port.mode()),
            _ => None,
        }
    }

    /// The inner kind.
    #[must_use]
    pub const fn kind(&self) -> FramePortKind {
        match self {
            Self::Xdp(_) => FramePortKind::Xdp,
            Self::Packet(_) | Self::Prompt(_) => FramePortKind::Packet,
            Self::Socket(_) => FramePortKind::Socket,
            Self::Memory(_) => FramePortKind::Memory,
        }
    }
}

impl FrameSender for AnySender {
    #[inline]
    fn send(&mut self, count: usize, fill: impl FnMut(&mut [u8]) -> usize) -> io::Result<usize> {
        each!(self, port => port.send(count, fill))
    }

    fn flush(&mut self) -> io::Result<()> {
        each!(self, port => port.flush())
    }

    fn stats(&self) -> FramePortStats {
        each!(self, port => port.stats())
    }
}

impl FrameReceiver for AnyReceiver {
    #[inline]
    fn recv(&mut self, read: impl FnMut(&mut [u8])) -> io::Result<usize> {
        each!(self, port => port.recv(read), Prompt)
    }

    #[inline]
    fn recv_timed(&mut self, read: impl FnMut(&mut [u8], Option<u64>)) -> io::Result<usize> {
        each!(self, port => port.recv_timed(read), Prompt)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        each!(self, port => port.readable(), Prompt)
    }

    fn stats(&self) -> FramePortStats {
        each!(self, port => port.stats(), Prompt)
    }
}
