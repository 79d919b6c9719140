//! Which inner packets a peer may send: those from the networks behind it (RFC 4301 §5.2).

use crate::config::Tunnel;
use wire::headers::source_address;
use yaml::Prefix;

/// The networks behind a peer; a handful, looked through in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Networks(pub Vec<Prefix>);

impl Networks {
    /// Those that are routed into a tunnel, and the one that its own address is in.
    #[must_use]
    pub fn behind(tunnel: &Tunnel) -> Self {
        let own = tunnel.address.map(|address| address.network);
        Self(tunnel.routes.iter().copied().chain(own).collect())
    }

    /// Whether the packet's source address is in one of them.
    #[inline]
    #[must_use]
    pub fn contain_source_of(&self, packet: &[u8]) -> bool {
        source_address(packet).is_some_and(|source| self.0.iter().any(|net| net.contains(source)))
    }
}
