//! Two sessions on a virtual link that loses, duplicates and reorders datagrams.

use crate::crypto::{Cipher, Integrity, KeMethodKind, Prf, Secret};
use crate::message::{AddressRange, Identity};
use crate::session::*;
use std::collections::VecDeque;
use std::net::IpAddr;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn range(text: &str, last: &str) -> AddressRange {
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    AddressRange::any(address(text)..=address(last))
}

pub(crate) fn gcm() -> IkeSuite {
    IkeSuite {
        cipher: Cipher::AesGcm16 { key_bits: 256 },
        prf: Prf::HmacSha384,
        exchange: KeMethodKind::X25519,
        additional: [None; ADDITIONAL_MAX],
    }
}

pub(crate) fn cbc() -> IkeSuite {
    IkeSuite {
        cipher: Cipher::AesCbc {
            key_bits: 128,
            integrity: Integrity::HmacSha256,
        },
        prf: Prf::HmacSha256,
        exchange: KeMethodKind::P256,
        additional: [None; ADDITIONAL_MAX],
    }
}

pub(crate) fn settings(at: usize) -> Settings {
    let names = ["gw1.example", "gw2.example"];
    let networks = [
        range("10.1.0.0", "10.1.255.255"),
        range("10.2.0.0", "10.2.255.255"),
    ];
    Settings {
        identity: Identity::fqdn(names[at]),
        peer_identity: Some(Identity::fqdn(names[1 - at])),
        authentication: Authentication::SharedKey(Secret::new(b"a secret of tests".to_vec())),
        ike: vec![gcm(), cbc()],
        child: vec![ChildSuite {
            cipher: Cipher::AesGcm16 { key_bits: 256 },
            esn: true,
            exchange: None,
            additional: [None; ADDITIONAL_MAX],
        }],
        local: vec![networks[at]],
        remote: vec![networks[1 - at]],
        children_max: 8,
        childless: false,
        initial_contact: true,
        ppks: Vec::new(),
        ppk_policy: PpkPolicy::Optional,
        datagram: None,
        lifetimes: Lifetimes::default(),
        retransmission: Retransmission::DEFAULT,
        idle: 30 * SECOND,
        transport: Transport::default(),
    }
}

pub(crate) fn path(at: usize) -> Path {
    let addresses = ["192.0.2.1:500", "192.0.2.2:500"].map(|it| it.parse().unwrap());
    Path {
        local: addresses[at],
        remote: addresses[1 - at],
    }
}

/// What happens to the next datagrams.
pub(crate) type Fate<'a> = &'a mut dyn FnMut(usize) -> Vec<u32>;

pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) settings: [Settings; 2],
    pub(crate) initiator: Option<Session>,
    pub(crate) responder: Option<Session>,
    pub(crate) gate: Gate,
    /// To each end: not before this time.
    pub(crate) under_way: [VecDeque<(Duration, Vec<u8>)>; 2],
    pub(crate) outputs: [Vec<Output>; 2],
    pub(crate) half_open: HalfOpen,
    pub(crate) sent: usize,
    /// The initiator's address is translated.
    pub(crate) nat: bool,
    /// Selects the nonces.
    pub(crate) seed: u64,
}

impl World {
    /// An order to the session of one end.
    pub(crate) fn order(
        &mut self,
        at: usize,
        order: impl FnOnce(&mut Session, Duration, &mut Vec<Output>),
    ) {
        let now = self.now;
        let mut out = Vec::new();
        order(self.ends()[at].as_mut().expect("a session"), now, &mut out);
        self.carry(at, out, &mut prompt);
    }

    /// Runs for so many seconds without faults.
    pub(crate) fn pass(&mut self, seconds: u32) {
        self.run(self.now + seconds * SECOND, &mut prompt);
    }

    pub(crate) fn new(change: impl FnOnce(&mut [Settings; 2])) -> Self {
        let mut settings = [settings(0), settings(1)];
        change(&mut settings);
        let seed = Secret::new(vec![2; 32]);
        let limits = Limits {
            cookies_from: 10,
            ..Limits::default()
        };
        let gate = Gate::new(Arc::new(settings[1].clone()), seed, limits, Duration::ZERO);
        Self {
            now: Duration::ZERO,
            settings,
            initiator: None,
            responder: None,
            gate,
            under_way: Default::default(),
            outputs: Default::default(),
            half_open: HalfOpen::default(),
            sent: 0,
            nat: false,
            seed: 1,
        }
    }

    pub(crate) fn start(&mut self, fate: Fate<'_>) {
        let settings = Arc::new(self.settings[0].clone());
        let seed = Secret::new(self.seed.to_be_bytes().repeat(4));
        let mut out = Vec::new();
        self.initiator = Session::initiate(settings, seed, path(0), self.now, &mut out);
        self.carry(0, out, fate);
    }

