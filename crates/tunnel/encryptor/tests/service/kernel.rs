//! Linux's own IPsec as the peer: XFRM with ESP in UDP and extended sequence numbers, from the same
//! static keys.
//!
//! ```text
//!   ns A: cb0 10.1.0.1 ~ gateway ~ w0 192.0.2.1 ==== 192.0.2.2 w1 ~ XFRM ~ 10.2.0.1 lo :ns B
//! ```

use crate::gateway::Gateway;
use crate::namespace::{Namespace, pair};
use crate::tests::{keys, one_tunnel, start};
use keying::{SaKeys, StaticKeys};
use nix::sys::socket::setsockopt;
use std::net::UdpSocket;
use std::process::Command;
use wire::Suite;

/// The port of both ends.
const PORT: u16 = 4500;
/// Epoch 1, lane 0: a gateway's SPI after its first start.
const FIRST_SPI: u32 = 1 << 12;
/// RFC 3948 encapsulation, `linux/udp.h`.
const UDP_ENCAP_ESPINUDP: usize = 2;

/// Passes the packets to a UDP port to XFRM.
#[derive(Clone)]
struct UdpEncap;

nix::setsockopt_impl!(
    UdpEncap,
    libc::IPPROTO_UDP,
    libc::UDP_ENCAP,
    usize,
    nix::sys::socket::sockopt::SetUsize
);

pub(crate) fn the_kernel_opens_what_we_seal_and_we_open_what_it_seals() {
    for suite in [
        "aes-256-gcm",
        "aes-128-gcm",
        "chacha20-poly1305",
        "aes-256-cbc-hmac-sha512",
        "aes-128-cbc-hmac-sha256",
        "aes-128-cbc-hmac-sha1",
    ] {
        let (folder, namespaces) = (keys(), pair());
        let suite = Suite::from_name(suite).unwrap();
        let mut own = StaticKeys::open(&folder.path().join("b.key")).unwrap();
        let outbound = own.outbound(suite, 0);
        let inbound = own.inbound(suite, FIRST_SPI, 0).unwrap();
        let states = [
            state("192.0.2.1", "192.0.2.2", suite, &inbound),
            state("192.0.2.2", "192.0.2.1", suite, &outbound),
        ];
        if let Some(reason) = states.iter().find_map(|line| lacks(&namespaces[1], line)) {
            eprintln!("SKIPPED: interoperation with the kernel, {suite}: unsupported: {reason}");
            continue;
        }
        namespaces[1].ip("address add 10.2.0.1/24 dev lo\n\
             route add 10.1.0.0/24 via 192.0.2.1 src 10.2.0.1\n\
             xfrm policy add src 10.2.0.0/24 dst 10.1.0.0/24 dir out \
             tmpl src 192.0.2.2 dst 192.0.2.1 proto esp mode tunnel\n\
             xfrm policy add src 10.1.0.0/24 dst 10.2.0.0/24 dir in \
             tmpl src 192.0.2.1 dst 192.0.2.2 proto esp mode tunnel");
        let _port = namespaces[1].run(|| {
            let socket = UdpSocket::bind(("192.0.2.2", PORT)).unwrap();
            setsockopt(&socket, UdpEncap, &UDP_ENCAP_ESPINUDP).unwrap();
            socket
        });
        let config = one_tunnel(0, &format!("suite: {suite}\n"));
        let gateway: Gateway = start(0, &namespaces[0], folder.path(), &config).unwrap();
        assert!(namespaces[0].reaches("10.2.0.1"), "{suite}");
        assert!(namespaces[1].reaches("10.1.0.1"), "{suite}");
        // Lengths around block boundaries, and long ones.
        for bytes in [1, 8, 15, 16, 1300] {
            assert!(
                namespaces[0].reaches_with(bytes, "10.2.0.1"),
                "{suite}, {bytes} B"
            );
        }
        gateway.stop();
    }
}

/// The `ip` command that creates a kernel SA.
fn state(source: &str, target: &str, suite: Suite, keys: &SaKeys) -> String {
    let (key, rest) = keys.keymat.split_at(suite.key_bytes());
    let algorithms = match suite.name() {
        "aes-256-gcm" | "aes-128-gcm" => {
            format!("aead rfc4106(gcm(aes)) {} 128", hex(&keys.keymat))
        }
        "chacha20-poly1305" => {
            format!(
                "aead rfc7539esp(chacha20,poly1305) {} 128",
                hex(&keys.keymat)
            )
        }
        name => {
            let (_, hash) = name.rsplit_once('-').unwrap();
            let icv_bits = suite.icv_bytes() * 8;
            format!(
                "auth-trunc hmac({hash}) {} {icv_bits} enc cbc(aes) {}",
                hex(rest),
                hex(key)
            )
        }
    };
    format!(
        "xfrm state add src {source} dst {target} proto esp spi {} mode tunnel {algorithms} \
         replay-window 128 flag esn encap espinudp {PORT} {PORT} 0.0.0.0",
        keys.spi
    )
}

/// Creates the SA; returns the reason where the kernel has no ESP or not these algorithms.
fn lacks(namespace: &Namespace, line: &str) -> Option<String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let output = namespace.run(move || Command::new("ip").args(words).output().unwrap());
    if output.status.success() {
        return None;
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let absent = ["not found", "not supported", "unable to initialize crypto"];
    assert!(absent.iter().any(|words| said.contains(words)), "{said}");
    Some(said)
}

fn hex(bytes: &[u8]) -> String {
    format!("0x{:x}", base16ct::HexDisplay(bytes))
}
