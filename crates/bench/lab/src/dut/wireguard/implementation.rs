//! The WireGuard programs: path, arguments, version, and how to install them.

use super::tool::TOOL_LIMIT;
use crate::dut::Site;
use crate::dut::daemon::did_not_come_up;
use crate::programs::{self, how_to_get, of_wireguard};
use plan::WireGuardProgram;
use std::collections::BTreeMap;
use testbed::protocol::Program;
use testbed::{LabError, Node, Result};
use wire::Suite;

/// One of the programs.
pub(super) struct Implementation {
    program: WireGuardProgram,
    /// Name of the program in user space; `None` for the kernel's.
    userspace: Option<&'static str>,
    /// Its arguments before the interface's name.
    options: &'static [&'static str],
}

/// Returns a program's path on a node; its name if it is missing, for the error.
fn command(node: &dyn Node, name: &str) -> Result<String> {
    // Searched on the node: another host may have it elsewhere.
    Ok(node.locate(name)?.unwrap_or_else(|| name.to_owned()))
}

impl Implementation {
    pub(super) fn of(program: WireGuardProgram) -> Self {
        let options: &[_] = match program {
            WireGuardProgram::Kernel => &[],
            WireGuardProgram::Go => &["-f"],
            WireGuardProgram::Boringtun => &["-f", "--disable-drop-privileges", "-t", "1"],
            WireGuardProgram::Gotatun => &["-f", "--disable-drop-privileges", "-v", "error"],
        };
        Self {
            program,
            userspace: of_wireguard(program),
            options,
        }
    }

    /// Whether it is the kernel's, which has no process.
    pub(super) const fn is_kernel(&self) -> bool {
        self.userspace.is_none()
    }

    /// Returns the command that starts the program in the foreground on a node; `None` for the
    /// kernel's.
    pub(super) fn argv(
        &self,
        site: &Site<'_>,
        node: &dyn Node,
        interface: &str,
    ) -> Result<Option<Vec<String>>> {
        let Some(name) = self.userspace else {
            return Ok(None);
        };
        let mut argv = vec![command(node, site.program(node, name))?];
        let options = self.options.iter().chain([&interface]);
        argv.extend(options.map(|word| (*word).to_owned()));
        Ok(Some(argv))
    }

    /// Returns program, version, suite and options.
    pub(super) fn facts(
        &self,
        site: &Site<'_>,
        node: &dyn Node,
    ) -> Result<BTreeMap<String, String>> {
        let ask = match self.userspace {
            Some(name) => {
                let program = command(node, site.program(node, name))?;
                site.command(node, vec![program, "--version".to_owned()])
            }
            None => Program::new(["uname", "-r"]),
        };
        // A program that is missing fails here, with how to install it.
        let ended = node.run(ask, TOOL_LIMIT);
        let printed = ended.map_err(|error| self.explain(site.dut, error))?.stdout;
        let facts = [
            ("program", self.program.name().to_owned()),
            ("version", version(&printed).to_owned()),
            ("suite", Suite::ChaCha20Poly1305.name().to_owned()),
            ("options", self.options.join(" ")),
        ];
        let known = facts.into_iter().filter(|(_, value)| !value.is_empty());
        Ok(known
            .map(|(name, value)| (name.to_owned(), value))
            .collect())
    }

    /// Names the missing requirement and how to install it, if that is why it did not start.
    pub(super) fn explain(&self, dut: &str, error: LabError) -> LabError {
        error.into_dut(dut, |node, reason| match self.userspace {
            Some(name) if reason.contains(programs::MISSING) => format!(
                "needs the program `{name}`, which is not here\nhelp: {}",
                how_to_get(name)
            ),
            None if is_unknown_type(reason) => format!(
                "needs a kernel with WireGuard, which this is not ({node}: {reason})\n\
                 help: sudo modprobe wireguard (Linux 5.6 or newer); or take one in user \
                 space: wireguard-go, boringtun or gotatun"
            ),
            _ => did_not_come_up(node, reason),
        })
    }
}

/// Whether `ip` reports an unknown interface type, in the words of newer or older versions.
fn is_unknown_type(reason: &str) -> bool {
    ["Unknown device type", "not supported"]
        .iter()
        .any(|words| reason.contains(words))
}

/// The version in the first line: `boringtun 0.7.1`, `wireguard-go v0.0.20250522`.
fn version(printed: &str) -> &str {
    let last = printed
        .lines()
        .next()
        .and_then(|line| line.split_ascii_whitespace().last());
    last.map_or("", |word| word.strip_prefix('v').unwrap_or(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_last_word_of_the_first_line() {
        let printed = [
            ("boringtun 0.7.1\n", "0.7.1"),
            (
                "wireguard-go v0.0.20250522\n\nUserspace WireGuard daemon\n",
                "0.0.20250522",
            ),
            ("gotatun-cli 0.10.2\n", "0.10.2"),
            ("6.1.0-37-amd64\n", "6.1.0-37-amd64"),
            ("", ""),
        ];
        for (text, expected) in printed {
            assert_eq!(version(text), expected);
        }
    }

    #[test]
    fn a_missing_program_is_reported_with_how_to_install_it() {
        let boringtun = Implementation::of(WireGuardProgram::Boringtun);
        let error = LabError::Node {
            node: "gw1",
            reason: programs::error("boringtun-cli"),
        };
        let text = boringtun.explain("wg", error).to_string();
        assert!(text.contains("needs the program `"), "{text}");
        assert!(text.contains("or cargo install boringtun-cli"), "{text}");
        assert!(text.ends_with("name its path in BORINGTUN"), "{text}");
    }

    #[test]
    fn a_kernel_without_wireguard_is_reported_with_what_to_do() {
        let kernel = Implementation::of(WireGuardProgram::Kernel);
        for said in [
            "Error: Unknown device type.",
            "RTNETLINK answers: Operation not supported",
        ] {
            let error = LabError::Node {
                node: "gw1",
                reason: said.to_owned(),
            };
            let text = kernel.explain("wg", error).to_string();
            assert!(
                text.contains(said) && text.contains("\nhelp: sudo modprobe wireguard"),
                "{text}"
            );
        }
    }
}
