//! Sentences for operators: an error of IKE by its notification, and the change that cures it.

use ike::message::NotifyType;
use ike::session::Closed;

/// An error of this side or of the peer, as a sentence's end.
pub(super) fn on(kind: NotifyType) -> String {
    let source = kind.assigned().map_or("RFC 7296", |it| it.source);
    let help = match kind {
        NotifyType::AUTHENTICATION_FAILED => {
            "both sides need the same key in `psk`, or certificates of authorities that the other trusts; the `peer` \
             of each must be the `identity` of the other; and where one side requires a PPK the other must have it \
             under the same `id`"
        }
        NotifyType::NO_PROPOSAL_CHOSEN => {
            "both sides need one entry of `proposals` in common, with all its key exchanges, and the same `suite`"
        }
        NotifyType::TS_UNACCEPTABLE => {
            "the `routes` of each side must be the `local` networks of the other, with the same protocol and ports"
        }
        NotifyType::NO_ADDITIONAL_SAS => "the peer must permit several child SAs of an IKE SA",
        NotifyType::INVALID_SYNTAX => {
            "one of the implementations has a fault: compare their versions"
        }
        _ => "see the log of the peer",
    };
    format!("{kind} ({source}): {help}")
}

/// The end of an IKE SA, if somebody must do something about it.
pub(super) fn on_end(closed: &Closed) -> Option<String> {
    Some(match closed {
        Closed::Deleted => return None,
        Closed::ByPeer => "the peer has deleted the IKE SA".to_owned(),
        Closed::Silent(None) => {
            "the peer does not answer: it must run, and UDP must pass to its `ike_port` and its `port`".to_owned()
        }
        Closed::Silent(Some(kind)) => {
            format!("the peer answers only with {}", on(*kind))
        }
        Closed::Refused(kind, reason) => {
            format!("this side refuses the peer, {reason}, with {}", on(*kind))
        }
        Closed::RefusedByPeer(kind) => format!("the peer refuses with {}", on(*kind)),
        Closed::Protocol(reason) => format!("the peer violates the protocol: {reason}"),
    })
}

/// The name of an end, for a counter.
pub(super) fn name(closed: &Closed) -> String {
    match closed {
        Closed::Deleted => "deleted".to_owned(),
        Closed::ByPeer => "deleted_by_peer".to_owned(),
        Closed::Silent(_) => "silent".to_owned(),
        Closed::Refused(kind, _) | Closed::RefusedByPeer(kind) => kind.to_string(),
        Closed::Protocol(_) => "protocol".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_notify_and_what_to_change() {
        let sentence = on_end(&Closed::RefusedByPeer(NotifyType::AUTHENTICATION_FAILED)).unwrap();
        for part in ["AUTHENTICATION_FAILED (RFC 7296 section 2.21.2)", "`psk`"] {
            assert!(sentence.contains(part), "{sentence}");
        }
        let silent = Closed::Silent(Some(NotifyType::NO_PROPOSAL_CHOSEN));
        let sentence = on_end(&silent).unwrap();
        for part in ["NO_PROPOSAL_CHOSEN (RFC 7296 section 2.7)", "`proposals`"] {
            assert!(sentence.contains(part), "{sentence}");
        }
        assert_eq!(name(&silent), "silent");
        assert_eq!(on_end(&Closed::Deleted), None);
    }
}
