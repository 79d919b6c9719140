use super::*;

fn interface(name: &str, kind: &str, more: &str) -> HostInterface {
    let text = format!(
        "{{\"ifname\":\"{name}\",\"flags\":[\"BROADCAST\",\"UP\"],\"mtu\":1500,\"link_type\":\"ether\",
            \"address\":\"02:00:00:00:00:01\",\"linkinfo\":{{\"info_kind\":\"{kind}\",\"info_data\":{{\"id\":5}}}},
            \"addr_info\":[{{\"family\":\"inet6\",\"local\":\"fe80::1\",\"scope\":\"link\"}}]{more}}}"
    );
    serde_json::from_str(&text).unwrap()
}

fn free() -> Facts {
    let found = interface("eth1", "veth", ",\"link\":\"eth2\"");
    let peer = interface("eth2", "veth", ",\"link\":\"eth1\"");
    Facts {
        all: vec![found.clone(), peer],
        found,
        ..Facts::default()
    }
}

fn with(change: impl FnOnce(&mut Facts)) -> (String, String) {
    let mut facts = free();
    change(&mut facts);
    objection(&facts, "eth1").unwrap()
}

fn address(family: &str, local: &str, scope: &str) -> Address {
    Address {
        family: family.to_owned(),
        local: local.to_owned(),
        scope: scope.to_owned(),
    }
}

#[test]
fn an_interface_that_somebody_needs_is_refused() {
    assert_eq!(objection(&free(), "eth1"), None);
    let what = |change: fn(&mut Facts)| with(change).0;
    assert!(what(|facts| facts.wireless = true).contains("wireless"));
    assert!(what(|facts| facts.uplinks.push("eth1".to_owned())).contains("default route"));
    let other = |facts: &mut Facts| facts.found.ifname = "enp3s0".to_owned();
    assert!(what(other).contains("another name"));
    let tun = |facts: &mut Facts| facts.found.link_type = "none".to_owned();
    assert!(what(tun).contains("no Ethernet"));
    // A bridge that is not seen here.
    let port = |facts: &mut Facts| facts.found.master = Some("br7".to_owned());
    assert!(what(port).contains("a port of `br7`"));
    for (family, scope) in [("inet", "global"), ("inet", "link"), ("inet6", "global")] {
        let used = address(family, "address", scope);
        let (what, _) = with(|facts| facts.found.addr_info.push(used));
        assert!(what.contains("in use: it has the address"), "{what}");
    }
}

/// Whatever is above it goes with it: a bridge, a bond, a VLAN, a macvlan …
#[test]
fn an_interface_below_others_is_refused_with_what_they_carry() {
    let kinds = [
        "macvlan", "macvtap", "ipvlan", "ipvtap", "vlan", "macsec", "dsa", "gre",
    ];
    for kind in kinds {
        let upper = interface("up0", kind, ",\"link\":\"eth1\"");
        let unused = with(|facts| facts.all.push(upper.clone()));
        assert_eq!(unused.0, format!("`eth1` is under `up0` ({kind})"));
        assert!(unused.1.contains("`ip link delete up0`"), "{}", unused.1);
        let mut used = upper.clone();
        used.addr_info.push(address("inet", "192.0.2.9", "global"));
        let used = with(|facts| facts.all.push(used));
        assert!(
            used.0.ends_with("which has the address 192.0.2.9"),
            "{}",
            used.0
        );
        assert!(!used.1.contains("ip link"), "{}", used.1);
    }
    for kind in ["bridge", "bond", "team", "vrf"] {
        let (what, help) = with(|facts| {
            facts.found.master = Some("up0".to_owned());
            facts.all.push(interface("up0", kind, ""));
        });
        assert_eq!(what, "`eth1` is a port of `up0`", "{kind}");
        assert!(help.contains("nomaster"), "{help}");
    }
    let vxlan =
        r#"{"ifname":"up0","linkinfo":{"info_kind":"vxlan","info_data":{"link":"eth1","id":7}}}"#;
    let (what, _) = with(|facts| facts.all.push(serde_json::from_str(vxlan).unwrap()));
    assert_eq!(what, "`eth1` is under `up0` (vxlan)");
}

