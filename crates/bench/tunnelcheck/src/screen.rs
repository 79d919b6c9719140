//! The answer as one screen of 24 lines and 80 columns, and as JSON.

use crate::findings::{
    Findings, HostFacts, OffloadFindings, PerDirection, RoundTrips, Seal, Unsealed,
};
use crate::verdict::{Direction, Goodput, Limit, Verdict, added_ns};
use guard::visible;
use probe::PathMtu;
use serde_json::{Value, json};
use units::human;

const COLUMNS: usize = 80;
const LABEL: usize = 13;
/// Most characters of a reason: the other end may send a long one.
const REASON_CHARS_MAX: usize = 110;
/// Lines of help: the most important come first, and `--json` has all.
const HELP_MAX: usize = 4;
/// Lines of offloads that hurt; `--json` has all.
const OFFLOADS_MAX: usize = 2;

/// The answer for a terminal.
#[must_use]
pub fn screen(findings: &Findings, verdict: &Verdict) -> String {
    let mut screen = Screen(String::new());
    let over = over(&findings.here);
    let took = human::duration(std::time::Duration::from_millis(findings.took_ms));
    screen.line("", &format!("{} {over}, checked in {took}", findings.peer));
    screen.line("Encrypted", encrypted(&findings.seal));
    screen.line("  from here", &seal(&findings.seal.from_here));
    screen.line("  to here", &seal(&findings.seal.to_here));
    screen.line("MTU", &mtu(&findings.mtu));
    screen.line(
        "TCP",
        &format!(
            "from here {}",
            goodput(findings, verdict, Direction::FromHere)
        ),
    );
    screen.line(
        "",
        &format!(
            "to here   {}",
            goodput(findings, verdict, Direction::ToHere)
        ),
    );
    screen.line("Round trip", &idle(&findings.idle));
    screen.line("  under load", &loaded(findings));
    screen.line(
        "Limit",
        &format!("from here: {}", limit(verdict, Direction::FromHere)),
    );
    screen.line(
        "",
        &format!("to here: {}", limit(verdict, Direction::ToHere)),
    );
    for (number, line) in offloads(&findings.offloads).iter().enumerate() {
        screen.line(if number == 0 { "Offloads" } else { "" }, line);
    }
    for (number, help) in verdict.help.iter().take(HELP_MAX).enumerate() {
        screen.line(if number == 0 { "What helps" } else { "" }, help);
    }
    screen.0
}

/// Lines with labels, wrapped.
struct Screen(String);

impl Screen {
    fn line(&mut self, label: &str, text: &str) {
        // The title has no label and begins at the margin.
        let indent = if self.0.is_empty() { 0 } else { LABEL };
        let text = visible(text);
        let mut line = format!("{label:indent$}");
        let mut is_first = true;
        for word in text.split(' ') {
            if !is_first && line.chars().count() + 1 + word.chars().count() > COLUMNS {
                self.push(&line);
                line = " ".repeat(indent);
                is_first = true;
            }
            if !is_first {
                line.push(' ');
            }
            line.push_str(word);
            is_first = false;
        }
        self.push(&line);
    }

    fn push(&mut self, line: &str) {
        self.0.extend(line.chars().take(COLUMNS));
        self.0.push('\n');
    }
}

fn over(host: &HostFacts) -> String {
    match (&*host.interface, &*host.kind) {
        ("", _) => String::new(),
        (interface, "") => format!("over {interface}"),
        (interface, kind) => format!("over {interface} ({kind})"),
    }
}

fn clipped(reason: &str) -> String {
    let mut clipped: String = reason.chars().take(REASON_CHARS_MAX).collect();
    if clipped.len() < reason.len() {
        clipped.push('…');
    }
    clipped
}

const fn encrypted(seals: &PerDirection<Seal>) -> &'static str {
    match (&seals.from_here, &seals.to_here) {
        (Seal::Yes { .. }, Seal::Yes { .. }) => "yes, both ways",
        (Seal::No { .. }, Seal::No { .. }) => "NO, neither way",
        (Seal::No { .. }, _) => "NO, not from here",
        (_, Seal::No { .. }) => "NO, not to here",
        (Seal::Yes { .. }, Seal::Unknown { .. }) => "yes from here, unknown to here",
        (Seal::Unknown { .. }, Seal::Yes { .. }) => "unknown from here, yes to here",
        (Seal::Unknown { .. }, Seal::Unknown { .. }) => "unknown",
    }
}

