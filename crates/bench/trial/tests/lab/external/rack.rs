//! A rack on this machine: two boxes with cables to the tester.
//!
//! ```text
//!                 the test's own network namespace
//!    eth1 o------.   eth3 o--.  .--o eth4   .------o eth2        interfaces that the run takes
//!               eth0        wan    wan     eth0
//!              .-----------------. .-----------------.
//!              |      box 1      | |      box 2      |           a network namespace each
//!              '-----------------' '-----------------'
//! ```
//!
//! The boxes do what their commands say: forward in clear, or run the real encryptor.

use plan::{Adapter, Cables, Carrier, External, ExternalBox, Form, LabPlan};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;
use wire::Suite;

/// MTU of unused cables, which no cell has.
pub(super) const IDLE_MTU: &str = "1496";

/// The tester's address at the first box's management port.
pub(super) const TESTER: &str = "198.51.100.1";
/// The box's.
pub(super) const MANAGED: &str = "198.51.100.11";

/// A lab that is shipped, as its file says.
pub(super) fn shipped(file: &str) -> LabPlan {
    let labs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../labs");
    let lab = campaign::load_lab(&labs.join(file));
    lab.unwrap_or_else(|mistakes| panic!("{mistakes}"))
        .plan()
        .clone()
}

/// What a box does with packets for the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    Seal,
    ForwardInClear,
    /// Passes frames on, sealed in the form of MACsec.
    SealFrames,
    /// The same, only authenticated.
    SignFrames,
}

impl Does {
    const fn is_bump(self) -> bool {
        matches!(self, Self::SealFrames | Self::SignFrames)
    }
}

/// A bump in the wire, by hand: what enters one port leaves the other in the form of MACsec, and
/// back. Its cipher is none that is in use.
const BUMP: &str = include_str!("bump.py");

/// The boxes, as long as this lives.
pub(super) struct Rack {
    boxes: [Child; 2],
    pub(super) folder: TempDir,
    pub(super) tapped: bool,
}

