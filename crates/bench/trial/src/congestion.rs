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

/// Returns the payload that the connections of each port carried from this station and to it, in
/// bytes.
pub(crate) fn carried(
    bench: &dyn Bench,
    id: NodeId,
    ports: &[u16],
) -> Result<Vec<[u64; 2]>, LabError> {
    let of_port = |port: &u16| format!("sport = :{port} or dport = :{port}");
    let filter = ports.iter().map(of_port).collect::<Vec<_>>().join(" or ");
    let filter = format!("( {filter} )");
    let show = ["ss", "-tinH", "state", "established", &filter];
    let output = bench.node(id).output(show)?;
    Ok(ports.iter().map(|port| bytes(&output, *port)).collect())
}

/// The sums of a port's connections from the output of `ss -ti`: a line with the addresses, then
/// indented ones with counts. Counts that are 0 are not printed.
fn bytes(output: &str, port: u16) -> [u64; 2] {
    let end = format!(":{port}");
    let mut sums = [0_u64; 2];
    let mut is_own = false;
    for line in output.lines() {
        if !line.starts_with(char::is_whitespace) {
            is_own = line.split_whitespace().any(|word| word.ends_with(&end));
        }
        if !is_own {
            continue;
        }
        for (sum, key) in sums.iter_mut().zip(["bytes_acked:", "bytes_received:"]) {
            let words = line.split_whitespace();
            let counts = words.filter_map(|word| word.strip_prefix(key)?.parse::<u64>().ok());
            *sum = counts.fold(*sum, u64::saturating_add);
        }
    }
    sums
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

    #[test]
    fn the_bytes_of_the_connections_of_each_port_are_added_up() {
        let output = "0 0 10.0.0.1:40032 10.0.0.2:5201\n\t cubic rto:201 bytes_sent:200 bytes_acked:180 \
                      bytes_received:7 segs_out:3\n\
                      0 0 10.0.0.1:40034 10.0.0.2:5201\n\t cubic rto:201 bytes_received:5000\n\
                      0 0 [::ffff:10.0.0.1]:40036 [::ffff:10.0.0.2]:5202\n\t cubic bytes_acked:9\n";
        assert_eq!(bytes(output, 5201), [180, 5007]);
        assert_eq!(bytes(output, 5202), [9, 0]);
        assert_eq!(bytes(output, 5203), [0, 0]);
        assert_eq!(bytes("", 5201), [0, 0]);
    }
}
