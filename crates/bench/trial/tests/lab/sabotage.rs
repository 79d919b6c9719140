//! Trials whose path another process changes while they run, or whose device does not do what it
//! claims: none may leave a plain number.

use crate::trials::{TestLab, cell, encrypting, plan};
use journal::record::{Evidence, Outcome};
use lab::NamespaceLab;
use plan::{
    Adapter, Cell, Direction, Dut, Encryptor, FrameTest, IpVersion, Load, Measurement, Ports,
    Procedure, Tool, Traffic, TransferDirection,
};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};
use testbed::{Bench, Interrupt, LabError, Links, Node, NodeId, RunningDut};
use trial::{Trial, links, measure};
use wire::Suite;
use wire::mix::{FrameMix, TestFrames};

pub(crate) const MS: u64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(30);
/// Traffic of the tool has begun when an interface sent more.
const BEGUN_BYTES: u64 = 2_000_000;
/// Port of the encryptor's sealed packets.
const SEALED_PORT: u16 = 4500;

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 7] = [
    (
        "offloads_that_are_switched_in_mid_trial",
        offloads_that_are_switched_in_mid_trial,
    ),
    (
        "an_mtu_that_is_changed_and_changed_back",
        an_mtu_that_is_changed_and_changed_back,
    ),
    (
        "a_route_that_is_changed_and_changed_back",
        a_route_that_is_changed_and_changed_back,
    ),
    (
        "a_route_that_is_changed_during_a_frame_trial",
        a_route_that_is_changed_during_a_frame_trial,
    ),
    (
        "one_packet_in_clear_in_the_form_of_esp",
        one_packet_in_clear_in_the_form_of_esp,
    ),
    (
        "noise_in_the_form_of_esp_with_a_valid_spi",
        noise_in_the_form_of_esp_with_a_valid_spi,
    ),
    (
        "a_device_that_seals_with_nothing",
        a_device_that_seals_with_nothing,
    ),
];

pub(crate) fn tcp() -> Measurement {
    Measurement::Tcp {
        tool: Tool::default(),
        direction: TransferDirection::AToB,
        congestion: None,
        streams: 1,
        window_bytes: None,
        duration_ns: 2000 * MS,
        warmup_ns: 0,
    }
}

/// Makes a trial while `sabotage` runs in gw1's network from 400 ms of traffic on. Returns the
/// objections.
pub(crate) fn sabotaged(
    adapter: Adapter,
    sabotage: impl FnOnce(u32) + Send + 'static,
) -> Vec<String> {
    sabotaged_in(&cell(adapter, 1, true, tcp()), sabotage)
}

/// As [`sabotaged`], in a trial of that cell.
pub(crate) fn sabotaged_in(
    cell: &Cell,
    sabotage: impl FnOnce(u32) + Send + 'static,
) -> Vec<String> {
    sabotaged_at(NodeId::Gw1, cell, sabotage)
}

/// As [`sabotaged_in`], in another node's network.
pub(crate) fn sabotaged_at(
    node: NodeId,
    cell: &Cell,
    sabotage: impl FnOnce(u32) + Send + 'static,
) -> Vec<String> {
    sabotaged_after(node, cell, BEGUN_BYTES, sabotage)
}

/// As [`sabotaged_at`], 400 ms after so many bytes left gw1 for the other gateway.
pub(crate) fn sabotaged_after(
    node: NodeId,
    cell: &Cell,
    begun_bytes: u64,
    sabotage: impl FnOnce(u32) + Send + 'static,
) -> Vec<String> {
    let mut lab = TestLab::build();
    let gateway = lab.lab.station_pid(NodeId::Gw1);
    let place = lab.lab.station_pid(node);
    let saboteur = std::thread::spawn(move || {
        // Before that, the trial is still being prepared, and a change would be part of the path.
        await_traffic(gateway, "w0", begun_bytes);
        std::thread::sleep(Duration::from_millis(400));
        sabotage(place);
    });
    let record = lab.record(cell);
    saboteur.join().unwrap();
    match record.outcome {
        Outcome::Invalid { reasons, .. } => reasons,
        other => panic!("{other:#?}"),
    }
}

