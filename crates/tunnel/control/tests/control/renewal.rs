//! Certificates that are replaced while the control plane runs.

use crate::support::{Gateway, Pair};
use control::CertificateEvent;
use pki::days_from_now;
use std::fs;

/// Waits for this many events of a gateway's certificate, and returns the last of them.
fn certificate(gateway: &Gateway, count: usize) -> CertificateEvent {
    gateway.log.wait("an event of the certificate", |state| {
        state.certificates.get(count - 1).cloned()
    })
}

fn expiry(event: &CertificateEvent) -> std::time::SystemTime {
    match event {
        CertificateEvent::InUse { not_after } => *not_after,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_certificate_is_read_again_and_used_for_new_keys() {
    let pair = Pair::start();
    pair.connector.established(1);
    pair.listener.established(1);
    for (gateway, name, epochs) in [(&pair.listener, "gw2", 2), (&pair.connector, "gw1", 3)] {
        let before = expiry(&certificate(gateway, 1));
        let texts = pair.site.authority.issue(name, days_from_now(30));
        pair.site.write(name, &texts.expect("a certificate"));
        gateway.handle().reload();
        assert!(expiry(&certificate(gateway, 2)) > before);
        let epoch = pair.connector.established(epochs);
        assert_eq!(pair.listener.established(epochs), epoch);
    }
}

#[test]
fn files_that_cannot_be_used_leave_the_present_certificate_in_use() {
    let pair = Pair::start();
    pair.connector.established(1);
    let stranger = pair.site.authority.issue("gw3", days_from_now(30));
    pair.site.write("gw1", &stranger.expect("a certificate"));
    pair.connector.handle().reload();
    let event = certificate(&pair.connector, 2).to_string();
    assert!(event.contains("now that of gw3, not of gw1"), "{event}");
    fs::write(pair.site.path("gw1.pem"), "nothing").expect("a file");
    pair.connector.handle().reload();
    let event = certificate(&pair.connector, 3).to_string();
    assert!(event.contains("the present one stays in use"), "{event}");
    assert!(event.contains("gw1.pem: it has no certificate"), "{event}");
    pair.connector
        .handle()
        .rekey(None, keying::message::Cause::Demand);
    pair.connector.established(2);
}
