//! What a good trial reads.

use super::*;
use impair::Impaired;
use journal::record::{FramesSeen, RtpCounts, SealedContents, VideoResult, VideoStream};
use plan::{
    DataPath, FlowDirection, HttpTest, IkeAuth, KeySource, OpenVpn, Player, StrongSwan, Tool,
    TransferDirection, VideoTest, WireGuard, WireGuardProgram,
};

/// What a good trial reads; tests spoil one thing each.
pub(super) struct Fixture {
    pub(super) cell: Cell,
    pub(super) links: Links,
    pub(super) commands: Commands,
    pub(super) transfer: Transfer,
    pub(super) totals: Totals,
    pub(super) latency: Option<Latency>,
    pub(super) http: Option<HttpResult>,
    pub(super) video: Option<VideoResult>,
    pub(super) counters: BTreeMap<String, InterfaceCounters>,
    pub(super) drivers: BTreeMap<String, BTreeMap<String, u64>>,
    pub(super) offloads: BTreeMap<String, BTreeMap<String, String>>,
    pub(super) dut_counters: BTreeMap<String, u64>,
    pub(super) resets: Vec<String>,
    pub(super) dut_facts: BTreeMap<String, String>,
    pub(super) cipher_link: CipherLink,
    pub(super) received_dscp: BTreeMap<String, u64>,
    pub(super) watch: CipherWatch,
    pub(super) cpu: Cpu,
    pub(super) station_lost: u64,
    pub(super) client_ends_ns: Vec<u64>,
    pub(super) settings: PathSettings,
    pub(super) impaired: Option<Impaired>,
}

impl Fixture {
    pub(super) fn new(adapter: Adapter, cores: u16, measurement: Measurement) -> Self {
        let cell = Cell {
            id: "cell".to_owned(),
            group: "group".to_owned(),
            coordinates: Vec::new(),
            dut: Dut::new("dut", adapter),
            stations: Some(plan::Stations {
                mtu: 1500,
                cores,
                offloads: false,
                overlay: plan::Overlay::None,
                dscp: None,
            }),
            measurement,
            impair: None,
            tune: false,
            estimate_ns: 0,
            calibration: false,
        };
        let links = Links {
            mtu: 1500,
            cipher_mtu: 1564,
            offloads: false,
            rate_bps: None,
        };
        let target = Ipv4Addr::new(10, 2, 0, 2);
        let dut_facts = reported_facts(&cell.dut.adapter);
        let parameters = crate::parameters(&cell);
        let commands = crate::commands(&cell, &parameters, target, 2).unwrap();
        let off = || {
            FEATURES
                .map(|name| (name.to_owned(), "off".to_owned()))
                .into()
        };
        let names = ["a/a0", "gw1/w0", "gw2/w1", "b/b0"];
        Self {
            cell,
            links,
            commands,
            transfer: Transfer::default(),
            totals: Totals::default(),
            latency: None,
            http: None,
            video: None,
            counters: names
                .map(|name| (name.to_owned(), InterfaceCounters::default()))
                .into(),
            drivers: BTreeMap::new(),
            offloads: LINK_ENDS.map(|name| (name.to_owned(), off())).into(),
            dut_counters: BTreeMap::new(),
            resets: Vec::new(),
            dut_facts,
            cipher_link: CipherLink::default(),
            received_dscp: BTreeMap::new(),
            watch: CipherWatch::default(),
            cpu: Cpu {
                wall_ns: 1000 * MS,
                foreign_ns: 20 * MS,
                ..Cpu::default()
            },
            station_lost: 0,
            client_ends_ns: vec![1010 * MS; usize::from(cores)],
            settings: PathSettings {
                neighbour_frames: ["a", "b", "gw1", "gw2"]
                    .map(|node| (node.to_owned(), 4))
                    .into(),
                ..PathSettings::default()
            },
            impaired: None,
        }
    }

