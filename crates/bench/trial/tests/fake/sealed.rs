//! The sealed packets of the fake's tunnel, and the keys that open them.

use engine::CpuChoice;
use esp::{OutboundSa, TRAILER_ROOM};
use journal::record::CipherLink;
use keying::{ObserverKeys, Side, spi_of};
use lab::{Network, StaticTunnels};
use plan::Encryptor;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use testbed::protocol::Sample;
use wire::Suite;
use wire::l2tp::{Cookie, Encapsulation, IpSession, Session};

const GATEWAYS: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
const PORT: u16 = 4500;
const UDP: u8 = 17;
const IPV4: u8 = 4;

/// A tunnel with static keys.
#[derive(Debug, Clone)]
pub(crate) struct Tunnel {
    pub(crate) keys: Arc<StaticTunnels>,
    /// A frame that gw1 sent, with one packet from station A to station B.
    pub(crate) frame: Vec<u8>,
}

impl Default for Tunnel {
    fn default() -> Self {
        let [texts, _] = keying::pair_texts().unwrap();
        let keys = ObserverKeys::read(&texts).unwrap();
        let frame = frame(&keys);
        let [a, b] = GATEWAYS.map(IpAddr::from);
        let network = |text| vec![Network::parse(text).unwrap()];
        let keys = Arc::new(StaticTunnels {
            keys,
            encryptor: Encryptor::new(Suite::Aes256Gcm),
            gateways: vec![GATEWAYS],
            port: PORT,
            sessions: [session(a, b), session(b, a)],
            networks: [network("10.1.0.0/24"), network("10.2.0.0/24")],
        });
        Self { keys, frame }
    }
}

impl Tunnel {
    /// A sample with two packets, if they are requested.
    pub(crate) fn sample(&self, link: &CipherLink, packets: u32) -> Sample {
        let count = packets.min(2) as usize;
        Sample {
            link: link.clone(),
            packets: vec![self.frame.clone(); count],
            not_whole: 0,
            contents: None,
        }
    }
}

fn session(source: IpAddr, target: IpAddr) -> IpSession {
    let session = Session {
        encapsulation: Encapsulation::Ip,
        id: 1,
        cookie: Cookie::NONE,
    };
    IpSession::new(source, target, session).unwrap()
}

fn frame(keys: &ObserverKeys) -> Vec<u8> {
    let keys = keys
        .inbound(Suite::Aes256Gcm, Side::A, spi_of(1, 0))
        .unwrap();
    let selection = engine::select(&CpuChoice::Auto, Suite::Aes256Gcm).unwrap();
    let mut sa = OutboundSa::new(keys.spi, selection.transform(&keys.keymat));
    let mut inner = ip_packet([[10, 1, 0, 2], [10, 2, 0, 2]], &[7; 40]);
    let bytes = inner.len();
    inner.resize(bytes + TRAILER_ROOM, 0);
    let mut esp = vec![0; sa.sealed_len(bytes) + TRAILER_ROOM];
    let sealed = sa.seal(&mut inner, bytes, IPV4, &mut esp).unwrap();
    let length = (8 + sealed) as u16;
    let udp = [PORT, PORT, length, 0].map(u16::to_be_bytes).concat();
    let outer = ip_packet(
        GATEWAYS.map(|address| address.octets()),
        &[&udp, &esp[..sealed]].concat(),
    );
    [&[0; 12][..], &0x0800_u16.to_be_bytes(), &outer].concat()
}

fn ip_packet([source, target]: [[u8; 4]; 2], payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 20];
    let bytes = (20 + payload.len()) as u16;
    (packet[0], packet[9]) = (0x45, UDP);
    packet[2..4].copy_from_slice(&bytes.to_be_bytes());
    packet[12..16].copy_from_slice(&source);
    packet[16..20].copy_from_slice(&target);
    packet.extend(payload);
    packet
}