/// A bond, a VLAN on it, a bridge of that: the address may be on the last.
#[test]
fn what_a_chain_of_interfaces_carries_is_found_at_its_end() {
    let chain = |facts: &mut Facts| {
        facts.found.master = Some("bond0".to_owned());
        facts.all.push(interface("br0", "bridge", ""));
        facts.all.push(interface(
            "bond0.5",
            "vlan",
            ",\"link\":\"bond0\",\"master\":\"br0\"",
        ));
        facts.all.push(interface("bond0", "bond", ""));
    };
    let (what, help) = with(|facts| {
        chain(facts);
        facts.uplinks.push("br0".to_owned());
    });
    let expected = "`eth1` is under `br0` (bridge), over which this machine's default route goes";
    assert_eq!(what, expected);
    assert!(help.contains("while the run lasts"), "{help}");
    let (what, _) = with(|facts| {
        chain(facts);
        facts.all[2]
            .addr_info
            .push(address("inet", "192.0.2.9", "global"));
        let ss = "0      0      192.0.2.9:22   192.0.2.1:41000\n";
        facts.connections = connections_of(ss);
    });
    assert!(
        what.ends_with("over which 192.0.2.1 is connected to this machine (192.0.2.9)"),
        "{what}"
    );
}

#[test]
fn a_connection_to_the_link_local_address_makes_an_interface_needed() {
    let ss = "0  0  127.0.0.1:56022  127.0.0.1:45281\n\
              0  36  [fe80::1]%eth1:22   [fe80::2]:51710\n\
              0  0  [::ffff:192.0.2.9]:22  [::ffff:192.0.2.1]:5000\n";
    let (what, _) = with(|facts| facts.connections = connections_of(ss));
    let expected = "`eth1` is in use: fe80::2 is connected to its address fe80::1";
    assert_eq!(what, expected);
    assert_eq!(connections_of(ss)[2].own, "192.0.2.9");
}

#[test]
fn routes_and_queueing_disciplines_of_somebody_are_named() {
    // The kernel sets all of these again by itself.
    let routes = r#"[{"dst":"fe80::/64","protocol":"kernel","metric":256},
        {"type":"multicast","dst":"ff00::/8","table":"local"},{"dst":"default","protocol":"ra"}]"#;
    let kernels = r#"[{"kind":"mq","handle":"0:","root":true},{"kind":"fq_codel","handle":"0:","parent":":1"}]"#;
    let mut facts = free();
    facts.routes = serde_json::from_str(routes).unwrap();
    facts.queueing = serde_json::from_str(kernels).unwrap();
    assert_eq!(objection(&facts, "eth1"), None);
    let route = r#"{"dst":"2001:db8::/64","metric":1024,"table":"7"}"#;
    let (what, help) = with(|facts| facts.routes.push(serde_json::from_str(route).unwrap()));
    assert!(
        what.contains("the route to 2001:db8::/64 leads to it"),
        "{what}"
    );
    assert!(help.contains("`ip -6 route delete 2001:db8::/64 dev eth1 table 7`"));
    for (qdisc, delete) in [
        (r#"{"kind":"tbf","handle":"8001:","root":true}"#, "root"),
        (
            r#"{"kind":"clsact","handle":"ffff:","parent":"ffff:fff1"}"#,
            "clsact",
        ),
    ] {
        let found = serde_json::from_str(qdisc).unwrap();
        let (_, help) = with(|facts| facts.queueing.push(found));
        let delete = format!("`tc qdisc delete dev eth1 {delete}`");
        assert!(help.ends_with(&delete), "{help}");
    }
}
