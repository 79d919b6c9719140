//! The installed programs, with the versions that they report.

use crate::programs::{KNOWN, find, search_path};
use crate::sync::Deadline;
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// An installed program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The version that it reports; `?` if it reports none.
    pub version: String,
    /// Its path.
    pub path: PathBuf,
}

/// A user and a group without rights.
const NOBODY: u32 = 65_534;
/// Time limit of one tool.
const LIMIT: Duration = Duration::from_secs(5);

/// Returns the installed programs that campaigns may need, by name. Asks all concurrently.
pub(super) fn installed() -> BTreeMap<String, Installed> {
    thread::scope(|scope| {
        let found = KNOWN
            .iter()
            .filter_map(|known| Some((known, find(known.name)?)));
        let pending: Vec<_> = found
            .map(|(known, path)| {
                let asked = path.clone();
                let version = scope.spawn(move || version(&asked, known.version));
                (known.name.to_owned(), path, version)
            })
            .collect();
        let installed = pending.into_iter().map(|(name, path, version)| {
            let version = crate::dut::join(version).unwrap_or_else(|| "?".to_owned());
            (name, Installed { version, path })
        });
        installed.collect()
    })
}

/// Returns the version of a program; `None` if it reports none. VLC reports none to root.
fn version(program: &Path, argument: &str) -> Option<String> {
    let mut command = Command::new(program);
    command.arg(argument);
    version_by(&mut command).or_else(|| version_by(command.uid(NOBODY).gid(NOBODY)))
}

fn version_by(command: &mut Command) -> Option<String> {
    let mut child = command
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
            return None;
        }
        thread::sleep(Duration::from_millis(2));
    }
    // Some print it on standard error, and some print a warning there first.
    let mut text = String::new();
    let _ = child.stdout.take()?.read_to_string(&mut text);
    let _ = child.stderr.take()?.read_to_string(&mut text);
    find_version(&text).map(str::to_owned)
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
            assert_eq!(version(Path::new(program), "-v"), None, "{program}");
        }
    }
}
