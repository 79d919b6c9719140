//! External boxes between the stations of two hosts: the first report's testbed.
//!
//! ```text
//!             tester (nsenter) ──────┬───────────────────┐
//!  left                              │                   │                   right
//!  .---------.                  .---------.         .---------.          .---------.
//!  | rack0   |────── eth0 ──────|  box 1  |         |  box 2  |── eth0 ──|   rack0 |
//!  '---------'                  '---------'         '---------'          '---------'
//!                                   wan │            │ wan
//!                                   .---'------------'---.
//!                                   |       switch       |   or the tap's interfaces of right
//!                                   '--------------------'
//! ```

use super::clocks::{AHEAD_S, timed_by_two_clocks};
use super::{Hosts, Place, SIGINT, SIGKILL, Signal, check, measured, wait_for_ping};
use crate::support::{Ended, PROGRAM, Sandbox, end, finish, start, wait_for};
use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// MTU of the unused cables, which no cell has.
const IDLE_MTU: &str = "1496";

/// A bump in the wire: what enters one port leaves the other sealed, and back.
const BUMP: &str = include_str!("../../../../bench/trial/tests/lab/external/bump.py");

/// The cables of both hosts.
const EXTERNAL: &str = "{ station_a: rack0, station_b: rack0 }";

/// The two boxes, and what joins them.
struct Rack {
    boxes: [Place; 2],
    _switch: Place,
}

/// What joins the boxes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Between {
    /// A switch that no campaign configures.
    Switch,
    /// Interfaces of the second host.
    Tap,
}

/// What the boxes do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Do {
    /// Forward in clear.
    Route,
    /// Run our encryptor.
    Encrypt,
    /// Pass frames on, sealed.
    Bump,
}

impl Rack {
    fn new(sandbox: &Sandbox, hosts: &Hosts, between: Between) -> Self {
        let boxes = [Place::new(sandbox, &[]), Place::new(sandbox, &[])];
        let switch = Place::new(sandbox, &[]);
        let [left, right] = &hosts.hosts;
        // A bump seals frames as it gets them: on a wire they have their checksums.
        for (host, its) in [left, right].into_iter().zip(&boxes) {
            host.run(&format!(
                "ip link add rack0 mtu {IDLE_MTU} type veth peer name eth0 mtu {IDLE_MTU} netns {}; \
                 ethtool -K rack0 tx off",
                its.pid()
            ));
        }
        for (number, its) in (1..).zip(&boxes) {
            let (at, name) = match between {
                Between::Switch => (&switch, format!("p{number}")),
                Between::Tap => (right, format!("tap{number}")),
            };
            at.run(&format!(
                "ip link add {name} mtu {IDLE_MTU} type veth peer name wan netns {}",
                its.pid()
            ));
            if between == Between::Switch {
                at.run(&format!("ip link set {name} mtu 1600 up"));
            }
        }
        if between == Between::Switch {
            switch.run(
                "ip link add sw type bridge; ip link set p1 master sw; ip link set p2 master sw; ip link set sw up",
            );
        }
        sandbox.write("bump.py", BUMP);
        let folder = sandbox.path("");
        let folder = folder.display();
        hosts.tester.run(&format!(
            "{PROGRAM} keys static {folder}/box1.key {folder}/box2.key"
        ));
        Self {
            boxes,
            _switch: switch,
        }
    }

    /// A device of a campaign.
    fn device(&self, sandbox: &Sandbox, its: Do) -> String {
        let what = match its {
            Do::Route => "name: routers\n      plain: on",
            Do::Encrypt => {
                "name: sealers\n      suite: aes-256-gcm\n      form: esp\n      ports: [4500]"
            }
            Do::Bump => {
                "name: bumps\n      bump: on\n      suite: aes-256-gcm\n      form: macsec\n      \
                 suite_words: { aes-256-gcm: shake128-blake2 }"
            }
        };
        let boxes: String = (1..)
            .zip(&self.boxes)
            .map(|(number, place)| {
                let name = format!("{}{number}.sh", its.name());
                sandbox.write(&name, &script(sandbox, its, number));
                let path = sandbox.path(&name);
                fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("a file");
                let path = path.display();
                let told = match its {
                    Do::Route => String::new(),
                    Do::Encrypt | Do::Bump => {
                        format!("          suite_told: grep suite= {path}.log\n")
                    }
                };
                format!(
                    "        - via: nsenter --net=/proc/{}/ns/net sh -c\n          \
                     up: {path} up {{mtu}} {{cipher_mtu}}\n          down: {path} down\n{told}",
                    place.pid()
                )
            })
            .collect();
        format!("  - external:\n      {what}\n      boxes:\n{boxes}")
    }

