//! Bounds of the parts of a message.

use super::{LINKS_MAX, LIVE_MAX, Message, Offer, VERSION};
use crate::EPOCH_MAX;
use crate::chain::is_id;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// Maximum length of the name of a suite or payload in bytes.
const NAME_BYTES_MAX: usize = 64;
/// Maximum length of a display text in bytes; longer texts are truncated.
const TEXT_BYTES_MAX: usize = 512;

/// Makes foreign text safe to display: replaces characters that could control a terminal, or
/// reorder or hide others ([`guard::visible`]), and truncates it to 512 bytes.
#[must_use]
pub fn for_people(text: &str) -> Cow<'_, str> {
    let visible = guard::visible(text);
    if text.len() <= TEXT_BYTES_MAX && matches!(visible, Cow::Borrowed(_)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(TEXT_BYTES_MAX);
    for (letter, visible) in text.chars().zip(visible.chars()) {
        let letter = if letter == visible { letter } else { ' ' };
        // Room for the mark of the truncation is kept free.
        if shown.len() + letter.len_utf8() > TEXT_BYTES_MAX - '…'.len_utf8() {
            shown.push('…');
            break;
        }
        shown.push(letter);
    }
    Cow::Owned(shown)
}

/// Why bytes are not a valid message, for display.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Garbled(String);

pub(super) fn garbled(what: fmt::Arguments<'_>) -> Garbled {
    Garbled(for_people(&what.to_string()).into_owned())
}

impl Message {
    /// Checks that all parts are within their bounds.
    pub(crate) fn check(&self) -> Result<(), Garbled> {
        match self {
            Self::Open { offer, .. } => offer.check(),
            Self::Accept { offer, epoch } => {
                check_epoch(*epoch)?;
                offer.check()
            }
            Self::Keys { qkd } => {
                check_length("QKD keys", qkd.len(), LINKS_MAX)?;
                let mut known = BTreeSet::new();
                for id in qkd {
                    check_id(id)?;
                    if !known.insert(id) {
                        return Err(garbled(format_args!("QKD key {id} is named twice")));
                    }
                }
                Ok(())
            }
            Self::KeysMissing { reason: text } | Self::Refuse { detail: text, .. } => {
                // Borrowed means unchanged. A peer of this version sends no text that needs a
                // change.
                match for_people(text) {
                    Cow::Borrowed(_) => Ok(()),
                    Cow::Owned(_) => Err(garbled(format_args!(
                        "a text has more than {TEXT_BYTES_MAX} bytes or has control characters"
                    ))),
                }
            }
            Self::Keep { .. }
            | Self::Kept { .. }
            | Self::Ready { .. }
            | Self::Switched { .. }
            | Self::Done
            | Self::Rekey { .. }
            | Self::Ping { .. }
            | Self::Pong { .. } => Ok(()),
        }
    }
}

impl Offer {
    fn check(&self) -> Result<(), Garbled> {
        for name in [&self.suite, &self.payload] {
            if name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
                return Err(garbled(format_args!(
                    "the name of a suite or payload has more than {NAME_BYTES_MAX} bytes or has control characters"
                )));
            }
        }
        check_length("PPKs", self.ppks.len(), LINKS_MAX)?;
        for ppk in &self.ppks {
            check_id(&ppk.id)?;
        }
        // One encoding for each set of PPKs, and no search for duplicates.
        if !self.ppks.is_sorted_by(|one, next| one.id < next.id) {
            return Err(garbled(format_args!(
                "PPKs are not in the order of their ids, or one is named twice"
            )));
        }
        check_length("live epochs", self.live.len(), LIVE_MAX)?;
        // 0 is allowed here: the peer has had no epoch since it started.
        if self.last_epoch > EPOCH_MAX {
            check_epoch(self.last_epoch)?;
        }
        self.live
            .iter()
            .chain(&self.sends_in)
            .try_for_each(|epoch| check_epoch(*epoch))
    }
}

fn check_epoch(epoch: u32) -> Result<(), Garbled> {
    if (1..=EPOCH_MAX).contains(&epoch) {
        return Ok(());
    }
    Err(garbled(format_args!(
        "an epoch is a number from 1 to {EPOCH_MAX}, not {epoch}"
    )))
}

fn check_id(id: &str) -> Result<(), Garbled> {
    if is_id(id) {
        return Ok(());
    }
    Err(garbled(format_args!(
        "a key's id is empty, longer than 255 bytes, or has control characters"
    )))
}

fn check_length(what: &str, length: usize, most: usize) -> Result<(), Garbled> {
    if length <= most {
        return Ok(());
    }
    Err(garbled(format_args!(
        "a message has {length} {what}, at most {most} are accepted"
    )))
}

/// The protocol version of an offer of a different version, which may have another form.
pub(super) fn foreign_version(bytes: &[u8]) -> Option<u64> {
    let value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    let body = value.get("open").or_else(|| value.get("accept"))?;
    let version = body.get("offer")?.get("version")?.as_u64()?;
    (version != u64::from(VERSION)).then_some(version)
}
