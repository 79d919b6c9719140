//! IPsec by strongSwan.

use super::carrier::{Carrier, Form};
use super::profile::{Ability, Direction, DutProfile, GatewayTraffic, PacketLimit};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use strum::{IntoStaticStr, VariantArray};
use units::human::counted;
use wire::Suite;

/// IPsec by strongSwan: IKEv2 between two `charon`, with new secrets at each start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrongSwan {
    /// Data path.
    pub data_path: DataPath,
    /// ESP suite.
    pub suite: Suite,
    /// How the gateways authenticate.
    pub auth: IkeAuth,
    /// Whether a pre-shared key is mixed in against quantum computers (RFC 8784).
    pub ppk: bool,
    /// Whether ML-KEM-768 is added to the key exchange (RFC 9370); needs strongSwan 6.
    pub ml_kem: bool,
    /// Tunnels, each with separate SAs under one IKE SA; 1 to [`TUNNELS_MAX`](Self::TUNNELS_MAX).
    // Older journals have one tunnel.
    #[serde(default = "crate::one")]
    pub tunnels: u16,
}

/// Data path of strongSwan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum DataPath {
    /// `kernel-libipsec`, in the daemon: for kernels without ESP. Its ESP is in UDP always.
    Libipsec,
    /// The kernel's XFRM: bare ESP.
    Kernel,
    /// The kernel's XFRM: ESP in UDP, as between gateways with NAT in between (RFC 3948).
    KernelUdp,
}

impl DataPath {
    /// Whether the kernel seals and opens, and not the daemon.
    #[must_use]
    pub const fn in_kernel(self) -> bool {
        !matches!(self, Self::Libipsec)
    }

    /// Name in campaigns.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// How IKEv2 peers authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum IkeAuth {
    /// A pre-shared key.
    Psk,
    /// Certificates of a private CA, ECDSA P-256.
    Certificates,
}

impl IkeAuth {
    /// Name in campaigns.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Time to start both daemons, and to agree on the first SAs.
pub const IKE_UP: Duration = Duration::from_millis(400);
/// Time for one more tunnel with a key exchange: SAs agreed on, looked at and taken down.
pub const TUNNEL_SET_UP: Duration = Duration::from_millis(5);
impl StrongSwan {
    /// Longest packet that `kernel-libipsec` takes: its TUN buffer's length, independent of the
    /// MTU.
    pub const LIBIPSEC_PACKET_BYTES_MAX: u16 = 1400;

    /// Most tunnels between two gateways.
    pub const TUNNELS_MAX: u16 = 1000;

    /// How its packets look between the gateways.
    #[must_use]
    pub const fn carrier(&self) -> Carrier {
        Carrier {
            form: Form::Esp,
            suite: self.suite,
            // kernel-libipsec has no bare ESP.
            udp: !matches!(self.data_path, DataPath::Kernel),
        }
    }

    pub(super) fn profile(&self) -> DutProfile {
        let mut profile = DutProfile::tunnel(self.carrier(), self.in_words());
        profile.tunnels = self.tunnels.into();
        // A station in a gateway's place opens and seals with the keys from its IKE daemon's log.
        profile.directions = &Direction::ALL;
        profile.gateway_traffic = GatewayTraffic::Keepalives;
        // The first tunnel comes with the IKE SA, and is in `IKE_UP`.
        profile.set_up = TUNNEL_SET_UP * u32::from(self.tunnels.saturating_sub(1));
        profile.beside = IKE_UP;
        profile.abilities.extend([
            Ability::Attack,
            Ability::Rekey,
            Ability::Crash,
            Ability::SetUp,
            Ability::Peers,
        ]);
        profile.packet_limit = (self.data_path == DataPath::Libipsec).then_some(PacketLimit {
            bytes: Self::LIBIPSEC_PACKET_BYTES_MAX,
            by: "kernel-libipsec",
            help: "`data_path: kernel`",
        });
        profile
    }

    fn in_words(&self) -> String {
        let data_path = match self.data_path {
            DataPath::Kernel => "the kernel's XFRM for strongSwan",
            DataPath::KernelUdp => "the kernel's XFRM for strongSwan, in UDP",
            DataPath::Libipsec => "strongSwan's kernel-libipsec",
        };
        let auth = match self.auth {
            IkeAuth::Psk => "pre-shared key",
            IkeAuth::Certificates => "certificates",
        };
        let mut words = vec![
            format!("ESP {} by {data_path}", self.suite),
            auth.to_owned(),
        ];
        for (is_on, word) in [(self.ppk, "PPK"), (self.ml_kem, "ML-KEM-768")] {
            if is_on {
                words.push(word.to_owned());
            }
        }
        if self.tunnels > 1 {
            words.push(counted(self.tunnels, "tunnel"));
        }
        words.join(", ")
    }
}
