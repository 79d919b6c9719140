//! Two kernel programs: one redirects test frames to AF_XDP, one drops them after they are
//! captured.
//!
//! Both recognise a test frame by its UDP target port (if a key exchange shares the port, also by
//! the first word behind it), or as bare ESP by its IP protocol; in IPv4 without options or
//! fragments and in IPv6 without extension headers. Every other frame (ARP, neighbour discovery,
//! control traffic) passes. A program is attached by a link that the kernel removes when its
//! descriptor closes, however the process ends.

use super::wanted::{Beside, OpenFrames, Packets};
use super::xdp_mode::XdpAttach;
use crate::bpf::{
    self, ADD, AND, Assembly, CALL, COPY, EXIT, IF_ABOVE, IF_EQUAL, IF_NOT_ABOVE,
    IF_NOT_ABOVE_VALUE, IF_NOT_EQUAL, Instruction, JUMP, LOAD_64, LOAD_U8, LOAD_U16, LOAD_U32,
    PROG_TYPE_SCHED_CLS, SET, TO_BIG_ENDIAN,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use wire::headers::{ESP, UDP};

// Types and attach points of linux/bpf.h.
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const ATTACH_TCX_INGRESS: u32 = 46;
const XDP_PASS: i32 = 2;
const TCX_NEXT: i32 = -1;
const TCX_DROP: i32 = 2;
const HELPER_SKB_PULL_DATA: i32 = 39;
const HELPER_REDIRECT_MAP: i32 = 51;
const PSEUDO_MAP_FD: u8 = 1;

/// Sends the frames of each queue to the AF_XDP socket set for it.
#[derive(Debug)]
pub(super) struct XdpRedirect {
    sockets: OwnedFd,
    _link: OwnedFd,
}

impl XdpRedirect {
    /// Attaches to an interface with `queues` receive queues.
    pub(super) fn attach(
        interface: u32,
        attach: XdpAttach,
        queues: u32,
        wanted: &OpenFrames<'_>,
    ) -> io::Result<Self> {
        let sockets = bpf::new_map(MAP_TYPE_XSKMAP, queues)?;
        let program = bpf::load(
            PROG_TYPE_XDP,
            ATTACH_XDP,
            &redirect(&sockets, wanted.packets),
        )?;
        let flags = match attach {
            XdpAttach::Native => 1 << 2,
            XdpAttach::Generic => 1 << 1,
        };
        let link = bpf::attach(&program, interface, ATTACH_XDP, flags)?;
        Ok(Self {
            sockets,
            _link: link,
        })
    }

    /// Sets the socket of a queue.
    pub(super) fn set(&self, queue: u32, socket: &impl AsRawFd) -> io::Result<()> {
        bpf::set(&self.sockets, queue, socket.as_raw_fd())
    }
}

/// A program that drops frames after the capture, before the stack.
#[derive(Debug)]
pub(crate) struct DropCaptured {
    _link: OwnedFd,
}

impl DropCaptured {
    /// Drops an interface's test frames: the stack would look for a socket and, without one, reply
    /// with ICMP. Needs Linux 6.6.
    pub(super) fn test_frames(interface: u32, wanted: &OpenFrames<'_>) -> io::Result<Self> {
        Self::attach(interface, &drop_program(wanted.packets))
    }

    /// Drops every frame of an interface: the stack sees nothing of the link. Needs Linux 6.6.
    pub(crate) fn all(interface: u32) -> io::Result<Self> {
        let mut code: Assembly<Place> = Assembly::new();
        code.add(SET, 0, 0, 0, TCX_DROP);
        code.add(EXIT, 0, 0, 0, 0);
        Self::attach(interface, &code.finish())
    }

    fn attach(interface: u32, code: &[Instruction]) -> io::Result<Self> {
        let program = bpf::load(PROG_TYPE_SCHED_CLS, ATTACH_TCX_INGRESS, code)?;
        let link = bpf::attach(&program, interface, ATTACH_TCX_INGRESS, 0)?;
        Ok(Self { _link: link })
    }
}

/// Targets of a program's forward jumps, resolved when it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Parse,
    Ipv6,
    Ports,
    Miss,
    Hit,
}

