//! Ports joined in memory: the data path without kernel, privilege or clock.

use crate::{Batch, CipherPort, ClearPort, Sent, TRAIN_BYTES_MAX, Train};
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};
use wire::coalesce::Joinable;
use wire::vnet::VnetHeader;

/// Packets that wait at most; more are lost, as on a wire.
const QUEUE_MAX: usize = 4096;

#[derive(Debug, Clone, Default)]
struct Queue(Arc<Mutex<VecDeque<Vec<u8>>>>);

impl Queue {
    fn push(&self, packet: Vec<u8>) -> bool {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = queue.len() < QUEUE_MAX;
        if room {
            queue.push_back(packet);
        }
        room
    }

    fn pop(&self) -> io::Result<Vec<u8>> {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queue
            .pop_front()
            .ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }
}

/// One end of a clear link in memory.
#[derive(Debug)]
pub struct MemoryClearPort {
    rx: Queue,
    tx: Queue,
    joinable: Joinable,
}

/// Two clear ports; what one sends, the other receives.
#[must_use]
pub fn memory_clear_pair(joinable: Joinable) -> (MemoryClearPort, MemoryClearPort) {
    let (a, b) = (Queue::default(), Queue::default());
    let one = MemoryClearPort {
        rx: a.clone(),
        tx: b.clone(),
        joinable,
    };
    (
        one,
        MemoryClearPort {
            rx: b,
            tx: a,
            joinable,
        },
    )
}

impl ClearPort for MemoryClearPort {
    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let packet = self.rx.pop()?;
        buffer[..packet.len()].copy_from_slice(&packet);
        Ok(packet.len())
    }

    fn send(&mut self, vnet: &VnetHeader, headers: &[u8], payload: &[&[u8]]) -> io::Result<()> {
        let packet = [&vnet.to_bytes(), headers, &payload.concat()].concat();
        if self.tx.push(packet) {
            Ok(())
        } else {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    fn joinable(&self) -> Joinable {
        self.joinable
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// One end of a cipher link in memory.
#[derive(Debug)]
pub struct MemoryCipherPort {
    rx: Queue,
    tx: Queue,
}

/// Two cipher ports; what one sends, the other receives.
#[must_use]
pub fn memory_cipher_pair() -> (MemoryCipherPort, MemoryCipherPort) {
    let (a, b) = (Queue::default(), Queue::default());
    (
        MemoryCipherPort {
            rx: a.clone(),
            tx: b.clone(),
        },
        MemoryCipherPort { rx: b, tx: a },
    )
}

impl MemoryCipherPort {
    /// Sends one datagram as it is, which an eavesdropper or attacker would do.
    pub fn inject(&mut self, datagram: &[u8]) {
        self.tx.push(datagram.to_vec());
    }
}

impl CipherPort for MemoryCipherPort {
    fn send(&mut self, buffer: &[u8], trains: &[Train]) -> Sent {
        let mut sent = Sent::default();
        for train in trains {
            let bytes = &buffer[train.start..train.start + train.bytes];
            for datagram in bytes.chunks(train.datagram_bytes) {
                if self.tx.push(datagram.to_vec()) {
                    sent.datagrams += 1;
                    sent.bytes += datagram.len() as u64;
                } else {
                    sent.failed += 1;
                }
            }
        }
        sent
    }

    fn recv(&mut self, batch: &mut Batch) -> io::Result<()> {
        batch.filled.clear();
        for buffer in &mut batch.buffers {
            let Ok(datagram) = self.rx.pop() else { break };
            let bytes = datagram.len().min(TRAIN_BYTES_MAX);
            buffer[..bytes].copy_from_slice(&datagram[..bytes]);
            batch.filled.push((bytes, bytes));
        }
        if batch.filled.is_empty() {
            Err(io::ErrorKind::WouldBlock.into())
        } else {
            Ok(())
        }
    }

    fn train_max(&self) -> usize {
        64
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
