//! A batch of small frames sent by a program in the kernel.
//!
//! By the packet socket each frame costs a message's work, and on a virtual link an interrupt in
//! software for the other end. This program finds the batch in memory that it shares with the port,
//! and passes frame after frame to the interface; then one interrupt receives all of them. It is
//! executed once for each batch (BPF_PROG_TEST_RUN of bpf(2)) with a frame of the kernel's, into
//! which it copies each of ours, to send a clone of it (bpf_clone_redirect): the same way through
//! qdisc and taps as from the packet socket.
//!
//! Needs CAP_BPF and CAP_NET_ADMIN, and Linux 5.5 for arrays in shared memory.

use super::ETHERNET_BYTES;
use super::gathered::{
    CONTROL_BYTES, FRAME_AT, GATHERED_BYTES_MAX, GATHERED_FRAMES_MAX, Gathered, LOST_AT,
    MEMORY_BYTES, STRIDE_BYTES, WAITING_AT,
};
use crate::bpf::{
    self, ADD, Assembly, CALL, COPY, EXIT, IF_ABOVE_VALUE, IF_EQUAL, IF_EQUAL_REGISTER,
    IF_NOT_ABOVE_VALUE, IF_NOT_EQUAL, Instruction, LOAD_64, LOAD_U32, PROG_TYPE_SCHED_CLS, SET,
    STORE_U32,
};
use crate::kernel::Mapping;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

// Types and helpers of linux/bpf.h.
const ATTACH_NONE: u32 = 0;
const PSEUDO_MAP_VALUE: u8 = 2;
const HELPER_SKB_STORE_BYTES: i32 = 9;
const HELPER_CLONE_REDIRECT: i32 = 13;
const HELPER_SKB_CHANGE_TAIL: i32 = 38;

/// The content of the kernel's frame; any that it accepts.
const BLANK: [u8; 60] = [0; 60];

/// The program for an interface.
#[derive(Debug)]
pub(super) struct BatchProgram {
    program: OwnedFd,
}

impl BatchProgram {
    /// Loads the program, with the memory that it shares.
    pub(super) fn load(interface: u32) -> io::Result<(Self, Gathered)> {
        let shared = bpf::new_shared(MEMORY_BYTES as u32)?;
        let memory = Mapping::of_map(&shared, MEMORY_BYTES)?;
        let program = bpf::load(
            PROG_TYPE_SCHED_CLS,
            ATTACH_NONE,
            &send_batch(&shared, interface),
        )?;
        Ok((Self { program }, Gathered::new(memory)))
    }

    /// Sends all waiting frames; returns how many of them were lost.
    ///
    /// # Errors
    /// When the program could not be run: then none has been sent.
    pub(super) fn send(&self, gathered: &mut Gathered) -> io::Result<u64> {
        gathered.announce();
        bpf::run(&self.program, &BLANK)?;
        Ok(gathered.lost())
    }
}

/// Targets of the program's jumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Store(usize),
    Lost(usize),
    Next(usize),
    End,
}

/// For each waiting frame:
/// `if change_tail(skb, length) || store_bytes(skb, 0, frame, length) || clone_redirect(skb)
/// { lost += 1 }`.
fn send_batch(shared: &OwnedFd, interface: u32) -> Vec<Instruction> {
    let mut code: Assembly<Place> = Assembly::new();
    // r6: the kernel's frame. r7: the memory. r8: a frame's length. r9: its slot.
    code.add(COPY, 6, 1, 0, 0);
    code.add(LOAD_64, 7, PSEUDO_MAP_VALUE, 0, shared.as_raw_fd());
    code.add(0, 0, 0, 0, 0);
    code.add(COPY, 9, 7, 0, 0);
    code.add(ADD, 9, 0, 0, CONTROL_BYTES as i32);
    for slot in 0..GATHERED_FRAMES_MAX {
        code.add(LOAD_U32, 1, 7, WAITING_AT as i16, 0);
        code.jump(IF_NOT_ABOVE_VALUE, 1, 0, slot as i32, Place::End);
        code.add(LOAD_U32, 8, 9, 0, 0);
        // The verifier wants to know that the frame is within its slot.
        let (min, max) = (ETHERNET_BYTES as i32, GATHERED_BYTES_MAX as i32);
        code.jump(IF_ABOVE_VALUE, 8, 0, max, Place::Lost(slot));
        code.jump(IF_NOT_ABOVE_VALUE, 8, 0, min - 1, Place::Lost(slot));
        // struct __sk_buff begins with its length.
        code.add(LOAD_U32, 2, 6, 0, 0);
        code.jump(IF_EQUAL_REGISTER, 8, 2, 0, Place::Store(slot));
        code.add(COPY, 1, 6, 0, 0);
        code.add(COPY, 2, 8, 0, 0);
        code.add(SET, 3, 0, 0, 0);
        code.add(CALL, 0, 0, 0, HELPER_SKB_CHANGE_TAIL);
        code.jump(IF_NOT_EQUAL, 0, 0, 0, Place::Lost(slot));
        code.place(Place::Store(slot));
        code.add(COPY, 1, 6, 0, 0);
        code.add(SET, 2, 0, 0, 0);
        code.add(COPY, 3, 9, 0, 0);
        code.add(ADD, 3, 0, 0, FRAME_AT as i32);
        code.add(COPY, 4, 8, 0, 0);
        code.add(SET, 5, 0, 0, 0);
        code.add(CALL, 0, 0, 0, HELPER_SKB_STORE_BYTES);
        code.jump(IF_NOT_EQUAL, 0, 0, 0, Place::Lost(slot));
        code.add(COPY, 1, 6, 0, 0);
        code.add(SET, 2, 0, 0, interface as i32);
        code.add(SET, 3, 0, 0, 0);
        code.add(CALL, 0, 0, 0, HELPER_CLONE_REDIRECT);
        code.jump(IF_EQUAL, 0, 0, 0, Place::Next(slot));
        code.place(Place::Lost(slot));
        code.add(LOAD_U32, 1, 7, LOST_AT as i16, 0);
        code.add(ADD, 1, 0, 0, 1);
        code.add(STORE_U32, 7, 1, LOST_AT as i16, 0);
        code.place(Place::Next(slot));
        code.add(ADD, 9, 0, 0, STRIDE_BYTES as i32);
    }
    code.place(Place::End);
    code.add(SET, 0, 0, 0, 0);
    code.add(EXIT, 0, 0, 0, 0);
    code.finish()
}
