//! DUT adapters: the kinds of devices under test, their settings and what follows from these.
//!
//! To add a kind: its file here with its settings, its [`DutProfile`] and the reader of its keys,
//! its variant of [`Adapter`] with one arm in [`Adapter::profile`], and its name in `dut::KINDS`;
//! then what brings it up, in `lab`.

mod carrier;
mod cipherbench;
mod device;
pub(crate) mod entry;
mod external;
pub(crate) mod forwarder;
pub(crate) mod l2tpv3;
pub(crate) mod openvpn;
mod profile;
pub(crate) mod strongswan;
mod wireguard;
pub(crate) mod xfrm;

pub use carrier::{Carrier, Form};
pub use cipherbench::{HANDSHAKE, KME_UP};
pub use external::{BOX_COMMAND, BOX_READY};
pub use l2tpv3::{L2tpEncapsulation, L2tpv3};
pub use openvpn::OpenVpn;
pub use profile::{Ability, Direction, DutProfile, PacketLimit, Role};
pub use strongswan::{DataPath, IkeAuth, StrongSwan, TUNNEL_SET_UP};
pub use wireguard::{WireGuard, WireGuardProgram};
pub use xfrm::Xfrm;

use crate::plan::{Devices, Encryptor, External};
use serde::{Deserialize, Serialize};

/// Kinds of DUT with their settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[non_exhaustive]
pub enum Adapter {
    /// No encryptor: the gateways forward in clear. The baseline, and the watch's positive control.
    Direct,
    /// Nothing at all: a link joins station A's port to station B's. Frame tests then measure the
    /// tester's own limit; the DUT of calibration.
    Straight,
    /// One box that forwards IP by Linux: A – gw1 – the station in gw2's place.
    Router {
        /// Whether it also translates addresses and tracks connections (WAN-LAN), or routes only
        /// (LAN-LAN).
        nat: bool,
    },
    /// One box that switches Ethernet by a Linux bridge: A – gw1 – the station in gw2's place.
    Bridge,
    /// Our own encryptor, one process per gateway.
    Cipherbench(Encryptor),
    /// A WireGuard tunnel.
    #[serde(rename = "wireguard")]
    WireGuard(WireGuard),
    /// IPsec by strongSwan.
    #[serde(rename = "strongswan")]
    StrongSwan(StrongSwan),
    /// OpenVPN.
    #[serde(rename = "openvpn")]
    OpenVpn(OpenVpn),
    /// IPsec by the kernel, with static keys.
    Xfrm(Xfrm),
    /// An L2TPv3 pseudowire by the kernel: the control for the cost of the tunnel alone.
    L2tpv3(L2tpv3),
    /// Third-party boxes at the ends of the lab's [`Cables`](crate::plan::Cables).
    External(External),
    /// One crypto device, or several in parallel.
    Device(Devices),
}

impl Adapter {
    /// The properties that follow from its kind and settings.
    #[must_use]
    pub fn profile(&self) -> DutProfile {
        match self {
            Self::Direct => forwarder::direct(),
            Self::Straight => forwarder::straight(),
            Self::Router { nat } => forwarder::router(*nat),
            Self::Bridge => forwarder::bridge(),
            Self::Cipherbench(encryptor) => cipherbench::profile(encryptor),
            Self::WireGuard(tunnel) => tunnel.profile(),
            Self::StrongSwan(tunnel) => tunnel.profile(),
            Self::OpenVpn(tunnel) => tunnel.profile(),
            Self::Xfrm(tunnel) => tunnel.profile(),
            Self::L2tpv3(tunnel) => tunnel.profile(),
            Self::External(external) => external::profile(external),
            Self::Device(devices) => device::profile(devices),
        }
    }

    /// The settings of our own encryptor, if it is that.
    #[must_use]
    pub const fn encryptor(&self) -> Option<&Encryptor> {
        match self {
            Self::Cipherbench(encryptor) => Some(encryptor),
            _ => None,
        }
    }

    /// The settings of third-party boxes, if it is that.
    #[must_use]
    pub const fn external(&self) -> Option<&External> {
        match self {
            Self::External(external) => Some(external),
            _ => None,
        }
    }

    /// [`DutProfile::carrier`].
    #[must_use]
    pub fn carrier(&self) -> Option<Carrier> {
        self.profile().carrier
    }

    /// [`DutProfile::encrypts`].
    #[must_use]
    pub fn encrypts(&self) -> bool {
        self.profile().encrypts()
    }

    /// [`DutProfile::insecure`].
    #[must_use]
    pub fn insecure(&self) -> Option<&'static str> {
        self.profile().insecure
    }
}
