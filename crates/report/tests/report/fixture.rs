//! Made-up runs with plausible figures: what a report must be able to show. Noise comes from a
//! fixed seed.

use campaign::plan::{Adapter, Addresses, Cell, Dut, LabKind, LabPlan, Measurement, Plan};
use journal::record::*;
use journal::{Journal, Record};
use wire::Suite;

const SECOND_NS: u64 = 1_000_000_000;
const STARTED_NS: u64 = 1_795_174_200 * SECOND_NS;

/// The quick campaign, complete.
pub(crate) fn quick() -> Journal {
    Maker::new(plan("quick", quick_cells(), 3)).finish()
}

/// The quick campaign with an invalid cell, a failed one, a partly measured one and a failed check.
pub(crate) fn troubled() -> Journal {
    let mut maker = Maker::new(plan("quick", quick_cells(), 3));
    maker.trouble = true;
    let mut journal = maker.finish();
    journal.warnings.push(journal::Warning::UnfinishedLine {
        line: 44,
        bytes: 812,
    });
    journal.header.environment.governor = "powersave".into();
    journal
}

/// The quick campaign, killed in the first round.
pub(crate) fn in_progress() -> Journal {
    let mut journal = quick();
    journal.trials.truncate(5);
    journal.end = None;
    journal
}

/// The quick campaign without its baseline (`direct`), or with nothing else.
pub(crate) fn only(baseline: bool) -> Journal {
    let mut journal = quick();
    let keep = |id: &str| id.ends_with("/direct") == baseline;
    journal.header.plan.cells.retain(|cell| keep(&cell.id));
    journal.trials.retain(|trial| keep(&trial.cell));
    journal
}

/// A run that has only just begun.
pub(crate) fn empty() -> Journal {
    let mut journal = quick();
    journal.trials.clear();
    journal.end = None;
    journal
}

/// Several devices, MTUs and core counts, offloads on and off, five repeats: the size of a real
/// campaign.
pub(crate) fn large() -> Journal {
    let mut cells = Vec::new();
    for offloads in [true, false] {
        for mtu in [576, 1300, 1500, 9000] {
            for cores in [1, 2, 4] {
                for (name, adapter) in devices().into_iter().chain([second_device()]) {
                    let cell = cell("tcp", name, adapter, tcp(), mtu, cores, offloads);
                    cells.push(cell);
                }
            }
        }
    }
    let mut plan = plan("matrix", cells, 5);
    plan.title.clear();
    let mut journal = Maker::new(plan).finish();
    journal.header.environment.cpus = 20;
    journal
}

/// A run whose every text is an attempt to be more than text.
pub(crate) fn hostile() -> Journal {
    const EVIL: &str = "<script>alert(1)</script>\"'&|`*_\\\n\x1b[31m";
    let mut journal = troubled();
    let header = &mut journal.header;
    header.command.push(EVIL.into());
    header.plan.title = EVIL.into();
    header.environment.cpu_model = EVIL.into();
    header.environment.tools.insert(EVIL.into(), EVIL.into());
    for cell in &mut header.plan.cells {
        if !matches!(cell.dut.adapter, Adapter::Direct) {
            cell.dut.name = EVIL.into();
        }
        cell.id.push_str(EVIL);
        cell.group.push_str(EVIL);
    }
    for trial in &mut journal.trials {
        trial.cell.push_str(EVIL);
        trial.commands.push(vec![EVIL.into()]);
        match &mut trial.outcome {
            Outcome::Measured(measured) => spoil(&mut measured.evidence, EVIL),
            Outcome::Invalid { reasons, measured } => {
                reasons.push(EVIL.into());
                spoil(&mut measured.evidence, EVIL);
            }
            Outcome::Failed { reason } => reason.push_str(EVIL),
        }
    }
    journal
}

fn spoil(evidence: &mut Evidence, evil: &str) {
    evidence.checks.push(Check {
        name: evil.into(),
        passed: true,
        detail: evil.into(),
    });
    evidence.cipher_link.spis.push(evil.into());
    evidence
        .interfaces
        .insert(evil.into(), InterfaceCounters::default());
    evidence
        .offloads
        .insert(evil.into(), [(evil.into(), evil.into())].into());
    evidence.dut_counters.insert(evil.into(), 1);
    evidence.dut_facts.insert(evil.into(), evil.into());
}

