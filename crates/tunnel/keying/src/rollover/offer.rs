//! Comparison of the two sides' offers: whether they are compatible, which PPKs to mix, and the
//! number of the new epoch. Each side computes the same result independently.

use super::live::Epochs;
use super::{Broken, Settings};
use crate::EPOCH_MAX;
use crate::chain::{Kind, Link};
use crate::message::{LINKS_MAX, Offer, OfferedPpk, Refusal, VERSION};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The result of two compatible offers.
#[cfg_attr(test, derive(Clone))]
pub(super) struct Agreed {
    /// Number of the new epoch.
    pub(super) epoch: u32,
    /// All PPKs of either side. A PPK that one side lacks and the other does not require is absent.
    pub(super) ppks: Vec<Link>,
    /// The epoch that the peer seals with.
    pub(super) peer_sends_in: Option<u32>,
    /// Whether the peer has had no keys since it started.
    pub(super) peer_is_new: bool,
}

/// This side's offer.
pub(super) fn own(settings: &Settings, epochs: &Epochs) -> Offer {
    let ppks = settings.ppks.iter().map(|ppk| OfferedPpk {
        id: ppk.id.clone(),
        required: ppk.required,
    });
    Offer {
        version: VERSION,
        tunnel: settings.tunnel,
        suite: settings.suite.name().to_owned(),
        lanes: settings.lanes,
        payload: settings.payload.clone(),
        policy: settings.policy,
        ppks: ppks.collect(),
        last_epoch: epochs.last(),
        live: epochs.live(),
        sends_in: epochs.outbound(),
    }
}

/// Compares the peer's [well-formed](crate::message::Message::check) offer with this side's offer
/// as it was sent.
pub(super) fn agree(settings: &Settings, own: &Offer, peer: &Offer) -> Result<Agreed, Broken> {
    let same = |why, what: &str, own: &dyn Same, peer: &dyn Same| {
        let (own, peer) = (own.printed(), peer.printed());
        if own == peer {
            return Ok(());
        }
        let (here, there) = (&settings.own_name, &settings.peer_name);
        let detail =
            format!("{what}: {here} has {own}, {there} has {peer}; both must have the same");
        Err(Broken::refuse(why, detail))
    };
    // The version first: in another one the remaining fields may mean something else.
    same(
        Refusal::Version,
        "version of the protocol",
        &own.version,
        &peer.version,
    )?;
    same(
        Refusal::Tunnel,
        "number of the tunnel",
        &own.tunnel,
        &peer.tunnel,
    )?;
    same(Refusal::Suite, "suite", &own.suite, &peer.suite)?;
    same(Refusal::Lanes, "lanes", &own.lanes, &peer.lanes)?;
    same(Refusal::Payload, "payload", &own.payload, &peer.payload)?;
    same(
        Refusal::Policy,
        "policy",
        &own.policy.name(),
        &peer.policy.name(),
    )?;
    Ok(Agreed {
        epoch: next_epoch(own, peer),
        ppks: choose_ppks(settings, &peer.ppks)?,
        peer_sends_in: peer.sends_in,
        peer_is_new: peer.last_epoch == 0,
    })
}

/// A compared value, printed with escapes: a string of the peer may contain anything.
trait Same {
    fn printed(&self) -> String;
}

impl<T: fmt::Debug> Same for T {
    fn printed(&self) -> String {
        format!("{self:?}")
    }
}

/// The first epoch after the latest of either side that neither side has in use.
fn next_epoch(own: &Offer, peer: &Offer) -> u32 {
    let mut epoch = later(own.last_epoch, peer.last_epoch);
    loop {
        // 1 follows the last epoch, and 0 (none).
        epoch = epoch % EPOCH_MAX + 1;
        if !own.live.contains(&epoch) && !peer.live.contains(&epoch) {
            return epoch;
        }
    }
}

/// The later of two epochs in serial-number order: less than half the circle after the other. 0
/// precedes all.
fn later(one: u32, other: u32) -> u32 {
    if one == 0 || other == 0 {
        return one.max(other);
    }
    // Numbers wrap, so that only their distance shows the order (as in RFC 1982).
    let ahead = (other + EPOCH_MAX - one) % EPOCH_MAX;
    if ahead <= EPOCH_MAX / 2 { other } else { one }
}

/// Chooses the PPKs. A PPK that both sides have is mixed in, required or not. If only one side has
/// it, that side must not require it.
fn choose_ppks(settings: &Settings, peer: &[OfferedPpk]) -> Result<Vec<Link>, Broken> {
    let refuse = |detail: String| Err(Broken::refuse(Refusal::Ppk, detail));
    let missing = |id: &str, has: &str, has_not: &str| {
        refuse(format!(
            "PPK {id:?}: {has} requires it, {has_not} does not have it"
        ))
    };
    let mut links = BTreeMap::new();
    for ppk in &settings.ppks {
        let common = peer.iter().any(|other| other.id == ppk.id);
        if !common && ppk.required {
            return missing(&ppk.id, &settings.own_name, &settings.peer_name);
        }
        // An absent key is named too: both sides then bind their keys to its absence, and nobody
        // can remove it unnoticed.
        links.insert(ppk.id.clone(), common.then(|| Arc::clone(&ppk.key)));
    }
    for ppk in peer {
        if !links.contains_key(&ppk.id) {
            if ppk.required {
                return missing(&ppk.id, &settings.peer_name, &settings.own_name);
            }
            links.insert(ppk.id.clone(), None);
        }
    }
    // Each offer is within the limit, but their union may not be.
    if links.len() > LINKS_MAX {
        let count = links.len();
        return refuse(format!(
            "{count} different PPKs on both sides; at most {LINKS_MAX} are allowed"
        ));
    }
    let link = |(id, key)| Link {
        kind: Kind::Ppk,
        id,
        key,
    };
    Ok(links.into_iter().map(link).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_agree_on_the_later_of_two_epochs() {
        let cases = [
            (0, 0, 0),
            (0, EPOCH_MAX, EPOCH_MAX),
            (1, 2, 2),
            (EPOCH_MAX, 1, 1),
            (EPOCH_MAX - 3, 4, 4),
            (5, 900_000, 5),
            (5, 400_000, 400_000),
        ];
        for (one, other, expected) in cases {
            assert_eq!(later(one, other), expected);
            assert_eq!(later(other, one), expected);
        }
        // Opposite on the circle, as nearly as can be.
        for one in [1, 17, EPOCH_MAX / 2, EPOCH_MAX] {
            for half in [EPOCH_MAX / 2, EPOCH_MAX / 2 + 1] {
                let other = (one - 1 + half) % EPOCH_MAX + 1;
                assert_eq!(later(one, other), later(other, one));
            }
        }
    }
}
