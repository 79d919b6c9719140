//! Sampled packets that are opened with the keys of both ends.

use engine::CpuChoice;
use keying::{FileTexts, ObserverKeys, Side, spi_of};
use std::net::{IpAddr, Ipv4Addr};
use traffic::{Content, Payload, Refusal, Tunnels, Witness};
use wire::Suite;
use wire::aggfrag::{AGGFRAG, Aggregator};
use wire::l2tp::{Cookie, Encapsulation, IpSession, Session};

const GATEWAYS: [[u8; 4]; 2] = [[192, 0, 2, 1], [192, 0, 2, 2]];
const STATIONS: [[u8; 4]; 2] = [[10, 1, 0, 2], [10, 2, 0, 2]];
const PORT: u16 = 4500;
const IPV4: u8 = 4;
const ETHERNET: u8 = 143;
/// What is in front of ESP: Ethernet, IPv4 and UDP.
const OUTER_BYTES: usize = 14 + 20 + 8;

fn pair() -> [FileTexts; 2] {
    keying::pair_texts().unwrap()
}

fn observer(texts: &[FileTexts; 2]) -> ObserverKeys {
    ObserverKeys::read(&texts[1]).unwrap()
}

fn tunnels(payload: Payload) -> Tunnels {
    Tunnels {
        suite: Suite::Aes256Gcm,
        gateways: vec![GATEWAYS.map(IpAddr::from)],
        port: PORT,
        lanes: 2,
        tunnels: 3,
        payload,
    }
}

fn ip() -> Tunnels {
    tunnels(Payload::Ip { aggregates: false })
}

/// An IPv4 packet of `bytes` bytes from one address to another.
fn packet([source, target]: [[u8; 4]; 2], protocol: u8, bytes: u16) -> Vec<u8> {
    let mut packet = vec![0; bytes.into()];
    (packet[0], packet[8], packet[9]) = (0x45, 64, protocol);
    packet[2..4].copy_from_slice(&bytes.to_be_bytes());
    packet[12..16].copy_from_slice(&source);
    packet[16..20].copy_from_slice(&target);
    packet
}

/// What a packet is sealed with.
#[derive(Clone, Copy)]
struct Seal<'k> {
    keys: &'k ObserverKeys,
    engine: &'k str,
    sender: Side,
    spi: u32,
    sequence: u64,
}

impl<'k> Seal<'k> {
    fn with(keys: &'k ObserverKeys) -> Self {
        Self {
            keys,
            engine: "auto",
            sender: Side::A,
            spi: spi_of(1, 0),
            sequence: 7,
        }
    }

    /// The ESP packet of a payload.
    fn esp(&self, inner: &[u8], next_header: u8) -> Vec<u8> {
        let keys = self.keys.inbound(Suite::Aes256Gcm, self.sender, self.spi);
        let choice: CpuChoice = self.engine.parse().unwrap();
        let selection = engine::select(&choice, Suite::Aes256Gcm).unwrap();
        let mut transform = selection.transform(&keys.unwrap().keymat);
        let mut text = inner.to_vec();
        let padding = (inner.len() + 2).next_multiple_of(4) - inner.len() - 2;
        text.extend(1..=padding as u8);
        text.extend([padding as u8, next_header]);
        let mut esp = self.spi.to_be_bytes().to_vec();
        esp.extend((self.sequence as u32).to_be_bytes());
        esp.extend(self.sequence.to_be_bytes());
        esp.resize(esp.len() + text.len() + 16, 0);
        let high = (self.sequence >> 32) as u32;
        transform.seal_from(high, &text, &mut esp).unwrap();
        esp
    }

    /// The frame of a payload, between the gateways.
    fn frame(&self, inner: &[u8], next_header: u8) -> Vec<u8> {
        let lane = keying::lane_of(self.spi) % 2;
        framed(
            &self.esp(inner, next_header),
            ends(self.sender),
            PORT + lane,
        )
    }
}

fn ends(sender: Side) -> [[u8; 4]; 2] {
    let [a, b] = GATEWAYS;
    match sender {
        Side::A => [a, b],
        Side::B => [b, a],
    }
}

fn framed(esp: &[u8], ends: [[u8; 4]; 2], port: u16) -> Vec<u8> {
    let bytes = (OUTER_BYTES - 14 + esp.len()) as u16;
    let mut outer = packet(ends, 17, bytes);
    let udp = [port, port, bytes - 20, 0].map(u16::to_be_bytes).concat();
    outer[20..28].copy_from_slice(&udp);
    outer[28..].copy_from_slice(esp);
    [&[0; 12][..], &0x0800_u16.to_be_bytes(), &outer].concat()
}

