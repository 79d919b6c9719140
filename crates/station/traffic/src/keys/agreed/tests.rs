use super::*;
use crate::{KeyUse, Keys, TrafficError};
use engine::CpuChoice;
use esp::TRAILER_ROOM;
use std::io::Write as _;
use tempfile::TempDir;
use traffic_spec::{IkeKeys, KeySource, Peer};
use wire::Suite;

const GW1: &str = include_str!("../fixtures/gw1-rekeys.log");
const GW2: &str = include_str!("../fixtures/gw2-rekeys.log");
const INNER: &[u8; 20] = b"\x45\0\0\x14\0\0\0\0\x40\x11\0\0\xc6\x12\0\x02\xc6\x12\0\x01";

fn ends(tunnel: u8) -> (IpAddr, IpAddr) {
    ([198, 18, tunnel, 2].into(), [198, 18, tunnel, 1].into())
}

/// The part of a log up to a line.
fn until<'t>(text: &'t str, line: &str) -> &'t str {
    let at = text.find(line).unwrap();
    let end = text[at..].find('\n').unwrap();
    &text[..=at + end]
}

/// gw2's log before the first renewal, and gw1's at that time.
fn before_renewal() -> [&'static str; 2] {
    let last = "c1{2} state change: INSTALLING => INSTALLED";
    [until(GW1, last), until(GW2, last)]
}

struct Station {
    folder: TempDir,
}

