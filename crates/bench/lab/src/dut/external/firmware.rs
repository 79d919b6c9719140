//! The version of external boxes: switched by a command of the campaign, and back at the end.

use super::running::{Outcome, run_on_host};
use crate::cables::Outside;
use crate::dut::Site;
use crate::sync::lock;
use plan::Switch;
use std::time::Duration;
use testbed::protocol::{Program, Request};
use testbed::{Interrupt, LabError, Node, Result};

/// Switches the boxes to the version of this DUT, if they have another one. `leave_behind` hands
/// the way back to the host, which takes it if this run is killed.
pub(super) fn to_version(
    site: &Site<'_>,
    outside: &Outside,
    leave_behind: impl Fn() -> Result<()>,
) -> Result<()> {
    let settings = site.software.settings.as_ref();
    let wanted = settings.and_then(|settings| settings.switch.as_ref());
    if lock(&outside.switched).as_ref() == wanted {
        return Ok(());
    }
    back(outside).map_err(|error| site.error(error))?;
    let Some(switch) = wanted else {
        return Ok(());
    };
    // Noted before it begins: one that fails may have switched a box.
    *lock(&outside.switched) = Some(switch.clone());
    leave_behind()?;
    match run(outside, switch, &switch.command, Some(&outside.interrupt)) {
        Ok(None) => Ok(()),
        Ok(Some(reason)) => {
            // The earlier failure matters more.
            let _ = back(outside);
            Err(site.error(format!("cannot be switched to its version: {reason}")))
        }
        Err(error) => Err(error),
    }
}

/// Switches the boxes back, if they have been switched and the campaign has a command for it.
///
/// # Errors
/// The failure of the command.
pub(crate) fn back(outside: &Outside) -> std::result::Result<(), String> {
    // The first version has nothing to be switched back from.
    let Some(switch) = lock(&outside.switched).take() else {
        return Ok(());
    };
    let Some(undo) = &switch.undo else {
        return Ok(());
    };
    // To its end, also after Ctrl-C.
    let failed = match run(outside, &switch, undo, None) {
        Ok(failed) => failed,
        Err(error) => Some(error.to_string()),
    };
    // No box is up now, and the host would run the command a second time at its end.
    let nothing = Request::AtEnd {
        programs: Vec::new(),
        limit_ms: 0,
    };
    let _ = outside.host.call(nothing);
    failed.map_or(Ok(()), |reason| {
        Err(format!("cannot be switched back: {reason}"))
    })
}

/// The program that switches back, for a run that is killed.
pub(super) fn way_back(outside: &Outside) -> Option<(Program, Duration)> {
    let switched = lock(&outside.switched);
    let undo = switched.as_ref()?.undo.as_ref()?;
    let limit = Duration::from_nanos(switched.as_ref()?.limit_ns);
    Some((shell(undo), limit))
}

/// Runs a command. Returns why it failed.
fn run(
    outside: &Outside,
    switch: &Switch,
    command: &str,
    interrupt: Option<&Interrupt>,
) -> Result<Option<String>> {
    let limit = Duration::from_nanos(switch.limit_ns);
    let (how, ended) = match run_on_host(&outside.host, shell(command), limit, interrupt)? {
        Outcome::Ended(ended) if ended.code == Some(0) => return Ok(None),
        Outcome::Ended(ended) => (format!("failed ({})", ended.how()), ended),
        Outcome::TimedOut(ended) => {
            let limit = limit.as_secs();
            (format!("did not end within {limit} s (`limit`)"), ended)
        }
        Outcome::Interrupted => return Err(LabError::Interrupted),
    };
    Ok(Some(format!(
        "`{}` {how}{}\nhelp: run it alone in a shell on this machine; it must return 0",
        guard::visible_lines(command),
        ended.last_words()
    )))
}

fn shell(command: &str) -> Program {
    Program::new(["sh", "-c", command])
}
