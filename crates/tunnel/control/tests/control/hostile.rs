//! Hostile and foreign peers: other TLS, other messages, or silence. Legitimate peers always get
//! keys.

use crate::support::{
    Gateway, HERE, Site, connect_from, listener, provider, roots, settings, tunnel,
};
use control::OPEN_LIMIT;
use control::frame::framed;
use keying::message::{Cause, MESSAGE_BYTES_MAX, Message, Offer, Refusal, VERSION};
use keying::rollover::Role;
use pki::{Texts, days_from_now};
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::kx_group;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, ServerConfig, ServerConnection, Stream,
    StreamOwned,
};
use std::io::{self, Read, Write};
use std::iter;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// gw2, which listens for gw1.
struct Listening {
    site: Site,
    gateway: Gateway,
    address: SocketAddr,
}

impl Listening {
    fn start() -> Self {
        let site = Site::new();
        let (bound, address) = listener();
        let listens = settings(Role::Listener, "gw2", "gw1", 0);
        let gateway = Gateway::start(
            site.identity("gw2"),
            bound,
            vec![tunnel(listens, (HERE, 1).into())],
        );
        Self {
            site,
            gateway,
            address,
        }
    }

    /// A legitimate gw1 still gets keys; returns the time it took.
    fn assert_real_peers_get_keys(&self) -> Duration {
        let began = Instant::now();
        let connects = settings(Role::Connector, "gw1", "gw2", 0);
        let connector = Gateway::start(
            self.site.identity("gw1"),
            listener().0,
            vec![tunnel(connects, self.address)],
        );
        connector.established(1);
        began.elapsed()
    }

    fn tcp(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("a socket");
        stream
    }

    /// A TLS client with a certificate of gw1, without our code.
    fn client(
        &self,
        groups: &[&'static dyn SupportedKxGroup],
    ) -> StreamOwned<ClientConnection, TcpStream> {
        let texts = self.site.authority.issue("gw1", days_from_now(1));
        let (chain, key) = parsed(&texts.expect("a certificate"));
        let config = ClientConfig::builder_with_provider(provider(groups))
            .with_protocol_versions(&[&TLS13])
            .expect("a version")
            .with_root_certificates(roots(&self.site))
            .with_client_auth_cert(chain, key)
            .expect("a key");
        let name = ServerName::try_from("gw2").expect("a name");
        let connection = ClientConnection::new(Arc::new(config), name).expect("a client");
        StreamOwned::new(connection, self.tcp())
    }

    /// A client that has completed TLS as gw1.
    fn authenticated(&self) -> StreamOwned<ClientConnection, TcpStream> {
        let mut stream = self.client(&[kx_group::X25519MLKEM768]);
        while stream.conn.is_handshaking() {
            stream
                .conn
                .complete_io(&mut stream.sock)
                .expect("a handshake");
        }
        stream
    }
}

#[test]
fn data_that_is_not_tls_is_refused() {
    let listening = Listening::start();
    for garbage in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0; 4096],
        &[0x16, 3, 1, 255, 255],
    ] {
        let mut stream = listening.tcp();
        stream.write_all(garbage).expect("it accepts the data");
        stream.shutdown(Shutdown::Write).expect("a socket");
        // It may send an alert; then it closes.
        let _ = stream.read_to_end(&mut Vec::new());
    }
    listening.gateway.says("what the peer sends is not TLS");
    listening.assert_real_peers_get_keys();
}

#[test]
fn a_peer_without_the_hybrid_key_exchange_is_refused_on_either_side() {
    let listening = Listening::start();
    for group in [kx_group::X25519, kx_group::SECP384R1, kx_group::MLKEM768] {
        let mut stream = listening.client(&[group]);
        let error = stream.flush().and_then(|()| finish(&mut stream));
        let error = error
            .expect_err("there is no common key exchange")
            .to_string();
        assert!(error.contains("HandshakeFailure"), "{error}");
    }
    listening
        .gateway
        .says("the peer does not support the key exchange X25519MLKEM768");

    let site = Site::new();
    let (bound, address) = listener();
    let server = thread::spawn({
        let texts = site
            .authority
            .issue("gw2", days_from_now(1))
            .expect("a certificate");
        let config = server(&site, &texts, &[kx_group::X25519]);
        move || {
            let (mut stream, _) = bound.accept().expect("a connection");
            let mut connection = ServerConnection::new(config).expect("a server");
            let result = Stream::new(&mut connection, &mut stream).flush();
            result.and_then(|()| connection.complete_io(&mut stream).map(drop))
        }
    });
    let connects = settings(Role::Connector, "gw1", "gw2", 0);
    let connector = Gateway::start(
        site.identity("gw1"),
        listener().0,
        vec![tunnel(connects, address)],
    );
    connector.says("it has no key exchange or cipher in common with us");
    let error = server.join().expect("it ends").expect_err("no handshake");
    assert!(error.to_string().contains("NoKxGroupsInCommon"), "{error}");
}

