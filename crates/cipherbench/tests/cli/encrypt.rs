//! The encryptor as a service.

use crate::support::{Ended, Sandbox, end, finish, kill, namespaces, read_line, start};
use nix::sys::signal::SIGTERM;
use std::fs;
use std::process::{Child, Command};

/// Two networks joined by a link, `w0` at 192.0.2.1 and `w1` at 192.0.2.2, each with a gateway's
/// clear side: an address on the tunnel's interface.
pub(crate) struct Networks {
    pub(crate) sandbox: Sandbox,
    holders: [Child; 2],
}

/// Creates namespaces in which the current user is root, and keeps them. Without IPv6, whose router
/// solicitations would be counted too.
const HOLD: &str = "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; \
                    ip link set lo up && echo up && exec sleep 1000";

impl Networks {
    pub(crate) fn new() -> Self {
        let sandbox = Sandbox::new();
        end(&mut sandbox.program(&["keys", "static", "1.key", "2.key"])).exits(0);
        for (own, peer) in [(1, 2), (2, 1)] {
            sandbox.write(&format!("{own}.yaml"), &config(own, peer));
        }
        let mut first = start(&mut sandbox.script(&namespaces("--net"), HOLD));
        assert_eq!(read_line(&mut first), "up");
        // A second network in the same user namespace.
        let mut wrapper = enter(&first);
        wrapper.extend(["unshare", "--net"].map(str::to_owned));
        let words: Vec<_> = wrapper.iter().map(String::as_str).collect();
        let mut second = start(&mut sandbox.script(&words, HOLD));
        assert_eq!(read_line(&mut second), "up");
        let far = second.id();
        let networks = Self {
            sandbox,
            holders: [first, second],
        };
        let link = format!("ip link add w0 type veth peer name w1 netns {far}");
        end(&mut networks.script(1, &link)).exits(0);
        for (own, interface) in [(1, "w0"), (2, "w1")] {
            let up = format!(
                "ip address add 192.0.2.{own}/24 dev {interface} && ip link set {interface} up"
            );
            end(&mut networks.script(own, &up)).exits(0);
        }
        networks
    }

    /// Runs a script in one of the networks, 1 or 2.
    pub(crate) fn script(&self, network: usize, script: &str) -> Command {
        let wrapper = enter(&self.holders[network - 1]);
        let words: Vec<_> = wrapper.iter().map(String::as_str).collect();
        self.sandbox.script(&words, script)
    }

    fn encrypt(&self, network: usize, config: &str) -> Command {
        self.script(network, &format!("exec \"$0\" encrypt --config {config}"))
    }

    /// Starts a gateway and waits for its `ready` line.
    pub(crate) fn start_gateway(&self, network: usize) -> Child {
        let mut gateway = start(&mut self.encrypt(network, &format!("{network}.yaml")));
        let line = read_line(&mut gateway);
        assert!(
            line.starts_with("ready version=") && line.contains(" suite=aes-256-gcm "),
            "{line}"
        );
        gateway
    }

    /// A counter of a gateway, from its Prometheus endpoint.
    fn counter(&self, network: usize, name: &str) -> u64 {
        const GET: &str = "exec 3<>/dev/tcp/127.0.0.1/9464; \
            printf 'GET /metrics HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3; cat <&3";
        let text = end(&mut self.script(network, &format!("exec bash -c {GET:?}")))
            .exits(0)
            .stdout;
        let lines = text
            .lines()
            .filter(|line| line.starts_with(&format!("{name}{{")));
        lines
            .map(|line| {
                line.rsplit(' ')
                    .next()
                    .expect("a value")
                    .parse::<u64>()
                    .expect("a number")
            })
            .sum()
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        for holder in &mut self.holders {
            // Its namespaces end with it.
            holder.kill().expect("it is there");
            holder.wait().expect("a child can be waited for");
        }
    }
}

