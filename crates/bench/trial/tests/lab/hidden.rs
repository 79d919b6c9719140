//! Sabotage of the link between the gateways, of packets against the load, and of the kernels'
//! parameters: text that hides, packets that are added, doubled or damaged. None may leave a plain
//! number.

use crate::sabotage::{
    MS, expect, expect_change, expect_clear_text_inside, frames_for_a_while, run_in, sabotaged,
    sabotaged_at, sabotaged_in, tcp,
};
use crate::trials::{cell, encrypting};
use plan::{Adapter, Measurement, Tool, TransferDirection};
use std::process::Command;
use std::time::Duration;
use testbed::NodeId;

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 7] = [
    (
        "a_socket_buffer_limit_that_is_set_in_mid_trial",
        a_socket_buffer_limit_that_is_set_in_mid_trial,
    ),
    (
        "text_at_the_tail_of_one_packet_in_the_form_of_esp",
        text_at_the_tail_of_one_packet_in_the_form_of_esp,
    ),
    (
        "text_in_one_arp_frame_of_the_stations_own_size",
        text_in_one_arp_frame_of_the_stations_own_size,
    ),
    (
        "text_under_a_constant_in_the_form_of_esp",
        text_under_a_constant_in_the_form_of_esp,
    ),
    (
        "extra_and_doubled_packets_in_the_form_of_esp",
        extra_and_doubled_packets_in_the_form_of_esp,
    ),
    (
        "packets_against_the_load_of_a_frame_trial",
        packets_against_the_load_of_a_frame_trial,
    ),
    (
        "damage_between_the_gateways_is_not_the_devices_loss",
        damage_between_the_gateways_is_not_the_devices_loss,
    ),
];

fn a_socket_buffer_limit_that_is_set_in_mid_trial() {
    const LIMITS: &str = "net.ipv4.tcp_rmem";
    let cell = cell(Adapter::Direct, 1, true, tcp());
    let set = |limits: &str, station| run_in_words(station, &["sysctl", "-w", limits]);
    let reasons = sabotaged_at(NodeId::B, &cell, move |station| {
        set(&format!("{LIMITS}=4096 8192 16384"), station);
    });
    expect_change(
        &reasons,
        &["after ", " b net.ipv4.tcp_rmem 4096 8192 16384, was "],
    );
    // Set back before the end, only the kernel's report shows it.
    let reasons = sabotaged_at(NodeId::A, &cell, move |station| {
        let was = run_in(station, &format!("sysctl -n {LIMITS}"));
        set(&format!("{LIMITS}=4096 8192 16384"), station);
        std::thread::sleep(Duration::from_millis(100));
        set(&format!("{LIMITS}={}", was.trim()), station);
    });
    expect_change(
        &reasons,
        &[
            " a net.ipv4.tcp_rmem 4096 8192 16384, was ",
            ", was 4096 8192 16384",
        ],
    );
}

