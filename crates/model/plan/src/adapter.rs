//! DUT adapters: the kinds of devices under test, their settings and the derived properties.
//!
//! To add a kind: its file here with its settings and its [`DutProfile`], and its variant of
//! [`Adapter`] with one arm in [`Adapter::profile`]; in `campaign` the reader of its keys, in a
//! file of `dut` with one line in `KINDS`; in `lab` the file that brings it up, with one arm there;
//! and its row in `docs/campaign.md`.

mod carrier;
mod cipherbench;
mod device;
mod external;
mod forwarder;
mod l2tpv3;
mod openvpn;
mod profile;
mod strongswan;
mod wireguard;
mod xfrm;

pub use carrier::{Carrier, Form, LinkForm};
pub use cipherbench::{Desync, Encryptor, HANDSHAKE, KME_UP, Mode, NO_SUITE};
pub use external::{
    BOX_COMMAND, BOX_READY, BOXES_MAX, BoxFormat, COMMAND_CHARS_MAX, External, ExternalBox,
    GatewayPeer, IkePeer, IkeSecrets, Monitor, Observed, Placeholder, Reading, ReadingKind, Secret,
    SnmpAgent, SnmpAuthentication, SnmpLogin, SnmpPrivacy, Source, WORD_CHARS_MAX, WireGuardPeer,
    command_fits, fill_in, is_command, is_wireguard_key, is_word,
};
pub use l2tpv3::{L2tpEncapsulation, L2tpv3};
pub use openvpn::{OpenVpn, TLS_UP};
pub use profile::{Ability, Direction, DutProfile, GatewayTraffic, PacketLimit, Role};
pub use strongswan::{DataPath, IKE_UP, IkeAuth, StrongSwan, TUNNEL_SET_UP};
pub use wireguard::{WireGuard, WireGuardProgram};
pub use xfrm::Xfrm;

use crate::{Devices, Software};
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use wire::Suite;

/// The DUT that calibration measures, and the name of its cells.
pub const STRAIGHT: &str = "straight";

/// A device under test with its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dut {
    /// Name that tables print; unique among the DUTs of a campaign.
    pub name: String,
    /// The adapter that brings it up.
    pub adapter: Adapter,
    /// The program that it runs, if the campaign names one.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub software: Software,
}

impl Dut {
    /// A DUT that runs the installed program, if any.
    #[must_use]
    pub fn new(name: impl Into<String>, adapter: Adapter) -> Self {
        Self {
            name: name.into(),
            adapter,
            software: Software::default(),
        }
    }

    /// Its settings and its program, as plans and reports list them.
    #[must_use]
    pub fn settings(&self) -> String {
        let settings = self.adapter.profile().settings;
        match self.software.in_words().as_str() {
            "" => settings,
            software => format!("{settings}, {software}"),
        }
    }
}

/// Kinds of DUT with their settings.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr, Serialize, Deserialize)]
// Not kebab-case, which would split the names of products: `wire-guard`, `open-vpn`.
#[serde(rename_all = "lowercase", tag = "kind")]
#[strum(serialize_all = "lowercase")]
pub enum Adapter {
    /// No encryptor: the gateways forward in clear. The baseline, and the watch's positive control.
    Direct,
    /// Nothing at all: a link joins station A's port to station B's. Frame tests then measure the
    /// limit of the tester itself; the DUT of calibration.
    Straight {
        /// Suite that the stations seal and open with in directions with one gateway: the suite of
        /// the encryptors in the same group if they have one, otherwise AES-256-GCM.
        #[serde(default = "straight_suite")]
        suite: Suite,
    },
    /// One box that forwards IP by Linux: A – gw1 – the station in gw2's place.
    Router {
        /// Whether it also translates addresses and tracks connections (WAN-LAN), or routes only
        /// (LAN-LAN).
        nat: bool,
    },
    /// One box that switches Ethernet by a Linux bridge: A – gw1 – the station in gw2's place.
    Bridge,
    /// Cipherbench's encryptor, one process per gateway.
    Cipherbench(Encryptor),
    /// A WireGuard tunnel.
    WireGuard(WireGuard),
    /// IPsec by strongSwan.
    StrongSwan(StrongSwan),
    /// OpenVPN.
    OpenVpn(OpenVpn),
    /// IPsec by the kernel, with static keys.
    Xfrm(Xfrm),
    /// An L2TPv3 pseudowire by the kernel: the control for the cost of the tunnel alone.
    L2tpv3(L2tpv3),
    /// Third-party boxes at the ends of the lab's [`Cables`](crate::Cables).
    External(External),
    /// One crypto device, or several in parallel.
    Device(Devices),
}

/// The suite of [`Adapter::Straight`] unless something else decides.
const fn straight_suite() -> Suite {
    Suite::Aes256Gcm
}

impl Adapter {
    /// [`Adapter::Straight`] with the usual suite.
    pub const STRAIGHT: Self = Self::Straight {
        suite: straight_suite(),
    };

    /// Whether there is no device.
    #[must_use]
    pub const fn is_straight(&self) -> bool {
        matches!(self, Self::Straight { .. })
    }

    /// Whether its packets cross the elements of the lab's path: not past the gateways, and not
    /// through boxes outside.
    #[must_use]
    pub fn crosses_elements(&self) -> bool {
        // The elements are between gw1 and gw2: a straight link replaces both, and boxes are joined
        // outside of the lab.
        !self.is_straight() && self.external().is_none()
    }

    /// The properties that follow from its kind and settings.
    #[must_use]
    pub fn profile(&self) -> DutProfile {
        match self {
            // Made at each call: no stored profile can differ from the settings.
            Self::Direct => forwarder::direct(),
            Self::Straight { .. } => forwarder::straight(),
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

    /// The name of its kind, in campaigns and journals.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// The encryptor's settings; `None` for other adapters.
    #[must_use]
    pub const fn encryptor(&self) -> Option<&Encryptor> {
        match self {
            Self::Cipherbench(encryptor) => Some(encryptor),
            _ => None,
        }
    }

    /// The settings of third-party boxes; `None` for other adapters.
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

    /// [`DutProfile::form`].
    #[must_use]
    pub fn form(&self) -> Option<LinkForm> {
        self.profile().form()
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
