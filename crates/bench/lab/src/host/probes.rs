//! Kernel features, each tried in a temporary network namespace.

use super::OUTPUT_BYTES_MAX;
use crate::programs::{how_to_get, search_path};
use crate::sync::join;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socket, sockopt};
use port::{Tun, TunOffloads, TunSettings};
use std::io;
use std::net::UdpSocket;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::Command;
use std::thread;

/// Rules similar to a router's with NAT.
const NAT_RULES: &str = "add table inet cb-probe; \
                         add chain inet cb-probe forward { type filter hook forward priority 0; }; \
                         add rule inet cb-probe forward ct state established accept; \
                         add chain inet cb-probe out { type nat hook postrouting priority 100; }; \
                         add rule inet cb-probe out meta nfproto ipv4 masquerade";

/// Arguments of `ip` that need WireGuard in the kernel.
pub(super) const KERNEL_WIREGUARD: &str = "link add cb-probe1 type wireguard";
/// Arguments of `ip` that need L2TPv3 in the kernel.
pub(super) const KERNEL_L2TP: &str = "l2tp add tunnel tunnel_id 1 peer_tunnel_id 1 encap ip \
                                      local 127.0.0.1 remote 127.0.0.1";

/// Result of each attempt; an error is the kernel's reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probes {
    /// Super-packets that a TUN device accepts.
    pub tun: Attempt<TunSuperPackets>,
    /// `UDP_SEGMENT`.
    pub udp_segment: Attempt<()>,
    /// `UDP_GRO`.
    pub udp_gro: Attempt<()>,
    /// Packet sockets.
    pub packet_socket: Attempt<()>,
    /// AF_XDP sockets.
    pub xdp_socket: Attempt<()>,
    /// Token buckets on a link.
    pub shaper: Attempt<()>,
    /// NAT and connection tracking by nftables.
    pub nat: Attempt<()>,
    /// Linux bridges.
    pub bridge: Attempt<()>,
    /// ESP with AES-GCM in the kernel (xfrm).
    pub kernel_esp: Attempt<()>,
    /// WireGuard in the kernel.
    pub kernel_wireguard: Attempt<()>,
    /// L2TPv3 in the kernel.
    pub kernel_l2tp: Attempt<()>,
}

/// The result of an attempt, or the reason for its failure.
pub type Attempt<T> = Result<T, String>;

/// Super-packets that a TUN device accepts, proved by a write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TunSuperPackets {
    /// TCP.
    pub tcp: bool,
    /// UDP.
    pub udp: bool,
}

impl Probes {
    /// Tries all features, on a thread that moves into a temporary network namespace.
    ///
    /// # Errors
    /// When the kernel refuses the namespace.
    pub fn try_out() -> io::Result<Self> {
        thread::scope(|scope| {
            let probing = scope.spawn(|| {
                // Applies to this thread and the programs that it starts.
                unshare(CloneFlags::CLONE_NEWNET)?;
                Ok(Self::try_here())
            });
            join(probing)
        })
    }

    fn try_here() -> Self {
        Self {
            tun: tun(),
            udp_segment: udp_option(|socket| setsockopt(socket, sockopt::UdpGsoSegment, &1000)),
            udp_gro: udp_option(|socket| setsockopt(socket, sockopt::UdpGroSegment, &true)),
            packet_socket: packet_socket(),
            xdp_socket: xdp_socket(),
            // The namespace has no other interface than `lo`.
            shaper: run(
                "tc",
                "qdisc replace dev lo root tbf rate 1mbit burst 10kb limit 10kb",
            ),
            nat: run("nft", NAT_RULES),
            bridge: ip("link add cb-probe2 type bridge"),
            kernel_esp: ip(&kernel_esp_arguments()),
            kernel_wireguard: ip(KERNEL_WIREGUARD),
            kernel_l2tp: ip(KERNEL_L2TP),
        }
    }
}

fn tun() -> Attempt<TunSuperPackets> {
    const NAME: &str = "cb-probe0";
    let queues = Tun::create(&TunSettings {
        name: NAME,
        queues: 1,
    });
    let mut queues = queues.map_err(|error| error.to_string())?;
    // A write to a device that is down fails, and only a write proves its offloads.
    ip(&format!("link set {NAME} up"))?;
    let tun = queues.first_mut().ok_or("a device without queues")?;
    let TunOffloads { tso, uso, .. } = tun.enable_offloads(TunOffloads::ALL);
    Ok(TunSuperPackets { tcp: tso, udp: uso })
}

fn udp_option(set: impl Fn(&UdpSocket) -> nix::Result<()>) -> Attempt<()> {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
    set(&socket).map_err(|errno| errno.desc().to_owned())
}

fn packet_socket() -> Attempt<()> {
    socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
    .map(drop)
    .map_err(|errno| errno.desc().to_owned())
}

fn xdp_socket() -> Attempt<()> {
    // SAFETY: a system call without pointers.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(nix::errno::Errno::last().desc().to_owned());
    }
    // SAFETY: the descriptor was just created and has no other owner.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
}

/// An SA that is never used; its key is no secret.
pub(super) fn kernel_esp_arguments() -> String {
    let key = "00".repeat(20);
    format!(
        "xfrm state add src 127.0.0.1 dst 127.0.0.2 proto esp spi 0x100 mode tunnel \
         aead rfc4106(gcm(aes)) 0x{key} 128"
    )
}

/// Runs `ip` in this thread's namespace.
fn ip(arguments: &str) -> Attempt<()> {
    run("ip", arguments)
}

/// Runs a tool in this thread's namespace; its arguments are separated by spaces.
fn run(tool: &str, arguments: &str) -> Attempt<()> {
    let mut command = Command::new(tool);
    command
        .args(arguments.split(' '))
        .env("PATH", search_path())
        // Findings quote the messages, which must not be translated.
        .env("LC_ALL", "C");
    let output = guard::output(&mut command, OUTPUT_BYTES_MAX)
        .map_err(|_| format!("no `{tool}`: {}", how_to_get(tool)))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().map(str::trim).find(|line| !line.is_empty());
    Err(line.map_or_else(|| output.status.to_string(), str::to_owned))
}
