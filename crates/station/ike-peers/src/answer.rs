//! A report for people: the answer first.

use crate::report::{Failure, Outcomes, Report, Times, Traffic};
use crate::spec::{Load, Rekeyed, Spec};
use std::collections::BTreeMap;
use std::fmt::Write;
use units::human::{counted, data, duration_ns, number};

/// Starts may be this much later than their times, but for one of a hundred.
pub const LATE_NS_MAX: u64 = 2_000_000;

const SECOND_NS: f64 = 1e9;
/// With fewer peers the memory of the generator itself prevails.
const MEMORY_PEERS_MIN: u64 = 1000;
/// Reasons of failures that are shown.
const REASONS_MAX: usize = 8;

impl Outcomes {
    /// Completed ones per second; `None` before the second one.
    #[must_use]
    pub fn per_s(&self) -> Option<f64> {
        let is_a_rate = self.completed > 1 && self.elapsed_ns > 0;
        is_a_rate.then(|| self.completed as f64 * SECOND_NS / self.elapsed_ns as f64)
    }

    /// The delay of starts that one of a hundred exceeds, in nanoseconds.
    #[must_use]
    pub fn late_p99_ns(&self) -> Option<u64> {
        self.late.quantile(0.99, self.late.count())
    }

    /// Whether the starts kept their schedule.
    #[must_use]
    pub fn is_on_schedule(&self) -> bool {
        self.late_p99_ns().is_none_or(|it| it <= LATE_NS_MAX)
    }
}

impl Report {
    /// Whether something failed that the load asked for.
    #[must_use]
    pub fn has_failures(&self) -> bool {
        let rekeys = self.rekeys.as_ref();
        self.setups.failures() > 0
            || self.deletes.failures() > 0
            || rekeys.is_some_and(|it| it.outcomes.failures() + it.fewer_exchanges > 0)
            || self.standing.as_ref().is_some_and(|it| it.left < it.up)
    }

    /// The report in lines, the answer first.
    #[must_use]
    pub fn answer(&self, spec: &Spec) -> String {
        let mut text = String::new();
        if self.is_partial {
            text += "stopped before the end; the counts so far:\n";
        }
        text += &self.first_line(spec);
        text += "\n\n";
        if self.flood.is_none() {
            self.exchanges(&mut text);
        }
        let traffic = &self.traffic;
        line(
            &mut text,
            "Datagrams",
            &format!(
                "{} sent with {}, {} received with {} (contents of UDP)",
                traffic.sent,
                data(traffic.sent_bytes as f64),
                traffic.received,
                data(traffic.received_bytes as f64)
            ),
        );
        self.generator_lines(&mut text);
        text
    }

    fn first_line(&self, spec: &Spec) -> String {
        let setups = &self.setups;
        let of = format!("{} of {}", setups.completed, setups.intended);
        match spec.load {
            Load::HalfOpen { per_s, .. } => {
                let flood = self.flood.clone().unwrap_or_default();
                let refused: u64 = flood.refused.values().sum();
                let silent = flood
                    .sent
                    .saturating_sub(flood.accepted + flood.cookies + refused);
                let mut text = format!(
                    "{} at {per_s} per second: {} accepted half-open, {} answered with a cookie, \
                     {refused} refused, {silent} without an answer",
                    counted(flood.sent, "first request"),
                    flood.accepted,
                    flood.cookies,
                );
                for (name, count) in &flood.refused {
                    _ = write!(text, "\n  {name}: {count}");
                }
                text
            }
            Load::Storm { .. } => {
                let back = self.storm.iter().flat_map(|it| &it.back);
                let back: Vec<String> = back
                    .map(|it| {
                        let after = it.after_ns.map_or("never".to_owned(), time);
                        format!("{} % {after}", it.percent)
                    })
                    .collect();
                format!("{of} peers are up after the storm: {}", back.join(", "))
            }
            Load::Concurrent { .. } => {
                let standing = self.standing.clone().unwrap_or_default();
                let rest = match standing.up {
                    0 => String::new(),
                    up => format!(
                        "; after {} {} of {up} still were",
                        time(standing.hold_ns),
                        standing.left
                    ),
                };
                format!("{of} peers were up{rest}")
            }
            Load::Rekey { what, .. } => {
                let rekeys = self.rekeys.clone().unwrap_or_default();
                let outcomes = &rekeys.outcomes;
                let sas = match what {
                    Rekeyed::Ike => "IKE SAs",
                    Rekeyed::Child => "child SAs",
                };
                let exchanges = match rekeys.fewer_exchanges {
                    _ if outcomes.completed == 0 => String::new(),
                    0 => ", all with each key exchange of the proposal".to_owned(),
                    fewer => {
                        format!(", {fewer} of them WITHOUT one of the proposal's key exchanges")
                    }
                };
                format!(
                    "{} of {} {sas} were rekeyed{exchanges}",
                    outcomes.completed, outcomes.intended
                )
            }
            Load::Setup { per_s } | Load::Churn { per_s, .. } => match setups.per_s() {
                Some(rate) => format!(
                    "{} set-ups per second completed, {per_s} per second offered: {of} in {}",
                    number(rate),
                    time(setups.elapsed_ns)
                ),
                None => format!("{of} set-ups completed, {per_s} per second offered"),
            },
        }
    }

