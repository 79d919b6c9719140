//! A responder of many peers, of the same state machine: for tests of the generator, and for its
//! calibration without a device.

use crate::engine::MARKER;
use crate::error::PeersError;
use crate::report::Traffic;
use crate::resources::{memory_bytes, wake_exactly};
use crate::sockets::Sockets;
use crate::spec::{Authentication, Spec};
use crate::timers::Timers;
use crate::trust::Trusted;
use aws_lc_rs::rand;
use ike::crypto::Secret;
use ike::message::{AddressRange, Exchange, Header, Identity};
use ike::session::{
    self, ChildSuite, Closed, Event, Gate, HalfOpen, IkeSuite, Lifetimes, Limits, Output, Path,
    PpkPolicy, Retransmission, Session, Settings, Transport,
};
use pki::Texts;
use port::Stop;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

const TIMERS: usize = 64;

/// The gateway's side of a spec.
#[derive(Clone)]
pub struct Settled {
    settings: Arc<Settings>,
    limits: Limits,
    address: IpAddr,
    ports: [u16; 2],
}

/// Counts of a gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Peers that were authenticated.
    pub established: u64,
    /// Child SAs that were created.
    pub children: u64,
    /// IKE SAs that peers deleted.
    pub deleted: u64,
    /// IKE SAs that ended otherwise, by reason.
    pub ended: BTreeMap<String, u64>,
    /// First requests that were refused or ignored, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Sessions at the end.
    pub left: u64,
    /// Datagrams.
    pub traffic: Traffic,
    /// CPU time of its thread in nanoseconds.
    pub cpu_ns: u64,
    /// Datagrams lost because a receive buffer was full.
    pub missed: u64,
    /// The process's anonymous memory at the end.
    pub memory_bytes: Option<u64>,
}

impl Settled {
    /// The gateway for the peers of a spec. `texts` are its certificate and key, if it has one.
    ///
    /// # Errors
    /// [`PeersError`]: the spec is impossible.
    pub fn new(spec: &Spec, texts: Option<&Texts>) -> Result<Self, PeersError> {
        let suite: IkeSuite = spec.proposal.parse().map_err(|source| {
            let text = spec.proposal.clone();
            PeersError::Proposal { text, source }
        })?;
        let secret = |text: &str| Secret::new(text.as_bytes().to_vec());
        let authentication = match &spec.authentication {
            Authentication::SharedKey(key) => session::Authentication::SharedKey(secret(&key.0)),
            Authentication::Certificates { authority, .. } => {
                let missing =
                    || PeersError::Certificate("the gateway has no certificate".to_owned());
                let trusted = Trusted::from_pem(&authority.certificate)?;
                let own = trusted.with(texts.ok_or_else(missing)?)?;
                session::Authentication::Certificates(own)
            }
        };
        let any = |address: IpAddr| match address {
            IpAddr::V4(_) => AddressRange::any([0; 4].into()..=[255; 4].into()),
            IpAddr::V6(_) => AddressRange::any([0u16; 8].into()..=[u16::MAX; 8].into()),
        };
        let selectors = &spec.selectors;
        let identity = spec.gateway_identity.as_deref().unwrap_or("gateway");
        let ppks = spec.ppk.iter().map(|it| session::Ppk {
            identity: it.identity.clone().into_bytes(),
            key: secret(&it.key.0),
        });
        let settings = Settings {
            identity: Identity::of_text(identity),
            peer_identity: None,
            authentication,
            ike: vec![suite],
            child: [true, false]
                .map(|esn| ChildSuite {
                    cipher: suite.cipher,
                    esn,
                    exchange: Some(suite.exchange),
                    additional: suite.additional,
                })
                .to_vec(),
            local: vec![AddressRange::any(
                selectors.remote_first..=selectors.remote_last,
            )],
            remote: vec![any(selectors.local)],
            children_max: 4,
            childless: spec.behaviour.childless,
            initial_contact: false,
            ppks: ppks.collect(),
            ppk_policy: match &spec.ppk {
                Some(ppk) if ppk.required => PpkPolicy::Required,
                _ => PpkPolicy::Optional,
            },
            datagram: spec.behaviour.datagram_bytes.map(|it| it as usize),
            lifetimes: Lifetimes::default(),
            retransmission: Retransmission::DEFAULT,
            // The peers check.
            idle: Duration::from_secs(3600),
            transport: Transport {
                port: spec.port,
                nat_port: spec.nat_port,
                peer_nat_port: spec.nat_port,
                always_in_udp: false,
                child_spis: None,
            },
        };
        Ok(Self {
            settings: Arc::new(settings),
            limits: Limits {
                cookies_from: usize::MAX,
                half_open: usize::MAX,
                of_address: usize::MAX,
            },
            address: spec.gateway,
            ports: [spec.port, spec.nat_port],
        })
    }

