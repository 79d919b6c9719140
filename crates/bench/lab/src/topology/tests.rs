use super::*;
use plan::Element;

fn map() -> Map {
    map_of(&[])
}

fn map_of(path: &[Element]) -> Map {
    Map::new(&plan(path), true)
}

fn plan(path: &[Element]) -> LabPlan {
    LabPlan {
        path: path.to_vec(),
        ..LabPlan::named("test")
    }
}

const LINKS_1500: Links = Links {
    mtu: 1500,
    cipher_mtu: 9000,
    offloads: true,
    rate_bps: None,
};

#[test]
fn every_link_is_made_once_and_every_interface_gets_one_address() {
    let made: String = NodeId::ALL
        .map(|node| map().make_links(node, |_| 77))
        .concat();
    assert_eq!(made.matches("link add").count(), 4);
    assert!(made.contains(
        "link add w0 address 02:cb:00:00:00:c0 type veth peer name w1 \
         address 02:cb:00:00:00:c1 netns 77\n"
    ));
    let addressed: String = NodeId::ALL.map(|node| map().address_node(node)).concat();
    for expected in [
        "address add 10.1.0.2/24 dev a0\n",
        "address add 10.1.0.1/24 dev a1\n",
        "address add 192.0.2.1/24 dev w0\n",
        "address add 192.0.2.2/24 dev w1\n",
        "address add 10.2.0.1/24 dev b1\n",
        "address add 10.2.0.2/24 dev b0\n",
        "address add 169.254.0.1/30 dev c0\n",
        "address add 169.254.0.2/30 dev c1\n",
    ] {
        assert_eq!(addressed.matches(expected).count(), 1, "{expected}");
    }
    assert!(addressed.contains("route add default via 10.1.0.1\n"));
    assert!(addressed.contains("route add default via 10.2.0.1\n"));
}

#[test]
fn the_cipher_link_has_an_mtu_of_its_own() {
    let batch = map().set_mtu(NodeId::Gw1, LINKS_1500);
    assert!(batch.contains("link set a1 mtu 1500\n") && batch.contains("link set w0 mtu 9000\n"));
    // So has the bypass link, which carries packets sealed by a station.
    let batch = map().set_mtu(NodeId::A, LINKS_1500);
    assert!(batch.contains("link set a0 mtu 1500\n") && batch.contains("link set c0 mtu 9000\n"));
}

#[test]
fn test_networks_lie_behind_the_side_that_they_are_named_after() {
    let behind = |side, mtu| map().networks_behind(side, Links { mtu, ..LINKS_1500 });
    assert_eq!(
        behind(Side::B, 1500),
        ["10.2.0.0/24", "198.19.0.0/16", "2001:2:0:19::/64"]
    );
    // Too small for IPv6.
    assert_eq!(behind(Side::A, 1279), ["10.1.0.0/24", "198.18.0.0/16"]);
    let without = Map::new(&plan(&[]), false);
    assert_eq!(
        without.networks_behind(Side::A, LINKS_1500),
        ["10.1.0.0/24", "198.18.0.0/16"]
    );
    assert!(
        !without
            .route_test_networks(NodeId::Gw1, LINKS_1500)
            .contains("2001:")
    );
    let end = map().frame_end(W1);
    assert_eq!((end.mac, end.next_hop_mac), (W1.mac, W0.mac));
    assert_eq!(end.test_address, Ipv4Addr::new(198, 19, 0, 1));
    assert_eq!(end.test_address_v6.to_string(), "2001:2:0:19::1");
    assert_eq!(map().frame_end(C0).test_address.to_string(), "198.18.0.1");
}

#[test]
fn a_bucket_holds_a_millisecond_or_two_frames() {
    let shaped = |rate_bps| {
        let links = Links {
            rate_bps: Some(rate_bps),
            ..LINKS_1500
        };
        map().shape(NodeId::A, links)
    };
    let fast = shaped(1_000_000_000);
    assert!(
        fast.contains(
            "dev a0 root stab overhead 24 mpu 84 tsize 2048 mtu 2047 linklayer ethernet \
             tbf rate 1000000000bit burst 125000 limit 1250000\n"
        ),
        "{fast}"
    );
    let slow = shaped(1_000_000);
    assert!(slow.contains("burst 3076 limit 12304\n"), "{slow}");
    let none = map().shape(NodeId::A, LINKS_1500);
    assert!(
        none.starts_with("qdisc replace dev a0 root noqueue\n"),
        "{none}"
    );
}