/// Runs a program that must succeed; what it prints.
pub(super) fn run(words: &str) -> String {
    let mut words = words.split_whitespace();
    let program = words.next().unwrap();
    let output = Command::new(program).args(words.clone()).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {:?}: {}",
        words.collect::<Vec<_>>(),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// A process that holds a network namespace until its input ends.
fn namespace() -> Child {
    let mut child = Command::new("unshare")
        // It prints once it is in its namespace, and `cat` ends when the test closes the pipe or
        // dies.
        .args(["--net", "sh", "-c", "echo here; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "here\n");
    child
}

impl Rack {
    /// In a network namespace that is the test's alone. Without a tap the boxes are joined to each
    /// other.
    pub(super) fn build(tapped: bool) -> Self {
        run("ip link set lo up");
        let boxes = [namespace(), namespace()];
        let [first, second] = boxes.each_ref().map(Child::id);
        for ((cable, tap), pid) in [(("eth1", "eth3"), first), (("eth2", "eth4"), second)] {
            run(&format!(
                "ip link add {cable} mtu {IDLE_MTU} type veth peer name eth0 netns {pid}"
            ));
            if tapped {
                run(&format!(
                    "ip link add {tap} mtu {IDLE_MTU} type veth peer name wan netns {pid}"
                ));
            }
        }
        if !tapped {
            run(&format!(
                "ip link add wan netns {first} type veth peer name wan netns {second}"
            ));
        }
        // One is up and one has an offload off: so they are to be given back.
        run("ip link set eth1 up");
        run("ethtool -K eth2 gso off");
        let folder = testing::folder().unwrap();
        let rack = Self {
            boxes,
            folder,
            tapped,
        };
        rack.write_keys();
        fs::write(rack.path("bump.py"), BUMP).unwrap();
        rack
    }

    /// One box between both cables, in a network namespace that is the test's alone.
    pub(super) fn with_one_box() -> Self {
        run("ip link set lo up");
        let boxes = [namespace(), namespace()];
        let pid = boxes[0].id();
        for (cable, port) in [("eth1", "eth0"), ("eth2", "wan")] {
            run(&format!(
                "ip link add {cable} mtu {IDLE_MTU} type veth peer name {port} netns {pid}"
            ));
        }
        run("ip link set eth1 up");
        run("ethtool -K eth2 gso off");
        Self {
            boxes,
            folder: testing::folder().unwrap(),
            tapped: false,
        }
    }

    fn write_keys(&self) {
        for (texts, name) in keying::pair_texts().unwrap().iter().zip(["box1", "box2"]) {
            for (suffix, text) in [("key", texts.key.as_str()), ("key.epoch", &texts.epochs)] {
                let path = self.path(&format!("{name}.{suffix}"));
                fs::write(&path, text).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            }
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn cables(&self) -> Cables {
        let tap = ["eth3", "eth4"].map(str::to_owned);
        Cables {
            station_a: "eth1".to_owned(),
            station_b: "eth2".to_owned(),
            tap: self.tapped.then_some(tap),
            tap_host: None,
            gateway_a: [10, 1, 0, 1].into(),
            gateway_b: [10, 2, 0, 1].into(),
        }
    }

    /// The device under test, with the commands of external boxes.
    pub(super) fn device(&self, does: Does) -> External {
        let bump = does.is_bump();
        External {
            boxes: vec![self.box_of(1, does), self.box_of(2, does)],
            carrier: Some(Carrier {
                form: if bump { Form::MacSec } else { Form::Esp },
                suite: Suite::Aes256Gcm,
                udp: !bump,
            }),
            format: None,
            ports: if bump { Vec::new() } else { vec![4500] },
            bump,
            gateway: None,
            tunnels: 1,
            suite_word: bump.then(|| "shake128-blake2".to_owned()),
            limit_ns: 20_000_000_000,
            ready_ns: 10_000_000_000,
        }
    }

    fn box_of(&self, number: usize, does: Does) -> ExternalBox {
        let folder = self.folder.path().display();
        let ([own, peer], [near, far]) = match number {
            1 => (["a", "b"], ["{cipher_a}", "{cipher_b}"]),
            _ => (["b", "a"], ["{cipher_b}", "{cipher_a}"]),
        };
        if does.is_bump() {
            return self.bump(number, does);
        }
        let mut up = vec![
            // What a kernel says by itself of IPv6, or of the port of a program that restarts, is
            // foreign between the boxes.
            "ip link set lo up && sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.disable_ipv6=1 \
             net.ipv4.icmp_ratelimit=1000000000"
                .to_owned(),
            format!("ip address replace {{gateway_{own}}}/24 dev eth0"),
            "ip link set eth0 mtu {mtu} up".to_owned(),
            format!("ip address replace {near}/24 dev wan"),
            "ip link set wan mtu {cipher_mtu} up".to_owned(),
            format!("ip route replace {{test_network_{own}}} via {{station_{own}}}"),
            // No real cable passes super-packets on whole.
            "for port in eth0 wan; do ethtool -K $port tso off gso off tx-udp-segmentation off; done".to_owned(),
        ];
        let mut its = ExternalBox {
            via: self.via(number),
            counter_lines: vec![
                "awk '$1 == \"wan:\" {print \"wan_rx_bytes\", $2}' /proc/net/dev".to_owned(),
            ],
            down: vec![
                format!("echo x >> {folder}/box{number}.down"),
                "ip address flush dev eth0; ip address flush dev wan".to_owned(),
            ],
            ..ExternalBox::default()
        };
        match does {
            Does::SealFrames | Does::SignFrames => {}
            Does::ForwardInClear => {
                for network in ["network", "test_network"] {
                    up.push(format!("ip route replace {{{network}_{peer}}} via {far}"));
                }
            }
            Does::Seal => {
                let config = format!(
                    "local: {near}\\nport: 4500\\nworkers: 1\\nsuite: {{suite}}\\nengine: auto\\n\
                     tunnel: {{ name: cb0, mtu: {{mtu}} B }}\\npeers:\\n  - {{ remote: {far}, keys: {{ static: {folder}/box{number}.key }}, \
                     routes: [{{network_{peer}}}, {{test_network_{peer}}}] }}\\n"
                );
                let this = std::env::current_exe().unwrap();
                let this = this.display();
                let named = format!("{folder}/box{number}");
                up.push(format!("printf '{config}' > {named}.yaml"));
                // The log is emptied first: otherwise the readiness of an earlier start would be
                // found in it.
                let start = format!(
                    ": > {named}.log; {this} encrypt --config {named}.yaml > {named}.log 2>&1 & echo $! > {named}.pid\n\
                     until grep -q ^ready {named}.log\n\
                     do kill -0 $! || {{ cat {named}.log >&2; exit 1; }}; sleep 0.01; done"
                );
                its.reset = Some(format!(
                    "pid=$(cat {named}.pid); kill -9 $pid; while kill -0 $pid; do sleep 0.01; done 2>&-\n{start}"
                ));
                its.started = Some(format!(
                    "pid=$(cat {named}.pid); echo $pid $(cut -d ' ' -f 22 /proc/$pid/stat)"
                ));
                up.push(start);
                its.down.insert(
                    0,
                    format!(
                        "pid=$(cat {named}.pid); kill $pid; while kill -0 $pid; do sleep 0.01; done 2>&-\n\
                         {this} encrypt --remove --config {named}.yaml"
                    ),
                );
                its.version = Some(format!("grep -o 'version=[^ ]*' {named}.log"));
                its.suite_told = Some(format!("grep -o 'suite=[^ ]*' {named}.log"));
                // Bytes received and sent by the TUN device: the clear side.
                let counter = "awk '/cb0:/ {print $2 + $10}' /proc/net/dev".to_owned();
                its.counters.insert("clear_bytes".to_owned(), counter);
            }
        }
        its.up = up;
        its
    }

    fn bump(&self, number: usize, does: Does) -> ExternalBox {
        let folder = self.folder.path().display();
        let named = format!("{folder}/box{number}");
        let how = if does == Does::SealFrames {
            "seal"
        } else {
            "sign"
        };
        let up = [
            "sysctl -qw net.ipv6.conf.all.disable_ipv6=1".to_owned(),
            "ip link set eth0 mtu {mtu} up; ip link set wan mtu {cipher_mtu} up".to_owned(),
            "for port in eth0 wan; do ethtool -K $port tso off gso off tx-udp-segmentation off; done".to_owned(),
            format!(
                ": > {named}.log; python3 {folder}/bump.py {how} > {named}.log 2>&1 & echo $! > {named}.pid\n\
                 until grep -q ^ready {named}.log\n\
                 do kill -0 $! || {{ cat {named}.log >&2; exit 1; }}; sleep 0.01; done"
            ),
        ];
        let line = |name: &str, sum: &str| format!("awk '/{name}:/ {{print {sum}}}' /proc/net/dev");
        ExternalBox {
            via: self.via(number),
            up: up.into(),
            down: vec![
                format!(
                    "pid=$(cat {named}.pid); kill $pid; while kill -0 $pid; do sleep 0.01; done 2>&-"
                ),
                format!("echo x >> {named}.down"),
            ],
            version: Some(format!("grep -o 'version=[^ ]*' {named}.log")),
            suite_told: Some(format!("grep -o 'suite=[^ ]*' {named}.log")),
            counters: [
                ("clear_bytes".to_owned(), line("eth0", "$2 + $10")),
                ("wan_rx_bytes".to_owned(), line("wan", "$2")),
            ]
            .into(),
            ..ExternalBox::default()
        }
    }

    /// A cable past the others to the first box, by which it is managed.
    pub(super) fn manage(&self) {
        let pid = self.boxes[0].id();
        run(&format!(
            "ip link add mgmt type veth peer name mgmt netns {pid}"
        ));
        run(&format!("ip address add {TESTER}/24 dev mgmt"));
        run("ip link set mgmt up");
        let inside = format!("nsenter --net=/proc/{pid}/ns/net ip");
        run(&format!("{inside} address add {MANAGED}/24 dev mgmt"));
        run(&format!("{inside} link set mgmt up"));
    }

    /// What runs a command in a box.
    pub(super) fn via(&self, number: usize) -> Vec<String> {
        let pid = self.boxes[number - 1].id();
        format!("nsenter --net=/proc/{pid}/ns/net sh -c")
            .split(' ')
            .map(str::to_owned)
            .collect()
    }

    /// The only box as a router in clear between both cables.
    pub(super) fn router(&self) -> External {
        let port = |name: &str, side: &str| {
            format!(
                "ip address replace {{gateway_{side}}}/24 dev {name}; ip link set {name} mtu {{mtu}} up; \
                 ethtool -K {name} tso off gso off tx-udp-segmentation off; \
                 ip route replace {{test_network_{side}}} via {{station_{side}}}"
            )
        };
        let its = ExternalBox {
            via: self.via(1),
            up: vec![
                "ip link set lo up && sysctl -qw net.ipv4.ip_forward=1".to_owned(),
                port("eth0", "a"),
                port("wan", "b"),
            ],
            down: vec!["ip address flush dev eth0; ip address flush dev wan".to_owned()],
            ..ExternalBox::default()
        };
        External {
            boxes: vec![its],
            carrier: None,
            ports: Vec::new(),
            ..self.device(Does::ForwardInClear)
        }
    }

    /// How often the commands that take a box down have run.
    pub(super) fn times_down(&self) -> [usize; 2] {
        ["box1.down", "box2.down"].map(|name| {
            let text = fs::read_to_string(self.path(name)).unwrap_or_default();
            text.lines().count()
        })
    }

    /// Asserts that both boxes were taken down equally often, and at least this many times: a busy
    /// machine leads to repeats.
    pub(super) fn assert_taken_down(&self, at_least: usize) {
        let [first, second] = self.times_down();
        assert!(first >= at_least && first == second, "{first} {second}");
    }

    /// Whether every interface is here, as it was.
    pub(super) fn has_all_back(&self) -> bool {
        let names: &[&str] = if self.tapped {
            &["eth1", "eth2", "eth3", "eth4"]
        } else {
            &["eth1", "eth2"]
        };
        let shown = run("ip -o link show");
        let as_it_was = |name: &&str| {
            let line = shown
                .lines()
                .find(|line| line.contains(&format!(" {name}@")));
            line.is_some_and(|line| {
                line.contains(&format!("mtu {IDLE_MTU} "))
                    && (line.contains(",UP") || line.contains("<UP")) == (**name == *"eth1")
            })
        };
        let offloads = |name: &str| run(&format!("ethtool -k {name}"));
        names.iter().all(as_it_was)
            && offloads("eth1").contains("generic-segmentation-offload: on")
            && offloads("eth2").contains("generic-segmentation-offload: off")
    }

    /// What the rack's own namespace has beside the cables, for nothing else is to change. Of IPv6
    /// the kernel sets some by itself, when it has time.
    pub(super) fn addresses() -> String {
        run("ip -o -4 address show") + &run("ip -o -4 route show table all")
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        for child in &mut self.boxes {
            drop(child.stdin.take());
            // It ends with its input.
            let _ = child.wait();
        }
    }
}

/// As campaigns have it.
pub(super) fn adapter(device: External) -> Adapter {
    Adapter::External(device)
}