    /// A gigabyte of TCP in full segments, without offloads.
    pub(super) fn tcp(adapter: Adapter, cores: u16) -> Self {
        let (streams, duration_ns) = (2, 1000 * MS);
        let tcp = Measurement::Tcp {
            tool: Tool::default(),
            direction: TransferDirection::AToB,
            congestion: None,
            streams,
            window_bytes: None,
            duration_ns,
            warmup_ns: 0,
        };
        let mut fixture = Self::new(adapter, cores, tcp);
        // Full segments with timestamps at an MTU of 1500 B, behind 14 + 20 + 32 B of headers.
        fixture.carry(1_000_000_000, 999_000_000, 1448, 66);
        fixture
    }

    /// A hundred thousand datagrams of 1000 B, of which a tenth is lost in the DUT.
    pub(super) fn udp(rate_bps: Option<u64>) -> Self {
        let udp = Measurement::Udp {
            tool: Tool::default(),
            direction: TransferDirection::AToB,
            datagram_bytes: Some(1000),
            rate_bps,
            streams: 1,
            duration_ns: 1000 * MS,
            warmup_ns: 0,
        };
        let mut fixture = Self::new(encrypting(), 1, udp);
        // Ethernet, IPv4 and UDP.
        fixture.carry(100_000_000, 90_000_000, 1000, 42);
        fixture.transfer.datagrams = Some(Datagrams {
            sent: 100_000,
            lost: 10_000,
            station_lost: 0,
            out_of_order: 0,
            ..Datagrams::default()
        });
        fixture
    }

    pub(super) fn ping(adapter: Adapter) -> Self {
        let ping = Measurement::Ping {
            count: 1000,
            interval_ns: MS,
            payload_bytes: 56,
            loaded: false,
            route: false,
            load_dscp: Vec::new(),
        };
        let mut fixture = Self::new(adapter, 1, ping);
        fixture.carry(56_000, 56_000, 56, 42);
        fixture.latency = Some(Latency {
            sent: 1000,
            received: 1000,
            round_trips_ns: vec![1; 1000],
            ..Latency::default()
        });
        fixture
    }

    /// Sets totals and counters to what `sent` and `received` bytes of payload make, in packets of
    /// `payload_bytes` each, with `header_bytes` on the clear side.
    pub(super) fn carry(
        &mut self,
        sent: u64,
        received: u64,
        payload_bytes: u64,
        header_bytes: u64,
    ) {
        self.totals = Totals {
            sent_bytes: sent,
            uncounted_bytes: 0,
            received_bytes: received,
            retransmits: 0,
            sent_summary_bytes: Some(sent),
            received_summary_bytes: Some(received),
            offered_bytes: sent,
            offered_ns: 1000 * MS,
            longest_step_ns: 100 * MS,
            drained_ns: 0,
            unsteady_drain: None,
        };
        self.transfer.duration_ns = 1000 * MS;
        let frames = |bytes: u64| bytes.div_ceil(payload_bytes);
        let encrypts = self.cell.dut.adapter.encrypts();
        // Outer IPv4 and UDP, then the form's header, nonce, padding and tag.
        let extra = match self.cell.dut.adapter {
            Adapter::WireGuard(_) => 28 + 32,
            Adapter::OpenVpn(_) => 28 + 24,
            _ if encrypts => 28 + 36,
            _ => 0,
        };
        let clear = |bytes: u64| bytes + frames(bytes) * header_bytes;
        let source = self.counter("a/a0");
        (source.tx_bytes, source.tx_packets) = (clear(sent), frames(sent));
        let sink = self.counter("b/b0");
        (sink.rx_bytes, sink.rx_packets) = (clear(received), frames(received));
        let link = self.counter("gw1/w0");
        link.tx_bytes = clear(received) + frames(received) * extra;
        link.tx_packets = frames(received);
        self.counter("gw2/w1").rx_packets = frames(received);
        self.counter("a/a0").tx_packets = frames(sent);
        self.counter("b/b0").rx_packets = frames(received);
        let (counter, answers) = match self.cell.measurement {
            Measurement::Ping { .. } => ("OutMsgs", frames(received)),
            Measurement::Udp { .. } => ("OutDatagrams", 20),
            // An acknowledgement for every second segment.
            _ => ("OutSegs", frames(received) / 2),
        };
        for (name, packets) in [
            (format!("a/{counter}"), frames(sent)),
            ("b/InNoECTPkts".to_owned(), frames(received)),
            ("b/OutSegs".to_owned(), answers),
            ("a/InNoECTPkts".to_owned(), answers),
        ] {
            self.settings.stack.insert(name, packets);
        }
        self.counter("b/b0").tx_packets = answers;
        self.counter("a/a0").rx_packets = answers;
        self.cipher_link = CipherLink {
            frames: 300,
            ..CipherLink::default()
        };
        if encrypts {
            // The one left over is control traffic, as a link always has some.
            self.cipher_link.esp_frames = 299;
            self.cipher_link.spis = vec!["c0ffee01".to_owned()];
            self.cipher_link.opened = Some(OpenedPackets {
                packets: 24,
                opened: 24,
                between_stations: 23,
                ..OpenedPackets::default()
            });
            self.cipher_link.contents = Some(SealedContents {
                packets: 140,
                bytes: 190_000,
                chi_square_milli: 262_100,
                ..SealedContents::default()
            });
        } else {
            self.cipher_link.marker_frames = 200;
            self.cipher_link.other_frames = 299;
            // To a watch for ESP, every frame in clear is foreign.
            self.watch.foreign_frames = frames(received);
        }
        // Of others it is not known what they count.
        if self.cell.dut.adapter.encryptor().is_some() {
            // Encryptors count IP packets, without the Ethernet header.
            let ip = |bytes: u64| bytes + frames(bytes) * (header_bytes - 14);
            for (name, value) in [
                ("gw1/clear_rx_packets", frames(sent)),
                ("gw1/clear_rx_bytes", ip(sent)),
                ("gw1/cipher_tx_packets", frames(received)),
                (
                    "gw1/dropped_packets.send_failed",
                    frames(sent) - frames(received),
                ),
                ("gw2/cipher_rx_packets", frames(received)),
                ("gw2/clear_tx_packets", frames(received)),
                ("gw2/clear_tx_bytes", ip(received)),
                ("gw2/dropped_packets.replayed", 0),
            ] {
                self.dut_counters.insert(name.to_owned(), value);
            }
        }
    }

