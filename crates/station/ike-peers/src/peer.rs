//! One peer, and the words for its failures.

use crate::tally::Reason;
use ike::message::NotifyType;
use ike::session::{Closed, Session};

/// The state of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Absent,
    SettingUp,
    Up,
    RekeyingIke,
    RekeyingChild,
    Leaving,
    /// Its failure is counted; it deletes the rest of its SAs.
    Failed,
}

impl Stage {
    /// Whether an exchange is under way that is counted.
    pub(crate) const fn is_busy(self) -> bool {
        !matches!(self, Self::Absent | Self::Up)
    }

    /// Whether the peer has its SAs.
    pub(crate) const fn is_up(self) -> bool {
        matches!(self, Self::Up | Self::RekeyingIke | Self::RekeyingChild)
    }
}

/// A peer. There are up to 100,000, so that its size counts.
pub(crate) struct Peer {
    pub(crate) session: Option<Box<Session>>,
    /// When the exchange under way should have begun.
    pub(crate) intended_ns: u64,
    /// Its SPI of the first IKE SA.
    pub(crate) spi: u64,
    /// SPIs of later IKE SAs.
    pub(crate) more_spis: Vec<u64>,
    pub(crate) stage: Stage,
}

impl Peer {
    pub(crate) const ABSENT: Self = Self {
        session: None,
        intended_ns: 0,
        spi: 0,
        more_spis: Vec::new(),
        stage: Stage::Absent,
    };
}

/// A refusal by notification.
pub(crate) fn refused(kind: NotifyType) -> Reason {
    reason(
        kind.to_string(),
        format!("the gateway refuses with {}", on(kind)),
    )
}

/// The reason of an end.
pub(crate) fn ended(closed: &Closed) -> Reason {
    match closed {
        Closed::Deleted => reason("deleted", "the peer deleted its IKE SA"),
        Closed::ByPeer => reason("deleted by the gateway", "the gateway deleted the IKE SA"),
        Closed::Silent(None) => reason(
            "no response",
            "the gateway does not answer: it must speak IKEv2, have a route to the peers, and be reached by UDP on \
             both ports",
        ),
        Closed::Silent(Some(kind)) => reason(
            kind.to_string(),
            format!("the gateway answers only with {}", on(*kind)),
        ),
        Closed::Refused(kind, why) => reason(
            format!("{kind} by the peer"),
            format!("the peer refuses the gateway, {why}, with {}", on(*kind)),
        ),
        Closed::RefusedByPeer(kind) => refused(*kind),
        Closed::Protocol(why) => reason(
            "protocol",
            format!("the gateway violates the protocol: {why}"),
        ),
    }
}

pub(crate) fn reason(name: impl Into<String>, sentence: impl Into<String>) -> Reason {
    Reason {
        name: name.into(),
        sentence: sentence.into(),
    }
}

/// A notification with its source and a remedy.
fn on(kind: NotifyType) -> String {
    let source = kind.assigned().map_or("RFC 7296", |it| it.source);
    let remedy = match kind {
        NotifyType::AUTHENTICATION_FAILED => {
            "the gateway needs the peers' key, or the authority of their certificates; their identities, as the spec \
             numbers them; the configured identity of its own; a clock like theirs; and the PPK, if one is required"
        }
        NotifyType::NO_PROPOSAL_CHOSEN => {
            "the gateway needs the spec's proposal, and for child SAs the same cipher, with the key exchanges in \
             rekeyings"
        }
        NotifyType::INVALID_KE_PAYLOAD => {
            "the gateway wants another key exchange than the proposal's"
        }
        NotifyType::TS_UNACCEPTABLE => {
            "the gateway's networks must contain the spec's selectors, on both sides"
        }
        NotifyType::NO_ADDITIONAL_SAS => {
            "the gateway must permit a further child SA during a rekeying"
        }
        NotifyType::INVALID_MAJOR_VERSION => "the gateway must speak IKEv2",
        _ => "see the gateway's log",
    };
    format!("{kind} ({source}): {remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_notify_its_section_and_a_remedy() {
        let failed = ended(&Closed::RefusedByPeer(NotifyType::AUTHENTICATION_FAILED));
        assert_eq!(failed.name, "AUTHENTICATION_FAILED");
        let sentence = failed.sentence;
        for part in [
            "AUTHENTICATION_FAILED (RFC 7296 section 2.21.2)",
            "identities",
        ] {
            assert!(sentence.contains(part), "{sentence}");
        }
        let silent = ended(&Closed::Silent(Some(NotifyType::NO_PROPOSAL_CHOSEN)));
        assert_eq!(silent.name, "NO_PROPOSAL_CHOSEN");
        assert_eq!(ended(&Closed::Silent(None)).name, "no response");
    }
}
