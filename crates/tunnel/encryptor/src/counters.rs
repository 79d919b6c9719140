//! Counters: every packet in is a packet out or exactly one drop reason.
//!
//! A worker counts in a private [`Tally`], plain numbers, and publishes it once a batch with
//! relaxed stores: one writer, any reader, no read-modify-write on the packet path.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Declares the reasons with their names in one place, so that none is forgotten.
macro_rules! drop_reasons {
    ($($(#[doc = $doc:literal])+ $reason:ident = $name:literal,)+) => {
        /// Why a packet was dropped. Each dropped packet has exactly one reason.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum DropReason {
            $($(#[doc = $doc])+ $reason,)+
        }

        impl DropReason {
            /// All reasons, in the order of [`Tally::dropped`].
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$reason),+];

            /// Name in metrics and reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$reason => $name,)+
                }
            }
        }
    };
}

drop_reasons! {
    /// Clear side: not a whole IP packet or Ethernet frame, or inconsistent with its virtio header.
    Malformed = "malformed",
    /// Clear side: no tunnel's traffic selectors match (RFC 4301 §4.4.1).
    NoTunnel = "no_tunnel",
    /// Clear side: no keys are negotiated with the peer yet.
    NoKeys = "no_keys",
    /// Clear side: the hard lifetime of the keys is over, and there are no new ones (RFC 4301
    /// §4.4.2.1).
    KeysExpired = "keys_expired",
    /// Clear side: the ESP packet would not fit the path's MTU.
    TooBig = "too_big",
    /// Clear side: the outbound SA has no sequence numbers or bytes left.
    SequenceExhausted = "sequence_exhausted",
    /// Clear side: the crypto engine failed, and there was no fallback.
    SealFailed = "seal_failed",
    /// Clear side: the kernel rejected the datagram (no buffers, no route).
    SendFailed = "send_failed",
    /// Cipher side: a NAT keepalive (RFC 3948 §2.3).
    Keepalive = "keepalive",
    /// Cipher side: a message of IKE, passed to its thread (RFC 3948 §2.2). It is lost if too many
    /// wait there.
    IkeMessage = "ike_message",
    /// Cipher side: too short for ESP, or not ESP.
    Runt = "runt",
    /// Cipher side: no SA with this SPI.
    NoSa = "no_sa",
    /// Cipher side: the hard lifetime of the SA is over.
    SaExpired = "sa_expired",
    /// Cipher side: the sequence number was seen before.
    Replayed = "replayed",
    /// Cipher side: the sequence number is left of the replay window.
    TooOld = "too_old",
    /// Cipher side: the integrity check failed.
    IntegrityFailed = "integrity_failed",
    /// Cipher side: authentic, but its trailer is wrong.
    BadTrailer = "bad_trailer",
    /// Cipher side: the crypto engine failed, and there was no fallback.
    OpenFailed = "open_failed",
    /// Cipher side: a dummy packet (RFC 4303 §2.6).
    Dummy = "dummy",
    /// Cipher side: authentic, but the payload is not of the tunnel's kind: no IP packet, frame or
    /// aggregate.
    BadPayload = "bad_payload",
    /// Cipher side: a pseudowire's packet that ends within the L2TPv3 header.
    L2tpRunt = "l2tp_runt",
    /// Cipher side: a pseudowire's packet with another session or cookie (RFC 3931 §4.1).
    BadCookie = "bad_cookie",
    /// Cipher side: the tunnel's traffic selectors do not match the inner packet (RFC 4301 §5.2).
    Policy = "policy",
    /// Cipher side: the outer header signals congestion, which the inner packet cannot carry (RFC
    /// 6040 §4.2).
    Congestion = "congestion",
    /// Cipher side: the clear port rejected the packet.
    WriteFailed = "write_failed",
}

impl DropReason {
    /// Number of reasons of the clear side; the rest belong to the cipher side.
    const CLEAR_SIDE: usize = Self::Keepalive as usize;
}

/// Packets and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    /// Packets as on a wire: each segment of a super-packet counts.
    pub packets: u64,
    /// Bytes: of IP on the clear side, of ESP on the cipher side.
    pub bytes: u64,
}

impl Flow {
    /// Counts one packet.
    #[inline]
    pub const fn add(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}

/// All counts of one lane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Received on the clear side.
    pub clear_rx: Flow,
    /// Lost before the clear side's port, so not received ([`port::ClearPort::missed`]).
    pub clear_missed: u64,
    /// Sent on the clear side.
    pub clear_tx: Flow,
    /// Received on the cipher side.
    pub cipher_rx: Flow,
    /// Sent on the cipher side.
    pub cipher_tx: Flow,
    /// Clear packets that share an ESP packet with one before them (RFC 9347).
    pub joined: u64,
    /// ESP packets that begin with the rest of a clear packet, which an earlier one begins with.
    pub continued: u64,
    /// Clear packets that came in an ESP packet with one before them.
    pub split: u64,
    /// ESP packets that held only parts of packets, or padding.
    pub absorbed: u64,
    /// Packets that a peer has split, with a missing or wrong part: a lower bound. Not part of any
    /// balance, because the parts that arrived are counted as received.
    pub incomplete: u64,
    /// ICMP errors sent for packets that did not fit (RFC 1191, RFC 4443). Counted nowhere else.
    pub icmp_sent: u64,
    /// Dropped packets, in the order of [`DropReason::ALL`].
    pub dropped: [u64; DropReason::ALL.len()],
}

