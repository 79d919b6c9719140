//! Version output of programs.

use super::search_path;
use crate::own_children::OwnChild;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A user and a group without rights.
const NOBODY: u32 = 65_534;
/// Most bytes of a program's output that are read.
const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// Time limit of one program.
const LIMIT: Duration = Duration::from_secs(5);

/// Returns a program's output for this argument; `None` if it contains no version. Retries without
/// root's rights, as VLC reports none to root.
pub(crate) fn said_of_itself(program: &Path, argument: &str) -> Option<String> {
    let mut command = Command::new(program);
    command.arg(argument);
    // Another user can be taken by root alone: for anyone else the second attempt fails at its
    // start.
    said_by(&mut command).or_else(|| said_by(command.uid(NOBODY).gid(NOBODY)))
}

fn said_by(command: &mut Command) -> Option<String> {
    command.env("PATH", search_path()).env("LC_ALL", "C");
    let _own = OwnChild::expect();
    let ended = guard::output_within(command, OUTPUT_BYTES_MAX, LIMIT).ok()?;
    // Some print it on standard error, and some print a warning there first.
    let said = [ended.stdout, ended.stderr].concat();
    let text = String::from_utf8_lossy(&said).into_owned();
    find_version(&text).is_some().then_some(text)
}

/// Returns the first word, or part of a word after `-` or `/`, that begins with a digit, or with
/// `v` and a digit.
pub(crate) fn find_version(text: &str) -> Option<&str> {
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
            ("Linux strongSwan 5.9.8\n", "5.9.8"),
            (
                "wireguard-tools v1.0.20210914 - https://x\n",
                "1.0.20210914",
            ),
            ("wireguard-go v0.0.20250522\n\nUserspace\n", "0.0.20250522"),
            ("OpenSSL 3.0.22 25 Aug 2026\n", "3.0.22"),
            (
                "OpenVPN 2.6.14 x86_64-pc-linux-gnu [SSL (OpenSSL)]\n",
                "2.6.14",
            ),
            ("ping from iputils 20221126\nlibcap: yes\n", "20221126"),
            ("strongSwan 5.9.8 swanctl\nusage:\n", "5.9.8"),
            ("2.6.1\n", "2.6.1"),
        ] {
            assert_eq!(find_version(text), Some(version), "{text}");
        }
        assert_eq!(find_version("no number"), None);
    }

    #[test]
    fn a_program_that_reports_none_or_cannot_be_started_has_no_version() {
        for program in ["/nonexistent/tool", "/bin/true"] {
            assert_eq!(said_of_itself(Path::new(program), "-v"), None, "{program}");
        }
    }
}
