//! The two halves of a lane, from keys that all lanes share.

use crate::desync::Desync;
use crate::inbound::Inbound;
use crate::inbound_keys::{InboundKeys, Notice};
use crate::log;
use crate::mailbox::Mailbox;
use crate::outbound::{Outbound, OutboundTunnel};
use crate::payload::Payload;
use crate::policy::Policy;
use crate::renewal::{Renewable, Renewer, Reporter};
use crate::shared_keys::lock;
use crate::transforms::{opening, sealing};
use dispatch::Dispatch;
use esp::{InboundSa, Limits, OutboundSa, WindowSize};
use keying::{LANES_MAX, epoch_of, lane_of};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;

pub use crate::shared_keys::SharedKeys;

/// The properties of a tunnel that all its lanes share.
pub struct LaneTunnel {
    /// Tunnel number, equal on both sides. With the lane it determines the slot in the low bits of
    /// the SPIs.
    pub id: u16,
    /// Number of its peer at the cipher ports.
    pub peer: u16,
    /// Source of its keys; `None` for [`Payload::PlainPseudowire`] only.
    pub keys: Option<SharedKeys>,
    /// Volume that one SA seals before new keys are requested; [`Limits::NONE`]: only the cipher's
    /// limit applies.
    pub lifetime: Limits,
    /// Length of the longest packet or frame that it carries, in bytes.
    pub inner_bytes_max: usize,
    /// Length of the longest ESP payload in bytes, which aggregated packets fill.
    pub payload_bytes_max: usize,
    /// The largest MSS that a TCP connection through it may announce, over IPv4 and over IPv6.
    pub mss_max: [u16; 2],
}

/// The parts of a lane.
pub struct LaneSettings<'a> {
    /// Number of the lane.
    pub lane: u16,
    /// Number of lanes.
    pub lanes: u16,
    /// Its tunnels, in the order of the policy's.
    pub tunnels: &'a [LaneTunnel],
    /// Payload that it carries.
    pub payload: &'a Payload,
    /// Policy that assigns packets to tunnels.
    pub policy: Arc<Policy>,
    /// The engines, prepared for the suite.
    pub selection: &'a Dispatch,
    /// Anti-replay window of each SA.
    pub window: WindowSize,
    /// Receives messages of IKE that arrive at the lane's port.
    pub ike: Option<Marked>,
    /// Provides new keys in time; without one an exhausted SA stops, and no keys are negotiated.
    pub renewer: Option<&'a Renewer>,
}

/// Builds both halves of a lane.
///
/// # Panics
/// When a tunnel's slot, `id * lanes + lane`, is not below [`LANES_MAX`], or two share one, or the
/// keys of one were handed out before.
pub fn halves(settings: &LaneSettings<'_>) -> (Outbound, Inbound<LaneKeys>) {
    let sum = engine::checksum::fastest();
    let selection = settings.selection;
    let mut keys = LaneKeys {
        tunnel_of_slot: vec![NONE; usize::from(LANES_MAX)].into_boxed_slice(),
        slots: Vec::new(),
        reporter: settings
            .renewer
            .map(|renewer| renewer.reporter(settings.lane)),
        notices: settings.renewer.map(Renewer::notices),
        selection: selection.clone(),
        window: settings.window,
        ike: settings.ike.clone(),
    };
    let mut outbound = Vec::with_capacity(settings.tunnels.len());
    let mut renewable = Vec::with_capacity(settings.tunnels.len());
    for (number, tunnel) in (0..).zip(settings.tunnels) {
        // Each pair of tunnel and lane has separate keys: lanes share no sequence numbers, and so
        // need no lock for them. Both sides compute the same slots.
        let slot = tunnel.id * settings.lanes + settings.lane;
        let mut sa = None;
        renewable.push(tunnel.keys.as_ref().map(|shared| {
            let place = &mut keys.tunnel_of_slot[usize::from(slot)];
            assert_eq!(*place, NONE, "a slot has one tunnel");
            *place = number;
            let mut locked = lock(shared);
            keys.slots.push(Slot {
                slot,
                keys: Arc::clone(shared),
                negotiated: locked.as_static().is_none(),
                floor: 0,
            });
            // `None` with negotiated keys, which are not there yet: the renewer delivers the first
            // SA too.
            let epoch = locked.outbound_epoch().unwrap_or(0);
            sa = locked.outbound(selection.suite(), slot).map(|sa| {
                OutboundSa::new(sa.spi, sealing(selection, &sa)).with_lifetime(tunnel.lifetime)
            });
            Renewable {
                slot,
                keys: Arc::clone(shared),
                epoch,
                spi: sa.as_ref().map_or(0, OutboundSa::spi),
                lifetime: tunnel.lifetime,
            }
        }));
        outbound.push(OutboundTunnel {
            sa,
            peer: tunnel.peer,
            inner_bytes_max: tunnel.inner_bytes_max,
            payload_bytes_max: tunnel.payload_bytes_max,
            mss_max: tunnel.mss_max,
        });
    }
    let (payload, policy) = (settings.payload, &settings.policy);
    let tunnels = settings.tunnels.len();
    let mut sealing = Outbound::new(outbound, payload.clone(), Arc::clone(policy), sum);
    if let Some(renewer) = settings.renewer {
        sealing = sealing.with_renewal(renewer.client(selection, renewable));
    }
    (
        sealing,
        Inbound::new(keys, tunnels, payload.clone(), Arc::clone(policy), sum),
    )
}

