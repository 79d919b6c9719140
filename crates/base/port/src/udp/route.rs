//! The MTU of a route, from the routing table and the interface (rtnetlink(7)).
//!
//! `IP_MTU` of a socket includes the MTU that the kernel has learned from ICMP ("fragmentation
//! needed", "packet too big") for this destination through any socket of the host. Anyone on the
//! path can forge such a message, and the kernel keeps it for ten minutes. The entry of the routing
//! table does not include it.

use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::time::Duration;

/// More than the kernel puts in one reply.
const REPLY_BYTES: usize = 32 << 10;
/// The kernel answers immediately.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// `struct nlmsghdr`, `struct rtmsg`, `struct ifinfomsg`, `struct rtnexthop`.
const HEADER_BYTES: usize = 16;
const ROUTE_BYTES: usize = 12;
const LINK_BYTES: usize = 16;
const HOP_BYTES: usize = 8;
/// Alignment of attributes and next hops.
const ALIGNMENT: usize = 4;
/// Flags of an attribute's type: nested, and in network byte order.
const TYPE_MASK: u16 = 0x3fff;
/// `RTM_F_FIB_MATCH`: the entry of the table itself, not the cached result of a look-up.
const FIB_MATCH: u32 = 0x2000;
/// `RTAX_MTU`.
const METRIC_MTU: u16 = 2;

/// Returns the MTU of the route to `target`, in bytes, as `source` would use it: the interface's,
/// or the route's if that is smaller. Of several next hops the smallest counts.
///
/// # Errors
/// The kernel's error: no route, or `source` is not an address of this host.
pub(super) fn mtu(target: IpAddr, source: Option<IpAddr>) -> io::Result<usize> {
    let mut kernel = Kernel::open()?;
    let reply = kernel.ask(libc::RTM_GETROUTE, &route_request(target, source))?;
    let route = Route::parse(&reply);
    let mut smallest = route.mtu;
    // A route without a metric has the MTU of its interface, which a look-up of the route does
    // not report.
    for link in route.links {
        let reply = kernel.ask(libc::RTM_GETLINK, &link_request(link))?;
        let mtu = attribute(&reply, LINK_BYTES, libc::IFLA_MTU).and_then(number);
        let mtu = mtu.ok_or_else(|| unexpected("the interface has no MTU"))?;
        smallest = Some(smallest.map_or(mtu, |known| known.min(mtu)));
    }
    smallest
        .map(|mtu| mtu as usize)
        .ok_or_else(|| unexpected("the route has no interface"))
}

