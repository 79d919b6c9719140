//! Congestion control of the stations: the algorithms that their kernels allow, and the one that a
//! connection uses.

use crate::error::TrialError;
use std::time::{Duration, Instant};
use testbed::{Bench, LabError, NodeId};

/// The algorithms that the kernel lets every program choose.
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
/// Time for a tool to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);
/// Interval of polling.
const STEP: Duration = Duration::from_millis(50);

/// Checks that a station allows a congestion control.
///
/// # Errors
/// When it does not; the error lists the allowed ones.
pub(crate) fn expect_allowed(bench: &dyn Bench, id: NodeId, name: &str) -> Result<(), TrialError> {
    let allowed = bench.node(id).output(["cat", ALLOWED])?;
    // Empty if the file cannot be read: its lack is then the reason.
    let allowed: Vec<&str> = allowed.split_whitespace().collect();
    if allowed.contains(&name) {
        return Ok(());
    }
    let problem = if allowed.is_empty() {
        format!("{ALLOWED} cannot be read, so congestion control {name} cannot be chosen")
    } else {
        format!(
            "the kernel does not allow congestion control {name}; it allows {} (`modprobe tcp_{name}` and \
             `sysctl net.ipv4.tcp_allowed_congestion_control` change that)",
            allowed.join(", ")
        )
    };
    Err(TrialError::Tool {
        node: id.name(),
        problem,
    })
}

/// Returns the congestion control of a station's connections to or from a port, once there is one;
/// `None` if none is established in time.
pub(crate) fn of_port(
    bench: &dyn Bench,
    id: NodeId,
    port: u16,
) -> Result<Option<String>, LabError> {
    let since = Instant::now();
    let filter = format!("( sport = :{port} or dport = :{port} )");
    // A client counts as started before it is connected.
    while since.elapsed() < CONNECT_LIMIT {
        let show = ["ss", "-tinH", "state", "established", &filter];
        if let Some(name) = shown(&bench.node(id).output(show)?) {
            return Ok(Some(name.to_owned()));
        }
        std::thread::sleep(STEP);
    }
    Ok(None)
}

/// Returns the congestion control in the output of `ss -ti`: the last word before the first one
/// with a value, `ts sack cubic wscale:7,7 rto:204`.
fn shown(output: &str) -> Option<&str> {
    let details = output.lines().find(|line| line.contains(" rto:"))?;
    let words = details.split_whitespace();
    words.take_while(|word| !word.contains(':')).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_congestion_control_is_read_from_ss() {
        let output = "0 0 127.0.0.1:5998 127.0.0.1:40032\n\t ts sack bbr wscale:10,10 rto:201 rtt:0.02/0.01 \
                      bbr:(bw:1Gbps) send 1Gbps\n";
        assert_eq!(shown(output), Some("bbr"));
        assert_eq!(shown("0 0 127.0.0.1:5998 127.0.0.1:40032\n"), None);
        assert_eq!(shown(""), None);
    }
}
