//! Properties of an adapter that other stages need, defined once for each kind.

use super::carrier::{Carrier, LinkForm};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use strum::IntoStaticStr;

/// IEEE 802.1Q.
pub(super) const VLAN_TAG_BYTES: usize = 4;
/// Why a DUT cannot run in a lab in memory.
pub(super) const NO_INTERFACES: &str = "needs interfaces, and a lab in memory has none";

/// Properties of a DUT that follow from its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DutProfile {
    /// Its part in the campaign.
    pub role: Role,
    /// The settings in one line for people; of an insecure DUT with the reason.
    pub settings: String,
    /// Encapsulation and suite between the gateways; `None` if nothing encrypts, or
    /// [`Self::other_form`] describes the frames.
    pub carrier: Option<Carrier>,
    /// Required form of frames between the gateways that no carrier describes; `None` with a
    /// carrier, or if any form is allowed.
    pub other_form: Option<LinkForm>,
    /// Least and most bytes that it adds around a station's IP packet before sealing: the maximum
    /// includes a VLAN tag.
    pub frame_bytes: (usize, usize),
    /// Least bytes of the IP and UDP headers that its packets have on the cipher link.
    pub outer_bytes: usize,
    /// Whether several packets may share one on the cipher link.
    pub aggregates: bool,
    /// Whether padding ends at the stations' MTU.
    pub pads_to_mtu: bool,
    /// Whether it translates the addresses of station A.
    pub translates_addresses: bool,
    /// Traffic of the gateways themselves on the cipher link.
    pub gateway_traffic: GatewayTraffic,
    /// Settings that each gateway must report, with the configured values.
    pub reported: Vec<(&'static str, String)>,
    /// Longest IP packet that it takes, if shorter than its links allow.
    pub packet_limit: Option<PacketLimit>,
    /// Encapsulation in words, for messages: `ESP (aes-256-gcm)`.
    pub carried_in: Option<String>,
    /// Why it protects badly or not at all; `None` if it protects, or does not claim to.
    pub insecure: Option<&'static str>,
    /// Whether its packets are readable on the cipher link: a suite without a cipher, or the null
    /// engine.
    pub is_readable: bool,
    /// Tunnels that traffic can be spread over.
    pub tunnels: u32,
    /// Cores that it keeps busy on each gateway of this machine, at least.
    pub gateway_cores: u32,
    /// Actions on it while it is up.
    pub abilities: Vec<Ability>,
    /// The directions that can be loaded.
    pub directions: &'static [Direction],
    /// Why it cannot run in a lab in memory, continuing its name; `None` if it can.
    pub needs_kernel: Option<String>,
    /// Time to set up the tunnels that [`Self::beside`] does not cover.
    pub set_up: Duration,
    /// Time per trial to start programs, and to run the queries and commands of boxes.
    pub beside: Duration,
}

/// Part of a DUT in a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The gateways forward in clear: the reference for DUTs.
    Baseline,
    /// Nothing is in the path: the tester measures itself.
    Rig,
    /// One box that forwards in clear, in place of the gateways.
    Forwarder,
    /// A tunnel between the gateways.
    Tunnel,
    /// A crypto device: no traffic passes through it.
    Device,
}

/// Traffic of the gateways themselves on the cipher link, in addition to the carried packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayTraffic {
    /// None that evidence must account for.
    None,
    /// Keepalives and an occasional rekey.
    Keepalives,
    /// A handshake of each tunnel at this interval, in nanoseconds, and probes of its peer.
    Rekeys(u64),
}

/// Longest IP packet that a DUT takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketLimit {
    /// In bytes.
    pub bytes: u16,
    /// The component that sets the limit.
    pub by: &'static str,
    /// Setting without the limit.
    pub help: &'static str,
}

/// Action on a DUT that is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ability {
    /// Renew its keys on demand.
    Rekey,
    /// Kill or stop its processes, and start them again.
    Crash,
    /// Restart it by the campaign's command.
    Reset,
    /// Cut the link between the gateways.
    Cut,
    /// Take its tunnels down and set them up.
    SetUp,
    /// Capture its sealed packets and send hostile ones made from them.
    Attack,
    /// Put the keys of one side out of step with the other's.
    Desync,
    /// Serve simulated IKEv2 peers of its own.
    Peers,
}

/// Part of a DUT that is in the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Direction {
    /// A – gw1 – station: one device encrypts, the station opens.
    Encrypt,
    /// Station – gw2 – B: the station seals, one device decrypts.
    Decrypt,
    /// A – gw1 – gw2 – B: one device encrypts, the other decrypts.
    Both,
}

impl Direction {
    /// Every direction.
    pub const ALL: [Self; 3] = [Self::Encrypt, Self::Decrypt, Self::Both];