fn between([source, target]: [[u8; 4]; 2]) -> [IpAddr; 2] {
    [source, target].map(|address| Ipv4Addr::from(address).into())
}

#[test]
fn what_either_end_sealed_in_any_tunnel_lane_and_epoch_is_opened() {
    let texts = pair();
    let keys = observer(&texts);
    let witness = Witness::new(&keys, ip()).unwrap();
    for sender in [Side::A, Side::B] {
        for (epoch, slot) in [(1, 0), (1, 5), (9, 3), (keying::EPOCH_MAX, 4)] {
            for (bytes, sequence) in [
                (20, 1),
                (60, 5_000_000_000),
                (60, 1 << 32),
                (1437, (1 << 42) - 1),
            ] {
                let seal = Seal {
                    sender,
                    sequence,
                    spi: spi_of(epoch, slot),
                    ..Seal::with(&keys)
                };
                let frame = seal.frame(&packet(STATIONS, 6, bytes), IPV4);
                let content = Content {
                    sender,
                    packets: vec![between(STATIONS)],
                };
                assert_eq!(witness.open(&frame), Ok(content.clone()), "{epoch} {slot}");
                // The same again: a sample may be of any age.
                assert_eq!(witness.open(&frame), Ok(content));
            }
        }
    }
}

#[test]
fn one_wrong_bit_anywhere_is_not_authentic() {
    let keys = observer(&pair());
    let witness = Witness::new(&keys, ip()).unwrap();
    let frame = Seal::with(&keys).frame(&packet(STATIONS, 17, 64), IPV4);
    assert!(witness.open(&frame).is_ok());
    // Behind the SPI: in the sequence number, the IV, the text and the ICV.
    for at in [
        OUTER_BYTES + 7,
        OUTER_BYTES + 12,
        OUTER_BYTES + 40,
        frame.len() - 1,
    ] {
        let mut wrong = frame.clone();
        wrong[at] ^= 0x10;
        assert_eq!(witness.open(&wrong), Err(Refusal::IntegrityFailed), "{at}");
    }
}

#[test]
fn clear_text_in_the_form_of_esp_is_not_authentic() {
    let keys = observer(&pair());
    let witness = Witness::new(&keys, ip()).unwrap();
    let null = Seal {
        engine: engine::NULL,
        ..Seal::with(&keys)
    };
    let frame = null.frame(&packet(STATIONS, 6, 1400), IPV4);
    assert_eq!(witness.open(&frame), Err(Refusal::IntegrityFailed));
}

#[test]
fn other_keys_are_not_those_of_the_spi() {
    let (keys, others) = (observer(&pair()), observer(&pair()));
    let witness = Witness::new(&keys, ip()).unwrap();
    let inner = packet(STATIONS, 6, 100);
    let other = Seal::with(&others).frame(&inner, IPV4);
    assert_eq!(witness.open(&other), Err(Refusal::IntegrityFailed));
    let seal = Seal::with(&keys);
    // Of another direction, epoch and slot.
    let esp = seal.esp(&inner, IPV4);
    let back = framed(&esp, ends(Side::B), PORT);
    assert_eq!(witness.open(&back), Err(Refusal::IntegrityFailed));
    for (spi, port) in [(spi_of(2, 0), PORT), (spi_of(1, 2), PORT)] {
        let named = [&spi.to_be_bytes(), &esp[4..]].concat();
        let frame = framed(&named, ends(Side::A), port);
        assert_eq!(
            witness.open(&frame),
            Err(Refusal::IntegrityFailed),
            "{spi:x}"
        );
    }
}

#[test]
fn what_no_tunnel_uses_has_no_sa() {
    let keys = observer(&pair());
    let witness = Witness::new(&keys, ip()).unwrap();
    let esp = Seal::with(&keys).esp(&packet(STATIONS, 6, 100), IPV4);
    let gateways = ends(Side::A);
    // Another lane's port, ports below and above, a stranger, a slot beyond the last, no epoch.
    let [a, _] = GATEWAYS;
    let mut wrong: Vec<_> = [PORT + 1, PORT - 1, PORT + 2]
        .map(|port| framed(&esp, gateways, port))
        .into();
    wrong.push(framed(&esp, [a, [192, 0, 2, 9]], PORT));
    wrong.push(framed(&esp, [a, a], PORT));
    for spi in [spi_of(1, 6), spi_of(0, 0)] {
        let named = [&spi.to_be_bytes(), &esp[4..]].concat();
        wrong.push(framed(&named, gateways, PORT));
    }
    for frame in wrong {
        assert_eq!(witness.open(&frame), Err(Refusal::NoSa), "{frame:02x?}");
    }
}

