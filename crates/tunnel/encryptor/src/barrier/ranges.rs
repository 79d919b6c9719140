//! The addresses behind the peers, as disjoint ranges.

use crate::config::Peer;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use yaml::Prefix;

/// Networks that no router forwards: addresses of a link, of this host, and of groups. A peer's
/// larger network does not include them.
const OF_A_LINK: [(IpAddr, u8); 9] = [
    (IpAddr::V4(Ipv4Addr::new(0, 0, 0, 0)), 8),
    (IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8),
    (IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0)), 16),
    (IpAddr::V4(Ipv4Addr::new(224, 0, 0, 0)), 4),
    (IpAddr::V4(Ipv4Addr::BROADCAST), 32),
    (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 128),
    (IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
    (IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), 10),
    (IpAddr::V6(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0)), 8),
];

/// First and last address, as numbers.
type Range = (u128, u128);

/// Disjoint ranges of addresses, in rising order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ranges {
    v4: Vec<Range>,
    v6: Vec<Range>,
}

impl Ranges {
    /// The networks behind the peers. A network in a peer's `local` belongs to this side if it is a
    /// part of a network behind the same peer: so a branch may route 10.0.0.0/8 to its peer and
    /// have 10.1.0.0/24 itself.
    pub(super) fn of(peers: &[Peer]) -> Self {
        let [mut v4, mut v6] = [Vec::new(), Vec::new()];
        for peer in peers {
            let (remote, local) = (&peer.selectors.remote, &peer.selectors.local);
            for network in remote {
                let parts = match network.address() {
                    IpAddr::V4(_) => &mut v4,
                    IpAddr::V6(_) => &mut v6,
                };
                parts.extend(without(*network, local));
            }
        }
        Self {
            v4: joined(v4),
            v6: joined(v6),
        }
    }

    pub(super) fn contain(&self, address: IpAddr) -> bool {
        let ranges = match address {
            IpAddr::V4(_) => &self.v4,
            IpAddr::V6(_) => &self.v6,
        };
        let number = number(address);
        // The first range that does not end before the address; the ranges are disjoint and rising.
        let at = ranges.partition_point(|(_, last)| *last < number);
        ranges.get(at).is_some_and(|(first, _)| *first <= number)
    }

    /// As elements of a set of nftables.
    pub(super) fn v4(&self) -> Vec<String> {
        let address = |number: u128| Ipv4Addr::from_bits(number as u32);
        let text = |(first, last): &Range| elements(first == last, address(*first), address(*last));
        self.v4.iter().map(text).collect()
    }

    pub(super) fn v6(&self) -> Vec<String> {
        let address = Ipv6Addr::from_bits;
        let text = |(first, last): &Range| elements(first == last, address(*first), address(*last));
        self.v6.iter().map(text).collect()
    }

    /// As networks; a range may need several.
    pub(super) fn v4_networks(&self) -> Vec<String> {
        let networks = self.v4.iter().flat_map(|range| networks(*range, 32));
        networks
            .map(|(first, length)| format!("{}/{length}", Ipv4Addr::from_bits(first as u32)))
            .collect()
    }

    pub(super) fn v6_networks(&self) -> Vec<String> {
        let networks = self.v6.iter().flat_map(|range| networks(*range, 128));
        networks
            .map(|(first, length)| format!("{}/{length}", Ipv6Addr::from_bits(first)))
            .collect()
    }
}

/// The largest networks that make up a range of addresses of `bits` bits: first address and length.
fn networks((first, last): Range, bits: u32) -> impl Iterator<Item = (u128, u32)> {
    let mut next = Some(first);
    std::iter::from_fn(move || {
        let first = next.filter(|first| *first <= last)?;
        // A network must begin at a multiple of its size, and end within the range.
        let fits = |host: &u32| {
            let ones = u128::MAX.checked_shr(128 - host).unwrap_or(0);
            first & ones == 0 && last - first >= ones
        };
        let host = (0..=bits).take_while(fits).last().unwrap_or(0);
        let ones = u128::MAX.checked_shr(128 - host).unwrap_or(0);
        next = (first | ones).checked_add(1);
        Some((first, bits - host))
    })
}

fn elements(single: bool, first: impl ToString, last: impl ToString) -> String {
    if single {
        first.to_string()
    } else {
        format!("{}-{}", first.to_string(), last.to_string())
    }
}

/// A network without those parts that are this side's or a link's.
fn without(network: Prefix, local: &[Prefix]) -> Vec<Range> {
    let links = OF_A_LINK.map(|(address, length)| Prefix::new(address, length));
    let others = local.iter().copied().chain(links.into_iter().flatten());
    let mut parts: Vec<_> = others
        // Only smaller networks are cut out: of two equal ones, or if the local one is larger, the
        // longest prefix leads to the peer.
        .filter(|part| network.contains(part.address()) && part.length() > network.length())
        .map(range)
        .collect();
    parts.sort_unstable();
    let (first, last) = range(network);
    let (mut kept, mut next) = (Vec::new(), Some(first));
    for (start, end) in parts {
        if let Some(from) = next
            && from < start
        {
            kept.push((from, start - 1));
        }
        // The maximum, because a part may contain the next one. `None` behind the last address of
        // all.
        next = next.and_then(|from| Some(from.max(end.checked_add(1)?)));
    }
    kept.extend(next.filter(|from| *from <= last).map(|from| (from, last)));
    kept
}

