//! A worker: one lane, both directions, one thread.

use crate::counters::{Counters, Tally};
use crate::inbound::{Inbound, InboundKeys};
use crate::outbound::Outbound;
use arrayvec::ArrayVec;
use port::{CipherPort, ClearPort, Stop, wait_readable};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

/// One lane with its ports. Shares nothing on the packet path.
pub struct Worker<C, P, K> {
    clear: C,
    cipher: P,
    outbound: Outbound,
    inbound: Inbound<K>,
    tally: Tally,
    counters: Arc<Counters>,
    busy_poll: bool,
}

impl<C: ClearPort, P: CipherPort, K: InboundKeys> Worker<C, P, K> {
    /// A lane between two ports.
    pub fn new(clear: C, cipher: P, outbound: Outbound, inbound: Inbound<K>) -> Self {
        let (tally, counters) = (Tally::default(), Arc::default());
        Self {
            clear,
            cipher,
            outbound,
            inbound,
            tally,
            counters,
            busy_poll: false,
        }
    }

    /// The worker, which looks again at once instead of sleeping when there is nothing to do: it takes a whole core,
    /// and saves each packet on a quiet link the time that waking takes.
    #[must_use]
    pub fn with_busy_poll(self, busy_poll: bool) -> Self {
        Self { busy_poll, ..self }
    }

    /// The lane's counters, for readers on other threads.
    #[must_use]
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// Moves what is there in both directions; whether there was anything.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn step(&mut self) -> io::Result<bool> {
        let sealed = self
            .outbound
            .run(&mut self.clear, &mut self.cipher, &mut self.tally)?;
        let opened = self
            .inbound
            .run(&mut self.clear, &mut self.cipher, &mut self.tally)?;
        let any = sealed || opened;
        if any {
            self.counters.publish(&self.tally);
            debug_assert!(
                self.tally.balances(),
                "a packet is unaccounted for: {:?}",
                self.tally
            );
        }
        Ok(any)
    }

    /// Works until `stop` is raised.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn run(mut self, stop: &Stop) -> io::Result<()> {
        while !stop.is_raised() {
            if self.step()? {
                continue;
            }
            if self.busy_poll {
                // Whoever else could run on this core does: a packet may be what they make.
                std::thread::yield_now();
            } else {
                let fds = [
                    self.clear.readable(),
                    self.cipher.readable(),
                    Some(stop.as_fd()),
                ];
                let fds: ArrayVec<_, 3> = fds.into_iter().flatten().collect();
                wait_readable(&fds, None)?;
            }
        }
        Ok(())
    }
}
