//! This end: a session with a socket and a clock.

use crate::charon::Charon;
use ike::crypto::{Cipher, KeMethodKind, Prf, Secret};
use ike::message::{AddressRange, Identity, Message, Payload};
use ike::session::{
    ADDITIONAL_MAX, Authentication, ChildSuite, Closed, Event, Gate, HalfOpen, IkeSuite, Lifetimes,
    Limits, Output, Path, PpkPolicy, Retransmission, Session, Settings, Transport,
};
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Messages on port 4500 have this marker (RFC 3948 section 2.2).
const MARKER: [u8; 4] = [0; 4];
const NAT_PORT: u16 = 4500;
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest datagram with fragmentation.
pub(crate) const LIMIT: usize = 400;

pub(crate) const fn gcm() -> Cipher {
    Cipher::AesGcm16 { key_bits: 256 }
}

fn range(first: &str, last: &str) -> AddressRange {
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    AddressRange::any(address(first)..=address(last))
}

pub(crate) fn settings() -> Settings {
    Settings {
        identity: Identity::fqdn("ours.example"),
        peer_identity: Some(Identity::fqdn("charon.example")),
        authentication: Authentication::SharedKey(Secret::new(b"a secret of tests".to_vec())),
        ike: vec![IkeSuite {
            cipher: gcm(),
            prf: Prf::HmacSha384,
            exchange: KeMethodKind::X25519,
            additional: [None; ADDITIONAL_MAX],
        }],
        child: vec![ChildSuite {
            cipher: gcm(),
            esn: false,
            exchange: Some(KeMethodKind::X25519),
            additional: [None; ADDITIONAL_MAX],
        }],
        local: vec![range("10.2.0.0", "10.2.255.255")],
        remote: vec![range("10.1.0.0", "10.1.255.255")],
        children_max: 8,
        childless: false,
        initial_contact: true,
        ppks: Vec::new(),
        ppk_policy: PpkPolicy::Optional,
        datagram: None,
        lifetimes: Lifetimes::default(),
        retransmission: Retransmission::DEFAULT,
        idle: Duration::from_secs(30),
        transport: Transport::default(),
    }
}

/// Settings with so many proposals that IKE_AUTH and CREATE_CHILD_SA exceed a datagram.
pub(crate) fn hybrid_settings() -> Settings {
    let mut settings = settings();
    settings.datagram = Some(LIMIT);
    let mut others = [settings.child[0], settings.child[0]];
    for (suite, key_bits) in others.iter_mut().zip([128, 192]) {
        suite.cipher = Cipher::AesGcm16 { key_bits };
        suite.esn = true;
    }
    settings.child.extend(others.into_iter().cycle().take(12));
    settings
}

pub(crate) struct Host {
    /// Ports 500 and 4500.
    sockets: [UdpSocket; 2],
    settings: Arc<Settings>,
    gate: Gate,
    session: Option<Session>,
    start: Instant,
    pub(crate) outputs: Vec<Output>,
    /// The longest encrypted datagram that was sent.
    pub(crate) longest: usize,
    /// Fragments that were sent and received.
    pub(crate) fragments: [usize; 2],
}

fn seed() -> Secret {
    let mut seed = Secret::new(vec![0; 32]);
    aws_lc_rs::rand::fill(&mut seed).expect("random numbers");
    seed
}

impl Host {
    pub(crate) fn new(settings: Settings) -> Self {
        let sockets = ["192.0.2.2:500", "192.0.2.2:4500"].map(|address| {
            let socket = UdpSocket::bind(address).expect("a free port");
            let timeout = Some(Duration::from_millis(1));
            socket.set_read_timeout(timeout).expect("a timeout");
            socket
        });
        let settings = Arc::new(settings);
        let limits = Limits::default();
        let gate = Gate::new(Arc::clone(&settings), seed(), limits, Duration::ZERO);
        Self {
            sockets,
            settings,
            gate,
            session: None,
            start: Instant::now(),
            outputs: Vec::new(),
            longest: 0,
            fragments: [0; 2],
        }
    }

    pub(crate) fn initiate(&mut self) {
        let path = Path {
            local: self.sockets[0].local_addr().expect("an address"),
            remote: SocketAddr::new("192.0.2.1".parse().expect("an address"), 500),
        };
        let (settings, now) = (Arc::clone(&self.settings), self.start.elapsed());
        let mut out = Vec::new();
        self.session = Session::initiate(settings, seed(), path, now, &mut out);
        self.carry(out);
    }

    pub(crate) fn session(&self) -> &Session {
        self.session.as_ref().expect("a session")
    }

