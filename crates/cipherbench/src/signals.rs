//! Ctrl-C and its kin.

use crate::exit::{Exit, Failure};
use lab::Interrupt;
use port::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::thread;

/// What asks a program to end: Ctrl-C, `kill`, and the terminal that closes.
const TO_END: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// An interrupt that is set when the program is asked to end. From then on nothing ends it early: what was
/// built is taken down, however often Ctrl-C is pressed. Starts no thread.
pub(crate) fn interrupt() -> Result<Interrupt, Failure> {
    let interrupt = Interrupt::new();
    for signal in TO_END {
        signal_hook::flag::register(signal, interrupt.flag()).map_err(refused)?;
    }
    Ok(interrupt)
}

/// A flag that is raised when the program is asked to end.
pub(crate) fn stop() -> Result<Stop, Failure> {
    let stop = Stop::new().map_err(refused)?;
    let mut signals = Signals::new(TO_END).map_err(refused)?;
    let raised = stop.clone();
    let watch = move || {
        if signals.forever().next().is_some() {
            raised.raise();
        }
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(watch)
        .map_err(refused)?;
    Ok(stop)
}

fn refused(error: io::Error) -> Failure {
    let help = "see whether the machine has processes and descriptors left";
    Failure::new(
        Exit::CannotBuild,
        format!("cannot watch for signals: {error}\nhelp: {help}"),
    )
}