/// Headers up to the end of UDP's, which the programs read; ESP's has the same length.
const IPV4_HEADERS_BYTES: i32 = 14 + 20 + 8;
const IPV6_HEADERS_BYTES: i32 = 14 + 40 + 8;
/// From UDP's target port to the end of its header.
const UDP_PORT_BEFORE_END: i16 = 6;
/// SPI, or WireGuard's type and three zeroes.
const WORD_BYTES: i32 = 4;
/// The word of WireGuard's transport data as this machine loads it.
const TRANSPORT: i32 = i32::from_ne_bytes([4, 0, 0, 0]);

impl Assembly<Place> {
    /// Loads r2 and r3 with the frame's start and end, from the context in r6.
    fn load_bounds(&mut self, start: i16, end: i16) {
        self.add(LOAD_U32, 2, 6, start, 0);
        self.add(LOAD_U32, 3, 6, end, 0);
    }

    /// Jumps if the frame (r2 to r3) has, or does not have, at least `bytes`.
    fn jump_by_length(&mut self, code: u8, bytes: i32, to: Place) {
        self.add(COPY, 4, 2, 0, 0);
        self.add(ADD, 4, 0, 0, bytes);
        self.jump(code, 4, 3, 0, to);
    }

    /// Loads r8 with the first word behind headers of that length, or with 0 from a shorter frame,
    /// and continues at `Ports`.
    fn load_word(&mut self, headers_bytes: i32) {
        self.add(SET, 8, 0, 0, 0);
        self.jump_by_length(IF_ABOVE, headers_bytes + WORD_BYTES, Place::Ports);
        self.add(LOAD_U32, 8, 2, headers_bytes as i16, 0);
    }

    /// Loads r5 with the UDP target port in headers of that length, and, if `packets` needs it, r8
    /// with the word behind them.
    fn load_port(&mut self, packets: Packets<'_>, headers_bytes: i32) {
        if matches!(packets, Packets::BareEsp) {
            return;
        }
        self.add(
            LOAD_U16,
            5,
            2,
            headers_bytes as i16 - UDP_PORT_BEFORE_END,
            0,
        );
        if matches!(packets, Packets::UdpBeside(..)) {
            self.load_word(headers_bytes);
        }
    }

    /// Classifies the frame (r2 to r3); jumps to `Hit` if it is a test frame.
    fn classify(&mut self, packets: Packets<'_>) {
        let protocol = i32::from(match packets {
            Packets::Udp(_) | Packets::UdpBeside(..) => UDP,
            Packets::BareEsp => ESP,
        });
        // The verifier permits loads only below a bound that was compared with the end of the
        // frame.
        self.jump_by_length(IF_ABOVE, IPV4_HEADERS_BYTES, Place::Miss);
        self.add(LOAD_U16, 5, 2, 12, 0);
        self.jump(IF_EQUAL, 5, 0, network(0x86dd), Place::Ipv6);
        self.jump(IF_NOT_EQUAL, 5, 0, network(0x0800), Place::Miss);
        self.add(LOAD_U8, 5, 2, 14, 0);
        // Version 4 and a header of five words: with options the port would be elsewhere.
        self.jump(IF_NOT_EQUAL, 5, 0, 0x45, Place::Miss);
        self.add(LOAD_U16, 5, 2, 20, 0);
        self.add(AND, 5, 0, 0, network(0x3fff));
        self.jump(IF_NOT_EQUAL, 5, 0, 0, Place::Miss);
        self.add(LOAD_U8, 5, 2, 23, 0);
        self.jump(IF_NOT_EQUAL, 5, 0, protocol, Place::Miss);
        self.load_port(packets, IPV4_HEADERS_BYTES);
        self.jump(JUMP, 0, 0, 0, Place::Ports);
        self.place(Place::Ipv6);
        self.jump_by_length(IF_ABOVE, IPV6_HEADERS_BYTES, Place::Miss);
        self.add(LOAD_U8, 5, 2, 20, 0);
        self.jump(IF_NOT_EQUAL, 5, 0, protocol, Place::Miss);
        self.load_port(packets, IPV6_HEADERS_BYTES);
        self.place(Place::Ports);
        match packets {
            Packets::Udp(ports) => self.compare_port(ports),
            Packets::UdpBeside(ports, beside) => {
                match beside {
                    // IKE in UDP begins with four zero bytes in place of an SPI (RFC 3948 §2.2).
                    Beside::Ike => self.jump(IF_EQUAL, 8, 0, 0, Place::Miss),
                    Beside::WireGuard => self.jump(IF_NOT_EQUAL, 8, 0, TRANSPORT, Place::Miss),
                }
                self.compare_port(ports);
            }
            Packets::BareEsp => self.jump(JUMP, 0, 0, 0, Place::Hit),
        }
        self.place(Place::Miss);
    }