fn devices() -> [(&'static str, Adapter); 2] {
    let suite = Suite::Aes256Gcm;
    let ours = Adapter::Cipherbench {
        suite,
        workers: 1,
        engine: "auto".into(),
    };
    [("direct", Adapter::Direct), ("cipherbench", ours)]
}

fn second_device() -> (&'static str, Adapter) {
    let suite = Suite::ChaCha20Poly1305;
    (
        "cipherbench-chacha",
        Adapter::Cipherbench {
            suite,
            workers: 2,
            engine: "aws-lc".into(),
        },
    )
}

fn tcp() -> Measurement {
    Measurement::Tcp {
        streams: 4,
        window_bytes: None,
        duration_ns: 2 * SECOND_NS,
        warmup_ns: SECOND_NS / 2,
    }
}

fn quick_cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut add = |kind: &str, measurement: &Measurement, mtu, cores| {
        for (name, adapter) in devices() {
            cells.push(cell(
                kind,
                name,
                adapter,
                measurement.clone(),
                mtu,
                cores,
                true,
            ));
        }
    };
    for mtu in [1500, 9000] {
        for cores in [1, 2] {
            add("tcp", &tcp(), mtu, cores);
        }
    }
    for bytes in [512, 1400] {
        let measurement = Measurement::Udp {
            datagram_bytes: Some(bytes),
            rate_bps: None,
            streams: 1,
            duration_ns: 2 * SECOND_NS,
            warmup_ns: 0,
        };
        add(&format!("udp/{bytes}"), &measurement, 1500, 1);
    }
    let ping = Measurement::Ping {
        count: 500,
        interval_ns: 2_000_000,
        payload_bytes: 56,
    };
    add("ping", &ping, 1500, 1);
    cells
}

fn cell(
    kind: &str,
    name: &str,
    adapter: Adapter,
    measurement: Measurement,
    mtu: u16,
    cores: u16,
    offloads: bool,
) -> Cell {
    let state = if offloads { "on" } else { "off" };
    let group = format!("{kind}/mtu={mtu}/cores={cores}/offloads={state}");
    Cell {
        id: format!("{group}/{name}"),
        group,
        dut: Dut {
            name: name.into(),
            adapter,
        },
        mtu,
        cores_per_station: cores,
        offloads,
        measurement,
        tune: false,
        estimate_ns: 3 * SECOND_NS,
    }
}

fn plan(name: &str, cells: Vec<Cell>, repeats: u32) -> Plan {
    Plan {
        name: name.into(),
        title: "Quick campaign: our encryptor against the path without it".into(),
        lab: LabPlan {
            name: "quick".into(),
            kind: LabKind::Namespaces,
            cipher_mtu: None,
            addresses: Addresses {
                station_a: [10, 77, 1, 0].into(),
                cipher: [10, 77, 0, 0].into(),
                station_b: [10, 77, 2, 0].into(),
            },
        },
        repeats,
        cells,
    }
}

fn environment() -> Environment {
    let map = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    };
    Environment {
        cpu_model: "Intel(R) Xeon(R) Platinum 8481C @ 2.70GHz".into(),
        cpus: 2,
        cpu_features: ["aes", "vaes", "vpclmulqdq", "avx512f", "gfni"]
            .map(str::to_owned)
            .to_vec(),
        governor: String::new(),
        memory_bytes: 24_696_061_952,
        kernel: "Linux 6.18.44 #1 SMP PREEMPT_DYNAMIC".into(),
        os: "Debian GNU/Linux 12 (bookworm)".into(),
        hypervisor: "KVM".into(),
        privilege: "root".into(),
        sysctls: map(&[
            ("net.core.rmem_max", "212992"),
            ("net.core.wmem_max", "212992"),
            ("net.ipv4.tcp_congestion_control", "cubic"),
            ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
        ]),
        tools: map(&[
            ("iperf3", "3.12"),
            ("ping", "iputils 20221126"),
            ("ip", "iproute2-6.1.0"),
        ]),
        engines: map(&[("aws-lc", "1.19.0"), ("ipsec-mb", "1.3.0")]),
    }
}

/// Carries a plan out in the imagination.
struct Maker {
    journal: Journal,
    clock_ns: u64,
    noise: u64,
    trouble: bool,
}