#[test]
fn a_peer_that_offers_the_hybrid_second_still_uses_it() {
    let listening = Listening::start();
    let mut stream = listening.client(&[kx_group::X25519, kx_group::X25519MLKEM768]);
    finish(&mut stream).expect("a handshake");
    let group = stream.conn.negotiated_key_exchange_group();
    assert_eq!(
        group.expect("a group").name(),
        rustls::NamedGroup::X25519MLKEM768
    );
}

#[test]
fn sessions_are_not_resumed_and_no_tickets_are_issued() {
    let listening = Listening::start();
    let texts = listening.site.authority.issue("gw1", days_from_now(1));
    let (chain, key) = parsed(&texts.expect("a certificate"));
    let config = ClientConfig::builder_with_provider(provider(&[kx_group::X25519MLKEM768]))
        .with_protocol_versions(&[&TLS13])
        .expect("a version")
        .with_root_certificates(roots(&listening.site))
        .with_client_auth_cert(chain, key)
        .expect("a key");
    // Clients offer resumption by default.
    let config = Arc::new(config);
    for _ in 0..3 {
        let name = ServerName::try_from("gw2").expect("a name");
        let connection = ClientConnection::new(Arc::clone(&config), name).expect("a client");
        let mut stream = StreamOwned::new(connection, listening.tcp());
        finish(&mut stream).expect("a handshake");
        send(&mut stream, b"{}");
        assert!(matches!(answer(&mut stream), Message::Refuse { .. }));
        assert_eq!(stream.conn.handshake_kind(), Some(HandshakeKind::Full));
        assert_eq!(stream.conn.tls13_tickets_received(), 0);
    }
}

#[test]
fn invalid_messages_are_refused_with_a_reason() {
    let listening = Listening::start();
    let long = u32::try_from(MESSAGE_BYTES_MAX + 1).expect("it is small");
    let cases: [(Vec<u8>, &str); 5] = [
        (framed(b"not json"), "gw1: "),
        (framed(b""), "gw1: "),
        (framed(b"{\"open\":{}}"), "gw1: "),
        (long.to_be_bytes().to_vec(), "16385 bytes is announced"),
        (framed(&Message::Done.encode()), "has to be `open`"),
    ];
    for (bytes, words) in cases {
        let mut stream = listening.authenticated();
        stream.write_all(&bytes).expect("it reads");
        let Message::Refuse { why, detail } = answer(&mut stream) else {
            panic!("it refuses");
        };
        assert_eq!(why, Refusal::Protocol, "{detail}");
        listening.gateway.says(words);
        // Then it closes the connection cleanly.
        assert_eq!(stream.read(&mut [0; 10]).expect("an end"), 0);
    }
    listening.assert_real_peers_get_keys();
}

/// A connection may not hold its place by sending a byte now and then.
#[test]
fn messages_that_trickle_in_are_refused_at_their_time_limit() {
    let listening = Listening::start();
    // A record of TLS, and a message within TLS, which both begin.
    let mut record = listening.tcp();
    let mut message = listening.authenticated();
    let began = Instant::now();
    let mut bytes = [0x16, 3, 1, 0x02, 0].into_iter().chain(iter::repeat(0));
    let mut parts = framed(&[b' '; MESSAGE_BYTES_MAX]).into_iter();
    let (mut record_open, mut message_open) = (true, true);
    while record_open || message_open {
        let byte = [bytes.next().expect("it never ends")];
        let part = [parts.next().expect("it is long")];
        record_open = record_open && record.write_all(&byte).is_ok();
        message_open = message_open && message.write_all(&part).is_ok() && message.flush().is_ok();
        assert!(began.elapsed() < 4 * OPEN_LIMIT, "they are still open");
        thread::sleep(Duration::from_millis(50));
    }
    assert!(began.elapsed() > OPEN_LIMIT / 2, "not at the first byte");
    listening
        .gateway
        .says("it sent no valid first message within 5 s");
    listening.assert_real_peers_get_keys();
}

