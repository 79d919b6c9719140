//! The check of a NAT between the gateways.

use super::fixture::encrypting;
use super::*;

fn behind_nat(adapter: Adapter, [translated, untranslated]: [u64; 2]) -> Fixture {
    let mut fixture = Fixture::tcp(adapter, 1);
    let counters = [
        ("nat2/translated_packets", translated),
        ("nat2/untranslated_packets", untranslated),
    ];
    let counters = counters.map(|(name, count)| (name.to_owned(), count));
    fixture.dut_counters.extend(counters);
    fixture
}

#[test]
fn a_tunnels_packets_have_the_address_of_the_nat() {
    let fixture = behind_nat(encrypting(), [690_000, 0]);
    assert_eq!(fixture.failing(), Vec::<String>::new());
    assert_eq!(
        fixture.detail("addresses-translated"),
        "nat2 passed 690000 packets on with its own address and 0 with another one"
    );
    for wrong in [[690_000, 1], [0, 0]] {
        let fixture = behind_nat(encrypting(), wrong);
        assert_eq!(fixture.failing(), ["addresses-translated"], "{wrong:?}");
    }
}

#[test]
fn in_clear_what_b_began_may_keep_its_addresses() {
    let fixture = behind_nat(Adapter::Direct, [690_000, 7]);
    assert_eq!(fixture.failing(), Vec::<String>::new());
    let detail = fixture.detail("addresses-translated");
    assert!(
        detail.contains("690000 packets on with its own address and 7 with"),
        "{detail}"
    );
}
