//! Metrics of negotiated keys.
//!
//! A tunnel always has two lines: its epoch is a value, not a label, so that a rollover creates no
//! new time series. An SPI has room for 4096 tunnels, which limits the lines here.

use super::exposition::{escape, metric, single};
use crate::status::Status;

/// Appends the metrics; none if all keys are static.
pub(super) fn render(out: &mut String, status: &Status) {
    if status.is_empty() {
        return;
    }
    let snapshots: Vec<_> = status.snapshots().collect();
    let established = snapshots.iter().filter(|tunnel| tunnel.is_established);
    metric(
        out,
        "gauge",
        "cipherbench_tunnels_established",
        "Tunnels with negotiated keys and an established control channel.",
        single(established.count()),
    );
    metric(
        out,
        "gauge",
        "cipherbench_tunnel_info",
        "1 while the tunnel has keys and its control channel is up, otherwise 0; with the sources of its keys.",
        snapshots.iter().map(|tunnel| {
            let labels = format!(
                "tunnel=\"{}\",peer=\"{}\",policy=\"{}\",sources=\"{}\"",
                tunnel.id,
                escape(&tunnel.peer),
                tunnel.policy.name(),
                escape(&tunnel.sources)
            );
            (labels, u8::from(tunnel.is_established))
        }),
    );
    let epochs = snapshots.iter();
    metric(
        out,
        "gauge",
        "cipherbench_tunnel_epoch",
        "Epoch that both sides of the tunnel seal with; 0: none yet.",
        epochs.map(|tunnel| (format!("tunnel=\"{}\"", tunnel.id), tunnel.epoch)),
    );
    metric(
        out,
        "gauge",
        "cipherbench_certificate_expiry_timestamp_seconds",
        "When this gateway's certificate expires, in seconds since 1970.",
        single(status.certificate_expiry()),
    );
    let causes = status.epochs_established();
    metric(
        out,
        "counter",
        "cipherbench_epochs_established_total",
        "Epochs that both sides have switched to.",
        causes.map(|(cause, value)| (format!("cause=\"{cause}\""), value)),
    );
    let reasons = status.handshakes_failed();
    metric(
        out,
        "counter",
        "cipherbench_handshakes_failed_total",
        "Attempts to negotiate keys that failed.",
        reasons.map(|(reason, value)| (format!("reason=\"{reason}\""), value)),
    );
    for (name, help, value) in status.counters() {
        let name = format!("cipherbench_{name}_total");
        metric(out, "counter", &name, help, single(value));
    }
    let seconds = status.desync_outage().as_secs_f64();
    metric(
        out,
        "counter",
        "cipherbench_desync_outage_seconds_total",
        "Time from the first packet that could not be opened to the first that could.",
        single(format_args!("{seconds:.6}")),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Tunnel;
    use keying::chain::Policy;
    use keying::message::Cause;
    use keying::rollover::Event;
    use std::time::Duration;

    #[test]
    fn a_tunnel_shows_the_sources_of_its_keys() {
        let gw2 = Tunnel::new(0, 5, "gw2".to_owned(), Policy::Both);
        let gw3 = Tunnel::new(1, 6, "gw3".to_owned(), Policy::Pqc);
        let status = Status::new(vec![gw2, gw3]);
        let established = Event::Established {
            epoch: 9,
            cause: Cause::Bytes,
            took: Duration::from_millis(5),
            sources: vec!["ppk:a\"b".to_owned(), "qkd:550e8400".to_owned()],
            handshake: true,
        };
        status.event(0, &established);
        let mut text = String::new();
        render(&mut text, &status);
        for line in [
            "cipherbench_tunnels_established 1",
            "cipherbench_tunnel_info{tunnel=\"5\",peer=\"gw2\",policy=\"both\",sources=\"handshake+ppk:a\\\"b+qkd\"} 1",
            "cipherbench_tunnel_info{tunnel=\"6\",peer=\"gw3\",policy=\"pqc\",sources=\"\"} 0",
            "cipherbench_tunnel_epoch{tunnel=\"5\"} 9",
            "cipherbench_tunnel_epoch{tunnel=\"6\"} 0",
            "cipherbench_epochs_established_total{cause=\"bytes\"} 1",
            "cipherbench_handshakes_failed_total{reason=\"policy\"} 0",
            "cipherbench_keys_expired_total 0",
            "cipherbench_certificate_expiry_timestamp_seconds 0",
            "cipherbench_desyncs_total 0",
            "cipherbench_desync_lost_packets_total 0",
            "cipherbench_desync_outage_seconds_total 0.000000",
        ] {
            assert!(
                text.lines().any(|other| other == line),
                "{line} is missing in\n{text}"
            );
        }
    }

    #[test]
    fn static_keys_add_no_metrics() {
        let mut text = String::new();
        render(&mut text, &Status::default());
        assert_eq!(text, "");
    }
}
