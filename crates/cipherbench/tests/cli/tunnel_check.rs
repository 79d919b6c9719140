//! `tunnel-check` between two networks, by two processes of the program.

mod offloads;

pub(crate) use offloads::{
    an_ended_search_restores_every_offload_at_both_ends, an_offload_that_hurts_is_named,
};

use crate::encrypt::{Networks, terminate};
use crate::support::{Ended, Sandbox, end, finish, kill, read_line, start};
use nix::sys::signal::SIGINT;
use serde_json::Value;
use std::process::Child;
use testing::busy;

/// The far end in network 2; returns it with the command that it prints.
fn listen(networks: &Networks, address: &str) -> (Child, String) {
    let script = format!("exec \"$0\" tunnel-check --listen {address} --wait '1 min'");
    let mut far = start(&mut networks.script(2, &script));
    let line = read_line(&mut far);
    assert!(line.starts_with("listening on "), "{line}");
    let command = read_line(&mut far);
    let words = command.trim().strip_prefix("cipherbench ");
    let words = words.expect("a command of the program").to_owned();
    (far, words)
}

/// A check of network 2's address from network 1; the far end must end by itself.
fn check(networks: &Networks, address: &str, wrapper: &str) -> (Ended, Value) {
    let (far, words) = listen(networks, address);
    let script = format!("exec {wrapper} \"$0\" {words} --seconds 2 --out answer.json");
    let ended = end(&mut networks.script(1, &script));
    finish(far).exits(0);
    let answer = std::fs::read(networks.sandbox.path("answer.json"));
    let answer = answer.unwrap_or_else(|error| panic!("{error}: {}", ended.stderr));
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines.len() <= 24, "{}", ended.stdout);
    for line in lines {
        assert!(line.chars().count() <= 80, "{line}");
    }
    (ended, serde_json::from_slice(&answer).expect("JSON"))
}

/// Ends the attempt at the test if a busy encryptor joined the packets, which is an answer too.
fn repeat_if_joined(answer: &Value) {
    for direction in ["from_here", "to_here"] {
        let reason = answer["encrypted"][direction]["reason"].as_str();
        if let Some(reason) = reason.filter(|reason| reason.contains("were not found")) {
            busy::too_busy(reason.to_owned());
        }
    }
}

pub(crate) fn our_tunnel_is_encrypted_and_the_path_beneath_it_is_not() {
    let networks = Networks::new();
    let gateways = [1, 2].map(|network| networks.start_gateway(network));
    let (ended, answer) = check(&networks, "10.9.2.1", "");
    repeat_if_joined(&answer);
    let ended = ended.exits(0);
    for (direction, interface) in [("from_here", "w0"), ("to_here", "w1")] {
        let found = &answer["encrypted"][direction];
        assert_eq!(found["sealed"], "yes", "{answer:#}");
        assert_eq!(found["interface"], interface);
        assert_eq!(found["form"], "ESP in UDP");
        assert_eq!(
            answer["mtu"][direction]["is_black_hole"], false,
            "{answer:#}"
        );
        assert!(
            answer["tcp"][direction]["goodput"]["bps"].as_f64() > Some(0.0),
            "{answer:#}"
        );
        assert!(
            answer["tcp"][direction]["round_trips"]["p50_ns"].as_u64() > Some(0),
            "{answer:#}"
        );
    }
    assert!(
        ended.stdout.contains("\nEncrypted    yes, both ways\n"),
        "{}",
        ended.stdout
    );
    assert!(
        ended
            .stdout
            .starts_with("10.9.2.1 over cb0 (tun), checked in ")
    );
    let (ended, answer) = check(&networks, "192.0.2.2", "");
    let ended = ended.exits(1);
    for direction in ["from_here", "to_here"] {
        let found = &answer["encrypted"][direction];
        assert_eq!(
            (&found["sealed"], &found["why"]),
            (&"no".into(), &"readable".into()),
            "{answer:#}"
        );
    }
    assert!(
        ended.stdout.contains("\nEncrypted    NO, neither way\n"),
        "{}",
        ended.stdout
    );
    for gateway in gateways {
        terminate(gateway).exits(0);
    }
}

pub(crate) fn without_the_right_to_look_encryption_is_unknown() {
    let networks = Networks::new();
    let gateways = [1, 2].map(|network| networks.start_gateway(network));
    let (ended, answer) = check(
        &networks,
        "10.9.2.1",
        "setpriv --bounding-set -net_raw --inh-caps -net_raw",
    );
    repeat_if_joined(&answer);
    let ended = ended.exits(5);
    let found = &answer["encrypted"];
    assert_eq!(
        found["from_here"]["reason"], "needs root on this host",
        "{answer:#}"
    );
    assert_eq!(found["to_here"]["sealed"], "yes", "{answer:#}");
    assert!(
        ended.stdout.contains("unknown from here, yes to here"),
        "{}",
        ended.stdout
    );
    for gateway in gateways {
        terminate(gateway).exits(0);
    }
}

