//! One IKE SA over UDP with a shared key, as initiator or responder: a proof of the state machine
//! against other implementations. It prints the child SA, the line with which tshark decrypts the
//! exchange, and deletes the IKE SA after the given seconds.
//!
//! ```text
//! cargo run -p cipherbench-ike --example peer -- \
//!     initiate 192.0.2.1:500 192.0.2.2:500 gw1.example gw2.example 10.1.0.0/16 10.2.0.0/16 SECONDS
//! ```
//!
//! The shared key is in the environment's `IKE_PSK`, the suite in `IKE_SUITE`: `gcm` (the default),
//! `chacha` or `cbc`; `IKE_EXCHANGE` is `x25519`, `p256`, `p384`, `mlkem768`.

use ike::crypto::{Cipher, Integrity, KeMethodKind, Prf, Secret};
use ike::message::{AddressRange, Identity};
use ike::session::{
    ADDITIONAL_MAX, Authentication, ChildSuite, Gate, HalfOpen, IkeSuite, Lifetimes, Limits,
    Output, Path, PpkPolicy, Retransmission, Session, Settings, Transport,
};
use std::env;
use std::error::Error;
use std::fmt::Write;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// On port 4500 messages have this marker (RFC 3948 section 2.2).
const MARKER: [u8; 4] = [0; 4];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [
        role,
        local,
        remote,
        own_id,
        peer_id,
        own_net,
        peer_net,
        seconds,
    ] = arguments.as_slice()
    else {
        return Err("see the head of this file for the arguments".into());
    };
    let cipher = cipher()?;
    let settings = Arc::new(Settings {
        identity: Identity::fqdn(own_id),
        peer_identity: Some(Identity::fqdn(peer_id)),
        authentication: Authentication::SharedKey(Secret::new(env::var("IKE_PSK")?.into_bytes())),
        ike: vec![ike_suite()?],
        // strongSwan's libipsec has no extended sequence numbers.
        child: [true, false]
            .map(|esn| ChildSuite {
                cipher,
                esn,
                exchange: None,
                additional: [None; ADDITIONAL_MAX],
            })
            .to_vec(),
        local: vec![network(own_net)?],
        remote: vec![network(peer_net)?],
        children_max: 8,
        childless: false,
        initial_contact: true,
        ppks: Vec::new(),
        ppk_policy: PpkPolicy::Optional,
        datagram: Some(1232),
        lifetimes: Lifetimes::default(),
        retransmission: Retransmission::DEFAULT,
        idle: Duration::from_secs(10),
        transport: Transport::default(),
    });
    let path = Path {
        local: local.parse()?,
        remote: remote.parse()?,
    };
    let mut peer = Peer {
        ports: [
            bound(path.local)?,
            bound(SocketAddr::new(path.local.ip(), 4500))?,
        ],
        start: Instant::now(),
        session: None,
        printed: false,
    };
    let ends = Duration::from_secs(seconds.parse()?);
    peer.run(role == "initiate", &settings, path, ends)
}

fn bound(address: SocketAddr) -> Result<UdpSocket, Box<dyn Error>> {
    let socket = UdpSocket::bind(address).map_err(|error| format!("{address}: {error}"))?;
    socket.set_read_timeout(Some(Duration::from_millis(5)))?;
    Ok(socket)
}

fn cipher() -> Result<Cipher, Box<dyn Error>> {
    Ok(match env::var("IKE_SUITE").as_deref().unwrap_or("gcm") {
        "gcm" => Cipher::AesGcm16 { key_bits: 256 },
        "chacha" => Cipher::ChaCha20Poly1305,
        "cbc" => Cipher::AesCbc {
            key_bits: 128,
            integrity: Integrity::HmacSha256,
        },
        other => return Err(format!("IKE_SUITE is {other}: use gcm, chacha or cbc").into()),
    })
}

fn ike_suite() -> Result<IkeSuite, Box<dyn Error>> {
    let exchange = match env::var("IKE_EXCHANGE").as_deref().unwrap_or("x25519") {
        "x25519" => KeMethodKind::X25519,
        "p256" => KeMethodKind::P256,
        "p384" => KeMethodKind::P384,
        "mlkem768" => KeMethodKind::MlKem768,
        other => return Err(format!("IKE_EXCHANGE is {other}: see the head of this file").into()),
    };
    Ok(IkeSuite {
        cipher: cipher()?,
        prf: Prf::HmacSha384,
        exchange,
        additional: [None; ADDITIONAL_MAX],
    })
}

fn network(text: &str) -> Result<AddressRange, Box<dyn Error>> {
    let (address, prefix) = text.split_once('/').ok_or("a network is ADDRESS/PREFIX")?;
    let first: Ipv4Addr = address.parse()?;
    let bits: u32 = prefix.parse()?;
    let hosts = u32::MAX.checked_shr(bits).unwrap_or(0);
    let last = Ipv4Addr::from_bits(first.to_bits() | hosts);
    Ok(AddressRange::any(first.into()..=last.into()))
}