    /// A gigabyte of objects in full segments, fetched by A from B, without offloads.
    pub(super) fn http(adapter: Adapter) -> Self {
        let test = HttpTest {
            connections: 4,
            streams: 1,
            ramp_ns: 100 * MS,
            duration_ns: 1000 * MS,
            ..HttpTest::default()
        };
        let mut fixture = Self::new(adapter, 1, Measurement::Http(test));
        let bytes = 1_000_000_000;
        fixture.carry(bytes, bytes, 1448, 66);
        // `carry` sends from A to B, and objects go the other way.
        fixture.mirror();
        fixture.http = Some(HttpResult {
            duration_ns: 1000 * MS,
            transactions: 9000,
            // Of the sustain phase only; what the ramps carried is among `received_bytes`.
            object_bytes: bytes / 10 * 9,
            attempted: 10_000,
            received_bytes: bytes,
            connections_in_all: 4,
            ..HttpResult::default()
        });
        fixture
    }

    /// Two streams of video in full packets over RTP, sent by B to A, of which some are lost.
    pub(super) fn video(adapter: Adapter) -> Self {
        const PACKETS: u64 = 2000;
        const LOST: u64 = 20;
        const DATAGRAM: u64 = 1328;
        let test = VideoTest {
            player: Player::Ffmpeg,
            streams: 2,
            rate_bps: 2_000_000,
            duration_ns: 1000 * MS,
            ..VideoTest::default()
        };
        let mut fixture = Self::new(adapter, 1, Measurement::Video(test));
        let [sent, received] = [2 * PACKETS, 2 * (PACKETS - LOST)].map(|count| count * DATAGRAM);
        fixture.carry(sent, received, DATAGRAM, 42);
        fixture.mirror();
        let stream = VideoStream {
            sent_bytes: sent / 2,
            received_bytes: received / 2,
            rtp: Some(RtpCounts {
                sent: PACKETS,
                received: PACKETS - LOST,
                lost: LOST,
                ..RtpCounts::default()
            }),
            frames: FramesSeen {
                decoded: 90,
                expected: 25,
                shown: 24,
                damaged: 3,
                ..FramesSeen::default()
            },
            ..VideoStream::default()
        };
        fixture.video = Some(VideoResult {
            duration_ns: 1000 * MS,
            streams: vec![stream; 2],
        });
        fixture
    }