/// Waits until an interface of a process's network has sent that much of the tool's data.
fn await_traffic(pid: u32, interface: &str, begun_bytes: u64) {
    let deadline = Instant::now() + PATIENCE;
    let sent = || -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/dev")).ok()?;
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        let (_, counters) = lines.find(|(name, _)| name.trim() == interface)?;
        // Bytes sent: the ninth column of `/proc/net/dev`.
        counters.split_ascii_whitespace().nth(8)?.parse().ok()
    };
    // Counters begin with the lab, not with the trial.
    let before = sent().unwrap_or(0);
    while sent().unwrap_or(0) < before + begun_bytes {
        assert!(Instant::now() < deadline, "no traffic on {interface}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a program in the network of a process; returns its output.
pub(crate) fn run_in(pid: u32, words: &str) -> String {
    let mut command = Command::new("nsenter");
    command.args(["-t", &pid.to_string(), "-n"]);
    let output = command.args(words.split(' ')).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn expect_change(reasons: &[String], what: &[&str]) {
    expect(reasons, "path-unchanged", what);
}

/// One of the reasons is of that check, and has all of these words.
pub(crate) fn expect(reasons: &[String], check: &str, what: &[&str]) {
    let found = reasons
        .iter()
        .find(|reason| reason.starts_with(&format!("{check}: ")));
    let reason = found.unwrap_or_else(|| panic!("{reasons:#?}"));
    for what in what {
        assert!(reason.contains(what), "{what}: {reason}");
    }
}

fn offloads_that_are_switched_in_mid_trial() {
    let reasons = sabotaged(Adapter::Direct, |gateway| {
        run_in(gateway, "ethtool -K w0 tso off gso off");
    });
    // As reported at once, and as read afterwards.
    let read = "at the end gw1 tcp-segmentation-offload of w0: off, was on";
    expect_change(&reasons, &["gw1 link w0: offloads", read]);
    // Switched back before the end, only the report shows it.
    let reasons = sabotaged(Adapter::Direct, |gateway| {
        run_in(gateway, "ethtool -K w0 tso off");
        run_in(gateway, "ethtool -K w0 tso on");
    });
    expect_change(&reasons, &["gw1 link w0: offloads"]);
}

fn an_mtu_that_is_changed_and_changed_back() {
    let reasons = sabotaged(Adapter::Direct, |gateway| {
        let link = run_in(gateway, "ip -o link show dev w0");
        let mtu = link.split_once(" mtu ").unwrap().1;
        let mtu = mtu.split(' ').next().unwrap();
        run_in(gateway, "ip link set dev w0 mtu 1000");
        std::thread::sleep(Duration::from_millis(100));
        run_in(gateway, &format!("ip link set dev w0 mtu {mtu}"));
    });
    expect_change(&reasons, &["gw1 link w0: mtu 1000, was ", ", was 1000"]);
}

fn change_route(gateway: u32) {
    let route = run_in(gateway, "ip route show 10.2.0.0/24");
    let route = route.trim();
    run_in(gateway, &format!("ip route replace {route} advmss 1000"));
    run_in(gateway, &format!("ip route replace {route}"));
}

fn a_route_that_is_changed_and_changed_back() {
    let reasons = sabotaged(Adapter::Direct, change_route);
    expect_change(&reasons, &["gw1 route 10.2.0.0/24: metrics changed"]);
}

/// Frames of 512 B for three seconds, from A to B.
pub(crate) fn frames_for_a_while(adapter: Adapter) -> Cell {
    let test = FrameTest {
        traffic: Traffic {
            frames: TestFrames {
                contents: wire::mix::Contents::Fixed,
                mix: FrameMix::fixed(512),
                flows: 8,
                tunnels: 1,
            },
            ip: IpVersion::V4,
            direction: Direction::Both,
            duplex: false,
            ports: Ports::default(),
        },
        procedure: Procedure::Load(Load {
            frames_per_s: Some(5000),
            duration_ns: 3000 * MS,
        }),
    };
    cell(adapter, 1, false, Measurement::Frames(test))
}

fn a_route_that_is_changed_during_a_frame_trial() {
    let reasons = sabotaged_in(&frames_for_a_while(Adapter::Direct), change_route);
    expect_change(&reasons, &["gw1 route 10.2.0.0/24: metrics changed"]);
}

/// Sends from this process's network a packet as an encryptor with NULL encryption would: ESP in
/// UDP, a TCP segment of a tool inside. Called by `main` in a process of its own.
pub(crate) fn send_null_esp() {
    // An SPI that no tunnel has, and a sequence number.
    let mut packet = vec![0xc0, 0xff, 0xee, 1, 0, 0, 0, 1];
    let mut inner = [0; 20 + 32];
    (inner[0], inner[9]) = (0x45, 6);
    packet.extend(inner);
    // The repeated digits of the tools' payload, which the marker is from.
    packet.extend((0..1000).map(|i: usize| b'0' + (i % 10) as u8));
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket
        .send_to(&packet, (Ipv4Addr::new(192, 0, 2, 2), SEALED_PORT))
        .unwrap();
}

pub(crate) fn expect_clear_text_inside(reasons: &[String]) {
    let found = reasons
        .iter()
        .find(|reason| reason.starts_with("no-foreign-frames: "));
    let reason = found.unwrap_or_else(|| panic!("{reasons:#?}"));
    assert!(reason.contains("with clear text inside"), "{reason}");
}

fn one_packet_in_clear_in_the_form_of_esp() {
    let this = std::env::current_exe().unwrap();
    let reasons = sabotaged(encrypting(), move |gateway| {
        run_in(gateway, &format!("{} null-esp", this.display()));
    });
    expect_clear_text_inside(&reasons);
    let reason = reasons
        .iter()
        .find(|one| one.starts_with("no-foreign"))
        .unwrap();
    // The one that was sent, among thousands of sealed ones.
    assert!(reason.contains(": 1 frames between"), "{reason}");
}

/// Sends from this process's network, for three seconds, packets in the form of ESP with the SPI of
/// the first tunnel's first epoch, and noise. Called by `main` in a process of its own.
pub(crate) fn send_noise() {
    // With an SPI of a tunnel, only opening shows that it is not the device's.
    let mut packet = keying::spi_of(1, 0).to_be_bytes().to_vec();
    packet.extend((4..1000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8));
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        for _ in 0..20 {
            // A full queue of the link is no objection.
            let _ = socket.send_to(&packet, (Ipv4Addr::new(192, 0, 2, 2), SEALED_PORT));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn noise_in_the_form_of_esp_with_a_valid_spi() {
    let this = std::env::current_exe().unwrap();
    let datagrams = Measurement::Udp {
        tool: Tool::default(),
        direction: TransferDirection::AToB,
        datagram_bytes: Some(1000),
        rate_bps: Some(40_000_000),
        streams: 1,
        duration_ns: 3000 * MS,
        warmup_ns: 0,
    };
    let cell = cell(encrypting(), 1, false, datagrams);
    let reasons = sabotaged_in(&cell, move |gateway| {
        run_in(gateway, &format!("{} noise-esp", this.display()));
    });
    let found = reasons
        .iter()
        .find(|one| one.starts_with("samples-opened: "));
    let reason = found.unwrap_or_else(|| panic!("{reasons:#?}"));
    assert!(reason.contains(" integrity_failed"), "{reason}");
    // Its form is that of the device's packets.
    assert!(
        !reasons
            .iter()
            .any(|one| one.starts_with("no-foreign-frames")),
        "{reasons:#?}"
    );
}

/// A lab whose device claims to encrypt, and puts everything in the form of ESP in clear.
struct NullLab(NamespaceLab);

impl Bench for NullLab {
    fn node(&self, id: NodeId) -> &dyn Node {
        self.0.node(id)
    }

    fn target(&self) -> Ipv4Addr {
        self.0.target()
    }

    fn cipher_interfaces(&self) -> (&str, &str) {
        self.0.cipher_interfaces()
    }

    fn far_end(&self, gateway: NodeId) -> Option<(NodeId, &str)> {
        self.0.far_end(gateway)
    }

    fn station_interfaces(&self) -> (&str, &str) {
        self.0.station_interfaces()
    }

    fn configure(&mut self, links: Links) -> Result<(), LabError> {
        self.0.configure(links)
    }

    fn check_ip(&self, version: IpVersion, links: Links) -> Result<(), LabError> {
        self.0.check_ip(version, links)
    }

    fn start_dut(
        &mut self,
        dut: &Dut,
        links: Links,
        direction: Direction,
    ) -> Result<RunningDut, LabError> {
        let mut null = Encryptor::new(Suite::Aes256Gcm);
        null.engine = "null".parse().unwrap();
        let null = Dut {
            adapter: Adapter::Cipherbench(null),
            ..dut.clone()
        };
        let running = self.0.start_dut(&null, links, direction)?;
        Ok(RunningDut {
            // A false claim: the lab would say that this device's payload is readable by design.
            readable: false,
            ..running
        })
    }

    fn dut_counters(&self, dut: &RunningDut) -> Result<BTreeMap<String, u64>, LabError> {
        self.0.dut_counters(dut)
    }

    fn stop_dut(&mut self, dut: RunningDut) -> Result<(), LabError> {
        self.0.stop_dut(dut)
    }
}

fn a_device_that_seals_with_nothing() {
    let mut lab = NullLab(TestLab::build().into_lab());
    let echo = Measurement::Ping {
        count: 100,
        interval_ns: 2 * MS,
        payload_bytes: 56,
        loaded: false,
        route: false,
        load_dscp: Vec::new(),
    };
    let datagrams = Measurement::Udp {
        tool: Tool::default(),
        direction: TransferDirection::AToB,
        datagram_bytes: Some(64),
        rate_bps: Some(5_000_000),
        streams: 1,
        duration_ns: 1000 * MS,
        warmup_ns: 0,
    };
    for measurement in [tcp(), datagrams, echo] {
        let cell = cell(encrypting(), 1, false, measurement);
        let (reasons, evidence) = objections(&mut lab, &cell);
        expect_clear_text_inside(&reasons);
        let watch = evidence.watch.unwrap();
        // Every packet of the tool, not a sample of them.
        let sent = evidence.interfaces["a/a0"].tx_packets;
        assert!(watch.clear_sealed_frames > 0, "{watch:?}");
        assert!(watch.foreign_frames >= sent / 2, "{watch:?}, {sent} sent");
    }
}

fn objections(lab: &mut NullLab, cell: &Cell) -> (Vec<String>, Evidence) {
    let trial = Trial::of(cell, 1, links(&plan(cell), cell));
    let record = measure(lab, &trial, &Interrupt::new()).unwrap();
    match record.outcome {
        Outcome::Invalid { reasons, measured } => (reasons, measured.evidence),
        other => panic!("{other:#?}"),
    }
}