impl Maker {
    fn new(plan: Plan) -> Self {
        let journal = Journal::new(Header {
            format: FORMAT_VERSION,
            started_unix_ns: STARTED_NS,
            command: ["cipherbench", "run", "--out", "runs"]
                .map(str::to_owned)
                .to_vec(),
            program: "0.1.0 (a1b2c3d4)".into(),
            environment: environment(),
            plan,
        });
        Self {
            journal,
            clock_ns: STARTED_NS + SECOND_NS,
            noise: 7,
            trouble: false,
        }
    }

    fn finish(mut self) -> Journal {
        let plan = self.journal.header.plan.clone();
        for trial in plan.trials() {
            let outcome = self.outcome(trial.cell, trial.repeat);
            self.record(trial.cell, trial.repeat, outcome);
        }
        self.journal.end = Some(End {
            at_unix_ns: self.clock_ns,
        });
        self.journal
    }

    fn record(&mut self, cell: &Cell, repeat: u32, outcome: Outcome) {
        let duration_ns = cell.estimate_ns + (self.random() * 1e8) as u64;
        let trial = TrialRecord {
            cell: cell.id.clone(),
            repeat,
            started_unix_ns: self.clock_ns,
            duration_ns,
            commands: commands(cell),
            outcome,
        };
        self.clock_ns += duration_ns;
        self.journal.accept(Record::Trial(Box::new(trial))).unwrap();
    }

    fn outcome(&mut self, cell: &Cell, repeat: u32) -> Outcome {
        let measured = Box::new(self.measured(cell));
        if !self.trouble || matches!(cell.dut.adapter, Adapter::Direct) {
            return Outcome::Measured(measured);
        }
        match (
            cell.measurement.name(),
            cell.mtu,
            cell.cores_per_station,
            repeat,
        ) {
            ("tcp", 1500, 2, 2) => self.clear_text(measured),
            ("tcp", 9000, 1, _) => Outcome::Failed {
                reason: "the device under test `cipherbench` died after 0.8 s with exit code 101: \
                         address already in use"
                    .into(),
            },
            ("tcp", 9000, 2, 3) => Outcome::Failed {
                reason: "iperf3 did not end within 12 s and \
                                                              was killed"
                    .into(),
            },
            ("ping", ..) => {
                let mut measured = measured;
                if let Some(latency) = &mut measured.latency {
                    latency.received -= 3;
                    latency.round_trips_ns.truncate(497);
                }
                Outcome::Measured(measured)
            }
            _ => Outcome::Measured(measured),
        }
    }

    fn clear_text(&self, mut measured: Box<Measured>) -> Outcome {
        let reason =
            "the stations' marker was seen in clear in 212 of 1000 frames between the gateways";
        let evidence = &mut measured.evidence;
        evidence.cipher_link.marker_frames = 212;
        evidence.cipher_link.esp_frames = 788;
        for check in evidence
            .checks
            .iter_mut()
            .filter(|check| check.name == "no-clear-text")
        {
            check.passed = false;
            check.detail = reason.into();
        }
        Outcome::Invalid {
            reasons: vec![reason.into()],
            measured,
        }
    }

    fn measured(&mut self, cell: &Cell) -> Measured {
        let bps = self.rate(cell);
        let (transfer, latency) = match &cell.measurement {
            Measurement::Ping { count, .. } => (None, Some(self.round_trips(cell, *count))),
            measurement => (Some(self.transfer(cell, measurement, bps)), None),
        };
        let received = transfer
            .as_ref()
            .map_or(98 * 500, |transfer| transfer.received_bytes);
        Measured {
            transfer,
            latency,
            cpu: self.cpu(cell),
            evidence: self.evidence(cell, received),
        }
    }

    /// Payload bit/s that the cell carries, near what such machines do.
    fn rate(&mut self, cell: &Cell) -> f64 {
        let (direct, ours) = match (&cell.measurement, cell.mtu, cell.cores_per_station) {
            (
                Measurement::Udp {
                    datagram_bytes: Some(512),
                    ..
                },
                ..,
            ) => (1.47e9, 1.10e9),
            (Measurement::Udp { .. }, ..) => (3.95e9, 2.71e9),
            (_, mtu, cores) => {
                let scale = (f64::from(mtu) / 1500.0).powf(0.16) * f64::from(cores).powf(0.72);
                (14.5e9 * scale, 7.11e9 * scale.powf(0.8))
            }
        };
        let base = match cell.dut.name.as_str() {
            "direct" => direct,
            "cipherbench" => ours,
            _ => 0.41 * ours,
        };
        let offloads = if cell.offloads { 1.0 } else { 0.38 };
        base * offloads * (1.0 + 0.05 * (self.random() - 0.5))
    }