    pub(crate) fn ends(&mut self) -> [Option<&mut Session>; 2] {
        [self.initiator.as_mut(), self.responder.as_mut()]
    }

    pub(crate) fn carry(&mut self, from: usize, out: Vec<Output>, fate: Fate<'_>) {
        for output in out {
            if let Output::Send { datagram, .. } = &output {
                // Each copy with its delay in milliseconds; none is a loss.
                for delay in fate(self.sent) {
                    let at = self.now + Duration::from_millis(delay.into());
                    self.under_way[1 - from].push_back((at, datagram.clone()));
                }
                self.sent += 1;
            }
            self.outputs[from].push(output);
        }
    }

    pub(crate) fn deliver(&mut self, to: usize, datagram: &[u8], fate: Fate<'_>) {
        let mut out = Vec::new();
        let mut path = path(to);
        if self.nat && to == 1 {
            path.remote = "198.51.100.7:40000".parse().unwrap();
        }
        let now = self.now;
        // The initiator's SPI alone: a repeated first request is of the session, too.
        let spi = Header::peek(datagram).map(|it| it.initiator_spi).ok();
        let is_of = |it: &&mut &mut Session| {
            it.channels
                .iter()
                .any(|channel| Some(channel.initiator_spi) == spi)
        };
        match self.ends()[to].as_mut().filter(is_of) {
            Some(session) => session.handle(now, datagram, path, &mut out),
            None => {
                let half_open = self.half_open;
                let admitted = self.gate.admit(now, datagram, path, half_open, &mut out);
                if to == 1 && admitted.is_some() {
                    self.responder = admitted;
                }
            }
        }
        self.carry(to, out, fate);
    }

    /// Until nothing is under way and no request is pending, or both ends are closed.
    pub(crate) fn run(&mut self, until: Duration, fate: Fate<'_>) {
        loop {
            let wakes: Vec<Duration> = self
                .ends()
                .into_iter()
                .flatten()
                .filter_map(|it| it.wakes_at())
                .collect();
            let arrivals = self.under_way.iter().flatten().map(|(at, _)| *at);
            let Some(next) = arrivals.chain(wakes).min().filter(|at| *at <= until) else {
                self.now = until;
                return;
            };
            self.now = self.now.max(next);
            for to in 0..2 {
                let due = self.under_way[to]
                    .iter()
                    .position(|(at, _)| *at <= self.now);
                if let Some(at) = due {
                    let (_, datagram) = self.under_way[to].remove(at).unwrap();
                    self.deliver(to, &datagram, fate);
                }
                let now = self.now;
                let mut out = Vec::new();
                if let Some(session) = self.ends()[to].as_mut()
                    && session.wakes_at().is_some_and(|at| at <= now)
                {
                    session.tick(now, &mut out);
                }
                self.carry(to, out, fate);
            }
        }
    }

    pub(crate) fn closed(&self, at: usize) -> Option<&Closed> {
        self.outputs[at].iter().find_map(|it| match it {
            Output::Closed(reason) => Some(reason),
            _ => None,
        })
    }

    pub(crate) fn event(&self, at: usize, wanted: &Event) -> bool {
        self.outputs[at]
            .iter()
            .any(|it| matches!(it, Output::Event(event) if event == wanted))
    }

    /// The number of child SAs of each end.
    pub(crate) fn children(&mut self) -> [usize; 2] {
        self.ends()
            .map(|it| it.map_or(0, |it| it.children().count()))
    }

    /// Both ends have one child SA, with the same keys.
    pub(crate) fn check_child(&mut self) -> ChildSa {
        let [Some(one), Some(other)] = self.ends() else {
            panic!("two sessions")
        };
        assert!(
            one.is_established() && other.is_established(),
            "{:?}",
            self.outputs
        );
        let children = [&one, &other].map(|it| it.children().collect::<Vec<_>>());
        let [[one], [other]] = children.each_ref().map(Vec::as_slice) else {
            panic!("one child SA each")
        };
        assert_eq!(one.inbound_spi, other.outbound_spi);
        assert_eq!(one.outbound_spi, other.inbound_spi);
        assert_eq!(one.inbound_keys, other.outbound_keys);
        assert_eq!(one.outbound_keys, other.inbound_keys);
        assert_ne!(one.inbound_keys, one.outbound_keys);
        assert_eq!((&one.local, &one.remote), (&other.remote, &other.local));
        assert_eq!((one.suite, one.in_udp), (other.suite, other.in_udp));
        (*one).clone()
    }
}

pub(crate) fn prompt(_: usize) -> Vec<u32> {
    vec![1]
}

pub(crate) fn set_up(change: impl FnOnce(&mut [Settings; 2])) -> World {
    let mut world = World::new(change);
    world.start(&mut prompt);
    world.run(SECOND, &mut prompt);
    world
}

/// SplitMix64, as in other tests.
pub(crate) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
