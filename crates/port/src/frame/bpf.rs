//! Two small programs in the kernel, by bpf(2): one hands test frames to AF_XDP, one drops them once they are captured.
//!
//! Both know a test frame by its UDP target port, in IPv4 without options or fragments and in IPv6 without
//! extension headers; every other frame (ARP, neighbour discovery, control traffic) goes its way. A program
//! is attached by a link that the kernel takes away when its descriptor closes, however the process ends.

use crate::kernel;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

// Commands, types and attach points of linux/bpf.h.
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_SCHED_CLS: u32 = 3;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const ATTACH_TCX_INGRESS: u32 = 46;
const XDP_PASS: i32 = 2;
const TCX_NEXT: i32 = -1;
const TCX_DROP: i32 = 2;
const HELPER_SKB_PULL_DATA: i32 = 39;
const HELPER_REDIRECT_MAP: i32 = 51;
const PSEUDO_MAP_FD: u8 = 1;

/// Which of the two places in the driver's path an XDP program is attached at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum XdpMode {
    /// In the driver.
    Native,
    /// Behind it, on any driver.
    Generic,
}

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
        mode: XdpMode,
        queues: u32,
        udp_ports: &[u16],
    ) -> io::Result<Self> {
        let map = MapCreate {
            map_type: MAP_TYPE_XSKMAP,
            key_bytes: 4,
            value_bytes: 4,
            entries: queues,
        };
        let sockets = new_fd(MAP_CREATE, &map)?;
        let program = load(PROG_TYPE_XDP, ATTACH_XDP, &redirect(&sockets, udp_ports))?;
        let flags = match mode {
            XdpMode::Native => 1 << 2,
            XdpMode::Generic => 1 << 1,
        };
        let link = attach(&program, interface, ATTACH_XDP, flags)?;
        Ok(Self {
            sockets,
            _link: link,
        })
    }

    /// Sets the socket of a queue.
    pub(super) fn set(&self, queue: u32, socket: &impl AsRawFd) -> io::Result<()> {
        let value = socket.as_raw_fd();
        let update = MapUpdate {
            map: self.sockets.as_raw_fd(),
            _pad: 0,
            key: ptr::from_ref(&queue) as u64,
            value: ptr::from_ref(&value) as u64,
            flags: 0,
        };
        bpf(MAP_UPDATE_ELEM, &update).map(drop)
    }
}

/// Drops test frames behind the capture, before the stack: it would look for a socket, and answer that there is none.
#[derive(Debug)]
pub(super) struct DropCaptured {
    _link: OwnedFd,
}

impl DropCaptured {
    /// Attaches to an interface. Needs Linux 6.6.
    pub(super) fn attach(interface: u32, udp_ports: &[u16]) -> io::Result<Self> {
        let program = load(
            PROG_TYPE_SCHED_CLS,
            ATTACH_TCX_INGRESS,
            &drop_program(udp_ports),
        )?;
        let link = attach(&program, interface, ATTACH_TCX_INGRESS, 0)?;
        Ok(Self { _link: link })
    }
}

/// Forward jumps of a program, to places that are known when it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Parse,
    Ipv6,
    Ports,
    Miss,
    Hit,
}

/// A program in the making (RFC 9669): instructions, and where those with a forward jump go.
#[derive(Debug, Default)]
struct Assembly {
    instructions: Vec<Instruction>,
    jumps: Vec<(usize, Place)>,
    places: Vec<(Place, usize)>,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

// Opcodes (RFC 9669 §3 to §5) that the programs use.
const LOAD_64: u8 = 0x18;
const LOAD_U32: u8 = 0x61;
const LOAD_U16: u8 = 0x69;
const LOAD_U8: u8 = 0x71;
const ADD: u8 = 0x07;
const AND: u8 = 0x57;
const SET: u8 = 0xb7;
const COPY: u8 = 0xbf;
const TO_BIG_ENDIAN: u8 = 0xdc;
const JUMP: u8 = 0x05;
const IF_ABOVE: u8 = 0x2d;
const IF_NOT_ABOVE: u8 = 0xbd;
const IF_NOT_ABOVE_VALUE: u8 = 0xb5;
const IF_EQUAL: u8 = 0x15;
const IF_NOT_EQUAL: u8 = 0x55;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// Headers up to the end of UDP's, which the programs look at.
const IPV4_HEADERS_BYTES: i32 = 14 + 20 + 8;
const IPV6_HEADERS_BYTES: i32 = 14 + 40 + 8;

impl Assembly {
    fn add(&mut self, code: u8, target: u8, source: u8, offset: i16, immediate: i32) {
        let registers = if cfg!(target_endian = "little") {
            target | source << 4
        } else {
            target << 4 | source
        };
        self.instructions.push(Instruction {
            code,
            registers,
            offset,
            immediate,
        });
    }

