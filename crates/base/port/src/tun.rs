//! A TUN device with offloads: 64 KB super-packets in one read or write.
//!
//! Each packet has a `virtio_net_hdr` in front. The accepted kinds of super-packets are determined
//! by writing one of each kind: a successful ioctl proves little. The probes are addressed to
//! 255.255.255.255 from 0.0.0.0, which no kernel forwards or answers.
//!
//! The header is that of tunnel super-packets, 24 bytes, whatever the kernel supports: every kernel
//! accepts a longer header, and ignores what it does not know.

use crate::kernel::{check, request_for};
use crate::{CLEAR_BUFFER_BYTES, ClearPort, probe, steering};
use arrayvec::ArrayVec;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use wire::coalesce::{Joinable, SEGMENTS_MAX};
use wire::ethernet;
use wire::vnet::{Gso, Outer, VNET_HEADER_BYTES, VNET_TUNNEL_HEADER_BYTES, VnetHeader};

const TUN_DEVICE: &str = "/dev/net/tun";

// `TUN_F_*` of linux/if_tun.h: the reader's offload abilities.
const F_CSUM: libc::c_uint = 0x01;
const F_TSO: libc::c_uint = 0x02 | 0x04;
const F_USO: libc::c_uint = 0x20 | 0x40;
/// Tunnels without an outer UDP checksum. Those with one are segmented by the kernel.
const F_UDP_TUNNEL: libc::c_uint = 0x80;

/// `TUNSETSTEERINGEBPF` of linux/if_tun.h.
const SET_STEERING: libc::Ioctl = 0x8004_54e0u32 as libc::Ioctl;

/// Settings of a TUN device.
#[derive(Debug, Clone)]
pub struct TunSettings<'a> {
    /// Interface name, at most 15 bytes.
    pub name: &'a str,
    /// Queues, one per worker; at least 1.
    pub queues: usize,
}

/// Super-packets of a TUN device, in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TunOffloads {
    /// TCP super-packets.
    pub tso: bool,
    /// UDP super-packets.
    pub uso: bool,
    /// TCP super-packets in UDP tunnels: VXLAN and Geneve without an outer checksum. They need
    /// `tso`, and Linux 6.17.
    pub tunnel: bool,
}

impl TunOffloads {
    /// Every offload.
    pub const ALL: Self = Self {
        tso: true,
        uso: true,
        tunnel: true,
    };
    /// No offload.
    pub const NONE: Self = Self {
        tso: false,
        uso: false,
        tunnel: false,
    };

    /// Whether `self` has no offload that `other` lacks.
    const fn is_within(self, other: Self) -> bool {
        (other.tso || !self.tso) && (other.uso || !self.uso) && (other.tunnel || !self.tunnel)
    }
}

/// Error of a TUN device.
#[derive(Debug, thiserror::Error)]
pub enum TunError {
    /// `/dev/net/tun` cannot be opened.
    #[error(
        "cannot open {TUN_DEVICE}: {0}\nhelp: it needs the kernel's tun driver (`modprobe tun`) and, in a container, the device passed through"
    )]
    Device(io::Error),
    /// The kernel refused to create the interface.
    #[error("cannot create the TUN interface `{name}`: {error}\nhelp: {help}")]
    Create {
        /// Interface name.
        name: String,
        /// The kernel's error.
        error: io::Error,
        /// Advice.
        help: &'static str,
    },
}

/// One queue of a TUN device; the interface is removed when the last queue is dropped.
#[derive(Debug)]
pub struct Tun {
    file: File,
    joinable: Joinable,
    /// What the kernel expects on top of the offset of an outer UDP header.
    outer_shift: u16,
}

impl Tun {
    /// Creates the interface with all its queues. It is down, and has no offloads yet.
    ///
    /// # Errors
    /// [`TunError`] with the kernel's error and advice.
    pub fn create(settings: &TunSettings<'_>) -> Result<Vec<Self>, TunError> {
        (0..settings.queues)
            .map(|queue| Self::open_queue(settings, queue == 0))
            .collect()
    }

