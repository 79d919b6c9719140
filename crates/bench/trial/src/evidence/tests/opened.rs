//! Packets that were opened with the keys that the lab created, or not.

use super::*;
use plan::Mode;

fn encryptor(change: impl FnOnce(&mut Encryptor)) -> Adapter {
    let mut encryptor = Encryptor::new(Suite::Aes256Gcm);
    change(&mut encryptor);
    Adapter::Cipherbench(encryptor)
}

fn opened(fixture: &mut Fixture) -> &mut OpenedPackets {
    fixture.cipher_link.opened.as_mut().unwrap()
}

#[test]
fn packets_that_were_opened_are_counted() {
    let fixture = Fixture::tcp(encrypting(), 1);
    assert_eq!(
        fixture.detail("samples-opened"),
        "of 24 whole sealed packets sampled 24 were opened with the keys that their SPIs identify, and 23 \
         of these carried packets between the stations' addresses"
    );
}

#[test]
fn one_packet_that_was_not_opened_is_an_objection() {
    let mut fixture = Fixture::tcp(encrypting(), 1);
    opened(&mut fixture).opened = 23;
    opened(&mut fixture).refused = [("integrity_failed".to_owned(), 1)].into();
    assert_eq!(fixture.failing(), ["samples-opened"]);
    let detail = fixture.detail("samples-opened");
    assert!(
        detail.ends_with("; not opened: 1 integrity_failed"),
        "{detail}"
    );
}

#[test]
fn packets_of_nobody_are_an_objection() {
    let mut fixture = Fixture::tcp(encrypting(), 1);
    opened(&mut fixture).between_stations = 0;
    assert_eq!(fixture.failing(), ["samples-opened"]);
}

#[test]
fn nothing_opened_is_an_objection_unless_no_packet_was_whole() {
    let mut fixture = Fixture::tcp(encrypting(), 1);
    fixture.cipher_link.opened = None;
    assert_eq!(fixture.failing(), ["samples-opened"]);
    fixture.cipher_link.opened = Some(OpenedPackets::default());
    assert_eq!(fixture.failing(), ["samples-opened"]);
    opened(&mut fixture).not_whole = 9;
    assert_eq!(fixture.failing(), Vec::<String>::new());
    // What is not proven then has another name.
    let detail = fixture.detail("samples-not-opened");
    assert!(
        detail.contains("9 sealed frames had no whole packet"),
        "{detail}"
    );
}

#[test]
fn where_only_the_gateways_have_the_keys_this_is_said_and_not_checked() {
    let agreed = Encryptor::new(Suite::Aes256Gcm).with_keys(KeySource::Pqc);
    let fixture = Fixture::tcp(Adapter::Cipherbench(agreed), 1);
    let names = |fixture: &Fixture| fixture.checks().into_iter().map(|check| check.name);
    assert!(names(&fixture).all(|name| name != "samples-opened"));
    let detail = fixture.detail("cipher-link-encrypted");
    let said = "; none was opened, since only the gateways have the keys that they agree on";
    assert!(detail.ends_with(said), "{detail}");
    let detail = Fixture::tcp(encrypting(), 1).detail("cipher-link-encrypted");
    assert!(!detail.contains("opened"), "{detail}");
    // Nothing is sealed.
    for adapter in [
        encryptor(|it| it.engine = "null".parse().unwrap()),
        encryptor(|it| it.mode = Mode::L2tpv3Clear),
    ] {
        let fixture = Fixture::tcp(adapter, 1);
        assert!(names(&fixture).all(|name| name != "samples-opened"));
    }
}
