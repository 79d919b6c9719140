//! Forged ICMP.

use super::Site;
use crate::gateway::Gateway;
use crate::tests::await_that;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, SockaddrIn6, sendto,
    socket,
};
use std::net::{Ipv4Addr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::process::Command;
use testing::attack;

/// A message of ICMP or ICMPv6, without checksum: the packet of 192.0.2.1:7777, or fd00:99::1, to
/// port 8888 at the other end was too big.
fn too_big(v4: bool) -> Vec<u8> {
    let ports = [7777u16.to_be_bytes(), 8888u16.to_be_bytes()].concat();
    let mut quoted = if v4 {
        let mut header = vec![0x45, 0, 5, 0xdc, 0, 0, 0x40, 0, 64, 17, 0, 0];
        header.extend([192, 0, 2, 1, 192, 0, 2, 2]);
        header
    } else {
        let mut header = vec![0x60, 0, 0, 0, 5, 0xb4, 17, 64];
        for host in [1, 2] {
            header.extend([0xfd, 0, 0, 0x99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
        header
    };
    quoted.extend(ports);
    quoted.extend([5, 0xb4, 0, 0]);
    quoted.extend([0; 64]);
    let mut message = if v4 {
        vec![3, 4, 0, 0, 0, 0, 2, 40]
    } else {
        vec![2, 0, 0, 0, 0, 0, 5, 0]
    };
    message.extend(quoted);
    if v4 {
        let sum = message.chunks(2).fold(0u32, |sum, pair| {
            sum + u32::from(u16::from_be_bytes([pair[0], pair[1]]))
        });
        let folded = (sum & 0xffff) + (sum >> 16);
        let checksum = !(((folded & 0xffff) + (folded >> 16)) as u16);
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
    }
    message
}

pub(crate) fn forged_icmp_changes_nothing_for_the_next_start() {
    let site = Site::new();
    for (v4, own, peer, learned) in [
        (true, "192.0.2.1", "192.0.2.2", "mtu 552"),
        (false, "fd00:99::1", "fd00:99::2", "mtu 1280"),
    ] {
        let start = || {
            let config = format!(
                "local: \"{own}\"\nremote: \"{peer}\"\nkeys: {{ static: a.key }}\n\
                 tunnel: {{ routes: [10.2.0.0/24] }}\n"
            );
            let file = site.folder.path().join("gw1.yaml");
            Gateway::start(&site.gateway, &file, &config)
        };
        let mtu = |gateway: &Gateway| gateway.facts["mtu"].parse::<u64>().unwrap();
        let gateway = start().unwrap();
        let before = mtu(&gateway);
        gateway.stop();
        // Any program on the gateway that talks to the peer.
        let _program = site.gateway.run(move || {
            let socket = UdpSocket::bind((own, 7777)).unwrap();
            socket.connect((peer, 8888)).unwrap();
            socket.send(b"any").unwrap();
            socket
        });
        site.outside.run(move || {
            let (family, protocol) = if v4 {
                (AddressFamily::Inet, SockProtocol::Icmp)
            } else {
                (AddressFamily::Inet6, SockProtocol::IcmpV6)
            };
            let flags = SockFlag::SOCK_CLOEXEC;
            let socket = socket(family, SockType::Raw, flags, protocol).unwrap();
            let (message, flags) = (too_big(v4), MsgFlags::empty());
            let to = socket.as_raw_fd();
            let sent = if v4 {
                let target = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 0);
                sendto(to, &message, &SockaddrIn::from(target), flags)
            } else {
                let target = SocketAddrV6::new("fd00:99::1".parse().unwrap(), 0, 0, 0);
                sendto(to, &message, &SockaddrIn6::from(target), flags)
            };
            assert_eq!(sent, Ok(message.len()));
        });
        await_that("the kernel believes the message", || {
            let output = site.gateway.run(move || {
                let mut ip = Command::new("ip");
                ip.args(["route", "get", peer]).output().unwrap()
            });
            String::from_utf8(output.stdout).unwrap().contains(learned)
        });
        let after = start().map_or(0, |gateway| {
            let after = mtu(&gateway);
            gateway.stop();
            after
        });
        let version = if v4 { 4 } else { 6 };
        attack(
            &format!("bytes of MTU that forged ICMP costs the next start (IPv{version})"),
            before - after,
            0,
        );
    }
}