    /// Jumps to `Hit` if the port in r5 is one of these.
    fn compare_port(&mut self, ports: &[u16]) {
        self.add(TO_BIG_ENDIAN, 5, 0, 0, 16);
        // Consecutive ports, as lanes have, need one comparison of the distance from the first: a
        // port below it wraps to a huge distance.
        for ports in ports.chunk_by(|port, next| port.checked_add(1) == Some(*next)) {
            self.add(COPY, 4, 5, 0, 0);
            self.add(ADD, 4, 0, 0, -i32::from(ports[0]));
            let last = ports.len() as i32 - 1;
            self.jump(IF_NOT_ABOVE_VALUE, 4, 0, last, Place::Hit);
        }
    }
}

/// A field of a frame as this machine loads it.
fn network(field: u16) -> i32 {
    i32::from(field.to_be())
}

/// `return classify(frame) ? redirect(sockets[queue]) : XDP_PASS`.
fn redirect(sockets: &OwnedFd, packets: Packets<'_>) -> Vec<Instruction> {
    let mut code = Assembly::new();
    code.add(COPY, 6, 1, 0, 0);
    // struct xdp_md: data, data_end, data_meta, ingress_ifindex, rx_queue_index.
    code.load_bounds(0, 4);
    code.classify(packets);
    code.add(SET, 0, 0, 0, XDP_PASS);
    code.add(EXIT, 0, 0, 0, 0);
    code.place(Place::Hit);
    code.add(LOAD_64, 1, PSEUDO_MAP_FD, 0, sockets.as_raw_fd());
    code.add(0, 0, 0, 0, 0);
    code.add(LOAD_U32, 2, 6, 16, 0);
    // For a queue without socket.
    code.add(SET, 3, 0, 0, XDP_PASS);
    code.add(CALL, 0, 0, 0, HELPER_REDIRECT_MAP);
    code.add(EXIT, 0, 0, 0, 0);
    code.finish()
}

/// `return classify(frame) ? TCX_DROP : TCX_NEXT`.
fn drop_program(packets: Packets<'_>) -> Vec<Instruction> {
    let mut code = Assembly::new();
    code.add(COPY, 6, 1, 0, 0);
    // struct __sk_buff: data and data_end. A long frame may have its headers elsewhere, so they are
    // pulled in.
    code.load_bounds(76, 80);
    code.jump_by_length(IF_NOT_ABOVE, IPV4_HEADERS_BYTES + WORD_BYTES, Place::Parse);
    code.add(COPY, 1, 6, 0, 0);
    code.add(SET, 2, 0, 0, IPV6_HEADERS_BYTES + WORD_BYTES);
    code.add(CALL, 0, 0, 0, HELPER_SKB_PULL_DATA);
    code.load_bounds(76, 80);
    code.place(Place::Parse);
    code.classify(packets);
    code.add(SET, 0, 0, 0, TCX_NEXT);
    code.add(EXIT, 0, 0, 0, 0);
    code.place(Place::Hit);
    code.add(SET, 0, 0, 0, TCX_DROP);
    code.add(EXIT, 0, 0, 0, 0);
    code.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_ports_cost_no_more_than_one() {
        let lanes: Vec<u16> = (4500..4500 + 4096).collect();
        let length = |udp_ports: &[u16]| drop_program(Packets::Udp(udp_ports)).len();
        let one = length(&lanes[..1]);
        assert_eq!(length(&lanes), one);
        assert!(length(&[4500, 4502, 65_535]) > one);
    }
}
