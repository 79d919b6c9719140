//! The keys to open the sealed packets of a DUT with keys from the lab.

use journal::record::OpenedPackets;
use std::fmt::Debug;
use std::net::IpAddr;
use wire::Suite;
use zeroize::Zeroizing;

/// Keys of the running DUT's tunnels. A lab has them only if it gave them to the DUT.
pub trait TunnelKeys: Debug + Send + Sync {
    /// The suite of all tunnels.
    fn suite(&self) -> Suite;

    /// The keying material of the SA with these outer addresses, the sender's first, and this SPI;
    /// `None` if it belongs to no tunnel.
    fn keymat(&self, outer: [IpAddr; 2], spi: u32) -> Option<Zeroizing<Vec<u8>>>;

    /// Opens packets that were sampled on the cipher link, each in a frame from its Ethernet
    /// header, without the gateways.
    ///
    /// # Errors
    /// When no engine of the tester has the suite: a sentence.
    fn open(&self, packets: &[Vec<u8>]) -> Result<OpenedPackets, String>;
}
