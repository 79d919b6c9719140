//! Hostile packets: only the intended bytes change, and the kernel accepts their headers.

use crate::wire_tap::{Player, SOURCE_MAC, TARGET_MAC, Tap, addresses};
use etherparse::{IpNumber, PacketBuilder, SlicedPacket, TransportSlice};
use port::{FRAME_SLOT_BYTES, FramePortStats, FrameReceiver, FrameSender, Stop};
use proptest::prelude::*;
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use traffic::attack;
use traffic::hostile::{AHEAD, Random, Sealed};
use traffic_spec::{Attack, AttackKind, Attacked, Clock, Monotonic, SealedForm};

const FORMS: [SealedForm; 3] = [SealedForm::Esp, SealedForm::WireGuard, SealedForm::OpenVpn];
const PORT: u16 = 4500;

/// The carrier of a sealed packet.
#[derive(Debug, Clone, Copy)]
struct Carrier {
    ipv6: bool,
    /// In UDP; bare otherwise.
    udp: bool,
    checksum: bool,
    tagged: bool,
    /// The known port is the source's.
    outbound: bool,
}

const PLAIN: Carrier = Carrier {
    ipv6: false,
    udp: true,
    checksum: true,
    tagged: false,
    outbound: true,
};

impl Carrier {
    fn ports(self) -> &'static [u16] {
        if self.udp { &[7, PORT] } else { &[] }
    }

    fn payload_at(self) -> usize {
        let ip = if self.ipv6 { 40 } else { 20 };
        14 + if self.tagged { 4 } else { 0 } + ip + if self.udp { 8 } else { 0 }
    }

    /// A frame with this payload, followed by some link padding.
    fn frame(self, payload: &[u8]) -> Vec<u8> {
        let ethernet = PacketBuilder::ethernet2(SOURCE_MAC, TARGET_MAC);
        let (source, target) = addresses(self.ipv6);
        let ip = match (source, target) {
            (IpAddr::V4(source), IpAddr::V4(target)) => {
                ethernet.ipv4(source.octets(), target.octets(), 64)
            }
            (IpAddr::V6(source), IpAddr::V6(target)) => {
                ethernet.ipv6(source.octets(), target.octets(), 64)
            }
            _ => unreachable!("both are of one version"),
        };
        let mut frame = Vec::new();
        if self.udp {
            let (from, to) = if self.outbound { (PORT, 9) } else { (9, PORT) };
            ip.udp(from, to).write(&mut frame, payload).unwrap();
            if !self.checksum {
                let field = frame.len() - payload.len() - 2;
                frame[field..field + 2].fill(0);
            }
        } else {
            ip.write(&mut frame, IpNumber(50), payload).unwrap();
        }
        if self.tagged {
            frame.splice(12..12, [0x81, 0x00, 0x00, 0x05]);
        }
        frame.extend([0xee; 5]);
        frame
    }
}

fn carrier() -> impl Strategy<Value = Carrier> {
    any::<[bool; 5]>().prop_map(|[ipv6, udp, checksum, tagged, outbound]| Carrier {
        ipv6,
        udp,
        checksum,
        tagged,
        outbound,
    })
}

/// A sealed packet of this form with this sequence number.
fn payload(form: SealedForm, number: u64, bytes: usize) -> Vec<u8> {
    let low = (number as u32).to_be_bytes();
    let head: Vec<u8> = match form {
        SealedForm::Esp => [[0xca, 0xfe, 0, 1], low].concat(),
        SealedForm::WireGuard => [&[4, 0, 0, 0, 1, 2, 3, 4][..], &number.to_le_bytes()].concat(),
        SealedForm::OpenVpn => [[9 << 3 | 2, 0, 0, 1], low].concat(),
    };
    let body = (head.len()..bytes).map(|at| at as u8);
    [&head[..], &body.collect::<Vec<_>>()].concat()
}