    fn transfer(&mut self, cell: &Cell, measurement: &Measurement, bps: f64) -> Transfer {
        let steps = 20;
        let step_ns = 2 * SECOND_NS / steps;
        let intervals: Vec<Interval> = (0..steps)
            .map(|step| {
                let dip = if self.random() < 0.04 { 0.82 } else { 1.0 };
                let bytes = bps * dip * (0.97 + 0.06 * self.random()) / 8.0 * step_ns as f64 / 1e9;
                Interval {
                    start_ns: step * step_ns,
                    end_ns: (step + 1) * step_ns,
                    bytes: bytes as u64,
                }
            })
            .collect();
        let received_bytes = intervals.iter().map(|interval| interval.bytes).sum();
        let mut transfer = Transfer {
            parameters: ToolParameters {
                streams: Some(4),
                ..ToolParameters::default()
            },
            duration_ns: 2 * SECOND_NS,
            sent_bytes: received_bytes,
            received_bytes,
            retransmits: Some((self.random() * 90.0) as u64),
            datagrams: None,
            intervals,
        };
        if let Measurement::Udp {
            datagram_bytes: Some(bytes),
            ..
        } = measurement
        {
            let received = received_bytes / u64::from(*bytes);
            let share = if cell.dut.adapter.encrypts() {
                0.41 + 0.03 * self.random()
            } else {
                0.0
            };
            let sent = (received as f64 / (1.0 - share)) as u64;
            transfer.parameters = ToolParameters {
                streams: Some(1),
                datagram_bytes: Some(*bytes),
                ..ToolParameters::default()
            };
            transfer.sent_bytes = sent * u64::from(*bytes);
            transfer.received_bytes = received * u64::from(*bytes);
            transfer.retransmits = None;
            let jitter_ns = (3_000.0 + 4_000.0 * self.random()) as u64;
            transfer.datagrams = Some(Datagrams {
                sent,
                lost: sent - received,
                station_lost: 0,
                out_of_order: 0,
                jitter_ns,
            });
        }
        transfer
    }

    fn round_trips(&mut self, cell: &Cell, count: u32) -> Latency {
        let (base, tail) = if cell.dut.adapter.encrypts() {
            (66_000.0, 9_000.0)
        } else {
            (4_300.0, 900.0)
        };
        let round_trips_ns: Vec<u64> = (0..count)
            .map(|_| {
                let luck: f64 = 1.0 - self.random();
                (base + tail * luck.ln().powi(2) * 0.9 + 0.1 * base * self.random()) as u64
            })
            .collect();
        Latency {
            sent: count.into(),
            received: count.into(),
            round_trips_ns,
        }
    }

    fn cpu(&mut self, cell: &Cell) -> Cpu {
        let wall_ns = 2 * SECOND_NS;
        let share = |cores: f64| (cores * wall_ns as f64) as u64;
        let wobble = 0.04 * (self.random() - 0.5);
        let (a, b, dut, kernel) = match (cell.measurement.name(), cell.dut.adapter.encrypts()) {
            ("ping", false) => (0.02, 0.0, 0.0, 0.03),
            ("ping", true) => (0.02, 0.0, 0.06 + wobble, 0.05),
            (_, false) => (0.74 + wobble, 0.88, 0.0, 0.21),
            (_, true) => (0.30 + wobble, 0.36, 1.02, 0.22),
        };
        let busy = a + b + dut + kernel;
        Cpu {
            wall_ns,
            stations_ns: share(a + b),
            station_a_ns: share(a),
            station_b_ns: share(b),
            dut_ns: share(dut),
            kernel_ns: share(kernel),
            busy_ns: share(busy),
            steal_ns: 0,
            foreign_ns: 0,
        }
    }

