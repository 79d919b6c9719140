//! Stations on the clear sides of two gateways, which lose nothing.

use crate::namespace::Namespace;
use crate::tests::await_that;
use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::time::Duration;

/// Maximum number of packets in transit.
const IN_FLIGHT: usize = 16;

/// Two sockets at both ends of the tunnel; no packet may be lost.
pub(crate) struct Stations {
    /// The one on the side of gw1.
    pub(crate) a: UdpSocket,
    b: UdpSocket,
}

impl Stations {
    pub(crate) fn new(namespaces: &[Namespace; 2]) -> Self {
        let bind = |side: usize| {
            let address = ["10.1.0.1:7000", "10.2.0.1:7000"][side];
            let socket = namespaces[side].run(move || UdpSocket::bind(address).unwrap());
            socket
                .set_read_timeout(Some(Duration::from_secs(5)))
                .unwrap();
            socket
        };
        let (a, b) = (bind(0), bind(1));
        a.connect("10.2.0.1:7000").unwrap();
        b.connect("10.1.0.1:7000").unwrap();
        Self { a, b }
    }

    /// A few packets there, and as many back; each must arrive.
    pub(crate) fn cross(&self, number: u64) {
        let mut buffer = [0; 1500];
        for (from, to) in [(&self.a, &self.b), (&self.b, &self.a)] {
            for packet in 0..IN_FLIGHT {
                let mut bytes = [0; 600];
                bytes[..8].copy_from_slice(&number.to_be_bytes());
                bytes[8] = packet as u8;
                from.send(&bytes).unwrap();
            }
            let mut missing: BTreeSet<_> = (0..IN_FLIGHT as u8).collect();
            while !missing.is_empty() {
                let bytes = to.recv(&mut buffer).expect("every packet comes");
                // Other packets are late ones from `await_passage`.
                if bytes == 600 {
                    assert_eq!(buffer[..8], number.to_be_bytes());
                    assert!(missing.remove(&buffer[8]), "each comes once");
                }
            }
        }
    }

    /// Sends one packet after the other until one passes in each direction.
    pub(crate) fn await_passage(&self) {
        for (from, to) in [(&self.a, &self.b), (&self.b, &self.a)] {
            to.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
            await_that("packets pass", || {
                from.send(b"are you there?").unwrap();
                to.recv(&mut [0; 100]).is_ok()
            });
            to.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        }
    }
}