    /// Limits peers without authentication; by default they are unlimited.
    #[must_use]
    pub const fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// With other settings, such as another key.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }

    /// Opens the gateway's sockets.
    ///
    /// # Errors
    /// [`PeersError::Port`].
    pub fn open(self) -> Result<Gateway, PeersError> {
        let sockets = Sockets::open(self.address, &self.ports)?;
        Ok(Gateway {
            settled: self,
            sockets,
        })
    }
}

/// A gateway with open sockets.
pub struct Gateway {
    settled: Settled,
    sockets: Sockets,
}

impl Gateway {
    /// Answers peers until it is stopped.
    ///
    /// # Errors
    /// [`PeersError`]: the system refuses to wait, or has no random numbers.
    pub fn serve(self, stop: &Stop) -> Result<Counts, PeersError> {
        wake_exactly();
        let began_ns = crate::resources::cpu_ns();
        let Self {
            settled,
            mut sockets,
        } = self;
        let mut seed = Secret::new(vec![0; 32]);
        rand::fill(&mut seed).map_err(|_| PeersError::Random)?;
        let settings = Arc::clone(&settled.settings);
        let mut sessions = Sessions {
            start: Instant::now(),
            gate: Gate::new(settings, seed, settled.limits, Duration::ZERO),
            settled,
            all: Vec::new(),
            free: Vec::new(),
            owners: HashMap::new(),
            firsts: HashMap::new(),
            of_address: HashMap::new(),
            half_open: 0,
            timers: Timers::default(),
            counts: Counts::default(),
            out: Vec::new(),
        };
        while !stop.is_raised() {
            let now_ns = sessions.now_ns();
            for _ in 0..TIMERS {
                let Some(place) = sessions.timers.due(now_ns) else {
                    break;
                };
                sessions.tick(place, &mut sockets);
            }
            sockets.flush();
            let next_ns = sessions.timers.next();
            let left = |at: u64| Duration::from_nanos(at.saturating_sub(sessions.now_ns()));
            sockets.wait(next_ns.map(left), &[stop.as_fd()])?;
            sockets.receive(|sockets, datagram, local, remote| {
                sessions.receive(datagram, Path { local, remote }, sockets);
            });
            sockets.flush();
        }
        let mut counts = sessions.counts;
        counts.left = sessions.all.iter().flatten().count() as u64;
        counts.cpu_ns = crate::resources::cpu_ns() - began_ns;
        counts.missed = sockets.missed();
        counts.memory_bytes = memory_bytes();
        Ok(counts)
    }
}

struct Tracked {
    session: Box<Session>,
    /// Its SPI and address of the first request, until the peer is authenticated.
    first: Option<(u64, SocketAddr)>,
    spis: Vec<u64>,
}

struct Sessions {
    start: Instant,
    settled: Settled,
    gate: Gate,
    all: Vec<Option<Tracked>>,
    free: Vec<u32>,
    /// The session of each SPI of this end.
    owners: HashMap<u64, u32>,
    /// Sessions without authentication: the peer may repeat the first request.
    firsts: HashMap<(u64, SocketAddr), u32>,
    of_address: HashMap<IpAddr, usize>,
    half_open: usize,
    timers: Timers,
    counts: Counts,
    out: Vec<Output>,
}

impl Sessions {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn refuse(&mut self, name: String) {
        *self.counts.refused.entry(name).or_default() += 1;
    }

    fn receive(&mut self, datagram: &[u8], path: Path, sockets: &mut Sockets) {
        self.counts.traffic.add_received(datagram.len());
        let is_shared = path.local.port() == self.settled.ports[1];
        let message = match is_shared.then(|| datagram.strip_prefix(&MARKER)) {
            Some(None) => return self.refuse("no_ike".to_owned()),
            Some(Some(message)) => message,
            None => datagram,
        };
        let Ok(header) = Header::peek(message) else {
            return self.refuse("malformed".to_owned());
        };
        let own = if header.from_initiator {
            header.responder_spi
        } else {
            header.initiator_spi
        };
        let first = (header.initiator_spi, path.remote);
        let is_first = header.exchange == Exchange::IKE_SA_INIT;
        let owner = if is_first {
            self.firsts.get(&first)
        } else {
            self.owners.get(&own)
        };
        if let Some(place) = owner.copied() {
            let now = self.start.elapsed();
            return self.step(place, sockets, |session, out| {
                session.handle(now, message, path, out);
            });
        }
        let half_open = HalfOpen {
            all: self.half_open,
            of_address: self.of_address.get(&path.remote.ip()).copied().unwrap_or(0),
        };
        let now = self.start.elapsed();
        let mut out = std::mem::take(&mut self.out);
        let session = self.gate.admit(now, message, path, half_open, &mut out);
        self.out = out;
        match session {
            Some(session) => {
                let place = self.add(session, first);
                self.execute(Some(place), sockets);
            }
            None => self.execute(None, sockets),
        }
    }