/// The sequence number of a sealed packet.
fn number(form: SealedForm, payload: &[u8]) -> u64 {
    match form {
        SealedForm::WireGuard => u64::from_le_bytes(payload[8..16].try_into().unwrap()),
        _ => u32::from_be_bytes(payload[4..8].try_into().unwrap()).into(),
    }
}

/// Whether the carrier is valid: the UDP checksum, if there is one.
fn assert_carried(carrier: Carrier, frame: &[u8]) {
    let sliced = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(TransportSlice::Udp(udp)) = sliced.transport else {
        assert!(!carrier.udp);
        return;
    };
    if !carrier.checksum {
        assert_eq!(udp.checksum(), 0);
        return;
    }
    let expected = match sliced.net.unwrap() {
        etherparse::NetSlice::Ipv4(ip) => udp
            .to_header()
            .calc_checksum_ipv4(&ip.header().to_header(), udp.payload())
            .unwrap(),
        etherparse::NetSlice::Ipv6(ip) => udp
            .to_header()
            .calc_checksum_ipv6(&ip.header().to_header(), udp.payload())
            .unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(udp.checksum(), expected);
}

/// Bytes that may differ: the payload and the UDP checksum.
fn assert_same_headers(carrier: Carrier, before: &[u8], after: &[u8]) {
    let at = carrier.payload_at();
    let head = if carrier.udp { at - 2 } else { at };
    assert_eq!(before[..head], after[..head]);
    let end = before.len() - 5;
    assert_eq!(before[end..], after[end..]);
}

proptest! {
    #[test]
    fn a_spoiled_packet_is_ahead_and_wrong_in_its_last_bit(
        form in prop::sample::select(&FORMS[..]),
        carrier in carrier(),
        number_before: u64,
        bytes in 32usize..1500,
    ) {
        let form = if carrier.udp { form } else { SealedForm::Esp };
        let before = carrier.frame(&payload(form, number_before, bytes));
        let sealed = Sealed::find(&before, form, carrier.ports()).unwrap();
        let at = carrier.payload_at()..carrier.payload_at() + bytes;
        prop_assert_eq!(sealed.payload(), at.clone());
        let mut after = before.clone();
        sealed.spoil(&mut after);
        assert_same_headers(carrier, &before, &after);
        assert_carried(carrier, &after);
        let mut expected = payload(form, number_before.wrapping_add(AHEAD.into()), bytes);
        *expected.last_mut().unwrap() ^= 1;
        prop_assert_eq!(&after[at], &expected[..]);
        // The result could be captured itself.
        prop_assert_eq!(Sealed::find(&after, form, carrier.ports()), Some(sealed));
    }

    #[test]
    fn garbage_has_the_headers_and_the_length_and_nothing_else(
        form in prop::sample::select(&FORMS[..]),
        carrier in carrier(),
        seed: u64,
        bytes in 32usize..1500,
    ) {
        let form = if carrier.udp { form } else { SealedForm::Esp };
        let before = carrier.frame(&payload(form, 7, bytes));
        let sealed = Sealed::find(&before, form, carrier.ports()).unwrap();
        let scramble = |random: &mut Random| {
            let mut after = before.clone();
            sealed.scramble(&mut after, random);
            after
        };
        let mut random = Random::new(seed);
        let (first, second) = (scramble(&mut random), scramble(&mut random));
        for after in [&first, &second] {
            assert_same_headers(carrier, &before, after);
            assert_carried(carrier, after);
            prop_assert_ne!(&after[sealed.payload()][..4], &[0; 4]);
        }
        let payload = &first[sealed.payload()];
        // One in 256 is correct by chance.
        let same = payload.iter().zip(&before[sealed.payload()]).filter(|(a, b)| a == b).count();
        prop_assert!(same <= bytes / 4, "{same} of {bytes}");
        prop_assert_ne!(&first, &second);
        prop_assert_eq!(scramble(&mut Random::new(seed)), first);
    }

    #[test]
    fn what_is_cut_short_is_not_sealed(
        form in prop::sample::select(&FORMS[..]),
        carrier in carrier(),
        cut in 6usize..200,
    ) {
        let form = if carrier.udp { form } else { SealedForm::Esp };
        let mut frame = carrier.frame(&payload(form, 1, 100));
        frame.truncate(frame.len().saturating_sub(cut));
        prop_assert_eq!(Sealed::find(&frame, form, carrier.ports()), None);
    }
}

#[test]
fn what_is_not_sealed_is_left_alone() {
    let found = |form, payload: &[u8], ports: &[u16]| {
        Sealed::find(&PLAIN.frame(payload), form, ports).is_some()
    };
    for form in FORMS {
        let good = payload(form, 1, 100);
        assert!(found(form, &good, &[PORT]));
        assert!(!found(form, &good, &[PORT + 1]), "another port");
        assert!(!found(form, &good, &[]), "not bare");
        let mut other = good.clone();
        other[0] = 0;
        other[1..4].fill(0);
        assert!(!found(form, &other, &[PORT]), "{form:?} with another type");
        let short = if form == SealedForm::WireGuard {
            31
        } else {
            15
        };
        assert!(!found(form, &good[..short], &[PORT]), "{form:?} of {short}");
        let mut fragment = PLAIN.frame(&good);
        fragment[20] |= 0x20;
        assert_eq!(Sealed::find(&fragment, form, &[PORT]), None);
        let mut wrong_length = PLAIN.frame(&good);
        wrong_length[39] -= 1;
        assert_eq!(Sealed::find(&wrong_length, form, &[PORT]), None);
    }
    // IKE on its own port begins with a cookie.
    let ike = payload(SealedForm::Esp, 1, 100);
    let mut frame = PLAIN.frame(&ike);
    frame[34..38].copy_from_slice(&[0x01, 0xf4, 0x01, 0xf4]);
    assert_eq!(Sealed::find(&frame, SealedForm::Esp, &[500, PORT]), None);
    for form in [SealedForm::WireGuard, SealedForm::OpenVpn] {
        let bare = Carrier {
            udp: false,
            ..PLAIN
        };
        let frame = bare.frame(&payload(form, 1, 100));
        assert_eq!(Sealed::find(&frame, form, &[]), None);
    }
}

fn hostile(kind: AttackKind, packets_per_s: u64, duration_ns: u64) -> Attack {
    Attack {
        kind,
        form: SealedForm::Esp,
        ports: vec![PORT],
        packets_per_s,
        duration_ns,
    }
}

/// Time that advances only during waits, visible to a DUT.
#[derive(Default)]
struct Shared(AtomicU64);

impl Clock for Shared {
    fn now_ns(&self) -> u64 {
        self.0.load(Relaxed)
    }

    fn wait_until(&self, time_ns: u64, _: &Stop) {
        self.0.fetch_max(time_ns, Relaxed);
    }
}

/// A DUT that seals one packet per millisecond, seen at each poll: number n at the n-th
/// millisecond.
struct Dut<'a>(&'a Shared);

