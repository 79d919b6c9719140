//! Shared code of the tests with other programs: requests to a peer.

use super::*;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// What both ends of an SA have agreed on, beside the keys of [`keymat`].
pub(super) type Sa = (Suite, SequenceNumbers);

/// A Python process that runs `scapy_peer.py`.
pub(super) struct Scapy {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Scapy {
    /// `None`, with a printed note, where no Python has scapy with its ciphers.
    pub(super) fn start() -> Option<Self> {
        let has_scapy = |python: &&&str| {
            let probe = Command::new(python)
                .args(["-c", "import scapy.layers.ipsec, cryptography"])
                .output();
            probe.is_ok_and(|output| output.status.success())
        };
        // `scripts/setup.sh test` installs it for the first.
        let Some(python) = ["/usr/bin/python3", "python3"].iter().find(has_scapy) else {
            testing::lacks(
                "interoperation with scapy",
                "scapy with its ciphers",
                "apt install python3-scapy python3-cryptography",
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

    /// The inner packet of an ESP packet that we sealed.
    pub(super) fn open(&mut self, sa: Sa, sequence: u64, packet: &[u8]) -> Vec<u8> {
        self.ask("open", sa, sequence, &hex(packet))
    }

    /// An ESP packet for us to open.
    pub(super) fn seal(&mut self, sa: Sa, sequence: u64, iv: &[u8], inner: &[u8]) -> Vec<u8> {
        let low = sequence as u32;
        let rest = format!("{low} {} {}", hex(iv), hex(inner));
        self.ask("seal", sa, sequence, &rest)
    }

    fn ask(&mut self, verb: &str, (suite, numbers): Sa, sequence: u64, rest: &str) -> Vec<u8> {
        let (keymat, key_bytes) = (hex(&keymat(suite)), suite.key_bytes());
        let high = match numbers {
            SequenceNumbers::Extended => (sequence >> 32).to_string(),
            SequenceNumbers::Short => "-".to_owned(),
        };
        let request = format!("{verb} {suite} {keymat} {key_bytes} {SPI} {high} {rest}");
        writeln!(self.requests, "{request}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        assert!(!answer.trim().is_empty(), "scapy refuses {request}");
        bytes(answer.trim_end())
    }
}

impl Drop for Scapy {
    fn drop(&mut self) {
        // After a refusal it has already exited, and killing it fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Hexadecimal; `-` for none.
pub(super) fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "-".to_owned();
    }
    base16ct::lower::encode_string(bytes)
}

/// The inverse of [`hex`].
pub(super) fn bytes(hex: &str) -> Vec<u8> {
    if hex == "-" {
        return Vec::new();
    }
    base16ct::mixed::decode_vec(hex).unwrap_or_else(|error| panic!("{error}: {hex}"))
}