    /// How often the commands that take a box down have run.
    fn times_down(sandbox: &Sandbox, its: Do) -> [usize; 2] {
        [1, 2].map(|number| {
            let file = sandbox.path(&format!("{}{number}.sh.down", its.name()));
            fs::read_to_string(file).unwrap_or_default().lines().count()
        })
    }
}

impl Do {
    const fn name(self) -> &'static str {
        match self {
            Self::Route => "route",
            Self::Encrypt => "encrypt",
            Self::Bump => "bump",
        }
    }
}

/// The script of a box: `up MTU CIPHER_MTU` and `down`.
fn script(sandbox: &Sandbox, its: Do, number: usize) -> String {
    let folder = sandbox.path("");
    let folder = folder.display();
    let ([own, peer], [near, far]) = match number {
        1 => ([1, 2], [1, 2]),
        _ => ([2, 1], [2, 1]),
    };
    let (own_test, peer_test) = (17 + own, 17 + peer);
    let ports = "for port in eth0 wan; do ethtool -K $port tso off gso off tx-udp-segmentation off; done\n\
                 ip link set eth0 mtu $2 up; ip link set wan mtu $3 up";
    let routes = format!(
        "ip address replace 10.{own}.0.1/24 dev eth0; ip address replace 192.0.2.{near}/24 dev wan\n\
         ip route replace 198.{own_test}.0.0/16 via 10.{own}.0.2"
    );
    let (up, down) = match its {
        Do::Route => (
            format!(
                "{routes}\nip route replace 10.{peer}.0.0/24 via 192.0.2.{far}\n\
                 ip route replace 198.{peer_test}.0.0/16 via 192.0.2.{far}"
            ),
            String::new(),
        ),
        Do::Encrypt => (
            format!(
                "{routes}\n\
                 cat > $0.yaml <<END\nlocal: 192.0.2.{near}\nport: 4500\nworkers: 1\nsuite: aes-256-gcm\n\
                 tunnel: {{ name: cb0, mtu: $2 B }}\npeers:\n  - {{ remote: 192.0.2.{far}, \
                 keys: {{ static: {folder}/box{number}.key }}, \
                 routes: [10.{peer}.0.0/24, 198.{peer_test}.0.0/16] }}\nEND\n\
                 {}",
                in_background(&format!("{PROGRAM} encrypt --config $0.yaml"))
            ),
            // Its protection outlives it, and the next device uses the same networks.
            format!("{END_IT}\n{PROGRAM} encrypt --remove --config $0.yaml"),
        ),
        Do::Bump => (
            in_background(&format!("python3 {folder}/bump.py seal")),
            END_IT.to_owned(),
        ),
    };
    format!(
        "#!/bin/sh\nset -e\nif [ $1 = down ]; then\necho x >> $0.down\n{down}\nip address flush dev eth0\n\
         ip address flush dev wan\nexit\nfi\n\
         ip link set lo up\nsysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.disable_ipv6=1 \
         net.ipv4.icmp_ratelimit=1000000000\n{ports}\n{up}\n"
    )
}

/// Starts a program and waits until it prints that it is ready, and not what it printed before.
fn in_background(command: &str) -> String {
    format!(
        ": > $0.log; {command} > $0.log 2>&1 & echo $! > $0.pid\n\
         until grep -q ^ready $0.log; do kill -0 $! || {{ cat $0.log >&2; exit 1; }}; sleep 0.01; done"
    )
}

/// Ends that program.
const END_IT: &str =
    "pid=$(cat $0.pid); kill $pid; while kill -0 $pid 2>/dev/null; do sleep 0.01; done";

impl Hosts {
    /// The shipped lab, with the hosts and interfaces of the test; `external` replaces the shipped
    /// one.
    pub(super) fn lab_of_boxes(&self, sandbox: &Sandbox, external: &str) -> String {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/two-hosts-boxes.yaml");
        let mut lab = fs::read_to_string(shipped).expect("the shipped lab");
        let config = sandbox.path("ssh_config");
        let reach = |name: &str| format!("reach: ssh -F {} {name}", config.display());
        for (from, to) in [
            ("lab: two-hosts-boxes", format!("lab: {}", sandbox.lab())),
            ("reach: ssh root@198.51.100.11", reach("left")),
            ("reach: ssh root@198.51.100.12", reach("right")),
            // The test's machine may have one CPU.
            ("cpus: [2, 3, 4, 5]", format!("program: {PROGRAM}")),
            ("{ station_a: eth2, station_b: eth2 }", external.to_owned()),
        ] {
            assert!(lab.contains(from), "{from}: {lab}");
            lab = lab.replace(from, &to);
        }
        lab
    }

