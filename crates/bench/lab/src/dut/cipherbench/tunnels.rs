//! Tunnels that agree on keys: waiting until all have keys, and until all have new ones.

use super::REKEY;
use super::metrics::{metrics, read_counters};
use crate::dut::{Daemon, prometheus};
use crate::sync::Deadline;
use plan::KeySource;
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

/// How gateways agree on keys, by the names of the metrics in which it shows.
pub(super) struct Agreement {
    /// Gauge of tunnels that have keys.
    established: &'static str,
    /// Sources of each tunnel's keys: the metric and its label.
    sources: (&'static str, &'static str),
    /// Label of the same metric that says whether a pre-shared key is mixed in as well.
    ppk: Option<&'static str>,
    /// Counter of new keys, by cause or kind.
    renewed: &'static str,
    /// Counter of attempts that failed, by reason.
    failed: &'static str,
}

/// Our handshake over TLS.
const HANDSHAKE: Agreement = Agreement {
    established: "tunnels_established",
    sources: ("tunnel_info", "sources"),
    ppk: None,
    renewed: "epochs_established",
    failed: "handshakes_failed",
};

/// IKEv2.
const IKE: Agreement = Agreement {
    established: "ike_tunnels_up",
    sources: ("ike_tunnel_info", "exchange"),
    ppk: Some("ppk"),
    renewed: "ike_rekeys.child",
    failed: "ike_ended",
};

impl Agreement {
    /// `None` for static keys.
    pub(super) fn of(keys: KeySource) -> Option<&'static Self> {
        match (keys.has_channel(), keys.is_ike()) {
            (true, _) => Some(&HANDSHAKE),
            (_, true) => Some(&IKE),
            _ => None,
        }
    }

    /// Waits until all tunnels of these gateways have keys; returns as facts the time since `start`
    /// and the key sources.
    pub(super) fn await_established(
        &self,
        daemons: &[Daemon<'_>],
        tunnels: u16,
        start: Instant,
    ) -> Result<BTreeMap<String, String>> {
        let deadline = Deadline::after(limit(tunnels));
        let established =
            |daemon: &Daemon<'_>| Ok(prometheus::gauge(&metrics(daemon)?, self.established));
        for daemon in daemons {
            self.await_count(daemon, deadline, established, tunnels.into(), |count| {
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
            let ((name, label), text) = (self.sources, metrics(daemon)?);
            // Tunnels may differ in their sources.
            let sources: Vec<_> = prometheus::values(&text, name, label).into_iter().collect();
            let has_ppk = self
                .ppk
                .is_some_and(|label| prometheus::values(&text, name, label).contains("yes"));
            let ppk = if has_ppk { "+ppk" } else { "" };
            facts.insert(format!("{gateway}/sources"), sources.join(" or ") + ppk);
        }
        Ok(facts)
    }

    /// Renews the keys of all tunnels and waits until both gateways seal with the new keys. Only
    /// the first gateway is signalled: if its peer is the connecting side, it asks the peer.
    pub(super) fn rekey(&self, daemons: &[Daemon<'_>], tunnels: u16) -> Result<()> {
        // New keys since its start, over all tunnels.
        let renewed = |daemon: &Daemon<'_>| {
            let counters = read_counters(daemon)?;
            Ok(parts(&counters, self.renewed).map(|(_, count)| count).sum())
        };
        // Counted before the signal, so that every new epoch counts.
        let before = daemons.iter().map(renewed).collect::<Result<Vec<u64>>>()?;
        if let Some(first) = daemons.first() {
            first.signal(REKEY)?;
        }
        let deadline = Deadline::after(limit(tunnels));
        for (daemon, before) in daemons.iter().zip(before) {
            let wanted = before + u64::from(tunnels);
            self.await_count(daemon, deadline, renewed, wanted, |count| {
                let renewed = count.saturating_sub(before);
                format!("has renewed the keys of {renewed} of {tunnels} tunnels")
            })?;
        }
        Ok(())
    }

    /// Waits until `count` of a gateway reaches `wanted`; an error contains `so_far` and why
    /// attempts failed.
    fn await_count(
        &self,
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
                let (gateway, failures) = (daemon.gateway(), self.failures(daemon)?);
                let reason = format!("{} on {gateway} when time is up{failures}", so_far(counted));
                return Err(daemon.error(reason));
            }
            thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Returns why attempts failed, if any did: `; attempts failed: policy 3`.
    fn failures(&self, daemon: &Daemon<'_>) -> Result<String> {
        let counters = read_counters(daemon)?;
        let failed = parts(&counters, self.failed).filter(|(_, count)| *count > 0);
        let failed: Vec<_> = failed
            .map(|(reason, count)| format!("{reason} {count}"))
            .collect();
        Ok(if failed.is_empty() {
            String::new()
        } else {
            format!("; attempts failed: {}", failed.join(", "))
        })
    }
}

fn limit(tunnels: u16) -> Duration {
    LIMIT + LIMIT_EACH * u32::from(tunnels.saturating_sub(1))
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
