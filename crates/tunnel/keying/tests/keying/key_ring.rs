//! Epochs of two sides: each receives with the keys that the other sends with, in active epochs
//! only.

use keying::chain::{Context, EpochSecret, Policy, Secret};
use keying::{KeyRing, Keys, LANES_MAX, SaKeys, Side, StaticKeys, create_pair, epoch_of, spi_of};
use std::collections::HashSet;
use std::sync::Arc;
use wire::Suite;

const SUITE: Suite = Suite::Aes256Gcm;

fn secret(epoch: u32) -> Arc<EpochSecret> {
    let context = Context {
        connector: "gw1".to_owned(),
        listener: "gw2".to_owned(),
        tunnel: 0,
        lanes: 4,
        suite: SUITE,
        policy: Policy::Pqc,
        epoch,
    };
    let exporter = Secret::new([epoch as u8; 48]);
    Arc::new(EpochSecret::derive(context, &exporter, &[]))
}

fn same(one: &SaKeys, other: &SaKeys) -> bool {
    one.spi == other.spi && one.suite == other.suite && one.keymat == other.keymat
}

/// Both sides in an epoch.
fn pair(epoch: u32) -> [KeyRing; 2] {
    [Side::A, Side::B].map(|side| {
        let mut ring = KeyRing::new(side);
        ring.install_inbound(secret(epoch));
        ring.switch_outbound(secret(epoch));
        ring
    })
}

#[test]
fn without_an_epoch_there_are_no_keys() {
    let mut ring = KeyRing::new(Side::A);
    assert_eq!(ring.outbound_epoch(), None);
    assert!(ring.outbound(0).is_none());
    assert!(ring.inbound(spi_of(1, 0), 0).is_none());
    ring.install_inbound(secret(1));
    assert!(ring.outbound(0).is_none(), "inbound first");
    assert!(ring.inbound(spi_of(1, 0), 0).is_some());
}

#[test]
fn each_side_receives_with_the_keys_that_the_other_sends_with() {
    let [mut a, mut b] = pair(7);
    for slot in [0, 1, 3, LANES_MAX - 1] {
        let from_a = a.outbound(slot).unwrap();
        let from_b = b.outbound(slot).unwrap();
        assert!(same(&from_a, &b.inbound(from_a.spi, slot).unwrap()));
        assert!(same(&from_b, &a.inbound(from_b.spi, slot).unwrap()));
        assert_eq!((epoch_of(from_a.spi), from_a.spi), (7, from_b.spi));
        assert_ne!(
            from_a.keymat, from_b.keymat,
            "a reflected packet is not authentic"
        );
    }
}

#[test]
fn an_spi_of_another_slot_or_epoch_has_no_keys() {
    let [a, _] = pair(7);
    for (spi, slot) in [
        (spi_of(7, 1), 0),
        (spi_of(6, 0), 0),
        (spi_of(8, 0), 0),
        (0, 0),
        (u32::MAX, LANES_MAX - 1),
    ] {
        assert!(a.inbound(spi, slot).is_none(), "{spi:#x}");
    }
}

#[test]
fn old_epochs_are_received_until_they_are_retired() {
    let [mut a, mut b] = pair(1);
    let old = b.outbound(0).unwrap();
    let (mut spis, mut keys) = (HashSet::new(), HashSet::new());
    assert!(spis.insert(old.spi) && keys.insert(old.keymat.to_vec()));
    for epoch in 2..5 {
        for ring in [&mut a, &mut b] {
            ring.install_inbound(secret(epoch));
            assert_eq!(ring.outbound_epoch(), Some(epoch - 1));
        }
        for ring in [&mut a, &mut b] {
            ring.switch_outbound(secret(epoch));
            assert_eq!(ring.outbound_epoch(), Some(epoch));
        }
        let sent = b.outbound(0).unwrap();
        assert!(spis.insert(sent.spi) && keys.insert(sent.keymat.to_vec()));
        assert!(same(&sent, &a.inbound(sent.spi, 0).unwrap()));
        assert!(same(&old, &a.inbound(old.spi, 0).unwrap()));
    }
    assert_eq!(a.inbound_epochs().collect::<Vec<_>>(), [1, 2, 3, 4]);
    for epoch in [1, 3, 3, 900] {
        a.retire_inbound(epoch);
    }
    assert_eq!(a.inbound_epochs().collect::<Vec<_>>(), [2, 4]);
    assert!(a.inbound(old.spi, 0).is_none());
    assert!(format!("{a:?}").starts_with("KeyRing { side: A, inbound: [2, 4], outbound: Some(4)"));
}