    fn jump(&mut self, code: u8, target: u8, source: u8, immediate: i32, to: Place) {
        self.jumps.push((self.instructions.len(), to));
        self.add(code, target, source, 0, immediate);
    }

    fn place(&mut self, place: Place) {
        self.places.push((place, self.instructions.len()));
    }

    /// Loads r2 and r3 with where the frame begins and ends, from the context in r6.
    fn load_bounds(&mut self, start: i16, end: i16) {
        self.add(LOAD_U32, 2, 6, start, 0);
        self.add(LOAD_U32, 3, 6, end, 0);
    }

    /// Jumps where the frame (r2 to r3) has, or has not, at least `bytes`.
    fn jump_by_length(&mut self, code: u8, bytes: i32, to: Place) {
        self.add(COPY, 4, 2, 0, 0);
        self.add(ADD, 4, 0, 0, bytes);
        self.jump(code, 4, 3, 0, to);
    }

    /// Finds out whether the frame (r2 to r3) is a test frame; ends at `Hit` if it is.
    fn classify(&mut self, udp_ports: &[u16]) {
        let udp = i32::from(wire::headers::UDP);
        self.jump_by_length(IF_ABOVE, IPV4_HEADERS_BYTES, Place::Miss);
        self.add(LOAD_U16, 5, 2, 12, 0);
        self.jump(IF_EQUAL, 5, 0, network(0x86dd), Place::Ipv6);
        self.jump(IF_NOT_EQUAL, 5, 0, network(0x0800), Place::Miss);
        self.add(LOAD_U8, 5, 2, 14, 0);
        self.jump(IF_NOT_EQUAL, 5, 0, 0x45, Place::Miss);
        self.add(LOAD_U16, 5, 2, 20, 0);
        self.add(AND, 5, 0, 0, network(0x3fff));
        self.jump(IF_NOT_EQUAL, 5, 0, 0, Place::Miss);
        self.add(LOAD_U8, 5, 2, 23, 0);
        self.jump(IF_NOT_EQUAL, 5, 0, udp, Place::Miss);
        self.add(LOAD_U16, 5, 2, 36, 0);
        self.jump(JUMP, 0, 0, 0, Place::Ports);
        self.place(Place::Ipv6);
        self.jump_by_length(IF_ABOVE, IPV6_HEADERS_BYTES, Place::Miss);
        self.add(LOAD_U8, 5, 2, 20, 0);
        self.jump(IF_NOT_EQUAL, 5, 0, udp, Place::Miss);
        self.add(LOAD_U16, 5, 2, 56, 0);
        self.place(Place::Ports);
        self.add(TO_BIG_ENDIAN, 5, 0, 0, 16);
        // Ports in a row, as those of lanes are, are one distance from the first: below it, it is huge.
        for ports in udp_ports.chunk_by(|port, next| port.checked_add(1) == Some(*next)) {
            self.add(COPY, 4, 5, 0, 0);
            self.add(ADD, 4, 0, 0, -i32::from(ports[0]));
            let last = ports.len() as i32 - 1;
            self.jump(IF_NOT_ABOVE_VALUE, 4, 0, last, Place::Hit);
        }
        self.place(Place::Miss);
    }