#[test]
fn a_packet_that_is_cut_is_not_opened() {
    let keys = observer(&pair());
    let witness = Witness::new(&keys, ip()).unwrap();
    let seal = Seal::with(&keys);
    let inner = packet(STATIONS, 6, 100);
    let frame = seal.frame(&inner, IPV4);
    for bytes in [0, 13, 30, OUTER_BYTES, OUTER_BYTES + 20, frame.len() - 1] {
        assert!(witness.open(&frame[..bytes]).is_err(), "{bytes}");
    }
    let esp = seal.esp(&inner, IPV4);
    for (bytes, refusal) in [
        (3, Refusal::Runt),
        (30, Refusal::Runt),
        (esp.len() - 4, Refusal::IntegrityFailed),
        (esp.len() - 1, Refusal::IntegrityFailed),
    ] {
        let frame = framed(&esp[..bytes], ends(Side::A), PORT);
        assert_eq!(witness.open(&frame), Err(refusal), "{bytes}");
    }
}

#[test]
fn each_mode_opens_its_own_payload_and_no_other() {
    let keys = observer(&pair());
    let seal = Seal::with(&keys);
    let inner = packet(STATIONS, 17, 100);
    let frame = [&[2; 12][..], &0x0800_u16.to_be_bytes(), &inner].concat();
    let session = |ends: [[u8; 4]; 2], id| {
        let [source, target] = ends.map(|address| Ipv4Addr::from(address).into());
        let session = Session {
            encapsulation: Encapsulation::Ip,
            id,
            cookie: Cookie::new(&[id as u8; 8]).unwrap(),
        };
        IpSession::new(source, target, session).unwrap()
    };
    let sessions = [session(ends(Side::A), 2), session(ends(Side::B), 1)];
    let mut pseudowire = vec![0; sessions[0].header_bytes()];
    sessions[0]
        .write_headers(frame.len(), 0, &mut pseudowire)
        .unwrap();
    pseudowire.extend(&frame);
    let mut room = [0; 500];
    let mut aggregator = Aggregator::begin(room.len());
    let other = packet([STATIONS[1], STATIONS[0]], 6, 60);
    assert!(aggregator.push(&mut room, &inner) && aggregator.push(&mut room, &other));
    let aggregate = aggregator.finish(&mut room);
    let sealed = [
        seal.frame(&inner, IPV4),
        seal.frame(&room[..aggregate], AGGFRAG),
        seal.frame(&frame, ETHERNET),
        seal.frame(&pseudowire, IPV4),
    ];
    let one = vec![between(STATIONS)];
    let gateways = vec![between(ends(Side::A))];
    let two = vec![one[0], [one[0][1], one[0][0]]];
    // Only in a pseudowire of IP packets the gateways' own packet would be one like any other.
    let cases = [
        (
            Payload::Ip { aggregates: false },
            [Some(&one), None, None, Some(&gateways)],
        ),
        (
            Payload::Ip { aggregates: true },
            [Some(&one), Some(&two), None, Some(&gateways)],
        ),
        (Payload::Ethernet, [None, None, Some(&one), None]),
        (
            Payload::Pseudowire(sessions),
            [None, None, None, Some(&one)],
        ),
    ];
    for (payload, expected) in cases {
        let witness = Witness::new(&keys, tunnels(payload.clone())).unwrap();
        for (frame, expected) in sealed.iter().zip(expected) {
            let packets = witness.open(frame).map(|content| content.packets);
            let expected = expected.cloned().ok_or(Refusal::BadPayload);
            assert_eq!(packets, expected, "{payload:?}");
        }
    }
}

#[test]
fn dummies_and_malformed_packets_are_named() {
    let keys = observer(&pair());
    let witness = Witness::new(&keys, ip()).unwrap();
    let seal = Seal::with(&keys);
    let inner = packet(STATIONS, 6, 60);
    let open = |inner: &[u8], next_header| witness.open(&seal.frame(inner, next_header));
    assert_eq!(open(&inner, 59), Err(Refusal::Dummy));
    assert_eq!(open(&inner, 41), Err(Refusal::BadPayload));
    // Shorter than its header says, and longer, as padding against traffic analysis makes it.
    assert_eq!(open(&inner[..59], IPV4), Err(Refusal::BadPayload));
    assert!(open(&[&inner[..], &[0; 300]].concat(), IPV4).is_ok());
    assert_eq!(Refusal::IntegrityFailed.name(), "integrity_failed");
    assert_eq!(Refusal::OpenFailed.name(), "open_failed");
}