fn unexpected(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// A socket of `NETLINK_ROUTE`.
struct Kernel(Socket);

impl Kernel {
    fn open() -> io::Result<Self> {
        let socket = Socket::new(
            Domain::from(libc::AF_NETLINK),
            Type::RAW,
            Some(Protocol::from(libc::NETLINK_ROUTE)),
        )?;
        socket.set_read_timeout(Some(ANSWER_LIMIT))?;
        Ok(Self(socket))
    }

    /// Returns the body of the only message of the reply.
    fn ask(&mut self, kind: u16, body: &[u8]) -> io::Result<Vec<u8>> {
        let length = (HEADER_BYTES + body.len()) as u32;
        let mut request = length.to_ne_bytes().to_vec();
        request.extend(kind.to_ne_bytes());
        request.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
        request.resize(HEADER_BYTES, 0);
        request.extend(body);
        self.0.write_all(&request)?;
        let mut reply = vec![0; REPLY_BYTES];
        let length = self.0.read(&mut reply)?;
        reply.truncate(length);
        let [.., low, high] = *reply
            .first_chunk::<6>()
            .ok_or_else(|| unexpected("the kernel's reply is too short"))?;
        let body = reply.split_off(HEADER_BYTES.min(reply.len()));
        if i32::from(u16::from_ne_bytes([low, high])) == libc::NLMSG_ERROR {
            let code = number(&body).unwrap_or(0).cast_signed();
            // The kernel has negative codes. The least number has no opposite, so it saturates.
            return Err(io::Error::from_raw_os_error(code.saturating_neg()));
        }
        Ok(body)
    }
}

fn route_request(target: IpAddr, source: Option<IpAddr>) -> Vec<u8> {
    let family = if target.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    let bits = if target.is_ipv4() { 32 } else { 128 };
    let source_bits = if source.is_some() { bits } else { 0 };
    let mut body = vec![family as u8, bits, source_bits];
    body.resize(ROUTE_BYTES - size_of::<u32>(), 0);
    body.extend(FIB_MATCH.to_ne_bytes());
    let addresses = [(libc::RTA_DST, Some(target)), (libc::RTA_SRC, source)];
    for (kind, address) in addresses {
        match address {
            Some(IpAddr::V4(address)) => put(&mut body, kind, &address.octets()),
            Some(IpAddr::V6(address)) => put(&mut body, kind, &address.octets()),
            None => {}
        }
    }
    body
}

fn link_request(index: u32) -> Vec<u8> {
    let mut body = vec![0; LINK_BYTES];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body
}

/// Appends an attribute; its length must be a multiple of [`ALIGNMENT`].
fn put(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    body.extend(((4 + value.len()) as u16).to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
}

/// An entry of the routing table.
#[derive(Debug, PartialEq, Eq, Default)]
struct Route {
    /// The entry's MTU, if it has one.
    mtu: Option<u32>,
    /// Indices of the interfaces of all next hops.
    links: Vec<u32>,
}

impl Route {
    /// Parses the body of a `RTM_NEWROUTE`; safe on any bytes.
    fn parse(body: &[u8]) -> Self {
        let mut route = Self::default();
        for (kind, value) in attributes(body.get(ROUTE_BYTES..).unwrap_or_default()) {
            match kind {
                libc::RTA_OIF => route.links.extend(number(value)),
                libc::RTA_METRICS => {
                    let mtu = attributes(value).find(|(kind, _)| *kind == METRIC_MTU);
                    let mtu = mtu.and_then(|(_, value)| number(value));
                    route.mtu = mtu.filter(|mtu| *mtu > 0);
                }
                libc::RTA_MULTIPATH => {
                    let mut rest = value;
                    while let Some(hop) = rest.first_chunk::<HOP_BYTES>() {
                        let length = usize::from(u16::from_ne_bytes([hop[0], hop[1]]));
                        route.links.extend(number(&hop[4..]));
                        // At least a header: a length of zero would never end.
                        let next = length.max(HOP_BYTES).next_multiple_of(ALIGNMENT);
                        rest = rest.get(next..).unwrap_or_default();
                    }
                }
                _ => {}
            }
        }
        route.links.sort_unstable();
        route.links.dedup();
        route
    }
}

/// The value of an attribute behind a structure of `family_bytes`.
fn attribute(body: &[u8], family_bytes: usize, wanted: u16) -> Option<&[u8]> {
    let found = attributes(body.get(family_bytes..)?).find(|(kind, _)| *kind == wanted);
    found.map(|(_, value)| value)
}

/// Attributes: type and value, in their order. Ends at one that is not whole.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let header = bytes.first_chunk::<4>()?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]) & TYPE_MASK;
        let value = bytes.get(4..length)?;
        bytes = bytes
            .get(length.next_multiple_of(ALIGNMENT)..)
            .unwrap_or_default();
        Some((kind, value))
    })
}

fn number(value: &[u8]) -> Option<u32> {
    value.first_chunk().copied().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_route_to_this_host_has_the_mtu_of_loopback() {
        for (target, source) in [
            ("127.0.0.1", None),
            ("127.0.0.3", Some("127.0.0.1".parse().unwrap())),
        ] {
            let mtu = mtu(target.parse().unwrap(), source).unwrap();
            assert!(mtu >= 16_384, "{target}: {mtu}");
        }
    }

    #[test]
    fn every_next_hop_and_the_routes_own_mtu_are_read() {
        let mut body = vec![0; ROUTE_BYTES];
        let mut metrics = Vec::new();
        put(&mut metrics, 1, &7u32.to_ne_bytes());
        put(&mut metrics, METRIC_MTU, &1400u32.to_ne_bytes());
        put(&mut body, libc::RTA_METRICS | 0x8000, &metrics);
        let hop = |index: u32, more: &[u8]| {
            let mut bytes = ((HOP_BYTES + more.len()) as u16).to_ne_bytes().to_vec();
            bytes.extend([0, 0]);
            bytes.extend(index.to_ne_bytes());
            bytes.extend(more);
            bytes
        };
        let hops = [hop(3, &[8, 0, 5, 0, 192, 0, 2, 9]), hop(2, &[])].concat();
        put(&mut body, libc::RTA_MULTIPATH, &hops);
        let expected = Route {
            mtu: Some(1400),
            links: vec![2, 3],
        };
        assert_eq!(Route::parse(&body), expected);
        for end in 0..body.len() {
            Route::parse(&body[..end]);
        }
        assert_eq!(Route::parse(&[0xff; 64]), Route::default());
        assert_eq!(Route::parse(&[0; 64]), Route::default());
    }
}
