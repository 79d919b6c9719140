//! One gateway alone between two hosts, of which station B is the IPsec peer.
//!
//! The hosts have a cable of their own, over which their clocks are compared.
//!
//! ```text
//!  left                                               right
//!  .---------.           .-----------.            .---------.
//!  | rack0   |── eth0 ───|  gateway  |─── wan ────|   rack0 |
//!  | cable0  |────────── '-----------' ───────────|  cable0 |
//!  '---------'                                    '---------'
//! ```

use super::clocks::{AHEAD_S, timed_by_two_clocks};
use super::{Hosts, PROGRAM, Place, check, measured};
use crate::support::{Sandbox, end};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const CHARON: &str = "/usr/lib/ipsec/charon";

const SWANCTL: &str = include_str!("../../../../bench/trial/tests/lab/external/box.swanctl.conf");
const STRONGSWAN: &str =
    include_str!("../../../../bench/trial/tests/lab/external/box.strongswan.conf");

/// The gateway: `up MTU CIPHER_MTU SUITE_WORD [anew]` and `down`. It needs an address of its own
/// behind the tunnel, packets for which it passes on all the same. With `anew` it ends its IKE SA
/// every second and makes another one.
const SCRIPT: &str = r#"#!/bin/sh
set -e
folder=FOLDER
if [ $1 = down ]; then
  pid=$(cat $folder/box.pid); kill $pid; while kill -0 $pid 2>&-; do sleep 0.01; done
  ip rule del pref 1; ip rule del pref 0; ip rule add pref 0 lookup local
  ip address flush dev eth0; ip address flush dev wan
  exit
fi
ip link set lo up
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.disable_ipv6=1
ip address replace 10.1.0.1/24 dev eth0; ip link set eth0 mtu $2 up
ip address replace 192.0.2.1/24 dev wan; ip link set wan mtu $3 up
ip route replace 198.18.0.0/16 via 10.1.0.2
for port in eth0 wan; do ethtool -K $port tso off gso off tx-udp-segmentation off; done
ip address replace 198.18.255.254/32 dev lo
ip rule del pref 0; ip rule add pref 1 lookup local; ip rule add pref 0 to 198.18.0.0/16 lookup main
anew='mobike = no'; [ "$5" != anew ] || anew='mobike = no\n reauth_time = 1s\n rand_time = 0\n over_time = 1h'
sed "s/{suite_word}/$4/; s/mobike = no/$anew/" $folder/box.swanctl.in > $folder/box.swanctl.conf
rm -f $folder/box.vici
STRONGSWAN_CONF=$folder/box.strongswan.conf CHARON > $folder/box.log 2>&1 & echo $! > $folder/box.pid
until grep -q 'JOB. spawning' $folder/box.log
do kill -0 $! || { cat $folder/box.log >&2; exit 1; }; sleep 0.01; done
swanctl --load-all --noprompt --file $folder/box.swanctl.conf --uri unix://$folder/box.vici
ip link set ipsec0 mtu 1400 txqueuelen 5000 up
ip route replace 198.19.0.0/16 dev ipsec0 metric 1
"#;

/// Writes the gateway's files.
fn write_box(sandbox: &Sandbox) {
    let folder = sandbox.path("").display().to_string();
    let swanctl = SWANCTL
        .replace("SELECTORS_A", "198.18.0.0/16")
        .replace("SELECTORS_B", "198.19.0.0/16");
    sandbox.write("box.swanctl.in", &swanctl);
    sandbox.write(
        "box.strongswan.conf",
        &STRONGSWAN.replace("FOLDER", &folder),
    );
    let script = SCRIPT.replace("FOLDER", &folder).replace("CHARON", CHARON);
    sandbox.write("box.sh", &script);
    sandbox.write("psk", "a secret of the test\n");
    for (name, mode) in [("box.sh", 0o755), ("psk", 0o600)] {
        fs::set_permissions(sandbox.path(name), Permissions::from_mode(mode)).expect("a file");
    }
}

fn campaign(sandbox: &Sandbox, gateway: &Place) -> String {
    let (folder, pid) = (sandbox.path(""), gateway.pid());
    let folder = folder.display();
    let device = |name: &str, option: &str| {
        format!(
            "  - external:
      name: {name}
      form: esp
      suite: aes-256-gcm
      suite_words: {{ aes-256-gcm: aes256gcm16 }}
      gateway:
        psk_file: {folder}/psk
        own_id: bench.example
        box_id: edge.example
        ike: aes256-sha256-modp2048
      boxes:
        - via: nsenter -t {pid} -n -m sh -c
          up: {folder}/box.sh up {{mtu}} {{cipher_mtu}} {{suite_word}} {option}
          down: {folder}/box.sh down
"
        )
    };
    let devices = [device("edge", ""), device("anew", "anew")].concat();
    format!(
        "campaign: gateway
repeats: 1
duts:
{devices}trials:
  - load: {{ frame: 512 B, rate: 200 frames/s, duration: 1 s, direction: [encrypt, decrypt] }}
"
    )
}

pub(crate) fn one_gateway_alone_is_measured_between_two_hosts_of_two_clocks() {
    if !Path::new(CHARON).exists() {
        eprintln!("SKIPPED: {CHARON} is not installed: sudo apt install strongswan-charon");
        return;
    }
    let sandbox = Sandbox::new();
    let hosts = Hosts::with(&sandbox, &["--time", "--monotonic", AHEAD_S]);
    let gateway = Place::new(&sandbox, &[]);
    for (host, port) in hosts.hosts.iter().zip(["eth0", "wan"]) {
        let pid = gateway.pid();
        host.run(&format!(
            "ip link add rack0 type veth peer name {port} netns {pid}; ethtool -K rack0 tx off"
        ));
    }
    write_box(&sandbox);
    let external = "external: { station_a: rack0, station_b: rack0 }\n";
    let lab = hosts.lab(&sandbox, &format!(", program: {PROGRAM}"));
    sandbox.write("lab.yaml", &format!("{lab}cipher_mtu: 1480 B\n{external}"));
    let campaign = campaign(&sandbox, &gateway);
    end(&mut hosts.run(&sandbox, &campaign));
    let measured = measured(&sandbox);
    assert_eq!(measured.len(), 4);
    for ((cell, _), measured) in &measured {
        for name in ["station-is-peer", "path-unchanged"] {
            let check = check(measured, name).expect("the check");
            assert_eq!(check["passed"], true, "{cell}: {check}");
        }
        // What is lost while there is no SA is the device's.
        if cell.contains("anew") {
            continue;
        }
        for trial in measured["frames"]["trials"].as_array().expect("trials") {
            assert_eq!(trial["received"], trial["sent"], "{cell}: {trial}");
        }
    }
    // The sender of the first direction is on the one host, of the second on the other.
    assert_eq!(timed_by_two_clocks(&sandbox).len(), 4);
    hosts.assert_free(&sandbox);

    // Without a cable nothing tells how the clocks differ.
    let apart = hosts.lab_of_boxes(&sandbox, "{ station_a: rack0, station_b: rack0 }");
    sandbox.write("lab.yaml", &apart);
    let refused = end(&mut hosts.run(&sandbox, &campaign)).exits(2);
    refused
        .says("`edge` is one gateway, which no frame passes in clear")
        .says("write the `interface` of both hosts");
}