impl FrameReceiver for Dut<'_> {
    fn recv(&mut self, mut read: impl FnMut(&mut [u8])) -> io::Result<usize> {
        let number = self.0.now_ns() / 1_000_000;
        read(&mut PLAIN.frame(&payload(SealedForm::Esp, number, 100)));
        // Not one of those.
        read(&mut PLAIN.frame(&[0xff]));
        Ok(2)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn stats(&self) -> FramePortStats {
        FramePortStats::default()
    }
}

/// The packets sent in four seconds at a thousand per second, by sequence number.
fn attacked(kind: AttackKind) -> (Attacked, Vec<u64>, Tap) {
    let (clock, stop, mut tap) = (Shared::default(), Stop::new().unwrap(), Tap::new());
    let spec = hostile(kind, 1000, 4_000_000_000);
    let attacked = attack(&mut Dut(&clock), &mut tap, &spec, 1, &clock, &stop).unwrap();
    let numbers = tap.frames.iter();
    let numbers = numbers.map(|frame| number(SealedForm::Esp, &frame[PLAIN.payload_at()..]));
    (attacked, numbers.collect(), tap)
}

#[test]
fn spoiled_packets_are_made_of_the_latest() {
    let (attacked, numbers, _) = attacked(AttackKind::BadIcv);
    assert_eq!((attacked.sent, numbers.len()), (4000, 4000));
    assert_eq!(attacked.elapsed_ns, 3_999_000_000);
    assert!((4000..4010).contains(&attacked.captured), "{attacked:?}");
    for (sent_ms, number) in numbers.iter().enumerate() {
        let age = sent_ms as u64 + u64::from(AHEAD) - number;
        assert!(age <= 16, "number {number} at {sent_ms} ms");
    }
}

