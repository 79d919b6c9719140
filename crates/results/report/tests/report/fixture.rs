//! Made-up runs with plausible figures: what a report must be able to show. Noise comes from a
//! fixed seed.

use campaign::HostFacts;
use journal::record::*;
use journal::{Journal, Record};
use plan::{
    Adapter, Addresses, Cell, Coordinate, DataPath, Dut, Encryptor, IkeAuth, LabPlan, Measurement,
    Mode, OpenVpn, Plan, Stations, StrongSwan, Tool, TransferDirection, WireGuard,
    WireGuardProgram,
};
use std::path::Path;
use wire::Suite;

// Named, since an example takes this file by its path.
#[path = "fixture/compared.rs"]
mod compared;
#[path = "fixture/device.rs"]
mod device;
#[path = "fixture/disturbed.rs"]
mod disturbed;
#[path = "fixture/evidence.rs"]
mod evidence;
#[path = "fixture/frames.rs"]
mod frames;
#[path = "fixture/hostile.rs"]
mod hostile;
#[path = "fixture/http.rs"]
mod http;
#[path = "fixture/ike.rs"]
mod ike;
#[path = "fixture/maker.rs"]
mod maker;
#[path = "fixture/monitored.rs"]
mod monitored;
#[path = "fixture/random.rs"]
mod random;
#[path = "fixture/scaling.rs"]
mod scaling;
#[path = "fixture/soak.rs"]
mod soak;
pub(crate) use compared::{peers, suites, weather};
pub(crate) use hostile::{hostile, hostile_frames};
pub(crate) use maker::Maker;
pub(crate) use random::{dozen, random};
pub(crate) use scaling::scaling;

const SECOND_NS: u64 = 1_000_000_000;
const STARTED_NS: u64 = 1_795_174_200 * SECOND_NS;

/// The quick campaign, complete.
pub(crate) fn quick() -> Journal {
    Maker::new(plan("quick", quick_cells(), 3)).finish()
}

/// The quick campaign with limits of every outcome.
pub(crate) fn limits() -> Journal {
    let mut journal = quick();
    let limit = |limit: &str| plan::Expectation {
        limit: limit.to_owned(),
        stored: None,
    };
    journal.header.plan.expect.limits = [
        "tcp dut=cipherbench throughput >= 1 Mbit/s",
        "tcp dut=cipherbench throughput >= 1 Tbit/s",
        "tcp throughput >= 1 % of baseline",
        "round trip p50 <= 71 us",
        "http transactions >= 5000/s",
    ]
    .map(limit)
    .to_vec();
    journal
}

/// The quick campaign, whose devices were read at an interval.
pub(crate) fn monitored() -> Journal {
    let mut journal = quick();
    monitored::monitor(&mut journal);
    journal
}

/// The same of frame tests.
pub(crate) fn monitored_frames() -> Journal {
    let mut journal = frame_tests();
    monitored::monitor(&mut journal);
    journal
}