    /// Whether both hosts have the cables to the boxes back as they were.
    #[track_caller]
    fn assert_cables_back(&self, sandbox: &Sandbox) {
        for number in 0..2 {
            wait_for("a cable that is given back", || {
                let shown = self.hosts[number].run("ip -o link show");
                let line = shown.lines().find(|line| line.contains(" rack0@"))?;
                (line.contains(&format!("mtu {IDLE_MTU} ")) && !line.contains("UP")).then_some(())
            });
        }
        self.assert_free(sandbox);
    }
}

fn campaign(devices: &[String], trials: &str) -> String {
    format!(
        "campaign: boxes\nrepeats: 1\nduts:\n{}trials:\n{trials}",
        devices.concat()
    )
}

const TOOLS: [&str; 2] = [
    "  - ping: { mtu: 1400 B, count: 40, interval: 10 ms, offloads: off }\n",
    "  - tcp: { mtu: 1400 B, streams: 1, duration: 1 s, warmup: 0 s, offloads: off }\n",
];

const FRAMES: &str =
    "  - load: { frame: 512 B, rate: 500 frames/s, duration: 1 s, duplex: [false, true] }\n";

pub(crate) fn boxes_between_two_hosts_are_measured_by_tools_and_frames() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let rack = Rack::new(&sandbox, &hosts, Between::Switch);
    let lab = hosts.lab_of_boxes(&sandbox, EXTERNAL);
    sandbox.write("lab.yaml", &lab);
    let all = [Do::Route, Do::Encrypt, Do::Bump];
    let devices = all.map(|its| rack.device(&sandbox, its));
    let frames = "  - load: { frame: 512 B, rate: 500 frames/s, duration: 1 s }\n";
    let trials = TOOLS.concat() + frames;
    let ended = end(&mut hosts.run(&sandbox, &campaign(&devices, &trials)));
    let measured = measured(&sandbox);
    assert_eq!(measured.len(), 9);
    for ((cell, _), measured) in measured {
        let check = check(&measured, "encryption-not-proven");
        assert_eq!(check.is_some(), !cell.contains("routers"), "{cell}");
    }
    for name in ["routers", "sealers", "bumps"] {
        assert!(ended.stdout.contains(name), "{}", ended.stdout);
    }
    hosts.assert_cables_back(&sandbox);
    for its in all {
        assert_eq!(Rack::times_down(&sandbox, its), [3, 3]);
    }
}

/// Probes go through the boxes, which queue and route: the bound must hold the truth.
pub(crate) fn clocks_are_compared_through_the_boxes() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::with(&sandbox, &["--time", "--monotonic", AHEAD_S]);
    let rack = Rack::new(&sandbox, &hosts, Between::Switch);
    let lab = hosts.lab_of_boxes(&sandbox, EXTERNAL);
    sandbox.write("lab.yaml", &lab);
    let devices = [Do::Route, Do::Encrypt, Do::Bump].map(|its| rack.device(&sandbox, its));
    end(&mut hosts.run(&sandbox, &campaign(&devices, FRAMES)));
    let all = timed_by_two_clocks(&sandbox);
    assert_eq!(all.len(), 6, "{all:?}");
    for within_ns in all.iter().map(|timed| timed.within_ns) {
        eprintln!("clocks are known to {within_ns} ns");
        // On an idle machine 100 us through two boxes in Python; a busy one delays probes.
        assert!(within_ns < 20_000_000, "{within_ns}");
    }
    hosts.assert_cables_back(&sandbox);
}

/// The tap is on the second host, and the hosts have their own cable too.
pub(crate) fn a_tap_on_one_of_the_hosts_proves_encryption() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let rack = Rack::new(&sandbox, &hosts, Between::Tap);
    let lab = hosts.lab(&sandbox, &format!(", program: {PROGRAM}"));
    let external = "{ station_a: rack0, station_b: rack0, tap: [tap1, tap2], tap_host: b }";
    sandbox.write(
        "lab.yaml",
        &format!("{lab}cipher_mtu: 1480 B\nexternal: {external}\n"),
    );
    let devices = [
        "  - direct\n".to_owned(),
        rack.device(&sandbox, Do::Encrypt),
        rack.device(&sandbox, Do::Route),
    ];
    let trials = "  - ping: { mtu: 1400 B, count: 60, interval: 10 ms, offloads: off }\n";
    end(&mut hosts.run(&sandbox, &campaign(&devices, trials)));
    let measured = measured(&sandbox);
    assert_eq!(measured.len(), 3);
    for ((cell, _), measured) in measured {
        let proof = if cell.contains("sealers") {
            "cipher-link-encrypted"
        } else {
            "clear-text-visible"
        };
        let checks = &measured["evidence"]["checks"];
        assert!(check(&measured, proof).is_some(), "{cell}: {checks}");
    }
    hosts.assert_cables_back(&sandbox);
    let right = hosts.hosts[1].run("ip -o link show");
    for tap in ["tap1", "tap2"] {
        let line = right
            .lines()
            .find(|line| line.contains(&format!(" {tap}@")));
        let line = line.expect("the tap's interface");
        assert!(line.contains(&format!("mtu {IDLE_MTU} ")), "{line}");
    }
}

