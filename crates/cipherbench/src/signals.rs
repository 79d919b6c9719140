//! Termination signals, such as Ctrl-C.

use crate::exit::{Exit, Failure};
use port::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::thread;
use std::{fs, io};
use testbed::Interrupt;

/// The termination signals: Ctrl-C, `kill`, and the closing of the terminal, except signals that
/// the parent process has set to be ignored, as `nohup` does.
fn to_end() -> impl Iterator<Item = i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored(&status);
    [SIGINT, SIGTERM, SIGHUP]
        .into_iter()
        .filter(move |signal| ignored >> (signal - 1) & 1 == 0)
}

/// The set of ignored signals; the lowest bit is signal 1.
fn ignored(status: &str) -> u64 {
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
        .unwrap_or(0)
}

/// An interrupt that a termination signal sets. Further signals have no effect, so that the lab is
/// taken down however often Ctrl-C is pressed. Starts no thread.
pub(crate) fn interrupt() -> Result<Interrupt, Failure> {
    let interrupt = Interrupt::new();
    for signal in to_end() {
        // A flag, not a pipe: the programs of a lab are waited for in many places, each looks at
        // it.
        signal_hook::flag::register(signal, interrupt.flag()).map_err(refused)?;
    }
    Ok(interrupt)
}

/// A flag that a termination signal raises.
pub(crate) fn stop() -> Result<Stop, Failure> {
    let (stop, watch) = stop_later(&[])?;
    watch.start(|_| ())?;
    Ok(stop)
}

/// The same flag, which is raised only once the watch has started; also watches for `others`.
/// Earlier signals are kept until then.
pub(crate) fn stop_later(others: &[i32]) -> Result<(Stop, Watch), Failure> {
    let stop = Stop::new().map_err(refused)?;
    let to_end = to_end().filter(|signal| !others.contains(signal));
    let signals = to_end.chain(others.iter().copied());
    // Registered here, before the caller goes on: a signal in between is kept, not fatal.
    let signals = Signals::new(signals).map_err(refused)?;
    let watch = Watch {
        signals,
        others: others.to_vec(),
        stop: stop.clone(),
    };
    Ok((stop, watch))
}

/// Waits for signals once started.
pub(crate) struct Watch {
    signals: Signals,
    /// Signals that do not end the program.
    others: Vec<i32>,
    stop: Stop,
}

impl Watch {
    /// Waits on a separate thread, which has the caller's current privileges, and calls `on_other`
    /// for each signal that does not end the program.
    pub(crate) fn start(mut self, on_other: impl Fn(i32) + Send + 'static) -> Result<(), Failure> {
        let watch = move || {
            for signal in self.signals.forever() {
                if !self.others.contains(&signal) {
                    // The thread ends: a second signal does nothing more, and the service ends in
                    // order.
                    return self.stop.raise();
                }
                on_other(signal);
            }
        };
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(watch)
            .map_err(refused)?;
        Ok(())
    }
}

fn refused(error: io::Error) -> Failure {
    let help = "see whether the machine has processes and descriptors left";
    Failure::new(
        Exit::CannotBuild,
        format!("cannot watch for signals: {error}\nhelp: {help}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_which_signals_are_ignored() {
        let nohup = "Name:\tcipherbench\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000000000\n";
        assert_eq!(ignored(nohup) >> (SIGHUP - 1) & 1, 1);
        assert_eq!(ignored(nohup) >> (SIGTERM - 1) & 1, 0);
        assert_eq!(ignored(""), 0);
    }
}
