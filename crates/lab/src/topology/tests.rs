use super::*;

fn addresses() -> Addresses {
    Addresses {
        station_a: [10, 1, 0, 0].into(),
        cipher: [192, 0, 2, 0].into(),
        station_b: [10, 2, 0, 0].into(),
    }
}

fn map() -> Map {
    Map::new(&addresses(), true)
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
        .map(|node| Map::make_links(node, |_| 77))
        .concat();
    assert_eq!(made.matches("link add").count(), LINKS.len());
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
    let batch = set_mtu(NodeId::Gw1, LINKS_1500);
    assert!(batch.contains("link set a1 mtu 1500\n") && batch.contains("link set w0 mtu 9000\n"));
}

#[test]
fn test_networks_lie_behind_the_side_that_they_are_named_after() {
    let beyond = |node, mtu| map().beyond(node, Links { mtu, ..LINKS_1500 });
    assert_eq!(
        beyond(NodeId::Gw1, 1500),
        ["10.2.0.0/24", "198.19.0.0/16", "2001:2:0:19::/64"]
    );
    // Too small for IPv6.
    assert_eq!(beyond(NodeId::Gw2, 1279), ["10.1.0.0/24", "198.18.0.0/16"]);
    let without = Map::new(&addresses(), false);
    assert_eq!(
        without.beyond(NodeId::B, LINKS_1500),
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
        shape(NodeId::A, links)
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
    let none = shape(NodeId::A, LINKS_1500);
    assert!(
        none.starts_with("qdisc replace dev a0 root noqueue\n"),
        "{none}"
    );
}

#[test]
fn prefixes_of_the_labs_own_networks_are_taken() {
    assert_eq!(Map::taken(&addresses()), None);
    for taken in [[198, 18, 7, 0], [198, 19, 0, 0], [169, 254, 1, 0]] {
        let addresses = Addresses {
            station_b: taken.into(),
            ..addresses()
        };
        assert_eq!(Map::taken(&addresses), Some(taken.into()));
    }
}
