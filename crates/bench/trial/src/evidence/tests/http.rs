//! Trials over HTTP, whose payload goes from B to A.

use super::*;
use journal::record::HttpFailure;
use plan::HttpTest;

fn fails(adapter: Adapter, spoil: impl FnOnce(&mut Fixture, &mut HttpResult)) -> Vec<String> {
    let mut fixture = Fixture::http(adapter);
    let mut http = fixture.http.take().unwrap();
    spoil(&mut fixture, &mut http);
    fixture.http = Some(http);
    fixture.failing()
}

#[test]
fn a_good_trial_passes_whichever_side_sends() {
    for adapter in [Adapter::Direct, encrypting()] {
        assert_eq!(fails(adapter, |_, _| {}), Vec::<String>::new());
    }
    let detail = Fixture::http(encrypting()).detail("cipher-link-amount");
    assert!(detail.contains("gw2/w1 sent"), "{detail}");
}

#[test]
fn one_failed_transaction_in_a_hundred_thousand_is_too_many() {
    let failed = |attempted, failed| {
        fails(Adapter::Direct, |_, http| {
            http.attempted = attempted;
            http.failed = [(HttpFailure::Reset, failed)].into();
        })
    };
    assert_eq!(failed(100_001, 1), Vec::<String>::new());
    assert_eq!(failed(100_000, 1), ["transactions-succeeded"]);
    assert_eq!(failed(300_000, 3), ["transactions-succeeded"]);
}

#[test]
fn every_reason_is_named_and_explained() {
    for why in [
        HttpFailure::Refused,
        HttpFailure::WrongLength,
        HttpFailure::WrongContent,
        HttpFailure::Cached,
        HttpFailure::NoPort,
        HttpFailure::NoDescriptor,
        HttpFailure::StoreFull,
        HttpFailure::Tls,
        HttpFailure::Timeout,
    ] {
        let mut fixture = Fixture::http(encrypting());
        fixture.http.as_mut().unwrap().failed = [(why, 7)].into();
        assert_eq!(fixture.failing(), ["transactions-succeeded"]);
        let difference = fixture.explanation("transactions-succeeded").difference;
        assert!(difference.contains(why.in_words()), "{difference}");
    }
}

#[test]
fn a_server_that_answers_nothing_of_the_sustain_phase_has_no_figure() {
    let found = fails(Adapter::Direct, |_, http| {
        (http.transactions, http.object_bytes) = (0, 0);
    });
    assert_eq!(found, ["transactions-succeeded"]);
}

#[test]
fn transactions_of_a_schedule_that_never_began_are_found() {
    let planned = |planned| fails(Adapter::Direct, |_, http| http.planned = Some(planned));
    assert_eq!(planned(10_010), Vec::<String>::new());
    assert_eq!(planned(10_011), ["schedule-kept"]);
}

#[test]
fn objects_that_did_not_cross_the_cipher_link_are_found() {
    let found = fails(encrypting(), |fixture, _| {
        fixture.counter("gw2/w1").tx_bytes /= 2;
    });
    assert!(
        found.contains(&"cipher-link-amount".to_owned()),
        "{found:?}"
    );
    // A client that counts more than arrived.
    let found = fails(encrypting(), |_, http| http.received_bytes *= 2);
    for check in [
        "station-interfaces-agree",
        "cipher-link-amount",
        "dut-counters",
    ] {
        assert!(found.contains(&check.to_owned()), "{check}: {found:?}");
    }
}

#[test]
fn commands_hold_no_key() {
    let test = HttpTest {
        tls: true,
        connections: 1,
        streams: 1,
        ..HttpTest::default()
    };
    let fixture = Fixture::new(Adapter::Direct, 1, Measurement::Http(test));
    let [server] = &fixture.commands.servers[..] else {
        panic!("one server")
    };
    assert!(server.stdin.contains("PRIVATE KEY"));
    let words = crate::words(server).join(" ");
    assert!(words.starts_with("cipherbench http <<< {"), "{words}");
    assert!(!words.contains("PRIVATE KEY") && !words.contains("CERTIFICATE"));
    assert!(fixture.commands.marker.is_empty());
}