fn seal(seal: &Seal) -> String {
    match seal {
        Seal::Yes {
            interface,
            form,
            packets,
        } => format!(
            "{packets} packets left {} as {}: none readable, no two alike",
            clipped(interface),
            clipped(form)
        ),
        Seal::No {
            interface,
            form,
            why,
            packets,
        } => {
            let why = match why {
                Unsealed::Readable => "readable",
                Unsealed::Repeats => "equal texts as equal bytes",
            };
            format!(
                "{packets} packets left {} as {}, {why}",
                clipped(interface),
                clipped(form)
            )
        }
        Seal::Unknown { reason } => format!("unknown: {}", clipped(reason)),
    }
}

fn mtu(mtu: &PerDirection<Result<PathMtu, String>>) -> String {
    let of = |found: &Result<PathMtu, String>| match found {
        Ok(mtu) if mtu.is_black_hole() => format!(
            "{} B, BLACK HOLE: {} to {} B vanish without a report",
            mtu.passed_bytes,
            mtu.passed_bytes + 1,
            mtu.known_bytes
        ),
        Ok(mtu) => format!("{} B", mtu.passed_bytes),
        Err(reason) => format!("unknown: {}", clipped(reason)),
    };
    let (from, to) = (of(&mtu.from_here), of(&mtu.to_here));
    if from == to {
        format!("{from}; both ways")
    } else {
        format!("from here {from}; to here {to}")
    }
}

fn goodput(findings: &Findings, verdict: &Verdict, direction: Direction) -> String {
    match (
        findings.streams.of(direction),
        verdict.goodput.of(direction),
    ) {
        (Err(reason), _) => format!("unknown: {}", clipped(reason)),
        (Ok(_), None) => "unknown: too short".to_owned(),
        (Ok(_), Some(goodput)) => rate(goodput),
    }
}

fn rate(goodput: &Goodput) -> String {
    let (low, high) = goodput.range;
    if high < 1.0 {
        return "nothing arrived after the first second".to_owned();
    }
    let interval = goodput.interval_95.map(|(low, high)| {
        let half = (high - low) / 2.0 / goodput.bps.max(1.0) * 100.0;
        format!(" ± {} %", human::number(half))
    });
    format!(
        "{}{}, seconds {} to {}",
        human::bit_rate(goodput.bps),
        interval.unwrap_or_default(),
        human::bit_rate(low),
        human::bit_rate(high)
    )
}

fn trips(trips: &RoundTrips) -> String {
    let ns = |ns: u64| human::duration_ns(ns as f64);
    let lost = match trips.lost {
        0 => String::new(),
        lost => format!(", {lost} of {} lost", trips.sent),
    };
    format!("{} (p95 {}{lost})", ns(trips.p50_ns), ns(trips.p95_ns))
}

fn idle(idle: &Result<RoundTrips, String>) -> String {
    match idle {
        Ok(idle) => format!("{} idle", trips(idle)),
        Err(reason) => format!("unknown: {}", clipped(reason)),
    }
}

fn loaded(findings: &Findings) -> String {
    let of = |direction: Direction| {
        let stream = findings.streams.of(direction).as_ref().ok();
        let found = stream.and_then(|stream| stream.round_trips);
        found.map_or_else(|| "unknown".to_owned(), |found| trips(&found))
    };
    format!(
        "{} from here; {} to here",
        of(Direction::FromHere),
        of(Direction::ToHere)
    )
}

fn limit(verdict: &Verdict, direction: Direction) -> String {
    let (sender, receiver) = match direction {
        Direction::FromHere => ("here", "there"),
        Direction::ToHere => ("there", "here"),
    };
    let lost = |ppm: u64| match ppm {
        0 => String::new(),
        ppm => format!(", {} % sent again", human::number(ppm as f64 / 1e4)),
    };
    match verdict.limits.of(direction) {
        None => "unknown".to_owned(),
        Some(Limit::Stall { black_hole: None }) => "it stalls".to_owned(),
        Some(Limit::Stall { .. }) => "the black hole: long packets vanish".to_owned(),
        Some(Limit::Core { of_sender, cpu }) => format!(
            "one core {}: CPU {} is {} % busy, {} % in the network stack",
            if *of_sender { sender } else { receiver },
            cpu.cpu,
            cpu.busy_percent,
            cpu.softirq_percent
        ),
        Some(Limit::ReceiveWindow { percent }) => {
            format!("the receive window {receiver}, full for {percent} % of the time")
        }
        Some(Limit::SendBuffer { percent }) => {
            format!("the send buffer {sender}, full for {percent} % of the time")
        }
        Some(Limit::Loss { ppm }) => format!("loss in the path{}", lost(*ppm)),
        Some(Limit::Path { added_ns, ppm }) => format!(
            "the path: its queue adds {}{}",
            human::duration_ns(*added_ns as f64),
            lost(*ppm)
        ),
        Some(Limit::Unknown) => {
            "not found: no full core, window, buffer, queue, no loss".to_owned()
        }
    }
}