#[test]
fn prefixes_of_the_labs_own_networks_are_taken() {
    assert_eq!(Map::taken(&Addresses::default()), None);
    for taken in [[198, 18, 7, 0], [198, 19, 0, 0], [169, 254, 1, 0]] {
        let addresses = Addresses {
            station_b: taken.into(),
            ..Addresses::default()
        };
        assert_eq!(Map::taken(&addresses), Some(taken.into()));
    }
}

/// Names of a map's elements.
fn elements(map: &Map) -> Vec<NodeId> {
    map.elements()
        .iter()
        .copied()
        .map(NodeId::Element)
        .collect()
}

#[test]
fn a_bridge_is_between_two_links_of_one_network() {
    let map = map_of(&[Element::Bridge]);
    let [bridge] = elements(&map)[..] else {
        panic!("{:?}", elements(&map))
    };
    assert_eq!(bridge.name(), "bridge1");
    assert!(map.interfaces(bridge).eq(["p0", "p1"]));
    assert_eq!(map.next_hop(W0), W1);
    assert_eq!(map.next_hop(W1), W0);
    assert_eq!(map.address(W1), Ipv4Addr::new(192, 0, 2, 2));
    assert_eq!(map.frame_end(W0).next_hop_mac, W1.mac);
    let made = map.make_links(NodeId::Gw1, |node| if node == bridge { 7 } else { 8 });
    assert!(
        made.contains("link add w0 ")
            && made.contains("peer name p0 address 02:cb:00:00:00:e0 netns 7\n"),
        "{made}"
    );
    let made = map.make_links(bridge, |node| if node == NodeId::Gw2 { 9 } else { 8 });
    assert!(
        made.contains("link add p1 ")
            && made.contains("peer name w1 address 02:cb:00:00:00:c1 netns 9\n"),
        "{made}"
    );
    let [near, far] = map.ports(map.elements()[0]);
    assert_eq!((near.interface, far.interface), ("p0", "p1"));
    assert_eq!(
        near.known,
        [A0, A1, W0].map(|end| [end.mac, end.test_mac]).concat()
    );
    assert_eq!(
        far.known,
        [W1, B1, B0].map(|end| [end.mac, end.test_mac]).concat()
    );
    assert_eq!(
        map.set_mtu(bridge, LINKS_1500)
            .matches("mtu 9000\n")
            .count(),
        2
    );
}

