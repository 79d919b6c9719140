//! The child SAs of one tunnel, and which of them the lane sends with.

use crate::shared_keys::{SharedKeys, lock};
use ike::session::ChildSa;
use keying::SaKeys;
use std::time::Duration;
use wire::Suite;
use zeroize::Zeroizing;

/// Time for which packets of a deleted child SA are accepted: they may be on their way.
const GRACE: Duration = Duration::from_secs(5);

/// A change that the lane must learn of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// There is another SA to send with.
    Switched,
    /// An SA is no longer received with.
    Retired,
    /// There is no SA to send with.
    Expired,
}

/// Child SAs of all sessions with a peer.
pub(super) struct Children {
    keys: SharedKeys,
    suite: Suite,
    inform: Box<dyn Fn(Change) + Send>,
    /// In the order of their creation.
    live: Vec<Live>,
    /// SPI to this side of the one that the lane sends with.
    sending: Option<u32>,
    /// SPIs of deleted ones, and until when their packets are accepted.
    retiring: Vec<(Duration, u32)>,
}

struct Live {
    session: u64,
    spi: u32,
    replaces: Option<u32>,
    /// `None` once it was sent with: never again, since its sequence numbers would start anew.
    outbound: Option<SaKeys>,
}

impl Children {
    pub(super) fn new(
        keys: SharedKeys,
        suite: Suite,
        inform: impl Fn(Change) + Send + 'static,
    ) -> Self {
        Self {
            keys,
            suite,
            inform: Box::new(inform),
            live: Vec::new(),
            sending: None,
            retiring: Vec::new(),
        }
    }

    /// Session and SPI of the one that the lane sends with.
    pub(super) fn sending(&self) -> Option<(u64, u32)> {
        let spi = self.sending?;
        let live = self.live.iter().find(|it| it.spi == spi)?;
        Some((live.session, spi))
    }

    pub(super) fn has_of(&self, session: u64) -> bool {
        self.live.iter().any(|it| it.session == session)
    }

    /// A child SA exists. Its packets are accepted from now on. It is sent with if the peer has it
    /// already, or there is no other.
    pub(super) fn up(&mut self, session: u64, child: &ChildSa) {
        let keys = |spi, keymat: &[u8]| SaKeys {
            spi,
            suite: self.suite,
            are_numbers_extended: child.suite.esn,
            keymat: Zeroizing::new(keymat.to_vec()),
        };
        let spi = child.inbound_spi;
        let inbound = keys(spi, &child.inbound_keys);
        let outbound = keys(child.outbound_spi, &child.outbound_keys);
        if let Some(sas) = lock(&self.keys).as_child_sas() {
            sas.install_inbound(inbound);
        }
        self.live.push(Live {
            session,
            spi,
            replaces: child.replaces,
            outbound: Some(outbound),
        });
        if child.has_peer || self.sending.is_none() {
            self.send_with(spi);
        }
    }

    /// A child SA exists no longer.
    pub(super) fn down(&mut self, now: Duration, spi: u32) {
        let Some(at) = self.live.iter().position(|it| it.spi == spi) else {
            return;
        };
        self.live.remove(at);
        self.retiring.push((now + GRACE, spi));
        if self.sending == Some(spi) {
            self.sending = None;
            let unused = |it: &&Live| it.outbound.is_some();
            let successor = self.live.iter().filter(unused);
            let successor = successor.rev().max_by_key(|it| it.replaces == Some(spi));
            match successor.map(|it| it.spi) {
                Some(next) => self.send_with(next),
                None => {
                    if let Some(sas) = lock(&self.keys).as_child_sas() {
                        sas.expire_outbound();
                    }
                    (self.inform)(Change::Expired);
                }
            }
        }
    }

    /// All child SAs of a session exist no longer.
    pub(super) fn session_down(&mut self, now: Duration, session: u64) {
        let of_session = self.live.iter().filter(|it| it.session == session);
        let mut spis: Vec<u32> = of_session.map(|it| it.spi).collect();
        // The one in use last: no other one of the session may take its place.
        spis.sort_by_key(|spi| self.sending == Some(*spi));
        for spi in spis {
            self.down(now, spi);
        }
    }

    fn send_with(&mut self, spi: u32) {
        let live = self.live.iter_mut().find(|it| it.spi == spi);
        let Some(keys) = live.and_then(|it| it.outbound.take()) else {
            return;
        };
        if let Some(sas) = lock(&self.keys).as_child_sas() {
            sas.switch_outbound(keys);
        }
        self.sending = Some(spi);
        // After the keys are there, because the renewer takes them.
        (self.inform)(Change::Switched);
    }