impl Station {
    fn new(log: &str) -> Self {
        let folder = testing::folder().unwrap();
        fs::write(folder.path().join("log"), log).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn open(&self, suite: Suite) -> Result<AgreedKeys, TrafficError> {
        let selection = engine::select(&CpuChoice::Auto, suite).unwrap();
        AgreedKeys::open(selection, &self.path("log"), &self.path("sequences"))
    }

    fn add(&self, text: &str) {
        let mut file = File::options().append(true).open(self.path("log")).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
}

fn seal(sa: &mut OutboundSa) -> Vec<u8> {
    let mut text = INNER.to_vec();
    text.resize(INNER.len() + TRAILER_ROOM, 0);
    let mut packet = vec![0; sa.sealed_len(INNER.len())];
    sa.seal(&mut text, INNER.len(), 4, &mut packet).unwrap();
    packet
}

#[test]
fn one_end_opens_what_the_other_seals_before_and_after_a_rekey() {
    let [gw1, gw2] = before_renewal();
    let (one, other) = (Station::new(gw1), Station::new(gw2));
    let [receiver, sender] = [&one, &other].map(|it| it.open(Suite::Aes256Gcm).unwrap());
    let (source, target) = ends(0);
    let mut old = sender.outbound(source, target).unwrap();
    let mut packets = vec![seal(&mut old)];
    let end = GW1.find("INSTALLED => DESTROYING").unwrap();
    let end = GW1[..end].rfind('\n').unwrap() + 1;
    one.add(&GW1[gw1.len()..end]);
    // What is written in pieces is read in pieces.
    let end = until(
        GW2,
        "c0{3} established with SPIs e7a0fb1b_i bc3c123f_o and TS",
    )
    .len();
    let end = end + GW2[end..].find("REKEYED").unwrap();
    for piece in GW2.as_bytes()[gw2.len()..end].chunks(100) {
        other.add(std::str::from_utf8(piece).unwrap());
        sender.look().unwrap();
    }
    let spi = sender.outbound_spi(source, target).unwrap();
    assert_eq!((old.spi(), spi), (0x66b3_3c00, 0xbc3c_123f));
    let mut new = sender.outbound(source, target).unwrap();
    packets.push(seal(&mut new));
    packets.push(seal(&mut old));
    receiver.look().unwrap();
    for mut packet in packets {
        let spi = u32::from_be_bytes(packet[..4].try_into().unwrap());
        let opened = receiver.inbound(spi).unwrap().open(&mut packet).unwrap();
        assert_eq!(packet[opened.inner], *INNER);
    }
    assert!(receiver.inbound(7).is_none());
}

#[test]
fn senders_that_follow_one_another_repeat_no_number() {
    let station = Station::new(before_renewal()[1]);
    let (source, target) = ends(1);
    let mut seen = Vec::new();
    for _ in 0..3 {
        let keys = station.open(Suite::Aes256Gcm).unwrap();
        let mut sa = keys.outbound(source, target).unwrap();
        for _ in 0..2 {
            let packet = seal(&mut sa);
            seen.push(u32::from_be_bytes(packet[4..8].try_into().unwrap()));
        }
        // While one has the keys, another gets none.
        let second = station
            .open(Suite::Aes256Gcm)
            .unwrap()
            .outbound(source, target);
        assert!(matches!(
            second,
            Err(TrafficError::Exhausted { spi: 0x9740_f3b7 })
        ));
        keys.give_back([&sa].into_iter()).unwrap();
    }
    assert_eq!(seen, [1, 2, 3, 4, 5, 6]);
    // One that is killed gives nothing back.
    let keys = station.open(Suite::Aes256Gcm).unwrap();
    drop(keys.outbound(source, target).unwrap());
    let next = station
        .open(Suite::Aes256Gcm)
        .unwrap()
        .outbound(source, target);
    assert!(matches!(next, Err(TrafficError::Exhausted { .. })));
}

#[test]
fn errors_say_what_is_wrong() {
    let station = Station::new(before_renewal()[1]);
    let said = |error: TrafficError| error.to_string();
    let other = station.open(Suite::Aes128Gcm).unwrap();
    let (source, target) = ends(1);
    let error = said(other.outbound(source, target).unwrap_err());
    assert!(
        error.contains("keys of 36 B, and those of aes-128-gcm have 20 B"),
        "{error}"
    );
    let keys = station.open(Suite::Aes256Gcm).unwrap();
    let error = said(keys.outbound(source, source).unwrap_err());
    assert!(
        error.contains("no SA for packets from 198.18.1.2 to 198.18.1.2"),
        "{error}"
    );
    fs::write(station.path("sequences"), "9740f3b7 x\n").unwrap();
    let error = said(keys.outbound(source, target).unwrap_err());
    assert!(error.contains("sequences: it is damaged"), "{error}");
    let gone = Peer {
        keys: KeySource::Ike(IkeKeys {
            log: "/nowhere/log".to_owned(),
            sequences: station.path("sequences"),
        }),
        suite: Suite::Aes256Gcm,
        engine: "auto".to_owned(),
        local: source,
        remote: target,
        port: Some(4500),
        lanes: 1,
        tunnels: 1,
    };
    let error = said(Keys::open(&gone, KeyUse::Seal).err().unwrap());
    assert!(
        error.contains("/nowhere/log") && error.contains("help:"),
        "{error}"
    );
    let lanes = Keys::open(&Peer { lanes: 2, ..gone }, KeyUse::Seal);
    assert!(matches!(lanes, Err(TrafficError::Lanes { .. })));
}

/// A device that authenticates itself anew ends all SAs before it has others.
#[test]
fn a_sender_waits_for_the_next_sa_where_there_is_none() {
    let ended = GW2.find("INSTALLED => DESTROYING").unwrap();
    let ended = GW2[..ended].rfind('\n').unwrap() + 1;
    let station = Station::new(&GW2[ended..]);
    let (source, target) = ends(1);
    let keys = station.open(Suite::Aes256Gcm).unwrap();
    let none = keys.outbound(source, target);
    assert!(matches!(none, Err(TrafficError::NoSa { .. })));
    let found = thread::scope(|scope| {
        let waiting = scope.spawn(|| keys.first_outbound(source, target));
        station.add(before_renewal()[1]);
        waiting.join().unwrap()
    });
    assert_eq!(found.unwrap().spi(), 0x9740_f3b7);
}
