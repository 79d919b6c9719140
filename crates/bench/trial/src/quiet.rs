//! Waiting until the stations are quiet before a trial.
//!
//! When a path dies during a trial, station A's kernel continues to send the data in the sockets of
//! the killed tool, for minutes if there is no answer. The next DUT would forward and count it.

use crate::error::TrialError;
use std::time::{Duration, Instant};
use testbed::protocol::Program;
use testbed::{Bench, Interrupt, LabError, NodeId};

/// Time until the kernel gives up orphaned connections: two retransmissions, at most 2 × 1.6 s
/// apart.
const LIMIT: Duration = Duration::from_secs(10);
/// Interval of polling.
const STEP: Duration = Duration::from_millis(50);
/// Retransmissions after which the kernel gives up a connection without a program.
const ORPHAN_RETRIES: &str = "/proc/sys/net/ipv4/tcp_orphan_retries";
/// Time for a program that sets a kernel value.
const PROGRAM_LIMIT: Duration = Duration::from_secs(5);
/// Socket states of `/proc/net/tcp` that no longer send: FIN_WAIT2, TIME_WAIT, CLOSE, LISTEN. In
/// FIN_WAIT2 all data is acknowledged; if the other end has died, the kernel keeps it for a minute.
const SILENT_STATES: [&str; 4] = ["05", "06", "07", "0A"];

/// Waits until no TCP connection is open on either station.
///
/// # Errors
/// When some stay open, or the run is interrupted.
pub(crate) fn await_quiet(bench: &dyn Bench, interrupt: &Interrupt) -> Result<(), TrialError> {
    for id in [NodeId::A, NodeId::B] {
        if connections(bench, id)? == 0 {
            continue;
        }
        // This does not affect connections of running programs.
        // `tee` writes its input to a file without a shell.
        let set = Program::new(["tee", ORPHAN_RETRIES]).with_input("1\n");
        bench.node(id).run(set, PROGRAM_LIMIT)?;
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

/// Counts connections that may still send. A server's are in the table of IPv6, since it listens on
/// both versions.
fn connections(bench: &dyn Bench, id: NodeId) -> Result<usize, LabError> {
    // A kernel without IPv6 has the first table only.
    let tables = ["cat", "/proc/net/tcp", "/proc/net/tcp6"];
    Ok(count(&bench.node(id).output(tables)?))
}

/// Counts connections that may still send in `/proc/net/tcp` followed by `tcp6`.
fn count(tables: &str) -> usize {
    let rows = tables.lines().map(|line| line.split_whitespace());
    let states = rows.filter_map(|mut words| {
        // Each table has a heading, and the second one follows without a gap.
        let is_heading = words.next()? == "sl";
        words.nth(2).filter(|_| !is_heading)
    });
    states
        .filter(|state| !SILENT_STATES.contains(state))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n";
    const HEADING_6: &str = "  sl  local_address                         remote_address                        st tx_queue\n";
    const FIN_WAIT_6: &str = "   0: 0000000000000000FFFF00000200020A:1451 0000000000000000FFFF00000200010A:A1B2 04 00000000:00000000\n";
    const LISTEN: &str =
        "   0: 00000000:1451 00000000:0000 0A 00000000:00000000 00:00000000 00000000\n";
    const FIN_WAIT: &str =
        "   1: 0200010A:A1B2 0200020A:1451 04 0003A980:00000000 01:00000042 00000003\n";
    const TIME_WAIT: &str =
        "   2: 0200010A:A1B4 0200020A:1451 06 00000000:00000000 03:000016D2 00000000\n";

    const FIN_WAIT_2: &str =
        "   3: 0200010A:A1B6 0200020A:1451 05 00000000:00000000 03:00001000 00000000\n";

    #[test]
    fn only_connections_that_may_still_send_count() {
        let table = |lines: &[&str]| [&[HEADING], lines].concat().concat();
        assert_eq!(count(&table(&[])), 0);
        assert_eq!(count(&table(&[LISTEN, TIME_WAIT, FIN_WAIT_2])), 0);
        assert_eq!(count(&table(&[LISTEN, FIN_WAIT, TIME_WAIT, FIN_WAIT])), 2);
        assert_eq!(count(""), 0);
        let both = [&[HEADING, LISTEN, HEADING_6, FIN_WAIT_6][..]]
            .concat()
            .concat();
        assert_eq!(count(&both), 1);
    }
}