    /// Exchanges the two sides of the path.
    fn mirror(&mut self) {
        let other = |name: &str| match name.split_once('/') {
            Some(("a", rest)) => format!("b/{}", rest.replace("a0", "b0")),
            Some(("b", rest)) => format!("a/{}", rest.replace("b0", "a0")),
            Some(("gw1", rest)) => format!("gw2/{}", rest.replace("w0", "w1")),
            Some(("gw2", rest)) => format!("gw1/{}", rest.replace("w1", "w0")),
            _ => name.to_owned(),
        };
        self.counters = (self.counters.iter())
            .map(|(name, found)| (other(name), *found))
            .collect();
        for counts in [&mut self.dut_counters, &mut self.settings.stack] {
            *counts = (counts.iter())
                .map(|(name, found)| (other(name), *found))
                .collect();
        }
    }

    /// Turns offloads on, in the cell and on the links.
    pub(super) fn offload(&mut self) {
        self.links.offloads = true;
        for found in self.offloads.values_mut() {
            found.extend([0, 1, 2].map(|i| (FEATURES[i].to_owned(), "on".to_owned())));
        }
    }

    pub(super) fn counter(&mut self, name: &str) -> &mut InterfaceCounters {
        self.counters.get_mut(name).unwrap()
    }

    pub(super) fn stack(&mut self, name: &str) -> &mut u64 {
        self.settings.stack.get_mut(name).unwrap()
    }

    pub(super) fn checks(&self) -> Vec<Check> {
        let load = match (&self.latency, &self.http, &self.cell.measurement) {
            (Some(latency), _, Measurement::Ping { payload_bytes, .. }) => Load::Echo {
                latency,
                payload_bytes: *payload_bytes,
            },
            (_, Some(http), _) => Load::Http(http),
            _ if self.video.is_some() => Load::Video(self.video.as_ref().unwrap()),
            _ => Load::Transfer {
                transfer: &self.transfer,
                totals: self.totals,
            },
        };
        let interfaces = Interfaces {
            a: "a/a0".to_owned(),
            cipher: Some(["gw1/w0", "gw2/w1"].map(str::to_owned)),
            b: "b/b0".to_owned(),
        };
        let mut markers = vec![self.commands.marker.clone()];
        markers.retain(|marker| !marker.is_empty());
        let cipher = CipherTraffic {
            link: &self.cipher_link,
            watch: &self.watch,
            markers: &markers,
            counters: self.counters.get("gw1/w0").copied().unwrap_or_default(),
            sampling_ns: 300 * MS,
        };
        let path = ObservedPath {
            cell: &self.cell,
            links: self.links,
            link_ends: &LINK_ENDS.map(str::to_owned),
            counters: &self.counters,
            drivers: &self.drivers,
            offloads: &self.offloads,
            dut_counters: &self.dut_counters,
            resets: self.resets.clone(),
            dut_facts: &self.dut_facts,
            cipher: Some(cipher),
            received_dscp: Some(&self.received_dscp),
            elapsed_ns: 1100 * MS,
            cpu: &self.cpu,
            settings: Some(&self.settings),
            impaired: self.impaired.as_ref(),
        };
        checks(&[ToolObserved {
            path,
            commands: &self.commands,
            way: if self.http.is_some() || self.video.is_some() {
                FlowDirection::BToA
            } else {
                FlowDirection::AToB
            },
            load,
            beside: None,
            interfaces,
            station_lost: self.station_lost,
            client_ends_ns: &self.client_ends_ns,
        }])
    }

    /// Names of the checks that fail, each of which explains itself.
    pub(super) fn failing(&self) -> Vec<String> {
        failing(self.checks())
    }