    fn add(&mut self, session: Session, first: (u64, SocketAddr)) -> u32 {
        let spi = session.spis().1;
        let tracked = Tracked {
            session: Box::new(session),
            first: Some(first),
            spis: vec![spi],
        };
        let place = self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            (self.all.len() - 1) as u32
        });
        self.all[place as usize] = Some(tracked);
        self.owners.insert(spi, place);
        self.firsts.insert(first, place);
        *self.of_address.entry(first.1.ip()).or_default() += 1;
        self.half_open += 1;
        place
    }

    /// A session is authenticated, or has ended.
    fn settle_first(&mut self, place: u32) {
        let tracked = self.all[place as usize].as_mut();
        let Some(first) = tracked.and_then(|it| it.first.take()) else {
            return;
        };
        self.half_open -= 1;
        self.firsts.remove(&first);
        if let Some(count) = self.of_address.get_mut(&first.1.ip()) {
            *count -= 1;
            if *count == 0 {
                self.of_address.remove(&first.1.ip());
            }
        }
    }

    fn tick(&mut self, place: u32, sockets: &mut Sockets) {
        let now = self.start.elapsed();
        self.step(place, sockets, |session, out| {
            if session.wakes_at().is_some_and(|at| at <= now) {
                session.tick(now, out);
            }
        });
    }

    fn step(
        &mut self,
        place: u32,
        sockets: &mut Sockets,
        step: impl FnOnce(&mut Session, &mut Vec<Output>),
    ) {
        let mut out = std::mem::take(&mut self.out);
        if let Some(tracked) = &mut self.all[place as usize] {
            step(&mut tracked.session, &mut out);
        }
        self.out = out;
        self.execute(Some(place), sockets);
    }

    fn execute(&mut self, place: Option<u32>, sockets: &mut Sockets) {
        let mut out = std::mem::take(&mut self.out);
        let mut closed = None;
        let mut is_new = false;
        for output in out.drain(..) {
            match output {
                Output::Send {
                    datagram,
                    path,
                    marker,
                } => {
                    let marker: &[u8] = if marker { &MARKER } else { &[] };
                    let bytes = marker.len() + datagram.len();
                    self.counts.traffic.add_sent(bytes);
                    sockets.push([marker, &datagram], path.local, path.remote);
                }
                Output::Established => {
                    self.counts.established += 1;
                    is_new = true;
                }
                Output::ChildUp(_) => {
                    self.counts.children += 1;
                    is_new = true;
                }
                Output::IkeUp(spi) => {
                    if let Some(place) = place
                        && let Some(tracked) = &mut self.all[place as usize]
                    {
                        tracked.spis.push(spi);
                        self.owners.insert(spi, place);
                    }
                    is_new = true;
                }
                Output::IkeDown(spi) => {
                    self.owners.remove(&spi);
                }
                Output::Event(Event::Ignored(reason)) => self.refuse(reason.name().to_owned()),
                Output::Event(Event::FirstRefused(kind)) => self.refuse(kind.to_string()),
                Output::Event(_) | Output::ChildDown(_) | Output::InitialContact => {}
                Output::Closed(reason) => closed = Some(reason),
            }
        }
        self.out = out;
        let Some(place) = place else { return };
        if is_new {
            self.settle_first(place);
            if let Some(tracked) = &mut self.all[place as usize] {
                tracked.session.compact(&self.settled.settings);
            }
        }
        if let Some(reason) = closed {
            return self.end(place, &reason);
        }
        let tracked = self.all[place as usize].as_ref();
        let wakes = tracked.and_then(|it| it.session.wakes_at());
        let wakes = wakes.map(|it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX));
        self.timers.set(place, wakes);
    }

    fn end(&mut self, place: u32, reason: &Closed) {
        self.settle_first(place);
        if let Some(tracked) = self.all[place as usize].take() {
            for spi in tracked.spis {
                self.owners.remove(&spi);
            }
            self.free.push(place);
        }
        if *reason == Closed::ByPeer {
            self.counts.deleted += 1;
        } else {
            let name = crate::peer::ended(reason).name;
            *self.counts.ended.entry(name).or_default() += 1;
        }
    }
}