    pub(super) fn wakes_at(&self) -> Option<Duration> {
        self.retiring.iter().map(|(until, _)| *until).min()
    }

    /// Ends the acceptance of packets of deleted child SAs.
    pub(super) fn tick(&mut self, now: Duration) {
        let before = self.retiring.len();
        let keys = &self.keys;
        self.retiring.retain(|(until, spi)| {
            let is_over = *until <= now;
            if is_over && let Some(sas) = lock(keys).as_child_sas() {
                sas.retire_inbound(*spi);
            }
            !is_over
        });
        if self.retiring.len() < before {
            (self.inform)(Change::Retired);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ike::crypto::Cipher;
    use ike::session::{ADDITIONAL_MAX, ChildSuite};
    use keying::{ChildSas, Keys};
    use std::sync::{Arc, Mutex};

    const SUITE: Suite = Suite::Aes256Gcm;

    fn child(spi: u32, replaces: Option<u32>, has_peer: bool) -> ChildSa {
        let keys = Zeroizing::new(vec![spi as u8; SUITE.keymat_bytes()]);
        ChildSa {
            suite: ChildSuite {
                cipher: Cipher::AesGcm16 { key_bits: 256 },
                esn: true,
                exchange: None,
                additional: [None; ADDITIONAL_MAX],
            },
            inbound_spi: spi,
            outbound_spi: spi + 1,
            inbound_keys: keys.clone(),
            outbound_keys: keys,
            local: Vec::new(),
            remote: Vec::new(),
            in_udp: true,
            replaces,
            has_peer,
        }
    }

    /// Children, their keys, and the changes so far.
    fn children() -> (Children, SharedKeys, Arc<Mutex<Vec<Change>>>) {
        let keys = Arc::new(Mutex::new(Keys::from(ChildSas::new())));
        let changes = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&changes);
        let inform = move |change| noted.lock().unwrap().push(change);
        (
            Children::new(Arc::clone(&keys), SUITE, inform),
            keys,
            changes,
        )
    }

    /// The SPI that the lane would get for sending.
    fn outbound(keys: &SharedKeys) -> Option<u32> {
        lock(keys).outbound(SUITE, 0).map(|it| it.spi)
    }

    fn accepts(keys: &SharedKeys, spi: u32) -> bool {
        lock(keys).inbound(SUITE, spi, 0).is_some()
    }

    #[test]
    fn the_side_that_began_changes_at_once_and_the_other_when_the_old_one_is_deleted() {
        let now = Duration::ZERO;
        for has_peer in [true, false] {
            let (mut children, keys, _) = children();
            children.up(1, &child(0x1000, None, has_peer));
            assert_eq!(outbound(&keys), Some(0x1001));
            children.up(1, &child(0x2000, Some(0x1000), has_peer));
            let expected = if has_peer { 0x2000 } else { 0x1000 };
            assert_eq!(children.sending(), Some((1, expected)));
            assert!(accepts(&keys, 0x1000) && accepts(&keys, 0x2000));
            children.down(now, 0x1000);
            assert_eq!(children.sending(), Some((1, 0x2000)));
            assert_eq!(outbound(&keys), Some(0x2001));
            children.tick(now + GRACE - Duration::from_millis(1));
            assert!(accepts(&keys, 0x1000));
            children.tick(now + GRACE);
            assert!(!accepts(&keys, 0x1000) && accepts(&keys, 0x2000));
        }
    }

    #[test]
    fn nothing_is_sent_with_an_sa_twice() {
        let (mut children, keys, changes) = children();
        children.up(1, &child(0x1000, None, true));
        assert_eq!(outbound(&keys), Some(0x1001));
        children.up(1, &child(0x2000, Some(0x1000), true));
        assert_eq!(outbound(&keys), Some(0x2001));
        // The peer deletes the new one: the old one is not taken up again.
        children.down(Duration::ZERO, 0x2000);
        assert_eq!((children.sending(), outbound(&keys)), (None, None));
        assert_eq!(changes.lock().unwrap().last(), Some(&Change::Expired));
    }

    #[test]
    fn another_session_takes_over() {
        let (mut children, keys, _) = children();
        children.up(1, &child(0x1000, None, true));
        assert_eq!(outbound(&keys), Some(0x1001));
        children.up(1, &child(0x3000, None, false));
        children.up(2, &child(0x2000, None, false));
        assert_eq!(children.sending(), Some((1, 0x1000)));
        children.session_down(Duration::ZERO, 1);
        assert_eq!(children.sending(), Some((2, 0x2000)));
        assert_eq!(outbound(&keys), Some(0x2001));
        children.session_down(Duration::ZERO, 2);
        assert_eq!(outbound(&keys), None);
    }
}