    fn exchanges(&self, text: &mut String) {
        let setups = &self.setups;
        outcomes(text, ["Set-ups", ""], setups);
        if let Some(first) = setups.first_failure.as_ref().filter(|it| it.up > 0) {
            let what = format!(
                "{}, {} after the start, with {} up",
                first.reason,
                time(first.at_ns),
                counted(first.up, "peer")
            );
            line(text, "First", &what);
        }
        if let Some(rekeys) = &self.rekeys {
            outcomes(text, ["Rekeyed", " in a rekeying"], &rekeys.outcomes);
        }
        if self.deletes.intended > 0 {
            outcomes(text, ["Deletes", " in a delete"], &self.deletes);
        }
        if let Some(standing) = &self.standing
            && !standing.lost.is_empty()
        {
            reasons(text, ["Lost", ""], &standing.lost);
        }
        if setups.without_ppk > 0 {
            let what = format!("{} set-ups without the PPK", setups.without_ppk);
            line(text, "PPK", &what);
        }
        if let Some(count) = self.ignored.get("ikev1") {
            let what = format!(
                "the gateway answered {} of IKEv1: it must be configured for IKEv2",
                counted(*count, "message")
            );
            line(text, "Version", &what);
        }
    }

    fn generator_lines(&self, text: &mut String) {
        let generator = &self.generator;
        let load = generator.cpu_ns as f64 / generator.elapsed_ns.max(1) as f64;
        let mut what = format!("{} % of a core", number(100.0 * load));
        if let Some(late_ns) = self.setups.late_p99_ns() {
            what += &format!(
                "; 99 % of starts at most {} late{}",
                time(late_ns),
                if self.setups.is_on_schedule() {
                    ""
                } else {
                    ": it did not keep the schedule; use another core, or a lower rate"
                }
            );
        }
        if let Some(memory) = self.memory.filter(|it| it.peers >= MEMORY_PEERS_MIN) {
            what += &format!("; {} per peer", data(memory.bytes_per_peer as f64));
        }
        line(text, "Generator", &what);
        if generator.missed + generator.unsent > 0 {
            let what = format!(
                "{} not received for want of space, {} not sent{}",
                generator.missed,
                generator.unsent,
                generator
                    .refusal
                    .as_ref()
                    .map_or_else(String::new, |why| format!(" ({why})"))
            );
            line(text, "", &what);
        }
    }
}

fn outcomes(text: &mut String, [label, noun]: [&str; 2], outcomes: &Outcomes) {
    if outcomes.completed > 0 {
        let Traffic {
            sent,
            sent_bytes,
            received,
            received_bytes,
        } = outcomes.traffic;
        let each = |count: u64| number(count as f64 / outcomes.completed as f64);
        let bytes = |count: u64| data(count as f64 / outcomes.completed as f64);
        line(
            text,
            label,
            &times(&outcomes.latency, outcomes.started.max(1)),
        );
        let what = format!(
            "each {} datagrams with {} sent, {} with {} received",
            each(sent),
            bytes(sent_bytes),
            each(received),
            bytes(received_bytes)
        );
        line(text, "", &what);
    }
    let repeated = outcomes.retransmissions;
    if repeated + outcomes.cookies > 0 {
        let what = format!(
            "{} sent again, {}",
            counted(repeated, "request"),
            counted(outcomes.cookies, "cookie")
        );
        line(text, "", &what);
    }
    if outcomes.failures() > 0 {
        reasons(text, ["Failed", noun], &outcomes.failed);
    }
}

/// Latency; failed ones count as infinitely long.
fn times(latency: &Times, of: u64) -> String {
    let at = |part: f64| latency.quantile(part, of).map_or("none".to_owned(), time);
    let longest = latency.buckets.last().map_or(0, |(upto_ns, _)| *upto_ns);
    format!(
        "p50 {}, p90 {}, p99 {}, longest {}, from the intended start",
        at(0.5),
        at(0.9),
        at(0.99),
        time(longest)
    )
}

fn reasons(text: &mut String, [label, noun]: [&str; 2], failed: &BTreeMap<String, Failure>) {
    let mut all: Vec<_> = failed.iter().collect();
    all.sort_by_key(|(_, failure)| std::cmp::Reverse(failure.count));
    for (number, (name, failure)) in all.iter().take(REASONS_MAX).enumerate() {
        let what = format!("{} × {name}{noun}: {}", failure.count, failure.example);
        line(text, if number == 0 { label } else { "" }, &what);
    }
    if all.len() > REASONS_MAX {
        let rest = all.len() - REASONS_MAX;
        line(text, "", &format!("and {rest} reasons more"));
    }
}

fn time(ns: u64) -> String {
    duration_ns(ns as f64)
}

fn line(text: &mut String, label: &str, what: &str) {
    _ = writeln!(text, "{label:<10} {what}");
}
