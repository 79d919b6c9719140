//! Waiting until the stations are quiet before a trial.
//!
//! When a path dies in mid-trial, the kernel of station A goes on sending what the killed tool had left in its
//! sockets, for minutes if nobody answers. As soon as the next DUT forwards, that would be counted there.

use crate::error::TrialError;
use lab::protocol::Program;
use lab::{Bench, Interrupt, LabError, NodeId};
use std::time::{Duration, Instant};

/// The kernel gives an orphan up after two retransmissions then, at most 2 × 1.6 s apart.
const LIMIT: Duration = Duration::from_secs(10);
/// Between two looks.
const STEP: Duration = Duration::from_millis(50);
/// For programs that only read or set a kernel value.
const PROGRAM_LIMIT: Duration = Duration::from_secs(5);
/// Socket states of `/proc/net/tcp` that send nothing any more: TIME_WAIT, CLOSE, LISTEN.
const SILENT_STATES: [&str; 3] = ["06", "07", "0A"];

/// Waits until no TCP connection is open on either station.
///
/// # Errors
/// When some stay, or the run is interrupted.
pub(crate) fn await_quiet(bench: &dyn Bench, interrupt: &Interrupt) -> Result<(), TrialError> {
    for id in [NodeId::A, NodeId::B] {
        if connections(bench, id)? == 0 {
            continue;
        }
        // Of no effect on connections whose program lives.
        run(
            bench,
            id,
            &["sysctl", "-q", "-w", "net.ipv4.tcp_orphan_retries=1"],
        )?;
        let since = Instant::now();
        loop {
            let open = connections(bench, id)?;
            if open == 0 {
                break;
            }
            if since.elapsed() > LIMIT {
                let problem = format!("{open} TCP connections of an earlier trial are still open");
                return Err(TrialError::Tool {
                    node: id.name(),
                    problem,
                });
            }
            interrupt.check()?;
            std::thread::sleep(STEP);
        }
    }
    Ok(())
}

/// Connections that may still send.
fn connections(bench: &dyn Bench, id: NodeId) -> Result<usize, LabError> {
    let table = run(bench, id, &["cat", "/proc/net/tcp"])?;
    Ok(count(&table))
}

fn run(bench: &dyn Bench, id: NodeId, words: &[&str]) -> Result<String, LabError> {
    let program = Program::new(words.iter().copied());
    Ok(bench.node(id).run(program, PROGRAM_LIMIT)?.stdout)
}

/// Connections of a `/proc/net/tcp` that may still send.
fn count(table: &str) -> usize {
    let states = table
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().nth(3));
    states
        .filter(|state| !SILENT_STATES.contains(state))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n";
    const LISTEN: &str =
        "   0: 00000000:1451 00000000:0000 0A 00000000:00000000 00:00000000 00000000\n";
    const FIN_WAIT: &str =
        "   1: 0200010A:A1B2 0200020A:1451 04 0003A980:00000000 01:00000042 00000003\n";
    const TIME_WAIT: &str =
        "   2: 0200010A:A1B4 0200020A:1451 06 00000000:00000000 03:000016D2 00000000\n";

    #[test]
    fn only_connections_that_may_still_send_count() {
        let table = |lines: &[&str]| [&[HEADING], lines].concat().concat();
        assert_eq!(count(&table(&[])), 0);
        assert_eq!(count(&table(&[LISTEN, TIME_WAIT])), 0);
        assert_eq!(count(&table(&[LISTEN, FIN_WAIT, TIME_WAIT, FIN_WAIT])), 2);
        assert_eq!(count(""), 0);
    }
}