    fn evidence(&self, cell: &Cell, received: u64) -> Evidence {
        let encrypts = cell.dut.adapter.encrypts();
        let frames = 1000;
        let overhead = if encrypts { 1.047 } else { 1.019 };
        let check = |name: &str, detail: String| Check {
            name: name.into(),
            passed: true,
            detail,
        };
        let bytes = (received as f64 * overhead) as u64;
        let mut checks = vec![
            check(
                "counters-agree",
                format!(
                    "gw1/w0 sent {bytes} B for {received} B of payload: overhead {:.1} %",
                    100.0 * (overhead - 1.0)
                ),
            ),
            check(
                "offloads-as-planned",
                "tso, gso and gro are as planned at all 6 ends".into(),
            ),
        ];
        if encrypts {
            checks.push(check(
                "esp-flows",
                format!("{frames} of {frames} frames between the gateways were ESP"),
            ));
            checks.push(check(
                "no-clear-text",
                format!("the marker was in none of {frames} frames"),
            ));
        } else {
            checks.push(check(
                "marker-seen",
                format!("the marker was in {frames} of {frames} frames: the watch works"),
            ));
        }
        let counters = InterfaceCounters {
            tx_bytes: bytes,
            tx_packets: bytes / 48_000 + 1,
            rx_bytes: bytes / 400,
            rx_packets: bytes / 90_000 + 1,
            ..InterfaceCounters::default()
        };
        let state = if cell.offloads { "on" } else { "off" };
        let features = ["gro", "gso", "tso"].map(|feature| (feature.to_owned(), state.to_owned()));
        let ends = ["a/a0", "b/b0", "gw1/a1", "gw1/w0", "gw2/b1", "gw2/w0"];
        Evidence {
            checks,
            cipher_link: CipherLink {
                frames,
                esp_frames: if encrypts { frames } else { 0 },
                marker_frames: if encrypts { 0 } else { frames },
                other_frames: 0,
                spis: if encrypts {
                    vec!["0x10000001".into(), "0x20000001".into()]
                } else {
                    vec![]
                },
            },
            watch: None,
            interfaces: [
                ("gw1/w0", counters),
                (
                    "gw2/w0",
                    InterfaceCounters {
                        rx_bytes: bytes,
                        ..counters
                    },
                ),
            ]
            .map(|(name, counters)| (name.to_owned(), counters))
            .into(),
            offloads: ends
                .map(|end| (end.to_owned(), features.clone().into()))
                .into(),
            dut_counters: if encrypts {
                [
                    ("gw1/sealed_packets", bytes / 1438),
                    ("gw2/opened_packets", bytes / 1438),
                    ("gw2/drop_replayed", 0),
                ]
                .map(|(name, count)| (name.to_owned(), count))
                .into()
            } else {
                [].into()
            },
            dut_facts: if encrypts {
                [
                    ("gw1/engine", "ipsec-mb 1.3.0"),
                    ("gw1/suite", "aes-256-gcm"),
                    ("gw2/engine", "ipsec-mb 1.3.0"),
                ]
                .map(|(name, fact)| (name.to_owned(), fact.to_owned()))
                .into()
            } else {
                [].into()
            },
        }
    }

    /// From 0 to 1, the same each time.
    fn random(&mut self) -> f64 {
        self.noise = self
            .noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.noise >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn commands(cell: &Cell) -> Vec<Vec<String>> {
    let words = |line: String| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let pinned = match cell.cores_per_station {
        1 => "taskset -c 0",
        _ => "taskset -c 0,1",
    };
    match &cell.measurement {
        Measurement::Ping {
            count,
            payload_bytes,
            ..
        } => {
            vec![words(format!(
                "ping -n -i 0.002 -c {count} -s {payload_bytes} 10.77.2.2"
            ))]
        }
        Measurement::Udp { datagram_bytes, .. } => vec![
            words(format!("{pinned} iperf3 -s -1 -J -p 5201")),
            words(format!(
                "{pinned} iperf3 -c 10.77.2.2 -u -b 0 -l {} -t 2 -J -p 5201",
                datagram_bytes.unwrap_or(1472)
            )),
        ],
        _ => vec![
            words(format!("{pinned} iperf3 -s -1 -J -p 5201")),
            words(format!(
                "{pinned} iperf3 -c 10.77.2.2 -P 4 -t 2 -O 0.5 -J -p 5201"
            )),
        ],
    }
}