    pub(crate) const fn has_session(&self) -> bool {
        self.session.is_some()
    }

    pub(crate) fn children(&self) -> usize {
        self.session.iter().flat_map(Session::children).count()
    }

    pub(crate) fn child_spis(&self) -> Vec<u32> {
        let children = self.session().children();
        children.map(|it| it.inbound_spi).collect()
    }

    /// Both ends have the same keys of all child SAs.
    pub(crate) fn check_keys(&self, charon: &Charon) {
        self.session()
            .children()
            .for_each(|it| charon.check_keys(it));
    }

    pub(crate) fn closed(&self) -> Option<&Closed> {
        self.outputs.iter().find_map(|it| match it {
            Output::Closed(reason) => Some(reason),
            _ => None,
        })
    }

    /// Names of the reasons why datagrams were ignored.
    pub(crate) fn ignored(&self) -> Vec<String> {
        let ignored = self.outputs.iter().filter_map(|it| match it {
            Output::Event(Event::Ignored(reason)) => Some(reason.to_string()),
            _ => None,
        });
        ignored.collect()
    }

    pub(crate) fn order(&mut self, order: impl FnOnce(&mut Session, Duration, &mut Vec<Output>)) {
        let mut out = Vec::new();
        let now = self.start.elapsed();
        order(self.session.as_mut().expect("a session"), now, &mut out);
        self.carry(out);
    }

    /// Runs until this is so.
    pub(crate) fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            assert!(began.elapsed() < PATIENCE, "no {what}: {:?}", self.outputs);
            self.step();
        }
    }

    /// Runs for so many milliseconds.
    pub(crate) fn pause(&mut self, milliseconds: u64) {
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(milliseconds) {
            self.step();
        }
    }

    /// Runs until neither end has anything to say.
    pub(crate) fn settle(&mut self) {
        self.pause(300);
    }

    /// What a command prints that needs this end to run.
    pub(crate) fn output_of(&mut self, mut command: Child) -> String {
        let began = Instant::now();
        while command.try_wait().expect("it is a child").is_none() {
            assert!(began.elapsed() < PATIENCE, "swanctl does not end");
            self.step();
        }
        let mut text = String::new();
        if let Some(mut pipe) = command.stdout.take() {
            let _ = pipe.read_to_string(&mut text);
        }
        text
    }

    fn step(&mut self) {
        let mut buffer = [0; 65536];
        let mut out = Vec::new();
        for at in 0..self.sockets.len() {
            match self.sockets[at].recv_from(&mut buffer) {
                Ok((length, remote)) => self.receive(at, &buffer[..length], remote, &mut out),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => panic!("{error}"),
            }
        }
        let now = self.start.elapsed();
        if let Some(session) = &mut self.session
            && session.wakes_at().is_some_and(|at| at <= now)
        {
            session.tick(now, &mut out);
        }
        self.carry(out);
    }

    fn receive(
        &mut self,
        at: usize,
        mut datagram: &[u8],
        remote: SocketAddr,
        out: &mut Vec<Output>,
    ) {
        let local = self.sockets[at].local_addr().expect("an address");
        if local.port() == NAT_PORT {
            // Without marker it is a keep-alive.
            let Some(message) = datagram.strip_prefix(&MARKER) else {
                return;
            };
            datagram = message;
        }
        self.fragments[1] += usize::from(is_fragment(datagram));
        let path = Path { local, remote };
        let now = self.start.elapsed();
        match &mut self.session {
            Some(session) => session.handle(now, datagram, path, out),
            None => {
                let half_open = HalfOpen::default();
                self.session = self.gate.admit(now, datagram, path, half_open, out);
            }
        }
    }

    fn carry(&mut self, out: Vec<Output>) {
        for output in out {
            let Output::Send {
                datagram,
                path,
                marker,
            } = output
            else {
                self.outputs.push(output);
                continue;
            };
            let message = Message::parse(&datagram).expect("made by a session");
            if matches!(
                message.payloads[..],
                [Payload::Encrypted { .. } | Payload::Fragment { .. }]
            ) {
                self.longest = self.longest.max(datagram.len());
            }
            self.fragments[0] += usize::from(is_fragment(&datagram));
            let framed = if marker {
                [&MARKER, datagram.as_slice()].concat()
            } else {
                datagram
            };
            let at = usize::from(path.local.port() == NAT_PORT);
            let sent = self.sockets[at].send_to(&framed, path.remote);
            sent.expect("a datagram can be sent");
        }
    }
}

fn is_fragment(datagram: &[u8]) -> bool {
    Message::parse(datagram).is_ok_and(|it| matches!(it.payloads[..], [Payload::Fragment { .. }]))
}
