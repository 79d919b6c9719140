//! BPF programs for the kernel, by bpf(2): an assembler (RFC 9669), the loader, and attaching.

use crate::kernel;
use std::cell::UnsafeCell;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

// Commands of linux/bpf.h.
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const PROG_TEST_RUN: libc::c_int = 10;
const LINK_CREATE: libc::c_int = 28;

// Types and flags of linux/bpf.h.
const MAP_TYPE_ARRAY: u32 = 2;
const MAP_MMAPABLE: u32 = 1 << 10;
/// A program for the frames of an interface's traffic control.
pub(crate) const PROG_TYPE_SCHED_CLS: u32 = 3;

/// A program under construction: instructions, and the targets of forward jumps. `P` names the
/// targets.
#[derive(Debug)]
pub(crate) struct Assembly<P> {
    instructions: Vec<Instruction>,
    jumps: Vec<(usize, P)>,
    places: Vec<(P, usize)>,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

// Opcodes (RFC 9669 §3 to §5) that the programs use.
pub(crate) const LOAD_64: u8 = 0x18;
pub(crate) const LOAD_U32: u8 = 0x61;
pub(crate) const LOAD_U16: u8 = 0x69;
pub(crate) const LOAD_U8: u8 = 0x71;
/// Loads from the packet into r0, in native byte order; the program ends with 0 if the packet is
/// too short. Takes the context in r6, and clobbers r1 to r5.
pub(crate) const PACKET_U32: u8 = 0x20;
pub(crate) const PACKET_U16: u8 = 0x28;
pub(crate) const PACKET_U8: u8 = 0x30;
/// As above, at an offset from a register.
pub(crate) const PACKET_U16_AT: u8 = 0x48;
pub(crate) const STORE_U32: u8 = 0x63;
pub(crate) const ADD: u8 = 0x07;
pub(crate) const ADD_REGISTER: u8 = 0x0f;
pub(crate) const MULTIPLY_REGISTER: u8 = 0x2f;
pub(crate) const AND: u8 = 0x57;
pub(crate) const SHIFT_LEFT: u8 = 0x67;
pub(crate) const SHIFT_RIGHT: u8 = 0x77;
pub(crate) const XOR_REGISTER: u8 = 0xaf;
pub(crate) const SET: u8 = 0xb7;
pub(crate) const COPY: u8 = 0xbf;
pub(crate) const TO_BIG_ENDIAN: u8 = 0xdc;
pub(crate) const JUMP: u8 = 0x05;
pub(crate) const IF_EQUAL_REGISTER: u8 = 0x1d;
pub(crate) const IF_ABOVE: u8 = 0x2d;
pub(crate) const IF_ABOVE_VALUE: u8 = 0x25;
pub(crate) const IF_NOT_ABOVE: u8 = 0xbd;
pub(crate) const IF_NOT_ABOVE_VALUE: u8 = 0xb5;
pub(crate) const IF_EQUAL: u8 = 0x15;
pub(crate) const IF_NOT_EQUAL: u8 = 0x55;
pub(crate) const CALL: u8 = 0x85;
pub(crate) const EXIT: u8 = 0x95;

impl<P: Copy + PartialEq> Assembly<P> {
    pub(crate) const fn new() -> Self {
        Self {
            instructions: Vec::new(),
            jumps: Vec::new(),
            places: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, code: u8, target: u8, source: u8, offset: i16, immediate: i32) {
        // Bit fields of C, in the order of the machine (RFC 9669 §3).
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

    pub(crate) fn jump(&mut self, code: u8, target: u8, source: u8, immediate: i32, to: P) {
        self.jumps.push((self.instructions.len(), to));
        self.add(code, target, source, 0, immediate);
    }

    pub(crate) fn place(&mut self, place: P) {
        self.places.push((place, self.instructions.len()));
    }

    /// Loads a register with 64 bits.
    pub(crate) fn set_64(&mut self, target: u8, value: u64) {
        self.add(LOAD_64, target, 0, 0, value as i32);
        // The second half of a wide instruction (RFC 9669 §3.2): its code is zero.
        self.add(0, 0, 0, 0, (value >> 32) as i32);
    }

    pub(crate) fn finish(mut self) -> Vec<Instruction> {
        for (at, to) in self.jumps {
            let place = self.places.iter().find(|(place, _)| *place == to);
            let target = place.expect("every place of a program is set").1;
            // Relative to the next instruction; a program for a few ports is short.
            self.instructions[at].offset = (target - at - 1) as i16;
        }
        self.instructions
    }
}

// The parts of `union bpf_attr` in use; the kernel treats the rest as zero.

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
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

#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: RawFd,
    result: u32,
    bytes_in: u32,
    bytes_out: u32,
    frame_in: u64,
    frame_out: u64,
    repeat: u32,
    duration_ns: u32,
    context: [u64; 3],
}

/// Creates an array map, for example of sockets.
pub(crate) fn new_map(map_type: u32, entries: u32) -> io::Result<OwnedFd> {
    let map = MapCreate {
        map_type,
        key_bytes: 4,
        value_bytes: 4,
        entries,
        flags: 0,
    };
    new_fd(MAP_CREATE, &map)
}

/// Creates memory of this size that a program and this process share, once mapped.
pub(crate) fn new_shared(bytes: u32) -> io::Result<OwnedFd> {
    let map = MapCreate {
        map_type: MAP_TYPE_ARRAY,
        key_bytes: 4,
        value_bytes: bytes,
        entries: 1,
        flags: MAP_MMAPABLE,
    };
    new_fd(MAP_CREATE, &map)
}

/// Sets a map's element to a descriptor.
pub(crate) fn set(map: &OwnedFd, key: u32, value: RawFd) -> io::Result<()> {
    let update = MapUpdate {
        map: map.as_raw_fd(),
        _pad: 0,
        key: ptr::from_ref(&key) as u64,
        value: ptr::from_ref(&value) as u64,
        flags: 0,
    };
    bpf(MAP_UPDATE_ELEM, &update).map(drop)
}

/// Loads a program, which the kernel's verifier may reject.
pub(crate) fn load(
    prog_type: u32,
    attach_type: u32,
    program: &[Instruction],
) -> io::Result<OwnedFd> {
    // The helpers are available under every licence, but the kernel requires one.
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

/// Attaches a program to an interface for as long as the descriptor is open.
pub(crate) fn attach(
    program: &OwnedFd,
    interface: u32,
    attach_type: u32,
    flags: u32,
) -> io::Result<OwnedFd> {
    let link = LinkCreate {
        program: program.as_raw_fd(),
        interface,
        attach_type,
        flags,
    };
    new_fd(LINK_CREATE, &link)
}

/// Runs a program on an Ethernet frame and returns its result.
pub(crate) fn run(program: &OwnedFd, frame: &[u8]) -> io::Result<u32> {
    // The kernel writes the result into the attributes, which are passed by a shared reference.
    let run = UnsafeCell::new(TestRun {
        program: program.as_raw_fd(),
        bytes_in: frame.len() as u32,
        frame_in: frame.as_ptr() as u64,
        ..TestRun::default()
    });
    bpf(PROG_TEST_RUN, &run)?;
    Ok(run.into_inner().result)
}

fn new_fd<A>(command: libc::c_int, attributes: &A) -> io::Result<OwnedFd> {
    let fd = bpf(command, attributes)?;
    // SAFETY: the kernel has just created this descriptor, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `attributes` must be of the type that `command` takes; every address in it must be valid during
/// the call.
fn bpf<A>(command: libc::c_int, attributes: &A) -> io::Result<libc::c_int> {
    // SAFETY: the attributes outlive the call, and their size is passed; the callers are in this
    // file, and each address in them is of a value that outlives the call.
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
