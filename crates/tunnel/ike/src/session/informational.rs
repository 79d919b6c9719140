//! INFORMATIONAL: deletes, and the check that the peer lives (RFC 7296 section 1.4).

use super::{Closed, Output, Phase, Session, error_of};
use crate::message::{Delete, Exchange, NotifyType, Payload, Protocol};
use std::time::Duration;

impl Session {
    pub(super) fn send_delete(&mut self, now: Duration, out: &mut Vec<Output>) {
        let delete = Payload::Delete(Delete::Ike);
        self.is_delete_sent = true;
        self.request(now, Exchange::INFORMATIONAL, &[delete], out);
    }

    pub(super) const fn is_delete_sent(&self) -> bool {
        self.is_delete_sent
    }

    pub(super) fn informational_request(&mut self, payloads: &[Payload], out: &mut Vec<Output>) {
        if matches!(self.phase, Phase::Authenticating(_)) {
            // The peer is not authenticated: it may only learn that it was heard.
            self.respond(Exchange::INFORMATIONAL, &[], out);
            return;
        }
        // The initiator refuses the responder after IKE_AUTH (RFC 7296 section 2.21.2).
        let failed = NotifyType::AUTHENTICATION_FAILED;
        if error_of(payloads) == Some(failed) {
            self.respond(Exchange::INFORMATIONAL, &[], out);
            self.close(Closed::RefusedByPeer(failed), out);
            return;
        }
        let deletes = payloads.iter().filter_map(|payload| match payload {
            Payload::Delete(delete) => Some(delete),
            _ => None,
        });
        let mut is_closed = false;
        let mut answered = Vec::new();
        for delete in deletes {
            match delete {
                Delete::Ike => is_closed = true,
                Delete::Child { protocol, spis } if *protocol == Protocol::ESP => {
                    answered.extend(self.delete_children(spis, out));
                }
                // There is no AH here.
                Delete::Child { .. } => {}
            }
        }
        // The response to the deletion of an IKE SA is empty; to others it has this end's halves.
        let mut response = Vec::new();
        if !is_closed && !answered.is_empty() {
            response.push(Payload::Delete(Delete::Child {
                protocol: Protocol::ESP,
                spis: answered,
            }));
        }
        self.respond(Exchange::INFORMATIONAL, &response, out);
        if is_closed {
            // Both ends deleted at the same time: the order of this end is carried out.
            let is_ours = matches!(self.phase, Phase::Deleting);
            self.close(
                if is_ours {
                    Closed::Deleted
                } else {
                    Closed::ByPeer
                },
                out,
            );
        }
    }

    /// Removes the child SAs with these SPIs to the peer; returns the SPIs to this end.
    fn delete_children(&mut self, outbound: &[u32], out: &mut Vec<Output>) -> Vec<u32> {
        let mut inbound = Vec::new();
        self.children.retain(|child| {
            let is_deleted = outbound.contains(&child.outbound_spi);
            if is_deleted {
                inbound.push(child.inbound_spi);
                out.push(Output::ChildDown(child.inbound_spi));
            }
            !is_deleted
        });
        inbound
    }
}