/// Enters the network of a process, and its user namespace, which an ordinary user needs.
fn enter(holder: &Child) -> Vec<String> {
    let target = holder.id().to_string();
    let mut words = vec!["nsenter", "--target", &target, "--net"];
    if !nix::unistd::geteuid().is_root() {
        words.extend(["--user", "--preserve-credentials"]);
    }
    words.into_iter().map(str::to_owned).collect()
}

fn config(own: u8, peer: u8) -> String {
    format!(
        "local: 192.0.2.{own}\nremote: 192.0.2.{peer}\nkeys: {{ static: {own}.key }}\n\
         tunnel: {{ address: 10.9.{own}.1/24, routes: [10.9.{peer}.0/24] }}\nmetrics: 127.0.0.1:9464\n"
    )
}

pub(crate) fn terminate(gateway: Child) -> Ended {
    kill(i32::try_from(gateway.id()).expect("a process id"), SIGTERM);
    finish(gateway)
}

pub(crate) fn networks_are_closed_and_opened_without_an_encryptor() {
    let networks = Networks::new();
    let state = |change: &str| {
        let script = format!(
            "\"$0\" encrypt {change} --config 1.yaml && nft list tables && ip route show type unreachable"
        );
        end(&mut networks.script(1, &script)).exits(0).stdout
    };
    for _ in 0..2 {
        let closed = state("--protect");
        assert!(closed.contains("table ip cipherbench-cb0"), "{closed}");
        assert!(closed.contains("unreachable 10.9.2.0/24"), "{closed}");
    }
    for _ in 0..2 {
        assert_eq!(state("--remove"), "");
    }
    let gateway = networks.start_gateway(1);
    let refused = end(&mut networks.script(1, "\"$0\" encrypt --remove --config 1.yaml"));
    refused.exits(3).says("the interface cb0 exists");
    terminate(gateway).exits(0);
    let both = end(&mut networks.script(1, "\"$0\" encrypt --remove --protect --config 1.yaml"));
    both.exits(2);
}

pub(crate) fn two_gateways_carry_a_ping_count_it_and_stop_cleanly() {
    let networks = Networks::new();
    let gateways = [1, 2].map(|network| networks.start_gateway(network));
    let ping = "ping -n -c 5 -i 0.01 -s 1200 -I 10.9.1.1 10.9.2.1";
    let ended = end(&mut networks.script(1, ping)).exits(0);
    assert!(ended.stdout.contains("5 received"), "{}", ended.stdout);
    for network in [1, 2] {
        let counter = |name: &str| networks.counter(network, &format!("cipherbench_{name}_total"));
        assert_eq!(counter("clear_rx_packets"), 5);
        assert_eq!(counter("clear_tx_packets"), 5);
        assert_eq!(counter("cipher_tx_packets"), 5);
        // Packets with which the peer tested its offloads at start arrived too, and were dropped
        // with a reason.
        assert_eq!(counter("cipher_rx_packets"), 5 + counter("dropped_packets"));
    }
    for gateway in gateways {
        let ended = terminate(gateway).exits(0);
        assert_eq!(ended.stderr, "");
    }
    for network in [1, 2] {
        let interfaces = end(&mut networks.script(network, "ip -o link"))
            .exits(0)
            .stdout;
        assert!(
            !interfaces.contains("cb0"),
            "the interface is left:\n{interfaces}"
        );
    }
}

