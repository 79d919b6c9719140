//! A gateway of the simulation: the machine, the real key ring, and a data plane reduced to keys,
//! sequence numbers and received packets.

use keying::chain::EpochSecret;
use keying::rollover::{INBOUND_MAX, Role, Rollover, Settings};
use keying::{KeyRing, Side, epoch_of, lane_of};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The slot of all packets.
pub(crate) const SLOT: u16 = 3;

/// Identifies a secret: the confirmation of side a.
pub(crate) type Identity = Vec<u8>;

pub(crate) fn identity(secret: &EpochSecret) -> Identity {
    secret.confirmation(Side::A).0.to_vec()
}

/// A packet: sealed means that it carries the key it was sealed with, opened that the receiver has
/// the same.
#[derive(Clone)]
pub(crate) struct Packet {
    pub(crate) spi: u32,
    key: Rc<Vec<u8>>,
    sequence: u64,
    /// Of the epoch's secret.
    pub(crate) identity: Rc<Identity>,
    pub(crate) sent: Duration,
}

/// An outbound SA.
struct Sealer {
    spi: u32,
    key: Rc<Vec<u8>>,
    identity: Rc<Identity>,
    sequence: u64,
}

/// An inbound SA.
struct Opener {
    key: Vec<u8>,
    received: HashSet<u64>,
}

/// The result of a packet's delivery.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Fate {
    Opened,
    Replayed,
    /// The receiver has no keys for it, or different ones.
    Lost,
}

/// State for invariants that span both gateways and all restarts.
#[derive(Default)]
pub(crate) struct Law {
    /// All keys ever used for sealing.
    sealed_with: HashSet<Vec<u8>>,
    /// Key and sequence number of every delivered packet.
    opened: HashMap<Vec<u8>, HashSet<u64>>,
    /// Which incarnation of each side has installed a secret.
    pub(crate) parties: HashMap<Identity, [Option<u32>; 2]>,
    pub(crate) packets_opened: u64,
    pub(crate) packets_replayed: u64,
    pub(crate) inbound_most: usize,
}

pub(crate) struct Gateway {
    pub(crate) index: usize,
    pub(crate) settings: Settings,
    pub(crate) rollover: Rollover,
    /// Increases with each restart; events of an older incarnation are void.
    pub(crate) incarnation: u32,
    /// It is being restarted.
    pub(crate) down_until: Duration,
    /// Number of accepted connections.
    pub(crate) taken: u64,
    ring: KeyRing,
    outbound: Option<Arc<EpochSecret>>,
    /// Inbound epochs, as the machine installed them.
    live: BTreeMap<u32, Identity>,
    sealer: Option<Sealer>,
    openers: HashMap<u32, Opener>,
}

impl Gateway {
    pub(crate) fn new(settings: Settings) -> Self {
        let (index, side) = match settings.role {
            Role::Connector => (0, Side::A),
            Role::Listener => (1, Side::B),
        };
        Self {
            index,
            rollover: Rollover::new(settings.clone()),
            settings,
            incarnation: 0,
            down_until: Duration::ZERO,
            taken: 0,
            ring: KeyRing::new(side),
            outbound: None,
            live: BTreeMap::new(),
            sealer: None,
            openers: HashMap::new(),
        }
    }

    /// All state is lost.
    pub(crate) fn restart(&mut self, up_at: Duration) {
        let incarnation = self.incarnation + 1;
        *self = Self::new(self.settings.clone());
        self.incarnation = incarnation;
        self.down_until = up_at;
    }

    /// Number and secret of the epoch that it sends in.
    pub(crate) fn sends_in(&self) -> Option<(u32, Identity)> {
        let secret = self.outbound.as_ref()?;
        Some((secret.epoch(), identity(secret)))
    }

    pub(crate) fn live(&self) -> &BTreeMap<u32, Identity> {
        &self.live
    }