/// As [`run_in`], of words with spaces in them.
fn run_in_words(pid: u32, words: &[&str]) -> String {
    let mut command = Command::new("nsenter");
    command.args(["-t", &pid.to_string(), "-n"]).args(words);
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn python(pid: u32, script: &str) {
    run_in_words(pid, &["/usr/bin/python3", "-c", script]);
}

/// Sends one packet of noise in the form of ESP, with an SPI that nobody uses, and the stations'
/// text behind it.
const TAIL: &str = "\
import os, socket
packet = bytes.fromhex('c0ffee0100000001') + os.urandom(900) + b'0123456789' * 4
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(packet, ('192.0.2.2', 4500))
";

fn text_at_the_tail_of_one_packet_in_the_form_of_esp() {
    let reasons = sabotaged(encrypting(), |gateway| python(gateway, TAIL));
    expect_clear_text_inside(&reasons);
    expect(&reasons, "no-foreign-frames", &[": 1 frames between"]);
}

/// Sends one ARP frame with text behind the packet.
const ARP: &str = "\
import socket
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
sender.bind(('w0', 0))
arp = bytes.fromhex('0001080006040001' + '02cb000000c0' + 'c0000201' + '00' * 6 + 'c0000202')
sender.send(bytes.fromhex('ff' * 6) + bytes.fromhex('02cb000000c00806') + arp + b'0123456789' * 40)
";

fn text_in_one_arp_frame_of_the_stations_own_size() {
    let reasons = sabotaged(encrypting(), |gateway| python(gateway, ARP));
    expect(
        &reasons,
        "no-foreign-frames",
        &[
            ": 1 frames between",
            "EtherType 0x0806, 442 B",
            "1 of the first",
        ],
    );
}

/// Sends packets in the form of ESP for three seconds: digits under a constant, in any phase.
const HIDDEN: &str = "\
import os, socket, time
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
text = bytes(byte ^ 0x5a for byte in b'0123456789' * 102)
end, number = time.monotonic() + 3, 0
while time.monotonic() < end:
    number += 1
    hidden = text[number % 10:][:992]
    sender.sendto(bytes.fromhex('00001000') + number.to_bytes(4, 'big') + os.urandom(16) + hidden, ('192.0.2.2', 4500))
";

fn text_under_a_constant_in_the_form_of_esp() {
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
    let reasons = sabotaged_in(&cell, |gateway| python(gateway, HIDDEN));
    expect(&reasons, "sealed-looks-random", &[" were there before"]);
}

/// Sends so many packets of noise in the form of ESP, with the SPI of the first tunnel.
const EXTRA: &str = "\
import os, socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(89):
    sender.sendto(bytes.fromhex('SPI') + os.urandom(600), ('192.0.2.2', 4500))
";

/// Sends four hundred of the sealed packets that leave again.
const DOUBLED: &str = "\
import socket
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
link.bind(('w0', 3))
sent = 0
while sent < 400:
    frame, end = link.recvfrom(65536)
    if end[2] == 4 and frame[23] == 17:
        link.send(frame)
        sent += 1
";

fn extra_and_doubled_packets_in_the_form_of_esp() {
    let cell = frames_for_a_while(encrypting());
    // A valid SPI: gw2 counts the packets as received, and refuses them only when it opens them.
    let extra = EXTRA.replace("SPI", &format!("{:08x}", keying::spi_of(1, 0)));
    let reasons = sabotaged_in(&cell, move |gateway| python(gateway, &extra));
    // A busy machine may lose as many: then it is the link that carried more.
    expect(&reasons, "sealed-as-sent", &[" more than gw1 se"]);
    let reasons = sabotaged_in(&cell, |gateway| python(gateway, DOUBLED));
    expect(&reasons, "sealed-as-sent", &[" more than gw1 se"]);
}

/// Sends packets from B to A, through the tunnel.
const BACK: &str = "\
import socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(3000):
    try:
        sender.sendto(b'x' * 100, ('10.1.0.2', 9))
    except OSError:
        pass
";

/// Sends broadcasts of ARP from B.
const BROADCASTS: &str = "\
import socket
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
sender.bind(('b0', 0))
arp = bytes.fromhex('0001080006040001' + '02cb000000b0' + '0a020002' + '00' * 6 + '0a020063')
for _ in range(3000):
    sender.send(bytes.fromhex('ff' * 6) + bytes.fromhex('02cb000000b00806') + arp)
";

fn packets_against_the_load_of_a_frame_trial() {
    for adapter in [encrypting(), Adapter::Direct] {
        let cell = frames_for_a_while(adapter);
        let reasons = sabotaged_at(NodeId::B, &cell, |station| python(station, BACK));
        // About 3000 packets, with a few that the kernels send by themselves.
        for what in [
            "a/a0 received 30",
            "b/b0 sent 30",
            " packets, against the load, of 0 to ",
        ] {
            expect(&reasons, "links-carried-the-load", &[what]);
        }
    }
    let cell = frames_for_a_while(encrypting());
    let reasons = sabotaged_at(NodeId::B, &cell, |station| python(station, BROADCASTS));
    expect(
        &reasons,
        "links-carried-the-load",
        &["b/b0 sent 30", ", against the load"],
    );
}

fn damage_between_the_gateways_is_not_the_devices_loss() {
    let cell = frames_for_a_while(encrypting());
    let reasons = sabotaged_at(NodeId::Gw2, &cell, |gateway| {
        // At the ingress of w1, before the gateway's kernel sees the packet: one of twenty gets
        // other bytes behind the ESP header.
        let rules = "add table netdev sabotage\n\
            add chain netdev sabotage damage { type filter hook ingress device w1 priority 0; }\n\
            add rule netdev sabotage damage numgen random mod 20 == 0 @th,256,32 set 0x12345678\n";
        run_in_words(gateway, &["nft", rules]);
    });
    expect(
        &reasons,
        "sealed-as-sent",
        &["gw2 refused ", " as damaged or made up"],
    );
}