fn seed() -> Result<Secret, Box<dyn Error>> {
    let mut seed = Secret::new(vec![0; 32]);
    aws_lc_rs::rand::fill(&mut seed).map_err(|_| "no random numbers")?;
    Ok(seed)
}

struct Peer {
    /// Port 500 or another, and port 4500.
    ports: [UdpSocket; 2],
    start: Instant,
    session: Option<Session>,
    printed: bool,
}

impl Peer {
    fn run(
        &mut self,
        initiates: bool,
        settings: &Arc<Settings>,
        path: Path,
        ends: Duration,
    ) -> Result<(), Box<dyn Error>> {
        let mut gate = Gate::new(
            Arc::clone(settings),
            seed()?,
            Limits::default(),
            Duration::ZERO,
        );
        let mut out = Vec::new();
        if initiates {
            let settings = Arc::clone(settings);
            let seed = seed()?;
            // The first random number takes a while.
            let now = self.start.elapsed();
            self.session = Session::initiate(settings, seed, path, now, &mut out);
        }
        let mut is_deleted = false;
        loop {
            if self.execute(&mut out)? {
                return Ok(());
            }
            let now = self.start.elapsed();
            if now > ends + Duration::from_secs(20) {
                return Err("the IKE SA did not end in time".into());
            }
            if let Some(session) = &mut self.session {
                if now >= ends && !is_deleted {
                    is_deleted = true;
                    session.delete(now, &mut out);
                }
                if session.wakes_at().is_some_and(|at| at <= now) {
                    session.tick(now, &mut out);
                }
            }
            // Sent before this waits, so that the times of repetitions are right.
            if self.execute(&mut out)? {
                return Ok(());
            }
            self.receive(&mut gate, now, &mut out)?;
        }
    }

    fn receive(
        &mut self,
        gate: &mut Gate,
        now: Duration,
        out: &mut Vec<Output>,
    ) -> Result<(), Box<dyn Error>> {
        for port in &self.ports {
            let mut buffer = [0; 65536];
            let (length, remote) = match port.recv_from(&mut buffer) {
                Ok(received) => received,
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let local = port.local_addr()?;
            let mut datagram = &buffer[..length];
            if local.port() == 4500 {
                // Without marker it is ESP, or a keep-alive.
                let Some(message) = datagram.strip_prefix(&MARKER) else {
                    continue;
                };
                datagram = message;
            }
            let path = Path { local, remote };
            match &mut self.session {
                Some(session) => session.handle(now, datagram, path, out),
                None => self.session = gate.admit(now, datagram, path, HalfOpen::default(), out),
            }
        }
        Ok(())
    }

    /// Carries out the outputs; true if the IKE SA has ended.
    fn execute(&mut self, out: &mut Vec<Output>) -> Result<bool, Box<dyn Error>> {
        let mut has_ended = false;
        for output in out.drain(..) {
            match output {
                Output::Send {
                    datagram,
                    path,
                    marker,
                } => {
                    let framed = if marker {
                        [&MARKER, datagram.as_slice()].concat()
                    } else {
                        datagram
                    };
                    let port = &self.ports[usize::from(path.local.port() == 4500)];
                    port.send_to(&framed, path.remote)?;
                }
                Output::Closed(reason) => {
                    println!("closed: {reason:?}");
                    has_ended = true;
                }
                other => println!("{other:?}"),
            }
        }
        if let Some(session) = &self.session
            && !self.printed
            && let Some(line) = decryption(session)
        {
            println!("tshark: {line}");
            self.printed = true;
        }
        Ok(has_ended)
    }
}

/// The line of Wireshark's table `ikev2_decryption_table`.
fn decryption(session: &Session) -> Option<String> {
    let (suite, keys) = session.keys()?;
    let (initiator, responder) = session.spis();
    let hex = |bytes: &[u8]| {
        bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    };
    let (encryption, integrity) = match suite.cipher {
        Cipher::AesGcm16 { .. } => ("AES-GCM-256 with 16 octet ICV [RFC5282]", "NONE [RFC4306]"),
        Cipher::ChaCha20Poly1305 => ("CHACHA20-POLY1305 [RFC7634]", "NONE [RFC4306]"),
        Cipher::AesCbc { .. } => ("AES-CBC-128 [RFC3602]", "HMAC_SHA2_256_128 [RFC4868]"),
    };
    let [ei, er] = keys.encryption.each_ref().map(|key| hex(key));
    let [ai, ar] = keys.integrity.each_ref().map(|key| hex(key));
    Some(format!(
        "{initiator:016x},{responder:016x},{ei},{er},\"{encryption}\",{ai},{ar},\"{integrity}\""
    ))
}
