//! The memory of a session that is established.

use super::{Secret, Session, Settings};
use std::sync::Arc;

impl Session {
    /// Frees what only the set-up needed: its keys and nonces, the keys of child SAs, which
    /// [`ChildUp`](super::Output::ChildUp) has handed over, and unused capacity.
    ///
    /// `settings` replace those of the set-up. Identities and authentication have no further use,
    /// so that many sessions can share one value. Does nothing until both ends are authenticated.
    pub fn compact(&mut self, settings: &Arc<Settings>) {
        if !self.is_established() {
            return;
        }
        self.settings = Arc::clone(settings);
        for channel in &mut self.channels {
            if let Some(keyed) = &mut channel.keyed {
                keyed.keys.auth = Default::default();
                keyed.transcript.initiator_nonce = Vec::new();
                keyed.transcript.responder_nonce = Vec::new();
            }
        }
        for child in &mut self.children {
            child.sa.inbound_keys = Secret::default();
            child.sa.outbound_keys = Secret::default();
            child.sa.local.shrink_to_fit();
            child.sa.remote.shrink_to_fit();
        }
        self.channels.shrink_to_fit();
        self.children.shrink_to_fit();
        self.orders.shrink_to_fit();
    }
}
