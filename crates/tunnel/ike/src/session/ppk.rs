//! Post-quantum pre-shared keys in IKE_AUTH (RFC 8784).

use super::{Keyed, NotifyType, Ppk, Settings, notifies, notify};
use crate::crypto::IkeKeys;
use crate::message::Payload;

/// The type of a PPK's identity that both ends have configured.
const FIXED: u8 = 2;

impl Settings {
    /// The PPK with this identity, without its type.
    fn ppk(&self, identity: &[u8]) -> Option<&Ppk> {
        self.ppks.iter().find(|it| it.identity == identity)
    }
}

/// The notification that names a PPK.
pub(super) fn named(ppk: &Ppk) -> Payload {
    let data = [&[FIXED], ppk.identity.as_slice()].concat();
    notify(NotifyType::PPK_IDENTITY, data)
}

/// The peer's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named<'a> {
    None,
    /// This PPK; from a responder without its name.
    Some(&'a [u8]),
}

pub(super) fn named_in(payloads: &[Payload]) -> Named<'_> {
    notifies(payloads)
        .find(|it| it.kind == NotifyType::PPK_IDENTITY)
        .map_or(Named::None, |it| Named::Some(&it.data))
}

/// The code for a responder without the PPK.
pub(super) fn code_without(payloads: &[Payload]) -> Option<&[u8]> {
    notifies(payloads)
        .find(|it| it.kind == NotifyType::NO_PPK_AUTH)
        .map(|it| it.data.as_slice())
}

/// Keys with the PPK of an initiator's notification, if this end has it.
pub(super) fn mixed(settings: &Settings, keyed: &Keyed, data: &[u8]) -> Option<IkeKeys> {
    let (kind, identity) = data.split_first()?;
    let ppk = settings.ppk(identity).filter(|_| *kind == FIXED)?;
    Some(keyed.keys.with_ppk(keyed.suite.prf, &ppk.key))
}
