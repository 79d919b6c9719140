//! INFORMATIONAL: deletes, and the check that the peer lives (RFC 7296 section 1.4).

use super::child::State;
use super::{Closed, Exchange, Output, Purpose, Session, error_of};
use crate::message::{Delete, NotifyType, Payload, Protocol};
use std::time::Duration;

impl Session {
    pub(super) fn informational_request(
        &mut self,
        spi: u64,
        now: Duration,
        payloads: &[Payload],
        out: &mut Vec<Output>,
    ) {
        let exchange = Exchange::INFORMATIONAL;
        // The initiator refuses the responder after IKE_AUTH (RFC 7296 section 2.21.2).
        let failed = NotifyType::AUTHENTICATION_FAILED;
        if error_of(payloads) == Some(failed) {
            self.respond(spi, now, exchange, &[], out);
            self.close(Closed::RefusedByPeer(failed), out);
            return;
        }
        let deletes = payloads.iter().filter_map(|payload| match payload {
            Payload::Delete(delete) => Some(delete),
            _ => None,
        });
        let mut is_ike = false;
        let mut answered = Vec::new();
        for delete in deletes {
            match delete {
                Delete::Ike => is_ike = true,
                Delete::Child { protocol, spis } if *protocol == Protocol::ESP => {
                    answered.extend(self.delete_children(spis, out));
                }
                // There is no AH here.
                Delete::Child { .. } => {}
            }
        }
        // The response to the deletion of an IKE SA is empty; to others it has this end's halves.
        let mut response = Vec::new();
        if !is_ike && !answered.is_empty() {
            response.push(Payload::Delete(Delete::Child {
                protocol: Protocol::ESP,
                spis: answered,
            }));
        }
        self.respond(spi, now, exchange, &response, out);
        if is_ike {
            self.ike_deleted(spi, now, out);
        }
    }

    /// The peer deleted an IKE SA.
    fn ike_deleted(&mut self, spi: u64, now: Duration, out: &mut Vec<Output>) {
        if spi != self.current {
            self.drop_channel(spi, out);
            return;
        }
        let pending = self.channel(spi).and_then(|it| it.pending.as_ref());
        // The peer completed its rekeying and does not know of this end's, which is forgotten
        // (RFC 7296 section 2.25.2).
        if let Some(Purpose::Create(creating)) = pending.map(|it| &it.purpose)
            && let Some(rival) = creating.rival_ike()
            && self.channel(rival).is_some()
        {
            self.switch(rival, now);
            self.drop_channel(spi, out);
            return;
        }
        // Both ends deleted at the same time: the order of this end is carried out.
        let reason = if self.is_leaving {
            Closed::Deleted
        } else {
            Closed::ByPeer
        };
        self.close(reason, out);
    }

    /// Removes the child SAs with these SPIs to the peer. Returns the SPIs to this end, without
    /// those in a delete of this end that is under way (RFC 7296 section 2.25.1).
    fn delete_children(&mut self, outbound: &[u32], out: &mut Vec<Output>) -> Vec<u32> {
        let mut inbound = Vec::new();
        self.children.retain(|child| {
            let is_deleted = outbound.contains(&child.sa.outbound_spi);
            if is_deleted {
                if child.state != State::Deleting {
                    inbound.push(child.sa.inbound_spi);
                }
                out.push(Output::ChildDown(child.sa.inbound_spi));
            }
            !is_deleted
        });
        inbound
    }

    /// The peer responded to a delete.
    pub(super) fn child_deleted(&mut self, spi: u32, out: &mut Vec<Output>) {
        let former = self.children.len();
        self.children.retain(|it| it.sa.inbound_spi != spi);
        if self.children.len() < former {
            out.push(Output::ChildDown(spi));
        }
    }
}