    /// Explanation of a check that fails.
    pub(super) fn explanation(&self, name: &str) -> Explanation {
        let mut checks = self.checks().into_iter();
        let check = checks.find(|check| check.name == name).unwrap();
        check.explanation.unwrap()
    }

    pub(super) fn detail(&self, name: &str) -> String {
        self.checks()
            .into_iter()
            .find(|check| check.name == name)
            .unwrap()
            .detail
    }
}

/// Names of the checks that fail, after asserting that each explains itself in short clauses.
pub(crate) fn failing(checks: Vec<Check>) -> Vec<String> {
    let failed = checks.into_iter().filter(|check| !check.passed);
    let name = |check: Check| {
        let Some(Explanation {
            difference,
            cause,
            advice,
        }) = check.explanation
        else {
            panic!("{} does not explain itself", check.name);
        };
        for clause in [&difference, &cause, &advice] {
            let is_clause = !clause.is_empty() && !clause.ends_with('.') && !clause.contains('\n');
            assert!(is_clause, "{}: {clause:?}", check.name);
        }
        assert!(difference.len() <= 220, "{}: {difference}", check.name);
        check.name
    };
    failed.map(name).collect()
}

pub(crate) fn encrypting() -> Adapter {
    Adapter::Cipherbench(Encryptor::new(Suite::Aes256Gcm))
}

/// One of other people's tunnels for each form, all with an AEAD.
pub(crate) fn tunnels() -> [Adapter; 3] {
    [
        Adapter::StrongSwan(StrongSwan {
            data_path: DataPath::Libipsec,
            suite: Suite::Aes256Gcm,
            auth: IkeAuth::Psk,
            ppk: false,
            ml_kem: false,
            tunnels: 1,
        }),
        Adapter::WireGuard(WireGuard {
            program: WireGuardProgram::Go,
        }),
        Adapter::OpenVpn(OpenVpn {
            suite: Suite::Aes256Gcm,
        }),
    ]
}

/// The facts that an encryptor of one lane and one tunnel reports on both gateways; another tunnel,
/// its suite.
pub(crate) fn reported_facts(adapter: &Adapter) -> BTreeMap<String, String> {
    let of_both = |key: &str, value: &str| {
        ["gw1", "gw2"].map(|gateway| (format!("{gateway}/{key}"), value.to_owned()))
    };
    let Some(encryptor) = adapter.encryptor() else {
        let suite = adapter.carrier().map(|carrier| carrier.suite.to_string());
        return suite
            .into_iter()
            .flat_map(|suite| of_both("suite", &suite))
            .collect();
    };
    let engine = if encryptor.is_null() {
        "null"
    } else {
        "ipsec-mb"
    };
    let suite = encryptor.suite.to_string();
    let facts = [
        ("suite", suite.as_str()),
        ("engine", engine),
        ("lanes", "1"),
        ("tunnels", "1"),
        ("mode", "l3"),
        ("aggregate", "off"),
        ("busy_poll", "off"),
    ];
    let facts = facts
        .into_iter()
        .chain(key_facts(encryptor.keys))
        .flat_map(|(key, value)| of_both(key, value));
    facts.collect()
}

fn by_ike(sources: &'static str) -> Vec<(&'static str, &'static str)> {
    vec![("keys", "ike"), ("sources", sources)]
}

/// The facts about its keys.
fn key_facts(keys: KeySource) -> Vec<(&'static str, &'static str)> {
    let (policy, sources) = match keys {
        KeySource::Static => return vec![("keys", "static")],
        KeySource::Pqc => ("pqc", "handshake"),
        KeySource::Ppk => ("pqc", "handshake+ppk:lab"),
        KeySource::Qkd => ("qkd", "qkd"),
        KeySource::Both => ("both", "handshake+qkd"),
        KeySource::Ike => return by_ike("x25519+mlkem768"),
        KeySource::IkeClassic => return by_ike("x25519"),
        KeySource::IkePpk => return by_ike("x25519+mlkem768+ppk"),
    };
    vec![
        ("keys", "handshake"),
        ("policy", policy),
        ("kx", "X25519MLKEM768"),
        ("sources", sources),
    ]
}
