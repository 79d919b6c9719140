//! An independent peer: scapy opens what we seal, and we open what it seals, with ESN beyond 32 bits.

use super::*;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A Python process that runs `scapy_peer.py`.
struct Scapy {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Scapy {
    /// `None`, said loudly, where no Python here has scapy.
    fn start() -> Option<Self> {
        let has_scapy = |python: &&&str| {
            let probe = Command::new(python)
                .args(["-c", "import scapy.layers.ipsec"])
                .output();
            probe.is_ok_and(|output| output.status.success())
        };
        let Some(python) = ["python3", "/usr/bin/python3"].iter().find(has_scapy) else {
            eprintln!(
                "SKIPPED: interoperation with scapy: install python3-scapy and python3-cryptography"
            );
            return None;
        };
        let mut child = Command::new(python)
            .args(["-c", include_str!("scapy_peer.py")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let requests = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Some(Self {
            child,
            requests,
            answers,
        })
    }

    fn ask(&mut self, request: &str) -> Vec<u8> {
        writeln!(self.requests, "{request}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        let (pairs, rest) = answer.trim_end().as_bytes().as_chunks::<2>();
        assert!(
            !pairs.is_empty() && rest.is_empty(),
            "scapy refuses {request}"
        );
        let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        pairs.iter().map(byte).collect()
    }
}

impl Drop for Scapy {
    fn drop(&mut self) {
        // It has ended already if it refused something; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn scapy_opens_what_we_seal_and_we_open_what_it_seals() {
    let Some(mut scapy) = Scapy::start() else {
        return;
    };
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    for suite in Suite::AEADS {
        let key = hex(&[&secret(suite)[..], &SALT].concat());
        let (mut outbound, mut inbound) = pair(suite);
        for sequence in [
            1,
            2,
            0xffff_ffff,
            0x1_0000_0000,
            0x1_0000_0001,
            0x7_1234_5678,
        ] {
            let (high, low) = (sequence >> 32, sequence as u32);
            outbound.skip_to(sequence);
            let packet = seal(&mut outbound, INNER, 4);
            let inner = scapy.ask(&format!("open {suite} {key} {SPI} {high} {}", hex(&packet)));
            assert_eq!(inner, INNER, "{suite} {sequence:#x}");

            if low == 0 {
                continue; // scapy takes 0 for "not given"
            }
            let request = format!("seal {suite} {key} {SPI} {high} {low} {}", hex(INNER));
            let mut packet = scapy.ask(&request);
            inbound.skip_to(sequence);
            let opened = inbound.open(&mut packet).unwrap();
            assert_eq!(packet[opened.inner], *INNER, "{suite} {sequence:#x}");
            assert_eq!(opened.next_header, 4);
        }
    }
}
