//! The two halves of a lane, from static keys.

use crate::inbound::{Inbound, InboundKeys};
use crate::outbound::Outbound;
use crate::policy::Networks;
use engine::Selection;
use esp::{InboundSa, OutboundSa, WindowSize};
use keying::StaticKeys;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Makes both halves of a lane. All lanes share `keys`, which is off the packet path.
pub fn halves(
    keys: &Arc<Mutex<StaticKeys>>,
    selection: &Selection,
    lane: u16,
    window: WindowSize,
    networks: Networks,
) -> (Outbound, Inbound<LaneKeys>) {
    let sum = engine::checksum::fastest();
    let sa = lock(keys).outbound(selection.suite(), lane);
    let sa = OutboundSa::new(sa.spi, selection.transform(&sa.keymat));
    let keys = LaneKeys {
        keys: Arc::clone(keys),
        selection: selection.clone(),
        lane,
        window,
    };
    (Outbound::new(sa, sum), Inbound::new(keys, networks, sum))
}

/// Inbound SAs of one lane, from the static keys that all lanes share.
pub struct LaneKeys {
    keys: Arc<Mutex<StaticKeys>>,
    selection: Selection,
    lane: u16,
    window: WindowSize,
}

impl InboundKeys for LaneKeys {
    fn candidate(&mut self, spi: u32) -> Option<InboundSa> {
        let sa = lock(&self.keys).inbound(self.selection.suite(), spi, self.lane)?;
        Some(InboundSa::new(
            sa.spi,
            self.selection.transform(&sa.keymat),
            self.window,
        ))
    }

    fn confirmed(&mut self, spi: u32) {
        if let Err(error) = lock(&self.keys).note_peer_epoch(keying::epoch_of(spi)) {
            // Packets flow all the same; what is lost is that a restart here remembers the peer's epoch.
            eprintln!("warning: the peer's epoch cannot be recorded: {error}");
        }
    }
}

fn lock(keys: &Mutex<StaticKeys>) -> MutexGuard<'_, StaticKeys> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}