pub(crate) fn what_two_hosts_with_boxes_cannot_do_is_refused_in_words() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let rack = Rack::new(&sandbox, &hosts, Between::Switch);
    let device = rack.device(&sandbox, Do::Route);
    let ping = "  - ping: { mtu: 1400 B, count: 20, interval: 10 ms }\n";
    let refused = |external: &str, devices: &[String], code: i32, says: [&str; 2]| {
        let lab = hosts.lab_of_boxes(&sandbox, external);
        sandbox.write("lab.yaml", &lab);
        let ended = end(&mut hosts.run(&sandbox, &campaign(devices, ping)));
        ended.exits(code).says(says[0]).says(says[1]);
        hosts.assert_cables_back(&sandbox);
    };
    let devices = [device.clone()];
    refused(
        &EXTERNAL.replace("station_b: rack0", "station_b: rack7"),
        &devices,
        3,
        [
            "the lab's `external.station_b`: there is no interface `rack7` on that machine",
            "rack0",
        ],
    );
    refused(
        &EXTERNAL.replace("station_a: rack0", "station_a: m0"),
        &devices,
        3,
        [
            "`m0` is in use: it has the address 10.99.0.2",
            "take another interface",
        ],
    );
    refused(
        EXTERNAL,
        &["  - direct\n".to_owned(), device],
        2,
        [
            "`direct` needs a cable between the gateways, and these hosts have none",
            "write the `interface` of both hosts",
        ],
    );
    refused(
        &EXTERNAL.replace('}', ", tap: [tap1, tap2] }"),
        &devices,
        2,
        ["the tap is on neither host", "tap_host: a"],
    );
}

/// Starts a run with the encryptors as boxes, and ends it in the middle of its trial by a signal.
/// Returns how it ended.
fn end_in_a_trial(sandbox: &Sandbox, signal: Signal) -> Ended {
    let hosts = Hosts::new(sandbox);
    let rack = Rack::new(sandbox, &hosts, Between::Switch);
    let lab = hosts.lab_of_boxes(sandbox, EXTERNAL);
    sandbox.write("lab.yaml", &lab);
    let devices = [rack.device(sandbox, Do::Encrypt)];
    let trials = "  - ping: { mtu: 1400 B, count: 3000, interval: 10 ms }\n";
    let run = start(&mut hosts.run(sandbox, &campaign(&devices, trials)));
    wait_for_ping(sandbox);
    hosts.signal_run(signal);
    let ended = finish(run);
    hosts.assert_cables_back(sandbox);
    wait_for("boxes that are taken down", || {
        (Rack::times_down(sandbox, Do::Encrypt) == [1, 1]).then_some(())
    });
    assert!(sandbox.trial_records().is_empty());
    ended
}

pub(crate) fn ctrl_c_gives_back_both_hosts_and_takes_the_boxes_down() {
    let sandbox = Sandbox::new();
    end_in_a_trial(&sandbox, SIGINT)
        .exits(4)
        .says("the lab is removed");
}

/// Nothing is left of the run itself: hosts, and the process that runs the boxes' commands, see the
/// end of their input.
pub(crate) fn a_killed_run_gives_back_both_hosts_and_takes_the_boxes_down() {
    end_in_a_trial(&Sandbox::new(), SIGKILL);
}

/// Host a is the machine of the run, and host b is reached by another command than ssh.
pub(crate) fn the_tester_may_be_one_of_the_two_hosts() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let rack = Rack::new(&sandbox, &hosts, Between::Switch);
    let [left, right] = &hosts.hosts;
    let lab = format!(
        "lab: {}\nkind: hosts\nhosts:\n  a: {{}}\n  b: {{ reach: {}, program: {PROGRAM} }}\n  \
         reconnect: 0 s\ncipher_mtu: 1500 B\nexternal: {EXTERNAL}\n",
        sandbox.lab(),
        right.enter().join(" ")
    );
    sandbox.write("lab.yaml", &lab);
    let devices = [Do::Encrypt, Do::Bump].map(|its| rack.device(&sandbox, its));
    let trials = TOOLS.concat() + "  - load: { frame: 512 B, rate: 500 frames/s, duration: 1 s }\n";
    sandbox.write("campaign.yaml", &campaign(&devices, &trials));
    let [program, words @ ..] = left.enter();
    let mut run = sandbox.command(&program);
    run.args(words)
        .args(["env", "-C"])
        .arg(sandbox.path(""))
        .args([PROGRAM, "run", "campaign.yaml", "--lab", "lab.yaml"]);
    end(&mut run);
    assert_eq!(measured(&sandbox).len(), 6);
    hosts.assert_cables_back(&sandbox);
}