    /// Installs; `peer` must not have another secret of that number.
    pub(crate) fn install(&mut self, secret: &Arc<EpochSecret>, peer: &Self, law: &mut Law) {
        let (epoch, identity) = (secret.epoch(), identity(secret));
        for (whose, gateway) in [("own", &*self), ("peer's", peer)] {
            let sends = gateway.sends_in();
            let sends = sends.filter(|(other, _)| *other == epoch);
            for other in gateway
                .live
                .get(&epoch)
                .into_iter()
                .chain(sends.as_ref().map(|(_, id)| id))
            {
                assert!(
                    *other == identity && gateway.index != self.index,
                    "epoch {epoch} is installed, and a {whose} secret of that number lives"
                );
            }
        }
        let parties = law.parties.entry(identity.clone()).or_default();
        assert_eq!(parties[self.index], None, "a secret is installed once");
        parties[self.index] = Some(self.incarnation);
        self.live.insert(epoch, identity);
        law.inbound_most = law.inbound_most.max(self.live.len());
        assert!(self.live.len() <= INBOUND_MAX, "inbound epochs are bounded");
        self.ring.install_inbound(Arc::clone(secret));
    }

    pub(crate) fn retire(&mut self, epoch: u32) {
        assert!(
            self.live.remove(&epoch).is_some(),
            "epoch {epoch} is retired, and was not installed"
        );
        self.ring.retire_inbound(epoch);
        self.openers.retain(|spi, _| epoch_of(*spi) != epoch);
    }

    /// The control plane's part; the lane follows with [`renew`](Self::renew).
    pub(crate) fn switch(&mut self, secret: &Arc<EpochSecret>) {
        self.ring.switch_outbound(Arc::clone(secret));
        self.outbound = Some(Arc::clone(secret));
    }

    /// The lane takes its new outbound SA, if any.
    pub(crate) fn renew(&mut self, law: &mut Law) {
        let Some(secret) = &self.outbound else { return };
        let has = |sealer: &Sealer| {
            epoch_of(sealer.spi) == secret.epoch() && *sealer.identity == identity(secret)
        };
        if self.sealer.as_ref().is_some_and(has) {
            return;
        }
        let keys = self
            .ring
            .outbound(SLOT)
            .expect("an epoch to send in was set");
        assert_eq!(
            (epoch_of(keys.spi), lane_of(keys.spi)),
            (secret.epoch(), SLOT)
        );
        assert!(
            law.sealed_with.insert(keys.keymat.to_vec()),
            "a key is used for a second SA: its nonces repeat"
        );
        self.sealer = Some(Sealer {
            spi: keys.spi,
            key: Rc::new(keys.keymat.to_vec()),
            identity: Rc::new(identity(secret)),
            sequence: 0,
        });
    }

    /// Seals a packet with the lane's outbound SA. The peer must be able to open it, unless it was
    /// restarted.
    pub(crate) fn seal(&mut self, now: Duration, peer: &Self, law: &Law) -> Option<Packet> {
        let sealer = self.sealer.as_mut()?;
        let epoch = epoch_of(sealer.spi);
        let of_peer = law.parties[&*sealer.identity][peer.index];
        let of_peer = of_peer.unwrap_or_else(|| {
            panic!("epoch {epoch} is used for sending, and the peer never had it")
        });
        assert!(
            of_peer != peer.incarnation || peer.live.get(&epoch) == Some(&*sealer.identity),
            "epoch {epoch} is used for sending, and the peer does not open it (it has {:?})",
            peer.live.keys()
        );
        sealer.sequence += 1;
        Some(Packet {
            spi: sealer.spi,
            key: Rc::clone(&sealer.key),
            sequence: sealer.sequence,
            identity: Rc::clone(&sealer.identity),
            sent: now,
        })
    }

    pub(crate) fn open(&mut self, packet: &Packet, law: &mut Law) -> Fate {
        if !self.openers.contains_key(&packet.spi) {
            let Some(keys) = self.ring.inbound(packet.spi, SLOT) else {
                return Fate::Lost;
            };
            let opener = Opener {
                key: keys.keymat.to_vec(),
                received: HashSet::new(),
            };
            self.openers.insert(packet.spi, opener);
        }
        let opener = self.openers.get_mut(&packet.spi).expect("it was made");
        if opener.key != *packet.key {
            return Fate::Lost;
        }
        if !opener.received.insert(packet.sequence) {
            law.packets_replayed += 1;
            return Fate::Replayed;
        }
        law.packets_opened += 1;
        let first = law
            .opened
            .entry(opener.key.clone())
            .or_default()
            .insert(packet.sequence);
        assert!(
            first,
            "sequence number {} is delivered twice",
            packet.sequence
        );
        Fate::Opened
    }
}
