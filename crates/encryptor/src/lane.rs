//! The two halves of a lane, from static keys.

use crate::inbound::{Inbound, InboundKeys};
use crate::outbound::{Outbound, OutboundTunnel};
use crate::payload::Payload;
use crate::policy::Policy;
use crate::renewal::{self, Recorder, Renewer};
use dispatch::Dispatch;
use esp::{InboundSa, OutboundSa, WindowSize};
use keying::{LANES_MAX, StaticKeys, epoch_of, lane_of};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A key file's keys. Tunnels and lanes share them, off the packet path.
pub type SharedKeys = Arc<Mutex<StaticKeys>>;

/// A tunnel as all its lanes have it.
pub struct LaneTunnel {
    /// Its number, the same on both sides. With the lane it makes the slot that its SPIs tell.
    pub id: u16,
    /// Number of its peer at the cipher ports.
    pub peer: u16,
    /// Where its keys come from; `None` for [`Payload::PlainPseudowire`] only.
    pub keys: Option<SharedKeys>,
    /// The longest packet or frame that it carries, in bytes.
    pub inner_bytes_max: usize,
    /// The largest segment that a TCP connection through it may announce, over IPv4 and over IPv6.
    pub mss_max: [u16; 2],
}

/// What a lane is made of.
pub struct LaneSettings<'a> {
    /// Its number.
    pub lane: u16,
    /// How many there are.
    pub lanes: u16,
    /// Its tunnels, in the order of the policy's.
    pub tunnels: &'a [LaneTunnel],
    /// What it carries.
    pub payload: &'a Payload,
    /// Which packets take which tunnel.
    pub policy: Arc<Policy>,
    /// The engines, for the suite that they were prepared for.
    pub selection: &'a Dispatch,
    /// Anti-replay window of each SA.
    pub window: WindowSize,
    /// Who gives new keys in time; without one an SA that is used up stops.
    pub renewer: Option<&'a Renewer>,
}

/// Makes both halves of a lane.
///
/// # Panics
/// When a tunnel's slot, `id * lanes + lane`, is not below [`LANES_MAX`], or two share one, or the keys of one were
/// handed out before.
pub fn halves(settings: &LaneSettings<'_>) -> (Outbound, Inbound<LaneKeys>) {
    let sum = engine::checksum::fastest();
    let mut keys = LaneKeys {
        tunnel_of_slot: vec![NONE; usize::from(LANES_MAX)].into_boxed_slice(),
        slots: Vec::new(),
        floors: vec![0; settings.tunnels.len()],
        recorder: settings.renewer.map(Renewer::recorder),
        selection: settings.selection.clone(),
        window: settings.window,
    };
    let mut outbound = Vec::with_capacity(settings.tunnels.len());
    let mut renewable = Vec::with_capacity(settings.tunnels.len());
    for (number, tunnel) in (0..).zip(settings.tunnels) {
        let slot = tunnel.id * settings.lanes + settings.lane;
        let sa = tunnel.keys.as_ref().map(|shared| {
            let place = &mut keys.tunnel_of_slot[usize::from(slot)];
            assert_eq!(*place, NONE, "a slot has one tunnel");
            *place = number;
            keys.slots.push((slot, Arc::clone(shared)));
            let sa = lock(shared).outbound(settings.selection.suite(), slot);
            OutboundSa::new(sa.spi, settings.selection.sealing(&sa.keymat))
        });
        let keys = sa.as_ref().zip(tunnel.keys.clone());
        renewable.push(keys.map(|(sa, keys)| (slot, keys, sa.spi())));
        outbound.push(OutboundTunnel {
            sa,
            peer: tunnel.peer,
            inner_bytes_max: tunnel.inner_bytes_max,
            mss_max: tunnel.mss_max,
        });
    }
    let (payload, policy) = (settings.payload, &settings.policy);
    let tunnels = settings.tunnels.len();
    let mut sealing = Outbound::new(outbound, payload.clone(), Arc::clone(policy), sum);
    if let Some(renewer) = settings.renewer {
        sealing = sealing.with_desk(renewer.desk(settings.selection, renewable));
    }
    (
        sealing,
        Inbound::new(keys, tunnels, payload.clone(), Arc::clone(policy), sum),
    )
}

/// No tunnel has the slot.
const NONE: u16 = u16::MAX;

/// Inbound SAs of one lane, from the static keys that all lanes share.
pub struct LaneKeys {
    tunnel_of_slot: Box<[u16]>,
    /// Slot and keys of each tunnel.
    slots: Vec<(u16, SharedKeys)>,
    /// The newest epoch of each tunnel that a packet of this lane has proven: earlier ones are over. Other lanes and
    /// tunnels with the same keys may be behind.
    floors: Vec<u32>,
    recorder: Option<Recorder>,
    selection: Dispatch,
    window: WindowSize,
}

impl InboundKeys for LaneKeys {
    #[inline]
    fn tunnel(&self, spi: u32) -> Option<u16> {
        let tunnel = self.tunnel_of_slot[usize::from(lane_of(spi))];
        (tunnel != NONE).then_some(tunnel)
    }

    fn candidate(&mut self, tunnel: u16, spi: u32) -> Option<InboundSa> {
        if epoch_of(spi) < self.floors[usize::from(tunnel)] {
            return None;
        }
        let (slot, keys) = &self.slots[usize::from(tunnel)];
        let sa = lock(keys).inbound(self.selection.suite(), spi, *slot)?;
        let transform = self.selection.opening(&sa.keymat);
        Some(InboundSa::new(sa.spi, transform, self.window))
    }

    fn confirmed(&mut self, tunnel: u16, spi: u32) {
        let epoch = epoch_of(spi);
        self.floors[usize::from(tunnel)] = epoch;
        let (_, keys) = &self.slots[usize::from(tunnel)];
        if let Some(recorder) = &self.recorder {
            return recorder.record(keys, epoch);
        }
        if let Err(error) = lock(keys).record_peer_epoch(epoch) {
            // Packets flow all the same; what is lost is that a restart here remembers the peer's epoch.
            renewal::warn(format_args!("the peer's epoch cannot be recorded: {error}"));
        }
    }
}

pub(crate) fn lock(keys: &Mutex<StaticKeys>) -> MutexGuard<'_, StaticKeys> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}
