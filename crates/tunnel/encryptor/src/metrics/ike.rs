//! Metrics of IKE.

use super::exposition::{escape, metric, single};
use crate::status::IkeStatus;

/// Appends the metrics; none if no tunnel has IKE.
pub(super) fn render(out: &mut String, status: &IkeStatus) {
    if status.is_empty() {
        return;
    }
    let snapshots: Vec<_> = status.snapshots().collect();
    metric(
        out,
        "gauge",
        "cipherbench_ike_tunnels_up",
        "Tunnels with a child SA to send with.",
        single(snapshots.iter().filter(|tunnel| tunnel.is_up).count()),
    );
    metric(
        out,
        "gauge",
        "cipherbench_ike_tunnel_info",
        "1 while the tunnel has a child SA to send with, otherwise 0; with the key exchanges of its IKE SA.",
        snapshots.iter().map(|tunnel| {
            let labels = format!(
                "tunnel=\"{}\",peer=\"{}\",exchange=\"{}\",ppk=\"{}\",post_quantum=\"{}\"",
                tunnel.id,
                escape(&tunnel.peer),
                tunnel.exchange,
                tunnel.ppk,
                tunnel.post_quantum
            );
            (labels, u8::from(tunnel.is_up))
        }),
    );
    metric(
        out,
        "counter",
        "cipherbench_ike_established_total",
        "IKE SAs after authentication of both sides, without new keys of existing ones.",
        single(status.established()),
    );
    let rekeys = status.rekeys();
    metric(
        out,
        "counter",
        "cipherbench_ike_rekeys_total",
        "SAs that replaced others.",
        rekeys.map(|(sa, value)| (format!("sa=\"{sa}\""), value)),
    );
    metric(
        out,
        "counter",
        "cipherbench_ike_ended_total",
        "IKE SAs that ended, and attempts and requests that were refused, by the notification of IKE or another \
         reason.",
        by_reason(status.ended()),
    );
    metric(
        out,
        "counter",
        "cipherbench_ike_ignored_total",
        "Datagrams without effect on any IKE SA.",
        by_reason(status.ignored()),
    );
}

fn by_reason<N: std::fmt::Display>(counts: Vec<(N, u64)>) -> impl Iterator<Item = (String, u64)> {
    let counts = counts.into_iter();
    counts.map(|(reason, value)| (format!("reason=\"{reason}\""), value))
}
