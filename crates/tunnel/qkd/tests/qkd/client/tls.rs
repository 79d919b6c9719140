//! Rejected certificates, and versions of TLS.

use crate::client::requests::status;
use crate::client::server::{Server, Sides, json};
use crate::client::setup::{Authority, run, url};
use qkd::{Failure, Kme};
use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

fn server(sides: Sides, versions: &[&'static SupportedProtocolVersion]) -> Server {
    Server::with(sides, versions, |_| json(&status("gw1")))
}

/// The error text, with either version of TLS.
#[track_caller]
fn fails(sides: impl Fn() -> Sides, expected: &[&str]) {
    for version in [&TLS13, &TLS12] {
        let server = server(sides(), &[version]);
        let error = run(server.client().status("gw2")).unwrap_err();
        assert!(matches!(error.failure, Failure::Tls { .. }), "{error}");
        let text = error.to_string();
        assert!(expected.iter().any(|part| text.contains(part)), "{text}");
        assert!(server.requests().is_empty());
    }
}

#[test]
fn a_hybrid_key_exchange_is_preferred_and_tls_1_2_is_accepted() {
    let tls_of = |versions: &[&'static SupportedProtocolVersion]| {
        let server = server(Sides::good(), versions);
        run(server.client().status("gw2")).unwrap();
        server.tls()
    };
    assert_eq!(tls_of(&[&TLS13]), ["TLSv1_3 X25519MLKEM768"]);
    assert_eq!(tls_of(&[&TLS12]), ["TLSv1_2 X25519"]);
    assert_eq!(tls_of(&[&TLS12, &TLS13]), ["TLSv1_3 X25519MLKEM768"]);
}

#[test]
fn a_kme_of_a_foreign_ca_is_refused() {
    let sides = || Sides {
        servers_authority: Authority::new("another CA").pem(),
        ..Sides::good()
    };
    fails(sides, &["not signed by a CA of the file `ca` (give the"]);
    // A CA of the same name with another key.
    let sides = || Sides {
        servers_authority: Authority::new("CA").pem(),
        ..Sides::good()
    };
    fails(sides, &["not signed by a CA of the file `ca` (give the"]);
}

/// Valid on both sides except for the server's certificate.
fn with_server(names: &[&str], change: impl FnOnce(&mut rcgen::CertificateParams)) -> Sides {
    let authority = Authority::new("CA");
    Sides {
        server: authority.issue_with(names, change),
        client: authority.issue(&["gw1"]),
        clients_authority: authority.pem(),
        servers_authority: authority.pem(),
    }
}

#[test]
fn a_kme_whose_certificate_is_not_valid_now_is_refused() {
    let expired = || {
        with_server(&["127.0.0.1"], |params| {
            params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        })
    };
    fails(expired, &["certificate has expired"]);
    let early = || {
        with_server(&["127.0.0.1"], |params| {
            params.not_before = rcgen::date_time_ymd(4000, 1, 1);
        })
    };
    fails(early, &["not valid yet"]);
}

#[test]
fn a_kme_of_another_name_or_purpose_is_refused() {
    let other = || with_server(&["127.0.0.2", "kme.example"], |_| {});
    fails(other, &["is not for `127.0.0.1`, but for"]);
    let client = || {
        with_server(&["127.0.0.1"], |params| {
            params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        })
    };
    fails(client, &["not valid for a server"]);
}

#[test]
fn a_kme_that_refuses_the_client_is_reported() {
    let foreign = || Sides {
        client: Authority::new("another CA").issue(&["gw1"]),
        ..Sides::good()
    };
    fails(foreign, &["does not accept the certificate of this SAE"]);
    let expired = || {
        let authority = Authority::new("CA");
        Sides {
            server: authority.issue(&["127.0.0.1"]),
            client: authority.issue_with(&["gw1"], |params| {
                params.not_after = rcgen::date_time_ymd(2020, 1, 1);
            }),
            clients_authority: authority.pem(),
            servers_authority: authority.pem(),
        }
    };
    fails(expired, &["expired or revoked"]);
}

#[test]
fn a_port_that_speaks_no_tls_is_reported() {
    let good = server(Sides::good(), &[&TLS13]);
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let setup = good.files.setup(&url(plain.local_addr().unwrap()));
    thread::spawn(move || {
        for tcp in plain.incoming() {
            let mut tcp = tcp.unwrap();
            let mut start = [0; 5];
            tcp.read_exact(&mut start).unwrap();
            let _ = tcp.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            let _ = std::io::copy(&mut tcp, &mut std::io::sink());
        }
    });
    let error = run(Kme::new(&setup).unwrap().status("gw2")).unwrap_err();
    assert!(error.to_string().contains("does not speak TLS"), "{error}");

    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let setup = good.files.setup(&url(deaf.local_addr().unwrap()));
    thread::spawn(move || {
        let (mut tcp, _) = deaf.accept().unwrap();
        let mut start = [0; 5];
        tcp.read_exact(&mut start).unwrap();
    });
    let error = run(Kme::new(&setup).unwrap().status("gw2")).unwrap_err();
    assert!(
        error.to_string().contains("ends in the handshake"),
        "{error}"
    );
}