/// A campaign of the repository's, as its file says, on eight cores.
pub(crate) fn shipped(name: &str) -> Journal {
    let campaigns = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../campaigns");
    let host = HostFacts { cores: 8 };
    let campaign = campaign::load(&campaigns.join(format!("{name}.yaml")), &host).unwrap();
    let plan = campaign.plan(&campaign.usual_lab(), &host).unwrap();
    let mut maker = Maker::new(plan);
    maker.by_family = true;
    let mut journal = maker.finish();
    journal.header.environment.cpus = 8;
    journal
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

/// Frame tests by every procedure.
pub(crate) fn frame_tests() -> Journal {
    let mut journal = Maker::new(frames::plan()).finish();
    // Enough for each station and each gateway to have its own.
    journal.header.environment.cpus = 8;
    journal
}

/// Latency between two hosts: one way where their clocks agree well enough, round trips elsewhere
/// and where they were asked for.
pub(crate) fn round_trips() -> Journal {
    let mut journal = Maker::new(frames::round_trip_plan()).finish();
    frames::reflect(&mut journal);
    journal
}

/// A service test of several devices.
pub(crate) fn services() -> Journal {
    Maker::new(frames::service_plan()).finish()
}

/// Maximum receive rates.
pub(crate) fn maximum_receive_rates() -> Journal {
    Maker::new(frames::mrr_plan()).finish()
}

/// What can happen to devices under a load.
pub(crate) fn disturbed() -> Journal {
    Maker::new(disturbed::plan()).finish()
}

/// Soaks, and keys put out of step.
pub(crate) fn soak() -> Journal {
    Maker::new(soak::plan()).finish()
}

/// Web traffic.
pub(crate) fn http() -> Journal {
    Maker::new(plan("http", http::cells(), 3)).finish()
}

/// A crypto card's acceptance.
pub(crate) fn cards() -> Journal {
    Maker::new(device::plan()).finish()
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

/// Ten thousand trials of tools and frames: 2000 cells, five times each. Runs of two seeds differ
/// in noise, and in when they began.
#[allow(
    dead_code,
    reason = "only the example uses it: it takes too long for a test"
)]
pub(crate) fn many(seed: u32) -> Journal {
    let numbers = |range: std::ops::Range<u32>, unit: &str| {
        let all: Vec<String> = range.map(|number| format!("{number}{unit}")).collect();
        all.join(", ")
    };
    let text = format!(
        "campaign: many\nrepeats: 5\nseed: {seed}\nduts: [direct, cipherbench]\ntrials:\n\
         \x20 - tcp: {{ mtu: [576 B, 1300 B, 1500 B, 9000 B], streams: [{}], cores: [1, 2, 4] }}\n\
         \x20 - udp: {{ mtu: 1500 B, datagram: [512 B, 1400 B], streams: [{}] }}\n\
         \x20 - ping: {{ mtu: [576 B, 1500 B, 9000 B], count: 500, interval: 10 ms, payload: [{}] }}\n\
         \x20 - throughput: {{ frame: [64 B, 128 B, 256 B, 512 B, 1024 B], flows: [{}] }}\n",
        numbers(4..68, ""),
        numbers(4..68, ""),
        numbers(56..66, " B"),
        numbers(1..16, ""),
    );
    let host = HostFacts { cores: 8 };
    let campaign = campaign::from_text("many.yaml", &text).unwrap();
    let plan = campaign.plan(&campaign.usual_lab(), &host).unwrap();
    let mut maker = Maker::new(plan);
    maker.noise = seed.into();
    let mut journal = maker.finish();
    journal.header.environment.cpus = 8;
    journal.header.started_unix_ns += u64::from(seed) * SECOND_NS;
    journal
}

/// Encryptors that protect nothing beside one that does, and what else an encryptor can be.
pub(crate) fn insecure() -> Journal {
    let suite = |name| Suite::from_name(name).unwrap();
    let encryptors = [
        ("3des", Encryptor::new(suite("3des-cbc-hmac-sha1"))),
        ("open", Encryptor::new(suite("null-hmac-sha256"))),
        (
            "many",
            Encryptor {
                tunnels: 100,
                aggregate: true,
                busy_poll: true,
                ..Encryptor::new(suite("aes-256-cbc-hmac-sha256"))
            },
        ),
        (
            "plain",
            Encryptor {
                engine: "null".parse().unwrap(),
                ..Encryptor::new(Suite::Aes256Gcm)
            },
        ),
        (
            "wire",
            Encryptor {
                mode: Mode::L2tpv3Clear,
                ..Encryptor::new(Suite::Aes256Gcm)
            },
        ),
    ];
    let mut cells = Vec::new();
    for (kind, measurement) in [("tcp", tcp()), ("ping", ping())] {
        cells.push(cell(
            kind,
            "direct",
            Adapter::Direct,
            measurement.clone(),
            1500,
            1,
            true,
        ));
        for (name, encryptor) in &encryptors {
            let adapter = Adapter::Cipherbench(encryptor.clone());
            cells.push(cell(
                kind,
                name,
                adapter,
                measurement.clone(),
                1500,
                1,
                true,
            ));
        }
    }
    Maker::new(plan("insecure", cells, 3)).finish()
}

/// The path without an encryptor, and other people's tunnels of these forms.
pub(crate) fn tunnels(names: &[&str]) -> Journal {
    let suite = Suite::Aes256Gcm;
    let adapter = |name: &str| match name {
        "direct" => Adapter::Direct,
        "wireguard-go" => Adapter::WireGuard(WireGuard {
            program: WireGuardProgram::Go,
        }),
        "boringtun" => Adapter::WireGuard(WireGuard {
            program: WireGuardProgram::Boringtun,
        }),
        "openvpn" => Adapter::OpenVpn(OpenVpn { suite }),
        _ => Adapter::StrongSwan(StrongSwan {
            data_path: DataPath::Libipsec,
            suite,
            auth: IkeAuth::Certificates,
            ppk: true,
            ml_kem: false,
            tunnels: 1,
        }),
    };
    let cells = names.iter().map(|name| {
        let measurement = tcp();
        cell("tcp", name, adapter(name), measurement, 1500, 1, true)
    });
    Maker::new(plan("tunnels", cells.collect(), 3)).finish()
}