/// A lane's end of the socket on which the thread of IKE receives messages.
#[derive(Debug, Clone)]
pub struct Marked(Arc<UnixDatagram>);

impl Marked {
    /// Sends to this socket, which must not block.
    #[must_use]
    pub const fn new(socket: Arc<UnixDatagram>) -> Self {
        Self(socket)
    }

    /// Passes a message on, unless too many wait: its sender repeats it.
    #[cold]
    fn pass(&self, datagram: &[u8]) {
        let _ = self.0.send(datagram);
    }
}

/// Marks a slot without a tunnel.
const NONE: u16 = u16::MAX;

/// Source of one lane's inbound SAs: the keys that all lanes share.
pub struct LaneKeys {
    tunnel_of_slot: Box<[u16]>,
    /// The slot of each tunnel.
    slots: Vec<Slot>,
    reporter: Option<Reporter>,
    notices: Option<Arc<Mailbox<Notice>>>,
    selection: Dispatch,
    window: WindowSize,
    ike: Option<Marked>,
}

/// A tunnel in one lane.
struct Slot {
    slot: u16,
    keys: SharedKeys,
    /// Keys are negotiated: the peer's valid epochs are known, and notices report changes.
    negotiated: bool,
    /// With static keys, the newest epoch that a packet of this lane has proven: earlier ones have
    /// ended. Other lanes and tunnels with the same keys may be behind.
    floor: u32,
}

impl LaneKeys {
    fn slot(&self, tunnel: u16) -> &Slot {
        &self.slots[usize::from(tunnel)]
    }
}

impl InboundKeys for LaneKeys {
    #[inline]
    fn tunnel(&self, spi: u32) -> Option<u16> {
        let tunnel = self.tunnel_of_slot[usize::from(lane_of(spi))];
        (tunnel != NONE).then_some(tunnel)
    }

    fn candidate(&mut self, tunnel: u16, spi: u32) -> Option<InboundSa> {
        let Slot {
            slot, keys, floor, ..
        } = self.slot(tunnel);
        // The epoch was replaced in this lane. A new SA for it would begin with an empty window,
        // and accept recorded packets a second time.
        if epoch_of(spi) < *floor {
            return None;
        }
        let sa = lock(keys).inbound(self.selection.suite(), spi, *slot)?;
        let transform = opening(&self.selection, &sa);
        Some(InboundSa::new(sa.spi, transform, self.window))
    }

    fn confirmed(&mut self, tunnel: u16, spi: u32) {
        let epoch = epoch_of(spi);
        let slot = &mut self.slots[usize::from(tunnel)];
        if slot.negotiated {
            return;
        }
        slot.floor = epoch;
        if let Some(reporter) = &self.reporter {
            // The renewer writes the record to disk: a lane must not wait for that.
            return reporter.record(&slot.keys, epoch);
        }
        if let Err(error) = lock(&slot.keys).record_peer_epoch(epoch) {
            // Packets still flow; only a restart of this side would not remember the peer's epoch.
            log::warn(format_args!("the peer's epoch cannot be recorded: {error}"));
        }
    }

    fn keeps_older(&self, tunnel: u16) -> bool {
        self.slot(tunnel).negotiated
    }

    #[inline]
    fn notices(&mut self) -> Vec<Notice> {
        self.notices
            .as_ref()
            .map_or_else(Vec::new, |mailbox| mailbox.take())
    }

    /// An SA stays valid as long as the ring has its keys. The ring never gets an epoch's keys
    /// again once they are gone, so no SA is created twice. (After 2^20 rollovers the number may
    /// return, with another secret. A lane that received nothing meanwhile opens nothing with the
    /// old SA, which is reported and repaired like any other desynchronisation.)
    fn goes_on(&mut self, tunnel: u16, spi: u32) -> bool {
        let Slot { slot, keys, .. } = self.slot(tunnel);
        lock(keys)
            .inbound(self.selection.suite(), spi, *slot)
            .is_some()
    }

    fn marked(&mut self, datagram: &[u8]) -> bool {
        self.ike.as_ref().map(|ike| ike.pass(datagram)).is_some()
    }

    fn desync(&mut self, tunnel: u16, news: Desync) {
        // Static keys have no peer to negotiate new ones with.
        if let Some(reporter) = &self.reporter
            && self.slot(tunnel).negotiated
        {
            reporter.desync(tunnel, news);
        }
    }
}
