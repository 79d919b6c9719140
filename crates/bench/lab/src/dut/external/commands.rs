//! Commands for boxes: filled in, and run on the host.

use super::super::Site;
use super::running::{Outcome, run_on_host};
use super::{answers, firmware};
use crate::cables::Outside;
use crate::topology::Side;
use plan::{self, ExternalBox, Placeholder, fill_in};
use std::time::Duration;
use testbed::protocol::{Ended, Program, Request, Response, millis};
use testbed::{Interrupt, LabError, Node, NodeId, Result};

/// Runs the commands for the boxes of one DUT on the host.
pub(super) struct CommandRunner<'a> {
    site: &'a Site<'a>,
    pub(super) outside: &'a Outside,
    plan: &'a plan::External,
}

impl<'a> CommandRunner<'a> {
    pub(super) const fn new(
        site: &'a Site<'a>,
        outside: &'a Outside,
        plan: &'a plan::External,
    ) -> Self {
        Self {
            site,
            outside,
            plan,
        }
    }

    /// Returns the output of a command that must succeed; stops when the run is interrupted.
    pub(super) fn run(&self, id: NodeId, via: &[String], command: &str) -> Result<String> {
        self.carry_out(id, via, command, Some(&self.outside.interrupt))
    }

    /// Runs a required command to its end even when the run is interrupted.
    pub(super) fn run_to_the_end(&self, id: NodeId, via: &[String], command: &str) -> Result<()> {
        self.carry_out(id, via, command, None).map(drop)
    }

    /// Hands the teardown commands of these boxes to the host, which runs them if this run is
    /// killed.
    pub(super) fn leave_behind<'b>(
        &self,
        boxes: impl Iterator<Item = (NodeId, &'b ExternalBox)>,
    ) -> Result<()> {
        let mut programs = Vec::new();
        for (_, its) in boxes {
            for command in &its.down {
                programs.push(self.program(&its.via, command)?);
            }
        }
        let mut limit = self.limit();
        if let Some((program, its)) = firmware::way_back(self.outside) {
            programs.push(program);
            limit = limit.max(its);
        }
        let limit_ms = millis(limit);
        match self
            .outside
            .host
            .call(Request::AtEnd { programs, limit_ms })?
        {
            Response::Noted => Ok(()),
            other => Err((&self.outside.host as &dyn Node).unexpected(&other)),
        }
    }

    fn carry_out(
        &self,
        id: NodeId,
        via: &[String],
        command: &str,
        interrupt: Option<&Interrupt>,
    ) -> Result<String> {
        let host: &dyn Node = &self.outside.host;
        let limit = self.limit();
        let program = self.program(via, command)?;
        let words = match via {
            [] => program.argv[2].clone(),
            _ => format!("{} {}", via.join(" "), program.argv[program.argv.len() - 1]),
        };
        let failed = |how: String, ended: &Ended| {
            let (gateway, words) = (id.name(), answers::fact(&words));
            let said = ended.last_words();
            let site = self.site;
            site.error(format!(
                "refused a command on {gateway}: `{words}` {how}{said}"
            ))
        };
        let ended = match run_on_host(host, program, limit, interrupt)? {
            Outcome::Ended(ended) => ended,
            Outcome::Interrupted => return Err(LabError::Interrupted),
            Outcome::TimedOut(ended) => {
                let how = format!("did not end within {} s", limit.as_secs());
                return Err(failed(how, &ended));
            }
        };
        match ended.code {
            Some(0) => Ok(ended.stdout),
            code => Err(match failed(format!("failed ({})", ended.how()), &ended) {
                LabError::Dut { dut, reason } if is_unshelled(via, code) => {
                    let help = "`via` gets the command as one word: end it with a shell, as in `docker exec box sh -c`";
                    LabError::dut(&dut, format!("{reason}\nhelp: {help}"))
                }
                error => error,
            }),
        }
    }

    /// How long one command may take.
    pub(super) const fn limit(&self) -> Duration {
        Duration::from_nanos(self.plan.limit_ns)
    }

    pub(super) fn program(&self, via: &[String], command: &str) -> Result<Program> {
        let command = fill_in(command, |placeholder| self.value(placeholder)).map_err(|word| {
            let reason = format!("has a command with `{{{word}}}`, which is not a placeholder");
            self.site.error(reason)
        })?;
        Ok(Program::new(argv(via, command)))
    }

    /// Returns a placeholder's value.
    fn value(&self, placeholder: Placeholder) -> String {
        let (map, links, cables) = (self.site.map, self.site.links, &self.outside.cables);
        match placeholder {
            Placeholder::Suite => self.plan.sealed_with().unwrap_or("none").to_owned(),
            Placeholder::SuiteWord => self.plan.suite_word().to_owned(),
            Placeholder::Mtu => links.mtu.to_string(),
            Placeholder::CipherMtu => links.cipher_mtu.to_string(),
            Placeholder::StationA => map.station(Side::A).to_string(),
            Placeholder::StationB => map.station(Side::B).to_string(),
            Placeholder::Tunnels => self.plan.tunnels.to_string(),
            Placeholder::GatewayA => cables.gateway_a.to_string(),
            Placeholder::GatewayB => cables.gateway_b.to_string(),
            Placeholder::NetworkA => map.station_network(Side::A),
            Placeholder::NetworkB => map.station_network(Side::B),
            Placeholder::TestNetworkA => Side::A.test_ipv4(),
            Placeholder::TestNetworkB => Side::B.test_ipv4(),
            Placeholder::CipherA => map.cipher_end(Side::A).to_string(),
            Placeholder::CipherB => map.cipher_end(Side::B).to_string(),
        }
    }
}

/// Whether a command failed because no shell split it into words: no program has that name.
fn is_unshelled(via: &[String], code: Option<i32>) -> bool {
    // Without `via` the first test holds, so `via[0]` exists.
    let has_shell = via.last().is_none_or(|word| word == "-c") || is_ssh(&via[0]);
    // The codes of a shell, and of programs such as `docker exec`, for a command that cannot be
    // run.
    !has_shell && matches!(code, Some(126 | 127))
}

fn is_ssh(program: &str) -> bool {
    program == "ssh" || program.ends_with("/ssh")
}

/// Returns the shell command on this machine, or the program that reaches the box with the command
/// as one word. `ssh` must not prompt for a password.
fn argv(via: &[String], command: String) -> Vec<String> {
    let Some((program, arguments)) = via.split_first() else {
        return vec!["sh".to_owned(), "-c".to_owned(), command];
    };
    let mut argv = vec![program.clone()];
    if is_ssh(program) {
        argv.extend(["-o", "BatchMode=yes"].map(str::to_owned));
    }
    argv.extend(arguments.iter().cloned());
    argv.push(command);
    argv
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_goes_to_a_shell_here_or_as_one_word_to_what_leads_to_the_box() {
        let words = |via: &str| {
            let via: Vec<String> = via.split_whitespace().map(str::to_owned).collect();
            argv(&via, "show version".to_owned())
        };
        assert_eq!(words(""), ["sh", "-c", "show version"]);
        assert_eq!(
            words("ssh -p 2222 admin@192.0.2.1"),
            [
                "ssh",
                "-o",
                "BatchMode=yes",
                "-p",
                "2222",
                "admin@192.0.2.1",
                "show version"
            ]
        );
        assert_eq!(
            words("nsenter -n x"),
            ["nsenter", "-n", "x", "show version"]
        );
    }
}