fn devices() -> [(&'static str, Adapter); 2] {
    let suite = Suite::Aes256Gcm;
    let ours = Adapter::Cipherbench(Encryptor::new(suite));
    [("direct", Adapter::Direct), ("cipherbench", ours)]
}

fn second_device() -> (&'static str, Adapter) {
    let suite = Suite::ChaCha20Poly1305;
    (
        "cipherbench-chacha",
        Adapter::Cipherbench(Encryptor {
            workers: 2,
            engine: "aws-lc".parse().unwrap(),
            ..Encryptor::new(suite)
        }),
    )
}

fn tcp() -> Measurement {
    Measurement::Tcp {
        tool: Tool::default(),
        direction: TransferDirection::AToB,
        congestion: None,
        streams: 4,
        window_bytes: None,
        duration_ns: 2 * SECOND_NS,
        warmup_ns: SECOND_NS / 2,
    }
}

fn ping() -> Measurement {
    Measurement::Ping {
        count: 500,
        interval_ns: 2_000_000,
        payload_bytes: 56,
        loaded: false,
        route: false,
        load_dscp: Vec::new(),
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
            tool: Tool::default(),
            direction: TransferDirection::AToB,
            datagram_bytes: Some(bytes),
            rate_bps: None,
            streams: 1,
            duration_ns: 2 * SECOND_NS,
            warmup_ns: 0,
        };
        add(&format!("udp/{bytes}"), &measurement, 1500, 1);
    }
    add("ping", &ping(), 1500, 1);
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
        coordinates: Coordinate::all_in(&group),
        group,
        dut: Dut::new(name, adapter),
        stations: Some(Stations {
            mtu,
            cores,
            offloads,
            overlay: plan::Overlay::None,
            dscp: None,
        }),
        measurement,
        impair: None,
        tune: false,
        estimate_ns: 3 * SECOND_NS,
        calibration: false,
    }
}

fn plan(name: &str, cells: Vec<Cell>, repeats: u32) -> Plan {
    Plan {
        name: name.into(),
        title: "Quick campaign: our encryptor against the path without it".into(),
        lab: LabPlan {
            addresses: Addresses {
                station_a: [10, 77, 1, 0].into(),
                cipher: [10, 77, 0, 0].into(),
                station_b: [10, 77, 2, 0].into(),
            },
            ..LabPlan::named("quick")
        },
        repeats,
        cells,
        order: plan::Order::File,
        claims: Vec::new(),
        published: Vec::new(),
        capture: None,
        expect: plan::Expectations::default(),
        reports: Vec::new(),
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
        topology: Vec::new(),
        cpu_features: ["aes", "vaes", "vpclmulqdq", "avx512f", "gfni"]
            .map(str::to_owned)
            .to_vec(),
        governor: String::new(),
        memory_bytes: 24_696_061_952,
        kernel: "Linux 6.18.44 #1 SMP PREEMPT_DYNAMIC".into(),
        os: "Debian GNU/Linux 12 (bookworm)".into(),
        hypervisor: "KVM".into(),
        privilege: "root".into(),
        hardware_counters: String::new(),
        energy_counters: String::new(),
        clock_discipline: String::new(),
        hosts: std::collections::BTreeMap::new(),
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

/// Set-ups of IKEv2 at a given rate and at the highest one.
pub(crate) fn ike() -> Journal {
    const TEXT: &str = "\
campaign: ike
repeats: 3
duts: [strongswan: { data_path: libipsec }]
calibrate: off
trials:
  - ike: { mtu: 1400 B, setups_per_s: [20, max], up_to: 400 }
";
    let campaign = campaign::from_text("ike.yaml", TEXT).unwrap();
    let lab = campaign::lab_from_text("l.yaml", "lab: l\n").unwrap();
    let plan = campaign.plan(&lab, &HostFacts { cores: 8 }).unwrap();
    Maker::new(plan).finish()
}