#[test]
fn a_router_is_between_two_networks_and_each_side_knows_its_way() {
    let map = map_of(&[Element::Router, Element::Bridge, Element::Router]);
    let [first, bridge, second] = elements(&map)[..] else {
        panic!("{:?}", elements(&map))
    };
    let addresses = |node| -> Vec<String> {
        let text = map.address_node(node);
        let lines = text.lines().filter(|line| line.starts_with("address add"));
        lines.map(str::to_owned).collect()
    };
    // The lab's network is not used again.
    assert_eq!(
        addresses(first),
        [
            "address add 192.0.2.2/24 dev p0",
            "address add 198.51.100.1/24 dev p1"
        ]
    );
    assert_eq!(
        addresses(second),
        [
            "address add 198.51.100.2/24 dev p0",
            "address add 203.0.113.1/24 dev p1"
        ]
    );
    assert_eq!(map.address(W0), Ipv4Addr::new(192, 0, 2, 1));
    assert_eq!(map.address(W1), Ipv4Addr::new(203, 0, 113, 2));
    let routes = |node| -> Vec<String> {
        let text = map.address_node(node);
        let lines = text.lines().filter(|line| line.starts_with("route add"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(
        routes(NodeId::Gw1),
        [
            "route add 198.51.100.0/24 via 192.0.2.2",
            "route add 203.0.113.0/24 via 192.0.2.2"
        ]
    );
    assert_eq!(
        routes(NodeId::Gw2),
        [
            "route add 192.0.2.0/24 via 203.0.113.1",
            "route add 198.51.100.0/24 via 203.0.113.1"
        ]
    );
    assert_eq!(routes(first), ["route add 203.0.113.0/24 via 198.51.100.2"]);
    assert_eq!(routes(second), ["route add 192.0.2.0/24 via 198.51.100.1"]);
    // Across the bridge.
    assert!(
        map.address_node(first)
            .contains("neigh replace 198.51.100.2 lladdr 02:cb:00:00:00:e4 dev p1 nud permanent\n")
    );
    assert_eq!(map.frame_end(W0).next_hop_mac, [2, 0xcb, 0, 0, 0, 0xe0]);
    assert_eq!(map.frame_end(W1).next_hop_mac, [2, 0xcb, 0, 0, 0, 0xe5]);
    assert_eq!(map.route_test_networks(bridge, LINKS_1500), "");
}

#[test]
fn routes_in_clear_lead_from_router_to_router_to_the_last_hops() {
    let map = map_of(&[Element::Router, Element::Router]);
    let [first, second] = elements(&map)[..] else {
        panic!("{:?}", elements(&map))
    };
    let last = [map.station_hop(W0), map.node_hop(W1)];
    let routes = |node| map.route_in_clear(node, LINKS_1500, last);
    let expected = [
        "route replace 10.1.0.0/24 via 192.0.2.3 dev p0 onlink",
        "route replace 198.18.0.0/16 via 192.0.2.3 dev p0 onlink",
        "route replace 2001:2:0:18::/64 via 2001:2:0:c::3 dev p0 onlink",
        "route replace 10.2.0.0/24 via 198.51.100.2 dev p1 onlink",
        "route replace 198.19.0.0/16 via 198.51.100.2 dev p1 onlink",
        "route replace 2001:2:0:19::/64 via 2001:2:0:d::2 dev p1 onlink",
    ];
    assert!(routes(first).lines().eq(expected), "{}", routes(first));
    assert!(routes(second).contains("10.2.0.0/24 via 203.0.113.2 dev p1 onlink\n"));
    assert!(routes(NodeId::Gw1).contains("198.19.0.0/16 via 192.0.2.2 dev w0 onlink\n"));
    // Every next hop has a neighbour entry.
    for (node, route) in [(first, routes(first)), (second, routes(second))] {
        let known = map.route_test_networks(node, LINKS_1500);
        for hop in route.lines().filter_map(|line| line.split(' ').nth(4)) {
            assert!(
                known.contains(&format!("neigh replace {hop} lladdr ")),
                "{hop}: {known}"
            );
        }
    }
}

#[test]
fn a_network_behind_a_router_is_none_that_the_lab_has() {
    let mut plan = plan(&[Element::Router; 4]);
    plan.addresses.station_a = [198, 51, 100, 0].into();
    plan.addresses.station_b = [192, 168, 250, 0].into();
    let map = Map::new(&plan, true);
    let expected = [
        [192, 0, 2, 0],
        [203, 0, 113, 0],
        [192, 168, 251, 0],
        [192, 168, 252, 0],
        [192, 168, 253, 0],
    ];
    assert_eq!(map.networks, expected.map(Ipv4Addr::from));
}

#[test]
fn the_last_nat_of_a_path_gives_gw1_the_address_that_gw2_sees() {
    let inner = Ipv4Addr::new(192, 0, 2, 1);
    for path in [&[][..], &[Element::Router, Element::Bridge]] {
        let map = map_of(path);
        assert_eq!(map.translations(), []);
        assert_eq!(map.seen_address(W0), inner);
    }
    let map = map_of(&[Element::Nat, Element::Bridge, Element::Router, Element::Nat]);
    let translations = map.translations();
    let [(first, outside), (second, further_outside)] = &translations[..] else {
        panic!("{translations:?}");
    };
    assert_eq!([first, second].map(|node| node.name()), ["nat1", "nat4"]);
    // The second NAT hides the address given by the first.
    assert_eq!(
        [outside.inner, further_outside.inner],
        [inner, outside.outer]
    );
    assert_eq!(map.seen_address(W0), further_outside.outer);
    assert_ne!(outside.outer, further_outside.outer);
    // Nothing hides gw2.
    assert_eq!(map.seen_address(W1), map.address(W1));
}