    /// The `first` queue creates the interface; an existing one of that name belongs to another
    /// program.
    fn open_queue(settings: &TunSettings<'_>, first: bool) -> Result<Self, TunError> {
        let refused = |error: io::Error| {
            let help = match error.raw_os_error() {
                Some(libc::EBUSY | libc::EEXIST) => {
                    "another process has it: stop that one or choose another name"
                }
                Some(libc::EPERM) => "it needs CAP_NET_ADMIN: run as root",
                _ => "a name is 1 to 15 bytes without `/` or spaces",
            };
            TunError::Create {
                name: settings.name.to_owned(),
                error,
                help,
            }
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(TUN_DEVICE)
            .map_err(TunError::Device)?;
        let mut request =
            request_for(settings.name).map_err(|_| refused(io::ErrorKind::InvalidInput.into()))?;
        let mut flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        if settings.queues > 1 {
            flags |= libc::IFF_MULTI_QUEUE;
        }
        // Later queues join the interface that the first one has created.
        if first {
            flags |= libc::IFF_TUN_EXCL;
        }
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        // SAFETY: TUNSETIFF takes an ifreq.
        unsafe { ioctl(&file, libc::TUNSETIFF, &mut request) }.map_err(refused)?;
        let mut header_bytes = VNET_TUNNEL_HEADER_BYTES as libc::c_int;
        // SAFETY: TUNSETVNETHDRSZ takes an int.
        unsafe { ioctl(&file, libc::TUNSETVNETHDRSZ, &mut header_bytes) }.map_err(refused)?;
        Ok(Self {
            file,
            joinable: Joinable::NONE,
            outer_shift: 0,
        })
    }

    /// Selects each flow's queue by [`flow_hash`](crate::flow_hash), modulo the number of queues,
    /// so that both directions of a flow, on both hosts, use the same lane. The setting belongs to
    /// the device: one call is enough.
    ///
    /// # Errors
    /// The kernel's error (EPERM without CAP_BPF, as in a user namespace; EINVAL before Linux
    /// 4.16). The kernel's default choice of queues then remains, which works, but may separate the
    /// two directions of a flow.
    pub fn steer_flows(&self) -> io::Result<()> {
        let program = steering::program()?;
        let mut fd = program.as_raw_fd();
        // SAFETY: TUNSETSTEERINGEBPF takes an int, the descriptor of a program, which the kernel
        // keeps open from then on.
        unsafe { ioctl(&self.file, SET_STEERING, &mut fd) }
    }

    /// Enables the `wanted` offloads that a real write proves; the interface must be up.
    ///
    /// The setting belongs to the device, the permitted writes to the queue: so it is called for
    /// each queue.
    pub fn enable_offloads(&mut self, wanted: TunOffloads) -> TunOffloads {
        let wanted = TunOffloads {
            // Its header is little-endian even where the rest of it is not.
            tunnel: wanted.tunnel && wanted.tso && cfg!(target_endian = "little"),
            ..wanted
        };
        // From most to least. The last one only needs the kernel's checksum flag, and proves
        // nothing. Kernels with tunnels have the other two.
        let candidates = [
            (true, true, true),
            (true, false, true),
            (true, true, false),
            (true, false, false),
            (false, true, false),
            (false, false, false),
        ]
        .map(|(tso, uso, tunnel)| TunOffloads { tso, uso, tunnel });
        let granted = candidates.into_iter().find(|candidate| {
            candidate.is_within(wanted)
                && self.set_offloads(*candidate).is_ok()
                && self.probe(*candidate).is_ok()
        });
        let granted = granted.unwrap_or(TunOffloads::NONE);
        self.joinable = Joinable {
            tcp: granted.tso,
            udp: granted.uso,
            tunnel: granted.tunnel,
        };
        granted
    }

    fn set_offloads(&self, offloads: TunOffloads) -> io::Result<()> {
        let mut flags = F_CSUM;
        if offloads.tso {
            flags |= F_TSO;
        }
        if offloads.uso {
            flags |= F_USO;
        }
        if offloads.tunnel {
            flags |= F_UDP_TUNNEL;
        }
        // SAFETY: TUNSETOFFLOAD takes its argument by value.
        let result = unsafe {
            libc::ioctl(
                self.file.as_raw_fd(),
                libc::TUNSETOFFLOAD as _,
                libc::c_ulong::from(flags),
            )
        };
        check(result).map(drop)
    }

    /// Writes one super-packet of each kind.
    fn probe(&mut self, offloads: TunOffloads) -> io::Result<()> {
        let (vnet, packet) = probe::super_packet(Gso::Tcp4);
        if offloads.tso {
            self.send(&vnet, &packet, &[])?;
        }
        let (vnet, packet) = probe::super_packet(Gso::UdpL4);
        if offloads.uso {
            self.send(&vnet, &packet, &[])?;
        }
        if offloads.tunnel {
            self.probe_tunnel()?;
        }
        Ok(())
    }

    /// Writes a tunnel's super-packet, and learns how the kernel wants its offset.
    ///
    /// Linux 6.17 and 6.18 demand an Ethernet header's length in front of the outer IP header, also
    /// of a TUN device, whose packets have none (`virtio_net_hdr_tnl_to_skb`). They use the offset
    /// for nothing else: the IP layer sets that of the UDP header itself.
    fn probe_tunnel(&mut self) -> io::Result<()> {
        let (vnet, packet) = probe::tunnel_super_packet();
        let mut outcome = Ok(());
        for shift in [0, ethernet::HEADER_BYTES as u16] {
            self.outer_shift = shift;
            outcome = self.send(&vnet, &packet, &[]);
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }
}

impl ClearPort for Tun {
    fn recv<'a>(&'a mut self, buffer: &'a mut [u8]) -> io::Result<(&'a mut [u8], usize)> {
        // The packet must follow the fields that it is described by; those of a tunnel follow from
        // the packet.
        let mut header = [0; VNET_TUNNEL_HEADER_BYTES];
        let (fields, packet) = buffer[..CLEAR_BUFFER_BYTES].split_at_mut(VNET_HEADER_BYTES);
        let bytes = self
            .file
            .read_vectored(&mut [IoSliceMut::new(&mut header), IoSliceMut::new(packet)])?;
        fields.copy_from_slice(&header[..VNET_HEADER_BYTES]);
        let bytes = bytes.saturating_sub(VNET_TUNNEL_HEADER_BYTES - VNET_HEADER_BYTES);
        Ok((buffer, bytes))
    }

    fn send(&mut self, vnet: &VnetHeader, headers: &[u8], payload: &[&[u8]]) -> io::Result<()> {
        debug_assert!(vnet.outer == Outer::None || vnet.gso != Gso::UdpL4);
        let vnet = vnet.to_tunnel_bytes(self.outer_shift);
        let mut parts: ArrayVec<IoSlice<'_>, { SEGMENTS_MAX + 2 }> = ArrayVec::new();
        parts.push(IoSlice::new(&vnet));
        if !headers.is_empty() {
            parts.push(IoSlice::new(headers));
        }
        parts.extend(payload.iter().map(|part| IoSlice::new(part)));
        self.file.write_vectored(&parts).map(drop)
    }

    fn joinable(&self) -> Joinable {
        self.joinable
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}

/// An ioctl with an argument.
///
/// # Safety
/// `argument` must be of the type that `request` takes.
unsafe fn ioctl<T>(file: &File, request: libc::Ioctl, argument: &mut T) -> io::Result<()> {
    // SAFETY: the argument outlives the call, and the caller guarantees its type.
    check(unsafe { libc::ioctl(file.as_raw_fd(), request, &raw mut *argument) }).map(drop)
}
