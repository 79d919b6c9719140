//! Sessions and cookies of an L2TPv3 pseudowire between the gateways.

use std::net::Ipv4Addr;
use testbed::NodeId;
use wire::l2tp::{Cookie, Encapsulation, IpSession, Session};

/// A pseudowire's cookies are this plus the session's number: 64-bit ones cost the most.
const COOKIE: u64 = 0x6369_7068_6572_6200;

/// Returns the sessions that a gateway and its peer receive: gw1 session 1, gw2 session 2.
pub(super) const fn sessions(gateway: NodeId) -> [u32; 2] {
    match gateway {
        NodeId::Gw2 => [2, 1],
        _ => [1, 2],
    }
}

/// Returns a session's cookie in hexadecimal.
pub(super) fn cookie(session: u32) -> String {
    format!("{:016x}", COOKIE + u64::from(session))
}

/// Returns the session of a gateway's packets, between two addresses, if the pseudowire is over IP.
pub(super) fn sent_in(gateway: NodeId, source: Ipv4Addr, target: Ipv4Addr) -> IpSession {
    let [_, id] = sessions(gateway);
    let cookie = (COOKIE + u64::from(id)).to_be_bytes();
    let session = Session {
        encapsulation: Encapsulation::Ip,
        id,
        cookie: Cookie::new(&cookie).expect("eight bytes are a cookie"),
    };
    IpSession::new(source.into(), target.into(), session).expect("both addresses are IPv4")
}
