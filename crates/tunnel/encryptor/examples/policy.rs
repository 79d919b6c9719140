//! Cost of a packet's tunnel look-up: `cargo run --release -p cipherbench-encryptor --example
//! policy`.
//!
//! Prints nanoseconds per look-up, the best of some rounds, for packets to random tunnels.

use encryptor::policy::{Policy, Selectors};
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;
use wire::headers::IpView;
use yaml::Prefix;

const PACKETS: usize = 4096;
const ROUNDS: usize = 200;

fn main() {
    println!(
        "{:>8} {:>10} {:>10} {:>22}",
        "tunnels", "IPv4 /24", "IPv6 /64", "IPv4 /24, protocol"
    );
    for tunnels in [1, 10, 100, 1000, 4000] {
        let v4 = measure(tunnels, v4_network, None);
        let v6 = measure(tunnels, v6_network, None);
        let selected = measure(tunnels, v4_network, Some(17));
        println!("{tunnels:>8} {v4:>7.1} ns {v6:>7.1} ns {selected:>19.1} ns");
    }
}

/// Spread over the address space, so that they share few nodes.
const fn scatter(tunnel: u32) -> u32 {
    tunnel.wrapping_mul(0x9e37_79b1)
}

fn v4_network(tunnel: u32) -> Prefix {
    let address = IpAddr::V4(Ipv4Addr::from_bits(scatter(tunnel)));
    Prefix::around(address, 24).expect("24 bits fit")
}

fn v6_network(tunnel: u32) -> Prefix {
    let bits = 0x2001_0db8 << 96 | u128::from(scatter(tunnel)) << 64;
    Prefix::around(IpAddr::V6(Ipv6Addr::from_bits(bits)), 64).expect("64 bits fit")
}

fn measure(tunnels: u32, network: fn(u32) -> Prefix, protocol: Option<u8>) -> f64 {
    let selectors: Vec<_> = (0..tunnels)
        .map(|tunnel| Selectors {
            protocol,
            ..Selectors::to(vec![network(tunnel)])
        })
        .collect();
    let policy = Policy::new(&selectors);
    let packets: Vec<_> = (0..PACKETS as u32)
        .map(|number| packet_to(network(scatter(number) % tunnels).address()))
        .collect();
    let round = || {
        let start = Instant::now();
        for (packet, view) in &packets {
            black_box(policy.outbound(black_box(packet), view));
        }
        start.elapsed().as_secs_f64() * 1e9 / PACKETS as f64
    };
    (0..ROUNDS).map(|_| round()).fold(f64::MAX, f64::min)
}

/// The header and eight bytes of UDP.
fn packet_to(destination: IpAddr) -> (Vec<u8>, IpView) {
    let packet = match destination {
        IpAddr::V4(destination) => {
            let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1];
            packet.extend(destination.octets());
            packet.extend([0; 8]);
            packet
        }
        IpAddr::V6(destination) => {
            let mut packet = vec![0x60, 0, 0, 0, 0, 8, 17, 64];
            packet.extend([0; 16]);
            packet.extend(destination.octets());
            packet.extend([0; 8]);
            packet
        }
    };
    let view = IpView::parse(&packet).expect("a whole packet");
    (packet, view)
}
