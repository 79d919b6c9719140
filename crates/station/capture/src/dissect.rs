//! Dissects a frame into protocols, with Wireshark's names, down to the transport protocol and the
//! tunnel formats above it.
//!
//! Frames may be cut anywhere: an incomplete header ends the path before it.

use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::ethernet::{ARP, IPV4, IPV6, SERVICE_VLAN, VLAN};
use wire::headers::{be16, be32};

/// Wireshark's default UDP ports of tunnels. The spec adds the ports of ESP in UDP.
const UDP_FORMS: [(u16, &str); 4] = [
    (500, "isakmp"),
    (1194, "openvpn"),
    (1701, "l2tp"),
    (51820, "wg"),
];

/// The layers of a frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dissected {
    /// Names of the protocols, from the outermost to the innermost.
    pub path: Vec<&'static str>,
    /// The frame's ESP packet, if any.
    pub esp: Option<EspFlow>,
}

/// Identifies the SA of an ESP packet (RFC 4301 §4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EspFlow {
    /// Outer source address.
    pub source: IpAddr,
    /// Outer target address.
    pub target: IpAddr,
    /// SPI.
    pub spi: u32,
}

/// Dissects a frame from its Ethernet header on; `esp_ports` are UDP ports that carry ESP.
#[must_use]
pub fn dissect(frame: &[u8], esp_ports: &[u16]) -> Dissected {
    let mut found = Dissected::default();
    if frame.len() < 14 {
        return found;
    }
    found.path.push("eth");
    let (mut ethertype, mut at) = (be16(frame, 12), 14);
    // Any number of tags, as in IEEE 802.1ad, but none beyond the cut.
    while matches!(ethertype, VLAN | SERVICE_VLAN) && frame.len() >= at + 4 {
        found.path.push(match ethertype {
            VLAN => "vlan",
            _ => "ieee8021ad",
        });
        ethertype = be16(frame, at + 2);
        at += 4;
    }
    let packet = &frame[at..];
    match ethertype {
        ARP => found.path.push("arp"),
        IPV4 if packet.len() >= 20 => found.ip_v4(packet, esp_ports),
        IPV6 if packet.len() >= 40 => found.ip_v6(packet, esp_ports),
        _ => {}
    }
    found
}

impl Dissected {
    fn ip_v4(&mut self, packet: &[u8], esp_ports: &[u16]) {
        self.path.push("ip");
        let address = |at: usize| IpAddr::from(Ipv4Addr::from(be32(packet, at)));
        let header_bytes = usize::from(packet[0] & 15) * 4;
        // Only the first fragment has the transport header.
        let is_later_fragment = be16(packet, 6) & 0x1fff != 0;
        if let (Some(inner), false) = (packet.get(header_bytes..), is_later_fragment) {
            self.transport(packet[9], inner, [address(12), address(16)], esp_ports);
        }
    }

    fn ip_v6(&mut self, packet: &[u8], esp_ports: &[u16]) {
        self.path.push("ipv6");
        let address = |at: usize| {
            let bytes: [u8; 16] = std::array::from_fn(|byte| packet[at + byte]);
            IpAddr::from(Ipv6Addr::from(bytes))
        };
        let ends = [address(8), address(24)];
        // Extension headers are not followed: test traffic and tunnels have none.
        self.transport(packet[6], &packet[40..], ends, esp_ports);
    }

    fn transport(&mut self, protocol: u8, inner: &[u8], ends: [IpAddr; 2], esp_ports: &[u16]) {
        let (name, header_bytes) = match protocol {
            1 => ("icmp", 8),
            6 => ("tcp", 20),
            17 => ("udp", 8),
            47 => ("gre", 4),
            50 => ("esp", 8),
            58 => ("icmpv6", 4),
            115 => ("l2tp", 4),
            _ => return,
        };
        if inner.len() < header_bytes {
            return;
        }
        match name {
            "udp" => self.datagram(inner, ends, esp_ports),
            "esp" => self.esp(inner, ends),
            _ => self.path.push(name),
        }
    }

