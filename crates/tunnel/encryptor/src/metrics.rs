//! Counters for Prometheus, at `/metrics`: the counts of each lane, over all its tunnels, and the
//! state of negotiated keys.

mod exposition;
mod ike;
mod negotiated;

use crate::counters::{Counters, DropReason, Flow, Tally};
use crate::privileges::InForce;
use crate::renewal::Rekeyer;
use crate::status::Status;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use dispatch::Dispatch;
use exposition::{escape, metric, single};
use qkd::serve_limited;
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

/// More than the number of scrapers that one encryptor has.
const CONNECTIONS_MAX: usize = 16;
/// A scrape takes milliseconds; a scraper that keeps its connection open reconnects after this.
const LIFETIME_MAX: Duration = Duration::from_secs(30);

/// Properties that are constant while the encryptor runs: the labels of `cipherbench_info`.
pub type Facts = Vec<(&'static str, String)>;

/// The exposition text: <https://prometheus.io/docs/instrumenting/exposition_formats/>.
/// `replaced_sas` counts SAs that another engine took over after a failure, `rekeys` renewals of
/// keys on demand, both over all lanes.
#[must_use]
pub fn render(
    facts: &Facts,
    in_force: InForce,
    lanes: &[Arc<Counters>],
    replaced_sas: u64,
    rekeys: u64,
    status: &Status,
) -> String {
    let mut out = String::new();
    let labels: Vec<String> = facts
        .iter()
        .map(|(key, value)| format!("{key}=\"{}\"", escape(value)))
        .collect();
    let settings = [(labels.join(","), 1)];
    let help = "The encryptor's settings.";
    metric(&mut out, "gauge", "cipherbench_info", help, settings);
    let measures = in_force.measures();
    metric(
        &mut out,
        "gauge",
        "cipherbench_privileges_dropped",
        "1 if the restriction of the process is completely in force, otherwise 0.",
        measures.map(|(measure, on)| (format!("measure=\"{measure}\""), u8::from(on))),
    );

    // Read once, so that all values of a lane in one scrape belong together.
    let tallies: Vec<_> = lanes.iter().map(|lane| lane.read()).collect();
    let mut counter = |name: &str, help: &str, of: &dyn Fn(&Tally) -> u64| {
        let name = format!("cipherbench_{name}_total");
        let lanes = tallies.iter().enumerate();
        let samples = lanes.map(|(lane, tally)| (format!("lane=\"{lane}\""), of(tally)));
        metric(&mut out, "counter", &name, help, samples);
    };
    for (name, done, flow) in FLOWS {
        let (packets, bytes) = (format!("{name}_packets"), format!("{name}_bytes"));
        counter(&packets, &format!("Packets {done}."), &|tally| {
            flow(tally).packets
        });
        counter(&bytes, &format!("Bytes of packets {done}."), &|tally| {
            flow(tally).bytes
        });
    }
    for (name, help, of) in OTHERS {
        counter(name, help, &of);
    }
    let dropped = tallies.iter().enumerate().flat_map(|(lane, tally)| {
        let reasons = DropReason::ALL.into_iter().zip(tally.dropped);
        reasons.map(move |(reason, value)| {
            let reason = reason.name();
            (format!("lane=\"{lane}\",reason=\"{reason}\""), value)
        })
    });
    metric(
        &mut out,
        "counter",
        "cipherbench_dropped_packets_total",
        "Packets dropped, each for exactly one reason.",
        dropped,
    );
    metric(
        &mut out,
        "counter",
        "cipherbench_engine_replaced_sas_total",
        "SAs whose engine failed and was replaced or removed.",
        single(replaced_sas),
    );
    metric(
        &mut out,
        "counter",
        "cipherbench_rekeys_total",
        "Requests for new keys after which all lanes seal with them.",
        single(rekeys),
    );
    negotiated::render(&mut out, status);
    ike::render(&mut out, status.ike());
    out
}

/// A flow's name, the treatment of its packets, and its counts of a lane.
type NamedFlow = (&'static str, &'static str, fn(&Tally) -> Flow);

const FLOWS: [NamedFlow; 4] = [
    ("clear_rx", "received in clear", |tally| tally.clear_rx),
    ("clear_tx", "sent in clear", |tally| tally.clear_tx),
    ("cipher_rx", "received as ESP", |tally| tally.cipher_rx),
    ("cipher_tx", "sent as ESP", |tally| tally.cipher_tx),
];

/// Name, help text and value of a counter.
type Counter = (&'static str, &'static str, fn(&Tally) -> u64);

/// Counters that are neither flows nor drops, under the names of [`Tally::named`].
const OTHERS: [Counter; 7] = [
    (
        "joined_packets",
        "Packets that were sent in an ESP packet with one before them.",
        |tally| tally.joined,
    ),
    (
        "continued_packets",
        "ESP packets that begin with the rest of a packet.",
        |tally| tally.continued,
    ),
    (
        "split_packets",
        "Packets that arrived in an ESP packet with one before them.",
        |tally| tally.split,
    ),
    (
        "absorbed_packets",
        "ESP packets that held only parts of packets, or padding.",
        |tally| tally.absorbed,
    ),
    (
        "incomplete_packets",
        "Packets split over several ESP packets that could not be reassembled, at least.",
        |tally| tally.incomplete,
    ),
    (
        "clear_missed_packets",
        "Packets that were lost on the clear side before they were read.",
        |tally| tally.clear_missed,
    ),
    (
        "icmp_sent_packets",
        "Answers to senders of packets that do not fit.",
        |tally| tally.icmp_sent,
    ),
];

/// Sources of the served values.
#[derive(Clone)]
pub struct Source {
    /// Settings.
    pub facts: Facts,
    /// Restrictions of the process.
    pub in_force: InForce,
    /// Each lane's counters.
    pub lanes: Vec<Arc<Counters>>,
    /// The engines.
    pub dispatch: Dispatch,
    /// Renewed keys.
    pub rekeyer: Rekeyer,
    /// Negotiated keys.
    pub status: Arc<Status>,
}

/// Serves the counters on a dedicated thread, for as long as the process lives. Connections are few
/// and short.
///
/// # Errors
/// When the thread or its runtime cannot be created.
pub fn serve(listener: TcpListener, source: Source) -> io::Result<()> {
    // `from_std` requires it. The runtime is created here too, so that the caller learns of a
    // failure.
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let router = Router::new().route(
        "/metrics",
        get(async move || {
            let Source {
                facts,
                in_force,
                lanes,
                dispatch,
                rekeyer,
                status,
            } = &source;
            let replaced_sas = dispatch.replaced().iter().map(|engine| engine.sas).sum();
            (
                [(CONTENT_TYPE, "text/plain; version=0.0.4")],
                render(
                    facts,
                    *in_force,
                    lanes,
                    replaced_sas,
                    rekeyer.rekeys(),
                    status,
                ),
            )
        }),
    );
    std::thread::Builder::new()
        .name("metrics".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener)?;
                Ok::<Infallible, io::Error>(
                    serve_limited(listener, router, CONNECTIONS_MAX, LIFETIME_MAX).await,
                )
            })
        })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_every_counter_of_every_lane() {
        let lanes = [Arc::new(Counters::default()), Arc::default()];
        let mut tally = Tally::default();
        tally.clear_rx.add(1400);
        tally.drop(DropReason::Replayed, 3);
        lanes[1].publish(&tally);
        let text = render(
            &vec![("suite", "aes \"256\"".to_owned())],
            InForce {
                seccomp: true,
                ..InForce::NOTHING
            },
            &lanes,
            7,
            3,
            &Status::default(),
        );
        for line in [
            "cipherbench_info{suite=\"aes \\\"256\\\"\"} 1",
            "cipherbench_privileges_dropped{measure=\"seccomp\"} 1",
            "cipherbench_privileges_dropped{measure=\"landlock\"} 0",
            "cipherbench_clear_rx_packets_total{lane=\"0\"} 0",
            "cipherbench_clear_rx_packets_total{lane=\"1\"} 1",
            "cipherbench_clear_rx_bytes_total{lane=\"1\"} 1400",
            "cipherbench_cipher_tx_bytes_total{lane=\"0\"} 0",
            "cipherbench_dropped_packets_total{lane=\"1\",reason=\"replayed\"} 3",
            "cipherbench_engine_replaced_sas_total 7",
            "cipherbench_rekeys_total 3",
        ] {
            assert!(
                text.lines().any(|other| other == line),
                "{line} is missing in\n{text}"
            );
        }
        assert_eq!(
            text.lines().filter(|line| line.contains("reason=")).count(),
            2 * DropReason::ALL.len()
        );
    }

    #[test]
    fn every_count_of_a_tally_has_a_metric() {
        let text = render(
            &Vec::new(),
            InForce::NOTHING,
            &[Arc::default()],
            0,
            0,
            &Status::default(),
        );
        for (name, _) in Tally::default().named() {
            let line = match name.split_once('.') {
                None => format!("cipherbench_{name}_total{{lane=\"0\"}} 0"),
                Some((name, reason)) => {
                    format!("cipherbench_{name}_total{{lane=\"0\",reason=\"{reason}\"}} 0")
                }
            };
            assert!(text.lines().any(|other| other == line), "{line} is missing");
        }
    }
}