    /// Name in campaigns and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl DutProfile {
    /// A box or link that forwards in clear and cannot be acted on.
    pub(crate) fn clear(role: Role, settings: impl Into<String>) -> Self {
        Self {
            role,
            settings: settings.into(),
            carrier: None,
            other_form: None,
            frame_bytes: (0, 0),
            outer_bytes: 0,
            aggregates: false,
            pads_to_mtu: false,
            translates_addresses: false,
            gateway_traffic: GatewayTraffic::None,
            reported: Vec::new(),
            packet_limit: None,
            carried_in: None,
            insecure: None,
            is_readable: false,
            tunnels: 1,
            gateway_cores: 0,
            abilities: Vec::new(),
            directions: &[Direction::Both],
            needs_kernel: None,
            set_up: Duration::ZERO,
            beside: Duration::ZERO,
        }
    }

    /// A tunnel that another program or the kernel runs: loaded in both directions together, unless
    /// the station speaks its key exchange.
    pub(crate) fn tunnel(carrier: Carrier, settings: String) -> Self {
        let insecure = carrier.suite.insecure();
        Self {
            carrier: Some(carrier),
            carried_in: Some(carrier.in_words()),
            insecure,
            is_readable: !carrier.suite.encrypts(),
            outer_bytes: carrier.outer().header_bytes(),
            reported: vec![("suite", carrier.suite.to_string())],
            gateway_cores: 1,
            abilities: vec![Ability::Cut],
            needs_kernel: Some(NO_INTERFACES.to_owned()),
            ..Self::clear(Role::Tunnel, settings + &insecure_in_words(insecure))
        }
    }

    /// Required form of frames between the gateways; `None` if any form is allowed.
    #[must_use]
    pub fn form(&self) -> Option<LinkForm> {
        // A carrier describes its frames completely, so there is never another form besides it.
        let sealed = self.carrier.map(|carrier| LinkForm::Sealed(carrier.form));
        sealed.or(self.other_form)
    }

    /// Whether packets between the gateways must be sealed.
    #[must_use]
    pub fn encrypts(&self) -> bool {
        // Without a required form any frames are allowed, so clear ones are no failure.
        self.form().is_some_and(LinkForm::encrypts)
    }

    /// Whether station A reaches B through it, so that tools can be used. Frames need no more than
    /// two ends of a path.
    #[must_use]
    pub const fn joins_stations(&self) -> bool {
        matches!(self.role, Role::Baseline | Role::Tunnel)
    }

    /// Whether packets cross it unchanged.
    #[must_use]
    pub const fn is_clear(&self) -> bool {
        matches!(self.role, Role::Baseline | Role::Rig | Role::Forwarder)
    }

    /// Least bytes that it adds to a station's IP packet, without the outer headers. The padding of
    /// ESP is exact if the packet's length is known.
    #[must_use]
    pub fn added_bytes_least(&self, packet_bytes: Option<usize>) -> usize {
        // The lower bound: an untagged frame.
        let (frame, _) = self.frame_bytes;
        let carried = packet_bytes.map(|bytes| bytes + frame);
        let added = |carrier: Carrier| carrier.added_bytes_least(carried);
        frame + self.carrier.map_or(0, added)
    }

    /// Longest that an IP packet of `packet_bytes`, in a frame without a tag, gets on the cipher
    /// link when the stations have that MTU, in bytes.
    #[must_use]
    pub fn carried_bytes(&self, packet_bytes: usize, stations_mtu: u16) -> usize {
        let carried = packet_bytes + self.frame_bytes.0;
        let longest = self.sealed_bytes(carried);
        // WireGuard pads to 16 bytes, but not beyond the MTU of its interface: a packet of full
        // length is not padded at all.
        let Some(carrier) = self.carrier.filter(|_| self.pads_to_mtu) else {
            return longest;
        };
        // `cipher_packet_bytes(0)` is the overhead alone, as nothing is padded to nothing.
        let unpadded = carrier.cipher_packet_bytes(0) + carried.max(stations_mtu.into());
        longest.min(unpadded)
    }

    /// Longest that an IP packet of `packet_bytes` from a station gets on the cipher link.
    #[must_use]
    pub fn cipher_packet_bytes(&self, packet_bytes: usize) -> usize {
        // The largest frame around it, so that the MTU of the link fits with a VLAN tag too.
        self.sealed_bytes(packet_bytes + self.frame_bytes.1)
    }

    /// Length on the cipher link of `carried` bytes, the frame around the packet included.
    fn sealed_bytes(&self, carried: usize) -> usize {
        match self.carrier {
            Some(carrier) => carrier.cipher_packet_bytes(carried),
            None => carried + self.outer_bytes,
        }
    }

    /// Longest IP packet of a station that a cipher link of that MTU carries whole, with the
    /// largest frame around it.
    #[must_use]
    pub fn clear_mtu(&self, cipher_mtu: u16) -> Option<usize> {
        let carried = match self.carrier {
            Some(carrier) => carrier.clear_mtu(cipher_mtu)?,
            None => usize::from(cipher_mtu).checked_sub(self.outer_bytes)?,
        };
        // The frame around the packet is sealed with it, so it takes room inside.
        carried.checked_sub(self.frame_bytes.1)
    }
}

/// `: insecure, ` and the reason; empty without a reason.
pub(crate) fn insecure_in_words(why: Option<&str>) -> String {
    why.map_or_else(String::new, |why| format!(": insecure, {why}"))
}
