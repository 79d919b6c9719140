//! `ike-peers` against our responder over loopback, and against strongSwan in namespaces.

use crate::support::{PROGRAM, Sandbox, end, finish, kill, start};
use ike_peers::gateway::{Counts, Settled};
use ike_peers::{Authentication, Behaviour, Hidden, Load, Selectors, Sources, Spec};
use nix::sys::signal::SIGINT;
use port::Stop;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use testing::charon::{Charon, Proof, in_namespaces};

/// Below the ports that the kernel chooses.
static NEXT_PORT: AtomicU16 = AtomicU16::new(12_000);

fn free_ports(count: u16) -> u16 {
    loop {
        let first = NEXT_PORT.fetch_add(count, Ordering::Relaxed);
        assert!(first < 19_000, "no free ports");
        if (first..first + count).all(|port| UdpSocket::bind(("0.0.0.0", port)).is_ok()) {
            return first;
        }
    }
}

/// A gateway for any peer with this key, and the options of a command for it.
fn gateway(proposal: &str) -> (Settled, Vec<String>) {
    let [port, nat_port, ports] = [free_ports(1), free_ports(1), free_ports(200)];
    let address = |text: &str| text.parse().expect("an address");
    let spec = Spec {
        gateway: address("127.0.0.1"),
        port,
        nat_port,
        peers: 1,
        sources: Sources::Ports {
            address: address("127.0.0.1"),
            addresses: 1,
            first: 1,
            count: 1,
        },
        identity: "peer-{n}.example".to_owned(),
        gateway_identity: Some("gateway.example".to_owned()),
        authentication: Authentication::SharedKey(Hidden("a secret of tests".to_owned())),
        proposal: proposal.to_owned(),
        ppk: None,
        selectors: Selectors {
            local: address("10.2.0.0"),
            remote_first: address("10.1.0.0"),
            remote_last: address("10.1.255.255"),
        },
        behaviour: Behaviour::default(),
        load: Load::Setup { per_s: 1 },
        delete_per_s: None,
    };
    let words = format!(
        "ike-peers 127.0.0.1 --port {port} --nat-port {nat_port} --ports {ports}-{} --auth psk:key",
        ports + 199
    );
    let words = words.split(' ').map(str::to_owned).collect();
    (Settled::new(&spec, None).expect("a spec"), words)
}

/// What the gateway counts while something goes on.
fn with<T>(settled: Settled, during: impl FnOnce() -> T) -> (T, Counts) {
    let stop = Stop::new().expect("a descriptor");
    let gateway = settled.open().expect("its ports are free");
    thread::scope(|scope| {
        let serving = scope.spawn(|| gateway.serve(&stop));
        let result = during();
        stop.raise();
        (
            result,
            serving.join().expect("no panic").expect("it served"),
        )
    })
}

fn command(sandbox: &Sandbox, words: &[String], more: &[&str]) -> Command {
    sandbox.write("key", "a secret of tests\n");
    let all: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .chain(more.iter().copied())
        .collect();
    sandbox.interruptible(&all)
}

const SUITE: &str = "aes256gcm16-prfsha384-x25519";

pub(crate) fn peers_are_set_up_at_a_rate_and_the_answer_comes_first() {
    let sandbox = Sandbox::new();
    let (settled, words) = gateway(SUITE);
    let more = ["--peers", "100", "--rate", "200", "--out", "report.json"];
    let (ended, counts) = with(settled, || end(&mut command(&sandbox, &words, &more)));
    let ended = ended.exits(0);
    let first = ended.stdout.lines().next().unwrap_or_default();
    assert!(
        first.contains(" set-ups per second completed, 200 per second offered: 100 of 100 in "),
        "{}",
        ended.stdout
    );
    for part in ["\nSet-ups    p50 ", "\nDeletes    p50 ", "\nGenerator  "] {
        assert!(ended.stdout.contains(part), "{}", ended.stdout);
    }
    assert_eq!(
        (counts.established, counts.deleted, counts.left),
        (100, 100, 0)
    );
    let report = std::fs::read(sandbox.path("report.json")).expect("it was written");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(report["setups"]["completed"], 100);
}

pub(crate) fn each_load_has_its_answer() {
    let sandbox = Sandbox::new();
    let loads = [
        ("storm", "40 of 40 peers are up after the storm: 50 % "),
        ("concurrent", "40 of 40 peers were up; after 1"),
        ("churn", "20 of 20 in "),
        (
            "half-open",
            "20 first requests at 20 per second: 20 accepted half-open, 0 answered",
        ),
        (
            "rekey-ike",
            "40 of 40 IKE SAs were rekeyed, all with each key exchange",
        ),
        (
            "rekey-child",
            "40 of 40 child SAs were rekeyed, all with each key exchange",
        ),
    ];
    for (load, answer) in loads {
        let (settled, words) = gateway(SUITE);
        let rate = match load {
            "churn" | "half-open" => "20",
            _ => "200",
        };
        let more = [
            "--peers",
            "40",
            "--rate",
            rate,
            "--load",
            load,
            "--duration",
            "1 s",
            "--lifetime",
            "1 s",
        ];
        let (ended, _) = with(settled, || end(&mut command(&sandbox, &words, &more)));
        let ended = ended.exits(0);
        assert!(ended.stdout.contains(answer), "{load}: {}", ended.stdout);
    }
}

