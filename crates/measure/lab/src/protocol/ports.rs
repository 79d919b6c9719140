//! The ports between the gateways that are the DUT's own.

use plan::{Form, LinkForm};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// A UDP port that carries a DUT's packets, and their form. That of a form without UDP has number
/// 0.
///
/// Port 500 belongs to IKE alone: a message begins at the first byte there, and after four zero
/// bytes on any other port (RFC 7296 §2). So no ESP is expected on port 500.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedPort {
    /// The port, of either end.
    pub port: u16,
    /// The packets' form.
    pub form: LinkForm,
    /// Whether a key exchange shares the port and may be seen there at any time: IKE, handshakes.
    pub control: bool,
}

impl SealedPort {
    /// A port of ESP in UDP and nothing else.
    #[must_use]
    pub const fn esp(port: u16) -> Self {
        Self {
            port,
            form: LinkForm::Sealed(Form::Esp),
            control: false,
        }
    }
}

/// A DUT's own TCP port beside its tunnels, over which its gateways agree on keys or fetch them.
/// Segments between these two addresses, to or from the listener's port, are not the stations'
/// traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlPort {
    /// Address that listens.
    pub listener: Ipv4Addr,
    /// The listener's port.
    pub port: u16,
    /// Address that connects.
    pub connector: Ipv4Addr,
}
