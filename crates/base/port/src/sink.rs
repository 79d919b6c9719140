//! A port that accepts, counts and discards everything: the far end of a benchmark.

use crate::{Batch, CipherPort, ClearPort, Sent, Train};
use std::io;
use std::os::fd::BorrowedFd;
use wire::coalesce::Joinable;
use wire::vnet::VnetHeader;

/// Discards packets and datagrams after counting them; never receives any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sink {
    /// Clear packets and super-packets, or datagrams.
    pub packets: u64,
    /// Their bytes, without virtio headers.
    pub bytes: u64,
}

impl ClearPort for Sink {
    fn recv<'a>(&'a mut self, _: &'a mut [u8]) -> io::Result<(&'a mut [u8], usize)> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    #[inline]
    fn send(&mut self, _: &VnetHeader, headers: &[u8], payload: &[&[u8]]) -> io::Result<()> {
        let payload = payload.iter().map(|part| part.len()).sum::<usize>();
        self.packets += 1;
        self.bytes += (headers.len() + payload) as u64;
        Ok(())
    }

    fn joinable(&self) -> Joinable {
        Joinable {
            tcp: true,
            udp: true,
        }
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl CipherPort for Sink {
    #[inline]
    fn send(&mut self, batch: &mut Batch) -> Sent {
        let mut sent = Sent::default();
        for train in batch.trains.drain(..) {
            sent.datagrams += Train::datagrams(&train);
            sent.bytes += train.bytes as u64;
        }
        self.packets += sent.datagrams;
        self.bytes += sent.bytes;
        sent
    }

    fn recv(&mut self, _: &mut Batch) -> io::Result<()> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn train_max(&self) -> usize {
        128
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