pub(crate) fn ctrl_c_prints_the_counts_and_deletes_the_sas() {
    let sandbox = Sandbox::new();
    let (settled, words) = gateway(SUITE);
    let more = [
        "--peers",
        "20",
        "--rate",
        "200",
        "--load",
        "concurrent",
        "--duration",
        "1 h",
    ];
    let (ended, counts) = with(settled, || {
        let mut child = start(&mut command(&sandbox, &words, &more));
        let notices = child.stderr.take().expect("it is a pipe");
        let mut lines = BufReader::new(notices).lines().map_while(Result::ok);
        assert!(lines.any(|line| line == "20 are up"), "it ended");
        kill(child.id() as i32, SIGINT);
        finish(child)
    });
    let ended = ended.exits(4);
    assert!(
        ended
            .stdout
            .starts_with("stopped before the end; the counts so far:\n20 of 20 peers were up; "),
        "{}",
        ended.stdout
    );
    assert_eq!((counts.deleted, counts.left), (20, 0));
}

pub(crate) fn failures_name_the_notify_and_a_remedy() {
    let sandbox = Sandbox::new();
    let (settled, words) = gateway(SUITE);
    sandbox.write("wrong", "another key\n");
    let more = ["--peers", "3", "--auth", "psk:wrong"];
    let wrong: Vec<String> = words[..words.len() - 2].to_vec();
    let (ended, _) = with(settled, || end(&mut command(&sandbox, &wrong, &more)));
    let ended = ended.exits(1);
    assert!(
        ended.stdout.starts_with("0 of 3 set-ups completed, "),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stdout.contains("3 × AUTHENTICATION_FAILED: ")
            && ended.stdout.contains("RFC 7296 section 2.21.2"),
        "{}",
        ended.stdout
    );
    // A gateway with other suites, then none at all.
    let hasty = ["--peers", "2", "--patience", "2 s"];
    let (settled, words) = gateway("aes128-sha256-ecp256");
    let (ended, _) = with(settled, || end(&mut command(&sandbox, &words, &hasty)));
    let ended = ended.exits(1);
    assert!(
        ended.stdout.contains("2 × NO_PROPOSAL_CHOSEN: "),
        "{}",
        ended.stdout
    );
    let ended = end(&mut command(&sandbox, &words, &hasty)).exits(1);
    assert!(
        ended
            .stdout
            .contains("2 × no response: the gateway does not answer"),
        "{}",
        ended.stdout
    );
}

pub(crate) fn impossible_peers_are_refused_before_anything_is_sent() {
    let sandbox = Sandbox::new();
    let (_, words) = gateway(SUITE);
    let cases: [(&[&str], i32, &str); 7] = [
        (
            &["--peers", "201"],
            2,
            "201 peers need as many pairs of address and port, and there are 200",
        ),
        (
            &["--peers", "300", "--from", "127.9.0.0/24"],
            2,
            "there are 256",
        ),
        (&["--from", "203.0.113.0/24"], 3, "ip route add local"),
        (
            &["--remote", "10.1.0.0"],
            2,
            "`--remote 10.1.0.0` is no network",
        ),
        (
            &["--proposal", "aes256gcm16"],
            2,
            "the proposal `aes256gcm16` ",
        ),
        (
            &["--load", "churn", "--peers", "10", "--lifetime", "2 s"],
            2,
            "need more than 20 peers",
        ),
        (
            &["--peers", "0"],
            2,
            "write a whole number from 1 to 100000",
        ),
    ];
    for (more, code, text) in cases {
        end(&mut command(&sandbox, &words, more))
            .exits(code)
            .says(text);
    }
    end(&mut sandbox.program(&["ike-peers", "127.0.0.1", "--auth", "key"]))
        .exits(2)
        .says("write `psk:FILE`");
    end(&mut sandbox.program(&["ike-peers", "127.0.0.1"]))
        .exits(2)
        .says("--auth");
    sandbox.write("spec.json", "{ \"gateway\": \"127.0.0.1\" }");
    end(&mut sandbox.program(&["ike-peers", "--spec", "spec.json"]))
        .exits(2)
        .says("spec.json: missing field");
}

pub(crate) fn a_strongswan_is_loaded_from_its_network() {
    const NAME: &str = "ike_peers::a_strongswan_is_loaded_from_its_network";
    in_namespaces(NAME, || {
        let charon = Charon::start(&Proof::SharedKey);
        let sandbox = Sandbox::new();
        sandbox.write("key", "a secret of tests\n");
        let peers = |more: &str| {
            let words = format!(
                "ike-peers 192.0.2.1 --from 10.9.0.0/16 --remote 10.1.0.0/16 --auth psk:key {more}"
            );
            let words: Vec<&str> = words.split(' ').collect();
            let mut command = sandbox.program(&words);
            end(&mut command)
        };
        let ended = peers("--peers 40 --rate 40 --keep").exits(0);
        assert!(ended.stdout.contains("40 of 40 in "), "{}", ended.stdout);
        assert_eq!(charon.sas(), (40, 40), "{PROGRAM}: {}", ended.stdout);
        // INITIAL_CONTACT replaces those that were left, and the deletes end them.
        peers("--peers 40 --rate 40 --json").exits(0);
        assert_eq!(charon.sas(), (0, 0));
        let ended =
            peers("--peers 2 --proposal aes256gcm16-prfsha384-ecp521 --patience 1s").exits(1);
        assert!(
            ended.stdout.contains("2 × NO_PROPOSAL_CHOSEN"),
            "{}",
            ended.stdout
        );
    });
}