/// Configurations and test of the chapter "Two hosts in five lines", word by word.
pub(crate) fn two_hosts_in_five_lines_reach_each_other_as_documented() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/encryptor.md");
    let docs = fs::read_to_string(docs).expect("the documentation");
    let chapter = docs.split("\n## Two hosts in five lines\n").nth(1);
    let chapter = chapter.and_then(|text| text.split("\n## ").next());
    let chapter = chapter.expect("the chapter");
    let blocks = |kind: &str| {
        let begins = format!("```{kind}\n");
        let blocks = chapter.split(&begins).skip(1);
        let blocks = blocks.filter_map(|text| text.split("```").next());
        blocks.map(str::to_owned).collect::<Vec<_>>()
    };
    let (configs, commands) = (blocks("yaml"), blocks("console"));
    let commands = commands
        .iter()
        .map(|block| block.trim().trim_start_matches("$ "));
    let [keys, ping] = commands
        .collect::<Vec<_>>()
        .try_into()
        .expect("two commands");
    let networks = Networks::new();
    let keys = keys.strip_prefix("cipherbench ").expect("our program");
    let words: Vec<_> = keys.split(' ').collect();
    end(&mut networks.sandbox.program(&words)).exits(0);
    assert_eq!(configs.len(), 2);
    let gateways = [1, 2].map(|network| {
        let name = format!("gw{network}.yaml");
        networks.sandbox.write(&name, &configs[network - 1]);
        let mut gateway = start(&mut networks.encrypt(network, &name));
        assert!(read_line(&mut gateway).starts_with("ready "));
        gateway
    });
    let ended = end(&mut networks.script(1, ping)).exits(0);
    assert!(ended.stdout.contains(" 0% packet loss"), "{}", ended.stdout);
    for gateway in gateways {
        terminate(gateway).exits(0);
    }
}

/// Both ends as `init gateway` makes them, each from its folder.
pub(crate) fn two_gateways_of_init_reach_each_other() {
    let networks = Networks::new();
    let flags = ["init", "gateway", "--peer", "192.0.2.2"];
    // The default for `--local` is this host's address towards the peer.
    let made = "exec \"$0\" init gateway --peer 192.0.2.2 --folder ends";
    end(&mut networks.script(1, made)).exits(0);
    end(&mut networks
        .sandbox
        .program(&[&flags[..], &["--local", "192.0.2.2"]].concat()))
    .exits(2)
    .says("address of both ends");
    let gateways = [1, 2].map(|network| {
        let config = format!("ends/gw{network}/gw{network}.yaml");
        let mut gateway = start(&mut networks.encrypt(network, &config));
        assert!(read_line(&mut gateway).starts_with("ready "));
        gateway
    });
    // The first answer may have to wait for the negotiation of keys.
    let ping = "ping -n -c 1 -w 30 10.9.0.2";
    end(&mut networks.script(1, ping)).exits(0);
    for gateway in gateways {
        terminate(gateway).exits(0);
    }
}

pub(crate) fn a_wrong_key_file_is_refused() {
    let networks = Networks::new();
    let sandbox = &networks.sandbox;
    let assert_refused = |words: &str| {
        end(&mut networks.encrypt(1, "1.yaml"))
            .exits(2)
            .says("error: ")
            .says(words);
    };
    sandbox.write("1.key", "not a key\n");
    assert_refused("1.key");
    fs::remove_file(sandbox.path("1.key")).expect("it is there");
    assert_refused("cipherbench keys static");
    sandbox.write(
        "1.yaml",
        "local: 192.0.2.1\nkeys: { static: 1.key }\ncolour: red\n",
    );
    assert_refused("colour");
}

pub(crate) fn an_address_in_use_is_refused() {
    let networks = Networks::new();
    let sandbox = &networks.sandbox;
    let first = networks.start_gateway(1);
    end(&mut sandbox.program(&["keys", "static", "3.key", "4.key"])).exits(0);
    // The same address and port, but its own keys, interface and networks.
    let third = config(1, 2)
        .replace("1.key", "3.key")
        .replace("10.9.", "10.8.");
    let third = third.replace("tunnel: { ", "tunnel: { name: cb3, ");
    sandbox.write("3.yaml", &third);
    let ended = end(&mut networks.encrypt(1, "3.yaml")).exits(3);
    ended.says("Address already in use").says("help: ");
    // The same for the port of the counters.
    let free_port = third.replace("local:", "port: 4600\nlocal:");
    sandbox.write("3.yaml", &free_port);
    end(&mut networks.encrypt(1, "3.yaml"))
        .exits(3)
        .says("metrics")
        .says("help: ");
    let interfaces = end(&mut networks.script(1, "ip -o link")).exits(0).stdout;
    assert!(
        interfaces.contains("cb0") && !interfaces.contains("cb3"),
        "{interfaces}"
    );
    terminate(first).exits(0);
}