impl Tally {
    /// Counts `packets` dropped for one reason.
    #[inline]
    pub const fn drop(&mut self, reason: DropReason, packets: u64) {
        self.dropped[reason as usize] += packets;
    }

    /// Whether every packet received is sent or dropped, on each side.
    #[must_use]
    pub fn balances(&self) -> bool {
        let (clear, cipher) = self.dropped.split_at(DropReason::CLEAR_SIDE);
        let (clear, cipher): (u64, u64) = (clear.iter().sum(), cipher.iter().sum());
        // Aggregation changes the number of packets: a joined one leaves in the ESP packet of
        // another, a continued one needs another ESP packet. `split` and `absorbed` are their
        // counterparts.
        self.clear_rx.packets + self.continued == self.cipher_tx.packets + self.joined + clear
            && self.cipher_rx.packets + self.split == self.clear_tx.packets + self.absorbed + cipher
    }

    /// Every count by name: `clear_rx_packets`, `cipher_tx_bytes`, `dropped_packets.replayed` …
    pub fn named(&self) -> impl Iterator<Item = (String, u64)> + use<> {
        let drops = DropReason::ALL.map(|reason| format!("dropped_packets.{}", reason.name()));
        let plain = PLAIN.iter().map(|name| (*name).to_owned());
        plain.chain(drops).zip(self.values())
    }

    fn values(&self) -> [u64; VALUES] {
        let mut values = [0; VALUES];
        let (plain, dropped) = values.split_at_mut(PLAIN.len());
        plain.copy_from_slice(&self.plain());
        dropped.copy_from_slice(&self.dropped);
        values
    }

    fn from_values(values: &[u64; VALUES]) -> Self {
        let mut tally = Self::default();
        let (plain, dropped) = values.split_at(PLAIN.len());
        for (count, value) in tally.plain_mut().into_iter().zip(plain) {
            *count = *value;
        }
        tally.dropped.copy_from_slice(dropped);
        tally
    }
}

impl std::ops::Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (a, b) = (self.values(), other.values());
        Self::from_values(&std::array::from_fn(|at| a[at] + b[at]))
    }
}

/// Declares the counts that are not drops by their fields, so that names and values have one order.
macro_rules! plain_counts {
    ($($flow:ident)+; $($count:ident)+) => {
        /// Names of the counts that are not drops, in the order of [`Tally::values`].
        const PLAIN: &[&str] = &[
            $(
                concat!(stringify!($flow), "_packets"),
                concat!(stringify!($flow), "_bytes"),
            )+
            $(concat!(stringify!($count), "_packets"),)+
        ];

        impl Tally {
            const fn plain(&self) -> [u64; PLAIN.len()] {
                [$(self.$flow.packets, self.$flow.bytes,)+ $(self.$count,)+]
            }

            const fn plain_mut(&mut self) -> [&mut u64; PLAIN.len()] {
                [$(&mut self.$flow.packets, &mut self.$flow.bytes,)+ $(&mut self.$count,)+]
            }
        }
    };
}

plain_counts! {
    clear_rx clear_tx cipher_rx cipher_tx;
    joined split absorbed icmp_sent incomplete clear_missed continued
}

const VALUES: usize = PLAIN.len() + DropReason::ALL.len();

/// A lane's tally for readers on other threads: up to one batch old.
#[derive(Debug)]
pub struct Counters([AtomicU64; VALUES]);

impl Default for Counters {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; VALUES])
    }
}

impl Counters {
    /// Publishes `tally` to readers.
    #[inline]
    pub fn publish(&self, tally: &Tally) {
        for (counter, value) in self.0.iter().zip(tally.values()) {
            counter.store(value, Relaxed);
        }
    }

    /// Returns the last published tally; single values may be one batch apart.
    #[must_use]
    pub fn read(&self) -> Tally {
        Tally::from_values(&std::array::from_fn(|at| self.0[at].load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_numbered_in_the_order_of_all() {
        for (at, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at);
        }
        assert_eq!(
            DropReason::ALL[DropReason::CLEAR_SIDE],
            DropReason::Keepalive
        );
    }

    #[test]
    fn readers_see_what_was_published() {
        let mut tally = Tally::default();
        tally.clear_rx.add(1500);
        tally.cipher_tx.add(1556);
        tally.cipher_rx.add(90);
        tally.drop(DropReason::WriteFailed, 1);
        tally.incomplete = 5;
        tally.clear_missed = 4;
        assert!(tally.balances());
        let counters = Counters::default();
        counters.publish(&tally);
        assert_eq!(counters.read(), tally);
        let named: Vec<_> = tally.named().filter(|(_, value)| *value > 0).collect();
        let named: Vec<_> = named
            .iter()
            .map(|(name, value)| (name.as_str(), *value))
            .collect();
        assert_eq!(
            named,
            [
                ("clear_rx_packets", 1),
                ("clear_rx_bytes", 1500),
                ("cipher_rx_packets", 1),
                ("cipher_rx_bytes", 90),
                ("cipher_tx_packets", 1),
                ("cipher_tx_bytes", 1556),
                ("incomplete_packets", 5),
                ("clear_missed_packets", 4),
                ("dropped_packets.write_failed", 1),
            ]
        );
        tally.drop(DropReason::Malformed, 1);
        assert!(!tally.balances());
    }
}
