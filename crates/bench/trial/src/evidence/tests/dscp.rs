//! The check of the class of service.

use super::fixture::encrypting;
use super::*;
use plan::Dscp;

fn of_class(received: &[(&str, u64)]) -> Fixture {
    let mut fixture = Fixture::tcp(encrypting(), 1);
    fixture.cell.stations.as_mut().unwrap().dscp = Some(Dscp::Ef);
    let received = received.iter();
    fixture.received_dscp = received
        .map(|(class, packets)| ((*class).to_owned(), *packets))
        .collect();
    fixture.cipher_link.dscp = [("be".to_owned(), 300)].into();
    fixture
}

#[test]
fn a_class_that_arrives_passes_whatever_the_outer_header_has() {
    let fixture = of_class(&[("ef", 297), ("be", 3)]);
    assert_eq!(fixture.failing(), Vec::<String>::new());
    let detail = fixture.detail("class-arrived");
    assert_eq!(
        detail,
        "of 300 packets sampled as station B received them 297 had the class ef, 3 be; between the gateways 300 \
         had be"
    );
    let without = Fixture::tcp(encrypting(), 1).checks();
    assert!(without.iter().all(|check| check.name != "class-arrived"));
}

#[test]
fn a_class_that_is_changed_or_not_seen_is_an_objection() {
    for received in [&[("be", 300)][..], &[("ef", 200), ("cs1", 100)], &[]] {
        assert_eq!(of_class(received).failing(), ["class-arrived"]);
    }
}
