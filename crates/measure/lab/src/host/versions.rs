//! Versions of the tools, as they report them.

use crate::sync::Deadline;
use crate::tools::search_path;
use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Tools with the argument that makes them print their version.
const TOOLS: &[(&str, &str)] = &[
    ("bridge", "-V"),
    ("ethtool", "--version"),
    ("ip", "-V"),
    ("iperf", "-v"),
    ("iperf3", "--version"),
    ("nft", "--version"),
    ("nginx", "-v"),
    ("openssl", "version"),
    ("openvpn", "--version"),
    ("ping", "-V"),
    // `--version` asks the daemon.
    ("swanctl", "--help"),
    ("tc", "-V"),
    ("tcpdump", "--version"),
    ("tshark", "--version"),
];

/// Time limit of one tool.
const LIMIT: Duration = Duration::from_secs(5);

/// Returns the installed tools with their versions. Starts all concurrently.
pub(super) fn tools() -> BTreeMap<String, String> {
    thread::scope(|scope| {
        let pending: Vec<_> = TOOLS
            .iter()
            .map(|(tool, argument)| (*tool, scope.spawn(|| version(tool, argument))))
            .collect();
        let found = pending
            .into_iter()
            .filter_map(|(tool, version)| Some((tool.to_owned(), crate::dut::join(version)?)));
        found.collect()
    })
}

/// Returns the version of a tool; `?` if it is installed but reports none; `None` if it is not
/// installed.
fn version(tool: &str, argument: &str) -> Option<String> {
    let mut child = Command::new(tool)
        .arg(argument)
        .env("PATH", search_path())
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let deadline = Deadline::after(LIMIT);
    // Their output is far smaller than a pipe.
    while matches!(child.try_wait(), Ok(None)) {
        if deadline.is_over() {
            let _ = child.kill();
            let _ = child.wait();
            return Some("?".to_owned());
        }
        thread::sleep(Duration::from_millis(2));
    }
    // Some print it on standard error, and some print a warning there first.
    let mut text = String::new();
    let _ = child.stdout.take()?.read_to_string(&mut text);
    let _ = child.stderr.take()?.read_to_string(&mut text);
    Some(find_version(&text).unwrap_or("?").to_owned())
}

/// Returns the first word, or part of a word after `-` or `/`, that begins with a digit, or with
/// `v` and a digit.
fn find_version(text: &str) -> Option<&str> {
    let words = text.split(|c: char| c.is_whitespace() || "-/,()".contains(c));
    words
        .map(|word| word.strip_prefix('v').unwrap_or(word))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_version_in_what_each_tool_prints() {
        for (text, version) in [
            ("ethtool version 6.1\n", "6.1"),
            ("ip utility, iproute2-6.1.0, libbpf 1.1.2\n", "6.1.0"),
            ("iperf version 2.1.8 (12 August 2022) pthreads\n", "2.1.8"),
            ("iperf 3.12 (cJSON 1.7.15)\nLinux vm 6.18.44\n", "3.12"),
            ("nftables v1.0.6 (Lester Gooch #5)\n", "1.0.6"),
            ("nginx version: nginx/1.22.1\n", "1.22.1"),
            ("OpenSSL 3.0.22 25 Aug 2026\n", "3.0.22"),
            (
                "OpenVPN 2.6.14 x86_64-pc-linux-gnu [SSL (OpenSSL)]\n",
                "2.6.14",
            ),
            ("ping from iputils 20221126\nlibcap: yes\n", "20221126"),
            ("strongSwan 5.9.8 swanctl\nusage:\n", "5.9.8"),
            ("tcpdump version 4.99.3\nlibpcap version 1.10.3\n", "4.99.3"),
            ("TShark (Wireshark) 4.0.17 (Git v4.0.17)\n", "4.0.17"),
        ] {
            assert_eq!(find_version(text), Some(version), "{text}");
        }
        assert_eq!(find_version("no number"), None);
    }

    #[test]
    fn a_tool_that_is_not_there_has_no_version() {
        assert_eq!(version("cipherbench-no-such-tool", "-v"), None);
        assert_eq!(version("true", "-v").as_deref(), Some("?"));
    }
}