#[test]
fn garbage_after_the_first_message_ends_the_attempt() {
    let listening = Listening::start();
    let mut stream = listening.authenticated();
    let offer = Offer {
        version: VERSION,
        tunnel: 0,
        suite: wire::Suite::Aes256Gcm.name().to_owned(),
        lanes: crate::support::LANES,
        payload: "l3".to_owned(),
        policy: keying::chain::Policy::Pqc,
        ppks: Vec::new(),
        last_epoch: 0,
        live: Vec::new(),
        sends_in: None,
    };
    let cause = Cause::Start;
    send(&mut stream, &Message::Open { offer, cause }.encode());
    assert!(matches!(answer(&mut stream), Message::Accept { .. }));
    stream.write_all(&framed(b"\xff\xfe")).expect("it reads");
    let (by_peer, _) = listening.gateway.fails(Refusal::Protocol);
    assert!(!by_peer);
    listening.assert_real_peers_get_keys();
}

#[test]
fn silent_connections_do_not_lock_out_real_peers() {
    let listening = Listening::start();
    let silent: Vec<_> = (0..500).map(|_| listening.tcp()).collect();
    // Also connections that send one byte, or complete TLS without a message.
    let mut slow = listening.tcp();
    slow.write_all(&[0x16]).expect("it reads");
    let mut mute = listening.authenticated();
    let took = listening.assert_real_peers_get_keys();
    assert!(took < OPEN_LIMIT, "before the others time out: {took:?}");
    // The oldest is closed at once, the rest at their timeout.
    for mut stream in silent.into_iter().chain([slow]) {
        let end = stream.read(&mut [0; 1]);
        assert!(!matches!(end, Ok(1..)), "it has nothing to say");
        if let Err(error) = end {
            assert_ne!(error.kind(), io::ErrorKind::WouldBlock, "it is closed");
        }
    }
    assert!(!matches!(mute.read(&mut [0; 1]), Ok(1..)));
    listening.gateway.says("the oldest was closed");
    listening
        .gateway
        .says("it sent no valid first message within 5 s");
}

#[test]
fn connections_from_other_addresses_are_closed_unread() {
    let listening = Listening::start();
    let socket = connect_from(Ipv4Addr::new(127, 0, 0, 9), listening.address);
    listening.gateway.says("127.0.0.9");
    listening.gateway.says("no peer connects from there");
    assert!(!matches!((&socket).read(&mut [0; 1]), Ok(1..)));
}

/// Another TLS implementation. The OpenSSL of most distributions has no hybrid key exchange yet, or
/// can be configured to omit it.
#[test]
fn openssl_without_the_hybrid_or_with_an_old_version_is_refused() {
    if Command::new("openssl").arg("version").output().is_err() {
        eprintln!("SKIPPED: there is no openssl here (apt install openssl)");
        return;
    }
    let listening = Listening::start();
    let texts = listening.site.authority.issue("gw1", days_from_now(1));
    let [certificate, key] = listening
        .site
        .write("openssl", &texts.expect("a certificate"));
    for (arguments, words) in [
        (
            &["-tls1_3", "-groups", "X25519:P-256"][..],
            "the key exchange X25519MLKEM768",
        ),
        (&["-tls1_2"][..], "the peer does not support TLS 1.3"),
    ] {
        let output = Command::new("openssl")
            .args(["s_client", "-connect", &listening.address.to_string()])
            .arg("-cert")
            .arg(&certificate)
            .arg("-key")
            .arg(&key)
            .arg("-CAfile")
            .arg(listening.site.path("ca.pem"))
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("openssl runs");
        assert!(!output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("alert"), "it receives an alert: {said}");
        listening.gateway.says(words);
    }
    listening.assert_real_peers_get_keys();
}

fn parsed(texts: &Texts) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let certificate = CertificateDer::from_pem_slice(texts.certificate.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(texts.key.as_bytes());
    (
        vec![certificate.expect("a certificate")],
        key.expect("a key"),
    )
}

fn server(
    site: &Site,
    texts: &Texts,
    groups: &[&'static dyn SupportedKxGroup],
) -> Arc<ServerConfig> {
    let provider = provider(groups);
    let (chain, key) = parsed(texts);
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots(site)), Arc::clone(&provider));
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .expect("a version")
        .with_client_cert_verifier(verifier.build().expect("a verifier"))
        .with_single_cert(chain, key)
        .expect("a key");
    Arc::new(config)
}

fn finish(stream: &mut StreamOwned<ClientConnection, TcpStream>) -> io::Result<()> {
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(())
}

fn send(stream: &mut impl Write, message: &[u8]) {
    stream.write_all(&framed(message)).expect("it reads");
}

fn answer(stream: &mut impl Read) -> Message {
    let mut length = [0; 4];
    stream.read_exact(&mut length).expect("an answer");
    let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut bytes).expect("an answer");
    Message::decode(&bytes).expect("a message")
}