/// A tunnel that wraps packets and encrypts nothing.
pub(crate) fn vxlan_is_not_encrypted() {
    let networks = Networks::new();
    for (own, peer, link) in [(1, 2, "w0"), (2, 1, "w1")] {
        let script = format!(
            "ip link add vx type vxlan id 5 local 192.0.2.{own} remote 192.0.2.{peer} dev {link} dstport 4789 && \
             ip address add 10.5.0.{own}/24 dev vx && ip link set vx up"
        );
        let ended = end(&mut networks.script(own, &script));
        if ended.stderr.contains("Unknown device type") {
            eprintln!("SKIPPED: this kernel has no VXLAN");
            return;
        }
        ended.exits(0);
    }
    let (ended, answer) = check(&networks, "10.5.0.2", "");
    ended.exits(1);
    assert_eq!(answer["here"]["kind"], "vxlan");
    let found = &answer["encrypted"]["from_here"];
    assert_eq!(
        (&found["sealed"], &found["interface"]),
        (&"no".into(), &"w0".into()),
        "{answer:#}"
    );
    assert_eq!(found["form"], "UDP to port 4789");
}

pub(crate) fn a_black_hole_of_the_mtu_is_named() {
    let networks = Networks::new();
    for network in [1, 2] {
        // Longer packets vanish, and nobody reports it.
        let drop = "nft 'add table inet hole; \
                    add chain inet hole in { type filter hook input priority -300; }; \
                    add rule inet hole in meta length > 1300 drop'";
        end(&mut networks.script(network, drop)).exits(0);
    }
    let (ended, answer) = check(&networks, "192.0.2.2", "");
    let ended = ended.exits(1);
    for direction in ["from_here", "to_here"] {
        let mtu = &answer["mtu"][direction];
        assert_eq!(
            (
                &mtu["known_bytes"],
                &mtu["passed_bytes"],
                &mtu["is_black_hole"]
            ),
            (&1500.into(), &1300.into(), &true.into()),
            "{answer:#}"
        );
        let limit = &answer["tcp"][direction]["limit"];
        assert_eq!(limit["limit"], "stall", "{answer:#}");
    }
    let said = ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        said.contains("BLACK HOLE: 1301 to 1500 B vanish without a report"),
        "{said}"
    );
    let help = "here: ip link set dev w0 mtu 1300; there: ip link set dev w1 mtu 1300";
    assert!(said.contains(help), "{said}");
}

/// Hosts with IPv6 alone: through our tunnel, and beneath it at another port, where longer packets
/// vanish.
pub(crate) fn ipv6_is_checked_as_ipv4_is() {
    let networks = Networks::new();
    let run = |network: usize, script: &str| end(&mut networks.script(network, script)).exits(0);
    for (own, peer, link) in [(1, 2, "w0"), (2, 1, "w1")] {
        let script = format!(
            "echo 0 >/proc/sys/net/ipv6/conf/default/disable_ipv6 && \
             echo 0 >/proc/sys/net/ipv6/conf/{link}/disable_ipv6 && ip address flush dev {link} && \
             ip address add fd00:9::{own}/64 dev {link} nodad"
        );
        run(own, &script);
        let config = format!(
            "local: fd00:9::{own}\nremote: fd00:9::{peer}\nkeys: {{ static: {own}.key }}\n\
             tunnel: {{ address: \"fd00:5:{own}::1/64\", routes: [\"fd00:5:{peer}::/64\"] }}\n"
        );
        networks.sandbox.write(&format!("{own}.yaml"), &config);
    }
    let gateways = [1, 2].map(|network| networks.start_gateway(network));
    let (ended, answer) = check(&networks, "fd00:5:2::1", "");
    repeat_if_joined(&answer);
    let ended = ended.exits(0);
    let title = "fd00:5:2::1 over cb0 (tun), checked in ";
    assert!(ended.stdout.starts_with(title), "{}", ended.stdout);
    for direction in ["from_here", "to_here"] {
        let found = &answer["encrypted"][direction];
        assert_eq!(found["sealed"], "yes", "{answer:#}");
        assert_eq!(found["form"], "ESP in UDP", "{answer:#}");
        assert_eq!(
            answer["mtu"][direction]["is_black_hole"], false,
            "{answer:#}"
        );
        let goodput = &answer["tcp"][direction]["goodput"]["bps"];
        assert!(goodput.as_f64() > Some(0.0), "{answer:#}");
    }
    for gateway in gateways {
        terminate(gateway).exits(0);
    }
    for network in [1, 2] {
        let drop = "nft 'add table inet hole; \
                    add chain inet hole in { type filter hook input priority -300; }; \
                    add rule inet hole in meta length > 1340 drop'";
        run(network, drop);
    }
    let (ended, answer) = check(&networks, "[fd00:9::2]:9000", "");
    ended.exits(1);
    for direction in ["from_here", "to_here"] {
        assert_eq!(answer["encrypted"][direction]["sealed"], "no", "{answer:#}");
        let mtu = &answer["mtu"][direction];
        assert_eq!(mtu["known_bytes"], 1500, "{answer:#}");
        assert_eq!(mtu["passed_bytes"], 1340, "{answer:#}");
        assert_eq!(mtu["is_black_hole"], true, "{answer:#}");
    }
}