    fn finish(mut self) -> Vec<Instruction> {
        for (at, to) in self.jumps {
            let place = self.places.iter().find(|(place, _)| *place == to);
            let target = place.expect("every place of a program is set").1;
            // Counted from the next instruction; a program of some ports is short.
            self.instructions[at].offset = (target - at - 1) as i16;
        }
        self.instructions
    }
}

/// A field of a frame as a load on this machine sees it.
fn network(field: u16) -> i32 {
    i32::from(field.to_be())
}

/// `return classify(frame) ? redirect(sockets[queue]) : XDP_PASS`.
fn redirect(sockets: &OwnedFd, udp_ports: &[u16]) -> Vec<Instruction> {
    let mut code = Assembly::default();
    code.add(COPY, 6, 1, 0, 0);
    // struct xdp_md: data, data_end, data_meta, ingress_ifindex, rx_queue_index.
    code.load_bounds(0, 4);
    code.classify(udp_ports);
    code.add(SET, 0, 0, 0, XDP_PASS);
    code.add(EXIT, 0, 0, 0, 0);
    code.place(Place::Hit);
    code.add(LOAD_64, 1, PSEUDO_MAP_FD, 0, sockets.as_raw_fd());
    code.add(0, 0, 0, 0, 0);
    code.add(LOAD_U32, 2, 6, 16, 0);
    // Where a queue has no socket.
    code.add(SET, 3, 0, 0, XDP_PASS);
    code.add(CALL, 0, 0, 0, HELPER_REDIRECT_MAP);
    code.add(EXIT, 0, 0, 0, 0);
    code.finish()
}

/// `return classify(frame) ? TCX_DROP : TCX_NEXT`.
fn drop_program(udp_ports: &[u16]) -> Vec<Instruction> {
    let mut code = Assembly::default();
    code.add(COPY, 6, 1, 0, 0);
    // struct __sk_buff: data and data_end. A long frame may have its headers elsewhere: they are pulled in.
    code.load_bounds(76, 80);
    code.jump_by_length(IF_NOT_ABOVE, IPV4_HEADERS_BYTES, Place::Parse);
    code.add(COPY, 1, 6, 0, 0);
    code.add(SET, 2, 0, 0, IPV6_HEADERS_BYTES);
    code.add(CALL, 0, 0, 0, HELPER_SKB_PULL_DATA);
    code.load_bounds(76, 80);
    code.place(Place::Parse);
    code.classify(udp_ports);
    code.add(SET, 0, 0, 0, TCX_NEXT);
    code.add(EXIT, 0, 0, 0, 0);
    code.place(Place::Hit);
    code.add(SET, 0, 0, 0, TCX_DROP);
    code.add(EXIT, 0, 0, 0, 0);
    code.finish()
}

// The parts of `union bpf_attr` that are used; the kernel takes the rest as zero.

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
}

#[repr(C)]
struct MapUpdate {
    map: RawFd,
    _pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgLoad {
    prog_type: u32,
    instructions: u32,
    start: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    expected_attach_type: u32,
}

#[repr(C)]
struct LinkCreate {
    program: RawFd,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

fn load(prog_type: u32, attach_type: u32, program: &[Instruction]) -> io::Result<OwnedFd> {
    // The helpers are open to every licence; the kernel wants one named.
    let license = c"Dual MIT/GPL";
    let load = ProgLoad {
        prog_type,
        instructions: program.len() as u32,
        start: program.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 0,
        log_bytes: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: *b"cipherbench\0\0\0\0\0",
        interface: 0,
        expected_attach_type: attach_type,
    };
    new_fd(PROG_LOAD, &load)
}

fn attach(program: &OwnedFd, interface: u32, attach_type: u32, flags: u32) -> io::Result<OwnedFd> {
    let link = LinkCreate {
        program: program.as_raw_fd(),
        interface,
        attach_type,
        flags,
    };
    new_fd(LINK_CREATE, &link)
}

fn new_fd<A>(command: libc::c_int, attributes: &A) -> io::Result<OwnedFd> {
    let fd = bpf(command, attributes)?;
    // SAFETY: the kernel just made this descriptor, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `attributes` must be what `command` takes; every address in it must be good for the call.
fn bpf<A>(command: libc::c_int, attributes: &A) -> io::Result<libc::c_int> {
    // SAFETY: the attributes outlive the call, and their size is given; the callers are in this file, and each
    // address in them is of a value that outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            ptr::from_ref(attributes),
            size_of::<A>(),
        )
    };
    kernel::check(result as libc::c_int)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_in_a_row_cost_no_more_than_one() {
        let lanes: Vec<u16> = (4500..4500 + 4096).collect();
        let one = drop_program(&lanes[..1]).len();
        assert_eq!(drop_program(&lanes).len(), one);
        assert!(drop_program(&[4500, 4502, 65_535]).len() > one);
    }
}