#[test]
#[should_panic(expected = "outbound keys of slot 1 must not be handed out twice")]
fn a_second_sender_in_one_slot_is_a_mistake_of_the_caller() {
    let [mut a, _] = pair(1);
    let _ = (a.outbound(1), a.outbound(0), a.outbound(1));
}

#[test]
#[should_panic(expected = "epoch 1 must not be used for sending twice")]
fn an_epoch_is_not_used_for_sending_again() {
    let [mut a, _] = pair(1);
    a.install_inbound(secret(2));
    a.switch_outbound(secret(2));
    a.switch_outbound(secret(1));
}

#[test]
#[should_panic(expected = "epoch 2 must be installed for receiving before it is used for sending")]
fn an_epoch_without_inbound_keys_is_not_used_for_sending() {
    let [mut a, _] = pair(1);
    a.switch_outbound(secret(2));
}

#[test]
#[should_panic(expected = "epoch 1 must not be installed twice")]
fn an_epoch_number_has_one_secret_at_a_time() {
    let [mut a, _] = pair(1);
    a.install_inbound(secret(1));
}

#[test]
fn a_number_may_be_reused_when_its_epoch_is_retired() {
    let [mut a, _] = pair(1);
    a.install_inbound(secret(2));
    a.switch_outbound(secret(2));
    a.retire_inbound(1);
    a.install_inbound(secret(1));
    a.switch_outbound(secret(1));
    assert!(a.outbound(0).is_some());
}

#[test]
fn spoiled_keys_receive_nothing_until_there_is_a_new_epoch() {
    let [mut a, mut b] = pair(1);
    let sent = b.outbound(0).unwrap();
    let before = a.outbound(0).unwrap();
    a.spoil_inbound();
    let spoiled = a.inbound(sent.spi, 0).unwrap();
    assert_eq!(spoiled.spi, sent.spi);
    assert_ne!(spoiled.keymat, sent.keymat);
    assert!(
        same(&before, &b.inbound(before.spi, 0).unwrap()),
        "sending is not spoiled"
    );
    assert!(same(
        &a.outbound(1).unwrap(),
        &b.inbound(spi_of(1, 1), 1).unwrap()
    ));
    for ring in [&mut a, &mut b] {
        ring.install_inbound(secret(2));
        ring.switch_outbound(secret(2));
    }
    let sent = b.outbound(0).unwrap();
    assert!(same(&sent, &a.inbound(sent.spi, 0).unwrap()));
}

#[test]
fn either_source_gives_lanes_their_keys() {
    let folder = testing::folder().unwrap();
    let paths = [folder.path().join("a"), folder.path().join("b")];
    create_pair(&paths[0], &paths[1]).unwrap();
    let from_file = paths.map(|path| Keys::from(StaticKeys::open(&path).unwrap()));
    let agreed = pair(1).map(Keys::from);
    for [mut a, mut b] in [from_file, agreed] {
        let is_static = a.as_static().is_some();
        assert_ne!(is_static, a.as_ring().is_some());
        assert_eq!(a.outbound_epoch(), Some(1));
        let sent = a.outbound(SUITE, 2).unwrap();
        assert!(same(&sent, &b.inbound(SUITE, sent.spi, 2).unwrap()));
        b.record_peer_epoch(1).unwrap();
        assert_eq!(
            b.inbound(SUITE, spi_of(2, 0), 0).is_some(),
            is_static,
            "only a key file has keys of epochs that were not installed"
        );
    }
    let mut without = Keys::from(KeyRing::new(Side::A));
    assert!(without.outbound(SUITE, 0).is_none() && without.outbound_epoch().is_none());
}

#[test]
#[should_panic(expected = "the epoch is of the lanes' suite")]
fn keys_of_another_suite_are_not_handed_out() {
    let [a, _] = pair(1).map(Keys::from);
    let _ = a.inbound(Suite::ChaCha20Poly1305, spi_of(1, 0), 0);
}
