//! A worker: one lane, both directions, one thread.

use crate::counters::{Counters, Tally};
use crate::inbound::{Inbound, InboundKeys};
use crate::outbound::Outbound;
use port::{CipherPort, ClearPort, Stop, Waiter};
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

    /// Sets whether the worker polls instead of sleeping when idle: polling occupies a whole core,
    /// and saves each packet on a quiet link the wake-up latency.
    #[must_use]
    pub fn with_busy_poll(self, busy_poll: bool) -> Self {
        Self { busy_poll, ..self }
    }

    /// The lane's counters, for readers on other threads.
    #[must_use]
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// Moves pending packets in both directions; returns whether there were any.
    ///
    /// # Errors
    /// When a port fails.
    pub fn step(&mut self) -> io::Result<bool> {
        self.step_from(true)
    }

    /// Takes a step, without the clear side if that is known to be empty.
    fn step_from(&mut self, clear_too: bool) -> io::Result<bool> {
        let (clear, cipher, tally) = (&mut self.clear, &mut self.cipher, &mut self.tally);
        // Each direction has a turn of limited length, so a flood on one side cannot starve the
        // other.
        let sealed = clear_too && self.outbound.run(clear, cipher, tally)?;
        let opened = self.inbound.run(clear, cipher, tally)?;
        let any = sealed || opened;
        if any {
            tally.clear_missed = clear.missed();
            // Once a batch: the counters are read about once a second, and their cache lines are
            // shared.
            self.counters.publish(&self.tally);
            debug_assert!(
                self.tally.balances(),
                "a packet is unaccounted for: {:?}",
                self.tally
            );
        }
        Ok(any)
    }

    /// Runs until `stop` is raised.
    ///
    /// # Errors
    /// When a port fails.
    pub fn run(mut self, stop: &Stop) -> io::Result<()> {
        let mut waiter = Waiter::<3>::new()?;
        let mut clear_too = true;
        while !stop.is_raised() {
            if self.step_from(clear_too)? || !clear_too {
                clear_too = true;
            } else if self.busy_poll {
                // Lets another thread of this core run: it may produce the next packet.
                std::thread::yield_now();
            } else {
                // A lane without packets would never report that it has taken its new keys. While
                // it waits it counts as up to date, since it looks for new keys before it seals
                // again.
                self.outbound.waits(true);
                let ready = waiter.wait([
                    self.clear.readable(),
                    self.cipher.readable(),
                    Some(stop.as_fd()),
                ])?;
                self.outbound.waits(false);
                // A packet on a quiet link is opened without polling the clear side first.
                clear_too = ready.has(0);
            }
        }
        Ok(())
    }
}
