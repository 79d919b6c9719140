//! The impaired path of a trial: the program that carries frames between the gateways.
//!
//! A device comes up over the path as the lab makes it, a bridge. The program takes the bridge's
//! place for the measurement only, so that no handshake decides whether a device is measured, and
//! every device meets the model in its first state.

use crate::command::sub_command;
use crate::error::TrialError;
use crate::evidence::impaired::blocked;
use crate::measurer::Trial;
use crate::tools::{READY_LIMIT, report_of};
use impair::{Impaired, Profile};
use std::time::Duration;
use testbed::protocol::{Program, Ready};
use testbed::{Bench, NodeId, RunningDut};
use traffic_spec::{BridgeSpec, READY};

/// Name of the subcommand that runs a [`BridgeSpec`].
const SUB_COMMAND: &str = "impair";
/// Time to report between SIGTERM and SIGKILL: it reports immediately, when it gets a core.
const END_GRACE: Duration = Duration::from_secs(3);
/// Ethernet header with two VLAN tags.
const LINK_HEADER_BYTES: usize = 14 + 2 * 4;

/// An impaired path in force; ended on drop.
pub(crate) struct ImpairedPath<'a> {
    bench: &'a dyn Bench,
    node: NodeId,
    process: u64,
    profile: Profile,
}

impl<'a> ImpairedPath<'a> {
    /// Puts the trial's profile in force; `None` if it has none.
    ///
    /// # Errors
    /// When the lab has no element for it, or the program does not start.
    pub(crate) fn begin(
        bench: &'a dyn Bench,
        trial: &Trial<'_>,
        dut: &mut RunningDut,
    ) -> Result<Option<Self>, TrialError> {
        let Some(profile) = &trial.cell.impair else {
            return Ok(None);
        };
        let (node, interfaces) = bench.impaired_element().ok_or_else(|| {
            TrialError::frames(
                "the lab has no element that impairs its path: write `path: [impair]` in its file",
            )
        })?;
        // Another seed for each repeat: the same losses each time would be one sample, and not
        // several.
        let profile = profile.for_repeat(trial.repeat);
        let spec = BridgeSpec {
            interfaces: interfaces.map(str::to_owned),
            frame_bytes: usize::from(trial.links.cipher_mtu) + LINK_HEADER_BYTES,
            profile: profile.clone(),
        };
        let program = Program {
            ready: Ready::Line(READY.to_owned()),
            ..sub_command(SUB_COMMAND, &spec)
        };
        let process = bench.node(node).start(program, READY_LIMIT)?;
        // From here on its end stops the trial, as the end of the device does.
        dut.beside.push((node, process));
        Ok(Some(Self {
            bench,
            node,
            process,
            profile,
        }))
    }

    /// Ends it, and returns its counts.
    ///
    /// # Errors
    /// When it ended before its time.
    pub(crate) fn end(&self) -> Result<Impaired, TrialError> {
        let ended = self.bench.node(self.node).stop(self.process, END_GRACE)?;
        report_of(SUB_COMMAND, self.node, &ended)
    }

    /// Adds to the error of a measurement that the path let nothing through, if so.
    pub(crate) fn explain(&self, error: TrialError) -> TrialError {
        if error.is_interrupt() {
            return error;
        }
        // Its counts are known only when it has ended. The measurement has failed, so that it is
        // over.
        let Ok(impaired) = self.end() else {
            return error;
        };
        match blocked(&impaired) {
            None => error,
            Some(direction) => TrialError::Tool {
                node: self.node.name(),
                problem: format!(
                    "the impairment `{}` let no frame through {direction}; {error}",
                    self.profile.name
                ),
            },
        }
    }
}

impl Drop for ImpairedPath<'_> {
    fn drop(&mut self) {
        // Fails if it has ended or its station is gone.
        let _ = self.bench.node(self.node).stop(self.process, END_GRACE);
    }
}