#[test]
fn every_second_replay_is_old() {
    let (attacked, numbers, tap) = attacked(AttackKind::Replay);
    assert_eq!(attacked.sent, 4000);
    for (sent_ms, number) in numbers.iter().enumerate() {
        let age = sent_ms as u64 - number;
        if sent_ms % 2 == 0 || sent_ms < 2000 {
            assert!(age <= 16, "number {number} at {sent_ms} ms");
        } else {
            assert!(
                (1000..2020).contains(&age),
                "number {number} at {sent_ms} ms"
            );
        }
        let original = PLAIN.frame(&payload(SealedForm::Esp, *number, 100));
        assert_eq!(tap.frames[sent_ms], original);
    }
    // The kept packets in turn.
    assert_ne!(numbers[3000], numbers[3002]);
}

#[test]
fn each_piece_of_garbage_is_another() {
    let (attacked, mut numbers, _) = attacked(AttackKind::Garbage);
    assert_eq!(attacked.sent, 4000);
    numbers.sort_unstable();
    numbers.dedup();
    // Of 2^32.
    assert!(numbers.len() >= 3990);
}

/// Accepts one packet in a hundred milliseconds.
struct Slow<'a>(&'a Shared, u64);

impl FrameSender for Slow<'_> {
    fn send(&mut self, _: usize, mut fill: impl FnMut(&mut [u8]) -> usize) -> io::Result<usize> {
        assert!(fill(&mut [0; FRAME_SLOT_BYTES]) > 0);
        self.0.0.fetch_add(100_000_000, Relaxed);
        self.1 += 1;
        Ok(1)
    }

    fn stats(&self) -> FramePortStats {
        FramePortStats::default()
    }
}

#[test]
fn what_a_slow_port_does_not_take_in_time_is_not_sent() {
    let (clock, stop) = (Shared::default(), Stop::new().unwrap());
    let spec = hostile(AttackKind::BadIcv, 1000, 1_000_000_000);
    let mut port = Slow(&clock, 0);
    let attacked = attack(&mut Dut(&clock), &mut port, &spec, 1, &clock, &stop).unwrap();
    assert_eq!((attacked.sent, port.1), (11, 11));
}

#[test]
fn without_a_sealed_packet_nothing_is_sent() {
    let mut silence = Player([(PLAIN.frame(&[0xff]), 1)].into());
    let (clock, stop, mut tap) = (Monotonic::new(), Stop::new().unwrap(), Tap::new());
    let spec = hostile(AttackKind::Replay, 1000, 20_000_000);
    let began_ns = clock.now_ns();
    let attacked = attack(&mut silence, &mut tap, &spec, 1, &clock, &stop).unwrap();
    assert!(clock.now_ns() - began_ns >= 20_000_000);
    assert_eq!((attacked, tap.frames.len()), (Attacked::default(), 0));

    stop.raise();
    let endless = hostile(AttackKind::Replay, 1000, u64::MAX);
    let attacked = attack(&mut silence, &mut tap, &endless, 1, &clock, &stop).unwrap();
    assert_eq!(attacked, Attacked::default());
}
