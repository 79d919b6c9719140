//! The DUT's ports between the gateways.

use plan::{Form, LinkForm};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// A UDP port of a DUT's packets, and their form. A form without UDP has port number 0.
///
/// Port 500 belongs to IKE alone, so no ESP is expected on it: a message begins at the first byte
/// there, and after four zero bytes on any other port (RFC 7296 §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedPort {
    /// The port, at either end.
    pub port: u16,
    /// The packets' form.
    pub form: LinkForm,
    /// Whether a key exchange (IKE, handshakes) shares the port and may be seen there at any time.
    pub control: bool,
}

impl SealedPort {
    /// A port of ESP in UDP and nothing else.
    #[must_use]
    pub const fn esp(port: u16) -> Self {
        Self {
            port,
            form: LinkForm::Sealed(Form::Esp),
            // Cipherbench's lanes: but for IKE, its gateways agree on keys over TCP.
            control: false,
        }
    }
}

/// A TCP port of a DUT next to its tunnels, which its gateways use to agree on keys or fetch them.
/// Segments between these two addresses, to or from the listener's port, are not the stations'
/// traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlPort {
    /// Address of the listening gateway.
    pub listener: Ipv4Addr,
    /// The listener's port.
    pub port: u16,
    /// Address of the connecting gateway.
    pub connector: Ipv4Addr,
}
