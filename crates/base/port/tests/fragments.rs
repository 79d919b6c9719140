//! [`wire::overhead::ipv4_packets`] against the kernel: datagrams of every size around an MTU.

mod veth;

use std::net::UdpSocket;
use veth::{Ip, ip, with_pair};
use wire::overhead::{UDP_HEADER_BYTES, ipv4_packets};

/// Frames that have left `v0`.
fn frames_sent() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let mut lines = text.lines();
    let counters = lines.find_map(|line| line.trim().strip_prefix("v0:"));
    // Eight counters of what was received, then bytes and packets sent.
    let packets = counters.and_then(|counters| counters.split_whitespace().nth(9));
    packets.expect("v0 counts").parse().expect("a number")
}

#[test]
fn datagrams_are_as_many_packets_as_the_kernel_makes_of_them() {
    with_pair(Ip::V4, |_| {
        let socket = UdpSocket::bind("10.8.0.1:0").unwrap();
        for mtu in [576, 1280, 1400, 1438, 1500, 9000, 9216] {
            ip(&format!("link set v0 mtu {mtu}"));
            let whole = mtu - 28;
            // Around one packet, two and three, and every remainder of 8.
            let sizes = [whole, 2 * whole, 3 * whole];
            let sizes = sizes.into_iter().flat_map(|size| size - 20..=size + 20);
            let (mut expected, mut datagrams) = (0, 0);
            let before = frames_sent();
            for bytes in sizes {
                assert_eq!(
                    socket.send_to(&vec![0; bytes], "10.8.0.2:9").unwrap(),
                    bytes
                );
                expected += ipv4_packets(bytes + UDP_HEADER_BYTES, mtu) as u64;
                datagrams += 1;
                assert_eq!(
                    frames_sent() - before,
                    expected,
                    "{datagrams} datagrams, the last of {bytes} B, MTU {mtu}"
                );
            }
        }
    });
}
