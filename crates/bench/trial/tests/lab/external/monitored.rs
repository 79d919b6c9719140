//! Boxes that are monitored by commands, by SNMP and by pages of Prometheus while they are
//! measured.

use super::agent::{Agent, Pages, Reply, TENTHS, WATTS};
use super::rack::{Does, MANAGED, Rack, adapter};
use super::{lab_of, ping_cell, sealing};
use crate::frames::{frames, load, short};
use crate::trials::{TestLab, cell, tcp};
use journal::record::{Measured, MonitoredDevice, Outcome, Series};
use plan::{
    Direction, External, Monitor, Observed, Reading, ReadingKind, Secret, SnmpAgent,
    SnmpAuthentication, SnmpLogin, SnmpPrivacy, Source,
};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// `snmpInPkts.0`, a counter of 32 bits (RFC 3418).
const IN_PACKETS: &str = "1.3.6.1.2.1.11.1.0";
const INTERVAL_NS: u64 = 100_000_000;
/// Far less than a command that hangs may take, and more than trials on a busy machine.
const LONG: Duration = Duration::from_secs(300);
const ONE: u64 = 1_000_000;

/// A rack whose first box is managed, and its agent.
fn managed() -> Option<(Rack, Agent)> {
    let rack = Rack::build(true);
    rack.manage();
    match Agent::start(&rack) {
        Some(agent) => Some((rack, agent)),
        None => {
            testing::lacks("boxes that are monitored", "snmpd", "apt install snmpd");
            None
        }
    }
}

fn secret(rack: &Rack, name: &str) -> Secret {
    Secret::File(rack.path(name).display().to_string())
}

fn agent(login: SnmpLogin) -> SnmpAgent {
    SnmpAgent {
        address: format!("{MANAGED}:161"),
        login,
    }
}

fn v2c(rack: &Rack, community: &str) -> SnmpAgent {
    agent(SnmpLogin::V2c {
        community: secret(rack, community),
    })
}

fn v3(rack: &Rack, user: &str, password: &str, privacy: Option<&str>) -> SnmpAgent {
    agent(SnmpLogin::V3 {
        user: user.to_owned(),
        authentication: match privacy {
            Some(_) => SnmpAuthentication::Sha256,
            None => SnmpAuthentication::Sha1,
        },
        password: secret(rack, password),
        privacy: privacy.map(|name| (SnmpPrivacy::Aes128, secret(rack, name))),
    })
}

fn snmp(agent: SnmpAgent, oid: &str) -> Source {
    Source::Snmp {
        agent,
        oid: oid.to_owned(),
    }
}

fn page(url: &str, metric: &str) -> Source {
    Source::Prometheus {
        url: url.to_owned(),
        metric: metric.to_owned(),
        labels: BTreeMap::new(),
        label: None,
    }
}

fn reading(name: &str, kind: ReadingKind, scale_ppm: u64, source: Source) -> Reading {
    Reading {
        name: name.to_owned(),
        kind,
        unit: "u".to_owned(),
        scale_ppm,
        source,
    }
}

/// The device, whose first box has these readings.
fn with(mut device: External, readings: Vec<Reading>) -> External {
    device.boxes[0].observed.monitor = Some(Monitor {
        interval_ns: INTERVAL_NS,
        readings,
    });
    device
}

fn box_of(measured: &Measured) -> &MonitoredDevice {
    let devices = measured.monitored.devices.iter();
    let found = devices.filter(|device| !device.is_machine);
    let [only] = found.collect::<Vec<_>>()[..] else {
        panic!("{:#?}", measured.monitored);
    };
    only
}

fn series<'m>(measured: &'m Measured, name: &str) -> &'m Series {
    let mut all = box_of(measured).series.iter();
    all.find(|series| series.name == name).unwrap()
}

pub(super) fn monitored() {
    let Some((rack, _agent)) = managed() else {
        return;
    };
    let mut lab = TestLab::on(&lab_of(&rack));
    let measured = lab.measured(&cell(adapter(all_ways(&rack)), 1, true, tcp(1)));
    assert_all_ways(&measured);
    let window = measured.monitored.windows[0];
    assert_eq!((window.load, measured.monitored.windows.len()), (None, 1));
    assert_eq!(window.end_ns - window.start_ns, 800_000_000);

    // Each load of a frame test has its readings.
    let device = with(sealing(&rack), vec![constant("echo 12.5 %")]);
    let measured = lab.measured(&frames(adapter(device), short(Direction::Both), load(200)));
    let found = series(&measured, "cpu");
    let expected = measured.frames().unwrap().trials.iter();
    let expected: Vec<_> = expected.map(|trial| Some(trial.load)).collect();
    let windows = measured.monitored.windows.iter();
    let windows: Vec<_> = windows.map(|window| window.load).collect();
    for load in &windows {
        assert!(expected.contains(load), "{windows:?} {expected:?}");
    }
    assert!(found.loads.iter().all(|load| windows.contains(&load.load)));
    assert!(!found.loads.is_empty(), "{found:#?}");

    fails_meanwhile(&rack, &mut lab);
    drop(lab);
    assert!(rack.has_all_back());
}