pub(crate) fn a_check_that_cannot_be_made_is_one_clear_error() {
    const TOKEN: &str = "000102030405060708090a0b0c0d0e0f";
    let sandbox = Sandbox::new();
    let program = |words: &[&str]| {
        let words = [&["tunnel-check", "--quiet"], words].concat();
        let ended = end(&mut sandbox.program(&words));
        assert!(ended.stdout.is_empty(), "{}", ended.stdout);
        ended
    };
    let refused = |words: &[&str], code: i32, said: &str| {
        let ended = program(words).exits(code).says(said);
        assert_eq!(
            ended.stderr.matches("error: ").count(),
            1,
            "{}",
            ended.stderr
        );
    };
    refused(&[], 2, "--listen");
    refused(
        &["127.0.0.1"],
        2,
        "tunnel-check --listen` on the other host",
    );
    refused(&["127.0.0.1", "--token", "7"], 2, "32 hexadecimal digits");
    refused(
        &["127.0.0.1", "--seconds", "90", "--token", TOKEN],
        2,
        "from 2 to 30",
    );
    refused(
        &["no such host", "--token", TOKEN],
        2,
        "`no such host` has no address",
    );
    refused(
        &["127.0.0.1:1", "--token", TOKEN],
        3,
        "run `cipherbench tunnel-check --listen` there",
    );
    refused(&["--listen", "gw2"], 2, "`gw2` is no address to listen on");
    refused(
        &["--listen", "203.0.113.1"],
        3,
        "it is no address of this host",
    );
    refused(
        &["--listen", "127.0.0.1:0", "--ssh", "gw2"],
        2,
        "cannot be used with",
    );

    let mut listening = sandbox.interruptible(&["tunnel-check", "--listen", "127.0.0.1:0"]);
    let mut listening = start(&mut listening);
    let line = read_line(&mut listening);
    let address = line
        .split_whitespace()
        .nth(2)
        .expect("an address")
        .to_owned();
    refused(&["--listen", &address], 3, "uses this port");
    refused(&[&address, "--token", TOKEN], 2, "refused the token");
    // It goes on after a wrong token, until Ctrl-C.
    kill(i32::try_from(listening.id()).expect("a process id"), SIGINT);
    let ended = finish(listening).exits(4).says("error: interrupted");
    assert!(
        ended
            .stderr
            .contains("refused 127.0.0.1: it has another token"),
        "{}",
        ended.stderr
    );
    let words = ["tunnel-check", "--listen", "127.0.0.1:0", "--wait", "1 ms"];
    end(&mut sandbox.program(&words))
        .exits(5)
        .says("nobody asked within 1 ms");
}

/// Ctrl-C at one end during the streams ends both.
pub(crate) fn ctrl_c_ends_both_ends() {
    for (interrupted, other_code) in [("asker", 5), ("listener", 5)] {
        let sandbox = Sandbox::new();
        let words = ["tunnel-check", "--listen", "127.0.0.1:0"];
        let mut listener = start(&mut sandbox.interruptible(&words));
        read_line(&mut listener);
        let command = read_line(&mut listener);
        let mut words: Vec<&str> = command.split_whitespace().skip(1).collect();
        words.extend(["--seconds", "30"]);
        let mut asker = start(&mut sandbox.interruptible(&words));
        let errors = asker.stderr.take().expect("its output");
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(errors));
        let streams = |line: &std::io::Result<String>| {
            line.as_ref()
                .is_ok_and(|line| line.starts_with("TCP from here"))
        };
        assert!(
            lines.any(|line| streams(&line)),
            "it ended before the stream"
        );
        let (first, second) = match interrupted {
            "asker" => (asker, listener),
            _ => (listener, asker),
        };
        kill(i32::try_from(first.id()).expect("a process id"), SIGINT);
        // What the other one says is read, so that it can end.
        let rest = std::thread::spawn(move || lines.map_while(Result::ok).collect::<Vec<_>>());
        finish(first).exits(4);
        finish(second).exits(other_code);
        rest.join().expect("it reads");
    }
}