    fn datagram(&mut self, datagram: &[u8], ends: [IpAddr; 2], esp_ports: &[u16]) {
        self.path.push("udp");
        let ports = [be16(datagram, 0), be16(datagram, 2)];
        let payload = &datagram[8..];
        // A datagram cut behind its header shows no form.
        if payload.is_empty() {
            return;
        }
        if ports.iter().any(|port| esp_ports.contains(port)) {
            self.path.push("udpencap");
            match payload {
                // A keep-alive (RFC 3948 §2.3).
                [0xff] => {}
                // IKE after the non-ESP marker (RFC 3948 §2.2).
                [0, 0, 0, 0, ..] => self.path.push("isakmp"),
                _ if payload.len() >= 8 => self.esp(payload, ends),
                _ => {}
            }
        } else if let Some((_, form)) = UDP_FORMS.iter().find(|(port, _)| ports.contains(port)) {
            self.path.push(form);
        }
    }

    fn esp(&mut self, packet: &[u8], [source, target]: [IpAddr; 2]) {
        self.path.push("esp");
        self.esp = Some(EspFlow {
            source,
            target,
            spi: be32(packet, 0),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(protocol: u8, inner: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0]);
        frame.extend([192, 0, 2, 1, 192, 0, 2, 2]);
        frame.extend(inner);
        frame
    }

    fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
        let [high, low] = port.to_be_bytes();
        let header = [&[0x99, 0x99, high, low, 0, 0, 0, 0], payload].concat();
        v4(17, &header)
    }

    fn path(frame: &[u8]) -> String {
        dissect(frame, &[4500]).path.join(":")
    }

    #[test]
    fn forms_of_tunnels_are_told_apart_by_port_and_marker() {
        let esp = [0, 0, 1, 2, 0, 0, 0, 9, 1, 1];
        assert_eq!(path(&udp(4500, &esp)), "eth:ip:udp:udpencap:esp");
        let sa = dissect(&udp(4500, &esp), &[4500]).esp.unwrap();
        assert_eq!((sa.spi, sa.source.to_string()), (0x102, "192.0.2.1".into()));
        assert_eq!(path(&udp(4500, &[0; 20])), "eth:ip:udp:udpencap:isakmp");
        assert_eq!(path(&udp(4500, &[0xff])), "eth:ip:udp:udpencap");
        assert_eq!(path(&udp(51820, &[4; 40])), "eth:ip:udp:wg");
        assert_eq!(path(&udp(7, &[4; 40])), "eth:ip:udp");
        assert_eq!(path(&v4(50, &esp)), "eth:ip:esp");
        assert_eq!(path(&v4(6, &[0; 20])), "eth:ip:tcp");
    }

    #[test]
    fn cut_frames_and_later_fragments_end_where_they_are_known() {
        let frame = udp(4500, &[1; 20]);
        assert_eq!(path(&frame[..46]), "eth:ip:udp:udpencap");
        assert_eq!(path(&frame[..42]), "eth:ip:udp");
        assert_eq!(path(&frame[..41]), "eth:ip");
        assert_eq!(path(&frame[..33]), "eth");
        assert_eq!(path(&frame[..13]), "");
        let mut fragment = frame;
        fragment[21] = 1;
        assert_eq!(path(&fragment), "eth:ip");
    }

    #[test]
    fn tags_and_ipv6_are_layers() {
        let mut frame = vec![2; 12];
        frame.extend([
            0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 58, 64,
        ]);
        frame.extend([0; 32 + 8]);
        assert_eq!(path(&frame), "eth:ieee8021ad:vlan:ipv6:icmpv6");
        assert_eq!(path(&[&[2; 12][..], &[8, 6], &[0; 28]].concat()), "eth:arp");
    }
}