/// Joins ranges that overlap or touch.
fn joined(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable();
    let mut disjoint: Vec<Range> = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        match disjoint.last_mut() {
            // A set of nftables with intervals refuses elements that overlap.
            Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
            _ => disjoint.push((first, last)),
        }
    }
    disjoint
}

fn range(network: Prefix) -> Range {
    let bits = if network.address().is_ipv4() { 32 } else { 128 };
    let first = number(network.address());
    let host = u128::MAX
        .checked_shr(128 - bits + u32::from(network.length()))
        .unwrap_or(0);
    (first, first | host)
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use proptest::prelude::*;

    fn ranges(peers: &str) -> Ranges {
        let text = format!("local: 192.0.2.1\npeers:\n{peers}");
        Ranges::of(&Config::from_text("gw1.yaml", &text).unwrap().peers)
    }

    fn peer(more: &str) -> String {
        format!("- {{ remote: 192.0.2.2, keys: {{ static: a.key }}, {more} }}\n")
    }

    #[test]
    fn this_sides_network_is_cut_out_of_its_peers_larger_one() {
        let one = ranges(&peer("routes: [10.0.0.0/8], local: [10.1.0.0/24]"));
        assert_eq!(
            one.v4(),
            ["10.0.0.0-10.0.255.255", "10.1.1.0-10.255.255.255"]
        );
        // Not out of another peer's: a hub forwards between the two.
        let other = peer("routes: [10.1.0.0/16, 10.3.0.7/32]");
        let both = ranges(&(peer("routes: [10.2.0.0/16], local: [10.1.0.0/24]") + &other));
        assert_eq!(both.v4(), ["10.1.0.0-10.2.255.255", "10.3.0.7"]);
    }

    #[test]
    fn a_range_is_made_of_the_largest_networks() {
        let one = ranges(&peer(
            "routes: [10.0.0.0/30, 10.0.0.4/32, 10.9.0.0/24, \"fd00:2::/64\"]",
        ));
        let expected = ["10.0.0.0/30", "10.0.0.4/32", "10.9.0.0/24"];
        assert_eq!(one.v4_networks(), expected);
        assert_eq!(one.v6_networks(), ["fd00:2::/64"]);
        let all = networks((0, u128::MAX), 128).collect::<Vec<_>>();
        assert_eq!(all, [(0, 0)]);
        let ends = networks((1, u128::MAX), 128).collect::<Vec<_>>();
        assert_eq!((ends.len(), ends[127]), (128, (1 << 127, 1)));
    }

    #[test]
    fn addresses_of_a_link_are_not_behind_a_peer_unless_routed_there() {
        let all = ranges(&peer("routes: [\"::/0\", 169.254.10.0/30]"));
        for (address, behind) in [
            ("fe80::1", false),
            ("ff02::1", false),
            ("::", false),
            ("2001:db8::1", true),
            ("ffff::", false),
            ("169.254.10.2", true),
            ("169.254.10.4", false),
        ] {
            assert_eq!(all.contain(address.parse().unwrap()), behind, "{address}");
        }
        assert_eq!(all.v6().len(), 2, "{:?}", all.v6());
    }

    proptest! {
        /// Compared with a look at each network in turn.
        #[test]
        fn ranges_contain_what_the_longest_network_says(
            networks in prop::collection::vec((any::<u8>(), 0u8..=8, any::<bool>()), 1..12),
        ) {
            let prefix = |bits: u8, length: u8| {
                Prefix::around(IpAddr::from([10, 0, 0, bits]), 24 + length).unwrap()
            };
            let of = |wanted: bool| {
                let kind = networks.iter().filter(move |(.., local)| *local == wanted);
                kind.map(|(bits, length, _)| prefix(*bits, *length)).collect::<Vec<_>>()
            };
            let (remote, local) = (of(false), of(true));
            let parts = remote.iter().flat_map(|network| without(*network, &local));
            let ranges = Ranges { v4: joined(parts.collect()), v6: Vec::new() };
            for last in 0..=255 {
                let address = IpAddr::from([10, 0, 0, last]);
                let longest = |list: &[Prefix]| {
                    let containing = list.iter().filter(|network| network.contains(address));
                    containing.map(|network| network.length()).max()
                };
                let expected = longest(&remote).is_some_and(|own| longest(&local) <= Some(own));
                prop_assert_eq!(ranges.contain(address), expected, "{}", address);
            }
        }
    }
}