fn constant(command: &str) -> Reading {
    let command = Source::Command(command.to_owned());
    reading("cpu", ReadingKind::Cpu, ONE, command)
}

/// Every kind of a source.
fn all_ways(rack: &Rack) -> External {
    let encrypted = v3(rack, "bench", "password", Some("privacy"));
    let plainer = v3(rack, "plainer", "password", None);
    let metrics = format!("http://{MANAGED}:9464/metrics");
    let community = v2c(rack, "community");
    let mut device = with(
        sealing(rack),
        vec![
            constant("echo at 12.5 % of {mtu}"),
            reading(
                "temperature",
                ReadingKind::Temperature,
                100_000,
                snmp(encrypted.clone(), TENTHS),
            ),
            reading("power", ReadingKind::Power, ONE, snmp(plainer, WATTS)),
            reading(
                "lanes",
                ReadingKind::Gauge,
                ONE,
                page(&metrics, "cipherbench_info"),
            ),
            reading(
                "requests",
                ReadingKind::Counter,
                ONE,
                snmp(community.clone(), IN_PACKETS),
            ),
        ],
    );
    for command in &mut device.boxes[0].up {
        // The encryptor in the box serves its metrics on the management port.
        *command = command.replace("local: ", &format!("metrics: {MANAGED}:9464\\nlocal: "));
    }
    device.boxes[0].version = None;
    device.boxes[0].observed = Observed {
        version: Some(snmp(encrypted, "1.3.6.1.2.1.1.1.0")),
        counters: [
            ("requests".to_owned(), snmp(community, IN_PACKETS)),
            (
                "sealed".to_owned(),
                page(&metrics, "cipherbench_cipher_tx_packets_total"),
            ),
        ]
        .into(),
        monitor: device.boxes[0].observed.monitor.take(),
    };
    device
}

fn assert_all_ways(measured: &Measured) {
    let evidence = &measured.evidence;
    assert!(evidence.dut_facts["gw1/version"].starts_with("Linux"));
    assert!(evidence.dut_counters["gw1/requests"] > 0, "{evidence:#?}");
    assert!(evidence.dut_counters["gw1/sealed"] > 0);
    let device = box_of(measured);
    assert_eq!((&*device.name, device.interval_ns), ("gw1", INTERVAL_NS));
    assert!(device.cpu_ns > 0);
    for (name, milli) in [
        ("cpu", 12_500),
        ("temperature", 41_500),
        ("power", 37_500),
        ("lanes", 1000),
    ] {
        let series = series(measured, name);
        assert!(series.points.len() > 1, "{series:#?}");
        let [load] = series.loads[..] else {
            panic!("{series:#?}");
        };
        assert_eq!((load.mean_milli, load.max_milli), (milli, milli), "{name}");
        assert_eq!((load.load, load.readings > 0), (None, true));
    }
    // The agent counts our own requests: one to each of three logins in a round.
    let requests = series(measured, "requests");
    assert_eq!(requests.unit, "u/s");
    let per_s = requests.loads[0].mean_milli as f64 / 1000.0;
    assert!(per_s > 1.0 && per_s < 200.0, "{requests:#?}");
}

/// Readings that fail while traffic flows are gaps; those that hang delay nothing.
fn fails_meanwhile(rack: &Rack, lab: &mut TestLab) {
    let pages = Pages::serve(|number| match number {
        0..3 => Reply::Text("node_load1 0.5\n"),
        _ => Reply::Text("<html>busy</html>"),
    });
    let once = rack.path("once").display().to_string();
    // It answers once, before traffic, as every value must, and hangs from then on.
    let hangs = format!("test -e {once} && exec sleep 1000; touch {once}; echo 5");
    let device = with(
        sealing(rack),
        vec![reading(
            "flaky",
            ReadingKind::Gauge,
            ONE,
            page(&pages.url, "node_load1"),
        )],
    );
    let mut slow = with(sealing(rack), vec![constant(&hangs)]);
    slow.limit_ns = 600_000_000_000;
    let measured = lab.measured(&cell(adapter(device), 1, true, tcp(1)));
    let flaky = series(&measured, "flaky");
    // Of the three good answers the first one is the reading before the trial.
    assert_eq!(flaky.points.len(), 2, "{flaky:#?}");
    assert!(flaky.missed > 0 && flaky.gaps[0].reason.contains("has no metric `node_load1`"));
    assert!(pages.served.load(Ordering::Relaxed) > 3);

    // A repeated trial must find an answer before traffic again.
    slow.boxes[0].up.push(format!("rm -f {once}"));
    let begun = Instant::now();
    let measured = lab.measured(&cell(adapter(slow), 1, true, tcp(1)));
    assert!(begun.elapsed() < LONG, "the command was waited for");
    let hung = series(&measured, "cpu");
    assert!(hung.points.is_empty() && hung.loads.is_empty(), "{hung:#?}");
}