/// The offloads that hurt, the first ones of several; or that none does.
fn offloads(found: &Option<Result<OffloadFindings, String>>) -> Vec<String> {
    let found = match found {
        None => return vec!["not tried; `--offloads` finds the one that hurts".to_owned()],
        Some(Err(reason)) => return vec![format!("unknown: {}", clipped(reason))],
        Some(Ok(found)) => found,
    };
    let mut lines: Vec<String> = found
        .in_force()
        .take(OFFLOADS_MAX)
        .map(|hurting| {
            let symptom = hurting.symptoms.first().map_or("", |it| it);
            clipped(&format!("{}: {symptom}", hurting.causes.join(" and ")))
        })
        .collect();
    let settings = found.settings;
    if lines.is_empty() {
        lines.push(format!(
            "none of {settings} settings hurts ({} combinations)",
            found.combinations
        ));
    }
    match found.not_changed.len() {
        0 => {}
        _ => lines.push(format!(
            "not changed: {}",
            clipped(&found.not_changed.join("; "))
        )),
    }
    lines
}

/// The answer for programs.
#[must_use]
pub fn json(findings: &Findings, verdict: &Verdict) -> String {
    let unknown = |reason: &str| json!({ "unknown": reason });
    let both = |of: &dyn Fn(Direction) -> Value| json!({ "from_here": of(Direction::FromHere), "to_here": of(Direction::ToHere) });
    let mtu = |direction| match findings.mtu.of(direction) {
        Ok(mtu) => json!({
            "known_bytes": mtu.known_bytes,
            "passed_bytes": mtu.passed_bytes,
            "is_black_hole": mtu.is_black_hole(),
        }),
        Err(reason) => unknown(reason),
    };
    let tcp = |direction| match findings.streams.of(direction) {
        Ok(stream) => json!({
            "goodput": verdict.goodput.of(direction),
            "second_bytes": stream.receiver.second_bytes,
            "sender": stream.sender,
            "receiver_cpu": stream.receiver.cpu,
            "round_trips": stream.round_trips,
            "added_ns": added_ns(findings, direction),
            "limit": verdict.limits.of(direction),
        }),
        Err(reason) => unknown(reason),
    };
    let offloads = match &findings.offloads {
        None => Value::Null,
        Some(Err(reason)) => unknown(reason),
        Some(Ok(found)) => json!(found),
    };
    let document = json!({
        "schema": "cipherbench-tunnel-check/1",
        "peer": findings.peer,
        "here": findings.here,
        "there": findings.there,
        "encrypted": both(&|direction| json!(findings.seal.of(direction))),
        "mtu": both(&mtu),
        "idle": findings.idle.as_ref().map_or_else(|reason| unknown(reason), |idle| json!(idle)),
        "tcp": both(&tcp),
        "offloads": offloads,
        "is_faulty": verdict.is_faulty,
        "is_incomplete": verdict.is_incomplete,
        "help": verdict.help,
        "took_ms": findings.took_ms,
    });
    format!("{document:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{Hurting, Remedy};
    use crate::verdict::tests::findings;

    const LINES_MAX: usize = 24;

    fn shown(findings: &Findings) -> String {
        let text = screen(findings, &Verdict::of(findings));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() <= LINES_MAX, "{} lines\n{text}", lines.len());
        for line in lines {
            assert!(line.chars().count() <= COLUMNS, "{line}");
        }
        text
    }

    #[test]
    fn the_answer_is_one_screen() {
        let expected = "\
10.9.0.2 over wg0 (wireguard), checked in 27 s
Encrypted    yes, both ways
  from here  80 packets left eth0 as WireGuard: none readable, no two alike
  to here    80 packets left eth0 as WireGuard: none readable, no two alike
MTU          1420 B; both ways
TCP          from here 1 Gbit/s ± 9.95 %, seconds 960 Mbit/s to 1.04 Gbit/s
             to here   1 Gbit/s ± 9.95 %, seconds 960 Mbit/s to 1.04 Gbit/s
Round trip   1 ms (p95 2 ms) idle
  under load 1 ms (p95 2 ms) from here; 1 ms (p95 2 ms) to here
Limit        from here: not found: no full core, window, buffer, queue, no loss
             to here: not found: no full core, window, buffer, queue, no loss
Offloads     not tried; `--offloads` finds the one that hurts
";
        assert_eq!(shown(&findings()), expected);
    }

    #[test]
    fn the_worst_answer_is_one_screen_too() {
        let mut findings = findings();
        let hole = PathMtu {
            known_bytes: 65_000,
            passed_bytes: 1300,
        };
        findings.mtu.from_here = Ok(hole);
        findings.mtu.to_here = Err("x ".repeat(2000));
        findings.seal.from_here = Seal::No {
            interface: "enp130s0f0np0.12".to_owned(),
            form: "UDP to port 65535".to_owned(),
            why: Unsealed::Repeats,
            packets: 80,
        };
        findings.seal.to_here = Seal::Unknown {
            reason: "\u{1b}[2J a ".repeat(900),
        };
        findings.idle = Err("y".repeat(300));
        let mut stalled = findings.streams.from_here.clone().unwrap();
        stalled.receiver.second_bytes = vec![0; 10];
        stalled.round_trips = None;
        findings.streams.from_here = Ok(stalled);
        findings.streams.to_here = Err("no second connection: z".repeat(20));
        findings.offloads = Some(Err("o ".repeat(2000)));
        let text = shown(&findings);
        assert!(
            text.contains("BLACK HOLE: 1301 to 65000 B vanish"),
            "{text}"
        );
        assert!(
            text.contains("nothing arrived after the first second"),
            "{text}"
        );
        assert!(text.contains("NO, not from here"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(text.contains("What helps   stop using this path"), "{text}");
    }

    #[test]
    fn the_offload_that_hurts_is_shown_with_its_command() {
        let mut findings = findings();
        let hurting = Hurting {
            causes: vec!["tso of here/wg0 = on".to_owned()],
            symptoms: vec!["TCP from here: stalled: 131072 of 2883584 B arrived".to_owned()],
            in_force: true,
            confirmed: true,
            remedies: vec![Remedy {
                commands: vec!["here: ethtool -K wg0 tso off".to_owned()],
                keep: Vec::new(),
            }],
        };
        let would = Hurting {
            causes: vec!["gso of here/wg0 = off".to_owned()],
            ..Hurting::default()
        };
        let mut found = OffloadFindings {
            settings: 14,
            combinations: 12,
            hurting: vec![hurting, would.clone()],
            not_changed: vec!["there/eth0: lro (fixed by the driver)".to_owned()],
            ..OffloadFindings::default()
        };
        findings.offloads = Some(Ok(found.clone()));
        let text = shown(&findings);
        let expected = "\
Offloads     tso of here/wg0 = on: TCP from here: stalled: 131072 of 2883584 B
             arrived
             not changed: there/eth0: lro (fixed by the driver)
What helps   here: ethtool -K wg0 tso off
";
        assert!(text.ends_with(expected), "{text}");
        let verdict = Verdict::of(&findings);
        assert!(verdict.is_faulty && !verdict.is_incomplete);
        found.hurting = vec![would];
        found.not_changed.clear();
        findings.offloads = Some(Ok(found.clone()));
        let text = shown(&findings);
        assert!(
            text.contains("none of 14 settings hurts (12 combinations)"),
            "{text}"
        );
        assert!(!Verdict::of(&findings).is_faulty);
        found.not_restored = vec!["here: tso of wg0 was on".to_owned()];
        findings.offloads = Some(Ok(found));
        let verdict = Verdict::of(&findings);
        assert!(verdict.is_incomplete);
        assert_eq!(
            verdict.help[0],
            "restore what the check could not: here: tso of wg0 was on"
        );
        findings.offloads = Some(Err("ethtool is missing (there)".to_owned()));
        let text = shown(&findings);
        assert!(text.contains("unknown: ethtool is missing"), "{text}");
        assert!(Verdict::of(&findings).is_incomplete);
    }

    #[test]
    fn the_json_is_one_document_with_every_answer() {
        let mut findings = findings();
        findings.mtu.to_here = Err("why".to_owned());
        let text = json(&findings, &Verdict::of(&findings));
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["encrypted"]["from_here"]["sealed"], "yes");
        assert_eq!(value["mtu"]["from_here"]["passed_bytes"], 1420);
        assert_eq!(value["mtu"]["to_here"]["unknown"], "why");
        assert_eq!(value["tcp"]["to_here"]["limit"]["limit"], "unknown");
        assert_eq!(value["idle"]["p50_ns"], 1_000_000);
        assert_eq!(
            (&value["is_faulty"], &value["is_incomplete"]),
            (&json!(false), &json!(true))
        );
    }
}
