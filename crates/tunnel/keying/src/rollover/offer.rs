//! What both sides say that they have, and what follows from it: whether there can be keys, from which PPKs, and the
//! number of the epoch. Both sides come to the same by themselves.

use super::live::Epochs;
use super::{Broken, Settings};
use crate::EPOCH_MAX;
use crate::chain::{Kind, Link};
use crate::message::{LINKS_MAX, Offer, OfferedPpk, Refusal, VERSION};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What follows from two offers.
pub(super) struct Agreed {
    /// Number of the new epoch.
    pub(super) epoch: u32,
    /// All PPKs of either side; absent is what one has not and the other does not need.
    pub(super) ppks: Vec<Link>,
    /// What the peer seals with.
    pub(super) peer_sends_in: Option<u32>,
    /// The peer never had keys since it started.
    pub(super) peer_is_new: bool,
}

/// This side's.
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

/// Compares the peer's offer, which is [well formed](crate::message::Message::check), with the own one as it was sent.
pub(super) fn agree(settings: &Settings, own: &Offer, peer: &Offer) -> Result<Agreed, Broken> {
    let same = |why, what: &str, own: &dyn Same, peer: &dyn Same| {
        let (own, peer) = (own.told(), peer.told());
        if own == peer {
            return Ok(());
        }
        let (here, there) = (&settings.own_name, &settings.peer_name);
        let detail =
            format!("{what}: {here} has {own}, {there} has {peer}; both must have the same");
        Err(Broken::refuse(why, detail))
    };
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

/// What is compared, as it is told to people: a string of the peer's may hold anything.
trait Same {
    fn told(&self) -> String;
}

impl<T: fmt::Debug> Same for T {
    fn told(&self) -> String {
        format!("{self:?}")
    }
}

/// The first behind the latest of either side that is in use on neither.
fn next_epoch(own: &Offer, peer: &Offer) -> u32 {
    let mut epoch = later(own.last_epoch, peer.last_epoch);
    loop {
        // Behind the last comes 1; behind none too.
        epoch = epoch % EPOCH_MAX + 1;
        if !own.live.contains(&epoch) && !peer.live.contains(&epoch) {
            return epoch;
        }
    }
}

/// Of two numbers on a circle, the one that comes less than half of it behind the other; 0 comes before all.
fn later(one: u32, other: u32) -> u32 {
    if one == 0 || other == 0 {
        return one.max(other);
    }
    let ahead = (other + EPOCH_MAX - one) % EPOCH_MAX;
    if ahead <= EPOCH_MAX / 2 { other } else { one }
}

/// A PPK that both have is mixed in, whatever they think of it. One that only one side has must be one that it can do
/// without.
fn choose_ppks(settings: &Settings, peer: &[OfferedPpk]) -> Result<Vec<Link>, Broken> {
    let refuse = |detail: String| Err(Broken::refuse(Refusal::Ppk, detail));
    let missing = |id: &str, has: &str, has_not: &str| {
        refuse(format!(
            "PPK {id:?}: {has} requires it, {has_not} has it not"
        ))
    };
    let mut links = BTreeMap::new();
    for ppk in &settings.ppks {
        let common = peer.iter().any(|other| other.id == ppk.id);
        if !common && ppk.required {
            return missing(&ppk.id, &settings.own_name, &settings.peer_name);
        }
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
    if links.len() > LINKS_MAX {
        let count = links.len();
        return refuse(format!(
            "{count} different PPKs on both sides; there may be {LINKS_MAX}"
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
    fn the_later_of_two_epochs_is_so_for_both_sides() {
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