/// One mistake at a time; each is found before any traffic, and its error says what to do.
pub(super) fn unreadable() {
    let Some((rack, _agent)) = managed() else {
        return;
    };
    let mut lab = TestLab::on(&lab_of(&rack));
    let power = |source| reading("power", ReadingKind::Power, ONE, source);
    let of = |agent| power(snmp(agent, WATTS));
    let open = rack.path("open");
    fs::write(&open, "measure\n").unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o644)).unwrap();
    let garbage = Pages::serve(|_| Reply::Text("\u{0}\u{1}power{ 5\n"));
    let endless = Pages::serve(|_| Reply::Endless);
    let silent = Pages::serve(|_| Reply::Silence);
    // Bound but never read: requests get no answer, and no ICMP error either.
    let nobody = std::net::UdpSocket::bind((super::rack::TESTER, 0)).unwrap();
    let deaf = SnmpAgent {
        address: nobody.local_addr().unwrap().to_string(),
        ..v2c(&rack, "community")
    };
    let encrypted = |password, privacy| v3(&rack, "bench", password, Some(privacy));
    let cases = [
        (of(v2c(&rack, "wrong")), "does not answer\nhelp: "),
        (of(deaf), "does not answer\nhelp: "),
        (
            of(encrypted("wrong", "privacy")),
            "does not accept this login\nhelp: ",
        ),
        (
            of(v3(&rack, "nobody", "password", None)),
            "knows no such user\nhelp: ",
        ),
        (
            of(encrypted("password", "wrong")),
            "does not accept this login\nhelp: ",
        ),
        (
            of(encrypted("short", "privacy")),
            "the login of `bench` cannot be used",
        ),
        (of(v2c(&rack, "none")), "none cannot be read: No such file"),
        (of(v2c(&rack, "open")), "has mode 0644"),
        (
            power(snmp(v2c(&rack, "community"), "1.3.6.1.4.1.8072.2.999.7.0")),
            "has no object at",
        ),
        (
            power(snmp(v2c(&rack, "community"), "1.3.6.1.2.1.1.2.0")),
            "has no number",
        ),
        (power(page(&garbage.url, "power")), "has no metric `power`"),
        (power(page(&endless.url, "power")), "cannot get http://"),
        (power(page(&silent.url, "power")), "did not end within 3 s"),
        (
            power(page(&format!("http://{MANAGED}:1/"), "power")),
            "refused",
        ),
        (
            power(Source::Command("echo none".to_owned())),
            "no number in `none`",
        ),
        (power(Source::Command("exit 3".to_owned())), "exit status 3"),
    ];
    let count = cases.len();
    for (reading, words) in cases {
        let device = with(rack.device(Does::Seal), vec![reading]);
        let record = lab.record(&ping_cell(device));
        let Outcome::Failed { reason } = &record.outcome else {
            panic!("{words}: {:#?}", record.outcome);
        };
        assert!(
            reason.contains(words) && reason.contains("on gw1"),
            "{words}: {reason}"
        );
        assert!(
            !reason.contains("password-of") && !reason.contains("privacy-of"),
            "{reason}"
        );
    }
    // A counter that cannot be read, and a version.
    let mut device = sealing(&rack);
    let counters = &mut device.boxes[0].observed.counters;
    counters.insert("lost".to_owned(), page(&garbage.url, "lost_total"));
    let record = lab.record(&ping_cell(device));
    let said = format!("{:?}", record.outcome);
    assert!(said.contains("shows no counter `lost` on gw1"), "{said}");
    let mut device = sealing(&rack);
    device.boxes[0].observed.version = Some(snmp(v2c(&rack, "wrong"), WATTS));
    let said = format!("{:?}", lab.record(&ping_cell(device)).outcome);
    assert!(
        said.contains("cannot be read on gw1") && said.contains("does not answer"),
        "{said}"
    );
    // Each device that came up was taken down again, although its readings failed.
    assert_eq!(rack.times_down(), [count + 2, count + 2]);
    drop(lab);
    assert!(rack.has_all_back());
}
