//! Orders to the thread of IKE.

use std::os::unix::net::UnixDatagram;

/// An order to a peer's sessions. In a datagram its first byte differs from the marker's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Stop = 1,
    Rekey = 2,
    Probe = 3,
}

impl Order {
    /// Sends the order to the thread; it is dropped if too many wait.
    pub(super) fn send(self, number: u16, orders: &UnixDatagram) {
        let [high, low] = number.to_be_bytes();
        let _ = orders.send(&[self as u8, high, low]);
    }

    /// The order in a datagram, and the number of its peer.
    pub(super) fn parse(bytes: &[u8]) -> Option<(Self, usize)> {
        let [order, high, low] = *bytes else {
            return None;
        };
        let all = [Self::Stop, Self::Rekey, Self::Probe];
        let order = all.into_iter().find(|it| *it as u8 == order)?;
        Some((order, usize::from(u16::from_be_bytes([high, low]))))
    }
}
