//! A clear link in memory, for tests of lanes without kernel or privilege.

use port::{CLEAR_BUFFER_BYTES, CLEAR_ROOM_BYTES, ClearPort};
use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};
use wire::coalesce::Joinable;
use wire::vnet::{VNET_HEADER_BYTES, VnetHeader};

/// The two buffer lengths, and the number of each per direction: for packets of an Ethernet link,
/// and for super-packets.
const KINDS: [(usize, usize); 2] = [(2368, 2048), (CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES, 64)];

struct Slot {
    bytes: Box<[u8]>,
    length: usize,
}

impl Slot {
    fn kind(&self) -> usize {
        usize::from(self.bytes.len() > KINDS[0].0)
    }
}

/// One direction. Nothing is allocated after set-up.
struct Direction {
    full: VecDeque<Slot>,
    /// Free buffers of each length.
    spare: [Vec<Slot>; 2],
}

impl Direction {
    fn new() -> Arc<Mutex<Self>> {
        let spare = KINDS.map(|(bytes, count)| {
            let slot = || Slot {
                bytes: vec![0; bytes].into_boxed_slice(),
                length: 0,
            };
            std::iter::repeat_with(slot).take(count).collect()
        });
        let full = VecDeque::with_capacity(KINDS[0].1 + KINDS[1].1);
        Arc::new(Mutex::new(Self { full, spare }))
    }
}

/// One end of a clear link in memory.
pub(crate) struct MemoryClearPort {
    rx: Arc<Mutex<Direction>>,
    /// Has a byte for each packet in `rx`.
    arrived: PipeReader,
    /// The buffer lent last.
    lent: Option<Slot>,
    tx: Arc<Mutex<Direction>>,
    sent: PipeWriter,
    joinable: Joinable,
}

/// Two clear ports; what one sends, the other receives.
pub(crate) fn memory_clear_pair(joinable: Joinable) -> (MemoryClearPort, MemoryClearPort) {
    let (one, other) = (Direction::new(), Direction::new());
    let pipe = || io::pipe().expect("file descriptors for a pipe");
    let ((from_other, to_one), (from_one, to_other)) = (pipe(), pipe());
    let end = |rx: &Arc<_>, arrived, tx: &Arc<_>, sent| MemoryClearPort {
        rx: Arc::clone(rx),
        arrived,
        lent: None,
        tx: Arc::clone(tx),
        sent,
        joinable,
    };
    (
        end(&one, from_other, &other, to_other),
        end(&other, from_one, &one, to_one),
    )
}

impl ClearPort for MemoryClearPort {
    /// Lends the buffer that contains the packet.
    fn recv<'a>(&'a mut self, _: &'a mut [u8]) -> io::Result<(&'a mut [u8], usize)> {
        let slot = {
            let mut rx = self.rx.lock().expect("no end panicked");
            if let Some(slot) = self.lent.take() {
                rx.spare[slot.kind()].push(slot);
            }
            rx.full.pop_front().ok_or(io::ErrorKind::WouldBlock)?
        };
        self.arrived.read_exact(&mut [0])?;
        let slot = self.lent.insert(slot);
        Ok((&mut slot.bytes, slot.length))
    }

    /// A packet without room is lost, with [`io::ErrorKind::StorageFull`].
    fn send(&mut self, vnet: &VnetHeader, headers: &[u8], payload: &[&[u8]]) -> io::Result<()> {
        let parts = payload.iter().map(|part| part.len()).sum::<usize>();
        let length = VNET_HEADER_BYTES + headers.len() + parts;
        if length > CLEAR_BUFFER_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let kind = usize::from(length + CLEAR_ROOM_BYTES > KINDS[0].0);
        let mut tx = self.tx.lock().expect("no end panicked");
        let mut slot = tx.spare[kind].pop().ok_or(io::ErrorKind::StorageFull)?;
        slot.length = length;
        let mut room = &mut slot.bytes[..length];
        let vnet = vnet.to_bytes();
        for piece in [&vnet, headers].iter().chain(payload) {
            let (now, later) = room.split_at_mut(piece.len());
            now.copy_from_slice(piece);
            room = later;
        }
        tx.full.push_back(slot);
        drop(tx);
        self.sent.write_all(&[0])
    }

    fn joinable(&self) -> Joinable {
        self.joinable
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.arrived.as_fd())
    }
}
