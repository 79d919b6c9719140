//! Tunnels that agree on keys: waiting until all have keys, and until all have new ones.

use super::REKEY;
use super::metrics::{metrics, read_counters};
use crate::dut::{Daemon, prometheus};
use crate::sync::Deadline;
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};
use testbed::Result;

/// How long the first tunnel may take: several attempts if the other gateway is late.
const LIMIT: Duration = Duration::from_secs(15);

/// Additional time for each further one, on a busy machine.
const LIMIT_EACH: Duration = Duration::from_millis(60);

/// Polling interval of a gateway's metrics.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// Gauge of tunnels that have keys.
const ESTABLISHED: &str = "tunnels_established";

/// Sources of each tunnel's keys: the metric, and its label.
const SOURCES: (&str, &str) = ("tunnel_info", "sources");

/// Its counter of new keys, by cause.
const EPOCHS: &str = "epochs_established";

/// Its counter of attempts that failed, by reason.
const FAILED: &str = "handshakes_failed";

/// Waits until all tunnels of these gateways have keys; returns as facts the time since `start` and
/// the key sources.
pub(super) fn await_established(
    daemons: &[Daemon<'_>],
    tunnels: u16,
    start: Instant,
) -> Result<BTreeMap<String, String>> {
    let deadline = Deadline::after(limit(tunnels));
    for daemon in daemons {
        await_count(daemon, deadline, established, tunnels.into(), |count| {
            format!("has keys of {count} of {tunnels} tunnels")
        })?;
    }
    let took = start.elapsed().as_millis().to_string();
    let mut facts = BTreeMap::new();
    // The time is a property of the pair, so one gateway states it.
    for (place, daemon) in daemons.iter().enumerate() {
        let gateway = daemon.gateway();
        if place == 0 {
            facts.insert(format!("{gateway}/set_up_ms"), took.clone());
        }
        let (name, label) = SOURCES;
        let sources = prometheus::values(&metrics(daemon)?, name, label);
        // Tunnels may differ in their sources.
        let sources: Vec<_> = sources.into_iter().collect();
        facts.insert(format!("{gateway}/sources"), sources.join(" or "));
    }
    Ok(facts)
}

/// Renews the keys of all tunnels and waits until both gateways seal with the new keys. Only the
/// first gateway is signalled: if its peer is the connecting side, it asks the peer.
pub(super) fn rekey(daemons: &[Daemon<'_>], tunnels: u16) -> Result<()> {
    // Counted before the signal, so that every new epoch counts.
    let before = daemons.iter().map(epochs).collect::<Result<Vec<_>, _>>()?;
    if let Some(first) = daemons.first() {
        first.signal(REKEY)?;
    }
    let deadline = Deadline::after(limit(tunnels));
    for (daemon, before) in daemons.iter().zip(before) {
        await_count(
            daemon,
            deadline,
            epochs,
            before + u64::from(tunnels),
            |count| {
                let renewed = count.saturating_sub(before);
                format!("has renewed the keys of {renewed} of {tunnels} tunnels")
            },
        )?;
    }
    Ok(())
}

fn limit(tunnels: u16) -> Duration {
    LIMIT + LIMIT_EACH * u32::from(tunnels.saturating_sub(1))
}

/// Waits until `count` of a gateway reaches `wanted`; an error contains `so_far` and why attempts
/// failed.
fn await_count(
    daemon: &Daemon<'_>,
    deadline: Deadline,
    count: impl Fn(&Daemon<'_>) -> Result<u64>,
    wanted: u64,
    so_far: impl Fn(u64) -> String,
) -> Result<()> {
    loop {
        let counted = count(daemon)?;
        if counted >= wanted {
            return Ok(());
        }
        if deadline.is_over() {
            // A dead one has no metrics to read the reasons from, and its end says more.
            daemon.check_alive()?;
            let (gateway, failures) = (daemon.gateway(), failures(daemon)?);
            let reason = format!("{} on {gateway} when time is up{failures}", so_far(counted));
            return Err(daemon.error(reason));
        }
        thread::sleep(LOOK_INTERVAL);
    }
}

/// Number of tunnels that have keys.
fn established(daemon: &Daemon<'_>) -> Result<u64> {
    Ok(prometheus::gauge(&metrics(daemon)?, ESTABLISHED))
}

/// Epochs agreed on since its start, over all tunnels.
fn epochs(daemon: &Daemon<'_>) -> Result<u64> {
    Ok(parts(&read_counters(daemon)?, EPOCHS)
        .map(|(_, count)| count)
        .sum())
}

/// Returns why attempts failed, if any did: `; attempts failed: policy 3`.
fn failures(daemon: &Daemon<'_>) -> Result<String> {
    let counters = read_counters(daemon)?;
    let failed = parts(&counters, FAILED).filter(|(_, count)| *count > 0);
    let failed: Vec<_> = failed
        .map(|(reason, count)| format!("{reason} {count}"))
        .collect();
    Ok(if failed.is_empty() {
        String::new()
    } else {
        format!("; attempts failed: {}", failed.join(", "))
    })
}

/// Returns a counter's parts by label.
fn parts<'a>(
    counters: &'a BTreeMap<String, u64>,
    name: &'a str,
) -> impl Iterator<Item = (&'a str, u64)> {
    counters.iter().filter_map(move |(counter, count)| {
        let label = counter.strip_prefix(name)?;
        Some((label.strip_prefix('.').unwrap_or(label), *count))
    })
}
